"""Step changes in a series of nightly figures: where the level moved, beyond what nights differ by anyhow.

The figure of a night is taken to be a level, constant between steps, plus independent normal noise whose standard
deviation is the series' `noise` × the night's standard error. Nights share their queries, so that the noise is usually
far below 1. It is estimated from the differences of successive nights, a fifth of which may hold steps.

The method is a multiscale likelihood-ratio test. In each of many intervals of nights the statistic is that of a change
of the mean at the most likely night, every night weighted by its precision (CUSUM). An interval is significant where
its statistic, less a penalty for how many others are as short (Frick, Munk & Sieling 2014), exceeds what 95% of series
without steps stay below in all intervals together. The intervals are nested grids of growing length, as in seeded
binary segmentation (Kovács et al. 2023). Of the significant ones the narrowest is taken, those that overlap it are left
out, and so on (Fryzlewicz 2024): with 95% confidence each interval taken holds a step, however many there are.

Nights that repeat the figure of the night before measured the same output again, and count as one. Where outputs last
ten nights and more, or most nights repeat and the others are too few to tell noise, every change is a step.

Reference:
    Frick, Munk & Sieling 2014, doi:10.1111/rssb.12047; Kovács, Bühlmann, Li & Munk 2023, doi:10.1093/biomet/asac052;
    Fryzlewicz 2024, doi:10.1080/01621459.2023.2211733.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats

__all__ = ["FEWEST", "Changepoint", "Changepoints", "critical_excess", "find_changepoints", "greatest_excess"]

FEWEST = 8
"""Different outputs that a series needs before steps can be distinguished from noise."""

_LASTING = 10  # nights that an output stays, on average, where every other output is a step
_KEPT = 0.8  # of the squared differences, from which the noise is estimated: the smallest
_SAME = 1e-12  # figures no further apart are of one output: other versions of libraries move them by as much

_SPAN = 1e3  # a thousandth of the median standard error is rounding, where all queries score alike; weights stay finite

# Nights, and the excess that 95% of series without steps stay below: bench_steps.py simulates them.
_NIGHTS = (8, 12, 24, 48, 96, 192, 384, 768, 1536)
_CRITICAL = (1.84, 2.03, 2.05, 2.08, 2.10, 2.13, 2.17, 2.21, 2.25)
_NORMAL = NormalDist()

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Changepoint:
    """A change of the level.

    Attributes:
        place: the first night of the new level, the most likely one, as a place in the series.
        earliest: the first night that it may be.
        latest: the last one. In 95% of series all steps found are within these bounds.
        before: the level since the step before, a mean weighted by precision.
        after: the level until the next step.
        std_error: the standard deviation of the change; 0 if there is no noise.
    """

    place: int
    earliest: int
    latest: int
    before: float
    after: float
    std_error: float


@dataclass(frozen=True)
class Changepoints:
    """What was found in a series.

    Attributes:
        noise: what nights differ by, in their standard errors; 0 where outputs stay and every change is a step;
            None where there are too few nights to tell.
        steps: in their order.
        correlation: of successive nights, once the levels are taken off; near 0 where the noise is independent, as the
            method takes it to be. None if there is no noise, or none known.
        correlated: whether it is more than chance makes it (2 / √nights), so that steps may be noise.
    """

    noise: float | None
    steps: tuple[Changepoint, ...] = ()
    correlation: float | None = None
    correlated: bool = False


@dataclass(frozen=True, eq=False)
class _Stretch:
    """The n nights that may be compared, one for each output."""

    places: Places  # where they stand in the series
    figures: Floats
    std_errors: Floats


def find_changepoints(
    figures: Sequence[float], std_errors: Sequence[float | None], breaks: Sequence[int] = ()
) -> Changepoints:
    """The steps of a series; none spans a break.

    Args:
        figures: (n,) the figure of each night.
        std_errors: (n,) their standard errors; a night without one, or with one that is but rounding, counts as the
            median night does.
        breaks: the places from which on figures are not comparable with those before.
    """
    if not len(figures):
        return Changepoints(None)
    stretches = _stretches(np.array(figures, dtype=np.float64), _filled(std_errors), breaks)
    n_moved = sum(len(stretch.places) - 1 for stretch in stretches)
    n_pairs = len(figures) - len(stretches)
    if 2 * n_moved < n_pairs and n_moved < max(FEWEST - 1, n_pairs / _LASTING):
        return Changepoints(0.0, tuple(step for stretch in stretches for step in _every_change(stretch)))
    if n_moved < FEWEST - 1:
        return Changepoints(None)
    n_nights = n_moved + len(stretches)
    noise = float(_noise([_differences(stretch.figures, stretch.std_errors) for stretch in stretches]))
    bounds = [_bounds(stretch, noise, n_nights) for stretch in stretches]
    at = [_located(stretch, own) for stretch, own in zip(stretches, bounds, strict=True)]
    steps = [step for found in zip(stretches, at, bounds, strict=True) for step in _described(*found, noise)]
    correlation = _correlation([_left(*found) for found in zip(stretches, at, strict=True)])
    return Changepoints(noise, tuple(steps), correlation, correlated=correlation > 2 / math.sqrt(n_nights))


def critical_excess(n_nights: int) -> float:
    """What `greatest_excess` of that many nights without a step stays below in 95% of series."""
    return float(np.interp(math.log(n_nights), np.log(_NIGHTS), _CRITICAL))


def greatest_excess(figures: Floats, std_errors: Floats) -> Floats:
    """What decides whether any step is found: the greatest statistic of all intervals, less their penalties.

    Args:
        figures: (B, n) a series per row, without breaks and with no night that repeats another.
        std_errors: (n,) of every series.

    Returns:
        (B,).
    """
    noise = _noise([_differences(figures, std_errors)])
    n_nights = figures.shape[-1]
    excesses = [
        (statistics / noise[:, np.newaxis] - _penalty(length, n_nights)).max(axis=1)
        for length, _, statistics in _scan(figures, std_errors)
    ]
    greatest: Floats = np.max(excesses, axis=0)
    return greatest


def _stretches(figures: Floats, std_errors: Floats, breaks: Sequence[int]) -> list[_Stretch]:
    """The nights between breaks, without those that repeat the figure of the night before."""
    repeats = np.abs(np.diff(figures)) <= _SAME * np.maximum(1.0, np.abs(figures[1:]))
    repeats[[place - 1 for place in breaks if 0 < place < len(figures)]] = False
    places = np.flatnonzero(~np.concatenate([[False], repeats]))
    parts = np.split(places, np.searchsorted(places, sorted(breaks)))
    return [_Stretch(part, figures[part], std_errors[part]) for part in parts if len(part)]


def _filled(std_errors: Sequence[float | None]) -> Floats:
    """(n,) the standard errors, the median one if there is none to speak of; 1 where no night has any."""
    known = np.array([error or 0.0 for error in std_errors], dtype=np.float64)
    median = np.median(known[known > 0]) if (known > 0).any() else 1.0
    return np.where(known < median / _SPAN, median, np.minimum(known, median * _SPAN))


def _differences(figures: Floats, std_errors: Floats) -> Floats:
    """(…, n - 1) the changes from night to night, each in its own standard deviation were the noise 1."""
    return np.diff(figures, axis=-1) / np.hypot(std_errors[1:], std_errors[:-1])


def _noise(differences: Sequence[Floats]) -> Floats:
    """(…,) the scale of differences: of their smallest squares, so that steps and odd nights do not count."""
    squares = np.sort(np.concatenate(differences, axis=-1) ** 2, axis=-1)
    n_kept = math.ceil(_KEPT * squares.shape[-1])
    share = n_kept / squares.shape[-1]
    bound = _NORMAL.inv_cdf((1 + share) / 2)
    expected = 1 - 2 * bound * _NORMAL.pdf(bound) / share  # E[Z² | |Z| < bound]
    noise: Floats = np.sqrt(squares[..., :n_kept].mean(axis=-1) / expected)
    return noise


def _penalty(length: int, n_nights: int) -> float:
    """By how much the statistic of an interval may be greater because there are many as short as it."""
    return math.sqrt(2 * math.log(math.e * n_nights / length))


def _scan(figures: Floats, std_errors: Floats) -> Iterator[tuple[int, Places, Floats]]:
    """The likelihood-ratio statistics of a change in (B, n) figures, were the noise 1, in all intervals.

    By their length in nights: the length, (I,) where the intervals begin, and (B, I) their statistics.
    """
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
    """2, 3, 4, 6, 8, 11, 16 and so on, by √2, and all nights."""
    grown = [round(2 ** (power / 2)) for power in range(2, 64)]
    return [length for length in grown if length < n_nights] + [n_nights] if n_nights > 1 else []


def _every_change(stretch: _Stretch) -> Iterator[Changepoint]:
    """A step at every change of a stretch in which outputs stay."""
    at = range(1, len(stretch.places))
    yield from _described(stretch, at, [(i, i) for i in at], noise=0.0)


def _bounds(stretch: _Stretch, noise: float, n_nights: int) -> list[tuple[int, int]]:
    """The first and the last night of each step's new level, as far as is known: narrowest intervals first."""
    least = critical_excess(n_nights)
    significant: list[tuple[int, float, int]] = []
    for length, starts, statistics in _scan(stretch.figures[np.newaxis], stretch.std_errors):
        excess = statistics[0] / noise - _penalty(length, n_nights) - least
        significant += [(length, -float(excess[i]), int(starts[i])) for i in np.flatnonzero(excess > 0)]
    taken: list[tuple[int, int]] = []
    for length, _, start in sorted(significant):
        first, last = start + 1, start + length - 1
        if all(last < earliest or latest < first for earliest, latest in taken):
            taken.append((first, last))
    return sorted(taken)


