"""What the documents table says of documents beside their ids: categories, or a vector of each.

A text holds categories with bars between them (`Action|Comedy`), a whole number is one category, a list of either holds
several, and a list of decimal numbers is a vector. Where a field is empty or null, the document is without the feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from metrics.catalogue import Sparse
from pipeline.arrow import concatenate, floats, integers, numpy_of, strings
from pipeline.data.formats import Part
from pipeline.data.formats.columnar import open_parquet, read_parquet
from pipeline.data.formats.delimited import delimited_header
from pipeline.data.formats.jsonl import json_objects
from pipeline.data.formats.layout import double, shown
from pipeline.errors import InputError, shorten

__all__ = ["Column", "feature", "read_columns"]

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


def read_columns(part: Part, names: Sequence[str]) -> list[Column]:
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


def _of_text(part: Part, names: Sequence[str]) -> pa.Table:
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


def _of_parquet(part: Part, names: Sequence[str]) -> pa.Table:
    file = open_parquet(part)
    _check(part, names, file.schema_arrow.names)
    return read_parquet(part, file, names)


def _of_json(part: Part, name: str) -> Column:
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


def _check(part: Part, names: Sequence[str], found: Sequence[str]) -> None:
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
        raise InputError(f"{path}: '{name}' holds a number that is not finite; mend it")
    columns = np.tile(np.arange(lengths[0], dtype=np.int32), len(values) // int(lengths[0]))
    return Sparse(np.concatenate([[0], np.cumsum(sizes)]), columns, values)
