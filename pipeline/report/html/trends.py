"""The figures of the nights up to an evaluation, below its headline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
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
from rankledger.pipeline.report.text_table import counted, short_text
from rankledger.pipeline.types.tables import ChangeSince, Since
from rankledger.pipeline.types.views import Series

__all__ = ["over_time"]

_SHOWN = 5  # series; the others are folded, so that the leaderboard stays near
_BREAKS = 3  # that are written out, the last ones; the section on history has all
_NOTE = 200  # characters
_SINCE: Mapping[Since, str] = {"accepted": "the accepted record", "previous": "the record before"}
_HEADS = (
    *(Column("model", "name"), Column("tonight"), Column("change"), Column("nights", "text")),
    *(Column("interval", "difference"), Column("since", "name"), Column("first seen", "name")),
)


@dataclass(frozen=True)
class _Trend:
    """A series and its change; the change is None where the model has no such record."""

    series: Series
    measure: str
    change: ChangeSince | None
    fails: bool

    @property
    def urgency(self) -> tuple[bool, bool, float]:
        """What is sorted by: what fails first, then what fell for sure, the most first."""
        change = self.change
        is_worse = change is not None and change.is_worse
        return not self.fails, not is_worse, (change.difference or 0.0) if change and is_worse else 0.0


def over_time(figures: PageFigures) -> Iterator[Block]:
    """Each model's nights on each dataset by its lead measure, and the change since the accepted record, the worst
    first; nothing on the first night.
    """
    since: Since = (
        "accepted" if any(line.since == "accepted" for line in figures.page.evaluation.changes) else "previous"
    )
    trends = sorted(_trends(figures, since), key=lambda trend: trend.urgency)
    if not trends:
        return
    from rankledger.pipeline.report.changes import break_lines

    several = len(figures.leading) > 1
    caption = f"Tonight, and the change since {_SINCE[since]}"
    yield _table("nights", caption, trends[:_SHOWN], several)
    if others := trends[_SHOWN:]:
        table = _table("more-nights", f"{caption}, of the others", others, several)
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
            yield _Trend(series, history.measure, change, not failing.isdisjoint([task, ("", series.model)]))


def _table(name: str, caption: str, trends: Sequence[_Trend], several: bool) -> Table:
    """A group of rows for each measure, whose bars have one scale; with the datasets if there are several."""
    groups = [
        _group(measure, [own for own in trends if own.measure == measure], several) for measure in _measures(trends)
    ]
    datasets = (Column("dataset", "name"),) if several else ()
    return Table(name, caption, (*_HEADS[:4], *datasets, *_HEADS[4:]), tuple(groups))


def _measures(trends: Sequence[_Trend]) -> Sequence[str]:
    return tuple(dict.fromkeys(own.measure for own in trends))


def _group(measure: str, trends: Sequence[_Trend], several: bool) -> Group:
    bars = DifferenceBars.of((_interval(own.change) for own in trends), 0.0)
    return bars.group([_row(own, bars, several) for own in trends], short_text(measure))


def _row(trend: _Trend, bars: DifferenceBars, several: bool) -> Row:
    last, change = trend.series.nights[-1], trend.change
    difference, interval = _change_cells(change, bars)
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


def _change_cells(change: ChangeSince | None, bars: DifferenceBars) -> tuple[str | Cell, str | Cell]:
    if change is None:
        return "", ""
    if change.difference is None:
        return Cell("not compared", "quiet"), ""
    is_better = change.is_clear and not change.is_worse
    return bars.cells(_interval(change), "bad" if change.is_worse else "good" if is_better else "")


def _interval(change: ChangeSince | None) -> Interval:
    """The paired difference; nights share their queries, so it is narrower than the figure's own interval."""
    if change is None:
        return Interval(None)
    return Interval(change.difference, change.ci_low, change.ci_high, not change.mark)
