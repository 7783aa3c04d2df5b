"""Metrics of the retrieved set: what share of it is relevant, and what share of the relevant it holds.

The set is the first k documents, or everything retrieved where no cutoff is given. Counts are exact integers held as
floats. A query that retrieved nothing has an empty set, which holds no relevant document: precision 0, as in trec_eval.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.block import Floats, JudgedBlock, cut, divide, sum_down

__all__ = ["f", "f1", "fn", "fp", "judged", "p", "r", "success", "tn", "tp", "user_coverage"]


def tp(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Floats:
    """True positives: how many of the retrieved documents are relevant.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        (Q,), counts from 0 to k; never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `num_rel_ret`.
    """
    return sum_down(block.relevant(rel) & (block.ranks <= cut(k)))


def fp(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Floats:
    """False positives: how many of the retrieved documents are not relevant, unjudged ones included.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        (Q,), counts from 0 to k; never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7.
    """
    return np.minimum(block.n_retrieved, cut(k)) - tp(block, k=k, rel=rel)


def fn(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Floats:
    """False negatives: how many relevant documents were not retrieved.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        (Q,), counts from 0 to the number of relevant documents, which an empty ranking scores; never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7.
    """
    return block.n_relevant(rel) - tp(block, k=k, rel=rel)


def tn(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Floats:
    """True negatives: how many documents of the catalogue are neither retrieved nor relevant.

    Args:
        block: the judged documents each query retrieved; `n_documents` is needed.
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        (Q,), counts; NaN where the size of the catalogue is not known.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7.
    """
    return block.n_documents - np.minimum(block.n_retrieved, cut(k)) - fn(block, k=k, rel=rel)


def p(
    block: JudgedBlock,
    *,
    k: int | None = None,
    rel: float = 1,
    denominator: Literal["cutoff", "retrieved"] = "cutoff",
) -> Floats:
    """Precision: the share of the retrieved documents that is relevant.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all, and divides by their number.
        rel: the least grade that is relevant.
        denominator: `cutoff` divides by k however short the list; `retrieved` by min(k, retrieved).

    Returns:
        (Q,), in [0, 1]; 0 where nothing was retrieved; never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `P_k` and, without k, `set_P`.
    """
    size = np.minimum(block.n_retrieved, cut(k)) if k is None or denominator == "retrieved" else cut(k)
    return np.nan_to_num(divide(tp(block, k=k, rel=rel), size), nan=0.0)


def r(
    block: JudgedBlock,
    *,
    k: int | None = None,
    rel: float = 1,
    denominator: Literal["relevant", "cutoff"] = "relevant",
) -> Floats:
    """Recall: the share of the relevant documents that was retrieved.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.
        denominator: `relevant` divides by the number of relevant documents R; `cutoff` by min(R, k), so that a full
            list of relevant documents scores 1.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `recall_k` and, without k, `set_recall`.
    """
    n_relevant = block.n_relevant(rel)
    size = np.minimum(n_relevant, cut(k)) if denominator == "cutoff" else n_relevant
    return divide(tp(block, k=k, rel=rel), size)


def f(block: JudgedBlock, *, beta: float, k: int | None = None, rel: float = 1) -> Floats:
    """F measure: the harmonic mean of precision and recall, recall weighing beta times as much.

    Written as (1 + beta²) tp / (beta² R + size), which equals (1 + beta²) P R / (beta² P + R) and needs no rule for
    P = R = 0.

    Args:
        block: the judged documents each query retrieved.
        beta: how many times as important recall is as precision; above 0.
        k: ranks to count, and the denominator of precision; None counts all retrieved.
        rel: the least grade that is relevant.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Raises:
        ValueError: `beta` is not above 0.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `set_F`, whose parameter is beta squared.
    """
    if not beta > 0:
        raise ValueError(f"beta must be above 0, found {beta:g}")
    n_relevant = block.n_relevant(rel)
    size = block.n_retrieved if k is None else cut(k)
    score = divide((1 + beta**2) * tp(block, k=k, rel=rel), beta**2 * n_relevant + size)
    return np.where(n_relevant > 0, score, np.nan)


def f1(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Floats:
    """F1: the harmonic mean of precision and recall.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count, and the denominator of precision; None counts all retrieved.
        rel: the least grade that is relevant.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no relevant document.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `set_F`.
    """
    return f(block, beta=1.0, k=k, rel=rel)


def success(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Floats:
    """Success: whether any relevant document was retrieved (also called hit rate).

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        (Q,), 0 or 1; NaN where the query has no relevant document.

    Reference:
        trec_eval `success_k`.
    """
    return np.where(block.n_relevant(rel) > 0, tp(block, k=k, rel=rel) > 0, np.nan)


def judged(block: JudgedBlock, *, k: int | None = None) -> Floats:
    """Judged share: how many of the retrieved documents have a judgment (a grade of at least 0).

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.

    Returns:
        (Q,), in [0, 1], over min(k, retrieved); NaN where nothing was retrieved.

    Reference:
        ir_measures `Judged@k`; the TREC-COVID tables' `J@k`.
    """
    return divide(sum_down((block.grades >= 0) & (block.ranks <= cut(k))), np.minimum(block.n_retrieved, cut(k)))


def user_coverage(block: JudgedBlock) -> Floats:
    """User coverage: whether the query (the user) was given any document at all.

    Args:
        block: the judged documents each query retrieved.

    Returns:
        (Q,), 0 or 1; never NaN.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 4.2.1.
    """
    return (block.n_retrieved > 0).astype(np.float64)
