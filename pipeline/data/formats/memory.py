"""Inputs in memory: data frames, Arrow tables, mappings of mappings, tuples. Rows count from 1."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.pipeline.config.sources import InMemory
from rankledger.pipeline.data.files import first_line
from rankledger.pipeline.data.formats.common import FilePart, Format, double
from rankledger.pipeline.data.formats.layouts import KeyChain, find_columns
from rankledger.pipeline.data.formats.parquet import chains_of, lists_of, plain_table, rows_of, values_of, wanted_names
from rankledger.pipeline.data.rows import InputFile, row_number
from rankledger.pipeline.support.arrow import integers
from rankledger.pipeline.support.errors import InputError, shorten

_PAIR = ("query_id", "doc_id")
_CHUNK = 1 << 17  # rows of a chunk, which a thread works on, however few chunks were given
_TEXTS = ("str", "string")  # types of pandas that hold no lists, though their kind is that of objects
_FIRST = 100  # rows of a data frame by which its lists are known


def hold(name: str, data: Any, columns: Sequence[str], *, recorded: bool = False) -> InMemory:
    """Return an input in memory, an iterator as a list. Reject types that cannot be read.

    `recorded` is True if a record needs the digest of the rows.
    """
    if _is_frame(data):
        levels = [level for level in data.index.names if level is not None and level not in data.columns]
        return InMemory(name, data.reset_index(level=levels) if levels else data, recorded)
    if hasattr(data, "__arrow_c_stream__"):
        with suppress(pa.ArrowException, TypeError, ValueError):  # of a column by itself
            return InMemory(name, plain_table(pa.table(data)), recorded)
    elif not isinstance(data, Mapping) and callable(getattr(data, "to_dict", None)):
        data = data.to_dict()  # Qrels and Run of ranx, datasets of HuggingFace
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        data = [*data]
    if isinstance(data, Mapping | list) and (data or columns[: len(_PAIR)] == _PAIR):
        found = find_columns(data, columns, {}) if data else None
        if found is not None:
            return InMemory(name, _build_table(name, found, columns), recorded)
        if columns[: len(_PAIR)] == _PAIR:
            return InMemory(name, data, recorded)
    raise InputError(f"{name}: found {_kind(data)}; give {_takes(columns)}")


def _build_table(name: str, found: Mapping[Any, Sequence[Any]], columns: Sequence[str]) -> pa.Table:
    """Return the columns as a table. A set may hold documents of grade 1."""
    is_ranked = columns[len(_PAIR) :] not in ((), ("relevance",))
    cells = {str(column): [_sort_set(name, cell, is_ranked) for cell in own] for column, own in found.items()}
    return pa.table({column: _array(name, column, own) for column, own in cells.items()})


def _sort_set(path: str, cell: Any, is_ranked: bool) -> Any:
    if isinstance(cell, Set) and is_ranked:
        raise InputError(f"{path}: a set has no order. Use a list")
    return sorted(cell, key=str) if isinstance(cell, Set) else cell


def _array(path: str, name: str, cells: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        values = chain.from_iterable(cell if isinstance(cell, list | tuple | np.ndarray) else [cell] for cell in cells)
        kinds = sorted({_kind(value) for value in values if value is not None})
        found = f"holds {' and '.join(kinds[:3])}" if len(kinds) > 1 else f"cannot be read ({first_line(error)})"
        raise InputError(f"{path}: {name} {found}; write ids as strings, values as numbers") from None


def _takes(columns: Sequence[str]) -> str:
    table = f"a data frame or Arrow table with the column{'s' if columns[1:] else ''} {', '.join(columns)}"
    if columns[: len(_PAIR)] != _PAIR:
        return f"a path, or {table}"
    value = next(iter(columns[len(_PAIR) :]), None)
    return f"a path, {table}, {{query: {_documents(value)}}}, or tuples {_tuple(value)}"


def _documents(value: str | None) -> str:
    return f"{{document: {value}}}" if value else "[document, …]"


def _tuple(value: str | None) -> str:
    return f"(query, document, {value})" if value else "(query, document)"


def describe_rows(part: FilePart, table: pa.Table) -> InputFile:
    """Return size and digest of an input's rows, which do not depend on the type of the data."""
    digest, size = hashlib.sha256(), 0
    pieces = [_canonical(name, table.column(name)) for name in table.column_names]
    if len(part.kind.ids) == 1:  # a table of queries or documents, of which all columns count
        others = (json.dumps([name, *_cells(part, [name])[name]], default=str) for name in sorted({*_columns(part)}))
        pieces.append(memoryview(text.encode()) for text in others)
    for piece in chain(*pieces):
        digest.update(piece)
        size += len(piece)
    return InputFile(f"{part.path} (in memory)", size, digest.hexdigest())


