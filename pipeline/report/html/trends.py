"""Trends on a page: histories night by night, and curves."""

from __future__ import annotations

from collections.abc import Iterator

from rankledger.pipeline.report.history import night_table, notes_below
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
    Block,
    Column,
    Drawing,
    Drawings,
    Folded,
    Group,
    PagePart,
    Section,
    Table,
    Words,
    dataset_title,
    isolated,
)
from rankledger.pipeline.report.tables import PageFigures
from rankledger.pipeline.report.text_table import TextTable, counted, short_text
from rankledger.pipeline.types.views import History, Series

__all__ = ["curves", "history"]

_NOTE = 600  # characters
_SERIES = 24  # of a measure, each with a chart


def history(figures: PageFigures) -> Section | None:
    """A part per measure; None if the page has no history."""
    parts = tuple(
        PagePart(f"{short_text(own.measure)}, night by night", tuple(_measure(own, place)))
        for place, own in enumerate(figures.page.history, start=1)
    )
    return Section("history", "History", parts) if parts else None


def _measure(history: History, place: int) -> Iterator[Block]:
    """The charts beside each other, and a table of nights for each, folded."""
    drawings = [
        Drawing(f"nights-{place}-{number}", chart)
        for number, series in enumerate(history.series[:_SERIES], start=1)
        if (chart := charts.nights(series, history.measure))
    ]
    if drawings:
        yield Drawings(tuple(drawings))
    for number, series in enumerate(history.series[:_SERIES], start=1):
        yield _series(history, series, f"history-{place}-{number}")
    if len(history.series) > _SERIES:
        yield Words(f"{_SERIES} of {len(history.series):,} series are shown; `rankledger history` has all.", "quiet")
    yield from (Words(short_text(line, _NOTE), "quiet") for line in history.remarks)


def _series(history: History, series: Series, name: str) -> Folded:
    """The nights of a model on a dataset, and its steps."""
    title = f"{isolated(short_text(series.model))} on {isolated(dataset_title(series.dataset))}"
    below = (Words(short_text(line, _NOTE), "quiet") for line in notes_below(history, series))
    nights = _table(night_table(history, series, None), name, f"Nights of {title}")
    return Folded(title, counted(len(series.nights), "night"), (nights, *below))


def _table(table: TextTable, name: str, caption: str) -> Table:
    columns = tuple(
        Column(header, "number" if numeric else "name")
        for header, numeric in zip(table.headers, table.numeric, strict=True)
    )
    return Table(name, caption, columns, (Group(tuple(tuple(map(short_text, row)) for row in table.rows)),))


def curves(figures: PageFigures) -> Section | None:
    """The curves of each dataset, the best models first; None if there are none."""
    parts = []
    for dataset in figures.leading:
        drawings = tuple(_drawings(figures, dataset))
        if drawings:
            parts.append(PagePart(dataset_title(dataset), (Drawings(drawings),)))
    return Section("curves", "Curves", tuple(parts)) if parts else None


def _drawings(figures: PageFigures, dataset: str) -> Iterator[Drawing]:
    models = figures.best_first(dataset)
    precision = charts.precision_recall(dataset, figures.page.curves, models)
    if precision:
        yield Drawing(f"precision-{short_text(dataset)}", precision)
    for place, chart in enumerate(charts.by_cutoff(dataset, figures.page.evaluation.estimates, models), start=1):
        yield Drawing(f"cutoffs-{short_text(dataset)}-{place}", chart)
