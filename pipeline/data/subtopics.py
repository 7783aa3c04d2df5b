"""Judgments by subtopic: which rows are of one document, which of them stands for it, and its grade for each subtopic.

Where a query judges a document for several subtopics, its grade for the query as a whole is the greatest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from metrics.block import Floats
from pipeline.arrow import concatenate, numpy_of
from pipeline.tables import Rows

__all__ = ["SubtopicRows", "Subtopics"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Subtopics:
    """The grades of D judged documents for each of at most S subtopics of their queries.

    Attributes:
        grades: (S, D), NaN where the document was not judged for the subtopic. The documents stand query by query, the
            greatest id first; a query's subtopics by id, the shorter ids first, so that numbers stand in their order.
        document: (N,) which of the documents each row of the judgments is of; -1 for rows that do not count.
        n_subtopics: (Q,) how many subtopics each query has.
    """

    grades: Floats
    document: Ints
    n_subtopics: Ints


@dataclass(frozen=True, eq=False)
class SubtopicRows:
    """The rows of judgments by subtopic, N of them, and what they name as numbers.

    Attributes:
        values: (N,) the grades.
        queries: (N,) each row's query.
        documents: (N,) each row's document, the greatest id being 0.
        subtopics: (N,) the row's subtopic, the shortest and least id being 0.
    """

    values: Floats
    queries: Ints
    documents: Ints
    subtopics: Ints

    @classmethod
    def of(cls, rows: Rows, subtopics: pa.StringArray, queries: Ints) -> SubtopicRows:
        """The rows, each of these subtopics and of these queries."""
        documents = concatenate([chunk.doc_ids for chunk in rows.chunks]).dictionary_encode()
        descending = numpy_of(pc.array_sort_indices(documents.dictionary, order="descending"), np.uint64)
        coded = subtopics.dictionary_encode()
        ids = coded.dictionary.to_pylist()
        by_length = sorted(range(len(ids)), key=lambda code: (len(ids[code]), ids[code]))
        return cls(rows.values, queries, _places(documents, descending), _places(coded, by_length))

    def repeats(self) -> Ints:
        """(n, 2): rows that judge the same as an earlier row, that one first; by the later row."""
        order = np.lexsort((self.subtopics, self.documents, self.queries))
        same = np.ones(len(order) - 1, dtype=bool)
        for column in (self.queries, self.documents, self.subtopics):
            same &= column[order[1:]] == column[order[:-1]]
        pairs = np.column_stack([order[:-1][same], order[1:][same]])
        return pairs[np.argsort(pairs[:, 1])]

    def gather(self, kept: Ints, n_queries: int) -> tuple[Ints, Subtopics]:
        """Of the rows kept, those that stand for their documents, ascending; and the grades by subtopic."""
        order = kept[np.lexsort((-self.values[kept], self.documents[kept], self.queries[kept]))]
        begins = np.ones(len(order), dtype=bool)
        begins[1:] = (np.diff(self.queries[order]) != 0) | (np.diff(self.documents[order]) != 0)
        document = np.full(len(self.values), -1)
        document[order] = np.cumsum(begins) - 1
        n_ids = self.subtopics.max() + 1
        distinct, places = np.unique(self.queries[kept] * n_ids + self.subtopics[kept], return_inverse=True)
        n_subtopics = np.bincount(distinct // n_ids, minlength=n_queries)
        firsts = np.cumsum(n_subtopics) - n_subtopics
        grades = np.full((n_subtopics.max(), begins.sum()), np.nan)
        grades[places - firsts[self.queries[kept]], document[kept]] = self.values[kept]
        return np.sort(order[begins]), Subtopics(grades, document, n_subtopics)


def _places(coded: pa.DictionaryArray, order: Sequence[int] | npt.NDArray[np.uint64]) -> Ints:
    """(N,): the place of each entry, given the codes in their order."""
    places = np.empty(len(coded.dictionary), dtype=np.int64)
    places[np.asarray(order, dtype=np.int64)] = np.arange(len(places))
    found: Ints = places[numpy_of(coded.indices, np.int32)]
    return found
