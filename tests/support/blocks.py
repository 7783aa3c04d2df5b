"""Blocks for tests: hand-written ones, and ones built from plain lists that the oracle reads too.

Every array handed out is read-only, as the blocks are that workers receive.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from rankledger.metrics.block import Floats, JudgedBlock
from rankledger.metrics.catalogue import CatalogueBlock, Sparse
from rankledger.metrics.logged import LogBlock
from rankledger.metrics.ratings import RatingsBlock

ARRAYS = tuple(field.name for field in fields(JudgedBlock) if field.default is MISSING)  # what every block has


@dataclass(frozen=True)
class PlainQuery:
    """One query as the papers describe it.

    Attributes:
        ranking: the grades of the documents retrieved, from rank 1 down; None for a document without judgment.
        missed: the grades of the judged documents that were not retrieved.
        n_documents: documents in the catalogue; None if unknown.
    """

    ranking: tuple[float | None, ...]
    missed: tuple[float, ...] = ()
    n_documents: int | None = None


@dataclass(frozen=True)
class DiverseQuery:
    """One query whose documents are judged by subtopic."""

    ranking: tuple[str, ...]  # the ids of the documents retrieved, from rank 1 down
    judged: Mapping[str, Mapping[int, float]]  # the grades of every judged document, by subtopic

    @property
    def plain(self) -> PlainQuery:
        grades = {document: max(by_subtopic.values()) for document, by_subtopic in self.judged.items()}
        missed = tuple(grades[document] for document in grades if document not in self.ranking)
        return PlainQuery(tuple(grades.get(document) for document in self.ranking), missed)


@dataclass(frozen=True)
class PlainCatalogue:
    """What is recommended to all queries, and what is known of documents, as the papers describe it.

    Attributes:
        lists: for each query the documents recommended, from rank 1 down; those from n_documents on are outside the
            catalogue.
        n_documents: documents in the catalogue.
        consumed: for each query what it consumed before, repeatedly perhaps; further queries follow.
        grades: for each query the judgments, by document.
        categories: of each document of the catalogue.
        vectors: likewise; empty if there is none.
    """

    lists: tuple[tuple[int, ...], ...]
    n_documents: int
    consumed: tuple[tuple[int, ...], ...]
    grades: tuple[Mapping[int, float], ...]
    categories: tuple[tuple[int, ...], ...]
    vectors: tuple[tuple[float, ...], ...]

    @cached_property
    def times(self) -> dict[int, int]:
        return dict(Counter(document for consumed in self.consumed for document in set(consumed)))

    def feature(self, name: str, document: int) -> dict[int, float]:
        if document >= self.n_documents:
            return {}
        if name == "vector":
            return dict(enumerate(self.vectors[document]))
        return dict.fromkeys(self.categories[document], 1.0)


def ranked(*ranking: float | None, missed: Sequence[float] = (), n_documents: int | None = None) -> PlainQuery:
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
    """The block of queries given one list each."""
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


def diverse_block(queries: Sequence[DiverseQuery], *, padding: int = 0) -> JudgedBlock:
    subtopics = sorted({subtopic for query in queries for judged in query.judged.values() for subtopic in judged})
    retrieved = [
        [query.judged[document] for document in query.ranking if document in query.judged] for query in queries
    ]
    judged = [[query.judged[document] for document in sorted(query.judged, reverse=True)] for query in queries]

    def by_subtopic(lists: list[list[Mapping[int, float]]]) -> Floats:
        found = [
            _columns([[grades.get(subtopic, np.nan) for grades in column] for column in lists], np.nan, padding)
            for subtopic in subtopics or [0]
        ]
        return _frozen(np.array(found))

    return replace(
        plain_block([query.plain for query in queries], padding=padding),
        subtopic_grades=by_subtopic(retrieved),
        judged_subtopic_grades=by_subtopic(judged),
    )


def random_diverse_query(rng: np.random.Generator, *, n_subtopics: int = 6, depth: int = 25) -> DiverseQuery:
    documents = [f"d{number:02}" for number in range(30)]
    ranking = tuple(map(str, rng.permutation(documents)[: rng.integers(0, depth + 1)]))
    judged: dict[str, dict[int, float]] = {}
    for subtopic in range(rng.integers(1, n_subtopics + 1)):
        for document in rng.permutation(documents)[: rng.integers(0, 12)]:
            judged.setdefault(str(document), {})[subtopic] = float(rng.choice([-1, 0, 0, 1, 1, 2]))
    return DiverseQuery(ranking, judged)


def columns(block: JudgedBlock, wanted: Sequence[int]) -> JudgedBlock:
    parts = {name: _frozen(np.ascontiguousarray(getattr(block, name)[..., list(wanted)])) for name in ARRAYS}
    return JudgedBlock(**parts)


def random_query(rng: np.random.Generator, grades: Sequence[float], *, depth: int = 30) -> PlainQuery:
    share_judged = rng.choice([0.0, 0.3, 0.8, 1.0])
    ranking = [
        float(rng.choice(grades)) if rng.random() < share_judged else None for _ in range(rng.integers(0, depth + 1))
    ]
    missed = tuple(float(rng.choice(grades)) for _ in range(rng.integers(0, 6)))
    n_documents = len(ranking) + len(missed) + int(rng.integers(0, 100))
    return PlainQuery(tuple(ranking), missed, n_documents)


def ratings_block(
    ratings: Sequence[Sequence[float]],
    predictions: Sequence[Sequence[float]],
    weights: Sequence[Sequence[float]] | None = None,
) -> RatingsBlock:
    return RatingsBlock(
        query_ids=_frozen(np.array([f"u{query}" for query in range(len(ratings))], dtype=object)),
        ratings=_columns(ratings, np.nan, 0),
        predictions=_columns(predictions, np.nan, 0),
        n_pairs=_vector([len(pairs) for pairs in ratings]),
        weights=None if weights is None else _columns(weights, 0.0, 0),
    )


def random_ratings(rng: np.random.Generator, n_queries: int) -> list[tuple[list[float], list[float]]]:
    sizes = [int(size) for size in rng.integers(0, 30, size=n_queries)]
    return [
        ([float(rating) for rating in rng.integers(1, 6, size=size)], [float(x) for x in rng.uniform(0.5, 5.5, size)])
        for size in sizes
    ]


def log_block(queries: Sequence[Sequence[Mapping[str, float]]]) -> LogBlock:
    """The block of a log given the rows of each query; `list` numbers the list that a row was shown in."""
    rows = [(query, row) for query, own in enumerate(queries) for row in own]
    lists = [(query, row.get("list", 0)) for query, row in rows]
    numbers = {own: number for number, own in enumerate(sorted({*lists}))}
    names = {name for _, row in rows for name in row}
    return LogBlock(
        n_queries=len(queries),
        queries=_frozen(np.array([query for query, _ in rows], dtype=np.int64)),
        columns={name: _vector([row[name] for _, row in rows]) for name in names},
        impressions=_frozen(np.array([numbers[own] for own in lists], dtype=np.int64)),
    )


def random_log(rng: np.random.Generator, n_queries: int) -> list[list[dict[str, float]]]:
    queries: list[list[dict[str, float]]] = []
    for share in rng.uniform(0, 0.8, n_queries).tolist():
        rows = []
        for row in range(int(rng.integers(0, 15))):
            clicked = float(rng.random() < share)
            columns = {"list": row // 5, "clicked": clicked, "dwell": clicked * rng.exponential(30)}
            columns |= {"weight": rng.choice([0, 0, rng.exponential(2)]), "expected": rng.random()}
            columns |= {"predicted": rng.random(), "team": rng.choice([0, 1, rng.random()])}
            rows.append({name: float(value) for name, value in columns.items()})
        queries.append(rows)
    return queries


def deeper_block(block: JudgedBlock, n_rows: int) -> JudgedBlock:
    def padded(array: np.ndarray, value: float) -> np.ndarray:
        below = np.full((n_rows - len(array), array.shape[1]), value, dtype=array.dtype)
        return _frozen(np.vstack([array, below]))

    return replace(
        block,
        ranks=padded(block.ranks, np.inf),
        grades=padded(block.grades, np.nan),
        tie_first=padded(block.tie_first, np.inf),
        tie_last=padded(block.tie_last, np.inf),
        judgment_row=padded(block.judgment_row, -1),
    )


def catalogue_block(lists: Sequence[Sequence[int]], n_documents: int, **known: Any) -> CatalogueBlock:
    return CatalogueBlock(codes=_frozen(_columns(lists, -1, 0).astype(np.int32)), n_documents=n_documents, **known)


def sparse(rows: Sequence[Mapping[int, float]]) -> Sparse:
    columns = [column for row in rows for column in row]
    values = [row[column] for row in rows for column in row]
    starts = np.cumsum([0, *map(len, rows)])
    return Sparse(_frozen(starts), _frozen(np.array(columns, dtype=np.int32)), _vector(values))


def recommended_block(found: PlainCatalogue) -> CatalogueBlock:
    n_known = max([found.n_documents, *(document + 1 for consumed in found.consumed for document in consumed)])
    consumers = [set(consumed) for consumed in found.consumed if consumed]
    return catalogue_block(
        found.lists,
        found.n_documents,
        grades=_columns(
            [
                [grades.get(document, np.nan) for document in column]
                for column, grades in zip(found.lists, found.grades, strict=True)
            ],
            np.nan,
            0,
        ),
        popularity=_vector([sum(document in consumed for consumed in consumers) for document in range(n_known)]),
        n_consumers=len(consumers),
        history=sparse([dict.fromkeys(sorted(set(consumed)), 1.0) for consumed in found.consumed[: len(found.lists)]]),
        features={
            name: sparse([found.feature(name, document) for document in range(found.n_documents)])
            for name in ("category", "vector")
        },
        judged=sparse(found.grades),
    )


def random_catalogue(rng: np.random.Generator, n_queries: int = 12) -> PlainCatalogue:
    """Lists of any length, some documents of which are in no catalogue, were never consumed or have no category."""
    n_documents = int(rng.integers(5, 40))
    n_numbers = n_documents + int(rng.integers(0, 6))
    liked = rng.permutation(n_documents + 2)
    drawn = [liked[(rng.random(rng.integers(0, 15)) ** 2 * len(liked)).astype(int)] for _ in range(n_queries + 5)]
    return PlainCatalogue(
        lists=tuple(tuple(rng.permutation(n_numbers)[: rng.integers(0, 12)].tolist()) for _ in range(n_queries)),
        n_documents=n_documents,
        consumed=tuple(tuple(documents.tolist()) for documents in (*drawn, liked[:1])),
        grades=tuple(
            {int(document): float(rng.integers(-1, 4)) for document in rng.permutation(n_numbers)[:8]}
            for _ in range(n_queries)
        ),
        categories=tuple(tuple(rng.permutation(6)[: rng.integers(0, 4)].tolist()) for _ in range(n_documents)),
        vectors=tuple(tuple(rng.normal(size=3).tolist() if rng.random() < 0.8 else ()) for _ in range(n_documents)),
    )


def _columns(lists: Sequence[Sequence[float]], filler: float, padding: int) -> Floats:
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
