"""Confidence intervals from resampled values, marks of unreliable ones, and intervals for any sample size.

Reference:
    Efron & Tibshirani 1993, chapters 13 and 14; Davison & Hinkley 1997, chapter 5, for the basic interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.pipeline.inference.distributions import beta_quantile, t_quantile
from rankledger.pipeline.inference.ratios import ReplicateEffects, TotalError

Method: TypeAlias = Literal["bca+t", "bca", "percentile", "basic"]

ROUNDING = 1e-9
"""Standard errors up to which figures are equal: 0.1 + 0.2 and 0.3 are, though as doubles they are apart."""

ENOUGH = 8.0
"""The least `kappa` at which an interval is trusted."""

_NORMAL = NormalDist()
_SAMPLED = 16  # one of so many resamples tells about where a place is
_MOST_UNDEFINED = 0.01  # of the resamples: with more, those that are left are no sample of all
_UNBOUNDED = (-math.inf, math.inf)
_ORDERS = 24  # over which the capital is averaged; the ends of one order depend on it
_TRUNCATION = 0.5  # of the capital that a bet may lose at most
_HALVINGS = 50


@dataclass(frozen=True, eq=False)
class Resampled:
    """Value or difference of values, with its resamples."""

    estimate: float  # over the sample; NaN if undefined
    # the estimate from the rounded numbers, which alone can be compared with the resamples: equal is equal
    centre: float
    resamples: Floats  # (B,) value over each resample; NaN if one leaves it undefined
    influence: Floats  # (K,) how much each cluster moves the figure; the sum is 0
    n_queries: int
    n_clusters: int
    range: tuple[float, float] = _UNBOUNDED  # least and greatest possible value
    families: tuple[ReplicateEffects, ...] = ()  # effects of replicates, by family; none if models have one output each
    # degrees of freedom of a mean over datasets, whose numbers `pool` has scaled; 0 otherwise
    pooled_degrees: float = 0.0

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the error: C - 1 for C clusters, unless the value is pooled."""
        return self.pooled_degrees or self.n_clusters - 1

    @cached_property
    def total_error(self) -> TotalError:
        return TotalError.of(self.error, self.degrees, self.families)

    @cached_property
    def error(self) -> float:
        """Standard error by the influences of C clusters, √(C / (C - 1) · Σ influence²). NaN for fewer than two."""
        n = self.n_clusters
        scale = 1.0 if self.pooled_degrees else math.sqrt(n / (n - 1)) if n > 1 else math.nan
        return scale * self._spread

    @cached_property
    def kappa(self) -> float:
        """Effective number of clusters, (Σ influence²)² / Σ influence⁴, in [1, C]. 0 if all are alike."""
        return 1 / self._powers[2] if self._spread else 0.0

    @cached_property
    def acceleration(self) -> float:
        """Skewness of the clusters over 6 √C, which BCa corrects. 0 if all are alike."""
        return self._powers[1] / (6 * float(self.variance**1.5)) if self.variance else 0.0

    @property
    def variance(self) -> float:
        """Σ influence²."""
        return self._powers[0]

    @cached_property
    def _powers(self) -> tuple[float, float, float]:
        powers = self.influence * self.influence  # in place from here on: powers and new arrays are slow
        squares = float(powers.sum())
        powers *= self.influence
        cubes = float(powers.sum())
        if squares == 0:
            return squares, cubes, math.nan
        np.divide(self.influence, math.sqrt(squares), out=powers)  # so that no power underflows
        powers *= powers
        powers *= powers
        return squares, cubes, float(powers.sum())

    @property
    def mark(self) -> Literal["", "sparse", "degenerate", "empty"]:
        """Reason not to trust the interval: no cluster (`empty`), all alike (`degenerate`), few decide (`sparse`)."""
        if not self.n_clusters:
            return "empty"
        if self._spread == 0:
            return "degenerate"
        return "sparse" if self.kappa < ENOUGH else ""

    @property
    def std_error(self) -> float:
        """Standard deviation over the resamples, of families over replicates, too.

        NaN if more than 1% of the resamples leave the value undefined.
        """
        if self.n_undefined > _MOST_UNDEFINED * len(self.resamples):
            return math.nan
        defined = self.ascending if self.n_undefined else self.resamples
        deviations = defined - defined[0]  # so that equal figures have none at all
        deviations -= deviations.sum() / len(deviations)
        deviations *= deviations
        error = math.sqrt(float(deviations.sum()) / (len(deviations) - 1)) if len(deviations) > 1 else math.nan
        return math.hypot(error, self.total_error.replicates) if self.families else error

    @cached_property
    def ascending(self) -> Floats:
        ordered = np.sort(self.resamples)  # NaN last
        return ordered[: int(ordered.searchsorted(np.nan))]

    def from_least(self, place: int) -> tuple[float, float]:
        """Return the defined resample of this rank, from 0 on, and the next one or itself."""
        n_defined = len(self.resamples) - self.n_undefined
        following = min(place + 1, n_defined - 1)
        nearby, n_before = self._beyond_sampled((place + 1) / n_defined, n_defined)
        if not n_before <= place <= following < n_before + len(nearby):
            nearby, n_before = self.resamples.copy(), 0
        nearby.partition((place - n_before, following - n_before))  # NaN last
        return float(nearby[place - n_before]), float(nearby[following - n_before])

    @cached_property
    def _sampled(self) -> Floats:
        return np.sort(self.resamples[::_SAMPLED])  # NaN last

    def _beyond_sampled(self, share: float, n_defined: int) -> tuple[Floats, int]:
        sampled = self._sampled
        margin = 4 * math.sqrt(len(sampled) * share * (1 - share)) + 4
        if share < 1 / 2:
            cut = sampled[min(int(len(sampled) * share + margin), len(sampled) - 1)]
            return self.resamples[self.resamples <= cut], 0
        nearby = self.resamples[self.resamples >= sampled[max(int(len(sampled) * share - margin), 0)]]
        return nearby, n_defined - len(nearby)

    @cached_property
    def n_undefined(self) -> int:
        if math.isfinite(float(self.resamples.sum())):  # the usual case, in one pass
            return 0
        return int(np.count_nonzero(np.isnan(self.resamples)))

    @cached_property
    def doubled_rank(self) -> int:
        """Twice the number of resamples below the center. Ties count half."""
        nearly = ROUNDING * math.sqrt(self.variance)
        at_least = np.count_nonzero(self.resamples >= self.centre - nearly)
        above = np.count_nonzero(self.resamples > self.centre + nearly)
        return int(2 * (len(self.resamples) - self.n_undefined) - at_least - above)

    def outer(self, low: float, high: float, reach: float) -> tuple[float, float]:
        """Widen the ends to this distance from the estimate, within the range. NaN for a single cluster."""
        if self.n_clusters < 2:
            return math.nan, math.nan
        minimum, maximum = map(float, self.range)
        return (min(low, max(self.estimate - reach, minimum)), max(high, min(self.estimate + reach, maximum)))

    @cached_property
    def _spread(self) -> float:
        spread = math.sqrt(self.variance)
        reach = [abs(end) for end in self.range if math.isfinite(end)]
        return spread if spread > 1e-12 * max(abs(self.estimate), *reach, 0.0) else 0.0


