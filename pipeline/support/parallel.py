"""What runs side by side: an evaluation's calls, as a stage of the work, and a file's chunks."""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from rankledger.pipeline.support.progress import each

A = TypeVar("A")
T = TypeVar("T")

_FEEDER_SECONDS = 5.0  # it takes milliseconds, unless it writes to a process that is gone
_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # microseconds of CPU time in a period, of a container


@dataclass(frozen=True)
class DaskScheduler:
    """Scheduler of a Dask cluster.

    Attributes:
        address: Address such as `tcp://10.0.0.5:8786`.
        timeout: Seconds for the scheduler to answer, and for the cluster to have a worker.
    """

    address: str
    timeout: float


@dataclass(frozen=True)
class Workers:
    """How many calls run at a time, and in what.

    Attributes:
        jobs: workers; negative ones count from the cores down, -1 being all of them.
        backend: `threads` (NumPy and Arrow release the interpreter's lock) or `processes`.
        scheduler: scheduler of the Dask workers that read outputs; None for this machine.
        memory: bytes that all of the work may take; None for half of those that there are.
    """

    jobs: int = -1
    backend: Literal["threads", "processes"] = "threads"
    scheduler: DaskScheduler | None = None
    memory: int | None = None

    def run(
        self, title: str, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], *, unit: str = "parts"
    ) -> list[T]:
        """As `each`, all of them."""
        return list(self.each(title, function, calls, unit=unit))

    def share(self, n_calls: int) -> int:
        """How many threads each of so many calls may have of its own while they run side by side."""
        return max(1, self.n_jobs // max(1, n_calls)) if self.backend == "threads" else 1

    @property
    def n_jobs(self) -> int:
        """How many calls run at a time, if there are as many."""
        return self.jobs if self.jobs > 0 else max(1, _cores() + 1 + self.jobs)

    def each(
        self, title: str, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], *, unit: str = "parts"
    ) -> Iterator[T]:
        """The results of `function(*call)` for each call, in the order of the calls, as soon as they are there.

        Args:
            title: what is being done, as the progress says.
            function: a function of a module, so that processes can import it.
            calls: the arguments of each call; each is asked for as the call begins.
            unit: what the progress calls them.
        """
        return each(title, self._results(function, calls), len(calls), unit)

    def _results(self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        jobs = min(self.n_jobs, len(calls))
        if jobs <= 1:
            return (function(*call) for call in calls)
        if self.backend == "threads":
            return _in_threads(function, calls, jobs)
        import joblib  # takes a tenth of a second, and only processes need it

        _stop_processes_at_exit()
        parallel = joblib.Parallel(n_jobs=jobs, backend="loky", return_as="generator")
        results: Iterator[T] = parallel(joblib.delayed(function)(*call) for call in calls)
        return results


@cache
def _stop_processes_at_exit() -> None:
    """Stop joblib's idle processes before `multiprocessing` waits for them: what is registered last runs first.

    The thread that fed them calls is the last to let go of its locks, and nothing waits for it: if the process ended
    meanwhile, loky would warn of a leaked lock that is gone.
    """
    import multiprocessing.util  # noqa: F401

    from joblib.externals.loky import get_reusable_executor

    def stop() -> None:
        feeders = [thread for thread in threading.enumerate() if thread.name == "QueueFeederThread"]
        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)
        for feeder in feeders:
            feeder.join(timeout=_FEEDER_SECONDS)

    atexit.register(stop)


def _in_threads(function: Callable[..., T], calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[T]:
    """The results in order; after an error or Ctrl-C no further call begins, and those that run are not waited for."""
    pool = ThreadPoolExecutor(jobs)
    try:
        yield from pool.map(lambda place: function(*calls[place]), range(len(calls)))  # each is made as it begins
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def map_ahead(function: Callable[[A], T], arguments: Iterable[A], at_a_time: int) -> Iterator[T]:
    """The results of the function for each argument, in order, while so many calls run side by side in threads.

    An argument is taken once its call can begin, so that there are never more of them than calls. What an argument or
    a call raises is raised where its result would stand; then no further call begins.
    """
    if at_a_time == 1:
        yield from map(function, arguments)
        return
    left, calls = iter(arguments), deque[Future[T]]()
    with ThreadPoolExecutor(at_a_time) as pool:
        try:
            while call := _begun(pool, function, left):
                calls.append(call)
                if len(calls) == at_a_time:
                    yield calls.popleft().result()
            while calls:
                yield calls.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begun(pool: ThreadPoolExecutor, function: Callable[[A], T], left: Iterator[A]) -> Future[T] | None:
    """The call for the next argument, or one that failed as the argument did; None if no argument is left."""
    try:
        return pool.submit(function, next(left))
    except StopIteration:
        return None
    except Exception as error:
        failed: Future[T] = Future()
        failed.set_exception(error)
        return failed


def map_threads(function: Callable[..., T], *arguments: Iterable[Any]) -> list[T]:
    """The results of `function` for each chunk of one file, in order, by a thread per core.

    For what NumPy and Arrow do in milliseconds without holding the interpreter's lock. The threads stay: each new one
    would get memory of its own, which the allocator keeps. So the function must not call this one in its turn.
    """
    calls = [*zip(*arguments, strict=False)]
    n_threads = _cores() if len(calls) > 1 else 1
    if n_threads == 1:
        return [function(*call) for call in calls]
    return list(_pool(os.getpid(), n_threads).map(function, *zip(*calls, strict=True)))


@cache
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:
    """So many threads of a process; of one that was forked, its own."""
    return ThreadPoolExecutor(n_threads)


_LIMIT: ContextVar[float] = ContextVar("limit", default=math.inf)


@contextmanager
def limit_cores(n_cores: int) -> Iterator[None]:
    """Let what this thread calls use at most so many cores."""
    token = _LIMIT.set(n_cores)
    try:
        yield
    finally:
        _LIMIT.reset(token)


def _cores() -> int:
    """The cores that this thread may use: by its limit, and its process's affinity and container."""
    return int(min(_LIMIT.get(), _cores_of_process()))


def _cores_of_process() -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text(encoding="ascii").split()
    except (OSError, ValueError):  # no container, or one without a quota
        return available
    return available if quota == "max" else max(1, min(available, math.ceil(int(quota) / int(period))))
