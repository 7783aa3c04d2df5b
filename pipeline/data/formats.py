"""How each format lays out rows: the bytes of one file to a table of (query_id, doc_id, value).

Text is read by Arrow, which is fast but knows one layout of a line; where Arrow refuses, Python reads line by line,
which is tolerant and can name the line that is wrong.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from pipeline.errors import InputError

__all__ = ["Kind", "Part", "line_of", "parse"]

_DELIMITERS = {"tsv": "\t", "csv": ","}
_BLOCK_SIZE = 1 << 21  # bytes that Arrow parses at a time: what is made of them on the way stays in the cache
_PAGE = 1 << 20  # bytes that are searched at a time
_BOM = b"\xef\xbb\xbf"

Row = tuple[str | float, ...]


class _Tsv(csv.Dialect):
    """Tab-separated values, in which a quotation mark is a character like any other."""

    delimiter = "\t"
    quoting = csv.QUOTE_NONE
    lineterminator = "\n"


@dataclass(frozen=True)
class Kind:
    """What a file holds.

    Attributes:
        ids: the columns that are ids.
        value: the column that is a number, if any.
        trec: the fields of a line of TREC text, if it can be TREC text; those after the last one wanted may be missing,
            and there may be more.
    """

    ids: tuple[str, ...]
    value: str | None
    trec: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, in order."""
        return (*self.ids, self.value) if self.value else self.ids

    @property
    def trec_places(self) -> tuple[int, ...]:
        """Where the columns stand among the fields of TREC text."""
        return tuple(self.trec.index(column) for column in self.columns)


@dataclass(frozen=True, eq=False)
class Part:
    """One file of an input.

    Attributes:
        path: as people write it.
        format: `trec`, `tsv`, `csv`, `jsonl` or `parquet`.
        stored: its bytes, uncompressed.
        kind: what to take from it.
        names: our column names to the file's, where they differ.
    """

    path: str
    format: str
    stored: pa.Buffer
    kind: Kind
    names: Mapping[str, str]

    @property
    def data(self) -> memoryview:
        """The bytes without a byte-order mark."""
        view = memoryview(self.stored)
        return view[len(_BOM) :] if view[: len(_BOM)] == _BOM else view

    def lines(self) -> BinaryIO:
        """The bytes as a file that is read line by line."""
        return io.BytesIO(self.data)

    def name(self, column: str) -> str:
        """Our column as the file calls it."""
        return self.names.get(column, column)


def parse(part: Part) -> pa.Table:
    """The columns of `part.kind`: query_id dictionary-coded, doc_id as strings, the value as float64; no nulls.

    Raises:
        InputError: a line or row is malformed; it is named.
    """
    table = _PARSERS[part.format](part)
    if "query_id" in table.column_names and not pa.types.is_dictionary(table.schema.field("query_id").type):
        table = table.set_column(0, "query_id", table.column("query_id").dictionary_encode())
    for column in part.kind.ids:
        row = _first_empty(table, column)
        if row is not None:
            raise InputError(f"{part.path}: empty {column} ({line_of(part, row)}); fill it")
    return table


def line_of(part: Part, row: int) -> str:
    """Where a row (from 0) stands: `line 3`, or `row 3` in Parquet; both count from 1."""
    if part.format == "parquet":
        return f"row {row + 1}"
    records = {"trec": _trec_lines, "jsonl": _json_lines}.get(part.format, _rows_with_header)(part)
    return f"line {next(itertools.islice(records, row, None))[0]}"


# TREC text: blank-separated fields, lines that begin with # are comments.


def _parse_trec(part: Part) -> pa.Table:
    lines = _single_blanks(part.data)
    first = bytes(lines[:_BLOCK_SIZE]).partition(b"\n")[0].rstrip(b"\r")
    delimiter = "\t" if b"\t" in first else " "
    names = [f"field {place}" for place in range(first.count(delimiter.encode()) + 1)]
    wanted = [names[place] for place in part.kind.trec_places if place < len(names)]
    if len(wanted) == len(part.kind.columns):
        try:
            table = _parse_csv(part, lines, delimiter, wanted, names)
            if not any(_first_empty(table, column) is not None for column in part.kind.ids):
                return table  # an empty id means that there are blanks before or between fields
        except pa.ArrowInvalid:
            pass
    return _table(part, (_trec_row(part, number, line) for number, line in _trec_lines(part)))


def _single_blanks(data: memoryview) -> memoryview:
    """The lines without comments and with one separator between two fields; `data` itself if it is so already."""
    commented = _holds(data, b"#")
    if not commented and not (_holds(data, b"\t") and _holds(data, b" ")):
        return data
    text = bytes(data)
    if commented:
        text = b"".join(line for line in io.BytesIO(text) if not line.startswith(b"#"))
    text = text.replace(b"\t", b" ").replace(b"\r\n", b"\n")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return memoryview(text.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" "))


