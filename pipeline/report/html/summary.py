"""The top of a page: the verdict, how each model stands, the leaderboards, and the overview of several evaluations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from rankledger.pipeline.report.effects import decisive_p, effect_rule
from rankledger.pipeline.report.headline import headline_of
from rankledger.pipeline.report.html.blocks import (
    TONES,
    Block,
    Cell,
    Chips,
    Column,
    DifferenceBars,
    Folded,
    Group,
    Kind,
    PagePart,
    Row,
    Section,
    Table,
    Tone,
    Words,
    bar_cell,
    dataset_title,
    estimate_scale,
)
from rankledger.pipeline.report.html.trends import over_time
from rankledger.pipeline.report.messages import agreement_notes, completeness, not_compared, rank_note, replicate_notes
from rankledger.pipeline.report.tables import (
    FLIPS,
    UNSURE,
    DifferenceRow,
    Interval,
    MeasureColumn,
    PageFigures,
    comparability_notes,
    difference_rows,
    few_mark,
    figure,
    p_value,
    side_by_side,
    worst_differences,
    worst_figures,
)
from rankledger.pipeline.report.text_table import counted, printable, queries, short_text
from rankledger.pipeline.report.verdicts import REASON, headline, not_judged, passed, raised
from rankledger.pipeline.types.gates import Effect, Outcome, Verdict, overall_outcome
from rankledger.pipeline.types.results import ALL, LEAST_CLUSTERS, Comparison, Estimate, Evaluation
from rankledger.pipeline.types.views import VarianceComponents

__all__ = ["SECTIONS", "leaderboard", "overview", "verdict"]

_SLICE_ROWS = 20  # of a dataset
_IF_SMALL = f"if it has under {LEAST_CLUSTERS} queries, also the one of those that have more"
_MODEL, _INTERVAL = Column("model", "name"), Column("interval", "difference")
_CONCLUSION = Column("conclusion", "text")
_COMPONENTS = (
    *(_MODEL, Column("queries"), Column("replicates")),
    *(Column("between queries"), Column("between replicates"), Column("rest"), Column("standard error")),
    *(Column("with twice the queries"), Column("with twice the replicates"), Column("more would help", "text")),
)
_KINDS: dict[str, Kind] = {"effect": "text", "outcome": "text", "reason": "reason"}
_EFFECTS: dict[Effect, tuple[str, Tone]] = {
    "fail": ("✗ fail", "bad"),
    "stop": ("✗ stop", "bad"),
    "warn": ("! warn", "warn"),
    "pass": ("✓ pass", "good"),
}
_OUTCOMES: dict[Outcome, tuple[str, Tone]] = {
    "pass": ("passed", "good"),
    "fail": ("failed", "bad"),
    "inconclusive": ("inconclusive", "warn"),
    "not comparable": ("not comparable", "warn"),
    "not evaluated": ("not evaluated", "warn"),
    "not judged": ("not judged", ""),
}

Line = TypeVar("Line", Estimate, Comparison)


def verdict(figures: PageFigures) -> Section:
    """What comes first: the gates, what is missing, and how the models stand."""
    evaluation = figures.page.evaluation
    blocks = [*_headline(figures), *over_time(figures), *_outcome(figures), *_failures(figures)]
    if evaluation.data_warnings:
        warnings = counted(len(evaluation.data_warnings), "warning")
        blocks.append(Words(f"{warnings} on the inputs: see Data quality.", "warn"))
    if lines := raised(evaluation.verdicts):
        blocks.append(_verdict_table("raised", "Verdicts that do not pass", lines))
    if small := not_judged(evaluation.verdicts):
        blocks.append(Words(f"{printable(small)}.", "quiet"))
    return Section("verdict", "Verdict", (*blocks, *_passed(evaluation.verdicts), *_standing(figures)))


_TONES: dict[str, Tone] = {"pass": "good", "fail": "bad", "inconclusive": "warn"}


def _headline(figures: PageFigures) -> Iterator[Block]:
    """What happened, in a few sentences."""
    evaluation = figures.page.evaluation
    if text := headline_of(evaluation):
        tone = _TONES[overall_outcome(evaluation.verdicts)] if evaluation.verdicts else ""
        yield Words(text, tone, leads=True)


def _outcome(figures: PageFigures) -> Iterator[Block]:
    """What the gates amount to, and what was evaluated."""
    evaluation = figures.page.evaluation
    if evaluation.verdicts:
        yield Words(headline(evaluation.verdicts), _TONES[overall_outcome(evaluation.verdicts)])
        judged = [line for line in evaluation.verdicts if line.outcome != "not judged"]
        if any(line.outcome != line.effect for line in judged):  # the headline counts effects
            counts = Counter(line.outcome for line in evaluation.verdicts)
            chips = [Cell(f"{counts[key]:,} {word}", tone) for key, (word, tone) in _OUTCOMES.items() if counts[key]]
            yield Chips("outcomes:", tuple(chips))
    word, evaluated = completeness(evaluation)
    if word == "Incomplete":
        yield Words(f"{word}: {evaluated}.", "bad", leads=True)
    else:
        yield Words(f"{word}: {evaluated}{'' if evaluation.verdicts else '; there are no gates'}.")


def _failures(figures: PageFigures) -> Iterator[Block]:
    """The outputs that were not evaluated, and why."""
    rows = tuple(
        (
            Cell(short_text(str(failure.output[1])), "bad"),
            short_text(failure.dataset),
            short_text(failure.reason, REASON),
        )
        for failure in figures.page.evaluation.failures
    )
    if rows:
        columns = (_MODEL, Column("dataset", "name"), Column("reason", "reason"))
        yield Table("failures", "Model outputs that were not evaluated", columns, (Group(rows),))
    yield from (Words(f"{printable(line)}.", "warn") for line in not_compared(figures.page.evaluation))


def _passed(verdicts: Sequence[Verdict]) -> Iterator[Block]:
    """What passes, gate by gate, folded."""
    for number, gate in enumerate(dict.fromkeys(line.gate for line in verdicts), start=1):
        own = [line for line in passed(verdicts) if line.gate == gate]
        if own:
            name = short_text(gate)
            table = _verdict_table(f"passed-{number}", f"Verdicts of {name} that pass", own)
            yield Folded(name, f"{counted(len(own), 'verdict')} passed", (table,))


def _verdict_table(name: str, caption: str, verdicts: Sequence[Verdict]) -> Table:
    headers = ("effect", "reason", "gate", "dataset", "model", "measure", "slice", "outcome")
    rows = tuple(
        (
            Cell(*_EFFECTS[line.effect]),
            short_text(line.reason, REASON),
            *map(short_text, (line.gate, line.dataset, line.model, line.measure, line.slice)),
            line.outcome,
        )
        for line in verdicts
    )
    return Table(name, caption, tuple(Column(head, _KINDS.get(head, "name")) for head in headers), (Group(rows),))


def _standing(figures: PageFigures) -> Iterator[Block]:
    """How each model stands: a part for everything there is something to say of."""
    parts = (
        ("Against other records", _against_records(figures)),
        ("Against the baseline", _against_baselines(figures)),
        ("Worst slices", _worst_slices(figures)),
        ("Owners and external metrics", _external_metrics(figures)),
    )
    for title, content in parts:
        blocks = tuple(content)
        if blocks:
            yield PagePart(title, blocks)


def _against_records(figures: PageFigures) -> Iterator[Block]:
    """The differences that gates judged against models of other records, such as the accepted one.

    Slices that pass are left out: gates may judge hundreds. So are shares of queries (`allow: 5%`): they are no
    differences of the measure.
    """
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
    columns = (_MODEL, Column("difference"), _INTERVAL, Column("outcome", "text"), *names)
    caption = "Differences from models of other records"
    tables = tuple(_record_group(figures, *group) for group in groups.items())
    yield Table("records", caption, columns, tables, searched="model")
    if len(judged) > len(lines):
        yield Words(f"{counted(len(judged) - len(lines), 'difference')} on slices passed.", "quiet")


def _record_group(figures: PageFigures, key: tuple[str, str], lines: Sequence[Verdict]) -> Group:
    """The differences to other records on a dataset by a measure."""
    dataset, measure = key
    bars = DifferenceBars.of(map(Interval.of, lines), figures.practical_difference.get(measure, 0.0))

    def row(line: Verdict) -> Row:
        tone: Tone = "bad" if line.outcome == "fail" else ""
        names = map(short_text, (line.slice, line.gate, line.reference))
        return (short_text(line.model), *bars.cells(Interval.of(line), tone), Cell(line.outcome, tone), *names)

    return bars.group(map(row, lines), f"{dataset_title(dataset)}: {measure}")


def _against_baselines(figures: PageFigures) -> Iterator[Block]:
    """A row per model by the leading measure of each dataset, and the rule behind the conclusions."""
    datasets = [name for name in figures.leading if figures.baseline(name) is not None]
    groups = tuple(_baseline_group(figures, name) for name in datasets if figures.on_all(name))
    if groups:
        columns = (_MODEL, Column("difference"), _INTERVAL, _CONCLUSION, Column("figure"))
        caption = "Differences by the leading measure of each dataset"
        yield Table("standing", caption, columns, groups, searched="model")
        for measure in dict.fromkeys(figures.leading_difference[name] for name in datasets):
            yield Words(f"{effect_rule(measure, figures.practical_difference)}.", "quiet")


def _baseline_group(figures: PageFigures, dataset: str) -> Group:
    measure = figures.leading_difference[dataset]
    lines = difference_rows(figures.on_all(dataset), figures.practical_difference)
    bars = DifferenceBars.of((line.interval for line in lines), figures.practical_difference.get(measure, 0.0))
    rows = (
        (
            *(short_text(row.line.model), *bars.cells(row.interval, TONES[row.label])),
            *(Cell(row.label, TONES[row.label]), figure(row.line.estimate)),
        )
        for row in lines
    )
    return bars.group(rows, f"{dataset_title(dataset)}: {measure} against {short_text(figures.baseline(dataset))}")


def _worst_slices(figures: PageFigures) -> Iterator[Block]:
    """A row per model, the worst first: by the difference from its baseline, or by its figure if it has none.

    If that slice is too small to be judged, the worst one that is not has a row, too.
    """
    compared = [name for name in figures.leading if figures.baseline(name) is not None]
    groups = tuple(group for name in compared for group in _slice_differences(figures, name))
    if groups:
        caption = f"The slice with the lowest difference, by model; {_IF_SMALL}"
        yield Table("worst-differences", caption, _slice_columns("difference"), groups)
    others = [name for name in figures.leading if name not in compared]
    groups = tuple(group for name in others for group in _slice_figures(figures, name))
    if groups:
        caption = f"The slice with the worst figure, by model; {_IF_SMALL}"
        yield Table("worst-figures", caption, _slice_columns("bar"), groups)


def _slice_columns(kind: Literal["bar", "difference"]) -> tuple[Column, ...]:
    value = Column("figure" if kind == "bar" else "difference")
    return (_MODEL, Column("slice", "name"), value, Column("interval", kind), _CONCLUSION, Column("queries"))


def _slice_differences(figures: PageFigures, dataset: str) -> Iterator[Group]:
    """A dataset's rows by differences; none if it has no slices."""
    measure = figures.leading_difference[dataset]
    worst = _worst_of_models(worst_differences(figures.page.evaluation, dataset))
    lines = difference_rows(worst, figures.practical_difference)
    bars = DifferenceBars.of((line.interval for line in lines), figures.practical_difference.get(measure, 0.0))
    rows = [
        (
            *(short_text(row.line.model), short_text(row.line.slice), *bars.cells(row.interval, TONES[row.label])),
            few_mark(row.line) or Cell(row.label, TONES[row.label]),
            f"{row.line.n_queries:,}",
        )
        for row in lines
    ]
    if rows:
        yield bars.group(rows, f"{dataset_title(dataset)}: {measure}")


