"""The statistic of a change of places, against models whose scores really have changed places."""

import numpy as np
import pytest
from scipy import stats

from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.samples import Pair
from rankledger.pipeline.inference.sign_flips import FlippedPair, FlippedPairs, all_signs, draw_signs
from tests.pipeline.inference.made_up_samples import AP, GMAP, R2, RMSE, sample, scores

N_QUERIES = 12
CLUSTERS = np.array([0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 2])
RNG = np.random.default_rng(0)


def two(measure):
    """Two models whose queries weigh unlike where the measure is pooled, and have means of their own for R²."""
    values = RNG.beta(1, 2, (2, N_QUERIES))
    pooled = measure in (RMSE, R2)
    weights = RNG.integers(1, 20, (2, N_QUERIES)) if pooled else np.ones((2, N_QUERIES))
    moments = RNG.uniform(0.1, 1, (2, 5, N_QUERIES)) + np.array([0, 2, 0, 0, 0])[:, np.newaxis]
    return [
        scores(name, values[i], measure, weights[i], {R2: moments[i]} if measure == R2 else None)
        for i, name in enumerate("mn")
    ]


def swapped(results, queries):
    ours, theirs = results
    return [
        scores(
            one.model,
            np.where(queries, other.values, one.values),
            one.measures[0],
            np.where(queries, other.weights, one.weights),
            {key: np.where(queries, other.moments[key], one.moments[key]) for key in one.moments},
        )
        for one, other in ((ours, theirs), (theirs, ours))
    ]


def difference(results, measure, groups):
    return sample(*results, groups=groups).differences([Pair("m", "n", measure)])[0].estimate


@pytest.mark.parametrize("clusters", [None, CLUSTERS], ids=["queries", "clusters"])
@pytest.mark.parametrize("measure", [AP, GMAP, RMSE, R2], ids=str)
def test_signs_are_changes_of_places(measure, clusters):
    results, groups = two(measure), Groups(clusters=clusters)
    swap = FlippedPair(*sample(*results, groups=groups).sides(Pair("m", "n", measure)))
    signs = draw_signs([1], 40, len(swap.moved))
    (found,) = FlippedPairs([swap], slice(None)).statistics(signs)

    of_queries = signs if clusters is None else signs[:, clusters]
    expected = np.abs([difference(swapped(results, row < 0), measure, groups) for row in of_queries])
    if swap.is_plain:
        np.testing.assert_array_equal(np.argsort(found), np.argsort(expected))
    else:
        np.testing.assert_allclose(found * swap.deviation, expected, rtol=1e-9, atol=1e-12)


def test_a_plain_difference_is_the_sum_of_signed_differences():
    results = two(AP)
    swap = FlippedPair(*sample(*results).sides(Pair("m", "n", AP)))
    apart = (results[0].values - results[1].values)[0]
    (found,) = FlippedPairs([swap], slice(None)).statistics(all_signs(N_QUERIES))

    np.testing.assert_allclose(found, np.abs(all_signs(N_QUERIES) @ apart) / np.sqrt((apart**2).sum()), atol=1e-12)
    assert (found**2).mean() == pytest.approx(1)


@pytest.mark.parametrize("measure", [RMSE, R2], ids=str)
def test_other_differences_have_mean_square_one_to_first_order(measure):
    """Over random patterns of 400 queries the square of a ratio's statistic is 1 on average, within 4 errors."""
    rng = np.random.default_rng(1)
    results = [
        scores(
            name,
            rng.gamma(2, 1, 400),
            measure,
            rng.integers(1, 20, 400),
            {R2: rng.uniform(0.1, 0.5, (5, 400)) + np.array([0, 2, 0, 0, 0])[:, np.newaxis]} if measure == R2 else None,
        )
        for name in "mn"
    ]
    swap = FlippedPair(*sample(*results).sides(Pair("m", "n", measure)))
    (found,) = FlippedPairs([swap], slice(None)).statistics(draw_signs([2], 4000, 400))

    assert (found**2).mean() == pytest.approx(1, abs=4 * np.sqrt(2 / 4000))


def test_the_statistic_orders_patterns_as_students_t_does():
    """Of all patterns of 12 differences the |t| of the signed differences rises with the statistic."""
    results = two(AP)
    swap = FlippedPair(*sample(*results).sides(Pair("m", "n", AP)))
    signs = all_signs(N_QUERIES)
    (found,) = FlippedPairs([swap], slice(None)).statistics(signs)
    t = np.abs(stats.ttest_1samp(signs * (results[0].values - results[1].values), 0, axis=1).statistic)

    np.testing.assert_allclose(t, found * np.sqrt(11 / (12 - found**2)), rtol=1e-9)


@pytest.mark.parametrize("measure", [AP, GMAP, RMSE, R2], ids=str)
def test_changing_all_places_changes_nothing(measure):
    swap = FlippedPair(*sample(*two(measure)).sides(Pair("m", "n", measure)))
    flips, signs = FlippedPairs([swap], slice(None)), draw_signs([3], 50, N_QUERIES)

    np.testing.assert_array_equal(flips.statistics(signs), flips.statistics(-signs))


@pytest.mark.parametrize("part", [1, 8, 100, 10**6])
@pytest.mark.parametrize("measure", [AP, GMAP, RMSE, R2], ids=str)
def test_all_statistics_are_those_of_half_of_the_patterns(measure, part):
    swap = FlippedPair(*sample(*two(measure)).sides(Pair("m", "n", measure)))
    flips = FlippedPairs([swap], slice(None))
    found = np.concatenate(list(flips.all_statistics(_part=part)), axis=1)

    assert found[:, 0] == flips.observed
    np.testing.assert_array_equal(np.repeat(np.sort(found), 2, axis=1), np.sort(flips.statistics(all_signs(N_QUERIES))))


def test_clusters_that_do_not_move_may_be_left_without_signs():
    """A ratio whose models agree on half of the clusters has the same statistics by the signs of the other half."""
    ours, theirs = two(RMSE)
    same = np.arange(N_QUERIES) % 2 == 0
    theirs = scores("n", np.where(same, ours.values, theirs.values), RMSE, np.where(same, ours.weights, theirs.weights))
    swap = FlippedPair(*sample(ours, theirs).sides(Pair("m", "n", RMSE)))
    signs = draw_signs([4], 50, N_QUERIES)

    np.testing.assert_array_equal(swap.moved, ~same)
    every, some = FlippedPairs([swap], slice(None)), FlippedPairs([swap], np.flatnonzero(swap.moved))
    np.testing.assert_allclose(some.statistics(signs[:, ~same]), every.statistics(signs), rtol=1e-9, atol=1e-12)


def test_models_that_agree_everywhere_have_no_statistic_above_zero():
    ours, _ = two(AP)
    swap = FlippedPair(*sample(ours, scores("n", ours.values)).sides(Pair("m", "n", AP)))
    flips = FlippedPairs([swap], slice(None))

    assert not flips.statistics(draw_signs([5], 50, N_QUERIES)).any()
    assert flips.thresholds[0] <= 0