def _holds(data: memoryview, sign: bytes) -> bool:
    return any(sign in bytes(data[begin : begin + _PAGE]) for begin in range(0, len(data), _PAGE))


def _trec_lines(part: Part) -> Iterator[tuple[int, bytes]]:
    """The lines that hold a row, numbered from 1."""
    for number, line in enumerate(part.lines(), 1):
        if not line.startswith(b"#") and line.strip():
            yield number, line


def _trec_row(part: Part, number: int, line: bytes) -> Row:
    fields = line.split()
    if len(fields) <= max(part.kind.trec_places):
        expected = ", ".join(part.kind.trec)
        raise InputError(
            f"{part.path}:{number}: {len(fields)} fields found where {expected} are expected; mend the line"
        )
    try:
        return _row(part, number, [fields[place].decode() for place in part.kind.trec_places])
    except UnicodeDecodeError:
        raise InputError(f"{part.path}:{number}: not UTF-8; convert the file") from None


# TSV and CSV, with a header.


def _parse_delimited(part: Part) -> pa.Table:
    header = _header(part)
    wanted = [part.name(column) for column in part.kind.columns]
    try:
        return _parse_csv(part, part.data, _DELIMITERS[part.format], wanted, None)
    except pa.ArrowInvalid:
        return _table(part, _delimited_rows(part, header, [header.index(name) for name in wanted]))


def _header(part: Part) -> list[str]:
    """The column names, once those wanted are among them."""
    header = next((record for _, record in _records(part)), [])
    for column in part.kind.columns:
        name = part.name(column)
        if name not in header:
            found = ", ".join(header) or "nothing"
            raise InputError(f"{part.path}:1: no column '{name}' among {found}; map it with columns: {{{column}: …}}")
        if header.count(name) > 1:
            raise InputError(f"{part.path}:1: column '{name}' stands twice; name each column once")
    return header


def _delimited_rows(part: Part, header: list[str], places: list[int]) -> Iterator[Row]:
    for number, record in _rows_with_header(part):
        if len(record) != len(header):
            counts = f"{len(record)} fields found where the header has {len(header)}"
            raise InputError(f"{part.path}:{number}: {counts}; mend the line")
        yield _row(part, number, [record[place] for place in places])


def _rows_with_header(part: Part) -> Iterator[tuple[int, list[str]]]:
    return itertools.islice(_records(part), 1, None)


def _records(part: Part) -> Iterator[tuple[int, list[str]]]:
    """The lines that hold fields, numbered from 1 (a record of several lines by its last); the header is the first."""
    text = io.TextIOWrapper(part.lines(), encoding="utf-8", newline="")
    reader = csv.reader(text, "excel" if part.format == "csv" else _Tsv)
    try:
        yield from ((reader.line_num, record) for record in reader if record)
    except UnicodeDecodeError:
        raise InputError(f"{part.path}: not UTF-8 after line {reader.line_num}; convert the file") from None
    except csv.Error as error:
        raise InputError(f"{part.path}: {error} after line {reader.line_num}; mend it") from None


# JSON lines: one object a line.


def _parse_jsonl(part: Part) -> pa.Table:
    from pyarrow import json as arrow_json

    names = [part.name(column) for column in part.kind.columns]
    for id_type in (pa.string(), pa.int64()):
        types = [id_type if column in part.kind.ids else pa.float64() for column in part.kind.columns]
        options = arrow_json.ParseOptions(
            explicit_schema=pa.schema(zip(names, types, strict=True)), unexpected_field_behavior="ignore"
        )
        block = arrow_json.ReadOptions(block_size=_BLOCK_SIZE)
        try:
            table = arrow_json.read_json(pa.BufferReader(part.data), block, options)
        except pa.ArrowInvalid:
            continue
        if not any(column.null_count for column in table.columns):
            return table.cast(_schema(part.kind, names)).rename_columns(list(part.kind.columns))
    return _table(part, (_json_row(part, number, line) for number, line in _json_lines(part)))


def _json_lines(part: Part) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(part.lines(), 1) if line.strip())


def _json_row(part: Part, number: int, line: bytes) -> Row:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise InputError(f"{part.path}:{number}: not JSON ({error}); mend the line") from None
    if not isinstance(found, dict):
        raise InputError(f"{part.path}:{number}: expected one object a line; mend the line")
    return _row(part, number, [_json_value(part, number, column, found) for column in part.kind.columns])


