"""Judgments and model outputs to blocks: the one big step, joined by id and never by position.

Rows are matched by hashes of (query, document), and every match is verified on the ids themselves. Of documents that
nobody judged only the number is kept, once they are known not to stand twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from metrics.block import Bools, Floats, JudgedBlock
from metrics.catalogue import CatalogueBlock
from metrics.conventions import Conventions
from metrics.overlap import Ranked
from metrics.rating import RatingsBlock
from pipeline.arrow import numpy_of
from pipeline.data.catalogue import Catalogue
from pipeline.data.hashing import Hashes, hash_pairs
from pipeline.data.ordering import Ordering, order_rows
from pipeline.data.subtopics import SubtopicRows, Subtopics
from pipeline.errors import InputError
from pipeline.parallel import map_threads
from pipeline.tables import Joined, Quality, Rows

__all__ = ["Judgments", "index_judgments", "join_predictions", "join_ranking"]

Ints = npt.NDArray[np.int64]

_CELLS = 1 << 17  # of a block's matrix: 1 MB, so that a kernel's working set stays in the cache
_SLICE = 1 << 17  # rows that are looked up at a time, likewise


@dataclass(frozen=True, eq=False)
class Judgments:
    """Judgments (or ratings) by query and document, ready to be joined with any number of model outputs.

    Attributes:
        rows: as they were read.
        query_ids: (Q,) the judged queries, in the order of their ids as UTF-8 bytes.
        queries: each row's place in `query_ids`.
        kept: the rows that count: all, or the first of each pair.
        hashes: of the rows kept, ascending.
        hashed_rows: the row that each hash is of.
        subtopics: the grades by subtopic, where documents are judged for subtopics.
    """

    rows: Rows
    query_ids: npt.NDArray[np.object_]
    queries: Ints
    kept: Ints
    hashes: Hashes
    hashed_rows: Ints
    subtopics: Subtopics | None = None

    @property
    def max_grade(self) -> float:
        """The greatest grade; 1 where none is above 0, for then nothing is gained whatever it is divided by."""
        greatest = float(self.rows.values[self.kept].max())
        return greatest if greatest > 0 else 1.0


def index_judgments(rows: Rows, *, keep_first: bool = False) -> Judgments:
    """Judgments ready to be joined.

    Args:
        rows: judgments or ratings.
        keep_first: whether a pair that is judged twice keeps its first judgment instead of being refused.

    Raises:
        InputError: a query judges a document twice, for the same subtopic where there are such.
    """
    query_ids = sorted(rows.query_ids)  # by code points, which is the order of their UTF-8 bytes
    places = _places(rows, query_ids)
    hashes = hash_pairs(rows, places)
    queries = places[rows.query_codes]
    by_subtopic = None if rows.subtopics is None else SubtopicRows.of(rows, rows.subtopics, queries)
    repeats = by_subtopic.repeats() if by_subtopic else _repeats(rows, hashes)
    if repeats.size and not keep_first:
        _refuse_repeat(rows, repeats[0], "judges", "keep one, or say duplicates: keep_first")
    kept, subtopics = np.delete(np.arange(len(hashes)), repeats[:, 1]), None
    if by_subtopic:
        kept, subtopics = by_subtopic.gather(kept, len(query_ids))
    order = kept[np.argsort(hashes[kept])]
    return Judgments(rows, np.array(query_ids, dtype=object), queries, kept, hashes[order], order, subtopics)


def join_ranking(
    judgments: Judgments,
    ranking: Rows,
    conventions: Conventions,
    *,
    n_documents: float = float("nan"),
    catalogue: Catalogue | None = None,
    depth: float = float("inf"),
    compared: float = 0.0,
) -> Joined:
    """The ranks and grades of the judged documents that a model retrieved.

    Args:
        judgments: the dataset's judgments.
        ranking: the model's rankings.
        conventions: say how scores are rounded, how ties are broken and whether a query may lack output.
        n_documents: documents in the catalogue, NaN where it is not known.
        catalogue: what is known of documents, where a measure asks which of them were recommended.
        depth: the ranks down to which it asks.
        compared: the ranks down to which a measure compares the ranking with another model's; 0 where none does.

    Raises:
        InputError: a query ranks a document twice, a score is beyond the range of float32, or a judged query has no
            output where that is an error.
    """
    places = _places(ranking, judgments.query_ids)
    hashes = hash_pairs(ranking, places)
    ordering = order_rows(ranking, conventions.ties, conventions.score_precision)
    repeats = _repeats(ranking, hashes, ordering.cuts(_SLICE))
    if repeats.size:
        _refuse_repeat(ranking, repeats[0], "ranks", "keep one")
    hits = _Hits.find(judgments, ordering, hashes)
    n_queries = len(judgments.query_ids)
    n_retrieved = np.zeros(n_queries, dtype=np.int64)
    n_retrieved[places[places < n_queries]] = ranking.counts[places < n_queries]
    if conventions.missing_queries == "error" and not n_retrieved.all():
        missing = judgments.query_ids[n_retrieved == 0]
        raise InputError(
            f"{ranking.path}: {len(missing)} of {n_queries} judged queries are without output, such as '{missing[0]}'; "
            "complete it, or say missing_queries: empty"
        )
    deepest = conventions.depth or np.inf
    return Joined(
        query_ids=judgments.query_ids,
        max_grade=judgments.max_grade,
        blocks=tuple(_judged_blocks(judgments, hits, n_retrieved, n_documents)),
        missing=n_retrieved == 0,
        quality=Quality(
            n_rows=len(hashes),
            n_unjudged_queries=int((places >= n_queries).sum()),
            n_missing_queries=int((n_retrieved == 0).sum()),
            judged_at_10=hits.judged_share(10, judgments, n_retrieved),
            n_tied=ordering.n_tied,
        ),
        catalogue=None
        if catalogue is None
        else _catalogue_block(catalogue, judgments, hits, ordering, places, min(depth, deepest)),
        ranked=_ranked(ordering, hashes, places, n_retrieved, min(compared, deepest)) if compared else None,
    )


def join_predictions(judgments: Judgments, predictions: Rows) -> Joined:
    """The pairs that have both a rating and a prediction.

    Args:
        judgments: the dataset's ratings.
        predictions: the model's predictions.

    Raises:
        InputError: a pair is predicted twice.
    """
    places = _places(predictions, judgments.query_ids)
    hashes = hash_pairs(predictions, places)
    repeats = _repeats(predictions, hashes)
    if repeats.size:
        _refuse_repeat(predictions, repeats[0], "predicts", "keep one")
    rows, rating_rows = _matches(judgments, predictions, hashes)
    # Within a query the pairs stand by hash, so that sums do not depend on the order of the files.
    order = np.lexsort((hash_pairs(predictions, np.zeros_like(places))[rows], judgments.queries[rating_rows]))
    rows, rating_rows = rows[order], rating_rows[order]
    n_queries = len(judgments.query_ids)
    n_pairs = np.bincount(judgments.queries[rating_rows], minlength=n_queries)
    blocks = []
    for span, pairs in _spans(n_pairs, n_pairs):
        ratings = _pad(judgments.rows.values[rating_rows[pairs]], n_pairs[span], np.nan)
        predicted = _pad(predictions.values[rows[pairs]], n_pairs[span], np.nan)
        blocks.append(RatingsBlock(judgments.query_ids[span], ratings, predicted, n_pairs[span].astype(np.float64)))
    quality = Quality(
        n_rows=len(hashes),
        n_unjudged_queries=int((places >= n_queries).sum()),
        n_missing_queries=int((n_pairs == 0).sum()),
        n_unpaired=len(judgments.kept) + len(hashes) - 2 * len(rows),
    )
    return Joined(judgments.query_ids, judgments.max_grade, tuple(blocks), n_pairs == 0, quality)


@dataclass(frozen=True, eq=False)
class _Hits:
    """The judged documents that were retrieved, by query and rank."""

    queries: Ints
    judgment_rows: Ints
    ranks: Ints
    tie_first: Ints
    tie_last: Ints

    @classmethod
    def find(cls, judgments: Judgments, ordering: Ordering, hashes: Hashes) -> _Hits:
        rows, judgment_rows = _matches(judgments, ordering.ranking, hashes)
        ranks, tie_first, tie_last = ordering.ranks(rows)
        queries = judgments.queries[judgment_rows]
        order = np.lexsort((ranks, queries))
        return cls(*(column[order] for column in (queries, judgment_rows, ranks, tie_first, tie_last)))

    def judged_share(self, k: int, judgments: Judgments, n_retrieved: Ints) -> float | None:
        """The share of the documents down to rank k that are judged, over all queries; None where there are none."""
        retrieved = np.minimum(n_retrieved, k).sum()
        judged = judgments.rows.values[self.judgment_rows[self.ranks <= k]] >= 0
        return float(judged.sum() / retrieved) if retrieved else None


def _places(rows: Rows, query_ids: Iterable[str]) -> Ints:
    """The place of each of the rows' queries among the judged ones; other queries get numbers beyond them."""
    known = {query_id: index for index, query_id in enumerate(query_ids)}
    places = (known.get(query_id, len(known) + code) for code, query_id in enumerate(rows.query_ids))
    return np.fromiter(places, dtype=np.int64, count=len(rows.query_ids))


