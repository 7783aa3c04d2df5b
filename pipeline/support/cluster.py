"""Calls on the workers of a Dask cluster: results in order, errors as values, and no wait without a limit.

A call travels as bytes that its worker alone unpickles: a scheduler unpickles what is submitted to it, and need not
have this package. To unpickle the bytes is the call; a worker without the package fails there, which the caller sees.
"""

from __future__ import annotations

import logging
import pickle
import platform
import queue
import threading
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Generic, TypeVar

from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.support.parallel import limit_cores
from rankledger.pipeline.support.progress import each

T = TypeVar("T")

_LEAST = 16  # calls that are submitted however few workers there are: a cluster that grows by its queue must see one
_PER_THREAD = 2  # calls that are submitted for each thread of the workers: one runs, and the next is there
_INTERVAL = 1.0  # seconds between two looks at the workers
_FAREWELL = 5.0  # seconds in which the scheduler is asked to forget what is left
_AGAIN = object()  # in the place of a result whose worker was lost before it was fetched


class ClusterError(InputError):
    """The cluster cannot do the work: one line that says where, why, and what to do.

    Attributes:
        begun: whether calls may have been done by then: results can be with the workers when the scheduler is lost.
    """

    exit_code = 74
    begun = False


@dataclass(frozen=True)
class Killed:
    """In the place of the result of a call that was given up, as it ended the processes that ran it.

    Attributes:
        times: the processes that it ended.
        last: the address of the last one.
    """

    times: int
    last: str


