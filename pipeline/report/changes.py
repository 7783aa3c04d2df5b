"""Comparisons, histories, and lists of evaluations and recorded values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Literal

from rankledger.pipeline.history.comparison import ChangeSplit, ComparisonReport, DatasetFigure, RecordPair, Side
from rankledger.pipeline.history.history import History, Night, Series
from rankledger.pipeline.inference.changepoints import FEWEST_NIGHTS, FalseSteps, LevelChange
from rankledger.pipeline.inference.tables import ALL, Comparison, QueryChange, RankedDocument
from rankledger.pipeline.record.manifest_parts import InputChange
from rankledger.pipeline.report.messages import OVERSTATED, where_it_changed
from rankledger.pipeline.report.tables import (
    FEWEST_CELLS,
    LABEL_TONES,
    MOST_CELLS,
    POOLED,
    UNSURE_NOTE,
    Interval,
    Scale,
    by_evidence,
    difference_rows,
    difference_table,
    figure,
    interval_bar,
    interval_text,
    models,
    p_value_notes,
    scale_header,
    signed,
)
from rankledger.pipeline.report.text_table import TONE_STYLES, Table, TerminalText, plain, short_text
from rankledger.pipeline.report.verdicts import list_names
from rankledger.pipeline.support.text import counted, queries

_DIGEST = 12  # characters of a digest
_NAMED = 3  # documents of a query
_NOWHERE = "not retrieved"
_ROUNDING = 1e-12  # what is left of a part if two figures are equal
_SIDES = ("before", "after")
_ROWS, _QUERIES = 8, 5  # of a screen


def query_rows(title: str, queries: Sequence[QueryChange]) -> Table:
    """Return a row per query with its scores and the graded documents whose rank changed, if any are ranked."""
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
    headers = ("model", "query", *_SIDES, "change", "graded documents")
    table = Table.of_texts(title, headers, rows, words=("model", "query", "graded documents"))
    return table if any(query.documents is not None for query in queries) else table.without("graded documents")


def _documents(documents: Sequence[RankedDocument]) -> str:
    changed = [document for document in documents if document.before != document.after]
    names = [
        f"{short_text(item.doc_id)} (grade {item.grade:g}): {item.before or _NOWHERE} → {item.after or _NOWHERE}"
        for item in changed[:_NAMED]
    ]
    if len(changed) > _NAMED:
        names.append(f"{len(changed) - _NAMED} more")
    return ", ".join(names) or ("at the ranks they had" if documents else "none")


def comparison_screen(report: ComparisonReport, *, width: int, colour: bool, everything: bool = False) -> str:
    """Write a comparison for a terminal, on one screen or with `everything`."""
    text = TerminalText(width=width, colour=colour)
    lines = comparison_lines(report)
    styles = {label: f"bold {TONE_STYLES[LABEL_TONES.get(label.lower(), '')]}".rstrip() for label, _ in lines}
    text.add_labeled(lines, styles)
    if everything:
        for table in _tables(report):
            text.add_table(table)
        text.add_gap()
        text.add(*_notes(report))
        return str(text)
    overall = [line for line in report.comparisons if line.slice == ALL]
    primary = [line for line in _list_changed(report) if line.measure == report.leading.get(line.dataset)]
    primary.sort(key=lambda line: (1.0 if line.p_corrected is None else line.p_corrected, line.model))
    names = [*(["model"] if len(report.pairs) > 1 else []), *(["dataset"] if len(report.leading) > 1 else [])]
    if rows := difference_rows(primary[:_ROWS]):
        by: Literal["dataset", "measure"] = "dataset" if "dataset" in names else "measure"
        title = f"{queries(max(line.n_queries for line in primary))} in both, {100 * report.confidence:.12g}% intervals"
        table = difference_table(title, rows, by=by, sides=_SIDES)
        table = table if any(line.mark == "empty" for line in primary[:_ROWS]) else table.without("caution")
        text.add_table(table if "model" in names else table.without("model"))
        if any(line.mark for line in primary[:_ROWS]):
            text.add(UNSURE_NOTE)
    if changes := sorted(report.largest_changes, key=lambda query: -abs(query.change))[:_QUERIES]:
        table = query_rows("Queries that changed most", changes)
        text.add_table(table if "model" in names else table.without("model"))
    hidden = {
        "difference": len(overall) - min(len(primary), _ROWS),
        "slice": sum(line.slice != ALL for line in report.comparisons),
        "query": len(report.largest_changes) - len(changes),
    }
    rest = ", ".join(counted(n, thing, "queries" if thing == "query" else "") for thing, n in hidden.items() if n > 0)
    text.add_labeled([("More", f"{rest or 'notes'}: --all, or --output changes.html")], {})
    return str(text)


def comparison_markdown(report: ComparisonReport) -> str:
    """Write a comparison in GitHub's Markdown."""
    lines = [text for words in comparison_lines(report) for text in (f"**{plain(' '.join(words))}**", "")]
    for table in _tables(report):
        lines += [f"{plain(table.caption)}:", "", *table.in_markdown(), ""]
    notes = (f"- {plain(line)}" for line in _notes(report))
    return "\n".join([*lines, *notes]).rstrip("\n") + "\n"