def interval(resampled: Resampled, method: Method, confidence: float) -> tuple[float | None, float | None]:
    """Return the ends of a confidence interval, (None, None) if there is none.

    An undefined resample counts as the minimum for the lower end and as the maximum for the upper one. There is no
    interval if an end falls on an undefined resample.

    Args:
        resampled: Figure with its resamples.
        method: `percentile`, the quantiles of the resamples. `basic`, these mirrored at the estimate. `bca`, quantiles
            that are bias-corrected and accelerated. `bca+t`, the outer ends of BCa and Student's t within the range of
            the value, because BCa falls short on differences and t on skewed levels.
        confidence: Coverage in (0, 1).
    """
    if not math.isfinite(resampled.estimate) or resampled.n_undefined == len(resampled.resamples):
        return None, None
    tail = (1 - confidence) / 2
    levels = (tail, 1 - tail)
    if method in ("bca", "bca+t"):
        levels = _correct_level(resampled, tail, first=True), _correct_level(resampled, 1 - tail, first=False)
    low, high = _quantile(resampled, levels[0], first=True), _quantile(resampled, levels[1], first=False)
    if method == "basic":
        low, high = 2 * resampled.estimate - high, 2 * resampled.estimate - low
    if method == "bca+t":
        reach = t_quantile(1 - tail, max(1, resampled.degrees)) * resampled.error
        low, high = resampled.outer(low, high, reach)
    if resampled.families:
        low, high = resampled.outer(low, high, resampled.total_error.reach(confidence))
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)


