"""Estimates as sums over queries, one or several numerators over a denominator, and variance components of replicates.

A model that is trained, indexed or decoded several times has an estimate per replicate. Its estimate is the mean over C
clusters and R replicates. The error has three parts, as in a two-way analysis of variance with random effects and one
observation per cell: σq² / C of the queries, σr² / R of the replicates, and σqr² / (C R) of their interaction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.aggregation import MEAN, Aggregation, contributions
from rankledger.metrics.block import Bools, Floats, divide
from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.inference.distributions import t_quantile

Clusters: TypeAlias = npt.NDArray[np.int64]
Where: TypeAlias = slice | npt.NDArray[np.int64]
"""Which queries or clusters."""

MANY_CLUSTERS = 1 << 17
"""Clusters beyond which the numbers of a column are made when they are asked for, some at a time: 1 MB of a column."""


@dataclass(frozen=True, eq=False)
class RatioEstimate:
    """Figure as sums over C clusters."""

    aggregation: Aggregation
    # gives (S, q), what each of some queries adds to the numerators, in the slice or not
    make: Callable[[Where], Floats]
    n_sums: int  # S, 1 for most measures
    denominators: Floats  # (C,) what each cluster adds; 0 if it has nothing in the slice
    bound: float  # what no number of the numerators can exceed, whatever the model; 0 if unknown
    queries: Bools | None = None  # (Q,) those of the slice; None for all
    clusters: Clusters | None = None  # (Q,) the cluster of each; None if each query is one

    @property
    def numerators(self) -> Floats:
        """Numerators of each cluster, (S, C), computed at each access because there are many."""
        added = self._add_queries(slice(None))
        if self.clusters is None:
            return added
        return np.stack([_added_up(row, self.clusters, len(self.denominators)) for row in added])

    def _add_queries(self, queries: Where) -> Floats:
        return self.make(queries) if self.queries is None else self.make(queries) * self.queries[queries]

    def select_numerators(self, clusters: Where) -> Floats:
        return self._add_queries(clusters) if self.clusters is None else self._cluster_numerators[:, clusters]

    @cached_property
    def _cluster_numerators(self) -> Floats:
        return self.numerators

    def figure(self, numerators: Floats, denominators: Floats) -> Floats:
        """Return the value of (S, …) numerators and (…) denominators. NaN if nothing was counted."""
        figures: Floats = self.aggregation.backward(divide(numerators, denominators))[0]
        return figures

    @cached_property
    def totals(self) -> tuple[Floats, Floats]:
        return self.numerators.sum(axis=1), self.denominators.sum()

    @cached_property
    def estimate(self) -> float:
        return float(self.figure(*self.totals))

    @property
    def influence(self) -> Floats:
        """Influence of each cluster by the infinitesimal jackknife, (C,). Sums to 0.

        Reference:
            Efron & Tibshirani 1993, section 22.6: `(num - θ·den) / Σ den`, times the slope of the transformation of the
            mean.
        """
        return self.compute_influence(self)

    def compute_influence(self, replicate: RatioEstimate) -> Floats:
        """Return (C,) first-order influences of a replicate's clusters on the distance to this value."""
        sums, total = self.totals
        means = divide(sums, total)
        residuals = means[:, np.newaxis] * replicate.denominators
        np.subtract(replicate.numerators, residuals, out=residuals)
        if self.aggregation is not MEAN:
            residuals = (self.aggregation.slope(means)[:, np.newaxis] * residuals).sum(axis=0, keepdims=True)
        return divide(residuals[0], total)

    @property
    def values(self) -> Floats:
        """Mean of each cluster that counts, (C',), by the last numerator if there are several."""
        counted = self.denominators > 0
        return divide(self.numerators[-1, counted], self.denominators[counted])

    def is_paired_mean(self, other: RatioEstimate) -> bool:
        """Return whether both are plain means over the same denominators, as their difference then is."""
        plain = self.aggregation is MEAN and other.aggregation is MEAN
        return plain and self.has_equal_weights(other)

    def has_equal_weights(self, other: RatioEstimate) -> bool:
        return self.denominators is other.denominators or np.array_equal(self.denominators, other.denominators)


