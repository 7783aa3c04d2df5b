"""Randomization test of many pairs at once: sign flips, p-values, and corrections for the number of tests.

Without a difference between the models every pattern of signs is equally likely. All patterns are counted if they are
few, otherwise random ones, which are drawn once per dataset. A pair's statistic is |T(s)|, the difference of the two
values after each cluster with sign -1 exchanges its terms. A model's columns serve all its pairs, because Σ s·(a - b)
is Σ s·a - Σ s·b.

The statistic is divided by its standard deviation over all signs, so that pairs can be compared. Exchanges do not
change that deviation, so the test stays exact, and it is the test of Student's t: Σ d² is the same under all signs, so
with z = Σ s·d / √(Σ d²) the t of the numbers s·d is z·√((C - 1) / (C - z²)), which rises with z. All pairs, measures
and slices of a dataset share the signs, as in the randomized Tukey test.

Reference:
    Smucker, Allan & Carterette 2007, doi:10.1145/1321440.1321528, for the test; Boytsov, Belova & Westfall 2013,
    doi:10.1145/2484028.2484034, for families of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats, divide
from rankledger.pipeline.inference.ratios import RatioEstimate
from rankledger.pipeline.inference.resampling import (
    Indices,
    RatioColumns,
    ResampledSums,
    Settings,
    SlicedClusters,
    round_to_exact,
    run_chunks,
)
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.tables import ALL

Signs = npt.NDArray[np.int8]


def all_signs(n_clusters: int) -> Signs:
    """Return (2**K, K) patterns of 1 and -1 over K clusters. The first is the sample's, all 1."""
    patterns = np.arange(2**n_clusters)[:, np.newaxis]
    return _from_bits(patterns >> np.arange(n_clusters) & 1)


def draw_signs(entropy: list[int], n_patterns: int, n_clusters: int) -> Signs:
    """Return (n_patterns, C) random signs, one bit each."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    n_signs = n_patterns * n_clusters
    drawn = np.frombuffer(rng.bytes(-(-n_signs // 8)), dtype=np.uint8)
    return _from_bits(np.unpackbits(drawn, count=n_signs).reshape(n_patterns, n_clusters))


def draw_sign_sums(entropy: list[int], n_patterns: int, sizes: Indices) -> Indices:
    """Return (n_patterns, K) sums of random signs over cells of these (K,) sizes."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    return sizes - 2 * rng.binomial(sizes, 0.5, size=(n_patterns, len(sizes)))


def _from_bits(bits: npt.NDArray[np.integer]) -> Signs:
    return 1 - 2 * bits.astype(np.int8)


Rows: TypeAlias = npt.NDArray[np.int64] | slice


