"""One dataset's resamples: slices, clusters, paired differences and the mean over datasets, against plain loops."""

import dataclasses
import weakref

import numpy as np
import pytest
from scipy import stats

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.intervals import interval
from rankledger.pipeline.inference.samples import Pair, pool
from tests.pipeline.inference.made_up_samples import AP, RMSE, SKIPPING, drawn_counts, sample, scores

MAE, KENDALL = map(Measure.parse, ("mae", "kendall_distance"))
N_QUERIES = 90
CLUSTERS = np.random.default_rng(1).permutation(np.arange(N_QUERIES) // 2)
MARKET = np.arange(N_QUERIES) % 3 == 0


def counts(n_clusters, dataset="d"):
    """(B, C): the very counts that a sample of this dataset draws."""
    return drawn_counts(n_clusters, 200, dataset)


def random_scores(seed, n=N_QUERIES):
    return np.random.default_rng(seed).beta(1, 2, n)


def test_a_figure_is_resampled_cluster_by_cluster():
    values = random_scores(0)
    figure = sample(scores("m", values), groups=Groups(clusters=CLUSTERS)).figure("m", AP)

    expected = [
        np.mean(
            [
                values[query]
                for cluster in range(45)
                for _ in range(int(row[cluster]))
                for query in np.flatnonzero(cluster == CLUSTERS)
            ]
        )
        for row in counts(45)
    ]
    np.testing.assert_allclose(figure.resamples, expected, atol=1e-11)
    assert (figure.n_queries, figure.n_clusters) == (90, 45)


def test_clusters_of_one_query_are_no_clusters():
    values = random_scores(1)
    plain = sample(scores("m", values)).figure("m", AP)
    own = sample(scores("m", values), groups=Groups(clusters=np.arange(N_QUERIES))).figure("m", AP)

    assert own.estimate == plain.estimate
    np.testing.assert_array_equal(own.resamples, plain.resamples)


def test_a_slice_is_a_ratio_over_the_same_resamples():
    values = random_scores(2)
    figure = sample(scores("m", values), groups=Groups(slices={"market=de": MARKET})).figure("m", AP, "market=de")

    drawn = counts(N_QUERIES) * MARKET
    np.testing.assert_allclose(figure.resamples, drawn @ values / drawn.sum(axis=1), atol=1e-11)
    assert figure.estimate == pytest.approx(values[MARKET].mean())
    assert figure.n_queries == 30


def test_a_difference_is_paired():
    ours, theirs = random_scores(3), random_scores(4)
    (found,) = sample(scores("m", ours), scores("n", theirs)).differences([Pair("m", "n", AP)])

    np.testing.assert_allclose(found.resamples, counts(N_QUERIES) @ (ours - theirs) / N_QUERIES, atol=1e-11)
    assert found.estimate == pytest.approx((ours - theirs).mean())
    assert found.influence == pytest.approx(((ours - theirs) - (ours - theirs).mean()) / N_QUERIES)


def test_a_difference_is_positive_where_the_model_is_better():
    """An error of 1 beside one of 3 is better by 2; an AP of 0.2 beside one of 0.5 is worse by 0.3."""
    errors = sample(scores("m", [1.0] * 4, RMSE), scores("n", [3.0] * 4, RMSE))
    gains = sample(scores("m", [0.2] * 4), scores("n", [0.5] * 4))

    assert errors.differences([Pair("m", "n", RMSE)])[0].estimate == pytest.approx(2)
    assert gains.differences([Pair("m", "n", AP)])[0].estimate == pytest.approx(-0.3)


def test_differences_that_are_equal_stay_equal_beside_a_large_one():
    base = random_scores(3)
    small = base + 1e-3 * random_scores(4)
    large = np.where(np.arange(N_QUERIES) == 0, base + 0.4, small)
    base[-1] = np.nan  # skipped, so that the differences of the other queries are drawn
    found = sample(scores("small", small), scores("large", large), scores("n", base), conventions=SKIPPING)
    one, other = (each.resamples for each in found.differences([Pair("small", "n", AP), Pair("large", "n", AP)]))

    without = counts(N_QUERIES)[:, 0] == 0
    assert without.sum() > 50
    np.testing.assert_array_equal(one[without], other[without])
    assert (one[~without] < other[~without]).all()


def test_a_factor_scales_the_baseline():
    """Against 0.98 times a baseline of 0.5, a model of 0.5 is better by 0.01."""
    (found,) = sample(scores("m", [0.5] * 4), scores("n", [0.5] * 4)).differences([Pair("m", "n", AP, factor=0.98)])

    assert found.estimate == pytest.approx(0.01)


def test_a_difference_takes_the_queries_that_both_define():
    ours, theirs = [0.5, 0.6, np.nan, 0.9], [0.4, 0.3, 0.1, np.nan]
    both = sample(scores("m", ours), scores("n", theirs), conventions=SKIPPING)
    (found,) = both.differences([Pair("m", "n", AP)])

    assert found.estimate == pytest.approx(0.2)
    assert found.n_queries == found.n_clusters == 2


def test_a_difference_of_pooled_errors_weighs_each_model_by_its_own_pairs():
    rng = np.random.default_rng(5)
    errors, pairs = rng.gamma(2, 1, (2, N_QUERIES)), rng.integers(1, 20, (2, N_QUERIES))
    both = sample(*(scores(name, errors[i], RMSE, pairs[i]) for i, name in enumerate("mn")))
    (found,) = both.differences([Pair("m", "n", RMSE)])

    drawn = counts(N_QUERIES)
    roots = [np.sqrt(drawn @ (errors[i] ** 2 * pairs[i]) / (drawn @ pairs[i])) for i in range(2)]
    np.testing.assert_allclose(found.resamples, roots[1] - roots[0], atol=1e-10)


def test_equal_scores_are_equal_in_every_resample():
    ours = random_scores(6)
    theirs = ours.copy()
    theirs[0] = 1.0
    both = sample(scores("m", ours), scores("n", theirs), groups=Groups(slices={"rest": np.arange(N_QUERIES) > 0}))
    (found,) = both.differences([Pair("m", "n", AP, "rest")])

    assert not found.resamples.any()
    assert found.mark == "degenerate"


def test_what_stands_beside_changes_no_bit():
    ours, theirs, third = random_scores(7), random_scores(8) / 4, random_scores(9)
    two = sample(scores("m", ours), scores("n", theirs))
    three = sample(scores("k", third), scores("m", ours), scores("n", theirs))

    np.testing.assert_array_equal(two.figure("n", AP).resamples, three.figure("n", AP).resamples)
    pairs = [Pair("m", "n", AP)]
    np.testing.assert_array_equal(two.differences(pairs)[0].resamples, three.differences(pairs)[0].resamples)


def test_the_scores_of_a_mean_are_in_the_order_of_the_query_ids():
    results = scores("m", [0.3, 0.1, np.nan, 0.2])
    ids = np.array(["q10", "q2", "q0", "q1"], dtype=object)
    found = sample(dataclasses.replace(results, query_ids=ids), conventions=SKIPPING)

    np.testing.assert_array_equal(found.scores_of("m", AP), [0.2, 0.3, 0.1])


def test_differences_are_oriented_and_take_off_a_share():
    """0.9 of an error of 2 less one of 1 is 0.8 better; clusters and pooled errors are no plain means of queries."""
    both = sample(scores("m", [1.0, 2.0], MAE), scores("n", [2.0, 2.0], MAE))
    clusters = sample(scores("m", [1.0, 2.0]), groups=Groups(clusters=np.array([0, 0])))

    np.testing.assert_allclose(both.differences_of(Pair("m", "n", MAE, factor=0.9)), [0.8, -0.2])
    assert clusters.scores_of("m", AP) is None
    assert sample(scores("m", [1.0, 2.0], RMSE)).scores_of("m", RMSE) is None


def test_the_mean_over_datasets_is_unweighted_and_stratified():
    """Two datasets of 90 and 30 queries count alike; each is resampled by itself, and scaled by √(n / (n - 1))."""
    large, small = random_scores(10), random_scores(11, 30)
    figures = [sample(scores("m", large)).figure("m", AP), sample(scores("m", small, dataset="e")).figure("m", AP)]
    pooled = pool(figures)

    assert pooled.estimate == pytest.approx((large.mean() + small.mean()) / 2)
    resampled = (counts(90) @ large / 90 - large.mean(), counts(30, "e") @ small / 30 - small.mean())
    expected = pooled.estimate + (resampled[0] * np.sqrt(90 / 89) + resampled[1] * np.sqrt(30 / 29)) / 2
    np.testing.assert_allclose(pooled.resamples, expected, atol=1e-11)
    assert np.sqrt((pooled.influence**2).sum()) == pytest.approx(
        np.hypot(large.std(ddof=1) / np.sqrt(90), small.std(ddof=1) / np.sqrt(30)) / 2
    )
    assert interval(pooled, "bca", 0.95)[0] < pooled.estimate < interval(pooled, "bca", 0.95)[1]


def test_small_datasets_have_the_degrees_of_freedom_of_satterthwaite():
    one, other = np.array([0.1, 0.9, 0.4]), np.array([0.3, 0.35, 0.5, 0.2, 0.1])
    figures = [sample(scores("m", one)).figure("m", AP), sample(scores("m", other, dataset="e")).figure("m", AP)]
    welch = stats.ttest_ind(one, -other, equal_var=False).confidence_interval(0.95)

    low, high = interval(pool(figures), "bca+t", 0.95)
    assert low == 0  # no average precision is below
    assert high == pytest.approx(welch.high / 2)


def test_a_dataset_of_one_query_leaves_the_mean_without_an_interval():
    figures = [sample(scores("m", [0.4], dataset="e")).figure("m", AP), sample(scores("m", [0.1, 0.3])).figure("m", AP)]

    assert interval(pool(figures), "bca+t", 0.95) == (None, None)
    assert pool(figures).estimate == pytest.approx(0.3)


def test_a_query_left_out_of_a_distance_leaves_its_slice():
    """An undefined query of a slice is in no sum of it: two of three distances, 4 and 2, make 3."""
    groups = Groups(slices={"s=x": np.array([True, True, True, False])})
    figure = sample(scores("m", [4, np.nan, 2, 9], KENDALL), groups=groups).figure("m", KENDALL, "s=x")

    assert (figure.estimate, figure.n_queries) == (3, 2)


def test_sides_are_the_figures_that_a_difference_is_made_of():
    """Over the queries that both define: those of 0.5 and 0.6, 0.4 and 0.3; and of like models the figures' own."""
    ours, theirs = [0.5, 0.6, np.nan, 0.9], [0.4, 0.3, 0.1, np.nan]
    both = sample(scores("m", ours), scores("n", theirs), conventions=SKIPPING)
    one, other = both.sides(Pair("m", "n", AP))

    assert (one.estimate, other.estimate) == pytest.approx((0.55, 0.35))
    assert both.sides(Pair("m", "m", AP))[0].estimate == both.figure("m", AP).estimate


def test_differences_made_a_few_at_a_time_are_the_same():
    results = [scores(name, random_scores(i)) for i, name in enumerate("mabcde")]
    pairs = [Pair("m", name, AP) for name in "abcde"]
    at_once = sample(*results).differences(pairs)
    few = sample(*results, together=2 * 200)

    for (place, found), (i, expected) in zip(few.each_difference(pairs), enumerate(at_once), strict=True):
        assert place == i
        np.testing.assert_array_equal(found.resamples, expected.resamples)


def test_a_difference_is_let_go_before_the_next_is_made():
    many = sample(*(scores(name, random_scores(i)) for i, name in enumerate("mabcde")))
    made = many.each_difference([Pair("m", name, AP) for name in "abcde"])

    first = weakref.ref(next(made)[1])
    assert first() is None


def test_the_clusters_of_a_slice():
    groups = Groups(clusters=np.array([2, 0, 1, 2, 0]), slices={"s=x": np.array([True, False, False, True, True])})
    clustered = sample(scores("m", [0.1] * 5), groups=groups)
    plain = sample(scores("m", [0.1] * 5), groups=Groups(slices=groups.slices))

    assert clustered.clusters_of("all").tolist() == [0, 1, 2]
    assert clustered.clusters_of("s=x").tolist() == [0, 2]
    assert plain.clusters_of("s=x").tolist() == [0, 3, 4]