def _repeats(rows: Rows, hashes: Hashes, cuts: Sequence[int] = ()) -> Ints:
    """(N, 2): rows that name the same query and document as an earlier row, that one first; by the later row.

    Args:
        rows: the rows.
        hashes: theirs.
        cuts: where the rows may be cut, from 0 to their number, for no query stands on both sides.
    """
    pieces = [hashes[begin:end] for begin, end in pairwise(cuts or (0, len(hashes)))]
    if not any(map_threads(_has_equal, pieces)):
        return np.empty((0, 2), dtype=np.int64)
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    pairs = np.column_stack([order[same], order[same + 1]])
    pairs = pairs[_same_ids(rows, pairs[:, 0], rows, pairs[:, 1])]
    return pairs[np.argsort(pairs[:, 1])]


def _has_equal(hashes: Hashes) -> bool:
    ascending = np.sort(hashes)
    return bool((ascending[1:] == ascending[:-1]).any())


def _refuse_repeat(rows: Rows, repeat: Ints, verb: str, remedy: str) -> None:
    earlier, later = (int(row) for row in repeat)
    query_id = rows.query_ids[rows.query_codes[later]]
    places = f"{rows.place(earlier)} and {rows.place(later)}"
    document = rows.take_doc_ids(np.array([later]))[0].as_py()
    subtopic = "" if rows.subtopics is None else f" for subtopic '{rows.subtopics[later].as_py()}'"
    found = f"query '{query_id}' {verb} document '{document}'{subtopic} twice"
    raise InputError(f"{rows.path}: {found} ({places}); {remedy}")


