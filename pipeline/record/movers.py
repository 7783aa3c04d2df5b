"""`movers.csv`: a row per query that moved and relevant document of it; what was written is read again."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from io import StringIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from pipeline.escaping import from_cell, to_cell
from pipeline.movement import MovedQuery, RankedDocument
from pipeline.record.lines import Rows, figure, number, parsed_rows, rank, text_of

__all__ = ["movers_in", "write_movers"]

_NAMES = ("dataset", "model", "baseline", "query_id", "measure")
_SCORES = ("before", "after", "change")
_DOCUMENT = ("doc_id", "grade", "rank_before", "rank_after")
_COLUMNS: list[tuple[str, Callable[[str], Any]]] = [
    *((name, from_cell) for name in _NAMES),
    *((name, number) for name in _SCORES),
    *(("doc_id", from_cell), ("grade", figure), ("rank_before", rank), ("rank_after", rank)),
]
_UNKNOWN = ("", "", "", "")  # of a query whose documents are not known, which has a row, too
_NONE = ("", 0.0, "", "")  # of one that has none: no document of it is graded above 0


def write_movers(path: Path, movers: Sequence[MovedQuery]) -> None:
    """Write the queries in their order, each with its documents; shortest digits that give the same double again."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(Rows(file), lineterminator=Rows.END)
        writer.writerow((*_NAMES, *_SCORES, *_DOCUMENT))
        for query in movers:
            named = [*(to_cell(getattr(query, name)) for name in _NAMES), *(getattr(query, name) for name in _SCORES)]
            writer.writerows([*named, *cells] for cells in _documents(query.documents))


def movers_in(data: bytes, path: Path) -> tuple[MovedQuery, ...]:
    """The queries that the file holds, as they were written.

    Args:
        data: what it holds.
        path: the file, for messages.

    Raises:
        InputError: it is no such table.
    """
    rows = [cells for _, cells in parsed_rows(StringIO(text_of(data, path), newline=""), _COLUMNS, path)]
    return tuple(_query([*own]) for _, own in groupby(rows, key=itemgetter(slice(len(_NAMES)))))


def _documents(documents: Sequence[RankedDocument] | None) -> Sequence[tuple[str | float, ...]]:
    if documents is None:
        return [_UNKNOWN]
    return [_cells(document) for document in documents] or [_NONE]


def _cells(document: RankedDocument) -> tuple[str | float, ...]:
    before, after = ("" if rank is None else rank for rank in (document.before, document.after))
    return to_cell(document.doc_id), document.grade, before, after


def _query(rows: Sequence[Sequence[Any]]) -> MovedQuery:
    names, (before, after, change) = dict(zip(_NAMES, rows[0], strict=False)), rows[0][len(_NAMES) : -len(_DOCUMENT)]
    known = [RankedDocument(*row[-len(_DOCUMENT) :]) for row in rows if row[-len(_DOCUMENT) + 1] is not None]
    documents = tuple(document for document in known if document.grade > 0) if known else None
    return MovedQuery(**names, before=before, after=after, change=change, documents=documents)
