"""Drawings as SVG: panels with scales, and lines, dots, marks, areas and text on them.

Colors are the page's variables. No element has an id, because a page has several drawings. Shapes of one look are one
path, so that a page with many drawings is small.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, TypeAlias

WIDTH = 360

INK, MUTED, RULE, BAND = "currentColor", "var(--muted)", "var(--rule)", "var(--band)"
"""The colours of what stands out and what stands back, of hairlines, and of the differences that do not matter."""

COLOURS = tuple(f"var(--c{number})" for number in range(1, 9))
"""One color per model."""

BETTER, WORSE = COLOURS[2], COLOURS[1]

_Limits: TypeAlias = tuple[float, float]  # the values at the two ends of a scale: left and right, or bottom and top
_Pixels: TypeAlias = Iterable[tuple[float, float]]  # from the left and the top of a drawing
_Points: TypeAlias = Iterable[tuple[float | None, float | None]]  # across and up; None or NaN if there is no value

_FONT_SIZE = 11
_BASELINE = 4  # below the middle of the letters
_MARGIN = 0.04  # of a scale, at either end
_HALF = 3  # of the width of a mark
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


@dataclass(frozen=True)
class Drawing:
    """Drawing in pixels. Text is above all paths."""

    height: float
    paths: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    width: int = WIDTH

    def svg(self, title: str) -> str:
        """Return the element. `title` is its name for screen readers."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height:g}" width="100%" '
            f'font-size="{_FONT_SIZE}" fill="none" stroke-linecap="round" role="img" aria-label="{html.escape(title)}">'
            f"{''.join(self.paths)}{''.join(self.texts)}</svg>"
        )


def _path_data(points: _Pixels) -> str:
    runs = groupby(points, lambda point: math.isfinite(sum(point)))
    lines = ([f"{_number(x)} {_number(y)}" for x, y in run] for is_defined, run in runs if is_defined)
    return "".join(f"M{'L'.join(line)}" for line in lines if len(line) > 1)


def _style(properties: Mapping[str, str | float]) -> str:
    return ";".join(f"{name.replace('_', '-')}:{value}" for name, value in properties.items() if value not in ("", 1))


def _number(pixels: float) -> str:
    return f"{pixels:z.1f}".removesuffix(".0")  # z: never -0


@dataclass(frozen=True)
class Panel:
    """Rectangle of a drawing with a scale each way."""

    drawing: Drawing
    box: tuple[float, float, float, float]  # left, top, width and height, in pixels
    across: _Limits  # values at its left and its right
    up: _Limits  # values at its bottom and its top
    logarithmic: bool = False  # True if equal steps across multiply

    def pixels(self, points: _Points) -> list[tuple[float, float]]:
        """Convert points to pixels from the left and the top of the drawing, NaN if there is no value."""
        x0, y0, width, height = self.box
        return [
            (x0 + _share(x, self.across, self.logarithmic) * width, y0 + height - _share(y, self.up) * height)
            for x, y in points
        ]

    def lines(self, lines: Iterable[_Points], colour: str, *, width: float = 1, dashes: str = "") -> None:
        """Draw lines, broken at points without a value. A line from a point to itself is a dot."""
        cap = "butt" if dashes else ""
        pixels = map(self.pixels, lines)
        self._draw(pixels, stroke=colour, stroke_width=width, stroke_dasharray=dashes, stroke_linecap=cap)

    def areas(self, outlines: Iterable[_Points], colour: str, *, opacity: float = 1) -> None:
        self._draw(map(self.pixels, outlines), fill=colour, opacity=opacity)

    def marks(self, points: _Points, colour: str, shape: int) -> None:
        """Draw a mark of one of eight shapes at each point. Shape 0 is a dot."""
        outlines = _SHAPES[shape]
        around = (
            [(x + _HALF * right, y - _HALF * up) for right, up in outline]
            for x, y in self.pixels(points)
            for outline in outlines
        )
        fill = colour if len(outlines[0]) > 2 else ""
        self._draw(around, stroke=colour, fill=fill, stroke_width=1.5 if shape else 2 * _HALF)

    def _draw(self, lines: Iterable[_Pixels], **style: str | float) -> None:
        data = "".join(map(_path_data, lines))
        if data:
            self.drawing.paths.append(f'<path d="{data}" style="{_style(style)}"/>')

    def text(
        self,
        at: tuple[float, float],
        text: str,
        *,
        shift: tuple[float, float] = (0, 0),
        anchor: Literal["", "middle", "end"] = "",
        colour: str = INK,
    ) -> None:
        """Write at a point, shifted by pixels to the right and up."""
        ((x, y),) = self.pixels([at])
        start = f'<text x="{_number(x + shift[0])}" y="{_number(y - shift[1] + _BASELINE)}"'
        style = _style({"fill": colour, "text-anchor": anchor})
        self.drawing.texts.append(f'{start} style="{style}">{html.escape(text)}</text>')

    def scale_across(self, values: Sequence[float], form: str = "g") -> None:
        bottom, top = self.up
        self.lines([[(value, bottom), (value, top)] for value in values], RULE)
        for value in values:
            self.text((value, bottom), _figure(value, form), shift=(0, -10), anchor="middle", colour=MUTED)

    def scale_up(self, values: Sequence[float], form: str = "g") -> None:
        start, end = self.across
        self.lines([[(start, value), (end, value)] for value in values], RULE)
        for value in values:
            self.text((start, value), _figure(value, form), shift=(-6, 0), anchor="end", colour=MUTED)


def _share(value: float | None, limits: _Limits, logarithmic: bool = False) -> float:
    if value is None:
        return math.nan
    if logarithmic:
        return _share(math.log2(value), (math.log2(limits[0]), math.log2(limits[1])))
    return (value - limits[0]) / (limits[1] - limits[0])


def _figure(value: float, form: str) -> str:
    return f"{value:{form}}" if value else "0"  # without a sign


def limits_around(values: Iterable[float | None]) -> _Limits:
    """Return the ends of a scale around all finite values, with a margin."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(finite), max(finite)
    margin = (high - low) * _MARGIN or max(0.5, abs(low) * 1e-9)
    return low - margin, high + margin


def ticks(limits: _Limits, at_most: int = 5) -> list[float]:
    """Return round values on a scale: multiples of 1, 2, 2.5 or 5 times a power of ten.

    There are at most `at_most` steps, unless too few values would be left. None if floats cannot resolve the range.
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
