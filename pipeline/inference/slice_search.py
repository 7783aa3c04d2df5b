"""Where a change sits: the slices, by one query column or two, in which it differs from the other queries' change.

All slices are tested together. Under the hypothesis that the change has nothing to do with the columns, the changes of
the queries can change places; the greatest statistic of all slices over such permutations is what a slice's own must
exceed. A slice is tested against the rest: a change that all queries share singles out none. Clusters change places as
a whole, among those with as many queries, and queries within their cluster.

What was found is then held fixed: the search goes on within it and within the rest, so that a slice that merely
overlaps with it is not found again.

Reference:
    Westfall & Young 1993, Resampling-Based Multiple Testing, chapter 2: max t in a single step; Chung, Kraska,
    Polyzotis, Tae & Whang 2019, doi:10.1109/ICDE.2019.00139, for slices as conjunctions of columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.aggregation import MEAN
from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.inference.resampling import Clusters, Contributions, Settings, in_chunks, round_to_exact
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.types.checks import SliceChange
from rankledger.pipeline.types.joined import Groups

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["FoundSlice", "SearchRule", "SliceSearch", "changed_slices", "search_slices"]

_LEAST = 20  # queries in a slice, and outside of it
_MOST = 3  # slices that are found
_NAMED = 5  # columns that are named
_PERMUTATIONS = 2_000  # a p-value of 0.05 is then known to 0.005
_FEWEST_PERMUTATIONS = 200
_MOST_PERMUTED = 200_000_000  # queries times permutations: beyond 100,000 queries there are fewer of these
_NUMBERS = 10  # different numbers beyond which a column is cut into quartiles
_CELLS = 5_000_000  # queries times columns and pairs of columns that are searched: tens of seconds
_CHUNK = 1 << 20  # changes that are permuted at a time: 8 MB. A chunk has its own stream, so this is part of every p.
_BLOCK = 4096  # slices whose statistics are held at a time
_SAME = 1e-9  # statistics that are closer are equal: the rest is rounding
_Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FoundSlice:
    """A slice in which the change differs from the rest.

    Attributes:
        name: `column=value`, or two of them with ` & ` between.
        queries: (Q,) whether each query is in it.
        statistic: by how many standard errors its change is above, or below, what it would be among the same queries
            if the change had nothing to do with the columns.
        p_value: how often the greatest statistic of all slices is at least as great under permutation.
    """

    name: str
    queries: Bools
    statistic: float
    p_value: float


@dataclass(frozen=True, eq=False)
class SliceSearch:
    """What a search came to.

    Attributes:
        found: the slices, in the order in which they were found.
        n_slices: different slices that were tested.
        columns: the columns that make them; in no others do values have enough queries.
        n_skipped: columns and pairs of columns that were not searched, for there are too many queries.
    """

    found: tuple[FoundSlice, ...] = ()
    n_slices: int = 0
    columns: tuple[str, ...] = ()
    n_skipped: int = 0


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
    """The slices in which the change of the queries differs from that of the others.

    The chance of finding any where none differs is at most `alpha`. A column of more than 10 different numbers is cut
    into quartiles. Of slices with the same queries the one with fewer columns counts.

    Args:
        changes: (Q,) how much each query changed; NaN where that is undefined, and the query is then in no slice.
        columns: by name, (Q,) texts; None for a query without.
        clusters: (Q,) the cluster of each query, from 0 on; None where each query stands for itself.
        settings: how permutations are drawn.
        alpha: the level of the test, in (0, 1).
        stream: names the stream of the permutations.
    """
    defined = np.flatnonzero(~np.isnan(changes))
    texts = {name: np.array(column, dtype=object)[defined] for name, column in columns.items()}
    candidates = _Candidates.of(texts, len(defined), _least, _cells)
    found: list[FoundSlice] = []
    exact = round_to_exact(changes[np.newaxis, defined])[:, 0]
    own = np.arange(len(defined)) if clusters is None else np.unique(clusters[defined], return_inverse=True)[1]
    cells = np.zeros(len(defined), dtype=np.int64)  # which of the slices found so far each query is in
    while candidates.names and len(found) < _MOST:
        strongest = _strongest(
            _Test.of(candidates, exact, own, cells, _least), exact, cells == 0, f"{stream}/{len(found)}", settings
        )
        if strongest is None or strongest[2] > alpha:
            break
        place, statistic, p_value = strongest
        queries = np.zeros(len(changes), dtype=bool)
        queries[defined[candidates.queries(place)]] = True
        found.append(FoundSlice(candidates.names[place], queries, statistic, p_value))
        cells = 2 * cells + queries[defined]
    return SliceSearch(tuple(found), len(candidates.names), candidates.columns, candidates.n_skipped)


def _strongest(
    test: _Test, exact: Floats, others: Bools, stream: str, settings: Settings
) -> tuple[int, float, float] | None:
    """The place, statistic and p-value of the slice with the greatest statistic; None if none can be tested.

    Of equal ones, such as a slice and all other queries, it is the one that changed more, by its queries among the
    `others`, (Q,), which are in no slice that was found before.
    """
    statistics = test.statistics(exact[:, np.newaxis])[:, 0]
    sizes = np.abs(statistics)
    greatest = sizes.max()
    if not greatest > 0:
        return None
    equal = np.flatnonzero(sizes >= greatest - _SAME)
    place = int(equal[np.argmax(test.mean_changes(exact, others)[equal])])
    drawn = in_chunks("Searching slices", _greatest, test, len(exact), f"slices/{stream}", settings, _CHUNK)
    n_reached = int((np.concatenate(drawn) >= greatest - _SAME).sum())
    return place, float(statistics[place]), (1 + n_reached) / (1 + settings.resamples)


def _greatest(test: _Test, n_queries: int, entropy: list[int], n_permutations: int) -> Floats:
    """(n_permutations,): the greatest statistic of all slices, over each permutation."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    permuted = np.empty((n_queries, n_permutations))
    for stratum in test.strata:
        permuted[stratum.queries.ravel()] = stratum.permuted(rng, n_permutations)
    greatest = np.zeros(n_permutations)
    for begin in range(0, len(test.expected), _BLOCK):
        block = test.statistics(permuted, slice(begin, begin + _BLOCK))
        np.maximum(greatest, np.abs(block).max(axis=0), out=greatest)
    return greatest