def tail_end(resampled: Resampled, tail: float, *, upper: bool) -> float:
    """Return one end of an interval that is too far out for resamples. NaN for fewer than two clusters.

    The end is from Student's t, corrected for a long tail by the skewness terms of the Cornish–Fisher expansion. One
    standard error is added to the skewness, because a sample that lacks the tail looks less skewed. `tail` is in (0,
    0.5).

    Reference:
        Hall 1992, The Bootstrap and Edgeworth Expansion, sections 2.5 and 2.6, without the term of the kurtosis.
        Johnson 1978, doi:10.1080/01621459.1978.10480051, for the first term.
    """
    if resampled.n_clusters < 2 or not math.isfinite(resampled.estimate):
        return math.nan
    t, sign = t_quantile(1 - tail, resampled.n_clusters - 1), 1.0 if upper else -1.0
    skewness, its_error = _skewness(resampled)
    sixth = max(0.0, sign * skewness + its_error) / 6
    stretched = t + sixth * (2 * t * t + 1) + sixth * sixth * t * (10 * t * t - 2.5)
    end = resampled.estimate + sign * stretched * resampled.error
    minimum, maximum = map(float, resampled.range)
    return min(max(end, minimum), maximum)


def _skewness(resampled: Resampled) -> tuple[float, float]:
    spread = math.sqrt(float((resampled.influence * resampled.influence).sum()))
    if spread == 0:
        return 0.0, 0.0
    shares = resampled.influence / spread  # so that no power underflows
    cubes = shares * shares * shares
    return float(cubes.sum()), math.sqrt(float((cubes * cubes).sum()))


def known(figure: float) -> float | None:
    """Return the value, None if it is undefined."""
    return figure if math.isfinite(figure) else None


def _correct_level(resampled: Resampled, level: float, *, first: bool) -> float:
    """Return the level of the quantile that BCa uses instead of this level.

    Reference:
        Efron 1987, doi:10.1080/01621459.1987.10478410. The bias counts ties half, as scipy.stats.bootstrap does.
    """
    if resampled.variance == 0:
        return level
    bias, acceleration = _bias(resampled, first=first), resampled.acceleration
    moved = bias + _NORMAL.inv_cdf(level)
    room = 1 - acceleration * moved
    if room <= 0:  # so skewed that the level is beyond the last resample
        return 1.0 if moved > 0 else 0.0
    return _NORMAL.cdf(bias + moved / room)


def _bias(resampled: Resampled, *, first: bool) -> float:
    n_resamples = len(resampled.resamples)
    share = resampled.doubled_rank / (2 * n_resamples) + (resampled.n_undefined / n_resamples if first else 0.0)
    minimum = 1 / (2 * n_resamples)  # where all resamples lie on one side, half of one is taken to lie on the other
    return _NORMAL.inv_cdf(min(max(share, minimum), 1 - minimum))


