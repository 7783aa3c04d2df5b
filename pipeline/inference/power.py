"""How many queries it takes to pass a margin, by the paired differences of a past sample.

A gate passes if the lower end of an interval is above the limit that the margin sets. The chance of that is its power.
It grows with the distance from the limit to the true difference, counted in standard errors: the interval takes up some
of them, and the spread of estimates the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

from rankledger.pipeline.inference.distributions import t_quantile, t_tail
from rankledger.pipeline.inference.intervals import ENOUGH, Resampled
from rankledger.pipeline.types.gates import LEAST_CLUSTERS

__all__ = ["POWER", "Variation", "least_count", "minimum_detectable_difference", "standard_errors"]

POWER = 0.8
"""How often the least detectable difference is detected."""

_NORMAL = NormalDist()
_MOST_DEGREES = 1e6  # of freedom, from which on Student's t is the normal distribution
_TRUSTED = 1.5 * ENOUGH  # the expected kappa of a planned sample: with just ENOUGH, half of the samples would be marked


def _reach(alpha: float, degrees: float, acceleration: float) -> float:
    """How many standard errors the lower end is below the estimate: the outer of Student's t and BCa."""
    z = _NORMAL.inv_cdf(1 - alpha / 2)
    return max(t_quantile(1 - alpha / 2, degrees), z - acceleration * (2 * z * z + 1))


def _spread(reach: float, acceleration: float, excess: float) -> float:
    """The standard deviation of the lower end, in standard errors: with the estimate, its error varies."""
    return math.sqrt(max(0.0, 1 - 6 * reach * acceleration + reach * reach * excess / 4))


def standard_errors(
    alpha: float, power: float, degrees: float, acceleration: float = 0.0, excess: float = 0.0
) -> float:
    """How many standard errors a difference must be above a limit to be found above it.

    Args:
        alpha: the level of the two-sided interval, in (0, 1).
        power: how often it is to be found, in (0, 1).
        degrees: of freedom of the standard error.
        acceleration: of BCa, the skewness of the clusters' differences over 6 √C; 0 if they are normal.
        excess: their excess kurtosis over C; likewise.

    Reference:
        Bloom 1995, doi:10.1177/0193841X9501900504: t of 1 - alpha / 2 plus t of the power. The terms of the shape are
        the first of the expansions in 1 / √C: of the lower end, Efron 1987, doi:10.1080/01621459.1987.10478410; of its
        variance, by cov(mean, s²) = μ₃ / C and var(s²) = (μ₄ - σ⁴) / C.
    """
    reach = _reach(alpha, degrees, acceleration)
    return reach + _spread(reach, acceleration, excess) * t_quantile(power, degrees)


def minimum_detectable_difference(difference: Resampled, alpha: float) -> float:
    """The least difference that would be found in 80% of samples of this size; NaN where there are too few clusters.

    Args:
        difference: the paired difference whose standard error is taken.
        alpha: the level of the two-sided test, alone and not corrected for others.
    """
    error = difference.error
    if math.isnan(error):
        return math.nan
    if difference.total_error.replicates:
        return difference.total_error.reach(1 - alpha) + difference.total_error.reach(2 * POWER - 1)
    return error * standard_errors(alpha, POWER, difference.n_clusters - 1)


def least_count(decides: Callable[[int], bool], few: int) -> int:
    """The least count that decides, where any greater one does, too, and these few do not."""
    enough = 2 * few
    while not decides(enough):
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if decides(middle) else (middle, enough)
    return enough


@dataclass(frozen=True)
class Variation:
    """How a difference varies from cluster to cluster, as one sample shows it.

    Attributes:
        variance: of the clusters' differences.
        skewness: of these, 0 if they are symmetric.
        kappa: as how many clusters the variance rests on.
        n_clusters: C, how many clusters showed it.
    """

    variance: float
    skewness: float
    kappa: float
    n_clusters: int

    @classmethod
    def of(cls, difference: Resampled) -> Variation:
        """That of a difference whose clusters are not all alike."""
        n = difference.n_clusters
        return cls(difference.error**2 * n, 6 * math.sqrt(n) * difference.acceleration, difference.kappa, n)

    @property
    def least(self) -> int:
        """The clusters below which a sample would often be too small for its interval to be trusted."""
        return max(LEAST_CLUSTERS, math.ceil(self.n_clusters * _TRUSTED / self.kappa))

    def detectable(self, n: float, alpha: float, power: float) -> float:
        """The least distance from the margin at which n clusters pass with this power."""
        degrees = min(n - 1, _MOST_DEGREES)
        return math.sqrt(self.variance / n) * standard_errors(alpha, power, degrees, *self._shape(n))

    def power(self, n: int, distance: float, alpha: float) -> float:
        """How often n clusters pass at this distance from the margin."""
        (acceleration, excess), degrees = self._shape(n), min(n - 1, _MOST_DEGREES)
        reach = _reach(alpha, degrees, acceleration)
        apart, spread = distance / math.sqrt(self.variance / n) - reach, _spread(reach, acceleration, excess)
        return t_tail(-apart / spread, degrees) if spread else float(apart > 0)

    def needed(self, distance: float, alpha: float, power: float) -> int:
        """The least number of clusters that pass with this power at this distance from the margin, `least` or more.

        Args:
            distance: from the margin to the true difference, above 0.
            alpha: the level of the gate's two-sided interval.
            power: how often the gate should pass.
        """
        if self.detectable(self.least, alpha, power) <= distance:
            return self.least
        return least_count(lambda n: self.detectable(n, alpha, power) <= distance, self.least)

    def ends(self, confidence: float) -> tuple[Variation, Variation]:
        """With the least and the greatest variance that the sample allows.

        The logarithm of s² has the standard error √(1 / κ - 1 / C), for 1 / κ is the kurtosis over C. That error rests
        on κ clusters, too: hence Student's t with κ - 1 degrees of freedom. Simulated in tests/simulations/plans.py.

        Args:
            confidence: how often the interval should cover.
        """
        error = math.sqrt(max(0.0, 1 / self.kappa - 1 / self.n_clusters))
        factor = math.exp(t_quantile((1 + confidence) / 2, self.kappa - 1) * error)
        return replace(self, variance=self.variance / factor), replace(self, variance=self.variance * factor)

    def _shape(self, n: float) -> tuple[float, float]:
        """The acceleration and the excess kurtosis of n clusters, over n."""
        return self.skewness / (6 * math.sqrt(n)), (self.n_clusters / self.kappa - 3) / n
