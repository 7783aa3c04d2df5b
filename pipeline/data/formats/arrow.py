"""Arrow tables as rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.pipeline.data.formats.common import EACH, REMEDIES, FilePart, KeyChain, schema_of
from rankledger.pipeline.support.arrow import integers, numpy_of
from rankledger.pipeline.support.errors import InputError, shorten

_CODE = 4  # bytes of the code of an id


def wanted_names(part: FilePart, schema: pa.Schema) -> list[str]:
    """Return the table's names of the wanted columns. Raise InputError for a missing or mistyped one."""
    names = [part.name(column) for column in part.kind.columns]
    part.check_columns(names, schema.names)
    for column, name in zip(part.kind.columns, names, strict=True):
        _check_type(part, column, schema.field(name).type)
    return names


def rows_of(part: FilePart, table: pa.Table) -> pa.Table:
    """Return the rows of a table of wanted columns under our names. A null is an InputError."""
    table = plain_table(table)
    for name in table.column_names:
        if table.column(name).null_count:
            row = pc.index(pc.is_null(table.column(name)), True).as_py()
            raise InputError(f"{part.path}: {name} is null ({part.position(row)}); fill it or remove the row")
    columns = [
        _coded(column)
        if ours == "query_id" and part.kind.ids[0] == ours
        else column.cast(field.type, safe=pa.types.is_string(field.type))  # a whole number beyond 2**53 is rounded
        for ours, column, field in zip(
            part.kind.columns, table.columns, schema_of(part.kind, table.column_names), strict=True
        )
    ]
    return pa.Table.from_arrays(columns, names=list(part.kind.columns))


def values_of(part: FilePart, name: str, column: pa.ChunkedArray) -> list[object]:
    """Return the cells of a column as Python values."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError, KeyError) as error:  # of times and zones that Python does not know
        found = f"holds {column.type} that cannot be read ({shorten(str(error))})"
        raise InputError(f"{part.path}: '{name}' {found}; write texts or numbers") from None


def plain_table(table: pa.Table) -> pa.Table:
    """Return the table with strings instead of string views, which most functions of Arrow reject."""
    schema = pa.schema([column.with_type(_plain(column.type)) for column in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def _plain(found: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(found):
        return pa.string()
    if pa.types.is_dictionary(found):
        return pa.dictionary(found.index_type, _plain(found.value_type), found.ordered)
    if pa.types.is_struct(found):
        return pa.struct([inner.with_type(_plain(inner.type)) for inner in found])
    if pa.types.is_list(found):
        return pa.list_(_plain(found.value_type))
    if pa.types.is_large_list(found):
        return pa.large_list(_plain(found.value_type))
    return pa.list_(_plain(found.value_type), found.list_size) if pa.types.is_fixed_size_list(found) else found


def chains_of(schema: pa.Schema) -> dict[str, KeyChain]:
    """Return the keys to each value of a row, by names such as `items` and `items.item_id`."""
    chains = [chain for column in schema for chain in _chains(_plain(column.type), (column.name,))]
    return {".".join(key for key in chain if key != EACH): chain for chain in reversed(chains)}


def _chains(found: pa.DataType, chain: KeyChain) -> Iterator[KeyChain]:
    if pa.types.is_struct(found):
        for inner in found:
            yield from _chains(inner.type, (*chain, inner.name))
    elif not _is_list(found):
        yield chain
    elif EACH not in chain:
        yield from _chains(found.value_type, (*chain, EACH))


def _is_list(found: pa.DataType) -> bool:
    return bool(pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found))


def lists_of(part: FilePart, table: pa.Table) -> pa.Table:
    """Return queries and lists of documents and values of a table with lists."""
    assert part.lists is not None, "which its layout has"
    chains = part.lists.chains
    batches = [
        pa.RecordBatch.from_arrays([_led_to(batch.column(chain[0]), chain[1:]) for chain in chains.values()], [*chains])
        for batch in plain_table(table).to_batches()
    ]
    return pa.Table.from_batches(batches) if batches else pa.table({name: pa.array([], pa.null()) for name in chains})


def _led_to(column: pa.Array, chain: KeyChain) -> pa.Array:
    """Return the values at the end of a chain of keys. Lists are large lists, empty for null."""
    if not chain:
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if chain[0] != EACH:
        return _led_to(pc.struct_field(column, chain[0]), chain[1:])
    sizes = numpy_of(pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64()), np.int64)
    values = _led_to(pc.list_flatten(column), chain[1:])
    return pa.LargeListArray.from_arrays(integers(np.cumsum([0, *sizes])), values)


def _coded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    plain = not pa.types.is_dictionary(column.type)
    coded = (column.dictionary_encode() if plain else column).unify_dictionaries()
    if not len(coded):
        return column.cast(pa.string())
    ids = coded.chunk(0).dictionary.cast(pa.string())
    if pc.count_distinct(ids).as_py() < len(ids):  # a writer's dictionary may hold an id twice
        return column.cast(pa.string())
    codes = [numpy_of(chunk.indices.cast(pa.int32()), np.int32) for chunk in coded.chunks]
    changing = ((own[:1], own[1:][own[1:] != own[:-1]]) for own in codes)  # without those that equal the one before
    order = [*dict.fromkeys(code for both in changing for some in both for code in some.tolist())]
    found = ids.take(integers(np.array(order, dtype=np.int64)))
    if order != [*range(len(order))]:
        places = np.zeros(len(ids), dtype=np.int32)
        places[order] = np.arange(len(order))
        codes = [places[own] for own in codes]
    numbers = map(pa.py_buffer, codes)
    arrays = (pa.Int32Array.from_buffers(pa.int32(), own.size // _CODE, [None, own]) for own in numbers)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(own, found) for own in arrays])


def _check_type(part: FilePart, column: str, found: pa.DataType) -> None:
    plain = found.value_type if pa.types.is_dictionary(found) else found
    if pa.types.is_null(plain):  # an empty column, or one whose first row is refused
        return
    if column in part.kind.ids and not is_id(plain):
        raise InputError(f"{part.path}: {column} is {shorten(str(found))}; write ids as strings or whole numbers")
    if column not in part.kind.ids and not is_number(plain):
        raise InputError(f"{part.path}: {column} is {shorten(str(found))}; {REMEDIES.get(column, 'write numbers')}")


def is_id(found: pa.DataType) -> bool:
    """Return whether ids may have a type."""
    text = pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)
    return bool(text or pa.types.is_integer(found))


def is_number(found: pa.DataType) -> bool:
    """Return whether values may have a type."""
    return bool(pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found))
