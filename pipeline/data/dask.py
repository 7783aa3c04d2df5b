"""Read outputs by the workers of a Dask cluster, into the output cache.

A call travels as bytes that its worker unpickles in `_answer`, because a scheduler unpickles everything else and has
only Dask. Judgments and joined outputs go through the output cache, not through the scheduler.
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rankledger.pipeline.config.planned import Task
from rankledger.pipeline.config.sources import OutputKey
from rankledger.pipeline.data.cache import CacheError, OutputCache
from rankledger.pipeline.data.dataset import DatasetInput, is_missing
from rankledger.pipeline.data.files import first_line
from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.data.outputs import MOST_RANGES, Elsewhere, EvaluatedInputs, OutputReader, OutputStore
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import DaskScheduler, Workers, limit_cores
from rankledger.pipeline.support.progress import each

_DATASET_LOCK = threading.Lock()  # the threads of a worker read judgments once
_CLOSING = 5.0  # seconds for the scheduler to forget what is left, or to refuse a connection


class DaskError(InputError):
    """Dask cluster that cannot read the outputs."""

    exit_code = 74


def read_with_dask(
    scheduler: DaskScheduler, tasks: Sequence[Task], readers: Mapping[str, OutputReader], before: EvaluatedInputs | None
) -> tuple[dict[OutputKey, Elsewhere | Failure], tuple[str, ...]]:
    """Read the outputs that the output cache can hold into it. Return the answers and remarks."""
    stores: dict[str, bytes] = {}
    for name, reader in readers.items():
        if (kept := reader.kept) and reader.suffices:
            kept.store.refuse_unwritable()
            folder = kept.store.folder
            store = OutputCache(folder.absolute() if folder else kept.store.place)
            stores[name] = pickle.dumps(replace(kept, store=store))
    calls: dict[OutputKey, tuple[Any, ...]] = {}
    for task in tasks:
        if task.dataset in stores:
            files = before.outputs.get(task.key, ()) if before else ()
            is_allowed = task.allow_no_overlap or bool(files)
            calls[task.key] = stores[task.dataset], task.output, files, is_allowed
    if not calls:
        return {}, ()
    with _connect(scheduler) as client:
        session = _Session(client, scheduler, calls)
        answers = dict(each("Reading on Dask", session.read([*calls]), len(calls), "outputs"))
    outputs = {task.key: _localize(task, answers[task.key]) for task in tasks if task.key in answers}
    parsed = [output[1] for output in outputs.values() if not isinstance(output, Failure)]
    counts = f"{sum(parsed)}; found in the output cache: {len(parsed) - sum(parsed)}"
    remarks = [f"outputs read on the Dask cluster {scheduler.address}: {counts}"]
    if session.n_lost:
        remarks += [f"workers lost while outputs were read: {session.n_lost}"]
    return outputs, tuple(remarks)


def _localize(task: Task, answer: Elsewhere | str) -> Elsewhere | Failure:
    folder = str(Path.cwd()).rstrip(os.sep) + os.sep

    def name(text: str) -> str:
        return text.removeprefix(folder) if folder == os.sep else text.replace(folder, "")

    if isinstance(answer, str):
        return Failure(task.dataset, task.model, name(answer), task.replicate)
    files, parsed, remarks = answer
    return tuple(replace(file, path=name(file.path)) for file in files), parsed, tuple(map(name, remarks))


@contextmanager
def _connect(scheduler: DaskScheduler) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--scheduler: distributed is not installed. Use `pip install 'rankledger[dask]'`.") from None
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def connect() -> None:
        try:
            answers.put(Client(scheduler.address, timeout=scheduler.timeout, set_as_default=False))
        except Exception as error:
            answers.put(error)

    names = (name for name in logging.root.manager.loggerDict if name.startswith(("distributed", "tornado")))
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)  # one error says what happened
    client: Any = TimeoutError("another service listens on that port")
    try:
        threading.Thread(target=connect, daemon=True).start()  # which never ends if the port has another protocol
        with suppress(queue.Empty):
            client = answers.get(timeout=scheduler.timeout + _CLOSING)
        if isinstance(client, ValueError):
            raise InputError(f"{scheduler.address}: {first_line(client)}. Use an address such as tcp://host:8786.")
        if isinstance(client, Exception):
            reason = f"no Dask scheduler answers ({first_line(client)})"
            raise DaskError(f"{scheduler.address}: {reason}. Check the address, or start the scheduler.")
        yield client
    finally:
        with suppress(Exception):  # there is no client, or a lost scheduler has forgotten everything
            client.close(timeout=_CLOSING)
        for logger, level in levels.items():
            logger.setLevel(level)


class _Session:
    """Calls of `_answer` on the workers of one scheduler."""

    def __init__(self, client: Any, scheduler: DaskScheduler, calls: Mapping[OutputKey, tuple[Any, ...]]) -> None:
        self._client = client
        self._scheduler = scheduler
        self._calls = calls
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._workers: set[str] = set()
        self._seen_at = time.monotonic()
        self.n_lost = 0  # workers that left

    def read(self, keys: Sequence[OutputKey]) -> Iterator[tuple[OutputKey, Elsewhere | str]]:
        from distributed import KilledWorker

        address, timeout, versions = self._scheduler.address, self._scheduler.timeout, _find_versions()
        share = max(1, self._count_threads() // len(keys))  # of the workers' threads
        calls = [pickle.dumps(_Call((versions, pickle.dumps((*self._calls[key], share))))) for key in keys]
        with self._refuse_loss():
            futures = self._client.map(pickle.loads, calls, key="rankledger", pure=False, batch_size=1_000)
        running = {future.key: key for key, future in zip(keys, futures, strict=True)}
        killed: dict[OutputKey, str] = {}
        for future in futures:
            future.add_done_callback(self._ended.put)
        while running:
            with suppress(queue.Empty):
                future = self._ended.get(timeout=1)
                with self._refuse_loss():
                    error = future.exception(timeout=timeout)
                    answer: Any = None if error else future.result(timeout=timeout)
                key = running.pop(future.key)
                if isinstance(error, KilledWorker):
                    ended = f"{error.allowed_failures + 1} worker processes, the last at {error.last_worker.address}"
                    output = self._calls[key][1].path
                    killed[key] = f"{output}: reading ended {ended}. Check their logs and their memory."
                elif isinstance(error, ImportError):
                    required = ", ".join(map(" ".join, versions.items()))
                    reason = f"a worker cannot read outputs ({first_line(error)})"
                    raise DaskError(f"{address}: {reason}. Use workers with {required}.")
                elif error:
                    raise error.with_traceback(future.traceback(timeout=timeout))  # a bug
                else:
                    yield key, answer
            self._count_threads()
        for key in killed:  # a process takes all of its calls with it, so each is made again alone
            yield from self.read([key]) if len(killed) > 1 else killed.items()

    def _count_threads(self) -> int:
        timeout = self._scheduler.timeout
        with self._refuse_loss():
            if self._client.status != "running":
                raise CancelledError
            threads = self._client.nthreads(callback_timeout=timeout)
        self.n_lost += len(self._workers - threads.keys())
        self._workers = {*threads}
        if threads:
            self._seen_at = time.monotonic()
        elif time.monotonic() - self._seen_at > timeout:
            start = f"Start one with `dask worker {self._scheduler.address}`, or set a longer `worker_timeout`"
            raise DaskError(f"{self._scheduler.address}: no worker was there for {timeout:g} s. {start}.")
        return sum(threads.values())

    @contextmanager
    def _refuse_loss(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever Dask makes of it; a cancelled future names its key
            reason = "its connection was closed" if isinstance(error, CancelledError) else first_line(error)
            again = "Check its log and run the same command again. Outputs that were read are in the output cache"
            raise DaskError(f"{self._scheduler.address}: the scheduler was lost ({reason}). {again}.") from None


class _Call(tuple[Mapping[str, str], bytes]):
    """Versions and pickled arguments of `_answer`, which is called by unpickling."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _answer, tuple(self)


