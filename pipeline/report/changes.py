"""What changed between two evaluations: tables for a terminal or Markdown, and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rankledger.pipeline.report.tables import differences, figure, models, signed
from rankledger.pipeline.report.text_table import TerminalText, TextTable, clipped, counted, plain
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

_NAMED = 3  # documents of a query that are named
_NOWHERE = "not retrieved"


def query_rows(title: str, moved: Sequence[QueryChange]) -> TextTable:
    """A row per query: both scores, the change, and, where any are ranked, the relevant documents that moved.

    Args:
        title: of the table.
        moved: the queries.
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
        for query in moved
    ]
    headers = ("model", "query", "before", "after", "change", "relevant documents")
    sheet = TextTable(title, headers, (False, False, True, True, True, False), tuple(rows))
    ranked = any(query.documents is not None for query in moved)
    return sheet if ranked else sheet.only(headers[:-1])


def _documents(documents: Sequence[RankedDocument]) -> str:
    """Those whose rank is another, the best first, and how many are not named."""
    moved = [document for document in documents if document.before != document.after]
    named = [
        f"{clipped(found.doc_id)} (grade {found.grade:g}): {found.before or _NOWHERE} → {found.after or _NOWHERE}"
        for found in moved[:_NAMED]
    ]
    if len(moved) > _NAMED:
        named.append(f"{len(moved) - _NAMED} more")
    return ", ".join(named) or ("at the ranks they had" if documents else "none")


_ROUNDING = 1e-12  # what is left of a part where two figures are the same


def tables(movement: ComparisonReport, *, width: int, colour: bool) -> str:
    """What is compared, and a table of the differences, of the queries, of the slices and of the parts.

    Args:
        movement: what to show.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    screen = TerminalText(width=width, colour=colour)
    screen.say(*_heading(movement))
    screen.say(_verdict(movement), style="bold")
    for sheet in _sheets(movement):
        screen.draw(sheet.for_terminal(width))
    screen.say(*_remarks(movement))
    return str(screen)


def markdown(movement: ComparisonReport) -> str:
    """The same in GitHub's Markdown; ids stand as they are."""
    lines = [f"### {plain(_title(movement))}", ""]
    lines += [*(f"- {plain(line)}" for line in _heading(movement)), "", f"**{plain(_verdict(movement))}**", ""]
    for sheet in _sheets(movement):
        lines += [f"{plain(sheet.title)}:", "", *sheet.in_markdown(), ""]
    return "\n".join([*lines, *(f"- {plain(line)}" for line in _remarks(movement))]).rstrip("\n") + "\n"


def as_data(movement: ComparisonReport) -> dict[str, Any]:
    """What moved as JSON can hold it, every number in full; None where there is none."""
    found: dict[str, Any] = _plain_numbers(
        {
            "records": [_pair_data(pair) for pair in movement.records],
            "unlike": list(movement.unlike),
            "moved": movement.moved,
            "confidence": movement.confidence,
            "differences": [asdict(line) for line in movement.comparisons if line.slice == ALL],
            "slices": [asdict(line) for line in movement.comparisons if line.slice != ALL],
            "queries": [asdict(query) for query in movement.movers],
            "figures": [asdict(figure) for figure in movement.figures],
            "splits": [asdict(split) for split in movement.splits],
            "remarks": list(movement.remarks),
            "warnings": list(movement.warnings),
        }
    )
    return found


def _pair_data(pair: RecordPair) -> dict[str, Any]:
    return {
        "base": _side_data(pair.base),
        "candidate": _side_data(pair.candidate),
        "models": [{"model": model, "baseline": baseline} for model, baseline in pair.models],
    }


def _side_data(side: Side) -> dict[str, Any]:
    return asdict(side) | {"record": str(side.record)}


