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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

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
    "Contributions",
    "Ratio",
    "ResampledSums",
    "Settings",
    "contributions_of",
    "entropy_of",
    "in_chunks",
    "resampled_sums",
    "round_to_exact",
]

Clusters: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ratio:
    """One figure as sums over C clusters.

    Attributes:
        aggregation: takes the means to the figure.
        added: (S, Q) what each query adds to the numerators, be it in the slice or not: one row for most measures,
            several for a figure that is made of several means.
        denominators: (C,) what each cluster adds to the denominator; 0 where it has nothing in the slice.
        bound: what no number of the numerators can exceed, whatever the model; 0 where that is not known.
        queries: (Q,) those of the slice; None for all.
        clusters: (Q,) the cluster of each; None where each query is one.
    """

    aggregation: Aggregation
    added: Floats
    denominators: Floats
    bound: float
    queries: Bools | None = None
    clusters: Clusters | None = None

    @property
    def numerators(self) -> Floats:
        """(S, C): what each cluster adds to the numerators; not kept, for there are as many as models times slices."""
        added = self.added if self.queries is None else self.added * self.queries
        if self.clusters is None:
            return added
        return np.stack([_added_up(row, self.clusters, len(self.denominators)) for row in added])

    def figure(self, numerators: Floats, denominators: Floats) -> Floats:
        """The figure that these sums make, (S, …) and (…); NaN where nothing was counted."""
        figures: Floats = self.aggregation.backward(divide(numerators, denominators))[0]
        return figures

    @cached_property
    def estimate(self) -> float:
        """The figure over all clusters."""
        return float(self.figure(self.numerators.sum(axis=1), self.denominators.sum()))

    @property
    def influence(self) -> Floats:
        """(C,): how much each cluster moves the figure, by its infinitesimal jackknife; the sum is 0.

        Reference:
            Efron & Tibshirani 1993, section 22.6: `(num - θ·den) / Σ den`, times the slope of what is done to the mean.
        """
        return self.influence_of(self)

    def influence_of(self, replicate: Ratio) -> Floats:
        """(C,): how much each cluster of a replicate moves its figure from this one, to the first order."""
        total, numerators = self.denominators.sum(), self.numerators
        means = divide(numerators.sum(axis=1), total)
        apart = replicate.numerators - means[:, np.newaxis] * replicate.denominators
        moved: Floats = (self.aggregation.slope(means)[:, np.newaxis] * apart).sum(axis=0)
        return divide(moved, total)

    @property
    def values(self) -> Floats:
        """The mean of each cluster that counts; the last of them where a figure is made of several."""
        counted = self.denominators > 0
        return divide(self.numerators[-1, counted], self.denominators[counted])

    def is_mean_over(self, other: Ratio) -> bool:
        """Whether both are plain means over the same denominators, so that their difference is one too."""
        plain = self.aggregation is MEAN and other.aggregation is MEAN
        return plain and np.array_equal(self.denominators, other.denominators)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each of Q queries adds to the sums of one measure of one model.

    Attributes:
        measure: the measure.
        numerators: (S, Q).
        denominators: (Q,); 0 where the query does not count.
    """

    measure: Measure
    numerators: Floats
    denominators: Floats

    @property
    def counted(self) -> Bools:
        """(Q,): the queries that count."""
        return self.denominators > 0

    @property
    def scores(self) -> Floats:
        """(Q,): the score of each query; NaN where it does not count."""
        scores: Floats = self.measure.aggregation.backward(divide(self.numerators, self.denominators))[0]
        return scores

    def ratio(self, queries: Bools | None, clusters: Clusters | None) -> Ratio:
        """The figure over these queries, all of them for None, as sums over clusters."""
        denominators = self.denominators if queries is None else self.denominators * queries
        largest = 1
        if clusters is not None:
            denominators = _added_up(denominators, clusters, int(clusters.max()) + 1)
            largest = int(np.bincount(clusters).max())
        least, greatest = self.measure.metric.range
        plain = self.measure.aggregation is MEAN and not self.measure.pooled
        bounded = plain and math.isfinite(least) and math.isfinite(greatest)
        bound = largest * max(abs(least), abs(greatest)) if bounded else 0.0
        return Ratio(self.measure.aggregation, self.numerators, denominators, bound, queries, clusters)


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
    if conventions.missing_queries == "skip":
        weights = np.where(scores.missing, 0.0, weights)
    means = np.atleast_2d(scores.moments.get(measure, values))
    numerators, denominators = contributions(measure.aggregation, means, weights, undefined_is_zero=zero)
    return Contributions(measure, numerators, denominators[0])


def _added_up(values: Floats, clusters: Clusters, n_clusters: int) -> Floats:
    return np.bincount(clusters, values, n_clusters).astype(np.float64)


Rows: TypeAlias = npt.NDArray[np.int64] | slice

_BATCH = 1 << 16  # counts that are made at a time: 512 kB, so that they stay in the cache
_CHUNK = 1 << 20  # counts of a chunk: 8 MB. A chunk is drawn from a stream of its own, so this is part of every figure.


@dataclass(frozen=True)
class Settings:
    """How resamples are drawn, of queries or of signs.

    Attributes:
        resamples: how often they are drawn.
        seed: root of all streams.
        workers: run the resampling.
        memory: the bytes that this machine has.
        together: resamples of differences that are kept at a time.
    """

    resamples: int
    seed: int
    workers: Workers
    memory: float = math.inf
    together: int = 1 << 24


@dataclass(frozen=True, eq=False)
class ResampledSums:
    """Columns that are 0 in the same clusters: a slice of the queries takes a share of the time of all of them.

    Attributes:
        rows: the clusters in which they are not.
        rounded: (R, N) N numbers of each of these clusters, as `round_to_exact` gives them.
    """

    rows: Rows
    rounded: Floats


def resampled_sums(
    parts: Sequence[ResampledSums], n_clusters: int, stream: str, settings: Settings, *, _chunk: int = _CHUNK
) -> Floats:
    """The sum of each column over the clusters, and over each resample of them.

    Args:
        parts: N columns in all.
        n_clusters: C, how many clusters there are; a resample draws C of them with replacement.
        stream: names the stream; the same name gives the same resamples whatever the columns.
        settings: how B resamples are drawn.

    Returns:
        (N, 1 + B) sums, all of them exact; the first are those of the sample itself.

    Raises:
        InputError: this machine has no memory for so many.
    """
    _refuse_too_many(settings.resamples, sum(part.rounded.shape[1] for part in parts), stream, settings.memory)
    chunks = in_chunks("Drawing resamples", _sum_chunk, parts, n_clusters, stream, settings, _chunk)
    sample = np.concatenate([part.rounded.sum(axis=0) for part in parts])
    return np.concatenate([sample[:, np.newaxis], *chunks], axis=1)


def in_chunks(
    title: str,
    function: Callable[..., Any],
    drawn_for: object,
    n_clusters: int,
    stream: str,
    settings: Settings,
    n_cells: int,
) -> list[Any]:
    """What the function makes of each chunk of about `n_cells` draws: it takes a seed and how many rows to draw."""
    n_rows = max(1, n_cells // n_clusters)
    sizes = [min(n_rows, settings.resamples - begin) for begin in range(0, settings.resamples, n_rows)]
    entropy = entropy_of(stream)
    calls = [(drawn_for, n_clusters, [settings.seed, entropy, chunk], size) for chunk, size in enumerate(sizes)]
    with threaded_libraries().limit(limits=1, user_api="blas"):  # the workers share the cores already
        return settings.workers.run(title, function, calls)


def _refuse_too_many(resamples: int, n_columns: int, dataset: str, memory: float) -> None:
    """Refuse what memory cannot hold: the sums, and the chunks that they are put together of."""
    needed = 2 * np.dtype(np.float64).itemsize * n_columns * resamples
    if needed > memory:
        found = f"{resamples:,} of the {n_columns:,} sums of {dataset!r} need {needed / 1e9:,.1f} GB"
        fitting = int(resamples * memory / needed)
        raise InputError(f"bootstrap.resamples: {found}, and there are {memory / 1e9:,.1f} GB; set at most {fitting:,}")


def entropy_of(stream: str) -> int:
    """The number that stands for a stream's name in the seeds of its chunks."""
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:16], "big")


