"""Student's t of a paired difference, how large the difference is, and how large it would have to be.

The standard error is that of cluster influences: without clusters exactly the one of a paired t test.
"""

from __future__ import annotations

import math

from pipeline.inference.intervals import Resampled

__all__ = ["cluster_error", "detectable", "effect_size", "t_test"]

POWER = 0.8
"""How often the least detectable difference is detected."""


def cluster_error(difference: Resampled) -> float:
    """The standard error over C clusters, √(C / (C - 1) · Σ influence²); NaN where there are fewer than two."""
    n = difference.n_clusters
    if n < 2:
        return math.nan
    error = math.sqrt(n / (n - 1) * float((difference.influence * difference.influence).sum()))
    return error if error > 1e-12 * abs(difference.estimate) else 0.0  # what rounding leaves of equal differences


def t_test(difference: Resampled) -> float:
    """The p-value of the difference, by t with C - 1 degrees of freedom; NaN where there are fewer than two clusters.

    Where all clusters differ alike it is 0, or 1 where none differs.
    """
    from scipy.special import stdtr

    error = cluster_error(difference)
    if error == 0:
        return float(difference.n_away == 0)
    return 2 * float(stdtr(difference.n_clusters - 1, -abs(difference.estimate) / error))


def effect_size(difference: Resampled) -> float:
    """d_z: the difference in standard deviations of clusters' differences; NaN where these do not vary.

    Reference:
        Cohen 1988, Statistical Power Analysis for the Behavioral Sciences, section 2.3.5.
    """
    error = cluster_error(difference)
    return difference.estimate / (error * math.sqrt(difference.n_clusters)) if error else math.nan


def detectable(difference: Resampled, alpha: float) -> float:
    """The least difference that would be found in 80% of samples of this size; NaN where there are too few clusters.

    Args:
        difference: of which the standard error is taken.
        alpha: the level of the two-sided test, alone and not corrected for others.

    Reference:
        Bloom 1995, doi:10.1177/0193841X9501900504: (t of 1 - alpha / 2 + t of the power) standard errors.
    """
    from scipy.special import stdtrit

    error = cluster_error(difference)
    if math.isnan(error):
        return math.nan
    degrees = difference.n_clusters - 1
    return error * float(stdtrit(degrees, 1 - alpha / 2) + stdtrit(degrees, POWER))
