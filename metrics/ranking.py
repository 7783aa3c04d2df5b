"""Metrics of the places that relevant documents take in a ranking.

All are binary: a document is relevant when its grade is at least `rel`. Unjudged documents are not relevant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from metrics.block import Floats, JudgedBlock, cut, divide, sum_down

__all__ = ["RecallPoints", "ap", "ap11", "avg_rp", "bpref", "iprec", "rp", "rprec", "rr"]

RecallPoints = Literal["truncate", "ceil", "round"]


def rr(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Floats:
    """Reciprocal rank: one over the rank of the first relevant document.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        (Q,), in [0, 1]; 0 where no relevant document was retrieved, NaN where the query has none.

    Reference:
        Voorhees 1999, The TREC-8 question answering track report; trec_eval `recip_rank`.
    """
    hit = block.relevant(rel) & (block.ranks <= cut(k))
    first = np.where(hit, block.ranks, np.inf).min(axis=0, initial=np.inf)
    return np.where(block.n_relevant(rel) > 0, 1.0 / first, np.nan)


def ap(
    block: JudgedBlock,
    *,
    k: int | None = None,
    rel: float = 1,
    denominator: Literal["relevant", "cutoff", "hits"] = "relevant",
) -> Floats:
    """Average precision: the sum of the precisions at the ranks of relevant documents, over their number.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.
        denominator: `relevant` is R, the relevant documents of the query, retrieved or not; `cutoff` is min(R, k)
            (Kaggle's form); `hits` is the relevant documents among the first k (0 where there are none).

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Reference:
        Buckley & Voorhees 2000, doi:10.1145/345508.345543; trec_eval `map` and `map_cut_k`.
    """
    hit = block.relevant(rel) & (block.ranks <= cut(k))
    precisions = sum_down(hit * hit.cumsum(axis=0) / block.ranks)
    n_relevant = block.n_relevant(rel)
    size = {
        "relevant": n_relevant,
        "cutoff": np.minimum(n_relevant, cut(k)),
        "hits": np.maximum(sum_down(hit), 1.0),
    }[denominator]
    return np.where(n_relevant > 0, divide(precisions, size), np.nan)


def bpref(block: JudgedBlock, *, rel: float = 1) -> Floats:
    """Binary preference: how rarely judged non-relevant documents stand above relevant ones; unjudged are passed over.

    Each relevant document retrieved adds 1 - min(n, R) / min(N, R), n being the judged non-relevant documents above it,
    N and R the query's judged non-relevant and relevant documents; the sum is divided by R.

    Args:
        block: the judged documents each query retrieved.
        rel: the least grade that is relevant; grades from 0 to below `rel` are non-relevant, negative ones unjudged.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Reference:
        Buckley & Voorhees 2004, doi:10.1145/1008992.1009000, in the corrected form of trec_eval 8 and later.
    """
    n_relevant = block.n_relevant(rel)
    above = ((block.grades >= 0) & (block.grades < rel)).cumsum(axis=0)
    # Where nothing non-relevant is judged, nothing is above either, and the preference is 1.
    most = np.maximum(np.minimum(n_relevant, block.n_judged - n_relevant), 1.0)
    preferences = 1.0 - np.minimum(above, n_relevant) / most
    return divide(sum_down(np.where(block.relevant(rel), preferences, 0.0)), n_relevant)


def rprec(block: JudgedBlock, *, rel: float = 1) -> Floats:
    """R-precision: the precision at rank R, the number of relevant documents of the query.

    Args:
        block: the judged documents each query retrieved.
        rel: the least grade that is relevant.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Reference:
        Buckley & Voorhees 2000, doi:10.1145/345508.345543; trec_eval `Rprec`.
    """
    n_relevant = block.n_relevant(rel)
    return divide(sum_down(block.relevant(rel) & (block.ranks <= n_relevant)), n_relevant)


def rp(block: JudgedBlock, *, k: int, rel: float = 1) -> Floats:
    """Tie-aware R-precision at k: the first k documents against the k best of the solution and all that tie with them.

    The solution is the query's m relevant documents by grade. Those graded at least as high as its min(k, m)-th count;
    their number among the first k is divided by min(k, m).

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count, and best documents of the solution to look for.
        rel: the least grade that is relevant, and so in the solution.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Reference:
        VideoLectures.NET challenge, ECML/PKDD 2011, evaluation metrics (Rp@z).
    """
    size = np.minimum(block.n_relevant(rel), cut(k))
    last = np.maximum(size - 1, 0).astype(np.intp)[np.newaxis, :]
    threshold = np.take_along_axis(block.judged_grades, last, axis=0)
    wanted = block.relevant(rel) & (block.grades >= threshold) & (block.ranks <= k)
    return divide(sum_down(wanted), size)


def avg_rp(block: JudgedBlock, *, cutoffs: Sequence[int] = (5, 10), rel: float = 1) -> Floats:
    """Average tie-aware R-precision: the mean of `rp` at several cutoffs.

    Args:
        block: the judged documents each query retrieved.
        cutoffs: the cutoffs, at least one.
        rel: the least grade that is relevant, and so in the solution.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Raises:
        ValueError: no cutoffs.

    Reference:
        VideoLectures.NET challenge, ECML/PKDD 2011, evaluation metrics (AvgRp; its mean over queries is MARp).
    """
    if not cutoffs:
        raise ValueError("cutoffs is empty; name at least one")
    return sum_down(np.stack([rp(block, k=k, rel=rel) for k in cutoffs])) / len(cutoffs)


def iprec(block: JudgedBlock, *, recall: float, rel: float = 1, recall_points: RecallPoints = "truncate") -> Floats:
    """Interpolated precision: the highest precision at any rank where the recall is at least `recall`.

    Args:
        block: the judged documents each query retrieved.
        recall: the recall to reach, in [0, 1].
        rel: the least grade that is relevant.
        recall_points: how many relevant documents reach recall p of R: `ceil` is the definition, the least number that
            is at least p R; `truncate` is int(p R + 0.9) in doubles (trec_eval 9); `round` is p R rounded, halves up
            (trec_eval 10).

    Returns:
        (Q,), in [0, 1]; 0 where that recall is never reached, NaN where the query has no relevant document.

    Raises:
        ValueError: `recall` is outside [0, 1].

    Reference:
        Manning, Raghavan & Schütze 2008, Introduction to Information Retrieval, section 8.4; trec_eval
        `iprec_at_recall`.
    """
    if not 0 <= recall <= 1:
        raise ValueError(f"recall must be in [0, 1], found {recall:g}")
    n_relevant = block.n_relevant(rel)
    found = block.relevant(rel).cumsum(axis=0)
    reached = block.relevant(rel) & (found >= _needed(recall * n_relevant, recall_points))
    best = np.where(reached, found / block.ranks, 0.0).max(axis=0, initial=0.0)
    return np.where(n_relevant > 0, best, np.nan)


def ap11(block: JudgedBlock, *, rel: float = 1, recall_points: RecallPoints = "truncate") -> Floats:
    """Eleven-point average precision: the mean interpolated precision at recall 0.0, 0.1 … 1.0.

    Args:
        block: the judged documents each query retrieved.
        rel: the least grade that is relevant.
        recall_points: how many relevant documents reach a recall; see `iprec`.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Reference:
        Manning, Raghavan & Schütze 2008, Introduction to Information Retrieval, section 8.4; trec_eval `11pt_avg`.
    """
    levels = [iprec(block, recall=tenths / 10, rel=rel, recall_points=recall_points) for tenths in range(11)]
    return sum_down(np.stack(levels)) / len(levels)


def _needed(product: Floats, recall_points: RecallPoints) -> Floats:
    if recall_points == "ceil":
        return np.ceil(product - 1e-9)  # 0.55 * 100 is 55.00000000000001 in doubles, and 55 documents are enough
    return np.floor(product + (0.9 if recall_points == "truncate" else 0.5))
