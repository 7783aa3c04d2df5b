"""What changed between two evaluations: tables for a terminal or Markdown, and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rankledger.pipeline.report.tables import difference_rows, difference_table, families, figure, models, signed
from rankledger.pipeline.report.text_table import TerminalText, TextTable, counted, plain, short_text
from rankledger.pipeline.types.changes import (
    ChangeSplit,
    ComparisonReport,
    DatasetFigure,
    QueryChange,
    RankedDocument,
    RecordPair,
    Side,
)
from rankledger.pipeline.types.results import ALL

__all__ = ["as_data", "markdown", "query_rows", "tables"]

_NAMED = 3  # documents of a query
_NOWHERE = "not retrieved"
_ROUNDING = 1e-12  # what is left of a part if two figures are equal
_SIDES = ("before", "after")


def query_rows(title: str, queries: Sequence[QueryChange]) -> TextTable:
    """A row per query: both scores, the change and, if any are ranked, the relevant documents whose rank changed.

    Args:
        title: of the table.
        queries: the queries.
    """
    rows = [
        (
            models(query.model, query.baseline),
            query.query_id,
            figure(query.before),
            figure(query.after),
            signed(query.change),
            "" if query.documents is None else _documents(query.documents),
        )
        for query in queries
    ]
    headers = ("model", "query", *_SIDES, "change", "relevant documents")
    table = TextTable(title, headers, (False, False, True, True, True, False), tuple(rows))
    return table if any(query.documents is not None for query in queries) else table.without("relevant documents")


def _documents(documents: Sequence[RankedDocument]) -> str:
    """The documents whose rank changed, the best first, and how many are not named."""
    changed = [document for document in documents if document.before != document.after]
    names = [
        f"{short_text(item.doc_id)} (grade {item.grade:g}): {item.before or _NOWHERE} → {item.after or _NOWHERE}"
        for item in changed[:_NAMED]
    ]
    if len(changed) > _NAMED:
        names.append(f"{len(changed) - _NAMED} more")
    return ", ".join(names) or ("at the ranks they had" if documents else "none")


def tables(report: ComparisonReport, *, width: int, colour: bool) -> str:
    """What is compared, and a table of the differences, of the queries, of the slices and of the parts.

    Args:
        report: what to show.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    text = TerminalText(width=width, colour=colour)
    text.add(*_heading(report))
    text.add(_summary(report), style="bold")
    for table in _tables(report):
        text.add_table(table)
    text.add(*_notes(report))
    return str(text)


def markdown(report: ComparisonReport) -> str:
    """The same in GitHub's Markdown; ids stand as they are."""
    lines = [f"### {plain(_title(report))}", ""]
    lines += [*(f"- {plain(line)}" for line in _heading(report)), "", f"**{plain(_summary(report))}**", ""]
    for table in _tables(report):
        lines += [f"{plain(table.title)}:", "", *table.in_markdown(), ""]
    return "\n".join([*lines, *(f"- {plain(line)}" for line in _notes(report))]).rstrip("\n") + "\n"


def as_data(report: ComparisonReport) -> dict[str, Any]:
    """The report as JSON can hold it, every number in full; None if there is none."""
    data: dict[str, Any] = _without_infinity(
        {
            "records": [_pair_data(pair) for pair in report.records],
            "unlike": list(report.unlike),
            "moved": report.moved,
            "confidence": report.confidence,
            "differences": [asdict(line) for line in report.comparisons if line.slice == ALL],
            "slices": [asdict(line) for line in report.comparisons if line.slice != ALL],
            "queries": [asdict(query) for query in report.movers],
            "figures": [asdict(line) for line in report.figures],
            "splits": [asdict(split) for split in report.splits],
            "remarks": list(report.remarks),
            "warnings": list(report.warnings),
        }
    )
    return data


def _pair_data(pair: RecordPair) -> dict[str, Any]:
    return {
        "base": _side_data(pair.base),
        "candidate": _side_data(pair.candidate),
        "models": [{"model": model, "baseline": baseline} for model, baseline in pair.models],
    }


def _side_data(side: Side) -> dict[str, Any]:
    return asdict(side) | {"record": str(side.record)}


