"""Joint intervals and p-values of the primary family by the bootstrap-t, which assumes no symmetry."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np

from rankledger.metrics.aggregation import MEAN, Aggregation
from rankledger.metrics.block import Floats, divide
from rankledger.pipeline.inference.intervals import ROUNDING, Resampled, tail_end
from rankledger.pipeline.inference.samples import Pair, Sample

_CANCELLED = 1e-13  # of the size of the terms
_FEW = 0.1  # of the error of the family: what resamples without spread may take of it


@dataclass(frozen=True)
class JointDifference:
    """Interval and p-value of one difference of the family."""

    p_value: float  # of this difference alone
    p_joint: float  # among the family; below alpha just if 0 is outside the interval, if that has no mark
    ends: tuple[float | None, float | None]  # all intervals of the family hold at once; (None, None) if there is none


@dataclass(frozen=True, eq=False)
class _BootstrapDistances:
    """Distances t* of resamples from the sample in their standard errors, (B,)."""

    long: Floats  # (B,) to the side of its long tail; the queries have theirs on the other
    short: Floats  # (B,) to the other side

    @cached_property
    def ascending(self) -> tuple[Floats, Floats, Floats]:
        """Sorted distances, absolute and to either side, (B,) each."""
        return np.sort(np.maximum(self.long, self.short)), np.sort(self.long), np.sort(self.short)

    def p_value(self, found: _TestedDifference) -> float:
        """Return the share of the resamples, the sample included, that are at least as far."""
        if found.sparse is None:
            return self._share(np.maximum(self.long, self.short), found.t)
        side = self.long if (found.side > 0) == (found.estimate > 0) else self.short
        return min(1.0, 2 * self._share(side, found.t))

    def _share(self, stars: Floats, t: float) -> float:
        return (1 + int(np.count_nonzero(stars >= t - ROUNDING))) / (1 + len(stars))

    def reaches(self, found: _TestedDifference, alpha: float) -> tuple[float, float]:
        both, long, short = self.ascending
        reach = _critical(both, alpha)
        if found.sparse is None:
            return reach, reach
        above, below = (long, short) if found.side > 0 else (short, long)
        return max(reach, _critical(above, alpha / 2)), max(reach, _critical(below, alpha / 2))


@dataclass(frozen=True, eq=False)
class _TestedDifference:
    estimate: float
    error: float
    limits: tuple[float, float]
    side: float  # 1 if the long tail of t* is above, -1 if it is below
    sparse: Resampled | None  # the difference if few queries decide it; else None

    @property
    def t(self) -> float:
        return abs(self.estimate) / self.error


def joint_differences(sample: Sample, pairs: Sequence[Pair], alpha: float) -> tuple[JointDifference | None, ...]:
    """Compute intervals and p-values of all pairs at once, by max |t*| in a single step.

    t* is the distance of a resample's difference from the sample's, in standard errors of that resample. c is the
    quantile of the maximum |t*| of the pairs, and an interval reaches c standard errors. A resample without spread is
    infinitely far. A difference with many of them, because fewer than about seven queries differ, is left out, or it
    would widen all other intervals without end.

    A sample that lacks the far end of a long tail has too small a spread. So if few queries decide a difference, its
    interval has the outer ends of three: this one, the same with half of the error for either side, and Student's t
    with tails corrected for skewness, by Bonferroni.

    Args:
        sample: Resamples of one dataset.
        pairs: The family. None of its differences is undefined.
        alpha: Probability that any interval of the family misses, in (0, 1).

    Returns:
        Result by pair. None for a pair that is left out.

    Reference:
        Romano & Wolf 2005, doi:10.1198/016214504000000539, in a single step; Efron & Tibshirani 1993, section 12.5;
        Johnson 1978, doi:10.1080/01621459.1978.10480051, and Hall 1992 for the correction.
    """
    long, short = np.zeros((2, sample.n_resamples))
    candidates: list[tuple[_TestedDifference, float] | None] = []
    for difference, errors in differences_with_errors(sample, pairs):
        side = -1.0 if difference.acceleration > 0 else 1.0
        away = side * divide(difference.resamples - difference.centre, errors[1:])
        spreadless = np.isnan(away) | (errors[1:] == 0)
        if spreadless.mean() > _FEW * alpha / len(pairs):
            candidates.append(None)
            continue
        stars = _BootstrapDistances(np.where(spreadless, np.inf, away), np.where(spreadless, np.inf, -away))
        np.maximum(long, stars.long, out=long)
        np.maximum(short, stars.short, out=short)
        sparse = difference if difference.mark else None
        tested = _TestedDifference(difference.centre, float(errors[0]), difference.range, side, sparse)
        candidates.append((tested, stars.p_value(tested)))
    family, n_found = _BootstrapDistances(long, short), sum(tested is not None for tested in candidates)
    return tuple(tested and _joint(*tested, family, alpha, n_found) for tested in candidates)


def differences_with_errors(sample: Sample, pairs: Sequence[Pair]) -> Iterator[tuple[Resampled, Floats]]:
    """Yield each pair's difference, and (1 + B,) standard errors over the sample and each resample."""
    for some_pairs in sample.few_at_a_time(pairs):
        figures = [_DeltaColumns.of(sample, pair) for pair in some_pairs]
        distinct: dict[bytes, int] = {}  # with equal weights, those of each pair are the same, and so are products
        places = [[distinct.setdefault(column.tobytes(), len(distinct)) for column in each.columns] for each in figures]
        columns = np.stack([np.frombuffer(column) for column in distinct])
        differences, (drawn,) = sample.differences_and_sums(some_pairs, columns)
        for difference, figure, place in zip(differences, figures, places, strict=True):
            yield difference, figure.errors(drawn[place])


