"""The history of a figure: a night each with its interval, the levels between steps, and what broke the series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.escaping import visible
from pipeline.ledger import Night, Series
from pipeline.report.boards import called
from pipeline.report.differences import figure, signed
from pipeline.report.page.charts.chart import Chart, cut, data, known, short
from pipeline.report.page.charts.drawing import WIDTH, Drawing, Panel, reaching, ticks
from pipeline.report.page.charts.marks import marks, scale_up, strokes
from pipeline.report.page.charts.paint import COLOURS, INK, MUTED, WORSE
from pipeline.report.sheets import counted

__all__ = ["nights"]

_MOST_NIGHTS = 120
_LEFT, _RIGHT = 48, 36
_TOP, _PLOT = 22, 170
_DATE = 70  # pixels that a date takes, with what keeps it from the next
_CROSS = 5  # the shape of a mark


def nights(series: Series, measure: str) -> Chart | None:
    """The newest 120 nights of a series.

    Args:
        series: the nights of a model on a dataset.
        measure: what the figures are, as it is written.

    Returns:
        None where none of these nights has a figure.
    """
    shown = series.nights[-_MOST_NIGHTS:]
    if not any(night.estimate is not None for night in shown):
        return None
    where = short(called(series.dataset))
    title = f"{visible(measure)} of {short(series.model)} on {where}, {counted(len(shown), 'night')}"
    said = [*_said(series, shown), *cut(len(shown), len(series.nights), "nights")]
    return Chart(title, _drawn(title, shown, list(_levels(series, shown))), " ".join(said), _csv(shown))


def _drawn(title: str, shown: Sequence[Night], levels: Sequence[tuple[int, int, float]]) -> str:
    drawing = Drawing(_TOP + _PLOT + 24)
    ends = known(end for night in shown for end in (night.ci_low, night.estimate, night.ci_high))
    limits = reaching([*ends, *(level for _, _, level in levels)])
    panel = Panel(drawing, (_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, _PLOT), (-0.5, len(shown) - 0.5), limits)
    _scales(panel, shown)
    _breaks(panel, shown)
    _figures(panel, shown)
    strokes(panel, [[(first - 0.4, level), (last + 0.4, level)] for first, last, level in levels], INK, width=1.5)
    return drawing.svg(title)


def _scales(panel: Panel, shown: Sequence[Night]) -> None:
    places = ticks(panel.up)
    scale_up(panel, places, [f"{place:g}" for place in places])
    width = (WIDTH - _LEFT - _RIGHT) / len(shown)
    every = max(1, round(_DATE / width + 0.5))
    bottom = panel.up[0]
    for place in range(len(shown) - 1, -1, -every):
        panel.write((place, bottom), short(shown[place].date, 12), shift=(0, -12), anchor="center", colour=MUTED)


def _breaks(panel: Panel, shown: Sequence[Night]) -> None:
    """A dashed line before each night whose figure cannot be held against those before, and a letter for the reason."""
    low, high = panel.up
    broken = [place for place, night in enumerate(shown) if night.breaks and place]
    strokes(panel, [[(place - 0.5, low), (place - 0.5, high)] for place in broken], MUTED, dashes=(4, 3))
    for place in broken:
        initials = "".join(change.kind[0].upper() for change in shown[place].breaks)
        panel.write((place - 0.5, high), initials, shift=(0, 10), anchor="center", colour=MUTED)


def _figures(panel: Panel, shown: Sequence[Night]) -> None:
    """Intervals and figures; a cross at the bottom for a night on which the output was not evaluated."""
    places = np.arange(len(shown), dtype=np.float64)
    intervals = [
        [(place, night.ci_low), (place, night.ci_high)]
        for place, night in enumerate(shown)
        if night.ci_low is not None and night.ci_high is not None
    ]
    strokes(panel, intervals, COLOURS[0])
    marks(panel, places, np.array([night.estimate for night in shown], dtype=np.float64), COLOURS[0], 0)
    failed = places[[bool(night.failure) for night in shown]]
    marks(panel, failed, np.full(len(failed), panel.up[0]), WORSE, _CROSS)


def _levels(series: Series, shown: Sequence[Night]) -> Iterator[tuple[int, int, float]]:
    """The levels on both sides of every step: the first and last night that is drawn, and the level."""
    hidden = len(series.nights) - len(shown)
    place = {night.date: number - hidden for number, night in enumerate(series.nights)}
    steps = [step for step in series.steps if place.get(step.date, -1) > 0]
    starts = {0, len(shown), *(number for number, night in enumerate(shown) if night.breaks)}
    starts |= {place[step.date] for step in steps}
    for step in steps:
        at = place[step.date]
        yield max(start for start in starts if start < at), at - 1, step.before
        yield at, min(start for start in starts if start > at) - 1, step.after


def _said(series: Series, shown: Sequence[Night]) -> list[str]:
    newest = next(night for night in reversed(shown) if night.estimate is not None)
    interval = "" if newest.ci_low is None else f" [{figure(newest.ci_low)}, {figure(newest.ci_high)}]"
    dates = {night.date for night in shown}
    steps = [f"{signed(step.after - step.before)} on {short(step.date)}" for step in series.steps if step.date in dates]
    breaks = [f"{change.kind} on {short(night.date)}" for night in shown[1:] for change in night.breaks]
    n_failed = sum(bool(night.failure) for night in shown)
    return [
        f"{figure(newest.estimate)}{interval} on {short(newest.date)}.",
        f"Steps: {', '.join(steps)}." if steps else "No step.",
        *([f"Not comparable across a change (dashed, by its initial): {', '.join(breaks)}."] if breaks else []),
        *([f"{counted(n_failed, 'night')} without an evaluated output (crosses)."] if n_failed else []),
    ]


def _csv(shown: Sequence[Night]) -> str:
    rows = (
        (night.date, night.estimate, night.ci_low, night.ci_high, " ".join(change.kind for change in night.breaks))
        for night in shown
    )
    return data(("night", "estimate", "ci_low", "ci_high", "breaks"), rows)