@dataclass(frozen=True)
class ClusterResults(Generic[T]):
    """What came of calls.

    Attributes:
        results: in the order of the calls.
        n_lost: workers that left the cluster meanwhile; what they had begun was done again.
    """

    results: list[T | Killed]
    n_lost: int


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster.

    Attributes:
        scheduler: its address, such as `tcp://10.0.0.5:8786`.
        patience: seconds for which there may be no worker, or no answer of the scheduler.
    """

    scheduler: str
    patience: float

    def run(
        self, title: str, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], *, unit: str
    ) -> ClusterResults[T]:
        """The results of `function(*call)` for each call, in the order of the calls.

        Args:
            title: what is being done, as the progress says.
            function: a function of a module, which workers import. InputError, OSError and MemoryError are the fault of
                its worker's machine, and end the run; other errors are bugs.
            calls: the arguments of each call: small, as they pass through the scheduler, like the results.
            unit: what the progress calls them.

        Raises:
            ClusterError: there is no scheduler or it was lost, no worker is there, or one cannot do the work.
        """
        with _connected(self) as client:
            window = _Window(client, self, function, calls)
            try:
                results = list(each(title, _in_order(window.results()), len(calls), unit))
            except ClusterError as error:
                error.begun |= window.n_done > 0
                raise
            return ClusterResults(results, window.n_lost)


@contextmanager
def _connected(cluster: Cluster) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise InputError("the backend dask needs distributed; pip install 'rankledger[dask]'") from None
    with _silenced():
        client = _within(lambda: Client(cluster.scheduler, timeout=cluster.patience, set_as_default=False), cluster)
        try:
            yield client
        finally:
            with suppress(Exception):  # a scheduler that is lost has forgotten everything
                client.close(timeout=_FAREWELL)


def _within(connect: Callable[[], T], cluster: Cluster) -> T:
    """The client, unless it takes too long: it waits without a limit for a port that answers in another protocol.

    Raises:
        InputError: the address is not one of a scheduler.
        ClusterError: nobody answers there.
    """
    answers: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()

    def answer() -> None:
        try:
            answers.put(connect())
        except Exception as error:
            answers.put(error)

    threading.Thread(target=answer, daemon=True).start()
    try:
        found = answers.get(timeout=cluster.patience + _FAREWELL)
    except queue.Empty:
        found = TimeoutError("something else listens at that port")
    if isinstance(found, ValueError):
        raise InputError(f"{cluster.scheduler}: {_first_line(found)}; write it as tcp://host:8786") from None
    if isinstance(found, Exception):
        reason = f"no Dask scheduler answers there ({_first_line(found)})"
        raise ClusterError(f"{cluster.scheduler}: {reason}; start it, or check the address") from None
    return found


@contextmanager
def _silenced() -> Iterator[None]:
    names = (name for name in logging.root.manager.loggerDict if name.partition(".")[0] in ("distributed", "tornado"))
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


class _Window:
    """The calls that the scheduler knows at a time: some for each thread of the workers that are alive."""

    def __init__(
        self, client: Any, cluster: Cluster, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._function = function
        self._calls = calls
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._seen = time.monotonic()  # when a worker was
        self._looked = -_INTERVAL
        self._width = _LEAST
        self._workers: set[str] = set()  # that were there at the last look
        self.n_done = 0
        self.n_lost = 0

    def results(self) -> Iterator[tuple[int, Any]]:
        """The results by the places of their calls, as they come; those of calls that were given up are the last.

        A process that ends takes all its calls with it. If several were given up, each runs again, alone: one that did
        no harm then has its result.
        """
        killed: dict[int, Killed] = {}
        for place, result in self._run(range(len(self._calls))):
            if isinstance(result, Killed):
                killed[place] = result
            else:
                yield place, result
        if len(killed) == 1:
            yield from killed.items()
        else:
            for place in killed:
                yield from self._run([place])

    def _run(self, places: Iterable[int]) -> Iterator[tuple[int, Any]]:
        waiting, running = deque(places), dict[str, tuple[int, Any]]()  # a future that is dropped is cancelled
        while waiting or running:
            self._look()
            while waiting and len(running) < self._width:
                future = self._submit(waiting[0])
                running[future.key] = waiting.popleft(), future
            for future in self._wait():
                result = self._result(future)
                if result is not _AGAIN:
                    self.n_done += 1
                    yield running.pop(future.key)[0], result
        with suppress(ClusterError):  # all results are there
            self._count_threads()

    def _look(self) -> None:
        """See whether the scheduler answers and how many threads its workers have, once in a while.

        Raises:
            ClusterError: the scheduler is lost, or no worker was there for too long.
        """
        if time.monotonic() < self._looked + _INTERVAL:
            return
        scheduler, patience = self._cluster.scheduler, self._cluster.patience
        n_threads = self._count_threads()
        self._looked = time.monotonic()
        self._width = max(_LEAST, _PER_THREAD * n_threads)
        if n_threads:
            self._seen = self._looked
        elif self._looked - self._seen > patience:
            found = f"no worker was there for {patience:g} s"
            raise ClusterError(f"{scheduler}: {found}; start some with `dask worker {scheduler}`, or wait for longer")

    def _count_threads(self) -> int:
        """The threads of the workers that are there.

        Raises:
            ClusterError: the scheduler is lost.
        """
        with self._noticing_loss():
            if self._client.status != "running":
                raise OSError("its connection was closed")
            threads: dict[str, int] = self._client.nthreads(callback_timeout=self._cluster.patience)
        self.n_lost += len(self._workers - threads.keys())
        self._workers = set(threads)
        return sum(threads.values())

    def _submit(self, place: int) -> Any:
        call = _Call(_versions(), pickle.dumps((self._function, self._calls[place])))
        with self._noticing_loss():
            future = self._client.submit(
                pickle.loads, pickle.dumps(call), key=f"rankledger-{uuid.uuid4().hex}", pure=False
            )
            future.add_done_callback(self._ended.put)
            return future

    def _wait(self) -> Iterator[Any]:
        """The futures that have ended; none after a while."""
        with suppress(queue.Empty):
            yield self._ended.get(timeout=_INTERVAL)
            while True:
                yield self._ended.get_nowait()

    def _result(self, future: Any) -> Any:
        with self._noticing_loss():
            if future.status == "error":
                return self._killed(future.exception(timeout=self._cluster.patience))
            try:
                answer = future.result(timeout=self._cluster.patience)
            except TimeoutError:
                future.add_done_callback(self._ended.put)
                return _AGAIN
        kind, result = pickle.loads(answer)
        if kind == _REFUSED:
            raise ClusterError(result)
        if kind == _BUG:
            raise RuntimeError(result)
        return result

    def _killed(self, error: BaseException) -> Killed:
        """What was given up.

        Raises:
            ClusterError: a worker could not even begin.
        """
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            return Killed(error.allowed_failures + 1, error.last_worker.address)
        found = f"a worker cannot run it ({type(error).__name__}: {_first_line(error)})"
        wanted = ", ".join(f"{name} {number}" for name, number in _versions().items())
        raise ClusterError(f"{self._cluster.scheduler}: {found}; every worker needs {wanted}") from None

    @contextmanager
    def _noticing_loss(self) -> Iterator[None]:
        try:
            yield
        except ClusterError:
            raise
        except CancelledError:  # which names the call
            raise self._lost("its connection was closed") from None
        except Exception as error:  # whatever Dask makes of it
            raise self._lost(_first_line(error)) from None

    def _lost(self, reason: str) -> ClusterError:
        error = ClusterError(f"{self._cluster.scheduler}: the scheduler was lost ({reason}); check its log")
        error.begun = True
        return error


def _in_order(results: Iterable[tuple[int, T]]) -> Iterator[T]:
    """Results in the order of their places, each as soon as those before it are there."""
    found: dict[int, T] = {}
    n_given = 0
    for place, result in results:
        found[place] = result
        while n_given in found:
            yield found.pop(n_given)
            n_given += 1


# What runs on a worker. Its answers are pairs of texts and values that any version can read.

_DONE, _REFUSED, _BUG = "done", "refused", "bug"


class _Call:
    """A call that is made by whoever unpickles it, and comes out as its answer."""

    def __init__(self, versions: Mapping[str, str], payload: bytes) -> None:
        self._arguments = versions, payload

    def __reduce__(self) -> tuple[Callable[..., bytes], tuple[Mapping[str, str], bytes]]:
        return _answer, self._arguments


def _answer(versions: Mapping[str, str], payload: bytes) -> bytes:
    """The answer to a call: its result, or why this worker refuses it, or the traceback of a bug."""
    from distributed import get_worker

    worker = get_worker()
    host = f"worker {worker.address} on {platform.node()}"
    own = _versions()
    if own != versions:
        unlike = ", ".join(f"{name} {own[name]}, not {versions[name]}" for name in own if own[name] != versions[name])
        return pickle.dumps((_REFUSED, f"{host} has {unlike}; install the same version on every worker"))
    try:
        with limit_cores(worker.state.nthreads):
            function, arguments = pickle.loads(payload)
            return pickle.dumps((_DONE, function(*arguments)))
    except (InputError, OSError, MemoryError) as error:
        return pickle.dumps((_REFUSED, f"{host}: {_first_line(error)}"))
    except Exception:
        return pickle.dumps((_BUG, f"on {host}:\n{traceback.format_exc()}"))


@cache
def _versions() -> Mapping[str, str]:
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Python": python} | {name: version(name) for name in ("rankledger", "numpy", "pyarrow")}


def _first_line(error: BaseException) -> str:
    return shorten((str(error) or type(error).__name__).partition("\n")[0])
