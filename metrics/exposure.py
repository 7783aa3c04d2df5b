"""Fair exposure: how much of the attention of a list groups of documents get, beside what would be fair.

A column of the documents table says which groups a document is of; of several it counts in equal parts. Documents
without a group take up ranks, and are of no group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats, cut, divide
from rankledger.metrics.catalogue import (
    Attention,
    AttentionModel,
    CatalogueBlock,
    Codes,
    Ints,
    Lists,
    feature_of,
    group_sums,
    jensen_shannon,
    memberships,
    popularity_levels,
    popularity_of,
    sums_by_column,
    tail_chances,
)

__all__ = ["awrf", "ee_d", "ee_l", "ee_r", "exposure_ratio", "pop_reo", "pop_rsp", "reo", "rsp"]

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
    """Compute the attention-weighted rank fairness: the closeness of groups' shares of attention to a target.

    Formula: 1 - JS(groups' shares of attention, groups' target shares), in nats.

    The Jensen-Shannon divergence of p and q is (Σ p ln(p / m) + Σ q ln(q / m)) / 2 with m = (p + q) / 2, at most ln 2.
    TREC multiplies this value by `ndcg(gain=binary,discount=jarvelin)`, and for some groups mixes the shares of the
    relevant documents with those of the world's population.

    Args:
        feature: The column of the documents table that holds their groups.
        k: Number of ranks to count. None counts all.
        target: The shares that would be fair: the groups' shares among the query's relevant documents, in the
            `catalogue`, or `equal` ones for all groups in the catalogue.
        attention: What rank r gets: `log2` 1 / log2(r + 1), `jarvelin` 1 / max(1, log2 r), `geometric` p**(r - 1),
            `reciprocal` 1 / r, `uniform` 1.
        p: The chance of looking one rank further, in (0, 1).
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [1 - ln 2, 1]. NaN if no document of the list has a group, or no relevant one does.

    Reference:
        Sapiezynski et al. 2019, doi:10.1145/3308560.3317595; Ekstrand et al. 2023, arXiv:2302.05558, task 1 of the TREC
        2022 Fair Ranking Track.
    """
    exposure = _give_attention(block, feature, k, Attention(attention, p), None)
    target_shares = (
        _relevant(block, feature, rel) if target == "relevant" else _catalogue(block, feature, target == "equal")
    )
    owners, defined, sums = sums_by_column(block.n_queries, exposure, target_shares)
    shown, fair = (_distributions(owners, amounts, block.n_queries) for amounts in sums)
    divergence = np.bincount(owners, weights=jensen_shannon(shown, fair), minlength=block.n_queries)
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
    """Compute the expected exposure loss: the squared distance of groups' exposures from their targets.

    Formula: Σ over groups (exposure - target exposure)² = ee_d - 2 ee_r + Σ target exposure².

    A document's exposure is the attention of its rank, a group's the sum over its documents. The target is what they
    get on average over all ideal rankings: documents of one grade take turns at the ranks below those of greater grade.
    One list is one ranking here; the paper's expectation over the rankings that a model draws is not taken. With the
    column of the ids as `feature` each document is a group of its own.

    Args:
        feature: The column of the documents table that holds their groups.
        k: Ranks to count, in the list and in the target; None counts all.
        attention: What a rank gets, as of `awrf`.
        p: The chance of looking one rank further, in (0, 1).
        documents: Whose exposure counts: that of `relevant` documents (TREC 2022), or of `all` in the list.
        gain: Whether documents of greater grades come first in the target (`graded`), or all relevant documents are
            alike (`binary`).
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), 0 or more, lower is better. NaN if no relevant document has a group.

    Reference:
        Diaz et al. 2020, doi:10.1145/3340531.3411962.
    """
    exposures = _exposures(block, feature, k, Attention(attention, p), documents, gain, rel)
    return exposures.sums((exposures.given - exposures.fair) ** 2)


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
    """Compute the expected exposure disparity: the inequality of exposure over groups, a part of `ee_l`.

    Formula: Σ over groups exposure².

    Args:
        feature: The column of the documents table that holds their groups.
        k: Number of ranks to count. None counts all.
        attention: What a rank gets, as of `awrf`.
        p: The chance of looking one rank further, in (0, 1).
        documents: Whose exposure counts: that of `relevant` documents (TREC 2022), or of `all` in the list.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), 0 or more, lower is better. NaN if no relevant document has a group.

    Reference:
        Diaz et al. 2020, doi:10.1145/3340531.3411962.
    """
    exposures = _exposures(block, feature, k, Attention(attention, p), documents, "binary", rel)
    return exposures.sums(exposures.given**2)


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
    """Compute the expected exposure relevance: the product of groups' exposures and their targets.

    Formula: Σ over groups exposure · target exposure.

    Args:
        feature: The column of the documents table that holds their groups.
        k: Ranks to count, in the list and in the target; None counts all.
        attention: What a rank gets, as of `awrf`.
        p: The chance of looking one rank further, in (0, 1).
        documents: Whose exposure counts: that of `relevant` documents (TREC 2022), or of `all` in the list.
        gain: What the target is, as of `ee_l`.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), 0 or more. NaN if no relevant document has a group.

    Reference:
        Diaz et al. 2020, doi:10.1145/3340531.3411962.
    """
    exposures = _exposures(block, feature, k, Attention(attention, p), documents, gain, rel)
    return exposures.sums(exposures.given * exposures.fair)


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
        """Return (Q,) sums over groups, NaN if undefined."""
        totals = np.bincount(self.owners, weights=values, minlength=len(self.defined))
        return np.where(self.defined, totals, np.nan)


def _exposures(
    block: CatalogueBlock,
    feature: str,
    k: int | None,
    attention: Attention,
    documents: Counted,
    gain: Literal["graded", "binary"],
    rel: float,
) -> _Exposures:
    exposure = _give_attention(block, feature, k, attention, rel if documents == "relevant" else None)
    fair = _target(block, feature, k, attention, gain, rel)
    owners, _, (shown, target) = sums_by_column(block.n_queries, exposure, fair)
    return _Exposures(owners, shown, target, np.bincount(fair[0], minlength=block.n_queries) > 0)


def _give_attention(
    block: CatalogueBlock, feature: str, k: int | None, attention: Attention, rel: float | None
) -> Entries:
    """Return the attention that lists give to groups, by relevant documents if `rel` is set."""
    codes = block.first(k)
    counted = codes >= 0 if rel is None else (codes >= 0) & block.relevant(rel, k)
    queries, ranks = np.nonzero(counted.T)
    return _to_groups(block, feature, queries, codes[ranks, queries], attention.of_ranks(len(codes))[ranks])


def _relevant(block: CatalogueBlock, feature: str, rel: float) -> Entries:
    """Return 1 for each relevant document."""
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
    """Return the mean attention of each relevant document over all ideal rankings."""
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
    """Return query, document and grade of each relevant judgment, query by query."""
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
    """Return the amounts as shares of each query's sum."""
    return divide(amounts, np.bincount(owners, weights=amounts, minlength=n_queries).astype(np.float64)[owners])


