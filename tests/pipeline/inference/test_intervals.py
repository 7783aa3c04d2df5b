"""Intervals of figures, and the influence of a cluster on ratios."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.inference.intervals import Resampled, interval, tail_end
from rankledger.pipeline.inference.ratios import QueryContributions, contributions_of
from tests.support.blocks import random_ratings, ratings_block


def resampled(estimate, resamples, influence, **fields):
    """A figure whose resamples are those given."""
    resamples = np.asarray(resamples, dtype=float)
    fields = {"n_clusters": 100} | fields
    return Resampled(estimate, estimate, resamples, np.asarray(influence, dtype=float), n_queries=100, **fields)


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
    resamples = np.linspace(0, 1, 101)
    figure = resampled(0.5 + side, resamples, {-1: [-9] + [1] * 9, 0: [1, -1], 1: [9] + [-1] * 9}[skew])

    low, high = interval(figure, "bca", 0.95)
    assert 0 <= low <= high <= 1


@given(st.integers(0, 2**32), st.sampled_from(["percentile", "basic", "bca", "bca+t"]))
def test_a_higher_confidence_never_narrows_an_interval(seed, method):
    rng = np.random.default_rng(seed)
    influence = rng.standard_exponential(20) - 1
    figure = resampled(0.0, rng.standard_exponential(200) - 1, influence - influence.mean())
    ends = [interval(figure, method, confidence) for confidence in (0.5, 0.8, 0.95, 0.99)]

    assert all(wider[0] <= low <= high <= wider[1] for (low, high), wider in pairwise(ends))


@pytest.mark.parametrize("n", [5, 30, 200])
def test_the_outer_ends_hold_those_of_bca_and_of_students_t(n):
    rng = np.random.default_rng(n)
    values = rng.standard_exponential(n)
    means = rng.choice(values, (4000, n)).mean(axis=1)
    figure = resampled(values.mean(), means, (values - values.mean()) / n, n_clusters=n)
    ends = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    bca, outer = interval(figure, "bca", 0.95), interval(figure, "bca+t", 0.95)

    assert outer == pytest.approx((min(bca[0], ends[0]), max(bca[1], ends[1])), rel=1e-12)


def test_no_end_leaves_the_range_of_the_figure():
    """Of 30 scores, 29 being 1 and one 0, t alone would end at 1.035."""
    values = np.array([1.0] * 29 + [0.0])
    means = np.random.default_rng(0).choice(values, (2000, 30)).mean(axis=1)
    figure = resampled(values.mean(), means, (values - values.mean()) / 30, n_clusters=30, range=(0.0, 1.0))

    assert stats.t.interval(0.95, 29, values.mean(), stats.sem(values))[1] > 1.03
    assert interval(figure, "bca+t", 0.95)[1] == 1


def test_a_single_cluster_has_no_interval():
    assert interval(resampled(0.5, [0.5] * 100, [0.0], n_clusters=1), "bca+t", 0.95) == (None, None)


@pytest.mark.parametrize("method", ["percentile", "basic", "bca", "bca+t"])
def test_an_undefined_resample_counts_at_either_end(method):
    resamples = np.linspace(0, 1, 100)
    some, many = resamples.copy(), resamples.copy()
    some[50], many[50:54] = np.nan, np.nan
    low, high = interval(resampled(0.5, some, [1e-9, -1e-9]), method, 0.95)
    without = interval(resampled(0.5, np.delete(resamples, 50), [1e-9, -1e-9]), method, 0.95)

    assert without[0] - 0.03 < low < without[0]
    assert without[1] < high < without[1] + 0.03
    assert interval(resampled(0.5, many, [1e-9, -1e-9]), method, 0.95) == (None, None)


@pytest.mark.parametrize("seed", range(20))
def test_places_are_those_of_sorted_resamples(seed):
    rng = np.random.default_rng(seed)
    resamples = rng.integers(-5, 5, 50).astype(float)
    resamples[rng.random(50) < 0.2] = np.nan
    ordered = sorted(resamples[~np.isnan(resamples)].tolist())
    figure = resampled(0.0, resamples, [-1, 1])

    for place in rng.permutation(len(ordered)):
        assert figure.from_least(int(place)) == (ordered[place], ordered[min(place + 1, len(ordered) - 1)])


@pytest.mark.parametrize("method", ["percentile", "basic", "bca", "bca+t"])
def test_an_interval_sorts_few_resamples(method, monkeypatch):
    figure, ordered = resampled(0.0, np.linspace(-1, 1, 999), [-1, 0, 1]), []
    sort = np.sort
    monkeypatch.setattr(np, "sort", lambda values: ordered.append(len(values)) or sort(values))

    low, high = interval(figure, method, 0.95)

    assert sum(ordered) < 100

    assert low < 0 < high
    assert figure.std_error > 0


def test_the_standard_error_is_that_of_the_resamples_that_define_the_figure():
    resamples = np.arange(200.0)
    resamples[7] = np.nan

    assert resampled(99.5, resamples, [1, -1]).std_error == pytest.approx(np.nanstd(resamples, ddof=1))
    assert np.isnan(resampled(9.5, resamples[:20], [1, -1]).std_error)


@pytest.mark.parametrize(
    ("influence", "kappa", "mark"),
    [
        ([0.0] * 40, 0, "degenerate"),
        ([1, -1] * 20, 40, ""),
        ([3, -1, -1, -1] + [0] * 96, 144 / 84, "sparse"),
        ([1e-18, -1e-18] * 20, 0, "degenerate"),
    ],
)
def test_marks(influence, kappa, mark):
    """κ of (3, -1, -1, -1) is (9 + 3)² / (81 + 3); what rounding leaves of equal scores is nothing."""
    figure = resampled(0.5, [0.4, 0.6], influence)

    assert (figure.kappa, figure.mark) == (pytest.approx(kappa), mark)


@given(st.integers(0, 2**32), st.floats(1e-6, 1e6))
def test_kappa_has_no_unit(seed, scale):
    influence = np.random.default_rng(seed).standard_exponential(30)
    figures = [resampled(0.0, [0, 1], factor * influence) for factor in (1, scale)]

    assert figures[0].kappa == pytest.approx(figures[1].kappa)
    assert 1 <= figures[0].kappa <= 30
    assert resampled(0.0, [0, 1], [scale] * 30).kappa == pytest.approx(30)


def test_a_tail_end_by_hand():
    """Four clusters at ±0.25 have the shares ±1/2: a skewness of 0 with the standard error √(4 / 64) = 1/4.

    Johnson's term is 1/24 (2t² + 1) and that of its square t (10t² - 2.5) / 24², with t = 3.182 for 5% of 3 degrees;
    the standard error is √(4/3) · √(4 · 0.25²) = 0.5774.
    """
    t, influence = 3.182446, np.array([0.25, -0.25, 0.25, -0.25])
    reach = (t + (2 * t * t + 1) / 24 + t * (10 * t * t - 2.5) / 576) * 0.577350
    figure = Resampled(reach, reach, np.zeros(9), influence, 4, 4)

    assert tail_end(figure, 0.025, upper=False) == pytest.approx(0, abs=1e-5)
    assert tail_end(figure, 0.025, upper=True) == pytest.approx(2 * reach, rel=1e-5)


CONVENTIONS = PROFILES["trec_eval"].conventions
CLUSTERS = np.arange(40) // 3


def contributions(name):
    measure = Measure.parse(name)
    rng = np.random.default_rng(7)
    moments, weights = {}, np.ones(40)
    if measure.metric.input == "ratings":
        users = random_ratings(rng, 40)
        block = ratings_block([ratings for ratings, _ in users], [predictions for _, predictions in users])
        values = measure.metric.function(block)
        weights = block.n_pairs if measure.weighted else weights
        moments = {measure: measure.moments([block])} if measure.moments else {}
    else:
        values = rng.beta(1, 2, 40)
        values[5] = np.nan
    query_ids = np.array([f"q{i:02}" for i in range(40)], dtype=object)
    missing = np.zeros(40, dtype=bool)
    scores = Scores(
        "d", "m", query_ids, (measure,), values[np.newaxis], weights[np.newaxis], {}, missing, moments=moments
    )
    return contributions_of(scores, 0, values, CONVENTIONS)


@pytest.mark.parametrize("clusters", [None, CLUSTERS], ids=["queries", "clusters"])
@pytest.mark.parametrize("name", ["ap", "gmap", "mae", "rmse", "rmse(average=query)", "r2", "explained_variance"])
def test_influence_is_the_derivative_by_the_weight_of_a_cluster(name, clusters):
    """A cluster that counts 1.0001 times instead of once moves the figure by 0.0001 influences, to 0.1%."""
    ratio = contributions(name).ratio(None, clusters)
    step = 1e-4

    for cluster in range(len(ratio.denominators)):
        weights = np.ones(len(ratio.denominators))
        weights[cluster] += step
        moved = ratio.figure((ratio.numerators * weights).sum(axis=1), (ratio.denominators * weights).sum())
        slope = (float(moved) - ratio.estimate) / step
        assert slope == pytest.approx(ratio.influence[cluster], rel=2e-3, abs=1e-7)
    assert ratio.influence.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", ["ap", "gmap", "rmse", "r2"])
def test_a_slice_is_the_figure_of_its_queries_alone(name):
    everything = contributions(name)
    queries = np.arange(40) % 3 == 1
    own = everything.numerators[:, queries], everything.denominators[queries]
    alone = QueryContributions.of(everything.measure, *own)

    assert everything.ratio(queries, None).estimate == pytest.approx(alone.ratio(None, None).estimate, rel=1e-13)


def test_a_cluster_adds_what_its_queries_add_together():
    """Scores 1, 2, 3 and 4 in clusters 0, 1, 0, 1 add 4 and 6, two queries each."""
    four = QueryContributions.of(Measure.parse("ap"), np.array([[1.0, 2, 3, 4]]), np.ones(4))

    ratio = four.ratio(None, np.array([0, 1, 0, 1]))

    assert ratio.numerators.tolist() == [[4, 6]]
    assert ratio.denominators.tolist() == [2, 2]
    assert ratio.values.tolist() == [2, 3]


def test_a_perfect_prediction_has_no_influence():
    """Where every error is 0 the root mean square is 0 and no user moves it: 0, not undefined."""
    perfect = contributions("rmse")
    ratio = QueryContributions.of(perfect.measure, perfect.numerators * 0, perfect.denominators).ratio(None, None)

    assert ratio.estimate == 0
    assert not ratio.influence.any()
