"""Tables of text: the same one for a terminal and in Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

__all__ = ["Sheet", "counted", "number", "numbers", "plain", "size", "visible"]

_NARROWEST = 12  # what is left of a column of text on a narrow terminal
_FRAME = 3  # a line and a blank on either side
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Sheet:
    """A table as text: its title, and for each column the header, whether it holds numbers, and the cells.

    The columns of the headers that are `drawn` hold pictures of one width, which stand as they are.
    """

    title: str
    headers: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    drawn: Collection[str] = ()

    def only(self, headers: Collection[str]) -> Sheet:
        """The table of these columns alone."""
        kept = [column for column, header in enumerate(self.headers) if header in headers]
        return Sheet(
            title=self.title,
            headers=tuple(self.headers[column] for column in kept),
            numeric=tuple(self.numeric[column] for column in kept),
            rows=tuple(tuple(row[column] for column in kept) for row in self.rows),
            drawn=self.drawn,
        )

    def for_terminal(self, width: int) -> Table:
        """The table with its frame: as wide as `width` allows, and wider rather than with numbers broken."""
        rows = [[visible(cell) for cell in row] for row in self.rows]
        widest = [max(map(cell_len, column)) for column in zip(self.headers, *rows, strict=True)]
        whole = [numeric or header in self.drawn for header, numeric in zip(self.headers, self.numeric, strict=True)]
        least = [found if kept else min(found, _NARROWEST) for found, kept in zip(widest, whole, strict=True)]
        framed = sum(least) + _FRAME * len(least) + 1
        table = Table(title=Text(self.title), title_justify="left", width=framed if framed > width else None)
        for header, numeric, kept, found in zip(self.headers, self.numeric, whole, least, strict=True):
            justify: Literal["right", "left"] = "right" if numeric else "left"
            table.add_column(Text(header), justify=justify, no_wrap=kept, overflow="fold", min_width=found)
        for row in rows:
            table.add_row(*map(Text, row))
        return table

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
    if value.is_integer() if whole is None else whole:
        return f"{value:.0f}" if abs(value) < 1e15 else f"{value:g}"
    return f"{value:.{decimals}f}" if value == 0 or abs(value) >= 0.5 * 10**-decimals else f"{value:.1e}"


def visible(text: str) -> str:
    """Text on one line and in its own order: what would steer a terminal or turn the writing round is spelt out."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    text = visible(text)
    for sign in "\\`*_{}[]<>|#~&$":
        text = text.replace(sign, f"\\{sign}")
    return text


def counted(amount: int, thing: str) -> str:
    """How many there are of a thing."""
    return f"{amount:,} {thing}" if amount == 1 else f"{amount:,} {thing}s"


def size(n_bytes: int) -> str:
    """A number of bytes as people read it, in powers of 1,000."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if n_bytes >= 10**power:
            return f"{n_bytes / 10**power:.1f} {unit}"
    return f"{n_bytes} B"