def _slice_figures(figures: PageFigures, dataset: str) -> Iterator[Group]:
    """A dataset's rows by figures; none if it has no slices, or neither end of its measure is better."""
    lines = _worst_of_models(worst_figures(figures.page.evaluation, dataset))
    if lines:
        scale = estimate_scale(map(Interval.of, lines))
        rows = tuple(
            (
                short_text(line.model),
                short_text(line.slice),
                figure(line.estimate),
                bar_cell(Interval.of(line), scale, Interval.of(line).ends()),
                few_mark(line),
                f"{line.n_queries:,}",
            )
            for line in lines
        )
        title = f"{dataset_title(dataset)}: {figures.leading[dataset]}"
        yield Group(rows, title, note=f"scale of the bars: {scale.text()}")


def _worst_of_models(lines: Sequence[Line]) -> list[Line]:
    """The first line of each model, and the first one that is judged if that is another."""
    first = {line.model: line for line in reversed(lines)}
    judged = {line.model: line for line in reversed(lines) if not few_mark(line)}
    return [line for line in lines if line in (first[line.model], judged.get(line.model))][:_SLICE_ROWS]


def _external_metrics(figures: PageFigures) -> Iterator[Block]:
    """Who owns each model, and its external metrics, such as latency and cost; or why they cannot be read."""
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
        if extra.reason is not None:
            yield Words(f"{short_text(model)}: {short_text(extra.reason, REASON)}", "warn")


