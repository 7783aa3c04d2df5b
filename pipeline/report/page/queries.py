"""Pairs of models query by query: their scores, how they differ, and the queries that moved most."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.movement import MovedQuery
from pipeline.pages import PairedScores
from pipeline.report.boards import called
from pipeline.report.differences import figure, signed
from pipeline.report.page import charts
from pipeline.report.page.blocks import (
    Block,
    Column,
    Drawing,
    Drawings,
    Folded,
    Group,
    Part,
    Section,
    Table,
    Words,
    shown,
)
from pipeline.report.page.figures import Figures
from pipeline.report.page.wording import against, isolated

__all__ = ["queries"]

_REMARK = 300  # letters
_COLUMNS = (Column("document", "name"), Column("grade"), Column("rank before"), Column("rank after"))


def queries(figures: Figures) -> Section | None:
    """A part per pair, and what is left out; None where there is neither."""
    blocks: list[Block] = [
        Part(_title(pair), tuple(_pair(pair, place, _is_ranked(figures, pair.dataset))))
        for place, pair in enumerate(figures.page.pairs, start=1)
    ]
    blocks += [Words(f"{shown(line, _REMARK)}.", "quiet") for line in figures.page.remarks]
    return Section("queries", "Queries", tuple(blocks)) if blocks else None


def _title(pair: PairedScores) -> str:
    return f"{against(pair.model, pair.baseline)} on {isolated(shown(called(pair.dataset)))}, {pair.measure}"


def _is_ranked(figures: Figures, dataset: str) -> bool:
    """Whether models return documents on it; ratings and scores that were made elsewhere have no ranks."""
    kind: str = figures.page.manifest["datasets"][dataset].get("kind", "rankings")
    return kind == "rankings"


def _pair(pair: PairedScores, place: int, is_ranked: bool) -> Iterator[Block]:
    """The charts, and the queries that moved most, each opening to its relevant documents where any are ranked."""
    drawn = (("scores", charts.scatter(pair)), ("changes", charts.distribution(pair)))
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
        yield from (Words(f"{isolated(shown(query.query_id))}: {_change(query)}") for query in pair.movers)


def _mover(query: MovedQuery, table: str) -> Folded:
    """A query that moved, and the ranks of its relevant documents before and after."""
    name, title = shown(query.query_id), _change(query)
    if query.documents is None:
        return Folded(name, title, (Words("The ranks of its documents were not kept.", "quiet"),))
    if not query.documents:
        return Folded(name, title, (Words("It has no relevant documents.", "quiet"),))
    caption = f"Relevant documents of {isolated(name)}"
    rows = tuple(
        (shown(document.doc_id), f"{document.grade:g}", _rank(document.before), _rank(document.after))
        for document in query.documents
    )
    return Folded(name, title, (Table(table, caption, _COLUMNS, (Group(rows),)),))


def _change(query: MovedQuery) -> str:
    return f"{figure(query.before)} → {figure(query.after)} ({signed(query.change)})"


def _rank(rank: int | None) -> str:
    return "not retrieved" if rank is None else f"{rank:,}"
