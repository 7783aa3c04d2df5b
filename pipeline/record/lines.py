"""Tables of text, `summary.csv`, `comparisons.csv` and `curves.csv`: a line per row, a column per field.

A text that a spreadsheet would compute stands after an apostrophe, which is taken away when it is read.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from io import StringIO
from math import isfinite
from operator import attrgetter
from pathlib import Path
from sys import intern
from typing import Any, Literal, TextIO, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pipeline.errors import InputError
from pipeline.escaping import from_cell, to_cell
from pipeline.pages import CurvePoint
from pipeline.tables import Estimate
from pipeline.verdicts import Comparison

__all__ = ["Line", "Rows", "figure", "lines_in", "lines_of", "number", "parsed_rows", "rank", "text_of", "write_lines"]

Line = TypeVar("Line", Estimate, Comparison, CurvePoint)
Parser: TypeAlias = Callable[[str], Any]

_MOST = 2**63  # what a column of counts holds is less


class Rows:
    """A file to which a CSV writer writes: rows end with a line feed, and a cell with any other line break is quoted.

    A writer quotes what its own `lineterminator` holds, so that is both, and the file gets one.
    """

    END = "\r\n"

    def __init__(self, file: TextIO) -> None:
        """Rows go to this file."""
        self._file = file

    def write(self, row: str) -> int:
        """Write a row, which a writer gives whole."""
        return self._file.write(row.removesuffix(self.END) + "\n")


def write_lines(path: Path, kind: type[Line], lines: Sequence[Line]) -> None:
    """Write a header and the lines; shortest digits that give the same double again."""
    names, types = [field.name for field in fields(kind)], get_type_hints(kind)
    texts = [place for place, name in enumerate(names) if _is_text(types[name])]
    known = {text for place in texts for text in set(map(attrgetter(names[place]), lines))}
    rows = map(attrgetter(*names), lines)  # None is an empty cell
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(Rows(file), lineterminator=Rows.END)
        writer.writerow(names)
        plain = all(text == to_cell(text) for text in known)
        writer.writerows(rows if plain else (_cells(row, texts) for row in rows))


def lines_in(data: bytes, kind: type[Line], path: Path) -> tuple[Line, ...]:
    """The lines as they were written.

    Args:
        data: what the file holds.
        kind: what its lines are.
        path: the file, for messages.

    Raises:
        InputError: it is no such table: the row, and what is wrong with it.
    """
    return _parsed(StringIO(text_of(data, path), newline=""), kind, path)


def lines_of(data: bytes, measure: str, path: Path) -> tuple[Estimate, ...]:
    """The lines of one measure of what `summary.csv` holds; the others are passed over and not parsed.

    Args:
        data: what the file holds.
        measure: as it is written there.
        path: the file, for messages.

    Raises:
        InputError: it is no such table.
    """
    text = text_of(data, path)
    header, *rows = text.split("\n")
    if '"' not in text:  # else a row may run over several lines
        rows = [row for row in rows if f",{to_cell(measure)}," in row]
    found = _parsed((f"{row}\n" for row in [header, *rows]), Estimate, path)
    return tuple(line for line in found if line.measure == measure)


def parsed_rows(
    lines: Iterable[str], columns: Sequence[tuple[str, Parser]], path: Path
) -> Iterator[tuple[int, list[Any]]]:
    """The number of each row and what its cells hold; empty rows are passed over.

    Args:
        lines: the file's.
        columns: the name of each column, and what reads a cell of it or raises a ValueError.
        path: the file, for messages.

    Raises:
        InputError: the columns are others, or a cell is not what it should be.
    """
    rows = csv.reader(lines)
    names, parsers = [name for name, _ in columns], [parse for _, parse in columns]
    row_number = 1
    try:
        if (header := next(rows, [])) != names:
            raise ValueError(f"the columns are {', '.join(header)[:200] or 'missing'}, not {', '.join(names)}")
        for row_number, row in enumerate(rows, start=2):
            if not row:
                continue
            if len(row) != len(names):
                raise ValueError(f"found {len(row)} cells, not {len(names)}")
            yield row_number, [parse(text) for parse, text in zip(parsers, row, strict=True)]
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path}: row {row_number}: {str(error)[:300]}; restore the record") from None


def text_of(data: bytes, path: Path) -> str:
    """What a file of text holds.

    Raises:
        InputError: it is no UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start:,}); restore the record") from None


def _parsed(lines: Iterable[str], kind: type[Line], path: Path) -> tuple[Line, ...]:
    """The lines after the header; what is made for every cell of a record takes seconds, so little is made here."""
    types = get_type_hints(kind)
    columns = [(field.name, _parser(types[field.name])) for field in fields(kind)]
    return tuple(kind(*cells) for _, cells in parsed_rows(lines, columns, path))


def _cells(row: Sequence[Any], texts: Sequence[int]) -> list[Any]:
    """The row, with its texts as cells."""
    cells = list(row)
    for place in texts:
        cells[place] = to_cell(cells[place])
    return cells


def _is_text(type_: Any) -> bool:
    return type_ is str or get_origin(type_) is Literal


class _Texts(dict[str, str]):
    """The texts of cells: the same few names stand in every line."""

    def __missing__(self, cell: str) -> str:
        text = self[cell] = intern(from_cell(cell))
        return text


def _parser(type_: Any) -> Parser:
    if get_origin(type_) is Literal:
        return partial(_word, get_args(type_))
    if type_ is str:
        return _Texts().__getitem__
    if type_ is int:
        return _count
    return number if type_ is float else figure


def _word(words: Collection[str], text: str) -> str:
    if text not in words:
        raise ValueError(f"found {text!r}, not one of {', '.join(words)}")
    return text


def figure(text: str) -> float | None:
    """A number; None for an empty cell."""
    return number(text) if text else None


def number(text: str) -> float:
    """A number; a ValueError if it is none, or not finite."""
    found = float(text)
    if not isfinite(found):
        raise ValueError(f"found {text!r}, not a finite number")
    return found


def rank(text: str) -> int | None:
    """A rank; None for an empty cell."""
    return _count(text) if text else None


def _count(text: str) -> int:
    found = int(text)
    if not 0 <= found < _MOST:
        raise ValueError(f"found {text!r}, not a count")
    return found
