"""Counts of a query: the documents retrieved, relevant, and both or neither.

Counts are exact integers held as floats, and never NaN where they need no more than judgments and a ranking.
"""

from __future__ import annotations

import numpy as np

from metrics.block import JudgedBlock, cut
from metrics.terms import Summed, Terms

__all__ = [
    "fn",
    "fp",
    "num_nonrel_judged_ret",
    "num_rel",
    "num_ret",
    "tn",
    "tp",
    "user_coverage",
    "utility",
]


@Summed
def num_ret(block: JudgedBlock) -> Terms:
    """Documents retrieved, judged or not.

    Args:
        block: the judged documents each query retrieved.

    Returns:
        (Q,), counts; never NaN. Their mean over queries is reported, where trec_eval prints their sum.

    Reference:
        trec_eval `num_ret`.
    """
    return Terms(np.zeros_like(block.ranks), rest=block.n_retrieved)


@Summed
def num_rel(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Relevant documents of the query, retrieved or not.

    Args:
        block: the judged documents each query retrieved.
        rel: the least grade that is relevant.

    Returns:
        (Q,), counts; never NaN. Their mean over queries is reported, where trec_eval prints their sum.

    Reference:
        trec_eval `num_rel`.
    """
    return Terms(np.zeros_like(block.ranks), rest=block.n_relevant(rel))


@Summed
def num_nonrel_judged_ret(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Documents retrieved that are judged and not relevant; those without a judgment are not counted.

    Args:
        block: the judged documents each query retrieved.
        rel: the least grade that is relevant; grades from 0 to below `rel` are counted, negative ones are unjudged.

    Returns:
        (Q,), counts; never NaN. Their mean over queries is reported, where trec_eval prints their sum.

    Reference:
        trec_eval `num_nonrel_judged_ret`.
    """
    return Terms(((block.grades >= 0) & ~block.relevant(rel)).astype(np.float64))


@Summed
def tp(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
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
    hit = block.relevant(rel) & (block.ranks <= cut(k))
    return Terms(hit.astype(np.float64))


@Summed
def fp(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
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
    return Terms(-tp.terms(block, k=k, rel=rel).terms, rest=np.minimum(block.n_retrieved, cut(k)))


@Summed
def fn(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
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
    return Terms(-tp.terms(block, k=k, rel=rel).terms, rest=block.n_relevant(rel))


@Summed
def tn(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
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
    rest = block.n_documents - np.minimum(block.n_retrieved, cut(k)) - block.n_relevant(rel)
    return Terms(tp.terms(block, k=k, rel=rel).terms, rest=rest)


@Summed
def user_coverage(block: JudgedBlock) -> Terms:
    """User coverage: whether the query (the user) was given any document at all.

    Args:
        block: the judged documents each query retrieved.

    Returns:
        (Q,), 0 or 1; never NaN.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 4.2.1.
    """
    return Terms(np.zeros_like(block.ranks), rest=(block.n_retrieved > 0).astype(np.float64))


@Summed
def utility(block: JudgedBlock, *, a: float = 1, b: float = -1, c: float = 0, d: float = 0, rel: float = 1) -> Terms:
    """Utility: what the documents retrieved and those left alone are worth, by whether they are relevant.

    Args:
        block: the judged documents each query retrieved; `n_documents` is needed where `d` is not 0.
        a: the worth of a relevant document retrieved.
        b: that of another document retrieved, judged or not.
        c: that of a relevant document not retrieved.
        d: that of any other document of the catalogue.
        rel: the least grade that is relevant.

    Returns:
        (Q,); NaN where `d` is not 0 and the size of the catalogue is not known.

    Reference:
        Hull 1998, The TREC-7 filtering track: description and analysis; trec_eval `utility`.
    """
    n_relevant = block.n_relevant(rel)
    rest = b * block.n_retrieved + c * n_relevant
    if d:
        rest = rest + d * (block.n_documents - block.n_retrieved - n_relevant)
    hit = block.relevant(rel)
    return Terms(np.where(hit, a - b - c + d, 0.0), {"relevant": hit}, rest=rest)
