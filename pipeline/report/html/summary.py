"""The top of a page: verdict, leaderboards, worst slices and owners."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias
from urllib.parse import quote

from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.gates.verdicts import Effect, Verdict
from rankledger.pipeline.history.history import Series
from rankledger.pipeline.inference.tables import ALL, ChangeSince, Estimate, Since, VarianceComponents
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.headline import verdict_lines
from rankledger.pipeline.report.html import charts
from rankledger.pipeline.report.html.blocks import Bars, Block, Section, SideBySide, Words, dataset_title
from rankledger.pipeline.report.messages import (
    agreement_notes,
    completeness,
    not_compared,
    promotions,
    rank_note,
    replicate_notes,
)
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.tables import (
    FLIPS,
    LABEL_TONES,
    UNSURE,
    DifferenceRow,
    Interval,
    MeasureColumn,
    difference_rows,
    effect_rule,
    few_mark,
    figure,
    signed,
    worst_figures,
)
from rankledger.pipeline.report.text_table import Cell, Column, Group, Row, Table, printable, short_sentence, short_text
from rankledger.pipeline.report.verdicts import (
    NOT_JUDGED,
    REASON,
    WORD_TONES,
    WORDS,
    describe_cause,
    group_by_cause,
    list_names,
    result,
    word_of,
)
from rankledger.pipeline.support.text import counted, queries

_NO_DATASET = "external metrics"  # of verdicts that are of no dataset
_MODEL = Column("model", "name")
_COMPONENTS = (
    *(_MODEL, Column("queries"), Column("replicates")),
    *(Column("between queries"), Column("between replicates"), Column("rest"), Column("standard error")),
    *(Column("with twice the queries"), Column("with twice the replicates"), Column("more would help", "text")),
)
_REASONS = 10  # shown before all are asked for
_MOST_REASONS = 800
_NAMES = 20  # models and datasets of a cause; page.js finds a cell of the matrix by them
_DETAILS = 2_000  # characters


def verdict(page: Page) -> Section:
    """Return the headline, the results of the gates, models by datasets, and the causes."""
    evaluation = page.evaluation
    blocks = [*_headline(page), *_list_trends(page), *_outcome(page), *_failures(page)]
    if evaluation.data_warnings:
        warnings = counted(len(evaluation.data_warnings), "warning")
        blocks.append(Words(f"{warnings} on the inputs: see Data quality.", "warn"))
    if evaluation.verdicts:
        gates, matrix = _gates(evaluation.verdicts), _matrix(evaluation.verdicts)
        reasons = tuple(_reasons(group_by_cause(evaluation.verdicts)))
        blocks.append(SideBySide((gates, matrix), reasons) if reasons else SideBySide((gates,), (matrix,)))
    blocks += [Words(f"{line}.", "quiet") for line in promotions(page.manifest)]
    return Section("verdict", "Verdict", tuple(blocks))


def _headline(page: Page) -> Iterator[Block]:
    evaluation = page.evaluation
    lines = verdict_lines(evaluation)
    for line in lines[:1]:
        yield Words(str(line), WORD_TONES.get(line.word, ""), leads=True)
    named = lines[0].change if lines else None
    for place, pair in enumerate(page.pairs if named else (), start=1):
        if named and (pair.dataset, pair.model, pair.measure) == (named.dataset, named.model, named.measure):
            part = f"&slice={quote(named.slice)}" if named.slice else ""
            yield Words("See the queries that changed most", "quiet", link=f"#queries-{place}{part}")
            return


def _outcome(page: Page) -> Iterator[Block]:
    evaluation = page.evaluation
    yield from (Words(str(line)) for line in verdict_lines(evaluation)[1:] if line.word == WORDS["pass"])
    word, evaluated = completeness(evaluation)
    if word == "Incomplete":
        yield Words(f"{word}: {evaluated}.", "bad", leads=True)
    else:
        yield Words(f"{word}: {evaluated}{'' if evaluation.verdicts else '; there are no gates'}.")


def _failures(page: Page) -> Iterator[Block]:
    rows = tuple(
        (
            Cell(short_text(str(failure.output[1])), "bad"),
            short_text(failure.dataset),
            short_sentence(failure.reason, REASON),
        )
        for failure in page.evaluation.failures
    )
    if rows:
        columns = (_MODEL, Column("dataset", "name"), Column("reason", "reason"))
        yield Table("failures", "Model outputs that were not evaluated", columns, (Group(rows),))
    yield from (Words(f"{printable(line)}.", "warn") for line in not_compared(page.evaluation))


def _gates(verdicts: Sequence[Verdict]) -> Table:
    words = (*WORDS.values(), NOT_JUDGED)
    heads = [word for word in words if any(word_of(line) == word for line in verdicts)]
    counts: dict[str, Counter[str]] = {}
    for line in verdicts:
        counts.setdefault(line.gate, Counter())[word_of(line)] += 1

    def cell(gate: str, word: str) -> Cell:
        n = counts[gate][word]
        return Cell(f"{n:,}", WORD_TONES.get(word, "")) if n else Cell("")

    ordered = sorted(counts, key=lambda gate: [not counts[gate][word] for word in words[:3]])
    rows: tuple[Row, ...] = tuple((short_text(gate), *(cell(gate, word) for word in heads)) for gate in ordered)
    return Table("gates", "Gates", (Column("gate", "name"), *map(Column, heads)), (Group(rows),))


def _matrix(verdicts: Sequence[Verdict]) -> Table:
    datasets = list(dict.fromkeys(line.dataset for line in verdicts))
    cells: dict[tuple[str, str], list[Verdict]] = {}
    effects: dict[str, Counter[Effect]] = {}
    for line in verdicts:
        cells.setdefault((line.model, line.dataset), []).append(line)
        effects.setdefault(line.model, Counter())[line.effect] += 1
    models = sorted(effects, key=lambda model: [-effects[model][effect] for effect in WORDS if effect != "pass"])
    rows: tuple[Row, ...] = tuple(
        (short_text(model), *(_mark(cells.get((model, dataset), ())) for dataset in datasets)) for model in models
    )
    titles = (Column(short_text(dataset) if dataset else _NO_DATASET, "mark") for dataset in datasets)
    return Table(
        "verdicts", "Models by dataset, with the number of verdicts that do not pass", (_MODEL, *titles), (Group(rows),)
    )


def _mark(verdicts: Sequence[Verdict]) -> Cell:
    judged = [line for line in verdicts if line.outcome != "not judged"]
    for effect, word in WORDS.items():
        if any(line.effect == effect for line in judged):
            n_raised = sum(line.effect != "pass" for line in judged)
            return Cell(f"{word[0]} {n_raised:,}" if n_raised else word[0], WORD_TONES[word])
    return Cell("")


def _reasons(groups: Sequence[Sequence[Verdict]]) -> Iterator[Block]:
    if not groups:
        return
    names = (Column(head, "name") for head in ("dataset", "slice", "gate"))
    columns = (_MODEL, Column("result", "text"), Column("reason", "reason"), *names)
    rows = tuple(map(_reason_cells, groups[:_MOST_REASONS]))
    yield Table("reasons", "Verdicts that do not pass", columns, (Group(rows),), searched="model", most=_REASONS)
    if len(groups) > _MOST_REASONS:
        yield Words(f"{len(groups) - _MOST_REASONS:,} more in gates.json.", "quiet")


def _reason_cells(group: Sequence[Verdict]) -> Row:
    worst, *others = group
    more = dict.fromkeys(text for line in others for text in (line.reason, line.details) if text)
    details = "; ".join(filter(None, [worst.details, *(text for text in more if text != worst.reason)]))
    return (
        list_names((line.model for line in group), _NAMES),
        Cell(result(worst), WORD_TONES[WORDS[worst.effect]]),
        Cell(describe_cause(group, named=False), more=short_sentence(details, _DETAILS)),
        list_names((line.dataset or _NO_DATASET for line in group), _NAMES),
        list_names((line.slice for line in group), 1),  # the details name the others; a phone has room for one
        list_names(line.gate for line in group),
    )


_SHOWN = 5  # series, before all are asked for: the leaderboard stays near
_ROUNDING = 1e-9  # a verdict on a share of the figure has another estimate
_SINCE: Mapping[Since, str] = {"accepted": "since accepted", "previous": "overnight"}
_Trend: TypeAlias = tuple[str, Series, ChangeSince | None]  # measure, and the change, None without an earlier record


def _list_trends(page: Page) -> Iterator[Block]:
    """Yield each model's nights by its primary measure, the worst first. Nothing on the first night."""
    evaluation = page.evaluation
    since: Since = "accepted" if any(line.since == "accepted" for line in evaluation.changes) else "previous"
    changes = {(line.dataset, line.model, line.measure): line for line in evaluation.changes if line.since == since}
    trends = [
        (history.measure, series, changes.get((series.dataset, series.model, history.measure)))
        for history in page.history
        for series in history.series
    ]
    if not trends:
        return
    failing = {(line.dataset, line.model) for line in evaluation.verdicts if line.effect == "fail"}

    def urgency(trend: _Trend) -> tuple[bool, bool, float]:
        _, series, change = trend
        is_passing = failing.isdisjoint([(series.dataset, series.model), ("", series.model)])
        is_worse = change is not None and change.decision == "worse"
        return is_passing, not is_worse, (change.difference or 0.0) if change and is_worse else 0.0

    trends.sort(key=urgency)
    yield _trend_table(page, trends, since)


