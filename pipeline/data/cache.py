"""Cache of joined outputs by content, so that the same output is parsed once.

A folder per judgments and way of reading them holds `judgments.rows`, excluded pairs (`<key>.excluded`), and per output
its hits (`<bytes of the output>/<key>.hits`). A key is a digest of all that decides the file's contents. A file is one
line, `rankledger blocks <version> <SHA-256 of the rest>`, and Parquet whose metadata repeat the key. A damaged file or
another key is ignored. Anything may be deleted. In a folder, the time of a file is its last use.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import chain, pairwise
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs
from pyarrow import parquet

from rankledger.metrics.conventions import Ties
from rankledger.pipeline.data.files import first_line
from rankledger.pipeline.data.joined import Hits, JoinStats, hit_columns
from rankledger.pipeline.data.locate import open_filesystem
from rankledger.pipeline.data.rows import Chunk, Content, Rows, row_number
from rankledger.pipeline.support.arrow import concatenate, floats, integers, numpy_of
from rankledger.pipeline.support.atomic import partial_beside
from rankledger.pipeline.support.errors import InputError

_VERSION = 4  # raised when the layout changes, or what readers and the join make of the same bytes

_LISTS = ("judgment_row", "rank", "ties_above", "ties_below")
_DELTAS = dict.fromkeys(["n_retrieved", *(f"{name}.list.element" for name in _LISTS)], "DELTA_BINARY_PACKED")
_HITS = {"n_retrieved": pa.int64(), **dict.fromkeys(_LISTS, pa.large_list(pa.int64()))}
_ROWS = {"query": pa.int32(), "doc_id": pa.string(), "relevance": pa.float64()}
_QUALITY = {field.name for field in fields(JoinStats)}
_GROUP = 1 << 20  # rows, or hits, that are encoded and decoded at a time
_SPOOLED = 1 << 24  # bytes of a file that are in memory until all of it is encoded; more are on disk
_PIECE = 1 << 20  # bytes that are written at a time
_FAILURES = (OSError, pa.ArrowException)  # of a disk or an object store

_SUBTOPIC_ROWS = {**_ROWS, "subtopic": pa.string()}


class CacheError(Exception):
    """Unusable cache or damaged entry. The inputs are not affected."""


@dataclass(frozen=True)
class JudgmentsKey:
    """Key of judgments."""

    content: Content
    subtopics: bool
    duplicates: str


@dataclass(frozen=True)
class ExclusionsKey:
    """Key of the documents that are left out of rankings, or counted as seen."""

    pairs: Content | None
    exclude_self: bool
    seen: str = ""  # empty without interactions
    interactions: Content | None = None

    @property
    def left_out(self) -> ExclusionsKey | None:
        key = self if self.seen == "remove" else replace(self, seen="", interactions=None)
        return None if key == ExclusionsKey(None, exclude_self=False) else key


@dataclass(frozen=True)
class _ExcludedKey:
    judgments: JudgmentsKey
    exclusions: ExclusionsKey


@dataclass(frozen=True)
class HitsKey:
    """Key of the judged documents that an output retrieved, and their ranks."""

    judgments: JudgmentsKey
    content: Content
    order: str  # document ids where scores are equal, the rows, or the file's ranks
    score_precision: str
    exclusions: ExclusionsKey | None = None

    @classmethod
    def of(
        cls,
        judgments: JudgmentsKey,
        content: Content,
        ties: Ties,
        score_precision: str,
        exclusions: ExclusionsKey | None = None,
    ) -> HitsKey:
        """Return the key. Conventions of ties that no file can order count as `doc_id_desc`."""
        order = "doc_id_desc" if ties in ("optimistic", "pessimistic", "expected") else ties
        return cls(judgments, content, order, score_precision, exclusions)


_Key: TypeAlias = JudgmentsKey | _ExcludedKey | HitsKey


@dataclass(frozen=True)
class _Folder:
    path: Path

    def place(self, name: str) -> str:
        return str(self.path / name)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial_beside(path) as partial:
            with partial.open("wb") as file:
                file.writelines(pieces)
            partial.replace(path)

    def has_any(self, folder: str) -> bool:
        return any((self.path / folder).glob("*.hits"))

    def note_use(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.utime(self.path / name)

    def refuse_unwritable(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=self.path):
            pass


@dataclass(frozen=True)
class _ObjectStore:
    """Folder in an object store, where a file is visible once it is whole (in Azure empty until then)."""

    scheme: str
    filesystem: Any
    path: str

    def place(self, name: str) -> str:
        return f"{self.scheme}{self.path}/{name}"

    def read(self, name: str) -> bytes | None:
        try:
            with self.filesystem.open_input_file(f"{self.path}/{name}") as file:
                return bytes(file.read()) or None
        except FileNotFoundError:
            return None

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        with self.filesystem.open_output_stream(f"{self.path}/{name}") as file:
            for piece in pieces:
                file.write(piece)

    def has_any(self, folder: str) -> bool:
        selector = pa.fs.FileSelector(f"{self.path}/{folder}", allow_not_found=True)
        return any(info.extension == "hits" for info in self.filesystem.get_file_info(selector))

    def note_use(self, name: str) -> None:
        pass

    def refuse_unwritable(self) -> None:
        self.write("writable", [b""])


@dataclass(frozen=True)
class OutputCache:
    """Cache in a folder or at a URL, which need not exist yet. Any number of processes may share it."""

    place: str | Path

    @property
    def folder(self) -> Path | None:
        """Local folder of the cache, also for temporary files. None at a URL."""
        with contextlib.suppress(CacheError):
            files = self._files
            return files.path if isinstance(files, _Folder) else None
        return None

    @cached_property
    def _files(self) -> _Folder | _ObjectStore:
        try:
            scheme, filesystem, path = open_filesystem(str(self.place))
        except InputError as error:
            raise CacheError(str(error)) from None
        if isinstance(filesystem, pa.fs.LocalFileSystem):
            return _Folder(Path(path))
        return _ObjectStore(scheme, filesystem, path)

    def unused_since(self, moment: datetime) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")) if self.folder else ():
            with contextlib.suppress(OSError):  # another process may delete it, too
                if path.is_file() and path.stat().st_mtime < moment.timestamp():
                    yield path

    def refuse_unwritable(self) -> None:
        try:
            self._files.refuse_unwritable()
        except CacheError as error:
            raise InputError(str(error)) from None
        except _FAILURES as error:
            found = f"{self.place}: the output cache cannot be written ({first_line(error)})"
            raise InputError(f"{found}; make it writable, or name another one in execution.cache") from None

    def _unwritable(self, error: Exception) -> CacheError:
        return CacheError(f"{self.place}: cannot be written ({first_line(error)}); outputs will be parsed again")

    def may_hold(self, judgments: JudgmentsKey, size: int) -> bool:
        with contextlib.suppress(CacheError, *_FAILURES):
            return self._files.has_any(_folder_of(judgments, size))
        return False

    def read_hits(self, key: HitsKey) -> Hits | None:
        """Return the hits under a key, None if there are none. Raise CacheError for a damaged entry."""
        stored = self._read(key)
        return None if stored is None else _hits_of(stored)

    def write_hits(self, key: HitsKey, hits: Hits) -> None:
        self._write(key, {"quality": json.dumps(asdict(hits.quality))}, _HITS, _tables_of_hits(hits), _DELTAS)

    def read_judgments(self, key: JudgmentsKey) -> Rows | None:
        return self._read_rows(key)

    def read_excluded(self, judgments: JudgmentsKey, exclusions: ExclusionsKey) -> Rows | None:
        return self._read_rows(_ExcludedKey(judgments, exclusions))

    def _read_rows(self, key: JudgmentsKey | _ExcludedKey) -> Rows | None:
        stored = self._read(key)
        return None if stored is None else _rows_of(stored)

    def write_judgments(self, key: JudgmentsKey, rows: Rows) -> None:
        self._write_rows(key, rows)

    def write_excluded(self, judgments: JudgmentsKey, exclusions: ExclusionsKey, rows: Rows) -> None:
        self._write_rows(_ExcludedKey(judgments, exclusions), rows)

    def _write_rows(self, key: JudgmentsKey | _ExcludedKey, rows: Rows) -> None:
        with contextlib.suppress(CacheError):
            if self._read(key) is not None:
                return
        layout = _ROWS if rows.subtopics is None else _SUBTOPIC_ROWS
        self._write(key, {"query_ids": json.dumps(list(rows.query_ids))}, layout, _tables_of_rows(rows))

    def _read(self, key: _Key) -> _Stored | None:
        files, name = self._files, _name_of(key)
        place = files.place(name)
        try:
            data = files.read(name)
        except _FAILURES as error:
            raise CacheError(f"{place}: ignored ({first_line(error)})") from None
        if data is None:
            return None
        stored = _Stored.of(data, place)
        if stored.metadata.get(b"key") != _text(key).encode():
            raise CacheError(f"{place}: ignored, as it is of other inputs; it will be rewritten")
        files.note_use(name)
        return stored

    def _write(
        self,
        key: _Key,
        metadata: Mapping[str, str],
        layout: Mapping[str, pa.DataType],
        tables: Iterable[pa.Table],
        encodings: Mapping[str, str] | None = None,
    ) -> None:
        schema = pa.schema([*layout.items()], {**metadata, "key": _text(key)})
        try:
            with SpooledTemporaryFile(_SPOOLED) as body:
                hashed = _Hashed(body)
                with parquet.ParquetWriter(
                    hashed, schema, compression="zstd", use_dictionary=not encodings, column_encoding=encodings
                ) as writer:
                    for table in tables:
                        writer.write_table(table.cast(schema))
                body.seek(0)
                pieces = iter(partial(body.read, _PIECE), b"")
                self._files.write(_name_of(key), chain([_heading(hashed.sha256.hexdigest())], pieces))
        except _FAILURES as error:
            raise self._unwritable(error) from None


class _Hashed(io.RawIOBase):
    def __init__(self, file: IO[bytes]) -> None:
        self.sha256 = hashlib.sha256()
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.sha256.update(data)
        self._file.write(data)
        return len(memoryview(data))


@dataclass(frozen=True)
class _Stored:
    file: Any
    place: str

    @classmethod
    def of(cls, data: bytes, place: str) -> _Stored:
        end = data.find(b"\n") + 1
        body = memoryview(data)[end:]
        if data[:end] != _heading(hashlib.sha256(body).hexdigest()):
            raise _damaged(place)
        try:
            return cls(parquet.ParquetFile(pa.BufferReader(body)), place)
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise _damaged(place) from None

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        return self.file.schema_arrow.metadata or {}

    def described(self, name: bytes) -> Any:
        try:
            return json.loads(self.metadata[name])
        except (KeyError, ValueError, RecursionError):
            raise _damaged(self.place) from None

    def tables(self, *layouts: Mapping[str, pa.DataType]) -> Iterator[pa.Table]:
        schema = self.file.schema_arrow
        if {field.name: field.type for field in schema} not in layouts or len({*schema.names}) < len(schema):
            raise _damaged(self.place)
        for group in range(self.file.num_row_groups):
            try:
                table = self.file.read_row_group(group)
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                raise _damaged(self.place) from None
            arrays = [chunk for column in table.columns for chunk in column.chunks]
            values = [array.values for array in arrays if pa.types.is_large_list(array.type)]
            if any(array.null_count for array in (*arrays, *values)):
                raise _damaged(self.place)
            yield table


def _name_of(key: _Key) -> str:
    if isinstance(key, JudgmentsKey):
        return f"{_digest(key)}/judgments.rows"
    if isinstance(key, _ExcludedKey):
        return f"{_digest(key.judgments)}/{_digest(key)}.excluded"
    return f"{_folder_of(key.judgments, key.content.size)}/{_digest(key)}.hits"


def _folder_of(judgments: JudgmentsKey, size: int) -> str:
    return f"{_digest(judgments)}/{size}"


def _damaged(place: str) -> CacheError:
    return CacheError(f"{place}: ignored, as it is damaged or of another version; it will be rewritten")


def _heading(sha256: str) -> bytes:
    return f"rankledger blocks {_VERSION} {sha256}\n".encode()


def _text(key: _Key) -> str:
    return json.dumps({"version": _VERSION, **asdict(key)}, sort_keys=True)


def _digest(key: _Key) -> str:
    return hashlib.sha256(_text(key).encode()).hexdigest()[:32]


def _tables_of_hits(hits: Hits) -> Iterator[pa.Table]:
    steps = hits.ends // _GROUP
    cuts = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(steps)]
    for begin, end in pairwise(cuts):
        own = slice(int(hits.ends[begin] - hits.n_hits[begin]), int(hits.ends[end - 1]))
        ranks = hits.ranks[own].astype(np.int64)
        columns = (hits.judgment_rows[own], ranks, ranks - hits.tie_first[own], hits.tie_last[own] - ranks)
        offsets = integers(np.concatenate([[0], np.cumsum(hits.n_hits[begin:end])]))
        lists = [pa.LargeListArray.from_arrays(offsets, integers(values)) for values in columns]
        yield pa.Table.from_arrays([integers(hits.n_retrieved[begin:end]), *lists], names=[*_HITS])


def _hits_of(stored: _Stored) -> Hits:
    found = stored.described(b"quality")
    if not isinstance(found, dict) or {*found} != _QUALITY:
        raise _damaged(stored.place)
    parts = [_hits_in(table, stored.place) for table in stored.tables(_HITS)]
    if not parts:
        raise _damaged(stored.place)
    n_retrieved, n_hits, rows, rank, first, last = map(np.concatenate, zip(*parts, strict=True))
    return Hits(n_hits, rows, rank, first, last, n_retrieved, JoinStats(**found))


def _hits_in(table: pa.Table, place: str) -> tuple[npt.NDArray[Any], ...]:
    lists = [_combined(table, name) for name in _LISTS]
    sizes = [np.diff(numpy_of(column.offsets, np.int64)) for column in lists]
    if any(not np.array_equal(sizes[0], other) for other in sizes):
        raise _damaged(place)
    rows, ranks, above, below = (numpy_of(column.flatten(), np.int64) for column in lists)
    return (
        numpy_of(_combined(table, "n_retrieved"), np.int64),
        sizes[0],
        *hit_columns(rows, ranks, ranks - above, ranks + below),
    )


def _tables_of_rows(rows: Rows) -> Iterator[pa.Table]:
    begin = 0
    for chunk in rows.chunks:
        end = begin + len(chunk.values)
        codes = pa.py_buffer(np.ascontiguousarray(chunk.query_codes, dtype=np.int32))
        columns = [
            pa.Int32Array.from_buffers(pa.int32(), end - begin, [None, codes]),
            chunk.doc_ids,
            floats(chunk.values),
        ]
        if rows.subtopics is not None:
            columns.append(rows.subtopics[begin:end])
        yield pa.Table.from_arrays(columns, names=[*_SUBTOPIC_ROWS][: len(columns)])
        begin = end


def _rows_of(stored: _Stored) -> Rows:
    query_ids = stored.described(b"query_ids")
    tables = [*stored.tables(_ROWS, _SUBTOPIC_ROWS)]
    if not tables or not isinstance(query_ids, list):
        raise _damaged(stored.place)
    chunks = [
        Chunk(
            query_codes=numpy_of(_combined(table, "query"), np.int32),
            doc_ids=_combined(table, "doc_id"),
            values=numpy_of(_combined(table, "relevance"), np.float64),
        )
        for table in tables
    ]
    subtopics = [_combined(table, "subtopic") for table in tables if "subtopic" in table.column_names]
    return Rows(stored.place, (), query_ids, tuple(chunks), row_number, concatenate(subtopics) if subtopics else None)


def _combined(table: pa.Table, name: str) -> Any:
    return pa.concat_arrays(table.column(name).chunks)