def _quantile(resampled: Resampled, level: float, *, first: bool) -> float:
    """Return the quantile by definition 7 of Hyndman & Fan 1996. NaN if it falls among undefined resamples.

    Undefined resamples come before all others with `first`, and behind them without.
    """
    n_resamples = len(resampled.resamples)
    place = level * (n_resamples - 1) - (resampled.n_undefined if first else 0)
    below = math.floor(place)
    if below < 0 or place > n_resamples - resampled.n_undefined - 1:
        return math.nan
    low, high = resampled.from_least(below)
    return low + (high - low) * (place - below)


def bounded_interval(
    values: Floats, limits: tuple[float, float], confidence: float
) -> tuple[Literal["exact", "betting"], tuple[float, float]]:
    """Return the method and the ends of the interval for the mean of independent scores."""
    minimum, maximum = limits
    scaled = np.clip((values - minimum) / (maximum - minimum), 0.0, 1.0)
    binary = bool(((scaled == 0) | (scaled == 1)).all())
    n = len(scaled)
    if scaled.min() == scaled.max():  # other scores, however far away, are so rare that the sample holds none
        value, rare = float(values[0]), exact_interval(0, n, confidence)[1]
        return "exact", (value - rare * (value - minimum), value + rare * (maximum - value))
    low, high = exact_interval(int(scaled.sum()), n, confidence) if binary else betting_interval(scaled, confidence)
    ends = minimum + low * (maximum - minimum), minimum + high * (maximum - minimum)
    return "exact" if binary else "betting", ends


def exact_interval(successes: int, n: int, confidence: float) -> tuple[float, float]:
    """Compute the interval for a probability from `successes` in `n` trials.

    Reference:
        Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404.
    """
    tail = (1 - confidence) / 2
    low = beta_quantile(tail, successes, n - successes + 1) if successes else 0.0
    high = beta_quantile(1 - tail, successes + 1, n - successes) if successes < n else 1.0
    return low, high


def betting_interval(
    scores: Floats, confidence: float, *, _orders: Sequence[npt.NDArray[np.int64]] = ()
) -> tuple[float, float]:
    """Compute the interval for the mean of independent scores in [0, 1], by hedged capital.

    One gambler bets that the mean is above m, one that it is below. m is excluded once the capital of either is so
    large that a fair game rarely reaches it. The capital is averaged over 24 orders of the scores, drawn from a fixed
    seed, because the ends depend on the order.

    Args:
        scores: (Q,) in an order that does not depend on them.
        confidence: Minimum coverage, in (0, 1).

    Reference:
        Waudby-Smith & Ramdas 2024, doi:10.1093/jrsssb/qkad009, section 4: the bets of a fixed number of scores,
        truncated at 1/2, without the intersection over time.
    """
    rng = np.random.default_rng(0)
    ordered = np.stack([scores[order] for order in _orders or [rng.permutation(len(scores)) for _ in range(_ORDERS)]])
    above, below = _capital(ordered, confidence), _capital(1 - ordered, confidence)
    return _least_mean(above, confidence), 1 - _least_mean(below, confidence)


def _capital(ordered: Floats, confidence: float) -> Callable[[float], float]:
    n = ordered.shape[1]
    counts = np.arange(1, n + 1)
    means = (0.5 + ordered.cumsum(axis=1)) / (counts + 1)
    variances = (0.25 + ((ordered - means) ** 2).cumsum(axis=1)) / (counts + 1)
    before = np.concatenate([np.full((len(ordered), 1), 0.25), variances[:, :-1]], axis=1)
    bets = np.sqrt(2 * math.log(2 / (1 - confidence)) / (n * before))

    def logarithm(mean: float) -> float:
        limited = np.minimum(bets, _TRUNCATION / mean) if mean > 0 else bets
        logs = np.log1p(limited * (ordered - mean)).sum(axis=1)
        maximum = float(logs.max())
        return maximum + math.log(float(np.exp(logs - maximum).mean()))

    return logarithm


def _least_mean(logarithm: Callable[[float], float], confidence: float) -> float:
    threshold = math.log(2 / (1 - confidence))
    if logarithm(0.0) < threshold:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if logarithm(middle) >= threshold else (low, middle)
    return low
