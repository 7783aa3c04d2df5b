"""The queries that moved most, and where their relevant documents stood before and stand now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.block import Floats
from pipeline.movement import RankedDocument
from pipeline.tables import Hits, Rows

__all__ = ["Retrieved", "most_moved", "relevant_documents"]


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
        place = sorted(self.judgments.query_ids).index(query_id)  # in the order of a join's queries
        own = np.flatnonzero(self.hits.queries == place)
        documents = self.judgments.take_doc_ids(self.hits.judgment_rows[own]).to_pylist()
        return dict(zip(documents, self.hits.ranks[own].tolist(), strict=True))

    def relevant(self, query_id: str) -> dict[str, float]:
        """The grade of each document of the query that is graded above 0."""
        code = self.judgments.query_ids.index(query_id)
        rows = self.kept[self.judgments.query_codes[self.kept] == code]
        rows = rows[self.judgments.values[rows] > 0]
        return dict(
            zip(self.judgments.take_doc_ids(rows).to_pylist(), self.judgments.values[rows].tolist(), strict=True)
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
