"""Intervals for the mean of scores in a known range, which hold at any sample size, also if few queries decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.pipeline.inference.distributions import beta_quantile

_ORDERS = 24  # over which the capital is averaged; the ends of one order depend on it
_TRUNCATION = 0.5  # of the capital that a bet may lose at most
_HALVINGS = 50


def bounded_interval(
    values: Floats, limits: tuple[float, float], confidence: float
) -> tuple[Literal["exact", "betting"], tuple[float, float]]:
    """Compute how the interval for the mean of independent scores is made, and its ends.

    The interval is exact if every score is the minimum or maximum, or all are alike, and by betting otherwise.

    Args:
        values: (Q,) scores, in an order that does not depend on them, such as that of sorted query ids.
        limits: Least and greatest possible score, both finite.
        confidence: Least coverage of the interval, in (0, 1).
    """
    least, greatest = limits
    scaled = np.clip((values - least) / (greatest - least), 0.0, 1.0)
    binary = bool(((scaled == 0) | (scaled == 1)).all())
    n = len(scaled)
    if scaled.min() == scaled.max():  # other scores, however far away, are so rare that the sample holds none
        value, rare = float(values[0]), exact_interval(0, n, confidence)[1]
        return "exact", (value - rare * (value - least), value + rare * (greatest - value))
    low, high = exact_interval(int(scaled.sum()), n, confidence) if binary else betting_interval(scaled, confidence)
    ends = least + low * (greatest - least), least + high * (greatest - least)
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
    large that a fair game reaches it too rarely. The capital is averaged over 24 orders of the scores, drawn from a
    fixed seed, because the ends depend on the order.

    Args:
        scores: (Q,) in an order that does not depend on them.
        confidence: Least coverage of the interval, in (0, 1).

    Reference:
        Waudby-Smith & Ramdas 2024, doi:10.1093/jrsssb/qkad009, section 4: the bets of a fixed number of scores,
        truncated at 1/2, without the intersection over time.
    """
    rng = np.random.default_rng(0)
    ordered = np.stack([scores[order] for order in _orders or [rng.permutation(len(scores)) for _ in range(_ORDERS)]])
    above, below = _capital(ordered, confidence), _capital(1 - ordered, confidence)
    return _least_mean(above, confidence), 1 - _least_mean(below, confidence)


def _capital(ordered: Floats, confidence: float) -> Callable[[float], float]:
    """Return the logarithm of the mean capital of gamblers on a mean above m, as a falling function of m."""
    n = ordered.shape[1]
    counts = np.arange(1, n + 1)
    means = (0.5 + ordered.cumsum(axis=1)) / (counts + 1)
    variances = (0.25 + ((ordered - means) ** 2).cumsum(axis=1)) / (counts + 1)
    before = np.concatenate([np.full((len(ordered), 1), 0.25), variances[:, :-1]], axis=1)
    bets = np.sqrt(2 * math.log(2 / (1 - confidence)) / (n * before))

    def logarithm(mean: float) -> float:
        limited = np.minimum(bets, _TRUNCATION / mean) if mean > 0 else bets
        logs = np.log1p(limited * (ordered - mean)).sum(axis=1)
        most = float(logs.max())
        return most + math.log(float(np.exp(logs - most).mean()))

    return logarithm


def _least_mean(logarithm: Callable[[float], float], confidence: float) -> float:
    most = math.log(2 / (1 - confidence))
    if logarithm(0.0) < most:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if logarithm(middle) >= most else (low, middle)
    return low
