"""Randomization tests: signs, statistics of patterns, p-values and their correction."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.resampling import Settings, seed_stream
from rankledger.pipeline.inference.samples import Pair
from rankledger.pipeline.inference.sign_flips import FlippedPair, FlippedPairs, all_signs, draw_signs, randomization
from rankledger.pipeline.support.parallel import Workers
from tests.pipeline.inference.made_up_samples import AP, GMAP, ONE, R2, RMSE, SKIPPING, sample, scores, two_models

MN = Pair("m", "n", AP)
CG = Measure.parse("cg")


def p_value(ours, theirs, *, permutations=1000, seed=0, measure=AP, **options):
    both = two_models(ours, theirs, measure, **options)
    return randomization(both, [Pair("m", "n", measure)], Settings(permutations, seed, ONE))[0][0]


def drawn(n_patterns, n_clusters):
    """The very signs that the dataset `d` gets, where they make one chunk."""
    return draw_signs([0, seed_stream("signs/d"), 0], n_patterns, n_clusters)


def test_an_exact_p_value_by_hand():
    """Differences 1 2 3 4 -1, sum 9."""
    apart = [1, 2, 3, 4, -1]
    reached = [signs for signs in itertools.product([1, -1], repeat=5) if abs(np.dot(signs, apart)) >= 9]

    assert len(reached) == 6
    assert p_value([0.1, 0.2, 0.3, 0.4, 0.0], [0, 0, 0, 0, 0.1]) == 6 / 32


@pytest.mark.parametrize("n_queries", range(2, 16))
def test_exact_p_values_agree_with_scipy(n_queries):
    ours, theirs = np.random.default_rng(n_queries).beta(1, 2, (2, n_queries))
    expected = stats.permutation_test(
        (ours, theirs), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples", n_resamples=np.inf
    )

    assert p_value(ours, theirs) == expected.pvalue


def test_darwins_maize():
    """Fisher 1935, The Design of Experiments, section 21: of 32,768 patterns 1,726 reach the sum of 15 pairs of plants,
    whose heights differ by these eighths of an inch.
    """
    eighths = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]

    assert p_value(np.array(eighths) / 8, np.zeros(15), measure=CG) == 1726 / 32768


def test_an_exact_p_value_of_many_patterns_is_that_of_counted_sums():
    """Differences of 1 to 9: how many of 16,777,216 patterns reach the sample's sum, by counting patterns per sum."""
    apart = np.random.default_rng(0).integers(1, 10, 24) * np.where(np.arange(24) % 3, 1, -1)
    patterns = {0: 1}
    for each in apart.tolist():
        added = [(total + sign * each, n) for total, n in patterns.items() for sign in (1, -1)]
        patterns = {total: sum(n for other, n in added if other == total) for total, _ in added}
    reached = sum(n for total, n in patterns.items() if abs(total) >= abs(apart.sum()))

    assert p_value(apart * 0.1, np.zeros(24), measure=CG) == reached / 2**24


@pytest.mark.parametrize(("enumerated", "n_counted"), [(2 * 2**14, 2**14), (2 * 2**14 - 1, 1 + 99)])
def test_patterns_are_enumerated_up_to_a_number_of_statistics(enumerated, n_counted):
    """Two tests of 14 clusters have 32,768 statistics: p-values are shares of all patterns, or else of 99 drawn."""
    values = np.random.default_rng(8).random((3, 14))
    three = sample(*(scores(name, row) for name, row in zip("mnk", values, strict=True)))

    both = randomization(three, [MN, Pair("k", "n", AP)], Settings(99, 0, ONE), _enumerated=enumerated)

    shares = np.concatenate(both) * n_counted
    np.testing.assert_allclose(shares, np.rint(shares), atol=1e-9)
    assert len({*np.concatenate(both)}) > 1


