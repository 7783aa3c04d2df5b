"""What a difference comes to, in a word: its whole interval is held against the least difference that matters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pipeline.verdicts import Comparison

__all__ = ["FEW", "Reading", "is_alike", "reading", "rule"]

FEW = 30
"""Clusters under which a slice is shown and not judged."""

Reading: TypeAlias = Literal["better", "worse", "no difference that matters", "unclear"]


def reading(line: Comparison, matters: Mapping[str, float]) -> Reading:
    """What a difference comes to.

    Args:
        line: the comparison.
        matters: by measure the least difference that matters; 0 where it has none.
    """
    margin = matters.get(line.measure, 0.0)
    line = line.without_rounding()
    if line.ci_low is None or line.ci_high is None or line.mark == "sparse" or line.n_clusters < FEW:
        return "unclear"
    if line.ci_low > margin:
        return "better"
    if line.ci_high < -margin:
        return "worse"
    return "no difference that matters" if -margin <= line.ci_low and line.ci_high <= margin else "unclear"


def rule(measure: str, matters: Mapping[str, float]) -> str:
    """How the words are found, in a sentence."""
    margin = matters.get(measure)
    if margin is None:
        ends, within = ("0", "0"), "the two score the same on every query"
    else:
        ends = (f"+{margin:g}", f"−{margin:g}")
        within = f"the whole interval lies between −{margin:g} and +{margin:g}"
    return (
        f"{measure}: better where the whole interval lies above {ends[0]}, worse where it lies below {ends[1]}, "
        f"no difference that matters where {within}, unclear otherwise; each by itself, whatever the number of tests"
    )


def is_alike(line: Comparison, alpha: float) -> bool:
    """Whether two models are not distinguishable: the test, corrected where it was, does not tell them apart.

    Args:
        line: the comparison.
        alpha: the level of the test, such as 0.05.
    """
    p_value = line.p_value if line.p_corrected is None else line.p_corrected
    return p_value is None or p_value >= alpha
