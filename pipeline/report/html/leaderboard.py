"""The leaderboards of a page, and the overview of several evaluations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rankledger.pipeline.report.html.blocks import (
    Block,
    Cell,
    CellScale,
    Column,
    Group,
    Key,
    PageFigures,
    PagePart,
    Row,
    Section,
    Table,
    Words,
    difference_scale,
    estimate_scale,
    interval,
    queries,
    short_text,
    tone_of,
)
from rankledger.pipeline.report.tables import (
    ALL,
    FEW,
    FLIPS,
    UNSURE,
    best,
    challengers,
    comparability_notes,
    display_name,
    figure,
    p_value,
    shared_lead_measures,
    signed,
)
from rankledger.pipeline.types.results import Comparison, Estimate

__all__ = ["leaderboard", "overview"]

_ROWS = 2_000  # beyond which slices are shown by the leading measure alone


@dataclass(frozen=True)
class _Layout:
    """Which columns a dataset's table has beside the model, its figure and the interval.

    Attributes:
        baseline: the one model that all others were compared with; None leaves out the differences.
        letters: whether each was compared with each.
        ties: whether the bounds over the orders of ties are known.
    """

    baseline: str | None
    letters: bool
    ties: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        """Their heads."""
        found = [Column("model", "name"), Column("figure"), Column("interval", "bar")]
        if self.baseline is not None:
            against = f"difference to {short_text(self.baseline, 30)}"
            found += [Column(against), Column("interval of the difference", "difference"), Column("p")]
        if self.letters:
            found += [Column("letters", "text")]
        return tuple([*found, Column("over orders of ties")] if self.ties else found)


def leaderboard(figures: PageFigures) -> Section:
    """A table per dataset: models, the best first, with their figures, differences or letters, and bounds of ties."""
    whole = len(figures.page.evaluation.estimates) <= _ROWS
    found = {name: _keys(figures, name, whole) for name in figures.leading}
    layouts = {name: _layout(figures, name, keys) for name, keys in found.items()}
    parts: list[Block] = [] if whole else [Words("Slices by other measures: summary.csv.", "quiet")]
    parts += [
        PagePart(short_text(display_name(name)), (_board(figures, name, found[name], layouts[name]),)) for name in found
    ]
    lines = (line for keys in found.values() for key in keys for line in figures.estimates[key].values())
    marked = any(line.mark and line.ci_low is not None for line in lines)
    parts += [Words(text, "quiet") for text in _legend(marked, layouts.values())]
    return Section("leaderboard", "Leaderboard", tuple(parts))


def _keys(figures: PageFigures, dataset: str, whole: bool) -> list[Key]:
    measure = figures.leading[dataset]
    return [key for key in figures.keys(dataset) if whole or key[1] == ALL or key[2] == measure]


def _layout(figures: PageFigures, dataset: str, keys: Sequence[Key]) -> _Layout:
    return _Layout(
        baseline=figures.baseline(dataset),
        letters=figures.all_pairs and any(key in figures.comparisons for key in keys),
        ties=any(line.ties_least is not None for key in keys for line in figures.estimates[key].values()),
    )


def _board(figures: PageFigures, dataset: str, keys: Sequence[Key], layout: _Layout) -> Table:
    return Table(
        name=f"leaderboard-{short_text(dataset)}",
        caption=f"Leaderboard of {short_text(display_name(dataset))}",
        columns=layout.columns,
        groups=tuple(_group(figures, key, layout) for key in keys),
        chosen=len(keys) > 1,
        searched="model",
    )


def _group(figures: PageFigures, key: Key, layout: _Layout) -> Group:
    """The rows by one measure in one slice."""
    dataset, part, measure = key
    lines, compared = figures.estimates[key], figures.by_model(key)
    margin = figures.practical_difference.get(measure, 0.0)
    own, theirs = estimate_scale(lines.values()), difference_scale(compared.values(), margin)
    shared = figures.letters(key) if layout.letters else {}
    leader = _leader(figures, key)

    def row(model: str) -> Row:
        line = lines[model]
        cells: list[str | Cell] = [short_text(model), leader.get(model, figure(line.estimate))]
        cells += [own.cell(line.ci_low, line.estimate, line.ci_high, interval(line, figure))]
        if layout.baseline is not None:
            cells += _against(figures, compared.get(model), theirs)
        if layout.letters:
            cells += [shared.get(model, "")]
        return tuple([*cells, _ties(line)] if layout.ties else cells)

    return Group(
        rows=tuple(map(row, figures.ranked(key))),
        title=_title(figures, key),
        measure=measure,
        slice=short_text(part),
        note=f"bars from {own.written}" + (f", of differences from {theirs.written}" if compared else ""),
        ground=theirs.ground(margin) if compared else "",
        open=part == ALL and measure == figures.leading[dataset],
    )


def _leader(figures: PageFigures, key: Key) -> dict[str, Cell]:
    """The cells of the best figures, marked where another order of ties would put another model first."""
    evaluation, board, measure = figures.page.evaluation, figures.board(key), key[2]
    top = best(evaluation, board, measure)
    found: dict[str, Cell] = {}
    for model, line in figures.estimates[key].items():
        if top is not None and line.estimate == top:
            mark = FLIPS if challengers(evaluation, board, model, measure) else ""
            found[model] = Cell(f"{figure(line.estimate)}{mark}", strong=True)
    return found


def _title(figures: PageFigures, key: Key) -> str:
    """What the rows are by, and how many queries that are, such as `ndcg@10, market=de: 120 queries`."""
    _, part, measure = key
    line = next(iter(figures.estimates[key].values()))
    lower = ", lower is better" if figures.page.evaluation.directions[measure] == "lower" else ""
    few = f", under {FEW} to judge by: shown and not judged" if part != ALL and line.n_clusters < FEW else ""
    return f"{measure}{lower}, {short_text(part)}: {queries(line.n_queries)}{few}"


def _against(figures: PageFigures, line: Comparison | None, scale: CellScale) -> Sequence[str | Cell]:
    """The difference to the baseline, its interval and its p-value; nothing for the baseline itself."""
    if line is None:
        return ("", "", "")
    tone = tone_of(line, figures.practical_difference)
    return (
        Cell(signed(line.difference), tone),
        scale.cell(line.ci_low, line.difference, line.ci_high, interval(line, signed), tone),
        p_value(line.p_value if line.p_corrected is None else line.p_corrected),
    )


def _ties(line: Estimate) -> str:
    if line.ties_least is None or line.ties_greatest is None:
        return ""
    return f"{figure(line.ties_least)} to {figure(line.ties_greatest)}"


def _legend(marked: bool, layouts: Collection[_Layout]) -> Iterator[str]:
    """What the marks and heads of the tables mean, those that there are."""
    if marked:
        yield (
            f"{UNSURE} an interval that is not to be trusted: fewer than {FEW} queries or clusters differ from the "
            "most frequent score, or all of them score alike."
        )
    if any(layout.baseline is not None for layout in layouts):
        yield "Differences above 0 are for the better; p: of no difference, corrected unless the config says not to."
    if any(layout.letters for layout in layouts):
        yield "Letters: models that share one are not distinguishable."
    if any(layout.ties for layout in layouts):
        yield f"{FLIPS} another order of documents with equal scores would put another model first."


def overview(found: Sequence[PageFigures]) -> Section:
    """A row per model and a column per evaluation, dataset by dataset."""
    pages = [figures.page for figures in found]
    columns = (Column("model", "name"), *(Column(short_text(figures.page.title), "bar") for figures in found))
    groups = tuple(_overview_group(found, dataset, measure) for dataset, measure in shared_lead_measures(pages).items())
    table = Table("overview", "Figures by the leading measure of each dataset", columns, groups, searched="model")
    blocks: list[Block] = [table, *(Words(text, "warn") for text in map(short_text, comparability_notes(pages)))]
    return Section("overview", "Overview", tuple(blocks))


def _overview_group(found: Sequence[PageFigures], dataset: str, measure: str) -> Group:
    """The models on a dataset, in the order of the first evaluation that has them."""
    lines = [figures.estimates.get((dataset, ALL, measure), {}) for figures in found]
    scale = estimate_scale(line for board in lines for line in board.values())

    def cell(line: Estimate | None) -> str | Cell:
        if line is None:
            return ""
        text = f"{figure(line.estimate)} {interval(line, figure)}"
        return scale.cell(line.ci_low, line.estimate, line.ci_high, text.strip())

    models = dict.fromkeys(model for board in lines for model in board)
    rows = tuple((short_text(model), *(cell(board.get(model)) for board in lines)) for model in models)
    return Group(rows, title=f"{short_text(display_name(dataset))}: {measure}", note=f"bars from {scale.written}")
