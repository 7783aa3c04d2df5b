"""Files to rows: TREC text, TSV, CSV, JSON lines, JSON and Parquet.

A text of a queries table keeps its spelling. In JSON lines and Parquet a number is read as Python writes it, but a
whole one without decimals: 3.0 is "3", for a column of whole numbers becomes one of decimal numbers where a row has
none. True and false are read as JSON writes them.

Ids are strings and keep their spelling: "01" is not "1". A row that lacks something is refused with its file and line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.block import Floats
from rankledger.pipeline.data.catalogue import Column, feature, read_columns
from rankledger.pipeline.data.files import PLAIN, Access, StoredFile, each_file, refusing_unreadable
from rankledger.pipeline.data.formats import line_of, parse
from rankledger.pipeline.data.formats.common import FilePart, Kind, refuse_surrogates
from rankledger.pipeline.data.formats.delimited import delimited_header, delimited_records
from rankledger.pipeline.data.formats.jsonl import json_objects
from rankledger.pipeline.data.formats.parquet import open_parquet, read_parquet
from rankledger.pipeline.data.formats.trec import last_fields
from rankledger.pipeline.errors import InputError, likely, shorten
from rankledger.pipeline.support.arrow import concatenate, numpy_of
from rankledger.pipeline.types.inputs import Chunk, Ids, InputFile, Rows

__all__ = [
    "column_names",
    "format_of",
    "part_of",
    "read_cells",
    "read_documents",
    "read_interactions",
    "read_judgments",
    "read_predictions",
    "read_queries",
    "read_ranking",
    "read_ratings",
    "read_texts",
    "read_trec_ranking",
]


def column_names(part: FilePart) -> list[str]:
    """The columns of a file in their order; of JSON lines, the keys of all objects."""
    if part.format == "parquet":
        return list(open_parquet(part).schema_arrow.names)
    if part.format == "jsonl":
        return [*dict.fromkeys(key for _, found in json_objects(part) for key in found)]
    return delimited_header(part)


def read_cells(part: FilePart, names: Sequence[str]) -> Mapping[str, Sequence[object]]:
    """The cells of these columns of one file, row by row: a text, or in JSON lines and Parquet whatever stands there.

    Args:
        part: the file: TSV, CSV, JSON lines or Parquet.
        names: columns, by the file's names.

    Raises:
        InputError: a column is not there or stands twice, or a line is malformed.
    """
    found = column_names(part)
    for name in names:
        if name not in found:
            remedy = likely(name, found) or "; fix its name"
            raise InputError(f"{part.path}: no column '{name}' among {shorten(', '.join(found)) or 'nothing'}{remedy}")
        if found.count(name) > 1:
            raise InputError(f"{part.path}: column '{name}' stands twice; name each column once")
    if part.format == "parquet":
        table = read_parquet(part, open_parquet(part), names)
        return {name: _plain(part, name, table.column(name)) for name in names}
    if part.format == "jsonl":
        objects = [found for _, found in json_objects(part, names)]
        return {name: [found.get(name) for found in objects] for name in names}
    rows = []
    for number, record in delimited_records(part, found):
        refuse_surrogates(part, number, record)
        rows.append(record)
    return {name: [row[place] for row in rows] for name, place in ((name, found.index(name)) for name in names)}


def _plain(part: FilePart, name: str, column: pa.ChunkedArray) -> list[object]:
    """The values as Python has them."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError, KeyError) as error:  # of times and zones that Python does not know
        found = f"holds {column.type} that cannot be read ({shorten(str(error))})"
        raise InputError(f"{part.path}: '{name}' {found}; write texts or numbers") from None


def read_texts(part: FilePart, column: str) -> list[str | None]:
    """The texts of a column of one file, None where a cell is empty or holds blanks alone.

    Raises:
        InputError: the column is not there, or a cell holds a list or a mapping.
    """
    name = part.name(column)
    return [_text(part, name, row, cell) for row, cell in enumerate(read_cells(part, [name])[name])]


def _text(part: FilePart, name: str, row: int, cell: object) -> str | None:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, list | dict | bytes):
        found = "a list" if isinstance(cell, list) else "a mapping" if isinstance(cell, dict) else "bytes"
        raise InputError(f"{part.path}: '{name}' holds {found} ({line_of(part, row)}); write a text or a number")
    if isinstance(cell, bool):
        return "true" if cell else "false"
    whole = isinstance(cell, float) and cell.is_integer()
    text = str(int(cell)) if isinstance(cell, float) and whole else str(cell)
    refuse_surrogates(part, row + 1, [text])
    return text if text.strip() else None


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

    def texts(part: FilePart) -> list[list[str | None]]:
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

    def found(part: FilePart) -> list[Column]:
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
        raise InputError(f"{path}: {kind.value} {rows.values[row]} ({place(row)}) is not a finite number; fix it")
    if kind in (_RATINGS, _PREDICTIONS) and np.abs(rows.values).max() > _GREATEST_RATING:
        row = int(np.abs(rows.values).argmax())
        raise InputError(f"{path}: {kind.value} {rows.values[row]} ({place(row)}) has no square in doubles; fix it")
    return rows


def _values(batch: pa.RecordBatch, kind: Kind) -> Floats:
    return numpy_of(batch.column(kind.value), np.float64) if kind.value else np.zeros(batch.num_rows)


def _read_ids(
    path: str, kind: Kind, format: str | None, columns: Columns | None, access: Access, further: Callable[[FilePart], T]
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
    path: str, kind: Kind, format: str | None, columns: Columns | None, access: Access, further: Callable[[FilePart], T]
) -> _Table[T]:
    """The columns of `kind` from every part of the input, in the order of the parts, and what `further` takes."""

    def part(file: StoredFile, stored: pa.Buffer) -> FilePart:
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
    file: StoredFile, part: Callable[[StoredFile, pa.Buffer], FilePart], further: Callable[[FilePart], T]
) -> tuple[pa.Table, InputFile, T]:
    """The rows of one file, its size and digest, and what `further` takes: all of the same bytes, read once."""
    stored = file.read()
    with ThreadPoolExecutor(1) as beside, refusing_unreadable(file.path):
        description = beside.submit(file.describe_bytes, stored)  # hashing takes half as long as parsing
        own = part(file, stored)
        table = parse(own)
        if not len(table):
            raise InputError(f"{file.path}: no rows; write the file again")
        return table, description.result(), further(own)


def _place(
    file: StoredFile, description: InputFile, part: Callable[[StoredFile, pa.Buffer], FilePart], row: int
) -> str:
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


def part_of(file: StoredFile, stored: pa.Buffer, kind: Kind, format: str | None, columns: Columns) -> FilePart:
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
    return FilePart(file.path, layout, contents, kind, columns, file.limit(stored))
