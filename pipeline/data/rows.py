"""Inputs: the formats that a config may name, where files are, and the rows that were read of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rankledger.metrics.catalogue import Sparse

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class InputFile:
    """A file that was read.

    Attributes:
        path: where it is.
        size: bytes.
        sha256: hex digest of its bytes as they are stored, compressed or not; None for a file above 4 GiB.
        ranges_sha256: of such a file, the SHA-256 of the hex digests of its ranges of 64 MiB, the last of which may be
            shorter, each followed by a line feed. Ranges are hashed in any order and at once. None for other files.
    """

    path: str
    size: int
    sha256: str | None = None
    ranges_sha256: str | None = None

    @property
    def digest(self) -> str:
        """What tells its bytes from any others: the hex digest, behind `ranges_sha256:` if it is that of ranges."""
        return self.sha256 or f"ranges_sha256:{self.ranges_sha256}"

    @property
    def recorded(self) -> dict[str, Any]:
        """It as a manifest has it, with the one digest that it has."""
        return {name: value for name, value in vars(self).items() if value is not None}


def short_digest(digest: str) -> str:
    """The first digits of an `InputFile.digest`, and what it is: such as `sha256 481ce05876ac…`."""
    kind, _, digits = digest.rpartition(":")
    return f"{kind or 'sha256'} {digits[:12]}…"


@dataclass(frozen=True)
class Content:
    """All that decides which rows are read from an input.

    Attributes:
        files: of each of its files, in order, the digest of its bytes as they are stored, its format, and how it is
            compressed, as `.gz`, or empty.
        size: bytes of all files.
        columns: our names and the file's, by ours, where the config says.
    """

    files: tuple[tuple[str, str, str], ...]
    size: int
    columns: tuple[tuple[str, str], ...]


def row_number(row: int) -> str:
    """Where a row, counted from 0, stands, if nothing else is known of it."""
    return f"row {row + 1}"


MANY_ROWS = 1 << 23
"""Rows of judgments beyond which their documents are on disk, and no index of all of them is made."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some of an input's rows, n of them, as they were parsed.

    Attributes:
        query_codes: (n,) int32, each row's place among the input's distinct query ids.
        doc_ids: (n,) Arrow strings.
        values: (n,) finite: the relevance, score, rating or prediction, as it was parsed or in as few bits as hold it.
    """

    query_codes: npt.NDArray[np.int32]
    doc_ids: pa.StringArray
    values: npt.NDArray[np.floating]

    def recoded(self, codes: npt.NDArray[np.int32]) -> Chunk:
        """The same, with other codes in the place of each code."""
        return replace(self, query_codes=codes[self.query_codes])


@dataclass(frozen=True, eq=False)
class StoredChunk:
    """Some of an input's rows whose queries and documents are in a temporary file, and are read from it each time.

    Attributes:
        values: as of `Chunk`.
        read_codes: reads a number for each row's query.
        read_documents: reads the documents.
        codes: the code of each of these numbers.
    """

    values: npt.NDArray[np.floating]
    read_codes: Callable[[], npt.NDArray[np.int32]]
    read_documents: Callable[[], pa.StringArray]
    codes: npt.NDArray[np.int32]

    @property
    def query_codes(self) -> npt.NDArray[np.int32]:
        """As of `Chunk`."""
        return self.codes[self.read_codes()]

    @property
    def doc_ids(self) -> pa.StringArray:
        """Likewise."""
        return self.read_documents()

    def recoded(self, codes: npt.NDArray[np.int32]) -> StoredChunk:
        """The same, with other codes in the place of each code."""
        return replace(self, codes=codes[self.codes])

    def __reduce__(self) -> tuple[type[Chunk], tuple[object, ...]]:
        """To another process go the documents."""
        return Chunk, (self.query_codes, self.doc_ids, self.values)


@dataclass(frozen=True, eq=False)
class Rows:
    """What a reader took from one input: N rows of (query, document, value).

    A large output is worked on chunk by chunk, by as many threads as there are cores; a chunk fits into the cache, and
    nothing is copied. Whoever needs a whole column gets one, made when it is first asked for.

    Attributes:
        path: the input as it was named.
        files: the files it consists of.
        query_ids: the distinct ids, in the order in which they first appear.
        chunks: the rows, in the order of the files.
        place: says where a row stands, such as `line 3`.
        subtopics: (N,) Arrow strings, the subtopic that each row judges a document for, where judgments have subtopics.
        remarks: what the layouts of its files were taken for, a line each.
    """

    path: str
    files: tuple[InputFile, ...]
    query_ids: Sequence[str]
    chunks: tuple[Chunk | StoredChunk, ...]
    place: Callable[[int], str]
    subtopics: pa.StringArray | None = None
    remarks: tuple[str, ...] = ()

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The number of rows up to the end of each chunk."""
        return tuple(accumulate(len(chunk.values) for chunk in self.chunks))

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """The number of rows of each of `query_ids`."""
        counts = np.zeros(len(self.query_ids), dtype=np.int64)
        for chunk in self.chunks:
            counts += np.bincount(chunk.query_codes, minlength=len(counts))
        return counts

    @cached_property
    def query_codes(self) -> npt.NDArray[np.int32]:
        """(N,): all chunks' codes."""
        return np.concatenate([chunk.query_codes for chunk in self.chunks])

    @property
    def doc_ids(self) -> pa.StringArray:
        """(N,): all chunks' documents."""
        from rankledger.pipeline.support.arrow import concatenate

        return concatenate([chunk.doc_ids for chunk in self.chunks])

    def take_doc_ids(self, rows: npt.NDArray[np.signedinteger]) -> pa.StringArray:
        """The documents of these rows, which may stand in any order.

        They are taken chunk by chunk: Arrow would first make one array of all chunks.
        """
        from rankledger.pipeline.support.arrow import concatenate, integers  # not at the top: configs need no Arrow

        order = np.argsort(rows)
        cuts = np.searchsorted(rows[order], (0, *self.ends))
        taken = [
            chunk.doc_ids.take(integers(rows[order[begin:end]] - (after - len(chunk.values))))
            for chunk, after, begin, end in zip(self.chunks, self.ends, cuts[:-1], cuts[1:], strict=True)
            if end > begin
        ]
        places = np.empty(len(rows), dtype=np.int64)
        places[order] = np.arange(len(rows))
        return concatenate(taken).take(integers(places))

    @cached_property
    def values(self) -> npt.NDArray[np.floating]:
        """(N,): all chunks' values."""
        return np.concatenate([chunk.values for chunk in self.chunks])

    def take(self, rows: npt.NDArray[np.int64]) -> Rows:
        """A copy of these rows, at least one, with the queries that they have."""
        from rankledger.pipeline.support.arrow import integers

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
        """The other rows, perhaps none, with the queries of all rows."""
        from rankledger.pipeline.support.arrow import bools

        kept = np.ones(self.ends[-1], dtype=bool)
        kept[rows] = False
        numbers = np.flatnonzero(kept)
        chunks = [
            Chunk(chunk.query_codes[own], chunk.doc_ids.filter(bools(own)), chunk.values[own])
            for chunk, after in zip(self.chunks, self.ends, strict=True)
            for own in [kept[after - len(chunk.values) : after]]
            if own.any()
        ]
        subtopics = None if self.subtopics is None else self.subtopics.filter(bools(kept))
        return replace(self, chunks=tuple(chunks), place=lambda row: self.place(int(numbers[row])), subtopics=subtopics)

    def between(self, begin: int, end: int) -> Rows:
        """The rows from one number up to another, not copied, with the queries of all rows."""
        chunks = [
            Chunk(chunk.query_codes[own], chunk.doc_ids[own], chunk.values[own])
            for chunk, after in zip(self.chunks, self.ends, strict=True)
            for first in [after - len(chunk.values)]
            for own in [slice(max(begin - first, 0), max(end - first, 0))]
            if begin < after and first < end
        ]
        subtopics = None if self.subtopics is None else self.subtopics[begin:end]
        return replace(self, chunks=tuple(chunks), place=lambda row: self.place(begin + row), subtopics=subtopics)


