"""Parquet."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.data.formats.layout import Part, schema_of
from pipeline.errors import InputError

__all__ = ["open_parquet", "parse_parquet"]


def open_parquet(part: Part) -> Any:
    """The file as Arrow opens it: its schema is read, its columns are not."""
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(pa.BufferReader(part.data))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{part.path}: not Parquet ({str(error).partition(chr(10))[0]}); write it again") from None


def parse_parquet(part: Part) -> pa.Table:
    """The wanted columns; ids may be strings or whole numbers, the value any number."""
    file = open_parquet(part)
    part = part.with_columns(file.schema_arrow.names)
    names = [part.name(column) for column in part.kind.columns]
    for column, name in zip(part.kind.columns, names, strict=True):
        if name not in file.schema_arrow.names:
            found = ", ".join(file.schema_arrow.names)
            raise InputError(f"{part.path}: no column '{name}' among {found}; map it with columns: {{{column}: …}}")
        if file.schema_arrow.names.count(name) > 1:
            raise InputError(f"{part.path}: column '{name}' stands twice; name each column once")
        _check_type(part, column, file.schema_arrow.field(name).type)
    try:
        table = file.read(columns=names).select(names)
        table.validate(full=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{part.path}: damaged Parquet ({str(error).partition(chr(10))[0]}); write it again") from None
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
            raise InputError(f"{part.path}: {column} is {found}; write ids as strings or whole numbers")
    elif not (whole or pa.types.is_floating(plain) or pa.types.is_decimal(plain)):
        raise InputError(f"{part.path}: {column} is {found}; write numbers")
