"""Documents left out of rankings before ranks and cutoffs: excluded pairs, and queries that are documents.

A relevant document that is left out still counts among those to be found, as in BEIR and MTEB. Documents that a user
consumed in training are left out, counted where recommended, or rejected, by the value of the pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rankledger.pipeline.data.judgments import (
    Hashes,
    Judgments,
    PairIndex,
    Repeat,
    find_repeats,
    hash_pairs,
    match,
    repeat_of,
)
from rankledger.pipeline.data.rows import Chunk, Rows, row_number
from rankledger.pipeline.support.arrow import bools, strings
from rankledger.pipeline.support.errors import shorten

Ints = npt.NDArray[np.int64]

_LEAVE_OUT, _COUNT, _REFUSE = 0.0, 1.0, 2.0  # what becomes of a row whose pair has this value
_SEEN = {"remove": _LEAVE_OUT, "count": _COUNT, "refuse": _REFUSE}


def index_pairs(judgments: Judgments, parts: Sequence[Rows]) -> PairIndex | None:
    """Return the index of the pairs of judged queries, None if there are none. Earlier parts win."""
    chunks = []
    for rows in parts:
        places = judgments.find(rows.query_ids)
        for chunk in rows.chunks:
            queries = places[chunk.query_codes]
            known = queries < len(judgments.query_ids)
            if known.any():
                own = queries[known].astype(np.int32)
                chunks.append(Chunk(own, chunk.doc_ids.filter(bools(known)), chunk.values[known]))
    if not chunks:
        return None
    pairs = Rows(parts[0].path, (), judgments.query_ids.tolist(), tuple(chunks), row_number)
    hashes = hash_pairs(pairs, np.arange(len(judgments.query_ids)))
    order = np.argsort(hashes, kind="stable")
    return PairIndex(pairs, hashes[order], order)


def own_documents(query_ids: Sequence[str]) -> Rows:
    """Return each query paired with the document of its id."""
    n_queries = len(query_ids)
    chunk = Chunk(np.arange(n_queries, dtype=np.int32), strings(query_ids), np.zeros(n_queries))
    return Rows("exclude_self", (), query_ids, (chunk,), row_number)


def seen_pairs(interactions: Rows, seen: str) -> Rows:
    """Return the interactions with the treatment of such recommendations: `refuse`, `remove` or `count`."""
    value = _SEEN[seen]
    chunks = (replace(chunk, values=np.full(len(chunk.values), value)) for chunk in interactions.chunks)
    return replace(interactions, chunks=tuple(chunks))


def counts(excluded: PairIndex | None) -> tuple[bool, bool]:
    """Return whether rows may be left out, and whether recommendations of seen documents are counted."""
    if excluded is None:
        return False, False
    return bool(excluded.rows.values.min() == _LEAVE_OUT), bool(excluded.rows.values.max() > _LEAVE_OUT)


@dataclass(frozen=True)
class Seen:
    """Row that recommends a document that its user consumed in training, where that is rejected."""

    row: int
    query_id: str
    doc_id: str

    def message(self, place: Callable[[int], str]) -> str:
        found = f"user '{shorten(self.query_id)}' is recommended '{shorten(self.doc_id)}' ({place(self.row)})"
        return f"{found}, which is in the user's interactions; leave it out, or set seen: remove"


def match_exclusions(excluded: PairIndex, rows: Rows, hashes: Hashes) -> tuple[Ints, Ints, Ints]:
    """Return the ascending rows that are left out, counted as seen, and rejected as seen."""
    found, pairs = match(excluded, rows, hashes)
    values = excluded.rows.values[pairs]
    return found[values == _LEAVE_OUT], found[values == _COUNT], found[values == _REFUSE]


def exclude_rows(
    excluded: PairIndex, rows: Rows, numbers: Ints, hashes: Hashes
) -> tuple[Rows, Ints, Hashes, Counter[str]] | Repeat | Seen:
    """Return the remaining rows and counts, or the row to reject: a repeated or a seen one."""
    out, seen, refused = match_exclusions(excluded, rows, hashes)
    if refused.size:
        row = rows.take(refused[:1])
        return Seen(int(numbers[refused[0]]), row.query_ids[0], row.doc_ids[0].as_py())
    totals = Counter(n_seen=len(seen), n_seen_queries=len(np.unique(rows.query_codes[seen])) if seen.size else 0)
    if not out.size:
        return rows, numbers, hashes, totals
    taken = rows.take(out)
    repeats = find_repeats(taken, hashes[out])
    if repeats.size:
        return repeat_of(taken, repeats[0], numbers[out])
    totals += Counter(n_excluded=len(out), n_excluded_queries=len(taken.query_ids))
    return rows.without(out), np.delete(numbers, out), np.delete(hashes, out), totals