def _trend_table(page: Page, trends: Sequence[_Trend], since: Since) -> Table:
    several = len(page.leading) > 1
    groups = []
    for measure in dict.fromkeys(measure for measure, _, _ in trends):
        lines = [
            (series, change, _trend_interval(change, page.evaluation.verdicts))
            for by, series, change in trends
            if by == measure
        ]
        bars = Bars.of_differences(interval for _, _, interval in lines)
        groups.append(bars.group([_trend_cells(*line, bars, several) for line in lines], short_text(measure)))
    datasets = (Column("dataset", "name"),) if several else ()
    columns = (
        *(_MODEL, Column("tonight"), Column(_SINCE[since]), Column("nights", "text"), *datasets),
        *(Column("interval", "difference"), Column("compared with", "name"), Column("first seen", "name")),
    )
    return Table("nights", "Tonight, and how it changed", columns, tuple(groups), most=_SHOWN)


def _trend_cells(series: Series, change: ChangeSince | None, interval: Interval, bars: Bars, several: bool) -> Row:
    last, cells = series.nights[-1], (Cell(""), Cell(""))
    if change is not None:
        cells = Cell("not compared", "quiet"), Cell("")
        if change.difference is not None:
            cells = bars.cells(interval, LABEL_TONES[change.decision or "unclear"])
    return (
        short_text(series.model),
        "not evaluated" if last.failure else figure(last.estimate),
        cells[0],
        Cell("", drawing=charts.sparkline(series)),
        *((dataset_title(series.dataset),) if several else ()),
        cells[1],
        *((short_text(change.date), short_text(change.first_seen)) if change else ("", "")),
    )


