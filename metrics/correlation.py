"""Rank correlation between a ranking and the grades.

Compared are the pairs of judged documents that were retrieved (grade of at least 0); unjudged documents have no grade
to disagree with. Ranks have no ties: the tie convention has broken them. A query with fewer than two such documents has
no pair to compare and is undefined, never 0: an empty list is not a perfect one.
"""

from __future__ import annotations

import numpy as np

from metrics.block import MANY_ROWS, Bools, Floats, JudgedBlock, cut, sum_down
from metrics.terms import Summed, Terms

__all__ = ["ap_corr", "kendall_distance", "kendall_tau"]


@Summed
def kendall_distance(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """Kendall tau distance: the pairs of documents in which the more relevant one stands below the less relevant one.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.

    Returns:
        (Q,), a count of inversions, lower is better; NaN where fewer than two judged documents were retrieved within k.

    Reference:
        Kendall 1938, doi:10.1093/biomet/30.1-2.81.
    """
    _, discordant, n_compared = _pairs(block, k)
    return Terms(discordant, defined=n_compared > 1)


@Summed
def kendall_tau(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """Kendall's tau-b: concordant minus discordant pairs, corrected for equal grades.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.

    Returns:
        (Q,), in [-1, 1]; NaN where the judged documents retrieved within k are fewer than two or all of one grade.

    Reference:
        Kendall 1945, doi:10.1093/biomet/33.3.239; scipy.stats.kendalltau.
    """
    concordant, discordant, n_compared = _pairs(block, k)
    n_pairs = n_compared * (n_compared - 1) / 2
    untied = sum_down(concordant + discordant)
    factors = {"concordant": concordant, "discordant": discordant}
    return Terms(concordant - discordant, factors, divisor=np.sqrt(n_pairs * untied))


@Summed
def ap_corr(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """AP correlation: Kendall's tau that counts a disorder the more, the higher it stands.

    Of n documents compared, the one at place i > 1 adds (concordant - discordant) / (i - 1), counted over the pairs
    that it makes with those above; the sum is divided by n - 1. A pair of equal grades is neither, so the figure is the
    mean over all orders in which documents of equal grade could truly stand, and a perfect ranking scores 1 only where
    all grades differ.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.

    Returns:
        (Q,), in [-1, 1]; NaN where the judged documents retrieved within k are fewer than two or all of one grade.

    Reference:
        Yilmaz, Aslam & Robertson 2008, doi:10.1145/1390334.1390435; equal grades as in the accuracy of Urbano & Marrero
        2017, doi:10.1145/3121050.3121106, where it is the estimated ranking that has ties.
    """
    concordant, discordant, n_compared = _pairs(block, k)
    compared = _compared(block, k)
    above = compared.cumsum(axis=0) - compared
    share = (concordant - discordant) / np.maximum(above, 1)
    return Terms(
        share,
        {"concordant": concordant, "discordant": discordant, "above": above},
        divisor=n_compared - 1,
        defined=sum_down(concordant + discordant) > 0,
    )


def _compared(block: JudgedBlock, k: int | None) -> Bools:
    """(H, Q): the judged documents within k."""
    return (block.grades >= 0) & (block.ranks <= cut(k))


def _pairs(block: JudgedBlock, k: int | None) -> tuple[Floats, Floats, Floats]:
    """The concordant and the discordant pairs that each document makes with those above, (H, Q); documents compared."""
    compared = _compared(block, k)
    grades = np.where(compared, block.grades, np.nan)  # a comparison with NaN is false both ways
    concordant = np.zeros(grades.shape)
    discordant = np.zeros(grades.shape)
    distinct = np.unique(grades[compared])
    if MANY_ROWS * len(distinct) < len(grades):
        for grade in distinct:
            at_grade = grades == grade
            concordant[at_grade] = (grades > grade).cumsum(axis=0)[at_grade]
            discordant[at_grade] = (grades < grade).cumsum(axis=0)[at_grade]
        return concordant, discordant, sum_down(compared)
    for row in range(1, len(grades)):
        concordant[row] = (grades[:row] > grades[row]).sum(axis=0)
        discordant[row] = (grades[:row] < grades[row]).sum(axis=0)
    return concordant, discordant, sum_down(compared)