def merge_rows(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts, one after the other, which may share queries; the rest is the first part's."""
    if len(parts) == 1:
        return parts[0]
    codes: dict[str, int] = {}
    chunks: list[Chunk | StoredChunk] = []
    for rows in parts:
        own = np.array([codes.setdefault(query_id, len(codes)) for query_id in rows.query_ids], dtype=np.int32)
        chunks += [chunk.recoded(own) for chunk in rows.chunks]
    subtopics = [rows.subtopics for rows in parts if rows.subtopics is not None]
    if subtopics:
        from rankledger.pipeline.support.arrow import concatenate

        return replace(parts[0], query_ids=list(codes), chunks=tuple(chunks), subtopics=concatenate(subtopics))
    return replace(parts[0], query_ids=list(codes), chunks=tuple(chunks))


@dataclass(frozen=True, eq=False)
class Ids:
    """The ids of a queries table or a catalogue, each once.

    Attributes:
        path: the input as it was named.
        files: the files it consists of.
        ids: Arrow strings.
        features: what is known of the documents of a catalogue, by column.
        texts: what is known of the queries of a queries table, by column: a text per row, None for an empty cell.
        place: says where a row stands, such as `line 3`.
        remarks: what the layouts of its files were taken for, a line each.
    """

    path: str
    files: tuple[InputFile, ...]
    ids: pa.StringArray
    features: Mapping[str, Sparse] = field(default_factory=dict)
    texts: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    place: Callable[[int], str] = row_number
    remarks: tuple[str, ...] = ()
