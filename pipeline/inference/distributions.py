"""Tails and quantiles of Student's t and the beta distribution, without importing SciPy.

Both are the regularized incomplete beta function. Its tails are computed from x and 1 - x, so that neither loses
digits.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_EPSILON = 2.0**-53
_FARTHEST = 690.0  # |ln(x / (1 - x))| up to which neither x nor 1 - x underflows
_NORMAL = NormalDist()


def t_tail(t: float, degrees: float) -> float:
    """Return P(T > t) of Student's t. NaN if `t` is NaN. `degrees` may be a fraction.

    Reference:
        Abramowitz & Stegun 1964, 26.7.1: half of I(ν/2, 1/2) at ν / (ν + t²).
    """
    if math.isnan(t):
        return math.nan
    if t < 0:
        return 1 - t_tail(-t, degrees)
    if t == 0:
        return 0.5
    odds = (t / degrees) * t
    if not math.exp(-_FARTHEST) < odds < math.exp(_FARTHEST):
        return 0.5 if odds < 1 else 0.0
    return math.exp(_log_tail(degrees / 2, 0.5, 1 / (1 + odds), 1 / (1 + 1 / odds))[0]) / 2


@lru_cache(maxsize=4096)  # intervals of as many clusters ask for the same
def t_quantile(p: float, degrees: float) -> float:
    """Return the `p` quantile of Student's t: ±inf at 0 and 1 and beyond 1e150 √`degrees`."""
    if p > 0.5:
        return -t_quantile(1 - p, degrees)
    if p in (0, 0.5):
        return -math.inf if p == 0 else 0.0
    z = _NORMAL.inv_cdf(p)
    guess = z * z * (1 + (z * z + 1) / (2 * degrees))  # the first terms of Fisher and Cornish, squared
    log_odds = _quantile(degrees / 2, 0.5, 2 * p, 2 * (0.5 - p), math.log(degrees / guess))
    return -math.sqrt(degrees) * math.exp(-log_odds / 2) if log_odds > -_FARTHEST else -math.inf


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function I(a, b) at `x` in [0, 1]."""
    if x in (0, 1):
        return float(x)
    return math.exp(_log_tail(a, b, x, 1 - x)[0])


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the x at which `beta_cdf` is `p`."""
    if p in (0, 1):
        return float(p)
    z = _NORMAL.inv_cdf(p)
    guess = math.log(a / b) + z * math.sqrt(1 / a + 1 / b)
    return 1 / (1 + math.exp(-_quantile(a, b, p, 1 - p, guess)))


def _quantile(a: float, b: float, p: float, q: float, guess: float) -> float:
    """Solve I(a, b) = `p` for ln(x / (1 - x)) by Newton's method on the logarithm of the smaller tail.

    The logarithm is concave, so every step from the left of the solution goes right and none overshoots. From the
    right a step goes left at most to where the line a ln x, which bounds the function from above, has the value.
    """
    if p > q:
        return -_quantile(b, a, q, p, -guess)
    log_target = math.log(p)
    minimum = (log_target + math.log(a) + math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)) / a
    log_odds = max(guess, minimum)
    for _ in range(100):
        if log_odds < -_FARTHEST:
            return -math.inf
        x, y = 1 / (1 + math.exp(-log_odds)), 1 / (1 + math.exp(log_odds))
        log_p, log_slope = _log_tail(a, b, x, y)
        error = log_p - log_target
        log_odds = max(log_odds - error * math.exp(min(log_p - log_slope, _FARTHEST)), minimum)
        if abs(error) < 1e-8:  # the next one would be about its square
            break
    return log_odds


def _log_tail(a: float, b: float, x: float, y: float) -> tuple[float, float]:
    log_slope = _log_slope(a, b, x, y)
    if x * (a + b + 2) > a + 1:  # its complement's fraction converges
        complement = math.exp(log_slope) / _fraction(b, a, y, x)
        return math.log1p(-min(complement, 1 - _EPSILON)), log_slope
    return log_slope - math.log(_fraction(a, b, x, y)), log_slope


def _log_slope(a: float, b: float, x: float, y: float) -> float:
    """Return ln(x^a y^b / B(a, b)) as its value at the mean less the deviance, so that large terms do not cancel.

    Reference:
        Loader 2000, Fast and Accurate Computation of Binomial Probabilities.
    """
    total, away = a + b, b * x - a * y
    return (
        0.5 * math.log(a / total * b / (2 * math.pi))
        + (_stirling_error(total) - _stirling_error(a) - _stirling_error(b))
        + (_deviance(a, total * x, away) + _deviance(b, total * y, -away))
    )


def _deviance(k: float, mean: float, away: float) -> float:
    """Return k ln(mean / k) - away. `away` is mean - k."""
    if abs(away) < k / 2:
        return k * math.log1p(away / k) - away
    return k * math.log(mean / k) - away


def _stirling_error(z: float) -> float:
    if z < 16:
        return math.lgamma(z) - (z - 0.5) * math.log(z) + z - 0.5 * math.log(2 * math.pi)
    s = 1 / (z * z)
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360))))) / z


def _fraction(a: float, b: float, x: float, y: float) -> float:
    """Return x^a y^b / B(a, b) over I(a, b) for `x` up to (a + 1) / (a + b + 2).

    Reference:
        DiDonato & Morris 1992, doi:10.1145/131766.131776, equation 9, evaluated by Lentz's method.
    """
    away = a * y - b * x
    value = above = a * (away + 1) / (a + 1)
    below = 0.0
    for m in range(1, 100_000):
        n = a + 2 * m
        numerator = (a + m - 1) / (n - 1) * (a + b + m - 1) / (n - 1) * m * (b - m) * x * x
        term = m + m * (b - m) * x / (n - 1) + (a + m) / (n + 1) * (away + 1 + m * (1 + y))
        below = 1 / (term + numerator * below)
        above = term + numerator / above
        change = above * below
        value *= change
        if abs(change - 1) <= 2 * _EPSILON:
            break
    return value
