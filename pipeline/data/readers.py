"""Files to rows: TREC text, TSV, CSV, JSON lines, JSON and Parquet.

Ids are strings and keep their spelling: "01" is not "1". A row that lacks something is refused with its file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metrics.block import Floats
from pipeline.arrow import concatenate, numpy_of
from pipeline.data.cells import read_texts
from pipeline.data.features import Column, feature, read_columns
from pipeline.data.files import PLAIN, Access, StoredFile, each_file, refusing
from pipeline.data.formats import Kind, Part, line_of, parse
from pipeline.data.formats.trec import last_fields
from pipeline.errors import InputError, shorten
from pipeline.tables import Chunk, Ids, InputFile, Rows

__all__ = [
    "format_of",
    "part_of",
    "read_documents",
    "read_interactions",
    "read_judgments",
    "read_predictions",
    "read_queries",
    "read_ranking",
    "read_ratings",
    "read_trec_ranking",
]

_FORMATS = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}

_GREATEST_RATING = 1e100

Columns = Mapping[str, str]
T = TypeVar("T")


_JUDGMENTS = Kind(("query_id", "doc_id"), "relevance", ("query_id", "iteration", "doc_id", "relevance"))
_SUBTOPICS = Kind((*_JUDGMENTS.ids, "subtopic"), "relevance", ("query_id", "subtopic", "doc_id", "relevance"))
_RANKING = Kind(("query_id", "doc_id"), "score", ("query_id", "Q0", "doc_id", "rank", "score", "tag"))
_RANKS = Kind(_RANKING.ids, "rank", _RANKING.trec)
_RATINGS = Kind(("query_id", "doc_id"), "rating")
_PREDICTIONS = Kind(("query_id", "doc_id"), "prediction")
_INTERACTIONS = Kind(("query_id", "doc_id"), None)
_QUERIES = Kind(("query_id",), None)
_DOCUMENTS = Kind(("doc_id",), None)


def read_judgments(
    path: str,
    format: str | None = None,
    columns: Columns | None = None,
    access: Access = PLAIN,
    *,
    subtopics: bool = False,
) -> Rows:
    """Relevance judgments: (query_id, doc_id, relevance).

    Args:
        path: a file, a glob, a folder of parts, or a URL of a pyarrow filesystem.
        format: `trec`, `tsv`, `csv`, `jsonl`, `json` or `parquet`; told by the file's name unless given, where a name
            that tells nothing means TREC text (query, iteration, document, relevance).
        columns: our column names to the file's, where they differ.
        access: what it may be beside files of the usual size.
        subtopics: whether documents are judged for subtopics: there is a further column `subtopic`, which in TREC text
            stands in the place of the iteration.

    Raises:
        InputError: the file is missing, empty or malformed, changed while it was read, is larger or has longer ids than
            it may, or a relevance is not a finite number.
    """
    return _read_rows(path, _SUBTOPICS if subtopics else _JUDGMENTS, format, columns, access)


def read_ranking(
    path: str,
    format: str | None = None,
    columns: Columns | None = None,
    access: Access = PLAIN,
    *,
    by: Literal["rank", "score"] = "score",
) -> Rows:
    """A model's rankings: (query_id, doc_id, score); in TREC text query, Q0, document, rank, score, tag.

    Further arguments and errors are those of `read_judgments`.

    Args:
        by: what orders the documents: the score, or the rank instead, of which the negative is taken for a score.
    """
    if by == "score":
        return _read_rows(path, _RANKING, format, columns, access)
    rows = _read_rows(path, _RANKS, format, columns, access)
    return replace(rows, chunks=tuple(replace(chunk, values=-chunk.values) for chunk in rows.chunks))


def read_ratings(path: str, format: str | None = None, columns: Columns | None = None, access: Access = PLAIN) -> Rows:
    """Ratings: (query_id, doc_id, rating). Arguments and errors are those of `read_judgments`."""
    return _read_rows(path, _RATINGS, format, columns, access)


def read_predictions(
    path: str, format: str | None = None, columns: Columns | None = None, access: Access = PLAIN
) -> Rows:
    """A model's predicted ratings: (query_id, doc_id, prediction). Arguments and errors are as in `read_judgments`."""
    return _read_rows(path, _PREDICTIONS, format, columns, access)


