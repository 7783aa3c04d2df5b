"""Recommended lists beyond accuracy: how novel, popular, surprising, diverse and fitting the documents given are.

One value per query, over the documents of its list down to the cutoff. What was consumed before, in training, is known
by query and document: a document's popularity is the number of queries that consumed it, however often each did.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats, divide, sum_down
from rankledger.metrics.catalogue import (
    CatalogueBlock,
    Codes,
    Ints,
    Sparse,
    feature_of,
    jensen_shannon,
    listed,
    memberships,
    popularity_levels,
    popularity_of,
    relative_information,
    sums_by_column,
    tail_chances,
)

__all__ = ["calibration", "diversity", "efd", "epc", "novelty", "popularity", "serendipity", "tail_share"]


def novelty(
    block: CatalogueBlock, *, k: int | None = None, share: Literal["queries", "interactions"] = "queries"
) -> Floats:
    """Compute the novelty: the mean self-information of the documents in a list, in bits.

    Formula: mean log2(queries that consumed anything / queries that consumed the document).

    A document that c of U queries consumed before tells log2(U / c) bits. One that no query consumed counts as if one
    query had (as in RecTools): its information would be infinite, and with it the mean. Elliot gives it the maximum
    information of the documents consumed, which is the same wherever some document was consumed once.

    Args:
        k: Number of ranks to count. None counts all.
        share: What c is a share of: `queries`, all queries that consumed anything (the chance that one of them knows
            the document); `interactions`, all interactions (the chance that one of them is with it).

    Returns:
        (Q,), bits, 0 or more. NaN if nothing was recommended, and everywhere if no query consumed anything.

    Reference:
        Zhou et al. 2010, doi:10.1073/pnas.1000488107, surprisal; `interactions` is the free discovery of Vargas &
        Castells 2011, doi:10.1145/2043932.2043955, without discount and relevance.
    """
    codes = block.first(k)
    total = float(block.n_consumers if share == "queries" else popularity_of(block).sum())
    information = np.log2((total or np.nan) / np.maximum(_consumers(block, codes), 1))
    return _mean(codes, information)


def efd(block: CatalogueBlock, *, k: int | None = None, rel: float = 1) -> Floats:
    """Compute the expected free discovery: the discounted self-information of relevant documents, in bits.

    Formula: Σ log2(interactions / interactions with it) / log2(rank + 1) where relevant / Σ 1 / log2(rank + 1).

    Args:
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), bits, 0 or more. NaN if nothing was recommended, and everywhere if no query consumed anything.

    Reference:
        Vargas & Castells 2011, doi:10.1145/2043932.2043955; Elliot 0.3.1 `EFD`.
    """
    total = float(popularity_of(block).sum()) or np.nan
    return _discovery(block, k, rel, np.log2(total / np.maximum(_consumers(block, block.first(k)), 1)))


def epc(block: CatalogueBlock, *, k: int | None = None, rel: float = 1) -> Floats:
    """Compute the expected popularity complement: the discounted unpopularity of relevant documents.

    Formula: Σ (1 - queries that consumed the document / all) / log2(rank + 1) where relevant / Σ 1 / log2(rank + 1).

    Args:
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1]. NaN if nothing was recommended, and everywhere if no query consumed anything.

    Reference:
        Vargas & Castells 2011, doi:10.1145/2043932.2043955; Elliot 0.3.1 `EPC`.
    """
    return _discovery(block, k, rel, 1 - _consumers(block, block.first(k)) / (float(block.n_consumers) or np.nan))


def _discovery(block: CatalogueBlock, k: int | None, rel: float, worth: Floats) -> Floats:
    """Return (Q,) worths of the relevant documents over the discounts of all documents of the list."""
    codes = block.first(k)
    discounts = np.where(codes >= 0, 1 / np.log2(np.arange(2.0, len(codes) + 2))[:, np.newaxis], 0.0)
    means = divide(sum_down(discounts * np.where(block.relevant(rel, k), worth, 0.0)), sum_down(discounts))
    return means if block.n_consumers else np.full_like(means, np.nan)


def popularity(block: CatalogueBlock, *, k: int | None = None) -> Floats:
    """Compute the popularity: the mean number of queries that consumed a document of the list before.

    Formula: mean number of queries that consumed the document.

    Args:
        k: Number of ranks to count. None counts all.

    Returns:
        (Q,), queries, 0 or more. NaN if nothing was recommended.

    Reference:
        Yin et al. 2012, arXiv:1205.6700, average recommendation popularity (ARP).
    """
    codes = block.first(k)
    return _mean(codes, _consumers(block, codes).astype(np.float64))


def tail_share(
    block: CatalogueBlock,
    *,
    k: int | None = None,
    tail: float = 0.2,
    of: Literal["interactions", "documents"] = "interactions",
) -> Floats:
    """Compute the tail share: the share of a list in the long tail, the documents that few queries consumed before.

    Formula: documents of the long tail / min(k, n).

    With the documents consumed in descending order of popularity, the head is the fewest that leave at most the share
    `tail` of all interactions to the others; the others are the tail, and so is what no query consumed. Of documents as
    popular as the head's last, each is of the tail by the share that the head leaves out: no order of ids decides.

    Args:
        k: Number of ranks to count. None counts all.
        tail: How much is the tail's, in (0, 1).
        of: What it is a share of: `interactions`, as above (Elliot); `documents`, so that the tail is that share of the
            documents consumed, rounded down and at least one (RecBole, in which what no query consumed is not tail).

    Returns:
        (Q,) scores in [0, 1]. NaN if nothing was recommended.

    Reference:
        Abdollahpouri, Burke & Mobasher 2017, doi:10.1145/3109859.3109912, average percentage of long tail items (APLT).
    """
    codes = block.first(k)
    return _mean(codes, tail_chances(popularity_levels(block), tail, of)[_consumers(block, codes)])


def serendipity(block: CatalogueBlock, *, k: int | None = None, rel: float = 1) -> Floats:
    """Compute the serendipity: the mean rise of relevant documents over their rank by popularity.

    Formula: mean max(popularity rank - rank, 0) / documents where relevant, else 0.

    A relevant document at rank r, whose popularity is the m-th greatest, adds max(m - r, 0) / n, n being the documents
    of the catalogue: it is expected at rank m, as everyone else's. Equally popular documents have one m; one that
    no query consumed before has m = n + 1, as if no query got it. What is not relevant adds 0.

    Args:
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1]. 0 if nothing was recommended, NaN if the catalogue is empty.

    Reference:
        Murakami, Mori & Orihara 2008, doi:10.1007/978-3-540-78197-4_5, with the probabilities by rank of RecTools.
    """
    relevant, codes = block.relevant(rel, k), block.first(k)
    has_level = popularity_levels(block) > 0
    expected = (
        has_level.sum() - has_level.cumsum() + 1
    )  # by the number of queries: how many greater ones there are, and 1
    expected[0] = block.n_documents + 1
    ranks = np.arange(1.0, len(codes) + 1)[:, np.newaxis]
    ahead = np.maximum(expected[_consumers(block, codes)] - ranks, 0)
    length = np.maximum((codes >= 0).sum(axis=0), 1).astype(np.float64)
    return divide(sum_down(ahead * relevant), length * block.n_documents)


def diversity(block: CatalogueBlock, *, feature: str, k: int | None = None) -> Floats:
    """Compute the diversity: 1 minus the mean cosine of the features of two documents of a list.

    Formula: mean 1 - cosine of two documents' features.

    Documents of one category each are at distance 0 or 1; of several, at 1 - |shared| / √(|one's| |the other's|).
    Documents without the feature are passed over.

    Args:
        feature: The column of the documents table that tells documents apart: categories, or a vector of each.
        k: Number of ranks to count. None counts all.

    Returns:
        (Q,) scores in [0, 1], or to 2 where vectors have negative numbers. NaN if fewer than two documents of the list
        have the feature.

    Reference:
        Ziegler et al. 2005, doi:10.1145/1060745.1060754, intra-list similarity; Zhang & Hurley 2008,
        doi:10.1145/1454008.1454030.
    """
    values, n_queries = feature_of(block, feature), block.codes.shape[1]
    queries, documents = listed(block.first(k), values)
    places, columns, entries = values.of(documents)
    entries = _moderate(places, entries)
    lengths = np.sqrt(np.bincount(places, weights=entries**2, minlength=len(documents)))
    n_known = np.bincount(queries[lengths > 0], minlength=n_queries).astype(np.float64)
    kept = np.flatnonzero(lengths[places] > 0)
    units = queries[places[kept]], columns[kept], entries[kept] / lengths[places[kept]]
    owners, _, (sums,) = sums_by_column(n_queries, units)
    # The square of a sum of unit vectors is the sum of all cosines, a document's with itself included.
    squares = np.bincount(owners, weights=sums**2, minlength=n_queries)
    distances = n_known**2 - squares
    return divide(np.where(distances > 1e-14 * n_known**2, distances, 0.0), n_known * (n_known - 1))  # 0 if alike


def calibration(
    block: CatalogueBlock,
    *,
    feature: str,
    k: int | None = None,
    divergence: Literal["kl", "js"] = "kl",
    alpha: float = 0.01,
) -> Floats:
    """Compute the calibration: the divergence of a list's categories from those consumed before, in nats.

    Formula: Σ p ln(p / ((1 - alpha) q + alpha p)), p categories consumed before, q recommended.

    A distribution over categories is the mean over documents, each of which gives equal shares to its own categories:
    p of the documents consumed, q of those recommended. Documents without a category are passed over.

    Args:
        feature: The column of the documents table that holds their categories.
        k: Number of ranks to count. None counts all.
        divergence: `kl`, Σ p ln(p / ((1 - alpha) q + alpha p)), the Kullback-Leibler divergence of the paper; `js`, the
            Jensen-Shannon divergence, (Σ p ln(p / m) + Σ q ln(q / m)) / 2 with m = (p + q) / 2.
        alpha: How much of p is mixed into q, in (0, 1), so that a category missing from the list is not infinitely far.

    Returns:
        (Q,), nats, 0 or more, lower is better: at most ln(1 / alpha) for `kl` and ln 2 for `js`. NaN if no document
        consumed or none recommended has a category.

    Reference:
        Steck 2018, doi:10.1145/3240323.3240372, with equal weights of documents; `js` by Lin 1991,
        doi:10.1109/18.61115.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be above 0 and below 1, found {alpha:g}")
    if block.history is None:
        raise ValueError("it needs what each query consumed before")
    values, n_queries = feature_of(block, feature), block.codes.shape[1]
    consumers, consumed, _ = block.history.of(np.arange(n_queries))
    inside = np.flatnonzero(consumed < len(values.starts) - 1)
    before = _shares(values, consumers[inside], consumed[inside], n_queries)
    now = _shares(values, *listed(block.first(k), values), n_queries)
    owners, defined, (p, q) = sums_by_column(n_queries, before, now)
    terms = relative_information(p, (1 - alpha) * q + alpha * p) if divergence == "kl" else jensen_shannon(p, q)
    return np.where(defined, np.maximum(np.bincount(owners, weights=terms, minlength=n_queries), 0.0), np.nan)


