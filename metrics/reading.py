"""Metrics of a reader model: when the reader stops, and what is gained by then.

A reader who has read rank i goes on to the next with a chance C(i); the weight of a rank is the chance that it is read,
over the ranks that are read on average. A document gains grade / max_grade, and an unjudged one nothing. The evaluation
passes the maximum grade of the dataset's judgments as `max_grade` unless the measure names one. A grade above it
raises ValueError.

Where grades become probabilities, `max_grade` is the grade of a perfect document. The evaluation passes the maximum
grade of the dataset's judgments (1 where none is above 0, for then nothing is gained) unless the measure names one, so
that it never depends on a block. A grade above it raises ValueError.

Reference:
    Moffat, Bailey, Scholer & Thomas 2017, doi:10.1145/3052768, the framework C/W/L; cwl_eval 1.0.12, which reads 1,000
    ranks: `insq@1000` is its INSQ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from rankledger.metrics.block import (
    Floats,
    JudgedBlock,
    Terms,
    check_exponent,
    check_grades,
    cut,
    from_terms,
    greatest_grade,
    sum_down,
)

__all__ = ["bpm", "err", "insq", "inst", "nearly_err", "nerr", "rankscore", "rbp", "rbp_resid", "sdcg"]

PatienceDiscount = Literal["none", "reciprocal", "geometric", "inverse_square"]


@from_terms
def sdcg(block: JudgedBlock, *, k: int, max_grade: float | None = None) -> Terms:
    """Compute the scaled DCG: DCG over the DCG of k perfect documents, even if there are fewer.

    Formula: Σ gain / log2(rank + 1) / Σ_{i≤k} 1 / log2(i + 1), gain = grade / max_grade.

    Args:
        k: Ranks to count.
        max_grade: The grade that gains 1; by default the evaluation's maximum.

    Returns:
        (Q,) scores in [0, 1], never NaN.

    Reference:
        Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418, as a model of a reader; cwl_eval 1.0.12
        `NDCGCWLMetric`, SDCG of ir_measures.
    """
    gained = _gains(block, k, max_grade)
    discounts = np.log2(block.ranks + 1.0)
    perfect = float((1.0 / np.log2(np.arange(2.0, cut(k) + 2))).sum())
    return Terms(gained / discounts, {"gain": gained, "discount": discounts}, divisor=perfect)


@from_terms
def insq(block: JudgedBlock, *, t: float = 1.0, k: int | None = None, max_grade: float | None = None) -> Terms:
    """Compute INSQ: the mean gain of the documents read by a reader who wants a total gain of t.

    Formula: Σ gain / (rank + 2t - 1)² / Σ_{i≤k} 1 / (i + 2t - 1)², gain = grade / max_grade.

    Args:
        t: The gain that the reader wants, above 0.5.
        k: Ranks that are read at most; None for a list without end.
        max_grade: The grade that gains 1; by default the evaluation's maximum.

    Returns:
        (Q,) scores in [0, 1], never NaN.

    Reference:
        Moffat, Scholer & Thomas 2012, doi:10.1145/2407085.2407092; cwl_eval 1.0.12 `INSQCWLMetric`.
    """
    gained = _gains(block, k, max_grade)
    _check_wanted(t)
    read = float(((np.arange(1.0, min(cut(k), _SUMMED) + 1) + (2.0 * t - 1)) ** -2.0).cumsum()[-1])  # as terms are
    if cut(k) > _SUMMED:
        below = np.array([_SUMMED, cut(k)]) + 2.0 * t
        read += float(-np.diff(_inverse_squares(below))[0])
    reached = (block.ranks + (2.0 * t - 1)) ** -2.0
    return Terms(gained * reached, {"gain": gained, "reached": reached}, divisor=read)


@from_terms
def inst(block: JudgedBlock, *, t: float = 1.0, k: int | None = None, max_grade: float | None = None) -> Terms:
    """Compute INST: INSQ for a reader who is more likely to stop the more of t was gained.

    Formula: Σ gain W(rank) / Σ_{i≤k} W(i), W(i + 1) / W(i) = ((i + 2t - cg - 1) / (i + 2t - cg))², cg gained to i.

    Args:
        t: The gain that the reader wants, above 0.5.
        k: Ranks that are read at most; None for a list without end.
        max_grade: The grade that gains 1; by default the evaluation's maximum.

    Returns:
        (Q,) scores in [0, 1], never NaN.

    Reference:
        Moffat, Bailey, Scholer & Thomas 2015, doi:10.1145/2838931.2838938; cwl_eval 1.0.12 `INSTCWLMetric`.
    """
    gained = _gains(block, k, max_grade)
    _check_wanted(t)
    ranks = np.minimum(block.ranks, cut(k))  # what is below the cutoff, and padding, gains nothing
    # Between two judged documents nothing is gained, and the chances to read on are a telescoping product.
    n_rows, n_queries = gained.shape
    begin, reached = np.ones(n_queries), np.ones(n_queries)
    effort, total = np.full(n_queries, 2.0 * t - 1), np.zeros(n_queries)
    weights = np.zeros((n_rows, n_queries))
    for row in range(n_rows):
        is_hit = gained[row] > 0
        end = np.where(is_hit, ranks[row], begin)
        scale = reached * (begin + effort) ** 2
        total += scale * (_inverse_squares(begin + effort) - _inverse_squares(end + effort))
        weight = scale / (end + effort) ** 2
        weights[row] = np.where(is_hit, weight, 0.0)
        wanted_then = effort - gained[row]
        on = ((end + wanted_then) / (end + wanted_then + 1)) ** 2
        total += np.where(is_hit, weight, 0.0)
        reached = np.where(is_hit, weight * on, reached)
        begin, effort = np.where(is_hit, end + 1, begin), np.where(is_hit, wanted_then, effort)
    rest = reached * (begin + effort) ** 2
    total += rest * (_inverse_squares(begin + effort) - _inverse_squares(cut(k) + 1 + effort))
    return Terms(gained * weights, {"gain": gained, "reached": weights}, divisor=total)


@from_terms
def bpm(block: JudgedBlock, *, k: int, t: float = 1.0, max_grade: float | None = None) -> Terms:
    """Compute the bejeweled player model: the mean gain of the documents read until t is gained, or k are read.

    Formula: Σ gain / n over the first n ranks, n = min(k, first rank with t gained), gain = grade / max_grade.

    Args:
        k: Ranks that are read at most.
        t: The gain with which the reader stops, above 0.
        max_grade: The grade that gains 1; by default the evaluation's maximum.

    Returns:
        (Q,) scores in [0, 1], never NaN.

    Reference:
        Zhang et al. 2017, doi:10.1145/3077136.3080841, the static model; cwl_eval 1.0.12 `BPMCWLMetric`.
    """
    if not t > 0:
        raise ValueError(f"t must be above 0, found {t:g}")
    gained = _gains(block, k, max_grade)
    satisfied = gained.cumsum(axis=0) >= t
    stops = np.where(satisfied, block.ranks, cut(k)).min(axis=0)
    read = block.ranks <= stops
    return Terms(np.where(read, gained, 0.0), {"gain": gained, "read": read}, divisor=stops)


@from_terms
def nearly_err(
    block: JudgedBlock,
    *,
    k: int,
    discount: PatienceDiscount = "none",
    p: float = 0.9,
    t: float = 1.0,
    max_grade: float | None = None,
) -> Terms:
    """Compute not (but nearly) ERR: the mean gain of the documents read until one satisfies the reader.

    Formula: Σ gain reached / Σ_{i≤k} reached(i), reached(i) = discount(i) Π_{j<i} (1 - gain), gain = grade / max_grade.

    Args:
        k: Ranks that are read at most.
        discount: What else makes the reader stop: `none` is NERR8, nothing but the end at k; `reciprocal` NERR9, 1 / i;
            `geometric` NERR10, p^(i - 1); `inverse_square` NERR11, as insq, (2t / (i + 2t - 1))².
        p: persistence, the chance of reading on, in (0, 1), for `geometric`.
        t: The gain that the reader wants, above 0.5, for `inverse_square`.
        max_grade: The grade that gains 1; by default the evaluation's maximum.

    Returns:
        (Q,) scores in [0, 1], never NaN.

    Reference:
        Azzopardi, Mackenzie & Moffat 2021, doi:10.1145/3471158.3472239, equations 8 to 11; cwl_eval 1.0.12
        `NERReq8CWLMetric` to `NERReq11CWLMetric`.
    """
    gained = _gains(block, k, max_grade)
    discount_at, down_to = _make_discounts(discount, p, t)
    inside = block.ranks <= cut(k)
    ranks = np.where(inside, block.ranks, 1.0)
    unsatisfied = (1.0 - gained).cumprod(axis=0)
    reach = np.where(inside, np.vstack([np.ones_like(unsatisfied[:1]), unsatisfied[:-1]]), 0.0)
    discounts, weights = discount_at(ranks), down_to(ranks)
    above = np.vstack([np.zeros_like(weights[:1]), weights[:-1]])
    last = np.where(inside, weights, 0.0).max(axis=0)
    between = np.maximum(weights - discounts - above, 0.0)
    below = down_to(np.full_like(last, cut(k))) - last
    reached = reach * discounts
    read = sum_down(reach * between + reached) + unsatisfied[-1] * below  # rounded as the terms, it is never less
    return Terms(gained * reached, {"gain": gained, "reached": reached}, divisor=read)


_Weight = Callable[[Floats], Floats]


def _make_discounts(discount: PatienceDiscount, p: float, t: float) -> tuple[_Weight, _Weight]:
    """Weights of ranks, and their sums from the top, up to a common factor."""
    if discount == "none":
        return np.ones_like, np.positive
    if discount == "reciprocal":
        return np.reciprocal, _harmonic
    if discount == "geometric":
        if not 0 < p < 1:
            raise ValueError(f"p must be between 0 and 1, found {p:g}")
        return lambda ranks: p ** (ranks - 1), lambda ranks: (1 - p**ranks) / (1 - p)
    _check_wanted(t)
    all_ranks = float(_inverse_squares(np.array([2.0 * t]))[0])
    return lambda ranks: (ranks + (2.0 * t - 1)) ** -2.0, lambda ranks: all_ranks - _inverse_squares(ranks + 2.0 * t)


def _gains(block: JudgedBlock, k: int | None, max_grade: float | None) -> Floats:
    """Return the (H, Q) gains of documents within the cutoff, in [0, 1]."""
    maximum = check_grades(block, max_grade)
    return np.where(block.ranks <= cut(k), np.fmax(block.grades, 0.0) / maximum, 0.0)


def _check_wanted(t: float) -> None:
    if not t > 0.5:
        raise ValueError(f"t must be above 0.5, found {t:g}")


_SUMMED = 10_000  # ranks whose weights are added up one by one: rounded as the terms, they are never less
_FAR = 30  # from where on the series below is exact in doubles


def _inverse_squares(first: Floats) -> Floats:
    """Return Σ 1 / x² over x = first, first + 1, …, the trigamma function. 0 for infinity.

    Args:
        first: Of any shape, above 0.

    Reference:
        Abramowitz & Stegun 1964, 6.4.12.
    """
    begun = np.zeros_like(first)
    for step in range(_FAR):
        begun += (first + step) ** -2.0
    far = first + _FAR
    square = far**-2.0
    return begun + (1 / far + square / 2 + square / far * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30))))


def _harmonic(ranks: Floats) -> Floats:
    """Return Σ 1 / i over i = 1 … rank. Ranks are integers from 0.

    Reference:
        Abramowitz & Stegun 1964, 6.3.18.
    """
    near = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1.0, _FAR))])
    far = np.maximum(ranks, _FAR)
    square = far**-2.0
    series = np.log(far) + np.euler_gamma + 0.5 / far - square * (1 / 12 - square * (1 / 120 - square / 252))
    numbers: Floats = np.where(ranks < _FAR, near[np.minimum(ranks, _FAR - 1).astype(np.intp)], series)
    return numbers


@from_terms
def rbp(
    block: JudgedBlock,
    *,
    p: float = 0.8,
    k: int | None = None,
    gain: Literal["binary", "graded"] = "binary",
    rel: float = 1,
    max_grade: float | None = None,
) -> Terms:
    """Compute the rank-biased precision: (1 - p) Σ gain p**(rank - 1), not normalized by an ideal list.

    Formula: (1 - p) Σ gain p^(rank - 1).

    Args:
        p: Persistence, the probability of reading on, in (0, 1).
        k: Number of ranks to count. None counts all.
        gain: `binary` is 1 for a relevant document; `graded` is grade / max_grade.
        rel: Minimum grade of a relevant document (binary gain).
        max_grade: The grade that gains 1, for the graded gain; by default the evaluation's maximum.

    Returns:
        (Q,) scores in [0, 1], never NaN.

    Reference:
        Moffat & Zobel 2008, doi:10.1145/1416950.1416952; the graded form as in the TREC-COVID tables.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1, found {p:g}")
    if gain == "binary":
        gained = block.relevant(rel).astype(np.float64)
    else:
        gained = np.fmax(block.grades, 0.0) / check_grades(block, max_grade)
    gained = np.where(block.ranks <= cut(k), gained, 0.0)
    reached = p ** (block.ranks - 1)
    return Terms(gained * reached, {"gain": gained, "reached": reached}, scale=1 - p)


