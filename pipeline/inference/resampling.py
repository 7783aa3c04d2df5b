"""Bootstrap resamples of query clusters, drawn once per dataset, and their weighted sums.

A cluster is a query, or queries that are drawn together. A resample is a row of counts of drawn clusters. Counts times
columns of numbers are the resampled sums. Each column is first rounded to so coarse a step that every sum fits into 53
bits. Sums are then exact, and do not depend on BLAS, threads, chunks, other columns or the order of queries.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice, pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.data.joined import OnDemand
from rankledger.pipeline.inference.ratios import MANY_CLUSTERS, RatioEstimate, Where
from rankledger.pipeline.support.environment import threaded_libraries
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers

T = TypeVar("T")

Indices: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = npt.NDArray[np.integer]

_BATCH = 1 << 15  # counts that are made at a time: 256 kB, so that they stay in the cache
_CHUNK = 1 << 20  # counts of a chunk: 8 MB. A chunk is drawn from a stream of its own, so this is part of every figure.
_TASK = 4  # chunks of a task
_TOGETHER = 1 << 25  # counts that are drawn for one pass over the numbers of many clusters: 34 MB
_RANGE = 1 << 16  # clusters whose numbers are rounded and multiplied at a time, where there are many
_KEPT = 1 << 28  # counts of a dataset that are kept for all of its columns, a byte each; more are drawn for each block
_PRODUCT = 1 << 22  # sums of parts that are made at a time: 32 MB
_ROUNDED = 1 << 20  # numbers that are rounded at a time: 8 MB
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FEWEST = 32  # clusters of a part: products of fewer are slow
_ALIKE = 32  # queries of a cell, on average, from which on drawing cells takes less time than drawing queries
_WORTH_IT = 0.7  # of the clusters: with more, picking their counts takes as long as multiplying all


@dataclass(frozen=True)
class Settings:
    """Settings of the resampling, of queries or of signs."""

    resamples: int
    seed: int  # root of all streams
    workers: Workers
    memory: float = math.inf  # bytes of this machine
    together: int = 1 << 24  # sums over resamples that are kept at a time, but for those of all queries


@dataclass(frozen=True, eq=False)
class SlicedClusters:
    """S slices of C clusters that share their products. A slice is made of parts, which no slice cuts."""

    names: tuple[str, ...]  # (S,)
    parts: Indices  # (C,) part of each cluster, from 1 on; 0 for clusters in none of the slices
    members: Floats  # (S, A) 1 if a part is in a slice, else 0

    @classmethod
    def share(cls, masks: Mapping[str, Bools]) -> list[SlicedClusters]:
        """Group the slices, (C,) masks by name, into few groups without parts that are small on average."""
        shared: list[list[str]] = []
        codes = np.empty(0, dtype=np.int64)
        for name, mask in masks.items():
            if shared:
                refined = np.unique(2 * codes + mask, return_inverse=True)[1]
                if refined.max(initial=0) < len(mask) // _FEWEST:
                    shared[-1].append(name)
                    codes = refined
                    continue
            shared.append([name])
            codes = mask.astype(np.int64)
        return [cls._from_masks({name: masks[name] for name in names}) for names in shared]

    @classmethod
    def _from_masks(cls, masks: Mapping[str, Bools]) -> SlicedClusters:
        stacked = np.stack([*masks.values()])
        inside = np.flatnonzero(stacked.any(axis=0))
        members, parts = np.unique(stacked[:, inside], axis=1, return_inverse=True)
        numbers = np.zeros(stacked.shape[1], dtype=np.int64)
        numbers[inside] = parts.ravel() + 1
        return cls(tuple(masks), numbers, members.astype(np.float64))

    def part_by_part(self, inside: Bools) -> tuple[Indices, Indices]:
        rows = np.flatnonzero(inside)
        rows = rows[np.argsort(self.parts[rows], kind="stable")]
        return rows, np.searchsorted(self.parts[rows], np.arange(1, self.members.shape[1] + 1), side="right")

    def greatest(self, columns: Floats) -> Floats:
        """Return the (N, S) maximum in each slice of (N, C) nonnegative numbers."""
        by_part = np.zeros((len(columns), self.members.shape[1] + 1))
        order = np.argsort(self.parts, kind="stable")
        present, begins = np.unique(self.parts[order], return_index=True)
        by_part[:, present] = np.maximum.reduceat(columns[:, order], begins, axis=1)
        return np.stack([by_part[:, 1:][:, part > 0].max(axis=1, initial=0.0) for part in self.members], axis=1)


@dataclass(frozen=True, eq=False)
class ClusterCells:
    """K cells of clusters that add the same to every sum. Only the number drawn of each cell counts."""

    firsts: Indices  # (K,) a cluster of each cell
    sizes: Indices  # (K,) number of its clusters

    @classmethod
    def find(cls, columns: Iterable[Floats | Bools]) -> ClusterCells | None:
        """Group the clusters that have the same numbers in all (C,) columns."""
        hashes = np.zeros(1, dtype=np.uint64)
        for column in columns:
            if len(column) <= MANY_CLUSTERS:
                return None
            bits = (column.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
            hashes = (hashes ^ bits) * _MULTIPLIER  # each step keeps apart what differs
            hashes ^= hashes >> np.uint64(32)
            if len(np.unique(hashes[:_RANGE])) > len(column) // _ALIKE:
                return None
        _, firsts, sizes = np.unique(hashes, return_index=True, return_counts=True)
        return cls(firsts, sizes) if len(firsts) <= len(hashes) // _ALIKE else None

    def draw(self, entropy: list[int], n_resamples: int) -> Counts:
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
        n_clusters = self.sizes.sum()
        counts: Counts = rng.multinomial(n_clusters, self.sizes / n_clusters, size=n_resamples)
        return counts


@dataclass(frozen=True, eq=False)
class ResampledSums:
    """N columns to sum over S slices, with one product for each part of the clusters."""

    rows: Indices | slice  # clusters in which any of the columns is not 0, part by part
    rounded: Floats  # (R, N) the numbers of these clusters, as `round_to_exact` gives them, column by column
    ends: Indices | None = None  # (A,) end of each part among them; None for a single part, which is the only slice
    members: Floats = field(default_factory=lambda: np.ones((1, 1)))  # (S, A) 1 if a part is in a slice, else 0

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.members), self.rounded.shape[1]

    @classmethod
    def of(cls, rounded: Floats, counted: Bools, sliced: SlicedClusters | None = None) -> ResampledSums:
        """Return the (C, N) columns over slices or all clusters. Only those counted matter."""
        inside = counted if sliced is None else counted & (sliced.parts > 0)
        if sliced is None or sliced.members.size == 1:
            if inside.sum() >= _WORTH_IT * len(inside) and (sliced is None or sliced.parts.all()):
                return cls(slice(None), rounded)
            rows = np.flatnonzero(inside)
            return cls(rows, rounded.T.take(rows, axis=1).T)
        rows, ends = sliced.part_by_part(inside)
        return cls(rows, rounded.T.take(rows, axis=1).T, ends, sliced.members)

    def sums(self, weights: npt.NDArray[np.number]) -> Floats:
        row_weights = weights[:, self.rows]
        if self.ends is None:
            return (self.rounded.T @ row_weights.astype(np.float64, copy=False).T)[np.newaxis]
        (n_slices, n_parts), n_columns = self.members.shape, self.rounded.shape[1]
        sums = np.empty((n_slices, n_columns, len(row_weights)))
        step = max(1, _PRODUCT // max(1, n_parts * len(row_weights)))
        for begin in range(0, n_columns, step):
            columns = self.rounded[:, begin : begin + step]
            parts = np.empty((n_parts, columns.shape[1], len(row_weights)))
            for part, (first, end) in enumerate(pairwise((0, *self.ends))):
                part_weights = row_weights[:, first:end].astype(np.float64, copy=False)  # small enough for the cache
                np.matmul(columns[first:end].T, part_weights.T, out=parts[part])
            added = self.members @ parts.reshape(n_parts, -1)
            sums[:, begin : begin + step] = added.reshape(n_slices, *parts.shape[1:])
        return sums


@dataclass(frozen=True, eq=False)
class LargeSums:
    """Sums like `ResampledSums` of so many clusters that their numbers are made and rounded in chunks."""

    numbers: Callable[[Where], Floats]  # gives (N, c), the numbers of some clusters
    steps: Floats  # (N,) what they are rounded to
    rows: Indices  # clusters in which any of the columns is not 0, part by part
    ends: Indices  # (A,) end of each part among them
    members: Floats  # (S, A) 1 if a part is in a slice, else 0
    firsts: Indices | None = None  # (K,) a cluster of each cell if cells are drawn, and then `rows` are cells

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.members), len(self.steps)

    @classmethod
    def of(
        cls,
        numbers: Callable[[Where], Floats],
        steps: Floats,
        counted: Bools,
        sliced: SlicedClusters | None,
        cells: ClusterCells | None = None,
    ) -> LargeSums:
        firsts = None
        if cells is not None:
            firsts, counted = cells.firsts, counted[cells.firsts]
            sliced = sliced and replace(sliced, parts=sliced.parts[firsts])
        if sliced is None:
            rows = np.flatnonzero(counted)
            return cls(numbers, steps, rows, np.array([len(rows)]), np.ones((1, 1)), firsts)
        return cls(numbers, steps, *sliced.part_by_part(counted & (sliced.parts > 0)), sliced.members, firsts)

    def sums(self, weights: npt.NDArray[np.number]) -> Floats:
        """Return (S, N, B) exact sums with clusters or cells weighted by (B, C) or (B, K) counts."""
        parts = np.zeros((len(self.ends), len(self.steps), len(weights)))
        for part, (first, end) in enumerate(pairwise((0, *self.ends.tolist()))):
            for begin in range(first, end, _RANGE):
                rows = self.rows[begin : min(begin + _RANGE, end)]
                clusters = rows if self.firsts is None else self.firsts[rows]
                rounded = _to_steps(self.numbers(clusters), self.steps)
                parts[part] += rounded @ weights[:, rows].T.astype(np.float64)
        added: Floats = np.tensordot(self.members, parts, axes=1)
        return added


Sums: TypeAlias = ResampledSums | LargeSums


class BootstrapDraws:
    """B resamples of C clusters, each of which draws C clusters with replacement.

    If `are_kept` is False, the counts do not stay in memory and are drawn again for each block.
    """

    def __init__(
        self,
        n_clusters: int,
        stream: str,
        settings: Settings,
        cells: ClusterCells | None = None,
        *,
        _chunk: int = _CHUNK,
        _kept: int = _KEPT,
    ) -> None:
        self._cells = cells
        self._n_counts = n_clusters if cells is None else len(cells.sizes)
        self._draw = partial(_draw_counts, n_clusters) if cells is None else cells.draw
        self.n_resamples = settings.resamples
        self.are_kept = self._n_counts * settings.resamples <= _kept
        self._settings = settings
        self._stream = stream
        self._chunks = _chunks(self._n_counts, stream, settings, _chunk)

    @cached_property
    def _counts(self) -> list[Counts]:
        return list(_run_tasks("Drawing resamples", self._draw, self._chunks, self._settings.workers, _TASK))

    def let_go(self) -> None:
        """Free the counts. They are drawn again if they are needed."""
        self.__dict__.pop("_counts", None)

    def windows(self, n_resamples: int) -> Iterator[BootstrapDraws]:
        n_chunks = max(1, n_resamples // max((size for _, size in self._chunks), default=1))
        for begin in range(0, len(self._chunks), n_chunks):
            window = copy(self)
            window._chunks = self._chunks[begin : begin + n_chunks]
            window.n_resamples = sum(size for _, size in window._chunks)
            if self.are_kept:
                window.__dict__["_counts"] = self._counts[begin : begin + n_chunks]
            yield window

    def sums(self, parts: Sequence[Sums]) -> list[Floats]:
        """Return (S, N, 1 + B) exact sums of each part over the clusters and each resample of them."""
        return self.begin(parts)()

    def begin(self, parts: Sequence[Sums]) -> Callable[[], list[Floats]]:
        """Start the `sums` in the workers. Return a function that returns them."""
        if not parts:
            return list
        shapes = [part.shape for part in parts]
        self.refuse_too_many(sum(n * m for n, m in shapes))
        chunks = self._each_chunk(parts)
        first = [*islice(chunks, 1)]  # waits for one task; all have begun then

        def finish() -> list[Floats]:
            totals = [np.empty((*shape, 1 + self.n_resamples)) for shape in shapes]
            sizes = np.ones(self._n_counts) if self._cells is None else self._cells.sizes
            for sums, part in zip(totals, parts, strict=True):
                sums[:, :, :1] = part.sums(sizes[np.newaxis])
            begin = 1
            for chunk in chain(first, chunks):
                end = begin + chunk[0].shape[2]
                for sums, part_sums in zip(totals, chunk, strict=True):
                    sums[:, :, begin:end] = part_sums
                begin = end
            return totals

        return finish

    def _each_chunk(self, parts: Sequence[Sums]) -> Iterator[list[Floats]]:
        if self.are_kept:
            calls: list[tuple[Any, ...]] = [(parts, counts) for counts in self._counts]
            return _run_tasks("Adding up resamples", _sum_counts, calls, self._settings.workers, _TASK)
        together = _TOGETHER if self._n_counts > MANY_CLUSTERS else _TASK * _CHUNK
        at_a_time = -(-together // max(1, self._chunks[0][1] * self._n_counts))
        groups = [self._chunks[begin : begin + at_a_time] for begin in range(0, len(self._chunks), at_a_time)]
        calls = [(parts, self._draw, group) for group in groups]
        return _run_tasks("Drawing resamples", _sum_drawn, calls, self._settings.workers, 1)

    def refuse_too_many(self, n_columns: int) -> None:
        resamples, memory = self.n_resamples, self._settings.memory
        needed = np.dtype(np.float64).itemsize * n_columns * resamples
        if needed > memory:
            problem = f"{resamples:,} of the {n_columns:,} sums of {self._stream!r} need {needed / 1e9:,.1f} GB"
            fitting = int(resamples * memory / needed)
            raise InputError(
                f"bootstrap.resamples: {problem}, and there are {memory / 1e9:,.1f} GB; set at most {fitting:,}"
            )


def run_chunks(
    title: str,
    function: Callable[..., Any],
    drawn_for: object,
    n_clusters: int,
    stream: str,
    settings: Settings,
    n_cells: int,
    per_task: int = 1,
) -> Iterator[Any]:
    """Yield the function's result, given a seed and a number of rows, for each chunk of about `n_cells` draws."""
    calls = [(drawn_for, n_clusters, *chunk) for chunk in _chunks(n_clusters, stream, settings, n_cells)]
    return _run_tasks(title, function, calls, settings.workers, per_task)


