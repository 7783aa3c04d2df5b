"""`movers.csv`: a row per query that moved and relevant document of it; what was written is read again."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from pipeline.escaping import from_cell, to_cell
from pipeline.movement import MovedQuery, RankedDocument
from pipeline.record.lines import Rows

__all__ = ["read_movers", "write_movers"]

_NAMES = ("dataset", "model", "baseline", "query_id", "measure")
_SCORES = ("before", "after", "change")
_DOCUMENT = ("doc_id", "grade", "rank_before", "rank_after")
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


def read_movers(path: Path) -> tuple[MovedQuery, ...]:
    """The queries in the record of that folder, as they were written; none where it has none."""
    file = path / "movers.csv"
    if not file.is_file():
        return ()
    with file.open(encoding="utf-8", newline="") as lines:
        rows = [*csv.DictReader(lines)]
    return tuple(_query([*own]) for _, own in groupby(rows, key=itemgetter(*_NAMES)))


def _documents(documents: Sequence[RankedDocument] | None) -> Sequence[tuple[str | float, ...]]:
    if documents is None:
        return [_UNKNOWN]
    return [_cells(document) for document in documents] or [_NONE]


def _cells(document: RankedDocument) -> tuple[str | float, ...]:
    before, after = ("" if rank is None else rank for rank in (document.before, document.after))
    return to_cell(document.doc_id), document.grade, before, after


def _query(rows: Sequence[Mapping[str, str]]) -> MovedQuery:
    names = {name: from_cell(rows[0][name]) for name in _NAMES}
    before, after, change = (float(rows[0][name]) for name in _SCORES)
    documents = None
    if rows[0]["grade"]:
        documents = tuple(document for row in rows if (document := _document(row)).grade > 0)
    return MovedQuery(**names, before=before, after=after, change=change, documents=documents)


def _document(row: Mapping[str, str]) -> RankedDocument:
    before, after = (int(row[name]) if row[name] else None for name in ("rank_before", "rank_after"))
    return RankedDocument(from_cell(row["doc_id"]), float(row["grade"]), before, after)
