"""The randomization test of many pairs at once: sign flips, p-values, and corrections for the number of tests.

Where there is no difference between the models either order is as likely, so every pattern of signs is. All of them
are counted where there are few, else random ones, which are drawn once per dataset and shared by all that is tested on
it.

A pair's statistic is |T(s)|, T(s) being the difference of the two figures after each cluster whose sign is -1 has given
what it adds to one model's sums to the other's. All such sums are signs times columns of numbers, and a model's columns
serve all its pairs: Σ s·(a - b) is Σ s·a - Σ s·b.

It is divided by its standard deviation over all signs, so that pairs can be compared. Changing places
does not move that, so the test stays exact; and it is the test of Student's t. For let d be what C clusters add to a
difference: Σ d² is the same under all signs, so with z = Σ s·d / √(Σ d²) the t of the numbers s·d is
z·√((C - 1) / (C - z²)), which rises with z.

Every pair, measure and slice of a dataset has the same signs, so their statistics move together as they would if no
model were better. For all pairs of models this does what the randomised Tukey test does, without taking more than two
models at a time for alike.

Reference:
    Smucker, Allan & Carterette 2007, doi:10.1145/1321440.1321528, for the test; Boytsov, Belova & Westfall 2013,
    doi:10.1145/2484028.2484034, for families of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats, divide
from rankledger.pipeline.inference.resampling import Ratio, Settings, in_chunks, round_to_exact
from rankledger.pipeline.inference.samples import Pair, Sample

__all__ = [
    "FlippedPair",
    "FlippedPairs",
    "Rows",
    "Signs",
    "all_signs",
    "benjamini_hochberg",
    "draw_signs",
    "exceedances",
    "holm",
    "randomization",
    "westfall_young",
]

Signs = npt.NDArray[np.int8]


def all_signs(n_clusters: int) -> Signs:
    """(2**K, K): every pattern of 1 and -1 over K clusters; the first is that of the sample, all 1."""
    patterns = np.arange(2**n_clusters)[:, np.newaxis]
    return _from_bits(patterns >> np.arange(n_clusters) & 1)


def draw_signs(entropy: list[int], n_patterns: int, n_clusters: int) -> Signs:
    """(n_patterns, C): random signs, a bit each."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    n_signs = n_patterns * n_clusters
    drawn = np.frombuffer(rng.bytes(-(-n_signs // 8)), dtype=np.uint8)
    return _from_bits(np.unpackbits(drawn, count=n_signs).reshape(n_patterns, n_clusters))


def _from_bits(bits: npt.NDArray[np.integer]) -> Signs:
    return 1 - 2 * bits.astype(np.int8)


Rows: TypeAlias = npt.NDArray[np.int64] | slice
_Indices: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FlippedPair:
    """Two models' figures by one measure over the same C clusters.

    Attributes:
        ours: the figure of one.
        theirs: that of the other.
    """

    ours: Ratio
    theirs: Ratio

    @cached_property
    def moved(self) -> Bools:
        """(C,): the clusters in which anything changes as the models change places."""
        moved: Bools = (_stacked(self.ours) != _stacked(self.theirs)).any(axis=0)
        return moved

    @cached_property
    def is_plain(self) -> bool:
        """Whether T rises with a single sum Σ s·d, which is then taken for it: one mean over the same denominators."""
        return len(self.ours.added) == 1 and np.array_equal(self.ours.denominators, self.theirs.denominators)

    @cached_property
    def slopes(self) -> Floats:
        """(S + 1,): how much T moves with each Σ s·(a - b), numerators first, from where both models are alike."""
        if self.is_plain:
            return np.array([1.0, 0.0])
        sums = (_stacked(self.ours) + _stacked(self.theirs)).sum(axis=1)
        means = divide(sums[:-1], sums[-1])
        slopes = self.ours.aggregation.slope(means)
        return divide(2 * np.append(slopes, -(slopes * means).sum()), sums[-1])

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of T over all signs, to first order where T is not plain; 1 where it does not move."""
        apart = _stacked(self.ours) - _stacked(self.theirs)
        moved = (self.slopes[:, np.newaxis] * apart).sum(axis=0)
        return float(np.sqrt((moved * moved).sum())) or 1.0

    def rest(self, rows: Rows) -> Floats:
        """(S + 1, 1): what both models have together in all clusters but these."""
        both = np.delete(_stacked(self.ours) + _stacked(self.theirs), rows, axis=1)
        rest: Floats = both.sum(axis=1, keepdims=True)
        return rest

    def differences(self, ours: Floats, theirs: Floats) -> Floats:
        """(B,): the differences of the figures that these sums make, (S + 1, B) each."""
        return self.ours.figure(ours[:-1], ours[-1]) - self.theirs.figure(theirs[:-1], theirs[-1])


class FlippedPairs:
    """H pairs over the same clusters, K of which have signs. It keeps little: processes are sent a copy each.

    Attributes:
        observed: (H,) the statistics of the sample.
        thresholds: (H,) what counts as reaching them: less by what rounding can make of statistics that are equal.
    """

    def __init__(self, swaps: Sequence[FlippedPair], rows: Rows) -> None:
        """Gather the columns of numbers.

        Args:
            swaps: the pairs.
            rows: the K clusters that have signs; in the others nothing changes.
        """
        columns = _Columns([ratio for swap in swaps for ratio in (swap.ours, swap.theirs)], rows)
        places = [(columns.places[swap.ours], columns.places[swap.theirs]) for swap in swaps]
        self._rounded, self._totals = columns.rounded, columns.rounded.sum(axis=0)[:, np.newaxis]
        self._plain = np.flatnonzero([swap.is_plain for swap in swaps])
        self._first = np.array([(ours[0], theirs[0]) for ours, theirs in places])[self._plain].T
        self._others = {
            i: (swap, swap.rest(rows), *both)
            for i, (swap, both) in enumerate(zip(swaps, places, strict=True))
            if not swap.is_plain
        }
        self._deviations = np.array([swap.deviation for swap in swaps])
        errors = [
            (np.abs(swap.slopes) * (columns.errors[ours] + columns.errors[theirs])).sum()
            for swap, (ours, theirs) in zip(swaps, places, strict=True)
        ]
        self.observed = self._of(self._totals)[:, 0]
        self.thresholds: Floats = self.observed - np.array(errors) / self._deviations

    def statistics(self, signs: Signs) -> Floats:
        """(H, B): the statistics under each pattern of signs, (B, K); NaN where a figure is undefined."""
        return self._of(self._sums(signs, slice(None)))

    def all_statistics(self, *, _part: int = 1 << 16) -> Iterator[Floats]:
        """(H, B) each: the statistics under half of all patterns of K signs, the sample's first.

        The other half are their opposites, which have the same statistics: the last cluster keeps the sign 1. Sums are
        exact, so those of a pattern are those of its first signs and those of its other signs together.
        """
        n_free = max(len(self._rounded) - 1, 0)
        n_first = min(n_free, max(_part // len(self._deviations), 1).bit_length() - 1)  # 512 kB stay in the cache
        first = self._sums(all_signs(n_first), slice(n_first))
        last = self._rounded[n_free:].sum(axis=0)[:, np.newaxis]
        for pattern in range(2 ** (n_free - n_first)):
            signs = _from_bits(pattern >> np.arange(n_free - n_first)[np.newaxis] & 1)
            yield self._of(first + (self._sums(signs, slice(n_first, n_free)) + last))

    def _sums(self, signs: Signs, rows: slice) -> Floats:
        """(N, B): the sums of signs times these rows."""
        return np.ascontiguousarray((signs.astype(np.float64) @ self._rounded[rows]).T)

    def _of(self, sums: Floats) -> Floats:
        """(H, B): the statistics that sums times signs make, (N, B)."""
        found = np.empty((len(self._deviations), sums.shape[1]))
        found[self._plain] = sums[self._first[0]] - sums[self._first[1]]
        totals = self._totals
        for i, (swap, rest, ours, theirs) in self._others.items():
            kept = (totals[ours] + sums[ours]) + (totals[theirs] - sums[theirs]) + rest  # twice the sums: no term is
            given = (totals[ours] - sums[ours]) + (totals[theirs] + sums[theirs]) + rest  # halved, so none is rounded
            found[i] = swap.differences(kept, given)
        statistics: Floats = np.abs(found) / self._deviations[:, np.newaxis]
        return statistics


class _Columns:
    """What K clusters add to the sums of some figures, each of N columns once.

    All sums of them are exact; `errors` is how far apart rounding can take two that are equal but for the signs.
    """

    def __init__(self, ratios: Sequence[Ratio], rows: Rows) -> None:
        distinct = list(dict.fromkeys(ratios))
        weights: dict[bytes, int] = {}  # most measures weigh the queries alike, and one column serves them all
        at = [weights.setdefault(ratio.denominators[rows].tobytes(), len(weights)) for ratio in distinct]
        numerators = [row[rows] for ratio in distinct for row in ratio.numerators]
        columns = np.stack([*numerators, *map(np.frombuffer, weights)])
        bounds = np.array([*(ratio.bound for ratio in distinct for _ in ratio.added), *[0.0] * len(weights)])
        self.rounded = round_to_exact(columns, bounds)
        greatest = np.maximum(np.abs(columns).max(axis=1, initial=0.0), bounds)
        # K numbers in each of two sums, each moved by half a step at most, and by as much again before it came here.
        self.errors = greatest * columns.shape[1] ** 2 * 2.0**-51
        ends = np.cumsum([len(ratio.added) for ratio in distinct])
        self.places: dict[Ratio, _Indices] = {
            ratio: np.append(np.arange(end - len(ratio.added), end), len(numerators) + place)
            for ratio, end, place in zip(distinct, ends, at, strict=True)
        }


def _stacked(ratio: Ratio) -> Floats:
    """(S + 1, C): numerators and denominators."""
    return np.vstack([ratio.numerators, ratio.denominators])


def holm(p_values: Floats) -> Floats:
    """(H,): corrected so that any true hypothesis of the family is rejected at most at the level's rate.

    Reference:
        Holm 1979, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 65-70.
    """
    order = np.argsort(p_values, kind="stable")
    left = np.arange(len(p_values), 0, -1)  # hypotheses that are not rejected yet
    return _placed(np.maximum.accumulate(np.minimum(p_values[order] * left, 1.0)), order)


def benjamini_hochberg(p_values: Floats) -> Floats:
    """(H,): corrected so that the expected share of true hypotheses among those rejected is at most the level.

    It holds for independent tests and positively dependent ones.

    Reference:
        Benjamini & Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x.
    """
    order = np.argsort(-p_values, kind="stable")
    ranks = np.arange(len(p_values), 0, -1)
    return _placed(np.minimum.accumulate(np.minimum(p_values[order] * len(p_values) / ranks, 1.0)), order)


def westfall_young(p_values: Floats, jointly: Floats, ascending: _Indices) -> Floats:
    """(H,): step-down maxT. Corrected as `holm`, but by how the statistics of the family move together.

    Args:
        p_values: (H,) uncorrected; no corrected one is less.
        jointly: (H,) how often the greatest statistic among a hypothesis and all that are before it in `ascending`
            reaches the hypothesis's own.
        ascending: (H,) the hypotheses by their statistics over the sample.

    Reference:
        Westfall & Young 1993, Resampling-Based Multiple Testing, algorithm 2.8 with statistics in place of p-values.
    """
    descending = ascending[::-1]
    return _placed(np.maximum.accumulate(np.maximum(p_values, jointly)[descending]), descending)


def exceedances(
    statistics: Floats, thresholds: Floats, floor: Floats | float = 0.0
) -> tuple[_Indices, _Indices, Floats]:
    """How often a statistic reaches its threshold, alone and together with those before it.

    An undefined statistic counts as one that does.

    Args:
        statistics: (H, B) of hypotheses in ascending order of what they are over the sample.
        thresholds: (H,) what they are over the sample.
        floor: (B,) the greatest of the hypotheses before these.

    Returns:
        (H,) how many of B statistics reach it, (H,) how many of the greatest down to each do, and (B,) the greatest of
        all.
    """
    greatest = np.maximum.accumulate(np.maximum(statistics, floor), axis=0)
    alone, jointly = ((~(each < thresholds[:, np.newaxis])).sum(axis=1) for each in (statistics, greatest))
    return alone, jointly, greatest[-1]


def _placed(values: Floats, order: _Indices) -> Floats:
    """The values, which are in this order, in the order of the hypotheses."""
    placed = np.empty_like(values)
    placed[order] = values
    return placed


_CHUNK = 1 << 20  # signs of a chunk: 8 MB as doubles. Each has a stream of its own, so this is part of every p-value.
_HELD = 1 << 20  # statistics that are looked at together: 8 MB
_MOST_ENUMERATED = 10**8  # statistics of a family: up to so many, all patterns are counted, else random ones
_ALWAYS_ENUMERATED = 13  # clusters, however many the tests: 8,192 patterns are fewer than are usually drawn


def randomization(
    sample: Sample,
    pairs: Sequence[Pair],
    settings: Settings,
    *,
    _chunk: int = _CHUNK,
    _held: int = _HELD,
    _enumerated: int = _MOST_ENUMERATED,
) -> tuple[Floats, Floats]:
    """The p-values of each pair alone, (H,), and as corrected among all of them by maxT, (H,).

    A p-value is (1 + n) / (1 + B), n of B random patterns of signs having a statistic that reaches the sample's. Where
    m clusters differ and H · 2**m is at most 10**8, or m is at most 13, it is exact: n / 2**m over all patterns of
    these.

    Args:
        sample: one dataset's models.
        pairs: what is tested; of the others, a pair's p-value alone depends on the number only, by whether it is exact.
        settings: how patterns of signs are drawn.
    """
    most = max(_enumerated // len(pairs), 2**_ALWAYS_ENUMERATED).bit_length() - 1
    moved = np.stack([FlippedPair(*sample.sides(pair)).moved for pair in pairs])
    any_moved = np.flatnonzero(moved.any(axis=0))
    if len(any_moved) <= most:
        family, (alone, jointly) = _exact(sample, pairs, any_moved, _held)
    else:
        family = _family(sample, pairs, _held)
        stream = f"signs/{sample.dataset}"
        counts = in_chunks("Flipping signs", _count_chunk, family, sample.n_clusters, stream, settings, _chunk)
        alone, jointly = (1 + np.sum([*counts], axis=0)) / (1 + settings.resamples)
        for i, pair in enumerate(pairs):
            if moved[i].sum() <= most:
                alone[i] = _exact(sample, [pair], np.flatnonzero(moved[i]), _held)[1][0, 0]
    return alone, westfall_young(alone, jointly, family.ascending)


class _Family:
    """All that is tested together, in groups of pairs that take the signs of different clusters."""

    def __init__(self, groups: Sequence[tuple[Rows, FlippedPairs]], order: _Indices, held: int) -> None:
        self._held = held
        self._groups = groups
        self._order = np.argsort(np.concatenate([group.observed for _, group in groups]), kind="stable")
        self._thresholds = np.concatenate([group.thresholds for _, group in groups])[self._order]
        self.ascending = order[self._order]  # the pairs by their statistics over the sample

    def count(self, signs: Signs) -> _Indices:
        """(2, H): how often each pair's statistic reaches the sample's, and how often one of those up to it does."""
        n_parts = -(-len(signs) * len(self._order) // self._held)
        counts = np.zeros((2, len(self._order)), dtype=np.int64)
        for part in np.array_split(signs, n_parts):
            counts += self.reached([group.statistics(part[:, rows]) for rows, group in self._groups])
        return counts

    def reached(self, statistics: Sequence[Floats]) -> _Indices:
        """As `count`, given the statistics of each group under the same patterns, (H', B) each."""
        alone, jointly, _ = exceedances(np.concatenate(statistics)[self._order], self._thresholds)
        counts = np.empty((2, len(self._order)), dtype=np.int64)
        counts[:, self.ascending] = alone, jointly
        return counts


def _flipped_pairs(sample: Sample, pairs: Sequence[Pair], rows: Rows) -> FlippedPairs:
    """The pairs with signs for these clusters. Their figures are made here and let go: those of all would be large."""
    return FlippedPairs([FlippedPair(*sample.sides(pair)) for pair in pairs], rows)


def _family(sample: Sample, pairs: Sequence[Pair], held: int) -> _Family:
    """The pairs in a group per slice: few clusters are in most slices."""
    members: dict[str, list[int]] = {}
    for i, pair in enumerate(pairs):
        members.setdefault(pair.slice, []).append(i)
    groups = [
        (rows, _flipped_pairs(sample, [pairs[i] for i in places], rows))
        for rows, places in ((sample.clusters_of(name), places) for name, places in members.items())
    ]
    return _Family(groups, np.concatenate([np.array(places) for places in members.values()]), held)


def _count_chunk(family: _Family, n_clusters: int, entropy: list[int], n_patterns: int) -> _Indices:
    return family.count(draw_signs(entropy, n_patterns, n_clusters))


def _exact(sample: Sample, pairs: Sequence[Pair], moved: _Indices, held: int) -> tuple[_Family, Floats]:
    """The family of these pairs, and (2, H) their p-values over all patterns of the clusters that move."""
    group = _flipped_pairs(sample, pairs, moved)
    family = _Family([(slice(None), group)], np.arange(len(pairs)), held)
    counts = np.sum([family.reached([statistics]) for statistics in group.all_statistics()], axis=0)
    return family, counts / 2 ** max(len(moved) - 1, 0)