def _trend_interval(change: ChangeSince | None, verdicts: Sequence[Verdict]) -> Interval:
    """Return the interval of a gate that judges the change, or else the change's own."""
    if change is None or change.difference is None:
        return Interval(None)
    for verdict in verdicts:
        place = (verdict.dataset, verdict.model, verdict.measure, verdict.slice)
        is_same = place == (change.dataset, change.model, change.measure, ALL)
        if is_same and (verdict.reference or "").endswith(f" in {change.reference}") and verdict.ci_low is not None:
            judged = Interval.of(verdict)
            if judged.value is not None and abs(judged.value - change.difference) < _ROUNDING:
                return judged
    return Interval(change.difference, change.ci_low, change.ci_high, not change.mark)


_BOARD_CELLS = 6_000  # figures beyond which slices are shown by the lead measure alone
_RANKED_CELLS = 1_500  # figures beyond which slices have ranks and differences by the lead measure alone
_TINTS = 5


@dataclass(frozen=True)
class _Ranking:
    measure: str
    lower: bool  # whether lower figures are better
    baseline: str | None  # the one model that all others were compared with; None leaves out the difference
    letters: bool  # whether each model was compared with each
    ranks: bool  # whether models have ranks
    bars: Bars | None = None  # on one scale for all slices; None for the lead measure, which has one for each

    @property
    def columns(self) -> Iterator[Column]:
        by, scale = (f" by {self.measure}", f" ({self.bars.ends})") if self.bars else ("", "")
        column = partial(Column, by=self.measure, hidden=self.bars is not None)
        if self.ranks:
            yield column(f"rank{by}", lower=True)
        yield Column(self.measure, lower=self.lower)
        if self.baseline is not None:
            yield column(f"difference from {short_text(self.baseline, 30)}{by}{scale}", "difference")
        if self.letters:
            yield column(f"letters{by}", "text")


