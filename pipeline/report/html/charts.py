"""Charts of curves, histories and trade-offs. A function returns None if there is nothing to show."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from markupsafe import Markup
from rich.cells import cell_len, set_cell_size

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.history.history import Night, Series
from rankledger.pipeline.inference.tables import ALL, CurvePoint, Estimate
from rankledger.pipeline.report.html import svg
from rankledger.pipeline.report.html.blocks import Chart, isolated, write_each, write_figure
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.tables import Interval, Scale, display_name, figure, models, signed
from rankledger.pipeline.report.text_table import number, printable, short_text
from rankledger.pipeline.support.text import counted, to_cell

if TYPE_CHECKING:
    from rankledger.pipeline.inference.power import PowerPoint

Cell = str | float | int | None

_LONGEST = 200  # characters of a text in the data


def data(headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Write a table as CSV. Names that a spreadsheet would compute get an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headers)
    for row in rows:
        writer.writerow([to_cell(short(cell, _LONGEST)) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()


def cut(n_drawn: int, n_all: int, things: str) -> list[str]:
    """Return a sentence if not all are drawn."""
    return [f"{n_drawn:,} of {n_all:,} {things} are drawn."] if n_drawn < n_all else []


def short(text: str, cells: int = 30) -> str:
    """Cut text to a number of usual letters. Wide letters count twice."""
    text = printable(text[: 2 * cells])
    if cell_len(text) <= cells and len(text) < 2 * cells:
        return text
    return f"{set_cell_size(text[: cells - 1], cells - 1).rstrip()}…"


_CURVE_HEIGHT = 190  # of the panel
_CURVE_LEFT, _CURVE_RIGHT = 44, 14  # beside the panel: the figures of its scale; half of the last number below
_ENTRY = 16  # height of a line of the legend
_SAMPLE = 24  # width of the line in it
_OPACITY = 0.14  # of a band: two on top of each other still differ from one
_APART = 26  # pixels between the numbers of a logarithmic scale
_DASHES = ("", "6,2", "2,2", "6,2,2,2")  # one per model, over and over, so that colour never stands alone
_MOST_MARKS = 24  # of a line: more would run together

_Points: TypeAlias = Sequence[tuple[float, CurvePoint | Estimate]]  # where, and a model's figure there
_Lines: TypeAlias = Mapping[str, _Points]  # by model, from the left to the right


def precision_recall(dataset: str, points: Sequence[CurvePoint], models: Sequence[str]) -> Chart | None:
    """Draw interpolated precision by recall for the first eight models. None if the dataset has no such curve."""
    curve = [(point.at, point) for point in points if (point.dataset, point.curve) == (dataset, "precision")]
    top = max((end or 0.0 for _, point in curve for end in (point.estimate, point.ci_high)), default=0.0) or 1.0
    title = f"Interpolated precision by recall on {short(display_name(dataset))}"
    return _curves(title, curve, models, "recall", "precision", (0.0, top))


def judged_by_rank(dataset: str, points: Sequence[CurvePoint], models: Sequence[str]) -> Chart | None:
    """Draw the share of documents at a rank that are judged. None if the dataset has no such curve."""
    curve = [(point.at, point) for point in points if (point.dataset, point.curve) == (dataset, "judged")]
    title = f"Share of documents that are judged, by rank, on {short(display_name(dataset))}"
    return _curves(title, curve, models, "rank", "judged", (0.0, 1.0), logarithmic=True)


def power_by_queries(dataset: str, points: Sequence[PowerPoint]) -> Chart | None:
    """Draw the power of the first eight pairs of models by number of queries."""
    curve: list[tuple[float, Estimate]] = []
    for p in points:
        pair, power = models(p.model, p.baseline), (p.power, p.power_low, p.power_high)
        curve.append((float(p.n_queries), Estimate(dataset, pair, ALL, "power", *power, None, p.n_queries, 0, 0)))
    names = list(dict.fromkeys(point.model for _, point in curve))
    title = f"Power by number of queries on {short(display_name(dataset))}"
    return _curves(title, curve, names, "queries", "power", (0.0, 1.0), logarithmic=True)


def by_cutoff(dataset: str, estimates: Sequence[Estimate], models: Sequence[str]) -> list[Chart]:
    """Draw the first eight models by each measure with values at two cutoffs or more."""
    families: dict[str, list[tuple[float, Estimate]]] = {}
    lines = [line for line in estimates if (line.dataset, line.slice) == (dataset, ALL)]
    cutoffs = {measure: _cutoff(measure) for measure in dict.fromkeys(line.measure for line in lines)}
    for line in lines:
        if cutoff := cutoffs[line.measure]:
            families.setdefault(cutoff[0], []).append((cutoff[1], line))
    charts = []
    for family, points in families.items():
        if len({cutoff for cutoff, line in points if line.estimate is not None}) > 1:
            limits = svg.limits_around(end for _, line in points for end in (line.ci_low, line.estimate, line.ci_high))
            title = f"{printable(family)} by cutoff on {short(display_name(dataset))}"
            charts.append(_curves(title, points, models, "cutoff", family, limits, logarithmic=True))
    return [chart for chart in charts if chart is not None]


def _cutoff(text: str) -> tuple[str, int] | None:
    try:
        measure = Measure.parse(text)
    except ValueError:
        return None
    return None if measure.k is None else (str(replace(measure, k=None)), measure.k)


def _curves(
    title: str,
    points: _Points,
    models: Sequence[str],
    across: str,
    up: str,
    limits: tuple[float, float],
    *,
    logarithmic: bool = False,
) -> Chart | None:
    first = models[: len(svg.COLOURS)]
    ordered = sorted(points, key=itemgetter(0))
    points_of = {model: [(x, point) for x, point in ordered if point.model == model] for model in first}
    kept = {model: _cut_few(line) for model, line in points_of.items()}
    lines = {model: line for model, line in kept.items() if any(point.estimate is not None for _, point in line)}
    if not lines:
        return None
    left_out = len({point.model for _, point in points}.intersection(models[len(svg.COLOURS) :]))
    places = sorted({x for line in lines.values() for x, _ in line})
    text = [_describe_curves(lines, places, across)]
    ends = [
        f"{short(model, 60)} at {line[-1][0]:g} (n = {line[-1][1].n_queries:,})"
        for model, line in lines.items()
        if len(line) < len(points_of[model])
    ]
    if ends:
        text.append(f"Beyond these {across}s fewer than {LEAST_CLUSTERS} queries are left: {', '.join(ends)}.")
    text += cut(len(lines), len(lines) + left_out, "models")
    headers = ("model", across, up, "ci_low", "ci_high", "n_queries")
    rows = ((p.model, x, p.estimate, p.ci_low, p.ci_high, p.n_queries) for line in points_of.values() for x, p in line)
    drawing = svg.Drawing(_ENTRY * math.ceil(len(lines) / 2) + 26 + _CURVE_HEIGHT + 36)
    looks = {model: first.index(model) for model in lines}
    box = (_CURVE_LEFT, drawing.height - _CURVE_HEIGHT - 36, svg.WIDTH - _CURVE_LEFT - _CURVE_RIGHT, _CURVE_HEIGHT)
    ends_across = (places[0], places[-1]) if len(places) > 1 else (places[0] - 0.5, places[0] + 0.5)
    panel = svg.Panel(drawing, box, ends_across, limits, logarithmic)
    panel.scale_up(svg.ticks(limits))
    panel.scale_across(_apart(panel, places) if logarithmic else svg.ticks(panel.across))
    (start, end), (bottom, top) = panel.across, panel.up
    panel.text((start, top), short(up, 40), shift=(4 - _CURVE_LEFT, 12), colour=svg.MUTED)
    panel.text((end, bottom), across, shift=(0, -25), anchor="end", colour=svg.MUTED)
    _draw_lines(panel, lines, looks)
    _draw_legend(drawing, looks)
    return Chart(title, drawing.svg(title), " ".join(text), data(headers, rows))


def _cut_few(line: _Points) -> _Points:
    """Cut a line behind its last point with 30 queries, unless it has none."""
    last = max((place for place, (_, point) in enumerate(line) if point.n_queries >= LEAST_CLUSTERS), default=len(line))
    return line[: last + 1]


def _draw_lines(panel: svg.Panel, lines: _Lines, looks: Mapping[str, int]) -> None:
    for model, line in lines.items():
        bounded = [(x, point) for x, point in line if point.ci_low is not None and point.ci_high is not None]
        band = [*((x, point.ci_low) for x, point in bounded), *((x, point.ci_high) for x, point in reversed(bounded))]
        if len(bounded) > 1:
            panel.areas([band], svg.COLOURS[looks[model]], opacity=_OPACITY)
    for model, line in lines.items():
        points = [(x, point.estimate) for x, point in line]
        _draw_line(panel, points, slice(None, None, math.ceil(len(points) / _MOST_MARKS)), looks[model])


def _draw_legend(drawing: svg.Drawing, looks: Mapping[str, int]) -> None:
    height = _ENTRY * math.ceil(len(looks) / 2)
    legend = svg.Panel(drawing, (0, 0, svg.WIDTH, height), (0, svg.WIDTH), (height, 0))
    for entry, (model, look) in enumerate(looks.items()):
        start, row = 4 + entry % 2 * svg.WIDTH / 2, (entry // 2 + 0.5) * _ENTRY
        sample = [(start, row), (start + _SAMPLE / 2, row), (start + _SAMPLE, row)]
        _draw_line(legend, sample, slice(1, 2), look)
        legend.text((start + _SAMPLE + 6, row), short(model, 22))


def _apart(panel: svg.Panel, places: Sequence[float]) -> list[float]:
    chosen: list[float] = []
    last = math.inf
    for place in reversed(places):
        ((x, _),) = panel.pixels([(place, None)])
        if last - x >= _APART:
            chosen.append(place)
            last = x
    return chosen[::-1]


def _draw_line(panel: svg.Panel, points: Sequence[tuple[float, float | None]], marked: slice, look: int) -> None:
    panel.lines([points], svg.COLOURS[look], width=1.5, dashes=_DASHES[look % len(_DASHES)])
    panel.marks(points[marked], svg.COLOURS[look], look)


def _describe_curves(lines: _Lines, places: Sequence[float], across: str) -> str:
    chosen = list(dict.fromkeys([places[0], places[len(places) // 2], places[-1]]))
    models = []
    for model, line in lines.items():
        figures = {x: point.estimate for x, point in line}
        models.append(f"{short(model, 60)} {', '.join(figure(figures.get(place)) for place in chosen)}")
    *others, last = (f"{place:g}" for place in chosen)
    named = f"{', '.join(others)} and {last}" if others else last
    return f"At {across} {named}: {'; '.join(models)}."


_MOST_NIGHTS = 120
_NIGHTS_LEFT, _NIGHTS_RIGHT = 48, 36
_NIGHTS_TOP, _NIGHTS_HEIGHT = 22, 170
_DATE = 70  # pixels of a date and the gap to the next
_CROSS = 5  # the shape of a mark


def nights(series: Series, measure: str) -> Chart | None:
    """Draw the last 120 nights of a series. None if none of them has a figure."""
    drawn = series.nights[-_MOST_NIGHTS:]
    if not any(night.estimate is not None for night in drawn):
        return None
    dataset = short(display_name(series.dataset))
    title = f"{printable(measure)} of {short(series.model)} on {dataset}, {counted(len(drawn), 'night')}"
    text = [*_describe_nights(series, drawn), *cut(len(drawn), len(series.nights), "nights")]
    rows = (
        (night.date, night.estimate, night.ci_low, night.ci_high, " ".join(change.kind for change in night.breaks))
        for night in drawn
    )
    table = data(("night", "estimate", "ci_low", "ci_high", "breaks"), rows)
    return Chart(title, _draw_nights(title, drawn, list(_levels(series, drawn))), " ".join(text), table)


def _draw_nights(title: str, drawn: Sequence[Night], levels: Sequence[tuple[int, int, float]]) -> str:
    drawing = svg.Drawing(_NIGHTS_TOP + _NIGHTS_HEIGHT + 24)
    ends = (end for night in drawn for end in (night.ci_low, night.estimate, night.ci_high))
    box = (_NIGHTS_LEFT, _NIGHTS_TOP, svg.WIDTH - _NIGHTS_LEFT - _NIGHTS_RIGHT, _NIGHTS_HEIGHT)
    limits = svg.limits_around([*ends, *(level for _, _, level in levels)])
    panel = svg.Panel(drawing, box, (-0.5, len(drawn) - 0.5), limits)
    panel.scale_up(svg.ticks(limits))
    for place in range(len(drawn) - 1, -1, -max(1, round(_DATE * len(drawn) / box[2] + 0.5))):
        date = short(drawn[place].date, 12)
        panel.text((place, limits[0]), date, shift=(0, -12), anchor="middle", colour=svg.MUTED)
    _draw_breaks(panel, drawn)
    panel.lines(([(n, night.ci_low), (n, night.ci_high)] for n, night in enumerate(drawn)), svg.COLOURS[0])
    panel.marks([(n, night.estimate) for n, night in enumerate(drawn)], svg.COLOURS[0], 0)
    panel.marks([(n, limits[0]) for n, night in enumerate(drawn) if night.failure], svg.WORSE, _CROSS)
    panel.lines(([(first - 0.4, level), (last + 0.4, level)] for first, last, level in levels), svg.INK, width=1.5)
    return drawing.svg(title)


_SPARK = (120, 24)  # width and height
_SPARK_NIGHTS = 30
_SPARK_MARGIN = 3  # half a mark


def sparkline(series: Series) -> str:
    """Draw the last 30 nights of a series as an element of SVG. Empty if none of them has a figure."""
    drawn = series.nights[-_SPARK_NIGHTS:]
    estimated = [(place, night, night.estimate) for place, night in enumerate(drawn) if night.estimate is not None]
    if not estimated:
        return ""
    figures = [estimate for _, _, estimate in estimated]
    place, last, _ = estimated[-1]
    width, height = _SPARK
    drawing = svg.Drawing(height, width=width)
    box = (_SPARK_MARGIN, _SPARK_MARGIN, width - 2 * _SPARK_MARGIN, height - 2 * _SPARK_MARGIN)
    start, end = len(drawn) - _SPARK_NIGHTS - 0.5, len(drawn) - 0.5  # a night is as wide in every line
    panel = svg.Panel(drawing, box, (start, end), svg.limits_around([*figures, last.ci_low, last.ci_high]))
    if last.ci_low is not None and last.ci_high is not None:
        panel.lines([[(place, last.ci_low), (place, last.ci_high)]], svg.MUTED)
    panel.lines(_runs(drawn), svg.COLOURS[0], width=1.5)
    panel.marks([(place, last.estimate)], svg.COLOURS[0], 0)
    ends = f"{figure(min(figures))} to {figure(max(figures))}"
    return drawing.svg(f"{counted(len(drawn), 'night')}: {ends}, last {figure(last.estimate)}")


def _runs(drawn: Sequence[Night]) -> list[list[tuple[int, float]]]:
    """Yield runs of nights that can be compared. A lone night occurs twice, and is drawn as a dot."""
    runs: list[list[tuple[int, float]]] = [[]]
    for place, night in enumerate(drawn):
        if night.estimate is None or night.breaks:
            runs.append([])
        if night.estimate is not None:
            runs[-1].append((place, night.estimate))
    return [run if len(run) > 1 else 2 * run for run in runs if run]


def _draw_breaks(panel: svg.Panel, drawn: Sequence[Night]) -> None:
    low, high = panel.up
    broken = [place for place, night in enumerate(drawn) if night.breaks and place]
    panel.lines(([(place - 0.5, low), (place - 0.5, high)] for place in broken), svg.MUTED, dashes="4,3")
    for place in broken:
        initials = "".join(change.kind[0].upper() for change in drawn[place].breaks)
        panel.text((place - 0.5, high), initials, shift=(0, 10), anchor="middle", colour=svg.MUTED)


def _levels(series: Series, drawn: Sequence[Night]) -> Iterator[tuple[int, int, float]]:
    hidden = len(series.nights) - len(drawn)
    numbers = {night.date: place - hidden for place, night in enumerate(series.nights)}
    steps = [step for step in series.steps if numbers.get(step.date, -1) > 0]
    starts = {0, len(drawn), *(place for place, night in enumerate(drawn) if night.breaks)}
    starts |= {numbers[step.date] for step in steps}
    for step in steps:
        place = numbers[step.date]
        yield max(start for start in starts if start < place), place - 1, step.before
        yield place, min(start for start in starts if start > place) - 1, step.after


def _describe_nights(series: Series, drawn: Sequence[Night]) -> list[str]:
    last = next(night for night in reversed(drawn) if night.estimate is not None)
    interval = "" if last.ci_low is None else f" [{figure(last.ci_low)}, {figure(last.ci_high)}]"
    dates = {night.date for night in drawn}
    steps = [
        f"{signed(step.after - step.before)} on {short(step.date)}{' (step or drift)' if step.tier != 'step' else ''}"
        for step in series.steps
        if step.date in dates
    ]
    breaks = [f"{change.kind} on {short(night.date)}" for night in drawn[1:] for change in night.breaks]
    n_failed = sum(bool(night.failure) for night in drawn)
    return [
        f"{figure(last.estimate)}{interval} on {short(last.date)}.",
        f"Steps: {', '.join(steps)}." if steps else "No step.",
        *([f"Not comparable across a change (dashed, by its initial): {', '.join(breaks)}."] if breaks else []),
        *([f"{counted(n_failed, 'night')} without an evaluated output (crosses)."] if n_failed else []),
    ]


_PLOT_MARGIN = 0.08  # of a scale, at either end
_PLOT_NAMED = 8  # models that the text names
_PLOT_NAME = (0.08, 0.045)  # of the width and the height, which a name takes
_PLOT_RIGHT = 0.6  # of the width, beyond which names stand on the left of their marks


def trade_off(page: Page, dataset: str) -> Markup | None:
    """Plot the primary measure against the first external metric, a cost, or the second measure.

    None if fewer than two models have both.
    """
    columns = [column for (name, part, _), column in page.columns.items() if (name, part) == (dataset, ALL)]
    columns = [column for column in columns if column.direction != "neither"]
    columns.sort(key=lambda column: column.measure != page.leading[dataset])
    models = list(dict.fromkeys(model for column in columns for model in column.estimates))
    numbers = {model: extra.numbers for model, extra in page.manifest.external_metrics.items()}
    axes = [
        (column.measure, column.direction, {model: Interval.of(line) for model, line in column.estimates.items()})
        for column in columns
    ]
    if cost := next((name for model in models for name in numbers.get(model, {})), None):
        costs = {model: Interval(estimates[cost]) for model, estimates in numbers.items() if cost in estimates}
        axes.insert(1, (short_text(cost), "lower", costs))
    if len(models) < 2 or len(axes) < 2:
        return None
    (*up, heights), (*across, widths) = axes[:2]
    none = Interval(None)
    values = {short_text(model): (widths.get(model, none), heights.get(model, none)) for model in models}
    return draw_plot(f"trade-off-{short_text(dataset)}", (across[0], across[1]), (up[0], up[1]), values)


def draw_plot(
    name: str, across: tuple[str, str], up: tuple[str, str], values: Mapping[str, tuple[Interval, Interval]]
) -> Markup:
    """Plot models by two axes, those first that no other beats on both.

    Args:
        name: Name of the file that the data are saved to.
        across: Title of the axis, and the better direction: `higher` or `lower`.
        up: The same of the other axis.
        values: Values on both axes by model.
    """
    scales = [_pad(Scale.of(axis)) for axis in zip(*values.values(), strict=True)]
    signs = [-1 if better == "lower" else 1 for _, better in (across, up)]
    worths = {
        model: [sign * line.value for sign, line in zip(signs, lines, strict=True) if line.value is not None]
        for model, lines in values.items()
    }
    shown = [model for model, worth in worths.items() if len(worth) == len(signs)]
    best = [worths[model] for model in shown]
    beaten = {
        model: any(other != point and other[0] >= point[0] and other[1] >= point[1] for other in best)
        for model, point in zip(shown, best, strict=True)
    }
    marks, named = [], list[tuple[float, float]]()
    for model in sorted(shown, key=beaten.__getitem__):
        x, y = (scale.share(line.value or 0.0) for scale, line in zip(scales, values[model], strict=True))
        is_covered = any(abs(x - x0) < _PLOT_NAME[0] and abs(y - y0) < _PLOT_NAME[1] for x0, y0 in named)
        named += [] if is_covered else [(x, y)]
        classes = " front" * (not beaten[model]) + " right" * (x > _PLOT_RIGHT) + " covered" * is_covered
        marks.append((classes, ";".join(map(_place, values[model], scales, "xy")), model))
    numbers = (number(end) for scale in scales for end in (scale.low, scale.high))
    title = f"Trade-off: {up[0]} up, {across[0]} across"
    drawing = Markup('<div class="field" role="img" aria-label="{}">{}{}</div>').format(
        title,
        write_each(Markup('<span class="{}">{}</span>'), zip(("x0", "x1", "y0", "y1"), numbers, strict=True)),
        write_each(Markup('<div class="mark{}" style="{}"><bdi>{}</bdi></div>'), marks),
    )
    front = [isolated(model) for model in shown if not beaten[model]]
    more = f" and {len(front) - _PLOT_NAMED} more" if len(front) > _PLOT_NAMED else ""
    text = f"Not beaten on both: {', '.join(front[:_PLOT_NAMED])}{more}."
    heads = [f"{axis}{end}" for axis, _ in (across, up) for end in ("", " ci_low", " ci_high")]
    rows = (
        [
            model,
            *(None if end is None else round(end, 6) for line in point for end in (line.value, line.low, line.high)),
        ]
        for model, point in values.items()
    )
    return write_figure(Markup(' class="plot"'), title, drawing, text, name, data(["model", *heads], rows))


def _pad(scale: Scale) -> Scale:
    margin = (scale.high - scale.low) * _PLOT_MARGIN or abs(scale.high) * _PLOT_MARGIN or 0.5
    return Scale(scale.low - margin, scale.high + margin)


def _place(line: Interval, scale: Scale, axis: str) -> str:
    """Return the custom properties of a point and its interval, as shares of the plot."""
    value = line.value or 0.0
    low, middle, high = (scale.share(value if end is None else end) for end in (line.low, value, line.high))
    return f"--{axis}:{middle:.3f};--{axis}l:{low:.3f};--{axis}w:{high - low:.3f}"
