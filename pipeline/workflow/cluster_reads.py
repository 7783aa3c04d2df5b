"""Outputs that the workers of a Dask cluster read: they leave them in the output cache, and say which files they were.

A worker takes the judgments and excluded documents from the cache, too, where the evaluation has put them: by their
digests, so that they are the same. Only paths, places, digests and remarks pass through the scheduler. What the cache
cannot hold is not read here.

A large output is read in ranges by as many workers as there are. What the join finds in each goes through the cache;
the caller finishes the queries that straddle ranges, and puts the output into the cache as one process would. Where
rows are scattered or anything is wrong, one worker reads the output as a whole, and says what one process would.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.config.planned import Task
from rankledger.pipeline.data.cache import CacheError, OutputCache, RangesKey
from rankledger.pipeline.data.dataset import DatasetInput, is_missing, row_order, size_of
from rankledger.pipeline.data.file_ranges import FileRange, RangeDigests, RangeReader, content_of_range, files_of
from rankledger.pipeline.data.judgments import Judgments, PairIndex
from rankledger.pipeline.data.parts import PART_ROWS
from rankledger.pipeline.data.range_tables import ranges_in, table_of_ranges
from rankledger.pipeline.data.rankings import Depths, JoinedRange, Problem, RankingJoin, join_range
from rankledger.pipeline.data.readers import layout_remarks, take_ranking
from rankledger.pipeline.support.cluster import Cluster, ClusterError, Killed
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.types.inputs import InputFile, Rows, Source
from rankledger.pipeline.types.joined import OutputKey
from rankledger.pipeline.types.results import Failure, Record
from rankledger.pipeline.workflow.outputs import OutputReader, OutputStore, ReadElsewhere, whole_source_of
from rankledger.pipeline.workflow.workspace import recorded_output

T = TypeVar("T")

_DATASETS = 4  # whose judgments a worker keeps in memory
_ONE = threading.Lock()  # the threads of a worker read judgments once
_FIRST = 2  # ranges of an output, by which most scattered rows are noticed before all are read
_ROW = 4  # bytes of a row, at least, however it is stored: what has fewer bytes than a range has rows is one

_Call: TypeAlias = tuple[Any, ...]
"""A function of a module, and its arguments."""

_Calling: TypeAlias = Generator[Sequence[_Call], Sequence[Any], T]
"""Says what is to be called, is sent the results, and so on; what comes of it in the end."""


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
    shared = {name: _shared(reader) for name, reader in readers.items() if reader.kept and reader.suffices}
    chosen = [task for task in tasks if task.dataset in shared]
    if not chosen:
        return {}, ()
    outputs = [
        _Output(shared[task.dataset], whole_source_of(task), files, task.output.allow_no_overlap or bool(files))
        for task in chosen
        for files in [recorded_output(record, task) if record else ()]
    ]
    rounds = _Rounds(cluster)
    found = rounds.run([output.reading() for output in outputs])
    here = {task.key: _as_here(task, read) for task, read in zip(chosen, found, strict=True)}
    return here, tuple(_remarks(cluster, found, rounds.n_lost))


class _Rounds:
    """What is read side by side: the next calls of all outputs are a round.

    Attributes:
        n_lost: workers that left the cluster meanwhile.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._n_done = 0
        self.n_lost = 0

    def run(self, readings: Sequence[_Calling[T]]) -> list[T]:
        """What comes of each.

        Raises:
            ClusterError: the cluster cannot do the work.
        """
        ended: dict[int, T] = {}
        asked = {place: next(reading) for place, reading in enumerate(readings)}
        while asked:
            results = self._results([call for calls in asked.values() for call in calls])
            answered, asked = asked, {}
            for place, calls in answered.items():
                try:
                    asked[place] = readings[place].send([next(results) for _ in calls])
                except StopIteration as stop:
                    ended[place] = stop.value
        return [ended[place] for place in range(len(readings))]

    def _results(self, calls: Sequence[_Call]) -> Iterator[Any]:
        if not calls:
            return iter(())
        unit = "ranges" if self._n_done else "outputs"
        try:
            found = self._cluster.run("Reading on the cluster", operator.call, calls, unit=unit)
        except ClusterError as error:
            if not (error.begun or self._n_done):
                raise
            later = "what was read is in the output cache, and the same command goes on from there"
            raise ClusterError(f"{error}; {later}") from None
        self._n_done += len(calls)
        self.n_lost += found.n_lost
        return iter(found.results)