def leaderboard(page: Page) -> Section:
    """Return models by measures for each dataset, and a plot of two measures."""
    is_complete = len(page.evaluation.estimates) <= _BOARD_CELLS
    parts: list[Block] = [
        Section("", dataset_title(name), tuple(_board_blocks(page, name, is_complete))) for name in page.leading
    ]
    parts += [] if is_complete else [Words("Slices by other measures: summary.csv.", "quiet")]
    parts += [Words(text, "quiet") for text in _legend(page)]
    return Section("leaderboard", "Leaderboard", tuple(parts), folded=False)


def _board_blocks(page: Page, dataset: str, whole: bool) -> Iterator[Block]:
    evaluation, lead = page.evaluation, page.leading[dataset]
    columns = page.columns_of(dataset)
    slices: dict[str, dict[str, MeasureColumn]] = {}
    by_measure: dict[str, list[MeasureColumn]] = {}
    for column in columns:
        by_measure.setdefault(column.measure, []).append(column)
        if whole or column.slice == ALL or column.measure == lead:
            slices.setdefault(column.slice, {})[column.measure] = column
    rankings = [
        _ranking(page, columns if measure == lead else own_columns) for measure, own_columns in by_measure.items()
    ]
    yield Table(
        name=f"leaderboard-{short_text(dataset)}",
        caption=f"Leaderboard of {dataset_title(dataset)}",
        columns=(_MODEL, *(column for ranking in rankings for column in ranking.columns)),
        groups=tuple(_board_group(page, own_columns, rankings) for own_columns in slices.values()),
        chosen=len(slices) > 1,
        measures=tuple(by_measure),
        searched="model",
    )
    if columns[0].ranks:
        yield Words(f"{printable(rank_note(columns[0], evaluation.confidence))}.", "quiet")
    yield from (Words(f"{printable(text)}.", "quiet") for text in agreement_notes(evaluation, dataset))
    if plot := charts.trade_off(page, dataset):
        yield plot
    yield from _components(evaluation, dataset)


def _components(evaluation: Evaluation, dataset: str) -> Iterator[Block]:
    by_measure: dict[str, list[VarianceComponents]] = {}
    for line in evaluation.components:
        if line.dataset == dataset:
            by_measure.setdefault(line.measure, []).append(line)
    if not by_measure:
        return
    lead = evaluation.leading[dataset]
    groups = tuple(
        Group(tuple(map(_component_cells, lines)), measure, measure, ALL, open=measure == lead)
        for measure, lines in by_measure.items()
    )
    caption = f"More queries or more replicates? Standard deviations on {dataset_title(dataset)}"
    name = f"components-{short_text(dataset)}"
    yield Table(name, caption, _COMPONENTS, groups, chosen=len(groups) > 1, searched="model")
    yield from (Words(f"{printable(text)}.", "quiet") for text in replicate_notes(evaluation, dataset))


def _component_cells(line: VarianceComponents) -> Row:
    errors = (line.std_error, line.std_error_twice_queries, line.std_error_twice_replicates)
    parts = (math.sqrt(variance) for variance in (line.queries, line.replicates, line.rest))
    counts = (f"{n:,}" for n in (line.n_queries, line.n_replicates))
    return (short_text(line.model), *counts, *map(figure, parts), *map(figure, errors), line.more)


def _ranking(page: Page, columns: Sequence[MeasureColumn]) -> _Ranking:
    measure, dataset = columns[0].measure, columns[0].dataset
    is_lead = measure == page.leading[dataset]
    lines = [line for column in columns for line in column.comparisons]
    margin = page.practical_difference.get(measure, 0.0)
    return _Ranking(
        measure,
        lower=columns[0].direction == "lower",
        baseline=page.baseline(dataset) if lines else None,
        letters=page.all_pairs and bool(lines),
        ranks=any(column.ranks for column in columns),
        bars=None if is_lead else Bars.of_differences(map(Interval.of, lines), margin),
    )


