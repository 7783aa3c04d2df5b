"""Delimited text: TSV and CSV with a header, and TREC text with blanks between fields and without a header.

Lines of TREC text that begin with # are comments.
"""

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

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.files import first_line
from rankledger.pipeline.data.formats.common import (
    BLOCK_SIZE,
    PAGE,
    FilePart,
    Format,
    Kind,
    count_lines,
    line_position,
    odd_id,
    parse_csv,
    refuse_surrogates,
    row_of,
    table_of,
)
from rankledger.pipeline.data.formats.layouts import EACH, KeyChain, explain_header, is_number, typed_name
from rankledger.pipeline.support.arrow import bools, integers, numpy_of
from rankledger.pipeline.support.errors import InputError, shorten

_FIRST = 100  # lines by which lists, or the order of fields, are known
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
        cell = shorten(cells[int(rows[full][pc.index(odd, True).as_py()])].as_py())
        advice = "Use blanks, or ['d1', 'd2'], between ids, and ['d,1'] for an id with such a sign"
        raise InputError(f"{part.path}: '{cell}' in {name} may be one id or several. {advice}")
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
        names = [typed_name(part.name(column), header) for column in part.kind.columns]
        part.check_columns(names, header, ":1")
        try:
            quotes, begins = self._are_quoted(part.data), self._begins(part)
            return parse_csv(part, part.data, self._delimiter, names, header, header=begins, quotes=quotes)
        except pa.ArrowInvalid:
            places = [header.index(name) for name in names]
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
        named_part = replace(part, kind=Kind(tuple(names), None))
        quotes, begins = self._are_quoted(part.data), self._begins(part)
        try:
            return parse_csv(named_part, part.data, self._delimiter, columns, header, header=begins, quotes=quotes)
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
        chains: dict[str, KeyChain] = {}
        for place, name in enumerate(header):
            cells = [row[place] for row in rows]
            has_several = any(len(cell.split()) > 1 or _is_literal(cell) or {*cell} & _SIGNS for cell in cells)
            chains[name] = (name, EACH) if name == named or has_several else (name,)
        return chains

    def lists(self, part: FilePart) -> pa.Table:
        columns = tuple(part.lists)
        names = {column: keys[0] for column, keys in part.lists.items()}
        texts = self.parse(replace(part, kind=Kind(columns, None), names=names))
        arrays = [texts.column(0).cast(pa.string())]
        for column in columns[1:]:
            lists = [_split(part, names[column], chunk) for chunk in texts.column(column).chunks]
            arrays.append(pa.chunked_array(lists, pa.large_list(pa.string())))
        return pa.Table.from_arrays(arrays, [*columns])

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


_JUDGMENTS = 4  # fields of a line of judgments: query, iteration, document, relevance
_BY_QUERY = ("query_id", "measure", "value")  # as ir_measures prints scores
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_RANKING = 6  # fields of a line of a ranking: query, Q0, document, rank, score, tag


def _parse(part: FilePart) -> pa.Table:
    if not part.kind.trec:
        raise InputError(
            f"{part.path}: TREC text cannot hold {' and '.join(part.kind.columns)}; use tsv, csv, jsonl or parquet"
        )
    lines = _single_blanks(part)
    first = bytes(lines[:BLOCK_SIZE]).partition(b"\n")[0]
    if part.head is None:
        _refuse_other(part, _split_tabs(part.kind, first) or first.split())
    else:
        _refuse_cut_off(part)  # of a line alone nothing else tells
    delimiter = "\t" if b"\t" in first else " "
    if _may_hold_blanks(part.kind, first.split()):
        next(_rows(part))  # which refuses the line, unless tabs are between its fields
    names = [f"field {place}" for place in range(first.count(delimiter.encode()) + 1)]
    chosen = [names[place] for place in part.kind.trec_places if place < len(names)]
    if len(chosen) == len(part.kind.columns):
        try:
            is_ranking = part.kind.trec[1:2] == ("Q0",) and delimiter == " " and len(names) >= _RANKING
            parse = _parse_ranking if is_ranking else parse_csv
            table = parse(part, lines, delimiter, chosen, names)
            if all(odd_id(table, column) is None for column in part.kind.ids):
                return table  # an empty id means that there are blanks before the first field
        except pa.ArrowInvalid:
            _refuse_cut_off(part)
    return table_of(part, (row_of(part, number, _texts(part, number, fields)) for number, fields in _rows(part)))


