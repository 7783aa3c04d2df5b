"""Delimited text with a header: TSV and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.pipeline.data.files import first_line
from rankledger.pipeline.data.formats.common import (
    EACH,
    PAGE,
    FilePart,
    Format,
    KeyChain,
    Kind,
    count_lines,
    line_position,
    parse_csv,
    refuse_surrogates,
    row_of,
    table_of,
)
from rankledger.pipeline.data.formats.layouts import is_number, typed_name
from rankledger.pipeline.support.arrow import bools, integers, numpy_of
from rankledger.pipeline.support.errors import InputError, shorten

_FIRST = 100  # rows by which lists are known
_ITEM = re.compile(r"""'([^'\\]*)'|"([^"\\]*)"|([\w.+-]+)""")
_ANY = r"""(?:'[^'\\]*'|"[^"\\]*"|[\w.+-]+)"""
_NULLS = ("nan", "NaN", "None", "null", "NaT", "<NA>")
_SIGNS = {",", ";", "|"}  # that may stand between ids, or within one
_ODD = r"^[,;|]|[,;|]$|^[<>&+/=~-]+$"  # what is no id between blanks, but of another way to write lists
_BEGUN = re.compile(rb'(?m)(?:^|(?<=\t))"')  # a field between tabs that begins with a quotation mark
_ENCLOSED = re.compile(rb'(?m)(?:^|(?<=\t))"(?:[^"\n]|"")*"(?=\t|\r?$)')
_LITERAL = re.compile(rf"\[\s*(?:{_ANY}(?:\s*,\s*{_ANY})*)?\s*\]")


def delimited(name: str, delimiter: str, *, quotes: bool = False, suffixes: Sequence[str] = ()) -> Format:
    """Return a format of delimited lines with a header. Its name is also its ending."""
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
        find_chains=layout.chains,
        read_lists=layout.lists,
    )


def _is_literal(cell: str) -> bool:
    return cell[:1] == "[" and cell[-1:] == "]"


def _split(part: FilePart, name: str, cells: pa.Array) -> pa.Array:
    if any(map(_is_literal, cells.slice(0, _FIRST).to_pylist())):
        return pa.array([_literal(part, cell) for cell in cells.to_pylist()], pa.large_list(pa.string()))
    split = pc.ascii_split_whitespace(cells)
    texts = pc.list_flatten(split)
    rows = np.repeat(np.arange(len(cells)), numpy_of(pc.list_value_length(split), np.int32))
    full = numpy_of(pc.binary_length(texts), np.int32) > 0  # an empty cell is split into an empty text
    sizes = np.bincount(rows[full], minlength=len(cells))
    texts = texts.filter(bools(full))
    signed = pc.match_substring_regex(texts, "[,;|]")
    is_id = pc.any(pc.and_(signed, bools(sizes[rows[full]] > 1))).as_py()  # of several between blanks
    odd = pc.match_substring_regex(texts, _ODD)
    odd = odd if is_id else pc.or_(odd, signed)
    if pc.any(odd).as_py():
        found = shorten(cells[int(rows[full][pc.index(odd, True).as_py()])].as_py())
        advice = "Use blanks, or ['d1', 'd2'], between ids, and ['d,1'] for an id with such a sign"
        raise InputError(f"{part.path}: '{found}' in {name} may be one id or several. {advice}")
    texts = pc.if_else(pc.is_in(texts, pa.array(_NULLS)), None, texts)
    return pa.LargeListArray.from_arrays(integers(np.cumsum([0, *sizes])), texts)


def _literal(part: FilePart, cell: str) -> list[str | None]:
    if not cell.strip():
        return []
    if not _LITERAL.fullmatch(cell):
        advice = "write ids with blanks between, or as ['d1', 'd2']"
        raise InputError(f"{part.path}: the list {shorten(cell)} cannot be read; {advice}")
    return [quoted or double or (None if plain in _NULLS else plain) for quoted, double, plain in _ITEM.findall(cell)]


def _is_numbered(part: FilePart, first: Sequence[str]) -> bool:
    """Return whether the config names fields by their numbers, because the first line is no header."""
    names = {*part.names.values()}
    is_header = names <= {*first} and not all(map(is_number, first))
    counts = [*first] == [*map(str, range(len(first)))]  # as pandas names columns
    return bool(names) and all(re.fullmatch("[1-9][0-9]?", name) for name in names) and not (is_header or counts)


def are_quoted(data: memoryview) -> bool:
    """Return whether fields between tabs are enclosed in quotation marks."""
    if not any(b'"' in bytes(data[begin : begin + PAGE]) for begin in range(0, len(data), PAGE)):
        return False
    n_begun = sum(1 for _ in _BEGUN.finditer(data))
    return n_begun == sum(1 for _ in _ENCLOSED.finditer(data)) > 0


