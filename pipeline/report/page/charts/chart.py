"""A chart, the words on it, and the data that it is drawn from."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from pipeline.escaping import to_cell, visible

__all__ = ["Cell", "Chart", "cut", "data", "known", "letters", "short"]

Cell = str | float | int | None

_LONGEST = 200  # letters of a text in the data
_LETTER = 6.8  # pixels of a letter of usual width


@dataclass(frozen=True)
class Chart:
    """A chart for a page.

    Attributes:
        title: what it shows, in plain text.
        svg: the drawing, an element that a page takes as it is: its colours are `currentColor` and the page's
            variables `--muted`, `--rule`, `--band` and `--c1` to `--c8`, of which the first two tell better from worse.
        text: what it says, with the main figures, for who does not see it; plain text.
        csv: what is drawn, every number in full.
    """

    title: str
    svg: str
    text: str
    csv: str


def data(headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table as CSV, which is what a spreadsheet opens at a click.

    Names are other people's, and a spreadsheet computes what begins like a formula: such a text gets an apostrophe, as
    in the files of the record.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows([_guarded(cell) for cell in row] for row in rows)
    return text.getvalue()


def known(values: Iterable[float | None]) -> list[float]:
    """The values that are there and finite."""
    return [value for value in values if value is not None and math.isfinite(value)]


def cut(n_shown: int, n_all: int, things: str) -> list[str]:
    """A sentence where not all are shown."""
    return [f"{n_shown:,} of {n_all:,} {things} are drawn."] if n_shown < n_all else []


def short(text: str, cells: int = 30) -> str:
    """Text on one line, cut to as many letters of usual width."""
    text = visible(text[: 2 * cells])
    if cell_len(text) <= cells and len(text) < 2 * cells:
        return text
    kept = text[: cells - 1]
    while cell_len(kept) > cells - 1:
        kept = kept[:-1]
    return f"{kept}…"


def letters(texts: Iterable[str]) -> float:
    """Pixels that the widest of some texts takes, or a little more."""
    return max((cell_len(text) for text in texts), default=0) * _LETTER


def _guarded(cell: Cell) -> Cell:
    """A cell that no spreadsheet computes; a float as the shortest text that reads back as it."""
    if isinstance(cell, str):
        text = short(cell, _LONGEST)
        return to_cell(text)
    return repr(float(cell)) if isinstance(cell, float) else cell