def _chunks(n_clusters: int, stream: str, settings: Settings, n_cells: int) -> list[tuple[list[int], int]]:
    n_rows = max(1, n_cells // n_clusters)
    sizes = [min(n_rows, settings.resamples - begin) for begin in range(0, settings.resamples, n_rows)]
    entropy = seed_stream(stream)
    return [([settings.seed, entropy, chunk], size) for chunk, size in enumerate(sizes)]


def _run_tasks(
    title: str, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], workers: Workers, per_task: int
) -> Iterator[T]:
    tasks = [(function, calls[begin : begin + per_task]) for begin in range(0, len(calls), per_task)]
    with threaded_libraries().limit(limits=1, user_api="blas"):  # the workers share the cores already
        for results in workers.each(title, _run_task, tasks):
            yield from results


def _run_task(function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
    return [function(*call) for call in calls]


def seed_stream(stream: str) -> int:
    """Return the number that represents a stream's name in the seeds of its chunks."""
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:16], "big")


def round_to_exact(columns: Sequence[Floats] | Floats, bounds: Floats | None = None) -> Floats:
    """Round N columns of C finite numbers to a power-of-two step, so that no sum of C has 2**53 steps.

    The step is at most 2**-52 of the largest such sum: 2**-39 for scores in [0, 1] of 7,000 queries.

    Args:
        columns: N columns of C finite numbers.
        bounds: (N,) maxima of the columns for any model, 0 if unknown. Columns with equal bounds share their step, so
            that equal numbers in two of them stay equal.

    Returns:
        (C, N), each column in one piece.
    """
    rounded = np.empty((len(columns), len(columns[0])))
    for some in _some_at_a_time(columns):
        numbers = np.stack([*columns[some]])
        rounded[some] = _to_steps(numbers, _steps(_greatest(numbers, bounds, some), numbers.shape[1]))
    return rounded.T


