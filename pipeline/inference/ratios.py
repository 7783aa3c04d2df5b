"""Scores to ratios: what each query, and each cluster of queries, adds to the two sums of a figure.

Every figure is made of sums over queries, one or several numerators over a denominator. A slice is the same with the
other queries at 0, and a cluster adds what its queries add together. So one product resamples all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from metrics.aggregation import MEAN, Aggregation, contributions
from metrics.block import Bools, Floats, divide
from metrics.conventions import Conventions
from metrics.measure import Measure
from pipeline.tables import Scores

__all__ = ["Contributions", "Ratio", "contributions_of"]

Clusters: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ratio:
    """One figure as sums over C clusters.

    Attributes:
        aggregation: takes the means to the figure.
        added: (S, Q) what each query adds to the numerators, be it in the slice or not: one row for most measures,
            several for a figure that is made of several means.
        denominators: (C,) what each cluster adds to the denominator; 0 where it has nothing in the slice.
        bound: what no number of the numerators can exceed, whatever the model; 0 where that is not known.
        queries: (Q,) those of the slice; None for all.
        clusters: (Q,) the cluster of each; None where each query is one.
    """

    aggregation: Aggregation
    added: Floats
    denominators: Floats
    bound: float
    queries: Bools | None = None
    clusters: Clusters | None = None

    @property
    def numerators(self) -> Floats:
        """(S, C): what each cluster adds to the numerators; not kept, for there are as many as models times slices."""
        added = self.added if self.queries is None else self.added * self.queries
        if self.clusters is None:
            return added
        return np.stack([_added_up(row, self.clusters, len(self.denominators)) for row in added])

    def figure(self, numerators: Floats, denominators: Floats) -> Floats:
        """The figure that these sums make, (S, …) and (…); NaN where nothing was counted."""
        figures: Floats = self.aggregation.backward(divide(numerators, denominators))[0]
        return figures

    @cached_property
    def estimate(self) -> float:
        """The figure over all clusters."""
        return float(self.figure(self.numerators.sum(axis=1), self.denominators.sum()))

    @property
    def influence(self) -> Floats:
        """(C,): how much each cluster moves the figure, by its infinitesimal jackknife; the sum is 0.

        Reference:
            Efron & Tibshirani 1993, section 22.6: `(num - θ·den) / Σ den`, times the slope of what is done to the mean.
        """
        total, numerators = self.denominators.sum(), self.numerators
        means = divide(numerators.sum(axis=1), total)
        apart = numerators - means[:, np.newaxis] * self.denominators
        moved: Floats = (self.aggregation.slope(means)[:, np.newaxis] * apart).sum(axis=0)
        return divide(moved, total)

    @property
    def values(self) -> Floats:
        """The mean of each cluster that counts; the last of them where a figure is made of several."""
        counted = self.denominators > 0
        return divide(self.numerators[-1, counted], self.denominators[counted])

    def is_mean_over(self, other: Ratio) -> bool:
        """Whether both are plain means over the same denominators, so that their difference is one too."""
        plain = self.aggregation is MEAN and other.aggregation is MEAN
        return plain and np.array_equal(self.denominators, other.denominators)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each of Q queries adds to the sums of one measure of one model.

    Attributes:
        measure: the measure.
        numerators: (S, Q).
        denominators: (Q,); 0 where the query does not count.
    """

    measure: Measure
    numerators: Floats
    denominators: Floats

    @property
    def counted(self) -> Bools:
        """(Q,): the queries that count."""
        counted: Bools = self.denominators > 0
        return counted

    def ratio(self, queries: Bools | None, clusters: Clusters | None) -> Ratio:
        """The figure over these queries, all of them for None, as sums over clusters."""
        denominators = self.denominators if queries is None else self.denominators * queries
        largest = 1
        if clusters is not None:
            denominators = _added_up(denominators, clusters, int(clusters.max()) + 1)
            largest = int(np.bincount(clusters).max())
        bound = largest * _greatest(self.measure)
        return Ratio(self.measure.aggregation, self.numerators, denominators, bound, queries, clusters)


def contributions_of(scores: Scores, row: int, values: Floats, conventions: Conventions) -> Contributions:
    """What each query adds.

    Args:
        scores: one model's on one dataset.
        row: the measure's among them.
        values: (Q,) the scores of that measure, or a bound of them.
        conventions: say what an undefined query counts as, and one without output.
    """
    measure, weights = scores.measures[row], scores.weights[row]
    zero = measure.metric.undefined == "convention" and conventions.undefined_queries == "zero"
    if conventions.missing_queries == "skip":
        weights = np.where(scores.missing, 0.0, weights)
    means = np.atleast_2d(scores.moments.get(measure, values))
    numerators, denominators = contributions(measure.aggregation, means, weights, undefined_is_zero=zero)
    return Contributions(measure, numerators, denominators[0])


def _added_up(values: Floats, clusters: Clusters, n_clusters: int) -> Floats:
    return np.bincount(clusters, values, n_clusters).astype(np.float64)


def _greatest(measure: Measure) -> float:
    """The greatest number that a query can add to the sum of a mean; 0 where there is no such."""
    least, greatest = measure.metric.range
    bounded = math.isfinite(least) and math.isfinite(greatest) and measure.aggregation is MEAN and not measure.pooled
    return max(abs(least), abs(greatest)) if bounded else 0.0
