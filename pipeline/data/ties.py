"""Order of rankings by score and tie convention, only for the rows that are needed.

A query and a score are packed into one integer, so that one comparison of neighbors tells whether a file is already
sorted, as most are, and one search finds where equal scores begin and end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.conventions import Ties
from rankledger.pipeline.data.judgments import RowProblem
from rankledger.pipeline.data.rows import Chunk, Rows
from rankledger.pipeline.support.arrow import integers, numpy_of, strings
from rankledger.pipeline.support.parallel import map_threads

Ints = npt.NDArray[np.int64]

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
        wanted = np.arange(0, len(self.keys), n_rows)
        begins = self.starts[np.searchsorted(self.starts, wanted, side="right") - 1]
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
        here = np.flatnonzero(self.ranking.counts)
        first = self.starts[here]
        documents = self.ranking.take_doc_ids(first if self.order is None else self.order[first])
        own = strings([self.ranking.query_ids[code] for code in here.tolist()])
        return int(pc.sum(pc.equal(documents, own), min_count=0).as_py())

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
        same = self.keys[1:] == self.keys[:-1]
        tied = np.zeros(len(self.keys), dtype=bool)
        tied[1:] = same
        tied[:-1] |= same
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
