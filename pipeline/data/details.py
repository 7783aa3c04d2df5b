"""What a person wants to know of a few queries: their text, the first documents of an output, and what these are.

An evaluation keeps ranks of judged documents alone, so that inputs are read a second time for it, if they are small.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

import numpy as np

from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.dataset import DatasetInput, row_order, size_of
from rankledger.pipeline.data.exclusions import sort_out
from rankledger.pipeline.data.judgments import hash_pairs
from rankledger.pipeline.data.ranking import order_rows
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.types.inputs import InputFile, Rows, Source

__all__ = ["document_titles", "query_texts", "top_documents"]

_LARGEST = 64_000_000  # bytes of an input that is read again: a fifth of a second
_QUERY_TEXT = ("text", "query", "title", "question")
_DOCUMENT_TEXT = ("title", "name", "text")


def query_texts(queries: Source, files: Sequence[InputFile], query_ids: Collection[str]) -> dict[str, str]:
    """The texts of these queries: the column `text`, `query`, `title` or `question`, the first that there is.

    Args:
        queries: the queries table.
        files: what it was when it was read; of a table that is another now there are no texts.
        query_ids: the queries.
    """
    return _texts(queries, files, readers.read_query_texts, query_ids, _QUERY_TEXT)


def document_titles(documents: Source, files: Sequence[InputFile], doc_ids: Collection[str]) -> dict[str, str]:
    """The titles of these documents: the column `title`, `name` or `text`; other arguments are as `query_texts`'."""
    return _texts(documents, files, readers.read_document_texts, doc_ids, _DOCUMENT_TEXT)


def _texts(
    source: Source, files: Sequence[InputFile], read: readers.TextReader, ids: Collection[str], columns: Sequence[str]
) -> dict[str, str]:
    with suppress(InputError):
        if ids and _is_small(source, files):
            read_files, texts = read(source, ids, columns)
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
    """The first documents of each of these queries in a model's rankings, judged or not; none for one without output.

    Args:
        dataset: the dataset, whose excluded documents are left out.
        output: the rankings.
        files: what they were when they were evaluated.
        query_ids: judged queries.
        conventions: say what orders the documents.
        depth: how many of each at most.

    Returns:
        None if the rankings are gone, others now, or large: 64 MB.
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
        rows = rows.without(sort_out(dataset.excluded, rows, hashes)[0])
    if not rows.chunks:
        return
    ordering = order_rows(rows, conventions.ties, conventions.score_precision)
    for code, query_id in enumerate(rows.query_ids):
        found = np.flatnonzero(rows.query_codes == code)
        if found.size:
            first = found[np.argsort(ordering.ranks(found)[0])[:depth]]
            yield query_id, tuple(rows.take_doc_ids(first).to_pylist())


def _is_small(source: Source, files: Sequence[InputFile]) -> bool:
    """Whether it is as small, on disk, as what was evaluated, and that is little; what is held in memory is."""
    n_bytes = sum(file.size for file in files)
    return source.held is not None or (n_bytes <= _LARGEST and size_of(source) == n_bytes)


def _same(found: Sequence[InputFile], files: Sequence[InputFile]) -> bool:
    return [file.digest for file in found] == [file.digest for file in files]