class _Layout:
    def __init__(self, delimiter: str, quotes: bool) -> None:
        self._delimiter = delimiter
        self._quotes = quotes

    def parse(self, part: FilePart) -> pa.Table:
        header = self.header(part)
        if not header:
            return table_of(part, ())
        wanted = [typed_name(part.name(column), header) for column in part.kind.columns]
        part.check_columns(wanted, header, ":1")
        try:
            quotes, begins = self._are_quoted(part.data), self._begins(part)
            return parse_csv(part, part.data, self._delimiter, wanted, header, header=begins, quotes=quotes)
        except pa.ArrowInvalid:
            places = [header.index(name) for name in wanted]
            rows = self._full_lines(part, header)
            return table_of(part, (row_of(part, number, [row[place] for place in places]) for number, row in rows))

    def header(self, part: FilePart) -> list[str]:
        header = self._first_record(part)
        refuse_surrogates(part, 1, header)
        return [*map(str, range(1, len(header) + 1))] if _is_numbered(part, header) else header

    def _begins(self, part: FilePart) -> bool:
        return part.head is None and not _is_numbered(part, self._first_record(part))

    def _first_record(self, part: FilePart) -> list[str]:
        beginning = part.beginning
        if not self._quotes:  # a line is enough, and nothing else is searched for quotation marks
            first = next((line for line in beginning.lines() if line.strip()), b"")
            beginning = replace(beginning, stored=pa.py_buffer(first))
        return next(self._records(beginning), (0, []))[1]

    def lines(self, part: FilePart) -> Iterator[tuple[int, list[str]]]:
        return islice(self._records(part), int(self._begins(part)), None)

    def cells(self, part: FilePart, names: Sequence[str]) -> dict[str, list[str]]:
        header = self.header(part)
        if not header:
            return {name: [] for name in names}
        columns = [typed_name(name, header) for name in names]
        part.check_columns(columns, header, ":1")
        rows = []
        for number, row in self._full_lines(part, header):
            refuse_surrogates(part, number, row)
            rows.append(row)
        places = zip(names, map(header.index, columns), strict=True)
        return {name: [row[place] for row in rows] for name, place in places}

    def table(self, part: FilePart, names: Sequence[str]) -> pa.Table:
        header = self.header(part)
        columns = [typed_name(name, header) for name in names]
        part.check_columns(columns, header, ":1")
        wanted = replace(part, kind=Kind(tuple(names), None))
        quotes, begins = self._are_quoted(part.data), self._begins(part)
        try:
            return parse_csv(wanted, part.data, self._delimiter, columns, header, header=begins, quotes=quotes)
        except pa.ArrowException as error:
            raise InputError(f"{part.path}: {first_line(error)}; write it again") from None

    def chains(self, part: FilePart, sample: bytes) -> dict[str, KeyChain]:
        """Return the keys to each field, with lists if some of the first cells hold several ids.

        If the config names the documents and no query repeats in the first lines, each cell may be a list of one, too.
        """
        header = self.header(part)
        rows = [*islice(self._first_rows(part, sample, len(header)), _FIRST)]
        queries = [row[header.index(part.name("query_id"))] for row in rows] if part.name("query_id") in header else []
        is_single = part.kind.value and len({*queries}) == len(queries) > 0
        named = part.names.get("doc_id") if is_single else None
        found: dict[str, KeyChain] = {}
        for place, name in enumerate(header):
            cells = [row[place] for row in rows]
            has_several = any(len(cell.split()) > 1 or _is_literal(cell) or {*cell} & _SIGNS for cell in cells)
            found[name] = (name, EACH) if name == named or has_several else (name,)
        return found

    def lists(self, part: FilePart) -> pa.Table:
        assert part.lists is not None, "which its layout has"
        columns = tuple(part.lists.chains)
        names = {column: chain[0] for column, chain in part.lists.chains.items()}
        texts = self.parse(replace(part, kind=Kind(columns, None), names=names))
        found = [texts.column(0).cast(pa.string())]
        for column in columns[1:]:
            lists = [_split(part, names[column], chunk) for chunk in texts.column(column).chunks]
            found.append(pa.chunked_array(lists, pa.large_list(pa.string())))
        return pa.Table.from_arrays(found, [*columns])

    def _are_quoted(self, data: memoryview) -> bool:
        return self._quotes or (self._delimiter == "\t" and are_quoted(data))

    def _first_rows(self, part: FilePart, sample: bytes, n_fields: int) -> Iterator[list[str]]:
        stored = pa.py_buffer(sample) if b"\n" in sample else part.stored
        with suppress(InputError):
            for _, row in self.lines(replace(part, stored=stored)):
                if len(row) == n_fields:
                    yield row

    def _full_lines(self, part: FilePart, header: list[str]) -> Iterator[tuple[int, list[str]]]:
        for number, row in self.lines(part):
            if len(row) != len(header):
                counts = f"{len(row)} fields found where the header has {len(header)}"
                raise InputError(f"{part.at(number)}: {counts}; fix the line")
            yield number, row

    def _records(self, part: FilePart) -> Iterator[tuple[int, list[str]]]:
        text = io.TextIOWrapper(part.lines(), encoding="utf-8", errors="surrogateescape", newline="")
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self._are_quoted(part.data) else csv.QUOTE_NONE
        reader = csv.reader(text, delimiter=self._delimiter, quoting=quoting)
        try:
            yield from ((reader.line_num, record) for record in reader if record)
        except csv.Error as error:
            after = part.before() + reader.line_num
            raise InputError(f"{part.path}: {error} after line {after}; fix it") from None


TSV = delimited("tsv", "\t", suffixes=(".inter", ".item", ".user"))  # RecBole's atomic files
CSV = delimited("csv", ",", quotes=True)