def _located(stretch: _Stretch, bounds: Sequence[tuple[int, int]]) -> list[int]:
    """The most likely first night of each new level within its bounds, given those of its neighbours."""
    at = [_likeliest(stretch, first - 1, (first, last), last + 1) for first, last in bounds]
    for _ in range(2):  # a second time, from neighbours that have moved
        ends = [0, *at, len(stretch.places)]
        at = [_likeliest(stretch, ends[i], bounds[i], ends[i + 2]) for i in range(len(at))]
    return at


def _likeliest(stretch: _Stretch, begin: int, bounds: tuple[int, int], end: int) -> int:
    """The night within bounds at which a change of the level fits the nights from `begin` until before `end` best."""
    weights = stretch.std_errors[begin:end] ** -2
    summed = np.cumsum(weights * (stretch.figures[begin:end] - stretch.figures[begin]))
    share = np.cumsum(weights) / weights.sum()
    splits = np.arange(bounds[0], bounds[1] + 1) - begin
    before = share[splits - 1]
    moved = np.abs(summed[splits - 1] - before * summed[-1]) / np.sqrt(before * (1.0 - before))
    return bounds[0] + int(moved.argmax())


def _described(
    stretch: _Stretch, at: Sequence[int], bounds: Sequence[tuple[int, int]], noise: float
) -> Iterator[Changepoint]:
    """The steps at these nights, with the levels between them."""
    levels, weights = _levels(stretch, at)
    for i, (earliest, latest) in enumerate(bounds):
        yield Changepoint(
            place=int(stretch.places[at[i]]),
            earliest=int(stretch.places[earliest]),
            latest=int(stretch.places[latest]),
            before=float(levels[i]),
            after=float(levels[i + 1]),
            std_error=noise * math.sqrt(1 / weights[i] + 1 / weights[i + 1]),
        )


def _levels(stretch: _Stretch, at: Sequence[int]) -> tuple[Floats, Floats]:
    """The weighted mean between one step and the next, and the sum of its weights, for each of them."""
    weights = stretch.std_errors**-2
    begins = [0, *at]
    totals = np.add.reduceat(weights, begins)
    return np.add.reduceat(weights * stretch.figures, begins) / totals, totals


def _left(stretch: _Stretch, at: Sequence[int]) -> Floats:
    """(n,) what is left of the figures without their levels, in standard errors."""
    levels, _ = _levels(stretch, at)
    passed = np.searchsorted(at, np.arange(len(stretch.places)), side="right")
    return (stretch.figures - levels[passed]) / stretch.std_errors


def _correlation(left: Sequence[Floats]) -> float:
    """Of what is left of successive nights, none of them over a break."""
    products = sum(float((part[1:] * part[:-1]).sum()) for part in left)
    return products / sum(float((part**2).sum()) for part in left)
