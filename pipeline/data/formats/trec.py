"""TREC text: blank-separated fields without a header. Lines that begin with # are comments."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.measure import Measure
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
from rankledger.pipeline.data.formats.layouts import explain_header, is_number
from rankledger.pipeline.support.errors import InputError

_JUDGMENTS = 4  # fields of a line of judgments: query, iteration, document, relevance
_BY_QUERY = ("query_id", "measure", "value")  # as ir_measures prints scores
_FIRST = 100  # lines by which the order of their fields is known
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
        _refuse_other(part, _between_tabs(part.kind, first) or first.split())
    delimiter = "\t" if b"\t" in first else " "
    if _may_hold_blanks(part.kind, first.split()):
        next(_rows(part))  # which refuses the line, unless tabs are between its fields
    names = [f"field {place}" for place in range(first.count(delimiter.encode()) + 1)]
    wanted = [names[place] for place in part.kind.trec_places if place < len(names)]
    if len(wanted) == len(part.kind.columns):
        try:
            is_ranking = part.kind.trec[1:2] == ("Q0",) and delimiter == " " and len(names) >= _RANKING
            parse = _parse_ranking if is_ranking else parse_csv
            table = parse(part, lines, delimiter, wanted, names)
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
    """Reject an unended last line with fewer fields than the first, which may be cut off."""
    if bytes(part.data[-1:]) != b"\n":
        sizes = [len(fields) for _, fields in _rows(part)]
        if sizes and sizes[-1] < sizes[0] and all(size >= sizes[0] for size in sizes[:-1]):
            found = f"its last line has {sizes[-1]} fields where the first has {sizes[0]}, and no end"
            raise InputError(f"{part.path}: {found}, so the file may be cut off. Check its source.")


def _refuse_other(part: FilePart, fields: list[bytes]) -> None:
    """Reject by its first line a ranking in place of judgments, or the reverse."""
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
    if len(fields) == _RANKING - 1 and _is_number(fields[3]) and not _is_number(fields[4]):
        raise InputError(f"{part.path}: 5 fields found {expected.replace(', where', ' where')}; add Q0")


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _between_tabs(kind: Kind, line: bytes) -> list[bytes]:
    fields = [field.strip() for field in line.split(b"\t") if field.strip()]
    is_whole = len(fields) > max(kind.trec_places)
    is_valued = is_whole and (not kind.value or _is_number(fields[kind.trec.index(kind.value)]))
    return fields if is_valued else []


def _may_hold_blanks(kind: Kind, fields: list[bytes]) -> bool:
    """Return whether fields show that an id may contain a blank."""
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
    if _between_tabs(part.kind, first):
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
    found = np.frombuffer(page, np.uint8) == ord(sign)
    return bool((found[1:] & found[:-1]).any())


def _unix_lines(data: memoryview) -> bytes:
    return bytes(data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _rows(part: FilePart) -> Iterator[tuple[int, list[bytes]]]:
    totals = part.kind.totals.encode()
    place = part.kind.trec.index("query_id")
    for number, line in enumerate(io.BytesIO(_unix_lines(part.data)), 1):
        fields = [] if line.startswith(b"#") else _between_tabs(part.kind, line) or line.split()
        if b"\t" not in line and _may_hold_blanks(part.kind, fields):
            found = f"{len(fields)} fields found where {', '.join(part.kind.trec)} are expected"
            raise InputError(f"{part.at(number)}: {found}, so an id may contain a blank. Use tabs between the fields")
        if fields and not (totals and fields[place : place + 1] == [totals]):
            yield number, fields


def _texts(part: FilePart, number: int, fields: list[bytes]) -> list[str]:
    if len(fields) <= max(part.kind.trec_places):
        found = f"{len(fields)} fields found where {', '.join(part.kind.trec)} are expected"
        cause = explain_header((), [field.decode(errors="replace") for field in fields])
        raise InputError(f"{part.at(number)}: {found}; {cause or 'fix the line'}")
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
        whole = lines if size == len(data) else lines[1:]  # the first may have begun before
        rows = [line for line in whole if not line.startswith(b"#") and line.strip()]
        if rows:
            return _between_tabs(kind, rows[-1]) or rows[-1].split()
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