@dataclass(frozen=True, eq=False)
class FlippedPair:
    """Figures of two models by one measure over the same C clusters."""

    ours: RatioEstimate
    theirs: RatioEstimate

    @cached_property
    def moved(self) -> Bools:
        stacked = [ratio.numerators if self.is_plain else _stack_terms(ratio) for ratio in (self.ours, self.theirs)]
        moved: Bools = (stacked[0] != stacked[1]).any(axis=0)
        return moved

    @cached_property
    def is_plain(self) -> bool:
        """True if T rises with a single sum Σ s·d, which then replaces it."""
        return self.ours.n_sums == 1 and self.ours.has_equal_weights(self.theirs)

    @cached_property
    def slopes(self) -> Floats:
        """Slope of T by each Σ s·(a - b) if both models are alike, (S + 1,), numerators first."""
        if self.is_plain:
            return np.array([1.0, 0.0])
        sums = (_stack_terms(self.ours) + _stack_terms(self.theirs)).sum(axis=1)
        means = divide(sums[:-1], sums[-1])
        slopes = self.ours.aggregation.slope(means)
        return divide(2 * np.append(slopes, -(slopes * means).sum()), sums[-1])

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of T over all signs, to first order if T is not plain. 1 if T is constant."""
        if self.is_plain:
            moved = self.ours.numerators[0] - self.theirs.numerators[0]
        else:
            differences = _stack_terms(self.ours) - _stack_terms(self.theirs)
            moved = (self.slopes[:, np.newaxis] * differences).sum(axis=0)
        return float(np.sqrt((moved * moved).sum())) or 1.0

    def rest(self, rows: Rows) -> Floats:
        both = np.delete(_stack_terms(self.ours) + _stack_terms(self.theirs), rows, axis=1)
        rest: Floats = both.sum(axis=1, keepdims=True)
        return rest

    def differences(self, ours: Floats, theirs: Floats) -> Floats:
        return self.ours.figure(ours[:-1], ours[-1]) - self.theirs.figure(theirs[:-1], theirs[-1])


class FlippedPairs:
    """H pairs over the same clusters, K of which have signs. Small, because processes get a copy each.

    `observed` (H,) are the statistics of the sample. `thresholds` (H,) are smaller by the maximum rounding error.
    """

    def __init__(self, swaps: Sequence[FlippedPair], rows: Rows, shared: _SharedSums | None = None) -> None:
        if shared is None:
            columns = _SignedColumns([ratio for swap in swaps for ratio in (swap.ours, swap.theirs)], rows)
            self._rounded = columns.rounded
            totals = columns.rounded.sum(axis=0)[:, np.newaxis]
            places = [(columns.places[swap.ours], columns.places[swap.theirs]) for swap in swaps]
            shared = _SharedSums(places, totals, columns.errors(len(columns.rounded)))
        self._totals = shared.totals
        self._plain = np.flatnonzero([swap.is_plain for swap in swaps])
        self._first = np.array([(first[0], second[0]) for first, second in shared.places])[self._plain].T
        self._others = {
            i: (swap, swap.rest(rows), *both)
            for i, (swap, both) in enumerate(zip(swaps, shared.places, strict=True))
            if not swap.is_plain
        }
        self._deviations = np.array([swap.deviation for swap in swaps])
        errors = [
            (np.abs(swap.slopes) * (shared.errors[first] + shared.errors[second])).sum()
            for swap, (first, second) in zip(swaps, shared.places, strict=True)
        ]
        self.observed = self.of(self._totals)[:, 0]
        self.thresholds: Floats = self.observed - np.array(errors) / self._deviations

    def statistics(self, signs: Signs) -> Floats:
        """Return (H, B) statistics under (B, K) signs. NaN if a value is undefined."""
        return self.of(self._sums(signs, slice(None)))

    def all_statistics(self, *, _part: int = 1 << 16) -> Iterator[Floats]:
        """Yield (H, B) statistics under half of all patterns of K signs, the sample's first.

        The other half are their opposites, which have the same statistics: the last cluster keeps the sign 1. Sums
        are exact, so a pattern has the sums of its first signs plus the sums of its other signs.
        """
        n_free = max(len(self._rounded) - 1, 0)
        n_first = min(n_free, max(_part // len(self._deviations), 1).bit_length() - 1)  # 512 kB stay in the cache
        first = self._sums(all_signs(n_first), slice(n_first))
        last = self._rounded[n_free:].sum(axis=0)[:, np.newaxis]
        for pattern in range(2 ** (n_free - n_first)):
            signs = _from_bits(pattern >> np.arange(n_free - n_first)[np.newaxis] & 1)
            yield self.of(first + (self._sums(signs, slice(n_first, n_free)) + last))

    def part(self, rows: Rows) -> ResampledSums:
        return ResampledSums(rows, self._rounded)

    def _sums(self, signs: Signs, rows: slice) -> Floats:
        return np.ascontiguousarray((signs.astype(np.float64) @ self._rounded[rows]).T)

    def of(self, sums: Floats) -> Floats:
        differences = np.empty((len(self._deviations), sums.shape[1]))
        differences[self._plain] = sums[self._first[0]] - sums[self._first[1]]
        totals = self._totals
        for i, (swap, rest, first, second) in self._others.items():
            kept = (totals[first] + sums[first]) + (totals[second] - sums[second]) + rest  # twice the sums: no term is
            swapped = (
                (totals[first] - sums[first]) + (totals[second] + sums[second]) + rest
            )  # halved, so none is rounded
            differences[i] = swap.differences(kept, swapped)
        statistics: Floats = np.abs(differences) / self._deviations[:, np.newaxis]
        return statistics


@dataclass(frozen=True, eq=False)
class _SharedSums:
    """N sums over a slice."""

    # of both figures of each pair, their columns: numerators first, then the denominator
    places: Sequence[tuple[Indices, Indices]]
    totals: Floats  # (N, 1) the sums if all signs are 1
    errors: Floats  # (N,) how far apart rounding can take two sums that are equal but for the signs


class _SignedColumns:
    """N distinct columns of K clusters' terms in the sums of some values. All sums of them are exact."""

    def __init__(self, ratios: Sequence[RatioEstimate], rows: Rows) -> None:
        columns = RatioColumns.of([*dict.fromkeys(ratios)])
        numbers = [column[rows] for column in columns.numbers]
        self.places = columns.places_by_ratio
        self.rounded = round_to_exact(numbers, columns.bounds)
        self._greatest = np.maximum([np.abs(column).max(initial=0.0) for column in numbers], columns.bounds)

    def errors(self, n_clusters: int) -> Floats:
        """Return (N,) maximum rounding differences of two sums that differ only in signs."""
        errors: Floats = self._greatest * n_clusters * len(self.rounded) * 2.0**-51
        return errors


def _stack_terms(ratio: RatioEstimate) -> Floats:
    return np.vstack([ratio.numerators, ratio.denominators])


