"""Find steps of the level in a series of nightly values.

The value of a night is a level, constant between steps, plus noise. Its standard deviation is the series' `noise`
times the night's standard error, usually far below it because nights share queries. The noise is estimated from the
differences of successive nights, 15% of which may hold steps.

The method is a multiscale likelihood-ratio test. Each interval of nights has the CUSUM statistic of a change at its
most likely night, with every night weighted by its precision. An interval is significant if its statistic, less a
penalty for the number of intervals of its length (Frick, Munk & Sieling 2014), exceeds the 95% quantile of the maximum
statistic in series of independent, normal nights without a step. The intervals are nested grids, as in seeded binary
segmentation (Kovács et al. 2023). The narrowest significant interval is taken first, and those that overlap it are
dropped (Fryzlewicz 2024).

Each night is clipped at the median of the nine nights around it ± 1.5 standard deviations of the noise, so that one or
two odd nights are no step. The noise is a first-order autoregression. A change that is significant against such noise
is a *step*, one that is significant only against independent noise is a *step or drift*. Nights that repeat the value
of the night before count as one. If outputs last at least ten nights, or too few nights differ to estimate the noise,
every change is a step.

Reference:
    Frick, Munk & Sieling 2014, doi:10.1111/rssb.12047; Kovács, Bühlmann, Li & Munk 2023, doi:10.1093/biomet/asac052;
    Fryzlewicz 2024, doi:10.1080/01621459.2023.2211733.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats

Tier: TypeAlias = Literal["step", "step or drift"]
"""How sure a step is: also if nights are correlated, or only if they are independent."""

FEWEST_NIGHTS = 8
"""Nights whose figures differ that a series needs before steps can be distinguished from noise."""


@dataclass(frozen=True)
class LevelChange:
    """Step of a series.

    Attributes:
        date: Most likely first night of the new level.
        earliest: Earliest possible first night.
        latest: Latest possible first night.
        n_nights: Number of nights of the new level that have a value, until the next step, a break, or the last night.
        before: Level until then, a mean weighted by precision.
        after: Level from then on.
        std_error: Standard deviation of the change, given the correlation of nights. 0 if there is no noise.
        tier: `step`, or `step or drift` if correlated nights alone may explain it.
    """

    date: str
    earliest: str
    latest: str
    n_nights: int
    before: float
    after: float
    std_error: float
    tier: Tier = "step"


@dataclass(frozen=True)
class FalseSteps:
    """Simulated rate of steps in series that have none.

    Attributes:
        noise: Distribution of the nights in these series.
        n_nights: Number of nights of each.
        step: Share of series that show a step.
        step_or_drift: Share of series that show a step of either tier.
        correlation: Correlation of successive nights, from 0 to 1.
    """

    noise: str
    n_nights: int
    step: float
    step_or_drift: float
    correlation: float


_LASTING = 10  # nights that an output stays, on average, where every other output is a step
_KEPT = 0.85  # of the squared differences, from which the noise is estimated: the smallest
_SAME = 1e-12  # figures no further apart are of one output: other versions of libraries move them by as much

_SPAN = 1e3  # a thousandth of the median standard error is rounding, where all queries score alike; weights stay finite

_AROUND = 4  # nights on either side, with which the median is taken
_CLIPPED = 1.5  # standard deviations of the noise, from that median

_LAGS = (2, 3, 4, 5)  # nights between those that are compared for the correlation; 2 at least, and
_PER_LAG = 15  # one more for so many nights: a step is in as many differences as the lag has nights
_CORRELATIONS = np.linspace(0.0, 0.99, 100)

# By nights, the shares of series without a step in which a step is found, and one of either tier; simulated likewise.
_FALSE_NIGHTS = (12, 30, 60, 120, 365)
_FALSE = {  # with the correlation of successive nights
    "independent nights": (0.0, ((0.011, 0.050), (0.018, 0.051), (0.015, 0.047), (0.018, 0.043), (0.025, 0.044))),
    "heavy tails": (0.0, ((0.007, 0.035), (0.014, 0.039), (0.013, 0.034), (0.019, 0.037), (0.027, 0.041))),
    "5% outlying nights": (0.0, ((0.009, 0.034), (0.011, 0.035), (0.013, 0.033), (0.014, 0.034), (0.025, 0.037))),
    "correlation 0.3": (0.3, ((0.033, 0.183), (0.071, 0.316), (0.054, 0.445), (0.046, 0.593), (0.038, 0.823))),
    "correlation 0.6": (0.6, ((0.068, 0.432), (0.148, 0.790), (0.078, 0.948), (0.061, 0.996), (0.037, 1.000))),
    "correlation 0.9": (0.9, ((0.083, 0.683), (0.206, 0.980), (0.148, 0.999), (0.124, 1.000), (0.087, 1.000))),
    "random walk": (1.0, ((0.087, 0.745), (0.223, 0.991), (0.171, 1.000), (0.171, 1.000), (0.237, 1.000))),
}

# Nights, and the excess that 95% of series without steps stay below: tests/simulations/steps.py simulates them.
_NIGHTS = (8, 12, 16, 24, 48, 96, 192, 384, 768, 1536)
_CRITICAL = (1.16, 1.42, 1.47, 1.64, 1.81, 1.95, 2.03, 2.11, 2.18, 2.24)
_NORMAL = NormalDist()

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SeriesSteps:
    """Steps of a series.

    Attributes:
        steps: Steps of the level, oldest first.
        noise: Variation of nights in their standard errors. 0 if outputs stay and every change is a step, None if there
            are too few nights to tell steps.
        correlation: Correlation of successive nights, from 0 to 0.99, as a first-order autoregression. None if unknown.
        false_steps: Rate of false steps in series of about as many nights. Empty if there was no test.
        n_different: Number of nights with different values if `noise` is None.
    """

    steps: tuple[LevelChange, ...]
    noise: float | None
    correlation: float | None = None
    false_steps: tuple[FalseSteps, ...] = ()
    n_different: int = 0


@dataclass(frozen=True, eq=False)
class _ComparableNights:
    """Nights that can be compared, one for each output."""

    places: Places  # where they stand in the series
    figures: Floats
    std_errors: Floats


class _StepBounds(NamedTuple):
    """First and last night at which a new level may begin, as indices into a stretch."""

    earliest: int
    latest: int
    tier: Tier


def find_changepoints(
    nights: Sequence[str], figures: Sequence[float], std_errors: Sequence[float | None], breaks: Sequence[int] = ()
) -> SeriesSteps:
    """Return the steps of a series. No step spans a break."""
    if not len(figures):
        return SeriesSteps((), None)
    stretches = _stretches(np.array(figures, dtype=np.float64), _fill_gaps(std_errors), breaks)
    n_moved = sum(len(stretch.places) - 1 for stretch in stretches)
    n_pairs = len(figures) - len(stretches)
    steps: dict[int, LevelChange] = {}
    if 2 * n_moved < n_pairs and n_moved < max(FEWEST_NIGHTS - 1, n_pairs / _LASTING):
        for stretch in stretches:
            places = range(1, len(stretch.places))
            steps |= _describe_steps(stretch, places, [_StepBounds(i, i, "step") for i in places], 0.0, 0.0, nights)
        return SeriesSteps(_count_nights(steps, breaks, len(figures)), 0.0)
    if n_moved < FEWEST_NIGHTS - 1:
        return SeriesSteps((), None, n_different=n_moved + 1)
    n_nights = n_moved + len(stretches)
    noise = float(_noise([_differences(stretch.figures, stretch.std_errors) for stretch in stretches]))
    clipped = [
        replace(stretch, figures=_clip_outliers(stretch.figures, noise * stretch.std_errors)) for stretch in stretches
    ]
    correlation = float(_correlation([(stretch.figures, stretch.std_errors) for stretch in clipped], n_nights))
    for stretch, part in zip(stretches, clipped, strict=True):
        bounds = _bounds(part, noise, correlation, n_nights)
        steps |= _describe_steps(stretch, _locate_steps(part, bounds), bounds, noise, correlation, nights)
    return SeriesSteps(_count_nights(steps, breaks, len(figures)), noise, correlation, _false_steps(n_nights))


def _count_nights(steps: Mapping[int, LevelChange], breaks: Sequence[int], n_nights: int) -> tuple[LevelChange, ...]:
    ends = sorted({*steps, *breaks, n_nights})
    return tuple(replace(step, n_nights=ends[bisect_right(ends, place)] - place) for place, step in steps.items())


def critical_excess(n_nights: int) -> float:
    """Return the 95% quantile of `greatest_excess` in series of independent, normal nights without a step."""
    return float(np.interp(math.log(n_nights), np.log(_NIGHTS), _CRITICAL))


def greatest_excess(figures: Floats, std_errors: Floats) -> Mapping[Tier, Floats]:
    """Return the maximum statistic of all intervals, less their penalties.

    Args:
        figures: (B, n) series in rows, without breaks and repeated nights.
        std_errors: (n,) of every series.

    Returns:
        (B,) by tier: against independent noise for `step or drift`, against correlated noise for `step`.
    """
    noise = _noise([_differences(figures, std_errors)])[:, np.newaxis]
    clipped = _clip_outliers(figures, noise * std_errors)
    n_nights = figures.shape[-1]
    correlation = _correlation([(clipped, std_errors)], n_nights)
    either, steps = [], []
    for length, _, statistics in _scan(clipped, std_errors):
        maxima = statistics.max(axis=1) / noise[:, 0]
        penalty = _penalty(length, n_nights)
        either.append(maxima - penalty)
        steps.append(maxima / _inflation(length // 2, length - length // 2, correlation) - penalty)
    return {"step": np.max(steps, axis=0), "step or drift": np.max(either, axis=0)}


def _stretches(figures: Floats, std_errors: Floats, breaks: Sequence[int]) -> list[_ComparableNights]:
    repeats = np.abs(np.diff(figures)) <= _SAME * np.maximum(1.0, np.abs(figures[1:]))
    repeats[[place - 1 for place in breaks if 0 < place < len(figures)]] = False
    places = np.flatnonzero(~np.concatenate([[False], repeats]))
    parts = np.split(places, np.searchsorted(places, sorted(breaks)))
    return [_ComparableNights(part, figures[part], std_errors[part]) for part in parts if len(part)]


def _fill_gaps(std_errors: Sequence[float | None]) -> Floats:
    errors = np.array([error or 0.0 for error in std_errors], dtype=np.float64)
    median = np.median(errors[errors > 0]) if (errors > 0).any() else 1.0
    return np.where(errors < median / _SPAN, median, np.minimum(errors, median * _SPAN))


def _differences(figures: Floats, std_errors: Floats, lag: int = 1) -> Floats:
    return (figures[..., lag:] - figures[..., :-lag]) / np.hypot(std_errors[lag:], std_errors[:-lag])


def _noise(differences: Sequence[Floats]) -> Floats:
    squares = np.sort(np.concatenate(differences, axis=-1) ** 2, axis=-1)
    n_kept = min(math.ceil(_KEPT * squares.shape[-1]), squares.shape[-1] - 1)
    share = n_kept / squares.shape[-1]
    bound = _NORMAL.inv_cdf((1 + share) / 2)
    expected = 1 - 2 * bound * _NORMAL.pdf(bound) / share  # E[Z² | |Z| < bound]
    noise: Floats = np.sqrt(squares[..., :n_kept].mean(axis=-1) / expected)
    return noise


def _clip_outliers(figures: Floats, spread: Floats) -> Floats:
    """Return (…, n) values, clipped at `spread` from the median of the nights around.

    The spread is the night's own or, if greater, the median spread of those nights. Of two middle nights the nearer one
    counts, so that a step near the end of a series stays.
    """
    low, high = _middle(figures)
    reach = _CLIPPED * np.maximum(spread, _middle(spread)[1])
    return np.clip(figures, low - reach, high + reach)


def _middle(values: Floats) -> tuple[Floats, Floats]:
    ends = [(0, 0)] * (values.ndim - 1) + [(_AROUND, _AROUND)]
    padded = np.pad(values, ends, constant_values=np.inf)
    windows = np.sort(np.lib.stride_tricks.sliding_window_view(padded, 2 * _AROUND + 1, axis=-1), axis=-1)
    night = np.arange(values.shape[-1])
    n_around = np.minimum(night, _AROUND) + np.minimum(night[::-1], _AROUND) + 1
    return windows[..., night, (n_around - 1) // 2], windows[..., night, n_around // 2]


def _correlation(stretches: Sequence[tuple[Floats, Floats]], n_nights: int) -> Floats:
    """Return the (…,) correlation of successive nights, by how differences grow with the lag.

    Differences of nights `lag` apart have variance 2 σ² (1 - ρ^lag), 1 + ρ + … + ρ^(lag - 1) times the variance of
    successive differences. The result is the greatest possible one if no two nights can be compared.
    """
    near = _noise([_differences(*stretch) for stretch in stretches])
    grown, expected = [], []
    for lag in _LAGS[: max(1, n_nights // _PER_LAG - 1)]:
        differences = [_differences(*stretch, lag) for stretch in stretches if stretch[0].shape[-1] > lag]
        if sum(part.shape[-1] for part in differences) > 1:
            grown.append((_noise(differences) / near) ** 2)
            expected.append(np.sum([_CORRELATIONS**power for power in range(lag)], axis=0))
    if not grown:
        return np.full_like(near, _CORRELATIONS[-1])
    return np.asarray(np.interp(np.mean(grown, axis=0), np.mean(expected, axis=0), _CORRELATIONS))


def _inflation(n_before: int, n_after: int, correlation: Floats | float) -> Floats:
    """Return (…,) factors by which correlation inflates the standard deviation of a change.

    The variance of a sum of h nights of an autoregression of variance 1 is (h (1 - ρ²) - 2 ρ (1 - ρ^h)) / (1 - ρ)², the
    covariance of two neighboring sums ρ (1 - ρ^a) (1 - ρ^b) / (1 - ρ)². The noise is estimated from differences of
    successive nights, whose variance is 1 - ρ times as great.
    """
    rho = np.asarray(correlation)
    lost = [1 - rho**n_nights for n_nights in (n_before, n_after)]
    variances = [
        (n_nights * (1 - rho**2) - 2 * rho * lost_part) / n_nights**2
        for n_nights, lost_part in zip((n_before, n_after), lost, strict=True)
    ]
    covariance = rho * lost[0] * lost[1] / (n_before * n_after)
    variance = (variances[0] + variances[1] - 2 * covariance) / (1 - rho) ** 3
    inflation: Floats = np.sqrt(variance / (1 / n_before + 1 / n_after))
    return inflation


def _penalty(length: int, n_nights: int) -> float:
    return math.sqrt(2 * math.log(math.e * n_nights / length))


def _scan(figures: Floats, std_errors: Floats) -> Iterator[tuple[int, Places, Floats]]:
    n_nights = figures.shape[-1]
    weights = np.concatenate([[0.0], np.cumsum(std_errors**-2)])
    moves = (figures - figures[:, :1]) * std_errors**-2  # from the first night: no digits are lost to the level
    sums = np.concatenate([np.zeros((len(figures), 1)), np.cumsum(moves, axis=1)], axis=1)
    for length in _lengths(n_nights):
        starts = np.unique(np.append(np.arange(0, n_nights - length, max(1, length // 2)), n_nights - length))
        ends = starts + length
        splits = starts[:, np.newaxis] + np.arange(1, length)
        total = (weights[ends] - weights[starts])[:, np.newaxis]
        share = (weights[splits] - weights[starts][:, np.newaxis]) / total
        expected = share * (sums[:, ends] - sums[:, starts])[:, :, np.newaxis]
        moved = np.abs(sums[:, splits] - sums[:, starts][:, :, np.newaxis] - expected)
        moved /= np.sqrt(share * (1.0 - share) * total)
        yield length, starts, moved.max(axis=2)


def _lengths(n_nights: int) -> list[int]:
    grown = [round(2 ** (power / 2)) for power in range(2, 64)]
    return [length for length in grown if length < n_nights] + [n_nights] if n_nights > 1 else []


def _bounds(stretch: _ComparableNights, noise: float, correlation: float, n_nights: int) -> list[_StepBounds]:
    scanned = list(_scan(stretch.figures[np.newaxis], stretch.std_errors))
    against: dict[Tier, float] = {"step": correlation, "step or drift": 0.0}
    intervals: list[_StepBounds] = []
    for tier, assumed in against.items():
        for first, last in _significant(scanned, noise, assumed, n_nights):
            if all(last < other.earliest or other.latest < first for other in intervals):
                intervals.append(_StepBounds(first, last, tier))
    return sorted(intervals)


def _significant(
    scanned: Sequence[tuple[int, Places, Floats]], noise: float, correlation: float, n_nights: int
) -> list[tuple[int, int]]:
    minimum = critical_excess(n_nights)
    runs: list[tuple[int, float, int]] = []
    for length, starts, statistics in scanned:
        deviation = noise * float(_inflation(length // 2, length - length // 2, correlation))
        excess = statistics[0] / deviation - _penalty(length, n_nights) - minimum
        runs += [(length, -float(excess[i]), int(starts[i])) for i in np.flatnonzero(excess > 0)]
    return [(start + 1, start + length - 1) for length, _, start in sorted(runs)]


def _locate_steps(stretch: _ComparableNights, bounds: Sequence[_StepBounds]) -> list[int]:
    cuts = [_likeliest(stretch, bound.earliest - 1, bound, bound.latest + 1) for bound in bounds]
    for _ in range(2):  # a second time, from neighbours that have moved
        ends = [0, *cuts, len(stretch.places)]
        cuts = [_likeliest(stretch, ends[i], bounds[i], ends[i + 2]) for i in range(len(cuts))]
    return cuts


def _likeliest(stretch: _ComparableNights, begin: int, bounds: _StepBounds, end: int) -> int:
    weights = stretch.std_errors[begin:end] ** -2
    summed = np.cumsum(weights * (stretch.figures[begin:end] - stretch.figures[begin]))
    share = np.cumsum(weights) / weights.sum()
    splits = np.arange(bounds.earliest, bounds.latest + 1) - begin
    before = share[splits - 1]
    moved = np.abs(summed[splits - 1] - before * summed[-1]) / np.sqrt(before * (1.0 - before))
    return bounds.earliest + int(moved.argmax())


def _describe_steps(
    stretch: _ComparableNights,
    at: Sequence[int],
    bounds: Sequence[_StepBounds],
    noise: float,
    correlation: float,
    nights: Sequence[str],
) -> dict[int, LevelChange]:
    """Return the steps by the place of their first night, without the number of their nights."""
    levels, weights = _levels(stretch, at)
    lasting = np.diff([0, *at, len(stretch.places)])
    steps = {}
    for i, bound in enumerate(bounds):
        inflation = float(_inflation(lasting[i], lasting[i + 1], correlation))
        place = int(stretch.places[at[i]])
        steps[place] = LevelChange(
            date=nights[place],
            earliest=nights[stretch.places[bound.earliest]],
            latest=nights[stretch.places[bound.latest]],
            n_nights=0,
            before=float(levels[i]),
            after=float(levels[i + 1]),
            std_error=noise * inflation * math.sqrt(1 / weights[i] + 1 / weights[i + 1]),
            tier=bound.tier,
        )
    return steps


def _levels(stretch: _ComparableNights, at: Sequence[int]) -> tuple[Floats, Floats]:
    weights = stretch.std_errors**-2
    begins = [0, *at]
    totals = np.add.reduceat(weights, begins)
    return np.add.reduceat(weights * stretch.figures, begins) / totals, totals


def _false_steps(n_nights: int) -> tuple[FalseSteps, ...]:
    place = min(range(len(_FALSE_NIGHTS)), key=lambda place: abs(math.log(_FALSE_NIGHTS[place] / n_nights)))
    return tuple(
        FalseSteps(noise, _FALSE_NIGHTS[place], *shares[place], correlation)
        for noise, (correlation, shares) in _FALSE.items()
    )
