"""Drawings as SVG: panels with a scale each way, and lines, dots, marks, areas and text on them.

Colours are the page's variables, so that light, dark and print are up to the page. No element has an id, so that a page
can hold any number of drawings. Lengths are rounded to a tenth of a pixel, and what looks alike is one path: a page
with many drawings stays small. The browser sets the text; nothing here measures it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

__all__ = ["COLOURS", "WIDTH", "Drawing", "Limits", "Panel", "limits_around", "ticks"]
__all__ += ["BAND", "BETTER", "INK", "MUTED", "WORSE"]

WIDTH = 360

INK, MUTED, RULE, BAND = "currentColor", "var(--muted)", "var(--rule)", "var(--band)"
"""The colours of what stands out and what stands back, of hairlines, and of the differences that do not matter."""

COLOURS = tuple(f"var(--c{number})" for number in range(1, 9))
"""One per model."""

BETTER, WORSE = COLOURS[:2]

Limits: TypeAlias = tuple[float, float]
"""The values at the two ends of a scale: left and right, or bottom and top."""

_Pixels: TypeAlias = Iterable[tuple[float, float]]  # from the left and the top of a drawing
_Points: TypeAlias = Iterable[tuple[float | None, float | None]]  # across and up; None or NaN if there is no value
_Dashes: TypeAlias = tuple[float, ...]  # lengths of dashes and gaps in turn, in pixels; empty for a solid line
_Anchor: TypeAlias = Literal["start", "middle", "end"]  # the part of a text that is at its point

_FONT_SIZE = 11
_BASELINE = 4  # below the middle of the letters
_MARGIN = 0.04  # of a scale, at either end
_HALF = 3.0  # of the width of a mark
_SHAPES: tuple[tuple[Sequence[tuple[float, float]], ...], ...] = (
    ([(0, 0), (0, 0)],),  # a dot, by its round ends
    ([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)],),
    ([(-1.2, -1), (1.2, -1), (0, 1.2), (-1.2, -1)],),
    ([(-1.4, 0), (0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],),
    ([(-1.2, 1), (1.2, 1), (0, -1.2), (-1.2, 1)],),
    ([(-1.2, -1.2), (1.2, 1.2)], [(-1.2, 1.2), (1.2, -1.2)]),
    ([(-1.5, 0), (1.5, 0)], [(0, -1.5), (0, 1.5)]),
    ([(1, -1.2), (1, 1.2), (-1.2, 0), (1, -1.2)],),
)
_STEPS = (10, 5, 2.5, 2, 1, 0.5, 0.25, 0.2, 0.1)  # times a power of ten


class Drawing:
    """A drawing, `WIDTH` pixels wide, that panels draw on; text lies above all paths."""

    def __init__(self, height: float) -> None:
        """An empty one."""
        self._height = height
        self._paths: list[str] = []
        self._texts: list[str] = []

    def path(
        self,
        lines: Iterable[_Pixels],
        *,
        stroke: str = "",
        fill: str = "",
        width: float = 1,
        dashes: _Dashes = (),
        opacity: float = 1,
    ) -> None:
        """Add lines through pixels as one path; a line is broken where a point is missing.

        A point without a neighbour is not drawn: a dot is a line from a point to itself.
        """
        data = "".join(map(_path_data, lines))
        style = {
            "fill": fill,
            "stroke": stroke,
            "stroke-width": "" if width == 1 else f"{width:g}",
            "stroke-dasharray": ",".join(f"{length:g}" for length in dashes),
            "stroke-linecap": "butt" if dashes else "",
            "opacity": "" if opacity == 1 else f"{opacity:g}",
        }
        if data:
            self._paths.append(f'<path d="{data}" style="{_style(style)}"/>')

    def text(self, x: float, y: float, text: str, anchor: _Anchor, colour: str) -> None:
        """Add a text whose middle is `y` pixels below the top."""
        style = {"fill": colour, "text-anchor": "" if anchor == "start" else anchor}
        at = f'x="{_number(x)}" y="{_number(y + _BASELINE)}"'
        self._texts.append(f'<text {at} style="{_style(style)}">{html.escape(text)}</text>')

    def svg(self, title: str) -> str:
        """The drawing as an element of a page; `title` is its name for a reader who does not see it."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self._height:g}" width="100%" '
            f'font-size="{_FONT_SIZE}" fill="none" stroke-linecap="round" role="img" aria-label="{html.escape(title)}">'
            f"{''.join(self._paths)}{''.join(self._texts)}</svg>"
        )


def _style(properties: dict[str, str]) -> str:
    return ";".join(f"{name}:{value}" for name, value in properties.items() if value)


def _path_data(points: _Pixels) -> str:
    runs = groupby(points, lambda point: math.isfinite(sum(point)))
    lines = ([f"{_number(x)} {_number(y)}" for x, y in run] for known, run in runs if known)
    return "".join(f"M{'L'.join(line)}" for line in lines if len(line) > 1)


