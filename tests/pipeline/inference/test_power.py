"""How many queries a margin takes: worked by hand, beside R's figures and scipy's, and properties of the formula."""

import math

import numpy as np
import pytest
from scipy import stats

from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.power import Variation, standard_errors
from rankledger.pipeline.inference.samples import Pair
from tests.pipeline.inference.made_up_samples import AP, two_models
from tests.simulations.gates import outcomes
from tests.simulations.plans import POPULATIONS, plans_of, power_reached, true_variation
from tests.simulations.small_slices import HEALTHY, few


def normal(std_dev: float, n: int = 300) -> Variation:
    """Differences with the kurtosis of the normal distribution, 3: a sixth of the queries far up, a sixth far down."""
    values = np.repeat([-1.0, 0.0, 1.0], [n // 6, n - 2 * (n // 6), n // 6])
    return Variation(std_dev / values.std(ddof=1) * values)


def skewed(std_dev: float, n: int = 300, share: float = 0.1) -> Variation:
    """Differences of which a share is far down, the others a little up."""
    values = np.where(np.arange(n) < share * n, -1.0, share / (1 - share))
    return Variation(std_dev / values.std(ddof=1) * values)


def difference(ours, theirs, **options):
    return two_models(ours, theirs, **options).differences([Pair("m", "n", AP)])[0]


def test_standard_errors_of_a_large_sample_are_sums_of_z():
    """1.95996 for 95% and 0.84162 for a power of 80%."""
    assert standard_errors(0.05, 0.8, 1e6) == pytest.approx(1.95996 + 0.84162, abs=1e-4)


def test_a_number_worked_by_hand():
    """(2.80158 · 0.2 / 0.02)² = 784.9; Student's t asks for two more, (2.8051 · 10)² = 786.9."""
    assert normal(0.2).needed(0.02, 0.05, 0.8) == 787


def test_agrees_with_a_published_figure_of_r():
    """power.t.test(delta = 10, sd = 10 √2, power = 0.85, type = "paired") gives 19.96892 pairs.

    Dalgaard 2008, Introductory Statistics with R, section 8.3.
    """
    error = 10 * math.sqrt(2) / math.sqrt(19.96892)
    assert error * standard_errors(0.05, 0.85, 18.96892) == pytest.approx(10, rel=0.005)


@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_agrees_with_the_noncentral_t(power):
    n = normal(1.0).needed(0.2, 0.05, power)
    found = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, 0.2 * math.sqrt(n))

    assert found == pytest.approx(power, abs=0.005)


def test_the_number_needed_is_the_least():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.gamma(rng.uniform(0.5, 3), 1.0, 300) * rng.choice([-1, 1])
        variation = Variation(rng.uniform(0.1, 0.5) * (values - values.mean()) / values.std())
        power, distance = rng.uniform(0.5, 0.95), rng.uniform(0.005, 0.05)
        n = variation.needed(distance, 0.05, power)

        assert variation.power(n, distance, 0.05) >= power
        assert variation.power(n - 1, distance, 0.05) < power
        assert variation.detectable(n, 0.05, power) <= distance


def test_what_asks_for_more_queries():
    plain = normal(0.2).needed(0.02, 0.05, 0.8)

    assert normal(0.2).needed(0.02, 0.05, 0.9) > plain
    assert normal(0.2).needed(0.02, 0.01, 0.8) > plain
    assert normal(0.2).needed(0.01, 0.05, 0.8) == pytest.approx(4 * plain, rel=0.01)
    assert normal(0.4).needed(0.02, 0.05, 0.8) == pytest.approx(4 * plain, rel=0.01)
    assert skewed(0.2).needed(0.02, 0.05, 0.8) > plain


@pytest.mark.parametrize(("n", "margin"), [(38, 0.05), (98, 0.02)])
@pytest.mark.parametrize("name", ["30% change by 0.1", "10% change by 0.05", "5% change by 0.1"])
def test_the_power_of_few_queries_is_that_of_gates(name, n, margin):
    draw = {**HEALTHY, "5% change by 0.1": few(0.05, 0.1)}[name]
    values = draw(np.random.default_rng(1), 2_000, 0.0).ravel()
    variation = Variation(values - values.mean())
    found = [line for (line,) in outcomes(draw, margin=margin, truth=0.0, n_queries=n, draws=500, resamples=500)]

    assert variation.power(n, margin, 0.05) == pytest.approx(found.count("pass") / 500, abs=0.08)


def test_it_takes_its_moments_from_the_clusters():
    """Differences 0.1 and -0.3, two to one: s² is that of NumPy, the skewness that of scipy, κ 90 over the kurtosis."""
    ours = np.tile([0.6, 0.6, 0.2], 30)
    found = Variation.of(difference(ours, np.full(90, 0.5)))

    assert found.variance == pytest.approx(np.var(ours, ddof=1))
    assert found.skewness == pytest.approx(stats.skew(ours))
    assert found.kappa == pytest.approx(90 / stats.kurtosis(ours, fisher=False))
    assert found.n_clusters == 90


def test_clusters_are_the_units():
    ours, theirs = np.random.default_rng(1).beta(1, 2, (2, 100))
    single = Variation.of(difference(ours, theirs))
    twice = difference(np.repeat(ours, 2), np.repeat(theirs, 2), groups=Groups(clusters=np.repeat(np.arange(100), 2)))

    assert Variation.of(twice).needed(0.02, 0.05, 0.8) == single.needed(0.02, 0.05, 0.8)


@pytest.mark.parametrize("n", [100, 400])
def test_the_interval_of_a_normal_variance_is_that_of_chi_squared(n):
    low, high = normal(1.0, n).ends(0.95)

    assert low.variance == pytest.approx((n - 1) / stats.chi2.ppf(0.975, n - 1), rel=0.04)
    assert high.variance == pytest.approx((n - 1) / stats.chi2.ppf(0.025, n - 1), rel=0.04)


def test_the_power_planned_is_that_of_the_intervals_of_gates():
    """100 queries with rare large losses pass 80% of 600 samples, within 3.5 standard errors; without the terms of
    skewness and kurtosis they would be planned at a margin that 70% pass.
    """
    draw = POPULATIONS["small gains, large losses"]
    true, mean = true_variation(draw)
    margin = true.detectable(100, 0.05, 0.8)

    assert power_reached(draw, mean=mean, margin=margin, n_queries=100, draws=600, resamples=1_000) == pytest.approx(
        0.8, abs=0.057
    )


def test_the_interval_of_the_number_needed_holds_it():
    """In about 95% of 400 past samples of 200 queries: within 3 standard errors."""
    draw = POPULATIONS["nDCG, 60% differ"]
    true, _ = true_variation(draw)
    refused, powers, held = plans_of(draw, true, margin=true.detectable(750, 0.05, 0.8), n_queries=200, draws=400)

    assert refused == 0
    assert held.mean() == pytest.approx(0.95, abs=0.033)
    assert 0.65 < np.quantile(powers, 0.05) < 0.8 < np.quantile(powers, 0.95) < 0.92
