"""JSON: lines of one object each, or one object of objects, `{query: {document: value}}` as in ranx."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, product
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from rankledger.pipeline.data.formats.common import (
    BLOCK_SIZE,
    REMEDIES,
    FilePart,
    Format,
    double,
    line_position,
    refuse_surrogates,
    row_of,
    schema_of,
    table_of,
)
from rankledger.pipeline.data.formats.layouts import EACH, KeyChain, find_columns
from rankledger.pipeline.data.formats.parquet import lists_of
from rankledger.pipeline.data.rows import row_number
from rankledger.pipeline.support.errors import InputError, shorten

_LINE_FEED, _RETURN = b"\n\r"
_IDS = ("query_id", "doc_id")
_FIRST = 100  # objects by which lists are known


def written(value: object) -> str:
    """Return a value as JSON writes it, shortened."""
    return shorten(json.dumps(value, ensure_ascii=False))


def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of keys and values. Raise ValueError if a key occurs twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"'{shorten(key)}' occurs twice")
    return values


def load_json(
    where: str, text: bytes | memoryview, remedy: str, hook: Callable[[list[tuple[str, Any]]], Any] = refuse_repeats
) -> Any:
    """Return the value of a JSON text. `where` is the file or line, `remedy` the action if it is invalid."""
    try:
        return json.loads(bytes(text).decode(), object_pairs_hook=hook)
    except UnicodeDecodeError:
        raise InputError(f"{where}: not UTF-8; convert the file") from None
    except (ValueError, RecursionError) as error:
        ends = getattr(error, "pos", -1) >= len(bytes(text).decode().rstrip()) or "Unterminated" in str(error)
        remedy = "the file may be cut off, so copy it again" if ends and remedy == "fix it" else remedy
        raise InputError(f"{where}: not JSON ({error}); {remedy}") from None


def decoded(value: object) -> object:
    """Return the object of a JSON string, and any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


class JsonObject(dict[str, Any]):
    """Object with the last value of each key, and its duplicate keys."""

    doubled: Sequence[str] = ()


def _parse_lines(part: FilePart) -> pa.Table:
    names = [part.name(column) for column in part.kind.columns]
    table = _parse_with_arrow(part, names, _count_objects(part.data))
    if table is not None:
        return table.cast(schema_of(part.kind, names)).rename_columns(list(part.kind.columns))
    rows = (
        row_of(part, number, [_value(part, number, column, content) for column in part.kind.columns])
        for number, content in _objects(part, names)
    )
    return table_of(part, rows)


def _parse_with_arrow(part: FilePart, names: list[str], n_objects: int) -> pa.Table | None:
    for id_type in (pa.string(), pa.int64()) if n_objects else ():
        types = [id_type if column in part.kind.ids else pa.float64() for column in part.kind.columns]
        table = _read_by_arrow(part, pa.schema(zip(names, types, strict=True)))
        if table is None:
            continue
        if len(table) == n_objects and not any(column.null_count for column in table.columns):
            return table
        return None  # several objects on a line, a missing key
    return None


def _read_by_arrow(part: FilePart, schema: pa.Schema) -> pa.Table | None:
    from pyarrow import json as arrow_json

    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    block = arrow_json.ReadOptions(block_size=BLOCK_SIZE)
    try:
        table = arrow_json.read_json(pa.BufferReader(part.data), block, options)
        table.validate(full=True)
    except pa.ArrowException:
        return None
    return table


def _chains(part: FilePart, sample: bytes) -> dict[str, KeyChain]:
    end = sample.rfind(b"\n")
    lines = sample[:end].splitlines() if end > 0 else [line for _, line in islice(_lines(part.beginning), 1)]
    chains: dict[str, KeyChain] = {}
    for line in lines[:_FIRST]:
        with suppress(ValueError, RecursionError):
            leaves = _leaves(json.loads(line)) if line.lstrip()[:1] == b"{" else ()
            chains |= {".".join(key for key in chain if key != EACH): chain for chain in leaves}
    empty = [name for name in chains if any(other.startswith(f"{name}.") for other in chains)]
    return {name: chain for name, chain in chains.items() if name not in empty}


