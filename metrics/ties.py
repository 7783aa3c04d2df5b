"""Documents with equal scores: best, worst and random orders, and the exact mean score over all orders.

No order of them is the ranking's own. A block knows for every judged document the first and the last rank of its group;
the unjudged documents of a group take the ranks that are left.

Where a document's term depends on its own rank and grade alone, it adds the mean of its term over the ranks of its
group. For average precision, reciprocal rank and success the documents above matter, too, so the mean
follows from how many relevant documents a group has among how many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats, JudgedBlock, Terms, cut
from rankledger.metrics.metric import Metric

__all__ = ["best_first", "expected_terms", "has_expectation", "shuffled", "tie_sizes", "worst_first"]

Ints = npt.NDArray[np.int64]


def tie_sizes(block: JudgedBlock) -> Floats:
    """Return (H, Q) sizes of each document's group of equal scores, 1 if padded."""
    return np.subtract(block.tie_last, block.tie_first, out=np.zeros(block.ranks.shape), where=block.ranks < np.inf) + 1


def best_first(block: JudgedBlock) -> JudgedBlock:
    """Return the block with the best grades first in every group of equal scores, unjudged documents last."""
    ordered = block.reordered(np.lexsort((-block.grades, block.tie_first), axis=0))
    return replace(ordered, ranks=ordered.tie_first + _place(ordered.tie_first))


def worst_first(block: JudgedBlock) -> JudgedBlock:
    """Return the block with the best grades last in every group of equal scores, unjudged documents first."""
    ordered = block.reordered(np.lexsort((block.grades, block.tie_first), axis=0))
    return replace(ordered, ranks=ordered.tie_last - _place(ordered.tie_last[::-1])[::-1])


def shuffled(block: JudgedBlock, rng: np.random.Generator) -> JudgedBlock:
    """Return the block with a random order of every group of equal scores. All orders are equally likely."""
    place = _place(block.tie_first).T
    real = np.isfinite(block.ranks).T
    begins = real & (place == 0)
    sizes = tie_sizes(block).T[begins].astype(np.int64)
    group = np.cumsum(begins).reshape(begins.shape)[real] - 1
    drawn = _draw_positions(group, place[real].astype(np.int64), sizes, rng)
    ranks = block.ranks.T.copy()
    ranks[real] = block.tie_first.T[real] + drawn
    rows = np.argsort(ranks.T, axis=0, kind="stable")
    return replace(block.reordered(rows), ranks=np.take_along_axis(ranks.T, rows, axis=0))


def _draw_positions(group: Ints, place: Ints, sizes: Ints, rng: np.random.Generator) -> Ints:
    """Return (N,) random positions of documents in their groups, from 0. All orders are equally likely.

    `place` is how many documents of its group precede each, `sizes` how many documents each group has. A group of
    a thousand documents of which a few are judged is not sorted: theirs are places drawn, and drawn again until no two
    are the same.
    """
    full = sizes <= 2 * np.bincount(group, minlength=len(sizes))
    drawn = np.zeros(len(group), dtype=np.int64)
    rows = np.flatnonzero(full[group])
    sorted_sizes = np.where(full, sizes, 0)
    offsets = np.cumsum(sorted_sizes) - sorted_sizes
    order = np.lexsort((rng.random(sorted_sizes.sum()), np.repeat(np.arange(len(sizes)), sorted_sizes)))
    drawn[rows] = order[offsets[group[rows]] + place[rows]] - offsets[group[rows]]
    rows = redrawn = np.flatnonzero(~full[group])
    while redrawn.size:
        drawn[redrawn] = rng.integers(sizes[group[redrawn]])
        by_place = np.lexsort((drawn[rows], group[rows]))
        ahead, behind = rows[by_place[:-1]], rows[by_place[1:]]
        redrawn = behind[(group[ahead] == group[behind]) & (drawn[ahead] == drawn[behind])]
    return drawn


def _place(groups: Floats) -> Floats:
    """Return (H, Q) numbers of equal entries above each entry, 0 if padded. Equal entries are adjacent."""
    rows = np.broadcast_to(np.arange(float(len(groups)))[:, np.newaxis], groups.shape)
    begins = np.isinf(groups)
    begins[0] = True
    begins[1:] |= groups[1:] != groups[:-1]
    return rows - np.maximum.accumulate(np.where(begins, rows, 0.0), axis=0)


def has_expectation(metric: Metric, parameters: Mapping[str, Any]) -> bool:
    """Return whether the mean over all orders of tied documents has a formula for the metric."""
    return metric.additive or (metric.name in _CLOSED_FORMS and parameters.get("denominator") != "hits")


