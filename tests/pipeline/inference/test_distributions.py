"""Distributions, tests and intervals in closed form, agreed with scipy and worked by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.distributions import beta_cdf, beta_quantile, t_quantile, t_tail
from rankledger.pipeline.inference.intervals import betting_interval, bounded_interval, exact_interval
from rankledger.pipeline.inference.paired import effect_size, t_test
from rankledger.pipeline.inference.power import minimum_detectable_difference
from rankledger.pipeline.inference.samples import Pair
from rankledger.pipeline.inference.sign_flips import benjamini_hochberg, exceedances, holm, westfall_young
from tests.pipeline.inference.made_up_samples import AP, RMSE, sample, scores, two_models

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


MN = Pair("m", "n", AP)


def difference(ours, theirs, **options):
    return two_models(ours, theirs, **options).differences([MN])[0]


@pytest.mark.parametrize("n_queries", [2, 3, 10, 200])
def test_agrees_with_scipys_paired_test(n_queries):
    ours, theirs = np.random.default_rng(n_queries).beta(1, 2, (2, n_queries))
    found, expected = difference(ours, theirs), stats.ttest_rel(ours, theirs)

    assert t_test(found) == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.estimate / found.error == pytest.approx(expected.statistic, rel=1e-9)


def test_clusters_of_one_size_are_tested_by_their_means():
    ours, theirs = np.random.default_rng(0).beta(1, 2, (2, 60))
    found = difference(ours, theirs, groups=Groups(clusters=np.repeat(np.arange(20), 3)))
    means = [values.reshape(20, 3).mean(axis=1) for values in (ours, theirs)]

    assert t_test(found) == pytest.approx(stats.ttest_rel(*means).pvalue, rel=1e-9)


def test_the_effect_size_is_in_standard_deviations_of_the_differences():
    """Differences 0.1 0.2 0.3: their mean 0.2 is two of their standard deviations, which are 0.1."""
    assert effect_size(difference([0.1, 0.2, 0.3], [0, 0, 0])) == pytest.approx(2)


def test_a_slice_counts_its_own_clusters():
    ours, theirs = np.random.default_rng(1).beta(1, 2, (2, 60))
    mask = np.arange(60) % 2 == 0
    both = two_models(ours, theirs, groups=Groups(slices={"s=x": mask}))
    (found,) = both.differences([Pair("m", "n", AP, "s=x")])

    assert t_test(found) == pytest.approx(stats.ttest_rel(ours[mask], theirs[mask]).pvalue, rel=1e-9)


def test_an_error_is_better_where_it_is_less():
    rng = np.random.default_rng(2)
    both = sample(scores("m", rng.uniform(1, 2, 30), RMSE), scores("n", rng.uniform(3, 4, 30), RMSE))

    assert effect_size(both.differences([Pair("m", "n", RMSE)])[0]) > 1


@pytest.mark.parametrize("n_queries", [10, 50, 1000])
def test_the_detectable_difference_is_found_in_80_percent(n_queries):
    """The noncentral t has a power of 80% there at the 5% level, within 2 points: Bloom's rule is an approximation."""
    ours, theirs = np.random.default_rng(3).beta(1, 2, (2, n_queries))
    found = difference(ours, theirs)
    critical = stats.t.ppf(0.975, n_queries - 1)
    power = stats.nct.sf(critical, n_queries - 1, minimum_detectable_difference(found, 0.05) / found.error)

    assert power == pytest.approx(0.8, abs=0.02)


def test_a_single_cluster_says_nothing():
    found = difference([0.5], [0.4])

    assert all(
        map(math.isnan, (found.error, t_test(found), effect_size(found), minimum_detectable_difference(found, 0.05)))
    )


def test_differences_that_are_all_alike():
    """All 0: p is 1. All 0.1, but for rounding: p is 0. Neither has an effect size."""
    theirs = np.linspace(0.1, 0.7, 40)
    none, same = difference(theirs, theirs), difference(theirs + 0.1, theirs)

    assert (t_test(none), t_test(same)) == (1, 0)
    assert math.isnan(effect_size(none))
    assert math.isnan(effect_size(same))


P_VALUES = arrays(np.float64, st.integers(1, 20), elements=st.floats(0, 1))


def test_holm_by_hand():
    """0.01, 0.04, 0.03 times 3, 1 and 2 are 0.03, 0.04 and 0.06; the last takes the 0.06 of the one before."""
    assert holm(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])


def test_benjamini_hochberg_by_hand():
    """0.01, 0.04, 0.03 times 3/1, 3/3 and 3/2 are 0.03, 0.04 and 0.045; the middle one takes the 0.04 after it."""
    assert benjamini_hochberg(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.04, 0.04])


@given(P_VALUES)
def test_corrections_never_lower_a_p_value(p_values):
    stepped_down, stepped_up = holm(p_values), benjamini_hochberg(p_values)

    assert (stepped_down <= 1).all()
    assert (p_values <= stepped_up * (1 + 1e-12)).all()
    assert (stepped_up <= stepped_down * (1 + 1e-12)).all()


@given(P_VALUES, st.randoms(use_true_random=False))
def test_corrections_do_not_depend_on_the_order(p_values, random):
    order = random.sample(range(len(p_values)), len(p_values))

    np.testing.assert_array_equal(holm(p_values[order]), holm(p_values)[order])
    np.testing.assert_array_equal(benjamini_hochberg(p_values[order]), benjamini_hochberg(p_values)[order])


