"""Drawings as SVG: panels, scales, marks and words, in the page's colours.

No part keeps an id, so that any number of drawings fit on one page, and nothing is left that a drawing made later would
have otherwise. The words are ours: matplotlib would look up every letter in fonts of its own, warn where they lack a
script, and take `$` for mathematics, while it is the browser that sets them.

It is matplotlib's SVG backend alone that is used: its axes would take longer to make than all that is drawn on them.
matplotlib is imported when the first drawing is made, for that takes longer than the drawing.
"""

from __future__ import annotations

import html
import io
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats

__all__ = [
    "BAND",
    "BETTER",
    "COLOURS",
    "DASHES",
    "INK",
    "MUTED",
    "RULE",
    "WIDTH",
    "WORSE",
    "Anchor",
    "Box",
    "Dashes",
    "Drawing",
    "Limits",
    "Panel",
    "Polyline",
    "Words",
    "areas",
    "cleaned",
    "dots",
    "line",
    "marks",
    "painted",
    "reaching",
    "scale_across",
    "scale_up",
    "strokes",
    "ticks",
]

INK, MUTED, RULE, BAND = "#000001", "#000002", "#000003", "#000004"
"""What stands out, what stands back, hairlines, and the ground of what does not matter."""

COLOURS = tuple(f"#0001{number:02x}" for number in range(1, 9))
"""One per model, in the order of the page's `--c1` to `--c8`."""

BETTER, WORSE = COLOURS[:2]

Dashes: TypeAlias = tuple[float, ...]
"""Lengths of strokes and gaps in turn, in pixels; none for a whole line."""

DASHES: tuple[Dashes, ...] = ((), (6, 2), (2, 2), (6, 2, 2, 2))
"""One per model, over and over, so that lines differ by more than their colour."""

_PAINT = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    RULE: "var(--rule)",
    BAND: "var(--band)",
    **{colour: f"var(--c{number})" for number, colour in enumerate(COLOURS, start=1)},
}


def painted(style: str) -> str:
    """A style with the page's colours in place of ours."""
    for ours, theirs in _PAINT.items():
        style = style.replace(ours, theirs)
    return style


_SPACE = "{http://www.w3.org/2000/svg}"
_DECIMALS = re.compile(r"-?\d+\.\d+")
_NO_MARKUP = re.compile("[\ud800-\udfff\ufffe\uffff]")  # what neither HTML nor XML may hold


@dataclass(frozen=True)
class Words:
    """Words of a drawing.

    Attributes:
        said: what they say.
        x: pixels from its left.
        y: pixels from its top to their base line.
        anchor: which end of them is there, as SVG calls it.
        colour: of `paint`.
    """

    said: str
    x: float
    y: float
    anchor: str
    colour: str


def cleaned(drawn: str, words: Sequence[Words], title: str, size: str) -> str:
    """An SVG element.

    Args:
        drawn: what matplotlib wrote.
        words: what stands above it.
        title: what the drawing is called where it is not seen.
        size: the attributes of its size.
    """
    paths = (_path(found.attrib) for found in ET.fromstring(drawn).iter(f"{_SPACE}path") if "d" in found.attrib)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{_escaped(title)}">'
    return f"{head}{''.join([*paths, *map(_text, words)])}</svg>"


def _path(attributes: Mapping[str, str]) -> str:
    style = painted(attributes["style"]).replace("; ", ";").replace(": ", ":")
    return f'<path d="{_compact(attributes["d"])}" style="{style}"/>'


def _text(words: Words) -> str:
    place = f'x="{_rounded(words.x)}" y="{_rounded(words.y)}"'
    anchor = "" if words.anchor == "start" else f";text-anchor:{words.anchor}"
    return f'<text {place} style="fill:{painted(words.colour)}{anchor}">{_escaped(words.said)}</text>'


def _compact(path: str) -> str:
    """A path to a tenth of a pixel, without the spaces that it can do without."""
    return re.sub(r"\s*([MLz])\s*", r"\1", _DECIMALS.sub(lambda found: _rounded(found[0]), path)).rstrip()


def _rounded(number: str | float) -> str:
    return f"{round(float(number), 1) + 0.0:g}"  # no -0


def _escaped(text: str) -> str:
    return html.escape(_NO_MARKUP.sub("\ufffd", text))


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