def _plain_numbers(value: Any) -> Any:
    """The value as JSON has it, which knows no NaN and no infinity."""
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_numbers(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _title(movement: ComparisonReport) -> str:
    return ", ".join(f"{pair.base.evaluation_id} → {pair.candidate.evaluation_id}" for pair in movement.records)


def _heading(movement: ComparisonReport) -> Iterator[str]:
    for pair in movement.records:
        yield f"base: {_described(pair.base)}"
        yield f"candidate: {_described(pair.candidate)}"
        yield f"models: {', '.join(models(*names) for names in pair.models)}"
    if movement.unlike:
        yield from movement.unlike
    else:
        yield "judgments, queries and definitions are the same"


def _described(side: Side) -> str:
    commit = f", commit {side.commit[:12]}{' with changes' if side.dirty else ''}" if side.commit else ""
    created = datetime.fromisoformat(side.created).astimezone(UTC)
    return f"{side.evaluation_id} of {created:%Y-%m-%d %H:%M} UTC{commit}"


def _verdict(movement: ComparisonReport) -> str:
    if not movement.moved:
        return "nothing moved: every query has the score it had"
    lines = [line.without_rounding() for line in movement.comparisons if line.slice == ALL]
    better = sum(line.ci_low is not None and line.ci_low > 0 and not line.mark for line in lines)
    worse = sum(line.ci_high is not None and line.ci_high < 0 and not line.mark for line in lines)
    sparse = sum(line.mark == "sparse" for line in lines)
    unsure = f"; {sparse} rest on too few queries to tell (sparse)" if sparse else ""
    return (
        f"of {counted(len(lines), 'difference')} {better:,} have the whole interval above 0 and {worse:,} below{unsure}"
    )


def _sheets(movement: ComparisonReport) -> Iterator[TextTable]:
    """The tables that have a row; models are named where there are several pairs."""
    for sheet in _tables(movement):
        yield sheet if len(movement.pairs) > 1 else sheet.only([name for name in sheet.headers if name != "model"])


def _tables(movement: ComparisonReport) -> Iterator[TextTable]:
    if movement.moved:
        for dataset in dict.fromkeys(line.dataset for line in movement.comparisons):
            own = [line.without_rounding() for line in movement.comparisons if line.dataset == dataset]
            lines = [line for line in own if line.slice == ALL and line.model not in _unmoved(movement, dataset)]
            measure = movement.leading.get(dataset)
            if lines:
                led = sorted(lines, key=lambda line: line.measure != measure)
                yield differences(f"{dataset}: differences", led, "measure")
            moved = [query for query in movement.movers if query.dataset == dataset]
            if moved:
                yield query_rows(f"{dataset}: the queries that moved most by {measure}", moved)
            slices = [line for line in own if line.slice != ALL and line.measure == measure and line.difference]
            if slices:
                slices.sort(key=lambda line: -abs(line.difference or 0.0))
                yield differences(f"{dataset}: the slices that moved by {measure}", slices, "slice")
        figures = [figure for figure in movement.figures if figure.before != figure.after]
        if figures:
            yield _figures(figures)
    for dataset in dict.fromkeys(split.dataset for split in movement.splits):
        splits = [split for split in movement.splits if split.dataset == dataset and not _is_still(split)]
        if splits:
            yield _parts(f"{dataset}: what the change is due to", splits)


def _unmoved(movement: ComparisonReport, dataset: str) -> list[str]:
    """The models whose every query has the score it had; where none moved at all, no table is shown anyway."""
    lines = [line for line in movement.comparisons if line.dataset == dataset]
    moved = {line.model for line in lines if line.difference != 0 or line.mark != "degenerate"}
    return [model for model in dict.fromkeys(line.model for line in lines) if model not in moved]


def _is_still(split: ChangeSplit) -> bool:
    """Whether no part of a change amounts to anything; parts that cannot be told apart may cancel each other."""
    return all(abs(part.amount) < _ROUNDING and not part.reason for part in split.parts)


def _figures(figures: Sequence[DatasetFigure]) -> TextTable:
    rows = [
        (
            found.dataset,
            models(found.model, found.baseline),
            found.measure,
            figure(found.before),
            figure(found.after),
        )
        for found in figures
    ]
    headers = ("dataset", "model", "measure", "before", "after")
    return TextTable("figures of all lists together", headers, (False, False, False, True, True), tuple(rows))


def _parts(title: str, splits: Sequence[ChangeSplit]) -> TextTable:
    """A line per figure, and one per part of its change."""
    rows: list[tuple[str, ...]] = []
    for split in splits:
        named = (models(split.model, split.baseline), split.measure)
        rows.append((*named, figure(split.before), figure(split.after), signed(split.change), "all of it"))
        rows += [("", "", "", "", signed(part.amount), " and ".join(part.causes)) for part in split.parts]
    headers = ("model", "measure", "before", "after", "change", "due to")
    return TextTable(title, headers, (False, False, True, True, True, False), tuple(rows))


def _remarks(movement: ComparisonReport) -> Iterator[str]:
    """What to know beside the figures."""
    if movement.moved:
        for dataset in dict.fromkeys(line.dataset for line in movement.comparisons):
            if unmoved := _unmoved(movement, dataset):
                yield f"the same score on every query of {dataset}: {', '.join(unmoved)}"
        families = dict.fromkeys(line.family for line in movement.comparisons if line.family)
        yield from (f"corrected p: among {family}" for family in families)
        yield f"differences above 0 are for the better; intervals of {movement.confidence:.0%}"
        yield "+ / = / −: queries on which it is better, equal, worse"
    for reason in dict.fromkeys(part.reason for split in movement.splits for part in split.parts if part.reason):
        yield f"parts that cannot be told apart: {reason}"
    if n_still := sum(map(_is_still, movement.splits)):
        yield f"not moved in any part: {counted(n_still, 'figure')}"
    yield from movement.remarks
