"""The trade-off plot: models by two measures, or by a measure and a cost.

The script places the same marks when other axes are chosen; it reads the data that stand below the plot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rankledger.pipeline.report.html.blocks import Axis, Plot, isolated
from rankledger.pipeline.report.html.charts import data
from rankledger.pipeline.report.tables import Interval, PageFigures, Scale
from rankledger.pipeline.report.text_table import number, short_text
from rankledger.pipeline.types.results import ALL

__all__ = ["Mark", "Marks", "marks_of", "plot_csv", "plot_text", "trade_off"]

_MARGIN = 0.08  # of a scale, at either end
_NAMED = 8  # models that the text names
_RIGHT = 0.6  # of the width, beyond which names stand on the left of their marks


@dataclass(frozen=True)
class Mark:
    """A model on the plot: shares of its width and height.

    Attributes:
        model: its name.
        place: custom properties: the point, and where its intervals begin and how long they are.
        unbeaten: whether no model is better on one axis and at least as good on the other.
        at_right: whether the name has no room on its right.
    """

    model: str
    place: str
    unbeaten: bool
    at_right: bool


@dataclass(frozen=True)
class Marks:
    """The marks of a plot, and what stands at the ends of its axes: left, right, bottom and top."""

    marks: tuple[Mark, ...]
    ends: tuple[str, str, str, str]


def trade_off(figures: PageFigures, dataset: str) -> Plot | None:
    """The models of a dataset by their measures and external metrics; None with fewer than two models or axes.

    The lead measure stands upright, and across it the first external metric, or else the second measure. An external
    metric is a cost: lower is better.
    """
    columns = [column for (name, part, _), column in figures.columns.items() if (name, part) == (dataset, ALL)]
    columns = [column for column in columns if column.direction != "neither"]
    columns.sort(key=lambda column: column.measure != figures.leading[dataset])
    models = list(dict.fromkeys(model for column in columns for model in column.estimates))
    numbers = {model: extra.numbers for model, extra in figures.page.manifest.external_metrics.items()}
    costs = list(dict.fromkeys(name for model in models for name in numbers.get(model, {})))
    axes = [Axis(column.measure, "lower" if column.direction == "lower" else "higher") for column in columns]
    axes += [Axis(short_text(name), "lower") for name in costs]
    if len(models) < 2 or len(axes) < 2:
        return None

    def values(model: str) -> Iterator[Interval]:
        for column in columns:
            yield Interval.of(column.estimates[model]) if model in column.estimates else Interval(None)
        for name in costs:
            yield Interval(numbers.get(model, {}).get(name))

    across = len(columns) if costs else 1
    own: Mapping[str, tuple[Interval, ...]] = {short_text(model): tuple(values(model)) for model in models}
    return Plot(f"trade-off-{short_text(dataset)}", "Trade-off", tuple(axes), across, 0, own)


def marks_of(plot: Plot) -> Marks:
    """The marks on the axes that are drawn first; models without a value on one of them have none."""
    scales = tuple(_scale(plot, axis) for axis in (plot.across, plot.up))
    shown = {
        model: (values[plot.across], values[plot.up])
        for model, values in plot.models.items()
        if values[plot.across].value is not None and values[plot.up].value is not None
    }
    best = {
        model: tuple(map(_worth, own, (plot.axes[plot.across], plot.axes[plot.up]))) for model, own in shown.items()
    }

    def beaten(model: str) -> bool:
        own = best[model]
        return any(other != own and other[0] >= own[0] and other[1] >= own[1] for other in best.values())

    marks = tuple(
        Mark(
            model,
            ";".join(_placed(own[0], scales[0], "x") + _placed(own[1], scales[1], "y")),
            not beaten(model),
            scales[0].share(own[0].value or 0.0) > _RIGHT,
        )
        for model, own in shown.items()
    )
    ends = tuple(number(end) for scale in scales for end in (scale.low, scale.high))
    return Marks(marks, (ends[0], ends[1], ends[2], ends[3]))


def plot_text(plot: Plot) -> str:
    """Which models no other beats on both axes, and what the marks mean."""
    names = [isolated(mark.model) for mark in marks_of(plot).marks if mark.unbeaten]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Not beaten on both: {', '.join(names[:_NAMED])}{more}."


def plot_csv(plot: Plot) -> str:
    """The data: by model, each axis with the ends of its interval, to six decimals."""
    heads = [head for axis in plot.axes for head in (axis.title, f"{axis.title} ci_low", f"{axis.title} ci_high")]
    rows = (
        [model, *(_short(end) for line in values for end in (line.value, line.low, line.high))]
        for model, values in plot.models.items()
    )
    return data(["model", *heads], rows)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _worth(line: Interval, axis: Axis) -> float:
    return (line.value or 0.0) * (1 if axis.better == "higher" else -1)


def _scale(plot: Plot, axis: int) -> Scale:
    scale = Scale.of(values[axis] for values in plot.models.values())
    margin = (scale.high - scale.low) * _MARGIN or abs(scale.high) * _MARGIN or 0.5
    return Scale(scale.low - margin, scale.high + margin)


def _placed(line: Interval, scale: Scale, axis: str) -> list[str]:
    """The point on an axis, the beginning of its interval and its length."""
    value = line.value or 0.0
    low, middle, high = (scale.share(value if end is None else end) for end in (line.low, value, line.high))
    return [f"--{axis}:{middle:.3f}", f"--{axis}l:{low:.3f}", f"--{axis}w:{high - low:.3f}"]
