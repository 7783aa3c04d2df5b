"""Metrics of the ranks of relevant documents, those for incomplete judgments included.

All are binary: a document is relevant if its grade is at least `rel`, and judged non-relevant from 0 to below. Unjudged
documents are not relevant. A negative grade says that a document was in the pool from which those to be judged were
drawn, and was not drawn.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Literal

import numpy as np

from rankledger.metrics.block import Floats, JudgedBlock, Terms, cut, from_terms

__all__ = [
    "RecallPoints",
    "ap",
    "ap11",
    "avg_rp",
    "bpref",
    "gm_bpref",
    "gmap",
    "infap",
    "iprec",
    "rp",
    "rprec",
    "rprec_mult",
    "rr",
    "yaap",
]

RecallPoints = Literal["truncate", "ceil", "round"]


@from_terms
def rr(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Compute the reciprocal rank: 1 over the rank of the first relevant document.

    Formula: 1 / rank of the first relevant document.

    Args:
        k: Ranks to count; None counts all, as a bare `mrr` does: MS MARCO's MRR is `rr@10`.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1]. 0 if no relevant document was retrieved, NaN if the query has no relevant document.

    Reference:
        Voorhees 1999, The TREC-8 question answering track report; trec_eval `recip_rank`.
    """
    hit = block.relevant(rel) & (block.ranks <= cut(k))
    first = hit & (hit.cumsum(axis=0) == 1)
    return Terms(np.where(first, 1.0 / block.ranks, 0.0), defined=block.n_relevant(rel) > 0)


@from_terms
def ap(
    block: JudgedBlock,
    *,
    k: int | None = None,
    rel: float = 1,
    denominator: Literal["relevant", "cutoff", "hits"] = "relevant",
) -> Terms:
    """Compute the average precision: the sum of precisions at the ranks of relevant documents, over their number.

    Formula: Σ p@rank of each relevant document / R.

    Args:
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.
        denominator: `relevant` is R, the relevant documents of the query, retrieved or not; `cutoff` is min(R, k)
            (Kaggle's form); `hits` is the relevant documents among the first k (0 if there are none).

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        Buckley & Voorhees 2000, doi:10.1145/345508.345543; trec_eval `map` and `map_cut_k`.
    """
    hit = block.relevant(rel) & (block.ranks <= cut(k))
    precision = hit.cumsum(axis=0) / block.ranks
    n_relevant = block.n_relevant(rel)
    size = {"relevant": n_relevant, "cutoff": np.minimum(n_relevant, cut(k)), "hits": np.maximum(hit.sum(axis=0), 1.0)}[
        denominator
    ]
    return Terms(hit * precision, {"relevant": hit, "precision": precision}, divisor=size, defined=n_relevant > 0)


@from_terms
def gmap(
    block: JudgedBlock,
    *,
    k: int | None = None,
    rel: float = 1,
    denominator: Literal["relevant", "cutoff", "hits"] = "relevant",
) -> Terms:
    """Compute the average precision, whose estimate over queries is the geometric mean.

    Formula: ap of a query; exp of the mean of log max(ap, 0.00001) over queries.

    Args:
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.
        denominator: As for `ap`.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        Robertson 2006, doi:10.1145/1183614.1183630; trec_eval `gm_map`.
    """
    return ap.terms(block, k=k, rel=rel, denominator=denominator)


@from_terms
def yaap(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Compute yet another average precision: smoothed log odds of average precision.

    Formula: ln((1 + s) / (1 + R - s)), s = Σ p@rank of each relevant document retrieved.

    It orders the rankings of a query as average precision does, and tells apart those that are near 0 or 1.

    Args:
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), from -ln(1 + R), where nothing relevant was retrieved, to ln(1 + R). 0 if the query has no relevant
        document, never NaN.

    Reference:
        Robertson 2012, doi:10.1007/978-3-642-28997-2_14; trec_eval `yaap`.
    """
    summed = ap.terms(block, rel=rel).terms.cumsum(axis=0)
    n_relevant = block.n_relevant(rel)
    nothing = np.log(1 / (1 + n_relevant))  # rounded as below, so that what is not relevant adds nothing
    odds = np.log((1 + summed) / (1 + n_relevant - summed))
    return Terms(np.diff(odds, axis=0, prepend=nothing[np.newaxis]), rest=nothing)


@from_terms
def rprec(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Compute the R-precision: the precision at rank R, the number of relevant documents of the query.

    Formula: p@R.

    Args:
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        Buckley & Voorhees 2000, doi:10.1145/345508.345543; trec_eval `Rprec`.
    """
    n_relevant = block.n_relevant(rel)
    hit = block.relevant(rel) & (block.ranks <= n_relevant)
    return Terms(hit.astype(np.float64), divisor=n_relevant)


