"""Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.pipeline.data.formats.common import PAGE, Cut, FilePart, Format, Spans, schema_of
from rankledger.pipeline.support.arrow import integers, numpy_of
from rankledger.pipeline.support.errors import InputError, shorten

__all__ = ["PARQUET"]

_CODE = 4  # bytes of the code of an id
_CELL = 8  # bytes that a value takes at least once it is read
_REPEATS = 2  # bytes stored of a value, below which texts are read as dictionaries: a few may stand in all rows


def _open(part: FilePart, coded: Sequence[str] = ()) -> Any:
    """The file as Arrow opens it: its schema is read, its columns are not; these will be read as dictionaries."""
    from pyarrow import parquet

    try:
        stored = pa.BufferReader(part.data) if part.spans is None else part.spans.file()
        return parquet.ParquetFile(stored, read_dictionary=[*coded])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{part.path}: not Parquet ({_first_line(error)}); write it again") from None


def _read(part: FilePart, file: Any, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
    """These columns, sound to the last value; if all of them would take more bytes than the file may, it is refused.

    Args:
        part: the file, or a part of it.
        file: the same, opened.
        names: the columns.
        coded: those whose texts are read as dictionaries, however many there are.
    """
    # Of single columns nothing is asked: where the footer contradicts itself, Arrow's answer ends the process.
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    n_rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
    _refuse_large(part, n_rows, max(n_rows * len(names) * _CELL, sum(group.total_byte_size for group in groups)))
    repeats = part.size < n_rows * len(names) * _REPEATS
    try:
        opened = _open(part, names if repeats else coded) if repeats or coded else file
        table = _columns_of(part, opened, list(names)).select(list(names))
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{part.path}: damaged Parquet ({_first_line(error)}); write it again") from None
    written_out = (_written_out(table.column(name)) for name in names if repeats or name not in coded)
    _refuse_large(part, n_rows, sum(written_out))
    return table


def _columns_of(part: FilePart, file: Any, names: list[str]) -> pa.Table:
    return file.read(columns=names) if part.groups is None else file.read_row_groups([*part.groups], columns=names)


def _refuse_large(part: FilePart, n_rows: int, n_bytes: int) -> None:
    if n_bytes > part.limit:
        found = f"{n_rows:,} rows of about {n_bytes:,} bytes come of {part.size:,}"
        raise InputError(f"{part.path}: {found}; check the file, or set allow_large: true")


def _written_out(column: pa.ChunkedArray) -> int:
    """Bytes that texts take once they are no dictionary any more; 0 of other columns."""
    if not (pa.types.is_dictionary(column.type) and column.type.value_type in (pa.string(), pa.binary())):
        return 0
    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(found).as_py() or 0 for found in lengths)


def _parse(part: FilePart) -> pa.Table:
    """The wanted columns; ids may be strings or whole numbers, the value any number."""
    file = _open(part)
    names = _names(part, file)
    queries = names[:1] if part.kind.ids[0] == "query_id" else []
    table = _read(part, file, names, [name for name in queries if file.schema_arrow.field(name).type == pa.string()])
    for name in names:
        if table.column(name).null_count:
            row = pc.index(pc.is_null(table.column(name)), True).as_py()
            raise InputError(f"{part.path}: {name} is null ({part.position(row)}); fill it or remove the row")
    columns = [
        _coded(column)
        if field.name in queries
        else column.cast(field.type, safe=pa.types.is_string(field.type))  # a whole number beyond 2**53 is rounded
        for column, field in zip(table.columns, schema_of(part.kind, names), strict=True)
    ]
    return pa.Table.from_arrays(columns, names=list(part.kind.columns))


def _names(part: FilePart, file: Any) -> list[str]:
    """The wanted columns as the file calls them; they are there, of types that can be read."""
    part = part.with_columns(file.schema_arrow.names)
    names = [part.name(column) for column in part.kind.columns]
    part.check_columns(names, file.schema_arrow.names)
    for column, name in zip(part.kind.columns, names, strict=True):
        _check_type(part, column, file.schema_arrow.field(name).type)
    return names


def _coded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids as codes of the distinct ones, which stand in the order in which they first appear; no text is made twice."""
    plain = not pa.types.is_dictionary(column.type)
    coded = (column.dictionary_encode() if plain else column).unify_dictionaries()
    if not len(coded):
        return column.cast(pa.string())
    ids = coded.chunk(0).dictionary.cast(pa.string())
    if pc.count_distinct(ids).as_py() < len(ids):  # a writer's dictionary may hold an id twice
        return column.cast(pa.string())
    codes = [numpy_of(chunk.indices.cast(pa.int32()), np.int32) for chunk in coded.chunks]
    begins = (own[np.flatnonzero(np.diff(own, prepend=-1))].tolist() for own in codes)
    order = [*dict.fromkeys(chain.from_iterable(begins))]
    places = np.zeros(len(ids), dtype=np.int32)
    places[order] = np.arange(len(order))
    found = ids.take(integers(np.array(order, dtype=np.int64)))
    numbers = (pa.py_buffer(places[own]) for own in codes)
    arrays = (pa.Int32Array.from_buffers(pa.int32(), own.size // _CODE, [None, own]) for own in numbers)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(own, found) for own in arrays])


def _check_type(part: FilePart, column: str, found: pa.DataType) -> None:
    plain = found.value_type if pa.types.is_dictionary(found) else found
    whole = pa.types.is_integer(plain)
    if column in part.kind.ids:
        text = pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain)
        if not (text or whole):
            raise InputError(f"{part.path}: {column} is {shorten(str(found))}; write ids as strings or whole numbers")
    elif not (whole or pa.types.is_floating(plain) or pa.types.is_decimal(plain)):
        raise InputError(f"{part.path}: {column} is {shorten(str(found))}; write numbers")


def _first_line(error: Exception) -> str:
    return shorten(str(error).partition("\n")[0])


def _columns(part: FilePart) -> list[str]:
    return list(_open(part).schema_arrow.names)


def _table(part: FilePart, names: Sequence[str]) -> pa.Table:
    file = _open(part)
    part.check_columns(names, file.schema_arrow.names)
    return _read(part, file, names)


def _cells(part: FilePart, names: Sequence[str]) -> dict[str, list[object]]:
    """The values as Python has them."""
    table = _table(part, names)
    return {name: _values(part, name, table.column(name)) for name in names}


def _values(part: FilePart, name: str, column: pa.ChunkedArray) -> list[object]:
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError, KeyError) as error:  # of times and zones that Python does not know
        found = f"holds {column.type} that cannot be read ({shorten(str(error))})"
        raise InputError(f"{part.path}: '{name}' {found}; write texts or numbers") from None


