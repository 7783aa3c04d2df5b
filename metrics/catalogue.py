"""Measures of a model's recommendations to all queries together: coverage, evenness, differences of lists.

These metrics describe a set, not a query: one value per dataset and no value per query. Their block also serves the
metrics of `recommendation`, which have a value per query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats, cut

__all__ = [
    "Attention",
    "AttentionModel",
    "CatalogueBlock",
    "Lists",
    "Sparse",
    "entropy",
    "gini",
    "item_coverage",
    "personalization",
]

Codes = npt.NDArray[np.int32]

_CELLS = 1 << 14  # of a part's codes: every document may have a hundred entries of a feature


@dataclass(frozen=True, eq=False)
class Sparse:
    """A matrix most of which is 0, as the entries of its rows one after the other.

    Attributes:
        starts: (N + 1,) int64, where each row's entries begin, and the end of the last.
        columns: the column of each entry.
        values: float64, the value of each entry.
    """

    starts: npt.NDArray[np.int64]
    columns: Codes
    values: Floats

    def of(self, rows: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], Codes, Floats]:
        """Return the entries of these rows in order: index of the row among `rows`, column and value."""
        begins = self.starts[rows]
        sizes = self.starts[rows + 1] - begins
        places = np.repeat(np.arange(len(rows)), sizes)
        entries = np.arange(len(places)) + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
        return places, self.columns[entries], self.values[entries]

    def span(self, begin: int, end: int) -> Sparse:
        """Return the rows from `begin` to before `end`, as views."""
        entries = slice(int(self.starts[begin]), int(self.starts[end]))
        starts = self.starts[begin : end + 1] - self.starts[begin]
        return Sparse(starts, self.columns[entries], self.values[entries])

    def take(self, rows: npt.NDArray[Any]) -> Sparse:
        """Return a copy of these rows, in their order."""
        _, columns, values = self.of(rows)
        sizes = self.starts[rows + 1] - self.starts[rows]
        return Sparse(np.concatenate([[0], np.cumsum(sizes)]), columns, values)


AttentionModel: TypeAlias = Literal["log2", "jarvelin", "geometric", "reciprocal", "uniform"]


@dataclass(frozen=True)
class Attention:
    """Attention that each rank gets.

    Attributes:
        model: at rank r, `log2` gives 1 / log2(r + 1), `jarvelin` 1 / max(1, log2 r), `geometric` p**(r - 1),
            `reciprocal` 1 / r, and `uniform` 1.
        p: the chance of looking one rank further, in (0, 1).

    Raises:
        ValueError: `p` is outside (0, 1).
    """

    model: AttentionModel = "uniform"
    p: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what is no chance."""
        if not 0 < self.p < 1:
            raise ValueError(f"p must be between 0 and 1, found {self.p:g}")

    def of_ranks(self, n: int) -> Floats:
        """Return the (n,) attention of ranks 1 to n."""
        ranks = np.arange(1.0, n + 1)
        if self.model == "geometric":
            return np.asarray(self.p ** (ranks - 1))
        if self.model == "log2":
            ranks = np.log2(ranks + 1)
        elif self.model == "jarvelin":
            ranks = np.maximum(1.0, np.log2(ranks))
        return np.ones(n) if self.model == "uniform" else 1 / ranks


