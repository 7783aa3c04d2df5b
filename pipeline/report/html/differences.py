"""Differences on a page: pairs of models, overall, by slice and query by query."""

from __future__ import annotations

from collections.abc import Iterator

from rankledger.pipeline.report.html import difference_charts
from rankledger.pipeline.report.html.blocks import (
    TONES,
    Block,
    Cell,
    Column,
    DifferenceBars,
    Drawing,
    Drawings,
    Folded,
    Group,
    PagePart,
    Row,
    Section,
    Table,
    Words,
    against,
    dataset_title,
    isolated,
)
from rankledger.pipeline.report.tables import (
    DifferenceRow,
    Key,
    PageFigures,
    difference_rows,
    families,
    figure,
    signed,
)
from rankledger.pipeline.report.text_table import short_text
from rankledger.pipeline.types.changes import QueryChange
from rankledger.pipeline.types.results import ALL
from rankledger.pipeline.types.views import PairedScores

__all__ = ["differences", "queries", "slices"]

_ROWS = 1_000  # of all tables, beyond which the leading measure alone is shown
_LEGEND = (
    "Better, equal, worse: queries. Effect size: the mean difference in standard deviations of the differences. "
    "Detectable: the smallest difference that 80% of samples of this size would find."
)
_COLUMNS = (
    *(Column("model", "name"), Column("baseline", "name"), Column("figure"), Column("baseline's")),
    *(Column("difference"), Column("interval", "difference"), Column("p"), Column("corrected p")),
    *(
        Column("effect size"),
        Column("minimum detectable difference"),
        Column("better"),
        Column("equal"),
        Column("worse"),
    ),
    Column("conclusion", "text"),
)


def differences(figures: PageFigures) -> Section | None:
    """A forest plot and a table per dataset; None if nothing was compared."""
    lead = figures.leading_difference
    keys = sorted((key for key in figures.comparisons if key[1] == ALL), key=lambda key: key[2] != lead[key[0]])
    whole = sum(len(figures.comparisons[key]) for key in keys) <= _ROWS
    parts: list[Block] = [] if whole else [Words("Differences by other measures: comparisons.csv.", "quiet")]
    for dataset, measure in lead.items():
        own = [key for key in keys if key[0] == dataset and (whole or key[2] == measure)]
        parts += [PagePart(dataset_title(dataset), tuple(_dataset(figures, dataset, own)))] if own else []
    return Section("differences", "Differences", (*parts, Words(_LEGEND, "quiet"))) if keys else None


def slices(figures: PageFigures) -> Section | None:
    """The differences on each slice by the leading measure of each dataset; None if no slice was compared."""
    charts = []
    for dataset, measure in figures.leading_difference.items():
        lines = figures.sliced(dataset)
        if any(line.slice != ALL for line in lines):
            chart = difference_charts.slices(lines, figures.practical_difference.get(measure))
            charts += [Drawing(f"slices-{short_text(dataset)}", chart)] if chart else []
    return Section("slices", "Slices", (Drawings(tuple(charts)),)) if charts else None


def _dataset(figures: PageFigures, dataset: str, keys: list[Key]) -> Iterator[Block]:
    measure = figures.leading_difference[dataset]
    chart = difference_charts.forest(figures.on_all(dataset), figures.practical_difference.get(measure))
    if chart:
        yield Drawings((Drawing(f"differences-{short_text(dataset)}", chart),))
    yield Table(
        name=f"differences-{short_text(dataset)}",
        caption=f"Differences on {dataset_title(dataset)}",
        columns=_COLUMNS,
        groups=tuple(_group(figures, key) for key in keys),
        chosen=len(keys) > 1,
        searched="model",
    )
    for family in families(line for key in keys for line in figures.comparisons[key]):
        yield Words(f"Corrected p: among {short_text(family, _NOTE)}.", "quiet")


