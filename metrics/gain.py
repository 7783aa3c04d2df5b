"""Gain-based metrics: what the retrieved documents are worth, discounted by rank or blended with counts.

A document's gain comes from its grade alone; unjudged documents and negative grades gain nothing. `rel` touches the
binary gain and no other. A grade too great to be added up, or for 2**grade, raises ValueError.

They differ in where readers stop: at each relevant document (`q_measure`, `ncu`), at the first (`o_measure`), at the
best (`p_measure`) or at each down to the best (`p_plus`). With beta 0 the blended ratio is precision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rankledger.metrics.block import (
    Bools,
    Floats,
    Gain,
    GradedGain,
    JudgedBlock,
    Terms,
    cut,
    from_terms,
    gains,
    sum_down,
)

__all__ = [
    "bing",
    "cg",
    "dcg",
    "g",
    "ncu",
    "ndcg",
    "ndcg_rel",
    "o_measure",
    "p_measure",
    "p_plus",
    "q_measure",
    "rndcg",
]

Discount = Literal["log2", "jarvelin"]


@from_terms
def cg(block: JudgedBlock, *, k: int | None = None, gain: Gain = "linear", rel: float = 1) -> Terms:
    """Compute the cumulative gain: the sum of the retrieved documents' gains.

    Formula: Σ gain.

    Args:
        k: Number of ranks to count. None counts all.
        gain: `linear` (the grade), `exponential` (2**grade - 1) or `binary` (1 for a relevant document).
        rel: Minimum grade of a relevant document (binary gain).

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
        rel: Minimum grade of a relevant document (binary gain).

    Returns:
        (Q,), 0 or more, never NaN.

    Reference:
        Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418, and 2000; Burges et al. 2005 for the exponential gain
        and the log2(rank + 1) discount of trec_eval `ndcg_cut`.
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
        rel: Minimum grade of a relevant document (binary gain).

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no judged document with positive gain.

    Reference:
        Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418, with the log2(rank + 1) discount of trec_eval
        `ndcg_cut` and, without k, `ndcg`.
    """
    ideal = dcg.terms(block.ideal(), k=k, gain=gain, discount=discount, base=base, rel=rel)
    gained = dcg.terms(block, k=k, gain=gain, discount=discount, base=base, rel=rel)
    return replace(gained, divisor=ideal.total(), ideal=ideal)


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
        (Q,), in [0, 1]; NaN if the query has no relevant document.

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
    constant = np.where((last > 0) & (block.n_retrieved > last + 1), 1.0 / np.where(last > 0, ideal_dcg[-1], 1.0), 0.0)
    weights = np.vstack([weights, np.zeros((1, len(last)))]) + constant
    added = dcg.terms(block, gain=gain)
    weight = _take_values(weights, block.ranks)
    factors = {**added.factors, "weight": weight}
    ideal = replace(best, terms=best.terms * weights[:-1], factors={**best.factors, "weight": weights[:-1]})
    defined = block.n_relevant(rel) > 0
    return Terms(added.terms * weight, factors, divisor=ideal.total(), defined=defined, ideal=ideal)


@from_terms
def ndcg_rel(block: JudgedBlock, *, gain: GradedGain = "linear") -> Terms:
    """Compute nDCG averaged over the documents with positive gain, each at its own rank.

    Formula: mean of ndcg@rank of each document with gain.

    Those that were not retrieved take the DCG of the whole list over the DCG of all judged documents.

    Args:
        gain: `linear` (the grade) or `exponential` (2**grade - 1).

    Returns:
        (Q,), in [0, 1]; NaN if the query has no judged document with positive gain.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `ndcg_rel`, an experimental measure; the gain
        of Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418.
    """
    best, gained = dcg.terms(block.ideal(), gain=gain), dcg.terms(block, gain=gain)
    ideal_dcg = best.terms.cumsum(axis=0)
    gaining = gains(block, gain) > 0
    reached = gained.terms.cumsum(axis=0)
    ideal = np.where(gaining, _take_values(ideal_dcg, block.ranks), 1.0)
    n_gaining = (gains(block.ideal(), gain) > 0).sum(axis=0).astype(np.float64)
    missed = n_gaining - gaining.sum(axis=0)
    rest = missed * reached[-1] / np.where(n_gaining > 0, ideal_dcg[-1], 1.0)
    factors = {**gained.factors, "dcg": reached, "ideal dcg": ideal}
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
    cost = np.where(gained > 0, block.ranks + _take_values(surplus, block.ranks), 0.0)
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


def _take_values(values: Floats, ranks: Floats) -> Floats:
    """Return the (H, Q) value at each rank of the (J, Q) ideal list, the last one below its end."""
    rows = np.minimum(ranks, len(values)).astype(np.intp) - 1
    return np.take_along_axis(values, rows, axis=0)


@dataclass(frozen=True, eq=False)
class _Ratios:
    """The blended ratio at each document.

    Attributes:
        gained: (H, Q) the gains within the cutoff.
        ratios: (H, Q) the blended ratio at each document's rank.
        ideal: (J, Q) the gains of all judged documents, the best first.
    """

    gained: Floats
    ratios: Floats
    ideal: Floats

    @classmethod
    def of(cls, block: JudgedBlock, k: int | None, beta: float, gain: GradedGain) -> _Ratios:
        """Return the ratios of a block. Raises the errors of the metrics."""
        if not beta >= 0:
            raise ValueError(f"beta must be at least 0, found {beta:g}")
        if beta > 1e9:
            raise ValueError(f"beta must be at most 1e9, found {beta:g}")
        gained = np.where(block.ranks <= cut(k), gains(block, gain), 0.0)
        best = gains(block.ideal(), gain)
        place = np.minimum(block.ranks, len(best)).astype(np.intp) - 1
        ideal = np.take_along_axis(best.cumsum(axis=0), place, axis=0)
        read = (gained > 0).cumsum(axis=0) + beta * gained.cumsum(axis=0)
        return cls(gained, read / (block.ranks + beta * ideal), best)

    @property
    def n_gaining(self) -> Floats:
        """Numbers of judged documents with gain, (Q,)."""
        return sum_down(self.ideal > 0)

    def terms(self, weights: Floats | Bools, divisor: Floats | float = 1.0) -> Terms:
        """Return the ratios with these (H, Q) weights, undefined for a query without a judged document with gain."""
        factors = {"gain": self.gained, "blended ratio": self.ratios}
        terms: Floats = np.multiply(np.where(self.gained > 0, self.ratios, 0.0), weights)
        return Terms(terms, factors, divisor=divisor, defined=self.n_gaining > 0)

    def best(self) -> Bools:
        """Return (H, Q) True for the first document with the maximum gain, if that is positive."""
        return _first((self.gained == self.gained.max(axis=0)) & (self.gained > 0))


@from_terms
def q_measure(
    block: JudgedBlock,
    *,
    k: int | None = None,
    beta: float = 1,
    gain: GradedGain = "linear",
    denominator: Literal["relevant", "cutoff"] = "cutoff",
) -> Terms:
    """Compute the Q-measure: average precision for graded relevance.

    Formula: Σ (C + beta cg) / (rank + beta ideal cg) of each document with gain, the C-th of them / min(k, their
    number).

    Each document that gains adds the blended ratio at its rank r, (C + beta cg) / (r + beta cg*): C of the first r
    documents gain, cg is the sum of their gains, and cg* is the sum for the r best judged documents.

    Args:
        k: Number of ranks to count. None counts all.
        beta: How much the gains weigh, from 0 to 1e9; with 0 it is average precision.
        gain: `linear` (the grade) or `exponential` (2**grade - 1).
        denominator: `cutoff` divides by min(R, k), R being the judged documents that gain; `relevant` by R.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no judged document with positive gain.

    Reference:
        Sakai 2005, doi:10.1007/978-3-540-31871-2_22; NTCIREVAL, which divides by min(R, k).
    """
    ratios = _Ratios.of(block, k, beta, gain)
    n_gaining = ratios.n_gaining
    return ratios.terms(ratios.gained > 0, np.minimum(n_gaining, cut(k)) if denominator == "cutoff" else n_gaining)


@from_terms
def o_measure(block: JudgedBlock, *, k: int | None = None, beta: float = 1, gain: GradedGain = "linear") -> Terms:
    """Compute the O-measure: the blended ratio at the first document with gain.

    Formula: (1 + beta gain) / (rank + beta ideal cg) of the first document with gain.

    Args:
        k: Number of ranks to count. None counts all.
        beta: How much the gains weigh, from 0 to 1e9; with 0 it is the reciprocal rank.
        gain: `linear` (the grade) or `exponential` (2**grade - 1).

    Returns:
        (Q,) scores in [0, 1]. 0 if none was retrieved. NaN if the query has no judged document with positive gain.

    Reference:
        Sakai 2007, On the properties of evaluation metrics for finding one highly relevant document, IPSJ TOD 48;
        pyNTCIREVAL 0.0.3 `OMeasure`.
    """
    ratios = _Ratios.of(block, k, beta, gain)
    return ratios.terms(_first(ratios.gained > 0))


@from_terms
def p_measure(block: JudgedBlock, *, k: int | None = None, beta: float = 1, gain: GradedGain = "linear") -> Terms:
    """Compute the P-measure: the blended ratio at the first of the best retrieved documents.

    Formula: (C + beta cg) / (rank + beta ideal cg) of the first document with the greatest gain in the list.

    Args:
        k: Number of ranks of the list. None counts all.
        beta: How much the gains weigh, from 0 to 1e9; with 0 it is precision at that rank.
        gain: `linear` (the grade) or `exponential` (2**grade - 1).

    Returns:
        (Q,) scores in [0, 1]. 0 if none was retrieved. NaN if the query has no judged document with positive gain.

    Reference:
        Sakai 2007, On the properties of evaluation metrics for finding one highly relevant document, IPSJ TOD 48;
        pyNTCIREVAL 0.0.3 `PMeasure`.
    """
    ratios = _Ratios.of(block, k, beta, gain)
    return ratios.terms(ratios.best())


@from_terms
def p_plus(block: JudgedBlock, *, k: int | None = None, beta: float = 1, gain: GradedGain = "linear") -> Terms:
    """Compute P-plus: the mean blended ratio at documents with gain, down to the first of the best ones.

    Formula: mean of (C + beta cg) / (rank + beta ideal cg) over the documents with gain down to the rank of p_measure.

    Args:
        k: Number of ranks of the list. None counts all.
        beta: How much the gains weigh, from 0 to 1e9; with 0 it is the mean of precisions.
        gain: `linear` (the grade) or `exponential` (2**grade - 1).

    Returns:
        (Q,) scores in [0, 1]. 0 if none was retrieved. NaN if the query has no judged document with positive gain.

    Reference:
        Sakai 2007, On the properties of evaluation metrics for finding one highly relevant document, IPSJ TOD 48;
        pyNTCIREVAL 0.0.3 `PPlusMeasure`.
    """
    ratios = _Ratios.of(block, k, beta, gain)
    down_to_best = np.logical_or.accumulate(ratios.best()[::-1], axis=0)[::-1]
    read = down_to_best & (ratios.gained > 0)
    return ratios.terms(read, np.maximum(sum_down(read), 1.0))


@from_terms
def ncu(
    block: JudgedBlock,
    *,
    k: int | None = None,
    beta: float = 1,
    stop: Literal["rank_biased", "graded"] = "rank_biased",
    gamma: float = 0.95,
    gain: GradedGain = "linear",
) -> Terms:
    """Compute the normalized cumulative utility: blended ratios weighted by the readers who stop there.

    Formula: Σ share of the readers that stop · (C + beta cg) / (rank + beta ideal cg) over the documents with gain.

    Args:
        k: Number of ranks to count. None counts all.
        beta: How much the gains weigh in the blended ratio, from 0 to 1e9; 0 makes it precision.
        stop: `rank_biased`: of readers who stop at a document that gains, gamma times as many stop at the next;
            `graded`: readers stop at each in proportion to its gain.
        gamma: How many more go on for the next document that gains, above 0 and at most 1; 1 makes it Q-measure.
        gain: `linear` (the grade) or `exponential` (2**grade - 1).

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no judged document with positive gain.

    Reference:
        Sakai & Robertson 2008, Modelling a user population for designing information retrieval metrics, EVIA;
        pyNTCIREVAL 0.0.3 `NCUrbBR` and `NCUguBR`, with beta 0 `NCUrbP` and `NCUguP`.
    """
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must be above 0 and at most 1, found {gamma:g}")
    ratios = _Ratios.of(block, k, beta, gain)
    if stop == "graded":
        return ratios.terms(ratios.gained, sum_down(ratios.ideal))
    n_above = (ratios.gained > 0).cumsum(axis=0) - 1.0
    places = np.arange(len(ratios.ideal), dtype=np.float64)[:, np.newaxis]
    return ratios.terms(gamma ** np.maximum(n_above, 0.0), sum_down(np.where(ratios.ideal > 0, gamma**places, 0.0)))


def _first(rows: Bools) -> Bools:
    """Return (H, Q) True for the first true row of each column."""
    first: Bools = rows & (rows.cumsum(axis=0) == 1)
    return first