def find_steps(columns: Sequence[Floats], bounds: Floats) -> Floats:
    """Return the (N,) steps that `round_to_exact` rounds these columns to."""
    n_clusters = len(columns[0])
    maxima = [_greatest(np.stack(columns[some]), bounds, some) for some in _some_at_a_time(columns)]
    return _steps(np.concatenate(maxima), n_clusters)


def _greatest(numbers: Floats, bounds: Floats | None, own: slice) -> Floats:
    maxima: Floats = np.abs(numbers).max(axis=1, initial=0.0)
    return maxima if bounds is None else np.maximum(maxima, bounds[own])


def _steps(greatest: Floats, n_clusters: int) -> Floats:
    exponents = np.frexp(greatest * n_clusters)[1] - 53
    steps: Floats = np.ldexp(1.0, np.maximum(exponents, -1074))  # 2**-1074: the least double
    return steps


def _to_steps(numbers: Floats, steps: Floats) -> Floats:
    numbers /= steps[:, np.newaxis]
    np.rint(numbers, out=numbers)
    return np.multiply(numbers, steps[:, np.newaxis], out=numbers)


def same_steps(columns: Sequence[Floats], bounds: Floats, sliced: SlicedClusters) -> Bools:
    """Return (S, N), True if `round_to_exact` rounds a column to the same step when it is 0 outside a slice."""
    is_same = np.empty((len(sliced.names), len(columns)), dtype=bool)
    for some in _some_at_a_time(columns):
        sizes = np.abs(np.stack(columns[some]))
        overall, within = _greatest(sizes, bounds, some), np.maximum(sliced.greatest(sizes).T, bounds[some])
        is_same[:, some] = _steps(within, sizes.shape[1]) == _steps(overall, sizes.shape[1])
    return is_same