def _parse_ranking(part: FilePart, lines: memoryview, delimiter: str, wanted: list[str], names: list[str]) -> pa.Table:
    """Parse lines of a ranking. Raise ArrowInvalid if an id may contain a blank, which moves the later fields."""
    *_, rank, _, tag = names[:_RANKING]
    if len(names) == _RANKING:
        with suppress(pa.ArrowInvalid):  # of ranks that are no whole numbers
            return parse_csv(part, lines, delimiter, wanted, names, whole_number="" if rank in wanted else rank)
    fields = parse_csv(replace(part, kind=Kind((rank, tag), None)), lines, delimiter, [rank, tag], names)
    has_rank, has_number = (pc.match_substring_regex(column, _NUMBER) for column in fields.columns)
    is_moved = pc.invert(has_rank)
    is_moved = pc.and_(is_moved, has_number) if len(names) == _RANKING else pc.or_(is_moved, has_number)
    if pc.any(is_moved).as_py():
        raise pa.ArrowInvalid
    return parse_csv(part, lines, delimiter, wanted, names)


def _refuse_cut_off(part: FilePart) -> None:
    if bytes(part.data[-1:]) != b"\n":
        sizes = [len(fields) for _, fields in _rows(part)]
        n_first = next((len(fields) for _, fields in _rows(part.beginning)), sizes[0] if sizes else 0)
        if sizes and max(part.kind.trec_places) < sizes[-1] < n_first == min(sizes[:-1], default=n_first):
            problem = f"its last line has {sizes[-1]} fields where the first has {n_first}, and no end"
            raise InputError(f"{part.path}: {problem}, so the file may be cut off. Check its source.")


def _refuse_other(part: FilePart, fields: list[bytes]) -> None:
    expected = f"by its first line, where {', '.join(part.kind.trec)} are expected"
    if part.kind.value == "relevance" and fields[1:2] == [b"Q0"] and len(fields) >= _RANKING:
        raise InputError(f"{part.path}: looks like a ranking {expected}; name the judgments")
    if len(part.kind.trec) != _RANKING:
        return
    if len(fields) == _JUDGMENTS and fields[1].upper() == b"Q0" and _is_number(fields[3]):
        advice = "Set format: trec, columns: {query_id: 1, doc_id: 3, score: 4}, or rank: 4 if 1 is the best"
        raise InputError(
            f"{part.path}: 4 fields found in the first line: query_id, Q0, doc_id, and a number. {advice}."
        )
    if len(fields) == _JUDGMENTS and _is_number(fields[3]):
        raise InputError(f"{part.path}: looks like judgments {expected}; name the ranking")


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _split_tabs(kind: Kind, line: bytes) -> list[bytes]:
    fields = [field.strip() for field in line.split(b"\t") if field.strip()]
    is_whole = len(fields) > max(kind.trec_places)
    is_valued = is_whole and (not kind.value or _is_number(fields[kind.trec.index(kind.value)]))
    return fields if is_valued else []


def _may_hold_blanks(kind: Kind, fields: list[bytes]) -> bool:
    is_more = len(fields) > len(kind.trec)
    if kind.trec[1:2] == ("Q0",):
        odd = [*(not _is_number(rank) for rank in fields[3:4]), *map(_is_number, fields[5:6])]
        return any(odd) if is_more else odd == [True, True]
    return is_more and kind.trec[1:2] == ("iteration",) and _is_number(fields[len(kind.trec)])


def _single_blanks(part: FilePart) -> memoryview:
    if _is_plain(part.data):
        return part.data
    text = _unix_lines(part.data)
    if b"#" in text:
        text = b"".join(line for line in io.BytesIO(text) if not line.startswith(b"#"))
    first = text.lstrip().partition(b"\n")[0]
    if _split_tabs(part.kind, first):
        return memoryview(re.sub(rb" *(?:\t[ \t]*)+", b"\t", re.sub(rb"[ \t]*\n\s*", b"\n", text)).strip())
    text = text.replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return memoryview(text.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" "))


def _is_plain(data: memoryview) -> bool:
    separators: set[bytes] = set()
    for begin in range(0, len(data), PAGE):
        page = bytes(data[begin : begin + PAGE + 1])
        separators |= {sign for sign in (b"\t", b" ") if sign in page}
        if len(separators) > 1 or b"#" in page or b"\r" in page:
            return False
        if any(_holds_pair(page, sign) for sign in separators):
            return False
    return True


