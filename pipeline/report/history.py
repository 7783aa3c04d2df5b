"""The history of a figure, the list of evaluations, and where a published figure may come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rankledger.pipeline.report.tables import (
    FEWEST_CELLS,
    MOST_CELLS,
    POOLED,
    Interval,
    Scale,
    figure,
    interval_bar,
    interval_text,
    scale_header,
    signed,
)
from rankledger.pipeline.report.text_table import TerminalText, TextTable, byte_size, counted, plain
from rankledger.pipeline.types.views import (
    FigureMatch,
    History,
    LevelChange,
    Night,
    RecordedFigure,
    RecordList,
    RecordSummary,
    Series,
    SeriesBreak,
)

__all__ = [
    "figure_matches",
    "history_data",
    "markdown",
    "night_table",
    "notes_below",
    "record_list",
    "records_data",
    "tables",
]

_OTHER_COLUMNS = 67  # columns of the terminal that the other cells and the frame take, if ids and marks are short
_COMMIT = 8  # digits of a commit
_FIGURES = 50  # that round to a published one: more were published with too few digits to tell


def tables(history: History, *, last: int | None, width: int, colour: bool) -> str:
    """A table per model and dataset with an interval bar for each night, and below it the steps.

    Args:
        history: what to show.
        last: how many nights to show, the last; None shows all. Steps are those of all nights.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    text = TerminalText(width=width, colour=colour)
    for series in history.series:
        n_cells = min(max(width - _OTHER_COLUMNS, FEWEST_CELLS), MOST_CELLS)
        text.add_table(night_table(history, series, last, n_cells=n_cells))
        text.add(*notes_below(history, series), "")
    text.add(*history.remarks)
    return str(text)


def markdown(history: History, *, last: int | None) -> str:
    """The same in GitHub's Markdown, with intervals in numbers."""
    lines: list[str] = []
    for series in history.series:
        table = night_table(history, series, last)
        lines += [f"### {plain(table.title)}", "", *table.in_markdown(), ""]
        lines += [*(f"- {plain(line)}" for line in notes_below(history, series)), ""]
    return "\n".join([*lines, *(f"- {plain(line)}" for line in history.remarks)]).rstrip("\n") + "\n"


def history_data(history: History, *, last: int | None) -> dict[str, Any]:
    """The history as JSON can hold it, every number in full; None if there is none."""
    data = asdict(history)
    for series in data["series"]:
        series["n_nights"] = len(series["nights"])
        series["nights"] = series["nights"][_first(len(series["nights"]), last) :]
    return data


def night_table(history: History, series: Series, last: int | None, *, n_cells: int = 0) -> TextTable:
    """A row per night with its figures.

    Args:
        history: what the series is of.
        series: the nights of a model on a dataset.
        last: how many nights to show, the last; None shows all.
        n_cells: the width of interval bars, all of one scale, which stands in the header; 0 writes numbers instead.
    """
    first = _first(len(series.nights), last)
    scale = Scale.of(map(Interval.of, series.nights[first:]))
    steps = {step.date: step for step in series.steps}
    commits = [None, *(night.commit for night in series.nights)]
    rows = [
        (
            night.date,
            "" if night.failure else figure(night.estimate),
            interval_bar(Interval.of(night), scale, n_cells) if n_cells else interval_text(night.ci_low, night.ci_high),
            "" if night.change is None else signed(night.change),
            f"{night.n_queries:,}" if night.n_queries else "",
            night.gates,
            ", ".join(_marks(night, steps.get(night.date), commit)),
        )
        for night, commit in list(zip(series.nights, commits, strict=False))[first:]
    ]
    of = f"{len(rows)} of " if len(rows) < len(series.nights) else ""
    dataset = "the mean of all datasets" if series.dataset == POOLED else series.dataset
    title = f"{history.measure} of {series.model} on {dataset}, {of}{counted(len(series.nights), 'night')}"
    interval = scale_header(scale, n_cells) if n_cells else "interval"
    headers = ("night", "figure", interval, "change", "n", "gates", "marks")
    numeric = (False, True, not n_cells, True, True, False, False)
    return TextTable(title, headers, numeric, tuple(rows), fixed=(interval,))


def _marks(night: Night, step: LevelChange | None, commit_before: str | None) -> Iterator[str]:
    """What to know of a night beside its figures."""
    if night.failure:
        yield "not evaluated"
    if step is not None:
        yield f"step {signed(step.after - step.before)}{' for 1 night' if step.n_nights == 1 else ''}"
    yield from map(_break, night.breaks)
    if night.mark:
        yield night.mark
    if night.commit and commit_before and night.commit != commit_before:
        yield f"commit {night.commit[:_COMMIT]}"


def _break(change: SeriesBreak) -> str:
    """What changed, in a few words."""
    if change.kind == "rankledger":
        return f"rankledger {change.before or '?'} → {change.after or '?'}"
    return f"{change.kind} changed" if change.before and change.after else f"{change.kind} may have changed"


