"""TSV and CSV, with a header."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator

import pyarrow as pa

from rankledger.pipeline.data.formats.common import FilePart, Row, parse_csv, refuse_surrogates, row_of, table_of
from rankledger.pipeline.errors import InputError, shorten

__all__ = ["delimited_header", "delimited_lines", "delimited_records", "parse_delimited"]

_DELIMITERS = {"tsv": "\t", "csv": ","}


class _Tsv(csv.Dialect):
    """Tab-separated values, in which a quotation mark is a character like any other."""

    delimiter = "\t"
    quoting = csv.QUOTE_NONE
    lineterminator = "\n"


def parse_delimited(part: FilePart) -> pa.Table:
    """The wanted columns, by their names in the header."""
    header = delimited_header(part)
    part = part.with_columns(header)
    _check_columns(part, header)
    wanted = [part.name(column) for column in part.kind.columns]
    try:
        return parse_csv(part, part.data, _DELIMITERS[part.format], wanted, header, header=True)
    except pa.ArrowInvalid:
        return table_of(part, _delimited_rows(part, header, [header.index(name) for name in wanted]))


def delimited_header(part: FilePart) -> list[str]:
    """The column names."""
    header = next((record for _, record in _records(part)), [])
    if not header:
        raise InputError(f"{part.path}: no rows; write the file again")
    refuse_surrogates(part, 1, header)
    return header


def _check_columns(part: FilePart, header: list[str]) -> None:
    """Refuse a header that lacks a column or has it twice."""
    for column in part.kind.columns:
        name = part.name(column)
        if name not in header:
            found = shorten(", ".join(header)) or "nothing"
            raise InputError(f"{part.path}:1: no column '{name}' among {found}; {part.missing(column, header)}")
        if header.count(name) > 1:
            raise InputError(f"{part.path}:1: column '{name}' stands twice; name each column once")


def _delimited_rows(part: FilePart, header: list[str], places: list[int]) -> Iterator[Row]:
    for number, record in delimited_records(part, header):
        yield row_of(part, number, [record[place] for place in places])


def delimited_records(part: FilePart, header: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines that hold a row, each with a field for every column of the header."""
    for number, record in delimited_lines(part):
        if len(record) != len(header):
            counts = f"{len(record)} fields found where the header has {len(header)}"
            raise InputError(f"{part.path}:{number}: {counts}; fix the line")
        yield number, record


def delimited_lines(part: FilePart) -> Iterator[tuple[int, list[str]]]:
    """The lines that hold a row, numbered from 1: all but the header."""
    return itertools.islice(_records(part), 1, None)


def _records(part: FilePart) -> Iterator[tuple[int, list[str]]]:
    """The lines that hold fields, numbered from 1 (a record of several lines by its last); the header is the first."""
    text = io.TextIOWrapper(part.lines(), encoding="utf-8", errors="surrogateescape", newline="")
    reader = csv.reader(text, "excel" if part.format == "csv" else _Tsv)
    try:
        yield from ((reader.line_num, record) for record in reader if record)
    except csv.Error as error:
        raise InputError(f"{part.path}: {error} after line {reader.line_num}; fix it") from None