@dataclass(frozen=True)
class _Output:
    """An output that the cluster reads.

    Attributes:
        reader: reads outputs on its dataset; its store is named as workers see it.
        source: where it is, likewise.
        recorded: its files, used in its place if it is gone.
        allow_no_overlap: whether it may have no query or document of the dataset.
    """

    reader: OutputReader
    source: Source
    recorded: Sequence[InputFile]
    allow_no_overlap: bool

    @property
    def _kept(self) -> OutputStore:
        assert self.reader.kept is not None, "what the cluster reads"
        return self.reader.kept

    def reading(self) -> _Calling[ReadElsewhere | str]:
        """What is known of it once it is in the cache, or why it is refused."""
        whole = (_read, self._kept, self.source, self.recorded, self.allow_no_overlap)
        begin = (_begin, self._kept, self.source, self.allow_no_overlap, PART_ROWS)
        (found,) = yield [whole if self.recorded else begin]
        if isinstance(found, _Ranges):
            if len(found.ranges) > 1:
                read = yield from self._reading_ranges(found)
                if read is not None:
                    return read
            else:
                yield []  # or the first ranges of other outputs would be waited for until it is read
            (found,) = yield [whole]
        return _deadly(self.source.path, "it", found) if isinstance(found, Killed) else found

    def _reading_ranges(self, cut: _Ranges) -> _Calling[ReadElsewhere | str | None]:
        """The same, of an output in ranges; None if one worker must read it as a whole."""
        dataset = self.reader.dataset
        join = RankingJoin(dataset.judgments, self._kept.conventions, Depths(), dataset.excluded)
        digests: list[RangeDigests] = []
        paths: dict[str, str] = {}  # of each remark on a layout, the first file that it is about
        n_rows = dict.fromkeys((each.path for each in cut.ranges), 0)
        for some in (cut.ranges[:_FIRST], cut.ranges[_FIRST:]):
            found = yield from self._calling(some, cut.listing)
            for each, read in zip(some, found, strict=True):
                if isinstance(read, Killed):
                    return _deadly(each.path, each.part, read)
                if isinstance(read, str) or (joined := _joined(self._kept.store, read.key)) is None:
                    return None
                for n_own, range_ in joined:
                    join.add_range(sum(n_rows.values()), range_)
                    n_rows[each.path] += n_own
                paths.setdefault(read.remark, each.path)
                digests.append(read.digests)
            if join.is_scattered:
                return None
        return self._kept_whole(join, cut.ranges, digests, layout_remarks(paths)) if all(n_rows.values()) else None

    def _calling(self, ranges: Sequence[FileRange], listing: str) -> _Calling[list[_RangeRead | str | Killed]]:
        """What workers say of ranges. Those that are only hashed are called first: they are whole files."""
        order = sorted(range(len(ranges)), key=lambda place: ranges[place].is_parsed)
        found = yield [(_read_range, self._kept, self.source, ranges[place], PART_ROWS, listing) for place in order]
        by_place = dict(zip(order, found, strict=True))
        return [by_place[place] for place in range(len(ranges))]

    def _kept_whole(
        self, join: RankingJoin, ranges: Sequence[FileRange], digests: Sequence[RangeDigests], remarks: Sequence[str]
    ) -> ReadElsewhere | None:
        try:
            files = files_of(ranges, digests)
            if not join.finish():
                return None
            joined = join.joined(self.source.path)
        except InputError:  # which does not say where: whoever reads all of it does
            return None
        if joined.hits is None or not joined.hits.ranks.size:
            return None
        remarks = (*remarks, *self.reader.keep(self.source, files, joined))
        return ReadElsewhere(files, parsed=True, remarks=remarks)