def read_queries(
    path: str,
    format: str | None = None,
    columns: Columns | None = None,
    access: Access = PLAIN,
    *,
    further: Sequence[str] = (),
) -> Ids:
    """The queries table's ids and the texts of these columns. As `read_judgments`; an id that stands twice is refused.

    Args:
        further: columns of the file, by their names there or as `columns` maps them.
    """

    def texts(part: Part) -> list[list[str | None]]:
        return [read_texts(part, name) for name in further]

    queries, parts = _read_ids(path, _QUERIES, format, columns, access, texts)
    joined = (chain.from_iterable(found) for found in zip(*parts, strict=True))
    return replace(queries, texts={name: [*found] for name, found in zip(further, joined, strict=True)})


def read_documents(
    path: str,
    format: str | None = None,
    columns: Columns | None = None,
    access: Access = PLAIN,
    *,
    features: Sequence[str] = (),
) -> Ids:
    """The catalogue's ids and these features of its documents. As `read_judgments`; an id that stands twice is refused.

    Args:
        features: columns of the file, by their names there.
    """

    def found(part: Part) -> list[Column]:
        return read_columns(part, features) if features else []

    documents, parts = _read_ids(path, _DOCUMENTS, format, columns, access, found)
    joined = zip(features, zip(*parts, strict=True), strict=True)
    return replace(documents, features={name: feature(path, name, own, len(documents.ids)) for name, own in joined})


def read_interactions(
    path: str, format: str | None = None, columns: Columns | None = None, access: Access = PLAIN
) -> Rows:
    """What queries consumed before: (query_id, doc_id), repeated or not; the value is 0. As `read_judgments`."""
    return _read_rows(path, _INTERACTIONS, format, columns, access)


def read_trec_ranking(path: str, access: Access = PLAIN) -> tuple[Rows, list[bytes]]:
    """A model's rankings as TREC text, and the fields of the last line that holds a row. As `read_judgments`."""
    table = _read_table(path, _RANKING, "trec", None, access, lambda part: last_fields(part.data))
    return _rows(table, path, _RANKING), table.further[-1]


def _read_rows(path: str, kind: Kind, format: str | None, columns: Columns | None, access: Access) -> Rows:
    return _rows(_read_table(path, kind, format, columns, access, lambda _: None), path, kind)


def _rows(found: _Table[Any], path: str, kind: Kind) -> Rows:
    batches = [batch for batch in found.table.unify_dictionaries().to_batches() if batch.num_rows]
    chunks = tuple(
        Chunk(numpy_of(batch.column("query_id").indices, np.int32), batch.column("doc_id"), _values(batch, kind))
        for batch in batches
    )
    place = found.place
    subtopics = concatenate([batch.column("subtopic") for batch in batches]) if "subtopic" in kind.ids else None
    rows = Rows(path, found.files, batches[0].column(0).dictionary.to_pylist(), chunks, place, subtopics)
    if not all(np.isfinite(chunk.values).all() for chunk in chunks):
        row = int(np.flatnonzero(~np.isfinite(rows.values))[0])
        raise InputError(f"{path}: {kind.value} {rows.values[row]} ({place(row)}) is not a finite number; mend it")
    if kind in (_RATINGS, _PREDICTIONS) and np.abs(rows.values).max() > _GREATEST_RATING:
        row = int(np.abs(rows.values).argmax())
        raise InputError(f"{path}: {kind.value} {rows.values[row]} ({place(row)}) has no square in doubles; mend it")
    return rows


def _values(batch: pa.RecordBatch, kind: Kind) -> Floats:
    return numpy_of(batch.column(kind.value), np.float64) if kind.value else np.zeros(batch.num_rows)


