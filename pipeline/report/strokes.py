"""Intervals drawn in a line of text, all of a table on one scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pipeline.report.differences import figure

__all__ = ["FEWEST_CELLS", "MOST_CELLS", "Interval", "Scale", "scale_of"]

FEWEST_CELLS = 13
"""Cells of a drawing in which two figures can stand at its ends."""

MOST_CELLS = 24
"""Cells beyond which a drawing tells no more."""


class Interval(Protocol):
    """A figure with its interval; None where there is none."""

    @property
    def estimate(self) -> float | None:
        """The figure."""

    @property
    def ci_low(self) -> float | None:
        """Lower end."""

    @property
    def ci_high(self) -> float | None:
        """Upper end."""


@dataclass(frozen=True)
class Scale:
    """From where to where intervals are drawn.

    Attributes:
        low: what the first cell stands for.
        high: the last.
        n_cells: how many there are.
    """

    low: float
    high: float
    n_cells: int

    @property
    def header(self) -> str:
        """Both ends as a column's header; wider than the cells where the figures are."""
        low, high = figure(self.low), figure(self.high)
        return f"{low} {high:>{max(self.n_cells - 1 - len(low), 0)}}"

    def draw(self, line: Interval) -> str:
        """The interval and the figure, such as `  ├──●───┤ `."""
        cells = [" "] * self.n_cells
        if line.ci_low is not None and line.ci_high is not None:
            left, right = self.place(line.ci_low), self.place(line.ci_high)
            cells[left : right + 1] = ["─"] * (right + 1 - left)
            cells[left], cells[right] = "├", "┤"
        if line.estimate is not None:
            cells[self.place(line.estimate)] = "●"
        return "".join(cells)

    def place(self, value: float) -> int:
        """The cell of a value, from 0 on."""
        last = self.n_cells - 1
        return round((value - self.low) / (self.high - self.low) * last) if self.high > self.low else self.n_cells // 2


def scale_of(lines: Iterable[Interval], n_cells: int) -> Scale:
    """The scale on which all of them have room: from 0 to 0 where none has a figure."""
    ends = [end for line in lines for end in (line.ci_low, line.estimate, line.ci_high) if end is not None]
    return Scale(min(ends, default=0.0), max(ends, default=0.0), n_cells)
