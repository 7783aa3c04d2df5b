"""Outputs that the workers of a Dask cluster read: they leave them in the output cache, and say which files they were.

A worker takes the judgments and excluded documents from the cache, too, where the evaluation has put them: by their
digests, so that they are the same. Only paths, digests and remarks pass through the scheduler. What the cache cannot
hold is not read here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from rankledger.pipeline.config.planned import Task
from rankledger.pipeline.data.cache import CacheError, OutputCache
from rankledger.pipeline.data.dataset import DatasetInput, is_missing
from rankledger.pipeline.support.cluster import Cluster, ClusterError, ClusterResults, Killed
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.types.inputs import InputFile, Source
from rankledger.pipeline.types.joined import OutputKey
from rankledger.pipeline.types.results import Failure, Record
from rankledger.pipeline.workflow.outputs import OutputReader, OutputStore, ReadElsewhere, source_of
from rankledger.pipeline.workflow.workspace import recorded_output

__all__ = ["read_on_cluster"]

_DATASETS = 4  # whose judgments a worker keeps in memory
_ONE = threading.Lock()  # the threads of a worker read judgments once


def read_on_cluster(
    cluster: Cluster, tasks: Sequence[Task], readers: Mapping[str, OutputReader], record: Record | None
) -> tuple[dict[OutputKey, ReadElsewhere | Failure], tuple[str, ...]]:
    """What workers say of the outputs that the output cache can hold, and remarks; the outputs are in the cache then.

    Args:
        cluster: the cluster.
        tasks: the outputs.
        readers: those of the datasets; their judgments are in the cache.
        record: an earlier evaluation with the same inputs; outputs may be gone if the cache has them.

    Raises:
        InputError: the cache cannot be written.
        ClusterError: the cluster cannot do the work.
    """
    kept = {name: _shared(reader.kept) for name, reader in readers.items() if reader.kept and reader.suffices}
    chosen = [task for task in tasks if task.dataset in kept]
    calls = [
        (kept[task.dataset], _everywhere(task), files, task.output.allow_no_overlap or bool(files))
        for task in chosen
        for files in [recorded_output(record, task) if record else ()]
    ]
    if not calls:
        return {}, ()
    try:
        found = cluster.run("Reading on the cluster", _read, calls, unit="outputs")
    except ClusterError as error:
        if not error.n_done:
            raise
        later = "outputs that were read are in the output cache, and the same command goes on from there"
        raise ClusterError(f"{error}; {later}") from None
    here = {task.key: _as_here(task, read) for task, read in zip(chosen, found.results, strict=True)}
    return here, tuple(_remarks(cluster, found))


def _remarks(cluster: Cluster, found: ClusterResults[ReadElsewhere | str]) -> Iterator[str]:
    read = [each for each in found.results if isinstance(each, ReadElsewhere)]
    n_parsed = sum(each.parsed for each in read)
    n_cached = len(read) - n_parsed
    yield f"outputs read on the Dask cluster {cluster.scheduler}: {n_parsed}; found in the output cache: {n_cached}"
    if found.n_lost:
        yield f"workers lost while outputs were read: {found.n_lost}; what they had begun was read again by others"


def _shared(kept: OutputStore) -> OutputStore:
    """The store by its whole path, as the workers have other working directories."""
    try:
        kept.store.refuse_unwritable()
    except CacheError as error:
        raise InputError(str(error)) from None
    folder = kept.store.folder
    return replace(kept, store=OutputCache(kept.store.place if folder is None else folder.absolute()))


def _everywhere(task: Task) -> Source:
    return replace(source_of(task.output), path=task.output.path)


def _as_here(task: Task, found: ReadElsewhere | str | Killed) -> ReadElsewhere | Failure:
    """The same with paths as this process names them: from its working directory, if they are below that."""
    if isinstance(found, Killed):
        reason = (
            f"{source_of(task.output).path}: reading it ended {found.times} worker processes, the last at {found.last}"
        )
        return Failure(task.dataset, task.model, f"{reason}; check their logs and their memory", task.replicate)
    folder = str(Path.cwd()).rstrip(os.sep) + os.sep

    def named(text: str) -> str:
        return text.removeprefix(folder) if folder == os.sep else text.replace(folder, "")

    if isinstance(found, str):
        return Failure(task.dataset, task.model, named(found), task.replicate)
    files = tuple(replace(file, path=named(file.path)) for file in found.files)
    return replace(found, files=files, remarks=tuple(map(named, found.remarks)))


# What runs on a worker.


def _read(
    kept: OutputStore, output: Source, recorded: Sequence[InputFile], allow_no_overlap: bool
) -> ReadElsewhere | str:
    """What is known of an output once it is in the cache, or why it is refused.

    Raises:
        InputError: this machine does not see the judgments in the cache, or the output.
    """
    with _ONE:
        dataset = _dataset(kept)
    reader = OutputReader(dataset, kept.conventions, depth=0, compared=0, kept=kept)
    if not recorded and is_missing(output):
        raise InputError(f"{output.path}: file not found there; name a path that every worker sees, or a URL")
    try:
        read = reader.read_source(output, recorded, allow_no_overlap)
    except InputError as error:
        return str(error)
    return ReadElsewhere(read.files, read.parsed, read.remarks)


@lru_cache(_DATASETS)
def _dataset(kept: OutputStore) -> DatasetInput:
    """The judgments and excluded documents as the evaluation has put them into the cache."""
    try:
        dataset = kept.dataset()
    except CacheError as error:
        raise InputError(str(error)) from None
    if dataset is None:
        place = kept.store.place
        raise InputError(f"{place}: the output cache is not the evaluation's; use a place that every worker sees")
    return dataset
