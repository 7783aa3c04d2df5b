"""Fair exposure: how much of the attention of a list groups of documents get, beside what would be fair.

A column of the documents table says which groups a document is of; of several it counts in equal parts. Documents
without a group take up ranks, and are of no group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats, cut, divide
from rankledger.metrics.catalogue import Attention, AttentionModel, CatalogueBlock, Codes
from rankledger.metrics.documents import Ints, feature_of, group_sums, jensen_shannon, memberships, sums_by_column

__all__ = ["awrf", "ee_d", "ee_l", "ee_r"]

Counted: TypeAlias = Literal["relevant", "all"]
Entries: TypeAlias = tuple[Ints, Codes, Floats]
"""Of each entry the query, the group and the amount."""


def awrf(
    block: CatalogueBlock,
    *,
    feature: str,
    k: int | None = None,
    target: Literal["relevant", "catalogue", "equal"] = "relevant",
    attention: AttentionModel = "jarvelin",
    p: float = 0.5,
    rel: float = 1,
) -> Floats:
    """Attention-weighted rank fairness: how close the groups' shares of attention in a list are to a target.

    Formula: 1 - JS(groups' shares of attention, groups' target shares), in nats.

    The Jensen-Shannon divergence of p and q is (Σ p ln(p / m) + Σ q ln(q / m)) / 2 with m = (p + q) / 2, at most ln 2.
    TREC multiplies this figure by `ndcg(gain=binary,discount=jarvelin)`, and for some groups mixes the shares of the
    relevant documents with those of the world's population.

    Args:
        feature: the column of the documents table that holds their groups.
        k: ranks to count; None counts all.
        target: the shares that would be fair: those of the groups among the query's relevant documents, in the
            `catalogue`, or `equal` ones for all groups in the catalogue.
        attention: what rank r gets: `log2` 1 / log2(r + 1), `jarvelin` 1 / max(1, log2 r), `geometric` p**(r - 1),
            `reciprocal` 1 / r, `uniform` 1.
        p: the chance of looking one rank further, in (0, 1).
        rel: the least grade that is relevant.

    Returns:
        (Q,), in [1 - ln 2, 1]; NaN where no document of the list has a group, or no relevant one does.

    Reference:
        Sapiezynski et al. 2019, doi:10.1145/3308560.3317595; Ekstrand et al. 2023, arXiv:2302.05558, task 1 of the TREC
        2022 Fair Ranking Track.
    """
    given = _given(block, feature, k, Attention(attention, p), None)
    wanted = _relevant(block, feature, rel) if target == "relevant" else _catalogue(block, feature, target == "equal")
    owners, defined, sums = sums_by_column(block.n_queries, given, wanted)
    found, fair = (_distributions(owners, own, block.n_queries) for own in sums)
    divergence = np.bincount(owners, weights=jensen_shannon(found, fair), minlength=block.n_queries)
    return np.where(defined, 1 - np.clip(divergence, 0.0, np.log(2)), np.nan)


def ee_l(
    block: CatalogueBlock,
    *,
    feature: str,
    k: int | None = None,
    attention: AttentionModel = "geometric",
    p: float = 0.5,
    documents: Counted = "relevant",
    gain: Literal["graded", "binary"] = "graded",
    rel: float = 1,
) -> Floats:
    """Expected exposure loss: how far the groups' exposures in a list are from those that relevance would give them.

    Formula: Σ over groups (exposure - target exposure)² = ee_d - 2 ee_r + Σ target exposure².

    A document's exposure is the attention of its rank, a group's the sum over its documents. The target is what they
    get on average over all ideal rankings: documents of one grade take turns at the ranks below those of greater grade.
    One list is one ranking here; the paper's expectation over the rankings that a model draws is not taken. With the
    column of the ids as `feature` each document is a group of its own.

    Args:
        feature: the column of the documents table that holds their groups.
        k: ranks to count, in the list and in the target; None counts all.
        attention: what a rank gets, as of `awrf`.
        p: the chance of looking one rank further, in (0, 1).
        documents: whose exposure counts: that of `relevant` documents (TREC 2022), or of `all` in the list.
        gain: whether documents of greater grades come first in the target (`graded`), or all relevant documents are
            alike (`binary`).
        rel: the least grade that is relevant.

    Returns:
        (Q,), 0 or more, lower is better; NaN where no relevant document has a group.

    Reference:
        Diaz et al. 2020, doi:10.1145/3340531.3411962.
    """
    found = _exposures(block, feature, k, Attention(attention, p), documents, gain, rel)
    return found.sums((found.given - found.fair) ** 2)


def ee_d(
    block: CatalogueBlock,
    *,
    feature: str,
    k: int | None = None,
    attention: AttentionModel = "geometric",
    p: float = 0.5,
    documents: Counted = "relevant",
    rel: float = 1,
) -> Floats:
    """Expected exposure disparity: how unequally exposure falls on the groups; the part of `ee_l` without relevance.

    Formula: Σ over groups exposure².

    Args:
        feature: the column of the documents table that holds their groups.
        k: ranks to count; None counts all.
        attention: what a rank gets, as of `awrf`.
        p: the chance of looking one rank further, in (0, 1).
        documents: whose exposure counts: that of `relevant` documents (TREC 2022), or of `all` in the list.
        rel: the least grade that is relevant.

    Returns:
        (Q,), 0 or more, lower is better; NaN where no relevant document has a group.

    Reference:
        Diaz et al. 2020, doi:10.1145/3340531.3411962.
    """
    found = _exposures(block, feature, k, Attention(attention, p), documents, "binary", rel)
    return found.sums(found.given**2)


def ee_r(
    block: CatalogueBlock,
    *,
    feature: str,
    k: int | None = None,
    attention: AttentionModel = "geometric",
    p: float = 0.5,
    documents: Counted = "relevant",
    gain: Literal["graded", "binary"] = "graded",
    rel: float = 1,
) -> Floats:
    """Expected exposure relevance: how much of the exposure falls on the groups that relevance would give it to.

    Formula: Σ over groups exposure · target exposure.

    Args:
        feature: the column of the documents table that holds their groups.
        k: ranks to count, in the list and in the target; None counts all.
        attention: what a rank gets, as of `awrf`.
        p: the chance of looking one rank further, in (0, 1).
        documents: whose exposure counts: that of `relevant` documents (TREC 2022), or of `all` in the list.
        gain: what the target is, as of `ee_l`.
        rel: the least grade that is relevant.

    Returns:
        (Q,), 0 or more; NaN where no relevant document has a group.

    Reference:
        Diaz et al. 2020, doi:10.1145/3340531.3411962.
    """
    found = _exposures(block, feature, k, Attention(attention, p), documents, gain, rel)
    return found.sums(found.given * found.fair)


@dataclass(frozen=True, eq=False)
class _Exposures:
    """The exposure of groups in lists.

    Attributes:
        owners: the query of each pair of a query and a group.
        given: the exposure that the group has there.
        fair: the one that relevance would give it.
        defined: (Q,) whether a relevant document has a group.
    """

    owners: Ints
    given: Floats
    fair: Floats
    defined: Bools

    def sums(self, values: Floats) -> Floats:
        """(Q,): sums over groups; NaN where undefined."""
        found = np.bincount(self.owners, weights=values, minlength=len(self.defined))
        return np.where(self.defined, found, np.nan)


def _exposures(
    block: CatalogueBlock,
    feature: str,
    k: int | None,
    attention: Attention,
    documents: Counted,
    gain: Literal["graded", "binary"],
    rel: float,
) -> _Exposures:
    given = _given(block, feature, k, attention, rel if documents == "relevant" else None)
    fair = _target(block, feature, k, attention, gain, rel)
    owners, _, (found, wanted) = sums_by_column(block.n_queries, given, fair)
    return _Exposures(owners, found, wanted, np.bincount(fair[0], minlength=block.n_queries) > 0)


def _given(block: CatalogueBlock, feature: str, k: int | None, attention: Attention, rel: float | None) -> Entries:
    """What the lists give to groups; by relevant documents alone, given `rel`."""
    codes = block.first(k)
    counted = codes >= 0 if rel is None else (codes >= 0) & block.relevant(rel, k)
    queries, ranks = np.nonzero(counted.T)
    return _to_groups(block, feature, queries, codes[ranks, queries], attention.of_ranks(len(codes))[ranks])


def _relevant(block: CatalogueBlock, feature: str, rel: float) -> Entries:
    """One for each relevant document."""
    queries, documents, _ = _judged_relevant(block, rel)
    return _to_groups(block, feature, queries, documents, np.ones(len(queries)))


def _target(
    block: CatalogueBlock,
    feature: str,
    k: int | None,
    attention: Attention,
    gain: Literal["graded", "binary"],
    rel: float,
) -> Entries:
    """The attention that each relevant document gets on average over all ideal rankings."""
    queries, documents, grades = _judged_relevant(block, rel)
    levels = grades if gain == "graded" else np.ones_like(grades)
    order = np.lexsort((-levels, queries))
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (np.diff(queries[order]) != 0) | (np.diff(levels[order]) != 0)
    sizes = np.diff(np.append(np.flatnonzero(begins), len(order)))
    firsts = np.searchsorted(queries, np.arange(block.n_queries))  # the entries stand query by query
    above = np.flatnonzero(begins) - firsts[queries[order][begins]]
    deepest = int(min(cut(k), (above + sizes).max(initial=0)))
    until = np.concatenate([[0.0], np.cumsum(attention.of_ranks(deepest))])
    shares = (until[np.minimum(above + sizes, deepest)] - until[np.minimum(above, deepest)]) / sizes
    fair = np.empty(len(order))
    fair[order] = np.repeat(shares, sizes)
    return _to_groups(block, feature, queries, documents, fair)


def _judged_relevant(block: CatalogueBlock, rel: float) -> tuple[Ints, Codes, Floats]:
    """The query, the document and the grade of each relevant judgment, query by query."""
    if not rel > 0:
        raise ValueError(f"rel must be above 0, found {rel:g}")
    if block.judged is None:
        raise ValueError("it needs the judged documents")
    queries, documents, grades = block.judged.of(np.arange(block.n_queries))
    kept = np.flatnonzero(grades >= rel)
    return queries[kept], documents[kept], grades[kept]


def _to_groups(
    block: CatalogueBlock, feature: str, queries: Ints, documents: npt.NDArray[Any], amounts: Floats
) -> Entries:
    """Amounts of documents, in equal parts to the groups of each."""
    groups = feature_of(block, feature)
    inside = np.flatnonzero(documents < len(groups.starts) - 1)
    places, columns, entries, totals = memberships(groups, documents[inside])
    return queries[inside][places], columns, entries / totals * amounts[inside][places]


def _distributions(owners: Ints, amounts: Floats, n_queries: int) -> Floats:
    """The amounts as shares of what each query has."""
    return divide(amounts, np.bincount(owners, weights=amounts, minlength=n_queries).astype(np.float64)[owners])


def _catalogue(block: CatalogueBlock, feature: str, are_equal: bool) -> Entries:
    """To each query the same: the groups' shares of the catalogue, or equal ones."""
    shares = group_sums(feature_of(block, feature), np.ones(block.n_documents))
    groups = np.flatnonzero(shares)
    amounts = np.ones(len(groups)) if are_equal else shares[groups]
    queries = np.repeat(np.arange(block.n_queries), len(groups))
    return queries, np.tile(groups.astype(np.int32), block.n_queries), np.tile(amounts, block.n_queries)