def _consumers(block: CatalogueBlock, codes: Codes) -> Ints:
    """Return (K, Q) numbers of queries that consumed each document before, 0 if there is no document."""
    consumed = popularity_of(block)
    is_counted = (codes >= 0) & (codes < len(consumed))
    consumers = np.zeros(codes.shape, dtype=np.int64)
    consumers[is_counted] = consumed[codes[is_counted]]
    return consumers


def _mean(codes: Codes, values: Floats) -> Floats:
    """Return the (Q,) mean value of the documents in each list."""
    return divide(sum_down(np.where(codes >= 0, values, 0.0)), sum_down(codes >= 0))


def _moderate(places: Ints, entries: Floats) -> Floats:
    """Vectors times powers of two, which change no cosine, where their squares might be infinite or vanish."""
    sizes = np.abs(entries)
    if not np.any((sizes > 1e100) | ((sizes < 1e-100) & (sizes > 0))):
        return entries
    maxima = np.zeros(int(places.max()) + 1)
    np.maximum.at(maxima, places, sizes)
    _, exponents = np.frexp(maxima)
    return np.ldexp(entries, -exponents[places])


def _shares(feature: Sparse, queries: Ints, documents: npt.NDArray[Any], n_queries: int) -> tuple[Ints, Codes, Floats]:
    """Return query, category and share of each category of a document in its query's distribution."""
    places, columns, entries, totals = memberships(feature, documents)
    n_known = np.bincount(queries[np.bincount(places, minlength=len(documents)) > 0], minlength=n_queries)
    owners = queries[places]
    return owners, columns, entries / (n_known[owners] * totals)
