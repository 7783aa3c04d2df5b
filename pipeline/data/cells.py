"""Columns of a file cell by cell, as they are written: texts, numbers, or nothing.

A text of a queries table keeps its spelling. In JSON lines and Parquet a number is read as Python writes it, but a
whole one without decimals: 3.0 is "3", for a column of whole numbers becomes one of decimal numbers where a row has
none. True and false are read as JSON writes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pyarrow as pa

from pipeline.data.formats import Part, line_of
from pipeline.data.formats.columnar import open_parquet, read_parquet
from pipeline.data.formats.delimited import delimited_header, delimited_records
from pipeline.data.formats.jsonl import json_objects
from pipeline.data.formats.layout import refuse_surrogates
from pipeline.errors import InputError, likely, shorten

__all__ = ["column_names", "read_cells", "read_texts"]


def column_names(part: Part) -> list[str]:
    """The columns of a file in their order; of JSON lines, the keys of all objects."""
    if part.format == "parquet":
        return list(open_parquet(part).schema_arrow.names)
    if part.format == "jsonl":
        return [*dict.fromkeys(key for _, found in json_objects(part) for key in found)]
    return delimited_header(part)


def read_cells(part: Part, names: Sequence[str]) -> Mapping[str, Sequence[object]]:
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
            remedy = likely(name, found) or "; mend its name"
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


def _plain(part: Part, name: str, column: pa.ChunkedArray) -> list[object]:
    """The values as Python has them."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError, KeyError) as error:  # of times and zones that Python does not know
        found = f"holds {column.type} that cannot be read ({shorten(str(error))})"
        raise InputError(f"{part.path}: '{name}' {found}; write texts or numbers") from None


def read_texts(part: Part, column: str) -> list[str | None]:
    """The texts of a column of one file, None where a cell is empty or holds blanks alone.

    Raises:
        InputError: the column is not there, or a cell holds a list or a mapping.
    """
    name = part.name(column)
    return [_text(part, name, row, cell) for row, cell in enumerate(read_cells(part, [name])[name])]


def _text(part: Part, name: str, row: int, cell: object) -> str | None:
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