_BOARD_ROWS = 2_000  # beyond which slices are shown by the lead measure alone


@dataclass(frozen=True)
class _Layout:
    """The columns of a dataset's table beside the model, its figure and the interval."""

    baseline: str | None  # the one model that all others were compared with; None leaves out the differences
    letters: bool  # whether each model was compared with each
    ranks: bool  # whether models have ranks
    ties: bool  # whether the bounds over the orders of ties are known

    @property
    def columns(self) -> tuple[Column, ...]:
        columns = [Column("model", "name"), *([Column("rank")] if self.ranks else [])]
        columns += [Column("figure"), Column("interval", "bar")]
        if self.baseline is not None:
            against = f"difference from {short_text(self.baseline, 30)}"
            columns += [Column(against), Column("interval of the difference", "difference"), Column("p")]
        if self.letters:
            columns += [Column("letters", "text")]
        return tuple([*columns, Column("over orders of ties")] if self.ties else columns)


def leaderboard(figures: PageFigures) -> Section:
    """A table per dataset: models, the best first, with their figures, differences or letters, and bounds of ties."""
    whole = len(figures.page.evaluation.estimates) <= _BOARD_ROWS
    parts: list[Block] = [] if whole else [Words("Slices by other measures: summary.csv.", "quiet")]
    layouts, drawn = [], []
    for dataset, measure in figures.leading.items():
        own = figures.columns_of(dataset)
        columns = [column for column in own if whole or column.slice == ALL or column.measure == measure]
        lines = [line for column in columns for line in column.estimates.values()]
        letters = figures.all_pairs and any(column.comparisons for column in columns)
        ranks, ties = any(column.ranks for column in columns), any(line.ties_least is not None for line in lines)
        layout = _Layout(figures.baseline(dataset), letters, ranks, ties)
        blocks: list[Block] = [_board(figures, dataset, columns, layout)]
        if columns[0].ranks:
            blocks += [Words(f"{printable(rank_note(columns[0], figures.page.evaluation.confidence))}.", "quiet")]
        evaluation = figures.page.evaluation
        blocks += [Words(f"{printable(text)}.", "quiet") for text in agreement_notes(evaluation, dataset)]
        blocks += _components(evaluation, dataset)
        parts.append(PagePart(dataset_title(dataset), tuple(blocks)))
        layouts.append(layout)
        drawn += lines
    unreliable = any(line.mark and line.ci_low is not None for line in drawn)
    parts += [Words(text, "quiet") for text in _legend(unreliable, layouts)]
    return Section("leaderboard", "Leaderboard", tuple(parts))


