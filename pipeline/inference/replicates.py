"""Variance components of models with replicates.

A model that is trained, indexed or decoded several times has a figure per replicate. Its figure is the mean over C
clusters and R replicates. The error has three parts, as in a two-way analysis of variance with random effects and one
observation per cell: σq² / C of the queries, σr² / R of the replicates, and σqr² / (C R) of their interaction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankledger.metrics.block import Floats
from rankledger.pipeline.inference.distributions import t_quantile

_ROUNDING = 1e-24  # a variance that is not greater is what rounding leaves of replicates that are alike
_ALIKE = 2.0  # one part of a variance counts as the greater if it is more than this many times the other


@dataclass(frozen=True)
class ComponentEstimates:
    """Unbiased variance components of a figure. A component near 0 may be negative."""

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
    apart = cells - rows[:, np.newaxis] - columns + mean
    rest = float((apart * apart).sum()) / ((n_queries - 1) * (n_replicates - 1))
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
        """Return the effects in a (C, R) table, whose mean is the figure up to a constant."""
        columns = cells.mean(axis=0)
        shifts = dict(zip(names, (columns - columns.mean()).tolist(), strict=True))
        return cls(shifts, estimate_components(cells).rest / len(cells) if min(cells.shape) > 1 else 0.0)

    @property
    def variance(self) -> float:
        return sum(shift * shift for shift in self.shifts.values()) / max(1, len(self.shifts) - 1)


@dataclass(frozen=True)
class TotalError:
    """Error of a figure over further queries and further replicates."""

    queries: float  # standard error over C clusters, √(S² / C)
    degrees: float  # its degrees of freedom, C - 1 unless several datasets are pooled
    # what replicates add to the standard error, √max(0, Σ (s² - noise) / R); 0 if that is nothing
    replicates: float = 0.0
    replicate_degrees: float = 1.0  # Satterthwaite's, of Σ s² / R, with R - 1 for each family

    @classmethod
    def of(cls, error: float, degrees: float, families: Sequence[ReplicateEffects]) -> TotalError:
        """Return the error of a figure that is made of replicate sets.

        There is one set for a figure, two for a difference, one for a difference with paired replicates. A set of one
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
        taken = sum(share * share / (len(family.shifts) - 1) for share, family in zip(shares, several, strict=True))
        return cls(error, degrees, math.sqrt(between), 1 / taken)

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
    """Return the effects on the mean of N figures over different queries, such as one model's on N datasets."""
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
