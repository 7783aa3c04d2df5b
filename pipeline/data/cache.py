"""The output cache: what joins found, kept by content, so that the same output is parsed once.

`<runs>/cache/` holds a folder per judgments and way of reading them. In it are the judgments, `judgments.rows`, and
per model output the judged documents that it retrieved: `<bytes of the output>-<its key>.hits`. A key is a digest of
everything that decides what is in the file: the digests of the input's files, how they are read, how ties are broken.

Each file is one line, `rankledger blocks <version> <SHA-256 of the rest>`, and Parquet whose metadata repeat the key in
full. What is damaged, cut short or another's is never believed. Anything may be deleted at any time; the time of a
file is that of its last use, by which old ones are known.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from rankledger.metrics.conventions import Ties
from rankledger.pipeline.support.arrow import floats, integers, numpy_of
from rankledger.pipeline.support.atomic import partial_beside
from rankledger.pipeline.types.inputs import Chunk, Content, Rows
from rankledger.pipeline.types.joined import Hits, Quality

__all__ = ["CacheError", "HitsKey", "JudgmentsKey", "OutputCache"]

_VERSION = 1  # raised when the layout changes, or what readers and the join make of the same bytes

_LISTS = ("judgment_row", "rank", "ties_above", "ties_below")
_DELTAS = dict.fromkeys(["n_retrieved", *(f"{name}.list.element" for name in _LISTS)], "DELTA_BINARY_PACKED")
_HITS = {"n_retrieved": pa.int64(), **dict.fromkeys(_LISTS, pa.large_list(pa.int64()))}
_ROWS = {"query": pa.int64(), "doc_id": pa.string(), "relevance": pa.float64()}
_QUALITY = {field.name for field in fields(Quality)}
_LAYOUTS = (_HITS, _ROWS, {**_ROWS, "subtopic": pa.string()})


class CacheError(Exception):
    """A file of the store is not to be believed, or cannot be written: one line. The inputs themselves are as good."""


@dataclass(frozen=True)
class JudgmentsKey:
    """All that decides which judgments are read.

    Attributes:
        content: the files, and how they are read.
        subtopics: whether they are of subtopics.
        duplicates: what becomes of a pair that is judged twice.
    """

    content: Content
    subtopics: bool
    duplicates: str


@dataclass(frozen=True)
class HitsKey:
    """All that decides which judged documents an output retrieved, and at which ranks.

    Attributes:
        judgments: the judgments.
        content: the output's files, and how they are read.
        order: what orders documents: their ids where scores are equal, the rows, or the file's ranks.
        score_precision: what scores are rounded to before they are compared.
    """

    judgments: JudgmentsKey
    content: Content
    order: str
    score_precision: str

    @classmethod
    def of(cls, judgments: JudgmentsKey, content: Content, ties: Ties, score_precision: str) -> HitsKey:
        """The key under a convention of ties; those that no file can order are read as `doc_id_desc`."""
        order = "doc_id_desc" if ties in ("optimistic", "pessimistic", "expected") else ties
        return cls(judgments, content, order, score_precision)


@dataclass(frozen=True)
class OutputCache:
    """The store in a folder, which need not exist yet. Any number of processes may use it at a time.

    Attributes:
        folder: the folder, `<runs>/cache`.
    """

    folder: Path

    def unused_since(self, moment: datetime) -> Iterator[Path]:
        """The files that were last written or read before a moment, and what writers left that were cut short."""
        for path in sorted(self.folder.glob("*/*")):
            with contextlib.suppress(OSError):  # another process may delete it, too
                if path.is_file() and path.stat().st_mtime < moment.timestamp():
                    yield path

    def refuse_unwritable(self) -> None:
        """Check that entries can be written.

        Raises:
            CacheError: they cannot.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> CacheError:
        reason = error.strerror or error
        return CacheError(f"{self.folder}: cannot be written ({reason}); outputs will be parsed again")

    def may_hold(self, judgments: JudgmentsKey, size: int) -> bool:
        """Whether there is an entry for an output of so many bytes: if not, its digest need not be known."""
        return any(self._folder(judgments).glob(f"{size}-*.hits"))

    def read_hits(self, key: HitsKey) -> Hits | None:
        """What was kept under that key; None if there is nothing.

        Raises:
            CacheError: it is damaged.
        """
        path = self._hits(key)
        table = _read(path, key)
        return None if table is None else _hits_of(table, path)

    def write_hits(self, key: HitsKey, hits: Hits) -> None:
        """Keep what a join found.

        Raises:
            CacheError: it cannot be written.
        """
        self._write(self._hits(key), key, _table_of_hits(hits), _DELTAS)

    def read_judgments(self, key: JudgmentsKey) -> Rows | None:
        """The judgments that were kept under that key; None if there are none.

        Raises:
            CacheError: they are damaged.
        """
        path = self._judgments(key)
        table = _read(path, key)
        return None if table is None else _rows_of(table, path)

    def write_judgments(self, key: JudgmentsKey, rows: Rows) -> None:
        """Keep judgments, unless they are there.

        Raises:
            CacheError: they cannot be written.
        """
        path = self._judgments(key)
        with contextlib.suppress(CacheError):
            if _read(path, key) is not None:
                return
        self._write(path, key, _table_of_rows(rows))

    def _folder(self, key: JudgmentsKey) -> Path:
        return self.folder / _digest(key)

    def _judgments(self, key: JudgmentsKey) -> Path:
        return self._folder(key) / "judgments.rows"

    def _hits(self, key: HitsKey) -> Path:
        return self._folder(key.judgments) / f"{key.content.size}-{_digest(key)}.hits"

    def _write(
        self, path: Path, key: JudgmentsKey | HitsKey, table: pa.Table, encodings: Mapping[str, str] | None = None
    ) -> None:
        """Write a table whole, or nothing; columns without an encoding of their own are dictionary-coded."""
        sink = pa.BufferOutputStream()
        described = table.replace_schema_metadata({**(table.schema.metadata or {}), "key": _text(key)})
        parquet.write_table(
            described, sink, compression="zstd", use_dictionary=not encodings, column_encoding=encodings
        )
        body = sink.getvalue().to_pybytes()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial_beside(path) as partial:
                partial.write_bytes(_heading(body) + body)
                partial.replace(path)
        except OSError as error:
            raise self._unwritable(error) from None


