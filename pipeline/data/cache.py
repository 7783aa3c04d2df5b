"""Cache of joined outputs by content, so that the same output is parsed once.

A folder per judgments and way of reading them holds `judgments.rows`, excluded pairs (`<key>.excluded`), and per output
its hits (`<bytes of the output>/<key>.hits`). A key is a digest of all that decides the file's contents. A file is one
line, `rankledger blocks <version> <SHA-256 of the rest>`, and Parquet whose metadata repeat the key. A damaged file or
another key is ignored. Anything may be deleted. In a folder, the time of a file is its last use.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from functools import cached_property, partial
from itertools import chain, pairwise
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs
from pyarrow import parquet

from rankledger.metrics.conventions import Ties
from rankledger.pipeline.data.files import first_line
from rankledger.pipeline.data.joined import Hits, JoinStats, hit_columns
from rankledger.pipeline.data.locate import open_filesystem
from rankledger.pipeline.data.rows import Chunk, Rows, row_number
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

T = TypeVar("T")


class CacheError(Exception):
    """Unusable cache or damaged entry. The inputs are not affected."""


Key: TypeAlias = Mapping[str, Any]
"""All that decides the contents of an entry, as it is written in JSON."""


def judgments_key(content: Key, *, subtopics: bool = False, duplicates: str = "refuse") -> Key:
    """Return the key of judgments. `content` says which rows are read from their files."""
    return {"content": content, "subtopics": subtopics, "duplicates": duplicates}


def hits_key(judgments: Key, content: Key, ties: Ties, score_precision: str, exclusions: Key | None = None) -> Key:
    """Return the key of an output's hits. Conventions of ties that no file can order count as `doc_id_desc`."""
    return {
        "judgments": judgments,
        "content": content,
        "order": "doc_id_desc" if ties in ("optimistic", "pessimistic", "expected") else ties,
        "score_precision": score_precision,
        "exclusions": exclusions,
    }


