"""Files to rows: TREC text, TSV, CSV, JSON lines and Parquet.

Ids are strings and keep their spelling: "01" is not "1". A row that lacks something is refused with its file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow import numpy_of
from pipeline.data.files import StoredFile, find_files
from pipeline.data.formats import Kind, Part, line_of, parse
from pipeline.errors import InputError
from pipeline.tables import Chunk, Ids, InputFile, Rows

__all__ = ["read_documents", "read_judgments", "read_predictions", "read_queries", "read_ranking", "read_ratings"]

_FORMATS = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}

_GREATEST_RATING = 1e100

Columns = Mapping[str, str]


_JUDGMENTS = Kind(("query_id", "doc_id"), "relevance", ("query_id", "iteration", "doc_id", "relevance"))
_RANKING = Kind(("query_id", "doc_id"), "score", ("query_id", "Q0", "doc_id", "rank", "score", "tag"))
_RATINGS = Kind(("query_id", "doc_id"), "rating")
_PREDICTIONS = Kind(("query_id", "doc_id"), "prediction")
_QUERIES = Kind(("query_id",), None)
_DOCUMENTS = Kind(("doc_id",), None)


def read_judgments(path: str, format: str | None = None, columns: Columns | None = None) -> Rows:
    """Relevance judgments: (query_id, doc_id, relevance).

    Args:
        path: a file, a glob, a folder of parts, or a URL of a pyarrow filesystem.
        format: `trec`, `tsv`, `csv`, `jsonl` or `parquet`; told by the file's name unless given, where a name that
            tells nothing means TREC text (query, iteration, document, relevance).
        columns: our column names to the file's, where they differ.

    Raises:
        InputError: the file is missing, empty or malformed, or a relevance is not a finite number.
    """
    return _read_rows(path, _JUDGMENTS, format, columns)


def read_ranking(path: str, format: str | None = None, columns: Columns | None = None) -> Rows:
    """A model's rankings: (query_id, doc_id, score); in TREC text query, Q0, document, rank, score, tag.

    Arguments and errors are those of `read_judgments`.
    """
    return _read_rows(path, _RANKING, format, columns)


def read_ratings(path: str, format: str | None = None, columns: Columns | None = None) -> Rows:
    """Ratings: (query_id, doc_id, rating). Arguments and errors are those of `read_judgments`."""
    return _read_rows(path, _RATINGS, format, columns)


def read_predictions(path: str, format: str | None = None, columns: Columns | None = None) -> Rows:
    """A model's predicted ratings: (query_id, doc_id, prediction). Arguments and errors are as in `read_judgments`."""
    return _read_rows(path, _PREDICTIONS, format, columns)


def read_queries(path: str, format: str | None = None, columns: Columns | None = None) -> Ids:
    """The queries table's ids. As `read_judgments`; an id that stands twice is refused."""
    return _read_ids(path, _QUERIES, format, columns)


def read_documents(path: str, format: str | None = None, columns: Columns | None = None) -> Ids:
    """The catalogue's ids. As `read_judgments`; an id that stands twice is refused."""
    return _read_ids(path, _DOCUMENTS, format, columns)


def _read_rows(path: str, kind: Kind, format: str | None, columns: Columns | None) -> Rows:
    table, files, place = _read_table(path, kind, format, columns or {})
    batches = [batch for batch in table.unify_dictionaries().to_batches() if batch.num_rows]
    chunks = tuple(
        Chunk(numpy_of(codes.indices, np.int32), doc_ids, numpy_of(values, np.float64))
        for codes, doc_ids, values in (batch.columns for batch in batches)
    )
    rows = Rows(path, files, batches[0].column(0).dictionary.to_pylist(), chunks, place)
    if not all(np.isfinite(chunk.values).all() for chunk in chunks):
        row = int(np.flatnonzero(~np.isfinite(rows.values))[0])
        raise InputError(f"{path}: {kind.value} {rows.values[row]} ({place(row)}) is not a finite number; mend it")
    if kind in (_RATINGS, _PREDICTIONS) and np.abs(rows.values).max() > _GREATEST_RATING:
        row = int(np.abs(rows.values).argmax())
        raise InputError(f"{path}: {kind.value} {rows.values[row]} ({place(row)}) has no square in doubles; mend it")
    return rows


def _read_ids(path: str, kind: Kind, format: str | None, columns: Columns | None) -> Ids:
    table, files, place = _read_table(path, kind, format, columns or {})
    ids = table.column(kind.ids[0]).cast(pa.string()).combine_chunks()
    if pc.count_distinct(ids).as_py() < len(ids):
        first: dict[str, int] = {}
        for row, name in enumerate(ids.to_pylist()):
            if first.setdefault(name, row) != row:
                rows = f"{place(first[name])} and {place(row)}"
                raise InputError(f"{path}: {kind.ids[0]} '{name}' stands twice ({rows}); keep one")
    return Ids(path, files, ids)


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
            tables.append(parse(_part(file, stored, kind, format, columns)))
        described.append(description.result())
        if not len(tables[-1]):
            raise InputError(f"{file.path}: no rows; write the file again")
    sizes = [len(table) for table in tables]

    def place(row: int) -> str:
        file = 0
        while row >= sizes[file]:
            row -= sizes[file]
            file += 1
        part = _part(files[file], files[file].open(), kind, format, columns)
        return line_of(part, row) + (f" of {part.path}" if len(files) > 1 else "")

    return pa.concat_tables(tables), tuple(described), place


def _part(file: StoredFile, stored: pa.Buffer, kind: Kind, format: str | None, columns: Columns) -> Part:
    layout = format or _FORMATS.get(file.suffix, "trec")
    if layout == "trec" and not kind.trec:
        raise InputError(
            f"{file.path}: TREC text cannot hold {' and '.join(kind.columns)}; use tsv, csv, jsonl or parquet"
        )
    return Part(file.path, layout, file.uncompress(stored), kind, columns)
