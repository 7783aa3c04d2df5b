"""How far a score depends on the order of tied documents: its least, mean and greatest value over all their orders.

Most measures are least with the best grades last in every group and greatest with them first, and many have a mean that
can be written down. What is left is taken from orders drawn at random, and `sampled` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metrics import scoring, ties
from metrics.block import Floats, JudgedBlock
from metrics.conventions import Conventions, Profile, Ties
from metrics.expected import has_expectation
from metrics.measure import Measure

__all__ = ["N_ORDERS", "sampled", "tie_bounds"]

N_ORDERS = 200
"""How many orders are drawn where they are."""


def sampled(measure: Measure, conventions: Conventions) -> tuple[str, ...]:
    """Which of `least`, `expected` and `greatest` come from orders drawn at random: the others are exact."""
    # Where unjudged documents are taken out of what a depth leaves, the order decides how many are left.
    varying = conventions.depth is not None and conventions.unjudged_documents == "condensed"
    # A relevant document that moves up into the first k adds to what such a score is divided by.
    by_hits = measure.parameters.get("denominator") == "hits" and (measure.k or conventions.depth) is not None
    if varying or by_hits or not measure.metric.monotone:
        return ("least", "expected", "greatest")
    return () if has_expectation(measure.metric, measure.parameters) else ("expected",)


def tie_bounds(
    measures: Sequence[Measure],
    values: Floats,
    block: JudgedBlock,
    profile: Profile,
    *,
    max_grade: float,
    rng: np.random.Generator,
) -> Floats:
    """The least, the mean and the greatest score of each query over all orders of its tied documents.

    Args:
        measures: M measures of judged documents.
        values: (M, Q) their scores in the order that the conventions choose; those of a query without ties stand.
        block: the block before any conventions are applied.
        profile: the conventions, as they hold of each metric.
        max_grade: the greatest grade of the dataset's judgments.
        rng: draws orders, where they are drawn; the same ones whatever the measures.

    Returns:
        (3, M, Q), NaN where the score is.
    """
    bounds = np.stack([values, values, values])
    queries = np.flatnonzero((ties.tie_sizes(block) > 1).any(axis=0))
    if not queries.size:
        return bounds
    block = block.of(queries)
    found = np.empty((3, len(measures), len(queries)))
    worst, best, any_order = (_Ordered(block, profile, max_grade, order) for order in _ORDERS)
    for row, measure in enumerate(measures):
        ends = worst.score(measure), best.score(measure)
        exact = "expected" not in sampled(measure, profile.conventions_of(measure.metric.name))
        found[0, row], found[2, row] = np.minimum(*ends), np.maximum(*ends)
        found[1, row] = any_order.score(measure) if exact else 0.0
    _draw(measures, found, block, profile, max_grade, rng)
    found[1] = np.clip(found[1], found[0], found[2])  # a mean of equal scores may be rounded beyond them
    bounds[:, :, queries] = found
    return bounds


_ORDERS: tuple[Ties, ...] = ("pessimistic", "optimistic", "expected")


class _Ordered:
    """A block whose ties stand in one order, under the conventions of whatever measure is asked for."""

    def __init__(self, block: JudgedBlock, profile: Profile, max_grade: float, order: Ties) -> None:
        self._block, self._profile, self._max_grade, self._order = block, profile, max_grade, order
        self._ruled: dict[Conventions, JudgedBlock] = {}

    def score(self, measure: Measure) -> Floats:
        """(Q,)."""
        conventions = replace(self._profile.conventions_of(measure.metric.name), ties=self._order)
        if conventions not in self._ruled:
            self._ruled[conventions] = scoring.ruled(self._block, conventions)
        return scoring.score(measure, self._ruled[conventions], conventions, max_grade=self._max_grade)


def _draw(
    measures: Sequence[Measure],
    found: Floats,
    block: JudgedBlock,
    profile: Profile,
    max_grade: float,
    rng: np.random.Generator,
) -> None:
    """Mend what comes from orders drawn at random, (3, M, Q); one order at a time, for a block is large."""
    names = {row: sampled(measure, profile.conventions_of(measure.metric.name)) for row, measure in enumerate(measures)}
    rows = [row for row, drawn in names.items() if drawn]
    for _ in range(N_ORDERS if rows else 0):
        order = _Ordered(ties.shuffled(block, rng), profile, max_grade, "input_order")
        for row in rows:
            values = order.score(measures[row])
            found[1, row] += values
            if "least" in names[row]:
                found[0, row] = np.minimum(found[0, row], values)
                found[2, row] = np.maximum(found[2, row], values)
    found[1, rows] /= N_ORDERS
