"""Join judgments with hits, and predictions with ratings, to blocks, by id and never by position.

Cached hits suffice if every document judged now was judged then, or if all documents of its query were. The blocks are
the same to the last bit.

A relevant document that is left out of rankings still counts among those to be found, as in BEIR and MTEB. Documents
that a user consumed in training are left out, counted where recommended, or rejected, by the value of the pair.

Rankings are ordered by score, descending, and by the tie convention, only for the rows that are needed. A query and a
score are packed into one integer, so that one comparison of neighbors tells whether a file is already sorted, as most
are, and one search finds where equal scores begin and end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.block import Floats, JudgedBlock
from rankledger.metrics.conventions import Conventions, Ties
from rankledger.metrics.ratings import RatingsBlock
from rankledger.pipeline.data.joined import Hits, JoinStats, JudgedOutput, OnDemand
from rankledger.pipeline.data.judgments import (
    Hashes,
    Judgments,
    PairIndex,
    RowProblem,
    describe_repeat,
    find_repeats,
    hash_pairs,
    match,
)
from rankledger.pipeline.data.rows import Chunk, Rows, row_number
from rankledger.pipeline.support.arrow import bools, integers, numpy_of, strings
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.support.parallel import map_threads

Ints = npt.NDArray[np.int64]

_RANKS = (*range(1, 11), 15, 20, 30, 50, 100, 200, 500, 1000)  # at which the share of judged documents is looked at
_CELLS = 1 << 17  # of a block's matrix: 1 MB, so that a kernel's working set stays in the cache


def assemble(
    judgments: Judgments, hits: Hits, conventions: Conventions, n_documents: float = float("nan"), *, path: str
) -> JudgedOutput:
    """Return the judged documents that a model retrieved, in blocks."""
    missing = hits.n_retrieved == 0
    if conventions.missing_queries == "error" and missing.any():
        without = judgments.query_ids[missing]
        raise InputError(
            f"{path}: {len(without)} of {len(missing)} judged queries have no output, "
            f"such as '{shorten(without[0])}'; complete it, or say missing_queries: empty"
        )
    return JudgedOutput(
        query_ids=judgments.query_ids,
        max_grade=judgments.max_grade,
        blocks=_judged_blocks(judgments, hits, n_documents),
        missing=missing,
        quality=hits.quality,
        hits=hits,
    )


def judged_share(
    ranks: npt.NDArray[np.integer], grades: npt.NDArray[np.floating], n_retrieved: Ints, depth: float = 10
) -> float | None:
    """Return the judged share of the documents down to a rank. A negative grade is no judgment."""
    retrieved = np.minimum(n_retrieved, depth).sum()
    judged = grades[ranks <= depth] >= 0
    return float(judged.sum() / retrieved) if retrieved else None


def judged_share_by_rank(hits: Sequence[Hits], grades: npt.NDArray[np.floating]) -> Iterator[tuple[int, float, int]]:
    """Yield some ranks, the judged share of the documents there, and the lists that reach them."""
    all_judged = not (grades < 0).any()
    judged = [hits_of.ranks if all_judged else hits_of.ranks[grades[hits_of.judgment_rows] >= 0] for hits_of in hits]
    for rank in _RANKS:
        n_lists = sum(int((hits_of.n_retrieved >= rank).sum()) for hits_of in hits)
        if n_lists:
            yield rank, sum(int((ranks == rank).sum()) for ranks in judged) / n_lists, n_lists


def _judged_blocks(judgments: Judgments, hits: Hits, n_documents: float) -> OnDemand[JudgedBlock]:
    grades, subtopics = judgments.grades, judgments.subtopics
    of_hits, of_judgments = ([*spans(judgments.n_judged, sizes)] for sizes in (hits.n_hits, judgments.n_judged))

    def make_block(place: int) -> JudgedBlock:
        (span, hit), (_, judgment) = of_hits[place], of_judgments[place]
        n_hits, n_judgments = hits.n_hits[span], judgments.n_judged[span]
        rows = judgments.rows_of(np.arange(span.start, span.stop))
        by_grade = rows[np.lexsort((-grades[rows], np.repeat(np.arange(len(n_judgments)), n_judgments)))]
        judged_grades, hit_rows = _pad(grades[by_grade], n_judgments, np.nan), hits.judgment_rows[hit]
        by_subtopic = {}
        if subtopics is not None:
            of_subtopics = subtopics.grades[: subtopics.n_subtopics[span].max()]
            retrieved = [_pad(row[subtopics.document[hit_rows]], n_hits, np.nan) for row in of_subtopics]
            judged = [_pad(row[judgment], n_judgments, np.nan) for row in of_subtopics]
            by_subtopic = {"subtopic_grades": np.array(retrieved), "judged_subtopic_grades": np.array(judged)}
        return JudgedBlock(
            query_ids=judgments.query_ids[span],
            ranks=_pad(hits.ranks[hit], n_hits, np.inf),
            grades=_pad(grades[hit_rows], n_hits, np.nan),
            tie_first=_pad(hits.tie_first[hit], n_hits, np.inf),
            tie_last=_pad(hits.tie_last[hit], n_hits, np.inf),
            judgment_row=_pad(hit_rows, n_hits, -1).astype(np.int32),
            judged_grades=judged_grades,
            n_judged=(judged_grades >= 0).sum(axis=0).astype(np.float64),
            n_retrieved=hits.n_retrieved[span].astype(np.float64),
            n_documents=np.full(len(n_hits), n_documents),
            **by_subtopic,
        )

    return OnDemand(make_block, len(of_hits))


def spans(heights: Ints, sizes: Ints) -> Iterator[tuple[slice, slice]]:
    """Yield the queries of each block and their entries: as many as fit into the cells at the tallest's height."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    begin = 0
    while begin < len(heights):
        ahead = np.maximum(heights[begin : begin + _CELLS], 1)
        cells = np.maximum.accumulate(ahead) * np.arange(1, len(ahead) + 1)
        end = begin + max(1, int(np.searchsorted(cells, _CELLS, side="right")))
        yield slice(begin, end), slice(int(ends[begin]), int(ends[end]))
        begin = end