@dataclass(frozen=True, eq=False)
class _DeltaColumns:
    # of each figure, with its factor and the number of its numerators
    aggregations: Sequence[tuple[Aggregation, float, int]]
    columns: Floats  # (N, C) what each cluster adds: numerators and denominator by figure, then their products
    n_clusters: int

    @classmethod
    def of(cls, sample: Sample, pair: Pair) -> _DeltaColumns:
        first, other = sample.sides(pair)
        if first.is_paired_mean(other):
            made = [(MEAN, 1.0, 1)]
            rows = [first.numerators - pair.factor * other.numerators, first.denominators]
        else:
            made = [(first.aggregation, 1.0, first.n_sums), (other.aggregation, -pair.factor, other.n_sums)]
            rows = [first.numerators, first.denominators, other.numerators, other.denominators]
        added = np.vstack(rows)
        products = [added[i] * added[j] for i, j in _list_pairs(len(added))]
        return cls(made, np.vstack([added, *products]), int((first.denominators > 0).sum()))

    def errors(self, sums: Floats) -> Floats:
        weights: list[Floats] = []
        for aggregation, factor, n_numerators in self.aggregations:
            *numerators, total = sums[len(weights) : len(weights) + n_numerators + 1]
            means = divide(np.stack(numerators), total)
            slopes = divide(factor * aggregation.slope(means), total)
            weights += [*slopes, -(slopes * means).sum(axis=0)]
        variance, size = np.zeros((2, sums.shape[1]))
        for (i, j), product in zip(_list_pairs(len(weights)), sums[len(weights) :], strict=True):
            term = (1 if i == j else 2) * weights[i] * weights[j] * product
            variance += term
            size += np.abs(term)
        variance[variance <= _CANCELLED * size] = 0.0  # what rounding leaves of terms that cancel
        return np.sqrt(variance * (self.n_clusters / (self.n_clusters - 1)))


def _list_pairs(n: int) -> list[tuple[int, int]]:
    return list(combinations_with_replacement(range(n), 2))


def _critical(ordered: Floats, alpha: float) -> float:
    """Return the distance that few enough resamples reach for a p-value below alpha, infinite if none is."""
    allowed = math.ceil(round(alpha * (len(ordered) + 1), 9)) - 2
    return float(ordered[len(ordered) - 1 - allowed]) if 0 <= allowed < len(ordered) else math.inf


def _joint(
    found: _TestedDifference, p_value: float, family: _BootstrapDistances, alpha: float, n_found: int
) -> JointDifference:
    low, high = _ends(found, *family.reaches(found, alpha))
    if found.sparse is not None and low is not None and high is not None:
        tail = alpha / (2 * n_found)
        low = min(low, tail_end(found.sparse, tail, upper=False))
        high = max(high, tail_end(found.sparse, tail, upper=True))
    return JointDifference(p_value, family.p_value(found), (low, high))


def _ends(found: _TestedDifference, below: float, above: float) -> tuple[float | None, float | None]:
    if not (math.isfinite(below) and math.isfinite(above)):
        return None, None
    minimum, maximum = map(float, found.limits)
    low, high = (found.estimate + reach * found.error for reach in (-(below + ROUNDING), above + ROUNDING))
    return max(low, minimum), min(high, maximum)
