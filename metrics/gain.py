"""Gain-based metrics: what the retrieved documents are worth, discounted by rank.

A document's gain comes from its grade alone; unjudged documents and negative grades gain nothing. `rel` touches the
binary gain and no other. A grade too great to be added up, or for 2**grade, raises ValueError.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from rankledger.metrics.block import Floats, Gain, GradedGain, JudgedBlock, Terms, cut, from_terms, gains, sum_down

__all__ = ["bing", "cg", "dcg", "g", "ndcg", "ndcg_rel", "rndcg"]

Discount = Literal["log2", "jarvelin"]


@from_terms
def cg(block: JudgedBlock, *, k: int | None = None, gain: Gain = "linear", rel: float = 1) -> Terms:
    """Compute the cumulative gain: the sum of the retrieved documents' gains.

    Formula: Σ gain.

    Args:
        k: Number of ranks to count. None counts all.
        gain: `linear` (the grade), `exponential` (2**grade - 1) or `binary` (1 for a relevant document).
        rel: Minimum grade of a relevant document, for the binary gain.

    Returns:
        (Q,), 0 or more, never NaN.

    Reference:
        Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418.
    """
    return Terms(np.where(block.ranks <= cut(k), gains(block, gain, rel), 0.0))


@from_terms
def dcg(
    block: JudgedBlock,
    *,
    k: int | None = None,
    gain: Gain = "linear",
    discount: Discount = "log2",
    base: float = 2,
    rel: float = 1,
) -> Terms:
    """Compute the discounted cumulative gain: gains divided by a discount that grows with the rank.

    Formula: Σ gain / discount(rank).

    Args:
        k: Number of ranks to count. None counts all.
        gain: `linear` (the grade), `exponential` (2**grade - 1) or `binary` (1 for a relevant document).
        discount: `log2` is log2(rank + 1); `jarvelin` is max(1, log_base(rank)), the original form.
        base: The base of the `jarvelin` discount, above 1.
        rel: Minimum grade of a relevant document, for the binary gain.

    Returns:
        (Q,), 0 or more, never NaN.

    Reference:
        Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418, and 2000; Burges et al. 2005 for the exponential gain
        and the log2(rank + 1) discount, which is that of trec_eval `ndcg_cut`.
    """
    gained = np.where(block.ranks <= cut(k), gains(block, gain, rel), 0.0)
    discounts = _discounts(block.ranks, discount, base)
    return Terms(gained / discounts, {"gain": gained, "discount": discounts})


@from_terms
def ndcg(
    block: JudgedBlock,
    *,
    k: int | None = None,
    gain: Gain = "linear",
    discount: Discount = "log2",
    base: float = 2,
    rel: float = 1,
) -> Terms:
    """Compute the normalized discounted cumulative gain: DCG over the DCG of the ideal list.

    Formula: dcg / dcg of all judged documents, best first.

    The ideal list is all judged documents of the query, the best grade first, cut at k: never only the retrieved ones.

    Args:
        k: Ranks to count in both lists; None counts all.
        gain: `linear` (the grade), `exponential` (2**grade - 1) or `binary` (1 for a relevant document).
        discount: `log2` is log2(rank + 1); `jarvelin` is max(1, log_base(rank)), the original form.
        base: The base of the `jarvelin` discount, above 1.
        rel: Minimum grade of a relevant document, for the binary gain.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no judged document with positive gain.

    Reference:
        Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418, with the log2(rank + 1) discount of trec_eval
        `ndcg_cut` and, without k, `ndcg`.
    """
    ideal = dcg.terms(block.ideal(), k=k, gain=gain, discount=discount, base=base, rel=rel)
    found = dcg.terms(block, k=k, gain=gain, discount=discount, base=base, rel=rel)
    return replace(found, divisor=ideal.total(), ideal=ideal)


@from_terms
def rndcg(block: JudgedBlock, *, gain: GradedGain = "linear", rel: float = 1) -> Terms:
    """Compute nDCG at R levels: its mean at the ranks at which the ideal list's gain falls, and over the list.

    Formula: mean of ndcg@(documents judged at each positive grade or above), and of ndcg where n is greater.

    Those ranks are the numbers of documents judged at each positive grade or above it. The whole list counts only where
    it is at least two documents longer than the last of them, as in trec_eval.

    Args:
        gain: `linear` (the grade) or `exponential` (2**grade - 1).
        rel: a query without a document of at least this grade is undefined; nothing else depends on it.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `Rndcg`, an experimental measure; the gain of
        Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418.
    """
    best = dcg.terms(block.ideal(), gain=gain)
    gained = np.vstack([gains(block.ideal(), gain), np.zeros((1, len(block.query_ids)))])
    falls = gained[1:] < gained[:-1]
    ideal_dcg = best.terms.cumsum(axis=0)
    weights = np.where(falls, 1.0 / np.where(falls, ideal_dcg, 1.0), 0.0)
    weights = weights[::-1].cumsum(axis=0)[::-1]  # of a rank: over the levels that it comes before
    last = (gained > 0).sum(axis=0)
    whole = np.where((last > 0) & (block.n_retrieved > last + 1), 1.0 / np.where(last > 0, ideal_dcg[-1], 1.0), 0.0)
    weights = np.vstack([weights, np.zeros((1, len(last)))]) + whole
    found = dcg.terms(block, gain=gain)
    weight = _at(weights, block.ranks)
    factors = {**found.factors, "weight": weight}
    ideal = replace(best, terms=best.terms * weights[:-1], factors={**best.factors, "weight": weights[:-1]})
    defined = block.n_relevant(rel) > 0
    return Terms(found.terms * weight, factors, divisor=ideal.total(), defined=defined, ideal=ideal)


@from_terms
def ndcg_rel(block: JudgedBlock, *, gain: GradedGain = "linear") -> Terms:
    """Compute nDCG averaged over the documents with positive gain, each at its own rank.

    Formula: mean of ndcg@rank of each document with gain.

    Those that were not retrieved take the DCG of the whole list over that of all judged documents.

    Args:
        gain: `linear` (the grade) or `exponential` (2**grade - 1).

    Returns:
        (Q,), in [0, 1]; NaN where the query has no judged document with positive gain.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `ndcg_rel`, an experimental measure; the gain
        of Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418.
    """
    best, found = dcg.terms(block.ideal(), gain=gain), dcg.terms(block, gain=gain)
    ideal_dcg = best.terms.cumsum(axis=0)
    gaining = gains(block, gain) > 0
    reached = found.terms.cumsum(axis=0)
    ideal = np.where(gaining, _at(ideal_dcg, block.ranks), 1.0)
    n_gaining = (gains(block.ideal(), gain) > 0).sum(axis=0).astype(np.float64)
    missed = n_gaining - gaining.sum(axis=0)
    rest = missed * reached[-1] / np.where(n_gaining > 0, ideal_dcg[-1], 1.0)
    factors = {**found.factors, "dcg": reached, "ideal dcg": ideal}
    return Terms(np.where(gaining, reached / ideal, 0.0), factors, rest=rest, divisor=n_gaining)


@from_terms
def g(block: JudgedBlock, *, gain: GradedGain = "linear") -> Terms:
    """Compute the normalized gain G: gains over log2(2 + shortfall of gains so far), over all gains.

    Formula: Σ gain / log2(2 + Σ_{j≤i} (max(ideal gain, 1) - gain)) / Σ gain of all judged documents.

    The shortfall at a rank is the sum of the ideal list's gains down to it, each counted as at least 1, less the sum of
    the gains retrieved.

    Args:
        gain: `linear` (the grade) or `exponential` (2**grade - 1).

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no judged document with positive gain.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `G`, an experimental measure of 2008.
    """
    gained, ideal = gains(block, gain), gains(block.ideal(), gain)
    surplus = np.fmax(ideal - 1.0, 0.0).cumsum(axis=0)
    cost = np.where(gained > 0, block.ranks + _at(surplus, block.ranks), 0.0)
    shortfall = np.where(gained > 0, cost - gained.cumsum(axis=0), 0.0)
    discount = np.log2(2.0 + shortfall)
    factors = {"gain": gained, "shortfall": shortfall, "discount": discount}
    return Terms(gained / discount, factors, divisor=sum_down(ideal))


@from_terms
def bing(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Compute binary G: each relevant document weighs 1 / log2(2 + non-relevant documents above it).

    Formula: Σ 1 / log2(2 + documents above that are not relevant) / R.

    Args:
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `binG`, an experimental measure of 2008; see
        `g` for the form with gains.
    """
    hit = block.relevant(rel)
    above = np.where(hit, block.ranks - hit.cumsum(axis=0), 0.0)
    discount = np.log2(above + 2.0)
    factors = {"relevant": hit, "others above": above, "discount": discount}
    return Terms(hit / discount, factors, divisor=block.n_relevant(rel))


def _discounts(ranks: Floats, discount: Discount, base: float) -> Floats:
    if discount == "log2":
        return np.log2(ranks + 1.0)
    if not base > 1:
        raise ValueError(f"base must be above 1, found {base:g}")
    logarithms: Floats = np.log2(ranks) / np.log2(base)
    return np.fmax(1.0, logarithms)


def _at(values: Floats, ranks: Floats) -> Floats:
    """Return the (H, Q) value at each rank of the (J, Q) ideal list, the last one below its end."""
    rows = np.minimum(ranks, len(values)).astype(np.intp) - 1
    return np.take_along_axis(values, rows, axis=0)
