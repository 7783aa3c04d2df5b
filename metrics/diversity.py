"""Metrics of rankings for queries with several subtopics: a subtopic is worth less, the more often it was met above.

A document is relevant to a subtopic when its grade for it is at least `rel`; a subtopic to which no judged document is
relevant does not count. Where queries are judged as a whole, each is its one subtopic.

For the metrics of KILT a subtopic is an evidence set: all of its documents are needed, and any of the sets will do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats, JudgedBlock, Terms, cut, from_terms, sum_down

__all__ = ["alpha_ndcg", "ap_ia", "err_ia", "kilt_r", "kilt_rprec", "nerr_ia", "nnrbp", "nrbp", "p_ia", "strec"]

_VANISHING = 1100  # 0.5**1100 is 0 in doubles


@from_terms
def alpha_ndcg(block: JudgedBlock, *, k: int | None = None, alpha: float = 0.5, rel: float = 1) -> Terms:
    """Compute alpha-nDCG: nDCG in which a subtopic gains less each time that it was met above.

    Formula: Σ gain / log2(rank + 1) / the same sum of the greedy list,
    gain = Σ (1 - alpha)^(documents of the subtopic above).

    A document gains (1 - alpha)**m of each of its subtopics, m documents of that subtopic being above. The ideal list
    is put together greedily, as the best one cannot be found in useful time: at each rank stands the document that
    gains most there, among equals the one with the greatest id.

    Args:
        k: Ranks to count in both lists; None counts all.
        alpha: How much of its worth a subtopic loses each time it is met, in [0, 1].
        rel: The minimum grade that is relevant to a subtopic.

    Returns:
        (Q,), 0 or more; 1 is the greedy list's score, which another list seldom exceeds, by gaining less at first and
        more later. NaN if no document is relevant to any subtopic.

    Reference:
        Clarke et al. 2008, doi:10.1145/1390334.1390446; ndeval `alpha-nDCG@k`.
    """
    return _divide_by_greedy(block, alpha, k, rel, lambda ranks: np.log2(ranks + 1.0))


@from_terms
def err_ia(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Compute the intent-aware expected reciprocal rank: the mean ERR of the subtopics, over its maximum.

    Formula: Σ gain / rank / subtopics / Σ_{i≤k} 0.5^(i - 1) / i, gain as in alpha_ndcg.

    A relevant document satisfies the reader who wants its subtopic with a chance of one half. The list without a flaw
    has only documents that are relevant to every subtopic, whether there are such or not.

    Args:
        k: Ranks to count in both lists; None counts all, and infinitely many of the list without a flaw.
        rel: The minimum grade that is relevant to a subtopic.

    Returns:
        (Q,) scores in [0, 1]. NaN if no document is relevant to any subtopic.

    Reference:
        Chapelle et al. 2011, doi:10.1007/s10791-011-9167-7, for binary relevance; ndeval `ERR-IA@k`, which divides by
        the list without a flaw from k = 2 on and at k = 1 by nothing.
    """
    relevant, judged = _relevant(block, rel)
    gained = np.where(block.ranks <= cut(k), _gains(relevant, 0.5), 0.0)
    positions = np.arange(1.0, min(cut(k), _VANISHING) + 1)
    flawless = float((0.5 ** (positions - 1) / positions).sum())
    factors = {"subtopics": relevant.sum(axis=0), "gain": gained}
    return Terms(gained / block.ranks, factors, divisor=_n_subtopics(judged) * flawless)