def _read_ids(
    path: str, kind: Kind, format: str | None, columns: Columns | None, access: Access, further: Callable[[Part], T]
) -> tuple[Ids, list[T]]:
    """The ids, and what `further` takes from each file."""
    found = _read_table(path, kind, format, columns, access, further)
    ids = found.table.column(kind.ids[0]).cast(pa.string()).combine_chunks()
    if pc.count_distinct(ids).as_py() < len(ids):
        first: dict[str, int] = {}
        for row, name in enumerate(ids.to_pylist()):
            if first.setdefault(name, row) != row:
                rows = f"{found.place(first[name])} and {found.place(row)}"
                raise InputError(f"{path}: {kind.ids[0]} '{shorten(name)}' stands twice ({rows}); keep one")
    return Ids(path, found.files, ids, place=found.place), found.further


@dataclass(frozen=True)
class _Table(Generic[T]):
    """What was read of an input.

    Attributes:
        table: the columns of its kind from all its files.
        files: these.
        place: says where a row stands.
        further: what else was taken from each file.
    """

    table: pa.Table
    files: tuple[InputFile, ...]
    place: Callable[[int], str]
    further: list[T]


def _read_table(
    path: str, kind: Kind, format: str | None, columns: Columns | None, access: Access, further: Callable[[Part], T]
) -> _Table[T]:
    """The columns of `kind` from every part of the input, in the order of the parts, and what `further` takes."""

    def part(file: StoredFile, stored: pa.Buffer) -> Part:
        return part_of(file, stored, kind, format, columns or {})

    files, tables, described, taken = [], [], [], []
    for file in each_file(path, access):
        table, description, found = _parse(file, part, further)
        files.append(file)
        tables.append(table)
        described.append(description)
        taken.append(found)
    sizes = [len(table) for table in tables]

    def place(row: int) -> str:
        number = 0
        while row >= sizes[number]:
            row -= sizes[number]
            number += 1
        of = f" of {files[number].path}" if len(files) > 1 else ""
        return _place(files[number], described[number], part, row) + of

    return _Table(pa.concat_tables(tables), tuple(described), place, taken)


def _parse(
    file: StoredFile, part: Callable[[StoredFile, pa.Buffer], Part], further: Callable[[Part], T]
) -> tuple[pa.Table, InputFile, T]:
    """The rows of one file, its size and digest, and what `further` takes: all of the same bytes, read once."""
    stored = file.read()
    with ThreadPoolExecutor(1) as beside, refusing(file.path):
        description = beside.submit(file.describe_bytes, stored)  # hashing takes half as long as parsing
        own = part(file, stored)
        table = parse(own)
        if not len(table):
            raise InputError(f"{file.path}: no rows; write the file again")
        return table, description.result(), further(own)


def _place(file: StoredFile, description: InputFile, part: Callable[[StoredFile, pa.Buffer], Part], row: int) -> str:
    """Where a row of a file stands; its number where the file is not what was read any more."""
    try:
        stored = file.read()
        if file.describe_bytes(stored) == description:
            return line_of(part(file, stored), row)
    except InputError:
        pass
    return f"row {row + 1}"


def format_of(suffix: str) -> str:
    """The format that a name ending so tells; one that tells nothing means TREC text."""
    return _FORMATS.get(suffix, "trec")


def part_of(file: StoredFile, stored: pa.Buffer, kind: Kind, format: str | None, columns: Columns) -> Part:
    """One file of an input with its format: the one given, or as its name tells.

    Args:
        file: where it is.
        stored: its bytes as they are stored.
        kind: what to take from it.
        format: its format, if the config says.
        columns: our column names to the file's, where they differ.

    Raises:
        InputError: it is compressed otherwise than its name says or larger than it may be, or TREC text where that
            cannot hold such rows.
    """
    layout = format or format_of(file.suffix)
    if layout == "trec" and not kind.trec:
        raise InputError(
            f"{file.path}: TREC text cannot hold {' and '.join(kind.columns)}; use tsv, csv, jsonl or parquet"
        )
    contents = file.uncompress(stored)
    return Part(file.path, layout, contents, kind, columns, file.limit(stored))
