"""Metrics of the retrieved set: counts of documents, and shares and ratios of them.

The set is the first k documents, or everything retrieved where no cutoff is given. A query that retrieved nothing has
an empty set, which holds no relevant document: precision 0, as in trec_eval.

Counts are exact integers held as floats, and never NaN if they need no more than judgments and a ranking.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from rankledger.metrics.block import JudgedBlock, Terms, cut, from_terms

__all__ = [
    "f",
    "f1",
    "fallout",
    "fn",
    "fp",
    "judged",
    "mar",
    "num_nonrel_judged_ret",
    "num_rel",
    "num_ret",
    "p",
    "r",
    "relative_p",
    "set_map",
    "success",
    "tn",
    "tp",
    "unjudged",
    "user_coverage",
    "utility",
]


@from_terms
def p(
    block: JudgedBlock, *, k: int | None = None, rel: float = 1, denominator: Literal["cutoff", "retrieved"] = "cutoff"
) -> Terms:
    """Compute the precision: the share of the retrieved documents that is relevant.

    Formula: tp / k, or tp / n without k.

    Args:
        k: Ranks to count; None counts all, and divides by their number.
        rel: Minimum grade of a relevant document.
        denominator: `cutoff` divides by k however short the list; `retrieved` by min(k, retrieved).

    Returns:
        (Q,) scores in [0, 1]. 0 if nothing was retrieved, never NaN.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `P_k` and, without k, `set_P`.
    """
    size = np.minimum(block.n_retrieved, cut(k)) if k is None or denominator == "retrieved" else cut(k)
    return Terms(tp.terms(block, k=k, rel=rel).terms, divisor=np.maximum(size, 1.0))  # of nothing, 0 is relevant


@from_terms
def r(
    block: JudgedBlock, *, k: int | None = None, rel: float = 1, denominator: Literal["relevant", "cutoff"] = "relevant"
) -> Terms:
    """Compute the recall: the share of the relevant documents that was retrieved.

    Formula: tp / R.

    Args:
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.
        denominator: `relevant` divides by the number of relevant documents R; `cutoff` by min(R, k), so that a full
            list of relevant documents scores 1.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `recall_k` and, without k, `set_recall`.
    """
    n_relevant = block.n_relevant(rel)
    size = np.minimum(n_relevant, cut(k)) if denominator == "cutoff" else n_relevant
    return Terms(tp.terms(block, k=k, rel=rel).terms, divisor=size)


@from_terms
def mar(block: JudgedBlock, *, k: int, rel: float = 1, at: Literal["ranks", "hits"] = "ranks") -> Terms:
    """Compute the mean average recall: the mean of the recall at each rank down to the cutoff.

    Formula: Σ_{i≤k} r@i / k.

    Args:
        k: Ranks to count.
        rel: Minimum grade of a relevant document.
        at: `ranks` is the mean over all k ranks, so that a document counts for more, the higher its rank; `hits` adds
            up the recall at the ranks of relevant documents alone and divides by min(R, k).

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        Anelli et al. 2021, doi:10.1145/3404835.3463245 (Elliot 0.3.1, `MAR`); `hits` is WarpRec 1.4's.
    """
    hit = tp.terms(block, k=k, rel=rel).terms
    n_relevant = block.n_relevant(rel)
    if at == "hits":
        return Terms(hit * hit.cumsum(axis=0), divisor=n_relevant * np.minimum(n_relevant, cut(k)))
    return Terms(np.where(hit > 0, cut(k) + 1 - block.ranks, 0.0), divisor=n_relevant * cut(k))


@from_terms
def relative_p(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Compute the relative precision: precision over the maximum for a list of this length.

    Formula: tp / min(k, R), with n if there is no k.

    Args:
        k: Ranks to count, and the length of the list; None counts all retrieved.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), in [0, 1]: precision where the list is shorter than R, recall where it is longer. NaN if the query has
        no relevant document.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `relative_P_k` and, without k,
        `set_relative_P`.
    """
    n_relevant = block.n_relevant(rel)
    size = np.maximum(block.n_retrieved, 1.0) if k is None else cut(k)  # of nothing, 0 is relevant
    return Terms(tp.terms(block, k=k, rel=rel).terms, divisor=np.minimum(size, n_relevant))


@from_terms
def set_map(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Compute the average precision of a set: its precision times its recall.

    Formula: tp² / (n R).

    Args:
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), in [0, 1]: precision times recall. NaN if the query has no relevant document.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `set_map`.
    """
    hit = block.relevant(rel)
    hits = np.where(hit, hit.sum(axis=0), 0.0)
    size = np.maximum(block.n_retrieved, 1.0)
    return Terms(hits, {"relevant": hit, "relevant retrieved": hits}, divisor=size * block.n_relevant(rel))


@from_terms
def f(block: JudgedBlock, *, beta: float, k: int | None = None, rel: float = 1) -> Terms:
    """Compute the F measure: the harmonic mean of precision and recall, with beta times the weight on recall.

    Formula: (1 + beta²) tp / (beta² R + k), with n if there is no k.

    It equals (1 + beta²) P R / (beta² P + R), P and R being precision and recall, and needs no rule for P = R = 0.

    Args:
        beta: How many times as important recall is as precision; above 0, at most 1e9.
        k: Ranks to count, and the denominator of precision; None counts all retrieved.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `set_F`, whose parameter is beta squared.
    """
    if not beta > 0:
        raise ValueError(f"beta must be above 0, found {beta:g}")
    if beta > 1e9:
        raise ValueError(f"beta must be at most 1e9, found {beta:g}")
    n_relevant = block.n_relevant(rel)
    size = block.n_retrieved if k is None else cut(k)
    return Terms(
        tp.terms(block, k=k, rel=rel).terms,
        scale=1 + beta**2,
        divisor=beta**2 * n_relevant + size,
        defined=n_relevant > 0,
    )


@from_terms
def f1(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Compute F1: the harmonic mean of precision and recall.

    Formula: 2 tp / (R + k), with n if there is no k.

    Args:
        k: Ranks to count, and the denominator of precision; None counts all retrieved.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        van Rijsbergen 1979, Information Retrieval, chapter 7; trec_eval `set_F`.
    """
    return f.terms(block, beta=1.0, k=k, rel=rel)


@from_terms
def success(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Compute the success (hit rate): 1 if a relevant document was retrieved.

    Formula: 1 if tp > 0, else 0.

    Args:
        k: Number of ranks to count. None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), 0 or 1. NaN if the query has no relevant document.

    Reference:
        trec_eval 9.0.4, National Institute of Standards and Technology; `success_k`.
    """
    hit = block.relevant(rel) & (block.ranks <= cut(k))
    first = hit & (hit.cumsum(axis=0) == 1)
    return Terms(first.astype(np.float64), defined=block.n_relevant(rel) > 0)


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
    is_judged = (block.grades >= 0) & (block.ranks <= cut(k))
    divisor = np.minimum(block.n_retrieved, cut(k))
    return Terms(is_judged.astype(np.float64), divisor=np.maximum(divisor, 1.0) if empty == "zero" else divisor)


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
    is_judged = (block.grades >= 0) & (block.ranks <= cut(k))
    size = np.maximum(block.n_retrieved, 1.0) if k is None else cut(k)
    return Terms(-is_judged.astype(np.float64), rest=np.minimum(block.n_retrieved, cut(k)), divisor=size)