@from_terms
def nrbp(block: JudgedBlock, *, k: int | None = None, alpha: float = 0.5, beta: float = 0.5, rel: float = 1) -> Terms:
    """Compute the novelty- and rank-biased precision, averaged over subtopics.

    Formula: (1 - (1 - alpha) beta) Σ gain beta^(rank - 1) / subtopics, gain as in alpha_ndcg.

    Args:
        k: Number of ranks to count. None counts all.
        alpha: How much of its worth a subtopic loses each time it is met, in [0, 1].
        beta: patience, the chance of reading on, in (0, 1).
        rel: The minimum grade that is relevant to a subtopic.

    Returns:
        (Q,) scores in [0, 1]. NaN if no document is relevant to any subtopic.

    Reference:
        Clarke, Kolla & Vechtomova 2009, doi:10.1007/978-3-642-04417-5_17; ndeval `NRBP`.
    """
    if not 0 < beta < 1:
        raise ValueError(f"beta must be between 0 and 1, found {beta:g}")
    relevant, judged = _relevant(block, rel)
    gained = np.where(block.ranks <= cut(k), _gains(relevant, alpha), 0.0)
    reached = beta ** (block.ranks - 1)
    factors = {"subtopics": relevant.sum(axis=0), "gain": gained, "reached": reached}
    return Terms(gained * reached, factors, scale=1 - (1 - alpha) * beta, divisor=_n_subtopics(judged))


