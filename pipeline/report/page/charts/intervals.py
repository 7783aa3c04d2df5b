"""Differences with their intervals: one row each, in one panel or in small ones side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.escaping import visible
from pipeline.movement import ALL
from pipeline.report.boards import called
from pipeline.report.differences import models, signed
from pipeline.report.page.charts.chart import Chart, cut, data, known, letters, short
from pipeline.report.page.charts.drawing import WIDTH, Drawing, Limits, Panel, reaching, ticks
from pipeline.report.page.charts.marks import areas, marks, scale_across, strokes
from pipeline.report.page.charts.paint import BAND, BETTER, INK, MUTED, WORSE, Dashes
from pipeline.report.readings import FEW, Reading, reading
from pipeline.report.sheets import counted
from pipeline.verdicts import Comparison

__all__ = ["forest", "slices"]

_ROW = 16
_APART = 48  # pixels of a scale for each of its numbers
_SCALE = 20  # below a panel, for the words of its scale
_HEAD = 18  # above a small panel, for its name
_NAME = 22  # letters of a row's name at most
_MOST_ROWS = 40
_MOST_SLICES = 24
_MOST_PANELS = 8


class _Look(NamedTuple):
    """How an interval is drawn."""

    colour: str
    shape: int
    dashes: Dashes = ()


_BETTER, _WORSE, _OPEN, _UNJUDGED = _Look(BETTER, 2), _Look(WORSE, 4), _Look(MUTED, 0), _Look(MUTED, 0, (2, 3))


def forest(lines: Sequence[Comparison], matters: float | None = None) -> Chart | None:
    """Differences as rows, the greatest first, with a line at 0.

    Args:
        lines: comparisons on one dataset, by one measure and in one slice.
        matters: the least difference that matters, which is drawn as a band.

    Returns:
        None where no difference is known.
    """
    sizes = sorted((-abs(line.difference), place) for place, line in enumerate(lines) if line.difference is not None)
    if not sizes:
        return None
    shown = sorted((lines[place] for _, place in sizes[:_MOST_ROWS]), key=_descending)
    where = "" if shown[0].slice == ALL else f", {short(shown[0].slice)}"
    title = f"{_title(shown)}{where}"
    said = [*_summed_up(shown, matters), *cut(len(shown), len(sizes), "differences")]
    return Chart(title, _rows(title, shown, matters), " ".join(said), _csv(shown))


def slices(lines: Sequence[Comparison], matters: float | None = None) -> Chart | None:
    """A small panel per pair of models, with a row per slice; all have one scale.

    Args:
        lines: comparisons on one dataset and by one measure, in the slices and on all queries.
        matters: the least difference that matters, which is drawn as a band.

    Returns:
        None where no difference of a slice is known.
    """
    found = [line for line in lines if line.difference is not None]
    pairs = list(dict.fromkeys(_pair(line) for line in found if line.slice != ALL))
    if not pairs:
        return None
    rows = list(dict.fromkeys(line.slice for line in found if _pair(line) in pairs[:_MOST_PANELS]))
    kept = rows[:_MOST_SLICES]
    shown = [line for line in found if _pair(line) in pairs[:_MOST_PANELS] and line.slice in kept]
    title = f"{_title(shown)}, by slice"
    said = [
        *_summed_up([line for line in shown if line.slice != ALL], matters),
        *cut(len(kept), len(rows), "slices"),
        *cut(min(len(pairs), _MOST_PANELS), len(pairs), "pairs of models"),
    ]
    return Chart(title, _panels(title, shown, kept, matters), " ".join(said), _csv(shown))


def _rows(title: str, lines: Sequence[Comparison], matters: float | None) -> str:
    """One panel, the names at its left."""
    names = [_name(line, lines) for line in lines]
    gutter, height = letters(names) + 12, _ROW * len(lines)
    drawing = Drawing(height + _SCALE + 4)
    panel = Panel(drawing, (gutter, 4, WIDTH - gutter - 14, height), _across(lines, matters), (len(lines) - 0.5, -0.5))
    _ground(panel, matters)
    for row, name in enumerate(names):
        panel.write((panel.across[0], row), name, shift=(-8, 0), anchor="right")
    _intervals(panel, list(enumerate(lines)), matters)
    return drawing.svg(title)


def _panels(title: str, lines: Sequence[Comparison], rows: Sequence[str], matters: float | None) -> str:
    """Two panels in a row, the names of the slices at the left of the first."""
    pairs = list(dict.fromkeys(map(_pair, lines)))
    names = [short(name, _NAME - 4) for name in rows]
    gutter = letters(names) + 12
    n_across = min(len(pairs), 2)
    width = (WIDTH - gutter - 12) / n_across - 6
    height = _HEAD + _ROW * len(rows) + _SCALE + 6
    across = _across(lines, matters)
    drawing = Drawing(height * math.ceil(len(pairs) / n_across))
    for place, pair in enumerate(pairs):
        row, column = divmod(place, n_across)
        box = (gutter + column * (width + 12), row * height + _HEAD, width, _ROW * len(rows))
        panel = Panel(drawing, box, across, (len(rows) - 0.5, -0.5))
        _ground(panel, matters)
        own = [line for line in lines if _pair(line) == pair]
        head = short(_name(own[0], lines), _NAME if n_across == 1 else _NAME - 6)
        panel.write((across[0], -0.5), head, shift=(0, 9))
        _intervals(panel, [(rows.index(line.slice), line) for line in own], matters)
        for at, name in enumerate(names if column == 0 else ()):
            panel.write((across[0], at), name, shift=(-8, 0), anchor="right")
    return drawing.svg(title)


def _across(lines: Sequence[Comparison], matters: float | None) -> Limits:
    ends = [end for line in lines for end in (line.difference, line.ci_low, line.ci_high)]
    return reaching(known([*ends, 0.0, matters, None if matters is None else -matters]))


def _ground(panel: Panel, matters: float | None) -> None:
    """The band, the scale, and the line at 0."""
    bottom, top = panel.up
    if matters:
        areas(panel, [[(-matters, bottom), (matters, bottom), (matters, top), (-matters, top)]], BAND)
    places = ticks(panel.across, int(panel.box[2] / _APART))
    scale_across(panel, places, [f"{place:+g}" if place else "0" for place in places])
    strokes(panel, [[(0, bottom), (0, top)]], INK)


def _intervals(panel: Panel, rows: Sequence[tuple[int, Comparison]], matters: float | None) -> None:
    """Differences: a mark upwards for what is better, downwards for what is worse; dashed where it is not judged."""
    for look in (_UNJUDGED, _OPEN, _WORSE, _BETTER):
        own = [(float(row), line) for row, line in rows if _look(line, matters) == look]
        ends = [
            [(line.ci_low, row), (line.ci_high, row)]
            for row, line in own
            if line.ci_low is not None and line.ci_high is not None
        ]
        strokes(panel, ends, look.colour, width=2, dashes=look.dashes)
        differences = np.array([line.difference for _, line in own], dtype=np.float64)
        marks(panel, differences, np.array([row for row, _ in own]), look.colour, look.shape)


def _look(line: Comparison, matters: float | None) -> _Look:
    found = _reading(line, matters)
    if found == "better":
        return _BETTER
    if found == "worse":
        return _WORSE
    return _UNJUDGED if line.mark == "sparse" or line.n_clusters < FEW else _OPEN


def _reading(line: Comparison, matters: float | None) -> Reading:
    return reading(line, {line.measure: matters} if matters else {})


def _descending(line: Comparison) -> tuple[float, str, str]:
    return -(line.difference or 0.0), line.model, line.baseline


def _pair(line: Comparison) -> tuple[str, str]:
    return line.model, line.baseline


def _name(line: Comparison, among: Sequence[Comparison]) -> str:
    """The pair of a line; the model alone, where the title has the other."""
    if len({other.baseline for other in among}) == 1:
        return short(line.model, _NAME)
    return f"{short(line.model, _NAME // 2 - 2)} − {short(line.baseline, _NAME // 2 - 1)}"


def _title(lines: Sequence[Comparison]) -> str:
    first, baselines = lines[0], {line.baseline for line in lines}
    against = f" to {short(first.baseline)}" if len(baselines) == 1 else ""
    return f"Difference{against} by {visible(first.measure)} on {short(called(first.dataset))}"


def _summed_up(lines: Sequence[Comparison], matters: float | None) -> list[str]:
    """How many come to what, the ends, and what the band is."""
    ordered = sorted(lines, key=_descending)
    ends = [_said(line, lines) for line in (ordered[0], ordered[-1])]
    words = [_reading(line, matters) for line in lines]
    readings: tuple[Reading, ...] = ("better", "worse", "no difference that matters", "unclear")
    counts = ", ".join(f"{words.count(word):,} {word}" for word in readings if word in words)
    return [
        *([f"{counted(len(lines), 'difference')}: {counts}."] if len(lines) > 1 else []),
        f"From {ends[0]} to {ends[1]}." if len(lines) > 1 else f"{ends[0]}, {words[0]}.",
        *([f"The band is what does not matter, less than {matters:g}."] if matters else []),
        *(["Dotted: too few queries to judge by."] if _UNJUDGED in [_look(line, matters) for line in lines] else []),
    ]


def _said(line: Comparison, among: Sequence[Comparison]) -> str:
    """A difference in words; its slice too, where there are several."""
    one = len({other.baseline for other in among}) == 1
    pair = short(line.model) if one else models(short(line.model), short(line.baseline))
    where = f" in {short(line.slice)}" if len({other.slice for other in among}) > 1 else ""
    interval = "" if line.ci_low is None else f" [{signed(line.ci_low)}, {signed(line.ci_high)}]"
    return f"{pair}{where} {signed(line.difference)}{interval}"


def _csv(lines: Sequence[Comparison]) -> str:
    headers = ("slice", "measure", "model", "baseline", "difference", "ci_low", "ci_high", "n_queries", "mark")
    return data(("dataset", *headers), ([getattr(line, name) for name in ("dataset", *headers)] for line in lines))
