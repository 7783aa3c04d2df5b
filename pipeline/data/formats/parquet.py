"""Arrow tables as rows, also with lists, and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.pipeline.data.files import first_line
from rankledger.pipeline.data.formats.common import PAGE, REMEDIES, Cut, FilePart, Format, Spans, schema_of
from rankledger.pipeline.data.formats.layouts import EACH, RANK, KeyChain, columns_line
from rankledger.pipeline.support.arrow import bools, floats, integers, numpy_of
from rankledger.pipeline.support.errors import InputError, shorten

Ints = npt.NDArray[np.int64]

_CODE = 4  # bytes of the code of an id
_CELL = 8  # bytes that a value takes at least once it is read
_LISTED = 100  # rows that a list counts as, where its length is not known
_REPEATS = 2  # bytes stored of a value, below which texts are read as dictionaries: a few may stand in all rows


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
        _encode_ids(column)
        if name == "query_id" and part.kind.ids[0] == name
        else column.cast(field.type, safe=pa.types.is_string(field.type))  # a whole number beyond 2**53 is rounded
        for name, column, field in zip(
            part.kind.columns, table.columns, schema_of(part.kind, table.column_names), strict=True
        )
    ]
    return pa.Table.from_arrays(columns, names=list(part.kind.columns))


def values_of(part: FilePart, name: str, column: pa.ChunkedArray) -> list[object]:
    """Return the cells of a column as Python values."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError, KeyError) as error:  # of times and zones that Python does not know
        problem = f"holds {column.type} that cannot be read ({shorten(str(error))})"
        raise InputError(f"{part.path}: '{name}' {problem}; write texts or numbers") from None


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
    elif not (pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found)):
        yield chain
    elif EACH not in chain:
        yield from _chains(found.value_type, (*chain, EACH))


def lists_of(part: FilePart, table: pa.Table) -> pa.Table:
    """Return queries and lists of documents and values of a table with lists."""
    names, chains = [*part.lists], part.lists.values()
    batches = [
        pa.RecordBatch.from_arrays([_led_to(batch.column(keys[0]), keys[1:]) for keys in chains], names)
        for batch in plain_table(table).to_batches()
    ]
    return pa.Table.from_batches(batches) if batches else pa.table(dict.fromkeys(names, pa.array([], pa.null())))


def _led_to(column: pa.Array, chain: KeyChain) -> pa.Array:
    """Return the values at the end of a chain of keys. Lists are large lists, empty for null."""
    if not chain:
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if chain[0] != EACH:
        return _led_to(pc.struct_field(column, chain[0]), chain[1:])
    sizes = numpy_of(pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64()), np.int64)
    values = _led_to(pc.list_flatten(column), chain[1:])
    return pa.LargeListArray.from_arrays(integers(np.cumsum([0, *sizes])), values)


def rows_of_lists(part: FilePart) -> pa.Table:
    """Return the rows of a part with lists, one per document, under our names."""
    assert part.format.read_lists is not None, "whose lists were found"
    table = part.format.read_lists(part)
    _refuse_types(part, table)
    _refuse_repeats(part, table.column("query_id"))
    n_before = 0
    tables = []
    for batch in table.to_batches():
        tables.append(_rows_of_batch(part, batch, n_before))
        n_before += batch.num_rows
    if not tables:
        return schema_of(part.kind, [*part.kind.columns]).empty_table()
    return pa.concat_tables(tables)


