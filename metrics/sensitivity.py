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
from metrics.conventions import Conventions, Profile
from metrics.expected import has_expectation
from metrics.measure import Measure

__all__ = ["N_ORDERS", "sampled", "tie_bounds"]

N_ORDERS = 200
"""How many orders are drawn where they are."""


def sampled(measure: Measure, conventions: Conventions) -> tuple[str, ...]:
    """Which of `least`, `expected` and `greatest` come from orders drawn at random: the others are exact."""
    whole = conventions.depth is None or conventions.unjudged_documents != "condensed"
    expected = () if whole and has_expectation(measure.metric, measure.parameters) else ("expected",)
    # A relevant document that moves up into the first k adds to what such a score is divided by.
    by_hits = measure.parameters.get("denominator") == "hits" and (measure.k or conventions.depth) is not None
    return expected if measure.metric.monotone and not by_hits else ("least", "expected", "greatest")


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
    drawn = [ties.shuffled(block, rng) for _ in range(N_ORDERS)] if _any_sampled(measures, profile) else []
    for row, measure in enumerate(measures):
        conventions = profile.conventions_of(measure.metric.name)
        found = _bounds(measure, block, conventions, drawn, max_grade)
        bounds[:, row, queries] = found
    return bounds


def _any_sampled(measures: Sequence[Measure], profile: Profile) -> bool:
    return any(sampled(measure, profile.conventions_of(measure.metric.name)) for measure in measures)


def _bounds(
    measure: Measure, block: JudgedBlock, conventions: Conventions, drawn: Sequence[JudgedBlock], max_grade: float
) -> Floats:
    """(3, Q)."""

    def score(block: JudgedBlock, chosen: Conventions) -> Floats:
        return scoring.score(measure, scoring.ruled(block, chosen), chosen, max_grade=max_grade)

    names = sampled(measure, conventions)
    orders = [
        score(block, replace(conventions, ties="pessimistic")),
        score(block, replace(conventions, ties="optimistic")),
    ]
    shuffled = [score(one, replace(conventions, ties="input_order")) for one in drawn] if names else []
    extremes = np.stack([*orders, *shuffled] if "least" in names else orders)
    mean = np.mean(shuffled, axis=0) if names else score(block, replace(conventions, ties="expected"))
    return np.stack([extremes.min(axis=0), mean, extremes.max(axis=0)])
