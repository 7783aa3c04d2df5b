"""JSON lines: one object a line.

A key that is read may stand once in an object; of those that are passed over nothing is asked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rankledger.pipeline.data.formats import common
from rankledger.pipeline.data.formats.common import FilePart, Row, row_of, schema_of, shown, table_of
from rankledger.pipeline.errors import InputError, shorten

__all__ = ["json_lines", "json_objects", "parse_jsonl"]

_LINE_FEED, _RETURN = b"\n\r"


class _Object(dict[str, Any]):
    """An object, which has the last value of a key that stands in it twice, and those keys."""

    doubled: frozenset[str] = frozenset()


def parse_jsonl(part: FilePart) -> pa.Table:
    """The wanted keys of every object; ids may be strings or whole numbers."""
    part = part.with_columns(_first_keys(part))
    names = [part.name(column) for column in part.kind.columns]
    table = _by_arrow(part, names, _count_objects(part.data))
    if table is not None:
        return table.cast(schema_of(part.kind, names)).rename_columns(list(part.kind.columns))
    return table_of(part, (_json_row(part, number, found) for number, found in json_objects(part, names)))


def _by_arrow(part: FilePart, names: list[str], n_objects: int) -> pa.Table | None:
    """The wanted keys of that many lines, an object each; None if there is a line that Arrow cannot read so."""
    from pyarrow import json as arrow_json

    for id_type in (pa.string(), pa.int64()) if n_objects else ():
        types = [id_type if column in part.kind.ids else pa.float64() for column in part.kind.columns]
        options = arrow_json.ParseOptions(
            explicit_schema=pa.schema(zip(names, types, strict=True)), unexpected_field_behavior="ignore"
        )
        block = arrow_json.ReadOptions(block_size=common.BLOCK_SIZE)
        try:
            table = arrow_json.read_json(pa.BufferReader(part.data), block, options)
            table.validate(full=True)
        except pa.ArrowException:
            continue
        if len(table) == n_objects and not any(column.null_count for column in table.columns):
            return table
        return None  # several objects on a line, a missing key
    return None


def _count_objects(data: memoryview) -> int:
    """The number of lines if each begins and ends with a brace, else 0.

    So many objects on them are one each. A line of `null` may end the process in Arrow's reader: it must not see one.
    """
    signs = np.frombuffer(data, np.uint8)
    if bytes(data[:1]) != b"{":
        return 0
    n_lines = 1
    for begin in range(0, len(signs) - 1, common.BLOCK_SIZE):
        page = signs[begin : begin + common.BLOCK_SIZE + 1]
        here, after = page[:-1], page[1:]
        ends = begin + np.flatnonzero(here == _LINE_FEED)
        last = signs[ends - 1]
        last = np.where(last == _RETURN, signs[ends - 2], last)
        # Arrow takes any carriage return for the end of a line.
        stray = (after[here == _RETURN] != _LINE_FEED).any()
        if stray or (last != ord("}")).any() or (signs[ends + 1] != ord("{")).any():
            return 0
        n_lines += len(ends)
    return n_lines


def _first_keys(part: FilePart) -> list[str]:
    """The keys of the first object; none where the line is malformed, as will be said when it is read."""
    try:
        found = json.loads(next(json_lines(part), (1, b"{}"))[1])
    except (ValueError, RecursionError):
        return []
    return [*found] if isinstance(found, dict) else []


def json_lines(part: FilePart) -> Iterator[tuple[int, bytes]]:
    """The lines that hold a row, numbered from 1."""
    return ((number, line) for number, line in enumerate(part.lines(), 1) if line.strip())


def json_objects(part: FilePart, names: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects, each with the number of its line.

    Args:
        part: the file.
        names: the keys that are read.

    Raises:
        InputError: a line is no object, or one of these keys stands in it twice.
    """
    for number, line in json_lines(part):
        try:
            found = json.loads(line.decode(), object_pairs_hook=_object)
        except UnicodeDecodeError:
            raise InputError(f"{part.path}:{number}: not UTF-8; convert the file") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{part.path}:{number}: not JSON ({error}); fix the line") from None
        if not isinstance(found, _Object):
            raise InputError(f"{part.path}:{number}: expected one object a line; fix the line")
        for name in names:
            if name in found.doubled:
                raise InputError(f"{part.path}:{number}: '{shorten(name)}' stands twice; keep one")
        yield number, found


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    found = _Object(pairs)
    if len(found) < len(pairs):
        found.doubled = frozenset(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return found


def _json_row(part: FilePart, number: int, found: Mapping[str, Any]) -> Row:
    return row_of(part, number, [_json_value(part, number, column, found) for column in part.kind.columns])


def _json_value(part: FilePart, number: int, column: str, found: Mapping[str, Any]) -> str:
    """The id, or the number as Python writes it, which reads the same number again."""
    name = part.name(column)
    if name not in found:
        keys = shorten(", ".join(found)) or "nothing"
        raise InputError(f"{part.path}:{number}: no '{name}' among {keys}; {part.missing(column, found)}")
    value = found[name]
    if column in part.kind.ids and type(value) not in (str, int):
        raise InputError(f"{part.path}:{number}: {column} is {shown(value)}; write a string or a whole number")
    if column not in part.kind.ids and type(value) not in (int, float):
        text = f"'{shorten(value)}'" if isinstance(value, str) else shown(value)
        raise InputError(f"{part.path}:{number}: {column} {text} is not a number; fix it")
    return str(value)