def _some_at_a_time(columns: Sequence[Floats] | Floats) -> Iterator[slice]:
    step = max(1, _ROUNDED // max(1, len(columns[0])))
    return (slice(begin, begin + step) for begin in range(0, len(columns), step))


def _sum_counts(parts: Sequence[Sums], counts: npt.NDArray[np.number]) -> list[Floats]:
    return [part.sums(counts) for part in parts]


def _sum_drawn(
    parts: Sequence[Sums], draw: Callable[..., Counts], chunks: Sequence[tuple[list[int], int]]
) -> list[Floats]:
    return _sum_counts(parts, np.concatenate([draw(*chunk) for chunk in chunks]))


def _draw_counts(n_clusters: int, entropy: list[int], n_resamples: int) -> Counts:
    """Return (n_resamples, C) counts of drawn clusters, as bytes unless one exceeds 255.

    Counting drawn integers is 6 to 9 times as fast as `Generator.multinomial`. 32-bit draws equal 64-bit draws.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    counts: Counts = np.empty((n_resamples, n_clusters), dtype=np.uint8)
    n_rows = max(1, _BATCH // n_clusters)
    bins = np.arange(n_rows, dtype=np.int32)[:, np.newaxis] * n_clusters  # each row counts in bins of its own
    for begin in range(0, n_resamples, n_rows):
        end = min(begin + n_rows, n_resamples)
        drawn = rng.integers(0, n_clusters, size=(end - begin, n_clusters), dtype=np.int32)
        drawn += bins[: end - begin]
        numbers = np.bincount(drawn.ravel(), minlength=drawn.size)
        counts = counts.astype(np.promote_types(counts.dtype, np.min_scalar_type(int(numbers.max()))), copy=False)
        counts[begin:end] = numbers.reshape(drawn.shape)
    return counts


@dataclass(frozen=True, eq=False)
class DrawnRatio:
    """Ratio with its sums over the rounded sample and the resamples. The last axis is 1 + B."""

    ratio: RatioEstimate
    numerators: Floats
    denominators: Floats

    @property
    def figures(self) -> Floats:
        return self.ratio.figure(self.numerators, self.denominators)


@dataclass(frozen=True, eq=False)
class RatioColumns:
    """Ratios over the same clusters as columns: all numerators, then each different denominator once."""

    ratios: Sequence[RatioEstimate]
    places: Sequence[int]  # position of each ratio's denominator among the different ones
    numbers: Sequence[Floats]  # (N,) of (C,)
    bounds: Floats  # (N,)

    @classmethod
    def alike(cls, ratios: Sequence[RatioEstimate]) -> list[RatioColumns]:
        together: dict[bytes, list[RatioEstimate]] = {}
        for ratio in ratios:
            together.setdefault((ratio.denominators > 0).tobytes(), []).append(ratio)
        return [cls.of(some) for some in together.values()]

    @classmethod
    def of(cls, ratios: Sequence[RatioEstimate]) -> RatioColumns:
        distinct: dict[bytes, int] = {}
        places = [distinct.setdefault(ratio.denominators.tobytes(), len(distinct)) for ratio in ratios]
        rows = [(ratio, row) for ratio in ratios for row in range(ratio.n_sums)]
        weights = [*map(np.frombuffer, distinct)]

        def column(place: int) -> Floats:
            if place >= len(rows):
                return weights[place - len(rows)]
            ratio, row = rows[place]
            numbers: Floats = ratio.numerators[row]
            return numbers

        bounds = np.array([*(ratio.bound for ratio, _ in rows), *[0.0] * len(weights)])
        if len(ratios[0].denominators) > MANY_CLUSTERS:
            return cls(ratios, places, OnDemand(column, len(bounds)), bounds)
        return cls(ratios, places, [*(row for ratio in ratios for row in ratio.numerators), *weights], bounds)

    @cached_property
    def _rounded(self) -> Floats:
        return round_to_exact(self.numbers, self.bounds)

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return np.cumsum([ratio.n_sums for ratio in self.ratios])

    @property
    def places_by_ratio(self) -> dict[RatioEstimate, npt.NDArray[np.int64]]:
        """Columns of each ratio: numerators first, then the denominator."""
        return {
            ratio: np.append(np.arange(end - ratio.n_sums, end), self._ends[-1] + place)
            for ratio, end, place in zip(self.ratios, self._ends, self.places, strict=True)
        }

    def part(
        self, sliced: SlicedClusters | None = None, cells: ClusterCells | None = None
    ) -> ResampledSums | LargeSums:
        counted = self.ratios[0].denominators > 0
        if len(counted) > MANY_CLUSTERS:
            return LargeSums.of(self._stack_clusters, self._steps, counted, sliced, cells)
        return ResampledSums.of(self._rounded, counted, sliced)

    @cached_property
    def _steps(self) -> Floats:
        return find_steps(self.numbers, self.bounds)

    def _stack_clusters(self, clusters: Where) -> Floats:
        weights = self.numbers[sum(ratio.n_sums for ratio in self.ratios) :]
        return np.vstack(
            [*(ratio.select_numerators(clusters) for ratio in self.ratios), *(row[clusters] for row in weights)]
        )

    def share(self, sliced: SlicedClusters) -> Bools:
        """Return (S, R), True if a ratio's sums over a slice can use the numbers as rounded over all clusters."""
        is_same = same_steps(self.numbers, self.bounds, sliced)
        numerators = np.split(is_same, self._ends, axis=1)[:-1]
        weights = [is_same[:, self._ends[-1] + place] for place in self.places]
        return np.stack([part.all(axis=1) & its for part, its in zip(numerators, weights, strict=True)], axis=1)

    def drawn(self, sums: Floats) -> Iterator[DrawnRatio]:
        *numerators, denominators = np.split(sums, self._ends)
        for ratio, ratio_sums, place in zip(self.ratios, numerators, self.places, strict=True):
            yield DrawnRatio(ratio, ratio_sums, denominators[place])
