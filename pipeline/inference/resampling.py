"""Bootstrap resamples of query clusters, drawn once per dataset, and the sums of each figure that they weigh.

Every figure is made of sums over queries, one or several numerators over a denominator. A slice is the same with the
other queries at 0, and a cluster adds what its queries add together. So one product resamples all of them.

A cluster is a query, or the queries that are drawn as one. A resample is a row of counts, how often each cluster was
drawn; counts times columns of numbers give the resampled sums. Each column is first rounded to a step so coarse that no
sum of it needs more than 53 bits: every sum is then exact, and depends on nothing but the counts: not on BLAS, threads,
chunks, the other columns or the order of the queries.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rankledger.metrics.aggregation import MEAN, Aggregation, contributions
from rankledger.metrics.block import Bools, Floats, divide
from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.support.environment import threaded_libraries
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.types.results import Scores

__all__ = [
    "MANY_CLUSTERS",
    "Contributions",
    "Draws",
    "Indices",
    "LargeSums",
    "Ratio",
    "ResampledSums",
    "Settings",
    "SlicedClusters",
    "contributions_of",
    "entropy_of",
    "in_chunks",
    "round_to_exact",
    "same_steps",
    "steps_of",
]

T = TypeVar("T")

Clusters: TypeAlias = npt.NDArray[np.int64]
Where: TypeAlias = slice | npt.NDArray[np.int64]
"""Which queries or clusters."""

MANY_CLUSTERS = 1 << 17
"""Clusters beyond which the numbers of a column are made when they are asked for, some at a time: 1 MB of a column."""


@dataclass(frozen=True, eq=False)
class Ratio:
    """One figure as sums over C clusters.

    Attributes:
        aggregation: takes the means to the figure.
        make: gives (S, q), what each of some queries adds to the numerators, be it in the slice or not.
        n_sums: S: one for most measures, several for a figure that is made of several means.
        denominators: (C,) what each cluster adds to the denominator; 0 where it has nothing in the slice.
        bound: what no number of the numerators can exceed, whatever the model; 0 where that is not known.
        queries: (Q,) those of the slice; None for all.
        clusters: (Q,) the cluster of each; None where each query is one.
    """

    aggregation: Aggregation
    make: Callable[[Where], Floats]
    n_sums: int
    denominators: Floats
    bound: float
    queries: Bools | None = None
    clusters: Clusters | None = None

    @property
    def numerators(self) -> Floats:
        """(S, C): what each cluster adds to the numerators; not kept, for there are as many as models times slices."""
        added = self._added(slice(None))
        if self.clusters is None:
            return added
        return np.stack([_added_up(row, self.clusters, len(self.denominators)) for row in added])

    def _added(self, queries: Where) -> Floats:
        return self.make(queries) if self.queries is None else self.make(queries) * self.queries[queries]

    def numerators_at(self, clusters: Where) -> Floats:
        """(S, c): what some clusters add to the numerators."""
        return self._added(clusters) if self.clusters is None else self._of_clusters[:, clusters]

    @cached_property
    def _of_clusters(self) -> Floats:
        return self.numerators

    def figure(self, numerators: Floats, denominators: Floats) -> Floats:
        """The figure that these sums make, (S, …) and (…); NaN where nothing was counted."""
        figures: Floats = self.aggregation.backward(divide(numerators, denominators))[0]
        return figures

    @cached_property
    def totals(self) -> tuple[Floats, Floats]:
        """(S,) and (): the sums over all clusters."""
        return self.numerators.sum(axis=1), self.denominators.sum()

    @cached_property
    def estimate(self) -> float:
        """The figure over all clusters."""
        return float(self.figure(*self.totals))

    @property
    def influence(self) -> Floats:
        """(C,): how much each cluster moves the figure, by its infinitesimal jackknife; the sum is 0.

        Reference:
            Efron & Tibshirani 1993, section 22.6: `(num - θ·den) / Σ den`, times the slope of what is done to the mean.
        """
        return self.influence_of(self)

    def influence_of(self, replicate: Ratio) -> Floats:
        """(C,): how much each cluster of a replicate moves its figure from this one, to the first order."""
        sums, total = self.totals
        means = divide(sums, total)
        apart = means[:, np.newaxis] * replicate.denominators
        np.subtract(replicate.numerators, apart, out=apart)
        if self.aggregation is not MEAN:
            apart = (self.aggregation.slope(means)[:, np.newaxis] * apart).sum(axis=0, keepdims=True)
        return divide(apart[0], total)

    @property
    def values(self) -> Floats:
        """The mean of each cluster that counts; the last of them where a figure is made of several."""
        counted = self.denominators > 0
        return divide(self.numerators[-1, counted], self.denominators[counted])

    def is_mean_over(self, other: Ratio) -> bool:
        """Whether both are plain means over the same denominators, so that their difference is one too."""
        plain = self.aggregation is MEAN and other.aggregation is MEAN
        return plain and self.has_weights_of(other)

    def has_weights_of(self, other: Ratio) -> bool:
        """Whether both have the same denominators."""
        return self.denominators is other.denominators or np.array_equal(self.denominators, other.denominators)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each of Q queries adds to the sums of one measure of one model.

    Attributes:
        measure: the measure.
        make: gives the numerators of some queries, (S, q).
        n_sums: S.
        denominators: (Q,); 0 where the query does not count.
        values: (Q,) the queries' own scores.
    """

    measure: Measure
    make: Callable[[Where], Floats]
    n_sums: int
    denominators: Floats
    values: Floats | None = None

    @classmethod
    def of(
        cls, measure: Measure, numerators: Floats, denominators: Floats, values: Floats | None = None
    ) -> Contributions:
        """What (S, Q) numerators and (Q,) denominators add."""
        return cls(measure, lambda queries: numerators[:, queries], len(numerators), denominators, values)

    @property
    def numerators(self) -> Floats:
        """(S, Q)."""
        return self.make(slice(None))

    @property
    def counted(self) -> Bools:
        """(Q,): the queries that count."""
        return self.denominators > 0

    @property
    def scores(self) -> Floats:
        """(Q,): the score of each query; NaN where it does not count."""
        if self.values is not None and not self.measure.has_slices:  # its sums are of pairs of other queries, too
            return np.where(self.counted, self.values, np.nan)
        scores: Floats = self.measure.aggregation.backward(divide(self.numerators, self.denominators))[0]
        return scores

    def ratio(self, queries: Bools | None, clusters: Clusters | None) -> Ratio:
        """The figure over these queries, all of them for None, as sums over clusters."""
        denominators = self.denominators if queries is None else self.denominators * queries
        if not self.measure.has_slices and not np.array_equal(denominators, self.denominators):
            denominators = np.zeros_like(denominators)  # there is no figure of some of the queries
        largest = 1
        if clusters is not None:
            denominators = _added_up(denominators, clusters, int(clusters.max()) + 1)
            largest = int(np.bincount(clusters).max())
        least, greatest = self.measure.metric.range
        plain = self.measure.aggregation is MEAN and not self.measure.weighted
        bounded = plain and math.isfinite(least) and math.isfinite(greatest)
        bound = largest * max(abs(least), abs(greatest)) if bounded else 0.0
        return Ratio(self.measure.aggregation, self.make, self.n_sums, denominators, bound, queries, clusters)


