"""Plans to one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterator

from rankledger.pipeline.history.power import PowerPlan
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import Block, Drawings, Section, Words, text_table
from rankledger.pipeline.report.html.render import document
from rankledger.pipeline.report.plans import heading, needed_tables, notes
from rankledger.pipeline.report.text_table import short_text


def plan_html(plan: PowerPlan) -> str:
    """Write the page of a plan: a section for each dataset, with its tables and its power curves."""
    return document(short_text(heading(plan)), tuple(_sections(plan)))


def _sections(plan: PowerPlan) -> Iterator[Section]:
    for place, dataset in enumerate(dict.fromkeys(line.dataset for line in plan.lines), start=1):
        yield Section(f"needed-{place}", short_text(dataset), tuple(_blocks(plan, dataset)))
    yield Section("notes", "Notes", tuple(map(Words, notes(plan))))


def _blocks(plan: PowerPlan, dataset: str) -> Iterator[Block]:
    name = short_text(dataset)
    for table, kind in zip(needed_tables(plan, dataset), ("needed", "needed-slices"), strict=False):
        yield text_table(f"{kind}-{name}", table, "model")
    points = [point for point in plan.points if (point.dataset, point.slice) == (dataset, ALL)]
    chart = charts.power_by_queries(dataset, points)
    if chart is not None:
        yield Drawings(((f"power-{name}", chart),))