def _leaves(value: object, chain: KeyChain = ()) -> Iterator[KeyChain]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*chain, key))
    elif not isinstance(value, list):
        yield chain
    elif EACH not in chain:
        yield from _leaves(value[0] if value else None, (*chain, EACH))


def _lists_of_lines(part: FilePart) -> pa.Table:
    chains = part.lists
    if n_objects := _count_objects(part.data):
        for of_queries, of_documents in product((pa.string(), pa.int64()), repeat=2):
            types = {"query_id": of_queries, "doc_id": of_documents, "value": pa.float64()}
            schema = pa.schema(list(_build_struct([(chain, types[name]) for name, chain in chains.items()])))
            table = _read_by_arrow(part, schema)
            if table is not None and len(table) == n_objects:
                return lists_of(part, table)
    objects = _objects(part, part.list_columns)
    columns = dict(zip(("query_id", "doc_id", "value"), part.kind.columns, strict=False))
    rows = [
        [_follow_keys(part, number, columns[name], content, chain) for name, chain in chains.items()]
        for number, content in objects
    ]
    types = {"query_id": pa.string(), "doc_id": pa.large_list(pa.string()), "value": pa.large_list(pa.float64())}
    cells = zip(*rows, strict=True) if rows else ([] for _ in chains)
    return pa.table([pa.array(column, types[name]) for name, column in zip(chains, cells, strict=True)], [*chains])


def _build_struct(chains: Sequence[tuple[KeyChain, pa.DataType]]) -> pa.DataType:
    (first, kind), *_ = chains
    if not first:
        return kind
    below: dict[str, list[tuple[KeyChain, pa.DataType]]] = {}
    for chain, leaf_type in chains:
        below.setdefault(chain[0], []).append((chain[1:], leaf_type))
    if first[0] == EACH:
        return pa.list_(_build_struct(below[EACH]))
    return pa.struct([(key, _build_struct(inner)) for key, inner in below.items()])


def _follow_keys(part: FilePart, number: int, column: str, found: Any, chain: KeyChain) -> Any:
    """Return the value at the end of a chain of keys: ids as texts, numbers as floats, [] for a missing list."""
    if not chain:
        text = _cell(part, number, column, found)
        refuse_surrogates(part, number, [text])
        return text if column in part.kind.ids else float(text)
    if chain[0] == EACH:
        if found is not None and not isinstance(found, list):
            raise InputError(f"{part.at(number)}: expected a list, found {written(found)}; fix the line")
        return [_follow_keys(part, number, column, value, chain[1:]) for value in found or ()]
    if isinstance(found, JsonObject) and chain[0] in found:
        if chain[0] in found.doubled:
            raise InputError(f"{part.at(number)}: '{shorten(chain[0])}' occurs twice; keep one")
        return _follow_keys(part, number, column, found[chain[0]], chain[1:])
    return [] if EACH in chain else _follow_keys(part, number, column, None, ())


def _cell(part: FilePart, number: int, column: str, value: Any) -> str:
    if column in part.kind.ids and type(value) not in (str, int):
        raise InputError(f"{part.at(number)}: {column} is {written(value)}; write a string or a whole number")
    if column not in part.kind.ids and type(value) not in (int, float):
        text = f"'{shorten(value)}'" if isinstance(value, str) else written(value)
        remedy = REMEDIES.get(column, "write one number" if isinstance(value, dict | list) else "fix it")
        raise InputError(f"{part.at(number)}: {column} {text} is not a number; {remedy}")
    return str(value)


