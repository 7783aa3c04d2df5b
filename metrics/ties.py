"""Documents with equal scores: their best order, their worst, and any.

No order of them is the ranking's own. A block knows for every judged document the first and the last rank of its group;
the unjudged documents of a group take the ranks that are left.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from metrics.block import Floats, JudgedBlock

__all__ = ["best_first", "shuffled", "tie_sizes", "worst_first"]

Ints = npt.NDArray[np.int64]


def tie_sizes(block: JudgedBlock) -> Floats:
    """(H, Q): how many documents have the score of each document, itself included; 1 where padded."""
    return np.subtract(block.tie_last, block.tie_first, out=np.zeros(block.ranks.shape), where=block.ranks < np.inf) + 1


def best_first(block: JudgedBlock) -> JudgedBlock:
    """The block with the best grades first in every group of equal scores, the unjudged documents last."""
    ordered = block.reordered(np.lexsort((-block.grades, block.tie_first), axis=0))
    return replace(ordered, ranks=ordered.tie_first + _place(ordered.tie_first))


def worst_first(block: JudgedBlock) -> JudgedBlock:
    """The block with the best grades last in every group of equal scores, the unjudged documents first."""
    ordered = block.reordered(np.lexsort((block.grades, block.tie_first), axis=0))
    return replace(ordered, ranks=ordered.tie_last - _place(ordered.tie_last[::-1])[::-1])


def shuffled(block: JudgedBlock, rng: np.random.Generator) -> JudgedBlock:
    """The block with every group of equal scores in a random order, all orders alike."""
    place = _place(block.tie_first).T
    real = np.isfinite(block.ranks).T
    begins = real & (place == 0)
    sizes = tie_sizes(block).T[begins].astype(np.int64)
    group = np.cumsum(begins).reshape(begins.shape)[real] - 1
    drawn = _drawn(group, place[real].astype(np.int64), sizes, rng)
    ranks = block.ranks.T.copy()
    ranks[real] = block.tie_first.T[real] + drawn
    rows = np.argsort(ranks.T, axis=0, kind="stable")
    return replace(block.reordered(rows), ranks=np.take_along_axis(ranks.T, rows, axis=0))


def _drawn(group: Ints, place: Ints, sizes: Ints, rng: np.random.Generator) -> Ints:
    """(N,): where each of these documents stands in its group, from 0, all arrangements of it alike.

    A group of a thousand documents of which a few are judged is not sorted: theirs are places drawn, and drawn again
    until no two are the same.

    Args:
        group: (N,) the group of each document, ascending.
        place: (N,) how many documents of its group stand before each.
        sizes: by group, how many documents it has, these and others.
        rng: draws.
    """
    full = sizes <= 2 * np.bincount(group, minlength=len(sizes))
    found = np.zeros(len(group), dtype=np.int64)
    at = np.flatnonzero(full[group])
    sorted_sizes = np.where(full, sizes, 0)
    offsets = np.cumsum(sorted_sizes) - sorted_sizes
    order = np.lexsort((rng.random(sorted_sizes.sum()), np.repeat(np.arange(len(sizes)), sorted_sizes)))
    found[at] = order[offsets[group[at]] + place[at]] - offsets[group[at]]
    at = redrawn = np.flatnonzero(~full[group])
    while redrawn.size:
        found[redrawn] = rng.integers(sizes[group[redrawn]])
        by_place = np.lexsort((found[at], group[at]))
        ahead, behind = at[by_place[:-1]], at[by_place[1:]]
        redrawn = behind[(group[ahead] == group[behind]) & (found[ahead] == found[behind])]
    return found


def _place(groups: Floats) -> Floats:
    """(H, Q): how many entries equal to it stand above each entry, equal ones standing together; 0 where padded."""
    rows = np.broadcast_to(np.arange(float(len(groups)))[:, np.newaxis], groups.shape)
    begins = np.isinf(groups)
    begins[0] = True
    begins[1:] |= groups[1:] != groups[:-1]
    return rows - np.maximum.accumulate(np.where(begins, rows, 0.0), axis=0)