def _canonical(name: str, column: pa.ChunkedArray) -> Iterator[memoryview]:
    """Yield the bytes of a column: its name, the numbers of its rows, and then the texts or further numbers."""
    yield memoryview(name.encode())
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if pa.types.is_dictionary(column.type):
        chunks = [chunk for chunk in column.unify_dictionaries().chunks if len(chunk)]
        yield from _texts([chunks[0].dictionary] if chunks else [])
        chunks = [chunk.indices for chunk in chunks]
    if pa.types.is_string(column.type):
        yield from _texts(chunks)
    else:
        for chunk in chunks:
            width = chunk.type.bit_width // 8
            yield memoryview(chunk.buffers()[1])[chunk.offset * width : (chunk.offset + len(chunk)) * width]


def _texts(chunks: Sequence[pa.StringArray]) -> Iterator[memoryview]:
    bounds = [np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1, chunk.offset * 4) for chunk in chunks]
    for own in bounds:
        yield memoryview(np.diff(own).tobytes())
    for chunk, own in zip(chunks, bounds, strict=True):
        if chunk.buffers()[2] is not None:
            yield memoryview(chunk.buffers()[2])[own[0] : own[-1]]


def _is_frame(data: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _kind(data: object) -> str:
    found = type(data)
    module = found.__module__.partition(".")[0]
    name = found.__name__ if module == "builtins" else f"{module} {found.__name__}"
    return f"{'an' if name[:1] in 'aeio' else 'a'} {name}"


def _held(part: FilePart) -> InMemory:
    assert part.held is not None, "of files this is not asked"
    return part.held


def _columns(part: FilePart) -> list[str]:
    data = _held(part).data
    if isinstance(data, Mapping | list):
        return list(part.kind.columns)
    return list(map(str, data.columns)) if _is_frame(data) else list(data.column_names)


def _parse(part: FilePart) -> pa.Table:
    data = _held(part).data
    if isinstance(data, Mapping | list):
        if part.kind.ids != _PAIR or part.kind.value == "rank":
            wanted = ", ".join(part.kind.columns)
            raise InputError(f"{part.path}: {_kind(data)} cannot hold {wanted}; give a data frame or Arrow table")
        columns = _read_mapping(part, data) if isinstance(data, Mapping) else _read_tuples(part, data)
        table = pa.Table.from_arrays(columns, names=list(part.kind.columns))
        wanted_names(replace(part, names={}), table.schema)
        return rows_of(part, table)
    table = _checked_table(part, [part.name(column) for column in part.kind.columns])
    wanted_names(part, table.schema)
    return rows_of(part, pa.Table.from_batches(table.to_batches(_CHUNK), table.schema))


def _checked_table(part: FilePart, names: Sequence[str]) -> pa.Table:
    part.check_columns(names, _columns(part))
    data = _held(part).data
    if not _is_frame(data):
        return data.select([*names])
    at = [_columns(part).index(name) for name in names]
    frame = data.iloc[:, at].set_axis([*names], axis=1)
    is_plain = isinstance(frame.dtypes.iloc[0], np.dtype)  # the texts of pandas itself are ready for Arrow
    cells = frame[names[0]].to_numpy() if is_plain and len(names) > 1 else np.empty(0, dtype=object)
    coded = None
    with suppress(pa.ArrowException, TypeError, ValueError):  # which the column says below
        coded = _encode_runs(cells)
    if coded is None:
        return _convert_frame(part, frame)
    return _convert_frame(part, frame.iloc[:, 1:]).add_column(0, names[0], coded)


def _encode_runs(cells: npt.NDArray[np.object_]) -> pa.DictionaryArray | None:
    """Return texts as codes, each run made into Arrow's text once. None for other cells."""
    if not (len(cells) and isinstance(cells[0], str)):
        return None
    begins = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))
    firsts = cells[begins]
    if len(begins) > len(cells) // 2 or not all(isinstance(cell, str) for cell in firsts):
        return None
    coded = pa.array(firsts, pa.string()).dictionary_encode()
    sizes = np.diff(begins, append=len(cells))
    codes = coded.indices.take(integers(np.repeat(np.arange(len(begins)), sizes)))
    return pa.DictionaryArray.from_arrays(codes, coded.dictionary)


def _cells(part: FilePart, names: Sequence[str]) -> dict[str, list[object]]:
    table = _checked_table(part, names)
    return {name: values_of(part, name, table.column(name)) for name in names}


def _chains(part: FilePart, _sample: bytes) -> dict[str, KeyChain]:
    data = _held(part).data
    if isinstance(data, Mapping | list):
        return {}
    if not _is_frame(data):
        return chains_of(data.schema)
    found: dict[str, KeyChain] = {}
    for place, (name, type_) in enumerate(zip(_columns(part), data.dtypes, strict=True)):
        first = data.iloc[:_FIRST, [place]].set_axis([name], axis=1)
        if type_.kind != "O" or type_.name in _TEXTS or all(isinstance(cell, str) for cell in first[name]):
            found[name] = (name,)
            continue
        with suppress(InputError):
            found |= chains_of(_convert_frame(part, _without_sets(part.path, first, is_ranked=False)).schema)
    return found