@dataclass(frozen=True)
class OutputCache:
    """Cache in a folder or at a URL, which need not exist yet. Any number of processes may share it."""

    place: str | Path

    @cached_property
    def _filesystem(self) -> tuple[str, Any, str]:
        try:
            return open_filesystem(str(self.place))
        except InputError as error:
            raise CacheError(str(error)) from None

    @property
    def folder(self) -> Path | None:
        """Local folder of the cache, also for temporary files. None at a URL."""
        with contextlib.suppress(CacheError):
            _, filesystem, path = self._filesystem
            return Path(path) if isinstance(filesystem, pa.fs.LocalFileSystem) else None
        return None

    def unused_since(self, moment: datetime) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")) if self.folder else ():
            with contextlib.suppress(OSError):  # another process may delete it, too
                if path.is_file() and path.stat().st_mtime < moment.timestamp():
                    yield path

    def refuse_unwritable(self) -> None:
        try:
            if self.folder:
                self.folder.mkdir(parents=True, exist_ok=True)
                with TemporaryFile(dir=self.folder):
                    return
            self._write_file("writable", [b""])
        except CacheError as error:
            raise InputError(str(error)) from None
        except _FAILURES as error:
            problem = f"{self.place}: the output cache cannot be written ({first_line(error)})"
            raise InputError(f"{problem}; make it writable, or name another one in execution.cache") from None

    def may_hold(self, judgments: Key, size: int) -> bool:
        with contextlib.suppress(CacheError, *_FAILURES):
            _, filesystem, path = self._filesystem
            selector = pa.fs.FileSelector(f"{path}/{_digest(_text(judgments))}/{size}", allow_not_found=True)
            return any(info.extension == "hits" for info in filesystem.get_file_info(selector))
        return False

    def read_hits(self, key: Key) -> Hits | None:
        """Return the hits under a key, None if there are none. Raise CacheError for a damaged entry."""
        return self._read(*_hits_entry(key), _build_hits)

    def write_hits(self, key: Key, hits: Hits) -> None:
        metadata = {"quality": json.dumps(asdict(hits.quality))}
        self._write(*_hits_entry(key), metadata, _HITS, _tables_of_hits(hits), _DELTAS)

    def read_rows(self, judgments: Key, exclusions: Key | None = None) -> Rows | None:
        """Return the judgments, or the pairs that are excluded from them. None if there are none."""
        return self._read(*_rows_entry(judgments, exclusions), _build_rows)

    def write_rows(self, rows: Rows, judgments: Key, exclusions: Key | None = None) -> None:
        """Write the judgments, or the pairs that are excluded from them, if they are not there."""
        with contextlib.suppress(CacheError):
            if self.read_rows(judgments, exclusions) is not None:
                return
        layout = _ROWS if rows.subtopics is None else _SUBTOPIC_ROWS
        metadata = {"query_ids": json.dumps(list(rows.query_ids))}
        self._write(*_rows_entry(judgments, exclusions), metadata, layout, _tables_of_rows(rows))

    def _read(self, name: str, text: str, decode: Callable[[parquet.ParquetFile], T]) -> T | None:
        scheme, filesystem, path = self._filesystem
        place = f"{scheme}{path}/{name}"
        try:
            with filesystem.open_input_file(f"{path}/{name}") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        except _FAILURES as error:
            raise CacheError(f"{place}: ignored ({first_line(error)})") from None
        if not data and not self.folder:  # in Azure a file is empty until it is whole
            return None
        end = data.find(b"\n") + 1
        body = memoryview(data)[end:]
        try:
            if data[:end] != _heading(hashlib.sha256(body).hexdigest()):
                raise ValueError
            stored = parquet.ParquetFile(pa.BufferReader(body))
            if (stored.schema_arrow.metadata or {}).get(b"key") != text.encode():
                raise CacheError(f"{place}: ignored, as it is of other inputs; it will be rewritten")
            decoded = decode(stored)
        except (pa.ArrowException, OSError, LookupError, TypeError, ValueError, RecursionError):
            problem = "ignored, as it is damaged or of another version; it will be rewritten"
            raise CacheError(f"{place}: {problem}") from None
        if self.folder:
            with contextlib.suppress(OSError):
                os.utime(self.folder / name)
        return decoded

    def _write(
        self,
        name: str,
        text: str,
        metadata: Mapping[str, str],
        layout: Mapping[str, pa.DataType],
        tables: Iterable[pa.Table],
        encodings: Mapping[str, str] | None = None,
    ) -> None:
        schema = pa.schema([*layout.items()], {**metadata, "key": text})
        try:
            with SpooledTemporaryFile(_SPOOLED) as body:
                with parquet.ParquetWriter(
                    body, schema, compression="zstd", use_dictionary=not encodings, column_encoding=encodings
                ) as writer:
                    for table in tables:
                        writer.write_table(table.cast(schema))
                body.seek(0)
                sha256 = hashlib.file_digest(body, "sha256").hexdigest()
                body.seek(0)
                pieces = iter(partial(body.read, _PIECE), b"")
                self._write_file(name, chain([_heading(sha256)], pieces))
        except _FAILURES as error:
            problem = f"cannot be written ({first_line(error)}); outputs will be parsed again"
            raise CacheError(f"{self.place}: {problem}") from None

    def _write_file(self, name: str, pieces: Iterable[bytes]) -> None:
        if not self.folder:
            _, filesystem, path = self._filesystem
            with filesystem.open_output_stream(f"{path}/{name}") as file:
                for piece in pieces:
                    file.write(piece)
            return
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        with partial_beside(self.folder / name) as temporary:
            with temporary.open("wb") as file:
                file.writelines(pieces)
            temporary.replace(self.folder / name)


def _hits_entry(key: Key) -> tuple[str, str]:
    text, folder = _text(key), _digest(_text(key["judgments"]))
    return f"{folder}/{key['content']['size']}/{_digest(text)}.hits", text