@dataclass(frozen=True, eq=False)
class CatalogueBlock:
    """Documents that each of Q queries was given, by number, and data about documents.

    Documents are numbered: first the catalogue, then others that a query consumed or that are judged, then
    all others.

    Attributes:
        codes: (K, Q) int32, row r holds the numbers of the documents at rank r + 1; -1 where the list is shorter.
        n_documents: documents in the catalogue; 0 if unknown.
        grades: (K, Q) the grade of each, NaN if it is not judged; None if no measure needs them.
        popularity: how many queries consumed each document before; later numbers were consumed by no query. None where
            it is not known.
        n_consumers: queries that consumed something before, 1 or more where that is known.
        history: (Q, documents) has an entry for each document that the query consumed before; None likewise.
        features: by name, (n_documents, columns) a document's categories, 1 in the column of each, or its vector.
        judged: (Q, documents) the grade of each document that is judged for the query; None if no measure needs them.
    """

    codes: Codes
    n_documents: int
    grades: Floats | None = None
    popularity: Floats | None = None
    n_consumers: int = 0
    history: Sparse | None = None
    features: Mapping[str, Sparse] = field(default_factory=dict)
    judged: Sparse | None = None

    @property
    def n_queries(self) -> int:
        """Q."""
        return int(self.codes.shape[1])

    def relevant(self, rel: float, k: int | None = None) -> Bools:
        """Return (min(k, K), Q) True for relevant documents of the first k ranks.

        Raises:
            ValueError: If `rel` is not above 0, or the grades are not known.
        """
        if not rel > 0:
            raise ValueError(f"rel must be above 0, found {rel:g}")
        if self.grades is None:
            raise ValueError("it needs the grades of the documents recommended")
        return self.grades[: len(self.first(k))] >= rel

    def first(self, k: int | None) -> Codes:
        """Return the (min(k, K), Q) documents of ranks 1 to `k`, all for None.

        Raises:
            ValueError: If `k` is below 1.
        """
        return self.codes[: None if k is None else int(cut(k))]

    def exposure(self, k: int | None, new: bool = False) -> npt.NDArray[np.int64]:
        """Return the number of lists with each document, by document number, for all documents of the catalogue.

        With `new` only lists of queries that had not consumed the document before count.
        """
        codes = self.first(k)
        counted = codes >= 0
        if new and self.history is not None:
            queries, documents, _ = self.history.of(np.arange(self.n_queries))
            n = 1 + max(int(codes.max(initial=0)), int(documents.max(initial=0)))
            counted &= ~np.isin(codes + n * np.arange(self.n_queries), documents + n * queries)
        return np.bincount(codes[counted], minlength=self.n_documents)

    def attention(self, k: int | None, attention: Attention, rel: float | None = None) -> Floats:
        """Return the attention of each document over all lists, over lists in which it is relevant if `rel` is set."""
        codes = self.first(k)
        counted = codes >= 0 if rel is None else (codes >= 0) & self.relevant(rel, k)
        weights = np.broadcast_to(attention.of_ranks(len(codes))[:, np.newaxis], codes.shape)
        return _per_document(codes[counted], weights[counted], self.n_documents)

    def wanted(self, rel: float) -> Floats:
        """Return the number of queries for which each document is relevant, retrieved or not, by document number.

        Raises:
            ValueError: If the judged documents are not known.
        """
        if self.judged is None:
            raise ValueError("it needs the judged documents")
        return _per_document(self.judged.columns, self.judged.values >= rel, self.n_documents)

    def consumed(self) -> Floats:
        """Return the number of queries that consumed each document before, by document number.

        Raises:
            ValueError: If that is not known.
        """
        if self.history is None:
            raise ValueError("it needs what each query consumed before")
        return _per_document(self.history.columns, self.history.values, self.n_documents)

    def unit_sums(self, k: int | None) -> tuple[Floats, int]:
        """Return the sum of the lists as unit vectors, by document number, and the number of nonempty lists."""
        codes = self.first(k)
        filled = codes >= 0
        sizes = filled.sum(axis=0)
        units = np.broadcast_to(1 / np.sqrt(np.maximum(sizes, 1)), codes.shape)
        sums = np.bincount(codes[filled], weights=units[filled], minlength=self.n_documents)
        return np.asarray(sums, dtype=np.float64), int(np.count_nonzero(sizes))

    def parts(self, *, _cells: int = _CELLS) -> Iterator[CatalogueBlock]:
        """Cut the block into spans of queries that fit into a fixed number of cells."""
        n_rows, n_queries = self.codes.shape
        width = max(1, _cells // max(1, n_rows))
        for begin in range(0, n_queries, width):
            end = min(begin + width, n_queries)
            yield replace(
                self,
                codes=self.codes[:, begin:end],
                grades=None if self.grades is None else self.grades[:, begin:end],
                history=None if self.history is None else self.history.span(begin, end),
                judged=None if self.judged is None else self.judged.span(begin, end),
            )

    def of(self, queries: npt.NDArray[np.int64]) -> CatalogueBlock:
        """Return the block of some queries, by their columns."""
        return replace(
            self,
            codes=self.codes[:, queries],
            grades=None if self.grades is None else self.grades[:, queries],
            history=None if self.history is None else self.history.take(queries),
            judged=None if self.judged is None else self.judged.take(queries),
        )


def _per_document(documents: Codes, values: npt.NDArray[Any], n_documents: int) -> Floats:
    """Return sums of values by document."""
    return np.bincount(documents, weights=values, minlength=n_documents).astype(np.float64)


class Lists(Protocol):
    """Sums over lists that a measure of a set needs, from which sums over some lists can be subtracted."""

    @property
    def n_documents(self) -> int:
        """Documents in the catalogue, 0 if unknown."""

    @property
    def n_queries(self) -> int:
        """Number of queries."""

    @property
    def popularity(self) -> Floats | None:
        """Number of queries that consumed each document before, None if unknown."""

    @property
    def features(self) -> Mapping[str, Sparse]:
        """Columns of the documents table by name."""

    def exposure(self, k: int | None, new: bool = False) -> npt.NDArray[np.int64]:
        """Return the number of lists with each document, by document number."""

    def unit_sums(self, k: int | None) -> tuple[Floats, int]:
        """Return the sum of the lists as unit vectors, and the number of nonempty lists."""

    def attention(self, k: int | None, attention: Attention, rel: float | None = None) -> Floats:
        """Return the attention of each document over all lists, by document number."""

    def wanted(self, rel: float) -> Floats:
        """Return the number of queries for which each document is relevant."""

    def consumed(self) -> Floats:
        """Return the number of queries that consumed each document before."""


def item_coverage(block: Lists, *, k: int | None = None) -> float:
    """Compute the item coverage: the share of the catalogue that is recommended to any query.

    Formula: documents in any first k / documents.

    Args:
        k: Number of ranks to count. None counts all.

    Returns:
        one value in [0, 1]. NaN if the catalogue is empty.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 4.2.1.
    """
    if not block.n_documents:
        return float("nan")
    return np.count_nonzero(block.exposure(k)[: block.n_documents]) / block.n_documents


def gini(block: Lists, *, k: int | None = None) -> float:
    """Compute the Gini index: the inequality of recommendations over the documents of the catalogue.

    Formula: Σ (2i - n - 1) lists of the document that is i-th by them / (n Σ lists), n documents.

    Documents of the catalogue that are in no list count with 0 lists, documents outside it not at all. LensKit and
    RecBole have this form; Elliot's is 1 - n / (n - 1) times it.

    Args:
        k: Number of ranks to count. None counts all.

    Returns:
        one value in [0, 1]: 0 if all documents are given equally often, 1 - 1/n where all lists hold one and the
        same. NaN if the catalogue is empty or nothing of it is recommended.

    Reference:
        Fleder & Hosanagar 2009, doi:10.1287/mnsc.1080.0974, of recommendations; Gini 1912, Variabilità e mutabilità.
    """
    n_lists = np.sort(block.exposure(k)[: block.n_documents])
    if not n_lists.any():
        return float("nan")
    n = block.n_documents
    return int(((2 * np.arange(1, n + 1) - n - 1) * n_lists).sum()) / (n * int(n_lists.sum()))


def entropy(block: Lists, *, k: int | None = None) -> float:
    """Compute the Shannon entropy of recommendations over documents, in bits.

    Formula: -Σ p log2 p, p a document's share of all recommendations.

    RecBole takes the natural logarithm and divides by the number of documents recommended; Elliot counts each list
    alike, however short.

    Args:
        k: Number of ranks to count. None counts all.

    Returns:
        one value of 0 bits, where all lists hold one and the same document, or more: as much as log2 of the number of
        documents recommended, where all are given equally often. NaN if nothing is recommended.

    Reference:
        Shannon 1948, doi:10.1002/j.1538-7305.1948.tb01338.x.
    """
    n_lists = np.sort(block.exposure(k))
    n_lists = n_lists[np.flatnonzero(n_lists)]
    if not n_lists.size:
        return float("nan")
    shares = n_lists / n_lists.sum()
    return float((shares * np.log2(1 / shares)).sum())


def personalization(block: Lists, *, k: int | None = None) -> float:
    """Compute the personalization: the mean dissimilarity of two queries' lists over all pairs of queries.

    Formula: 1 - mean |shared| / √(|one list| |the other|) over all pairs of lists.

    Two lists of a and b documents that share c have c / √(a b) in common, which is the share c / k of full lists.
    Queries with an empty list are in no pair.

    Args:
        k: Number of ranks to count. None counts all.

    Returns:
        one value in [0, 1]: 0 if all lists hold the same documents, 1 if no two share any. NaN if fewer than
        two queries have a list.

    Reference:
        Zhou et al. 2010, doi:10.1073/pnas.1000488107, personalization h(L), for lists of L documents each; shorter ones
        by their cosine, as recmetrics has it.
    """
    sums, n_lists = block.unit_sums(k)
    if n_lists < 2:
        return float("nan")
    # The square of the sum of unit vectors is the sum of all cosines, a list's with itself included.
    squares = np.sort(sums[sums > 0] ** 2)  # in an order that does not depend on the documents' numbers
    similarity = (float(squares.sum()) - n_lists) / (n_lists * (n_lists - 1))
    return min(1.0, max(0.0, 1 - similarity))


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
    limit = round(tail * float(held[-1]), 9)  # 0.29 · 100 is a little less than 29 in doubles
    head = held[-1] - (limit if of == "interactions" else max(int(limit), 1))
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
    """Sum entries by query and column, in order, from sources with the query, column and value of each.

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
    """Return p ln(p / q), 0 if p is 0."""
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0) / np.where(p > 0, q, 1.0)), 0.0)


def jensen_shannon(p: Floats, q: Floats) -> Floats:
    """Return the terms of the Jensen-Shannon divergence of two distributions by category, in nats."""
    middle = (p + q) / 2
    return (relative_information(p, middle) + relative_information(q, middle)) / 2