def _answer(versions: Mapping[str, str], arguments: bytes) -> Elsewhere | str:
    from distributed import get_worker

    worker = get_worker()
    host = f"worker {worker.address} on {platform.node()}"
    for name, number in _find_versions().items():
        if number != versions[name]:
            raise DaskError(f"{host}: has {name} {number}, not {versions[name]}. Use the same version on every worker.")
    try:
        with limit_cores(worker.state.nthreads):
            store, output, recorded, allow_no_overlap, share = pickle.loads(arguments)
            with _DATASET_LOCK:
                kept, dataset = _load_dataset(store)
            if not recorded and is_missing(output):
                raise InputError(f"{output.path}: file not found. Use a path that every worker sees, or a URL.")
            reader = OutputReader(dataset, kept.conventions, depth=0, compared=0, kept=kept)
            n_ranges = min(share, Workers().n_jobs, MOST_RANGES)
            try:
                read = reader.read(output, recorded, allow_no_overlap, at_a_time=n_ranges)
            except InputError as error:
                return str(error)
            return read.files, read.parsed, read.remarks
    except (InputError, CacheError, OSError, MemoryError) as error:  # the machine's fault
        raise DaskError(f"{host}: {error}") from None


@lru_cache(4)  # datasets whose judgments a worker keeps in memory
def _load_dataset(store: bytes) -> tuple[OutputStore, DatasetInput]:
    kept: OutputStore = pickle.loads(store)
    dataset = kept.dataset()
    if dataset is None:
        raise InputError(f"{kept.store.place}: judgments are missing. Use an output cache that every worker sees.")
    return kept, dataset


def _find_versions() -> Mapping[str, str]:
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Python": python} | {name: version(name) for name in ("rankledger", "numpy", "pyarrow")}