def _rows_of_batch(part: FilePart, batch: pa.RecordBatch, n_before: int) -> pa.Table:
    queries, lists = batch.column("query_id"), batch.column("doc_id")
    if queries.null_count:
        row = pc.index(pc.is_null(queries), True).as_py()
        raise InputError(
            f"{part.path}: query_id is null ({_describe_row(part, n_before + row)}); fill it or remove the row"
        )
    sizes = numpy_of(pc.list_value_length(lists), np.int64)
    documents = pc.list_flatten(lists)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    if documents.null_count:
        row = rows[pc.index(pc.is_null(documents), True).as_py()]
        raise InputError(f"{part.path}: a doc_id is null ({_describe_row(part, n_before + row)}); fill it or remove it")
    ids = queries.cast(pa.string()).filter(bools(sizes > 0))
    codes = np.repeat(np.arange(len(ids), dtype=np.int32), sizes[sizes > 0])
    numbers = pa.Int32Array.from_buffers(pa.int32(), len(codes), [None, pa.py_buffer(codes)])
    columns: list[pa.Array] = [pa.DictionaryArray.from_arrays(numbers, ids), documents.cast(pa.string())]
    if "value" in part.lists:
        columns.append(_values(part, batch, sizes, rows, n_before))
    elif part.kind.value is not None:
        ranks = np.arange(1, len(rows) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        columns.append(floats(np.ones(len(rows)) if part.kind.value == "relevance" else ranks.astype(np.float64)))
    return pa.Table.from_arrays(columns, [*part.kind.columns])


def _values(part: FilePart, batch: pa.RecordBatch, sizes: Ints, rows: Ints, n_before: int) -> pa.Array:
    lengths = numpy_of(pc.list_value_length(batch.column("value")), np.int64)
    if (lengths != sizes).any():
        row = int(np.flatnonzero(lengths != sizes)[0])
        problem = (
            f"{lengths[row]} of {part.kind.value} for {sizes[row]} of doc_id ({_describe_row(part, n_before + row)})"
        )
        raise InputError(f"{part.path}: the lists differ in length: {problem}; write one for each document")
    values = pc.list_flatten(batch.column("value"))
    try:
        values = values.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid as error:
        raise InputError(f"{part.path}: {part.kind.value}: {shorten(str(error))}; write numbers") from None
    if values.null_count:
        row = rows[pc.index(pc.is_null(values), True).as_py()]
        raise InputError(f"{part.path}: a {part.kind.value} is null ({_describe_row(part, n_before + row)}); fill it")
    if part.falls:
        numbers = numpy_of(values, np.float64)
        rising = np.flatnonzero((np.diff(numbers) > 0) & (np.diff(rows) == 0))
        if rising.size:
            ids = {column: part.name(column) for column in part.kind.ids}
            by_score, by_order = (
                columns_line({**ids, **columns}) for columns in ({"score": part.name("score")}, {RANK: ids["doc_id"]})
            )
            problem = f"scores rise within a list ({_describe_row(part, n_before + int(rows[rising[0]]))})"
            remedy = f"say {by_score} if the highest score is first, or {by_order} for the order"
            raise InputError(f"{part.path}: {problem}, so its order is not that of the scores; {remedy}")
    return values


def _refuse_types(part: FilePart, table: pa.Table) -> None:
    for column in table.column_names:
        arrow_type = table.schema.field(column).type
        leaf = arrow_type.value_type if pa.types.is_large_list(arrow_type) else arrow_type
        if pa.types.is_null(leaf):
            continue
        if column == "value" and not (is_number(leaf) or (is_id(leaf) and not part.format.typed)):
            raise InputError(f"{part.path}: {part.kind.value} is {shorten(str(leaf))}; write numbers")
        if column != "value" and not is_id(leaf):
            raise InputError(f"{part.path}: {column} is {shorten(str(leaf))}; write ids as strings or whole numbers")


def _refuse_repeats(part: FilePart, queries: pa.ChunkedArray) -> None:
    if pc.count_distinct(queries).as_py() < len(queries):
        first: dict[str, int] = {}
        for row, query_id in enumerate(map(str, queries.to_pylist())):
            if first.setdefault(query_id, row) != row:
                refuse_second_list(
                    part, query_id, f" ({_describe_row(part, first[query_id])} and {_describe_row(part, row)})"
                )


def refuse_second_list(part: FilePart, query_id: str, where: str = "") -> NoReturn:
    """Reject another list of a query."""
    by_row = "with a score, rank or relevance" if part.kind.value else "as JSON lines"
    advice = f"write all of its documents in one row, or a row per document {by_row}"
    raise InputError(f"{part.path}: query '{shorten(query_id)}' has two lists{where}; {advice}")


def _describe_row(part: FilePart, row: int) -> str:
    return part.format.position(part, row)


def _encode_ids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    plain = not pa.types.is_dictionary(column.type)
    coded = (column.dictionary_encode() if plain else column).unify_dictionaries()
    if not len(coded):
        return column.cast(pa.string())
    ids = coded.chunk(0).dictionary.cast(pa.string())
    if pc.count_distinct(ids).as_py() < len(ids):  # a writer's dictionary may hold an id twice
        return column.cast(pa.string())
    codes = [numpy_of(chunk.indices.cast(pa.int32()), np.int32) for chunk in coded.chunks]
    # A code that equals the one before is left out.
    changing = ((chunk[:1], chunk[1:][chunk[1:] != chunk[:-1]]) for chunk in codes)
    order = [*dict.fromkeys(code for both in changing for some in both for code in some.tolist())]
    distinct = ids.take(integers(np.array(order, dtype=np.int64)))
    if order != [*range(len(order))]:
        places = np.zeros(len(ids), dtype=np.int32)
        places[order] = np.arange(len(order))
        codes = [places[chunk] for chunk in codes]
    numbers = map(pa.py_buffer, codes)
    arrays = (pa.Int32Array.from_buffers(pa.int32(), chunk.size // _CODE, [None, chunk]) for chunk in numbers)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(chunk, distinct) for chunk in arrays])


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


def _open(part: FilePart, coded: Sequence[str] = ()) -> Any:
    from pyarrow import parquet

    try:
        stored = pa.BufferReader(part.data) if part.spans is None else pa.PythonFile(part.spans, mode="r")
        return parquet.ParquetFile(stored, read_dictionary=[*coded])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{part.path}: not Parquet ({first_line(error)}); write it again") from None


def _read(part: FilePart, file: Any, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
    """Read and validate these columns. Reject more bytes than the file may expand to."""
    # Of single columns nothing is asked: where the footer contradicts itself, Arrow's answer ends the process.
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    n_rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
    _refuse_large(part, n_rows, max(n_rows * len(names) * _CELL, sum(group.total_byte_size for group in groups)))
    repeats = part.size < n_rows * len(names) * _REPEATS
    try:
        opened = _open(part, names if repeats else coded) if repeats or coded else file
        groups_read = range(len(groups)) if part.groups is None else part.groups
        table = opened.read_row_groups([*groups_read], columns=[*names]).select([*names])
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{part.path}: damaged Parquet ({first_line(error)}); write it again") from None
    written_out = (_written_out(table.column(name)) for name in names if repeats or name not in coded)
    _refuse_large(part, n_rows, sum(written_out))
    return table


def _refuse_large(part: FilePart, n_rows: int, n_bytes: int) -> None:
    if n_bytes > part.limit:
        problem = f"{n_rows:,} rows of about {n_bytes:,} bytes come of {part.size:,}"
        raise InputError(f"{part.path}: {problem}; check the file, or set allow_large: true")


def _written_out(column: pa.ChunkedArray) -> int:
    if not (pa.types.is_dictionary(column.type) and column.type.value_type in (pa.string(), pa.binary())):
        return 0
    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(lengths_of).as_py() or 0 for lengths_of in lengths)


def _parse(part: FilePart) -> pa.Table:
    file = _open(part)
    names = wanted_names(part, file.schema_arrow)
    queries = names[:1] if part.kind.ids[0] == "query_id" else []
    coded = [name for name in queries if file.schema_arrow.field(name).type == pa.string()]
    return rows_of(part, _read(part, file, names, coded))


def _columns(part: FilePart) -> list[str]:
    return list(_open(part).schema_arrow.names)


def _table(part: FilePart, names: Sequence[str]) -> pa.Table:
    file = _open(part)
    part.check_columns(names, file.schema_arrow.names)
    return _read(part, file, names)


def _cells(part: FilePart, names: Sequence[str]) -> dict[str, list[object]]:
    table = _table(part, names)
    return {name: values_of(part, name, table.column(name)) for name in names}


def _end_size(end: memoryview) -> int:
    return int.from_bytes(end[-8:-4], "little") + 8 if bytes(end[-4:]) == b"PAR1" else 0


def _cut(part: FilePart, n_rows: int) -> list[Cut]:
    file = _open(part)
    names = part.list_columns or wanted_names(part, file.schema_arrow)
    limit = n_rows // _LISTED if part.lists else n_rows
    cuts, before, n_here = [0], [0], 0
    for number in range(file.metadata.num_row_groups):
        n_group = file.metadata.row_group(number).num_rows
        if n_here and n_here + n_group > limit:
            cuts.append(number)
            before.append(before[-1] + n_here)
            n_here = 0
        n_here += n_group
    groups = [range(*both) for both in pairwise([*cuts, file.metadata.num_row_groups])]
    columns = [[*names] for _ in groups]
    if part.kind.value == "score" and RANK in file.schema_arrow.names:
        columns[0].append(RANK)  # with which the first scores are compared
    return [
        (group if len(groups) > 1 else None, n_before, _find_spans(part, group, column) if part.spans else ())
        for group, n_before, column in zip(groups, before, columns, strict=True)
    ]


def _find_spans(part: FilePart, groups: Sequence[int], names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the spans of these columns in the file, found by noting which bytes Arrow asks for.

    The footer is not used, because a contradictory one would crash Arrow.
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
    (".parquet", ".pq", ".parq"),
    _parse,
    lambda part, row: f"row {part.before() + row + 1}",
    _columns,
    _cells,
    _table,
    _columns,
    typed=True,
    end_size=_end_size,
    cut=_cut,
    find_chains=lambda part, _: chains_of(_open(part).schema_arrow),
    read_lists=lambda part: lists_of(part, _table(part, part.list_columns)),
)
