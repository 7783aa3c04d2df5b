"""Charts of curves and histories; None stands for a chart that has nothing to show."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.cells import cell_len

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.report.html.svg import (
    COLOURS,
    DASHES,
    INK,
    MUTED,
    WIDTH,
    WORSE,
    Drawing,
    Limits,
    Panel,
    areas,
    line,
    marks,
    reaching,
    scale_across,
    scale_up,
    strokes,
    ticks,
)
from rankledger.pipeline.report.tables import display_name, figure, signed
from rankledger.pipeline.report.text_table import counted
from rankledger.pipeline.support.escaping import to_cell, visible
from rankledger.pipeline.types.changes import ALL
from rankledger.pipeline.types.results import Estimate
from rankledger.pipeline.types.views import Curve, CurvePoint, Night, Series

__all__ = [
    "Axis",
    "Cell",
    "Chart",
    "Point",
    "by_cutoff",
    "chart",
    "cut",
    "data",
    "finite_values",
    "judged_by_rank",
    "letters",
    "nights",
    "precision_recall",
    "short",
]

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


def finite_values(values: Iterable[float | None]) -> list[float]:
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


_CURVE_HEIGHT = 190  # height of the panel
_CURVE_LEFT, _CURVE_RIGHT = 44, 14  # beside it: the figures; half of the last number of the scale
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
class Axis:
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


def chart(title: str, points: Sequence[Point], models: Sequence[str], scale: Axis) -> Chart | None:
    """The lines of the first eight of the models; None where there is no figure of them."""
    shown = models[: len(COLOURS)]
    lines = [_line(model, style, points) for style, model in enumerate(shown)]
    lines = [line for line in lines if not np.isnan(line.estimate).all()]
    if not lines:
        return None
    left_out = len({point.model for point in points}.intersection(models[len(COLOURS) :]))
    text = [*_describe_curves(lines, scale), *cut(len(lines), len(lines) + left_out, "models")]
    rows = [
        (p.model, p.at, p.estimate, p.low, p.high, p.n_queries) for model in shown for p in points if p.model == model
    ]
    headers = ("model", scale.across, scale.up, "ci_low", "ci_high", "n_queries")
    return Chart(title, _draw_curves(title, lines, scale), " ".join(text), data(headers, rows))


def _line(model: str, style: int, points: Sequence[Point]) -> _Line:
    own = sorted((point for point in points if point.model == model), key=lambda point: point.at)
    columns = np.array([(p.at, p.estimate, p.low, p.high) for p in own], dtype=np.float64).reshape(-1, 4)
    return _Line(model, style, *columns.T)


def _draw_curves(title: str, lines: Sequence[_Line], scale: Axis) -> str:
    n_rows = math.ceil(len(lines) / 2)
    head = _ENTRY * n_rows + 26
    drawing = Drawing(head + _CURVE_HEIGHT + 36)
    every = np.unique(np.concatenate([line.at for line in lines]))
    first, last = scale.place(every[[0, -1]])
    across = (first, last) if last > first else (first - 0.5, last + 0.5)
    panel = Panel(drawing, (_CURVE_LEFT, head, WIDTH - _CURVE_LEFT - _CURVE_RIGHT, _CURVE_HEIGHT), across, scale.limits)
    _draw_scales(panel, every, scale)
    for found in lines:
        _band(panel, scale, found)
    for found in lines:
        places = scale.place(found.at)
        line(panel, places, found.estimate, COLOURS[found.style], dashes=DASHES[found.style % len(DASHES)])
        few = slice(None, None, math.ceil(len(places) / _MOST_MARKS))
        marks(panel, places[few], found.estimate[few], COLOURS[found.style], found.style)
    _legend(drawing, lines)
    return drawing.svg(title)


def _draw_scales(panel: Panel, every: Floats, scale: Axis) -> None:
    """Numbers on both scales, and what they are."""
    up = ticks(scale.limits)
    scale_up(panel, up, [f"{place:g}" for place in up])
    places = _apart(panel, every, scale) if scale.powers else np.array(ticks(panel.across))
    scale_across(panel, scale.place(places).tolist(), [f"{place:g}" for place in places])
    (left, right), (bottom, top) = panel.across, panel.up
    panel.write((left, top), short(scale.up, 40), shift=(-_CURVE_LEFT + 4, 12), colour=MUTED)
    panel.write((right, bottom), scale.across, shift=(0, -25), anchor="right", colour=MUTED)


def _apart(panel: Panel, every: Floats, scale: Axis) -> Floats:
    """Of the values themselves those that are far enough from one another for their numbers, from the greatest on."""
    across = panel.places(np.column_stack([scale.place(every), np.zeros(len(every))]))[:, 0]
    kept: list[int] = []
    for place in reversed(range(len(every))):
        if not kept or across[kept[-1]] - across[place] >= _APART:
            kept.append(place)
    return every[kept[::-1]]


def _band(panel: Panel, scale: Axis, found: _Line) -> None:
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


def _describe_curves(lines: Sequence[_Line], scale: Axis) -> list[str]:
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


def precision_recall(dataset: str, points: Sequence[CurvePoint], models: Sequence[str]) -> Chart | None:
    """Interpolated precision by recall, with bands.

    Args:
        dataset: the dataset's name.
        points: of any curves of any datasets.
        models: the first eight are drawn.

    Returns:
        None where there is no such curve of them on the dataset.
    """
    own = _of(dataset, "precision", points)
    top = max(finite_values(end for point in own for end in (point.estimate, point.high)), default=1.0) or 1.0
    title = f"Interpolated precision by recall on {short(display_name(dataset))}"
    return chart(title, own, models, Axis("recall", "precision", (0.0, top)))


def judged_by_rank(dataset: str, points: Sequence[CurvePoint], models: Sequence[str]) -> Chart | None:
    """The share of the documents at a rank that are judged; arguments and result as of `precision_recall`."""
    title = f"Share of documents that are judged, by rank, on {short(display_name(dataset))}"
    return chart(title, _of(dataset, "judged", points), models, Axis("rank", "judged", (0.0, 1.0), powers=True))


def by_cutoff(dataset: str, estimates: Sequence[Estimate], models: Sequence[str]) -> tuple[Chart, ...]:
    """A chart for each measure that has figures at two cutoffs or more, in the order of the summary.

    Args:
        dataset: the dataset's name.
        estimates: of any datasets, slices and measures; what was scored elsewhere has no cutoff that we know of.
        models: the first eight are drawn.
    """
    own = [line for line in estimates if (line.dataset, line.slice) == (dataset, ALL)]
    measures = {text: _parsed(text) for text in dict.fromkeys(line.measure for line in own)}
    found: dict[str, list[Point]] = {}
    for one in own:
        measure = measures[one.measure]
        if measure is not None and measure.k is not None:
            point = Point(one.model, measure.k, one.estimate, one.ci_low, one.ci_high, one.n_queries)
            found.setdefault(str(replace(measure, k=None)), []).append(point)
    made = [_of_cutoffs(dataset, measure, points, models) for measure, points in found.items()]
    return tuple(drawn for drawn in made if drawn is not None)


def _of_cutoffs(dataset: str, measure: str, points: Sequence[Point], models: Sequence[str]) -> Chart | None:
    if len({point.at for point in points if point.estimate is not None}) < 2:
        return None
    up = reaching(finite_values(end for point in points for end in (point.low, point.estimate, point.high)))
    title = f"{visible(measure)} by cutoff on {short(display_name(dataset))}"
    return chart(title, points, models, Axis("cutoff", measure, up, powers=True))


def _parsed(measure: str) -> Measure | None:
    try:
        return Measure.parse(measure)
    except ValueError:
        return None


def _of(dataset: str, curve: Curve, points: Sequence[CurvePoint]) -> list[Point]:
    return [
        Point(point.model, point.at, point.estimate, point.ci_low, point.ci_high, point.n_queries)
        for point in points
        if (point.dataset, point.curve) == (dataset, curve)
    ]


_MOST_NIGHTS = 120
_NIGHTS_LEFT, _NIGHTS_RIGHT = 48, 36
_NIGHTS_TOP, _NIGHTS_HEIGHT = 22, 170
_DATE = 70  # pixels that a date takes, with what keeps it from the next
_CROSS = 5  # the shape of a mark


def nights(series: Series, measure: str) -> Chart | None:
    """The newest 120 nights of a series.

    Args:
        series: the nights of a model on a dataset.
        measure: what the figures are, as it is written.

    Returns:
        None where none of these nights has a figure.
    """
    shown = series.nights[-_MOST_NIGHTS:]
    if not any(night.estimate is not None for night in shown):
        return None
    where = short(display_name(series.dataset))
    title = f"{visible(measure)} of {short(series.model)} on {where}, {counted(len(shown), 'night')}"
    said = [*_describe_nights(series, shown), *cut(len(shown), len(series.nights), "nights")]
    return Chart(title, _draw_nights(title, shown, list(_levels(series, shown))), " ".join(said), _csv(shown))


def _draw_nights(title: str, shown: Sequence[Night], levels: Sequence[tuple[int, int, float]]) -> str:
    drawing = Drawing(_NIGHTS_TOP + _NIGHTS_HEIGHT + 24)
    ends = finite_values(end for night in shown for end in (night.ci_low, night.estimate, night.ci_high))
    limits = reaching([*ends, *(level for _, _, level in levels)])
    panel = Panel(
        drawing,
        (_NIGHTS_LEFT, _NIGHTS_TOP, WIDTH - _NIGHTS_LEFT - _NIGHTS_RIGHT, _NIGHTS_HEIGHT),
        (-0.5, len(shown) - 0.5),
        limits,
    )
    _draw_night_scales(panel, shown)
    _breaks(panel, shown)
    _figures(panel, shown)
    strokes(panel, [[(first - 0.4, level), (last + 0.4, level)] for first, last, level in levels], INK, width=1.5)
    return drawing.svg(title)


def _draw_night_scales(panel: Panel, shown: Sequence[Night]) -> None:
    places = ticks(panel.up)
    scale_up(panel, places, [f"{place:g}" for place in places])
    width = (WIDTH - _NIGHTS_LEFT - _NIGHTS_RIGHT) / len(shown)
    every = max(1, round(_DATE / width + 0.5))
    bottom = panel.up[0]
    for place in range(len(shown) - 1, -1, -every):
        panel.write((place, bottom), short(shown[place].date, 12), shift=(0, -12), anchor="center", colour=MUTED)


def _breaks(panel: Panel, shown: Sequence[Night]) -> None:
    """A dashed line before each night whose figure cannot be held against those before, and a letter for the reason."""
    low, high = panel.up
    broken = [place for place, night in enumerate(shown) if night.breaks and place]
    strokes(panel, [[(place - 0.5, low), (place - 0.5, high)] for place in broken], MUTED, dashes=(4, 3))
    for place in broken:
        initials = "".join(change.kind[0].upper() for change in shown[place].breaks)
        panel.write((place - 0.5, high), initials, shift=(0, 10), anchor="center", colour=MUTED)


def _figures(panel: Panel, shown: Sequence[Night]) -> None:
    """Intervals and figures; a cross at the bottom for a night on which the output was not evaluated."""
    places = np.arange(len(shown), dtype=np.float64)
    intervals = [
        [(place, night.ci_low), (place, night.ci_high)]
        for place, night in enumerate(shown)
        if night.ci_low is not None and night.ci_high is not None
    ]
    strokes(panel, intervals, COLOURS[0])
    marks(panel, places, np.array([night.estimate for night in shown], dtype=np.float64), COLOURS[0], 0)
    failed = places[[bool(night.failure) for night in shown]]
    marks(panel, failed, np.full(len(failed), panel.up[0]), WORSE, _CROSS)


def _levels(series: Series, shown: Sequence[Night]) -> Iterator[tuple[int, int, float]]:
    """The levels on both sides of every step: the first and last night that is drawn, and the level."""
    hidden = len(series.nights) - len(shown)
    place = {night.date: number - hidden for number, night in enumerate(series.nights)}
    steps = [step for step in series.steps if place.get(step.date, -1) > 0]
    starts = {0, len(shown), *(number for number, night in enumerate(shown) if night.breaks)}
    starts |= {place[step.date] for step in steps}
    for step in steps:
        at = place[step.date]
        yield max(start for start in starts if start < at), at - 1, step.before
        yield at, min(start for start in starts if start > at) - 1, step.after


def _describe_nights(series: Series, shown: Sequence[Night]) -> list[str]:
    newest = next(night for night in reversed(shown) if night.estimate is not None)
    interval = "" if newest.ci_low is None else f" [{figure(newest.ci_low)}, {figure(newest.ci_high)}]"
    dates = {night.date for night in shown}
    steps = [f"{signed(step.after - step.before)} on {short(step.date)}" for step in series.steps if step.date in dates]
    breaks = [f"{change.kind} on {short(night.date)}" for night in shown[1:] for change in night.breaks]
    n_failed = sum(bool(night.failure) for night in shown)
    return [
        f"{figure(newest.estimate)}{interval} on {short(newest.date)}.",
        f"Steps: {', '.join(steps)}." if steps else "No step.",
        *([f"Not comparable across a change (dashed, by its initial): {', '.join(breaks)}."] if breaks else []),
        *([f"{counted(n_failed, 'night')} without an evaluated output (crosses)."] if n_failed else []),
    ]


def _csv(shown: Sequence[Night]) -> str:
    rows = (
        (night.date, night.estimate, night.ci_low, night.ci_high, " ".join(change.kind for change in night.breaks))
        for night in shown
    )
    return data(("night", "estimate", "ci_low", "ci_high", "breaks"), rows)
