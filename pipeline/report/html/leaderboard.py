"""The leaderboards of a page, and the overview of several evaluations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rankledger.pipeline.report.html.blocks import (
    TONES,
    Block,
    Cell,
    Column,
    DifferenceBars,
    Group,
    PagePart,
    Row,
    Section,
    Table,
    Words,
    bar_cell,
    dataset_title,
    estimate_scale,
)
from rankledger.pipeline.report.tables import (
    FLIPS,
    UNSURE,
    DifferenceRow,
    Interval,
    MeasureColumn,
    PageFigures,
    SideBySide,
    comparability_notes,
    difference_rows,
    figure,
    side_by_side,
)
from rankledger.pipeline.report.text_table import queries, short_text
from rankledger.pipeline.types.results import ALL, LEAST_CLUSTERS, Estimate

__all__ = ["leaderboard", "overview"]

_ROWS = 2_000  # beyond which slices are shown by the lead measure alone


@dataclass(frozen=True)
class _Layout:
    """The columns of a dataset's table beside the model, its figure and the interval.

    Attributes:
        baseline: the one model that all others were compared with; None leaves out the differences.
        letters: whether each model was compared with each.
        ties: whether the bounds over the orders of ties are known.
    """

    baseline: str | None
    letters: bool
    ties: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        columns = [Column("model", "name"), Column("figure"), Column("interval", "bar")]
        if self.baseline is not None:
            against = f"difference to {short_text(self.baseline, 30)}"
            columns += [Column(against), Column("interval of the difference", "difference"), Column("p")]
        if self.letters:
            columns += [Column("letters", "text")]
        return tuple([*columns, Column("over orders of ties")] if self.ties else columns)


def leaderboard(figures: PageFigures) -> Section:
    """A table per dataset: models, the best first, with their figures, differences or letters, and bounds of ties."""
    whole = len(figures.page.evaluation.estimates) <= _ROWS
    boards = {
        dataset: [
            column
            for column in figures.columns_of(dataset)
            if whole or column.slice == ALL or column.measure == measure
        ]
        for dataset, measure in figures.leading.items()
    }
    layouts = {dataset: _layout(figures, dataset, columns) for dataset, columns in boards.items()}
    parts: list[Block] = [] if whole else [Words("Slices by other measures: summary.csv.", "quiet")]
    parts += [
        PagePart(dataset_title(dataset), (_board(figures, dataset, columns, layouts[dataset]),))
        for dataset, columns in boards.items()
    ]
    lines = (line for columns in boards.values() for column in columns for line in column.estimates.values())
    unreliable = any(line.mark and line.ci_low is not None for line in lines)
    parts += [Words(text, "quiet") for text in _legend(unreliable, layouts.values())]
    return Section("leaderboard", "Leaderboard", tuple(parts))


def _layout(figures: PageFigures, dataset: str, columns: Sequence[MeasureColumn]) -> _Layout:
    return _Layout(
        baseline=figures.baseline(dataset),
        letters=figures.all_pairs and any(column.comparisons for column in columns),
        ties=any(line.ties_least is not None for column in columns for line in column.estimates.values()),
    )


def _board(figures: PageFigures, dataset: str, columns: Sequence[MeasureColumn], layout: _Layout) -> Table:
    return Table(
        name=f"leaderboard-{short_text(dataset)}",
        caption=f"Leaderboard of {dataset_title(dataset)}",
        columns=layout.columns,
        groups=tuple(_group(figures, column, layout) for column in columns),
        chosen=len(columns) > 1,
        searched="model",
    )


def _group(figures: PageFigures, column: MeasureColumn, layout: _Layout) -> Group:
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
        cells: list[str | Cell] = [short_text(model), best if column.is_best(model) else figure(intervals[model].value)]
        cells += [bar_cell(intervals[model], scale, intervals[model].ends())]
        if layout.baseline is not None:
            cells += _against(by_model.get(model), bars)
        if layout.letters:
            cells += [column.letters.get(model, "")]
        return tuple([*cells, _ties(column.estimates[model])] if layout.ties else cells)

    return Group(
        rows=tuple(map(row, column.estimates)),
        title=_title(column),
        measure=column.measure,
        slice=short_text(column.slice),
        note=f"bars from {scale.text()}" + (f", of differences from {bars.ends}" if by_model else ""),
        ground=bars.ground if by_model else "",
        open=column.slice == ALL and column.measure == figures.leading[column.dataset],
    )


def _title(column: MeasureColumn) -> str:
    """The measure, the slice and its size, such as `ndcg@10, market=de: 120 queries`."""
    line = next(iter(column.estimates.values()))
    lower = ", lower is better" if column.direction == "lower" else ""
    judged = column.slice == ALL or line.n_clusters >= LEAST_CLUSTERS
    few = "" if judged else f", under {LEAST_CLUSTERS} to judge by: shown but not judged"
    return f"{column.measure}{lower}, {short_text(column.slice)}: {queries(column.n_queries)}{few}"


def _against(row: DifferenceRow | None, bars: DifferenceBars) -> Sequence[str | Cell]:
    """The difference to the baseline, its interval and its p-value; empty for the baseline itself."""
    if row is None:
        return ("", "", "")
    return (*bars.cells(row.interval, TONES[row.label]), row.corrected_p or row.p)


def _ties(line: Estimate) -> str:
    if line.ties_least is None or line.ties_greatest is None:
        return ""
    return f"{figure(line.ties_least)} to {figure(line.ties_greatest)}"


def _legend(unreliable: bool, layouts: Collection[_Layout]) -> Iterator[str]:
    """What the marks and headers of the tables mean."""
    if unreliable:
        yield (
            f"{UNSURE} an interval that is not reliable: fewer than {LEAST_CLUSTERS} queries or clusters differ from "
            "the most frequent score, or all of them score alike."
        )
    if any(layout.baseline is not None for layout in layouts):
        yield "Differences above 0 are better; p: of no difference, corrected unless the config says not to."
    if any(layout.letters for layout in layouts):
        yield "Letters: models that share one are not distinguishable."
    if any(layout.ties for layout in layouts):
        yield f"{FLIPS} another order of documents with equal scores would put another model first."


def overview(pages: Sequence[PageFigures]) -> Section:
    """A row per model and a column per evaluation, dataset by dataset."""
    own = [figures.page for figures in pages]
    columns = (Column("model", "name"), *(Column(short_text(page.title), "bar") for page in own))
    groups = tuple(map(_overview_group, side_by_side(own)))
    table = Table("overview", "Figures by the lead measure of each dataset", columns, groups, searched="model")
    blocks: list[Block] = [table, *(Words(text, "warn") for text in map(short_text, comparability_notes(own)))]
    return Section("overview", "Overview", tuple(blocks))


def _overview_group(table: SideBySide) -> Group:
    intervals = {
        model: [None if line is None else Interval.of(line) for line in lines] for model, lines in table.rows.items()
    }
    scale = estimate_scale(line for lines in intervals.values() for line in lines if line is not None)
    rows = tuple(
        (short_text(model), *("" if line is None else bar_cell(line, scale, str(line)) for line in lines))
        for model, lines in intervals.items()
    )
    return Group(rows, title=f"{dataset_title(table.dataset)}: {table.measure}", note=f"bars from {scale.text()}")