def _number(pixels: float) -> str:
    return f"{pixels:z.1f}".removesuffix(".0")  # z: never -0


@dataclass(frozen=True)
class Panel:
    """A rectangle of a drawing with a scale each way.

    Attributes:
        drawing: the drawing that it is part of.
        box: left, top, width and height, in pixels.
        across: the values at its left and its right.
        up: the values at its bottom and its top.
        logarithmic: whether equal steps across multiply, rather than add.
    """

    drawing: Drawing
    box: tuple[float, float, float, float]
    across: Limits
    up: Limits
    logarithmic: bool = False

    def pixels(self, points: _Points) -> list[tuple[float, float]]:
        """Points of the scales as pixels from the left and the top of the drawing; NaN if there is no value."""
        left, top, width, height = self.box
        return [
            (left + _share(x, self.across, self.logarithmic) * width, top + height - _share(y, self.up) * height)
            for x, y in points
        ]

    def lines(self, lines: Iterable[_Points], colour: str, *, width: float = 1, dashes: _Dashes = ()) -> None:
        """Draw lines, each broken where a point has no value."""
        self.drawing.path(map(self.pixels, lines), stroke=colour, width=width, dashes=dashes)

    def areas(self, outlines: Iterable[_Points], colour: str, *, opacity: float = 1) -> None:
        """Fill outlines."""
        self.drawing.path(map(self.pixels, outlines), fill=colour, opacity=opacity)

    def marks(self, points: _Points, colour: str, shape: int) -> None:
        """Draw a mark of one of eight shapes at each point; shape 0 is a dot."""
        outlines = _SHAPES[shape]
        around = (
            [(x + _HALF * right, y - _HALF * up) for right, up in outline]
            for x, y in self.pixels(points)
            for outline in outlines
        )
        fill = colour if len(outlines[0]) > 2 else ""
        self.drawing.path(around, stroke=colour, fill=fill, width=1.5 if shape else 2 * _HALF)

    def text(
        self,
        at: tuple[float, float],
        text: str,
        *,
        shift: tuple[float, float] = (0, 0),
        anchor: _Anchor = "start",
        colour: str = INK,
    ) -> None:
        """Write at a point of the scales, shifted by pixels to the right and up."""
        ((x, y),) = self.pixels([at])
        self.drawing.text(x + shift[0], y - shift[1], text, anchor, colour)

    def scale_across(self, values: Sequence[float], form: str = "g") -> None:
        """Draw a hairline from the bottom to the top at each value, and write the value below."""
        bottom, top = self.up
        self.lines([[(value, bottom), (value, top)] for value in values], RULE)
        for value in values:
            self.text((value, bottom), _figure(value, form), shift=(0, -10), anchor="middle", colour=MUTED)

    def scale_up(self, values: Sequence[float], form: str = "g") -> None:
        """Draw a hairline from the left to the right at each value, and write the value at its left."""
        left, right = self.across
        self.lines([[(left, value), (right, value)] for value in values], RULE)
        for value in values:
            self.text((left, value), _figure(value, form), shift=(-6, 0), anchor="end", colour=MUTED)


def _share(value: float | None, limits: Limits, logarithmic: bool = False) -> float:
    """How far along a scale a value is: 0 at its beginning, 1 at its end."""
    if value is None:
        return math.nan
    if logarithmic:
        return _share(math.log2(value), (math.log2(limits[0]), math.log2(limits[1])))
    return (value - limits[0]) / (limits[1] - limits[0])


def _figure(value: float, form: str) -> str:
    return f"{value:{form}}" if value else "0"  # without a sign


def limits_around(values: Iterable[float | None]) -> Limits:
    """The ends of a scale that holds all values but None, NaN and infinity, with a margin.

    Where all values are the same, it reaches 0.5 to either side.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(known), max(known)
    margin = (high - low) * _MARGIN or max(0.5, abs(low) * 1e-9)
    return low - margin, high + margin


def ticks(limits: Limits, at_most: int = 5) -> list[float]:
    """Round values on a scale: multiples of 1, 2, 2.5 or 5 times a power of ten.

    Args:
        limits: the ends of the scale.
        at_most: the most steps between the values; fewer are taken only as far as there are three values (of a scale
            that has room for fewer than three steps: two).

    Returns:
        In order; none where the ends are too close, or too far apart, for round values.
    """
    low, high = limits
    if not 1e-12 * max(abs(low), abs(high), 1e-280) < high - low < math.inf:
        return []
    power = 10.0 ** math.floor(math.log10((high - low) / at_most))
    smallest = min((step for step in _STEPS if step * power >= (high - low) / at_most), default=_STEPS[0])
    values: list[float] = []
    for step in (step * power for step in _STEPS if step <= smallest):
        multiples = range(math.floor(low / step), math.ceil(high / step) + 1)
        values = [value for n in multiples if low <= (value := float(f"{n * step:.12g}")) <= high]
        if len(values) >= min(max(at_most, 2), 3):
            break
    return values
