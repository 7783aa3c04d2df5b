"""Counts of documents, and the shares and worths made of them, whether the query has a relevant document or not.

Counts are exact integers held as floats, and never NaN where they need no more than judgments and a ranking.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from rankledger.metrics.block import JudgedBlock, Terms, cut, from_terms

__all__ = [
    "fallout",
    "fn",
    "fp",
    "judged",
    "num_nonrel_judged_ret",
    "num_rel",
    "num_ret",
    "tn",
    "tp",
    "unjudged",
    "user_coverage",
    "utility",
]


@from_terms
def num_ret(block: JudgedBlock) -> Terms:
    """Documents retrieved, judged or not.

    Formula: n.

    Returns:
        (Q,), counts; never NaN. Their mean over queries is reported, where trec_eval prints their sum.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `num_ret`.
    """
    return Terms(np.zeros_like(block.ranks), rest=block.n_retrieved)


@from_terms
def num_rel(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Relevant documents of the query, retrieved or not.

    Formula: R.

    Args:
        rel: the least grade that is relevant.

    Returns:
        (Q,), counts; never NaN. Their mean over queries is reported, where trec_eval prints their sum.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `num_rel`.
    """
    return Terms(np.zeros_like(block.ranks), rest=block.n_relevant(rel))


@from_terms
def num_nonrel_judged_ret(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Documents retrieved that are judged and not relevant; those without a judgment are not counted.

    Formula: documents retrieved with a grade from 0 to below rel.

    Args:
        rel: the least grade that is relevant; grades from 0 to below `rel` are counted, negative ones are unjudged.

    Returns:
        (Q,), counts; never NaN. Their mean over queries is reported, where trec_eval prints their sum.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `num_nonrel_judged_ret`.
    """
    return Terms(((block.grades >= 0) & ~block.relevant(rel)).astype(np.float64))


@from_terms
def tp(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """True positives: how many of the retrieved documents are relevant.

    Formula: relevant documents retrieved.

    Args:
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        (Q,), counts from 0 to k; never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `num_rel_ret`.
    """
    hit = block.relevant(rel) & (block.ranks <= cut(k))
    return Terms(hit.astype(np.float64))


@from_terms
def fp(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """False positives: how many of the retrieved documents are not relevant, unjudged ones included.

    Formula: min(k, n) - tp.

    Args:
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        (Q,), counts from 0 to k; never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7.
    """
    return Terms(-tp.terms(block, k=k, rel=rel).terms, rest=np.minimum(block.n_retrieved, cut(k)))


@from_terms
def fn(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """False negatives: how many relevant documents were not retrieved.

    Formula: R - tp.

    Args:
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        (Q,), counts from 0 to the number of relevant documents, which an empty ranking scores; never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7.
    """
    return Terms(-tp.terms(block, k=k, rel=rel).terms, rest=block.n_relevant(rel))


@from_terms
def tn(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """True negatives: how many documents of the catalogue are neither retrieved nor relevant.

    Formula: documents - min(k, n) - fn.

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


@from_terms
def fallout(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Fall-out: the share of the catalogue's documents without relevance that was retrieved.

    Formula: fp / (documents - R).

    Args:
        block: the judged documents each query retrieved; `n_documents` is needed.
        k: ranks to count; None counts all.
        rel: the least grade that is relevant.

    Returns:
        (Q,), in [0, 1], lower is better; NaN where every document is relevant, or the size of the catalogue is not
        known.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; torchmetrics 1.9 `RetrievalFallOut`, over the documents
        that have a target.
    """
    return replace(fp.terms(block, k=k, rel=rel), divisor=block.n_documents - block.n_relevant(rel))


@from_terms
def user_coverage(block: JudgedBlock) -> Terms:
    """User coverage: whether the query (the user) was given any document at all.

    Formula: 1 if n > 0, else 0.

    Returns:
        (Q,), 0 or 1; never NaN.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 4.2.1.
    """
    return Terms(np.zeros_like(block.ranks), rest=(block.n_retrieved > 0).astype(np.float64))


@from_terms
def utility(block: JudgedBlock, *, a: float = 1, b: float = -1, c: float = 0, d: float = 0, rel: float = 1) -> Terms:
    """Utility: what the documents retrieved and those left alone are worth, by whether they are relevant.

    Formula: a tp + b (n - tp) + c (R - tp) + d (documents - n - R + tp).

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


@from_terms
def judged(block: JudgedBlock, *, k: int | None = None, empty: Literal["undefined", "zero"] = "undefined") -> Terms:
    """Judged share: how many of the retrieved documents have a judgment (a grade of at least 0).

    Formula: judged retrieved / min(k, n).

    Args:
        k: ranks to count; None counts all.
        empty: score of a query that retrieved nothing: `undefined`, or `zero` as ir_measures has it.

    Returns:
        (Q,), in [0, 1], over min(k, retrieved); NaN where nothing was retrieved, unless `empty=zero`.

    Reference:
        MacAvaney et al. 2022, doi:10.1007/978-3-030-99739-7_38 (ir_measures, Judged@k); the TREC-COVID tables' `J@k`.
    """
    known = (block.grades >= 0) & (block.ranks <= cut(k))
    divisor = np.minimum(block.n_retrieved, cut(k))
    return Terms(known.astype(np.float64), divisor=np.maximum(divisor, 1.0) if empty == "zero" else divisor)


@from_terms
def unjudged(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """Unjudged share: how many of the places of the list hold a document without judgment (or a negative grade).

    Formula: unjudged retrieved / k, or / n without k.

    Args:
        k: ranks to count, and what their number is divided by however short the list; None counts all retrieved.

    Returns:
        (Q,), in [0, 1]; 0 where nothing was retrieved; never NaN.

    Reference:
        trec_eval 10.0, National Institute of Standards and Technology; `unj_k`; BEIR's `Hole@k`.
    """
    known = (block.grades >= 0) & (block.ranks <= cut(k))
    size = np.maximum(block.n_retrieved, 1.0) if k is None else cut(k)
    return Terms(-known.astype(np.float64), rest=np.minimum(block.n_retrieved, cut(k)), divisor=size)
