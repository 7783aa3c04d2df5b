"""Scores of a block under given conventions, and their bounds over all orders of tied documents.

Most measures are lowest with the best grades last in every group and highest with them first, and many have a mean that
can be written down. What is left is taken from orders drawn at random, and `sampled` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankledger.metrics import ties
from rankledger.metrics.block import Floats, JudgedBlock, Terms
from rankledger.metrics.conventions import Conventions, Profile, Ties
from rankledger.metrics.measure import Measure
from rankledger.metrics.ties import expected_terms, has_expectation

__all__ = ["apply_conventions", "sampled", "score", "terms", "tie_bounds"]


def apply_conventions(block: JudgedBlock, conventions: Conventions) -> JudgedBlock:
    """Return the block with grades, order of equal scores, depth and unjudged documents by the conventions.

    Under `expected` no order of equal scores is taken and no depth cut: `score` looks at all orders.
    """
    if conventions.negative_grades == "non_relevant" and (block.judged_grades < 0).any():
        grades = np.maximum(block.judged_grades, 0.0)
        n_judged = np.isfinite(grades).sum(axis=0).astype(np.float64)
        block = replace(block, grades=np.maximum(block.grades, 0.0), judged_grades=grades, n_judged=n_judged)
    if conventions.ties == "optimistic":
        block = ties.best_first(block)
    elif conventions.ties == "pessimistic":
        block = ties.worst_first(block)
    if conventions.ties != "expected":
        block = block.cut_at(conventions.depth)
    return block.condensed() if conventions.unjudged_documents == "condensed" else block


def score(measure: Measure, block: JudgedBlock, conventions: Conventions, *, max_grade: float) -> Floats:
    """Return the (Q,) scores by the measure, NaN if undefined.

    Where undefined queries are skipped, one without relevant documents is undefined for every measure.

    Args:
        measure: What to measure.
        block: As `apply_conventions` gives it.
        conventions: What holds of the measure.
        max_grade: The maximum grade of the dataset's judgments.

    Raises:
        ValueError: If the measure cannot be computed of these grades.
    """
    if conventions.ties == "expected":
        scores = terms(measure, block, conventions, max_grade=max_grade).score()
    else:
        scores = measure.metric.function(block, **measure.arguments(max_grade))
    if conventions.undefined_queries == "skip" and measure.metric.undefined == "convention":
        rel = measure.parameters.get("rel", 1)
        return np.where(block.n_relevant(rel) > 0, scores, np.nan)
    return scores


def terms(measure: Measure, block: JudgedBlock, conventions: Conventions, *, max_grade: float) -> Terms:
    """Return the scores before their last sum. Arguments and errors as of `score`."""
    arguments = measure.arguments(max_grade)
    if conventions.ties == "expected":
        return expected_terms(measure.metric, block, depth=conventions.depth, **arguments)
    return measure.metric.terms(block, **arguments)


_N_ORDERS = 200  # how many are drawn at random


def sampled(measure: Measure, conventions: Conventions) -> tuple[str, ...]:
    """Return which of `least`, `expected` and `greatest` come from random orders. The others are exact."""
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
    """Return the minimum, mean and maximum score of each query over all orders of its tied documents.

    Args:
        measures: M measures of judged documents.
        values: (M, Q) their scores in the order that the conventions choose; a query without ties keeps its scores.
        block: The block before any conventions are applied.
        profile: The conventions of each metric.
        max_grade: The maximum grade of the dataset's judgments.
        rng: Draws orders if needed, the same ones for any measures.

    Returns:
        (3, M, Q), NaN if the score is.
    """
    bounds = np.stack([values, values, values])
    queries = np.flatnonzero((ties.tie_sizes(block) > 1).any(axis=0))
    if not queries.size:
        return bounds
    block = block.of(queries)
    some_bounds = np.empty((3, len(measures), len(queries)))
    worst, best, any_order = (_Ordered(block, profile, max_grade, order) for order in _ORDERS)
    for row, measure in enumerate(measures):
        ends = worst.score(measure), best.score(measure)
        exact = "expected" not in sampled(measure, profile.conventions_of(measure.metric.name))
        some_bounds[0, row], some_bounds[2, row] = np.minimum(*ends), np.maximum(*ends)
        some_bounds[1, row] = any_order.score(measure) if exact else 0.0
    _draw(measures, some_bounds, block, profile, max_grade, rng)
    some_bounds[1] = np.clip(
        some_bounds[1], some_bounds[0], some_bounds[2]
    )  # a mean of equal scores may be rounded beyond them
    bounds[:, :, queries] = some_bounds
    return bounds


_ORDERS: tuple[Ties, ...] = ("pessimistic", "optimistic", "expected")


class _Ordered:
    """Block with ties in one order, under the conventions of each measure."""

    def __init__(self, block: JudgedBlock, profile: Profile, max_grade: float, order: Ties) -> None:
        self._block, self._profile, self._max_grade, self._order = block, profile, max_grade, order
        self._ruled: dict[Conventions, JudgedBlock] = {}

    def score(self, measure: Measure) -> Floats:
        conventions = replace(self._profile.conventions_of(measure.metric.name), ties=self._order)
        if conventions not in self._ruled:
            self._ruled[conventions] = apply_conventions(self._block, conventions)
        return score(measure, self._ruled[conventions], conventions, max_grade=self._max_grade)


def _draw(
    measures: Sequence[Measure],
    found: Floats,
    block: JudgedBlock,
    profile: Profile,
    max_grade: float,
    rng: np.random.Generator,
) -> None:
    """Set (3, M, Q) bounds from random orders, one order at a time because a block is large."""
    names = {row: sampled(measure, profile.conventions_of(measure.metric.name)) for row, measure in enumerate(measures)}
    rows = [row for row, drawn in names.items() if drawn]
    for _ in range(_N_ORDERS if rows else 0):
        order = _Ordered(ties.shuffled(block, rng), profile, max_grade, "input_order")
        for row in rows:
            values = order.score(measures[row])
            found[1, row] += values
            if "least" in names[row]:
                found[0, row] = np.minimum(found[0, row], values)
                found[2, row] = np.maximum(found[2, row], values)
    found[1, rows] /= _N_ORDERS
