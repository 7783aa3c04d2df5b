"""Judgments and model outputs to blocks: the one big step, joined by id and never by position.

Rows are matched by hashes of (query, document), and every match is verified on the ids themselves. Of documents that
nobody judged only the number is kept, once they are known not to stand twice.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from metrics.catalogue import CatalogueBlock
from metrics.conventions import Conventions
from metrics.overlap import Ranked
from metrics.rating import RatingsBlock
from pipeline.data.assemble import assemble, judged_share, pad, spans
from pipeline.data.catalogue import Catalogue
from pipeline.data.hashing import Hashes, hash_pairs
from pipeline.data.judgments import SLICE, Judgments, find_repeats, match, places_of, refuse_repeat
from pipeline.data.ordering import Ordering, order_rows
from pipeline.tables import Hits, Joined, Quality, Rows

__all__ = ["join_predictions", "join_ranking"]

Ints = npt.NDArray[np.int64]


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
    places = places_of(ranking, judgments.query_ids)
    hashes = hash_pairs(ranking, places)
    ordering = order_rows(ranking, conventions.ties, conventions.score_precision)
    repeats = find_repeats(ranking, hashes, ordering.cuts(SLICE))
    if repeats.size:
        refuse_repeat(ranking, repeats[0], "ranks", "keep one")
    hits = _find_hits(judgments, ordering, hashes, places)
    deepest = conventions.depth or np.inf
    return replace(
        assemble(judgments, hits, conventions, n_documents, path=ranking.path),
        catalogue=None
        if catalogue is None
        else _catalogue_block(catalogue, judgments, hits, ordering, places, min(depth, deepest)),
        ranked=_ranked(ordering, hashes, places, hits.n_retrieved, min(compared, deepest)) if compared else None,
    )


def join_predictions(judgments: Judgments, predictions: Rows) -> Joined:
    """The pairs that have both a rating and a prediction.

    Args:
        judgments: the dataset's ratings.
        predictions: the model's predictions.

    Raises:
        InputError: a pair is predicted twice.
    """
    places = places_of(predictions, judgments.query_ids)
    hashes = hash_pairs(predictions, places)
    repeats = find_repeats(predictions, hashes)
    if repeats.size:
        refuse_repeat(predictions, repeats[0], "predicts", "keep one")
    rows, rating_rows = match(judgments, predictions, hashes)
    # Within a query the pairs stand by hash, so that sums do not depend on the order of the files.
    order = np.lexsort((hash_pairs(predictions, np.zeros_like(places))[rows], judgments.queries[rating_rows]))
    rows, rating_rows = rows[order], rating_rows[order]
    n_queries = len(judgments.query_ids)
    n_pairs = np.bincount(judgments.queries[rating_rows], minlength=n_queries)
    blocks = []
    for span, pairs in spans(n_pairs, n_pairs):
        ratings = pad(judgments.rows.values[rating_rows[pairs]], n_pairs[span], np.nan)
        predicted = pad(predictions.values[rows[pairs]], n_pairs[span], np.nan)
        blocks.append(RatingsBlock(judgments.query_ids[span], ratings, predicted, n_pairs[span].astype(np.float64)))
    quality = Quality(
        n_rows=len(hashes),
        n_unjudged_queries=int((places >= n_queries).sum()),
        n_missing_queries=int((n_pairs == 0).sum()),
        n_unpaired=len(judgments.kept) + len(hashes) - 2 * len(rows),
    )
    return Joined(judgments.query_ids, judgments.max_grade, tuple(blocks), n_pairs == 0, quality)


def _find_hits(judgments: Judgments, ordering: Ordering, hashes: Hashes, places: Ints) -> Hits:
    """The judged documents among the rows, and what else the join finds."""
    rows, judgment_rows = match(judgments, ordering.ranking, hashes)
    ranks, tie_first, tie_last = ordering.ranks(rows)
    queries = judgments.queries[judgment_rows]
    order = np.lexsort((ranks, queries))
    queries, judgment_rows, ranks = queries[order], judgment_rows[order], ranks[order]
    n_retrieved = np.zeros(len(judgments.query_ids), dtype=np.int64)
    judged = places < len(n_retrieved)
    n_retrieved[places[judged]] = ordering.ranking.counts[judged]
    quality = Quality(
        n_rows=len(hashes),
        n_unjudged_queries=int((~judged).sum()),
        n_missing_queries=int((n_retrieved == 0).sum()),
        judged_at_10=judged_share(10, ranks, judgments.rows.values[judgment_rows], n_retrieved),
        n_tied=ordering.n_tied,
    )
    return Hits(queries, judgment_rows, ranks, tie_first[order], tie_last[order], n_retrieved, quality)


def _catalogue_block(
    catalogue: Catalogue, judgments: Judgments, hits: Hits, ordering: Ordering, places: Ints, depth: float
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