@dataclass(frozen=True, eq=False)
class _Stratum:
    """K clusters of m queries each, which change places.

    Attributes:
        queries: (K, m) their places among all queries.
        changes: (K, m) how much each changed.
    """

    queries: _Ints
    changes: Floats

    def permuted(self, rng: np.random.Generator, n_permutations: int) -> Floats:
        """(K · m, n_permutations): the changes, clusters in a random order and the queries of each, too."""
        n_clusters, size = self.changes.shape
        order = rng.permuted(np.broadcast_to(np.arange(n_clusters), (n_permutations, n_clusters)), axis=1)
        changes = self.changes[order]
        if size > 1:
            changes = rng.permuted(changes, axis=2)
        permuted: Floats = changes.reshape(n_permutations, -1).T
        return permuted

    @property
    def moments(self) -> tuple[float, float, float, float]:
        """The mean, the variance, and the covariances of two queries of one cluster and of different ones, under
        permutation; 0 where there are no two.
        """
        n_clusters, size = self.changes.shape
        mean = float(self.changes.mean())
        apart = self.changes - mean
        squares, of_sums = float((apart * apart).sum()), float((apart.sum(axis=1) ** 2).sum())
        together = (of_sums - squares) / (n_clusters * size * (size - 1)) if size > 1 else 0.0
        between = -of_sums / (n_clusters * (n_clusters - 1) * size * size) if n_clusters > 1 else 0.0
        return mean, squares / self.changes.size, together, between