def comparison_data(report: ComparisonReport) -> dict[str, Any]:
    """Return a comparison as JSON can hold it."""
    data: dict[str, Any] = _without_infinity(
        {
            "records": [_pair_data(pair) for pair in report.records],
            "unlike": list(report.unlike),
            "moved": report.moved,
            "confidence": report.confidence,
            "slice_changes": [asdict(line) for line in report.slice_changes],
            "differences": [asdict(line) for line in report.comparisons if line.slice == ALL],
            "slices": [asdict(line) for line in report.comparisons if line.slice != ALL],
            "queries": [asdict(query) for query in report.largest_changes],
            "figures": [asdict(line) for line in report.figures],
            "splits": [asdict(split) for split in report.splits],
            "remarks": list(report.remarks),
            "warnings": list(report.warnings),
        }
    )
    return data


def _pair_data(pair: RecordPair) -> dict[str, Any]:
    base, candidate = (asdict(side) | {"record": str(side.record)} for side in (pair.base, pair.candidate))
    models = [{"model": model, "baseline": baseline} for model, baseline in pair.models]
    return {"base": base, "candidate": candidate, "models": models}


def _without_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinity(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinity(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _description(side: Side) -> str:
    commit = f", commit {side.commit[:12]}{' with changes' if side.dirty else ''}" if side.commit else ""
    created = datetime.fromisoformat(side.created).astimezone(UTC)
    when = f"of {created:%Y-%m-%d %H:%M} UTC{commit}"
    return f"night {side.night}, {side.evaluation_id} {when}" if side.night else f"{side.evaluation_id} {when}"


def comparison_lines(report: ComparisonReport) -> list[tuple[str, str]]:
    """Return a word and names for each side: models that are worse, better or unclear by the primary measure.

    They are followed by slices in which the change differs from the rest, by both records, and by what else differs.
    """
    lines: list[tuple[str, str]] = []
    changed = [line for line in _list_changed(report) if line.measure == report.leading.get(line.dataset)]
    for word in ("worse", "better", "unclear"):
        decided = [line for line in changed if (line.decide(1 - report.confidence) or "unclear") == word]
        names = (
            f"{models(line.model, line.baseline)}{f' on {line.dataset}' if len(report.leading) > 1 else ''}"
            for line in decided
        )
        if decided:
            measures = list_names(line.measure for line in decided)
            lines.append((word.upper(), f"{len(decided):,} of {len(changed):,} by {measures}: {list_names(names)}"))
    if unchanged := [model for pairs in report.unchanged.values() for model, _ in pairs]:
        lines.append(("SAME", f"{list_names(unchanged)}: the same score on every query"))
    if not report.moved:
        lines = [("SAME", "Every query has the same score.")]
    for change in report.slice_changes:
        names_of = models(change.model, change.baseline) if len(report.pairs) > 1 else ""
        lines.append(("SLICE", where_it_changed(change, names_of, change.dataset if len(report.leading) > 1 else "")))
    for pair in report.records:
        lines += [("BASE", _description(pair.base)), ("NEW", _description(pair.candidate))]
    return [*lines, *(("WARNING", line) for line in report.unlike)]


def _list_changed(report: ComparisonReport) -> list[Comparison]:
    """Return the differences on all queries of models that changed."""
    unchanged = {(dataset, model) for dataset, pairs in report.unchanged.items() for model, _ in pairs}
    return [
        line
        for line in report.comparisons
        if report.moved and line.slice == ALL and (line.dataset, line.model) not in unchanged
    ]


def _tables(report: ComparisonReport) -> Iterator[Table]:
    for table in (*_change_tables(report), *split_tables(report)):
        yield table if len(report.pairs) > 1 else table.without("model")


def _change_tables(report: ComparisonReport) -> Iterator[Table]:
    if not report.moved:
        return
    for dataset in dict.fromkeys(line.dataset for line in report.comparisons):
        measure = report.leading.get(dataset)
        own = [line for line in report.comparisons if line.dataset == dataset]
        lines = [line for line in _list_changed(report) if line.dataset == dataset]
        if lines:
            lines.sort(key=lambda line: line.measure != measure)
            rows = difference_rows(lines)
            yield difference_table(f"{dataset}: differences", rows, by="measure", sides=_SIDES)
        queries = [query for query in report.largest_changes if query.dataset == dataset]
        if queries:
            yield query_rows(f"{dataset}: largest changes by {measure}", queries)
        if rows := difference_rows(by_evidence(line for line in own if line.measure == measure)):
            yield difference_table(f"{dataset}: changes of slices by {measure}", rows, by="slice", sides=_SIDES)
    figures = [line for line in report.figures if line.before != line.after]
    if figures:
        yield figure_table(figures)


def figure_table(figures: Sequence[DatasetFigure]) -> Table:
    """Return a row per figure that is of a whole dataset."""
    rows = (
        (line.dataset, models(line.model, line.baseline), line.measure, figure(line.before), figure(line.after))
        for line in figures
    )
    words = ("dataset", "model", "measure")
    return Table.of_texts("figures of all lists together", (*words, *_SIDES), rows, words=words)


def split_tables(report: ComparisonReport) -> Iterator[Table]:
    """Yield a table per dataset with a row per figure and per part of its change."""
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
            yield Table.of_texts(title, headers, rows, words=("model", "measure", "due to"))


def _is_still(split: ChangeSplit) -> bool:
    return all(abs(part.amount) < _ROUNDING and not part.reason for part in split.parts)


def _notes(report: ComparisonReport) -> Iterator[str]:
    if not report.unlike:
        yield "judgments, queries and definitions are the same"
    if report.moved:
        yield from p_value_notes(report.comparisons)
        yield f"differences above 0 are better; intervals of {report.confidence:.0%}"
    if report.slice_changes:
        yield OVERSTATED
    for reason in dict.fromkeys(part.reason for split in report.splits for part in split.parts if part.reason):
        yield f"parts that cannot be separated: {reason}"
    if n_still := sum(map(_is_still, report.splits)):
        yield f"no part changed: {counted(n_still, 'figure')}"
    yield from report.remarks


_OTHER_COLUMNS = 67  # columns of the terminal that the other cells and the frame take, if ids and marks are short
_COMMIT = 8  # digits of a commit


def history_tables(history: History, *, last: int | None, width: int, colour: bool) -> str:
    """Write the nights of each series for a terminal, and below them its steps.

    `last` is the number of nights to show. None shows all.
    """
    text = TerminalText(width=width, colour=colour)
    for series in history.series:
        n_cells = min(max(width - _OTHER_COLUMNS, FEWEST_CELLS), MOST_CELLS)
        text.add_table(night_table(history, series, last, n_cells=n_cells))
        text.add(*notes_below(history, series))
    text.add_gap(bool(history.remarks))
    text.add(*history.remarks)
    return str(text)


def history_markdown(history: History, *, last: int | None) -> str:
    """Write a history in GitHub's Markdown, with intervals in numbers."""
    lines: list[str] = []
    for series in history.series:
        table = night_table(history, series, last)
        lines += [f"### {plain(table.caption)}", "", *table.in_markdown(), ""]
        lines += [*(f"- {plain(line)}" for line in notes_below(history, series)), ""]
    return "\n".join([*lines, *(f"- {plain(line)}" for line in history.remarks)]).rstrip("\n") + "\n"


def history_data(history: History, *, last: int | None) -> dict[str, Any]:
    """Return a history as JSON can hold it."""
    data = asdict(history)
    for series in data["series"]:
        series["n_nights"] = len(series["nights"])
        series["nights"] = series["nights"][_first(len(series["nights"]), last) :]
    return data


def night_table(history: History, series: Series, last: int | None, *, n_cells: int = 0) -> Table:
    """Return a row per night, with bars of `n_cells` on one scale, or with numbers if `n_cells` is 0."""
    first = _first(len(series.nights), last)
    scale = Scale.of(map(Interval.of, series.nights[first:]))
    steps = {step.date: step for step in series.steps}
    befores = [None, *series.nights]
    rows = [
        (
            night.date,
            "" if night.failure else figure(night.estimate),
            interval_bar(Interval.of(night), scale, n_cells) if n_cells else interval_text(night.ci_low, night.ci_high),
            "" if night.change is None else _change_text(night.change),
            f"{night.n_queries:,}" if night.n_queries else "",
            night.gates,
            ", ".join(_marks(night, steps.get(night.date), before)),
        )
        for night, before in list(zip(series.nights, befores, strict=False))[first:]
    ]
    of = f"{len(rows)} of " if len(rows) < len(series.nights) else ""
    dataset = "the mean of all datasets" if series.dataset == POOLED else series.dataset
    title = f"{history.measure} of {series.model} on {dataset}, {of}{counted(len(series.nights), 'night')}"
    interval = scale_header(scale, n_cells) if n_cells else "interval"
    headers = ("night", "value", interval, "change", "n", "gates", "marks")
    unbroken = (interval,) if n_cells else ()
    return Table.of_texts(title, headers, rows, words=("night", "gates", "marks"), unbroken=unbroken)


def _change_text(change: float) -> str:
    if 0 < abs(change) < 0.00005:
        return f"{'+' if change > 0 else '-'}<0.0001"
    return signed(change)


def _marks(night: Night, step: LevelChange | None, before: Night | None) -> Iterator[str]:
    if night.failure:
        yield "not evaluated"
    if night.promoted:
        yield f"promoted {night.promoted}"
    if step is not None:
        yield f"{step.tier} {signed(step.after - step.before)}{' for 1 night' if step.n_nights == 1 else ''}"
    for change in night.breaks:
        if change.kind == "rankledger":
            yield f"rankledger {change.before or '?'} → {change.after or '?'}"
        else:
            yield f"{change.kind} changed"
    if night.mark:
        yield night.mark
    n_before = before.n_undefined if before and not before.failure else None
    if night.estimate is not None and n_before not in (None, night.n_undefined):
        yield f"undefined on {night.n_undefined:,} of {queries(night.n_queries)}"
    if night.commit and before and before.commit not in (None, night.commit):
        yield f"commit {night.commit[:_COMMIT]}"


def break_lines(histories: Iterable[History]) -> list[str]:
    """Yield the reasons why nights cannot be compared with those before, each change once."""
    lines: dict[tuple[int, str], None] = {}
    for history in histories:
        for series in (own for own in history.series if own.dataset != POOLED):  # which has the breaks of all others
            for place, night in enumerate(series.nights[1:], start=1 - len(series.nights)):
                for change in night.breaks:
                    lines[place, f"{night.date}: {_what_changed(history, series, change)}"] = None
    return [line for _, line in sorted(lines)]


def _what_changed(history: History, series: Series, change: InputChange) -> str:
    before, after = (short_text(value, _DIGEST) if value else "none" for value in (change.before, change.after))
    if change.kind == "rankledger":
        return f"rankledger {before} → {after}"
    what = f"definition of {history.measure} on" if change.kind == "definition" else f"{change.kind} of"
    return f"the {what} {series.dataset} changed ({before} → {after})"


def notes_below(history: History, series: Series) -> Iterator[str]:
    """Yield notes on the steps of a series, and the reasons why outputs were not evaluated."""
    for step in series.steps:
        change = signed(step.after - step.before)
        error = f", standard error {figure(step.std_error)}" if step.std_error else ""
        levels = f"{figure(step.before)} → {figure(step.after)}"
        lasting = f"{_direction(history, step)}, for {counted(step.n_nights, 'night')}"
        between = "" if step.earliest == step.latest else f" ({step.earliest} to {step.latest})"
        yield f"{step.tier} {step.date}{between}: {levels} ({change}{error}){lasting}"
    yield _basis(series)
    if series.steps and series.false_steps:
        yield _false_steps(series.false_steps, series.correlation or 0.0)
    yield from (f"{night.date} was not evaluated: {night.failure}" for night in series.nights if night.failure)


def _basis(series: Series) -> str:
    if series.noise is None:
        there = "there is 1" if series.n_different == 1 else f"there are {series.n_different}"
        return f"steps need at least {FEWEST_NIGHTS} nights whose figures differ; {there}"
    if series.noise == 0:
        return f"{counted(len(series.steps), 'step')}: most nights repeat the figure before, and every change is a step"
    n_steps = sum(step.tier == "step" for step in series.steps)
    unsure = len(series.steps) - n_steps
    steps = counted(n_steps, "step") + (f" and {unsure:,} step or drift" if unsure else "")
    correlated = f", correlated by {series.correlation:.2f}" if series.correlation is not None else ""
    return f"{steps}; nights differ by {series.noise:.2g} standard errors of a figure{correlated}"


def _false_steps(rates: Sequence[FalseSteps], correlation: float) -> str:
    nearest = min({rate.correlation for rate in rates}, key=lambda simulated: abs(simulated - correlation))
    rates = [rate for rate in rates if rate.correlation == nearest]
    shares = ", ".join(f"{rate.step:.0%} / {rate.step_or_drift:.0%} ({rate.noise})" for rate in rates)
    return f"false alarms in {rates[0].n_nights} nights, step / step or drift: {shares}"


def _direction(history: History, step: LevelChange) -> str:
    if history.direction == "neither":
        return ""
    return ", better" if (step.after > step.before) == (history.direction == "higher") else ", worse"


def _first(n_nights: int, last: int | None) -> int:
    return 0 if last is None else max(0, n_nights - last)
