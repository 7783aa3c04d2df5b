"""What a panel shows: lines, areas, dots and marks, each kind as one path, for a path of a point is longer than it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from metrics.block import Floats
from pipeline.report.page.charts.drawing import Panel, Polyline
from pipeline.report.page.charts.paint import MUTED, RULE, Dashes

__all__ = ["areas", "dots", "line", "marks", "scale_across", "scale_up", "strokes"]

_HALF = 3.0  # of a mark's width
_SHAPES: tuple[tuple[Polyline, ...], ...] = (
    ([(0, 0), (0, 0)],),  # a dot, by its round ends
    ([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)],),
    ([(-1.2, -1), (1.2, -1), (0, 1.2), (-1.2, -1)],),
    ([(-1.4, 0), (0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],),
    ([(-1.2, 1), (1.2, 1), (0, -1.2), (-1.2, 1)],),
    ([(-1.2, -1.2), (1.2, 1.2)], [(-1.2, 1.2), (1.2, -1.2)]),
    ([(-1.5, 0), (1.5, 0)], [(0, -1.5), (0, 1.5)]),
    ([(1, -1.2), (1, 1.2), (-1.2, 0), (1, -1.2)],),
)


def strokes(panel: Panel, lines: Iterable[Polyline], colour: str, *, width: float = 1, dashes: Dashes = ()) -> None:
    """Lines through points of the panel, `width` pixels wide."""
    panel.drawing.path([panel.places(points) for points in lines], stroke=colour, width=width, dashes=dashes)


def line(panel: Panel, across: Floats, up: Floats, colour: str, *, dashes: Dashes = ()) -> None:
    """A line through (N,) points, which is broken where one is NaN."""
    points = np.column_stack([across, up])
    pieces = [piece[~np.isnan(piece[:, 1])] for piece in np.split(points, np.flatnonzero(np.isnan(up)))]
    strokes(panel, [piece for piece in pieces if len(piece) > 1], colour, width=1.5, dashes=dashes)


def dots(panel: Panel, across: Floats, up: Floats, colour: str, *, size: float) -> None:
    """Dots of `size` pixels at (N,) points."""
    places = panel.places(np.column_stack([across, up]))
    panel.drawing.path(list(places[:, np.newaxis].repeat(2, axis=1)), stroke=colour, width=size)


def marks(panel: Panel, across: Floats, up: Floats, colour: str, shape: int) -> None:
    """A mark of the `shape`-th form at each of (N,) points; none where one is NaN."""
    places = panel.places(np.column_stack([across, up])[~np.isnan(up)])
    outlines = [np.array(outline) * (_HALF, -_HALF) for outline in _SHAPES[shape % len(_SHAPES)]]
    around = [place + outline for place in places for outline in outlines]
    width = 1.5 if outlines[0].any() else 2 * _HALF
    panel.drawing.path(around, stroke=colour, fill=colour if len(outlines[0]) > 2 else "", width=width)


def areas(panel: Panel, outlines: Sequence[Polyline], colour: str, *, opacity: float = 1) -> None:
    """Plain areas within outlines on the panel."""
    panel.drawing.path([panel.places(outline) for outline in outlines], fill=colour, opacity=opacity)


def scale_across(panel: Panel, places: Sequence[float], words: Sequence[str]) -> None:
    """Hairlines from the bottom to the top, each with its words below."""
    bottom, top = panel.up
    strokes(panel, [[(place, bottom), (place, top)] for place in places], RULE)
    for place, said in zip(places, words, strict=True):
        panel.write((place, bottom), said, shift=(0, -10), anchor="center", colour=MUTED)


def scale_up(panel: Panel, places: Sequence[float], words: Sequence[str]) -> None:
    """Hairlines from the left to the right, each with its words at the left."""
    left, right = panel.across
    strokes(panel, [[(left, place), (right, place)] for place in places], RULE)
    for place, said in zip(places, words, strict=True):
        panel.write((left, place), said, shift=(-6, 0), anchor="right", colour=MUTED)