def _board_group(page: Page, columns: Mapping[str, MeasureColumn], rankings: Sequence[_Ranking]) -> Group:
    first = next(iter(columns.values()))
    few = first.slice == ALL or len(page.evaluation.estimates) <= _RANKED_CELLS
    differences: dict[str, dict[str, DifferenceRow]] = {}
    for measure, column in columns.items():
        if few or column is first:
            rows = difference_rows(page.by_model(column).values(), page.practical_difference, page.alpha)
            differences[measure] = {row[0].model: row for row in rows}
    margin = page.practical_difference.get(first.measure, 0.0)
    bars = Bars.of_differences((row[2] for row in differences[first.measure].values()), margin)
    shown = rankings if len(columns) > 1 else rankings[:1]

    def cells(model: str) -> Iterator[str | Cell]:
        yield short_text(model)
        for ranking in shown:
            column, rows = columns.get(ranking.measure), differences.get(ranking.measure)
            if ranking.ranks:
                yield column.ranks.get(model, "") if column and rows is not None else ""
            yield _figure_cell(column, model)
            if ranking.baseline is not None:
                yield _difference_cell((rows or {}).get(model), ranking.bars or bars, apart=ranking.bars is not None)
            if ranking.letters:
                yield column.letters.get(model, "") if column and rows is not None else ""

    by_model = differences[first.measure]
    return Group(
        rows=tuple(tuple(cells(model)) for model in first.estimates),
        title=_slice_title(first),
        slice=short_text(first.slice),
        note=f"scale of the bars: {bars.ends}" if by_model else "",
        ground=bars.ground if by_model else "",
        open=first.slice == ALL,
    )


def _figure_cell(column: MeasureColumn | None, model: str) -> str | Cell:
    if column is None or model not in column.estimates:
        return ""
    line = column.estimates[model]
    bounds = (line.ties_least, line.ties_greatest)
    ties = "" if None in bounds else f"ties {' to '.join(map(figure, bounds))}"
    small = "; ".join(filter(None, (Interval.of(line).ends(), ties)))
    text = f"{figure(line.estimate)}{column.mark(model)}"
    return Cell(text, strong=column.is_best(model), small=small, tint=_tint(column, line.estimate))


def _tint(column: MeasureColumn, value: float | None) -> int:
    """Return the closeness to the best estimate, in steps no finer than the best one's interval."""
    if value is None or column.best is None or len(column.estimates) < 2:
        return 0
    best = next(iter(column.estimates.values()))
    values = [line.estimate for line in column.estimates.values() if line.estimate is not None]
    width = 0.0 if best.ci_low is None or best.ci_high is None else best.ci_high - best.ci_low
    length = max(max(values) - min(values), width)
    return round(_TINTS * (1 - abs(value - column.best) / length)) if length else 0


def _slice_title(column: MeasureColumn) -> str:
    line = next(iter(column.estimates.values()))
    judged = column.slice == ALL or line.n_clusters >= LEAST_CLUSTERS
    few = "" if judged else f", under {LEAST_CLUSTERS} to judge by: shown but not judged"
    return f"{short_text(column.slice)}: {queries(column.n_queries)}{few}"


def _difference_cell(row: DifferenceRow | None, bars: Bars, *, apart: bool) -> Cell:
    """Return the difference with its bar. Bars `apart` have their own line of zero."""
    if row is None:
        return Cell("")
    _, label, ends, _ = row
    difference, interval = bars.cells(ends, LABEL_TONES[label])
    bar = f"{interval.bar};{bars.ground}" if apart and interval.bar else interval.bar
    return replace(interval, text=difference.text, small=interval.text, bar=bar)


