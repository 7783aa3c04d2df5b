"""Parity of groups of documents over all lists together: of their exposure, and of their chances to be found.

These metrics have one figure per dataset and no value per query. A column of the documents table says which groups a
document is of; of several it counts in equal parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.metrics.catalogue import Attention, AttentionModel, Lists
from rankledger.metrics.documents import feature_of, group_sums, popularity_levels, popularity_of, tail_chances

__all__ = ["exposure_ratio", "pop_reo", "pop_rsp", "reo", "rsp"]

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
    """Exposure ratio: the exposure that the worst off of the groups has, over that of the best off, in all lists.

    Formula: min over groups of exposure / documents, over max.

    Args:
        feature: the column of the documents table that holds their groups.
        k: ranks to count; None counts all.
        per: what exposure is divided by: a group's documents in the catalogue (`document`, demographic parity), or
            their relevant judgments (`relevant`, disparate treatment), where groups without one are left out.
        attention: what a rank gets, as of `awrf`.
        p: the chance of looking one rank further, in (0, 1).
        rel: the least grade that is relevant.

    Returns:
        one figure in [0, 1], 1 where all groups fare alike; NaN where there are fewer than two groups, or none has
        exposure.

    Reference:
        Singh & Joachims 2018, doi:10.1145/3219819.3220088, here of the exposure in all lists together, as FairRankTune
        takes the smallest over the largest.
    """
    by_group = _by_feature(block, feature)
    sizes = by_group(np.ones(block.n_documents) if per == "document" else block.wanted(rel))
    rates = _rates(by_group(block.attention(k, Attention(attention, p))), sizes)
    return float(rates[0] / rates[-1]) if len(rates) > 1 and rates[-1] > 0 else float("nan")


def reo(block: Lists, *, feature: str, k: int | None = None, rel: float = 1) -> float:
    """Ranking-based equal opportunity: how unequal the chances of groups are to be found where they are relevant.

    Formula: std over groups of P(found | group, relevant) / mean.

    A group's chance is the share of all its relevant judgments that stand in the lists. The deviation is divided by the
    number of groups. Groups without relevant documents are left out.

    Args:
        feature: the column of the documents table that holds their groups.
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        one figure, 0 or more, lower is better: of A groups at most √(A - 1); NaN where fewer than two groups have
        relevant documents, or none of these is found.

    Reference:
        Zhu, Wang & Caverlee 2020, doi:10.1145/3397271.3401177.
    """
    return _opportunity(block, _by_feature(block, feature), k, rel)


def rsp(block: Lists, *, feature: str, k: int | None = None) -> float:
    """Ranking-based statistical parity: how unequal the chances of groups are to be recommended.

    Formula: std over groups of P(recommended | group) / mean.

    A group's chance is the share of recommendations among all that there could be: of each document of the catalogue,
    to each query that had not consumed it before. A list may hold documents that its query consumed: these count in
    neither. The deviation is divided by the number of groups.

    Args:
        feature: the column of the documents table that holds their groups.
        k: ranks to count; None counts all.

    Returns:
        one figure, 0 or more, lower is better: of A groups at most √(A - 1); NaN where there are fewer than two groups,
        or nothing of them is recommended.

    Reference:
        Zhu, Wang & Caverlee 2020, doi:10.1145/3397271.3401177.
    """
    return _parity(block, _by_feature(block, feature), k)


def pop_reo(
    block: Lists, *, k: int | None = None, tail: float = 0.2, of: Tail = "interactions", rel: float = 1
) -> float:
    """Popularity-based equal opportunity: `reo` of two groups, the popular head and the long tail.

    Formula: std over head and tail of P(found | group, relevant) / mean.

    Args:
        k: ranks to count; None counts all.
        tail: how much is the tail's, in (0, 1), as of `tail_share`.
        of: what it is a share of: `interactions` (Elliot), or `documents`, as of `tail_share`.
        rel: the least grade that is relevant.

    Returns:
        one figure in [0, 1], lower is better; NaN where one of the two has no relevant document, or nothing is found.

    Reference:
        Zhu, Wang & Caverlee 2020, doi:10.1145/3397271.3401177, with the groups of Elliot.
    """
    return _opportunity(block, _by_popularity(block, tail, of), k, rel)


def pop_rsp(block: Lists, *, k: int | None = None, tail: float = 0.2, of: Tail = "interactions") -> float:
    """Popularity-based statistical parity: `rsp` of two groups, the popular head and the long tail.

    Formula: std over head and tail of P(recommended | group) / mean.

    Args:
        k: ranks to count; None counts all.
        tail: how much is the tail's, in (0, 1), as of `tail_share`.
        of: what it is a share of: `interactions` (Elliot), or `documents`, as of `tail_share`.

    Returns:
        one figure in [0, 1], lower is better; NaN where all documents are of one group, or nothing is recommended.

    Reference:
        Zhu, Wang & Caverlee 2020, doi:10.1145/3397271.3401177, with the groups of Elliot.
    """
    return _parity(block, _by_popularity(block, tail, of), k)


ByGroup: TypeAlias = Callable[[Floats], Floats]
"""Takes amounts by document to amounts by group."""


def _by_feature(block: Lists, feature: str) -> ByGroup:
    return partial(group_sums, feature_of(block, feature))


def _by_popularity(block: Lists, tail: float, of: Tail) -> ByGroup:
    """To the head and the tail; later numbers are of documents that nobody consumed."""
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
    """By group, ascending, so that they do not depend on its number; of those that have something to be divided by."""
    return np.sort(np.maximum(found, 0.0)[possible > 0] / possible[possible > 0])


def _inequality(rates: Floats) -> float:
    """The standard deviation over the mean."""
    return float(rates.std() / rates.mean()) if len(rates) > 1 and rates.any() else float("nan")