def _components(evaluation: Evaluation, dataset: str) -> Iterator[Block]:
    """What the errors of families of replicates are made of, and by the lead measure what would help."""
    own: dict[str, list[VarianceComponents]] = {}
    for line in evaluation.components:
        if line.dataset == dataset:
            own.setdefault(line.measure, []).append(line)
    if not own:
        return
    lead = evaluation.leading[dataset]
    groups = tuple(
        Group(tuple(map(_component_cells, lines)), measure, measure, ALL, open=measure == lead)
        for measure, lines in own.items()
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


def _board(figures: PageFigures, dataset: str, columns: Sequence[MeasureColumn], layout: _Layout) -> Table:
    return Table(
        name=f"leaderboard-{short_text(dataset)}",
        caption=f"Leaderboard of {dataset_title(dataset)}",
        columns=layout.columns,
        groups=tuple(_board_group(figures, column, layout) for column in columns),
        chosen=len(columns) > 1,
        searched="model",
    )


def _board_group(figures: PageFigures, column: MeasureColumn, layout: _Layout) -> Group:
    """The rows by one measure in one slice."""
    intervals = {model: Interval.of(line) for model, line in column.estimates.items()}
    differences = difference_rows(figures.by_model(column).values(), figures.practical_difference)
    by_model = {row.line.model: row for row in differences}
    scale = estimate_scale(intervals.values())
    bars = DifferenceBars.of(
        (row.interval for row in differences), figures.practical_difference.get(column.measure, 0.0)
    )

    def row(model: str) -> Row:
        best = Cell(f"{figure(intervals[model].value)}{column.mark(model)}", strong=True)
        cells: list[str | Cell] = [short_text(model), *([column.ranks.get(model, "")] if layout.ranks else [])]
        cells += [best if column.is_best(model) else figure(intervals[model].value)]
        cells += [bar_cell(intervals[model], scale, intervals[model].ends())]
        if layout.baseline is not None:
            cells += _difference_cells(by_model.get(model), bars)
        if layout.letters:
            cells += [column.letters.get(model, "")]
        return tuple([*cells, _ties(column.estimates[model])] if layout.ties else cells)

    return Group(
        rows=tuple(map(row, column.estimates)),
        title=_column_title(column),
        measure=column.measure,
        slice=short_text(column.slice),
        note=f"scale of the bars: {scale.text()}" + (f"; of differences: {bars.ends}" if by_model else ""),
        ground=bars.ground if by_model else "",
        open=column.slice == ALL and column.measure == figures.leading[column.dataset],
    )


def _column_title(column: MeasureColumn) -> str:
    """The measure, the slice and its size, such as `ndcg@10, market=de: 120 queries`."""
    line = next(iter(column.estimates.values()))
    lower = ", lower is better" if column.direction == "lower" else ""
    judged = column.slice == ALL or line.n_clusters >= LEAST_CLUSTERS
    few = "" if judged else f", under {LEAST_CLUSTERS} to judge by: shown but not judged"
    return f"{column.measure}{lower}, {short_text(column.slice)}: {queries(column.n_queries)}{few}"


def _difference_cells(row: DifferenceRow | None, bars: DifferenceBars) -> Sequence[str | Cell]:
    """The difference from the baseline, its interval and its p-value; empty for the baseline itself."""
    if row is None:
        return ("", "", "")
    return (*bars.cells(row.interval, TONES[row.label]), p_value(decisive_p(row.line), row.line.p_least))


def _ties(line: Estimate) -> str:
    bounds = (line.ties_least, line.ties_greatest)
    return "" if None in bounds else " to ".join(map(figure, bounds))


def _legend(unreliable: bool, layouts: Collection[_Layout]) -> Iterator[str]:
    """What the marks and headers of the tables mean."""
    if unreliable:
        yield (f"{UNSURE} an interval that is not reliable: few queries or clusters decide it, or all score alike.")
    if any(layout.baseline is not None for layout in layouts):
        yield "Differences above 0 are better; p: of no difference, corrected unless the config says not to."
    if any(layout.letters for layout in layouts):
        yield "Letters: models that share one do not differ significantly."
    if any(layout.ties for layout in layouts):
        yield f"{FLIPS} another order of documents with equal scores would put another model first."


def overview(pages: Sequence[PageFigures]) -> Section:
    """A row per model and a column per evaluation, dataset by dataset."""
    own = [figures.page for figures in pages]
    columns = (Column("model", "name"), *(Column(short_text(page.title), "bar") for page in own))
    groups = tuple(_overview_group(*table) for table in side_by_side(own))
    table = Table("overview", "Figures by the lead measure of each dataset", columns, groups, searched="model")
    blocks: list[Block] = [table, *(Words(text, "warn") for text in map(short_text, comparability_notes(own)))]
    return Section("overview", "Overview", tuple(blocks))


def _overview_group(dataset: str, measure: str, intervals: Mapping[str, Sequence[Interval | None]]) -> Group:
    scale = estimate_scale(line for lines in intervals.values() for line in lines if line is not None)
    rows = tuple(
        (short_text(model), *("" if line is None else bar_cell(line, scale, str(line)) for line in lines))
        for model, lines in intervals.items()
    )
    return Group(rows, title=f"{dataset_title(dataset)}: {measure}", note=f"scale of the bars: {scale.text()}")


SECTIONS = (verdict, leaderboard)
"""The sections, in their order on the page."""