@from_terms
def rprec_mult(block: JudgedBlock, *, factor: float, rel: float = 1) -> Terms:
    """Compute the R-precision at a multiple of R: the precision at rank int(factor · R + 0.9).

    Formula: p@int(factor R + 0.9).

    Args:
        factor: The multiple, above 0.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1]. 0 if that rank is 0, NaN if the query has no relevant document.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `Rprec_mult`.
    """
    if not factor > 0:
        raise ValueError(f"factor must be above 0, found {factor:g}")
    n_relevant = block.n_relevant(rel)
    last = np.floor(factor * n_relevant + 0.9)
    hit = block.relevant(rel) & (block.ranks <= last)
    return Terms(hit.astype(np.float64), divisor=np.maximum(last, 1.0), defined=n_relevant > 0)


@from_terms
def rp(block: JudgedBlock, *, k: int, rel: float = 1) -> Terms:
    """Compute the tie-aware R-precision at k: the share of the first k documents in the best k and their ties.

    Formula: |first k ∩ min(k, R) best and their ties| / min(k, R).

    The best are the query's relevant documents graded at least as high as the min(k, R)-th of them.

    Args:
        k: Ranks to count, and best documents of the solution to look for.
        rel: The minimum grade that is relevant, and so in the solution.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        VideoLectures.NET challenge, ECML/PKDD 2011, evaluation metrics; Rp@z there.
    """
    size = np.minimum(block.n_relevant(rel), cut(k))
    last = np.maximum(size - 1, 0).astype(np.intp)[np.newaxis, :]
    threshold = np.take_along_axis(block.judged_grades, last, axis=0)
    best = block.relevant(rel) & (block.grades >= threshold) & (block.ranks <= k)
    return Terms(best.astype(np.float64), divisor=size)


@from_terms
def avg_rp(block: JudgedBlock, *, cutoffs: Sequence[int] = (5, 10), rel: float = 1) -> Terms:
    """Compute the average tie-aware R-precision: the mean of `rp` at several cutoffs.

    Formula: mean of rp@k, k in cutoffs.

    Args:
        cutoffs: The cutoffs, at least one.
        rel: The minimum grade that is relevant, and so in the solution.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        VideoLectures.NET challenge, ECML/PKDD 2011, evaluation metrics; AvgRp there, its mean over queries MARp.
    """
    if not cutoffs:
        raise ValueError("cutoffs is empty; name at least one")
    precisions = [rp.terms(block, k=k, rel=rel) for k in cutoffs]
    shares = [np.where(terms.divisor > 0, terms.terms / np.maximum(terms.divisor, 1.0), 0.0) for terms in precisions]
    return Terms(_add_parts(shares), divisor=float(len(cutoffs)), defined=block.n_relevant(rel) > 0)


@from_terms
def iprec(block: JudgedBlock, *, recall: float, rel: float = 1, recall_points: RecallPoints = "truncate") -> Terms:
    """Compute the interpolated precision: the maximum precision at any rank with a recall of at least `recall`.

    Formula: max p@i where r@i ≥ recall.

    Args:
        recall: The recall to reach, in [0, 1].
        rel: Minimum grade of a relevant document.
        recall_points: How many relevant documents reach recall p of R: `ceil` is the definition, the least number that
            is at least p R; `truncate` is int(p R + 0.9) in doubles (trec_eval 9); `round` is p R rounded, halves up
            (trec_eval 10).

    Returns:
        (Q,) scores in [0, 1]. 0 if that recall is never reached, NaN if the query has no relevant document.

    Reference:
        Manning, Raghavan & Schütze 2008, Introduction to Information Retrieval, section 8.4; trec_eval
        `iprec_at_recall`.
    """
    if not 0 <= recall <= 1:
        raise ValueError(f"recall must be in [0, 1], found {recall:g}")
    n_relevant = block.n_relevant(rel)
    n_hits = block.relevant(rel).cumsum(axis=0)
    needed = recall * n_relevant
    if recall_points == "ceil":
        needed = np.ceil(needed - 1e-9)  # 0.55 * 100 is 55.00000000000001 in doubles, and 55 documents are enough
    else:
        needed = np.floor(needed + (0.9 if recall_points == "truncate" else 0.5))
    reached = block.relevant(rel) & (n_hits >= needed)
    precision = np.where(reached, n_hits / block.ranks, 0.0)
    best = np.arange(len(precision))[:, np.newaxis] == precision.argmax(axis=0)
    return Terms(np.where(best, precision, 0.0), {"precision": precision}, defined=n_relevant > 0)


