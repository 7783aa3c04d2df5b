"""Groups and popularity of documents, for metrics of lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.metrics.catalogue import Codes, Lists, Sparse

__all__ = [
    "Ints",
    "feature_of",
    "group_sums",
    "jensen_shannon",
    "listed",
    "memberships",
    "popularity_levels",
    "popularity_of",
    "relative_information",
    "sums_by_column",
    "tail_chances",
]

Ints = npt.NDArray[np.int64]

_SPARSE = 16  # a place of a dense matrix costs this much less than an entry that is sorted


def feature_of(block: Lists, name: str) -> Sparse:
    """Return a column of the documents table.

    Raises:
        ValueError: If the block does not have it.
    """
    if name not in block.features:
        raise ValueError(f"it needs the documents' '{name}'")
    return block.features[name]


def popularity_of(block: Lists) -> Floats:
    """Return the number of queries that consumed each document before.

    Raises:
        ValueError: If the block does not know.
    """
    if block.popularity is None:
        raise ValueError("it needs what was consumed before")
    return block.popularity


def popularity_levels(block: Lists) -> Ints:
    """Return the numbers of documents that 0, 1, 2 … queries consumed."""
    return np.bincount(popularity_of(block).astype(np.int64), minlength=1)


def tail_chances(n_documents: Ints, tail: float, of: str) -> Floats:
    """Return the share of a document in the tail, by the number of queries that consumed it.

    0 or 1, and between for documents as popular as the head's last. `n_documents` are consumed by 0, 1, 2 … queries.

    Raises:
        ValueError: If `tail` is outside (0, 1).
    """
    if not 0 < tail < 1:
        raise ValueError(f"tail must be above 0 and below 1, found {tail:g}")
    shares = np.ones(len(n_documents))
    levels = np.flatnonzero(n_documents[1:])[::-1] + 1
    size = levels if of == "interactions" else np.ones_like(levels)  # what a document at each level counts
    held = np.cumsum(size * n_documents[levels])
    if not held.size:
        return shares
    most = round(tail * float(held[-1]), 9)  # 0.29 · 100 is a little less than 29 in doubles
    head = held[-1] - (most if of == "interactions" else max(int(most), 1))
    if head > 0:
        last = int(np.searchsorted(held, head))
        above = held[last - 1] if last else 0
        shares[levels[:last]] = 0.0
        shares[levels[last]] = 1 - np.ceil((head - above) / size[last]) / n_documents[levels[last]]
    return shares


def listed(codes: Codes, feature: Sparse) -> tuple[Ints, Ints]:
    """Return query and document of each list entry that is in the catalogue, query by query."""
    queries, ranks = np.nonzero(((codes >= 0) & (codes < len(feature.starts) - 1)).T)
    return queries, codes[ranks, queries].astype(np.int64)


def memberships(feature: Sparse, documents: npt.NDArray[Any]) -> tuple[Ints, Codes, Floats, Floats]:
    """Return the categories of documents: index of the document, category, entry, and the document's sum.

    Raises:
        ValueError: If an entry is negative.
    """
    places, columns, entries = feature.of(documents)
    if entries.min(initial=0) < 0:
        raise ValueError("it needs categories, found vectors with negative numbers")
    totals: Floats = np.bincount(places, weights=entries, minlength=len(documents)).astype(np.float64)[places]
    kept = np.flatnonzero(totals > 0)
    return places[kept], columns[kept], entries[kept], totals[kept]


def group_sums(feature: Sparse, amounts: Floats) -> Floats:
    """Amounts by document, in equal parts to the groups of each document that the feature knows."""
    documents, columns, entries, totals = memberships(feature, np.arange(len(feature.starts) - 1))
    parts = entries / totals * amounts[documents]
    if (parts != np.rint(parts)).any():  # whole numbers add up exactly in any order, others do not
        order = np.lexsort((parts, columns))
        columns, parts = columns[order], parts[order]
    return np.bincount(columns, weights=parts).astype(np.float64)


def sums_by_column(n_queries: int, *sources: tuple[Ints, Codes, Floats]) -> tuple[Ints, Bools, list[Floats]]:
    """Sums of entries, in their order, by query and column, of sources with the query, column and value of each.

    The queries of the sums, ascending; (Q,) whether the query is in every source; the sums of each source.
    """
    n_columns = max(int(columns.max(initial=0)) for _, columns, _ in sources) + 1
    keys = [queries * n_columns + columns for queries, columns, _ in sources]
    n_sums, n_entries = n_queries * n_columns, sum(map(len, keys))
    if n_sums <= _SPARSE * n_entries:  # a sum for every query and column, 0 where there is nothing, is quicker
        distinct, parts = np.arange(n_sums), keys
    else:
        distinct, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        parts = np.split(inverse, np.cumsum([len(part) for part in keys])[:-1])
    sums = [
        np.bincount(part, weights=values, minlength=len(distinct)).astype(np.float64)
        for part, (_, _, values) in zip(parts, sources, strict=True)
    ]
    present = np.all([np.bincount(queries, minlength=n_queries) > 0 for queries, _, _ in sources], axis=0)
    return distinct // n_columns, present, sums


def relative_information(p: Floats, q: Floats) -> Floats:
    """p ln(p / q), 0 if p is 0."""
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0) / np.where(p > 0, q, 1.0)), 0.0)


def jensen_shannon(p: Floats, q: Floats) -> Floats:
    """Return the terms of the Jensen-Shannon divergence of two distributions by category, in nats."""
    middle = (p + q) / 2
    return (relative_information(p, middle) + relative_information(q, middle)) / 2
