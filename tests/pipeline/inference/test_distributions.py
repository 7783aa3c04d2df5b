"""Student's t and the beta distribution beside tables, closed forms and SciPy."""

import math

import numpy as np
import pytest
from scipy import special

from rankledger.pipeline.inference.distributions import beta_cdf, beta_quantile, t_quantile, t_tail

DEGREES = [1, 1.5, 2, 2.75, 29, 1e4, 1e6]


@pytest.mark.parametrize(
    ("degrees", "p", "t"),
    [(1, 0.95, 6.314), (5, 0.975, 2.571), (10, 0.995, 3.169), (30, 0.9995, 3.646), (120, 0.9, 1.289)],
)
def test_a_published_table(degrees, p, t):
    assert t_quantile(p, degrees) == pytest.approx(t, abs=5e-4)
    assert t_tail(t_quantile(p, degrees), degrees) == pytest.approx(1 - p, rel=1e-12)


@pytest.mark.parametrize("p", [1e-100, 1e-12, 0.025, 0.3, 0.5 - 1e-9, 0.8, 0.975])
def test_quantiles_of_one_and_two_degrees(p):
    """t of one degree is tan(π (p - 1/2)), of two (2p - 1) / √(2p (1 - p)): in tiny tails and at the centre."""
    by_tangent = math.tan(math.pi * (p - 0.5)) if p > 0.25 else -1 / math.tan(math.pi * p)

    assert t_quantile(p, 1) == pytest.approx(by_tangent, rel=1e-13)
    assert t_quantile(p, 2) == pytest.approx(2 * (p - 0.5) / math.sqrt(2 * p * (1 - p)), rel=1e-13)


@pytest.mark.parametrize("degrees", DEGREES)
def test_tails_of_t_agree_with_scipy(degrees):
    for t in [0.01, 0.5, 1, 1.7, 2, 3, 5, 8, 18, -0.3, -2, -9]:
        assert t_tail(t, degrees) == pytest.approx(special.stdtr(degrees, -t), rel=2e-13)


@pytest.mark.parametrize("degrees", DEGREES)
def test_quantiles_of_t_agree_with_scipy(degrees):
    for p in [1e-80, 1e-12, 1e-5, 0.001, 0.025, 0.1, 0.3, 0.45, 0.6, 0.8, 0.975]:
        assert t_quantile(p, degrees) == pytest.approx(special.stdtrit(degrees, p), rel=1e-13)


def test_random_quantiles_of_t_have_the_tail_that_was_asked_for():
    """10^-1 to 10^9 degrees, tails down to 1e-100: the tail of the quantile is `p` to 13 digits."""
    rng = np.random.default_rng(0)
    for degrees, p in zip(10 ** rng.uniform(-1, 9, 500), 0.5 * 10 ** rng.uniform(-100, 0, 500), strict=True):
        assert t_tail(-t_quantile(float(p), float(degrees)), float(degrees)) == pytest.approx(p, rel=3e-13)


def test_the_ends_of_t():
    """NaN stays NaN, for whatever degrees; the tail is 1/2 at 0, 0 at infinity; quantiles of 0 and 1 are infinite."""
    assert math.isnan(t_tail(math.nan, 0))
    assert [t_tail(t, 3) for t in (-math.inf, 0, 1e-200, math.inf)] == [1, 0.5, 0.5, 0]
    assert [t_quantile(p, 3) for p in (0, 0.5, 1)] == [-math.inf, 0, math.inf]


def test_the_beta_distribution_agrees_with_scipy():
    rng = np.random.default_rng(1)
    for scale, p in zip(10 ** rng.uniform(0.5, 5, 1000), rng.choice([0.025, 0.975, 0.5, 1e-6], 1000), strict=True):
        a, b = (float(n) for n in rng.integers(1, int(scale), 2, endpoint=True))
        x = special.betaincinv(a, b, p)
        assert beta_quantile(float(p), a, b) == pytest.approx(x, rel=1e-13)
        assert beta_cdf(float(x), a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-12)


def test_random_quantiles_of_beta_by_the_binomial():
    """I(a, b) at x is P(at least a of a + b - 1 succeed): a sum of terms, for 200 random quantiles below 20 trials."""
    rng = np.random.default_rng(2)
    for p in rng.uniform(size=200):
        a, b = (int(n) for n in rng.integers(1, 11, 2))
        n, x = a + b - 1, beta_quantile(float(p), a, b)
        assert math.fsum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1)) == pytest.approx(p)


def test_the_ends_of_beta():
    """0 and 1 stay; beta of (1, 1) is uniform and of (1/2, 1/2) the arcsine law, whose quantiles are sin²(π p / 2)."""
    assert [beta_cdf(x, 2, 3) for x in (0, 1)] == [beta_quantile(p, 2, 3) for p in (0, 1)] == [0, 1]
    assert beta_quantile(0.3, 1, 1) == pytest.approx(0.3, rel=1e-14)
    assert beta_quantile(0.2, 0.5, 0.5) == pytest.approx(math.sin(0.1 * math.pi) ** 2, rel=1e-14)
