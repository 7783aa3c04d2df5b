"""Plans: required numbers of queries of gates, and their power."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.history.comparison import PowerPlan, RecordPair
from rankledger.pipeline.inference.power import PowerLine, PowerPoint
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import Block, Section, Words, write_charts
from rankledger.pipeline.report.html.render import document
from rankledger.pipeline.report.tables import figure, models, signed
from rankledger.pipeline.report.text_table import Table, TerminalText, plain, short_text

_MARKS = {
    "few": f"under {LEAST_CLUSTERS}",
    "replicates": "replicates differ",
    "sparse": "a few decide how much it varies",
    "degenerate": "all differ alike",
    "empty": "no query in common",
}


def plan_tables(plan: PowerPlan, *, width: int, colour: bool) -> str:
    """Write the required queries and the power curves for a terminal."""
    text = TerminalText(width=width, colour=colour)
    text.add(heading(plan))
    for table in _tables(plan):
        text.add_table(table)
    text.add(*notes(plan))
    return str(text)


def plan_markdown(plan: PowerPlan) -> str:
    """Write a plan in GitHub's Markdown."""
    lines = [f"### {plain(heading(plan))}", ""]
    for table in _tables(plan):
        lines += [f"{plain(table.caption)}:", "", *table.in_markdown(), ""]
    return "\n".join([*lines, *(f"- {plain(line)}" for line in notes(plan))]) + "\n"


def plan_data(plan: PowerPlan) -> dict[str, Any]:
    """Return a plan as JSON can hold it."""
    return {
        "records": [
            {
                "base": pair.base.evaluation_id,
                "candidate": pair.candidate.evaluation_id,
                "models": [{"model": model, "baseline": baseline} for model, baseline in pair.models],
            }
            for pair in plan.records
        ],
        **{name: getattr(plan, name) for name in ("margin", "change", "wanted")},
        "needed": [asdict(line) for line in plan.lines],
        "curve": [asdict(point) for point in plan.points],
        "remarks": list(plan.remarks),
        "warnings": list(plan.warnings),
    }


def heading(plan: PowerPlan) -> str:
    """Return a heading such as `ndcg@10: margin 0.01, true change 0, power 0.8`."""
    measures = ", ".join(dict.fromkeys(line.measure for line in plan.lines))
    change = signed(plan.change) if plan.change else "0"
    return f"{measures}: margin {plan.margin:g}, true change {change}, power {plan.wanted:.4g}"


def _tables(plan: PowerPlan) -> Iterator[Table]:
    for dataset in dict.fromkeys(line.dataset for line in plan.lines):
        whole, *of_slices = needed_tables(plan, dataset)
        yield whole
        if points := [point for point in plan.points if (point.dataset, point.slice) == (dataset, ALL)]:
            yield _curves(f"{dataset}: power by number of queries", points)
        yield from of_slices


def needed_tables(plan: PowerPlan, dataset: str) -> Iterator[Table]:
    """Yield the required queries of a dataset, and of its slices if they are planned."""
    for what, of_slices in (("queries needed", False), ("queries needed by slices", True)):
        own = [line for line in plan.lines if line.dataset == dataset and (line.slice != ALL) == of_slices]
        if own:
            yield _needed(f"{dataset}: {what}", own, plan.confidence)


def _needed(title: str, lines: Sequence[PowerLine], confidence: float) -> Table:
    columns = {
        "model": [models(line.model, line.baseline) for line in lines],
        "slice": [line.slice for line in lines],
        "queries": [_counts(line.n_queries) for line in lines],
        "power now": [_share(line.power) for line in lines],
        "detectable now": ["" if line.detectable is None else figure(line.detectable) for line in lines],
        "clusters needed": [_counts(line.clusters_needed) for line in lines],
        "needed": [_counts(line.queries_needed) for line in lines],
        f"{100 * confidence:g}% interval": [_counts(line.queries_low, line.queries_high) for line in lines],
        "mark": [line.mark for line in lines],
    }
    omitted = {
        "slice": all(line.slice == ALL for line in lines),
        "clusters needed": all(line.n_clusters == line.n_queries for line in lines),
        "mark": not any(line.mark for line in lines),
    }
    table = Table.of_texts(title, columns, zip(*columns.values(), strict=True), words=("model", "slice", "mark"))
    return table.without(*(header for header, is_omitted in omitted.items() if is_omitted))


def _curves(title: str, points: Sequence[PowerPoint]) -> Table:
    sizes = list(dict.fromkeys(point.n_queries for point in points))
    pairs = dict.fromkeys((point.model, point.baseline) for point in points)
    known = {(point.model, point.baseline, point.n_queries): point.power for point in points}
    rows = ((models(*pair), *(_share(known.get((*pair, n))) for n in sizes)) for pair in pairs)
    return Table.of_texts(title, ("model", *map(_counts, sizes)), rows, words=("model",))


def notes(plan: PowerPlan) -> Iterator[str]:
    """Yield what could not be planned with the reasons, the level, and the records."""
    yield from (line.reason for line in plan.lines if line.slice == ALL and line.reason)
    if marks := dict.fromkeys(line.mark for line in plan.lines if line.mark and line.slice != ALL):
        yield f"no plan for these slices: {'; '.join(f'{mark}, {_MARKS[mark]}' for mark in marks)}"
    planned = [line for line in plan.lines if not line.mark]
    yield f"level: {100 * plan.confidence:.4g}%, bootstrap.confidence, at which a gate passes however many lines it has"
    if any(line.clusters_needed == LEAST_CLUSTERS for line in planned):
        yield "equal ends of an interval: the fewest queries that are planned, whatever the margin"
    yield f"planned by {', '.join(_sources(plan))}; intervals are due to the variance being an estimate"
    yield from plan.remarks


def _sources(plan: PowerPlan) -> Iterator[str]:
    candidates: dict[str, list[RecordPair]] = {}
    for pair in plan.records:
        candidates.setdefault(pair.candidate.evaluation_id, []).append(pair)
    for candidate, pairs in candidates.items():
        bases = [_base(pair, alone=len(pairs) == 1) for pair in pairs]
        yield candidate if bases == [candidate] else f"{candidate} against {' and '.join(bases)}"


def _base(pair: RecordPair, *, alone: bool) -> str:
    names = "" if alone else f" ({', '.join(model for model, _ in pair.models)})"
    return f"{pair.base.evaluation_id}{names}"


def _counts(*amounts: int | None) -> str:
    return "" if None in amounts else " to ".join(f"{amount:,}" for amount in amounts)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


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
        yield replace(table, name=f"{kind}-{name}", searched="model")
    points = [point for point in plan.points if (point.dataset, point.slice) == (dataset, ALL)]
    chart = charts.power_by_queries(dataset, points)
    if chart is not None:
        yield write_charts([(f"power-{name}", chart)])