def _without_infinity(value: Any) -> Any:
    """The value as JSON has it, which knows neither NaN nor infinity."""
    if isinstance(value, dict):
        return {key: _without_infinity(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinity(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _title(report: ComparisonReport) -> str:
    return ", ".join(f"{pair.base.evaluation_id} → {pair.candidate.evaluation_id}" for pair in report.records)


def _heading(report: ComparisonReport) -> Iterator[str]:
    for pair in report.records:
        yield f"base: {_description(pair.base)}"
        yield f"candidate: {_description(pair.candidate)}"
        yield f"models: {', '.join(models(*names) for names in pair.models)}"
    yield from report.unlike or ["judgments, queries and definitions are the same"]


def _description(side: Side) -> str:
    commit = f", commit {side.commit[:12]}{' with changes' if side.dirty else ''}" if side.commit else ""
    created = datetime.fromisoformat(side.created).astimezone(UTC)
    return f"{side.evaluation_id} of {created:%Y-%m-%d %H:%M} UTC{commit}"


def _summary(report: ComparisonReport) -> str:
    if not report.moved:
        return "nothing changed: every query has the same score"
    lines = [line.without_rounding() for line in report.comparisons if line.slice == ALL]
    better = sum(line.ci_low is not None and line.ci_low > 0 and not line.mark for line in lines)
    worse = sum(line.ci_high is not None and line.ci_high < 0 and not line.mark for line in lines)
    sparse = sum(line.mark == "sparse" for line in lines)
    unsure = f"; {sparse} rest on too few queries to tell (sparse)" if sparse else ""
    return (
        f"of {counted(len(lines), 'difference')} {better:,} have the whole interval above 0 and {worse:,} below{unsure}"
    )


def _tables(report: ComparisonReport) -> Iterator[TextTable]:
    """The tables that have a row; models are named if there are several pairs."""
    for table in (*_change_tables(report), *_split_tables(report)):
        yield table if len(report.pairs) > 1 else table.without("model")


def _change_tables(report: ComparisonReport) -> Iterator[TextTable]:
    """By dataset the differences, the largest changes and the slices; and the figures that no query has."""
    if not report.moved:
        return
    for dataset in dict.fromkeys(line.dataset for line in report.comparisons):
        measure, unchanged = report.leading.get(dataset), _unchanged(report, dataset)
        own = [line for line in report.comparisons if line.dataset == dataset]
        lines = [line for line in own if line.slice == ALL and line.model not in unchanged]
        if lines:
            lines.sort(key=lambda line: line.measure != measure)
            rows = difference_rows(lines)
            yield difference_table(f"{dataset}: differences", rows, by="measure", sides=_SIDES)
        queries = [query for query in report.movers if query.dataset == dataset]
        if queries:
            yield query_rows(f"{dataset}: largest changes by {measure}", queries)
        sliced = [line for line in own if line.slice != ALL and line.measure == measure]
        rows = tuple(row for row in difference_rows(sliced) if row.line.difference)
        if rows:
            rows = tuple(sorted(rows, key=lambda row: -abs(row.line.difference or 0.0)))
            yield difference_table(f"{dataset}: changes of slices by {measure}", rows, by="slice", sides=_SIDES)
    figures = [line for line in report.figures if line.before != line.after]
    if figures:
        yield _figures(figures)


def _unchanged(report: ComparisonReport, dataset: str) -> list[str]:
    """The models whose every query has the same score; if that is all of them, no table is shown anyway."""
    lines = [line for line in report.comparisons if line.dataset == dataset]
    changed = {line.model for line in lines if line.difference != 0 or line.mark != "degenerate"}
    return [model for model in dict.fromkeys(line.model for line in lines) if model not in changed]


def _figures(figures: Sequence[DatasetFigure]) -> TextTable:
    rows = tuple(
        (line.dataset, models(line.model, line.baseline), line.measure, figure(line.before), figure(line.after))
        for line in figures
    )
    headers = ("dataset", "model", "measure", *_SIDES)
    return TextTable("figures of all lists together", headers, (False, False, False, True, True), rows)


def _split_tables(report: ComparisonReport) -> Iterator[TextTable]:
    """By dataset a line per figure, and one per part of its change."""
    for dataset in dict.fromkeys(split.dataset for split in report.splits):
        rows: list[tuple[str, ...]] = []
        for split in report.splits:
            if split.dataset == dataset and not _is_still(split):
                names = (models(split.model, split.baseline), split.measure)
                rows.append((*names, figure(split.before), figure(split.after), signed(split.change), "all of it"))
                rows += [("", "", "", "", signed(part.amount), " and ".join(part.causes)) for part in split.parts]
        if rows:
            headers = ("model", "measure", *_SIDES, "change", "due to")
            title = f"{dataset}: what the change is due to"
            yield TextTable(title, headers, (False, False, True, True, True, False), tuple(rows))


def _is_still(split: ChangeSplit) -> bool:
    """Whether no part of a change amounts to anything; parts that cannot be told apart may cancel each other."""
    return all(abs(part.amount) < _ROUNDING and not part.reason for part in split.parts)


def _notes(report: ComparisonReport) -> Iterator[str]:
    if report.moved:
        for dataset in dict.fromkeys(line.dataset for line in report.comparisons):
            if unchanged := _unchanged(report, dataset):
                yield f"the same score on every query of {dataset}: {', '.join(unchanged)}"
        yield from (f"corrected p: among {family}" for family in families(report.comparisons))
        yield f"differences above 0 are better; intervals of {report.confidence:.0%}"
        yield "+ / = / −: queries on which it is better, equal, worse"
    for reason in dict.fromkeys(part.reason for split in report.splits for part in split.parts if part.reason):
        yield f"parts that cannot be told apart: {reason}"
    if n_still := sum(map(_is_still, report.splits)):
        yield f"no part changed: {counted(n_still, 'figure')}"
    yield from report.remarks