def _joined(store: OutputCache, key: RangesKey | None) -> list[tuple[int, JoinedRange]] | None:
    """What the join found in a range, by what is in the cache; None if that is lost."""
    if key is None:
        return []
    try:
        table = store.read_ranges(key)
    except CacheError:
        return None
    return None if table is None else [*ranges_in(table)]


def _deadly(path: str, what: str, killed: Killed) -> str:
    reason = f"{path}: reading {what} ended {killed.times} worker processes, the last at {killed.last}"
    return f"{reason}; check their logs and their memory"


def _remarks(cluster: Cluster, found: Sequence[ReadElsewhere | str], n_lost: int) -> Iterator[str]:
    read = [each for each in found if isinstance(each, ReadElsewhere)]
    n_parsed = sum(each.parsed for each in read)
    n_cached = len(read) - n_parsed
    yield f"outputs read on the Dask cluster {cluster.scheduler}: {n_parsed}; found in the output cache: {n_cached}"
    if n_lost:
        yield f"workers lost while outputs were read: {n_lost}; what they had begun was read again by others"


def _shared(reader: OutputReader) -> OutputReader:
    assert reader.kept is not None, "what the cluster reads"
    store = reader.kept.store
    try:
        store.refuse_unwritable()
    except CacheError as error:
        raise InputError(str(error)) from None
    place = store.place if store.folder is None else store.folder.absolute()
    return replace(reader, kept=replace(reader.kept, store=OutputCache(place)))


def _as_here(task: Task, found: ReadElsewhere | str) -> ReadElsewhere | Failure:
    """The same with paths as this process names them: from its working directory, if they are below that."""
    folder = str(Path.cwd()).rstrip(os.sep) + os.sep

    def named(text: str) -> str:
        return text.removeprefix(folder) if folder == os.sep else text.replace(folder, "")

    if isinstance(found, str):
        return Failure(task.dataset, task.model, named(found), task.replicate)
    files = tuple(replace(file, path=named(file.path)) for file in found.files)
    return replace(found, files=files, remarks=tuple(map(named, found.remarks)))


# What runs on a worker.


@dataclass(frozen=True)
class _Ranges:
    """The ranges in which an output can be read, one if it cannot be cut, and what tells its files."""

    ranges: Sequence[FileRange] = ()
    listing: str = ""


@dataclass(frozen=True)
class _RangeRead:
    """What was hashed of a range, and what the join found in it.

    Attributes:
        digests: what was hashed.
        key: where in the cache is what the join found; None if there was nothing to join.
        remark: what the layout of its file was taken for, if it had to be recognised.
    """

    digests: RangeDigests
    key: RangesKey | None = None
    remark: str = ""


def _begin(kept: OutputStore, output: Source, allow_no_overlap: bool, n_rows: int) -> ReadElsewhere | str | _Ranges:
    """As `_read`, of an output that is in the cache or small; else its ranges.

    Raises:
        InputError: as of `_read`.
    """
    reader = _reader(kept, output)
    try:
        is_small = size_of(output) < n_rows * _ROW
        files = () if is_small else reader.described(output)
        hits, remarks = reader.find(output, files)
    except InputError as error:
        return str(error)
    if is_small or remarks:
        return _read(kept, output, (), allow_no_overlap)
    if hits is not None and (hits.ranks.size or allow_no_overlap):
        return ReadElsewhere(files, parsed=False, remarks=())
    ranges = RangeReader(output, row_order(kept.conventions), n_rows)
    try:
        listing = ranges.listing()  # before: a file that comes meanwhile is in both or noticed
        return _Ranges(ranges.ranges(), listing)
    except InputError:
        return _Ranges()