def _json_value(part: Part, number: int, column: str, found: Mapping[str, Any]) -> str:
    name = part.name(column)
    if name not in found:
        keys = ", ".join(found) or "nothing"
        raise InputError(f"{part.path}:{number}: no '{name}' among {keys}; map it with columns: {{{column}: …}}")
    value = found[name]
    if column in part.kind.ids and type(value) not in (str, int):
        raise InputError(f"{part.path}:{number}: {column} is {json.dumps(value)}; write a string or a whole number")
    return str(value)


# Parquet.


def _parse_parquet(part: Part) -> pa.Table:
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(part.data))
    except pa.ArrowInvalid as error:
        raise InputError(f"{part.path}: not Parquet ({str(error).partition(chr(10))[0]}); write it again") from None
    names = [part.name(column) for column in part.kind.columns]
    for column, name in zip(part.kind.columns, names, strict=True):
        if name not in file.schema_arrow.names:
            found = ", ".join(file.schema_arrow.names)
            raise InputError(f"{part.path}: no column '{name}' among {found}; map it with columns: {{{column}: …}}")
        _check_type(part, column, file.schema_arrow.field(name).type)
    table = file.read(columns=names).select(names)
    for name in names:
        row = pc.index(pc.is_null(table.column(name)), True).as_py()
        if row >= 0:
            raise InputError(f"{part.path}: {name} is null ({line_of(part, row)}); fill it or leave the row out")
    return table.cast(_schema(part.kind, names)).rename_columns(list(part.kind.columns))


def _check_type(part: Part, column: str, found: pa.DataType) -> None:
    plain = found.value_type if pa.types.is_dictionary(found) else found
    whole = pa.types.is_integer(plain)
    if column in part.kind.ids:
        text = pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain)
        if not (text or whole):
            raise InputError(f"{part.path}: {column} is {found}; write ids as strings or whole numbers")
    elif not (whole or pa.types.is_floating(plain) or pa.types.is_decimal(plain)):
        raise InputError(f"{part.path}: {column} is {found}; write numbers")


# What the formats share.


def _parse_csv(part: Part, data: memoryview, delimiter: str, wanted: list[str], names: list[str] | None) -> pa.Table:
    """The wanted columns by Arrow; `names` are those of a file without header.

    Raises:
        pa.ArrowInvalid: a line has another number of fields, a number is none, or the text is not UTF-8.
    """
    types = {field.name: field.type for field in _schema(part.kind, wanted)}
    if part.kind.ids[0] == "query_id":
        types[wanted[0]] = pa.dictionary(pa.int32(), pa.string())  # few distinct ones: cheaper than strings
    table = pa.csv.read_csv(
        pa.BufferReader(data),
        read_options=pa.csv.ReadOptions(column_names=names, block_size=_BLOCK_SIZE),
        parse_options=pa.csv.ParseOptions(delimiter=delimiter, quote_char='"' if part.format == "csv" else False),
        convert_options=pa.csv.ConvertOptions(
            include_columns=wanted, column_types=types, null_values=[], strings_can_be_null=False
        ),
    )
    return table.rename_columns(list(part.kind.columns))


def _schema(kind: Kind, names: list[str]) -> pa.Schema:
    types = [pa.string() if column in kind.ids else pa.float64() for column in kind.columns]
    return pa.schema(list(zip(names, types, strict=True)))


def _first_empty(table: pa.Table, column: str) -> int | None:
    """The first row whose id is empty, if any."""
    ids = table.column(column)
    coded = pa.types.is_dictionary(ids.type)
    distinct = pa.chunked_array([chunk.dictionary for chunk in ids.chunks], pa.string()) if coded else ids
    if pc.min(pc.binary_length(distinct)).as_py() != 0:
        return None
    row = pc.index(ids.cast(pa.string()), "").as_py()
    return row if row >= 0 else None


def _row(part: Part, number: int, texts: list[str]) -> Row:
    """The texts of a row, its value as a number."""
    if part.kind.value is None:
        return tuple(texts)
    try:
        return (*texts[:-1], float(texts[-1]))
    except ValueError:
        raise InputError(f"{part.path}:{number}: {part.kind.value} '{texts[-1]}' is not a number; mend it") from None


def _table(part: Part, rows: Iterable[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(part.kind.columns)
    schema = _schema(part.kind, list(part.kind.columns))
    return pa.table([pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)], schema)


_PARSERS: Mapping[str, Callable[[Part], pa.Table]] = {
    "trec": _parse_trec,
    "tsv": _parse_delimited,
    "csv": _parse_delimited,
    "jsonl": _parse_jsonl,
    "parquet": _parse_parquet,
}