@pytest.mark.parametrize("seed", range(5))
def test_random_p_values_agree_with_scipy(seed):
    """Of 60 differences both draw 9,999 patterns: they agree within 4 errors of the difference of two shares."""
    rng = np.random.default_rng(seed)
    ours = rng.beta(1, 2, 60)
    theirs = np.clip(ours + rng.normal(0.02, 0.1, 60), 0, 1)
    expected = stats.permutation_test(
        (ours, theirs), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples", rng=rng
    ).pvalue

    error = np.sqrt(2 * expected * (1 - expected) / 9_999)
    assert p_value(ours, theirs, permutations=9_999) == pytest.approx(expected, abs=4 * error)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=13), st.sampled_from([0.1, 0.3, 1 / 3, 1 / 7]))
def test_ties_of_exact_p_values_are_decided_as_in_integers(apart, unit):
    moved = [each for each in apart if each]
    sums = np.abs([np.dot(signs, moved) for signs in itertools.product([1, -1], repeat=len(moved))])
    base = np.linspace(0.5, 0.9, len(apart)) * 3

    assert p_value(base + np.array(apart) * unit, base, measure=CG) == (sums >= abs(sum(moved))).mean()


@pytest.mark.parametrize("seed", range(5))
def test_ties_of_random_p_values_are_decided_as_in_integers(seed):
    ours, theirs = np.random.default_rng(seed).integers(0, 10, (2, 50))
    sums = np.abs(drawn(999, 50).astype(int) @ (ours - theirs))
    observed = abs((ours - theirs).sum())

    assert (sums == observed).any()
    assert p_value(ours * 0.1, theirs * 0.1, permutations=999) == (1 + (sums >= observed).sum()) / 1000


def test_queries_without_difference_do_not_count():
    """Five differences among 100 queries: still exactly 6 / 32, at any number of permutations."""
    ours, theirs = np.zeros(100), np.zeros(100)
    ours[10:14], theirs[50] = [0.1, 0.2, 0.3, 0.4], 0.1

    assert p_value(ours, theirs, permutations=100) == 6 / 32


def test_a_pair_of_few_differences_is_exact_in_a_family_of_many():
    ours, theirs = np.zeros(100), np.zeros(100)
    ours[10:14], theirs[50] = [0.1, 0.2, 0.3, 0.4], 0.1
    three = sample(scores("m", ours), scores("n", theirs), scores("k", np.random.default_rng(0).random(100)))

    p_values, _ = randomization(three, [Pair("k", "m", AP), MN], Settings(100, 0, ONE))

    assert p_values[1] == 6 / 32


def test_equal_models_have_a_p_value_of_one():
    values = np.random.default_rng(0).random(50)

    p_values, corrected = randomization(two_models(values, values), [MN], Settings(100, 0, ONE))

    assert (p_values[0], corrected[0]) == (1, 1)


def test_whole_clusters_change_places():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(11), rng.integers(1, 5, 11))
    ours, theirs = rng.beta(1, 2, (2, len(clusters)))
    added = [np.bincount(clusters, values) for values in (ours, theirs)]
    expected = stats.permutation_test(
        added, lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples", n_resamples=2**14
    )

    assert p_value(ours, theirs, groups=Groups(clusters=clusters)) == expected.pvalue


def test_a_ratio_agrees_with_changing_the_places_of_its_pairs():
    rng = np.random.default_rng(2)
    errors, pairs = rng.gamma(2, 1, (2, 9)), rng.integers(1, 9, (2, 9))

    def root(one):
        return np.sqrt(np.average(errors[one, range(9)] ** 2, weights=pairs[one, range(9)]))

    apart = [abs(root(np.array(one)) - root(1 - np.array(one))) for one in itertools.product([0, 1], repeat=9)]
    both = sample(*(scores(name, errors[i], RMSE, pairs[i]) for i, name in enumerate("mn")))

    p_values, _ = randomization(both, [Pair("m", "n", RMSE)], Settings(100, 0, ONE))

    assert p_values[0] == np.mean(np.array(apart) >= apart[0] - 1e-12)