@dataclass(frozen=True, eq=False)
class _Test:
    """S slices, each tested against the rest of its queries.

    Attributes:
        members: (S, Q) 1 for each query of a slice.
        strata: the queries as they change places.
        expected: (S,) the mean of the sum of a slice's changes over all permutations.
        precision: (S,) 1 over its standard deviation; 0 where it is not tested.
    """

    members: csr_array
    strata: tuple[_Stratum, ...]
    expected: Floats
    precision: Floats

    @classmethod
    def of(cls, candidates: _Candidates, exact: Floats, clusters: Clusters, cells: _Ints, least: int) -> _Test:
        """The test of all slices.

        Args:
            candidates: the slices.
            exact: (Q,) changes whose sums are exact.
            clusters: (Q,) the cluster of each query.
            cells: (Q,) what a query must share with another to change places with it.
            least: how many queries must be in a slice, and out of it, within the cells.
        """
        units = np.unique(np.stack([clusters, cells]), axis=1, return_inverse=True)[1].ravel()
        sizes = np.bincount(units)[units]
        strata = []
        expected, variance = np.zeros((2, candidates.members.shape[0]))
        for cell, size in np.unique(np.stack([cells, sizes]), axis=1).T:
            own = np.flatnonzero((cells == cell) & (sizes == size))
            queries = own[np.argsort(units[own], kind="stable")].reshape(-1, size)
            stratum = _Stratum(queries, exact[queries])
            mean, spread, together, between = stratum.moments
            n_queries, n_pairs = _counted(candidates.members, queries)
            expected += mean * n_queries
            variance += spread * n_queries + together * n_pairs + between * (n_queries**2 - n_queries - n_pairs)
            strata.append(stratum)
        tested = _fewer_side(candidates.members, cells) >= least
        tested &= variance > _SAME * float(exact @ exact) / len(exact)
        precision = np.where(tested, 1 / np.sqrt(np.where(tested, variance, 1.0)), 0.0)
        return cls(candidates.members, tuple(strata), expected, precision)

    def statistics(self, changes: Floats, rows: slice = slice(None)) -> Floats:
        """(S, B): the statistics of these slices for B orders of the changes, (Q, B)."""
        sums: Floats = self.members[rows] @ changes
        sums -= self.expected[rows, np.newaxis]
        sums *= self.precision[rows, np.newaxis]
        return sums

    def mean_changes(self, exact: Floats, queries: Bools) -> Floats:
        """(S,): how much each slice changed, up or down, over those of its queries; 0 where there are none."""
        n_queries = self.members @ queries.astype(float)
        means: Floats = np.abs(self.members @ np.where(queries, exact, 0.0)) / np.maximum(n_queries, 1.0)
        return means


def _counted(members: csr_array, queries: _Ints) -> tuple[Floats, Floats]:
    """How many of these queries each slice has, and how many ordered pairs of them in one cluster.

    Args:
        members: (S, Q) 1 for each query of a slice.
        queries: (K, m) the queries of K clusters.
    """
    from scipy.sparse import csr_array

    n_clusters, size = queries.shape
    of_cluster = csr_array(
        (np.ones(queries.size), (queries.ravel(), np.repeat(np.arange(n_clusters), size))),
        shape=(members.shape[1], n_clusters),
    )
    counts = members @ of_cluster
    n_queries = counts.sum(axis=1)
    return n_queries, counts.power(2).sum(axis=1) - n_queries


