"""A measure's scores of a block, by the conventions that hold of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metrics import ties
from metrics.block import Floats, JudgedBlock
from metrics.conventions import Conventions
from metrics.expected import expected_terms
from metrics.measure import Measure
from metrics.terms import Terms

__all__ = ["ruled", "score", "terms"]


def ruled(block: JudgedBlock, conventions: Conventions) -> JudgedBlock:
    """The block as the conventions have it: its grades, the order of equal scores, its depth, its unjudged documents.

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
    """(Q,): the measure of each query, NaN where it is undefined.

    Where undefined queries are skipped, one without relevant documents is undefined whatever the measure.

    Args:
        measure: what to measure.
        block: the block as `ruled` by the same conventions.
        conventions: what holds of the measure.
        max_grade: the greatest grade of the dataset's judgments.

    Raises:
        ValueError: the measure cannot be computed of these grades.
    """
    found = terms(measure, block, conventions, max_grade=max_grade).score()
    if conventions.undefined_queries == "skip" and measure.metric.undefined == "convention":
        rel = measure.parameters.get("rel", 1)
        return np.where(block.n_relevant(rel) > 0, found, np.nan)
    return found


def terms(measure: Measure, block: JudgedBlock, conventions: Conventions, *, max_grade: float) -> Terms:
    """The measure of each query before its last sum. Arguments and errors are those of `score`."""
    arguments = measure.arguments(max_grade)
    if conventions.ties == "expected":
        return expected_terms(measure.metric, block, depth=conventions.depth, **arguments)
    return measure.metric.terms(block, **arguments)