@from_terms
def ap11(block: JudgedBlock, *, rel: float = 1, recall_points: RecallPoints = "truncate") -> Terms:
    """Compute the eleven-point average precision: the mean interpolated precision at recall 0.0, 0.1 … 1.0.

    Formula: mean of iprec at recall 0, 0.1 … 1.

    Args:
        rel: Minimum grade of a relevant document.
        recall_points: How many relevant documents reach a recall; see `iprec`.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        Manning, Raghavan & Schütze 2008, Introduction to Information Retrieval, section 8.4; trec_eval `11pt_avg`.
    """
    levels = [iprec.terms(block, recall=tenths / 10, rel=rel, recall_points=recall_points) for tenths in range(11)]
    return Terms(_add_parts([level.terms for level in levels]), divisor=11.0, defined=block.n_relevant(rel) > 0)


def _add_parts(parts: Sequence[Floats]) -> Floats:
    """Return the (H, Q) sums of the parts in their order, which `np.sum` does not keep."""
    return functools.reduce(np.add, parts)


_EPSILON = 0.00001  # as in trec_eval: smooths the share of relevant documents where none is judged


@from_terms
def bpref(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Compute the binary preference: the rarity of judged non-relevant documents above relevant ones.

    Formula: Σ (1 - min(n above, R) / min(N, R)) / R.

    Each relevant document retrieved adds 1 - min(n, R) / min(N, R), n being the judged non-relevant documents above it,
    N and R the query's judged non-relevant and relevant documents; the sum is divided by R.

    Args:
        rel: Minimum grade of a relevant document. Lower ones from 0 on are non-relevant, negative ones unjudged.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        Buckley & Voorhees 2004, doi:10.1145/1008992.1009000, in the corrected form of trec_eval 8 and later.
    """
    n_relevant = block.n_relevant(rel)
    above = ((block.grades >= 0) & (block.grades < rel)).cumsum(axis=0)
    # Where nothing non-relevant is judged, nothing is above either, and the preference is 1.
    n_pairs = np.maximum(np.minimum(n_relevant, block.n_judged - n_relevant), 1.0)
    preferences = 1.0 - np.minimum(above, n_relevant) / n_pairs
    return Terms(np.where(block.relevant(rel), preferences, 0.0), {"non-relevant above": above}, divisor=n_relevant)


@from_terms
def gm_bpref(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Compute the binary preference, whose estimate over queries is the geometric mean.

    Formula: bpref of a query; exp of the mean of log max(bpref, 0.00001) over queries.

    Args:
        rel: Minimum grade of a relevant document. Lower ones from 0 on are non-relevant, negative ones unjudged.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        Buckley & Voorhees 2004, doi:10.1145/1008992.1009000; trec_eval `gm_bpref`.
    """
    return bpref.terms(block, rel=rel)


@from_terms
def infap(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Compute the inferred average precision, with precisions estimated from judged documents.

    Formula: Σ (1/i + (i - 1)/i · share pooled above · share relevant of those judged above) / R.

    At rank i it is 1/i for the document itself and (i - 1)/i times the share of those above that are in the pool, times
    the share relevant among those judged, smoothed by 0.00001; the sum is divided by R. Documents outside the pool are
    not relevant.

    Args:
        rel: Minimum grade of a relevant document: a negative grade is in the pool and unjudged.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        Yilmaz & Aslam 2006, doi:10.1145/1183614.1183633; trec_eval `infAP`.
    """
    hit = block.relevant(rel)
    n_above = np.where(hit, block.ranks - 1, 0.0)
    relevant_above = np.where(hit, hit.cumsum(axis=0) - 1, 0.0)
    judged_above = np.where(hit, (block.grades >= 0).cumsum(axis=0) - 1, 0.0)
    pooled_above = np.where(hit, np.isfinite(block.grades).cumsum(axis=0) - 1, 0.0)
    pooled = pooled_above / np.maximum(n_above, 1.0)
    likely = (relevant_above + _EPSILON) / (judged_above + 2 * _EPSILON)
    precision = np.where(hit, 1.0 / (n_above + 1) + n_above / (n_above + 1) * pooled * likely, 0.0)
    factors = {
        "relevant": hit,
        "share pooled above": pooled,
        "share relevant of judged above": likely,
        "precision": precision,
    }
    return Terms(precision, factors, divisor=block.n_relevant(rel))