def _read_range(kept: OutputStore, output: Source, wanted: FileRange, n_rows: int, listing: str) -> _RangeRead | str:
    """What was hashed of a range, once what the join finds in it is in the cache; or why it cannot be joined by itself.

    Raises:
        InputError: as of `_read`.
    """
    dataset = _reader(kept, output).dataset
    join = partial(_join, dataset.judgments, dataset.excluded, kept.conventions)
    ranges = RangeReader(output, row_order(kept.conventions), n_rows)
    try:
        joined = _joined_whole if wanted.is_whole else _joined_part
        read = joined(kept, output, ranges, wanted, join)
        return read if ranges.listing() == listing else f"{output.path}: its files changed while it was read"
    except (InputError, CacheError) as error:
        return str(error)


def _joined_part(
    kept: OutputStore, output: Source, ranges: RangeReader, wanted: FileRange, join: Callable[[Rows], JoinedRange]
) -> _RangeRead:
    """Its bytes are hashed before they are parsed: what is in the cache is not parsed again."""
    part, digests = ranges.open(wanted)
    if part is None:
        return _RangeRead(digests)
    key = RangesKey(kept.key(output, [content_of_range(wanted, digests)]))
    with suppress(CacheError):
        if kept.store.read_ranges(key) is not None:
            return _RangeRead(digests, key, part.remark)
    n_rows, found = take_ranking(part, ranges.by, join)
    if found is None:
        return _RangeRead(digests, remark=part.remark)
    kept.store.write_ranges(key, table_of_ranges([(n_rows, found)]))
    return _RangeRead(digests, key, part.remark)


def _joined_whole(
    kept: OutputStore, output: Source, ranges: RangeReader, wanted: FileRange, join: Callable[[Rows], JoinedRange]
) -> _RangeRead:
    found, remark, digests = ranges.read(wanted, join)
    if not found:
        return _RangeRead(digests)
    key = RangesKey(kept.key(output, [content_of_range(wanted, digests)]))
    kept.store.write_ranges(key, table_of_ranges(found))
    return _RangeRead(digests, key, remark)


def _join(judgments: Judgments, excluded: PairIndex | None, conventions: Conventions, rows: Rows) -> JoinedRange:
    """What the join finds in a range that is not all of an output.

    Raises:
        InputError: a row cannot be joined.
    """
    found = join_range(judgments, excluded, conventions, Depths(), rows, is_whole=False)
    if isinstance(found.within, Problem):
        raise InputError(f"{rows.path}: a row cannot be joined")
    return found


def _read(
    kept: OutputStore, output: Source, recorded: Sequence[InputFile], allow_no_overlap: bool
) -> ReadElsewhere | str:
    """What is known of an output once it is in the cache, or why it is refused.

    Raises:
        InputError: this machine does not see the judgments in the cache, or the output.
    """
    reader = _reader(kept, output, recorded)
    try:
        read = reader.read_source(output, recorded, allow_no_overlap)
    except InputError as error:
        return str(error)
    return ReadElsewhere(read.files, read.parsed, read.remarks)


def _reader(kept: OutputStore, output: Source, recorded: Sequence[InputFile] = ()) -> OutputReader:
    with _ONE:
        dataset = _dataset(kept)
    if not recorded and is_missing(output):
        raise InputError(f"{output.path}: file not found there; name a path that every worker sees, or a URL")
    return OutputReader(dataset, kept.conventions, depth=0, compared=0, kept=kept)


@lru_cache(_DATASETS)
def _dataset(kept: OutputStore) -> DatasetInput:
    try:
        dataset = kept.dataset()
    except CacheError as error:
        raise InputError(str(error)) from None
    if dataset is None:
        place = kept.store.place
        raise InputError(f"{place}: the output cache is not the evaluation's; use a place that every worker sees")
    return dataset
