"""Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.data.formats.layout import Part, schema_of
from pipeline.errors import InputError, shorten

__all__ = ["open_parquet", "parse_parquet", "read_parquet"]

_CELL = 8  # bytes that a value takes at least once it is read


def open_parquet(part: Part, coded: Sequence[str] = ()) -> Any:
    """The file as Arrow opens it: its schema is read, its columns are not; these will be read as dictionaries."""
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(pa.BufferReader(part.data), read_dictionary=[*coded])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{part.path}: not Parquet ({_first_line(error)}); write it again") from None


def read_parquet(part: Part, file: Any, names: Sequence[str]) -> pa.Table:
    """These columns, sound to the last value.

    Raises:
        InputError: they are damaged, or would take more bytes than the file may.
    """
    with _refused_if_damaged(part):  # first: where a footer contradicts itself, asking it for a column ends the process
        for group in range(file.metadata.num_row_groups):
            next(file.iter_batches(1, row_groups=[group], columns=list(names), use_threads=False), None)
    _refuse_large(part, file, sum(max(chunk.n_values * _CELL, chunk.size) for chunk in _chunks(file.metadata, names)))
    coded = _repeated(file.metadata, names, part.limit)
    with _refused_if_damaged(part):
        table = (open_parquet(part, coded) if coded else file).read(columns=list(names)).select(list(names))
        table.validate(full=True)
    for name in coded:
        _refuse_large(part, file, sum(map(_n_bytes, table.column(name).chunks)))
    return table


@contextmanager
def _refused_if_damaged(part: Part) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{part.path}: damaged Parquet ({_first_line(error)}); write it again") from None


def _refuse_large(part: Part, file: Any, n_bytes: int) -> None:
    if n_bytes > part.limit:
        found = f"{file.metadata.num_rows:,} rows of about {n_bytes:,} bytes come of {len(part.data):,}"
        raise InputError(f"{part.path}: {found}; check the file, or set allow_large: true")


def _repeated(metadata: Any, names: Sequence[str], limit: float) -> list[str]:
    """The columns of texts of which a few stand in so many rows that they might go beyond the limit, written out."""
    found = []
    for name in names:
        chunks = [chunk for chunk in _chunks(metadata, [name]) if chunk.text]
        stored = sum(chunk.n_stored for chunk in chunks)
        if stored < 2 * sum(chunk.n_values for chunk in chunks) and sum(chunk.longest for chunk in chunks) > limit:
            found.append(name)
    return found


def _n_bytes(texts: pa.DictionaryArray) -> int:
    """Bytes of the texts, written out."""
    return pc.sum(pc.binary_length(texts.dictionary).take(texts.indices)).as_py() or 0


class _Chunk(NamedTuple):
    """What the footer says of a piece of a column: its values, their bytes, and whether they are texts, one a row."""

    n_values: int
    size: int
    n_stored: int
    text: bool

    @property
    def longest(self) -> int:
        """Bytes that it takes if every row has the only text in it."""
        return self.n_values * self.size


def _chunks(metadata: Any, names: Sequence[str]) -> Iterator[_Chunk]:
    """The pieces of these columns."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for place in range(group.num_columns):
            path = metadata.schema.column(place).path
            if any(path == name or path.startswith(f"{name}.") for name in names):
                chunk = group.column(place)
                n_values = max(chunk.num_values, group.num_rows)
                text = path in names and chunk.physical_type == "BYTE_ARRAY"
                yield _Chunk(n_values, chunk.total_uncompressed_size, chunk.total_compressed_size, text)


def parse_parquet(part: Part) -> pa.Table:
    """The wanted columns; ids may be strings or whole numbers, the value any number."""
    file = open_parquet(part)
    part = part.with_columns(file.schema_arrow.names)
    names = [part.name(column) for column in part.kind.columns]
    for column, name in zip(part.kind.columns, names, strict=True):
        if name not in file.schema_arrow.names:
            found = shorten(", ".join(file.schema_arrow.names))
            raise InputError(f"{part.path}: no column '{name}' among {found}; map it with columns: {{{column}: …}}")
        if file.schema_arrow.names.count(name) > 1:
            raise InputError(f"{part.path}: column '{name}' stands twice; name each column once")
        _check_type(part, column, file.schema_arrow.field(name).type)
    table = read_parquet(part, file, names)
    for name in names:
        if table.column(name).null_count:
            row = pc.index(pc.is_null(table.column(name)), True).as_py()
            raise InputError(f"{part.path}: {name} is null (row {row + 1}); fill it or leave the row out")
    columns = [
        column.cast(field.type, safe=pa.types.is_string(field.type))  # a whole number beyond 2**53 is rounded
        for column, field in zip(table.columns, schema_of(part.kind, names), strict=True)
    ]
    return pa.Table.from_arrays(columns, names=list(part.kind.columns))


def _check_type(part: Part, column: str, found: pa.DataType) -> None:
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
