"""Known documents of a dataset by number, and their features: columns that hold categories or vectors.

Documents are numbered: first the documents table, then other documents that were consumed before, then per model the
others that it recommends.

A text holds categories with bars between them (`Action|Comedy`), a whole number is one category, a list of either holds
several, and a list of decimal numbers is a vector. An empty or null cell is no feature.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.catalogue import CatalogueBlock, Sparse
from rankledger.pipeline.data.formats.common import FilePart, double
from rankledger.pipeline.data.formats.json import written
from rankledger.pipeline.data.formats.layouts import typed_name
from rankledger.pipeline.data.judgments import Hashes, Judgments, hash_pairs
from rankledger.pipeline.data.rows import Ids, Rows
from rankledger.pipeline.support.arrow import concatenate, floats, integers, numpy_of, strings
from rankledger.pipeline.support.errors import InputError, shorten

Ints = npt.NDArray[np.int64]

_KINDS = "categories as texts or whole numbers, one or a list of them, or a vector as a list of decimal numbers"


Feature: TypeAlias = tuple[Ints, pa.Array]
"""Number of values of each document of a file, and all values in one array."""


def read_features(part: FilePart, names: Sequence[str]) -> list[Feature]:
    """Return these columns of one file of documents."""
    if not names:
        return []
    if part.format.table is None:
        cells = part.format.cells(part, names)
        return [_parse_cells(part.path, name, cells[name]) for name in names]
    table = part.format.table(part, names)
    features = [_parse_array(part.path, name, table.column(name).combine_chunks()) for name in names]
    header = [] if part.format.typed or part.format.header is None else part.format.header(part)
    return [
        _parse_recbole(part.path, typed_name(name, header), feature)
        for name, feature in zip(names, features, strict=True)
    ]


def _parse_recbole(path: str, name: str, feature: Feature) -> Feature:
    kind = name.rpartition(":")[2]
    if kind == "float":
        raise InputError(f"{path}: '{name}' holds numbers; write {_KINDS}")
    if kind not in ("token_seq", "float_seq"):
        return feature
    sizes, texts = _split(feature[0], pc.replace_substring_regex(feature[1], r"\s+", "|"))
    try:
        return sizes, texts if kind == "token_seq" else texts.cast(pa.float64())
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: '{name}': {shorten(str(error))}; write numbers") from None


def joined_feature(path: str, name: str, columns: Sequence[Feature], n_documents: int) -> Sparse:
    """Return the feature of all documents from its columns in several files."""
    values = [numbers for _, numbers in columns if len(numbers)]
    if len({numbers.type for numbers in values}) > 1:
        raise InputError(f"{path}: '{name}' holds categories in one file and vectors in another; write one kind")
    sizes = np.concatenate([lengths for lengths, _ in columns])
    if len(sizes) != n_documents:
        raise InputError(
            f"{path}: '{name}' has {len(sizes)} rows, but there are {n_documents} ids; write the file again"
        )
    if values and pa.types.is_floating(values[0].type):
        return _vectors(path, name, sizes, np.concatenate([numpy_of(part, np.float64) for part in values]))
    return _categories(sizes, concatenate(values))


def _parse_cells(path: str, name: str, cells: Sequence[Any]) -> Feature:
    lists = [cell if isinstance(cell, list) else [] if cell is None else [cell] for cell in cells]
    entries = [entry for values in lists for entry in values]
    sizes = np.array([len(values) for values in lists], dtype=np.int64)
    types = {type(entry) for entry in entries}
    if types <= {int, float} and float in types and all(cell is None or isinstance(cell, list) for cell in cells):
        return sizes, floats(np.array([*map(double, entries)]))
    if not types <= {str, int}:
        odd = next(entry for entry in entries if type(entry) not in (str, int))
        raise InputError(f"{path}: '{name}' holds {written(odd)}; write {_KINDS}")
    return _split(sizes, strings(map(str, entries)))


def _parse_array(path: str, name: str, column: pa.Array) -> Feature:
    type_found = column.type
    if pa.types.is_dictionary(type_found):
        column = column.dictionary_decode()
    plain = column.type
    if pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_integer(plain):
        texts = pc.fill_null(column.cast(pa.string()), "")
        return _split(np.ones(len(texts), dtype=np.int64), texts)
    if pa.types.is_list(plain) or pa.types.is_large_list(plain) or pa.types.is_fixed_size_list(plain):
        sizes = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
        values = pc.list_flatten(column)
        if pa.types.is_floating(plain.value_type):
            return numpy_of(sizes, np.int64), pc.fill_null(values.cast(pa.float64()), float("nan"))
        if pa.types.is_string(plain.value_type) or pa.types.is_integer(plain.value_type):
            return _split(numpy_of(sizes, np.int64), pc.fill_null(values.cast(pa.string()), ""))
    raise InputError(f"{path}: '{name}' is {shorten(str(type_found))}; write {_KINDS}")


def _split(sizes: npt.NDArray[np.int64], texts: pa.StringArray) -> Feature:
    parts = pc.split_pattern(texts, "|")
    rows = np.repeat(np.repeat(np.arange(len(sizes)), sizes), numpy_of(pc.list_value_length(parts), np.int32))
    names = pc.utf8_trim_whitespace(pc.list_flatten(parts))
    full = np.flatnonzero(numpy_of(pc.binary_length(names), np.int32))
    return np.bincount(rows[full], minlength=len(sizes)), names.take(integers(full))


def _categories(sizes: npt.NDArray[np.int64], names: pa.StringArray) -> Sparse:
    coded = names.dictionary_encode()
    distinct = coded.dictionary.to_pylist()
    order = np.argsort(np.array(sorted(range(len(distinct)), key=distinct.__getitem__), dtype=np.int64))
    n_columns = max(1, len(distinct))
    rows = np.repeat(np.arange(len(sizes)), sizes)
    keys = np.unique(rows * n_columns + order[numpy_of(coded.indices, np.int32)])
    starts = np.searchsorted(keys // n_columns, np.arange(len(sizes) + 1))
    return Sparse(starts.astype(np.int64), (keys % n_columns).astype(np.int32), np.ones(len(keys)))


def _vectors(path: str, name: str, sizes: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> Sparse:
    lengths = np.unique(sizes[sizes > 0])
    if len(lengths) > 1:
        problem = f"of {lengths[0]} and of {lengths[1]} numbers"
        raise InputError(f"{path}: '{name}' has vectors {problem}; give all the same length")
    if not np.isfinite(values).all():
        raise InputError(f"{path}: '{name}' holds a number that is not finite; fix it")
    columns = np.tile(np.arange(lengths[0], dtype=np.int32), len(values) // int(lengths[0]))
    return Sparse(np.concatenate([[0], np.cumsum(sizes)]), columns, values)


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Known documents of a dataset."""

    ids: pa.StringArray  # documents by number
    known: CatalogueBlock  # without recommended documents

    def block(self, doc_ids: pa.StringArray, ranks: Ints, queries: Ints, n_queries: int) -> CatalogueBlock:
        codes = np.full((int(ranks.max(initial=1)), n_queries), -1, dtype=np.int32)
        numbers, _ = _number_documents(doc_ids, self.ids)
        codes[ranks - 1, queries] = numbers
        return replace(self.known, codes=codes)

    def with_judged(self, judgments: Judgments) -> Catalogue:
        rows, n_queries = judgments.kept, len(judgments.query_ids)
        numbers, others = _number_documents(judgments.rows.take_doc_ids(rows), self.ids)
        hashes = judgments.hashes_of(rows)
        judged = _sort_by_query(judgments.queries_of(rows), numbers, judgments.kept_grades, hashes, n_queries)
        return Catalogue(concatenate([self.ids, others]), replace(self.known, judged=judged))


