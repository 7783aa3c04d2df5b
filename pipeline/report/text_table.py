"""Tables and lines of text, for a terminal or Markdown, within a width or a number of bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankledger.pipeline.support.escaping import one_line, visible

__all__ = [
    "COMMENT",
    "ByteBudget",
    "TerminalText",
    "TextTable",
    "clipped",
    "counted",
    "n_bytes",
    "number",
    "numbers",
    "plain",
    "printable",
    "size",
]

_NARROWEST = 12  # what is left of a column of text on a narrow terminal
_FRAME = 3  # a line and a blank on either side
_CELL = 2_000  # letters of a cell that a terminal shows
_UNWRITABLE = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # of XML's characters, those of one line


@dataclass(frozen=True)
class TextTable:
    """A table as text: its title, and for each column the header, whether it holds numbers, and the cells.

    The columns of the headers that are `drawn` hold pictures of one width, which stand as they are. A narrow terminal
    does without those that are `spare`, the empty ones first and then in their order, and says so.
    """

    title: str
    headers: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    drawn: Collection[str] = ()
    spare: tuple[str, ...] = ()

    def only(self, headers: Collection[str]) -> TextTable:
        """The table of these columns alone."""
        kept = [column for column, header in enumerate(self.headers) if header in headers]
        return TextTable(
            title=self.title,
            headers=tuple(self.headers[column] for column in kept),
            numeric=tuple(self.numeric[column] for column in kept),
            rows=tuple(tuple(row[column] for column in kept) for row in self.rows),
            drawn=self.drawn,
            spare=self.spare,
        )

    def for_terminal(self, width: int) -> Table:
        """The table with its frame: as wide as `width` allows, and wider rather than with numbers broken."""
        sheet, left = self._within(width)
        return sheet._framed_for(width, f"a wider terminal shows {', '.join(left)} too" if left else None)

    def _within(self, width: int) -> tuple[TextTable, list[str]]:
        """The table without spare columns until it fits or none is left, and those of them that hold something."""
        filled = {h for column, h in enumerate(self.headers) if any(row[column] for row in self.rows)}
        sheet, left = self, []
        for header in sorted(self.spare, key=lambda header: header in filled):
            if header in self.headers and sheet._least_width > width:
                sheet = sheet.only([kept for kept in sheet.headers if kept != header])
                left += [header] if header in filled else []
        return sheet, left

    def _framed_for(self, width: int, caption: str | None) -> Table:
        rows = [[clipped(visible(cell), _CELL) for cell in row] for row in self.rows]
        framed = self._least_width if self._least_width > width else None
        table = Table(
            title=Text(clipped(visible(self.title), _CELL)),
            title_justify="left",
            caption=caption,
            caption_justify="left",
            width=framed,
        )
        for header, numeric, kept, least in zip(self.headers, self.numeric, self._whole, self._least(), strict=True):
            justify: Literal["right", "left"] = "right" if numeric else "left"
            table.add_column(Text(visible(header)), justify=justify, no_wrap=kept, overflow="fold", min_width=least)
        for row in rows:
            table.add_row(*map(Text, row))
        return table

    @property
    def _whole(self) -> list[bool]:
        """Whether each column's cells stand whole."""
        return [numeric or header in self.drawn for header, numeric in zip(self.headers, self.numeric, strict=True)]

    def _least(self) -> list[int]:
        """The columns of the terminal that each column needs."""
        rows = [[clipped(visible(cell), _CELL) for cell in row] for row in self.rows]
        widest = [max(map(cell_len, column)) for column in zip(self.headers, *rows, strict=True)]
        return [found if kept else min(found, _NARROWEST) for found, kept in zip(widest, self._whole, strict=True)]

    @property
    def _least_width(self) -> int:
        """The columns of the terminal that the table needs with its frame."""
        return sum(self._least()) + _FRAME * len(self.headers) + 1

    def in_markdown(self) -> Iterator[str]:
        """Its lines in GitHub's form, without the title."""
        yield f"| {' | '.join(map(plain, self.headers))} |"
        yield "|" + "|".join("---:" if numeric else "---" for numeric in self.numeric) + "|"
        for row in self.rows:
            yield f"| {' | '.join(map(plain, row))} |"


def numbers(values: Sequence[float | bool | None]) -> list[str]:
    """A column of numbers: whole ones where all are, else four decimals."""
    whole = all(value is None or float(value).is_integer() for value in values)
    return ["" if value is None else number(float(value), whole=whole) for value in values]


