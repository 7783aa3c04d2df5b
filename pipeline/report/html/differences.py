"""Differences on a page: pairs of models, overall, by slice and query by query."""

from __future__ import annotations

from collections.abc import Iterator

from rankledger.pipeline.report.html import difference_charts
from rankledger.pipeline.report.html.blocks import (
    Block,
    Cell,
    CellScale,
    Column,
    Drawing,
    Drawings,
    Folded,
    Group,
    Key,
    PageFigures,
    PagePart,
    Row,
    Section,
    Table,
    Words,
    against,
    difference_scale,
    interval,
    isolated,
    short_text,
    tone_of,
)
from rankledger.pipeline.report.tables import ALL, display_name, effect_label, figure, p_value, signed
from rankledger.pipeline.types.changes import QueryChange
from rankledger.pipeline.types.results import Comparison
from rankledger.pipeline.types.views import PairedScores

__all__ = ["differences", "queries", "slices"]

_ROWS = 1_000  # of all tables, beyond which the leading measure alone is shown
_LEGEND = (
    "Better, equal, worse: queries. Effect size: the mean difference in standard deviations of the differences. "
    "Detectable: the least difference that would be found in 80% of samples of this size."
)
_COLUMNS = (
    *(
        Column("model", "name"),
        Column("baseline", "name"),
        Column("figure"),
        Column("baseline's"),
        Column("difference"),
    ),
    *(
        Column("interval", "difference"),
        Column("p"),
        Column("corrected p"),
        Column("effect size"),
        Column("minimum detectable difference"),
    ),
    *(Column("better"), Column("equal"), Column("worse"), Column("reading", "text")),
)


def differences(figures: PageFigures) -> Section | None:
    """A forest plot and a table per dataset; None where nothing was compared."""
    lead = figures.leading_difference
    keys = sorted((key for key in figures.comparisons if key[1] == ALL), key=lambda key: key[2] != lead[key[0]])
    whole = sum(len(figures.comparisons[key]) for key in keys) <= _ROWS
    found = {name: [key for key in keys if key[0] == name and (whole or key[2] == lead[name])] for name in lead}
    parts: list[Block] = [] if whole else [Words("Differences by other measures: comparisons.csv.", "quiet")]
    parts += [
        PagePart(short_text(display_name(name)), tuple(_dataset(figures, name, own)))
        for name, own in found.items()
        if own
    ]
    return Section("differences", "Differences", (*parts, Words(_LEGEND, "quiet"))) if keys else None


def slices(figures: PageFigures) -> Section | None:
    """The differences on each slice by the leading measure of each dataset; None where nothing was compared on any."""
    found = []
    for dataset, measure in figures.leading_difference.items():
        lines = figures.sliced(dataset)
        if any(line.slice != ALL for line in lines):
            chart = difference_charts.slices(lines, figures.practical_difference.get(measure))
            found += [Drawing(f"slices-{short_text(dataset)}", chart)] if chart else []
    return Section("slices", "Slices", (Drawings(tuple(found)),)) if found else None


def _dataset(figures: PageFigures, dataset: str, keys: list[Key]) -> Iterator[Block]:
    measure = figures.leading_difference[dataset]
    chart = difference_charts.forest(figures.on_all(dataset), figures.practical_difference.get(measure))
    if chart:
        yield Drawings((Drawing(f"differences-{short_text(dataset)}", chart),))
    yield Table(
        name=f"differences-{short_text(dataset)}",
        caption=f"Differences on {short_text(display_name(dataset))}",
        columns=_COLUMNS,
        groups=tuple(_group(figures, key) for key in keys),
        chosen=len(keys) > 1,
        searched="model",
    )
    families = dict.fromkeys(line.family for key in keys for line in figures.comparisons[key] if line.family)
    for family in families:
        yield Words(f"Corrected p: among {short_text(family, 200)}.", "quiet")


def _group(figures: PageFigures, key: Key) -> Group:
    dataset, _, measure = key
    lines = figures.comparisons[key]
    margin = figures.practical_difference.get(measure, 0.0)
    scale = difference_scale(lines, margin)
    return Group(
        rows=tuple(_row(figures, line, scale) for line in lines),
        title=measure,
        measure=measure,
        slice=ALL,
        note=f"bars from {scale.written}",
        ground=scale.ground(margin),
        open=measure == figures.leading_difference[dataset],
    )


def _row(figures: PageFigures, line: Comparison, scale: CellScale) -> Row:
    tone = tone_of(line, figures.practical_difference)
    return (
        short_text(line.model),
        short_text(line.baseline),
        figure(line.estimate),
        figure(line.baseline_estimate),
        Cell(signed(line.difference), tone),
        scale.cell(line.ci_low, line.difference, line.ci_high, interval(line, signed), tone),
        p_value(line.p_value),
        p_value(line.p_corrected),
        "" if line.effect_size is None else signed(line.effect_size),
        "" if line.minimum_detectable_difference is None else figure(line.minimum_detectable_difference),
        *(f"{amount:,}" for amount in (line.wins, line.ties, line.losses)),
        Cell(effect_label(line, figures.practical_difference), tone),
    )


_REMARK = 300  # letters
_DOCUMENT_COLUMNS = (Column("document", "name"), Column("grade"), Column("rank before"), Column("rank after"))


def queries(figures: PageFigures) -> Section | None:
    """A part per pair, and what is left out; None where there is neither."""
    blocks: list[Block] = [
        PagePart(_title(pair), tuple(_pair(pair, place, _is_ranked(figures, pair.dataset))))
        for place, pair in enumerate(figures.page.pairs, start=1)
    ]
    blocks += [Words(f"{short_text(line, _REMARK)}.", "quiet") for line in figures.page.remarks]
    return Section("queries", "Queries", tuple(blocks)) if blocks else None


def _title(pair: PairedScores) -> str:
    return f"{against(pair.model, pair.baseline)} on {isolated(short_text(display_name(pair.dataset)))}, {pair.measure}"


def _is_ranked(figures: PageFigures, dataset: str) -> bool:
    """Whether models return documents on it; ratings and scores that were made elsewhere have no ranks."""
    return figures.page.manifest.datasets[dataset].kind == "rankings"


def _pair(pair: PairedScores, place: int, is_ranked: bool) -> Iterator[Block]:
    """The charts, and the queries that moved most, each opening to its relevant documents where any are ranked."""
    drawn = (("scores", difference_charts.scatter(pair)), ("changes", difference_charts.distribution(pair)))
    found = tuple(Drawing(f"{name}-{place}", chart) for name, chart in drawn if chart)
    if found:
        yield Drawings(found, beside=tuple(_moved(pair, place, is_ranked)))


def _moved(pair: PairedScores, place: int, is_ranked: bool) -> Iterator[Block]:
    """The queries that moved most below what they are."""
    if not pair.movers:
        yield Words("No query moved.")
    elif is_ranked:
        yield Words("The queries that moved most, with their best ranked relevant documents:")
        yield from (_mover(query, f"moved-{place}-{rank}") for rank, query in enumerate(pair.movers, start=1))
    else:
        yield Words("The queries that moved most:")
        yield from (Words(f"{isolated(short_text(query.query_id))}: {_change(query)}") for query in pair.movers)


def _mover(query: QueryChange, table: str) -> Folded:
    """A query that moved, and the ranks of its relevant documents before and after."""
    name, title = short_text(query.query_id), _change(query)
    if query.documents is None:
        return Folded(name, title, (Words("The ranks of its documents were not kept.", "quiet"),))
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
