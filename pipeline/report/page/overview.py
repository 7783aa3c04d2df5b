"""Several evaluations side by side: the figures of every model by the leading measure of each dataset."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.report.boards import ALL, called
from pipeline.report.differences import figure
from pipeline.report.likeness import shared_leading, unlike
from pipeline.report.page.bars import estimate_scale
from pipeline.report.page.blocks import Block, Cell, Column, Group, Section, Table, Words, shown
from pipeline.report.page.figures import Figures
from pipeline.report.page.wording import interval
from pipeline.tables import Estimate

__all__ = ["overview"]


def overview(found: Sequence[Figures]) -> Section:
    """A row per model and a column per evaluation, dataset by dataset."""
    pages = [figures.page for figures in found]
    columns = (Column("model", "name"), *(Column(shown(figures.page.title), "bar") for figures in found))
    groups = tuple(_group(found, dataset, measure) for dataset, measure in shared_leading(pages).items())
    table = Table("overview", "Figures by the leading measure of each dataset", columns, groups, searched="model")
    blocks: list[Block] = [table, *(Words(text, "warn") for text in map(shown, unlike(pages)))]
    return Section("overview", "Overview", tuple(blocks))


def _group(found: Sequence[Figures], dataset: str, measure: str) -> Group:
    """The models on a dataset, in the order of the first evaluation that has them."""
    lines = [figures.estimates.get((dataset, ALL, measure), {}) for figures in found]
    scale = estimate_scale(line for board in lines for line in board.values())

    def cell(line: Estimate | None) -> str | Cell:
        if line is None:
            return ""
        text = f"{figure(line.estimate)} {interval(line, figure)}"
        return scale.cell(line.ci_low, line.estimate, line.ci_high, text.strip())

    models = dict.fromkeys(model for board in lines for model in board)
    rows = tuple((shown(model), *(cell(board.get(model)) for board in lines)) for model in models)
    return Group(rows, title=f"{shown(called(dataset))}: {measure}", note=f"bars from {scale.written}")
