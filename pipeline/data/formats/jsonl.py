"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.data.formats import layout
from pipeline.data.formats.layout import Part, Row, row_of, schema_of, table_of
from pipeline.errors import InputError

__all__ = ["json_lines", "json_objects", "parse_jsonl"]


def parse_jsonl(part: Part) -> pa.Table:
    """The wanted keys of every object; ids may be strings or whole numbers."""
    from pyarrow import json as arrow_json

    part = part.with_columns(_first_keys(part))
    names = [part.name(column) for column in part.kind.columns]
    for id_type in (pa.string(), pa.int64()):
        types = [id_type if column in part.kind.ids else pa.float64() for column in part.kind.columns]
        options = arrow_json.ParseOptions(
            explicit_schema=pa.schema(zip(names, types, strict=True)), unexpected_field_behavior="ignore"
        )
        block = arrow_json.ReadOptions(block_size=layout.BLOCK_SIZE)
        try:
            table = arrow_json.read_json(pa.BufferReader(part.data), block, options)
            table.validate(full=True)
        except pa.ArrowInvalid:
            continue
        if len(table) == _count_lines(part.data) and not any(column.null_count for column in table.columns):
            return table.cast(schema_of(part.kind, names)).rename_columns(list(part.kind.columns))
        break  # an object of several lines, several on a line, a blank line, a missing key
    return table_of(part, (_json_row(part, number, found) for number, found in json_objects(part)))


def _first_keys(part: Part) -> list[str]:
    """The keys of the first object; none where the line is malformed, as will be said when it is read."""
    try:
        found = json.loads(next(json_lines(part), (1, b"{}"))[1])
    except (ValueError, RecursionError):
        return []
    return [*found] if isinstance(found, dict) else []


def _count_lines(data: memoryview) -> int:
    ends = int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))
    return ends + (bytes(data[-1:]) != b"\n")


def json_lines(part: Part) -> Iterator[tuple[int, bytes]]:
    """The lines that hold a row, numbered from 1."""
    return ((number, line) for number, line in enumerate(part.lines(), 1) if line.strip())


def json_objects(part: Part) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects, each with the number of its line."""
    for number, line in json_lines(part):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{part.path}:{number}: not JSON ({error}); mend the line") from None
        if not isinstance(found, dict):
            raise InputError(f"{part.path}:{number}: expected one object a line; mend the line")
        yield number, found


def _json_row(part: Part, number: int, found: Mapping[str, Any]) -> Row:
    return row_of(part, number, [_json_value(part, number, column, found) for column in part.kind.columns])


def _json_value(part: Part, number: int, column: str, found: Mapping[str, Any]) -> str:
    name = part.name(column)
    if name not in found:
        keys = ", ".join(found) or "nothing"
        raise InputError(f"{part.path}:{number}: no '{name}' among {keys}; map it with columns: {{{column}: …}}")
    value = found[name]
    if column in part.kind.ids and type(value) not in (str, int):
        raise InputError(f"{part.path}:{number}: {column} is {json.dumps(value)}; write a string or a whole number")
    return str(value)
