"""Tables, lines and numbers as text within a width or a number of bytes.

Only functions that draw on a terminal import rich.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.cells import cell_len

from rankledger.pipeline.support.errors import shorten
from rankledger.pipeline.support.text import one_line, visible, write_decimals

if TYPE_CHECKING:
    import rich.table


_NARROWEST = 12  # columns left for text on a narrow terminal
_PADDING = 2  # blanks around a cell
_CELL = 2_000  # characters of a cell that a terminal shows
_UNWRITABLE = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML's characters, without line ends
# What GitHub and GitLab link in a comment. The cutoff of `ndcg@10` is no mention, but that of `rr(rel=2)@10` is one.
_LINKED = re.compile(r"(?<!\w)@(?=\w)|@(?=[\w-]+\.\w)|(?:https?|ftp):(?=//)|www(?=\.)|#(?=\d)|GH-(?=\d)", re.IGNORECASE)


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


def without_links(text: str) -> str:
    """Break mentions, references and links by a character without width. Escapes do not: they are found in the page."""
    return _LINKED.sub("\\g<0>\u200b", printable(text))


def plain(text: str) -> str:
    """Escape text for Markdown."""
    text = without_links(text)
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


Kind: TypeAlias = Literal["name", "reason", "text", "number", "mark", "bar", "difference"]
Tone: TypeAlias = Literal["", "good", "bad", "warn", "quiet"]

TONE_STYLES: dict[Tone, str] = {"": "", "good": "green", "bad": "red", "warn": "yellow", "quiet": ""}  # on a terminal
_FOLDED = ("name", "reason")  # kinds of columns that a narrow terminal folds
_TEXTS = (*_FOLDED, "text")  # and that are not of numbers


@dataclass(frozen=True)
class Cell:
    """Cell with more than text."""

    text: str
    tone: Tone = ""
    bar: str = ""  # custom properties that place an interval, `--l:.25;--w:.5;--m:.5`
    strong: bool = False
    link: str = ""  # address of the text
    drawing: str = ""  # element of SVG behind the text
    small: str = ""  # shown below a figure if it is asked for, and always below a name
    tint: int = 0  # closeness to the best, from 0 (no tint) to 5
    more: str = ""  # what a click on the text opens

    @property
    def style(self) -> str:
        return "bold" if self.strong else TONE_STYLES[self.tone]

    def __str__(self) -> str:
        return self.text


Row: TypeAlias = tuple[str | Cell, ...]


@dataclass(frozen=True)
class Column:
    """Column of a table."""

    title: str
    kind: Kind = "number"
    lower: bool = False  # True if lower figures are better, and so sort first
    by: str = ""  # measure of ranks or differences, which shows the column if it is chosen
    hidden: bool = False  # True shows the column only then


@dataclass(frozen=True)
class Group:
    """Rows of a table that are shown together."""

    rows: tuple[Row, ...]
    title: str = ""  # empty if the table has one group
    measure: str = ""  # to choose the rows by
    slice: str = ""  # to choose the rows by
    note: str = ""  # shown behind the title
    ground: str = ""  # custom properties of the line at zero and the band behind the bars
    open: bool = True  # True shows the rows until another measure or slice is chosen


@dataclass(frozen=True)
class Table:
    """Table for every surface. On a page its rows can be sorted and filtered by measure, slice and text."""

    name: str  # of the file that a page saves it to
    caption: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    chosen: bool = False  # True if its groups are chosen by measure and slice
    measures: tuple[str, ...] = ()  # columns that can order the rows
    searched: str = ""  # word of the page's filter for a row; empty without a filter
    most: int = 0  # rows of a group that are shown at first; 0 shows all
    optional: tuple[str, ...] = ()  # columns that a narrow terminal leaves out, the empty ones first

    @classmethod
    def of_texts(
        cls,
        caption: str,
        headers: Iterable[str],
        rows: Iterable[Row],
        *,
        words: Collection[str] = (),
        unbroken: Collection[str] = (),
        optional: tuple[str, ...] = (),
    ) -> Table:
        """Return a table of one group. All columns but `words` and `unbroken` texts are of numbers."""
        kinds: dict[str, Kind] = {**dict.fromkeys(words, "name"), **dict.fromkeys(unbroken, "text")}
        columns = tuple(Column(header, kinds.get(header, "number")) for header in headers)
        texts = tuple(tuple(short_text(cell, _CELL) if isinstance(cell, str) else cell for cell in row) for row in rows)
        return cls("", short_text(caption, _CELL), columns, (Group(texts),), optional=optional)

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows]

    @property
    def headers(self) -> list[str]:
        return [column.title for column in self.columns]

    def without(self, *headers: str) -> Table:
        return self.only([header for header in self.headers if header not in headers])

    def only(self, headers: Collection[str]) -> Table:
        places = [place for place, header in enumerate(self.headers) if header in headers]
        groups = tuple(
            replace(group, rows=tuple(tuple(row[place] for place in places) for row in group.rows))
            for group in self.groups
        )
        return replace(self, columns=tuple(self.columns[place] for place in places), groups=groups)

    def for_terminal(self, width: int, names: int = _NARROWEST) -> rich.table.Table:
        """Lay the table out, wider than `width` if numbers would break. Names keep `names` columns."""
        from rich.table import Table
        from rich.text import Text

        filled = {header for place, header in enumerate(self.headers) if any(str(row[place]) for row in self.rows)}
        shown, omitted = self, []
        for header in sorted(self.optional, key=lambda header: header in filled):
            if header in self.headers and shown.least_width(names) > width:
                shown = shown.without(header)
                omitted += [header] if header in filled else []
        least = shown._least_widths(_NARROWEST)
        needed = _padded_width(least)
        table = Table(
            box=None,
            title=Text(printable(self.caption), "bold"),
            title_justify="left",
            caption=f" without {', '.join(omitted)} (COLUMNS={self.least_width(names)} shows all)" if omitted else None,
            caption_justify="left",
            width=needed if needed > width else None,
        )
        for column, min_width in zip(shown.columns, least, strict=True):
            table.add_column(
                Text(visible(column.title)),
                justify="left" if column.kind in _TEXTS else "right",
                no_wrap=column.kind not in _FOLDED,
                overflow="fold",
                min_width=min_width,
            )
        for row in shown.rows:
            table.add_row(*(Text(str(cell), cell.style if isinstance(cell, Cell) else "") for cell in row))
        return table

    def least_width(self, names: int = _NARROWEST) -> int:
        """Return the columns of the terminal that the table takes if names have at least so many."""
        return _padded_width(self._least_widths(names))

    def _least_widths(self, names: int) -> list[int]:
        cells = zip(self.headers, *([str(cell) for cell in row] for row in self.rows), strict=True)
        widest = [max(map(cell_len, texts)) for texts in cells]
        return [
            min(width, names) if column.kind in _FOLDED else width
            for width, column in zip(widest, self.columns, strict=True)
        ]

    def draw_long(self, width: int) -> list[str]:
        """Return the lines of rich for a long table without styles. Empty if it is short or has cells to fold."""
        widths = self._least_widths(width)
        if len(self.rows) < _LONG or _padded_width(widths) > width:
            return []

        def draw(cells: Iterable[object]) -> str:
            texts = (
                f"{text}{padding}" if column.kind in _TEXTS else f"{padding}{text}"
                for text, size, column in zip(map(str, cells), widths, self.columns, strict=True)
                for padding in [" " * (size - cell_len(text))]
            )
            return f" {'  '.join(texts)}"

        return [draw(map(visible, self.headers)), *map(draw, self.rows)]

    def in_markdown(self) -> Iterator[str]:
        yield f"| {' | '.join(map(plain, self.headers))} |"
        yield "|" + "|".join("---" if column.kind in _TEXTS else "---:" for column in self.columns) + "|"
        for row in self.rows:
            yield f"| {' | '.join(plain(str(cell)) for cell in row)} |"


def _padded_width(widths: Sequence[int]) -> int:
    return sum(widths) + _PADDING * len(widths)


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

    def add_labeled(self, lines: Iterable[tuple[str, str]], styles: Mapping[str, str], *, folded: bool = True) -> None:
        """Add lines with a label each after an empty line. `folded` breaks long ones below their texts."""
        from rich.text import Text

        lines = list(lines)
        indent = max((len(label) for label, _ in lines), default=0) + _PADDING
        self.add_gap(bool(lines))
        for label, text in lines:
            whole = Text(one_line(text))
            first, *others = whole.wrap(self._console, max(self.width - indent, _NARROWEST)) if folded else [whole]
            self._console.print(Text.assemble((f"{label:{indent}}", styles.get(label, "")), first), soft_wrap=True)
            for line in others:
                self._console.print(Text(" " * indent + one_line(line.plain)), soft_wrap=True)

    def add_gap(self, is_needed: bool = True) -> None:
        """Add an empty line, unless the text is empty."""
        if is_needed and self._text.tell():
            self._console.print()

    def add_table(self, table: Table | rich.table.Table, *, names: int = _NARROWEST) -> None:
        """Add a table after an empty line. The table is never cut to the terminal's width."""
        from rich.text import Text

        self.add_gap()
        if not isinstance(table, Table):
            self._console.print(table, crop=False)
            return
        if table.caption:
            self._console.print(Text(printable(table.caption), style="bold"))
        if self._console.no_color and (lines := table.draw_long(self.width)):  # rich takes seconds
            self._text.write("\n".join([*lines, ""]))
            return
        laid_out = table.for_terminal(self.width, names)
        caption, laid_out.title, laid_out.caption = laid_out.caption, None, None  # they would wrap at the table's width
        self._console.print(laid_out, crop=False)
        self.add(*filter(None, [str(caption or "")]))

    def columns(self, table: rich.table.Table) -> int:
        return self._console.measure(table).maximum

    def __str__(self) -> str:
        return "".join(f"{line.rstrip()}\n" for line in self._text.getvalue().splitlines())


_LONG = 200  # rows

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

    def add_table(self, table: Table, *, file: str, most: int | None = None, reserve: int = 0) -> None:
        head, rule, *rows = table.in_markdown()
        self.add_rows((head, rule), rows, file=file, most=most, reserve=reserve)
