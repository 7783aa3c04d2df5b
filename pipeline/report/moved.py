"""Queries that moved as rows of a table: both scores, and the ranks of relevant documents before and after."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.movement import MovedQuery, RankedDocument
from pipeline.report.differences import figure, models, signed
from pipeline.report.sheets import Sheet, clipped

__all__ = ["queries"]

_NAMED = 3  # documents of a query that are named
_NOWHERE = "not retrieved"


def queries(title: str, moved: Sequence[MovedQuery]) -> Sheet:
    """A row per query: both scores, the change, and, where any are ranked, the relevant documents that moved.

    Args:
        title: of the table.
        moved: the queries.
    """
    rows = [
        (
            models(query.model, query.baseline),
            query.query_id,
            figure(query.before),
            figure(query.after),
            signed(query.change),
            "" if query.documents is None else _documents(query.documents),
        )
        for query in moved
    ]
    headers = ("model", "query", "before", "after", "change", "relevant documents")
    sheet = Sheet(title, headers, (False, False, True, True, True, False), tuple(rows))
    ranked = any(query.documents is not None for query in moved)
    return sheet if ranked else sheet.only(headers[:-1])


def _documents(documents: Sequence[RankedDocument]) -> str:
    """Those whose rank is another, the best first, and how many are not named."""
    moved = [document for document in documents if document.before != document.after]
    named = [
        f"{clipped(found.doc_id)} (grade {found.grade:g}): {found.before or _NOWHERE} → {found.after or _NOWHERE}"
        for found in moved[:_NAMED]
    ]
    if len(moved) > _NAMED:
        named.append(f"{len(moved) - _NAMED} more")
    return ", ".join(named) or ("at the ranks they had" if documents else "none")
