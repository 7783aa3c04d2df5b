"""Families of replicates: how much of an error is the queries', how much the replicates', and what both come to.

A model that is trained, indexed or decoded several times has a figure per replicate. The figure of the family is their
mean over C clusters and R replicates, and its error has three parts, as in a two-way analysis of variance with random
effects and one observation per cell: σq² / C of the queries, σr² / R of the replicates, and σqr² / (C R) of the rest,
their interaction.
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
class Components:
    """The variance components of a figure; unbiased, so that one that is about 0 may be negative.

    Attributes:
        n_queries: C, the queries or clusters.
        n_replicates: R.
        queries: σq², between queries.
        replicates: σr², between replicates.
        rest: σqr², of the interaction of both, with what is chance in each.
    """

    n_queries: int
    n_replicates: int
    queries: float
    replicates: float
    rest: float

    def std_error(self, *, queries: float = 1.0, replicates: float = 1.0) -> float:
        """The standard error with so many times the queries and the replicates."""
        n_queries, n_replicates = queries * self.n_queries, replicates * self.n_replicates
        between = max(self.queries, 0.0) / n_queries + max(self.replicates, 0.0) / n_replicates
        return math.sqrt(between + max(self.rest, 0.0) / (n_queries * n_replicates))

    @property
    def more(self) -> Literal["queries", "replicates", "either"]:
        """What makes the figure more certain: more queries, more replicates, or either about as much."""
        queries = max(self.queries, 0.0) / self.n_queries
        replicates = max(self.replicates, 0.0) / self.n_replicates
        if queries > _ALIKE * replicates:
            return "queries"
        return "replicates" if replicates > _ALIKE * queries else "either"


def components_of(cells: Floats) -> Components:
    """The variance components of a table with one number per query and replicate.

    Args:
        cells: (C, R), at least two of both; no NaN.

    Reference:
        Searle, Casella & McCulloch 1992, Variance Components, section 4.3: the analysis of variance estimators.
    """
    n_queries, n_replicates = cells.shape
    rows, columns, mean = cells.mean(axis=1), cells.mean(axis=0), cells.mean()
    apart = cells - rows[:, np.newaxis] - columns + mean
    rest = float((apart * apart).sum()) / ((n_queries - 1) * (n_replicates - 1))
    return Components(
        n_queries,
        n_replicates,
        queries=float(rows.var(ddof=1)) - rest / n_replicates,
        replicates=float(columns.var(ddof=1)) - rest / n_queries,
        rest=rest,
    )


@dataclass(frozen=True, eq=False)
class ReplicateEffects:
    """How far each of R replicates moves a figure from that of its family; of R = 1 nothing is known.

    Attributes:
        shifts: by replicate; the sum is 0.
        noise: the variance of the shifts that the interaction with the queries alone would give them.
    """

    shifts: Mapping[str, float]
    noise: float

    @classmethod
    def of(cls, names: Sequence[str], cells: Floats) -> ReplicateEffects:
        """The effects in a table.

        Args:
            names: (R,) of the replicates.
            cells: (C, R) a number per cluster and replicate, whose mean is the figure but for a constant.
        """
        columns = cells.mean(axis=0)
        shifts = dict(zip(names, (columns - columns.mean()).tolist(), strict=True))
        return cls(shifts, components_of(cells).rest / len(cells) if min(cells.shape) > 1 else 0.0)

    @property
    def variance(self) -> float:
        """The variance of a replicate's figure, that of the noise included."""
        return sum(shift * shift for shift in self.shifts.values()) / max(1, len(self.shifts) - 1)


@dataclass(frozen=True)
class TotalError:
    """How far a figure may be from that of further queries and further replicates.

    Attributes:
        queries: the standard error over C clusters, √(S² / C).
        degrees: its degrees of freedom, C - 1 unless several datasets are pooled.
        replicates: what the replicates add to the standard error, √max(0, Σ (s² - noise) / R); 0 if that is nothing.
        replicate_degrees: Satterthwaite's degrees of freedom of Σ s² / R, with R - 1 for each family.
    """

    queries: float
    degrees: float
    replicates: float = 0.0
    replicate_degrees: float = 1.0

    @classmethod
    def of(cls, error: float, degrees: float, families: Sequence[ReplicateEffects]) -> TotalError:
        """The error of a figure that is made of families.

        Args:
            error: the standard error over clusters.
            degrees: degrees of freedom of this error.
            families: one for a figure, two for a difference of families, one for a difference whose replicates are
                paired. A family of one replicate adds nothing: no claim is made beyond that one.

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
        """The standard error over queries and replicates, √V."""
        return math.hypot(self.queries, self.replicates)

    def reach(self, confidence: float) -> float:
        """How far an interval reaches on either side: the root of the sum of the squares of what each part alone would.

        One quantile by the degrees of freedom of the whole is too small where two replicates happen to be close: with
        two of them that differ far more than queries do, it covers 88% for 95%, and this 93%.

        Args:
            confidence: how often it should cover, in (0, 1).

        Reference:
            Howe 1974, Approximate confidence limits on the mean of X + Y, Journal of the American Statistical
            Association 69.
        """
        level = (1 + confidence) / 2
        if self.replicates == 0:
            return t_quantile(level, self.degrees) * self.queries
        queries = t_quantile(level, self.degrees) * self.queries
        return math.hypot(queries, t_quantile(level, self.replicate_degrees) * self.replicates)

    def p_value(self, estimate: float) -> float:
        """The p-value of a figure against 0: it is below 1 - confidence just where the interval excludes 0.

        It is at least 1e-12.
        """
        low, high = math.log(1e-12), 0.0  # of the p-value's logarithm: the interval of `high` always holds it
        for _ in range(60):
            middle = (low + high) / 2
            if self.reach(1 - math.exp(middle)) < abs(estimate):
                high = middle
            else:
                low = middle
        return math.exp(high)


def mean_effects(figures: Sequence[Sequence[ReplicateEffects]]) -> tuple[ReplicateEffects, ...]:
    """The effects on the mean of N figures over different queries, such as one model's on N datasets.

    Replicates that have the same names everywhere are the same: their shifts are averaged by name. Otherwise each
    figure's replicates are by themselves.

    Args:
        figures: of each the families that it is made of.
    """
    n = len(figures)
    alike = len({tuple(tuple(sorted(family.shifts)) for family in families) for families in figures}) == 1
    if not alike:
        scaled = [family for families in figures for family in families]
        return tuple(_scaled(family, 1 / n) for family in scaled)
    return tuple(
        ReplicateEffects(
            {name: sum(family.shifts[name] for family in families) / n for name in families[0].shifts},
            sum(family.noise for family in families) / n**2,
        )
        for families in zip(*figures, strict=True)
    )


def _scaled(family: ReplicateEffects, factor: float) -> ReplicateEffects:
    shifts = {name: factor * shift for name, shift in family.shifts.items()}
    return ReplicateEffects(shifts, factor * factor * family.noise)
