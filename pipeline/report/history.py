"""The history of a figure, the list of evaluations, and where a published figure may come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rankledger.pipeline.report.tables import FEWEST_CELLS, MOST_CELLS, figure, signed, text_scale
from rankledger.pipeline.report.text_table import TerminalText, TextTable, counted, plain, size
from rankledger.pipeline.support.escaping import visible
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
    "notes_below",
    "record_list",
    "records_data",
    "tables",
    "written",
]

_BESIDE = 67  # columns of the other cells and the frame, where ids and marks are short
_COMMIT = 8  # digits of a commit


def tables(history: History, *, last: int | None, width: int, colour: bool) -> str:
    """A table per model and dataset with an interval drawn for each night, and below it the steps.

    Args:
        history: what to show.
        last: how many nights to show, the last; all where it is None. Steps are those of all nights.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    screen = TerminalText(width=width, colour=colour)
    for series in history.series:
        sheet = _drawn(history, series, last, n_cells=min(max(width - _BESIDE, FEWEST_CELLS), MOST_CELLS))
        screen.draw(sheet.for_terminal(width))
        screen.say(*notes_below(history, series), "")
    screen.say(*history.remarks)
    return str(screen)


def markdown(history: History, *, last: int | None) -> str:
    """The same in GitHub's Markdown, with intervals in figures."""
    lines: list[str] = []
    for series in history.series:
        sheet = written(history, series, last)
        lines += [f"### {plain(sheet.title)}", "", *sheet.in_markdown(), ""]
        lines += [*(f"- {plain(line)}" for line in notes_below(history, series)), ""]
    return "\n".join([*lines, *(f"- {plain(line)}" for line in history.remarks)]).rstrip("\n") + "\n"


def history_data(history: History, *, last: int | None) -> dict[str, Any]:
    """The history as JSON can hold it, every number in full; None where there is none."""
    found = asdict(history)
    for series in found["series"]:
        series["n_nights"] = len(series["nights"])
        series["nights"] = series["nights"][_first(len(series["nights"]), last) :]
    return found


def _said_of_break(change: SeriesBreak) -> str:
    """What changed, in a few words."""
    if change.kind == "rankledger":
        return f"rankledger {change.before or '?'} → {change.after or '?'}"
    return f"{change.kind} changed" if change.before and change.after else f"{change.kind} may have changed"


def _drawn(history: History, series: Series, last: int | None, n_cells: int) -> TextTable:
    """For a terminal: intervals as bars, all of one scale, which the header tells."""
    sheet = written(history, series, last)
    shown = series.nights[_first(len(series.nights), last) :]
    scale = text_scale(shown, n_cells)
    place = sheet.headers.index("interval")
    rows = [(*row[:place], scale.draw(night), *row[place + 1 :]) for row, night in zip(sheet.rows, shown, strict=True)]
    headers = (*sheet.headers[:place], scale.header, *sheet.headers[place + 1 :])
    numeric = (*sheet.numeric[:place], False, *sheet.numeric[place + 1 :])
    return TextTable(sheet.title, headers, numeric, tuple(rows), drawn=(scale.header,))


def written(history: History, series: Series, last: int | None) -> TextTable:
    """A row per night with its figures, for the last nights, or all of them where that is None."""
    first = _first(len(series.nights), last)
    steps = {step.date: step for step in series.steps}
    commits = [None, *(night.commit for night in series.nights)]
    rows = [
        (
            night.date,
            "" if night.failure else figure(night.estimate),
            "" if night.ci_low is None else f"[{figure(night.ci_low)}, {figure(night.ci_high)}]",
            "" if night.change is None else signed(night.change),
            f"{night.n_queries:,}" if night.n_queries else "",
            night.gates,
            ", ".join(_marks(night, steps.get(night.date), commit)),
        )
        for night, commit in list(zip(series.nights, commits, strict=False))[first:]
    ]
    n_shown = f"{len(rows)} of " if len(rows) < len(series.nights) else ""
    title = (
        f"{history.measure} of {series.model} on {_on(series.dataset)}, {n_shown}{counted(len(series.nights), 'night')}"
    )
    headers = ("night", "figure", "interval", "change", "n", "gates", "marks")
    return TextTable(visible(title), headers, (False, True, True, True, True, False, False), tuple(rows))