def _sort_by_query(
    queries: Ints, numbers: Ints, values: npt.NDArray[np.floating], hashes: Hashes, n_queries: int
) -> Sparse:
    """Return documents by query, ordered by hash so that sums do not depend on the files."""
    order = np.lexsort((hashes, queries))
    starts = np.searchsorted(queries[order], np.arange(n_queries + 1))
    return Sparse(starts.astype(np.int64), numbers[order].astype(np.int32), values[order].astype(np.float64))


def known_documents(documents: Ids | None, interactions: Rows | None, query_ids: Iterable[str]) -> Catalogue:
    """Return the documents in the files of a dataset. A repeated interaction counts once."""
    ids = strings([]) if documents is None else documents.ids
    features = {} if documents is None else documents.features
    block = CatalogueBlock(np.empty((0, 0), dtype=np.int32), len(ids), features=features)
    if interactions is None:
        return Catalogue(ids, block)
    numbers, others = _number_documents(interactions.doc_ids, ids)
    n_known = len(ids) + len(others)
    codes = interactions.query_codes
    _, rows = np.unique(codes.astype(np.int64) * n_known + numbers, return_index=True)
    popularity = np.bincount(numbers[rows], minlength=n_known).astype(np.float64)
    place = {query_id: number for number, query_id in enumerate(query_ids)}
    places = np.array([place.get(query_id, len(place)) for query_id in interactions.query_ids])
    rows = rows[places[codes[rows]] < len(place)]
    hashes = hash_pairs(interactions, np.zeros_like(places))
    history = _sort_by_query(places[codes[rows]], numbers[rows], np.ones(len(rows)), hashes[rows], len(place))
    block = replace(block, popularity=popularity, n_consumers=len(interactions.query_ids), history=history)
    return Catalogue(concatenate([ids, others]), block)


def _number_documents(doc_ids: pa.StringArray, known: pa.StringArray) -> tuple[Ints, pa.StringArray]:
    indices = pc.index_in(doc_ids, known)
    others = doc_ids.filter(pc.is_null(indices)).dictionary_encode()
    numbers = np.empty(len(doc_ids), dtype=np.int64)
    inside = numpy_of(indices.is_valid().cast(pa.uint8()), np.bool_)
    numbers[inside] = numpy_of(indices, np.int32)[inside]
    numbers[~inside] = len(known) + numpy_of(others.indices, np.int32)
    return numbers, others.dictionary
