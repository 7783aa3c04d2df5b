"""One query of a dataset and of a model's output, cut out of what was read, so that it can be joined in several ways.

A query's block has the same bits cut out and joined alone as among all others; only what is of the whole dataset, its
greatest grade and its number of documents, is taken along.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from metrics.conventions import Conventions
from pipeline.arithmetic import QueryList
from pipeline.arrow import integers
from pipeline.data import readers
from pipeline.data.hashing import hash_pairs
from pipeline.data.inputs import DatasetInput, Source
from pipeline.data.join import join_predictions, join_ranking
from pipeline.data.judgments import Judgments, index_judgments
from pipeline.data.ordering import order_rows
from pipeline.tables import Chunk, InputFile, Rows

__all__ = ["SingleQuery"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SingleQuery:
    """One query of a dataset, and where a model's output on it is.

    Attributes:
        dataset: the dataset's own files.
        output: the model's rankings or predictions.
        query_id: one of the dataset's queries.
        keep_first: whether a pair that is judged twice keeps its first judgment.
    """

    dataset: DatasetInput
    output: Source
    query_id: str
    keep_first: bool

    def listed(self, conventions: Conventions) -> QueryList:
        """The query as the conventions have it joined.

        Raises:
            InputError: the output is missing or malformed, or lacks the query where that is an error.
        """
        if self.dataset.kind == "ratings":
            return self._paired()
        _, rows = self._read("rank" if conventions.ties == "rank_column" else "score")
        n_documents = float(self.dataset.catalogue.n_documents) or float("nan")
        joined = join_ranking(self._judgments, rows, conventions, n_documents=n_documents)
        own = np.flatnonzero(_is_of(rows, self.query_id))
        ranks, tie_first, tie_last = order_rows(rows, conventions.ties, conventions.score_precision).ranks(own)
        order = np.argsort(ranks)
        judged = self._judgments
        return QueryList(
            block=joined.blocks[0],
            max_grade=self.dataset.judgments.max_grade,
            retrieved=tuple(rows.take_doc_ids(own[order]).to_pylist()),
            ties=tuple(zip(tie_first[order].tolist(), tie_last[order].tolist(), strict=True)),
            judged=tuple(judged.rows.take_doc_ids(np.arange(len(judged.queries))).to_pylist()),
            grades=tuple(judged.rows.values.tolist()),
            kept=tuple(judged.kept.tolist()),
        )

    def files(self, conventions: Conventions) -> tuple[InputFile, ...]:
        """The files of the output that are read under these conventions."""
        return self._read("rank" if conventions.ties == "rank_column" else "score")[0]

    def _paired(self) -> QueryList:
        _, rows = self._read("score")
        joined = join_predictions(self._judgments, rows)
        rated = set(self._judgments.rows.take_doc_ids(self._judgments.kept).to_pylist())
        own = np.flatnonzero(_is_of(rows, self.query_id))
        by_hash = own[np.argsort(hash_pairs(rows, np.zeros(len(rows.query_ids), dtype=np.int64))[own])]  # as they join
        found = [doc_id for doc_id in rows.take_doc_ids(by_hash).to_pylist() if doc_id in rated]
        return QueryList(joined.blocks[0], self.dataset.judgments.max_grade, tuple(found))

    def _read(self, by: Literal["rank", "score"]) -> tuple[tuple[InputFile, ...], Rows]:
        """The files of the output, and the query's rows of it."""
        return self._by_rank if by == "rank" else self._by_score

    @cached_property
    def _by_rank(self) -> tuple[tuple[InputFile, ...], Rows]:
        rows = readers.read_ranking(*self.output.layout, by="rank")
        return rows.files, _cut_out(rows, self.query_id)

    @cached_property
    def _by_score(self) -> tuple[tuple[InputFile, ...], Rows]:
        read = readers.read_predictions if self.dataset.kind == "ratings" else readers.read_ranking
        rows = read(*self.output.layout)
        return rows.files, _cut_out(rows, self.query_id)

    @cached_property
    def _judgments(self) -> Judgments:
        return index_judgments(_cut_out(self.dataset.judgments.rows, self.query_id), keep_first=self.keep_first)


def _is_of(rows: Rows, query_id: str) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = rows.query_codes == (
        rows.query_ids.index(query_id) if query_id in rows.query_ids else -1
    )
    return found


def _cut_out(rows: Rows, query_id: str) -> Rows:
    """The rows of one query; where it has none, a row of another, which a join passes over, for none is no input."""
    own = np.flatnonzero(_is_of(rows, query_id))
    taken = own if own.size else np.zeros(1, dtype=np.int64)
    name = query_id if own.size else rows.query_ids[rows.query_codes[0]]
    chunk = Chunk(np.zeros(len(taken), dtype=np.int32), rows.take_doc_ids(taken), rows.values[taken])
    subtopics = None if rows.subtopics is None else rows.subtopics.take(integers(taken))
    return replace(
        rows, query_ids=[name], chunks=(chunk,), place=lambda row: rows.place(int(taken[row])), subtopics=subtopics
    )
