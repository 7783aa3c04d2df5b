"""Blocks for tests: hand-written ones, and ones built from plain lists that the oracle reads too.

Every array handed out is read-only, as the blocks are that workers receive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrics.block import Floats, JudgedBlock
from metrics.catalogue import CatalogueBlock
from metrics.rating import RatingsBlock

__all__ = [
    "PlainQuery",
    "catalogue_block",
    "columns",
    "judged_block",
    "plain_block",
    "random_query",
    "random_ratings",
    "ranked",
    "ratings_block",
]


@dataclass(frozen=True)
class PlainQuery:
    """One query as the papers describe it.

    Attributes:
        ranking: the grades of the documents retrieved, from rank 1 down; None for a document without judgment.
        missed: the grades of the judged documents that were not retrieved.
        n_documents: documents in the catalogue; None where it is not known.
    """

    ranking: tuple[float | None, ...]
    missed: tuple[float, ...] = ()
    n_documents: int | None = None


def ranked(*ranking: float | None, missed: Sequence[float] = (), n_documents: int | None = None) -> PlainQuery:
    """The query whose documents have these grades, from rank 1 down."""
    return PlainQuery(tuple(ranking), tuple(missed), n_documents)


def judged_block(
    ranks: Sequence[Sequence[int]],
    grades: Sequence[Sequence[float]],
    *,
    missed: Sequence[Sequence[float]] | None = None,
    n_retrieved: Sequence[int] | None = None,
    n_documents: Sequence[int | None] | None = None,
    query_ids: Sequence[str] | None = None,
    padding: int = 0,
) -> JudgedBlock:
    """The block of queries given one list each.

    Args:
        ranks: per query, the ranks of the judged documents it retrieved, ascending.
        grades: per query, the grades of those documents.
        missed: per query, the grades of judged documents it did not retrieve; none unless given.
        n_retrieved: per query, the documents retrieved; the last judged rank unless given.
        n_documents: per query, the size of the catalogue; not known unless given.
        query_ids: `q0`, `q1` … unless given.
        padding: rows of padding below the longest list.
    """
    n_queries = len(ranks)
    missed = missed or [()] * n_queries
    judged = [sorted([*kept, *lost], reverse=True) for kept, lost in zip(grades, missed, strict=True)]
    rank_rows = _columns(ranks, np.inf, padding)
    return JudgedBlock(
        query_ids=_frozen(np.array(query_ids or [f"q{query}" for query in range(n_queries)], dtype=object)),
        ranks=rank_rows,
        grades=_columns(grades, np.nan, padding),
        tie_first=rank_rows,
        tie_last=rank_rows,
        judgment_row=_frozen(np.where(np.isfinite(rank_rows), 0, -1).astype(np.int32)),
        judged_grades=_columns(judged, np.nan, padding),
        n_judged=_vector([sum(grade >= 0 for grade in column) for column in judged]),
        n_retrieved=_vector(n_retrieved if n_retrieved is not None else [max(column, default=0) for column in ranks]),
        n_documents=_vector([np.nan if size is None else size for size in n_documents or [None] * n_queries]),
    )


def plain_block(queries: Sequence[PlainQuery], *, padding: int = 0) -> JudgedBlock:
    """The block of plain queries, in their order."""
    found = [
        [(rank, grade) for rank, grade in enumerate(query.ranking, start=1) if grade is not None] for query in queries
    ]
    return judged_block(
        ranks=[[rank for rank, _ in pairs] for pairs in found],
        grades=[[grade for _, grade in pairs] for pairs in found],
        missed=[query.missed for query in queries],
        n_retrieved=[len(query.ranking) for query in queries],
        n_documents=[query.n_documents for query in queries],
        padding=padding,
    )


def columns(block: JudgedBlock, wanted: Sequence[int]) -> JudgedBlock:
    """The block of these queries alone, with all its rows."""
    parts = {name: _frozen(np.ascontiguousarray(getattr(block, name)[..., list(wanted)])) for name in _FIELDS}
    return JudgedBlock(**parts)


def random_query(rng: np.random.Generator, grades: Sequence[float], *, depth: int = 30) -> PlainQuery:
    """A query with any mix of judged, unjudged, missed and absent documents, whose judgments take these grades."""
    share_judged = rng.choice([0.0, 0.3, 0.8, 1.0])
    ranking = [
        float(rng.choice(grades)) if rng.random() < share_judged else None for _ in range(rng.integers(0, depth + 1))
    ]
    missed = tuple(float(rng.choice(grades)) for _ in range(rng.integers(0, 6)))
    n_documents = len(ranking) + len(missed) + int(rng.integers(0, 100))
    return PlainQuery(tuple(ranking), missed, n_documents)


def ratings_block(ratings: Sequence[Sequence[float]], predictions: Sequence[Sequence[float]]) -> RatingsBlock:
    """The block of rating pairs given one list per query."""
    return RatingsBlock(
        query_ids=_frozen(np.array([f"u{query}" for query in range(len(ratings))], dtype=object)),
        ratings=_columns(ratings, np.nan, 0),
        predictions=_columns(predictions, np.nan, 0),
        n_pairs=_vector([len(pairs) for pairs in ratings]),
    )


def random_ratings(rng: np.random.Generator, n_queries: int) -> list[tuple[list[float], list[float]]]:
    """Per query, what was rated and what was predicted; some queries have no pair."""
    sizes = [int(size) for size in rng.integers(0, 30, size=n_queries)]
    return [
        ([float(rating) for rating in rng.integers(1, 6, size=size)], [float(x) for x in rng.uniform(0.5, 5.5, size)])
        for size in sizes
    ]


def catalogue_block(lists: Sequence[Sequence[int]], n_documents: int) -> CatalogueBlock:
    """The block of recommended lists, each of document codes from rank 1 down."""
    return CatalogueBlock(codes=_frozen(_columns(lists, -1, 0).astype(np.int32)), n_documents=n_documents)


_FIELDS = tuple(JudgedBlock.__dataclass_fields__)


def _columns(lists: Sequence[Sequence[float]], filler: float, padding: int) -> Floats:
    """(rows, Q): one column per list, at least one row, `filler` below."""
    n_rows = max([len(column) for column in lists] + [1]) + padding
    matrix = np.full((n_rows, len(lists)), filler)
    for query, column in enumerate(lists):
        matrix[: len(column), query] = column
    return _frozen(matrix)


def _vector(values: Sequence[float]) -> Floats:
    return _frozen(np.array(values, dtype=np.float64))


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