def loops(results, pairs, signs):
    """Step-down maxT as the book has it: by one loop over patterns and one over hypotheses."""
    values = {scores.model: scores.values[0] for scores in results}
    apart = [values[pair.model] - values[pair.baseline] for pair in pairs]
    scale = [np.sqrt((each**2).sum()) for each in apart]
    observed = [abs(each.sum()) / by for each, by in zip(apart, scale, strict=True)]
    order = sorted(range(len(pairs)), key=lambda i: -observed[i])
    counts = [0] * len(pairs)
    for row in signs:
        greatest = 0.0
        for i in reversed(order):
            greatest = max(greatest, abs((row * apart[i]).sum()) / scale[i])
            counts[i] += greatest >= observed[i] - 1e-9
    corrected, least = {}, 0.0
    for i in order:
        least = max(least, (1 + counts[i]) / (1 + len(signs)))
        corrected[i] = least
    return [corrected[i] for i in range(len(pairs))]


@pytest.mark.parametrize("seed", range(5))
def test_corrected_p_values_agree_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    results = [scores(f"m{i}", rng.beta(2, 3, 40) + 0.08 * (i > 2)) for i in range(5)]
    pairs = [Pair(f"m{i}", f"m{j}", AP) for i, j in itertools.combinations(range(5), 2)]

    p_values, corrected = randomization(sample(*results), pairs, Settings(300, 0, ONE))

    np.testing.assert_allclose(corrected, loops(results, pairs, drawn(300, 40)), rtol=1e-12)
    assert (corrected >= p_values).all()


def test_a_small_family_is_corrected_over_all_patterns():
    results = [
        scores(name, values) for name, values in zip("abc", np.random.default_rng(3).random((3, 8)), strict=True)
    ]
    pairs = [Pair("a", "b", AP), Pair("a", "c", AP), Pair("b", "c", AP)]
    every = np.array(list(itertools.product([1, -1], repeat=8)))

    _, corrected = randomization(sample(*results), pairs, Settings(100, 0, ONE))

    expected = [(round(p * 257) - 1) / 256 for p in loops(results, pairs, every)]
    np.testing.assert_allclose(corrected, expected, rtol=1e-12)


def test_what_stands_beside_changes_no_p_value():
    rng = np.random.default_rng(4)
    values = rng.random((3, 90))
    alone = two_models(values[0], values[1])
    groups = Groups(slices={"s=x": np.arange(90) % 2 == 0})
    many = sample(
        *(scores(name, [row, 100 * row], (AP, CG)) for name, row in zip("mnk", values, strict=True)), groups=groups
    )
    pairs = [Pair("k", "m", CG), Pair("m", "n", AP, "s=x"), MN, Pair("k", "n", AP)]
    permutations = Settings(500, 0, ONE)

    assert randomization(many, pairs, permutations)[0][2] == randomization(alone, [MN], permutations)[0][0]
    assert randomization(many, pairs[::-1], permutations)[0][1] == randomization(alone, [MN], permutations)[0][0]


@pytest.mark.parametrize("workers", [Workers(2), Workers(3), Workers(2, "processes")], ids=str)
def test_workers_never_change_a_bit(workers):
    rng = np.random.default_rng(5)
    both = sample(
        *(scores(name, rng.gamma(2, 1, 60), RMSE, rng.integers(1, 9, 60)) for name in "mnk"),
        groups=Groups(slices={"s=x": np.arange(60) < 40}),
    )
    pairs = [Pair(*names, RMSE, name) for names in ("mn", "mk", "nk") for name in ("all", "s=x")]
    one = randomization(both, pairs, Settings(333, 0, ONE))
    parts = randomization(both, pairs, Settings(333, 0, workers), _held=6 * 7)

    np.testing.assert_array_equal(parts, one)


