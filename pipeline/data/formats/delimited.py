"""Delimited text with a header: TSV and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

import pyarrow as pa
import pyarrow.csv

from rankledger.pipeline.data.formats.common import (
    FilePart,
    Format,
    count_lines,
    line_position,
    parse_csv,
    refuse_surrogates,
    row_of,
    table_of,
)
from rankledger.pipeline.support.errors import InputError, shorten

__all__ = ["CSV", "TSV", "delimited"]


def delimited(name: str, delimiter: str, *, quotes: bool = False, suffixes: Sequence[str] = ()) -> Format:
    """The format of lines whose fields stand between delimiters, the first line holding the names of the columns.

    Args:
        name: the format's name, which is also the ending of its files.
        delimiter: what stands between two fields.
        quotes: whether quotation marks may enclose a field; otherwise they are characters like any other.
        suffixes: further endings of its files.
    """
    layout = _Layout(delimiter, quotes)
    position = line_position(layout.lines)
    lines = None if quotes else count_lines  # a quoted field may hold line ends
    return Format(
        name,
        (f".{name}", *suffixes),
        layout.parse,
        position,
        layout.header,
        layout.cells,
        layout.table,
        layout.header,
        count_lines=lines,
    )


class _Layout:
    """How lines are cut into fields."""

    def __init__(self, delimiter: str, quotes: bool) -> None:
        self._delimiter = delimiter
        self._quotes = quotes
        self._quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE

    def parse(self, part: FilePart) -> pa.Table:
        """The wanted columns, by their names in the header."""
        header = self.header(part)
        wanted = [part.name(column) for column in part.kind.columns]
        part.check_columns(wanted, header, ":1")
        try:
            begins = part.head is None
            return parse_csv(part, part.data, self._delimiter, wanted, header, header=begins, quotes=self._quotes)
        except pa.ArrowInvalid:
            places = [header.index(name) for name in wanted]
            rows = self._full_lines(part, header)
            return table_of(part, (row_of(part, number, [row[place] for place in places]) for number, row in rows))

    def header(self, part: FilePart) -> list[str]:
        """The column names."""
        _, header = next(self._records(part.beginning), (0, []))
        if not header:
            raise InputError(f"{part.path}: no rows; write the file again")
        refuse_surrogates(part, 1, header)
        return header

    def lines(self, part: FilePart) -> Iterator[tuple[int, list[str]]]:
        """The lines that hold a row, numbered from 1: all but the header."""
        return islice(self._records(part), int(part.head is None), None)

    def cells(self, part: FilePart, names: Sequence[str]) -> dict[str, list[str]]:
        """The texts of these columns."""
        header = self.header(part)
        part.check_columns(names, header, ":1")
        rows = []
        for number, row in self._full_lines(part, header):
            refuse_surrogates(part, number, row)
            rows.append(row)
        return {name: [row[place] for row in rows] for name, place in ((name, header.index(name)) for name in names)}

    def table(self, part: FilePart, names: Sequence[str]) -> pa.Table:
        """These columns as texts."""
        part.check_columns(names, self.header(part), ":1")
        parsing = pa.csv.ParseOptions(
            delimiter=self._delimiter, quote_char='"' if self._quotes else False, newlines_in_values=self._quotes
        )
        converting = pa.csv.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[],
            strings_can_be_null=False,
        )
        try:
            return pa.csv.read_csv(pa.BufferReader(part.data), parse_options=parsing, convert_options=converting)
        except pa.ArrowException as error:
            raise InputError(f"{part.path}: {shorten(str(error).partition(chr(10))[0])}; write it again") from None

    def _full_lines(self, part: FilePart, header: list[str]) -> Iterator[tuple[int, list[str]]]:
        """The lines that hold a row, each with a field for every column of the header."""
        for number, row in self.lines(part):
            if len(row) != len(header):
                counts = f"{len(row)} fields found where the header has {len(header)}"
                raise InputError(f"{part.at(number)}: {counts}; fix the line")
            yield number, row

    def _records(self, part: FilePart) -> Iterator[tuple[int, list[str]]]:
        """The lines that hold fields, numbered from 1 (a record of several lines by its last); the header is first."""
        text = io.TextIOWrapper(part.lines(), encoding="utf-8", errors="surrogateescape", newline="")
        reader = csv.reader(text, delimiter=self._delimiter, quoting=self._quoting)
        try:
            yield from ((reader.line_num, record) for record in reader if record)
        except csv.Error as error:
            after = part.before() + reader.line_num
            raise InputError(f"{part.path}: {error} after line {after}; fix it") from None


TSV = delimited("tsv", "\t", suffixes=(".inter", ".item", ".user"))  # RecBole's atomic files
CSV = delimited("csv", ",", quotes=True)