def _fewer_side(members: csr_array, cells: _Ints) -> Floats:
    """(S,): how many queries are in each slice, or out of it if these are fewer, added up over the cells."""
    inside = np.stack([members @ (cells == cell).astype(float) for cell in np.unique(cells)])
    sizes = np.unique(cells, return_counts=True)[1][:, np.newaxis]
    fewer: Floats = np.minimum(inside, sizes - inside).sum(axis=0)
    return fewer


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The different slices of one column or two with enough queries in them and outside.

    Attributes:
        names: of S slices, those of one column first.
        members: (S, Q) 1 for each query of a slice.
        columns: the columns that make them.
        n_skipped: columns and pairs of columns for which the queries are too many.
    """

    names: Sequence[str]
    members: csr_array
    columns: tuple[str, ...]
    n_skipped: int

    def queries(self, place: int) -> _Ints:
        """The places of a slice's queries."""
        queries: _Ints = self.members.indices[self.members.indptr[place] : self.members.indptr[place + 1]]
        return queries

    @classmethod
    def of(
        cls, columns: Mapping[str, npt.NDArray[np.object_]], n_queries: int, least: int, most_cells: int
    ) -> _Candidates:
        """The slices that these columns make."""
        from scipy.sparse import csr_array

        coded = {name: _Column.of(name, texts) for name, texts in columns.items()}
        kept = [name for name, column in coded.items() if any(column.slices(least))]
        conjunctions = [*combinations(kept, 1), *combinations(kept, 2)]
        searched = conjunctions[: most_cells // max(n_queries, 1)]
        found: dict[bytes, tuple[str, _Ints]] = {}
        for names in searched:
            for name, queries in reduce(_Column.within, (coded[name] for name in names)).slices(least):
                found.setdefault(hashlib.sha256(queries.tobytes()).digest(), (name, queries))
        members = [queries for _, queries in found.values()]
        ends = np.cumsum([0, *map(len, members)])
        indices = np.concatenate([*members, np.zeros(0, dtype=np.int64)])
        matrix = csr_array((np.ones(len(indices)), indices, ends), shape=(len(members), n_queries))
        return cls([name for name, _ in found.values()], matrix, tuple(kept), len(conjunctions) - len(searched))


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of the queries, or two together.

    Attributes:
        codes: (Q,) the value of each query, from 0 on; -1 for a query without.
        names: the slice that each value makes.
    """

    codes: _Ints
    names: Callable[[int], str]

    @classmethod
    def of(cls, name: str, texts: npt.NDArray[np.object_]) -> _Column:
        """A column by its texts; one of many numbers is cut into quartiles, from the least to the greatest of each."""
        filled = np.flatnonzero(texts != None)  # noqa: E711  # element by element
        values, places = np.unique(texts[filled].astype(str), return_inverse=True)
        labels = [str(value) for value in values]
        numbers = _numbers(labels)
        if len(labels) > _NUMBERS and numbers is not None:
            cuts = np.quantile(numbers[places], (0.25, 0.5, 0.75), method="inverted_cdf")
            bins = np.unique(np.searchsorted(cuts, numbers), return_inverse=True)[1]
            order = np.argsort(numbers, kind="stable")
            own = [order[bins[order] == number] for number in range(bins.max() + 1)]
            labels = [f"{labels[ends[0]]}…{labels[ends[-1]]}" for ends in own]
            places = bins[places]
        codes = np.full(len(texts), -1, dtype=np.int64)
        codes[filled] = places
        return cls(codes, lambda code: f"{name}={labels[code]}")

    def within(self, other: _Column) -> _Column:
        """The values of both together."""
        n_codes = int(other.codes.max(initial=0)) + 1
        both = (self.codes >= 0) & (other.codes >= 0)
        codes = np.where(both, self.codes * n_codes + other.codes, -1)
        return _Column(codes, lambda code: f"{self.names(code // n_codes)} & {other.names(code % n_codes)}")

    def slices(self, least: int) -> Iterator[tuple[str, _Ints]]:
        """The name and the queries of each value that enough queries have, and enough have not."""
        order = np.argsort(self.codes, kind="stable")
        codes, begins, sizes = np.unique(self.codes[order], return_index=True, return_counts=True)
        large = (codes >= 0) & (sizes >= least) & (len(order) - sizes >= least)
        for code, begin, size in zip(codes[large], begins[large], sizes[large], strict=True):
            yield self.names(int(code)), order[begin : begin + size]


def _numbers(texts: Sequence[str]) -> Floats | None:
    """(N,): the texts as numbers; None if one is none, or not finite."""
    try:
        numbers = np.array(texts, dtype=np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


@dataclass(frozen=True)
class SearchRule:
    """How slices are searched.

    Attributes:
        alpha: the chance of finding one where none differs, for each pair of models; in (0, 1).
        seed: root of all streams.
        workers: run the permutations.
    """

    alpha: float
    seed: int
    workers: Workers


def changed_slices(
    names: tuple[str, str, str], sides: tuple[Contributions, Contributions], groups: Groups, rule: SearchRule
) -> tuple[tuple[SliceChange, ...], str]:
    """The slices in which a model's change against a baseline differs from the rest, and a line on what was searched.

    The line is empty where there is nothing to search: no column, or no change.

    Args:
        names: of the dataset, the model and the baseline.
        sides: what each query adds to the model's figure, and to the baseline's.
        groups: the clusters and the columns of the queries.
        rule: how they are searched.
    """
    dataset, model, baseline = names
    measure, after, before = sides[0].measure, sides[0].scores, sides[1].scores
    changes = before - after if measure.metric.direction == "lower" else after - before
    if not groups.columns or not np.nan_to_num(changes).any():
        return (), ""
    if measure.aggregation is not MEAN or measure.pooled:
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
            slice=found.name,
            n_queries=int(found.queries.sum()),
            n_all=int(defined.sum()),
            before=float(before[found.queries].mean()),
            after=float(after[found.queries].mean()),
            change=float(changes[found.queries].mean()),
            share=float(changes[found.queries].sum()) / total if abs(total) > _SAME else None,
            all_before=float(before[defined].mean()),
            all_after=float(after[defined].mean()),
            statistic=found.statistic,
            p_value=found.p_value,
        )
        for found in search.found
    )
    return lines, f"{dataset}: {_described(search, f'{measure} of {model}')}"


def _described(search: SliceSearch, changed: str) -> str:
    """What was searched, and what to make of it."""
    if not search.columns:
        return f"no slices were searched: no column of the queries table has a value of {_LEAST} queries or more"
    columns = ", ".join(search.columns[:_NAMED])
    if len(search.columns) > _NAMED:
        columns += f" and {len(search.columns) - _NAMED} more columns"
    skipped = f" ({search.n_skipped:,} pairs of columns were left out: too many queries)" if search.n_skipped else ""
    searched = f"{search.n_slices:,} slices by {columns}{skipped}"
    if search.found:
        return f"{searched} were searched; the effect in those that were found is overstated: confirm it on new queries"
    return f"in none of {searched} does the change of {changed} differ from the rest"