@from_terms
def rbp_resid(
    block: JudgedBlock, *, p: float = 0.8, k: int | None = None, below: Literal["counted", "if_unjudged"] = "counted"
) -> Terms:
    """Compute the residual of rank-biased precision: its rise if every unjudged document were relevant.

    Formula: 1 - (1 - p) Σ p^(rank - 1) of the judged documents.

    All ranks together weigh 1, and those below rank i weigh p**i. The unjudged documents (negative grades included)
    and the documents below the list are unknown: each judged document adds the weight of the ranks between
    the judged one before it and itself, and what is below the last of them is added in the end.

    Args:
        p: Persistence, the probability of reading on, in (0, 1).
        k: Number of ranks to count. None counts all.
        below: `counted` is the definition; `if_unjudged` is trec_eval 10's form, in which a list without unjudged
            documents has no residual, not even for what would follow it.

    Returns:
        (Q,) scores in [0, 1], never NaN; by definition 1 where nothing was retrieved.

    Reference:
        Moffat & Zobel 2008, doi:10.1145/1416950.1416952, section 5.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1, found {p:g}")
    is_judged = (block.grades >= 0) & (block.ranks <= cut(k))
    last = np.maximum.accumulate(np.where(is_judged, block.ranks, 0.0), axis=0)
    before = np.vstack([np.zeros((1, last.shape[1])), last[:-1]])
    counted = is_judged.sum(axis=0) < np.minimum(block.n_retrieved, cut(k)) if below == "if_unjudged" else True
    terms = np.where(is_judged & counted, p**before - p ** (block.ranks - 1), 0.0)
    factors = {"judged": is_judged, "judged before": before}
    return Terms(terms, factors, rest=np.where(counted, p ** last[-1], 0.0))


@from_terms
def err(
    block: JudgedBlock,
    *,
    k: int | None = None,
    grades: Literal["exponential", "probability"] = "exponential",
    max_grade: float | None = None,
    continuation: float = 1.0,
) -> Terms:
    """Compute the expected reciprocal rank: 1 over the rank at which a reader is satisfied, on average.

    Formula: Σ 1/i · R_i · continuation^(i - 1) · Π_{j<i} (1 - R_j).

    The sum is over ranks i, R_i being the chance that the document at rank i satisfies.

    Args:
        k: Number of ranks to count. None counts all.
        grades: `exponential` makes R = (2**grade - 1) / 2**max_grade; `probability` takes grades in [0, 1] as they are.
        max_grade: The maximum grade, for `exponential`; by default the evaluation's maximum.
        continuation: The chance that an unsatisfied reader goes on, in (0, 1]; 1 is the usual ERR.

    Returns:
        (Q,) scores in [0, 1], never NaN.

    Reference:
        Chapelle et al. 2009, doi:10.1145/1645953.1646033; gdeval takes max_grade 4.
    """
    if not 0 < continuation <= 1:
        raise ValueError(f"continuation must be above 0 and at most 1, found {continuation:g}")
    graded = np.fmax(block.grades, 0.0)
    if grades == "probability":
        if greatest_grade(block) > 1:
            raise ValueError(f"a judgment has grade {greatest_grade(block):g}, not a probability; rescale the grades")
        satisfied = graded
    else:
        maximum = check_grades(block, max_grade)
        check_exponent(maximum)
        satisfied = (np.exp2(graded) - 1.0) / np.exp2(maximum)
    unsatisfied = (1.0 - satisfied).cumprod(axis=0)
    reached = np.vstack([np.ones((1, satisfied.shape[1])), unsatisfied[:-1]])
    terms = satisfied * reached / block.ranks * continuation ** (block.ranks - 1)
    return Terms(np.where(block.ranks <= cut(k), terms, 0.0), {"satisfied": satisfied, "reached": reached})


@from_terms
def nerr(
    block: JudgedBlock,
    *,
    k: int | None = None,
    grades: Literal["exponential", "probability"] = "exponential",
    max_grade: float | None = None,
    continuation: float = 1.0,
) -> Terms:
    """Compute the normalized expected reciprocal rank: ERR over the ERR of the ideal list.

    Formula: err / err of all judged documents, best first.

    Args:
        k: Ranks to count in both lists; None counts all.
        grades: `exponential` makes R = (2**grade - 1) / 2**max_grade; `probability` takes grades in [0, 1] as they are.
        max_grade: The maximum grade, for `exponential`; by default the evaluation's maximum.
        continuation: The chance that an unsatisfied reader goes on, in (0, 1].

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no judged document with a grade above 0.

    Reference:
        Sakai & Song 2011, doi:10.1145/2009916.2010055, nERR of NTCIREVAL. The measures that ir_measures calls NERR8 to
        NERR11 are others.
    """
    ideal = err.terms(block.ideal(), k=k, grades=grades, max_grade=max_grade, continuation=continuation)
    gained = err.terms(block, k=k, grades=grades, max_grade=max_grade, continuation=continuation)
    return replace(gained, divisor=ideal.total(), ideal=ideal)


@from_terms
def rankscore(block: JudgedBlock, *, half_life: float = 5.0, k: int | None = None, rel: float = 1) -> Terms:
    """Compute Breese's half-life utility: relevant documents weighted by 2**(-(rank - 1) / half_life), over the ideal.

    Formula: Σ 2^(-(rank - 1) / half_life) / its greatest value.

    Args:
        half_life: The ranks by which the weight halves, above 0.
        k: Ranks to count in the list and in the best possible one; None counts all.
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,) scores in [0, 1]. NaN if the query has no relevant document.

    Reference:
        Breese, Heckerman & Kadie 1998, arXiv:1301.7363, with (rank - 1) / half_life in the exponent where the paper has
        (rank - 1) / (half_life - 1).
    """
    if not half_life > 0:
        raise ValueError(f"half_life must be above 0, found {half_life:g}")
    ideal = _utility(block.ideal(), half_life, k, rel)
    return replace(_utility(block, half_life, k, rel), divisor=ideal.total(), ideal=ideal)


def _utility(block: JudgedBlock, half_life: float, k: int | None, rel: float) -> Terms:
    hit = block.relevant(rel) & (block.ranks <= cut(k))
    weight = np.exp2(-(block.ranks - 1) / half_life)
    return Terms(np.where(hit, weight, 0.0), {"relevant": hit, "weight": weight})
