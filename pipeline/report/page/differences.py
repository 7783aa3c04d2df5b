"""The differences of all pairs that were compared: drawn by the leading measure, and in a table by all."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.report.boards import ALL, called
from pipeline.report.differences import figure, p_value, signed
from pipeline.report.page import charts
from pipeline.report.page.bars import Scale, difference_scale
from pipeline.report.page.blocks import (
    Block,
    Cell,
    Column,
    Drawing,
    Drawings,
    Group,
    Part,
    Row,
    Section,
    Table,
    Words,
    shown,
)
from pipeline.report.page.figures import Figures, Key
from pipeline.report.page.wording import interval, tone_of
from pipeline.report.readings import reading
from pipeline.verdicts import Comparison

__all__ = ["differences", "slices"]

_ROWS = 1_000  # of all tables, beyond which the leading measure alone is shown
_LEGEND = (
    "Better, equal, worse: queries. Effect size: the mean difference in standard deviations of the differences. "
    "Detectable: the least difference that would be found in 80% of samples of this size."
)
_COLUMNS = (
    *(
        Column("model", "name"),
        Column("baseline", "name"),
        Column("figure"),
        Column("baseline's"),
        Column("difference"),
    ),
    *(
        Column("interval", "difference"),
        Column("p"),
        Column("corrected p"),
        Column("effect size"),
        Column("detectable"),
    ),
    *(Column("better"), Column("equal"), Column("worse"), Column("reading", "text")),
)


def differences(figures: Figures) -> Section | None:
    """A forest plot and a table per dataset; None where nothing was compared."""
    lead = figures.leading_difference
    keys = sorted((key for key in figures.comparisons if key[1] == ALL), key=lambda key: key[2] != lead[key[0]])
    whole = sum(len(figures.comparisons[key]) for key in keys) <= _ROWS
    found = {name: [key for key in keys if key[0] == name and (whole or key[2] == lead[name])] for name in lead}
    parts: list[Block] = [] if whole else [Words("Differences by other measures: comparisons.csv.", "quiet")]
    parts += [Part(shown(called(name)), tuple(_dataset(figures, name, own))) for name, own in found.items() if own]
    return Section("differences", "Differences", (*parts, Words(_LEGEND, "quiet"))) if keys else None


def slices(figures: Figures) -> Section | None:
    """The differences on each slice by the leading measure of each dataset; None where nothing was compared on any."""
    found = []
    for dataset, measure in figures.leading_difference.items():
        lines = figures.sliced(dataset)
        if any(line.slice != ALL for line in lines):
            chart = charts.slices(lines, figures.matters.get(measure))
            found += [Drawing(f"slices-{shown(dataset)}", chart)] if chart else []
    return Section("slices", "Slices", (Drawings(tuple(found)),)) if found else None


def _dataset(figures: Figures, dataset: str, keys: list[Key]) -> Iterator[Block]:
    measure = figures.leading_difference[dataset]
    chart = charts.forest(figures.on_all(dataset), figures.matters.get(measure))
    if chart:
        yield Drawings((Drawing(f"differences-{shown(dataset)}", chart),))
    yield Table(
        name=f"differences-{shown(dataset)}",
        caption=f"Differences on {shown(called(dataset))}",
        columns=_COLUMNS,
        groups=tuple(_group(figures, key) for key in keys),
        chosen=len(keys) > 1,
        searched="model",
    )
    families = dict.fromkeys(line.family for key in keys for line in figures.comparisons[key] if line.family)
    for family in families:
        yield Words(f"Corrected p: among {shown(family, 200)}.", "quiet")


def _group(figures: Figures, key: Key) -> Group:
    dataset, _, measure = key
    lines = figures.comparisons[key]
    margin = figures.matters.get(measure, 0.0)
    scale = difference_scale(lines, margin)
    return Group(
        rows=tuple(_row(figures, line, scale) for line in lines),
        title=measure,
        measure=measure,
        slice=ALL,
        note=f"bars from {scale.written}",
        ground=scale.ground(margin),
        open=measure == figures.leading_difference[dataset],
    )


def _row(figures: Figures, line: Comparison, scale: Scale) -> Row:
    tone = tone_of(line, figures.matters)
    return (
        shown(line.model),
        shown(line.baseline),
        figure(line.estimate),
        figure(line.baseline_estimate),
        Cell(signed(line.difference), tone),
        scale.cell(line.ci_low, line.difference, line.ci_high, interval(line, signed), tone),
        p_value(line.p_value),
        p_value(line.p_corrected),
        "" if line.effect_size is None else signed(line.effect_size),
        "" if line.detectable is None else figure(line.detectable),
        *(f"{amount:,}" for amount in (line.wins, line.ties, line.losses)),
        Cell(reading(line, figures.matters), tone),
    )