def _matches(judgments: Judgments, rows: Rows, hashes: Hashes) -> tuple[Ints, Ints]:
    """The rows that are judged, and the judgment of each."""
    # Most documents are not judged: a small table of the judgments' upper bits sorts them out before any search.
    bits = max(16, len(judgments.hashes).bit_length() + 5)
    shift = np.uint64(64 - bits)
    present = np.zeros(1 << bits, dtype=bool)
    present[judgments.hashes >> shift] = True

    def find(begin: int) -> Ints:
        return begin + np.flatnonzero(present[hashes[begin : begin + _SLICE] >> shift])

    candidates = np.concatenate(map_threads(find, range(0, len(hashes), _SLICE)))
    places = np.searchsorted(judgments.hashes, hashes[candidates])
    places[places == len(judgments.hashes)] = 0
    equal = judgments.hashes[places] == hashes[candidates]
    found, judged = candidates[equal], judgments.hashed_rows[places[equal]]
    same = _same_ids(rows, found, judgments.rows, judged)
    return found[same], judged[same]


def _same_ids(rows: Rows, at: Ints, others: Rows, others_at: Ints) -> Bools:
    """Whether the documents at these rows have the same ids; a hash has said so already."""
    equal = pc.equal(rows.take_doc_ids(at), others.take_doc_ids(others_at)).cast(pa.uint8())
    return numpy_of(equal, np.bool_)