def contributions_of(scores: Scores, row: int, values: Floats, conventions: Conventions) -> Contributions:
    """What each query adds.

    Args:
        scores: one model's on one dataset.
        row: the measure's among them.
        values: (Q,) the scores of that measure, or a bound of them.
        conventions: say what an undefined query counts as, and one without output.
    """
    measure, weights = scores.measures[row], scores.weights[row]
    zero = measure.metric.undefined == "convention" and conventions.undefined_queries == "zero"
    zero = zero and measure not in scores.failed  # whose queries have no score at all
    if conventions.missing_queries == "skip":
        weights = np.where(scores.missing, 0.0, weights)
    means = np.atleast_2d(scores.moments.get(measure, values))

    def make(queries: Where) -> tuple[Floats, Floats]:
        return contributions(measure.aggregation, means[:, queries], weights[queries], undefined_is_zero=zero)

    numerators, denominators = make(slice(None))
    if np.array_equal(numerators, means):
        numerators = means  # the scores are not held twice
    elif numerators.shape[1] > MANY_CLUSTERS:
        return Contributions(measure, lambda queries: make(queries)[0], len(means), denominators[0], values)
    return Contributions.of(measure, numerators, denominators[0], values)


def _added_up(values: Floats, clusters: Clusters, n_clusters: int) -> Floats:
    return np.bincount(clusters, values, n_clusters).astype(np.float64)