@dataclass(frozen=True, eq=False)
class QueryContributions:
    """Terms that each of Q queries adds to the sums of one measure of one model."""

    measure: Measure
    make: Callable[[Where], Floats]  # gives the numerators of some queries, (S, q)
    n_sums: int  # S
    denominators: Floats  # (Q,) 0 if the query does not count
    values: Floats | None = None  # (Q,) the queries' own scores

    @classmethod
    def of(
        cls, measure: Measure, numerators: Floats, denominators: Floats, values: Floats | None = None
    ) -> QueryContributions:
        return cls(measure, lambda queries: numerators[:, queries], len(numerators), denominators, values)

    @property
    def numerators(self) -> Floats:
        return self.make(slice(None))

    @property
    def counted(self) -> Bools:
        return self.denominators > 0

    @property
    def scores(self) -> Floats:
        if self.values is not None and not self.measure.has_slices:  # its sums are of pairs of other queries, too
            return np.where(self.counted, self.values, np.nan)
        scores: Floats = self.measure.aggregation.backward(divide(self.numerators, self.denominators))[0]
        return scores

    def ratio(self, queries: Bools | None, clusters: Clusters | None) -> RatioEstimate:
        """Return the value over these queries (None for all) as sums over clusters."""
        denominators = self.denominators if queries is None else self.denominators * queries
        if not self.measure.has_slices and not np.array_equal(denominators, self.denominators):
            denominators = np.zeros_like(denominators)  # there is no figure of some of the queries
        largest = 1
        if clusters is not None:
            denominators = _added_up(denominators, clusters, int(clusters.max()) + 1)
            largest = int(np.bincount(clusters).max())
        minimum, maximum = self.measure.metric.range
        plain = self.measure.aggregation is MEAN and not self.measure.weighted
        bounded = plain and math.isfinite(minimum) and math.isfinite(maximum)
        bound = largest * max(abs(minimum), abs(maximum)) if bounded else 0.0
        return RatioEstimate(self.measure.aggregation, self.make, self.n_sums, denominators, bound, queries, clusters)


def contributions_of(scores: Scores, row: int, values: Floats, conventions: Conventions) -> QueryContributions:
    """Return the contributions of each query to the measure in a row of a model's scores."""
    measure, weights = scores.measures[row], scores.weights[row]
    zero = measure.metric.undefined == "convention" and conventions.undefined_queries == "zero"
    zero = zero and measure not in scores.failed  # whose queries have no score at all
    if conventions.missing_queries == "skip":
        weights = np.where(scores.missing, 0.0, weights)
    means = np.atleast_2d(scores.moments.get(measure, values))

    def make(queries: Where) -> tuple[Floats, Floats]:
        return contributions(measure.aggregation, means[:, queries], weights[queries], undefined_is_zero=zero)

    numerators, denominators = make(slice(None))
    if np.array_equal(numerators, means):
        numerators = means  # the scores are not held twice
    elif numerators.shape[1] > MANY_CLUSTERS:
        return QueryContributions(measure, lambda queries: make(queries)[0], len(means), denominators[0], values)
    return QueryContributions.of(measure, numerators, denominators[0], values)


def _added_up(values: Floats, clusters: Clusters, n_clusters: int) -> Floats:
    return np.bincount(clusters, values, n_clusters).astype(np.float64)


_ROUNDING = 1e-24  # a variance that is not greater is what rounding leaves of replicates that are alike
_ALIKE = 2.0  # one part of a variance counts as the greater if it is more than this many times the other


@dataclass(frozen=True)
class ComponentEstimates:
    """Unbiased variance components of a value. A component near 0 may be negative."""

    n_queries: int  # C, queries or clusters
    n_replicates: int  # R
    queries: float  # σq², between queries
    replicates: float  # σr², between replicates
    rest: float  # σqr², of the interaction of both, with what is chance in each

    def std_error(self, *, queries: float = 1.0, replicates: float = 1.0) -> float:
        n_queries, n_replicates = queries * self.n_queries, replicates * self.n_replicates
        between = max(self.queries, 0.0) / n_queries + max(self.replicates, 0.0) / n_replicates
        return math.sqrt(between + max(self.rest, 0.0) / (n_queries * n_replicates))

    @property
    def more(self) -> Literal["queries", "replicates", "either"]:
        queries = max(self.queries, 0.0) / self.n_queries
        replicates = max(self.replicates, 0.0) / self.n_replicates
        if queries > _ALIKE * replicates:
            return "queries"
        return "replicates" if replicates > _ALIKE * queries else "either"


def estimate_components(cells: Floats) -> ComponentEstimates:
    """Return the variance components of a (C, R) table with at least two rows and columns.

    Reference:
        Searle, Casella & McCulloch 1992, Variance Components, section 4.3: the analysis of variance estimators.
    """
    n_queries, n_replicates = cells.shape
    rows, columns, mean = cells.mean(axis=1), cells.mean(axis=0), cells.mean()
    residuals = cells - rows[:, np.newaxis] - columns + mean
    rest = float((residuals * residuals).sum()) / ((n_queries - 1) * (n_replicates - 1))
    return ComponentEstimates(
        n_queries,
        n_replicates,
        queries=float(rows.var(ddof=1)) - rest / n_replicates,
        replicates=float(columns.var(ddof=1)) - rest / n_queries,
        rest=rest,
    )


