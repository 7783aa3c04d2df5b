"""What a dataset knows of its documents beside the judgments: features, interactions, and what a model recommended.

A text holds categories with bars between them (`Action|Comedy`), a whole number is one category, a list of either holds
several, and a list of decimal numbers is a vector. Where a field is empty or null, the document is without the feature.

Documents are numbered: those of the documents table as they stand there, then others that were consumed before, then,
for each model, others that it recommends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from rankledger.metrics.block import Floats
from rankledger.metrics.catalogue import CatalogueBlock, Sparse
from rankledger.pipeline.data.formats.common import FilePart, double, shown
from rankledger.pipeline.data.formats.delimited import delimited_header
from rankledger.pipeline.data.formats.jsonl import json_objects
from rankledger.pipeline.data.formats.parquet import open_parquet, read_parquet
from rankledger.pipeline.data.judgments import hash_pairs
from rankledger.pipeline.errors import InputError, shorten
from rankledger.pipeline.support.arrow import concatenate, floats, integers, numpy_of, strings
from rankledger.pipeline.types.inputs import Ids, Rows

__all__ = ["Catalogue", "Column", "feature", "known_documents", "read_columns"]

_DELIMITERS = {"tsv": "\t", "csv": ","}
_KINDS = "categories as texts or whole numbers, one or a list of them, or a vector as a list of decimal numbers"


@dataclass(frozen=True, eq=False)
class Column:
    """One feature of the documents of a file.

    Attributes:
        sizes: how many categories or numbers each document has.
        values: all of them, one document after the other: Arrow strings or doubles.
    """

    sizes: npt.NDArray[np.int64]
    values: pa.Array


def read_columns(part: FilePart, names: Sequence[str]) -> list[Column]:
    """These columns of one file of documents that was read before, so that its rows are known to be sound.

    Raises:
        InputError: a column is not there or holds something else than a feature.
    """
    if part.format == "jsonl":
        return [_of_json(part, name) for name in names]
    table = _of_parquet(part, names) if part.format == "parquet" else _of_text(part, names)
    return [_column(part.path, name, table.column(name).combine_chunks()) for name in names]


def feature(path: str, name: str, columns: Sequence[Column], n_documents: int) -> Sparse:
    """The feature of all documents, from its columns in the files they stand in.

    Raises:
        InputError: some documents have categories and others vectors, vectors are unequally long or not finite, or
            there are not as many rows as documents.
    """
    if len({column.values.type for column in columns if len(column.values)}) > 1:
        raise InputError(f"{path}: '{name}' holds categories in one file and vectors in another; write one kind")
    sizes = np.concatenate([column.sizes for column in columns])
    if len(sizes) != n_documents:
        raise InputError(
            f"{path}: '{name}' has {len(sizes)} rows and there are {n_documents} ids; write the file again"
        )
    values = [column.values for column in columns if len(column.values)]
    if values and pa.types.is_floating(values[0].type):
        return _vectors(path, name, sizes, np.concatenate([numpy_of(part, np.float64) for part in values]))
    return _categories(sizes, concatenate(values))


def _of_text(part: FilePart, names: Sequence[str]) -> pa.Table:
    delimiter = _DELIMITERS[part.format]
    quote = '"' if part.format == "csv" else False
    _check(part, names, delimited_header(part))
    try:
        return pa.csv.read_csv(
            pa.BufferReader(part.data),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, quote_char=quote, newlines_in_values=bool(quote)),
            convert_options=pa.csv.ConvertOptions(
                include_columns=names,
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        raise InputError(f"{part.path}: {shorten(str(error).partition(chr(10))[0])}; write the file again") from None


def _of_parquet(part: FilePart, names: Sequence[str]) -> pa.Table:
    file = open_parquet(part)
    _check(part, names, file.schema_arrow.names)
    return read_parquet(part, file, names)


def _of_json(part: FilePart, name: str) -> Column:
    """Line by line: Arrow would take texts that look like dates for dates."""
    found = [document.get(name) for _, document in json_objects(part, [name])]
    lists = [value if isinstance(value, list) else [] if value is None else [value] for value in found]
    entries = [entry for values in lists for entry in values]
    sizes = np.array([len(values) for values in lists], dtype=np.int64)
    if not entries and all(value is None for value in found):
        raise InputError(f"{part.path}: no object has '{name}'; a feature is a key of the documents")
    types = {type(entry) for entry in entries}
    if types <= {int, float} and float in types and all(value is None or isinstance(value, list) for value in found):
        return Column(sizes, floats(np.array([*map(double, entries)])))
    if not types <= {str, int}:
        odd = next(entry for entry in entries if type(entry) not in (str, int))
        raise InputError(f"{part.path}: '{name}' holds {shown(odd)}; write {_KINDS}")
    return _split(sizes, strings(map(str, entries)))


def _check(part: FilePart, names: Sequence[str], found: Sequence[str]) -> None:
    for name in names:
        if found.count(name) != 1:
            stands = "no" if name not in found else "more than one"
            listed = shorten(", ".join(dict.fromkeys(found)))
            raise InputError(f"{part.path}: {stands} column '{name}' among {listed}; name a feature as its column is")


def _column(path: str, name: str, column: pa.Array) -> Column:
    """One column of a table of Arrow."""
    found = column.type
    if pa.types.is_dictionary(found):
        column = column.dictionary_decode()
    plain = column.type
    if pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_integer(plain):
        texts = pc.fill_null(column.cast(pa.string()), "")
        return _split(np.ones(len(texts), dtype=np.int64), texts)
    if pa.types.is_list(plain) or pa.types.is_large_list(plain) or pa.types.is_fixed_size_list(plain):
        sizes = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
        values = pc.list_flatten(column)
        if pa.types.is_floating(plain.value_type):
            return Column(numpy_of(sizes, np.int64), pc.fill_null(values.cast(pa.float64()), float("nan")))
        if pa.types.is_string(plain.value_type) or pa.types.is_integer(plain.value_type):
            return _split(numpy_of(sizes, np.int64), pc.fill_null(values.cast(pa.string()), ""))
    raise InputError(f"{path}: '{name}' is {shorten(str(found))}; write {_KINDS}")


def _split(sizes: npt.NDArray[np.int64], texts: pa.StringArray) -> Column:
    """The categories in these texts, some texts to a document: without blanks around them, none of them empty."""
    parts = pc.split_pattern(texts, "|")
    rows = np.repeat(np.repeat(np.arange(len(sizes)), sizes), numpy_of(pc.list_value_length(parts), np.int32))
    names = pc.utf8_trim_whitespace(pc.list_flatten(parts))
    full = np.flatnonzero(numpy_of(pc.binary_length(names), np.int32))
    return Column(np.bincount(rows[full], minlength=len(sizes)), names.take(integers(full)))


def _categories(sizes: npt.NDArray[np.int64], names: pa.StringArray) -> Sparse:
    """A column for each category, in the order of their names; a document has each of its own once."""
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
        found = f"of {lengths[0]} and of {lengths[1]} numbers"
        raise InputError(f"{path}: '{name}' holds vectors {found}; write them equally long")
    if not np.isfinite(values).all():
        raise InputError(f"{path}: '{name}' holds a number that is not finite; fix it")
    columns = np.tile(np.arange(lengths[0], dtype=np.int32), len(values) // int(lengths[0]))
    return Sparse(np.concatenate([[0], np.cumsum(sizes)]), columns, values)


Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What is known of a dataset's documents.

    Attributes:
        ids: the documents that have a number, by number.
        n_documents: those of the documents table, which come first; 0 where there is none.
        features: of these, by name.
        popularity: how many queries consumed each document before; None where that is not known.
        n_consumers: queries that consumed anything.
        history: the documents that each judged query consumed; None likewise.
    """

    ids: pa.StringArray
    n_documents: int
    features: Mapping[str, Sparse] = field(default_factory=dict)
    popularity: Floats | None = None
    n_consumers: int = 0
    history: Sparse | None = None

    def block(self, doc_ids: pa.StringArray, ranks: Ints, queries: Ints, n_queries: int) -> CatalogueBlock:
        """The documents recommended; their grades are not set.

        Args:
            doc_ids: of n places in lists, the document.
            ranks: the rank, from 1.
            queries: the query's column.
            n_queries: Q.
        """
        codes = np.full((int(ranks.max(initial=1)), n_queries), -1, dtype=np.int32)
        numbers, _ = _numbered(doc_ids, self.ids)
        codes[ranks - 1, queries] = numbers
        return CatalogueBlock(
            codes, self.n_documents, None, self.popularity, self.n_consumers, self.history, self.features
        )