def _judged_blocks(judgments: Judgments, hits: _Hits, n_retrieved: Ints, n_documents: float) -> Iterator[JudgedBlock]:
    grades = judgments.rows.values
    by_grade = judgments.kept[np.lexsort((-grades[judgments.kept], judgments.queries[judgments.kept]))]
    n_queries = len(judgments.query_ids)
    n_hits = np.bincount(hits.queries, minlength=n_queries)
    n_judgments = np.bincount(judgments.queries[judgments.kept], minlength=n_queries)
    judged_queries = judgments.queries[by_grade[grades[by_grade] >= 0]]
    n_judged = np.bincount(judged_queries, minlength=n_queries)
    for (span, hit), (_, judgment) in zip(_spans(n_judgments, n_hits), _spans(n_judgments, n_judgments), strict=True):
        sizes = n_hits[span]
        yield JudgedBlock(
            query_ids=judgments.query_ids[span],
            ranks=_pad(hits.ranks[hit], sizes, np.inf),
            grades=_pad(grades[hits.judgment_rows[hit]], sizes, np.nan),
            tie_first=_pad(hits.tie_first[hit], sizes, np.inf),
            tie_last=_pad(hits.tie_last[hit], sizes, np.inf),
            judgment_row=_pad(hits.judgment_rows[hit], sizes, -1).astype(np.int32),
            judged_grades=_pad(grades[by_grade[judgment]], n_judgments[span], np.nan),
            n_judged=n_judged[span].astype(np.float64),
            n_retrieved=n_retrieved[span].astype(np.float64),
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
        "subtopic_grades": np.array([_pad(row[subtopics.document[hit_rows]], n_hits, np.nan) for row in grades]),
        "judged_subtopic_grades": np.array([_pad(row[judgment], n_judgments, np.nan) for row in grades]),
    }


def _catalogue_block(
    catalogue: Catalogue, judgments: Judgments, hits: _Hits, ordering: Ordering, places: Ints, depth: float
) -> CatalogueBlock:
    rows, queries, ranks = _top(ordering, places, len(judgments.query_ids), depth)
    doc_ids = ordering.ranking.take_doc_ids(rows)
    block = catalogue.block(doc_ids, ranks, queries, len(judgments.query_ids))
    grades = np.full(block.codes.shape, np.nan)
    hit = np.flatnonzero(hits.ranks <= min(depth, len(grades)))
    grades[hits.ranks[hit] - 1, hits.queries[hit]] = judgments.rows.values[hits.judgment_rows[hit]]
    return replace(block, grades=grades)


def _ranked(ordering: Ordering, hashes: Hashes, places: Ints, n_retrieved: Ints, depth: float) -> Ranked:
    rows, queries, ranks = _top(ordering, places, len(n_retrieved), depth)
    order = np.argsort(hashes[rows])
    return Ranked(hashes[rows[order]], queries[order], ranks[order], np.minimum(n_retrieved, depth).astype(np.float64))


def _top(ordering: Ordering, places: Ints, n_queries: int, depth: float) -> tuple[Ints, Ints, Ints]:
    """The rows of judged queries down to a rank, with query and rank."""
    queries = places[ordering.ranking.query_codes]
    rows = np.flatnonzero(queries < n_queries)
    ranks, _, _ = ordering.ranks(rows)
    shallow = np.flatnonzero(ranks <= depth)
    return rows[shallow], queries[rows[shallow]], ranks[shallow]


def _spans(heights: Ints, sizes: Ints) -> Iterator[tuple[slice, slice]]:
    """The queries of each block, and their entries: as many queries as fit into the cells at the tallest's height."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    begin = 0
    while begin < len(heights):
        ahead = np.maximum(heights[begin : begin + _CELLS], 1)
        cells = np.maximum.accumulate(ahead) * np.arange(1, len(ahead) + 1)
        end = begin + max(1, int(np.searchsorted(cells, _CELLS, side="right")))
        yield slice(begin, end), slice(int(ends[begin]), int(ends[end]))
        begin = end


def _pad(values: npt.NDArray[np.generic], sizes: Ints, fill: float) -> Floats:
    """(H, Q): the entries of each query down its column; H is at least 1."""
    padded = np.full((int(sizes.max(initial=1)), len(sizes)), fill)
    columns = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.arange(len(values)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    padded[rows, columns] = values
    return padded