def _without_sets(path: str, frame: Any, *, is_ranked: bool) -> Any:
    names = [name for name in frame if frame[name].dtype.kind == "O"]
    return frame.assign(**{name: [_sort_set(path, cell, is_ranked) for cell in frame[name]] for name in names})


def _convert_frame(part: FilePart, frame: Any) -> pa.Table:
    if part.lists:
        is_ranked = part.kind.value not in (None, "relevance") or "value" in part.lists
        frame = _without_sets(part.path, frame, is_ranked=is_ranked)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        for name in frame:
            _array(part.path, name, [*frame[name]])
        raise


def _read_mapping(part: FilePart, data: Mapping[Any, Any]) -> list[pa.Array]:
    value = part.kind.value
    others = [query for query, documents in data.items() if not isinstance(documents, Mapping)]
    for query in sorted(others, key=lambda each: isinstance(data[each], list | tuple | Set | np.ndarray))[:1]:
        found = f"the value of {_short(query)} is {_kind(data[query]).replace('a str', 'a text')}"
        shapes = ["a list of document ids"] if value in (None, "relevance", "score") else []
        shapes += [_documents(value)] if value else []
        raise InputError(f"{part.path}: {found}. Use {' or '.join(shapes)} for every query.")
    queries = [(query, documents) for query, documents in data.items() if documents]
    codes = np.repeat(np.arange(len(queries)), [len(documents) for _, documents in queries])
    ids = _ids(part, _PAIR[0], [query for query, _ in queries])
    doc_ids = [document for _, documents in queries for document in documents]
    pairs = [ids.take(integers(codes)), _ids(part, _PAIR[1], doc_ids)]
    if value is None:
        return pairs
    return [*pairs, _numbers(part, [number for _, documents in queries for number in documents.values()])]


def _read_tuples(part: FilePart, rows: Sequence[Any]) -> list[pa.Array]:
    wanted = len(part.kind.columns)
    for row, found in enumerate(rows):
        n_fields = wanted if hasattr(found, "_fields") else None
        if not isinstance(found, tuple | list) or len(found[:n_fields]) != wanted:
            expected = _tuple(part.kind.value)
            raise InputError(f"{part.path}: found {_short(found)} ({row_number(row)}); give tuples {expected}")
    queries, doc_ids, *values = ([found[place] for found in rows] for place in range(wanted))
    pairs = [_ids(part, _PAIR[0], queries), _ids(part, _PAIR[1], doc_ids)]
    return [*pairs, *(_numbers(part, column) for column in values)]


def _ids(part: FilePart, column: str, ids: Sequence[Any]) -> pa.Array:
    kinds = {*map(type, ids)}
    if not (kinds <= {str} or (bool not in kinds and all(issubclass(kind, Integral) for kind in kinds))):
        first = type(ids[0])
        odd = (type(i) is not first or isinstance(i, bool) or not isinstance(i, str | Integral) for i in ids)
        row = [*odd].index(True)
        where = row_number(row) if isinstance(_held(part).data, list) else f"at {_short(ids[0])}"
        advice = "write ids as strings or whole numbers, all of one kind"
        raise InputError(f"{part.path}: {column} {_short(ids[row])} ({where}) is {_kind(ids[row])}; {advice}")
    return _array(part.path, column, ids) if ids else pa.array([], pa.string())


def _numbers(part: FilePart, values: Sequence[Any]) -> pa.Array:
    kinds = {*map(type, values)}
    if not kinds <= {int, float} and any(kind is bool or not issubclass(kind, Real) for kind in kinds):
        row = next(row for row, found in enumerate(values) if isinstance(found, bool) or not isinstance(found, Real))
        where = _position(part, row)
        raise InputError(f"{part.path}: {part.kind.value} {_short(values[row])} ({where}) is not a number; fix it")
    try:
        return pa.array([*map(float, values)], pa.float64())
    except OverflowError:
        return pa.array([*map(double, values)], pa.float64())


def _short(value: object) -> str:
    return shorten(repr(value), 60)


def _position(part: FilePart, row: int) -> str:
    data = _held(part).data
    if not isinstance(data, Mapping):
        return row_number(row)
    pairs = ((query, document) for query, documents in data.items() for document in documents)
    query, document = next(pair for place, pair in enumerate(pairs) if place == row)
    return f"query '{shorten(str(query))}', document '{shorten(str(document))}'"


MEMORY = Format(
    "memory",
    (),
    _parse,
    _position,
    _columns,
    _cells,
    _checked_table,
    _columns,
    typed=True,
    find_chains=_chains,
    read_lists=lambda part: lists_of(part, _checked_table(part, part.list_columns)),
)