def test_exceedances_by_hand():
    """Of three patterns the first hypothesis reaches 1 twice and the second 2 once, or twice with the first's 5."""
    statistics = np.array([[0.0, 1.0, 5.0], [2.0, 1.0, 1.0]])

    alone, jointly, greatest = exceedances(statistics, np.array([1.0, 2.0]))

    assert alone.tolist() == [2, 1]
    assert jointly.tolist() == [2, 2]
    assert greatest.tolist() == [2, 1, 5]


def test_an_undefined_statistic_counts_as_reaching():
    alone, jointly, _ = exceedances(np.array([[np.nan, 0.0], [0.0, 0.0]]), np.array([1.0, 1.0]))

    assert alone.tolist() == [1, 0]
    assert jointly.tolist() == [1, 1]


def test_step_down_keeps_the_order_of_the_statistics():
    """In descending order 0.01, 0.05, 0.03 become 0.01, 0.05, 0.05; and none is less than its own p-value, 0.2."""
    found = westfall_young(np.array([0.2, 0.0, 0.0]), np.array([0.03, 0.05, 0.01]), np.array([0, 1, 2]))

    assert found.tolist() == [0.2, 0.05, 0.01]


GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "betting.json").read_text(encoding="utf-8"))


@given(st.integers(1, 2000), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_the_exact_interval_is_scipys(n, share, confidence):
    successes = round(share * n)
    expected = stats.binomtest(successes, n).proportion_ci(confidence, method="exact")

    assert exact_interval(successes, n, confidence) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-12)


def test_the_rule_of_three():
    """No crash of 59 queries excludes a share of 5% or more with a one-sided confidence of 95%; of 58 it does not."""
    assert exact_interval(0, 59, 0.9)[1] < 0.05 < exact_interval(0, 58, 0.9)[1]


def test_two_values_are_exact_and_others_are_bet_on():
    method, ends = bounded_interval(np.array([1.0, -1.0, 1.0, 1.0]), (-1.0, 1.0), 0.95)

    assert method == "exact"
    assert ends == pytest.approx(2 * np.array(exact_interval(3, 4, 0.95)) - 1)
    assert bounded_interval(np.array([1.0, 0.5]), (0.0, 1.0), 0.95)[0] == "betting"


@pytest.mark.parametrize(("value", "n"), [(-0.2, 40), (0.0, 30), (1.0, 100)])
def test_scores_that_are_all_alike_leave_room_for_rare_others(value, n):
    """At most a share p of others can be missed with (1 - p)^n = 0.025, and they are at -1 or at 1 at worst."""
    share = 1 - 0.025 ** (1 / n)
    method, ends = bounded_interval(np.full(n, value), (-1.0, 1.0), 0.95)

    assert method == "exact"
    assert ends == pytest.approx((value - share * (value + 1), value + share * (1 - value)))


def test_betting_by_hand():
    """Scores that are all 0: bets shrink from their limit as the variance does, and no order matters.

    With 2 log(40) / n over the variances (1/4 + Σ (i-th mean)²) / (t + 1), the capital of who bets on less than m is
    the product of 1 + min(bet, 0.5 / (1 - m)) m; the greatest m at which it stays below 40 is the upper end.
    """
    n = 30
    variances = [0.25]
    squares = 0.25
    for t in range(1, n):
        squares += (0.5 / (t + 1)) ** 2
        variances.append(squares / (t + 1))
    bets = [np.sqrt(2 * np.log(40) / (n * variance)) for variance in variances]

    def capital(mean):
        return np.prod([1 + min(bet, 0.5 / (1 - mean)) * mean for bet in bets])

    low, high = betting_interval(np.zeros(n), 0.95)
    assert low == 0
    assert capital(high - 1e-9) < 40 < capital(high + 1e-9)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['population']} {len(case['scores'])}")
def test_betting_agrees_with_the_authors_package(case):
    """confseq's ends lie on a grid of 10,000 steps, the lower one at most a step below ours, the upper one above: in
    the order of the scores, and with the capital averaged over three orders.
    """
    scores = np.array(case["scores"])
    orders = {"in_order": [np.arange(len(scores))], "over_orders": list(map(np.array, case["orders"]))}
    for name, chosen in orders.items():
        low, high = betting_interval(scores, case["confidence"], _orders=chosen)
        least, greatest = case[name]
        assert 0 <= low - least <= 1e-4 + 1e-9
        assert 0 <= greatest - high <= 1e-4 + 1e-9


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_betting_is_symmetric_holds_the_mean_and_grows_with_confidence(seed, n):
    """The interval of 1 - x is that of x mirrored; it holds the mean; and a higher confidence gives a wider one."""
    scores = np.random.default_rng(seed).beta(0.4, 0.8, n).round(2)
    low, high = betting_interval(scores, 0.9)
    wider = betting_interval(scores, 0.99)

    assert 0 <= wider[0] <= low <= scores.mean() <= high <= wider[1] <= 1
    assert betting_interval(1 - scores, 0.9) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize("n", [10, 40])
def test_betting_covers_a_mean_that_rare_losses_make(n):
    """97% tiny scores and 3% large ones, where the bootstrap covers in 60% of samples: 95% of 400, less 3 errors."""
    rng = np.random.default_rng(n)
    truth = 0.97 * 0.005 + 0.03 * 0.75
    covered = 0
    for _ in range(400):
        large = rng.random(n) < 0.03
        low, high = betting_interval(np.where(large, rng.uniform(0.5, 1, n), rng.uniform(0, 0.01, n)), 0.95)
        covered += low <= truth <= high

    assert covered >= 367