def notes_below(history: History, series: Series) -> Iterator[str]:
    """All steps of a series, whatever nights are shown; what they rest on; and why outputs were not evaluated."""
    for step in series.steps:
        change = signed(step.after - step.before)
        error = f", standard error {figure(step.std_error)}" if step.std_error else ""
        levels = f"{figure(step.before)} → {figure(step.after)}"
        lasting = f"{_direction(history, step)}, for {counted(step.n_nights, 'night')}"
        yield f"step {_dates(step)}: {levels} ({change}{error}){lasting}"
    yield _basis(series)
    if series.correlated:
        yield (
            f"successive nights are correlated ({series.correlation:.2f}): steps are tested against independent noise, "
            "so some of these may be chance"
        )
    yield from (f"{night.date} was not evaluated: {night.failure}" for night in series.nights if night.failure)


def _basis(series: Series) -> str:
    if series.noise is None:
        return "steps were not looked for: too few nights that differ"
    if series.noise == 0:
        return f"{counted(len(series.steps), 'step')}: most nights repeat the figure before, and every change is a step"
    errors = f"nights differ by {series.noise:.2g} standard errors of a figure"
    return f"{counted(len(series.steps), 'step')} at 95% confidence for all together; {errors}"


def _dates(step: LevelChange) -> str:
    between = "" if step.earliest == step.latest else f" ({step.earliest} to {step.latest})"
    return f"{step.date}{between}"


def _direction(history: History, step: LevelChange) -> str:
    """Whether a step is better or worse; empty if neither end is."""
    if history.direction == "neither":
        return ""
    return ", better" if (step.after > step.before) == (history.direction == "higher") else ", worse"


def _first(n_nights: int, last: int | None) -> int:
    """The index of the first night to show."""
    return 0 if last is None else max(0, n_nights - last)


def record_list(records: RecordList, *, width: int) -> str:
    """A line per evaluation, most recent first."""
    headers = ("evaluation", "night", "models", "datasets", "gates", "failures", "MLflow", "size")
    numeric = (False, False, True, True, False, True, False, True)
    rows = tuple(
        (
            entry.evaluation_id,
            entry.date + (" again" if entry.repeats else ""),
            str(entry.n_models),
            str(entry.n_datasets),
            entry.gates,
            str(entry.n_failures or ""),
            _delivered(entry),
            byte_size(entry.size),
        )
        for entry in records.evaluations
    )
    title = f"{records.place}: {counted(len(rows), 'evaluation')}"
    optional = ("size", "datasets", "models", "failures")
    table = TextTable(title, headers, numeric, rows, fixed=headers[:1], optional=optional)
    return _text([table], records.remarks, width)


def figure_matches(match: FigureMatch, *, width: int) -> str:
    """A line per figure that rounds to the published one, most recent first."""
    if not match.figures:
        by = f" by {match.measure}" if match.measure else ""
        none = f"no figure{by} in {counted(match.n_records, 'record')} rounds to {match.published}"
        return _text([], [none, *match.remarks], width)
    headers = ("evaluation", "night", "dataset", "model", "slice", "measure", "figure", "interval")
    numeric = (False, False, False, False, False, False, True, True)
    rows = tuple(_figure_row(line) for line in match.figures[:_FIGURES])
    among = f"{len(match.figures):,} in {counted(match.n_records, 'record')}"
    title = f"{match.measure or 'figure'} that rounds to {match.published}: {among}"
    table = TextTable(title, headers, numeric, rows, fixed=headers[:1], optional=("interval", "night", "slice"))
    if match.measure:
        table = table.only([name for name in headers if name != "measure"])
    return _text([table], [*_match_notes(match), *match.remarks], width)


def records_data(records: RecordList | FigureMatch) -> dict[str, Any]:
    """Either as JSON can hold it."""
    return asdict(records)


def _figure_row(line: RecordedFigure) -> tuple[str, ...]:
    names = (line.evaluation_id, line.date, line.dataset, line.model, line.slice, line.measure)
    return (*names, f"{line.estimate:.6f}", interval_text(line.ci_low, line.ci_high))


def _match_notes(match: FigureMatch) -> Iterator[str]:
    """How many figures are not shown, and whether the measure has several definitions in the records."""
    if len(match.figures) > _FIGURES:
        yield f"{len(match.figures) - _FIGURES:,} more; --json has all"
    for measure in dict.fromkeys(line.measure for line in match.figures):
        definitions = dict.fromkeys(line.fingerprint for line in match.figures if line.measure == measure)
        if len(definitions) > 1:
            yield f"{measure} has {len(definitions)} definitions in these records: {', '.join(definitions)}"


def _delivered(entry: RecordSummary) -> str:
    """Whether the record is in MLflow."""
    if entry.delivered is not None:
        return "delivered"
    return "not yet" if entry.wanted else ""


def _text(tables: Sequence[TextTable], lines: Sequence[str], width: int) -> str:
    text = TerminalText(width=width)
    for table in tables:
        text.add_table(table)
    text.add(*lines)
    return str(text)
