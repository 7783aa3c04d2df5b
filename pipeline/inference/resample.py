"""Bootstrap resamples of the clusters, drawn once per dataset and shared by every measure of every model.

A cluster is a query, or the queries that are drawn as one. A resample is a row of counts, how often each cluster was
drawn; counts times columns of numbers give the resampled sums. Each column is first rounded to a step so coarse that no
sum of it needs more than 53 bits: every sum is then exact, and depends on nothing but the counts: not on BLAS, threads,
chunks, the other columns or the order of the queries.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from metrics.block import Floats
from pipeline.errors import InputError
from pipeline.parallel import Workers

__all__ = ["Part", "entropy_of", "resampled_sums", "round_to_exact"]

Rows: TypeAlias = npt.NDArray[np.int64] | slice

_BATCH = 1 << 16  # counts that are made at a time: 512 kB, so that they stay in the cache
_CHUNK = 1 << 20  # counts of a chunk: 8 MB. A chunk is drawn from a stream of its own, so this is part of every figure.


@dataclass(frozen=True, eq=False)
class Part:
    """Columns that are 0 in the same clusters: a slice of the queries takes a share of the time of all of them.

    Attributes:
        rows: the clusters in which they are not.
        rounded: (R, N) N numbers of each of these clusters, as `round_to_exact` gives them.
    """

    rows: Rows
    rounded: Floats


def resampled_sums(
    parts: Sequence[Part],
    n_clusters: int,
    *,
    resamples: int,
    seed: int,
    stream: str,
    workers: Workers,
    memory: float = math.inf,
) -> Floats:
    """The sum of each column over the clusters, and over each resample of them.

    Args:
        parts: N columns in all.
        n_clusters: C, how many clusters there are.
        resamples: B, how often the clusters are drawn, C at a time with replacement.
        seed: root of all streams.
        stream: names the stream; the same name gives the same resamples whatever the columns.
        workers: run the chunks.
        memory: the bytes that this machine has.

    Returns:
        (N, 1 + B) sums, all of them exact; the first are those of the sample itself.

    Raises:
        InputError: this machine has no memory for so many.
    """
    _refuse_too_many(resamples, sum(part.rounded.shape[1] for part in parts), stream, memory)
    n_rows = max(1, _CHUNK // n_clusters)
    begins = range(0, resamples, n_rows)
    entropy = entropy_of(stream)
    calls = [
        (parts, n_clusters, [seed, entropy, chunk], min(n_rows, resamples - begin))
        for chunk, begin in enumerate(begins)
    ]
    with threadpool_limits(limits=1, user_api="blas"):  # the workers share the cores already
        chunks = workers.run("Drawing resamples", _sum_chunk, calls)
    sample = np.concatenate([part.rounded.sum(axis=0) for part in parts])
    return np.concatenate([sample[:, np.newaxis], *chunks], axis=1)


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


def _sum_chunk(parts: Sequence[Part], n_clusters: int, entropy: list[int], n_resamples: int) -> Floats:
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
