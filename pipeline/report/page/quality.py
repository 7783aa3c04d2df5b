"""What is to be known of the data: queries without output or relevant documents, ties, depth, and what is unjudged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.report.page import charts
from pipeline.report.page.blocks import Block, Column, Drawing, Drawings, Group, Part, Row, Section, Table, Words, shown
from pipeline.report.page.figures import Figures
from pipeline.report.page.wording import queries
from pipeline.tables import Quality

__all__ = ["quality"]

_WARNING = 600  # letters
_HEADS = (
    *("model", "rows", "queries without output", "queries without judgments, ignored", "judged down to rank 10"),
    *("tied scores", "unpaired ratings", "documents retrieved: least", "median", "most"),
)


def quality(figures: Figures) -> Section:
    """A table per dataset, and how much is judged at each rank."""
    parts = tuple(
        Part(shown(name), tuple(_dataset(figures, name, described)))
        for name, described in figures.page.manifest["datasets"].items()
    )
    return Section("quality", "Data quality", parts)


def _dataset(figures: Figures, dataset: str, described: Mapping[str, Any]) -> Iterator[Block]:
    n_queries, n_without = described.get("n_queries"), described.get("n_without_relevant")
    if n_queries is not None:
        without = "" if n_without is None else f", {n_without:,} of them without relevant documents"
        yield Words(f"{queries(n_queries)} with judgments or ratings{without}.")
    for warning in figures.page.evaluation.data_warnings:
        if warning.dataset == dataset:
            of = f"{shown(warning.model)}: " if warning.model else ""
            yield Words(f"{of}{shown(warning.warning, _WARNING)}.", "warn")
    outputs = [output for output in figures.page.manifest["outputs"] if output["dataset"] == dataset]
    if outputs:
        columns = tuple(Column(head, "name" if head == "model" else "number") for head in _HEADS)
        group = Group(tuple(map(_row, outputs)))
        name = shown(dataset)
        yield Table(f"quality-{name}", f"What the outputs on {name} hold", columns, (group,), searched="model")
    points = [point for point in figures.page.curves if point.dataset == dataset and point.curve == "judged"]
    chart = charts.judged_by_rank(dataset, points, figures.best_first(dataset)) if points else None
    if chart:
        yield Drawings((Drawing(f"judged-{shown(dataset)}", chart),))


def _row(output: Mapping[str, Any]) -> Row:
    known = Quality(**output["quality"])
    depth = output.get("depth") or (None, None, None)
    return (
        shown(output["model"]),
        f"{known.n_rows:,}",
        f"{known.n_missing_queries:,}",
        f"{known.n_unjudged_queries:,}",
        "" if known.judged_at_10 is None else f"{known.judged_at_10:.1%}",
        f"{known.n_tied:,}",
        f"{known.n_unpaired:,}",
        *("" if value is None else f"{value:g}" for value in depth),
    )
