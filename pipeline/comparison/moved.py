"""The queries that moved most, and where their relevant documents stood before and stand now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from metrics.block import Bools, Floats
from pipeline.movement import MovedQuery, RankedDocument
from pipeline.pages import PairedScores
from pipeline.tables import Hits, Rows

__all__ = ["Retrieved", "counted", "most_moved", "moved_queries", "oriented", "relevant_documents"]


@dataclass(frozen=True, eq=False)
class Retrieved:
    """What was kept of one output.

    Attributes:
        judgments: the judgments that it was joined with.
        kept: the rows of them that count.
        hits: the judged documents that were retrieved.
    """

    judgments: Rows
    kept: npt.NDArray[np.int64]
    hits: Hits

    def ranks(self, query_id: str) -> dict[str, int]:
        """The rank of each judged document that the query retrieved."""
        place = self._places[query_id]
        own = slice(*np.searchsorted(self.hits.queries, (place, place + 1)))
        documents = self.judgments.take_doc_ids(self.hits.judgment_rows[own]).to_pylist()
        return dict(zip(documents, self.hits.ranks[own].tolist(), strict=True))

    def relevant(self, query_id: str) -> dict[str, float]:
        """The grade of each document of the query that is graded above 0."""
        code = self._codes[query_id]
        rows = self.kept[self.judgments.query_codes[self.kept] == code]
        rows = rows[self.judgments.values[rows] > 0]
        return dict(
            zip(self.judgments.take_doc_ids(rows).to_pylist(), self.judgments.values[rows].tolist(), strict=True)
        )

    @cached_property
    def _codes(self) -> Mapping[str, int]:
        """Each query's code among the rows."""
        return {query_id: code for code, query_id in enumerate(self.judgments.query_ids)}

    @cached_property
    def _places(self) -> Mapping[str, int]:
        """Each query's place among those of a join, which are in the order of their ids."""
        return {query_id: place for place, query_id in enumerate(sorted(self.judgments.query_ids))}


def counted(scores: Floats, missing: Bools, missing_queries: str) -> Floats:
    """(Q,): the scores of the queries that are in a mean, NaN for the others.

    Args:
        scores: (Q,) of one model.
        missing: (Q,) whether the query is without output.
        missing_queries: what such a query is, by the conventions: `skip` leaves it out of every mean.
    """
    return np.where(missing, np.nan, scores) if missing_queries == "skip" else scores


def oriented(before: Floats, after: Floats, direction: str) -> Floats:
    """(Q,): how much better each query is, for a measure of which `lower` may be better."""
    change: Floats = before - after if direction == "lower" else after - before
    return change


def moved_queries(
    pair: PairedScores, top: int, ranked: tuple[Retrieved, Retrieved] | None, n_documents: int | None = None
) -> Iterator[MovedQuery]:
    """The queries of a pair that moved most.

    Args:
        pair: the scores of both.
        top: how many queries at most.
        ranked: what the baseline and the model retrieved; None where that is not known.
        n_documents: how many relevant documents of each at most, the best ranked; all unless given.
    """
    for place in most_moved(pair.change, top):
        query_id = str(pair.query_ids[place])
        documents = None if ranked is None else relevant_documents(*ranked, query_id)[:n_documents]
        yield MovedQuery(
            pair.dataset,
            pair.model,
            pair.baseline,
            query_id,
            pair.measure,
            before=float(pair.before[place]),
            after=float(pair.after[place]),
            change=float(pair.change[place]),
            documents=documents,
        )


def most_moved(change: Floats, top: int) -> list[int]:
    """The places of at most `top` queries that changed, the greatest change first, equal ones in their order.

    Args:
        change: (Q,); NaN where a score is undefined on either side.
        top: how many.
    """
    sizes = np.abs(np.nan_to_num(change, nan=0.0))
    order = np.argsort(-sizes, kind="stable")[:top]
    return [int(place) for place in order if sizes[place] > 0]


def relevant_documents(before: Retrieved, after: Retrieved, query_id: str) -> tuple[RankedDocument, ...]:
    """The query's relevant documents with both ranks, the best rank of the two first, then those never retrieved."""
    grades = after.relevant(query_id)
    ranks = (before.ranks(query_id), after.ranks(query_id))
    documents = [RankedDocument(name, grade, *(found.get(name) for found in ranks)) for name, grade in grades.items()]
    return tuple(sorted(documents, key=_best_rank))


def _best_rank(document: RankedDocument) -> tuple[float, str]:
    ranks = [rank for rank in (document.before, document.after) if rank is not None]
    return min(ranks, default=float("inf")), document.doc_id
