"""The history of a figure: a line per night for a terminal or in Markdown, and JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pipeline.escaping import visible
from pipeline.ledger import Break, History, LevelChange, Night, Series
from pipeline.report.differences import figure, signed
from pipeline.report.screen import Screen
from pipeline.report.sheets import Sheet, counted, plain
from pipeline.report.strokes import FEWEST_CELLS, MOST_CELLS, scale_of

__all__ = ["as_data", "markdown", "said_below", "tables", "written"]

_BESIDE = 67  # columns of the other cells and the frame, where ids and marks are short
_COMMIT = 8  # digits of a commit


def tables(history: History, *, last: int | None, width: int, colour: bool) -> str:
    """A table per model and dataset with an interval drawn for each night, and below it the steps.

    Args:
        history: what to show.
        last: how many nights to show, the newest; all where it is None. Steps are those of all nights.
        width: columns of the terminal.
        colour: whether to write the terminal's colours.
    """
    screen = Screen(width=width, colour=colour)
    for series in history.series:
        sheet = _drawn(history, series, last, n_cells=min(max(width - _BESIDE, FEWEST_CELLS), MOST_CELLS))
        screen.draw(sheet.for_terminal(width))
        screen.say(*said_below(history, series), "")
    screen.say(*history.remarks)
    return str(screen)


def markdown(history: History, *, last: int | None) -> str:
    """The same in GitHub's Markdown, with intervals in figures."""
    lines: list[str] = []
    for series in history.series:
        sheet = written(history, series, last)
        lines += [f"### {plain(sheet.title)}", "", *sheet.in_markdown(), ""]
        lines += [*(f"- {plain(line)}" for line in said_below(history, series)), ""]
    return "\n".join([*lines, *(f"- {plain(line)}" for line in history.remarks)]).rstrip("\n") + "\n"


def as_data(history: History, *, last: int | None) -> dict[str, Any]:
    """The history as JSON can hold it, every number in full; None where there is none."""
    found = asdict(history)
    for series in found["series"]:
        series["n_nights"] = len(series["nights"])
        series["nights"] = series["nights"][_first(len(series["nights"]), last) :]
    return found


def _said_of_break(change: Break) -> str:
    """What changed, in a few words."""
    if change.kind == "rankledger":
        return f"rankledger {change.before or '?'} → {change.after or '?'}"
    return f"{change.kind} changed" if change.before and change.after else f"{change.kind} may have changed"


def _drawn(history: History, series: Series, last: int | None, n_cells: int) -> Sheet:
    """For a terminal: intervals as bars, all of one scale, which the header tells."""
    sheet = written(history, series, last)
    shown = series.nights[_first(len(series.nights), last) :]
    scale = scale_of(shown, n_cells)
    place = sheet.headers.index("interval")
    rows = [(*row[:place], scale.draw(night), *row[place + 1 :]) for row, night in zip(sheet.rows, shown, strict=True)]
    headers = (*sheet.headers[:place], scale.header, *sheet.headers[place + 1 :])
    numeric = (*sheet.numeric[:place], False, *sheet.numeric[place + 1 :])
    return Sheet(sheet.title, headers, numeric, tuple(rows), drawn=(scale.header,))


def written(history: History, series: Series, last: int | None) -> Sheet:
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
    return Sheet(visible(title), headers, (False, True, True, True, True, False, False), tuple(rows))


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


def said_below(history: History, series: Series) -> Iterator[str]:
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