Indices: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = npt.NDArray[np.unsignedinteger]

_BATCH = 1 << 15  # counts that are made at a time: 256 kB, so that they stay in the cache
_CHUNK = 1 << 20  # counts of a chunk: 8 MB. A chunk is drawn from a stream of its own, so this is part of every figure.
_TASK = 4  # chunks of a task
_TOGETHER = 1 << 25  # counts that are drawn for one pass over the numbers of many clusters: 34 MB
_RANGE = 1 << 16  # clusters whose numbers are rounded and multiplied at a time, where there are many
_KEPT = 1 << 28  # counts of a dataset that are kept for all of its columns, a byte each; more are drawn for each block
_PRODUCT = 1 << 22  # sums of parts that are made at a time: 32 MB
_ROUNDED = 1 << 20  # numbers that are rounded at a time: 8 MB
_FEWEST = 32  # clusters of a part: products of fewer are slow
_WORTH_IT = 0.7  # of the clusters: with more, picking their counts takes as long as multiplying all


@dataclass(frozen=True)
class Settings:
    """How resamples are drawn, of queries or of signs.

    Attributes:
        resamples: how often they are drawn.
        seed: root of all streams.
        workers: run the resampling.
        memory: the bytes that this machine has.
        together: sums over resamples that are kept at a time, but for those of all queries.
    """

    resamples: int
    seed: int
    workers: Workers
    memory: float = math.inf
    together: int = 1 << 24


@dataclass(frozen=True, eq=False)
class SlicedClusters:
    """S slices of C clusters that share their products: a slice is made of parts, which no slice cuts.

    Attributes:
        names: (S,) of the slices.
        parts: (C,) the part of each cluster, from 1 on; 0 for clusters in none of the slices.
        members: (S, A) 1 where a part is in a slice, else 0.
    """

    names: tuple[str, ...]
    parts: Indices
    members: Floats

    @classmethod
    def share(cls, masks: Mapping[str, Bools]) -> list[SlicedClusters]:
        """As few as there can be without parts of fewer than 32 clusters on average.

        Args:
            masks: (C,) whether each cluster is in it, by slice.
        """
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
        return [cls._of({name: masks[name] for name in names}) for names in shared]

    @classmethod
    def _of(cls, masks: Mapping[str, Bools]) -> SlicedClusters:
        stacked = np.stack([*masks.values()])
        inside = np.flatnonzero(stacked.any(axis=0))
        members, parts = np.unique(stacked[:, inside], axis=1, return_inverse=True)
        numbers = np.zeros(stacked.shape[1], dtype=np.int64)
        numbers[inside] = parts.ravel() + 1
        return cls(tuple(masks), numbers, members.astype(np.float64))

    def part_by_part(self, inside: Bools) -> tuple[Indices, Indices]:
        """Those of some clusters, all of them in slices, part by part; and (A,) where each part ends among them."""
        rows = np.flatnonzero(inside)
        rows = rows[np.argsort(self.parts[rows], kind="stable")]
        return rows, np.searchsorted(self.parts[rows], np.arange(1, self.members.shape[1] + 1), side="right")

    def greatest(self, columns: Floats) -> Floats:
        """(N, S): the greatest number of each slice in each of N columns, (N, C) numbers from 0 on."""
        by_part = np.zeros((len(columns), self.members.shape[1] + 1))
        order = np.argsort(self.parts, kind="stable")
        present, begins = np.unique(self.parts[order], return_index=True)
        by_part[:, present] = np.maximum.reduceat(columns[:, order], begins, axis=1)
        return np.stack([by_part[:, 1:][:, own > 0].max(axis=1, initial=0.0) for own in self.members], axis=1)


