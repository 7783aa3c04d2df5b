"""The slice on which each model does worst, by the leading measure of each dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeVar

from pipeline.report.boards import ALL, called
from pipeline.report.differences import figure, signed
from pipeline.report.page.bars import difference_scale, estimate_scale
from pipeline.report.page.blocks import Block, Cell, Column, Group, Table, shown
from pipeline.report.page.figures import Figures
from pipeline.report.page.wording import interval, tone_of
from pipeline.report.readings import FEW, reading
from pipeline.tables import Estimate
from pipeline.verdicts import Comparison

__all__ = ["worst_slices"]

_ROWS = 10  # of a dataset

Line = TypeVar("Line", Estimate, Comparison)


def worst_slices(figures: Figures) -> Iterator[Block]:
    """A row per model, the worst first: by the difference to its baseline, or by its figure where it has none."""
    compared = [name for name in figures.leading if figures.baseline(name) is not None]
    others = [name for name in figures.leading if name not in compared]
    groups = tuple(group for name in compared for group in _differences(figures, name))
    if groups:
        yield Table("worst-differences", "The slice with the lowest difference, by model", _heads("difference"), groups)
    groups = tuple(group for name in others for group in _estimates(figures, name))
    if groups:
        yield Table("worst-figures", "The slice with the worst figure, by model", _heads("bar"), groups)


def _heads(kind: Literal["bar", "difference"]) -> tuple[Column, ...]:
    figure_of = "figure" if kind == "bar" else "difference"
    named = (Column("model", "name"), Column("slice", "name"), Column(figure_of), Column("interval", kind))
    return (*named, Column("reading", "text"), Column("queries"))


def _differences(figures: Figures, dataset: str) -> Iterator[Group]:
    """A dataset's rows by differences; none where it has no slices."""
    measure, matters = figures.leading_difference[dataset], figures.matters
    worst = _worst((line for line in figures.sliced(dataset) if line.slice != ALL), lambda line: line.difference)
    if worst:
        margin = matters.get(measure, 0.0)
        scale = difference_scale(worst, margin)
        rows = tuple(
            (
                shown(line.model),
                shown(line.slice),
                Cell(signed(line.difference), tone_of(line, matters)),
                scale.cell(line.ci_low, line.difference, line.ci_high, interval(line, signed), tone_of(line, matters)),
                "not judged" if line.n_clusters < FEW else Cell(reading(line, matters), tone_of(line, matters)),
                f"{line.n_queries:,}",
            )
            for line in worst
        )
        yield Group(rows, _title(dataset, measure), note=f"bars from {scale.written}", ground=scale.ground(margin))


def _estimates(figures: Figures, dataset: str) -> Iterator[Group]:
    """A dataset's rows by figures; none where it has no slices, or neither end of its measure is better."""
    measure = figures.leading[dataset]
    direction = figures.page.evaluation.directions[measure]
    if direction == "neither":
        return
    sign = -1 if direction == "lower" else 1
    lines = [
        line
        for (name, part, by), found in figures.estimates.items()
        if (name, by) == (dataset, measure) and part != ALL
        for line in found.values()
    ]
    worst = _worst(lines, lambda line: None if line.estimate is None else sign * line.estimate)
    if worst:
        scale = estimate_scale(worst)
        rows = tuple(
            (
                shown(line.model),
                shown(line.slice),
                figure(line.estimate),
                scale.cell(line.ci_low, line.estimate, line.ci_high, interval(line, figure)),
                "not judged" if line.n_clusters < FEW else "",
                f"{line.n_queries:,}",
            )
            for line in worst
        )
        yield Group(rows, _title(dataset, measure), note=f"bars from {scale.written}")


def _worst(lines: Iterable[Line], value: Callable[[Line], float | None]) -> list[Line]:
    """The worst line of each model, of those that are judged if there are any, the lowest of all first."""

    def place(line: Line) -> tuple[bool, float]:
        return line.n_clusters < FEW, value(line) or 0.0

    found: dict[str, Line] = {}
    for line in lines:
        if value(line) is not None and (line.model not in found or place(line) < place(found[line.model])):
            found[line.model] = line
    return sorted(found.values(), key=place)[:_ROWS]


def _title(dataset: str, measure: str) -> str:
    return f"{shown(called(dataset))}: {measure}"