def known_documents(documents: Ids | None, interactions: Rows | None, query_ids: Iterable[str]) -> Catalogue:
    """What the files of a dataset say of its documents.

    Args:
        documents: the documents table.
        interactions: what was consumed before; a query that consumed a document several times counts once.
        query_ids: the judged queries, in their order.
    """
    ids = strings([]) if documents is None else documents.ids
    features = {} if documents is None else documents.features
    if interactions is None:
        return Catalogue(ids, len(ids), features)
    numbers, others = _numbered(concatenate([chunk.doc_ids for chunk in interactions.chunks]), ids)
    n_known = len(ids) + len(others)
    codes = interactions.query_codes
    _, rows = np.unique(codes.astype(np.int64) * n_known + numbers, return_index=True)
    popularity = np.bincount(numbers[rows], minlength=n_known).astype(np.float64)
    place = {query_id: number for number, query_id in enumerate(query_ids)}
    places = np.array([place.get(query_id, len(place)) for query_id in interactions.query_ids])
    rows = rows[places[codes[rows]] < len(place)]
    # Within a query the documents stand by hash, so that sums do not depend on the order of the files.
    hashes = hash_pairs(interactions, np.zeros_like(places))
    queries = places[codes]
    rows = rows[np.lexsort((hashes[rows], queries[rows]))]
    starts = np.searchsorted(queries[rows], np.arange(len(place) + 1))
    history = Sparse(starts.astype(np.int64), numbers[rows].astype(np.int32), np.ones(len(rows)))
    known = concatenate([ids, others])
    return Catalogue(known, len(ids), features, popularity, len(interactions.query_ids), history)


def _numbered(doc_ids: pa.StringArray, known: pa.StringArray) -> tuple[Ints, pa.StringArray]:
    """The number of each document, those not known from `len(known)` on; and the ids of these, in order."""
    found = pc.index_in(doc_ids, known)
    others = doc_ids.filter(pc.is_null(found)).dictionary_encode()
    numbers = np.empty(len(doc_ids), dtype=np.int64)
    inside = numpy_of(found.is_valid().cast(pa.uint8()), np.bool_)
    numbers[inside] = numpy_of(found, np.int32)[inside]
    numbers[~inside] = len(known) + numpy_of(others.indices, np.int32)
    return numbers, others.dictionary
