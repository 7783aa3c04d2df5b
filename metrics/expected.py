"""The mean score over all orders of tied documents, where it can be written down.

Where a document's term depends on its own rank and grade alone, it adds the mean of its term over the ranks of its
group. For average precision, reciprocal rank and success it matters besides which documents stand above; there the mean
follows from how many relevant documents a group has among how many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from metrics.block import Bools, Floats, JudgedBlock, cut
from metrics.registry import Metric
from metrics.terms import Terms
from metrics.ties import tie_sizes

__all__ = ["expected_terms", "has_expectation"]


def has_expectation(metric: Metric, parameters: Mapping[str, Any]) -> bool:
    """Whether the mean over all orders of tied documents can be written down for the metric with these parameters."""
    return metric.additive or (metric.name in _CLOSED_FORMS and parameters.get("denominator") != "hits")


def expected_terms(metric: Metric, block: JudgedBlock, *, depth: int | None = None, **parameters: Any) -> Terms:
    """The terms of each query's mean score over all orders of tied documents.

    Args:
        metric: a metric that `has_expectation`.
        block: the judged documents each query retrieved.
        depth: how many documents of each ranking count; None counts all.
        parameters: the metric's.

    Raises:
        ValueError: the metric has no exact mean.

    Reference:
        McSherry & Najork 2008, doi:10.1007/978-3-540-78646-7_38.
    """
    if not has_expectation(metric, parameters):
        raise ValueError(f"{metric.name} has no exact mean over the orders of ties; choose other ties for it")
    deepest = min(cut(parameters.get("k")), cut(depth))
    found = metric.terms(replace(block, ranks=block.tie_first).cut_at(depth), **parameters)
    if metric.name in _CLOSED_FORMS:
        relevant = block.relevant(parameters["rel"])
        return replace(found, terms=_CLOSED_FORMS[metric.name](block, relevant, deepest), factors={})
    sizes = tie_sizes(block)
    terms = found.terms / sizes
    for step in range(1, int(sizes.max())):
        queries = np.flatnonzero((sizes > step).any(axis=0))
        part, size = block.of(queries), sizes[:, queries]
        moved = replace(
            part,
            ranks=np.where(size > step, part.tie_first + step, np.inf),
            grades=np.where(size > step, part.grades, np.nan),
        )
        terms[:, queries] += metric.terms(moved.cut_at(depth), **parameters).terms / size
    return replace(found, terms=terms, factors={})


def _average_precision(block: JudgedBlock, relevant: Bools, deepest: float) -> Floats:
    """At a rank of its group a relevant document has those above the group above it, and a share of its group's."""
    sizes, n_relevant, above = _groups(block, relevant)
    share = (n_relevant - 1) / np.maximum(sizes - 1, 1)
    terms = np.zeros(block.ranks.shape)
    for step in range(int(sizes.max())):
        rank = block.tie_first + step
        counted = relevant & (step < sizes) & (rank <= deepest)
        terms += np.where(counted, (above + 1 + step * share) / rank / sizes, 0.0)
    return terms


def _reciprocal_rank(block: JudgedBlock, relevant: Bools, deepest: float) -> Floats:
    return _first_hit(block, relevant, deepest, lambda rank: 1 / rank)


def _success(block: JudgedBlock, relevant: Bools, deepest: float) -> Floats:
    return _first_hit(block, relevant, deepest, np.ones_like)


def _first_hit(block: JudgedBlock, relevant: Bools, deepest: float, worth: Callable[[Floats], Floats]) -> Floats:
    """What the first relevant document is worth at each rank of its group, times the chance that it stands there."""
    sizes, n_relevant, above = _groups(block, relevant)
    first_group = relevant & (above == 0)
    chance = np.where(first_group, n_relevant / sizes, 0.0)
    terms = np.zeros(block.ranks.shape)
    for step in range(int(sizes.max())):
        rank = block.tie_first + step
        terms += np.where(first_group & (rank <= deepest), chance * worth(rank) / n_relevant, 0.0)
        left = sizes - step
        # none so far: the chance that the next of those left is the first relevant one
        chance = np.where(left > n_relevant, chance * (left - n_relevant) / np.maximum(left - 1, 1), 0.0)
    return terms


def _groups(block: JudgedBlock, relevant: Bools) -> tuple[Floats, Floats, Floats]:
    """(H, Q) each: the documents of a document's group, the relevant ones (at least 1), and those above the group."""
    hits = relevant.cumsum(axis=0)
    begins = np.ones(hits.shape, dtype=bool)
    begins[1:] = block.tie_first[1:] != block.tie_first[:-1]
    before = np.maximum.accumulate(np.where(begins, hits - relevant, 0), axis=0)
    ends = np.ones(hits.shape, dtype=bool)
    ends[:-1] = begins[1:]
    after = np.minimum.accumulate(np.where(ends, hits, hits[-1] + 1)[::-1], axis=0)[::-1]
    return tie_sizes(block), np.maximum(after - before, 1).astype(np.float64), before.astype(np.float64)


_CLOSED_FORMS: Mapping[str, Callable[[JudgedBlock, Bools, float], Floats]] = MappingProxyType(
    {"ap": _average_precision, "gmap": _average_precision, "rr": _reciprocal_rank, "success": _success}
)
