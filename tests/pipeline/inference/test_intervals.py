"""Intervals read off given resamples: scipy's BCa to the last digits, its edges, and which are not to be trusted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankledger.pipeline.inference.intervals import Resampled, interval


def resampled(estimate, resamples, influence, *, n_away=100.0):
    """A figure whose resamples are those given."""
    resamples = np.asarray(resamples, dtype=float)
    return Resampled(estimate, estimate, resamples, np.asarray(influence, dtype=float), 100, 100, n_away)


@pytest.mark.parametrize(("method", "theirs"), [("percentile", "percentile"), ("basic", "basic"), ("bca", "BCa")])
@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_scipy_on_the_same_resamples(seed, method, theirs):
    """Of scipy's own resamples of skewed numbers with ties, both make the same interval, to 1e-12.

    The numbers are eighths, whose sums are exact: scipy takes 0.1 + 0.2 and 0.3 for different.
    """
    rng = np.random.default_rng(seed)
    values = (rng.beta(0.5, 2, int(rng.integers(5, 60))) * 8).round() / 8
    confidence = rng.choice([0.5, 0.9, 0.95, 0.99])
    given_ = stats.bootstrap(
        (values,), np.mean, n_resamples=999, method=theirs, confidence_level=confidence, rng=rng, vectorized=True
    )
    ours = resampled(values.mean(), given_.bootstrap_distribution, (values - values.mean()) / len(values))

    expected = (given_.confidence_interval.low, given_.confidence_interval.high)
    assert interval(ours, method, confidence) == pytest.approx(expected, abs=1e-12)


def test_bca_counts_ties_half():
    """Of the resamples 0, 1, 1, 2 half count as below the estimate 1: no bias, and the interval of the percentiles."""
    figure = resampled(1.0, [0, 1, 1, 2], [-1, 1])

    assert interval(figure, "bca", 0.5) == interval(figure, "percentile", 0.5)


def test_bca_counts_ties_that_rounding_holds_apart():
    """As above, where the estimate is 0.3 and the resamples that equal it were summed as 0.1 + 0.2."""
    figure = resampled(0.3, [0, 0.1 + 0.2, 0.1 + 0.2, 0.6], [-0.1, 0.1])

    assert interval(figure, "bca", 0.5) == interval(figure, "percentile", 0.5)


def test_bca_of_skewed_influences_moves_to_the_long_tail():
    """One cluster far above pulls both ends up, beyond those of the percentiles."""
    resamples = np.random.default_rng(0).normal(size=4000)
    upwards = resampled(0.0, resamples - np.median(resamples), [-1] * 9 + [9])
    plain = interval(upwards, "percentile", 0.95)
    moved = interval(upwards, "bca", 0.95)

    assert moved[0] > plain[0]
    assert moved[1] > plain[1]


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("skew", [-1, 0, 1])
def test_bca_stays_within_the_resamples_where_all_lie_on_one_side(side, skew):
    """An estimate beyond all its resamples still gets an interval, between the least and the greatest of them."""
    resamples = np.linspace(0, 1, 101)
    figure = resampled(0.5 + side, resamples, {-1: [-9] + [1] * 9, 0: [1, -1], 1: [9] + [-1] * 9}[skew])

    low, high = interval(figure, "bca", 0.95)
    assert 0 <= low <= high <= 1


@given(st.integers(0, 2**32), st.sampled_from(["percentile", "basic", "bca"]))
def test_a_higher_confidence_never_narrows_an_interval(seed, method):
    """Each end moves outwards, or stays, as the confidence rises."""
    rng = np.random.default_rng(seed)
    influence = rng.standard_exponential(20) - 1
    figure = resampled(0.0, rng.standard_exponential(200) - 1, influence - influence.mean())
    ends = [interval(figure, method, confidence) for confidence in (0.5, 0.8, 0.95, 0.99)]

    assert all(wider[0] <= low <= high <= wider[1] for (low, high), wider in pairwise(ends))


@pytest.mark.parametrize("method", ["percentile", "basic", "bca"])
def test_a_resample_without_figure_leaves_none(method):
    """One undefined resample of a hundred: no interval, rather than one of the others."""
    assert interval(resampled(0.5, [*np.linspace(0, 1, 99), np.nan], [1, -1]), method, 0.95) == (None, None)


@pytest.mark.parametrize(
    ("n_away", "mark"), [(0.0, "degenerate"), (1.0, "sparse"), (29.0, "sparse"), (29.9, "sparse"), (30.0, "")]
)
def test_marks(n_away, mark):
    """Nothing away from the modal value is a constant sample; fewer than 30 clusters are too few to trust."""
    assert resampled(0.5, [0.4, 0.6], [1, -1], n_away=n_away).mark == mark