def round_to_exact(columns: Floats, bounds: Floats | None = None) -> Floats:
    """(C, N): each column rounded to a power-of-two step of which no sum of C of its numbers has 2**53.

    The step is at most 2**-52 of the greatest such sum: 2**-39 for scores in [0, 1] of 7,000 queries.

    Args:
        columns: (N, C) finite numbers.
        bounds: (N,) what the numbers of a column cannot exceed, whatever the model: columns of one bound share their
            step, so that what is equal in two of them stays equal. 0 where that is not known.
    """
    greatest = np.abs(columns).max(axis=1, initial=0.0)
    if bounds is not None:
        greatest = np.maximum(greatest, bounds)
    _, exponents = np.frexp(greatest * columns.shape[1])  # greatest sum < 2**exponent
    steps = np.ldexp(1.0, np.maximum(exponents - 53, -1074))  # 2**-1074 is the least double
    return np.ascontiguousarray((np.rint(columns / steps[:, np.newaxis]) * steps[:, np.newaxis]).T)


def _sum_chunk(parts: Sequence[ResampledSums], n_clusters: int, entropy: list[int], n_resamples: int) -> Floats:
    counts = _draw_counts(entropy, n_resamples, n_clusters)
    return np.concatenate([part.rounded.T @ counts[:, part.rows].T for part in parts])


def _draw_counts(entropy: list[int], n_resamples: int, n_clusters: int) -> Floats:
    """(n_resamples, C): how often each cluster is drawn in each resample.

    Counting drawn integers is 6 to 9 times as fast as `Generator.multinomial`.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    counts: npt.NDArray[np.float64] = np.empty((n_resamples, n_clusters))
    n_rows = max(1, _BATCH // n_clusters)
    for begin in range(0, n_resamples, n_rows):
        rows = counts[begin : begin + n_rows]
        drawn = rng.integers(0, n_clusters, size=rows.shape)
        drawn += np.arange(len(rows))[:, np.newaxis] * n_clusters  # each row counts in bins of its own
        rows[:] = np.bincount(drawn.ravel(), minlength=rows.size).reshape(rows.shape)
    return counts
