"""Mutations of Parquet that stay Parquet: other types, nulls, text that is none, other encodings and compressions."""

import contextlib
import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyarrow import parquet

_TYPES = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32()),
    *(pa.float64(), pa.bool_(), pa.null(), pa.string(), pa.large_string(), pa.string_view(), pa.binary()),
    *(pa.large_binary(), pa.binary_view(), pa.binary(4), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns")),
    *(pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin"), pa.duration("ms"), pa.decimal32(5, 2)),
    *(pa.decimal128(38, 3), pa.decimal256(60, 30), pa.dictionary(pa.int32(), pa.string())),
    *(pa.dictionary(pa.int8(), pa.int64()), pa.dictionary(pa.int16(), pa.large_string()), pa.list_(pa.string())),
    *(pa.list_(pa.float64()), pa.large_list(pa.int64()), pa.list_(pa.float32(), 2), pa.struct({"a": pa.string()})),
    *(pa.map_(pa.string(), pa.int64()), pa.list_(pa.list_(pa.float64())), pa.timestamp("s", "UTC")),
)
_SAMPLES: tuple[Any, ...] = (0, 1, -1, 2.5, float("nan"), float("inf"), 10**17, b"\xff\xfe", "q1", True, None)
_WRAPPED: tuple[Callable[[Any], Any], ...] = (lambda x: x, lambda x: [x], lambda x: {"a": x}, lambda x: [("k", x)])
_FAILURES = (pa.ArrowException, ValueError, TypeError, OverflowError, OSError)


def mutate_table(data: bytes, rng: random.Random, words: Sequence[str]) -> bytes:
    try:
        table = _read(data)
        if table.num_columns and rng.random() < 0.8:
            table = rng.choice((_retyped, _retyped, _filled, _filled, _garbled, _renamed, _rearranged))(
                table, rng, words
            )
        return _written(table, rng)
    except _FAILURES:
        return data


@lru_cache(maxsize=64)
def _read(data: bytes) -> pa.Table:
    return parquet.read_table(pa.BufferReader(data), use_threads=False)


def _retyped(table: pa.Table, rng: random.Random, words: Sequence[str]) -> pa.Table:
    """One column as another type: cast if it can be, else filled with something of that type."""
    place, wanted = rng.randrange(table.num_columns), rng.choice(_TYPES)
    column = table.column(place)
    with contextlib.suppress(*_FAILURES):
        return _replaced(table, place, column.cast(wanted, safe=False))
    for sample in rng.sample(_SAMPLES, len(_SAMPLES)):
        for wrapped in _WRAPPED:
            with contextlib.suppress(*_FAILURES):
                return _replaced(table, place, pa.array([wrapped(sample)] * len(table), wanted))
    return table


def _filled(table: pa.Table, rng: random.Random, words: Sequence[str]) -> pa.Table:
    place = rng.randrange(table.num_columns)
    column = table.column(place)
    cells = column.to_pylist()
    for _ in range(rng.choice((1, 1, 3, len(cells)))):
        if cells:
            cells[rng.randrange(len(cells))] = rng.choice((None, rng.choice(cells), rng.choice((*_SAMPLES, *words))))
    with contextlib.suppress(*_FAILURES):
        return _replaced(table, place, pa.array(cells, column.type))
    return _replaced(table, place, pa.array([None if cell is None else str(cell) for cell in cells]))


def _garbled(table: pa.Table, rng: random.Random, words: Sequence[str]) -> pa.Table:
    texts = [rng.choice((b"\xff", b"q\xc3", b"\xed\xa0\x80", b"", b"\x00")) for _ in range(len(table))]
    column = pa.Array.from_buffers(pa.string(), len(texts), pa.array(texts, pa.binary()).buffers())
    return _replaced(table, rng.randrange(table.num_columns), column)


def _renamed(table: pa.Table, rng: random.Random, words: Sequence[str]) -> pa.Table:
    names = list(table.column_names)
    names[rng.randrange(len(names))] = rng.choice((*words, *names, ""))
    return table.rename_columns(names)


def _rearranged(table: pa.Table, rng: random.Random, words: Sequence[str]) -> pa.Table:
    place = rng.randrange(table.num_columns)
    ways: tuple[Callable[[], pa.Table], ...] = (
        lambda: table.remove_column(place),
        lambda: table.append_column(table.field(place), table.column(place)),
        lambda: table.slice(0, 0),
        lambda: table.slice(rng.randint(0, len(table)), rng.randint(0, len(table))),
        lambda: pa.concat_tables([table, table.slice(0, 1)]),
        lambda: pa.concat_tables([table] * 20),
        lambda: table.select(list(reversed(table.column_names))),
        lambda: table.replace_schema_metadata({rng.choice(words): rng.choice(words)}),
        lambda: table.replace_schema_metadata(None),
    )
    return rng.choice(ways)()


def _replaced(table: pa.Table, place: int, column: Any) -> pa.Table:
    return table.set_column(place, table.column_names[place], column)


def _written(table: pa.Table, rng: random.Random) -> bytes:
    sink = pa.BufferOutputStream()
    options: dict[str, Any] = {"compression": rng.choice(("none", "snappy", "gzip", "zstd", "lz4", "brotli"))}
    if rng.random() < 0.5:
        options |= {
            "version": rng.choice(("1.0", "2.4", "2.6")),
            "data_page_version": rng.choice(("1.0", "2.0")),
            "use_dictionary": rng.random() < 0.5,
            "row_group_size": rng.choice((1, 3, 1_000)),
            "data_page_size": rng.choice((1, 100, 1 << 20)),
            "write_statistics": rng.random() < 0.5,
            "store_schema": rng.random() < 0.7,
            "write_page_checksum": rng.random() < 0.3,
        }
    parquet.write_table(table, sink, **options)
    return bytes(sink.getvalue().to_pybytes())