def _position(part: FilePart, row: int) -> str:
    return f"row {part.before() + row + 1}"


def _end_size(end: memoryview) -> int:
    """Bytes of the footer, with its size and the mark behind it, which are the last eight; 0 without the mark."""
    return int.from_bytes(end[-8:-4], "little") + 8 if bytes(end[-4:]) == b"PAR1" else 0


def _cut(part: FilePart, n_rows: int) -> list[Cut]:
    """Parts of as many row groups as have at most so many rows together; a larger row group is one."""
    file = _open(part)
    names = _names(part, file)
    cuts, before, n_here = [0], [0], 0
    for number in range(file.metadata.num_row_groups):
        n_group = file.metadata.row_group(number).num_rows
        if n_here and n_here + n_group > n_rows:
            cuts.append(number)
            before.append(before[-1] + n_here)
            n_here = 0
        n_here += n_group
    groups = [range(*both) for both in pairwise([*cuts, file.metadata.num_row_groups])]
    return [
        Cut(own if len(groups) > 1 else None, n_before, _spans_of(part, own, names) if part.spans else ())
        for own, n_before in zip(groups, before, strict=True)
    ]


def _spans_of(part: FilePart, groups: Sequence[int], names: Sequence[str]) -> list[tuple[int, int]]:
    """Where these columns of these row groups are, in the order of the file.

    Arrow reads a file of which it then finds nothing, and what it asks for is noted. It knows where writers miscount.
    Of a column's place nothing is asked: where the footer contradicts itself, Arrow's answer ends the process.
    """
    assert part.spans is not None, "of what is there as a whole nobody asks"
    views = [*part.spans.views]
    spans = Spans(part.size, views)
    file = _open(replace(part, spans=spans))
    views.clear()
    for number, name in product(groups, dict.fromkeys(names)):
        with suppress(pa.ArrowException, OSError):
            file.read_row_groups([number], columns=[name], use_threads=False)
    joined: list[tuple[int, int]] = []
    for place, n_bytes in sorted(spans.asked):
        near = bool(joined) and place <= joined[-1][1] + PAGE  # what is between costs less than a piece of its own
        begin, end = joined.pop() if near else (place, place)
        joined.append((begin, max(end, place + n_bytes)))
    return joined


PARQUET = Format(
    "parquet",
    (".parquet", ".pq"),
    _parse,
    _position,
    _columns,
    _cells,
    _table,
    typed=True,
    end_size=_end_size,
    cut=_cut,
)