def expected_terms(metric: Metric, block: JudgedBlock, *, depth: int | None = None, **parameters: Any) -> Terms:
    """Return the terms of each query's mean score over all orders of tied documents.

    Args:
        metric: a metric that `has_expectation`.
        block: The judged documents each query retrieved.
        depth: How many documents of each ranking count; None counts all.
        parameters: The metric's.

    Raises:
        ValueError: If the metric has no exact mean.

    Reference:
        McSherry & Najork 2008, doi:10.1007/978-3-540-78646-7_38.
    """
    if not has_expectation(metric, parameters):
        raise ValueError(f"{metric.name} has no exact mean over the orders of ties; choose another `ties`")
    deepest = min(cut(parameters.get("k")), cut(depth))
    best = metric.terms(replace(block, ranks=block.tie_first).cut_at(depth), **parameters)
    if metric.name in _CLOSED_FORMS:
        relevant = block.relevant(parameters["rel"])
        return replace(
            best, terms=_spread_over_groups(block, relevant, deepest, _CLOSED_FORMS[metric.name]), factors={}
        )
    sizes = tie_sizes(block)
    reached = _count_reached(block, deepest)
    terms = best.terms / sizes
    for step in range(1, int(reached.max())):
        queries = np.flatnonzero((reached > step).any(axis=0))
        part, size = block.of(queries), sizes[:, queries]
        moved = replace(
            part,
            ranks=np.where(size > step, part.tie_first + step, np.inf),
            grades=np.where(size > step, part.grades, np.nan),
        )
        terms[:, queries] += metric.terms(moved.cut_at(depth), **parameters).terms / size
    return replace(best, terms=terms, factors={})


@dataclass(frozen=True, eq=False)
class _Groups:
    """The G groups of equal scores that hold relevant documents, each array (G,)."""

    first: Floats
    sizes: Floats
    reached: Floats  # the ranks of the group that count
    n_relevant: Floats
    above: Floats  # relevant documents above the group


def _spread_over_groups(
    block: JudgedBlock, relevant: Bools, deepest: float, term: Callable[[_Groups], Floats]
) -> Floats:
    """Return the (H, Q) terms of relevant documents, equal within a group, 0 for other documents."""
    queries, rows = np.nonzero(relevant.T)
    first = block.tie_first[rows, queries]
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (queries[1:] != queries[:-1]) | (first[1:] != first[:-1])
    firsts = np.flatnonzero(begins)
    above = (relevant.cumsum(axis=0) - relevant)[rows[firsts], queries[firsts]].astype(np.float64)
    n_relevant = np.diff(firsts, append=len(rows)).astype(np.float64)
    sizes, reached = (
        numbers[rows[firsts], queries[firsts]] for numbers in (tie_sizes(block), _count_reached(block, deepest))
    )
    terms = np.zeros(block.ranks.shape)
    terms[rows, queries] = term(_Groups(first[firsts], sizes, reached, n_relevant, above))[np.cumsum(begins) - 1]
    return terms


def _average_precision(groups: _Groups) -> Floats:
    """Count documents above the group, and a share of the group, as above a relevant document."""
    share = (groups.n_relevant - 1) / np.maximum(groups.sizes - 1, 1)
    terms = np.zeros(len(groups.first))
    for step in range(int(groups.reached.max(initial=0))):
        precision = (groups.above + 1 + step * share) / (groups.first + step)
        terms += np.where(step < groups.reached, precision / groups.sizes, 0.0)
    return terms


def _first_hit(groups: _Groups, worth: Callable[[Floats], Floats]) -> Floats:
    """Return the worth of the first relevant document by rank, times the probability of the rank."""
    sizes, n_relevant = groups.sizes, groups.n_relevant
    chance = np.where(groups.above == 0, n_relevant / sizes, 0.0)
    terms = np.zeros(len(groups.first))
    for step in range(int(groups.reached.max(initial=0, where=groups.above == 0))):
        terms += np.where(step < groups.reached, chance * worth(groups.first + step) / n_relevant, 0.0)
        n_left = sizes - step
        # none so far: the chance that the next of those left is the first relevant one
        chance = np.where(n_left > n_relevant, chance * (n_left - n_relevant) / np.maximum(n_left - 1, 1), 0.0)
    return terms


def _count_reached(block: JudgedBlock, deepest: float) -> Floats:
    """Return (H, Q) numbers of ranks that count in each document's group."""
    first = np.where(block.ranks < np.inf, block.tie_first, 1.0)
    return np.clip(deepest + 1 - first, 0.0, tie_sizes(block))


_CLOSED_FORMS: Mapping[str, Callable[[_Groups], Floats]] = MappingProxyType(
    {
        "ap": _average_precision,
        "gmap": _average_precision,
        "rr": partial(_first_hit, worth=np.reciprocal),
        "success": partial(_first_hit, worth=np.ones_like),
    }
)
