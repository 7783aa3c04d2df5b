"""Resampled figures to confidence intervals: percentile, basic and BCa, and whether an interval may be trusted.

Efron & Tibshirani 1993, chapters 13 and 14; Davison & Hinkley 1997, chapter 5, for the basic interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.pipeline.types.results import LEAST_CLUSTERS

__all__ = ["ROUNDING", "Method", "Resampled", "interval", "known"]

Method: TypeAlias = Literal["percentile", "basic", "bca"]

ROUNDING = 1e-9
"""Standard errors up to which figures are equal: 0.1 + 0.2 and 0.3 are, though as doubles they are apart."""

_NORMAL = NormalDist()


@dataclass(frozen=True, eq=False)
class Resampled:
    """A figure, or a difference of figures, with its resamples.

    Attributes:
        estimate: over the sample; NaN where it is undefined.
        centre: the same of the rounded numbers, which alone can be compared with the resamples: equal is equal.
        resamples: (B,) the figure over each resample; NaN where one leaves it undefined.
        influence: (K,) how much each cluster moves the figure; the sum is 0.
        n_queries: queries that count.
        n_clusters: clusters that they are in.
        n_away: the effective number of clusters whose value is not the most frequent one; for a difference, not 0.
            Clusters of one size count one each; where a few outweigh the others they count as fewer.
    """

    estimate: float
    centre: float
    resamples: Floats
    influence: Floats
    n_queries: int
    n_clusters: int
    n_away: float

    @property
    def mark(self) -> Literal["", "sparse", "degenerate"]:
        """Why its interval is not to be trusted: the sample is constant (`degenerate`) or nearly so (`sparse`)."""
        if self.n_away == 0:
            return "degenerate"
        return "sparse" if self.n_away < LEAST_CLUSTERS else ""

    @property
    def std_error(self) -> float:
        """The standard deviation over the resamples; NaN where one of them is undefined."""
        shifted = self.resamples - self.resamples[0]  # so that equal figures have none at all
        return float(shifted.std(ddof=1))

    @cached_property
    def ascending(self) -> Floats:
        """(B,): the resamples in order."""
        return np.sort(self.resamples)


def interval(resampled: Resampled, method: Method, confidence: float) -> tuple[float | None, float | None]:
    """The two ends of a confidence interval; (None, None) where a resample leaves the figure undefined.

    Args:
        resampled: the figure with its resamples.
        method: `percentile`, the quantiles of the resamples; `basic`, these mirrored at the estimate; `bca`, the
            quantiles that are bias-corrected and accelerated.
        confidence: how often the interval should cover, in (0, 1).
    """
    if not math.isfinite(resampled.estimate) or not math.isfinite(resampled.ascending[-1]):
        return None, None
    tail = (1 - confidence) / 2
    if method == "bca":
        lower, upper = _corrected(resampled, tail), _corrected(resampled, 1 - tail)
        return _quantile(resampled, lower), _quantile(resampled, upper)
    low, high = _quantile(resampled, tail), _quantile(resampled, 1 - tail)
    if method == "basic":
        return 2 * resampled.estimate - high, 2 * resampled.estimate - low
    return low, high


def known(figure: float) -> float | None:
    """The figure; None if it is undefined."""
    return figure if math.isfinite(figure) else None


def _corrected(resampled: Resampled, level: float) -> float:
    """The level of the quantile that BCa takes in place of this one.

    Reference:
        Efron 1987, doi:10.1080/01621459.1987.10478410; the bias counts ties half, as scipy.stats.bootstrap does.
    """
    squares = resampled.influence * resampled.influence  # powers of arrays are slow
    variance = float(squares.sum())
    if variance == 0:
        return level
    bias = _bias(resampled, math.sqrt(variance))
    acceleration = float((squares * resampled.influence).sum()) / (6 * variance**1.5)
    moved = bias + _NORMAL.inv_cdf(level)
    room = 1 - acceleration * moved
    if room <= 0:  # so skewed that the level is beyond the last resample
        return 1.0 if moved > 0 else 0.0
    return _NORMAL.cdf(bias + moved / room)


def _bias(resampled: Resampled, error: float) -> float:
    """How far the median resample is from the estimate, in standard normal units."""
    nearly = ROUNDING * error
    below = int(np.searchsorted(resampled.ascending, resampled.centre - nearly, side="left"))
    up_to = int(np.searchsorted(resampled.ascending, resampled.centre + nearly, side="right"))
    n_resamples = len(resampled.ascending)
    share = (below + up_to) / (2 * n_resamples)
    least = 1 / (2 * n_resamples)  # where all resamples lie on one side, half of one is taken to lie on the other
    return _NORMAL.inv_cdf(min(max(share, least), 1 - least))


def _quantile(resampled: Resampled, level: float) -> float:
    """Linear between the order statistics: definition 7 of Hyndman & Fan 1996, doi:10.1080/00031305.1996.10473566."""
    place = level * (len(resampled.ascending) - 1)
    below = int(place)
    low, high = resampled.ascending[below], resampled.ascending[min(below + 1, len(resampled.ascending) - 1)]
    return float(low + (high - low) * (place - below))
