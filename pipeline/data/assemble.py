"""Blocks, assembled of the judged documents that a model output retrieved.

What an output retrieved is found in its files, or was kept from an earlier evaluation: the blocks are the same to the
last bit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from metrics.block import Floats, JudgedBlock
from metrics.conventions import Conventions
from pipeline.data.judgments import Judgments
from pipeline.data.subtopics import Subtopics
from pipeline.errors import InputError, shorten
from pipeline.tables import Hits, Joined

__all__ = ["assemble", "judged_by_rank", "judged_share", "pad", "spans"]

Ints = npt.NDArray[np.int64]

_RANKS = (*range(1, 11), 15, 20, 30, 50, 100, 200, 500, 1000)  # at which the share of judged documents is looked at
_CELLS = 1 << 17  # of a block's matrix: 1 MB, so that a kernel's working set stays in the cache


def assemble(
    judgments: Judgments, hits: Hits, conventions: Conventions, n_documents: float = float("nan"), *, path: str
) -> Joined:
    """The ranks and grades of the judged documents that a model retrieved, in blocks.

    Args:
        judgments: the dataset's judgments.
        hits: those of the documents that the model retrieved.
        conventions: say whether a query may lack output.
        n_documents: documents in the catalogue, NaN where it is not known.
        path: the output as it was named.

    Raises:
        InputError: a judged query has no output where that is an error.
    """
    missing = hits.n_retrieved == 0
    if conventions.missing_queries == "error" and missing.any():
        without = judgments.query_ids[missing]
        raise InputError(
            f"{path}: {len(without)} of {len(missing)} judged queries are without output, "
            f"such as '{shorten(without[0])}'; complete it, or say missing_queries: empty"
        )
    return Joined(
        query_ids=judgments.query_ids,
        max_grade=judgments.max_grade,
        blocks=tuple(_judged_blocks(judgments, hits, n_documents)),
        missing=missing,
        quality=hits.quality,
        hits=hits,
    )


def judged_share(k: int, ranks: Ints, grades: Floats, n_retrieved: Ints) -> float | None:
    """The share of the documents down to rank k that are judged, over all queries.

    Args:
        k: the rank.
        ranks: (H,) those of the judged documents that were retrieved.
        grades: (H,) their grades, negative ones being no judgment.
        n_retrieved: (Q,) documents retrieved.

    Returns:
        None where no document was retrieved.
    """
    retrieved = np.minimum(n_retrieved, k).sum()
    judged = grades[ranks <= k] >= 0
    return float(judged.sum() / retrieved) if retrieved else None


def judged_by_rank(ranks: Ints, grades: Floats, n_retrieved: Ints) -> Iterator[tuple[int, float, int]]:
    """At each of the ranks that are looked at, the share of the documents there that are judged.

    Args:
        ranks: (H,) those of the judged documents that were retrieved.
        grades: (H,) their grades, negative ones being no judgment.
        n_retrieved: (Q,) documents retrieved.

    Yields:
        The rank, the share, and how many queries retrieve a document there: at least one.
    """
    judged = ranks[grades >= 0]
    for rank in _RANKS:
        n_queries = int((n_retrieved >= rank).sum())
        if n_queries:
            yield rank, int((judged == rank).sum()) / n_queries, n_queries


def _judged_blocks(judgments: Judgments, hits: Hits, n_documents: float) -> Iterator[JudgedBlock]:
    grades = judgments.rows.values
    by_grade = judgments.kept[np.lexsort((-grades[judgments.kept], judgments.queries[judgments.kept]))]
    n_queries = len(judgments.query_ids)
    n_hits = np.bincount(hits.queries, minlength=n_queries)
    n_judgments = np.bincount(judgments.queries[judgments.kept], minlength=n_queries)
    judged_queries = judgments.queries[by_grade[grades[by_grade] >= 0]]
    n_judged = np.bincount(judged_queries, minlength=n_queries)
    for (span, hit), (_, judgment) in zip(spans(n_judgments, n_hits), spans(n_judgments, n_judgments), strict=True):
        sizes = n_hits[span]
        yield JudgedBlock(
            query_ids=judgments.query_ids[span],
            ranks=pad(hits.ranks[hit], sizes, np.inf),
            grades=pad(grades[hits.judgment_rows[hit]], sizes, np.nan),
            tie_first=pad(hits.tie_first[hit], sizes, np.inf),
            tie_last=pad(hits.tie_last[hit], sizes, np.inf),
            judgment_row=pad(hits.judgment_rows[hit], sizes, -1).astype(np.int32),
            judged_grades=pad(grades[by_grade[judgment]], n_judgments[span], np.nan),
            n_judged=n_judged[span].astype(np.float64),
            n_retrieved=hits.n_retrieved[span].astype(np.float64),
            n_documents=np.full(len(sizes), n_documents),
            **_subtopic_grades(judgments.subtopics, hits.judgment_rows[hit], sizes, judgment, n_judgments[span], span),
        )


def _subtopic_grades(
    subtopics: Subtopics | None, hit_rows: Ints, n_hits: Ints, judgment: slice, n_judgments: Ints, span: slice
) -> dict[str, Floats]:
    """The block's grades by subtopic, (S, H, Q) and (S, J, Q), where there are such."""
    if subtopics is None:
        return {}
    grades = subtopics.grades[: subtopics.n_subtopics[span].max()]
    return {
        "subtopic_grades": np.array([pad(row[subtopics.document[hit_rows]], n_hits, np.nan) for row in grades]),
        "judged_subtopic_grades": np.array([pad(row[judgment], n_judgments, np.nan) for row in grades]),
    }


def spans(heights: Ints, sizes: Ints) -> Iterator[tuple[slice, slice]]:
    """The queries of each block, and their entries: as many queries as fit into the cells at the tallest's height.

    Args:
        heights: (Q,) the height that each query asks of a block.
        sizes: (Q,) the entries of each query.
    """
    ends = np.concatenate([[0], np.cumsum(sizes)])
    begin = 0
    while begin < len(heights):
        ahead = np.maximum(heights[begin : begin + _CELLS], 1)
        cells = np.maximum.accumulate(ahead) * np.arange(1, len(ahead) + 1)
        end = begin + max(1, int(np.searchsorted(cells, _CELLS, side="right")))
        yield slice(begin, end), slice(int(ends[begin]), int(ends[end]))
        begin = end


def pad(values: npt.NDArray[np.generic], sizes: Ints, fill: float) -> Floats:
    """(H, Q): the entries of each query down its column; H is at least 1."""
    padded = np.full((int(sizes.max(initial=1)), len(sizes)), fill)
    columns = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.arange(len(values)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    padded[rows, columns] = values
    return padded