def _count_objects(data: memoryview) -> int:
    """Return the number of lines if all are objects, else 0. A line of `null` may crash Arrow's reader."""
    signs = np.frombuffer(data, np.uint8)
    if bytes(data[:1]) != b"{":
        return 0
    n_lines = 1
    for begin in range(0, len(signs) - 1, BLOCK_SIZE):
        page = signs[begin : begin + BLOCK_SIZE + 1]
        current, after = page[:-1], page[1:]
        ends = begin + np.flatnonzero(current == _LINE_FEED)
        last = signs[ends - 1]
        last = np.where(last == _RETURN, signs[ends - 2], last)
        # Arrow takes any carriage return for the end of a line.
        stray = (after[current == _RETURN] != _LINE_FEED).any()
        if stray or (last != ord("}")).any() or (signs[ends + 1] != ord("{")).any():
            return 0
        n_lines += len(ends)
    return n_lines


def _first_keys(part: FilePart) -> list[str]:
    try:
        content = json.loads(next(_lines(part.beginning), (1, b"{}"))[1])
    except (ValueError, RecursionError):
        return []
    return [*content] if isinstance(content, dict) else []


def _lines(part: FilePart) -> Iterator[tuple[int, bytes]]:
    yield from ((number, line) for number, line in enumerate(part.lines(), 1) if line.strip())


