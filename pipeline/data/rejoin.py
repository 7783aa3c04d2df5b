"""An old output on new judgments, without the output: of its ranks those of judged documents were kept.

That is enough where nothing is asked that was not known: every document judged now was judged then, or everything that
its query retrieved was judged then. Grades may differ, and judgments may be gone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from metrics.conventions import Conventions
from pipeline.data.assemble import assemble, judged_share
from pipeline.data.hashing import hash_pairs
from pipeline.data.judgments import Judgments, match, places_of
from pipeline.errors import InputError, shorten
from pipeline.tables import Hits, Joined, Rows

__all__ = ["rejoin"]

Ints = npt.NDArray[np.int64]


def rejoin(
    stored: Rows,
    hits: Hits,
    judgments: Judgments,
    conventions: Conventions,
    n_documents: float = float("nan"),
    *,
    path: str,
) -> Joined:
    """What a join of the output with these judgments would give, to the last bit.

    Args:
        stored: the judgments that the output was joined with.
        hits: what that join found.
        judgments: other judgments of the same queries, or of some of them.
        conventions: those of the join; they say whether a query may lack output.
        n_documents: documents in the catalogue, NaN where it is not known.
        path: the output as it was named.

    Raises:
        InputError: a pair was not judged then, so that nobody knows its rank; or a judged query has no output where
            that is an error.
    """
    places = places_of(stored, judgments.query_ids)
    then, now = match(judgments, stored, hash_pairs(stored, places))
    n_retrieved = _of_queries(hits.n_retrieved, stored, judgments)
    _refuse_unknown(stored, hits, judgments, now, path)
    rows = np.full(len(stored.query_codes), -1)
    rows[then] = now
    kept = np.flatnonzero(rows[hits.judgment_rows] >= 0)
    judgment_rows = rows[hits.judgment_rows[kept]]
    n_answered = hits.quality.n_unjudged_queries + int((hits.n_retrieved > 0).sum())
    quality = replace(
        hits.quality,
        n_unjudged_queries=n_answered - int((n_retrieved > 0).sum()),
        n_missing_queries=int((n_retrieved == 0).sum()),
        judged_at_10=judged_share(10, hits.ranks[kept], judgments.rows.values[judgment_rows], n_retrieved),
    )
    columns = (judgments.queries[judgment_rows], judgment_rows)
    ranks = (hits.ranks[kept], hits.tie_first[kept], hits.tie_last[kept])
    return assemble(judgments, Hits(*columns, *ranks, n_retrieved, quality), conventions, n_documents, path=path)


def _of_queries(counts: Ints, stored: Rows, judgments: Judgments, *, other: int = 0) -> Ints:
    """(Q,): of counts by the queries judged then, those of the queries judged now; `other` for further ones."""
    known = dict(zip(sorted(stored.query_ids), counts.tolist(), strict=True))  # in the order of a join's queries
    return np.array([known.get(query_id, other) for query_id in judgments.query_ids.tolist()], dtype=np.int64)


def _refuse_unknown(stored: Rows, hits: Hits, judgments: Judgments, matched: Ints, path: str) -> None:
    """Refuse judgments of pairs that were not judged then, unless all that their query retrieved was."""
    n_unjudged = hits.n_retrieved - np.bincount(hits.queries, minlength=len(hits.n_retrieved))
    exhausted = _of_queries(n_unjudged, stored, judgments, other=1) == 0
    new = np.setdiff1d(judgments.kept, matched)
    new = new[~exhausted[judgments.queries[new]]]
    if new.size:
        query_id = judgments.query_ids[judgments.queries[new[0]]]
        doc_id = judgments.rows.take_doc_ids(new[:1])[0].as_py()
        pairs = "1 judged pair is" if len(new) == 1 else f"{len(new):,} judged pairs are"
        found = f"{pairs} new, such as query '{shorten(query_id)}', document '{shorten(doc_id)}'"
        raise InputError(f"{path}: {found}, and the ranks of documents that were not judged were not kept; restore it")
