"""Intervals for scores in a range: published values, other tools' and properties that make them valid."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankledger.pipeline.inference.intervals import betting_interval, bounded_interval, exact_interval

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
