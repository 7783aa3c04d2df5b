"""Intervals as bars in the cells of a table: where they begin and how wide they are, as shares of a cell's picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.report.differences import figure, signed
from pipeline.report.page.blocks import Cell, Tone
from pipeline.tables import Estimate
from pipeline.verdicts import Comparison, Verdict

__all__ = ["Scale", "difference_scale", "estimate_scale"]

_LEAST = 1e-9  # of a scale's length


@dataclass(frozen=True)
class Scale:
    """The values at the left and the right end of the picture; `written` says what they are."""

    low: float
    high: float
    written: str

    def cell(self, low: float | None, middle: float | None, high: float | None, text: str, tone: Tone = "") -> Cell:
        """A cell with an interval, and what is in its middle; without its ends the text alone."""
        if low is None or high is None or middle is None:
            return Cell(text, tone)
        left, right = self._place(low), self._place(high)
        return Cell(text, tone, f"--l:{_share(left)};--w:{_share(right - left)};--m:{_share(self._place(middle))}")

    def ground(self, margin: float) -> str:
        """What lies behind differences: the line of zero, and as far as `margin` on both sides what does not matter."""
        left, right = self._place(-margin), self._place(margin)
        return f"--z:{_share(self._place(0))};--a:{_share(left)};--b:{_share(right - left)}"

    def _place(self, value: float) -> float:
        return min(1.0, max(0.0, (value - self.low) / max(self.high - self.low, _LEAST)))


def estimate_scale(lines: Iterable[Estimate]) -> Scale:
    """From the least to the greatest end of intervals and a twentieth more, but not below 0 where none is."""
    ends = [end for line in lines for end in (line.ci_low, line.estimate, line.ci_high) if end is not None]
    low, high = _padded(ends)
    low = max(low, 0.0) if min(ends, default=0.0) >= 0 else low
    return Scale(low, high, f"{figure(low)} to {figure(high)}")


def difference_scale(lines: Iterable[Comparison | Verdict], margin: float) -> Scale:
    """The same of differences; 0 and what does not matter are on it."""
    ends = [
        end
        for line in lines
        for end in (line.ci_low, line.difference if isinstance(line, Comparison) else line.estimate, line.ci_high)
        if end is not None
    ]
    low, high = _padded([*ends, -margin, 0.0, margin])
    return Scale(low, high, f"{signed(low)} to {signed(high)}")


def _padded(ends: list[float]) -> tuple[float, float]:
    """With a twentieth more at either end; a half where all are the same, which is in the middle then."""
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    margin = (high - low) / 20 or 0.5
    return low - margin, high + margin


def _share(value: float) -> str:
    """A share of the picture, to a thousandth of it."""
    return f"{value:.3f}".rstrip("0").rstrip(".").removeprefix("0") or "0"