def _pad(values: npt.NDArray[np.generic], sizes: Ints, fill: float) -> Floats:
    padded = np.full((int(sizes.max(initial=1)), len(sizes)), fill)
    columns = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.arange(len(values)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    padded[rows, columns] = values
    return padded


def join_predictions(judgments: Judgments, predictions: Rows) -> JudgedOutput:
    """Return the pairs that have both a rating and a prediction. Reject a repeated prediction."""
    places = judgments.find(predictions.query_ids)
    hashes = hash_pairs(predictions, places)
    repeats = find_repeats(predictions, hashes)
    if repeats.size:
        repeat = describe_repeat(predictions, repeats[0], "predicts", "keep one")
        raise InputError(f"{predictions.path}: {repeat.message(predictions.place)}")
    rows, rating_rows = match(judgments.pairs(places), predictions, hashes)
    # Within a query the pairs stand by hash, so that sums do not depend on the order of the files.
    queries = judgments.queries_of(rating_rows)
    order = np.lexsort((hash_pairs(predictions, np.zeros_like(places))[rows], queries))
    rows, rating_rows = rows[order], rating_rows[order]
    n_queries = len(judgments.query_ids)
    n_pairs, all_weights = np.bincount(queries, minlength=n_queries), judgments.weights
    blocks = []
    for span, pairs in spans(n_pairs, n_pairs):
        ratings = _pad(judgments.grades[rating_rows[pairs]], n_pairs[span], np.nan)
        predicted = _pad(predictions.values[rows[pairs]], n_pairs[span], np.nan)
        weights = None if all_weights is None else _pad(all_weights[rating_rows[pairs]], n_pairs[span], 0.0)
        sizes = n_pairs[span].astype(np.float64)
        blocks.append(RatingsBlock(judgments.query_ids[span], ratings, predicted, sizes, weights))
    quality = JoinStats(
        n_rows=len(hashes),
        n_unjudged_queries=int((places >= n_queries).sum()),
        n_missing_queries=int((n_pairs == 0).sum()),
        n_unpaired=int(judgments.n_judged.sum()) + len(hashes) - 2 * len(rows),
    )
    return JudgedOutput(judgments.query_ids, judgments.max_grade, tuple(blocks), n_pairs == 0, quality)


def rejoin(
    stored: Rows,
    hits: Hits,
    judgments: Judgments,
    conventions: Conventions,
    n_documents: float = float("nan"),
    *,
    path: str,
) -> JudgedOutput:
    """Return the join of an output with other judgments, from its join with `stored` ones, to the last bit."""
    places = judgments.find(stored.query_ids)
    then, now = match(judgments.pairs(places), stored, hash_pairs(stored, places))
    n_retrieved = _map_queries(hits.n_retrieved, stored, judgments)
    _refuse_unknown(stored, hits, judgments, now, path)
    rows = np.full(stored.ends[-1], -1)
    rows[then] = now
    kept = np.flatnonzero(rows[hits.judgment_rows] >= 0)
    judgment_rows = rows[hits.judgment_rows[kept]]
    n_answered = hits.quality.n_unjudged_queries + int((hits.n_retrieved > 0).sum())
    quality = replace(
        hits.quality,
        n_unjudged_queries=n_answered - int((n_retrieved > 0).sum()),
        n_missing_queries=int((n_retrieved == 0).sum()),
        judged_at_10=judged_share(hits.ranks[kept], judgments.grades[judgment_rows], n_retrieved),
    )
    n_hits = np.bincount(judgments.queries_of(judgment_rows), minlength=len(n_retrieved))
    ranks = (hits.ranks[kept], hits.tie_first[kept], hits.tie_last[kept])
    new_hits = Hits(n_hits, judgment_rows.astype(np.int32), *ranks, n_retrieved, quality)
    return assemble(judgments, new_hits, conventions, n_documents, path=path)


def _map_queries(counts: Ints, stored: Rows, judgments: Judgments, *, other: int = 0) -> Ints:
    count_of = dict(zip(sorted(stored.query_ids), counts.tolist(), strict=True))  # in the order of a join's queries
    return np.array([count_of.get(query_id, other) for query_id in judgments.query_ids.tolist()], dtype=np.int64)


def _refuse_unknown(stored: Rows, hits: Hits, judgments: Judgments, matched: Ints, path: str) -> None:
    n_unjudged = hits.n_retrieved - hits.n_hits
    exhausted = _map_queries(n_unjudged, stored, judgments, other=1) == 0
    new = np.setdiff1d(judgments.kept, matched)
    new = new[~exhausted[judgments.queries_of(new)]]
    if new.size:
        query_id = judgments.query_ids[judgments.queries_of(new[:1])[0]]
        doc_id = judgments.rows.take_doc_ids(new[:1])[0].as_py()
        pairs = "1 judged pair is" if len(new) == 1 else f"{len(new):,} judged pairs are"
        problem = f"{pairs} new, such as query '{shorten(query_id)}', document '{shorten(doc_id)}'"
        raise InputError(f"{path}: {problem}, and the output cache has no ranks of unjudged documents; restore it")


_LEAVE_OUT, _COUNT, _REFUSE = 0.0, 1.0, 2.0  # what becomes of a row whose pair has this value
_SEEN = {"remove": _LEAVE_OUT, "count": _COUNT, "refuse": _REFUSE}


def index_pairs(judgments: Judgments, parts: Sequence[Rows]) -> PairIndex | None:
    """Return the index of the pairs of judged queries, None if there are none. Earlier parts win."""
    chunks = []
    for rows in parts:
        places = judgments.find(rows.query_ids)
        for chunk in rows.chunks:
            queries = places[chunk.query_codes]
            is_known = queries < len(judgments.query_ids)
            if is_known.any():
                codes = queries[is_known].astype(np.int32)
                chunks.append(Chunk(codes, chunk.doc_ids.filter(bools(is_known)), chunk.values[is_known]))
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


def match_exclusions(excluded: PairIndex, rows: Rows, hashes: Hashes) -> tuple[Ints, Ints, Ints]:
    """Return the ascending rows that are left out, counted as seen, and rejected as seen."""
    places, pairs = match(excluded, rows, hashes)
    values = excluded.rows.values[pairs]
    return places[values == _LEAVE_OUT], places[values == _COUNT], places[values == _REFUSE]


def exclude_rows(
    excluded: PairIndex, rows: Rows, numbers: Ints, hashes: Hashes
) -> tuple[Rows, Ints, Hashes, Counter[str]] | RowProblem:
    """Return the remaining rows and counts, or the row to reject: a repeated or a seen one."""
    out, seen, refused = match_exclusions(excluded, rows, hashes)
    if refused.size:
        row = rows.take(refused[:1])
        user, document = shorten(row.query_ids[0]), shorten(row.doc_ids[0].as_py())
        subject = f"user '{user}' is recommended '{document}'"
        remedy = "leave it out, or set seen: remove"
        return RowProblem((int(numbers[refused[0]]),), subject, f", which is in the user's interactions; {remedy}")
    totals = Counter(n_seen=len(seen), n_seen_queries=len(np.unique(rows.query_codes[seen])) if seen.size else 0)
    if not out.size:
        return rows, numbers, hashes, totals
    removed = rows.take(out)
    repeats = find_repeats(removed, hashes[out])
    if repeats.size:
        return describe_repeat(removed, repeats[0], "ranks", "keep one", numbers[out])
    totals += Counter(n_excluded=len(out), n_excluded_queries=len(removed.query_ids))
    return rows.without(out), np.delete(numbers, out), np.delete(hashes, out), totals


_SIGN = np.uint32(1 << 31)


@dataclass(frozen=True, eq=False)
class Ordering:
    """Rows of a ranking by query and score."""

    ranking: Rows  # rows in the order of the file
    ties: Ties
    keys: npt.NDArray[np.uint64]  # (N,) ascending: the query's code and the score, greater scores having smaller keys
    order: Ints | None  # (N,) row at each position of `keys`; None if the file is in that order
    starts: Ints  # position of each query's first row, by its code

    def cuts(self, n_rows: int) -> list[int]:
        if self.order is not None:
            return [0, len(self.keys)]  # a query's rows may stand anywhere
        targets = np.arange(0, len(self.keys), n_rows)
        begins = self.starts[np.searchsorted(self.starts, targets, side="right") - 1]
        return [*dict.fromkeys(begins.tolist()), len(self.keys)]  # np.unique would import numpy.ma

    @property
    def n_tied(self) -> int:
        """Number of rows whose score another row of the same query has too."""
        return int(np.count_nonzero(self._tied))

    @property
    def n_rounded(self) -> int:
        """Number of rows in groups of equal scores that differ in the file."""
        tied = np.flatnonzero(self._tied)
        if not tied.size:
            return 0
        keys, scores = self.keys[tied], self.ranking.values[tied if self.order is None else self.order[tied]]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        differ = np.minimum.reduceat(scores, starts) < np.maximum.reduceat(scores, starts)
        return int(np.diff(starts, append=len(keys))[differ].sum())

    @property
    def n_self_first(self) -> int:
        """Number of queries whose first document has the query's id. Ties follow the file."""
        ranked = np.flatnonzero(self.ranking.counts)
        first = self.starts[ranked]
        documents = self.ranking.take_doc_ids(first if self.order is None else self.order[first])
        own_ids = strings([self.ranking.query_ids[code] for code in ranked.tolist()])
        return int(pc.sum(pc.equal(documents, own_ids), min_count=0).as_py())

    @property
    def n_rising(self) -> int:
        """Number of queries whose scores rise from their first row to their last, or of one row."""
        counts = self.ranking.counts
        if self._positions is None:  # greater scores come first
            return int((counts == 1).sum())
        keys = self.keys[self._positions]
        codes = self.ranking.query_codes
        if (codes[1:] < codes[:-1]).any():
            rows = np.argsort(codes, kind="stable")
            keys, codes = keys[rows], codes[rows]
        firsts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))  # each query once, as they stand together
        falls = np.append(keys[1:] > keys[:-1], False)
        lasts = np.append(firsts[1:], len(keys)) - 1
        falls[lasts] = False
        rising = ~np.logical_or.reduceat(falls, firsts) & ((keys[lasts] < keys[firsts]) | (lasts == firsts))
        return int(rising.sum())

    def ranks(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the ranks of distinct rows, and the first and last rank of their groups of equal scores."""
        positions = rows if self._positions is None else self._positions[rows]
        keys = self.keys[positions]
        first, after = positions.copy(), positions + 1
        tied = np.flatnonzero(self._tied[positions])
        first[tied] = np.searchsorted(self.keys, keys[tied], side="left")
        after[tied] = np.searchsorted(self.keys, keys[tied], side="right")
        if tied.size and self.ties != "input_order":
            positions = positions.copy()
            positions[tied] = self._break_ties(positions[tied], first[tied], after[tied])
        before = self.starts[keys >> np.uint64(32)]
        return positions - before + 1, first - before + 1, after - before

    def find_first(self, n: int) -> Ints:
        """Return the rows of the first n ranks of a single query, and of the group of equal scores that n cuts."""
        end = int(np.searchsorted(self.keys, self.keys[min(n, len(self.keys)) - 1], side="right"))
        return np.arange(end) if self.order is None else self.order[:end]

    @cached_property
    def _tied(self) -> npt.NDArray[np.bool_]:
        is_same = self.keys[1:] == self.keys[:-1]
        tied = np.zeros(len(self.keys), dtype=bool)
        tied[1:] = is_same
        tied[:-1] |= is_same
        return tied

    @cached_property
    def _positions(self) -> Ints | None:
        if self.order is None:
            return None
        positions = np.empty(len(self.order), dtype=np.int64)
        positions[self.order] = np.arange(len(self.order))
        return positions

    def _break_ties(self, positions: Ints, first: Ints, after: Ints) -> Ints:
        begins, index = np.unique(first, return_index=True)
        sizes = after[index] - begins
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        members = np.arange(sizes.sum()) + np.repeat(begins - offsets, sizes)
        rows = members if self.order is None else self.order[members]
        groups = np.repeat(np.arange(len(begins)), sizes)
        ids = self.ranking.take_doc_ids(rows)
        table = pa.Table.from_arrays([integers(groups), ids], names=["group", "doc_id"])
        direction = "ascending" if self.ties == "doc_id_asc" else "descending"
        by_id = pc.sort_indices(table, sort_keys=[("group", "ascending"), ("doc_id", direction)])
        sorted_members = np.empty(len(members), dtype=np.int64)
        sorted_members[numpy_of(by_id, np.uint64).astype(np.int64)] = members
        return sorted_members[np.searchsorted(members, positions)]


def order_rows(ranking: Rows, ties: Ties, score_precision: Literal["float32", "float64"]) -> Ordering:
    """Return the ranking's rows by query and score.

    `doc_id_desc` replaces conventions that no file can order, such as `optimistic`. `beyond_single` must find no score
    if the precision is float32.
    """
    starts = np.cumsum(ranking.counts) - ranking.counts
    if score_precision == "float64":
        return Ordering(ranking, ties, *_rank_doubles(ranking, starts), starts)
    keys = np.empty(ranking.ends[-1], dtype=np.uint64)

    def fill(chunk: Chunk, end: int) -> None:
        keys[end - len(chunk.values) : end] = _pack(chunk)

    map_threads(fill, ranking.chunks, ranking.ends)
    order = None
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
    return Ordering(ranking, ties, keys, order, starts)


def _rank_doubles(ranking: Rows, starts: Ints) -> tuple[npt.NDArray[np.uint64], Ints | None]:
    codes, scores = ranking.query_codes, ranking.values
    same_query = codes[1:] == codes[:-1]
    order = None
    if ((codes[1:] < codes[:-1]) | (same_query & (scores[1:] > scores[:-1]))).any():
        order = np.lexsort((-scores, codes))
        codes, scores = codes[order], scores[order]
        same_query = codes[1:] == codes[:-1]
    steps = np.zeros(len(codes), dtype=np.uint64)
    np.cumsum(~same_query | (scores[1:] != scores[:-1]), out=steps[1:])
    return (codes.astype(np.uint64) << np.uint64(32)) | (steps - steps[starts[codes]]), order


def beyond_single(ranking: Rows) -> RowProblem | None:
    """Return the first score beyond the range of float32, None if there is none."""
    with np.errstate(over="ignore"):
        for chunk, end in zip(ranking.chunks, ranking.ends, strict=True):
            ends = np.array([chunk.values.min(), chunk.values.max()]).astype(np.float32)
            if np.isinf(ends).any():
                row = int(np.flatnonzero(np.isinf(chunk.values.astype(np.float32)))[0])
                problem = " is beyond single precision; rescale the scores"
                return RowProblem(
                    (end - len(chunk.values) + row,), f"score {float(chunk.values[row])}", problem, is_score=True
                )
    return None


def _pack(chunk: Chunk) -> npt.NDArray[np.uint64]:
    scores = chunk.values.astype(np.float32)
    scores += np.float32(0)  # -0.0 + 0.0 is 0.0: one zero, one tie
    bits = scores.view(np.uint32)
    descending = np.where(bits & _SIGN, bits, ~bits & ~_SIGN)
    return (chunk.query_codes.astype(np.uint64) << np.uint64(32)) | descending
