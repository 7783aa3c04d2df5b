"""Files to rows: TREC text, TSV, CSV, JSON lines, JSON and Parquet.

Ids are strings and keep their spelling: "01" is not "1". A row that lacks something is refused with its file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metrics.block import Floats
from pipeline.arrow import concatenate, numpy_of
from pipeline.data.cells import read_texts
from pipeline.data.features import feature, read_columns
from pipeline.data.files import StoredFile, find_files
from pipeline.data.formats import Kind, Part, line_of, parse
from pipeline.errors import InputError
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
    path: str, format: str | None = None, columns: Columns | None = None, *, subtopics: bool = False
) -> Rows:
    """Relevance judgments: (query_id, doc_id, relevance).

    Args:
        path: a file, a glob, a folder of parts, or a URL of a pyarrow filesystem.
        format: `trec`, `tsv`, `csv`, `jsonl`, `json` or `parquet`; told by the file's name unless given, where a name
            that tells nothing means TREC text (query, iteration, document, relevance).
        columns: our column names to the file's, where they differ.
        subtopics: whether documents are judged for subtopics: there is a further column `subtopic`, which in TREC text
            stands in the place of the iteration.

    Raises:
        InputError: the file is missing, empty or malformed, or a relevance is not a finite number.
    """
    return _read_rows(path, _SUBTOPICS if subtopics else _JUDGMENTS, format, columns)


def read_ranking(
    path: str, format: str | None = None, columns: Columns | None = None, *, by: Literal["rank", "score"] = "score"
) -> Rows:
    """A model's rankings: (query_id, doc_id, score); in TREC text query, Q0, document, rank, score, tag.

    Further arguments and errors are those of `read_judgments`.

    Args:
        by: what orders the documents: the score, or the rank instead, of which the negative is taken for a score.
    """
    if by == "score":
        return _read_rows(path, _RANKING, format, columns)
    rows = _read_rows(path, _RANKS, format, columns)
    return replace(rows, chunks=tuple(replace(chunk, values=-chunk.values) for chunk in rows.chunks))


def read_ratings(path: str, format: str | None = None, columns: Columns | None = None) -> Rows:
    """Ratings: (query_id, doc_id, rating). Arguments and errors are those of `read_judgments`."""
    return _read_rows(path, _RATINGS, format, columns)


def read_predictions(path: str, format: str | None = None, columns: Columns | None = None) -> Rows:
    """A model's predicted ratings: (query_id, doc_id, prediction). Arguments and errors are as in `read_judgments`."""
    return _read_rows(path, _PREDICTIONS, format, columns)


def read_queries(
    path: str, format: str | None = None, columns: Columns | None = None, *, further: Sequence[str] = ()
) -> Ids:
    """The queries table's ids and the texts of these columns. As `read_judgments`; an id that stands twice is refused.

    Args:
        further: columns of the file, by their names there or as `columns` maps them.
    """
    queries = _read_ids(path, _QUERIES, format, columns)
    parts = [part_of(file, file.open(), _QUERIES, format, columns or {}) for file in find_files(path) if further]
    texts = {name: [text for part in parts for text in read_texts(part, name)] for name in further}
    return replace(queries, texts=texts)


def read_documents(
    path: str, format: str | None = None, columns: Columns | None = None, *, features: Sequence[str] = ()
) -> Ids:
    """The catalogue's ids and these features of its documents. As `read_judgments`; an id that stands twice is refused.

    Args:
        features: columns of the file, by their names there.
    """
    documents = _read_ids(path, _DOCUMENTS, format, columns)
    if not features:
        return documents
    parts = [part_of(file, file.open(), _DOCUMENTS, format, columns or {}) for file in find_files(path)]
    found = dict(zip(features, zip(*(read_columns(part, features) for part in parts), strict=True), strict=True))
    return replace(
        documents, features={name: feature(path, name, found[name], len(documents.ids)) for name in features}
    )


def read_interactions(path: str, format: str | None = None, columns: Columns | None = None) -> Rows:
    """What queries consumed before: (query_id, doc_id), repeated or not; the value is 0. As `read_judgments`."""
    return _read_rows(path, _INTERACTIONS, format, columns)


def _read_rows(path: str, kind: Kind, format: str | None, columns: Columns | None) -> Rows:
    table, files, place = _read_table(path, kind, format, columns or {})
    batches = [batch for batch in table.unify_dictionaries().to_batches() if batch.num_rows]
    chunks = tuple(
        Chunk(numpy_of(batch.column("query_id").indices, np.int32), batch.column("doc_id"), _values(batch, kind))
        for batch in batches
    )
    subtopics = concatenate([batch.column("subtopic") for batch in batches]) if "subtopic" in kind.ids else None
    rows = Rows(path, files, batches[0].column(0).dictionary.to_pylist(), chunks, place, subtopics)
    if not all(np.isfinite(chunk.values).all() for chunk in chunks):
        row = int(np.flatnonzero(~np.isfinite(rows.values))[0])
        raise InputError(f"{path}: {kind.value} {rows.values[row]} ({place(row)}) is not a finite number; mend it")
    if kind in (_RATINGS, _PREDICTIONS) and np.abs(rows.values).max() > _GREATEST_RATING:
        row = int(np.abs(rows.values).argmax())
        raise InputError(f"{path}: {kind.value} {rows.values[row]} ({place(row)}) has no square in doubles; mend it")
    return rows


def _values(batch: pa.RecordBatch, kind: Kind) -> Floats:
    return numpy_of(batch.column(kind.value), np.float64) if kind.value else np.zeros(batch.num_rows)


def _read_ids(path: str, kind: Kind, format: str | None, columns: Columns | None) -> Ids:
    table, files, place = _read_table(path, kind, format, columns or {})
    ids = table.column(kind.ids[0]).cast(pa.string()).combine_chunks()
    if pc.count_distinct(ids).as_py() < len(ids):
        first: dict[str, int] = {}
        for row, name in enumerate(ids.to_pylist()):
            if first.setdefault(name, row) != row:
                rows = f"{place(first[name])} and {place(row)}"
                raise InputError(f"{path}: {kind.ids[0]} '{name}' stands twice ({rows}); keep one")
    return Ids(path, files, ids, place=place)


def _read_table(
    path: str, kind: Kind, format: str | None, columns: Columns
) -> tuple[pa.Table, tuple[InputFile, ...], Callable[[int], str]]:
    """The columns of `kind` from every part of the input, in the order of the parts."""
    tables, described = [], []
    files = find_files(path)
    for file in files:
        stored = file.open()
        with ThreadPoolExecutor(1) as beside:  # hashing takes half as long as parsing
            description = beside.submit(file.describe, stored)
            tables.append(parse(part_of(file, stored, kind, format, columns)))
        described.append(description.result())
        if not len(tables[-1]):
            raise InputError(f"{file.path}: no rows; write the file again")
    sizes = [len(table) for table in tables]

    def place(row: int) -> str:
        file = 0
        while row >= sizes[file]:
            row -= sizes[file]
            file += 1
        part = part_of(files[file], files[file].open(), kind, format, columns)
        return line_of(part, row) + (f" of {part.path}" if len(files) > 1 else "")

    return pa.concat_tables(tables), tuple(described), place


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
        InputError: it is compressed otherwise than its name says, or TREC text where that cannot hold such rows.
    """
    layout = format or format_of(file.suffix)
    if layout == "trec" and not kind.trec:
        raise InputError(
            f"{file.path}: TREC text cannot hold {' and '.join(kind.columns)}; use tsv, csv, jsonl or parquet"
        )
    return Part(file.path, layout, file.uncompress(stored), kind, columns)