def _rows_entry(judgments: Key, exclusions: Key | None) -> tuple[str, str]:
    text = _text(judgments)
    if exclusions is None:
        return f"{_digest(text)}/judgments.rows", text
    pair = json.dumps({"judgments": text, "exclusions": _text(exclusions)})
    return f"{_digest(text)}/{_digest(pair)}.excluded", pair


def _heading(sha256: str) -> bytes:
    return f"rankledger blocks {_VERSION} {sha256}\n".encode()


def _text(key: Key) -> str:
    return json.dumps({"version": _VERSION, **key}, sort_keys=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _read_tables(stored: parquet.ParquetFile, *layouts: Mapping[str, pa.DataType]) -> Iterator[pa.Table]:
    """Yield the row groups. Raise ValueError for another layout or nulls."""
    schema = stored.schema_arrow
    if {field.name: field.type for field in schema} not in layouts or len({*schema.names}) < len(schema):
        raise ValueError
    for group in range(stored.num_row_groups):
        table = stored.read_row_group(group)
        arrays = [chunk for column in table.columns for chunk in column.chunks]
        values = [array.values for array in arrays if pa.types.is_large_list(array.type)]
        if any(array.null_count for array in (*arrays, *values)):
            raise ValueError
        yield table


def _tables_of_hits(hits: Hits) -> Iterator[pa.Table]:
    steps = hits.ends // _GROUP
    cuts = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(steps)]
    for begin, end in pairwise(cuts):
        rows = slice(int(hits.ends[begin] - hits.n_hits[begin]), int(hits.ends[end - 1]))
        ranks = hits.ranks[rows].astype(np.int64)
        columns = (hits.judgment_rows[rows], ranks, ranks - hits.tie_first[rows], hits.tie_last[rows] - ranks)
        offsets = integers(np.concatenate([[0], np.cumsum(hits.n_hits[begin:end])]))
        lists = [pa.LargeListArray.from_arrays(offsets, integers(values)) for values in columns]
        yield pa.Table.from_arrays([integers(hits.n_retrieved[begin:end]), *lists], names=[*_HITS])


def _build_hits(stored: parquet.ParquetFile) -> Hits:
    quality = json.loads(stored.schema_arrow.metadata[b"quality"])
    if {*quality} != _QUALITY:
        raise ValueError
    parts = map(_read_hits, _read_tables(stored, _HITS))
    n_retrieved, n_hits, rows, rank, first, last = map(np.concatenate, zip(*parts, strict=True))
    return Hits(n_hits, rows, rank, first, last, n_retrieved, JoinStats(**quality))


def _read_hits(table: pa.Table) -> tuple[npt.NDArray[Any], ...]:
    lists = [_combine_column(table, name) for name in _LISTS]
    sizes = [np.diff(numpy_of(column.offsets, np.int64)) for column in lists]
    if any(not np.array_equal(sizes[0], other) for other in sizes):
        raise ValueError
    rows, ranks, above, below = (numpy_of(column.flatten(), np.int64) for column in lists)
    return (
        numpy_of(_combine_column(table, "n_retrieved"), np.int64),
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


def _build_rows(stored: parquet.ParquetFile) -> Rows:
    query_ids = json.loads(stored.schema_arrow.metadata[b"query_ids"])
    tables = [*_read_tables(stored, _ROWS, _SUBTOPIC_ROWS)]
    if not tables or not isinstance(query_ids, list):
        raise ValueError
    chunks = [
        Chunk(
            query_codes=numpy_of(_combine_column(table, "query"), np.int32),
            doc_ids=_combine_column(table, "doc_id"),
            values=numpy_of(_combine_column(table, "relevance"), np.float64),
        )
        for table in tables
    ]
    subtopics = [_combine_column(table, "subtopic") for table in tables if "subtopic" in table.column_names]
    return Rows("", (), query_ids, tuple(chunks), row_number, concatenate(subtopics) if subtopics else None)


def _combine_column(table: pa.Table, name: str) -> Any:
    return pa.concat_arrays(table.column(name).chunks)
