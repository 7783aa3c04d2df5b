"""The figures of the nights up to an evaluation, below its headline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.history.views import Series
from rankledger.pipeline.inference.tables import ALL, ChangeSince, Since
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
    TONES,
    Block,
    Cell,
    Column,
    DifferenceBars,
    Folded,
    Group,
    Row,
    Table,
    Words,
    dataset_title,
)
from rankledger.pipeline.report.tables import Interval, PageFigures, figure
from rankledger.pipeline.report.text_table import short_text
from rankledger.pipeline.support.text import counted

_SHOWN = 5  # series; the others are folded, so that the leaderboard stays near
_BREAKS = 3  # that are written out, the last ones; the section on history has all
_NOTE = 200  # characters
_ROUNDING = 1e-9  # a verdict on a share of the figure has another estimate
_SINCE: Mapping[Since, str] = {"accepted": "since accepted", "previous": "overnight"}


@dataclass(frozen=True)
class _Trend:
    """Series and its change, None if the model has no such record. The interval is a judging gate's if there is one."""

    series: Series
    measure: str
    change: ChangeSince | None
    interval: Interval
    fails: bool

    @property
    def urgency(self) -> tuple[bool, bool, float]:
        change = self.change
        is_worse = change is not None and change.decision == "worse"
        return not self.fails, not is_worse, (change.difference or 0.0) if change and is_worse else 0.0


def over_time(figures: PageFigures) -> Iterator[Block]:
    """Yield each model's nights by its primary measure, the worst first. Nothing on the first night."""
    since: Since = (
        "accepted" if any(line.since == "accepted" for line in figures.page.evaluation.changes) else "previous"
    )
    trends = sorted(_trends(figures, since), key=lambda trend: trend.urgency)
    if not trends:
        return
    from rankledger.pipeline.report.changes import break_lines

    several = len(figures.leading) > 1
    yield _table("nights", "Tonight, and how it changed", trends[:_SHOWN], since, several)
    if others := trends[_SHOWN:]:
        table = _table("more-nights", "Tonight, and how the others changed", others, since, several)
        yield Folded("More nights", counted(len(others), "line"), (table,))
    lines = break_lines(figures.page.history)
    for line in lines[-_BREAKS:]:
        yield Words(f"{short_text(line, _NOTE)}; figures before it cannot be compared.", "quiet")
    if len(lines) > _BREAKS:
        yield Words(f"{counted(len(lines) - _BREAKS, 'earlier change')}: see History.", "quiet")


def _trends(figures: PageFigures, since: Since) -> Iterator[_Trend]:
    evaluation = figures.page.evaluation
    changes = {(line.dataset, line.model, line.measure): line for line in evaluation.changes if line.since == since}
    failing = {(line.dataset, line.model) for line in evaluation.verdicts if line.effect == "fail"}
    for history in figures.page.history:
        for series in history.series:
            task = series.dataset, series.model
            change = changes.get((*task, history.measure))
            interval = _interval(change, evaluation.verdicts)
            yield _Trend(series, history.measure, change, interval, not failing.isdisjoint([task, ("", series.model)]))


def _table(name: str, caption: str, trends: Sequence[_Trend], since: Since, several: bool) -> Table:
    groups = [
        _group(measure, [own for own in trends if own.measure == measure], several) for measure in _measures(trends)
    ]
    datasets = (Column("dataset", "name"),) if several else ()
    columns = (
        *(Column("model", "name"), Column("tonight"), Column(_SINCE[since]), Column("nights", "text")),
        *(*datasets, Column("interval", "difference"), Column("compared with", "name"), Column("first seen", "name")),
    )
    return Table(name, caption, columns, tuple(groups))


def _measures(trends: Sequence[_Trend]) -> Sequence[str]:
    return tuple(dict.fromkeys(own.measure for own in trends))


def _group(measure: str, trends: Sequence[_Trend], several: bool) -> Group:
    bars = DifferenceBars.of((own.interval for own in trends), 0.0)
    return bars.group([_row(own, bars, several) for own in trends], short_text(measure))


def _row(trend: _Trend, bars: DifferenceBars, several: bool) -> Row:
    last, change = trend.series.nights[-1], trend.change
    difference, interval = _change_cells(trend, bars)
    return (
        short_text(trend.series.model),
        "not evaluated" if last.failure else figure(last.estimate),
        difference,
        Cell("", drawing=charts.sparkline(trend.series)),
        *((dataset_title(trend.series.dataset),) if several else ()),
        interval,
        short_text(change.date) if change else "",
        short_text(change.first_seen) if change else "",
    )


def _change_cells(trend: _Trend, bars: DifferenceBars) -> tuple[str | Cell, str | Cell]:
    change = trend.change
    if change is None:
        return "", ""
    if change.difference is None:
        return Cell("not compared", "quiet"), ""
    return bars.cells(trend.interval, TONES[change.decision or "unclear"])


def _interval(change: ChangeSince | None, verdicts: Sequence[Verdict]) -> Interval:
    if change is None or change.difference is None:
        return Interval(None)
    for verdict in verdicts:
        own = (verdict.dataset, verdict.model, verdict.measure, verdict.slice)
        is_same = own == (change.dataset, change.model, change.measure, ALL)
        if is_same and (verdict.reference or "").endswith(f" in {change.reference}") and verdict.ci_low is not None:
            judged = Interval.of(verdict)
            if judged.value is not None and abs(judged.value - change.difference) < _ROUNDING:
                return judged
    return Interval(change.difference, change.ci_low, change.ci_high, not change.mark)
