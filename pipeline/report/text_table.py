"""Tables, lines and numbers as text within a width or a number of bytes.

Only functions that draw on a terminal import rich.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len

from rankledger.pipeline.support.errors import shorten
from rankledger.pipeline.support.text import one_line, visible, write_decimals

if TYPE_CHECKING:
    from rich.table import Table


_NARROWEST = 12  # columns left for text on a narrow terminal
_FRAME = 3  # a line, and a blank on either side
_CELL = 2_000  # characters of a cell that a terminal shows
_UNWRITABLE = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML's characters, without line ends


def printable(text: str) -> str:
    """Write text on one line that UTF-8 and XML can hold."""
    return _UNWRITABLE.sub(lambda match: ascii(match[0])[1:-1], visible(text))


def short_text(text: object, most: int = 80) -> str:
    """Cut printable text to `most` characters."""
    return printable(shorten(str(text), most))


def short_sentence(text: str, most: int) -> str:
    """Cut a printable sentence after a word."""
    short = short_text(text, most)
    end = short.rfind(" ", most // 2) if len(text) > most else -1
    return short if end < 0 else f"{short[:end].rstrip(' ,;:(')}…"


def plain(text: str) -> str:
    """Escape text for Markdown."""
    text = printable(text)
    for sign in "\\`*_{}[]<>|#~&$":
        text = text.replace(sign, f"\\{sign}")
    return text


def number(value: float, *, whole: bool | None = None, decimals: int = 4) -> str:
    """Write a number. `whole` omits decimals, and None omits them of whole numbers."""
    if value.is_integer() if whole is None else whole:
        return f"{value + 0.0:.0f}" if abs(value) < 1e15 else f"{value:g}"
    return write_decimals(value, decimals)


def numbers(values: Sequence[float | bool | None]) -> list[str]:
    """Write a column of numbers: without decimals if all are whole, else with four."""
    whole = all(value is None or float(value).is_integer() for value in values)
    return ["" if value is None else number(float(value), whole=whole) for value in values]


def byte_size(amount: int) -> str:
    """Write a number of bytes in powers of 1,000."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if amount >= 10**power:
            return f"{amount / 10**power:.1f} {unit}"
    return f"{amount} B"


def n_bytes(lines: Iterable[str]) -> int:
    """Count the bytes of lines with their ends."""
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


def frame_width(cells: Iterable[str]) -> int:
    """Return the columns of the terminal that a framed table with these cells takes."""
    return max(map(cell_len, cells)) + _FRAME


@dataclass(frozen=True)
class TextTable:
    """Table of text for every surface."""

    title: str
    headers: tuple[str, ...]
    numeric: tuple[bool, ...]  # by column
    rows: tuple[tuple[str, ...], ...]
    fixed: Collection[str] = ()  # headers of columns that are never folded, such as drawings
    bold: frozenset[tuple[int, int]] = frozenset()  # cells by row and column
    optional: tuple[str, ...] = ()  # headers that a narrow terminal leaves out, the empty columns first

    @classmethod
    def of(cls, title: str, columns: Mapping[str, Sequence[str]], *, words: Collection[str]) -> TextTable:
        """Return the table of these columns by header. All but those of `words` are of numbers."""
        numeric = tuple(header not in words for header in columns)
        return cls(title, tuple(columns), numeric, tuple(zip(*columns.values(), strict=True)))

    def without(self, *headers: str) -> TextTable:
        return self.only([header for header in self.headers if header not in headers])

    def only(self, headers: Collection[str]) -> TextTable:
        columns = [column for column, header in enumerate(self.headers) if header in headers]
        return replace(
            self,
            headers=tuple(self.headers[column] for column in columns),
            numeric=tuple(self.numeric[column] for column in columns),
            rows=tuple(tuple(row[column] for column in columns) for row in self.rows),
            bold=frozenset((row, columns.index(column)) for row, column in self.bold if column in columns),
        )

    def for_terminal(self, width: int) -> Table:
        """Frame the table, wider than `width` if numbers would break."""
        filled = {header for column, header in enumerate(self.headers) if any(row[column] for row in self.rows)}
        table, omitted = self, []
        for header in sorted(self.optional, key=lambda header: header in filled):
            if header in self.headers and table._least_width > width:
                table = table.without(header)
                omitted += [header] if header in filled else []
        return table._framed(
            width, f"left out: {', '.join(omitted)}; COLUMNS={self._least_width} shows all" if omitted else None
        )

    def _framed(self, width: int, caption: str | None) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=Text(short_text(self.title, _CELL)),
            title_justify="left",
            caption=caption,
            caption_justify="left",
            width=self._least_width if self._least_width > width else None,
        )
        for header, numeric, least in zip(self.headers, self.numeric, self._least_widths(), strict=True):
            justify: Literal["right", "left"] = "right" if numeric else "left"
            unbroken = numeric or header in self.fixed
            table.add_column(Text(visible(header)), justify=justify, no_wrap=unbroken, overflow="fold", min_width=least)
        for place, row in enumerate(self._terminal_rows()):
            styles = ("bold" if (place, column) in self.bold else "" for column in range(len(row)))
            table.add_row(*map(Text, row, styles))
        return table

    def _terminal_rows(self) -> list[list[str]]:
        return [[short_text(cell, _CELL) for cell in row] for row in self.rows]

    def _least_widths(self) -> list[int]:
        widest = [max(map(cell_len, cells)) for cells in zip(self.headers, *self._terminal_rows(), strict=True)]
        return [
            width if numeric or header in self.fixed else min(width, _NARROWEST)
            for width, header, numeric in zip(widest, self.headers, self.numeric, strict=True)
        ]

    @property
    def _least_width(self) -> int:
        return sum(self._least_widths()) + _FRAME * len(self.headers) + 1

    def in_markdown(self) -> Iterator[str]:
        yield f"| {' | '.join(map(plain, self.headers))} |"
        yield "|" + "|".join("---:" if numeric else "---" for numeric in self.numeric) + "|"
        for row in self.rows:
            yield f"| {' | '.join(map(plain, row))} |"


