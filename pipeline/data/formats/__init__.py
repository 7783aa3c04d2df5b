"""How each format lays out rows: the bytes of one file to a table of (query_id, doc_id, value).

Text is read by Arrow, which is fast but knows one layout of a line; where Arrow refuses, Python reads line by line,
which is tolerant and can name the line that is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import pyarrow as pa

from rankledger.pipeline.data.formats.common import FilePart, Kind, odd_id, refuse_id
from rankledger.pipeline.data.formats.delimited import delimited_lines, parse_delimited
from rankledger.pipeline.data.formats.json import nested_rows, parse_nested
from rankledger.pipeline.data.formats.jsonl import json_lines, parse_jsonl
from rankledger.pipeline.data.formats.parquet import parse_parquet
from rankledger.pipeline.data.formats.trec import parse_trec, trec_lines

__all__ = ["Kind", "Part", "line_of", "parse"]

_PARSERS: Mapping[str, Callable[[FilePart], pa.Table]] = {
    "trec": parse_trec,
    "tsv": parse_delimited,
    "csv": parse_delimited,
    "jsonl": parse_jsonl,
    "json": parse_nested,
    "parquet": parse_parquet,
}


def parse(part: FilePart) -> pa.Table:
    """The columns of `part.kind`: query_id dictionary-coded, doc_id as strings, the value as float64; no nulls.

    Raises:
        InputError: a line or row is malformed; it is named.
    """
    table = _PARSERS[part.format](part)
    if "query_id" in table.column_names and not pa.types.is_dictionary(table.schema.field("query_id").type):
        table = table.set_column(0, "query_id", table.column("query_id").dictionary_encode())
    for column in part.kind.ids:
        row = odd_id(table, column)
        if row is not None:
            n_bytes = len(table.column(column)[row].as_py().encode())
            refuse_id(part.path, column, n_bytes, line_of(part, row))
    return table


def line_of(part: FilePart, row: int) -> str:
    """Where a row (from 0) stands: `line 3` or, in Parquet, `row 3`, both from 1; in JSON, its ids."""
    if part.format == "parquet":
        return f"row {row + 1}"
    if part.format == "json":
        return next(itertools.islice(nested_rows(part), row, None))
    records = {"trec": trec_lines, "jsonl": json_lines}.get(part.format, delimited_lines)(part)
    return f"line {next(itertools.islice(records, row, None))[0]}"