def _read(path: Path, key: JudgmentsKey | HitsKey) -> pa.Table | None:
    """The table that was kept; None if there is none. What is damaged or of another key is refused."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CacheError(f"{path}: ignored ({error.strerror or error})") from None
    heading, _, body = data.partition(b"\n")
    table = _parsed(body) if heading + b"\n" == _heading(body) else None
    if table is None:
        raise _damaged(path)
    if (table.schema.metadata or {}).get(b"key") != _text(key).encode():
        raise CacheError(f"{path}: ignored, as it is of other inputs; it will be rewritten")
    with contextlib.suppress(OSError):  # a store that may only be read is as good
        os.utime(path)
    return table


def _parsed(body: bytes) -> pa.Table | None:
    """The table of a file; None where it is laid out as none of ours is, whoever wrote it."""
    try:
        table = parquet.ParquetFile(pa.BufferReader(body)).read()
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None
    types = {field.name: field.type for field in table.schema}
    arrays = [chunk for column in table.columns for chunk in column.chunks]
    values = [array.values for array in arrays if pa.types.is_large_list(array.type)]
    whole = arrays and not any(array.null_count for array in (*arrays, *values))
    return table if whole and len(types) == table.num_columns and types in _LAYOUTS else None


def _described(table: pa.Table, name: bytes, path: Path) -> Any:
    """What the metadata of a table hold under a name, as JSON."""
    try:
        return json.loads(table.schema.metadata[name])
    except (KeyError, ValueError, RecursionError):
        raise _damaged(path) from None


def _damaged(path: Path) -> CacheError:
    return CacheError(f"{path}: ignored, as it is damaged or of another version; it will be rewritten")


def _heading(body: bytes) -> bytes:
    return f"rankledger blocks {_VERSION} {hashlib.sha256(body).hexdigest()}\n".encode()


def _text(key: JudgmentsKey | HitsKey) -> str:
    return json.dumps({"version": _VERSION, **asdict(key)}, sort_keys=True)


def _digest(key: JudgmentsKey | HitsKey) -> str:
    return hashlib.sha256(_text(key).encode()).hexdigest()[:32]


def _table_of_hits(hits: Hits) -> pa.Table:
    """A row per query: the documents retrieved, and a list per column of hits; ranks are next to their ties'."""
    n_hits = np.bincount(hits.queries, minlength=len(hits.n_retrieved))
    offsets = integers(np.cumsum([0, *n_hits.tolist()]))
    columns = (hits.judgment_rows, hits.ranks, hits.ranks - hits.tie_first, hits.tie_last - hits.ranks)
    lists = [pa.LargeListArray.from_arrays(offsets, integers(values)) for values in columns]
    table = pa.Table.from_arrays([integers(hits.n_retrieved), *lists], names=["n_retrieved", *_LISTS])
    return table.replace_schema_metadata({"quality": json.dumps(asdict(hits.quality))})


