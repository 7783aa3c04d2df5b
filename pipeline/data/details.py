"""Details of a few queries: their texts and first documents, read a second time from small inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Literal

import numpy as np

from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.dataset import DatasetInput, row_order, size_of
from rankledger.pipeline.data.exclusions import match_exclusions
from rankledger.pipeline.data.judgments import hash_pairs
from rankledger.pipeline.data.ranking import order_rows
from rankledger.pipeline.data.rows import InputFile, Rows
from rankledger.pipeline.support.errors import InputError

_LARGEST = 64_000_000  # bytes of an input that is read again: a fifth of a second
_TEXTS = {"query_id": ("text", "query", "title", "question"), "doc_id": ("title", "name", "text")}


def read_titles(
    source: Source, files: Sequence[InputFile], key: Literal["query_id", "doc_id"], ids: Collection[str]
) -> dict[str, str]:
    """Return the texts of some queries or the titles of some documents.

    Empty if the table is large, or differs from the files that were evaluated. Their column is the first of `text`,
    `query`, `title`, `question`, or of `title`, `name`, `text`.
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
    """Return the first documents of each of these queries in a model's rankings, judged or not.

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
    """Return whether an input is small and has the size of what was evaluated."""
    n_bytes = sum(file.size for file in files)
    return source.held is not None or (n_bytes <= _LARGEST and size_of(source) == n_bytes)


def _same(found: Sequence[InputFile], files: Sequence[InputFile]) -> bool:
    return [file.digest for file in found] == [file.digest for file in files]