def _legend(page: Page) -> Iterator[str]:
    estimates = page.evaluation.estimates
    lower = [name for name, direction in page.evaluation.directions.items() if direction == "lower"]
    if lower := [name for name in lower if any(line.measure == name for line in estimates)]:
        yield f"Lower is better: {', '.join(lower)}."
    if any(line.mark and line.ci_low is not None for line in estimates):
        yield f"{UNSURE} an interval that is not reliable: few queries or clusters decide it, or all score alike."
    datasets = [name for name in page.leading if page.baseline(name) is not None and page.on_all(name)]
    for measure in dict.fromkeys(page.leading_difference[name] for name in datasets):
        yield f"{effect_rule(measure, page.practical_difference, page.alpha)}."
    if page.all_pairs and any(column.comparisons for column in page.columns.values()):
        yield "Letters: models that share one do not differ significantly by the lead measure, or by the chosen one."
    if any(line.ties_least is not None for line in estimates):
        yield f"{FLIPS} another order of documents with equal scores would put another model first."


_SLICE_ROWS = 20  # of a dataset
_CHANGES = (
    *(_MODEL, Column("slice", "name"), Column("queries"), Column("before"), Column("after")),
    *(Column("difference"), Column("of the change"), Column("compared with", "name")),
)


def standing(page: Page) -> Section | None:
    """Return the worst slices of each model, its owner and its external metrics."""
    parts = (("Worst slices", _worst_slices(page)), ("Owners and external metrics", _external_metrics(page)))
    parts_with_blocks = ((title, tuple(content)) for title, content in parts)
    blocks = tuple(Section("", title, content, folded=False) for title, content in parts_with_blocks if content)
    return Section("standing", "Standing", blocks, folded=False) if blocks else None


def _worst_slices(page: Page) -> Iterator[Block]:
    since = {(line.dataset, line.model): line for line in page.evaluation.changes if line.slice}  # accepted last
    datasets = list(dict.fromkeys(dataset for dataset, _ in since))
    if datasets:
        groups = tuple(_slice_changes(page, dataset, [*since.values()]) for dataset in datasets)
        yield Table("worst-changes", "The slice that explains most of each drop", _CHANGES, groups)
    others = [name for name in page.leading if name not in datasets and page.baseline(name) is None]
    groups = tuple(group for name in others for group in _slice_figures(page, name))
    if groups:
        caption = f"The slice with the worst figure, by model, of those with {LEAST_CLUSTERS} queries or more"
        columns = (_MODEL, Column("slice", "name"), Column("figure"), Column("interval", "bar"), Column("queries"))
        yield Table("worst-figures", caption, columns, groups)


def _slice_changes(page: Page, dataset: str, changes: Sequence[ChangeSince]) -> Group:
    lines = [line for line in changes if line.dataset == dataset]
    signs = {line.measure: -1 if page.evaluation.directions[line.measure] == "lower" else 1 for line in lines}
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


def _slice_figures(page: Page, dataset: str) -> Iterator[Group]:
    lines = _worst_of_models(worst_figures(page.evaluation, dataset))
    if lines:
        bars = Bars.of_estimates(map(Interval.of, lines))
        rows = (
            (short_text(line.model), short_text(line.slice), *bars.cells(Interval.of(line)), f"{line.n_queries:,}")
            for line in lines
        )
        yield bars.group(rows, f"{dataset_title(dataset)}: {page.leading[dataset]}")


def _worst_of_models(lines: Sequence[Estimate]) -> list[Estimate]:
    judged = [line for line in lines if not few_mark(line)]
    first = {line.model: line for line in reversed(judged)}
    return [line for line in judged if line is first[line.model]][:_SLICE_ROWS]


def _external_metrics(page: Page) -> Iterator[Block]:
    models, external_metrics = page.manifest.models, page.manifest.external_metrics
    numbers = {model: external_metrics[model].numbers if model in external_metrics else {} for model in models}
    names = list(dict.fromkeys(name for values in numbers.values() for name in values))
    rows = tuple(
        (
            short_text(model),
            short_text(models[model].owner or ""),
            *(f"{values[name]:,.10g}" if name in values else "" for name in names),
        )
        for model, values in numbers.items()
        if values or models[model].owner
    )
    if rows:
        columns = (_MODEL, Column("owner", "name"), *(Column(short_text(name)) for name in names))
        caption = "Owners of the models, and external metrics"
        yield Table("external", caption, columns, (Group(rows),), searched="model")
    for model, extra in external_metrics.items():
        if extra.reason:
            yield Words(f"{short_text(model)}: {short_text(extra.reason, REASON)}", "warn")


SECTIONS = (verdict, leaderboard, standing)
"""Sections of this topic in their order on the page."""
