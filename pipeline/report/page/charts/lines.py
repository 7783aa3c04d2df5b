"""Lines of models over a scale, with the bands of their intervals; a legend tells them by colour, dash and mark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrics.block import Floats
from pipeline.report.differences import figure
from pipeline.report.page.charts.chart import Chart, cut, data, short
from pipeline.report.page.charts.drawing import WIDTH, Drawing, Limits, Panel, ticks
from pipeline.report.page.charts.marks import areas, line, marks, scale_across, scale_up
from pipeline.report.page.charts.paint import COLOURS, DASHES, MUTED

__all__ = ["Point", "Scale", "chart"]

_PLOT = 190  # height of the panel
_LEFT, _RIGHT = 44, 14  # beside it: the figures; half of the last number of the scale
_ENTRY = 16  # height of a line of the legend
_SAMPLE = 24  # width of the line that it shows
_OPACITY = 0.14  # of a band: two on one another are still told apart
_APART = 26  # pixels between the numbers of a scale of powers
_MOST_MARKS = 24  # of a line: more would run together


@dataclass(frozen=True)
class Point:
    """A point of a model's line; None where there is no figure, or no interval."""

    model: str
    at: float
    estimate: float | None
    low: float | None
    high: float | None
    n_queries: int


@dataclass(frozen=True)
class Scale:
    """What is across, what is up and from where to where, and whether steps across multiply rather than add."""

    across: str
    up: str
    limits: Limits
    powers: bool = False

    def place(self, at: Floats) -> Floats:
        """Where (N,) values lie across."""
        return np.log2(at) if self.powers else at


@dataclass(frozen=True)
class _Line:
    """A model's points, (N,) each, NaN where there is none; `style` is its place among the models."""

    model: str
    style: int
    at: Floats
    estimate: Floats
    low: Floats
    high: Floats


def chart(title: str, points: Sequence[Point], models: Sequence[str], scale: Scale) -> Chart | None:
    """The lines of the first eight of the models; None where there is no figure of them."""
    shown = models[: len(COLOURS)]
    lines = [_line(model, style, points) for style, model in enumerate(shown)]
    lines = [line for line in lines if not np.isnan(line.estimate).all()]
    if not lines:
        return None
    left_out = len({point.model for point in points}.intersection(models[len(COLOURS) :]))
    text = [*_said(lines, scale), *cut(len(lines), len(lines) + left_out, "models")]
    rows = [
        (p.model, p.at, p.estimate, p.low, p.high, p.n_queries) for model in shown for p in points if p.model == model
    ]
    headers = ("model", scale.across, scale.up, "ci_low", "ci_high", "n_queries")
    return Chart(title, _drawn(title, lines, scale), " ".join(text), data(headers, rows))


def _line(model: str, style: int, points: Sequence[Point]) -> _Line:
    own = sorted((point for point in points if point.model == model), key=lambda point: point.at)
    columns = np.array([(p.at, p.estimate, p.low, p.high) for p in own], dtype=np.float64).reshape(-1, 4)
    return _Line(model, style, *columns.T)


def _drawn(title: str, lines: Sequence[_Line], scale: Scale) -> str:
    n_rows = math.ceil(len(lines) / 2)
    head = _ENTRY * n_rows + 26
    drawing = Drawing(head + _PLOT + 36)
    every = np.unique(np.concatenate([line.at for line in lines]))
    first, last = scale.place(every[[0, -1]])
    across = (first, last) if last > first else (first - 0.5, last + 0.5)
    panel = Panel(drawing, (_LEFT, head, WIDTH - _LEFT - _RIGHT, _PLOT), across, scale.limits)
    _scales(panel, every, scale)
    for found in lines:
        _band(panel, scale, found)
    for found in lines:
        places = scale.place(found.at)
        line(panel, places, found.estimate, COLOURS[found.style], dashes=DASHES[found.style % len(DASHES)])
        few = slice(None, None, math.ceil(len(places) / _MOST_MARKS))
        marks(panel, places[few], found.estimate[few], COLOURS[found.style], found.style)
    _legend(drawing, lines)
    return drawing.svg(title)


def _scales(panel: Panel, every: Floats, scale: Scale) -> None:
    """Numbers on both scales, and what they are."""
    up = ticks(scale.limits)
    scale_up(panel, up, [f"{place:g}" for place in up])
    places = _apart(panel, every, scale) if scale.powers else np.array(ticks(panel.across))
    scale_across(panel, scale.place(places).tolist(), [f"{place:g}" for place in places])
    (left, right), (bottom, top) = panel.across, panel.up
    panel.write((left, top), short(scale.up, 40), shift=(-_LEFT + 4, 12), colour=MUTED)
    panel.write((right, bottom), scale.across, shift=(0, -25), anchor="right", colour=MUTED)


def _apart(panel: Panel, every: Floats, scale: Scale) -> Floats:
    """Of the values themselves those that are far enough from one another for their numbers, from the greatest on."""
    across = panel.places(np.column_stack([scale.place(every), np.zeros(len(every))]))[:, 0]
    kept: list[int] = []
    for place in reversed(range(len(every))):
        if not kept or across[kept[-1]] - across[place] >= _APART:
            kept.append(place)
    return every[kept[::-1]]


def _band(panel: Panel, scale: Scale, found: _Line) -> None:
    some = ~np.isnan(found.low + found.high)
    if some.sum() > 1:
        places = scale.place(found.at)[some]
        outline = np.concatenate(
            [np.column_stack([places, found.low[some]]), np.column_stack([places, found.high[some]])[::-1]]
        )
        areas(panel, [outline], COLOURS[found.style], opacity=_OPACITY)


def _legend(drawing: Drawing, lines: Sequence[_Line]) -> None:
    """Two names in a row, each behind a piece of its line."""
    n_rows = math.ceil(len(lines) / 2)
    height = _ENTRY * n_rows
    panel = Panel(drawing, (0, 0, WIDTH, height), (0, WIDTH), (n_rows - 0.5, -0.5))
    for place, found in enumerate(lines):
        row, column = divmod(place, 2)
        left, colour = 4 + column * WIDTH / 2, COLOURS[found.style]
        line(
            panel, np.array([left, left + _SAMPLE]), np.array([row, row]) * 1.0, colour, dashes=DASHES[found.style % 4]
        )
        marks(panel, np.array([left + _SAMPLE / 2]), np.array([row * 1.0]), colour, found.style)
        panel.write((left + _SAMPLE + 6, row), short(found.model, 22))


def _said(lines: Sequence[_Line], scale: Scale) -> list[str]:
    """Each model's figures at the first, the middle and the last place."""
    every = np.unique(np.concatenate([line.at for line in lines]))
    chosen = list(dict.fromkeys([every[0], every[len(every) // 2], every[-1]]))
    models = []
    for found in lines:
        figures = dict(zip(found.at.tolist(), found.estimate.tolist(), strict=True))
        models.append(f"{short(found.model, 60)} {', '.join(figure(figures.get(at)) for at in chosen)}")
    places = [f"{at:g}" for at in chosen]
    where = f"{', '.join(places[:-1])} and {places[-1]}" if len(places) > 1 else places[0]
    return [f"At {scale.across} {where}: {'; '.join(models)}."]