class TerminalText:
    """Text for a terminal, from top to bottom. `str` returns it."""

    def __init__(self, *, width: int, colour: bool = False) -> None:
        from rich.console import Console

        self.width = width
        self._text = io.StringIO()
        self._console = Console(
            file=self._text, width=width, force_terminal=colour, no_color=not colour, highlight=False
        )

    def add(self, *lines: str, style: str = "") -> None:
        """Add lines, which the terminal may wrap. Control characters are spelled out."""
        from rich.text import Text

        for line in lines:
            self._console.print(Text(one_line(line), style=style), soft_wrap=True)

    def add_table(self, table: Table | TextTable) -> None:
        """Add a table, which is never cut to the terminal's width."""
        self._console.print(table.for_terminal(self.width) if isinstance(table, TextTable) else table, crop=False)

    def columns(self, table: Table) -> int:
        return self._console.measure(table).maximum

    def __str__(self) -> str:
        return "".join(f"{line.rstrip()}\n" for line in self._text.getvalue().splitlines())


COMMENT = 60_000
"""Bytes of a text for a pull request: GitHub cuts a comment at 65,536 characters."""

_RESERVE = 200  # bytes left for the line that counts the rows left out, and for the end of folded text


class ByteBudget:
    """Lines within a number of bytes."""

    def __init__(self, most: int) -> None:
        self.lines: list[str] = []
        self.left = most

    def add(self, *lines: str, reserve: int = _RESERVE) -> bool:
        """Add all lines if `reserve` bytes remain, or none. Return whether they fit."""
        size = n_bytes(lines)
        fits = size + reserve <= self.left
        if fits:
            self.lines += lines
            self.left -= size
        return fits

    def add_rows(
        self, head: Sequence[str], rows: Iterable[str], *, file: str, most: int | None = None, reserve: int = 0
    ) -> None:
        """Add a head, as many rows as fit, and a line that counts the others in `file`."""
        rows = list(rows)
        n_shown = 0
        if self.add(*head):
            while n_shown < len(rows[:most]) and self.add(rows[n_shown], reserve=_RESERVE + reserve):
                n_shown += 1
        self.add("", reserve=0)
        if n_shown < len(rows):
            self.add(f"{len(rows) - n_shown:,} more in {file}.", "", reserve=_RESERVE // 2)

    def add_table(self, table: TextTable, *, file: str, most: int | None = None, reserve: int = 0) -> None:
        head, rule, *rows = table.in_markdown()
        self.add_rows((head, rule), rows, file=file, most=most, reserve=reserve)
