"""Sections on models over nights, beside other records, on worst slices and by external metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.history.views import Series
from rankledger.pipeline.inference.tables import ALL, ChangeSince, Estimate, Since
from rankledger.pipeline.record.manifest import evaluation_name
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import (
    TONES,
    Block,
    Cell,
    Column,
    DifferenceBars,
    EstimateBars,
    Folded,
    Group,
    Row,
    Section,
    Table,
    Tone,
    Words,
    dataset_title,
)
from rankledger.pipeline.report.tables import Interval, PageFigures, few_mark, figure, signed, worst_figures
from rankledger.pipeline.report.text_table import short_text
from rankledger.pipeline.report.verdicts import REASON, result
from rankledger.pipeline.support.text import counted

_SLICE_ROWS = 20  # of a dataset
_MODEL, _INTERVAL = Column("model", "name"), Column("interval", "difference")
_CHANGES = (
    *(_MODEL, Column("slice", "name"), Column("queries"), Column("before"), Column("after")),
    *(Column("difference"), Column("of the change"), Column("compared with", "name")),
)


def standing(figures: PageFigures) -> Section | None:
    """Return how each model compares with other records, on its worst slices and by external metrics."""
    parts = (
        ("Against other records", _against_records(figures)),
        ("Worst slices", _worst_slices(figures)),
        ("Owners and external metrics", _external_metrics(figures)),
    )
    found = ((title, tuple(content)) for title, content in parts)
    blocks = tuple(Section("", title, content, folded=False) for title, content in found if content)
    return Section("standing", "Standing", blocks) if blocks else None


def _against_records(figures: PageFigures) -> Iterator[Block]:
    """Yield gated differences from models of other records, without passed slices and shares of queries."""
    own = {line.model for line in figures.page.evaluation.estimates}
    judged = [
        line
        for line in figures.page.evaluation.verdicts
        if line.reference and line.reference not in own and line.ci_low is not None and not line.counts_queries
    ]
    lines = [line for line in judged if line.slice == ALL or line.outcome != "pass"]
    if not lines:
        return
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for line in lines:
        groups.setdefault((line.dataset, line.measure), []).append(line)
    names = (Column("slice", "name"), Column("gate", "name"), Column("reference", "name"))
    columns = (_MODEL, Column("difference"), _INTERVAL, Column("result", "text"), *names)
    caption = "Differences from models of other records"
    tables = tuple(_record_group(figures, *group) for group in groups.items())
    yield Table("records", caption, columns, tables, searched="model")
    if len(judged) > len(lines):
        yield Words(f"{counted(len(judged) - len(lines), 'difference')} on slices passed.", "quiet")


def _record_group(figures: PageFigures, key: tuple[str, str], lines: Sequence[Verdict]) -> Group:
    dataset, measure = key
    bars = DifferenceBars.of(map(Interval.of, lines), figures.practical_difference.get(measure, 0.0))

    def row(line: Verdict) -> Row:
        tone: Tone = "bad" if line.effect == "fail" else "warn" if line.effect != "pass" else ""
        names = (short_text(line.slice), short_text(line.gate), _reference(figures, line.reference or ""))
        cells = bars.cells(Interval.of(line), "bad" if tone == "bad" else "")
        return (short_text(line.model), *cells, Cell(result(line), tone), *names)

    return bars.group(map(row, lines), f"{dataset_title(dataset)}: {measure}")


def _reference(figures: PageFigures, reference: str) -> Cell:
    model, _, record = reference.rpartition(" in ")
    name = evaluation_name(record)
    if not name:
        return Cell(short_text(reference))
    nights = {change.reference: change.date for change in figures.page.evaluation.changes}
    night = nights.get(record) or f"{record[:4]}-{record[4:6]}-{record[6:8]}"
    return Cell(short_text(f"{model}, {name} {night}"), small=record)


def _worst_slices(figures: PageFigures) -> Iterator[Block]:
    since = {
        (line.dataset, line.model): line for line in figures.page.evaluation.changes if line.slice
    }  # accepted last
    datasets = list(dict.fromkeys(dataset for dataset, _ in since))
    if datasets:
        groups = tuple(_slice_changes(figures, dataset, [*since.values()]) for dataset in datasets)
        yield Table("worst-changes", "The slice that explains most of each drop", _CHANGES, groups)
    others = [name for name in figures.leading if name not in datasets and figures.baseline(name) is None]
    groups = tuple(group for name in others for group in _slice_figures(figures, name))
    if groups:
        caption = f"The slice with the worst figure, by model, of those with {LEAST_CLUSTERS} queries or more"
        columns = (_MODEL, Column("slice", "name"), Column("figure"), Column("interval", "bar"), Column("queries"))
        yield Table("worst-figures", caption, columns, groups)


def _slice_changes(figures: PageFigures, dataset: str, changes: Sequence[ChangeSince]) -> Group:
    lines = [line for line in changes if line.dataset == dataset]
    signs = {line.measure: -1 if figures.page.evaluation.directions[line.measure] == "lower" else 1 for line in lines}
    rows = tuple(
        (
            *(short_text(line.model), short_text(line.slice), f"{line.slice_queries:,}"),
            *(figure(line.slice_before), figure(line.slice_after)),
            signed(signs[line.measure] * ((line.slice_after or 0.0) - (line.slice_before or 0.0))),
            *("" if line.slice_share is None else f"{line.slice_share:.0%}", short_text(line.date)),
        )
        for line in lines
    )
    return Group(rows, f"{dataset_title(dataset)}: {', '.join(signs)}")


def _slice_figures(figures: PageFigures, dataset: str) -> Iterator[Group]:
    lines = _worst_of_models(worst_figures(figures.page.evaluation, dataset))
    if lines:
        bars = EstimateBars.of(map(Interval.of, lines))
        rows = (
            (short_text(line.model), short_text(line.slice), *bars.cells(Interval.of(line)), f"{line.n_queries:,}")
            for line in lines
        )
        yield bars.group(rows, f"{dataset_title(dataset)}: {figures.leading[dataset]}")


def _worst_of_models(lines: Sequence[Estimate]) -> list[Estimate]:
    judged = [line for line in lines if not few_mark(line)]
    first = {line.model: line for line in reversed(judged)}
    return [line for line in judged if line is first[line.model]][:_SLICE_ROWS]


def _external_metrics(figures: PageFigures) -> Iterator[Block]:
    models, external_metrics = figures.page.manifest.models, figures.page.manifest.external_metrics
    numbers = {model: external_metrics[model].numbers if model in external_metrics else {} for model in models}
    names = list(dict.fromkeys(name for own in numbers.values() for name in own))
    rows = tuple(
        (
            short_text(model),
            short_text(models[model].owner or ""),
            *(f"{own[name]:,.10g}" if name in own else "" for name in names),
        )
        for model, own in numbers.items()
        if own or models[model].owner
    )
    if rows:
        columns = (_MODEL, Column("owner", "name"), *(Column(short_text(name)) for name in names))
        caption = "Owners of the models, and external metrics"
        yield Table("external", caption, columns, (Group(rows),), searched="model")
    for model, extra in external_metrics.items():
        if extra.reason:
            yield Words(f"{short_text(model)}: {short_text(extra.reason, REASON)}", "warn")


_SHOWN = 5  # series; the others are folded, so that the leaderboard stays near
_BREAKS = 3  # that are written out, the last ones; the section on history has all
_BREAK_LENGTH = 200  # characters
_ROUNDING = 1e-9  # a verdict on a share of the figure has another estimate
_SINCE: Mapping[Since, str] = {"accepted": "since accepted", "previous": "overnight"}


@dataclass(frozen=True)
class _Trend:
    """Series and its change, None without an earlier record. The interval is a judging gate's if there is one."""

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
    yield _trend_table("nights", "Tonight, and how it changed", trends[:_SHOWN], since, several)
    if others := trends[_SHOWN:]:
        table = _trend_table("more-nights", "Tonight, and how the others changed", others, since, several)
        yield Folded("More nights", counted(len(others), "line"), (table,))
    lines = break_lines(figures.page.history)
    for line in lines[-_BREAKS:]:
        yield Words(f"{short_text(line, _BREAK_LENGTH)}; figures before it cannot be compared.", "quiet")
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
            interval = _trend_interval(change, evaluation.verdicts)
            yield _Trend(series, history.measure, change, interval, not failing.isdisjoint([task, ("", series.model)]))


def _trend_table(name: str, caption: str, trends: Sequence[_Trend], since: Since, several: bool) -> Table:
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


def _trend_interval(change: ChangeSince | None, verdicts: Sequence[Verdict]) -> Interval:
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