def _catalogue(block: CatalogueBlock, feature: str, are_equal: bool) -> Entries:
    """To each query the same: the groups' shares of the catalogue, or equal ones."""
    shares = group_sums(feature_of(block, feature), np.ones(block.n_documents))
    groups = np.flatnonzero(shares)
    amounts = np.ones(len(groups)) if are_equal else shares[groups]
    queries = np.repeat(np.arange(block.n_queries), len(groups))
    return queries, np.tile(groups.astype(np.int32), block.n_queries), np.tile(amounts, block.n_queries)


Tail: TypeAlias = Literal["interactions", "documents"]


def exposure_ratio(
    block: Lists,
    *,
    feature: str,
    k: int | None = None,
    per: Literal["document", "relevant"] = "document",
    attention: AttentionModel = "log2",
    p: float = 0.5,
    rel: float = 1,
) -> float:
    """Compute the exposure ratio: the minimum exposure of a group per document, over the maximum, in all lists.

    Formula: min over groups of exposure / documents, over max.

    Args:
        feature: The column of the documents table that holds their groups.
        k: Number of ranks to count. None counts all.
        per: What exposure is divided by: a group's documents in the catalogue (`document`, demographic parity), or
            their relevant judgments (`relevant`, disparate treatment), where groups without one are left out.
        attention: What a rank gets, as of `awrf`.
        p: The chance of looking one rank further, in (0, 1).
        rel: Minimum grade of a relevant document.

    Returns:
        one value in [0, 1], 1 if all groups fare alike. NaN if there are fewer than two groups, or none has
        exposure.

    Reference:
        Singh & Joachims 2018, doi:10.1145/3219819.3220088, here of the exposure in all lists together, as FairRankTune
        takes the smallest over the largest.
    """
    by_group = _group_by_feature(block, feature)
    sizes = by_group(np.ones(block.n_documents) if per == "document" else block.wanted(rel))
    rates = _rates(by_group(block.attention(k, Attention(attention, p))), sizes)
    return float(rates[0] / rates[-1]) if len(rates) > 1 and rates[-1] > 0 else float("nan")