def _holds_pair(page: bytes, sign: bytes) -> bool:
    """Return whether two of the sign are adjacent. `in` takes ten times as long for frequent signs."""
    is_sign = np.frombuffer(page, np.uint8) == ord(sign)
    return bool((is_sign[1:] & is_sign[:-1]).any())


def _unix_lines(data: memoryview) -> bytes:
    return bytes(data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _rows(part: FilePart) -> Iterator[tuple[int, list[bytes]]]:
    totals = part.kind.totals.encode()
    place = part.kind.trec.index("query_id")
    for number, line in enumerate(io.BytesIO(_unix_lines(part.data)), 1):
        fields = [] if line.startswith(b"#") else _split_tabs(part.kind, line) or line.split()
        if b"\t" not in line and _may_hold_blanks(part.kind, fields):
            problem = f"{len(fields)} fields found where {', '.join(part.kind.trec)} are expected"
            raise InputError(f"{part.at(number)}: {problem}, so an id may contain a blank. Use tabs between the fields")
        if fields and not (totals and fields[place : place + 1] == [totals]):
            yield number, fields


def _texts(part: FilePart, number: int, fields: list[bytes]) -> list[str]:
    if len(fields) <= max(part.kind.trec_places):
        problem = f"{len(fields)} fields found where {', '.join(part.kind.trec)} are expected"
        cause = explain_header([field.decode(errors="replace") for field in fields])
        raise InputError(f"{part.at(number)}: {problem}; {cause or 'fix the line'}")
    texts = [fields[place].decode("utf-8", "surrogateescape") for place in part.kind.trec_places]
    refuse_surrogates(part, number, texts)
    return texts


def _columns(part: FilePart) -> list[str]:
    return [part.name(column) for column in part.kind.columns]


def _cells(part: FilePart, names: Sequence[str]) -> dict[str, list[str]]:
    rows = [_texts(part, number, fields) for number, fields in _rows(part)]
    if not rows and last_fields(part.data, part.kind):
        raise InputError(f"{part.path}: only lines for all queries together; print each query too, with -q")
    part.check_columns(names, _columns(part))
    return {name: [row[place] for row in rows] for place, name in enumerate(_columns(part)) if name in names}


def last_fields(data: memoryview, kind: Kind) -> list[bytes]:
    """Return the fields of the last row. Empty if there is none."""
    size = 0
    while size < len(data):
        size = min(max(PAGE, 2 * size), len(data))
        lines = _unix_lines(data[len(data) - size :]).split(b"\n")
        full_lines = lines if size == len(data) else lines[1:]  # the first may have begun before
        rows = [line for line in full_lines if not line.startswith(b"#") and line.strip()]
        if rows:
            return _split_tabs(kind, rows[-1]) or rows[-1].split()
    return []


TREC = Format("trec", (), _parse, line_position(_rows), _columns, _cells, count_lines=count_lines)


def order_fields(part: FilePart, wanted: Sequence[str]) -> FilePart:
    """Return score lines without a header, and the order of their fields.

    The config may number the fields. Otherwise the second field is the measure if it has more measure names than the
    first, as in ir_measures.
    """
    numbers = {part.names.get(column, ""): column for column in _BY_QUERY}
    rows = [line.decode("utf-8", "replace").split() for line in bytes(part.data[:PAGE]).splitlines()[:_FIRST]]
    rows = [row for row in rows if len(row) == len(_BY_QUERY) and is_number(row[-1])]
    if part.format is TREC and all(map(is_number, numbers)):
        places = range(1, 1 + max(map(int, numbers)))
        fields = tuple(numbers.get(str(place), f"field {place}") for place in places)
    elif rows and (part.format is TREC or (part.format.name == "tsv" and is_number(part.format.columns(part)[-1]))):
        names = {*wanted, *map(part.name, wanted)}
        first, second = (sum(row[place] in names or is_measure(row[place]) for row in rows) for place in (0, 1))
        fields = _BY_QUERY if second > first else part.kind.trec
    else:
        return part
    return replace(part, format=TREC, kind=replace(part.kind, trec=fields))


def is_measure(name: str) -> bool:
    """Return whether a name is a measure's, ours or another tool's."""
    with suppress(ValueError):
        return Measure.expand(name) != ()
    return False
