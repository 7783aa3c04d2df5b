"""Workers for the calls of an evaluation, and threads for the chunks of a file."""

from __future__ import annotations

import atexit
import errno
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
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
    """Scheduler of a Dask cluster. `timeout` is in seconds."""

    address: str
    timeout: float


@dataclass(frozen=True)
class Workers:
    """Workers of an evaluation."""

    jobs: int = -1  # number of workers. -1 is one per core, -2 one fewer
    backend: Literal["threads", "processes"] = "threads"
    dask: DaskScheduler | None = None  # of the Dask workers that read outputs. None for this machine
    memory: int | None = None  # bytes. None for half of the machine's

    def run(
        self, title: str, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], *, unit: str = "parts"
    ) -> list[T]:
        return list(self.each(title, function, calls, unit=unit))

    def share(self, n_calls: int) -> int:
        """Return the threads that each of `n_calls` parallel calls may use."""
        return max(1, self.n_jobs // max(1, n_calls)) if self.backend == "threads" else 1

    @property
    def n_jobs(self) -> int:
        return self.jobs if self.jobs > 0 else max(1, _cores() + 1 + self.jobs)

    def each(
        self, title: str, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], *, unit: str = "parts"
    ) -> Iterator[T]:
        """Yield the results of `function(*call)` in the order of the calls.

        Processes must be able to import the function. Each call is taken from `calls` when it begins.
        """
        return each(title, self._results(function, calls), len(calls), unit)

    def _results(self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        jobs = min(self.n_jobs, len(calls))
        if jobs <= 1:
            return (function(*call) for call in calls)
        if self.backend == "threads":
            return _run_in_threads(function, calls, jobs)
        return _run_in_processes(function, calls, jobs)


def _run_in_processes(function: Callable[..., T], calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[T]:
    """Yield results in order. Raise an OSError if the system ends a process."""
    import joblib  # takes a tenth of a second, and only processes need it
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    _stop_processes_at_exit()
    parallel = joblib.Parallel(n_jobs=jobs, backend="loky", return_as="generator")
    folder = Path.cwd()
    try:
        yield from parallel(joblib.delayed(_call_in_folder)(folder, function, *call) for call in calls)
    except TerminatedWorkerError:
        problem = "a worker process was killed, probably because memory ran out. Set fewer jobs, or `backend: threads`"
        raise OSError(errno.ENOMEM, problem, "execution.backend") from None


def _call_in_folder(folder: Path, function: Callable[..., T], *call: Any) -> T:
    """Call a function in the caller's folder. Processes are reused by a caller that changed its folder."""
    os.chdir(folder)
    return function(*call)


@cache
def _stop_processes_at_exit() -> None:
    """Stop joblib's idle processes first, because loky would otherwise warn of a leaked lock."""
    import multiprocessing.util  # noqa: F401

    from joblib.externals.loky import get_reusable_executor

    def stop() -> None:
        feeders = [thread for thread in threading.enumerate() if thread.name == "QueueFeederThread"]
        with suppress(OSError):  # without shared memory joblib starts no processes
            get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)
        for feeder in feeders:
            feeder.join(timeout=_FEEDER_SECONDS)

    atexit.register(stop)


def _run_in_threads(function: Callable[..., T], calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[T]:
    """Yield results in order. After an error or Ctrl-C no further call begins."""
    pool = ThreadPoolExecutor(jobs)
    try:
        yield from pool.map(lambda place: function(*calls[place]), range(len(calls)))  # each is made as it begins
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def map_ahead(function: Callable[[A], T], arguments: Iterable[A], at_a_time: int) -> Iterator[T]:
    """Yield results in order, while up to `at_a_time` calls run in threads.

    An argument is taken once its call can begin. Errors are raised in order, too.
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
    """Return the call for the next argument, failed if the argument fails. None after the last."""
    try:
        return pool.submit(function, next(left))
    except StopIteration:
        return None
    except Exception as error:
        failed: Future[T] = Future()
        failed.set_exception(error)
        return failed


def map_threads(function: Callable[..., T], *arguments: Iterable[Any]) -> list[T]:
    """Return results for the chunks of a file in order, by a thread per core.

    Threads stay, because the allocator keeps memory for each new one. Calls must not be nested.
    """
    calls = [*zip(*arguments, strict=False)]
    n_threads = _cores() if len(calls) > 1 else 1
    if n_threads == 1:
        return [function(*call) for call in calls]
    return list(_pool(os.getpid(), n_threads).map(function, *zip(*calls, strict=True)))


@cache
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads)


_LIMIT: ContextVar[float] = ContextVar("limit", default=math.inf)


@contextmanager
def limit_cores(n_cores: int) -> Iterator[None]:
    """Limit the cores for calls of this thread."""
    token = _LIMIT.set(n_cores)
    try:
        yield
    finally:
        _LIMIT.reset(token)


def _cores() -> int:
    return int(min(_LIMIT.get(), _cores_of_process()))


def _cores_of_process() -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text(encoding="ascii").split()
    except (OSError, ValueError):  # no container, or one without a quota
        return available
    return available if quota == "max" else max(1, min(available, math.ceil(int(quota) / int(period))))