def test_many_chunks_are_counted_each():
    ours, theirs = np.random.default_rng(6).random((2, 30))
    signs = np.concatenate(
        [draw_signs([0, seed_stream("signs/d"), chunk], n, 30) for chunk, n in enumerate([16, 16, 8])]
    )
    reached = np.abs(signs @ (ours - theirs)) >= abs((ours - theirs).sum()) - 1e-9

    p_values, _ = randomization(two_models(ours, theirs), [MN], Settings(40, 0, ONE), _chunk=30 * 16)
    assert p_values == (1 + reached.sum()) / 41


def test_another_seed_draws_other_signs():
    ours, theirs = np.random.default_rng(7).random((2, 50))
    found = [p_value(ours, theirs, seed=seed) for seed in range(10)]

    assert len(set(found)) > 1
    assert np.ptp(found) < 0.1


def test_a_pair_is_tested_on_the_queries_that_both_define():
    ours, theirs = [0.5, 0.6, np.nan, 0.9, 0.4, 0.8], [0.4, 0.3, 0.1, 0.2, np.nan, 0.7]

    assert p_value(ours, theirs, conventions=SKIPPING) == 2 / 16


def simulated(seed, shifts):
    """Whether maxT at 5% rejects some true hypothesis, and which share of the false ones: all pairs, 24 queries."""
    rng = np.random.default_rng(seed)
    level = rng.normal(0, 1, 24)
    results = [scores(f"m{i}", level + rng.normal(shift, 1, 24), CG) for i, shift in enumerate(shifts)]
    pairs = list(itertools.combinations(range(len(shifts)), 2))
    asked = [Pair(f"m{i}", f"m{j}", CG) for i, j in pairs]
    _, corrected = randomization(sample(*results, resamples=1), asked, Settings(199, seed, ONE))
    true = np.array([shifts[i] == shifts[j] for i, j in pairs])
    return (corrected[true] <= 0.05).any(), (corrected[~true] <= 0.05).sum() / max(1, (~true).sum())


def test_maxt_controls_the_error_rate_among_true_and_false_hypotheses():
    """Three equal models and two better ones: any of the four true hypotheses is rejected in at most 5% of 400 families
    plus 3 errors, though most of the false ones are.
    """
    found = np.array([simulated(seed, [0, 0, 0, 2, 2]) for seed in range(400)])

    assert found[:, 0].mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert found[:, 1].mean() > 0.9


def test_maxt_uses_up_its_error_rate_where_nothing_is_true():
    """Five equal models: some pair is rejected in 5% of 400 families, within 3 errors on either side."""
    share = np.mean([simulated(seed, [0] * 5)[0] for seed in range(400)])

    assert share == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 400))


def test_every_pattern_of_two_clusters():
    np.testing.assert_array_equal(all_signs(2), [[1, 1], [-1, 1], [1, -1], [-1, -1]])


def test_every_pattern_is_there_once():
    """2**13 patterns of 13 clusters, all different; of no cluster there is one, which is empty."""
    assert len(np.unique(all_signs(13), axis=0)) == 2**13
    assert all_signs(0).shape == (1, 0)


def test_drawn_signs_are_fair_and_independent():
    """Of 40,000 patterns of 9 clusters each sign is as often 1 as -1, and so is the product of any two of them."""
    signs = draw_signs([0, 1, 2], 40_000, 9).astype(float)

    assert set(np.unique(signs)) == {-1, 1}
    products = signs.T @ signs / len(signs)
    np.testing.assert_allclose(signs.mean(axis=0), 0, atol=4 / 200)
    np.testing.assert_allclose(products, np.eye(9), atol=4 / 200)


def test_fewer_patterns_are_the_first_of_more():
    np.testing.assert_array_equal(draw_signs([0, 1, 2], 5, 7), draw_signs([0, 1, 2], 90, 7)[:5])
    assert (draw_signs([0, 1, 2], 5, 7) != draw_signs([0, 1, 3], 5, 7)).any()


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
