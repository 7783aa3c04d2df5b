"""The randomization test of many pairs at once: signs to p-values, of each pair alone and among its family.

Every pair, measure and slice of a dataset has the same signs, so their statistics move together as they would if no
model were better. For all pairs of models this does what the randomised Tukey test does, without taking more than two
models at a time for alike.

Reference:
    Smucker, Allan & Carterette 2007, doi:10.1145/1321440.1321528, for the test; Boytsov, Belova & Westfall 2013,
    doi:10.1145/2484028.2484034, for families of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from metrics.block import Floats
from pipeline.inference.paired.corrections import exceedances, westfall_young
from pipeline.inference.paired.signs import MOST_ENUMERATED, Signs, all_signs, draw_signs
from pipeline.inference.paired.swaps import Rows, Swap, Swaps
from pipeline.inference.resample import entropy_of
from pipeline.inference.samples import Pair, Sample
from pipeline.parallel import Workers

__all__ = ["Permutations", "randomization"]

_CHUNK = 1 << 20  # signs of a chunk: 8 MB as doubles. Each has a stream of its own, so this is part of every p-value.
_HELD = 1 << 20  # statistics that are looked at together: 8 MB
_EVERY = slice(None)

_Counts: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Permutations:
    """How signs are drawn.

    Attributes:
        n_patterns: how many patterns.
        seed: root of all streams.
        workers: run the drawing.
    """

    n_patterns: int
    seed: int
    workers: Workers


def randomization(sample: Sample, pairs: Sequence[Pair], permutations: Permutations) -> tuple[Floats, Floats]:
    """The p-values of each pair alone, (H,), and as corrected among all of them by maxT, (H,).

    A p-value is (1 + n) / (1 + B), n of B random patterns of signs having a statistic that reaches the sample's. Where
    at most 13 clusters differ it is exact: n / 2**m over all patterns of these.

    Args:
        sample: one dataset's models.
        pairs: what is tested; a pair's p-value alone does not depend on the others.
        permutations: how signs are drawn.
    """
    moved = np.stack([Swap(*sample.sides(pair)).moved for pair in pairs])
    any_moved = np.flatnonzero(moved.any(axis=0))
    if len(any_moved) <= MOST_ENUMERATED:
        family = _Family([(_EVERY, _swaps(sample, pairs, any_moved))], np.arange(len(pairs)))
        signs = all_signs(len(any_moved))
        alone, jointly = family.count(signs) / len(signs)
    else:
        family = _family(sample, pairs)
        counts = _count_drawn(family, sample, permutations)
        alone, jointly = (1 + counts) / (1 + permutations.n_patterns)
        for i, pair in enumerate(pairs):
            if moved[i].sum() <= MOST_ENUMERATED:
                alone[i] = _exact(sample, pair, np.flatnonzero(moved[i]))
    return alone, westfall_young(alone, jointly, family.ascending)


class _Family:
    """All that is tested together, in groups that take the signs of different clusters.

    Attributes:
        ascending: (H,) the pairs by their statistics over the sample.
    """

    def __init__(self, groups: Sequence[tuple[Rows, Swaps]], order: npt.NDArray[np.int64]) -> None:
        """Put the groups together.

        Args:
            groups: which of the signs each takes, and its pairs.
            order: (H,) the pairs as they stand in the groups.
        """
        self._groups = groups
        self._order = np.argsort(np.concatenate([group.observed for _, group in groups]), kind="stable")
        self._thresholds = np.concatenate([group.thresholds for _, group in groups])[self._order]
        self.ascending = order[self._order]

    def count(self, signs: Signs) -> _Counts:
        """(2, H): how often each pair's statistic reaches the sample's, and how often one of those up to it does."""
        n_parts = -(-len(signs) * len(self._order) // _HELD)
        counts = np.zeros((2, len(self._order)), dtype=np.int64)
        for part in np.array_split(signs, n_parts):
            statistics = np.concatenate([group.statistics(part[:, rows]) for rows, group in self._groups])
            alone, jointly, _ = exceedances(statistics[self._order], self._thresholds)
            counts[:, self.ascending] += alone, jointly
        return counts


def _swaps(sample: Sample, pairs: Sequence[Pair], rows: Rows) -> Swaps:
    """The pairs with signs for these clusters. Their figures are made here and let go: those of all would be large."""
    return Swaps([Swap(*sample.sides(pair)) for pair in pairs], rows)


def _family(sample: Sample, pairs: Sequence[Pair]) -> _Family:
    """The pairs in a group per slice: few clusters are in most slices."""
    members: dict[str, list[int]] = {}
    for i, pair in enumerate(pairs):
        members.setdefault(pair.slice, []).append(i)
    groups = [
        (rows, _swaps(sample, [pairs[i] for i in places], rows))
        for rows, places in ((sample.clusters_of(name), places) for name, places in members.items())
    ]
    return _Family(groups, np.concatenate([np.array(places) for places in members.values()]))


def _count_drawn(family: _Family, sample: Sample, permutations: Permutations) -> _Counts:
    n_patterns = max(1, _CHUNK // sample.n_clusters)
    begins = range(0, permutations.n_patterns, n_patterns)
    entropy = entropy_of(f"signs/{sample.dataset}")
    sizes = [min(n_patterns, permutations.n_patterns - begin) for begin in begins]
    calls = [(family, [permutations.seed, entropy, chunk], size, sample.n_clusters) for chunk, size in enumerate(sizes)]
    with threadpool_limits(limits=1, user_api="blas"):  # the workers share the cores already
        counts: _Counts = np.sum(permutations.workers.run("Flipping signs", _count_chunk, calls), axis=0)
    return counts


def _count_chunk(family: _Family, entropy: list[int], n_patterns: int, n_clusters: int) -> _Counts:
    return family.count(draw_signs(entropy, n_patterns, n_clusters))


def _exact(sample: Sample, pair: Pair, moved: npt.NDArray[np.int64]) -> float:
    """A pair's p-value over all patterns of the clusters that move."""
    family = _Family([(_EVERY, _swaps(sample, [pair], moved))], np.zeros(1, dtype=np.int64))
    signs = all_signs(len(moved))
    return int(family.count(signs)[0, 0]) / len(signs)
