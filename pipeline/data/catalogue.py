"""What a dataset knows of its documents beside the judgments, and which of them a model recommended.

Documents are numbered: those of the documents table as they stand there, then others that were consumed before, then,
for each model, others that it recommends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from metrics.block import Floats
from metrics.catalogue import CatalogueBlock, Sparse
from pipeline.arrow import concatenate, numpy_of, strings
from pipeline.data.hashing import hash_pairs
from pipeline.tables import Ids, Rows

__all__ = ["Catalogue", "known_documents"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What is known of a dataset's documents.

    Attributes:
        ids: the documents that have a number, by number.
        n_documents: those of the documents table, which come first; 0 where there is none.
        features: of these, by name.
        popularity: how many queries consumed each document before; None where that is not known.
        n_consumers: queries that consumed anything.
        history: the documents that each judged query consumed; None likewise.
    """

    ids: pa.StringArray
    n_documents: int
    features: Mapping[str, Sparse] = field(default_factory=dict)
    popularity: Floats | None = None
    n_consumers: int = 0
    history: Sparse | None = None

    def block(self, doc_ids: pa.StringArray, ranks: Ints, queries: Ints, n_queries: int) -> CatalogueBlock:
        """The documents recommended; their grades are not set.

        Args:
            doc_ids: of n places in lists, the document.
            ranks: the rank, from 1.
            queries: the query's column.
            n_queries: Q.
        """
        codes = np.full((int(ranks.max(initial=1)), n_queries), -1, dtype=np.int32)
        numbers, _ = _numbered(doc_ids, self.ids)
        codes[ranks - 1, queries] = numbers
        return CatalogueBlock(
            codes, self.n_documents, None, self.popularity, self.n_consumers, self.history, self.features
        )


def known_documents(documents: Ids | None, interactions: Rows | None, query_ids: Iterable[str]) -> Catalogue:
    """What the files of a dataset say of its documents.

    Args:
        documents: the documents table.
        interactions: what was consumed before; a query that consumed a document several times counts once.
        query_ids: the judged queries, in their order.
    """
    ids = strings([]) if documents is None else documents.ids
    features = {} if documents is None else documents.features
    if interactions is None:
        return Catalogue(ids, len(ids), features)
    numbers, others = _numbered(concatenate([chunk.doc_ids for chunk in interactions.chunks]), ids)
    n_known = len(ids) + len(others)
    codes = interactions.query_codes
    _, rows = np.unique(codes.astype(np.int64) * n_known + numbers, return_index=True)
    popularity = np.bincount(numbers[rows], minlength=n_known).astype(np.float64)
    place = {query_id: number for number, query_id in enumerate(query_ids)}
    places = np.array([place.get(query_id, len(place)) for query_id in interactions.query_ids])
    rows = rows[places[codes[rows]] < len(place)]
    # Within a query the documents stand by hash, so that sums do not depend on the order of the files.
    hashes = hash_pairs(interactions, np.zeros_like(places))
    queries = places[codes]
    rows = rows[np.lexsort((hashes[rows], queries[rows]))]
    starts = np.searchsorted(queries[rows], np.arange(len(place) + 1))
    history = Sparse(starts.astype(np.int64), numbers[rows].astype(np.int32), np.ones(len(rows)))
    known = concatenate([ids, others])
    return Catalogue(known, len(ids), features, popularity, len(interactions.query_ids), history)


def _numbered(doc_ids: pa.StringArray, known: pa.StringArray) -> tuple[Ints, pa.StringArray]:
    """The number of each document, those not known from `len(known)` on; and the ids of these, in order."""
    found = pc.index_in(doc_ids, known)
    others = doc_ids.filter(pc.is_null(found)).dictionary_encode()
    numbers = np.empty(len(doc_ids), dtype=np.int64)
    inside = numpy_of(found.is_valid().cast(pa.uint8()), np.bool_)
    numbers[inside] = numpy_of(found, np.int32)[inside]
    numbers[~inside] = len(known) + numpy_of(others.indices, np.int32)
    return numbers, others.dictionary
