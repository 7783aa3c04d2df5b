"""Trends on a page: histories night by night, and curves."""

from __future__ import annotations

from collections.abc import Iterator

from rankledger.pipeline.report.history import notes_below, written
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
    Block,
    Column,
    Drawing,
    Drawings,
    Folded,
    Group,
    PageFigures,
    PagePart,
    Section,
    Table,
    Words,
    isolated,
    short_text,
)
from rankledger.pipeline.report.tables import display_name
from rankledger.pipeline.report.text_table import TextTable, counted
from rankledger.pipeline.types.views import History, Series

__all__ = ["curves", "history"]

_REMARK = 600  # letters
_SERIES = 24  # of a measure that are shown, each with a chart


def history(figures: PageFigures) -> Section | None:
    """A part per measure; None where the page has no history."""
    parts = tuple(
        PagePart(f"{short_text(found.measure)}, night by night", tuple(_measure(found, place)))
        for place, found in enumerate(figures.page.history, start=1)
    )
    return Section("history", "History", parts) if parts else None


def _measure(found: History, place: int) -> Iterator[Block]:
    """The charts beside each other, and a table of nights for each, folded."""
    drawn = [
        Drawing(f"nights-{place}-{number}", chart)
        for number, series in enumerate(found.series[:_SERIES], start=1)
        if (chart := charts.nights(series, found.measure))
    ]
    if drawn:
        yield Drawings(tuple(drawn))
    for number, series in enumerate(found.series[:_SERIES], start=1):
        yield _series(found, series, f"history-{place}-{number}")
    if len(found.series) > _SERIES:
        yield Words(f"{_SERIES} of {len(found.series):,} series are shown; `rankledger history` has all.", "quiet")
    yield from (Words(short_text(line, _REMARK), "quiet") for line in found.remarks)


def _series(found: History, series: Series, name: str) -> Folded:
    """The nights of a model on a dataset, and what is known of its steps."""
    sheet = written(found, series, None)
    called_so = f"{isolated(short_text(series.model))} on {isolated(short_text(display_name(series.dataset)))}"
    below = (Words(short_text(line, _REMARK), "quiet") for line in notes_below(found, series))
    nights = _table(sheet, name, f"Nights of {called_so}")
    return Folded(called_so, counted(len(series.nights), "night"), (nights, *below))


def _table(sheet: TextTable, name: str, caption: str) -> Table:
    columns = tuple(
        Column(header, "number" if numeric else "name")
        for header, numeric in zip(sheet.headers, sheet.numeric, strict=True)
    )
    return Table(name, caption, columns, (Group(tuple(tuple(map(short_text, row)) for row in sheet.rows)),))


def curves(figures: PageFigures) -> Section | None:
    """The curves of each dataset, the best models first; None where there are none."""
    parts = []
    for dataset in figures.leading:
        drawn = tuple(_drawings(figures, dataset))
        if drawn:
            parts.append(PagePart(short_text(display_name(dataset)), (Drawings(drawn),)))
    return Section("curves", "Curves", tuple(parts)) if parts else None


def _drawings(figures: PageFigures, dataset: str) -> Iterator[Drawing]:
    models = figures.best_first(dataset)
    precision = charts.precision_recall(dataset, figures.page.curves, models)
    if precision:
        yield Drawing(f"precision-{short_text(dataset)}", precision)
    for place, chart in enumerate(charts.by_cutoff(dataset, figures.page.evaluation.estimates, models), start=1):
        yield Drawing(f"cutoffs-{short_text(dataset)}-{place}", chart)
