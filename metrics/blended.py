"""Metrics made of blended ratios (see `q_measure`): what a reader has gained who stops at a relevant document.

They differ in where readers stop: at each relevant document (`q_measure`, `ncu`), at the first (`o_measure`), at the
best (`p_measure`) or at each down to the best (`p_plus`). With beta 0 the blended ratio is precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankledger.metrics.block import Bools, Floats, GradedGain, JudgedBlock, Terms, cut, from_terms, gains, sum_down

__all__ = ["ncu", "o_measure", "p_measure", "p_plus", "q_measure"]


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
        """Return the ratios of a block. Errors are those of the metrics."""
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
    documents gain, cg is the sum of their gains, and cg* that of the r best judged documents.

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
    found = _Ratios.of(block, k, beta, gain)
    n_gaining = found.n_gaining
    return found.terms(found.gained > 0, np.minimum(n_gaining, cut(k)) if denominator == "cutoff" else n_gaining)


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
    found = _Ratios.of(block, k, beta, gain)
    return found.terms(_first(found.gained > 0))


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
    found = _Ratios.of(block, k, beta, gain)
    return found.terms(found.best())


@from_terms
def p_plus(block: JudgedBlock, *, k: int | None = None, beta: float = 1, gain: GradedGain = "linear") -> Terms:
    """Compute P-plus: the mean blended ratio at documents with gain, down to the first of the best ones.

    Formula: mean of (C + beta cg) / (rank + beta ideal cg) over the documents with gain down to that of p_measure.

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
    found = _Ratios.of(block, k, beta, gain)
    down_to_best = np.logical_or.accumulate(found.best()[::-1], axis=0)[::-1]
    read = down_to_best & (found.gained > 0)
    return found.terms(read, np.maximum(sum_down(read), 1.0))


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
    found = _Ratios.of(block, k, beta, gain)
    if stop == "graded":
        return found.terms(found.gained, sum_down(found.ideal))
    n_above = (found.gained > 0).cumsum(axis=0) - 1.0
    places = np.arange(len(found.ideal), dtype=np.float64)[:, np.newaxis]
    return found.terms(gamma ** np.maximum(n_above, 0.0), sum_down(np.where(found.ideal > 0, gamma**places, 0.0)))


def _first(rows: Bools) -> Bools:
    """Return (H, Q) True for the first true row of each column."""
    first: Bools = rows & (rows.cumsum(axis=0) == 1)
    return first
