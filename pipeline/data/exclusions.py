"""Documents that are left out of rankings before ranks and cutoffs: pairs of a file, and queries that are documents.

Judgments stay as they are: a relevant document that is left out still counts among those to be found, as in BEIR
(`EvaluateRetrieval.evaluate` with `ignore_identical_ids`) and MTEB, which take documents out of the ranking alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from rankledger.pipeline.support.arrow import bools, strings
from rankledger.pipeline.types.inputs import Chunk, Rows, row_number

__all__ = ["Left", "index_pairs", "leave_out", "n_judged_themselves", "own_documents"]

Ints = npt.NDArray[np.int64]


def index_pairs(judgments: Judgments, parts: Sequence[Rows]) -> PairIndex | None:
    """The pairs of judged queries, ready to be looked up by their hashes; None if there are none.

    Args:
        judgments: number the queries.
        parts: pairs, repeated or not.
    """
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
    order = np.argsort(hashes)
    return PairIndex(pairs, hashes[order], order)


def own_documents(query_ids: Sequence[str]) -> Rows:
    """Each query, paired with the document of its id."""
    n_queries = len(query_ids)
    chunk = Chunk(np.arange(n_queries, dtype=np.int32), strings(query_ids), np.zeros(n_queries))
    return Rows("exclude_self", (), query_ids, (chunk,), row_number)


def n_judged_themselves(judgments: Judgments) -> int:
    """How many queries judge the document of their own id."""
    own = own_documents(judgments.query_ids.tolist())
    places = np.arange(len(own.query_ids))
    return len(match(judgments.pairs(places), own, hash_pairs(own, places))[0])


@dataclass(frozen=True, eq=False)
class Left:
    """What is left of some rows.

    Attributes:
        rows: the rows, of which there may be none, with the queries of all of them.
        numbers: which of the output's rows they are.
        hashes: theirs.
        n_excluded: how many others there were.
        n_queries: the queries of these.
    """

    rows: Rows
    numbers: Ints
    hashes: Hashes
    n_excluded: int = 0
    n_queries: int = 0


def leave_out(excluded: PairIndex, rows: Rows, numbers: Ints, hashes: Hashes) -> Left | Repeat:
    """The rows whose pairs are not excluded; or one that is, if it stands there twice.

    Args:
        excluded: the pairs to leave out.
        rows: at least one row.
        numbers: which of the output's rows they are.
        hashes: theirs, as `match` takes them.
    """
    found, _ = match(excluded, rows, hashes)
    if not found.size:
        return Left(rows, numbers, hashes)
    out = rows.take(found)
    repeats = find_repeats(out, hashes[found])
    if repeats.size:
        return repeat_of(out, repeats[0], numbers[found])
    return Left(
        rows.without(found), np.delete(numbers, found), np.delete(hashes, found), len(found), len(out.query_ids)
    )
