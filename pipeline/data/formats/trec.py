"""TREC text: blank-separated fields without a header; lines that begin with # are comments."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rankledger.pipeline.data.formats.common import (
    BLOCK_SIZE,
    PAGE,
    FilePart,
    Row,
    first_empty,
    parse_csv,
    row_of,
    table_of,
)
from rankledger.pipeline.errors import InputError

__all__ = ["last_fields", "parse_trec", "trec_lines"]

_RANKING = 6  # fields of a line of a ranking: query, Q0, document, rank, score, tag


def parse_trec(part: FilePart) -> pa.Table:
    """The wanted fields, by their places in the line."""
    lines = _single_blanks(part.data)
    first = bytes(lines[:BLOCK_SIZE]).partition(b"\n")[0]
    _refuse_ranking(part, first.split())
    delimiter = "\t" if b"\t" in first else " "
    names = [f"field {place}" for place in range(first.count(delimiter.encode()) + 1)]
    wanted = [names[place] for place in part.kind.trec_places if place < len(names)]
    if len(wanted) == len(part.kind.columns):
        try:
            table = parse_csv(part, lines, delimiter, wanted, names)
            if not any(first_empty(table, column) is not None for column in part.kind.ids):
                return table  # an empty id means that there are blanks before the first field
        except pa.ArrowInvalid:
            pass
    return table_of(part, (_trec_row(part, number, line) for number, line in trec_lines(part)))


def _refuse_ranking(part: FilePart, fields: list[bytes]) -> None:
    """Judgments whose first line is one of a ranking would be read, with ranks for grades, and give figures."""
    if part.kind.value == "relevance" and fields[1:2] == [b"Q0"] and len(fields) >= _RANKING:
        expected = ", ".join(part.kind.trec)
        raise InputError(
            f"{part.path}: a ranking, by its first line, where {expected} are expected; name the judgments"
        )


def _single_blanks(data: memoryview) -> memoryview:
    """The lines without comments and with one separator between two fields; `data` itself if it is so already."""
    if _is_plain(data):
        return data
    text = _unix_lines(data)
    if b"#" in text:
        text = b"".join(line for line in io.BytesIO(text) if not line.startswith(b"#"))
    text = text.replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return memoryview(text.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" "))


def _is_plain(data: memoryview) -> bool:
    """Whether one separator stands between two fields, the same everywhere, and there are no comments; in one pass."""
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
    """Whether two of the sign stand side by side; `in` would take ten times as long where the sign is frequent."""
    found = np.frombuffer(page, np.uint8) == ord(sign)
    return bool((found[1:] & found[:-1]).any())


def _unix_lines(data: memoryview) -> bytes:
    return bytes(data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def trec_lines(part: FilePart) -> Iterator[tuple[int, bytes]]:
    """The lines that hold a row, numbered from 1."""
    for number, line in enumerate(io.BytesIO(_unix_lines(part.data)), 1):
        if not line.startswith(b"#") and line.strip():
            yield number, line


def _trec_row(part: FilePart, number: int, line: bytes) -> Row:
    fields = line.split()
    if len(fields) <= max(part.kind.trec_places):
        expected = ", ".join(part.kind.trec)
        raise InputError(
            f"{part.path}:{number}: {len(fields)} fields found where {expected} are expected; fix the line"
        )
    try:
        return row_of(part, number, [fields[place].decode() for place in part.kind.trec_places])
    except UnicodeDecodeError:
        raise InputError(f"{part.path}:{number}: not UTF-8; convert the file") from None


def last_fields(data: memoryview) -> list[bytes]:
    """The fields of the last line that holds a row; none where there is no such line."""
    size = 0
    while size < len(data):
        size = min(max(PAGE, 2 * size), len(data))
        lines = _unix_lines(data[len(data) - size :]).split(b"\n")
        whole = lines if size == len(data) else lines[1:]  # the first may have begun before
        rows = [line for line in whole if not line.startswith(b"#") and line.strip()]
        if rows:
            return rows[-1].split()
    return []
