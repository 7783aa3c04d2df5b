"""What runs side by side: an evaluation's calls, as a stage of the work, and a file's chunks."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from rankledger.pipeline.support.progress import each

__all__ = ["Workers", "map_threads"]

T = TypeVar("T")

_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # microseconds of CPU time in a period, of a container


@dataclass(frozen=True)
class Workers:
    """How many calls run at a time, and in what.

    Attributes:
        jobs: workers; negative ones count from the cores down, -1 being all of them.
        backend: `threads` (NumPy and Arrow release the interpreter's lock) or `processes`.
    """

    jobs: int = -1
    backend: Literal["threads", "processes"] = "threads"

    def run(
        self, title: str, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], *, unit: str = "parts"
    ) -> list[T]:
        """As `each`, all of them."""
        return list(self.each(title, function, calls, unit=unit))

    def each(
        self, title: str, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], *, unit: str = "parts"
    ) -> Iterator[T]:
        """The results of `function(*call)` for each call, in the order of the calls, as soon as they are there.

        Args:
            title: what is being done, as the progress says.
            function: a function of a module, so that processes can import it.
            calls: the arguments of each call.
            unit: what the progress calls them.
        """
        return each(title, self._results(function, calls), len(calls), unit)

    def _results(self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        jobs = min(self.jobs if self.jobs > 0 else _cores() + 1 + self.jobs, len(calls))
        if jobs <= 1:
            return (function(*call) for call in calls)
        if self.backend == "threads":
            return _in_threads(function, calls, jobs)
        import joblib  # takes a tenth of a second, and only processes need it

        parallel = joblib.Parallel(n_jobs=jobs, backend="loky", return_as="generator")
        results: Iterator[T] = parallel(joblib.delayed(function)(*call) for call in calls)
        return results


def _in_threads(function: Callable[..., T], calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[T]:
    """The results in order; after an error or Ctrl-C no further call begins, and those that run are not waited for."""
    pool = ThreadPoolExecutor(jobs)
    try:
        yield from pool.map(function, *zip(*calls, strict=True))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def map_threads(function: Callable[..., T], *arguments: Iterable[Any]) -> list[T]:
    """The results of `function` for each chunk of one file, in order, by a thread per core.

    For what NumPy and Arrow do in milliseconds without holding the interpreter's lock. The threads stay: each new one
    would get memory of its own, which the allocator keeps. So the function must not call this one in its turn.
    """
    return list(_pool(os.getpid()).map(function, *arguments))


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of a process; of one that was forked, its own."""
    return ThreadPoolExecutor(_cores())


def _cores() -> int:
    """The cores that this process may use, by its affinity and by the quota of its container."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text(encoding="ascii").split()
    except (OSError, ValueError):  # no container, or one without a quota
        return available
    return available if quota == "max" else max(1, min(available, math.ceil(int(quota) / int(period))))
