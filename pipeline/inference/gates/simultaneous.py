"""One level for several intervals, so that all of them together hold with the confidence asked for."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from pipeline.inference.estimates import IntervalRule
from pipeline.inference.intervals import Resampled

__all__ = ["simultaneous"]

_NORMAL = NormalDist()
_HIGHEST = 1 - 1e-12  # beyond it no resample is left outside anyway, and the tail would round to 0


def simultaneous(figures: Sequence[Resampled], rule: IntervalRule) -> IntervalRule:
    """The rule by which intervals of these figures hold all at once; for one figure the rule as it is.

    Over each resample the figures' distances from their estimates, in standard errors, have a greatest one; c is the
    quantile of these at the confidence asked for. An interval then reaches c standard errors, or what BCa makes of that
    level. Figures that move together, such as a slice and `all`, cost less than Bonferroni's correction takes for them.

    Args:
        figures: each with B resamples, of which resample b of one goes with resample b of the others: drawn together
            within a dataset, and independently in different ones. None is undefined.
        rule: how an interval is read off, and how often all of them together should cover.

    Reference:
        Westfall & Young 1993, Resampling-Based Multiple Testing, chapter 2: max t in a single step, as intervals.
    """
    if len(figures) < 2:
        return rule
    greatest = np.zeros(len(figures[0].resamples))
    for figure in figures:  # one by one: all of them side by side would be large
        if figure.std_error > 0:  # queries that all moved alike are nowhere but at their estimate
            np.maximum(greatest, np.abs(figure.resamples - figure.centre) / figure.std_error, out=greatest)
    reach = max(float(np.quantile(greatest, rule.confidence)), _NORMAL.inv_cdf((1 + rule.confidence) / 2))
    return IntervalRule(rule.method, min(1 - 2 * _tail(_NORMAL.cdf(-reach), len(greatest)), _HIGHEST))


def _tail(share: float, n_resamples: int) -> float:
    """The level of the quantile beyond which this share of further resamples is expected.

    The least of B resamples has the level 0, yet 1 in B + 1 further ones would lie below it. Of a tail of 2 resamples
    in 1,000, as 12 lines ask for, that is half as much again.
    """
    return max(0.0, (share * (n_resamples + 1) - 1) / (n_resamples - 1))
