"""The level at which several intervals hold at once, against plain loops and known cases."""

from statistics import NormalDist

import numpy as np
import pytest

from rankledger.pipeline.gates.intervals import simultaneous
from rankledger.pipeline.inference.intervals import Resampled
from rankledger.pipeline.inference.summary import IntervalRule
from tests.simulations.gates import outcomes, skewed

RULE = IntervalRule("bca", 0.95)


def figure(resamples, centre=0.0):
    """A figure with these resamples."""
    resamples = np.asarray(resamples, dtype=float)
    return Resampled(centre, centre, resamples, np.array([-1.0, 1.0]), 100, 100)


def normal(seed, n=200_000):
    return np.random.default_rng(seed).normal(size=n)


@pytest.mark.parametrize("n_figures", [0, 1])
def test_a_figure_alone_keeps_its_level(n_figures):
    assert simultaneous([figure(normal(0, 100))] * n_figures, RULE) is RULE


def test_a_resample_that_leaves_a_figure_undefined_is_infinitely_far():
    """If 1% of the resamples do, the others must hold in 0.95 / 0.99 of themselves."""
    undefined = normal(0)
    undefined[::100] = np.nan

    level = simultaneous([figure(undefined), figure(np.zeros(200_000))], RULE).confidence
    assert level == pytest.approx(0.95 / 0.99, abs=0.001)


def test_independent_figures_need_sidaks_level():
    """Of k independent intervals all hold with 0.95 where each does with 0.95 ** (1 / k); here k is 5."""
    assert simultaneous([figure(normal(seed)) for seed in range(5)], RULE).confidence == pytest.approx(
        0.95 ** (1 / 5), abs=0.0005
    )


def test_figures_that_move_as_one_need_no_more_than_one():
    moved = normal(0)

    assert simultaneous([figure(scale * moved) for scale in range(1, 6)], RULE).confidence == pytest.approx(
        0.95, abs=0.001
    )


def test_a_figure_that_never_moves_costs_nothing():
    both = [figure(normal(0)), figure(np.full(200_000, 0.1), centre=0.1)]

    assert simultaneous(both, RULE).confidence == pytest.approx(0.95, abs=0.001)


def test_the_level_is_that_of_the_greatest_distance_in_each_resample():
    rng = np.random.default_rng(1)
    skewed = [rng.standard_exponential(500) - 1 for _ in range(4)]
    greatest = [max(abs(row[b] - 0.1) / np.std(row, ddof=1) for row in skewed) for b in range(500)]
    tail = NormalDist().cdf(-np.quantile(greatest, 0.95))

    found = simultaneous([figure(row, centre=0.1) for row in skewed], RULE)

    assert (1 - found.confidence) / 2 == pytest.approx(max(0, (tail * 501 - 1) / 499), abs=1e-12)


def test_a_level_beyond_all_resamples_takes_the_outermost():
    rare = [np.where(np.arange(200) < 12, side * 30.0, normal(seed, 200) / 10) for seed, side in ((0, 1), (1, -1))]
    rule = simultaneous([figure(row) for row in rare], RULE)

    low, high = IntervalRule("percentile", rule.confidence).of(figure(rare[0]))
    assert (low, high) == pytest.approx((rare[0].min(), rare[0].max()))


def test_a_gate_of_twelve_slices_errs_no_more_often_than_one_line():
    found = list(
        outcomes(skewed(1.0), truth=-0.01, margin=0.01, n_queries=1200, n_slices=12, draws=200, resamples=2000)
    )

    assert {len(lines) for lines in found} == {13}
    assert np.mean(["fail" in lines for lines in found]) <= 0.058
    assert np.mean([set(lines) == {"pass"} for lines in found]) <= 0.058
    assert any("pass" in lines for lines in found)
