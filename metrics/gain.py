"""Gain-based metrics: what the retrieved documents are worth, discounted by rank.

A document's gain comes from its grade alone; unjudged documents and negative grades gain nothing. `rel` never touches a
gain.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.block import Floats, JudgedBlock, check_exponent, cut, divide, sum_down

__all__ = ["Discount", "Gain", "cg", "dcg", "ndcg"]

Gain = Literal["linear", "exponential"]
Discount = Literal["log2", "jarvelin"]


def cg(block: JudgedBlock, *, k: int | None = None, gain: Gain = "linear") -> Floats:
    """Cumulative gain: the sum of the retrieved documents' gains.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.
        gain: `linear` (the grade) or `exponential` (2**grade - 1).

    Returns:
        (Q,), 0 or more; never NaN.

    Raises:
        ValueError: a grade is too great for 2**grade.

    Reference:
        Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418.
    """
    return sum_down(np.where(block.ranks <= cut(k), _gains(block, gain), 0.0))


def dcg(
    block: JudgedBlock,
    *,
    k: int | None = None,
    gain: Gain = "linear",
    discount: Discount = "log2",
    base: float = 2,
) -> Floats:
    """Discounted cumulative gain: each document's gain divided by a discount that grows with its rank.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count; None counts all.
        gain: `linear` (the grade) or `exponential` (2**grade - 1).
        discount: `log2` is log2(rank + 1); `jarvelin` is max(1, log_base(rank)), the original form.
        base: the base of the `jarvelin` discount, above 1.

    Returns:
        (Q,), 0 or more; never NaN.

    Raises:
        ValueError: `base` is not above 1, or a grade is too great for 2**grade.

    Reference:
        Järvelin & Kekäläinen 2000 and 2002, doi:10.1145/582415.582418; Burges et al. 2005 for the exponential gain
        and the log2(rank + 1) discount, which is that of trec_eval `ndcg_cut`.
    """
    gained = np.where(block.ranks <= cut(k), _gains(block, gain), 0.0)
    return sum_down(gained / _discounts(block.ranks, discount, base))


def ndcg(
    block: JudgedBlock,
    *,
    k: int | None = None,
    gain: Gain = "linear",
    discount: Discount = "log2",
    base: float = 2,
) -> Floats:
    """Normalised discounted cumulative gain: DCG over that of the ideal list.

    The ideal list is all judged documents of the query, the best grade first, cut at k: never only the retrieved ones.

    Args:
        block: the judged documents each query retrieved.
        k: ranks to count in both lists; None counts all.
        gain: `linear` (the grade) or `exponential` (2**grade - 1).
        discount: `log2` is log2(rank + 1); `jarvelin` is max(1, log_base(rank)), the original form.
        base: the base of the `jarvelin` discount, above 1.

    Returns:
        (Q,), in [0, 1]; NaN where the query has no judged document with positive gain.

    Raises:
        ValueError: `base` is not above 1, or a grade is too great for 2**grade.

    Reference:
        Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418, with the log2(rank + 1) discount of trec_eval
        `ndcg_cut` and, without k, `ndcg`.
    """
    return divide(
        dcg(block, k=k, gain=gain, discount=discount, base=base),
        dcg(block.ideal(), k=k, gain=gain, discount=discount, base=base),
    )


def _gains(block: JudgedBlock, gain: Gain) -> Floats:
    grades: Floats = np.fmax(block.grades, 0.0)  # fmax turns the padding's NaN into 0 as well
    if gain == "linear":
        return grades
    check_exponent(grades.max(initial=0.0))
    return np.exp2(grades) - 1.0


def _discounts(ranks: Floats, discount: Discount, base: float) -> Floats:
    if discount == "log2":
        return np.log2(ranks + 1.0)
    if not base > 1:
        raise ValueError(f"base must be above 1, found {base:g}")
    logarithms: Floats = np.log2(ranks) / np.log2(base)
    return np.fmax(1.0, logarithms)