def _marks(night: Night, step: LevelChange | None, commit_before: str | None) -> Iterator[str]:
    """What is to be known of a night, but for its figures."""
    if night.failure:
        yield "not evaluated"
    if step is not None:
        yield f"step {signed(step.after - step.before)}{' for 1 night' if step.n_nights == 1 else ''}"
    yield from map(_said_of_break, night.breaks)
    if night.mark:
        yield night.mark
    if night.commit and commit_before and night.commit != commit_before:
        yield f"commit {night.commit[:_COMMIT]}"


def notes_below(history: History, series: Series) -> Iterator[str]:
    """The steps, whatever nights are shown; what they rest on; and why outputs were not evaluated."""
    for step in series.steps:
        change = signed(step.after - step.before)
        error = f", standard error {figure(step.std_error)}" if step.std_error else ""
        levels = f"{figure(step.before)} → {figure(step.after)}"
        lasting = f"{_sense(history, step)}, for {counted(step.n_nights, 'night')}"
        yield f"step {_dates(step)}: {levels} ({change}{error}){lasting}"
    yield _basis(series)
    if series.correlated:
        yield (
            f"successive nights are correlated ({series.correlation:.2f}): steps are told from independent noise, "
            "and some of these may be none"
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


def _sense(history: History, step: LevelChange) -> str:
    """Whether it is for the better, where one end is."""
    if history.direction == "neither":
        return ""
    return ", better" if (step.after > step.before) == (history.direction == "higher") else ", worse"


def _first(n_nights: int, last: int | None) -> int:
    """The place of the first night that is shown."""
    return 0 if last is None else max(0, n_nights - last)


def _on(dataset: str) -> str:
    return "the mean of all datasets" if dataset == "*" else dataset


_SHOWN = 50  # figures that round to a published one: more were published with too few digits to tell


def record_list(listing: RecordList, *, width: int) -> str:
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
            size(entry.size),
        )
        for entry in listing.evaluations
    )
    title = f"{listing.place}: {counted(len(rows), 'evaluation')}"
    spare = ("size", "datasets", "models", "failures")
    sheet = TextTable(visible(title), headers, numeric, rows, drawn=headers[:1], spare=spare)  # an id stands whole
    return _printed([sheet], listing.remarks, width)


def figure_matches(found: FigureMatch, *, width: int) -> str:
    """A line per figure that rounds to the published one, most recent first."""
    if not found.figures:
        by = f" by {found.measure}" if found.measure else ""
        said = f"no figure{by} in {counted(found.n_records, 'record')} rounds to {found.published}"
        return _printed([], [said, *found.remarks], width)
    headers = ("evaluation", "night", "dataset", "model", "slice", "measure", "figure", "interval")
    numeric = (False, False, False, False, False, False, True, True)
    rows = tuple(_row(line) for line in found.figures[:_SHOWN])
    among = f"{len(found.figures):,} in {counted(found.n_records, 'record')}"
    title = visible(f"{found.measure or 'figure'} that rounds to {found.published}: {among}")
    sheet = TextTable(title, headers, numeric, rows, drawn=headers[:1], spare=("interval", "night", "slice"))
    if found.measure:
        sheet = sheet.only([name for name in headers if name != "measure"])
    return _printed([sheet], [*_said(found), *found.remarks], width)


def records_data(found: RecordList | FigureMatch) -> dict[str, Any]:
    """Either as JSON can hold it."""
    return asdict(found)


def _row(line: RecordedFigure) -> tuple[str, ...]:
    interval = "" if line.ci_low is None else f"[{figure(line.ci_low)}, {figure(line.ci_high)}]"
    named = (line.evaluation_id, line.date, line.dataset, line.model, line.slice, line.measure)
    return (*named, f"{line.estimate:.6f}", interval)


def _said(found: FigureMatch) -> Iterator[str]:
    """That not all are shown, and that the measure does not mean the same in all of the records."""
    if len(found.figures) > _SHOWN:
        yield f"{len(found.figures) - _SHOWN:,} more; --json has all"
    for measure in dict.fromkeys(line.measure for line in found.figures):
        meanings = dict.fromkeys(line.fingerprint for line in found.figures if line.measure == measure)
        if len(meanings) > 1:
            yield f"{measure} has {len(meanings)} definitions in these records: {', '.join(meanings)}"


def _delivered(entry: RecordSummary) -> str:
    """Whether MLflow has it."""
    if entry.delivered is not None:
        return "delivered"
    return "not yet" if entry.wanted else ""


def _printed(sheets: Sequence[TextTable], lines: Sequence[str], width: int) -> str:
    screen = TerminalText(width=width)
    for sheet in sheets:
        screen.draw(sheet.for_terminal(width))
    screen.say(*lines)
    return str(screen)