def number(value: float, *, whole: bool | None = None, decimals: int = 4) -> str:
    """A number as people read it.

    Args:
        value: the number.
        whole: whether to write it without decimals; where it has none unless given.
        decimals: how many to write otherwise; one too small for them has an exponent.
    """
    value += 0.0  # -0 has no sign to those who read it
    if value.is_integer() if whole is None else whole:
        return f"{value:.0f}" if abs(value) < 1e15 else f"{value:g}"
    return f"{value:.{decimals}f}" if value == 0 or abs(value) >= 0.5 * 10**-decimals else f"{value:.1e}"


def printable(text: str) -> str:
    """Text on one line that UTF-8 and XML can hold: what they cannot, such as half a surrogate pair, is spelt out."""
    return _UNWRITABLE.sub(lambda found: ascii(found[0])[1:-1], visible(text))


def clipped(text: str, letters: int = 80) -> str:
    """Text cut to so many letters, the last of which then is an ellipsis."""
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    text = visible(text)
    for sign in "\\`*_{}[]<>|#~&$":
        text = text.replace(sign, f"\\{sign}")
    return text


def counted(amount: int, thing: str, things: str = "") -> str:
    """How many there are of a thing; several are called `things`, or else by the thing's name and an s."""
    return f"{amount:,} {thing}" if amount == 1 else f"{amount:,} {things or f'{thing}s'}"


def size(n_bytes: int) -> str:
    """A number of bytes as people read it, in powers of 1,000."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if n_bytes >= 10**power:
            return f"{n_bytes / 10**power:.1f} {unit}"
    return f"{n_bytes} B"


class TerminalText:
    """What is shown, from top to bottom; `str` gives it.

    Attributes:
        width: columns of the terminal.
    """

    def __init__(self, *, width: int, colour: bool = False) -> None:
        """Begin with nothing.

        Args:
            width: columns of the terminal.
            colour: whether to write the terminal's colours.
        """
        self.width = width
        self._text = io.StringIO()
        self._console = Console(
            file=self._text, width=width, force_terminal=colour, no_color=not colour, highlight=False
        )

    def say(self, *lines: str, style: str = "") -> None:
        """Show lines, which the terminal itself may wrap; what would steer it is spelt out."""
        for line in lines:
            self._console.print(Text(one_line(line), style=style), soft_wrap=True)

    def draw(self, table: Table) -> None:
        """Show a table: wider than the terminal rather than cut."""
        self._console.print(table, crop=False)

    def columns(self, table: Table) -> int:
        """How wide a table would like to be."""
        return self._console.measure(table).maximum

    def __str__(self) -> str:
        """The lines, without the spaces that titles are padded with."""
        return "".join(f"{line.rstrip()}\n" for line in self._text.getvalue().splitlines())


COMMENT = 60_000
"""Bytes of a text for a pull request: GitHub cuts a comment at 65,536 letters."""

_SPARE = 200  # bytes that are kept for what is said of rows that were cut, and for the end of what is folded away


class ByteBudget:
    """Lines, as many as there is room for.

    Attributes:
        lines: those that were put in, without their ends.
        left: bytes that there is still room for.
    """

    def __init__(self, most: int) -> None:
        """Room for so many bytes."""
        self.lines: list[str] = []
        self.left = most

    def put(self, *lines: str, spare: int = _SPARE) -> bool:
        """Whether the lines fit: they are put in all together, or none of them.

        Args:
            lines: without their ends.
            spare: bytes that must be left behind them.
        """
        fits = n_bytes(lines) + spare <= self.left
        if fits:
            self.lines += lines
            self.left -= n_bytes(lines)
        return fits

    def put_rows(
        self, head: Sequence[str], rows: Iterable[str], *, where: str, most: int | None = None, spare: int = 0
    ) -> None:
        """Put a table in, as many of its rows as fit, and say how many more there are.

        Args:
            head: the lines above the rows.
            rows: a line each.
            where: the file that has the others.
            most: rows to show, if they fit; all unless given.
            spare: bytes that must be left behind the table.
        """
        waiting = list(rows)
        n_shown = 0
        if self.put(*head):
            while n_shown < len(waiting[:most]) and self.put(waiting[n_shown], spare=_SPARE + spare):
                n_shown += 1
        self.put("", spare=0)
        if n_shown < len(waiting):
            self.put(f"{len(waiting) - n_shown:,} more in {where}.", "", spare=_SPARE // 2)


def n_bytes(lines: Iterable[str]) -> int:
    """The bytes of lines with their ends."""
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)
