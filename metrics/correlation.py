"""Rank correlation between a ranking and the grades.

Compared are the pairs of judged documents that were retrieved (grade of at least 0); unjudged documents have no grade
to disagree with. Ranks have no ties: the tie convention has broken them. A query with fewer than two such documents has
no pair to compare and is undefined, never 0: an empty list is not a perfect one.
"""

from __future__ import annotations

import numpy as np

from metrics.block import Floats, JudgedBlock, cut, divide, sum_down

__all__ = ["kendall_distance", "kendall_tau"]


def kendall_distance(block: JudgedBlock, *, k: int | None = None) -> Floats:
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
    return np.where(n_compared > 1, discordant, np.nan)


def kendall_tau(block: JudgedBlock, *, k: int | None = None) -> Floats:
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
    untied = concordant + discordant
    return divide(concordant - discordant, np.sqrt(n_pairs * untied))


def _pairs(block: JudgedBlock, k: int | None) -> tuple[Floats, Floats, Floats]:
    """(Q,) each: the concordant pairs, the discordant pairs, the documents compared."""
    compared = (block.grades >= 0) & (block.ranks <= cut(k))
    grades = np.where(compared, block.grades, np.nan)  # a comparison with NaN is false both ways
    concordant = np.zeros(grades.shape[1])
    discordant = np.zeros(grades.shape[1])
    for row in range(1, len(grades)):
        concordant += (grades[:row] > grades[row]).sum(axis=0)
        discordant += (grades[:row] < grades[row]).sum(axis=0)
    return concordant, discordant, sum_down(compared)
