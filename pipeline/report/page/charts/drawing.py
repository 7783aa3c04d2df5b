"""Drawings: panels with their scales and words, drawn by matplotlib. Lengths are in pixels of a column of 360.

It is matplotlib's SVG backend alone that is used: its axes would take longer to make than all that is drawn on them.
matplotlib is imported when the first drawing is made, for that takes longer than the drawing.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from metrics.block import Floats
from pipeline.report.page.charts.paint import INK, Dashes
from pipeline.report.page.charts.svg import Words, cleaned

__all__ = ["WIDTH", "Anchor", "Box", "Drawing", "Limits", "Panel", "Polyline", "reaching", "ticks"]

WIDTH = 360

Anchor: TypeAlias = Literal["left", "center", "right"]
"""Which end of words is at their place."""

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, width and height of a panel."""

Limits: TypeAlias = tuple[float, float]
"""The values at the two ends of a scale: left and right, or bottom and top."""

Polyline: TypeAlias = Sequence[tuple[float, float]] | npt.NDArray[np.float64]
"""Points, (N, 2)."""

_SIZE = 11  # height of the letters
_BASELINE = 4  # of letters, below their middle
_MARGIN = 0.04  # of a scale, at either end of it
_ANCHORS = {"left": "start", "center": "middle", "right": "end"}


@dataclass(frozen=True)
class Panel:
    """A plain rectangle of a drawing with a scale each way.

    Attributes:
        drawing: whose panel it is.
        box: where.
        across: the values at its left and its right end.
        up: those at its bottom and its top.
    """

    drawing: Drawing
    box: Box
    across: Limits
    up: Limits

    def places(self, points: Polyline) -> Floats:
        """(N, 2) points of the scales as pixels from the left and the top of the drawing."""
        left, top, width, height = self.box
        origin, ends = np.column_stack([self.across, self.up])
        shares = (np.asarray(points, dtype=np.float64) - origin) / (ends - origin)
        found: Floats = np.array([left, top + height]) + shares * np.array([width, -height])
        return found

    def write(
        self,
        at: tuple[float, float],
        words: str,
        *,
        shift: tuple[float, float] = (0, 0),
        anchor: Anchor = "left",
        colour: str = INK,
    ) -> None:
        """Words at a point of the scales, moved by pixels to the right and up."""
        ((x, y),) = self.places([at]).tolist()
        self.drawing.write((x + shift[0], y - shift[1]), words, anchor, colour)


class Drawing:
    """A drawing of `WIDTH` × `height`, to which panels are added, and paths and words to them."""

    def __init__(self, height: float) -> None:
        """An empty one."""
        with _unremarked():
            from matplotlib.backends.backend_svg import RendererSVG

        self.height = height
        self._words: list[Words] = []
        self._drawn = io.StringIO()
        self._renderer = RendererSVG(WIDTH, height, self._drawn)  # type: ignore[no-untyped-call]

    def path(
        self,
        lines: Sequence[Polyline],
        *,
        stroke: str = "",
        fill: str = "",
        width: float = 0,
        dashes: Dashes = (),
        opacity: float = 1,
    ) -> None:
        """Lines between pixels as one path, in colours of `paint`; nothing where there are none."""
        from matplotlib.colors import to_rgb
        from matplotlib.path import Path
        from matplotlib.transforms import Affine2D

        if not lines:
            return
        context = self._renderer.new_gc()
        context.set_linewidth(width)
        context.set_foreground(stroke or fill)
        context.set_alpha(opacity)
        context.set_dashes(0, dashes or None)
        context.set_capstyle("butt" if dashes else "round")
        context.set_joinstyle("round")
        codes = [code for points in lines for code in [Path.MOVETO, *[Path.LINETO] * (len(points) - 1)]]
        path = Path(np.concatenate(lines), codes)
        path.should_simplify = False  # dots would go, which are lines of no length
        from_below = Affine2D().scale(1, -1).translate(0, self.height)  # where matplotlib counts from
        self._renderer.draw_path(context, path, from_below, to_rgb(fill) if fill else None)  # type: ignore[no-untyped-call]

    def write(self, place: tuple[float, float], words: str, anchor: Anchor, colour: str) -> None:
        """Words at a pixel, above all paths."""
        self._words.append(Words(words, place[0], place[1] + _BASELINE, _ANCHORS[anchor], colour))

    def svg(self, title: str) -> str:
        """The drawing as an element of a page; `title` is what it is called where it is not seen."""
        self._renderer.finalize()  # type: ignore[no-untyped-call]
        size = f'viewBox="0 0 {WIDTH} {self.height:g}" width="100%" font-size="{_SIZE}"'
        return cleaned(self._drawn.getvalue(), self._words, title, size)


@contextmanager
def _unremarked() -> Iterator[None]:
    """Without matplotlib's remarks, as that it finds no folder for its list of fonts, of which none is drawn here."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def ticks(limits: Limits, at_most: int = 5) -> list[float]:
    """Round numbers within the ends of a scale."""
    from matplotlib import rc_context
    from matplotlib.ticker import MaxNLocator

    low, high = limits
    with rc_context({"axes.autolimit_mode": "data"}):  # whatever the user's `matplotlibrc` says
        places = MaxNLocator(nbins=at_most, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3).tick_values(low, high)
    return [float(f"{place:.12g}") for place in places if low <= place <= high]


def reaching(values: Sequence[float]) -> Limits:
    """A scale that holds all values, with a margin; one of width 1 around them where all are the same."""
    low, high = min(values), max(values)
    margin = (high - low) * _MARGIN or 0.5
    return low - margin, high + margin
