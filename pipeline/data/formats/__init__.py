"""How each format lays out rows: the bytes of one file to a table of (query_id, doc_id, value).

Text is read by Arrow, which is fast but knows one layout of a line; where Arrow refuses, Python reads line by line,
which is tolerant and can name the line that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

import pyarrow as pa

from rankledger.pipeline.data.formats.common import FilePart, Format, odd_id, refuse_id
from rankledger.pipeline.data.formats.lists import rows_of_lists
from rankledger.pipeline.types import inputs

__all__ = ["FORMATS", "format_of", "parse"]

FORMATS: Mapping[str, Format] = {name: resolve_name(f"{__name__}.{place}") for name, place in inputs.FORMATS.items()}
_BY_SUFFIX = {suffix: name for name, known in FORMATS.items() for suffix in known.suffixes}


def format_of(suffix: str) -> str:
    """The format of files whose names end so; an unknown ending means TREC text."""
    return _BY_SUFFIX.get(suffix, "trec")


def parse(part: FilePart) -> pa.Table:
    """The columns of `part.kind`: query_id dictionary-coded, doc_id as strings, the value as float64; no nulls.

    Raises:
        InputError: a line or row is malformed; it is named.
    """
    table = part.format.parse(part) if part.lists is None else rows_of_lists(part)
    if "query_id" in table.column_names and not pa.types.is_dictionary(table.schema.field("query_id").type):
        table = table.set_column(0, "query_id", table.column("query_id").dictionary_encode())
    for column in part.kind.ids:
        row = odd_id(table, column)
        if row is not None:
            refuse_id(part, column, table.column(column)[row].as_py(), row)
    return table
