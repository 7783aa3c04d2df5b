"""Tables of text, `summary.csv`, `comparisons.csv` and `curves.csv`: a line per row, a column per field.

A text that a spreadsheet would compute stands after an apostrophe, which is taken away when it is read.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from sys import intern
from typing import Any, Literal, TextIO, TypeAlias, TypeVar, get_origin, get_type_hints

from pipeline.escaping import from_cell, to_cell
from pipeline.pages import CurvePoint
from pipeline.tables import Estimate
from pipeline.verdicts import Comparison

__all__ = ["Line", "Rows", "lines_of", "read_lines", "write_lines"]

Line = TypeVar("Line", Estimate, Comparison, CurvePoint)
Parser: TypeAlias = Callable[[str], Any]


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


def read_lines(path: Path, kind: type[Line]) -> tuple[Line, ...]:
    """The lines as they were written; a column that an older record lacks holds the field's default."""
    with path.open(encoding="utf-8", newline="") as file:
        return _parsed(file, kind)


def lines_of(text: str, measure: str) -> tuple[Estimate, ...]:
    """The lines of one measure of what `summary.csv` holds; the others are passed over and not parsed.

    Args:
        text: the file's.
        measure: as it is written there.
    """
    header, *rows = text.split("\n")
    if '"' not in text:  # else a row may run over several lines
        rows = [row for row in rows if f",{to_cell(measure)}," in row]
    found = _parsed((f"{row}\n" for row in [header, *rows]), Estimate)
    return tuple(line for line in found if line.measure == measure)


def _parsed(lines: Iterable[str], kind: type[Line]) -> tuple[Line, ...]:
    """The lines after the header; what is made for every cell of a record takes seconds, so little is made here."""
    types, rows = get_type_hints(kind), csv.reader(lines)
    columns = [(name, _parser(types[name]) if name in types else None) for name in next(rows, [])]
    return tuple(
        kind(**{name: parse(text) for (name, parse), text in zip(columns, row, strict=True) if parse})
        for row in rows
        if row
    )


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
    if _is_text(type_):
        return _Texts().__getitem__
    return int if type_ is int else _figure


def _figure(text: str) -> float | None:
    return float(text) if text else None