def _group(figures: PageFigures, key: Key) -> Group:
    dataset, _, measure = key
    rows = difference_rows(figures.comparisons[key], figures.practical_difference)
    bars = DifferenceBars.of((row.interval for row in rows), figures.practical_difference.get(measure, 0.0))
    is_open = measure == figures.leading_difference[dataset]
    return bars.group((_row(row, bars) for row in rows), measure, measure, ALL, open=is_open)


def _row(row: DifferenceRow, bars: DifferenceBars) -> Row:
    line, tone = row.line, TONES[row.label]
    return (
        *(short_text(line.model), short_text(line.baseline), row.figure, row.baseline_figure),
        *bars.cells(row.interval, tone),
        *(row.p, row.corrected_p),
        "" if line.effect_size is None else signed(line.effect_size),
        "" if line.minimum_detectable_difference is None else figure(line.minimum_detectable_difference),
        *row.counts,
        Cell(row.label, tone),
    )


_NOTE = 300  # characters
_DOCUMENT_COLUMNS = (Column("document", "name"), Column("grade"), Column("rank before"), Column("rank after"))


def queries(figures: PageFigures) -> Section | None:
    """A part per pair, and what is left out; None if there is neither."""
    blocks: list[Block] = [
        PagePart(_title(pair), tuple(_pair(pair, place, _is_ranked(figures, pair.dataset))))
        for place, pair in enumerate(figures.page.pairs, start=1)
    ]
    blocks += [Words(f"{short_text(line, _NOTE)}.", "quiet") for line in figures.page.remarks]
    return Section("queries", "Queries", tuple(blocks)) if blocks else None


def _title(pair: PairedScores) -> str:
    return f"{against(pair.model, pair.baseline)} on {isolated(dataset_title(pair.dataset))}, {pair.measure}"


def _is_ranked(figures: PageFigures, dataset: str) -> bool:
    """Whether models return documents on it; ratings and external scores have no ranks."""
    return figures.page.manifest.datasets[dataset].kind == "rankings"


def _pair(pair: PairedScores, place: int, is_ranked: bool) -> Iterator[Block]:
    """The charts, and the queries with the largest changes, each with its relevant documents if any are ranked."""
    charts = (("scores", difference_charts.scatter(pair)), ("changes", difference_charts.distribution(pair)))
    drawings = tuple(Drawing(f"{name}-{place}", chart) for name, chart in charts if chart)
    if drawings:
        yield Drawings(drawings, beside=tuple(_largest_changes(pair, place, is_ranked)))


def _largest_changes(pair: PairedScores, place: int, is_ranked: bool) -> Iterator[Block]:
    if not pair.movers:
        yield Words("No query changed.")
    elif is_ranked:
        yield Words("Queries with the largest changes, with their best ranked relevant documents:")
        yield from (_query(query, f"moved-{place}-{rank}") for rank, query in enumerate(pair.movers, start=1))
    else:
        yield Words("Queries with the largest changes:")
        yield from (Words(f"{isolated(short_text(query.query_id))}: {_change(query)}") for query in pair.movers)


def _query(query: QueryChange, table: str) -> Folded:
    """A query, and the ranks of its relevant documents before and after."""
    name, title = short_text(query.query_id), _change(query)
    if query.documents is None:
        return Folded(name, title, (Words("The ranks of its documents were not recorded.", "quiet"),))
    if not query.documents:
        return Folded(name, title, (Words("It has no relevant documents.", "quiet"),))
    caption = f"Relevant documents of {isolated(name)}"
    rows = tuple(
        (short_text(document.doc_id), f"{document.grade:g}", _rank(document.before), _rank(document.after))
        for document in query.documents
    )
    return Folded(name, title, (Table(table, caption, _DOCUMENT_COLUMNS, (Group(rows),)),))


def _change(query: QueryChange) -> str:
    return f"{figure(query.before)} → {figure(query.after)} ({signed(query.change)})"


def _rank(rank: int | None) -> str:
    return "not retrieved" if rank is None else f"{rank:,}"
