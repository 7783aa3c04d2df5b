"""Curves of models: precision by recall, a measure by its cutoff, the share judged by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metrics.measure import Measure
from pipeline.escaping import visible
from pipeline.movement import ALL
from pipeline.pages import Curve, CurvePoint
from pipeline.report.boards import called
from pipeline.report.page.charts.chart import Chart, known, short
from pipeline.report.page.charts.drawing import reaching
from pipeline.report.page.charts.lines import Point, Scale, chart
from pipeline.tables import Estimate

__all__ = ["by_cutoff", "judged_by_rank", "precision_recall"]


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
    top = max(known(end for point in own for end in (point.estimate, point.high)), default=1.0) or 1.0
    title = f"Interpolated precision by recall on {short(called(dataset))}"
    return chart(title, own, models, Scale("recall", "precision", (0.0, top)))


def judged_by_rank(dataset: str, points: Sequence[CurvePoint], models: Sequence[str]) -> Chart | None:
    """The share of the documents at a rank that are judged; arguments and result as of `precision_recall`."""
    title = f"Share of documents that are judged, by rank, on {short(called(dataset))}"
    return chart(title, _of(dataset, "judged", points), models, Scale("rank", "judged", (0.0, 1.0), powers=True))


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
    for line in own:
        measure = measures[line.measure]
        if measure is not None and measure.k is not None:
            point = Point(line.model, measure.k, line.estimate, line.ci_low, line.ci_high, line.n_queries)
            found.setdefault(str(replace(measure, k=None)), []).append(point)
    made = [_of_cutoffs(dataset, measure, points, models) for measure, points in found.items()]
    return tuple(one for one in made if one is not None)


def _of_cutoffs(dataset: str, measure: str, points: Sequence[Point], models: Sequence[str]) -> Chart | None:
    if len({point.at for point in points if point.estimate is not None}) < 2:
        return None
    up = reaching(known(end for point in points for end in (point.low, point.estimate, point.high)))
    title = f"{visible(measure)} by cutoff on {short(called(dataset))}"
    return chart(title, points, models, Scale("cutoff", measure, up, powers=True))


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