def holm(p_values: Floats) -> Floats:
    """Return (H,) p-values corrected for the rate of any false rejection in the family.

    Reference:
        Holm 1979, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 65-70.
    """
    order = np.argsort(p_values, kind="stable")
    n_left = np.arange(len(p_values), 0, -1)  # hypotheses that are not rejected yet
    return _restore_order(np.maximum.accumulate(np.minimum(p_values[order] * n_left, 1.0)), order)


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Return (H,) p-values corrected for the expected share of false rejections.

    The correction holds for independent tests and positively dependent ones.

    Reference:
        Benjamini & Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x.
    """
    order = np.argsort(-p_values, kind="stable")
    ranks = np.arange(len(p_values), 0, -1)
    return _restore_order(np.minimum.accumulate(np.minimum(p_values[order] * len(p_values) / ranks, 1.0)), order)


def westfall_young(p_values: Floats, jointly: Floats, ascending: Indices) -> Floats:
    """Return (H,) p-values by step-down maxT, corrected by the joint distribution of the statistics.

    Args:
        p_values: (H,) uncorrected. No corrected one is smaller.
        jointly: (H,) counts of the maximum statistic of a hypothesis and all before it in `ascending` reaching its own.
        ascending: (H,) hypotheses in the order of their statistics over the sample.

    Reference:
        Westfall & Young 1993, Resampling-Based Multiple Testing, algorithm 2.8 with statistics in place of p-values.
    """
    descending = ascending[::-1]
    return _restore_order(np.maximum.accumulate(np.maximum(p_values, jointly)[descending]), descending)


def exceedances(statistics: Floats, thresholds: Floats, floor: Floats | float = 0.0) -> tuple[Indices, Indices, Floats]:
    """Count how often a statistic reaches its threshold, alone and together with those before it.

    An undefined statistic counts as one that does.

    Args:
        statistics: (H, B) of hypotheses, in ascending order of their values over the sample.
        thresholds: (H,) values over the sample.
        floor: (B,) maximum of the hypotheses before these.

    Returns:
        (H,) counts alone, (H,) counts of the running maximum, and (B,) the maximum.
    """
    maxima = np.maximum.accumulate(statistics, axis=0)
    np.maximum(maxima, floor, out=maxima)
    short = ((each < thresholds[:, np.newaxis]).sum(axis=1) for each in (statistics, maxima))
    alone, jointly = (statistics.shape[1] - n for n in short)  # NaN is not short of anything
    return alone, jointly, maxima[-1]


def _restore_order(values: Floats, order: Indices) -> Floats:
    placed = np.empty_like(values)
    placed[order] = values
    return placed


_CHUNK = 1 << 20  # signs of a chunk: 8 MB as doubles. Each has a stream of its own, so this is part of every p-value.
_TASK = 4  # chunks of a task
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
    """Return (H,) p-values of each pair alone, and (H,) p-values corrected by maxT.

    A p-value is (1 + n) / (1 + B), where n of B random patterns of signs have a statistic that reaches the sample's. If
    m clusters differ and H · 2**m is at most 10**8, or m is at most 13, it is exact: n / 2**m over all patterns of
    these.
    """
    n_enumerated = max(_enumerated // len(pairs), 2**_ALWAYS_ENUMERATED).bit_length() - 1
    n_moved, moved = np.empty(len(pairs), dtype=np.int64), np.zeros(sample.n_clusters, dtype=bool)
    for i, pair in enumerate(pairs):
        is_moved = FlippedPair(*sample.sides(pair)).moved
        n_moved[i] = is_moved.sum()
        moved |= is_moved
    any_moved = np.flatnonzero(moved)
    if len(any_moved) <= n_enumerated:
        family, (alone, jointly) = _exact(sample, pairs, any_moved, _held)
    else:
        family = _family(sample, pairs, _held)
        stream = f"signs/{sample.dataset}"
        sizes = None if sample.cells is None else sample.cells.sizes
        n_signs = sample.n_clusters if sizes is None else len(sizes)
        drawn_for = family, sizes
        counts = run_chunks("Flipping signs", _count_chunk, drawn_for, n_signs, stream, settings, _chunk, _TASK)
        alone, jointly = (1 + np.sum([*counts], axis=0)) / (1 + settings.resamples)
        for i in np.flatnonzero(n_moved <= n_enumerated).tolist():
            rows = np.flatnonzero(FlippedPair(*sample.sides(pairs[i])).moved)
            alone[i] = _exact(sample, [pairs[i]], rows, _held)[1][0, 0]
    return alone, westfall_young(alone, jointly, family.ascending)


class _FlippedFamily:
    """Pairs that are tested together, in groups that take the signs of different clusters."""

    def __init__(self, products: Sequence[_Product], order: Indices, ties: Indices, held: int) -> None:
        self._held = held
        self._products = products
        groups = [group for _, members in products for _, group in members]
        self._order = np.lexsort((ties, np.concatenate([group.observed for group in groups])))
        self._thresholds = np.concatenate([group.thresholds for group in groups])[self._order]
        self.ascending = order[self._order]  # the pairs by their statistics over the sample

    def count(self, signs: npt.NDArray[np.integer]) -> Indices:
        n_parts = -(-len(signs) * len(self._order) // self._held)
        counts = np.zeros((2, len(self._order)), dtype=np.int64)
        for some in np.array_split(signs, n_parts):
            sums = ((part.sums(some), groups) for part, groups in self._products)
            counts += self.count_exceedances(
                [group.of(part[place]) for part, groups in sums for place, group in groups]
            )
        return counts

    def count_exceedances(self, statistics: Sequence[Floats]) -> Indices:
        alone, jointly, _ = exceedances(np.concatenate(statistics)[self._order], self._thresholds)
        counts = np.empty((2, len(self._order)), dtype=np.int64)
        counts[:, self.ascending] = alone, jointly
        return counts


_Product: TypeAlias = tuple[ResampledSums, Sequence[tuple[int, FlippedPairs]]]
"""What is summed under the same signs, over slices, and the pairs over each of these slices, by its place."""


def _flipped_pairs(
    sample: Sample, pairs: Sequence[Pair], rows: Rows, shared: _SharedSums | None = None
) -> FlippedPairs:
    return FlippedPairs([FlippedPair(*sample.sides(pair)) for pair in pairs], rows, shared)


def _family(sample: Sample, pairs: Sequence[Pair], held: int) -> _FlippedFamily:
    members: dict[str, list[int]] = {}
    for i, pair in enumerate(pairs):
        members.setdefault(pair.slice, []).append(i)
    products: list[_Product] = []
    order: list[int] = []
    for sliced in sample.slicings:
        names = [name for name in sliced.names if name in members]
        order += [i for name in names for i in members[name]]
        if names:
            products.append(_product(sample, sliced, {name: [pairs[i] for i in members[name]] for name in names}))
    for name in (cut for cut in sample.cut if cut in members):
        rows = sample.clusters_of(name)
        group = _flipped_pairs(sample, [pairs[i] for i in members[name]], rows)
        products.append((group.part(rows), [(0, group)]))
        order += members[name]
    ties = np.argsort(np.concatenate([np.array(places) for places in members.values()]), kind="stable")
    return _FlippedFamily(products, np.array(order), ties[order], held)


def _product(sample: Sample, sliced: SlicedClusters, members: Mapping[str, Sequence[Pair]]) -> _Product:
    all_pairs = dict.fromkeys(replace(pair, slice=ALL) for some_pairs in members.values() for pair in some_pairs)
    sides_of = {pair: sample.sides(pair) for pair in all_pairs}
    columns = _SignedColumns([ratio for sides in sides_of.values() for ratio in sides], slice(None))
    rounded, sizes = columns.rounded, np.ones(sample.n_clusters, dtype=np.int64)
    if sample.cells is not None:  # clusters with the same numbers need only the sum of their signs
        rounded, sizes = rounded[sample.cells.firsts], sample.cells.sizes
        sliced = replace(sliced, parts=sliced.parts[sample.cells.firsts])
    part = ResampledSums.of(rounded, np.ones(len(sizes), dtype=bool), sliced)
    totals = part.sums(sizes[np.newaxis])
    groups = []
    for name, some_pairs in members.items():
        rows, place = sample.clusters_of(name), sliced.names.index(name)
        sides = [sides_of[replace(pair, slice=ALL)] for pair in some_pairs]
        places = [(columns.places[first], columns.places[second]) for first, second in sides]
        shared = _SharedSums(places, totals[place], columns.errors(len(rows)))
        groups.append((place, _flipped_pairs(sample, some_pairs, rows, shared)))
    return part, groups


def _count_chunk(
    drawn_for: tuple[_FlippedFamily, Indices | None], n_signs: int, entropy: list[int], n_patterns: int
) -> Indices:
    family, sizes = drawn_for
    if sizes is None:
        return family.count(draw_signs(entropy, n_patterns, n_signs))
    return family.count(draw_sign_sums(entropy, n_patterns, sizes))


def _exact(sample: Sample, pairs: Sequence[Pair], moved: Indices, held: int) -> tuple[_FlippedFamily, Floats]:
    group = _flipped_pairs(sample, pairs, moved)
    family = _FlippedFamily([(group.part(moved), [(0, group)])], np.arange(len(pairs)), np.arange(len(pairs)), held)
    counts = np.sum([family.count_exceedances([statistics]) for statistics in group.all_statistics()], axis=0)
    return family, counts / 2 ** max(len(moved) - 1, 0)
