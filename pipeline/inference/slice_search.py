"""Search for slices, by one query column or two, in which a change differs from the change of the other queries.

All slices are tested together. If the change does not depend on the columns, the queries' changes can be permuted. A
slice's statistic must exceed the maximum of all slices over such permutations. A slice is tested against the rest, so
that a shared change singles out none. Clusters of equal size are permuted as a whole, and queries within their cluster.
A slice that was found is then held fixed: the search goes on within it and within the rest, so that a slice that merely
overlaps with it is not found again.

Reference:
    Westfall & Young 1993, Resampling-Based Multiple Testing, chapter 2: max t in a single step; Chung, Kraska,
    Polyzotis, Tae & Whang 2019, doi:10.1109/ICDE.2019.00139, for slices as conjunctions of columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.aggregation import MEAN
from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.ratios import Clusters, QueryContributions
from rankledger.pipeline.inference.resampling import Settings, round_to_exact, run_chunks
from rankledger.pipeline.inference.tables import SliceChange
from rankledger.pipeline.support.parallel import Workers

_LEAST = 20  # queries in a slice, and outside of it
_MOST = 3  # slices that are found
_NAMED = 5  # columns, and slices that are too small, that are named
_PERMUTATIONS = 1_000  # a p-value of 0.05 is then known to 0.007
_FEWEST_PERMUTATIONS = 200
_MOST_PERMUTED = 50_000_000  # queries times permutations: beyond 50,000 queries there are fewer of these
_NUMBERS = 10  # different numbers beyond which a column is cut into quartiles
_CELLS = 5_000_000  # queries times columns and pairs of columns that are searched: tens of seconds
_CHUNK = 1 << 20  # changes that are permuted at a time: 8 MB. A chunk has its own stream, so this is part of every p.
_BATCH = 200  # permutations that are drawn before the next are known to be needed
_SAME = 1e-9  # statistics that are closer are equal: the rest is rounding
_Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FoundSlice:
    """Slice in which the change differs from the rest."""

    name: str  # `column=value`, two of them with ` & ` between; after `outside ` if it is all other queries
    queries: Bools  # (Q,)
    statistic: float  # standard errors between its change and what it would be if columns did not matter
    p_value: float  # how often the greatest statistic of all slices is at least as great under permutation


@dataclass(frozen=True, eq=False)
class SliceSearch:
    """Result of a search."""

    found: tuple[FoundSlice, ...] = ()  # in the order in which they were found
    n_slices: int = 0  # different slices that were tested
    columns: tuple[str, ...] = ()  # columns that make them; in no others do values have enough queries
    # values of too few queries, `column=value`, and columns of no others, `every value of author`
    too_small: tuple[str, ...] = ()
    n_skipped: int = 0  # columns and pairs of columns that were not searched because queries are too many


def search_slices(
    changes: Floats,
    columns: Mapping[str, Sequence[str | None]],
    clusters: Clusters | None,
    settings: Settings,
    *,
    alpha: float,
    stream: str = "",
    _least: int = _LEAST,
    _cells: int = _CELLS,
) -> SliceSearch:
    """Return the slices in which the change of the queries differs from the change of the others.

    The probability of finding any if none differs is at most `alpha`. A column of more than 10 different numbers is cut
    into quartiles. Of slices with the same queries the one with fewer columns counts.

    Args:
        changes: (Q,) change of each query. A query with NaN is in no slice.
        columns: (Q,) texts by name, None if a query has none.
        clusters: (Q,) cluster of each query, from 0 on. None if each query is its own.
        settings: Settings of the permutations.
        alpha: Level of the test, in (0, 1).
        stream: Name of the stream of the permutations.
    """
    defined = np.flatnonzero(~np.isnan(changes))
    texts = {name: np.array(column, dtype=object)[defined] for name, column in columns.items()}
    candidates = _SliceCandidates.of(texts, len(defined), _least, _cells)
    slices: list[FoundSlice] = []
    exact = round_to_exact(changes[np.newaxis, defined])[:, 0]
    units = np.arange(len(defined)) if clusters is None else np.unique(clusters[defined], return_inverse=True)[1]
    cells = np.zeros(len(defined), dtype=np.int64)  # which of the slices found so far each query is in
    while candidates.names and len(slices) < _MOST:
        test = _SliceTest.of(candidates.partitions, exact, units, cells, _least)
        strongest = test.strongest(exact, cells == 0)
        if strongest is None:
            break
        place, statistic, is_outside = strongest
        p_value = _p_value(test, abs(statistic), len(exact), f"slices/{stream}/{len(slices)}", settings, alpha)
        if p_value > alpha:
            break
        queries = np.zeros(len(changes), dtype=bool)
        queries[defined] = is_outside
        queries[defined[candidates.queries(place)]] = not is_outside
        name = f"outside {candidates.names[place]}" if is_outside else candidates.names[place]
        slices.append(FoundSlice(name, queries, statistic, p_value))
        cells = 2 * cells + queries[defined]
    return SliceSearch(
        tuple(slices), len(candidates.names), candidates.columns, candidates.too_small, candidates.n_skipped
    )


def _p_value(
    test: _SliceTest, statistic: float, n_queries: int, stream: str, settings: Settings, alpha: float
) -> float:
    """Return the p-value of the maximum statistic, or 1 once it is certainly above `alpha`."""
    n_reached, drawn = 0, 0
    while drawn < settings.resamples:
        some = replace(settings, resamples=min(_BATCH, settings.resamples - drawn))
        maxima = run_chunks("Searching slices", _greatest, test, n_queries, f"{stream}/{drawn}", some, _CHUNK)
        n_reached += int((np.concatenate([*maxima]) >= statistic - _SAME).sum())
        drawn += some.resamples
        if (1 + n_reached) / (1 + settings.resamples) > alpha:
            return 1.0
    return (1 + n_reached) / (1 + settings.resamples)


def _greatest(test: _SliceTest, n_queries: int, entropy: list[int], n_permutations: int) -> Floats:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    permuted = np.empty((n_queries, n_permutations))
    for stratum in test.strata:
        permuted[stratum.queries.ravel()] = stratum.permute(rng, n_permutations)
    maxima = np.zeros(n_permutations)
    for statistics in test.statistics(permuted):
        np.maximum(maxima, np.abs(statistics).max(axis=0), out=maxima)
    return maxima


@dataclass(frozen=True, eq=False)
class _PermutedStratum:
    """K clusters of m queries each, which are permuted."""

    queries: _Ints  # (K, m) places among all queries
    changes: Floats  # (K, m) changes less their mean

    def permute(self, rng: np.random.Generator, n_permutations: int) -> Floats:
        n_clusters, size = self.changes.shape
        order = rng.permuted(np.broadcast_to(np.arange(n_clusters), (n_permutations, n_clusters)), axis=1)
        changes = self.changes[order]
        if size > 1:
            changes = rng.permuted(changes, axis=2)
        permuted: Floats = changes.reshape(n_permutations, -1).T
        return permuted


@dataclass(frozen=True, eq=False)
class _SlicePartition:
    """S disjoint slices by the same columns."""

    queries: _Ints  # (N,) slice by slice
    begins: _Ints  # (S,)

    def sums(self, values: Floats) -> Floats:
        members = values[self.queries]
        return members if len(self.begins) == len(members) else np.add.reduceat(members, self.begins, axis=0)


@dataclass(frozen=True, eq=False)
class _SlicePieces:
    """Slices of a partition, cut by the units that are permuted."""

    partition: _SlicePartition  # the pieces, slice by slice
    begins: _Ints  # (S,) first piece of each slice
    units: _Ints  # (P,)
    twice: Floats  # (P, 1) twice the share of the unit's stratum that is in the slice
    rest: Floats  # (S, 1) Σ share² (sum of a unit)² over all units; inf for a slice that is not tested

    @classmethod
    def of(
        cls, partition: _SlicePartition, units: _Ints, strata: _Ints, cells: _Ints, squares: Floats, least: int
    ) -> _SlicePieces:
        """Cut slices. Each stratum has its cell, (K,), and the summed squares of its units, (K,)."""
        n_slices, sizes = len(partition.begins), np.bincount(strata)
        slices = np.repeat(np.arange(n_slices), np.diff(partition.begins, append=len(partition.queries)))
        queries = partition.queries[np.lexsort((units[partition.queries], slices))]
        begins = np.flatnonzero(np.diff(slices * len(units) + units[queries], prepend=-1))
        inside = np.bincount(slices * len(sizes) + strata[queries], minlength=n_slices * len(sizes)).reshape(
            n_slices, -1
        )
        of_cells = np.flatnonzero(np.diff(cells, prepend=-1))
        fewer = np.minimum(*(np.add.reduceat(counts, of_cells, axis=1) for counts in (inside, sizes - inside)))
        shares, of_pieces, firsts = inside / sizes, slices[begins], queries[begins]
        return cls(
            _SlicePartition(queries, begins),
            np.searchsorted(of_pieces, np.arange(n_slices)),
            units[firsts],
            2 * shares[of_pieces, strata[firsts]][:, np.newaxis],
            np.where(fewer.sum(axis=1) >= least, (shares * shares) @ squares, np.inf)[:, np.newaxis],
        )

    def statistics(self, changes: Floats, sums: Floats | None, least: float) -> Floats:
        """Return (S, B) sums of the slices over their standard errors, for any spread inside and outside."""
        pieces = self.partition.sums(changes)
        totals: Floats = np.add.reduceat(pieces, self.begins, axis=0)
        pieces *= pieces * (1 - self.twice) if sums is None else pieces - self.twice * sums[self.units]
        variance = np.add.reduceat(pieces, self.begins, axis=0)
        variance += self.rest
        return np.where(variance > least, totals, 0.0) / np.sqrt(np.maximum(variance, least))


@dataclass(frozen=True, eq=False)
class _SliceTest:
    """Test of all slices, each against the rest of the queries."""

    partitions: Sequence[_SlicePartition]
    strata: Sequence[_PermutedStratum]
    apart: Floats  # (Q,) changes less the mean of their stratum
    units: _SlicePartition  # queries of each unit
    pieces: Sequence[_SlicePieces]
    least: float  # variance of a slice that is no rounding

    @classmethod
    def of(
        cls, partitions: Sequence[_SlicePartition], exact: Floats, clusters: Clusters, cells: _Ints, least: int
    ) -> _SliceTest:
        """Return the test of all slices."""
        units = np.unique(np.stack([clusters, cells]), axis=1, return_inverse=True)[1].ravel()
        sizes = np.bincount(units)[units]
        kinds, kind_of = np.unique(np.stack([cells, sizes]), axis=1, return_inverse=True)
        kind_of = kind_of.ravel()
        deviations = exact - (np.bincount(kind_of, exact) / np.bincount(kind_of))[kind_of]
        by_unit = np.argsort(units, kind="stable")
        strata = [
            _PermutedStratum(queries, deviations[queries])
            for kind, size in enumerate(kinds[1])
            for queries in [by_unit[kind_of[by_unit] == kind].reshape(-1, size)]
        ]
        squares = np.array([(stratum.changes.sum(axis=1) ** 2).sum() for stratum in strata])
        pieces = [_SlicePieces.of(partition, units, kind_of, kinds[0], squares, least) for partition in partitions]
        of_units = _SlicePartition(by_unit, np.flatnonzero(np.diff(units[by_unit], prepend=-1)))
        return cls(partitions, strata, deviations, of_units, pieces, _SAME * float(exact @ exact) / len(exact) or 1.0)

    def statistics(self, changes: Floats) -> Iterator[Floats]:
        sums = None if len(self.units.begins) == len(changes) else self.units.sums(changes)
        return (pieces.statistics(changes, sums, self.least) for pieces in self.pieces)

    def strongest(self, exact: Floats, others: Bools) -> tuple[int, float, bool] | None:
        """Return the index of the slice with the maximum statistic, the statistic, and True if the rest is meant.

        The queries outside a slice have the same statistic with the other sign. Of equal ones, and of a slice and its
        rest, the one is taken that changed more by its queries among the (Q,) `others`, which are in no slice that was
        found before. None if no slice can be tested.
        """
        statistics = np.concatenate([values[:, 0] for values in self.statistics(self.apart[:, np.newaxis])])
        equal = np.flatnonzero(np.abs(statistics) >= np.abs(statistics).max() - _SAME)
        counted = np.stack([others, np.where(others, exact, 0.0)], axis=1)
        inside = np.concatenate([partition.sums(counted) for partition in self.partitions])[equal]
        n_queries, sums = np.stack([inside, counted.sum(axis=0) - inside]).transpose(2, 0, 1)  # (2, S): in, out
        mean_inside, rest = np.abs(sums) / np.maximum(n_queries, 1.0)
        is_outside = bool(rest.max() > mean_inside.max() + _SAME)
        place = int(equal[np.argmax(rest if is_outside else mean_inside)])
        statistic = float(-statistics[place] if is_outside else statistics[place])
        return (place, statistic, is_outside) if statistic else None


@dataclass(frozen=True, eq=False)
class _SliceCandidates:
    """Distinct slices of one column or two with enough queries in them and outside."""

    names: Sequence[str]
    partitions: Sequence[_SlicePartition]
    columns: tuple[str, ...]
    too_small: tuple[str, ...]
    n_skipped: int

    def queries(self, place: int) -> _Ints:
        for partition in self.partitions:
            if place < len(partition.begins):
                return np.split(partition.queries, partition.begins[1:])[place]
            place -= len(partition.begins)
        raise IndexError(place)

    @classmethod
    def of(
        cls, columns: Mapping[str, npt.NDArray[np.object_]], n_queries: int, least: int, most_cells: int
    ) -> _SliceCandidates:
        coded = {name: _Column.of(name, texts) for name, texts in columns.items()}
        kept = [name for name, column in coded.items() if any(column.slices(least))]
        too_small = [
            value
            for name, column in coded.items()
            for value in (column.small(least) if name in kept else [f"every value of {name}"])
            if name in kept or column.groups
        ]
        conjunctions = [*combinations(kept, 1), *combinations(kept, 2)]
        searched = conjunctions[: most_cells // max(n_queries, 1)]
        names, partitions, digests = [], [], set()
        for conjunction in searched:
            slice_queries = []
            for name, queries in reduce(_Column.within, (coded[name] for name in conjunction)).slices(least):
                digest = hashlib.sha256(queries.tobytes()).digest()
                if digest not in digests:
                    digests.add(digest)
                    names.append(name)
                    slice_queries.append(queries)
            if slice_queries:
                begins = np.cumsum([0, *map(len, slice_queries[:-1])])
                partitions.append(_SlicePartition(np.concatenate(slice_queries), begins))
        return cls(names, partitions, tuple(kept), tuple(too_small), len(conjunctions) - len(searched))


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of the queries, or two together."""

    codes: _Ints  # (Q,) value of each query, from 0 on; -1 for a query without
    names: Callable[[int], str]  # the slice that each value makes

    @classmethod
    def of(cls, name: str, texts: npt.NDArray[np.object_]) -> _Column:
        filled = np.flatnonzero(texts != None)  # noqa: E711  # element by element
        values, places = np.unique(texts[filled], return_inverse=True)
        labels = values.tolist()
        numbers = _numbers(labels)
        if len(labels) > _NUMBERS and numbers is not None:
            cuts = np.quantile(numbers[places], (0.25, 0.5, 0.75), method="inverted_cdf")
            bins = np.unique(np.searchsorted(cuts, numbers), return_inverse=True)[1]
            order = np.argsort(numbers, kind="stable")
            bin_orders = [order[bins[order] == number] for number in range(bins.max() + 1)]
            labels = [f"{labels[ends[0]]}…{labels[ends[-1]]}" for ends in bin_orders]
            places = bins[places]
        codes = np.full(len(texts), -1, dtype=np.int64)
        codes[filled] = places
        return cls(codes, lambda code: f"{name}={labels[code]}")

    def within(self, other: _Column) -> _Column:
        n_codes = int(other.codes.max(initial=0)) + 1
        both = (self.codes >= 0) & (other.codes >= 0)
        codes = np.where(both, self.codes * n_codes + other.codes, -1)
        return _Column(codes, lambda code: f"{self.names(code // n_codes)} & {other.names(code % n_codes)}")

    def slices(self, least: int) -> Iterator[tuple[str, _Ints]]:
        """Yield the name and the queries of each value that enough queries have, and enough have not."""
        order = np.argsort(self.codes, kind="stable")
        codes, begins, sizes = np.unique(self.codes[order], return_index=True, return_counts=True)
        large = (codes >= 0) & (sizes >= least) & (len(order) - sizes >= least)
        for code, begin, size in zip(codes[large], begins[large], sizes[large], strict=True):
            yield self.names(int(code)), order[begin : begin + size]

    @property
    def groups(self) -> bool:
        return bool((np.bincount(self.codes[self.codes >= 0]) > 1).any())

    def small(self, least: int) -> list[str]:
        codes, sizes = np.unique(self.codes[self.codes >= 0], return_counts=True)
        return [self.names(int(code)) for code in codes[np.minimum(sizes, len(self.codes) - sizes) < least]]


