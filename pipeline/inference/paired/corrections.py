"""P-values corrected for the number of tests in their family."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from metrics.block import Floats

__all__ = ["benjamini_hochberg", "exceedances", "holm", "westfall_young"]


def holm(p_values: Floats) -> Floats:
    """(H,): corrected so that any true hypothesis of the family is rejected at most at the level's rate.

    Reference:
        Holm 1979, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 65-70.
    """
    order = np.argsort(p_values, kind="stable")
    left = np.arange(len(p_values), 0, -1)  # hypotheses that are not rejected yet
    return _placed(np.maximum.accumulate(np.minimum(p_values[order] * left, 1.0)), order)


def benjamini_hochberg(p_values: Floats) -> Floats:
    """(H,): corrected so that the expected share of true hypotheses among those rejected is at most the level.

    It holds for independent tests and positively dependent ones.

    Reference:
        Benjamini & Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x.
    """
    order = np.argsort(-p_values, kind="stable")
    ranks = np.arange(len(p_values), 0, -1)
    return _placed(np.minimum.accumulate(np.minimum(p_values[order] * len(p_values) / ranks, 1.0)), order)


def westfall_young(p_values: Floats, jointly: Floats, ascending: npt.NDArray[np.int64]) -> Floats:
    """(H,): step-down maxT. Corrected as `holm`, but by how the statistics of the family move together.

    Args:
        p_values: (H,) uncorrected; no corrected one is less.
        jointly: (H,) how often the greatest statistic among a hypothesis and all that are before it in `ascending`
            reaches the hypothesis's own.
        ascending: (H,) the hypotheses by their statistics over the sample.

    Reference:
        Westfall & Young 1993, Resampling-Based Multiple Testing, algorithm 2.8 with statistics in place of p-values.
    """
    descending = ascending[::-1]
    return _placed(np.maximum.accumulate(np.maximum(p_values, jointly)[descending]), descending)


def exceedances(
    statistics: Floats, thresholds: Floats, floor: Floats | float = 0.0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """How often a statistic reaches its threshold, alone and together with those before it.

    An undefined statistic counts as one that does.

    Args:
        statistics: (H, B) of hypotheses in ascending order of what they are over the sample.
        thresholds: (H,) what they are over the sample.
        floor: (B,) the greatest of the hypotheses before these.

    Returns:
        (H,) how many of B statistics reach it, (H,) how many of the greatest down to each do, and (B,) the greatest of
        all.
    """
    greatest = np.maximum.accumulate(np.maximum(statistics, floor), axis=0)
    alone, jointly = ((~(each < thresholds[:, np.newaxis])).sum(axis=1) for each in (statistics, greatest))
    return alone, jointly, greatest[-1]


def _placed(values: Floats, order: npt.NDArray[np.int64]) -> Floats:
    """The values, which are in this order, in the order of the hypotheses."""
    placed = np.empty_like(values)
    placed[order] = values
    return placed
