"""JSON of one object, `{query: {document: value}}`: the form of ranx and pytrec_eval."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from rankledger.pipeline.data.formats.common import FilePart, double, shown
from rankledger.pipeline.errors import InputError, shorten

__all__ = ["nested_objects", "nested_rows", "parse_nested"]

_IDS = ("query_id", "doc_id")


class _Pairs(list[tuple[str, Any]]):
    """An object as its keys and values: a dict would drop all but the last value of a key that stands twice."""


def parse_nested(part: FilePart) -> pa.Table:
    """The numbers of all queries and documents; a query without documents has no row.

    Raises:
        InputError: the file is not such an object, a key stands twice in one, or a value is not a number.
    """
    value = part.kind.value
    if part.kind.ids != _IDS or value is None or value == "rank":
        wanted = ", ".join(part.kind.columns)
        raise InputError(f"{part.path}: one JSON object cannot hold {wanted}; use tsv, csv, jsonl or parquet")
    queries = [(query, documents) for query, documents in nested_objects(part) if documents]
    counts = [len(documents) for _, documents in queries]
    codes = np.repeat(np.arange(len(queries), dtype=np.int32), counts)
    values = [_value(part, query, document, number) for query, documents in queries for document, number in documents]
    try:
        ids = pa.array([query for query, _ in queries], pa.string())
        doc_ids = pa.array([document for _, documents in queries for document, _ in documents], pa.string())
    except UnicodeEncodeError:
        raise InputError(f"{part.path}: an id is not UTF-8: half of a surrogate pair stands in it; fix it") from None
    query_ids = pa.DictionaryArray.from_arrays(codes, ids)
    return pa.table([query_ids, doc_ids, pa.array(values, pa.float64())], names=[*_IDS, value])


def nested_rows(part: FilePart) -> Iterator[str]:
    """Where each row stands: its query and document."""
    queries = nested_objects(part)
    return (
        f"query '{shorten(query)}', document '{shorten(document)}'"
        for query, documents in queries
        for document, _ in documents
    )


def nested_objects(part: FilePart) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """The queries, each with the keys and values of its object, none of them twice."""
    inner = _inner(part)
    try:
        found = json.loads(bytes(part.data).decode(), object_pairs_hook=_Pairs)
    except UnicodeDecodeError:
        raise InputError(f"{part.path}: not UTF-8; convert the file") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{part.path}: not JSON ({error}); fix it") from None
    if not isinstance(found, _Pairs):
        expected = f"{{query: {{{inner}: {part.kind.value}}}}}"
        raise InputError(f"{part.path}: expected {expected}; write one object of objects")
    for query, documents in _once(part, found, "query"):
        if not isinstance(documents, _Pairs):
            expected = f"{{{inner}: {part.kind.value}}}"
            raise InputError(f"{part.path}: query '{shorten(query)}' holds {_shown(documents)}; write {expected}")
        _once(part, documents, f"query '{shorten(query)}': {inner}")
        yield query, documents


def _inner(part: FilePart) -> str:
    """What the keys of a query's object are called."""
    name = part.kind.ids[1]
    return "document" if name == "doc_id" else name


def _once(part: FilePart, pairs: _Pairs, what: str) -> _Pairs:
    if len({key for key, _ in pairs}) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InputError(f"{part.path}: {what} '{shorten(key)}' stands twice; keep one")
            seen.add(key)
    return pairs


def _value(part: FilePart, query: str, document: str, number: Any) -> float:
    """The number; what is not finite is refused by the reader, which does so for every format."""
    if type(number) not in (int, float):
        at = f"{part.path}: query '{shorten(query)}', document '{shorten(document)}'"
        raise InputError(f"{at}: {part.kind.value} {_shown(number)} is not a number; fix it")
    return double(number)


def _shown(value: object) -> str:
    return "an object" if isinstance(value, _Pairs) else shown(value)