def _numbers(texts: Sequence[str]) -> Floats | None:
    try:
        numbers = np.array(texts, dtype=np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


@dataclass(frozen=True)
class SearchRule:
    """Settings of the search of slices."""

    alpha: float  # chance of finding one if none differs, for each pair of models; in (0, 1)
    seed: int
    workers: Workers


def changed_slices(
    names: tuple[str, str, str], sides: tuple[QueryContributions, QueryContributions], groups: Groups, rule: SearchRule
) -> tuple[tuple[SliceChange, ...], str]:
    """Return the slices in which a model's change differs from the rest, and a line on the search."""
    dataset, model, baseline = names
    measure, after, before = sides[0].measure, sides[0].scores, sides[1].scores
    changes = before - after if measure.metric.direction == "lower" else after - before
    if not groups.columns or not np.nan_to_num(changes).any():
        return (), ""
    if measure.aggregation is not MEAN or measure.weighted:
        return (), f"{dataset}: no slices were searched, for {measure} is no mean over queries"
    n_permutations = int(np.clip(_MOST_PERMUTED // len(changes), _FEWEST_PERMUTATIONS, _PERMUTATIONS))
    settings = Settings(n_permutations, rule.seed, rule.workers)
    search = search_slices(changes, groups.columns, groups.clusters, settings, alpha=rule.alpha, stream=dataset)
    defined = ~np.isnan(changes)
    total = float(changes[defined].sum())
    lines = tuple(
        SliceChange(
            dataset,
            model,
            baseline,
            str(measure),
            slice=changed.name,
            n_queries=int(changed.queries.sum()),
            n_all=int(defined.sum()),
            before=float(before[changed.queries].mean()),
            after=float(after[changed.queries].mean()),
            change=float(changes[changed.queries].mean()),
            share=float(changes[changed.queries].sum()) / total if abs(total) > _SAME else None,
            all_before=float(before[defined].mean()),
            all_after=float(after[defined].mean()),
            statistic=changed.statistic,
            p_value=changed.p_value,
            p_least=1 / (1 + n_permutations),
        )
        for changed in search.found
    )
    return lines, f"{dataset}: {_describe_slice(search, f'{measure} of {model}')}"


def _describe_slice(search: SliceSearch, changed: str) -> str:
    if not search.columns:
        return f"no slices were searched: no value of a column has {_LEAST} queries in it and {_LEAST} outside"
    skipped = f" ({search.n_skipped:,} pairs of columns were left out: too many queries)" if search.n_skipped else ""
    searched = (
        f"{search.n_slices:,} {'slice' if search.n_slices == 1 else 'slices'} by {_list_names(search.columns)}{skipped}"
    )
    small = ""
    if search.too_small:
        small = f"; not searched, fewer than {_LEAST} queries in or outside: {_list_names(search.too_small)}"
    if search.found:
        return f"{searched} {'was' if search.n_slices == 1 else 'were'} searched{small}"
    return f"in none of {searched} does the change of {changed} differ from the rest{small}"


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
