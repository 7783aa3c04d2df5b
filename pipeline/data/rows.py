"""Rows that were read from inputs, and their files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.metrics.catalogue import Sparse
from rankledger.pipeline.support.arrow import bools, concatenate, integers, numpy_of


@dataclass(frozen=True)
class InputFile:
    """File that was read."""

    path: str
    size: int  # bytes
    sha256: str | None = None  # hex digest of the stored bytes; None for a file above 4 GiB
    # of such a file, the SHA-256 of the hex digests of its ranges of 64 MiB, each followed by a line feed
    ranges_sha256: str | None = None

    @property
    def digest(self) -> str:
        """Hex digest, after `ranges_sha256:` if it is of ranges."""
        return self.sha256 or f"ranges_sha256:{self.ranges_sha256}"

    @property
    def recorded(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class ExternalMetrics:
    """Numbers of one model by name, and their file, or the reason why there are none."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    file: InputFile | None = None
    reason: str = ""


def short_digest(digest: str) -> str:
    """Return the first digits of an `InputFile.digest` and its kind, such as `sha256 481ce05876ac…`."""
    kind, _, digits = digest.rpartition(":")
    return f"{kind or 'sha256'} {digits[:12]}…"


def row_number(row: int) -> str:
    """Return the place of a row, counted from 0."""
    return f"row {row + 1}"


MANY_ROWS = 1 << 23
"""Rows of judgments beyond which their documents are on disk, and no index of all of them is made."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Parsed chunk of n rows of an input."""

    query_codes: npt.NDArray[np.int32]  # (n,) place of each row's query among the distinct query ids
    doc_ids: pa.StringArray
    values: npt.NDArray[np.floating]  # (n,) finite relevance, score, rating or prediction, in as few bits as hold it

    def recoded(self, codes: npt.NDArray[np.int32]) -> Chunk:
        return replace(self, query_codes=codes[self.query_codes])


@dataclass(frozen=True, eq=False)
class StoredChunk:
    """Rows whose queries and documents are read from a temporary file at each access."""

    values: npt.NDArray[np.floating]
    read_codes: Callable[[], npt.NDArray[np.int32]]  # reads a number for each row's query
    read_documents: Callable[[], pa.StringArray]
    codes: npt.NDArray[np.int32]  # code of each of these numbers

    @property
    def query_codes(self) -> npt.NDArray[np.int32]:
        return self.codes[self.read_codes()]

    @property
    def doc_ids(self) -> pa.StringArray:
        return self.read_documents()

    def recoded(self, codes: npt.NDArray[np.int32]) -> StoredChunk:
        return replace(self, codes=codes[self.codes])

    def __reduce__(self) -> tuple[type[Chunk], tuple[object, ...]]:
        return Chunk, (self.query_codes, self.doc_ids, self.values)


class Spill:
    """Temporary file of Arrow batches, which is deleted with the last function that reads from it."""

    def __init__(self, folder: Path | None) -> None:
        self._file = _create_file(folder)
        self._lock = Lock()

    def write(self, **columns: pa.Array) -> Callable[[], pa.RecordBatch]:
        batch = pa.RecordBatch.from_arrays([*columns.values()], [*columns])
        stored = batch.serialize()
        with self._lock:
            place = self._file.seek(0, 2)
            self._file.write(stored)
        return partial(self._read, place, len(stored), batch.schema)

    def keep(self, chunk: Chunk, n_queries: int) -> StoredChunk:
        numbers = pa.py_buffer(np.ascontiguousarray(chunk.query_codes))
        codes = self.write(query=pa.Int32Array.from_buffers(pa.int32(), len(chunk.values), [None, numbers]))
        documents = self.write(doc_id=chunk.doc_ids)
        return StoredChunk(
            chunk.values,
            lambda: numpy_of(codes().column(0), np.int32),
            lambda: documents().column(0),
            np.arange(n_queries, dtype=np.int32),
        )

    def _read(self, place: int, n_bytes: int, schema: pa.Schema) -> pa.RecordBatch:
        with self._lock:
            self._file.seek(place)
            stored = self._file.read(n_bytes)
        return pa.ipc.read_record_batch(pa.py_buffer(stored), schema)