def _objects(part: FilePart, names: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines(part):
        is_list = line.lstrip()[:1] == b"["  # which may go on in the next line
        content = None if is_list else load_json(part.at(number), line, "fix the line", json_object)
        if not isinstance(content, JsonObject):
            text = shorten(line.decode(errors="replace").strip())
            advice = "fix the line, or set format: json"
            raise InputError(f"{part.at(number)}: expected one object a line, found {text}; {advice}")
        for name in names:
            if name in content.doubled:
                raise InputError(f"{part.at(number)}: '{shorten(name)}' occurs twice; keep one")
        yield number, content


def json_object(pairs: list[tuple[str, Any]]) -> JsonObject:
    """Return the object of these keys and values, as `json.loads` calls it."""
    content = JsonObject(pairs)
    if len(content) < len(pairs):
        content.doubled = [key for key, count in Counter(key for key, _ in pairs).most_common() if count > 1]
    return content


def _value(part: FilePart, number: int, column: str, found: Mapping[str, Any]) -> str:
    name = part.name(column)
    if name not in found:
        keys = shorten(", ".join(found)) or "nothing"
        raise InputError(f"{part.at(number)}: no '{name}' among {keys}; {part.missing(part.kind.columns, found)}")
    return _cell(part, number, column, found[name])


def _keys(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    return [*dict.fromkeys(key for content in objects for key in content)]


def _line_cells(part: FilePart, names: Sequence[str]) -> dict[str, list[Any]]:
    objects = [content for _, content in _objects(part, names)]
    if objects:
        part.check_columns(names, _keys(objects))
    return {name: [content.get(name) for content in objects] for name in names}


def _parse_object(part: FilePart) -> pa.Table:
    value = part.kind.value
    if part.kind.ids != _IDS or value is None or value == "rank":
        columns = ", ".join(part.kind.columns)
        raise InputError(f"{part.path}: one JSON object cannot hold {columns}; use tsv, csv, jsonl or parquet")
    queries = [(query, documents) for query, documents in _queries(part).items() if documents]
    counts = [len(documents) for _, documents in queries]
    codes = np.repeat(np.arange(len(queries), dtype=np.int32), counts)
    values = [
        _number(part, query, document, number) for query, documents in queries for document, number in documents.items()
    ]
    try:
        ids = pa.array([query for query, _ in queries], pa.string())
        doc_ids = pa.array([document for _, documents in queries for document in documents], pa.string())
    except UnicodeEncodeError:
        raise InputError(f"{part.path}: an id contains half of a surrogate pair, which is not UTF-8; fix it") from None
    query_ids = pa.DictionaryArray.from_arrays(codes, ids)
    return pa.table([query_ids, doc_ids, pa.array(values, pa.float64())], names=[*_IDS, value])


def _unfold(part: FilePart) -> FilePart:
    try:
        content = load_json(part.path, part.data, "fix it", json_object)
    except InputError:
        first = next(_lines(part), (1, b""))[1]
        with suppress(ValueError, RecursionError):
            if len(first) < part.size and isinstance(json.loads(first), dict):
                return replace(part, format=JSONL)
        raise
    columns = find_columns(content, (*part.kind.ids, *filter(None, [part.kind.value])), part.names)
    if columns is None:
        return replace(part, content=content)
    holders = [content, *(content.values() if isinstance(content, dict) else content)]
    for doubled in (key for holder in holders if isinstance(holder, JsonObject) for key in holder.doubled):
        raise InputError(f"{part.path}: '{shorten(doubled)}' occurs twice; keep one")
    rows = (json.dumps(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))
    return replace(part, format=_ROWS, stored=pa.py_buffer("\n".join(rows).encode()))


def _queries(part: FilePart) -> dict[str, JsonObject]:
    inner = "document" if part.kind.ids == _IDS else part.kind.ids[-1]
    content = part.content
    if not isinstance(content, JsonObject):
        _refuse_shape(part, f"found {written(content)}")
    for key in content.doubled:
        raise InputError(f"{part.path}: query '{shorten(key)}' occurs twice; keep one")
    for query, documents in content.items():
        if not isinstance(documents, JsonObject):
            _refuse_shape(part, f"the value of '{shorten(query)}' is {written(documents)}")
        for key in documents.doubled:
            raise InputError(f"{part.path}: query '{shorten(query)}': {inner} '{shorten(key)}' occurs twice; keep one")
    return content


def _number(part: FilePart, query: str, document: str, number: Any) -> float:
    if type(number) not in (int, float):
        subject = f"query '{shorten(query)}', document '{shorten(document)}'"
        for key, values in _queries(part).items():
            for name, value in values.items():
                if isinstance(value, JsonObject) and any(isinstance(inner, JsonObject) for inner in value.values()):
                    _refuse_shape(part, f"rankings are nested deeper, below '{shorten(key)}.{shorten(name)}'")
        _refuse_shape(part, f"{subject}: {part.kind.value} {written(number)} is not a number")
    return double(number)


def _refuse_shape(part: FilePart, problem: str) -> NoReturn:
    inner = "document" if part.kind.ids == _IDS else [*part.kind.ids, "column"][1]
    shape = f"{{query: {{{inner}: {part.kind.value or 'value'}}}}}"
    objects = f"a list of objects with {', '.join(map(part.name, part.kind.columns))}"
    raise InputError(f"{part.path}: {problem}. Use {shape}, or {objects}.")


def _object_columns(part: FilePart) -> list[str]:
    return [part.name("query_id"), *_keys(_queries(part).values())]


def _object_cells(part: FilePart, names: Sequence[str]) -> dict[str, list[Any]]:
    rows = [{part.name("query_id"): query, **values} for query, values in _queries(part).items()]
    return {name: [row.get(name) for row in rows] for name in names}


def _object_position(part: FilePart, row: int) -> str:
    if part.kind.ids != _IDS:
        return f"object {row + 1}"
    pairs = ((query, document) for query, documents in _queries(part).items() for document in documents)
    query, document = next(islice(pairs, row, None))
    return f"query '{shorten(query)}', document '{shorten(document)}'"


_SUFFIXES = (".jsonl", ".ndjson")
JSONL = Format(
    "jsonl",
    _SUFFIXES,
    _parse_lines,
    line_position(_lines),
    lambda part: _keys(found for _, found in _objects(part)),
    _line_cells,
    header=_first_keys,
    typed=True,
    count_lines=lambda data: data.count(b"\n"),
    find_chains=_chains,
    read_lists=_lists_of_lines,
)
_ROWS = replace(JSONL, name="json", position=lambda _, row: row_number(row), count_lines=None)
JSON = Format(
    *("json", (".json",), _parse_object, _object_position, _object_columns, _object_cells), typed=True, unfold=_unfold
)