@dataclass(frozen=True, eq=False)
class ResampledSums:
    """N columns to add up over S slices: one product for each part of the clusters, and slices are sums of parts.

    Attributes:
        rows: the clusters in which any of the columns is not 0, part by part.
        rounded: (R, N) the numbers of these clusters, as `round_to_exact` gives them, column by column.
        ends: (A,) where each part ends among them; None for a single part, which is the only slice.
        members: (S, A) 1 where a part is in a slice, else 0.
    """

    rows: Indices | slice
    rounded: Floats
    ends: Indices | None = None
    members: Floats = field(default_factory=lambda: np.ones((1, 1)))

    @property
    def shape(self) -> tuple[int, int]:
        """(S, N)."""
        return len(self.members), self.rounded.shape[1]

    @classmethod
    def of(cls, rounded: Floats, counted: Bools, sliced: SlicedClusters | None = None) -> ResampledSums:
        """The columns, (C, N), over slices; without slices over all clusters, though only those counted matter."""
        inside = counted if sliced is None else counted & (sliced.parts > 0)
        if sliced is None or sliced.members.size == 1:
            if inside.sum() >= _WORTH_IT * len(inside) and (sliced is None or sliced.parts.all()):
                return cls(slice(None), rounded)
            rows = np.flatnonzero(inside)
            return cls(rows, rounded.T.take(rows, axis=1).T)
        rows, ends = sliced.part_by_part(inside)
        return cls(rows, rounded.T.take(rows, axis=1).T, ends, sliced.members)

    def sums(self, weights: npt.NDArray[np.number]) -> Floats:
        """(S, N, B): the sums of the columns, each cluster taken as often as (B, C) weights say; all are exact."""
        taken = weights[:, self.rows]
        if self.ends is None:
            return (self.rounded.T @ taken.astype(np.float64, copy=False).T)[np.newaxis]
        (n_slices, n_parts), n_columns = self.members.shape, self.rounded.shape[1]
        sums = np.empty((n_slices, n_columns, len(taken)))
        step = max(1, _PRODUCT // max(1, n_parts * len(taken)))
        for begin in range(0, n_columns, step):
            columns = self.rounded[:, begin : begin + step]
            parts = np.empty((n_parts, columns.shape[1], len(taken)))
            for part, (first, end) in enumerate(pairwise((0, *self.ends))):
                own = taken[:, first:end].astype(np.float64, copy=False)  # small enough for the cache
                np.matmul(columns[first:end].T, own.T, out=parts[part])
            added = self.members @ parts.reshape(n_parts, -1)
            sums[:, begin : begin + step] = added.reshape(n_slices, *parts.shape[1:])
        return sums


@dataclass(frozen=True, eq=False)
class LargeSums:
    """As `ResampledSums`, of so many clusters that their numbers are made and rounded some at a time.

    What they add is exact, so that it may be added up.

    Attributes:
        numbers: gives (N, c), the numbers of some clusters.
        steps: (N,) what they are rounded to.
        rows: the clusters in which any of the columns is not 0, part by part.
        ends: (A,) where each part ends among them.
        members: (S, A) 1 where a part is in a slice, else 0.
    """

    numbers: Callable[[Where], Floats]
    steps: Floats
    rows: Indices
    ends: Indices
    members: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """(S, N)."""
        return len(self.members), len(self.steps)

    @classmethod
    def of(
        cls, numbers: Callable[[Where], Floats], steps: Floats, counted: Bools, sliced: SlicedClusters | None
    ) -> LargeSums:
        """The columns over slices; without slices over all clusters; only those that are counted matter."""
        if sliced is None:
            rows = np.flatnonzero(counted)
            return cls(numbers, steps, rows, np.array([len(rows)]), np.ones((1, 1)))
        return cls(numbers, steps, *sliced.part_by_part(counted & (sliced.parts > 0)), sliced.members)

    def sums(self, weights: npt.NDArray[np.number]) -> Floats:
        """(S, N, B): the sums of the columns, each cluster taken as often as (B, C) weights say; all are exact."""
        parts = np.zeros((len(self.ends), len(self.steps), len(weights)))
        for part, (first, end) in enumerate(pairwise((0, *self.ends.tolist()))):
            for begin in range(first, end, _RANGE):
                own = self.rows[begin : min(begin + _RANGE, end)]
                rounded = _to_steps(self.numbers(own), self.steps)
                parts[part] += rounded @ weights[:, own].T.astype(np.float64)
        added: Floats = np.tensordot(self.members, parts, axes=1)
        return added


Sums: TypeAlias = ResampledSums | LargeSums


class Draws:
    """B resamples of C clusters, each of which draws C of them with replacement.

    Attributes:
        n_resamples: B.
        are_kept: whether their counts stay in memory for all sums; if not, they are drawn anew for each block.
    """

    def __init__(
        self, n_clusters: int, stream: str, settings: Settings, *, _chunk: int = _CHUNK, _kept: int = _KEPT
    ) -> None:
        """Nothing is drawn yet.

        Args:
            n_clusters: C.
            stream: names the stream; the same name gives the same resamples whatever is summed over them.
            settings: how they are drawn.
        """
        self.n_resamples = settings.resamples
        self.are_kept = n_clusters * settings.resamples <= _kept
        self._settings = settings
        self._n_clusters, self._stream = n_clusters, stream
        self._chunks = _chunks(n_clusters, stream, settings, _chunk)

    @cached_property
    def _counts(self) -> list[Counts]:
        """(B', C) counts of each chunk, drawn once."""
        calls = [(self._n_clusters, *chunk) for chunk in self._chunks]
        return list(_in_tasks("Drawing resamples", _draw_counts, calls, self._settings.workers, _TASK))

    def let_go(self) -> None:
        """Do not keep the counts; they are drawn again if they are needed again."""
        self.__dict__.pop("_counts", None)

    def windows(self, n_resamples: int) -> Iterator[Draws]:
        """The same resamples, about so many at a time."""
        n_chunks = max(1, n_resamples // max((size for _, size in self._chunks), default=1))
        for begin in range(0, len(self._chunks), n_chunks):
            window = copy(self)
            window._chunks = self._chunks[begin : begin + n_chunks]
            window.n_resamples = sum(size for _, size in window._chunks)
            if self.are_kept:
                window.__dict__["_counts"] = self._counts[begin : begin + n_chunks]
            yield window

    def sums(self, parts: Sequence[Sums]) -> list[Floats]:
        """(S, N, 1 + B) of each part: the sums over the clusters, and over each resample of them; all are exact.

        Raises:
            InputError: this machine has no memory for so many.
        """
        return self.begin(parts)()

    def begin(self, parts: Sequence[Sums]) -> Callable[[], list[Floats]]:
        """What gives the `sums`. The workers add them up from now on, whatever the caller does before it asks for them.

        Raises:
            InputError: this machine has no memory for so many.
        """
        if not parts:
            return list
        shapes = [part.shape for part in parts]
        self.refuse_too_many(sum(n * m for n, m in shapes))
        chunks = self._each_chunk(parts)
        first = [*islice(chunks, 1)]  # waits for one task; all have begun then

        def finish() -> list[Floats]:
            found = [np.empty((*shape, 1 + self.n_resamples)) for shape in shapes]
            for sums, part in zip(found, parts, strict=True):
                sums[:, :, :1] = part.sums(np.ones((1, self._n_clusters)))
            begin = 1
            for chunk in chain(first, chunks):
                end = begin + chunk[0].shape[2]
                for sums, own in zip(found, chunk, strict=True):
                    sums[:, :, begin:end] = own
                begin = end
            return found

        return finish

    def _each_chunk(self, parts: Sequence[Sums]) -> Iterator[list[Floats]]:
        if self.are_kept:
            calls: list[tuple[Any, ...]] = [(parts, counts) for counts in self._counts]
            return _in_tasks("Adding up resamples", _sum_counts, calls, self._settings.workers, _TASK)
        together = _TOGETHER if self._n_clusters > MANY_CLUSTERS else _TASK * _CHUNK
        at_a_time = -(-together // max(1, self._chunks[0][1] * self._n_clusters))
        groups = [self._chunks[begin : begin + at_a_time] for begin in range(0, len(self._chunks), at_a_time)]
        calls = [(parts, self._n_clusters, group) for group in groups]
        return _in_tasks("Drawing resamples", _sum_drawn, calls, self._settings.workers, 1)

    def refuse_too_many(self, n_columns: int) -> None:
        """Refuse what memory cannot hold.

        Raises:
            InputError: there are so many sums over each resample.
        """
        resamples, memory = self.n_resamples, self._settings.memory
        needed = np.dtype(np.float64).itemsize * n_columns * resamples
        if needed > memory:
            found = f"{resamples:,} of the {n_columns:,} sums of {self._stream!r} need {needed / 1e9:,.1f} GB"
            fitting = int(resamples * memory / needed)
            raise InputError(
                f"bootstrap.resamples: {found}, and there are {memory / 1e9:,.1f} GB; set at most {fitting:,}"
            )


def in_chunks(
    title: str,
    function: Callable[..., Any],
    drawn_for: object,
    n_clusters: int,
    stream: str,
    settings: Settings,
    n_cells: int,
    per_task: int = 1,
) -> Iterator[Any]:
    """What the function makes of each chunk of about `n_cells` draws: it takes a seed and how many rows to draw."""
    calls = [(drawn_for, n_clusters, *chunk) for chunk in _chunks(n_clusters, stream, settings, n_cells)]
    return _in_tasks(title, function, calls, settings.workers, per_task)


def _chunks(n_clusters: int, stream: str, settings: Settings, n_cells: int) -> list[tuple[list[int], int]]:
    """The seed of each chunk, and how many rows it has."""
    n_rows = max(1, n_cells // n_clusters)
    sizes = [min(n_rows, settings.resamples - begin) for begin in range(0, settings.resamples, n_rows)]
    entropy = entropy_of(stream)
    return [([settings.seed, entropy, chunk], size) for chunk, size in enumerate(sizes)]


def _in_tasks(
    title: str, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], workers: Workers, per_task: int
) -> Iterator[T]:
    """The results of the calls in their order, a few calls to a task: workers fetch what these share once."""
    tasks = [(function, calls[begin : begin + per_task]) for begin in range(0, len(calls), per_task)]
    with threaded_libraries().limit(limits=1, user_api="blas"):  # the workers share the cores already
        for results in workers.each(title, _run_task, tasks):
            yield from results


def _run_task(function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
    return [function(*call) for call in calls]


def entropy_of(stream: str) -> int:
    """The number that stands for a stream's name in the seeds of its chunks."""
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:16], "big")


def round_to_exact(columns: Sequence[Floats] | Floats, bounds: Floats | None = None) -> Floats:
    """(C, N), each column in one piece: rounded to a power-of-two step, so that no sum of C has 2**53 steps.

    The step is at most 2**-52 of the greatest such sum: 2**-39 for scores in [0, 1] of 7,000 queries.

    Args:
        columns: N columns of C finite numbers.
        bounds: (N,) what the numbers of a column cannot exceed, whatever the model: columns of one bound share their
            step, so that what is equal in two of them stays equal. 0 where that is not known.
    """
    rounded = np.empty((len(columns), len(columns[0])))
    for own in _some_at_a_time(columns):
        numbers = np.stack([*columns[own]])
        rounded[own] = _to_steps(numbers, _steps(numbers, None if bounds is None else bounds[own]))
    return rounded.T


def steps_of(columns: Sequence[Floats], bounds: Floats) -> Floats:
    """(N,): the steps that `round_to_exact` rounds these columns to; the arguments are the same."""
    return np.concatenate([_steps(np.stack(columns[own]), bounds[own]) for own in _some_at_a_time(columns)])


def _steps(numbers: Floats, bounds: Floats | None) -> Floats:
    """(n,): those of some columns, (n, C)."""
    greatest = np.abs(numbers).max(axis=1, initial=0.0)
    if bounds is not None:
        greatest = np.maximum(greatest, bounds)
    exponents = _exponents(greatest, numbers.shape[1]) - 53
    steps: Floats = np.ldexp(1.0, np.maximum(exponents, -1074))  # 2**-1074: the least double
    return steps


def _to_steps(numbers: Floats, steps: Floats) -> Floats:
    """(n, c): the numbers of n columns, rounded to their steps; those that were given are changed."""
    numbers /= steps[:, np.newaxis]
    np.rint(numbers, out=numbers)
    return np.multiply(numbers, steps[:, np.newaxis], out=numbers)


def same_steps(columns: Sequence[Floats], bounds: Floats, sliced: SlicedClusters) -> Bools:
    """(S, N): whether `round_to_exact` rounds a column to the same step if it is 0 outside a slice.

    Args:
        columns: N columns of C finite numbers.
        bounds: (N,) as of `round_to_exact`.
        sliced: S slices.
    """
    same = np.empty((len(sliced.names), len(columns)), dtype=bool)
    for own in _some_at_a_time(columns):
        found = np.abs(np.stack(columns[own]))
        whole = _exponents(np.maximum(found.max(axis=1, initial=0.0), bounds[own]), found.shape[1])
        same[:, own] = _exponents(np.maximum(sliced.greatest(found).T, bounds[own]), found.shape[1]) == whole
    return same


def _some_at_a_time(columns: Sequence[Floats] | Floats) -> Iterator[slice]:
    """Columns of a million numbers together, at least one: they are large."""
    step = max(1, _ROUNDED // max(1, len(columns[0])))
    return (slice(begin, begin + step) for begin in range(0, len(columns), step))


def _exponents(greatest: Floats, n_clusters: int) -> npt.NDArray[np.int32]:
    """Of what no sum of C numbers up to these exceeds: it is below 2**exponent."""
    exponents: npt.NDArray[np.int32] = np.frexp(greatest * n_clusters)[1]
    return exponents


def _sum_counts(parts: Sequence[Sums], counts: npt.NDArray[np.number]) -> list[Floats]:
    return [part.sums(counts) for part in parts]


def _sum_drawn(parts: Sequence[Sums], n_clusters: int, chunks: Sequence[tuple[list[int], int]]) -> list[Floats]:
    return _sum_counts(parts, np.concatenate([_draw_counts(n_clusters, *chunk) for chunk in chunks]))


def _draw_counts(n_clusters: int, entropy: list[int], n_resamples: int) -> Counts:
    """(n_resamples, C): how often each cluster is drawn in each resample; bytes, unless one is more than 255 times.

    Counting drawn integers is 6 to 9 times as fast as `Generator.multinomial`. Those of 32 bits are the same as of 64.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    counts: Counts = np.empty((n_resamples, n_clusters), dtype=np.uint8)
    n_rows = max(1, _BATCH // n_clusters)
    bins = np.arange(n_rows, dtype=np.int32)[:, np.newaxis] * n_clusters  # each row counts in bins of its own
    for begin in range(0, n_resamples, n_rows):
        end = min(begin + n_rows, n_resamples)
        drawn = rng.integers(0, n_clusters, size=(end - begin, n_clusters), dtype=np.int32)
        drawn += bins[: end - begin]
        found = np.bincount(drawn.ravel(), minlength=drawn.size)
        counts = counts.astype(np.promote_types(counts.dtype, np.min_scalar_type(int(found.max()))), copy=False)
        counts[begin:end] = found.reshape(drawn.shape)
    return counts