def _create_file(folder: Path | None) -> Any:
    if folder is not None:
        with suppress(OSError):  # a folder may be read-only
            folder.mkdir(parents=True, exist_ok=True)
            return tempfile.TemporaryFile(dir=folder)
    return tempfile.TemporaryFile()


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one input: N of (query, document, value).

    A large output is processed chunk by chunk, with a thread per core, without copies. A whole column is made on first
    use.
    """

    path: str
    files: tuple[InputFile, ...]
    query_ids: Sequence[str]  # distinct ids, in the order in which they first appear
    chunks: tuple[Chunk | StoredChunk, ...]  # in the order of the files
    place: Callable[[int], str]  # returns where a row is, such as `line 3`
    subtopics: pa.StringArray | None = None  # (N,) subtopic that each row judges a document for
    remarks: tuple[str, ...] = ()  # layouts that were recognised in the files

    @cached_property
    def ends(self) -> tuple[int, ...]:
        return tuple(accumulate(len(chunk.values) for chunk in self.chunks))

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        counts = np.zeros(len(self.query_ids), dtype=np.int64)
        for chunk in self.chunks:
            counts += np.bincount(chunk.query_codes, minlength=len(counts))
        return counts

    @cached_property
    def query_codes(self) -> npt.NDArray[np.int32]:
        return np.concatenate([chunk.query_codes for chunk in self.chunks])

    @property
    def doc_ids(self) -> pa.StringArray:
        return concatenate([chunk.doc_ids for chunk in self.chunks])

    def take_doc_ids(self, rows: npt.NDArray[np.signedinteger]) -> pa.StringArray:
        """Return the documents of these rows, in any order, by chunk: Arrow would join all chunks."""
        order = np.argsort(rows)
        cuts = np.searchsorted(rows[order], (0, *self.ends))
        pieces = [
            chunk.doc_ids.take(integers(rows[order[begin:end]] - (after - len(chunk.values))))
            for chunk, after, begin, end in zip(self.chunks, self.ends, cuts[:-1], cuts[1:], strict=True)
            if end > begin
        ]
        places = np.empty(len(rows), dtype=np.int64)
        places[order] = np.arange(len(rows))
        return concatenate(pieces).take(integers(places))

    @cached_property
    def values(self) -> npt.NDArray[np.floating]:
        return np.concatenate([chunk.values for chunk in self.chunks])

    def take(self, rows: npt.NDArray[np.int64]) -> Rows:
        codes = self.query_codes[rows]
        kept = np.bincount(codes, minlength=len(self.query_ids)) > 0
        numbers = (np.cumsum(kept) - 1).astype(np.int32)
        return Rows(
            path=self.path,
            files=self.files,
            query_ids=[self.query_ids[code] for code in np.flatnonzero(kept).tolist()],
            chunks=(Chunk(numbers[codes], self.take_doc_ids(rows), self.values[rows]),),
            place=lambda row: self.place(int(rows[row])),
            subtopics=None if self.subtopics is None else self.subtopics.take(integers(rows)),
        )

    def without(self, rows: npt.NDArray[np.int64]) -> Rows:
        kept = np.ones(self.ends[-1], dtype=bool)
        kept[rows] = False
        numbers = np.flatnonzero(kept)
        chunks = [
            Chunk(chunk.query_codes[is_kept], chunk.doc_ids.filter(bools(is_kept)), chunk.values[is_kept])
            for chunk, after in zip(self.chunks, self.ends, strict=True)
            for is_kept in [kept[after - len(chunk.values) : after]]
            if is_kept.any()
        ]
        subtopics = None if self.subtopics is None else self.subtopics.filter(bools(kept))
        return replace(self, chunks=tuple(chunks), place=lambda row: self.place(int(numbers[row])), subtopics=subtopics)

    def between(self, begin: int, end: int) -> Rows:
        """Return the rows of a range, not copied, with the queries of all rows."""
        chunks = [
            Chunk(chunk.query_codes[part], chunk.doc_ids[part], chunk.values[part])
            for chunk, after in zip(self.chunks, self.ends, strict=True)
            for first in [after - len(chunk.values)]
            for part in [slice(max(begin - first, 0), max(end - first, 0))]
            if begin < after and first < end
        ]
        subtopics = None if self.subtopics is None else self.subtopics[begin:end]
        return replace(self, chunks=tuple(chunks), place=lambda row: self.place(begin + row), subtopics=subtopics)


def merge_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, which may share queries. The rest is the first part's."""
    if len(parts) == 1:
        return parts[0]
    codes: dict[str, int] = {}
    chunks: list[Chunk | StoredChunk] = []
    for rows in parts:
        new_codes = np.array([codes.setdefault(query_id, len(codes)) for query_id in rows.query_ids], dtype=np.int32)
        chunks += [chunk.recoded(new_codes) for chunk in rows.chunks]
    subtopics = [rows.subtopics for rows in parts if rows.subtopics is not None]
    if subtopics:
        return replace(parts[0], query_ids=list(codes), chunks=tuple(chunks), subtopics=concatenate(subtopics))
    return replace(parts[0], query_ids=list(codes), chunks=tuple(chunks))


@dataclass(frozen=True, eq=False)
class Ids:
    """Ids of a queries table or a catalog, each once."""

    path: str
    files: tuple[InputFile, ...]
    ids: pa.StringArray
    features: Mapping[str, Sparse] = field(default_factory=dict)  # features of the documents of a catalogue, by column
    # texts of the queries, by column; None for an empty cell
    texts: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    place: Callable[[int], str] = row_number  # returns where a row is, such as `line 3`
    remarks: tuple[str, ...] = ()  # layouts that were recognised in the files
