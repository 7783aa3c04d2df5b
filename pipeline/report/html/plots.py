"""The trade-off plot: models by two measures, or by a measure and a cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.report.html.blocks import Axis, Plot, isolated
from rankledger.pipeline.report.html.charts import data
from rankledger.pipeline.report.tables import Interval, PageFigures, Scale
from rankledger.pipeline.report.text_table import number, short_text

_MARGIN = 0.08  # of a scale, at either end
_NAMED = 8  # models that the text names
_NAME = (0.08, 0.045)  # of the width and the height, which a name takes
_RIGHT = 0.6  # of the width, beyond which names stand on the left of their marks


@dataclass(frozen=True)
class Mark:
    """Model on the plot."""

    model: str
    place: str  # custom properties of the point and its intervals, as shares of the plot
    unbeaten: bool  # True if no model is better on one axis and at least as good on the other
    at_right: bool  # True if the name has no room on its right
    covered: bool  # True if its name would overlap another


def trade_off(figures: PageFigures, dataset: str) -> Plot | None:
    """Plot the primary measure against the first external metric, or the second measure. None without two of both.

    An external metric is a cost: lower is better.
    """
    columns = [column for (name, part, _), column in figures.columns.items() if (name, part) == (dataset, ALL)]
    columns = [column for column in columns if column.direction != "neither"]
    columns.sort(key=lambda column: column.measure != figures.leading[dataset])
    models = list(dict.fromkeys(model for column in columns for model in column.estimates))
    numbers = {model: extra.numbers for model, extra in figures.page.manifest.external_metrics.items()}
    axes = [
        (
            Axis(column.measure, "lower" if column.direction == "lower" else "higher"),
            {model: Interval.of(line) for model, line in column.estimates.items()},
        )
        for column in columns
    ]
    if cost := next((name for model in models for name in numbers.get(model, {})), None):
        costs = {model: Interval(own[cost]) for model, own in numbers.items() if cost in own}
        axes.insert(1, (Axis(short_text(cost), "lower"), costs))
    if len(models) < 2 or len(axes) < 2:
        return None
    (up, heights), (across, widths) = axes[:2]
    none = Interval(None)
    own = {short_text(model): (widths.get(model, none), heights.get(model, none)) for model in models}
    return Plot(f"trade-off-{short_text(dataset)}", across, up, own)


def marks_of(plot: Plot) -> tuple[list[Mark], list[str]]:
    """Return the marks, the unbeaten ones first, and the numbers at the ends of the axes.

    Models without a value on an axis have no mark.
    """
    scales = _scale(own[0] for own in plot.models.values()), _scale(own[1] for own in plot.models.values())
    shown = {model: own for model, own in plot.models.items() if all(line.value is not None for line in own)}
    best = {model: (_worth(own[0], plot.across), _worth(own[1], plot.up)) for model, own in shown.items()}

    def beaten(model: str) -> bool:
        own = best[model]
        return any(other != own and other[0] >= own[0] and other[1] >= own[1] for other in best.values())

    marks: list[Mark] = []
    named: list[tuple[float, float]] = []
    for model in sorted(shown, key=beaten):
        x, y = (scale.share(line.value or 0.0) for scale, line in zip(scales, shown[model], strict=True))
        is_covered = any(abs(x - left) < _NAME[0] and abs(y - bottom) < _NAME[1] for left, bottom in named)
        named += [] if is_covered else [(x, y)]
        place = ";".join(_placed(shown[model][0], scales[0], "x") + _placed(shown[model][1], scales[1], "y"))
        marks.append(Mark(model, place, not beaten(model), x > _RIGHT, is_covered))
    return marks, [number(end) for scale in scales for end in (scale.low, scale.high)]


def plot_text(plot: Plot) -> str:
    """Name the models that no other beats on both axes."""
    names = [isolated(mark.model) for mark in marks_of(plot)[0] if mark.unbeaten]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Not beaten on both: {', '.join(names[:_NAMED])}{more}."


def plot_csv(plot: Plot) -> str:
    """Write both axes by model with the ends of their intervals, to six decimals."""
    titles = (plot.across.title, plot.up.title)
    heads = [head for title in titles for head in (title, f"{title} ci_low", f"{title} ci_high")]
    rows = (
        [model, *(_short(end) for line in values for end in (line.value, line.low, line.high))]
        for model, values in plot.models.items()
    )
    return data(["model", *heads], rows)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _worth(line: Interval, axis: Axis) -> float:
    return (line.value or 0.0) * (1 if axis.better == "higher" else -1)


def _scale(values: Iterable[Interval]) -> Scale:
    scale = Scale.of(values)
    margin = (scale.high - scale.low) * _MARGIN or abs(scale.high) * _MARGIN or 0.5
    return Scale(scale.low - margin, scale.high + margin)


def _placed(line: Interval, scale: Scale, axis: str) -> list[str]:
    value = line.value or 0.0
    low, middle, high = (scale.share(value if end is None else end) for end in (line.low, value, line.high))
    return [f"--{axis}:{middle:.3f}", f"--{axis}l:{low:.3f}", f"--{axis}w:{high - low:.3f}"]
