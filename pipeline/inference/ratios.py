"""Figures as sums over queries: one or several numerators over a denominator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.aggregation import MEAN, Aggregation, contributions
from rankledger.metrics.block import Bools, Floats, divide
from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Scores

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
        """(S, C) numerators of each cluster, computed at each access because there are many."""
        added = self._added(slice(None))
        if self.clusters is None:
            return added
        return np.stack([_added_up(row, self.clusters, len(self.denominators)) for row in added])

    def _added(self, queries: Where) -> Floats:
        return self.make(queries) if self.queries is None else self.make(queries) * self.queries[queries]

    def select_numerators(self, clusters: Where) -> Floats:
        return self._added(clusters) if self.clusters is None else self._cluster_numerators[:, clusters]

    @cached_property
    def _cluster_numerators(self) -> Floats:
        return self.numerators

    def figure(self, numerators: Floats, denominators: Floats) -> Floats:
        """Return the figure of (S, …) numerators and (…) denominators. NaN if nothing was counted."""
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
        """(C,) influence of each cluster by the infinitesimal jackknife. Sums to 0.

        Reference:
            Efron & Tibshirani 1993, section 22.6: `(num - θ·den) / Σ den`, times the slope of the transformation of the
            mean.
        """
        return self.compute_influence(self)

    def compute_influence(self, replicate: RatioEstimate) -> Floats:
        """Return (C,) first-order influences of a replicate's clusters on the distance to this figure."""
        sums, total = self.totals
        means = divide(sums, total)
        apart = means[:, np.newaxis] * replicate.denominators
        np.subtract(replicate.numerators, apart, out=apart)
        if self.aggregation is not MEAN:
            apart = (self.aggregation.slope(means)[:, np.newaxis] * apart).sum(axis=0, keepdims=True)
        return divide(apart[0], total)

    @property
    def values(self) -> Floats:
        """(C',) mean of each cluster that counts, by the last numerator if there are several."""
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
        """Return the figure over these queries (None for all) as sums over clusters."""
        denominators = self.denominators if queries is None else self.denominators * queries
        if not self.measure.has_slices and not np.array_equal(denominators, self.denominators):
            denominators = np.zeros_like(denominators)  # there is no figure of some of the queries
        largest = 1
        if clusters is not None:
            denominators = _added_up(denominators, clusters, int(clusters.max()) + 1)
            largest = int(np.bincount(clusters).max())
        least, greatest = self.measure.metric.range
        plain = self.measure.aggregation is MEAN and not self.measure.weighted
        bounded = plain and math.isfinite(least) and math.isfinite(greatest)
        bound = largest * max(abs(least), abs(greatest)) if bounded else 0.0
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
