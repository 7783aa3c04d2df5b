"""Counts of documents, and shares and worths made of them, also for queries without a relevant document.

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
    """Count retrieved documents, judged or not.

    Formula: n.

    Returns:
        (Q,) counts, never NaN. Their mean over queries is reported, where trec_eval prints their sum.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `num_ret`.
    """
    return Terms(np.zeros_like(block.ranks), rest=block.n_retrieved)


@from_terms
def num_rel(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Count relevant documents of the query, retrieved or not.

    Formula: R.

    Args:
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) counts, never NaN. Their mean over queries is reported, where trec_eval prints their sum.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `num_rel`.
    """
    return Terms(np.zeros_like(block.ranks), rest=block.n_relevant(rel))


@from_terms
def num_nonrel_judged_ret(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Count retrieved documents that are judged and not relevant. Unjudged documents do not count.

    Formula: documents retrieved with a grade from 0 to below rel.

    Args:
        rel: Minimum grade of a relevant document: grades from 0 to below `rel` are counted, negative ones are unjudged.

    Returns:
        (Q,) counts, never NaN. Their mean over queries is reported, where trec_eval prints their sum.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `num_nonrel_judged_ret`.
    """
    return Terms(((block.grades >= 0) & ~block.relevant(rel)).astype(np.float64))


@from_terms
def tp(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Count true positives: retrieved documents that are relevant.

    Formula: relevant documents retrieved.

    Args:
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), counts from 0 to k, never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `num_rel_ret`.
    """
    hit = block.relevant(rel) & (block.ranks <= cut(k))
    return Terms(hit.astype(np.float64))


@from_terms
def fp(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Count false positives: retrieved documents that are not relevant, unjudged ones included.

    Formula: min(k, n) - tp.

    Args:
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), counts from 0 to k, never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7.
    """
    return Terms(-tp.terms(block, k=k, rel=rel).terms, rest=np.minimum(block.n_retrieved, cut(k)))


@from_terms
def fn(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Count false negatives: relevant documents that were not retrieved.

    Formula: R - tp.

    Args:
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), counts from 0 to the number of relevant documents, which an empty ranking scores, never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7.
    """
    return Terms(-tp.terms(block, k=k, rel=rel).terms, rest=block.n_relevant(rel))


@from_terms
def tn(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Count true negatives: documents of the catalogue that are neither retrieved nor relevant.

    Formula: documents - min(k, n) - fn.

    Args:
        block: Judged documents that each query retrieved. `n_documents` is required.
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), counts. NaN if the size of the catalogue is not known.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7.
    """
    rest = block.n_documents - np.minimum(block.n_retrieved, cut(k)) - block.n_relevant(rel)
    return Terms(tp.terms(block, k=k, rel=rel).terms, rest=rest)


@from_terms
def fallout(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Compute the fall-out: the share of the catalogue's non-relevant documents that was retrieved.

    Formula: fp / (documents - R).

    Args:
        block: Judged documents that each query retrieved. `n_documents` is required.
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1], lower is better. NaN if every document is relevant, or the size of the catalogue is not
        known.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; torchmetrics 1.9 `RetrievalFallOut`, over the documents
        that have a target.
    """
    return replace(fp.terms(block, k=k, rel=rel), divisor=block.n_documents - block.n_relevant(rel))


@from_terms
def user_coverage(block: JudgedBlock) -> Terms:
    """Compute the user coverage: 1 if the query (user) retrieved a document.

    Formula: 1 if n > 0, else 0.

    Returns:
        (Q,), 0 or 1, never NaN.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 4.2.1.
    """
    return Terms(np.zeros_like(block.ranks), rest=(block.n_retrieved > 0).astype(np.float64))


@from_terms
def utility(block: JudgedBlock, *, a: float = 1, b: float = -1, c: float = 0, d: float = 0, rel: float = 1) -> Terms:
    """Compute the utility: the worth of retrieved and other documents, relevant or not.

    Formula: a tp + b (n - tp) + c (R - tp) + d (documents - n - R + tp).

    Args:
        block: Judged documents that each query retrieved. `n_documents` is required unless `d` is 0.
        a: The worth of a relevant document retrieved.
        b: That of another document retrieved, judged or not.
        c: That of a relevant document not retrieved.
        d: That of any other document of the catalogue.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,). NaN if `d` is not 0 and the size of the catalogue is not known.

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
    """Compute the judged share: the share of retrieved documents with a grade of at least 0.

    Formula: judged retrieved / min(k, n).

    Args:
        k: Number of ranks to count. None counts all.
        empty: Score of a query that retrieved nothing: `undefined`, or `zero` as ir_measures has it.

    Returns:
        (Q,) scores in [0, 1], over min(k, retrieved). NaN if nothing was retrieved, unless `empty=zero`.

    Reference:
        MacAvaney et al. 2022, doi:10.1007/978-3-030-99739-7_38 (ir_measures, Judged@k); the TREC-COVID tables' `J@k`.
    """
    known = (block.grades >= 0) & (block.ranks <= cut(k))
    divisor = np.minimum(block.n_retrieved, cut(k))
    return Terms(known.astype(np.float64), divisor=np.maximum(divisor, 1.0) if empty == "zero" else divisor)


@from_terms
def unjudged(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """Compute the unjudged share: the share of ranks whose document has no judgment or a negative grade.

    Formula: unjudged retrieved / k, or / n without k.

    Args:
        k: Ranks to count, and what their number is divided by however short the list; None counts all retrieved.

    Returns:
        (Q,) scores in [0, 1]. 0 if nothing was retrieved, never NaN.

    Reference:
        trec_eval 10.0, National Institute of Standards and Technology; `unj_k`; BEIR's `Hole@k`.
    """
    known = (block.grades >= 0) & (block.ranks <= cut(k))
    size = np.maximum(block.n_retrieved, 1.0) if k is None else cut(k)
    return Terms(-known.astype(np.float64), rest=np.minimum(block.n_retrieved, cut(k)), divisor=size)