@dataclass(frozen=True, eq=False)
class ReplicateEffects:
    """Distances of R replicates from their mean. Nothing is known for R = 1."""

    shifts: Mapping[str, float]  # by replicate; the sum is 0
    noise: float  # variance of the shifts from the interaction with the queries alone

    @classmethod
    def of(cls, names: Sequence[str], cells: Floats) -> ReplicateEffects:
        """Return the effects in a (C, R) table, whose mean is the value up to a constant."""
        columns = cells.mean(axis=0)
        shifts = dict(zip(names, (columns - columns.mean()).tolist(), strict=True))
        return cls(shifts, estimate_components(cells).rest / len(cells) if min(cells.shape) > 1 else 0.0)

    @property
    def variance(self) -> float:
        return sum(shift * shift for shift in self.shifts.values()) / max(1, len(self.shifts) - 1)


@dataclass(frozen=True)
class TotalError:
    """Error of a value over further queries and further replicates."""

    queries: float  # standard error over C clusters, √(S² / C)
    degrees: float  # its degrees of freedom, C - 1 unless several datasets are pooled
    # what replicates add to the standard error, √max(0, Σ (s² - noise) / R); 0 if that is nothing
    replicates: float = 0.0
    replicate_degrees: float = 1.0  # Satterthwaite's, of Σ s² / R, with R - 1 for each family

    @classmethod
    def of(cls, error: float, degrees: float, families: Sequence[ReplicateEffects]) -> TotalError:
        """Return the error of a value that is made of replicate sets.

        There is one set for a value, two for a difference, one for a difference with paired replicates. A set of one
        replicate adds nothing, because no claim is made beyond that replicate.

        Reference:
            Satterthwaite 1946, doi:10.2307/3002019.
        """
        several = [family for family in families if len(family.shifts) > 1]
        between = sum((family.variance - family.noise) / len(family.shifts) for family in several)
        if not between > _ROUNDING:
            return cls(error, degrees)
        parts = [family.variance / len(family.shifts) for family in several]
        shares = [part / sum(parts) for part in parts]
        inverse = sum(share * share / (len(family.shifts) - 1) for share, family in zip(shares, several, strict=True))
        return cls(error, degrees, math.sqrt(between), 1 / inverse)

    @property
    def total(self) -> float:
        """Standard error over queries and replicates, √V."""
        return math.hypot(self.queries, self.replicates)

    def reach(self, confidence: float) -> float:
        """Return the reach of an interval: the root of the summed squared reaches of the parts.

        One quantile by the degrees of freedom of the whole is too small if two replicates happen to be close: with two
        that differ far more than queries do, it covers 88% for 95%, and this 93%.

        Reference:
            Howe 1974, Approximate confidence limits on the mean of X + Y, JASA 69.
        """
        level = (1 + confidence) / 2
        if self.replicates == 0:
            return t_quantile(level, self.degrees) * self.queries
        queries = t_quantile(level, self.degrees) * self.queries
        return math.hypot(queries, t_quantile(level, self.replicate_degrees) * self.replicates)

    def p_value(self, estimate: float) -> float:
        """Return the p-value against 0, at least 1e-12. It is below 1 - confidence if the interval excludes 0."""
        low, high = math.log(1e-12), 0.0  # of the p-value's logarithm: the interval of `high` always holds it
        for _ in range(60):
            middle = (low + high) / 2
            if self.reach(1 - math.exp(middle)) < abs(estimate):
                high = middle
            else:
                low = middle
        return math.exp(high)


def mean_effects(figures: Sequence[Sequence[ReplicateEffects]]) -> tuple[ReplicateEffects, ...]:
    """Return the effects on the mean of N values over different queries, such as one model's on N datasets."""
    n = len(figures)
    alike = len({tuple(tuple(sorted(family.shifts)) for family in families) for families in figures}) == 1
    if not alike:
        scaled = [family for families in figures for family in families]
        return tuple(
            ReplicateEffects(
                {name: 1 / n * shift for name, shift in family.shifts.items()}, 1 / n * (1 / n) * family.noise
            )
            for family in scaled
        )
    return tuple(
        ReplicateEffects(
            {name: sum(family.shifts[name] for family in families) / n for name in families[0].shifts},
            sum(family.noise for family in families) / n**2,
        )
        for families in zip(*figures, strict=True)
    )