def reo(block: Lists, *, feature: str, k: int | None = None, rel: float = 1) -> float:
    """Compute the ranking-based equal opportunity: the inequality of groups' chances of being found if relevant.

    Formula: std over groups of P(found | group, relevant) / mean.

    A group's chance is the share of all its relevant judgments that stand in the lists. The deviation is divided by the
    number of groups. Groups without relevant documents are left out.

    Args:
        feature: The column of the documents table that holds their groups.
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        one value, 0 or more, lower is better: of A groups at most √(A - 1). NaN if fewer than two groups have
        relevant documents, or none of these is found.

    Reference:
        Zhu, Wang & Caverlee 2020, doi:10.1145/3397271.3401177.
    """
    return _opportunity(block, _group_by_feature(block, feature), k, rel)


def rsp(block: Lists, *, feature: str, k: int | None = None) -> float:
    """Compute the ranking-based statistical parity: the inequality of groups' chances of being recommended.

    Formula: std over groups of P(recommended | group) / mean.

    A group's chance is the share of recommendations among all that there could be: of each document of the catalogue,
    to each query that had not consumed it before. A list may hold documents that its query consumed: these count in
    neither. The deviation is divided by the number of groups.

    Args:
        feature: The column of the documents table that holds their groups.
        k: Number of ranks to count. None counts all.

    Returns:
        one value, 0 or more, lower is better: of A groups at most √(A - 1). NaN if there are fewer than two groups,
        or nothing of them is recommended.

    Reference:
        Zhu, Wang & Caverlee 2020, doi:10.1145/3397271.3401177.
    """
    return _parity(block, _group_by_feature(block, feature), k)


def pop_reo(
    block: Lists, *, k: int | None = None, tail: float = 0.2, of: Tail = "interactions", rel: float = 1
) -> float:
    """Compute the popularity-based equal opportunity: `reo` of the popular head and the long tail.

    Formula: std over head and tail of P(found | group, relevant) / mean.

    Args:
        k: Number of ranks to count. None counts all.
        tail: How much is the tail's, in (0, 1), as of `tail_share`.
        of: What it is a share of: `interactions` (Elliot), or `documents`, as of `tail_share`.
        rel: Minimum grade of a relevant document.

    Returns:
        one value in [0, 1], lower is better. NaN if one of the two has no relevant document, or nothing is found.

    Reference:
        Zhu, Wang & Caverlee 2020, doi:10.1145/3397271.3401177, with the groups of Elliot.
    """
    return _opportunity(block, _group_by_popularity(block, tail, of), k, rel)


def pop_rsp(block: Lists, *, k: int | None = None, tail: float = 0.2, of: Tail = "interactions") -> float:
    """Compute the popularity-based statistical parity: `rsp` of the popular head and the long tail.

    Formula: std over head and tail of P(recommended | group) / mean.

    Args:
        k: Number of ranks to count. None counts all.
        tail: How much is the tail's, in (0, 1), as of `tail_share`.
        of: What it is a share of: `interactions` (Elliot), or `documents`, as of `tail_share`.

    Returns:
        one value in [0, 1], lower is better. NaN if all documents are of one group, or nothing is recommended.

    Reference:
        Zhu, Wang & Caverlee 2020, doi:10.1145/3397271.3401177, with the groups of Elliot.
    """
    return _parity(block, _group_by_popularity(block, tail, of), k)


ByGroup: TypeAlias = Callable[[Floats], Floats]
"""Takes amounts by document to amounts by group."""


def _group_by_feature(block: Lists, feature: str) -> ByGroup:
    return partial(group_sums, feature_of(block, feature))


def _group_by_popularity(block: Lists, tail: float, of: Tail) -> ByGroup:
    """Return sums over the head and the tail. Documents that no query consumed have the last numbers."""
    in_tail = tail_chances(popularity_levels(block), tail, of)
    popularity = popularity_of(block).astype(np.int64)

    def by_group(amounts: Floats) -> Floats:
        consumers = np.zeros(len(amounts), dtype=np.int64)
        consumers[: len(popularity)] = popularity[: len(amounts)]
        chances = in_tail[consumers]
        parts = np.sort([amounts * (1 - chances), amounts * chances])  # in no order of the documents
        return np.asarray(parts.sum(axis=1))

    return by_group


def _opportunity(block: Lists, by_group: ByGroup, k: int | None, rel: float) -> float:
    return _inequality(_rates(by_group(block.attention(k, Attention(), rel)), by_group(block.wanted(rel))))


def _parity(block: Lists, by_group: ByGroup, k: int | None) -> float:
    n = block.n_documents
    possible = block.n_queries - block.consumed()[:n]
    return _inequality(_rates(by_group(block.exposure(k, True)[:n].astype(np.float64)), by_group(possible)))


def _rates(found: Floats, possible: Floats) -> Floats:
    """Return ascending rates of groups, so that sums do not depend on the groups' numbers."""
    return np.sort(np.maximum(found, 0.0)[possible > 0] / possible[possible > 0])


def _inequality(rates: Floats) -> float:
    """Return the standard deviation over the mean."""
    return float(rates.std() / rates.mean()) if len(rates) > 1 and rates.any() else float("nan")