def _hits_of(table: pa.Table, path: Path) -> Hits:
    found = _described(table, b"quality", path)
    if {*table.column_names} != {*_HITS} or not isinstance(found, dict) or {*found} != _QUALITY:
        raise _damaged(path)
    lists = [_combined(table, name) for name in _LISTS]
    sizes = [np.diff(numpy_of(column.offsets, np.int64)) for column in lists]
    if any(not np.array_equal(sizes[0], other) for other in sizes):
        raise _damaged(path)
    n_hits = sizes[0]
    rows, ranks, above, below = (numpy_of(column.flatten(), np.int64) for column in lists)
    return Hits(
        queries=np.repeat(np.arange(len(n_hits)), n_hits),
        judgment_rows=rows,
        ranks=ranks,
        tie_first=ranks - above,
        tie_last=ranks + below,
        n_retrieved=_integers_of(table, "n_retrieved"),
        quality=Quality(**found),
    )


def _table_of_rows(rows: Rows) -> pa.Table:
    """A row per judgment; queries by their place among the distinct ids, which are metadata."""
    columns: dict[str, Any] = {
        "query": integers(rows.query_codes.astype(np.int64)),
        "doc_id": rows.doc_ids,
        "relevance": floats(rows.values),
    }
    if rows.subtopics is not None:
        columns["subtopic"] = rows.subtopics
    table = pa.Table.from_arrays(list(columns.values()), names=list(columns))
    return table.replace_schema_metadata({"query_ids": json.dumps(list(rows.query_ids))})


def _rows_of(table: pa.Table, path: Path) -> Rows:
    query_ids = _described(table, b"query_ids", path)
    if "query" not in table.column_names or not isinstance(query_ids, list):
        raise _damaged(path)
    return Rows(
        path=str(path),
        files=(),
        query_ids=query_ids,
        chunks=(
            Chunk(
                query_codes=_integers_of(table, "query").astype(np.int32),
                doc_ids=_combined(table, "doc_id"),
                values=numpy_of(_combined(table, "relevance"), np.float64),
            ),
        ),
        place=lambda row: f"row {row + 1}",
        subtopics=_combined(table, "subtopic") if "subtopic" in table.column_names else None,
    )


def _combined(table: pa.Table, name: str) -> Any:
    return pa.concat_arrays(table.column(name).chunks)


def _integers_of(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    return numpy_of(_combined(table, name), np.int64)