@from_terms
def nerr_ia(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Compute the normalized intent-aware expected reciprocal rank: err_ia over err_ia of the greedy list.

    Formula: Σ gain / rank / the same sum of the greedy list, gain as in alpha_ndcg with alpha 0.5.

    Args:
        k: Ranks to count in both lists; None counts all.
        rel: The minimum grade that is relevant to a subtopic.

    Returns:
        (Q,), 0 or more; 1 is the greedy list's score, which another list seldom exceeds. NaN if no document is
        relevant to any subtopic.

    Reference:
        Chapelle et al. 2011, doi:10.1007/s10791-011-9167-7, for binary relevance; ndeval `nERR-IA@k`.
    """
    return _divide_by_greedy(block, 0.5, k, rel, lambda ranks: ranks)


@from_terms
def nnrbp(block: JudgedBlock, *, k: int | None = None, alpha: float = 0.5, beta: float = 0.5, rel: float = 1) -> Terms:
    """Compute the normalized novelty- and rank-biased precision: nrbp over nrbp of the greedy list.

    Formula: Σ gain beta^(rank - 1) / the same sum of the greedy list, gain as in alpha_ndcg.

    Args:
        k: Ranks to count in both lists; None counts all.
        alpha: How much of its worth a subtopic loses each time it is met, in [0, 1].
        beta: patience, the chance of reading on, in (0, 1).
        rel: The minimum grade that is relevant to a subtopic.

    Returns:
        (Q,), 0 or more; 1 is the greedy list's score, which another list seldom exceeds. NaN if no document is
        relevant to any subtopic.

    Reference:
        Clarke, Kolla & Vechtomova 2009, doi:10.1007/978-3-642-04417-5_17; ndeval `nNRBP`.
    """
    if not 0 < beta < 1:
        raise ValueError(f"beta must be between 0 and 1, found {beta:g}")
    return _divide_by_greedy(block, alpha, k, rel, lambda ranks: beta ** (1.0 - ranks))


@from_terms
def ap_ia(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Compute the intent-aware average precision: the mean average precision of the subtopics.

    Formula: Σ over subtopics (Σ p@rank of each document relevant to it / documents relevant to it) / subtopics.

    Args:
        k: Number of ranks to count. None counts all.
        rel: The minimum grade that is relevant to a subtopic.

    Returns:
        (Q,) scores in [0, 1]. NaN if no document is relevant to any subtopic.

    Reference:
        Agrawal et al. 2009, doi:10.1145/1498759.1498766; ndeval `MAP-IA`.
    """
    relevant, judged = _relevant(block, rel)
    counted = relevant & (block.ranks <= cut(k))
    n_relevant = np.maximum(judged.sum(axis=1, keepdims=True), 1)
    precisions = np.where(counted, counted.cumsum(axis=1) / block.ranks / n_relevant, 0.0)
    factors = {"subtopics": relevant.sum(axis=0)}
    return Terms(_sum_subtopics(precisions), factors, divisor=_n_subtopics(judged))


@from_terms
def p_ia(block: JudgedBlock, *, k: int, rel: float = 1) -> Terms:
    """Compute the intent-aware precision: the mean precision of the subtopics.

    Formula: Σ subtopics of each document / subtopics / k.

    Args:
        k: Ranks to count.
        rel: The minimum grade that is relevant to a subtopic.

    Returns:
        (Q,) scores in [0, 1]. NaN if no document is relevant to any subtopic.

    Reference:
        Agrawal et al. 2009, doi:10.1145/1498759.1498766; ndeval `P-IA@k`.
    """
    relevant, judged = _relevant(block, rel)
    hits = np.where(block.ranks <= cut(k), relevant.sum(axis=0), 0).astype(np.float64)
    return Terms(hits, {"subtopics": relevant.sum(axis=0)}, divisor=_n_subtopics(judged) * k)


@from_terms
def strec(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Compute the subtopic recall: the share of the subtopics to which a retrieved document is relevant.

    Formula: subtopics of the retrieved documents / subtopics.

    Args:
        k: Number of ranks to count. None counts all.
        rel: The minimum grade that is relevant to a subtopic.

    Returns:
        (Q,) scores in [0, 1]. NaN if no document is relevant to any subtopic.

    Reference:
        Zhai, Cohen & Lafferty 2003, doi:10.1145/860435.860440; ndeval `strec@k`.
    """
    relevant, judged = _relevant(block, rel)
    hits = np.where(block.ranks <= cut(k), _gains(relevant, 1.0), 0.0)
    return Terms(hits, {"subtopics": relevant.sum(axis=0)}, divisor=_n_subtopics(judged))


@from_terms
def kilt_rprec(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Compute the R-precision by the best evidence set: the share of its n documents in the first n.

    Formula: max over sets of (documents of the set with rank ≤ n / n).

    Args:
        rel: The minimum grade that belongs to an evidence set.

    Returns:
        (Q,) scores in [0, 1]. NaN if no document belongs to any set.

    Reference:
        Petroni et al. 2021, doi:10.18653/v1/2021.naacl-main.200; KILT `Rprec`.
    """
    relevant, judged = _relevant(block, rel)
    sizes = judged.sum(axis=1)
    hits = relevant & (block.ranks <= sizes[:, np.newaxis])
    shares = np.where(sizes > 0, hits.sum(axis=1) / np.maximum(sizes, 1), -1.0)
    best = shares.argmax(axis=0)[np.newaxis]
    of_best = np.take_along_axis(hits, best[:, np.newaxis], axis=0)[0].astype(np.float64)
    size = np.take_along_axis(sizes, best, axis=0)[0].astype(np.float64)
    return Terms(of_best, {"evidence sets": relevant.sum(axis=0)}, divisor=size)


@from_terms
def kilt_r(block: JudgedBlock, *, k: int | None = None, rel: float = 1) -> Terms:
    """Compute the recall of evidence sets: the share of the sets that is complete within k entries.

    Formula: complete sets with place ≤ k / sets.

    The documents of a set that are in the ranking are one entry, which stands where the last of them does; a document
    of no set is an entry, too. Sets that end at the same document stand there in the order of the subtopics. Equal
    sets are one.

    Args:
        k: Entries to count; None counts all.
        rel: The minimum grade that belongs to an evidence set.

    Returns:
        (Q,) scores in [0, 1]. NaN if no document belongs to any set.

    Reference:
        Petroni et al. 2021, doi:10.18653/v1/2021.naacl-main.200; KILT `recall@k`.
    """
    relevant, judged = _relevant(block, rel)
    is_set = _is_set(judged)
    ends = np.where(relevant & is_set[:, np.newaxis], block.ranks, 0.0).max(axis=1)
    complete = is_set & (relevant.sum(axis=1) == judged.sum(axis=1))
    in_a_set = np.any(relevant, axis=0)
    places = np.empty(ends.shape)
    for subtopic, end in enumerate(ends):
        earlier = (ends < end) | ((ends == end) & (np.arange(len(ends)) < subtopic)[:, np.newaxis])
        sets_before = (earlier & (ends > 0)).sum(axis=0)
        places[subtopic] = end - (in_a_set & (block.ranks < end)).sum(axis=0) + sets_before
    counted = complete & (places <= cut(k))
    ending = relevant & counted[:, np.newaxis] & (block.ranks == ends[:, np.newaxis])
    n_ending = ending.sum(axis=0).astype(np.float64)
    return Terms(n_ending, {"evidence sets": relevant.sum(axis=0)}, divisor=sum_down(is_set))


def _is_set(judged: Bools) -> Bools:
    """Return (S, Q) True for subtopics with a relevant document that differ from all subtopics before."""
    is_set: Bools = np.any(judged, axis=1)
    for subtopic in range(1, len(judged)):
        is_set[subtopic] &= ~(judged[:subtopic] == judged[subtopic]).all(axis=1).any(axis=0)
    return is_set


def _divide_by_greedy(
    block: JudgedBlock, alpha: float, k: int | None, rel: float, discount: Callable[[Floats], Floats]
) -> Terms:
    """Return discounted gains over the discounted gains of the greedy list."""
    relevant, judged = _relevant(block, rel)
    gained = np.where(block.ranks <= cut(k), _gains(relevant, alpha), 0.0)
    discounts = discount(block.ranks)
    best = _greedy_gains(judged, alpha, cut(k))
    best_discounts = np.broadcast_to(discount(np.arange(1.0, len(best) + 1))[:, np.newaxis], best.shape)
    ideal = Terms(best / best_discounts, {"gain": best, "discount": best_discounts})
    factors = {"subtopics": relevant.sum(axis=0), "gain": gained, "discount": discounts}
    return Terms(gained / discounts, factors, divisor=ideal.total(), ideal=ideal)


def _relevant(block: JudgedBlock, rel: float) -> tuple[Bools, Bools]:
    """Return (S, H, Q) and (S, J, Q) True for subtopics to which retrieved and judged documents are relevant."""
    relevant = block.relevant(rel)
    if block.subtopic_grades is None or block.judged_subtopic_grades is None:
        return relevant[np.newaxis], block.judged_grades[np.newaxis] >= rel
    return (block.subtopic_grades >= rel) & relevant, block.judged_subtopic_grades >= rel


def _n_subtopics(judged: Bools) -> Floats:
    """Return (Q,) numbers of subtopics with a relevant document."""
    return sum_down(np.any(judged, axis=1))


def _gains(relevant: Bools, alpha: float) -> Floats:
    """Return the (H, Q) gain of each document, given the documents above it."""
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be in [0, 1], found {alpha:g}")
    worth = np.cumprod([1.0, *[1.0 - alpha] * relevant.shape[1]])
    n_above = relevant.cumsum(axis=1) - relevant
    return _sum_subtopics(np.where(relevant, worth[n_above], 0.0))


def _greedy_gains(judged: Bools, alpha: float, depth: float) -> Floats:
    """Return the (D, Q) gains of the greedy list by rank, 0 below its end. D is at least 1."""
    n_queries = judged.shape[2]
    queries = np.arange(n_queries)
    unused: Bools = np.any(judged, axis=0)
    worth = np.ones((len(judged), 1, n_queries))
    gained: list[npt.NDArray[np.float64]] = [np.zeros(n_queries)]
    for _ in range(int(min(depth, unused.sum(axis=0).max(initial=0)))):
        gains = np.where(unused, _sum_subtopics(np.where(judged, worth, 0.0)), -1.0)
        chosen = gains.argmax(axis=0)  # the first of equals, which has the greatest id
        gained.append(np.maximum(gains[chosen, queries], 0.0))
        unused[chosen, queries] = False
        worth[:, 0] *= np.where(judged[:, chosen, queries], 1.0 - alpha, 1.0)
    return np.array(gained[1:] or gained)


def _sum_subtopics(values: Floats) -> Floats:
    """Return (H, Q) sums over the subtopics, in their order."""
    return sum_down(values.reshape(len(values), -1)).reshape(values.shape[1:])
