"""Number of queries that a margin needs, from the paired differences of a past sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.pipeline.config.gates import LEAST_CLUSTERS
from rankledger.pipeline.inference.distributions import t_quantile, t_tail
from rankledger.pipeline.inference.intervals import ENOUGH, Resampled
from rankledger.pipeline.inference.tables import ModelPair

POWER = 0.8
"""How often the least detectable difference is detected."""

_NORMAL = NormalDist()
_MOST_DEGREES = 1e6  # of freedom, from which on Student's t is the normal distribution
_TRUSTED = 1.5 * ENOUGH  # expected kappa from which samples are rarely marked
_NUMBERS = 1 << 24  # that are drawn at once


def _reach(alpha: float, degrees: float, acceleration: float) -> float:
    z = _NORMAL.inv_cdf(1 - alpha / 2)
    return max(t_quantile(1 - alpha / 2, degrees), z - acceleration * (2 * z * z + 1))


def _spread(reach: float, acceleration: float, excess: float) -> float:
    return math.sqrt(max(0.0, 1 - 6 * reach * acceleration + reach * reach * excess / 4))


def standard_errors(
    alpha: float, power: float, degrees: float, acceleration: float = 0.0, excess: float = 0.0
) -> float:
    """Return the standard errors that a difference must be above a limit to be found above it.

    Args:
        alpha: Level of the two-sided interval, in (0, 1).
        power: Probability of finding it, in (0, 1).
        degrees: Degrees of freedom of the standard error.
        acceleration: Skewness of the clusters' differences over 6 √C. 0 if they are normal.
        excess: Excess kurtosis of the differences over C.

    Reference:
        Bloom 1995, doi:10.1177/0193841X9501900504: t of 1 - alpha / 2 plus t of the power. The terms of the shape are
        the first of the expansions in 1 / √C: of the lower end, Efron 1987, doi:10.1080/01621459.1987.10478410, and of
        its variance, by cov(mean, s²) = μ₃ / C and var(s²) = (μ₄ - σ⁴) / C.
    """
    reach = _reach(alpha, degrees, acceleration)
    return reach + _spread(reach, acceleration, excess) * t_quantile(power, degrees)


def minimum_detectable_difference(difference: Resampled, alpha: float) -> float:
    """Return the minimum difference that 80% of samples of this size find, uncorrected for other tests."""
    error = difference.error
    if math.isnan(error):
        return math.nan
    if difference.total_error.replicates:
        return difference.total_error.reach(1 - alpha) + difference.total_error.reach(2 * POWER - 1)
    return error * standard_errors(alpha, POWER, difference.n_clusters - 1)


def least_count(decides: Callable[[int], bool], few: int) -> int:
    """Return the minimum count that decides, if every greater one does and the listed few do not."""
    enough = 2 * few
    while not decides(enough):
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if decides(middle) else (middle, enough)
    return enough


@dataclass(frozen=True, eq=False)
class Variation:
    """Variation of a difference between clusters in one sample.

    If a few clusters may decide a sample, its power comes from drawing samples of these clusters and judging them as
    gates do. Otherwise it comes from the moments.
    """

    values: Floats  # (C,) differences of the clusters from their mean
    factor: float = 1.0  # of the variance

    @classmethod
    def of(cls, difference: Resampled) -> Variation:
        moved = difference.influence[difference.influence != 0] * difference.n_clusters
        return cls(np.concatenate([moved, np.zeros(difference.n_clusters - len(moved))]))  # others are not in the slice

    @property
    def n_clusters(self) -> int:
        return len(self.values)

    @cached_property
    def variance(self) -> float:
        return self.factor * float(np.square(self.values).sum()) / (self.n_clusters - 1)

    @cached_property
    def skewness(self) -> float:
        shares = self.values / math.sqrt(float(np.square(self.values).mean()))
        return float((shares**3).mean())

    @cached_property
    def kappa(self) -> float:
        squares = np.square(self.values / np.abs(self.values).max())
        return float(squares.sum() ** 2 / np.square(squares).sum())

    def detectable(self, n: int, alpha: float, power: float) -> float:
        """Return the minimum distance from the margin at which n clusters pass with this power."""
        if self._is_drawn(n):
            return math.sqrt(self.factor) * float(np.quantile(self._distances(n, alpha), power, method="higher"))
        degrees = min(n - 1, _MOST_DEGREES)
        return math.sqrt(self.variance / n) * standard_errors(alpha, power, degrees, *self._shape(n))

    def power(self, n: int, distance: float, alpha: float) -> float:
        if self._is_drawn(n):
            return float((self._distances(n, alpha) < distance / math.sqrt(self.factor)).mean())
        (acceleration, excess), degrees = self._shape(n), min(n - 1, _MOST_DEGREES)
        reach = _reach(alpha, degrees, acceleration)
        distance_left, spread = distance / math.sqrt(self.variance / n) - reach, _spread(reach, acceleration, excess)
        return t_tail(-distance_left / spread, degrees) if spread else float(distance_left > 0)

    def needed(self, distance: float, alpha: float, power: float) -> int:
        """Return the minimum number of clusters, from 30 on, that pass with this power at this distance."""
        if self.detectable(LEAST_CLUSTERS, alpha, power) <= distance:
            return LEAST_CLUSTERS
        return least_count(lambda n: self.detectable(n, alpha, power) <= distance, LEAST_CLUSTERS)

    def ends(self, confidence: float) -> tuple[Variation, Variation]:
        """Return the variations with the minimum and the maximum variance that the sample allows.

        The standard error of ln s² is √(1 / κ - 1 / C), because the kurtosis over C is 1 / κ. That error rests on κ
        clusters, too: hence Student's t with κ - 1 degrees of freedom. Simulated in tests/simulations/plans.py.
        """
        error = math.sqrt(max(0.0, 1 / self.kappa - 1 / self.n_clusters))
        factor = math.exp(t_quantile((1 + confidence) / 2, self.kappa - 1) * error)
        return replace(self, factor=self.factor / factor), replace(self, factor=self.factor * factor)

    def _shape(self, n: float) -> tuple[float, float]:
        return self.skewness / (6 * math.sqrt(n)), (self.n_clusters / self.kappa - 3) / n

    def _is_drawn(self, n: int) -> bool:
        return n * self.kappa < _TRUSTED * self.n_clusters

    def _distances(self, n: int, alpha: float) -> Floats:
        if (n, alpha) not in self._known:
            rng = np.random.default_rng(n)
            drawn = self.values[rng.integers(0, self.n_clusters, (max(100, min(1_000, _NUMBERS // n)), n))]
            means, alike = drawn.mean(axis=1), drawn.min(axis=1) == drawn.max(axis=1)
            drawn -= means[:, np.newaxis]
            squares, cubes, fourths = ((drawn**power).sum(axis=1) for power in (2, 3, 4))
            with np.errstate(divide="ignore", invalid="ignore"):  # of those that are alike
                kappas, accelerations = squares**2 / fourths, cubes / (6 * squares**1.5)
                reaches = [
                    _compute_reach(alpha, n, *shape) for shape in zip(kappas.round(2), accelerations, strict=True)
                ]
                distances = np.array(reaches) * np.sqrt(squares / (n * (n - 1))) - means
            self._known[n, alpha] = np.where(alike, 0.0, distances)
        return self._known[n, alpha]

    @cached_property
    def _known(self) -> dict[tuple[int, float], Floats]:
        return {}


def _compute_reach(alpha: float, n: int, kappa: float, acceleration: float) -> float:
    if kappa >= ENOUGH:
        return _reach(alpha, n - 1, acceleration)
    return t_quantile(1 - alpha / 2, kappa - 1) if kappa >= 2 else math.inf  # what decides then is wide


@dataclass(frozen=True)
class PowerPoint(ModelPair):
    """Power of a gate to pass a difference with a number of queries.

    Attributes:
        slice: `all`, or `column=value` of the queries table.
        n_queries: Queries that are defined in both, in the record or as assumed.
        n_clusters: Clusters of these queries, or the queries if there are no clusters.
        power: Probability that they pass. None if nothing can be planned, or for fewer than 30 clusters.
        power_low: Lower end of its interval, because the standard deviation is an estimate.
        power_high: Upper end.
        detectable: Minimum sum of margin and change at which they pass with the wanted power. None likewise.
    """

    slice: str
    n_queries: int
    n_clusters: int
    power: float | None
    power_low: float | None
    power_high: float | None
    detectable: float | None


@dataclass(frozen=True)
class PowerLine(PowerPoint):
    """Queries that one difference needs. Values are None if nothing can be planned.

    Attributes:
        std_dev: Standard deviation of the clusters' differences.
        kappa: Effective number of clusters behind it.
        clusters_needed: Clusters that pass with the wanted power.
        queries_needed: Queries of these clusters, if clusters are as large as in the record.
        queries_low: Lower end of the interval of `queries_needed`.
        queries_high: Upper end.
        mark: Reason why nothing can be planned: `replicates` differ, so that more queries are not enough, `few` (under
            30 clusters), `sparse` (a few clusters decide the variance), `degenerate` (all clusters differ alike), or
            empty.
        reason: Reason in a sentence, and the action.
    """

    std_dev: float | None
    kappa: float
    clusters_needed: int | None
    queries_needed: int | None
    queries_low: int | None
    queries_high: int | None
    mark: str = ""
    reason: str = ""
