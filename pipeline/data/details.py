"""Details of a few queries: one query joined alone, and texts and first documents of small inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.dataset import DatasetInput, row_order, size_of
from rankledger.pipeline.data.exclusions import index_pairs, match_exclusions
from rankledger.pipeline.data.join import join_predictions
from rankledger.pipeline.data.joined import QueryList
from rankledger.pipeline.data.judgments import Judgments, hash_pairs, index_judgments
from rankledger.pipeline.data.ranking import order_rows
from rankledger.pipeline.data.rankings import join_ranking
from rankledger.pipeline.data.rows import InputFile, Rows
from rankledger.pipeline.support.errors import InputError

_LARGEST = 64_000_000  # bytes of an input that is read again: a fifth of a second
_TEXTS = {"query_id": ("text", "query", "title", "question"), "doc_id": ("title", "name", "text")}


def read_titles(
    source: Source, files: Sequence[InputFile], key: Literal["query_id", "doc_id"], ids: Collection[str]
) -> dict[str, str]:
    """Return the texts of some queries or the titles of some documents.

    Empty if the table is large or changed. Uses the first of the columns `text`, `query`, `title`, `question`, or of
    `title`, `name`, `text`.
    """
    with suppress(InputError):
        if ids and _is_small(source, files):
            read_files, texts = readers.read_texts(source, key, ids, _TEXTS[key])
            if _same(read_files, files):
                return texts
    return {}


def top_documents(
    dataset: DatasetInput,
    output: Source,
    files: Sequence[InputFile],
    query_ids: Collection[str],
    conventions: Conventions,
    depth: int,
) -> dict[str, tuple[str, ...]] | None:
    """Return the first documents of each query in a model's rankings, judged or not.

    None if the rankings are gone, have changed, or are large (64 MB).
    """
    with suppress(InputError):
        if _is_small(output, files):
            rows = readers.read_ranking(output, by=row_order(conventions))
            if _same(rows.files, files):
                return dict(_first(dataset, rows, query_ids, conventions, depth))
    return None


def _first(
    dataset: DatasetInput, rows: Rows, query_ids: Collection[str], conventions: Conventions, depth: int
) -> Iterator[tuple[str, tuple[str, ...]]]:
    wanted = np.array([query_id in query_ids for query_id in rows.query_ids])
    own = np.flatnonzero(wanted[rows.query_codes])
    if not own.size:
        return
    rows = rows.take(own)
    if dataset.excluded is not None:
        hashes = hash_pairs(rows, dataset.judgments.find(rows.query_ids))
        rows = rows.without(match_exclusions(dataset.excluded, rows, hashes)[0])
    if not rows.chunks:
        return
    ordering = order_rows(rows, conventions.ties, conventions.score_precision)
    for code, query_id in enumerate(rows.query_ids):
        found = np.flatnonzero(rows.query_codes == code)
        if found.size:
            first = found[np.argsort(ordering.ranks(found)[0])[:depth]]
            yield query_id, tuple(rows.take_doc_ids(first).to_pylist())


def _is_small(source: Source, files: Sequence[InputFile]) -> bool:
    n_bytes = sum(file.size for file in files)
    return source.held is not None or (n_bytes <= _LARGEST and size_of(source) == n_bytes)


def _same(found: Sequence[InputFile], files: Sequence[InputFile]) -> bool:
    return [file.digest for file in found] == [file.digest for file in files]


@dataclass(frozen=True, eq=False)
class SingleQuery:
    """One query of a dataset and a model's output on it."""

    dataset: DatasetInput
    output: Source
    query_id: str
    keep_first: bool
    _rows: dict[str, Rows] = field(default_factory=dict, init=False)

    def listed(self, conventions: Conventions) -> QueryList:
        if self.dataset.kind == "ratings":
            return self._paired()
        rows, judged = self._read(row_order(conventions)), self._judgments
        excluded = None if self.dataset.excluded is None else index_pairs(judged, [self.dataset.excluded.rows])
        joined = join_ranking(judged, rows, conventions, n_documents=self.dataset.n_documents, excluded=excluded)
        if excluded is not None:
            out, *_ = match_exclusions(excluded, rows, hash_pairs(rows, judged.find(rows.query_ids)))
            rows = rows.without(out)
        retrieved, ties = self._ranked(rows, conventions) if rows.chunks else ((), ())
        return QueryList(
            block=joined.blocks[0],
            max_grade=self.dataset.judgments.max_grade,
            retrieved=retrieved,
            ties=ties,
            judged=tuple(judged.rows.take_doc_ids(np.arange(len(judged.grades))).to_pylist()),
            grades=tuple(judged.grades.tolist()),
            kept=tuple(judged.kept.tolist()),
            n_excluded=joined.quality.n_excluded or 0,
            n_seen=joined.quality.n_seen or 0,
        )

    def _ranked(self, rows: Rows, conventions: Conventions) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
        own = _rows_of(rows, self.query_id)
        ranks, tie_first, tie_last = order_rows(rows, conventions.ties, conventions.score_precision).ranks(own)
        order = np.argsort(ranks)
        ties = tuple(zip(tie_first[order].tolist(), tie_last[order].tolist(), strict=True))
        return tuple(rows.take_doc_ids(own[order]).to_pylist()), ties

    def files(self, conventions: Conventions) -> tuple[InputFile, ...]:
        return self._read(row_order(conventions)).files

    def _paired(self) -> QueryList:
        rows = self._read("score")
        joined = join_predictions(self._judgments, rows)
        rated = set(self._judgments.rows.take_doc_ids(self._judgments.kept).to_pylist())
        own = _rows_of(rows, self.query_id)
        by_hash = own[np.argsort(hash_pairs(rows, np.zeros(len(rows.query_ids), dtype=np.int64))[own])]  # as they join
        found = [doc_id for doc_id in rows.take_doc_ids(by_hash).to_pylist() if doc_id in rated]
        return QueryList(joined.blocks[0], self.dataset.judgments.max_grade, tuple(found))

    def _read(self, by: Literal["rank", "score"]) -> Rows:
        if by not in self._rows:
            rated = self.dataset.kind == "ratings"
            rows = readers.read_pairs(self.output, "prediction") if rated else readers.read_ranking(self.output, by=by)
            self._rows[by] = _cut_out(rows, self.query_id)
        return self._rows[by]

    @cached_property
    def _judgments(self) -> Judgments:
        judged = self.dataset.judgments
        own = index_judgments(_cut_out(judged.rows, self.query_id), keep_first=self.keep_first)
        if judged.weights is None:
            return own
        return replace(own, weights=judged.weights[_rows_of(judged.rows, self.query_id)])


def _rows_of(rows: Rows, query_id: str) -> npt.NDArray[np.int64]:
    return np.flatnonzero(rows.query_codes == (rows.query_ids.index(query_id) if query_id in rows.query_ids else -1))


def _cut_out(rows: Rows, query_id: str) -> Rows:
    own = _rows_of(rows, query_id)
    return rows.take(own if own.size else np.zeros(1, dtype=np.int64))
