"""Comparisons of pairs of models, by each test."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference import paired
from rankledger.pipeline.inference.intervals import interval
from rankledger.pipeline.inference.paired import bootstrap_test
from rankledger.pipeline.inference.samples import Pair
from rankledger.pipeline.inference.sign_flips import benjamini_hochberg, holm
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from tests.pipeline.inference.made_up_samples import AP, ONE, RMSE, SKIPPING, sample, scores, two_models

BCA = IntervalRule("bca", 0.95)
RANDOM = paired.TestRule("randomization", 300, "maxt", 0.05, 0, ONE)
RETRIEVED = Measure.parse("num_ret")
N_QUERIES = 80
MARKETS = {"market=at": np.arange(N_QUERIES) < 29, "market=de": np.arange(N_QUERIES) >= 29}


def rule(test="randomization", correction="maxt", permutations=300):
    return dataclasses.replace(RANDOM, test=test, correction=correction, permutations=permutations)


def compare(both, pairs=(("m", "n"),), measures=(AP,), test=RANDOM):
    return paired.compare(both, pairs, measures, BCA, test)


@pytest.fixture(scope="module")
def three():
    """Three models by two measures, in two markets, one of 29 queries."""
    values = np.random.default_rng(0).beta(1, 2, (3, 2, N_QUERIES))
    results = [scores(name, values[i], (AP, RMSE)) for i, name in enumerate("mnk")]
    return sample(*results, groups=Groups(slices=MARKETS))


def test_lines_stand_by_pair_slice_and_measure(three):
    lines = compare(three, [("m", "n"), ("k", "n")], [AP, RMSE])

    assert [(line.model, line.slice, line.measure) for line in lines] == [
        (model, name, measure)
        for model in ("m", "k")
        for name in ("all", "market=at", "market=de")
        for measure in ("ap", "rmse")
    ]


def test_a_line_by_hand():
    """Differences 0.1 0.2 -0.1 0: mean 0.05, two wins, a tie and a loss, p 6 / 8 over the three that are not 0."""
    (line,) = compare(two_models([0.5, 0.6, 0.2, 0.4], [0.4, 0.4, 0.3, 0.4]))

    assert (line.estimate, line.baseline_estimate) == pytest.approx((0.425, 0.375))
    assert line.difference == pytest.approx(0.05)
    assert (line.wins, line.ties, line.losses) == (2, 1, 1)
    assert (line.n_queries, line.n_clusters, line.mark) == (4, 4, "sparse")
    assert line.p_value == line.p_corrected == 6 / 8
    assert line.effect_size == pytest.approx(0.05 / np.std([0.1, 0.2, -0.1, 0], ddof=1))
    assert line.family == "1 pair x 1 measure x 1 slice on d (1 test)"


def test_the_interval_is_that_of_the_paired_difference(three):
    (difference,) = three.differences([Pair("m", "n", AP)])
    line = compare(three)[0]

    assert (line.ci_low, line.ci_high) == interval(difference, "bca", 0.95)
    assert line.std_error == difference.std_error


def test_wins_and_tests_of_few_queries():
    """0.1 + 0.2 and 0.3 are a tie, though the doubles differ; one of 32 patterns and its opposite are as extreme."""
    (errors,) = compare(sample(scores("m", [1.0] * 5, RMSE), scores("n", [2.0] * 5, RMSE)), measures=[RMSE])
    assert (errors.difference, errors.wins, errors.losses) == (1, 5, 0)
    (digits,) = compare(two_models([0.1 + 0.2, 0.5], [0.3, 0.4]))
    assert (digits.wins, digits.ties, digits.losses) == (1, 1, 0)

    (few,) = compare(two_models([0.1, 0.2, 0.3, 0.4, 0.0], [0, 0, 0, 0, 0.1]))
    assert few.p_value == 6 / 32
    (single,) = compare(two_models([0.5], [0.4]))
    assert single.difference == pytest.approx(0.1)
    assert single.p_value is single.p_corrected is single.effect_size is single.minimum_detectable_difference is None
    (none,) = compare(two_models([0.5, np.nan], [np.nan, 0.4], conventions=SKIPPING))
    assert none.difference is none.ci_low is none.p_value is none.minimum_detectable_difference is None
    assert (none.n_queries, none.wins, none.ties, none.losses) == (0, 0, 0, 0)


def test_small_slices_are_shown_and_not_tested(three):
    whole, small, large = compare(three)

    assert small.difference is not None
    assert small.p_value is small.p_corrected is None
    assert small.family == ""
    assert whole.family == large.family == "1 pair x 1 measure x 2 slices on d (2 tests)"
    assert whole.p_value is not None
    assert large.p_corrected is not None


def test_a_measure_without_better_is_not_tested():
    """How much was retrieved is neither good nor bad: a difference, an interval, no p-value, no part in the family."""
    values = np.random.default_rng(1).random((2, 2, 40))
    both = sample(*(scores(name, values[i], (AP, RETRIEVED)) for i, name in enumerate("mn")))
    tested, shown = compare(both, measures=[AP, RETRIEVED])

    assert tested.family == "1 pair x 1 measure x 1 slice on d (1 test)"
    assert (shown.measure, shown.p_value, shown.family) == ("num_ret", None, "")
    assert shown.ci_low < shown.difference < shown.ci_high


@pytest.mark.parametrize("test", ["randomization", "bootstrap", "t"])
@pytest.mark.parametrize(("correction", "corrected"), [("holm", holm), ("bh", benjamini_hochberg)])
def test_each_test_may_be_corrected_by_each_rule(three, test, correction, corrected):
    lines = compare(three, [("m", "n"), ("k", "n")], [AP], rule(test, correction))
    tested = [line for line in lines if line.p_value is not None]

    assert len(tested) == 4
    np.testing.assert_array_equal(
        [line.p_corrected for line in tested], corrected(np.array([line.p_value for line in tested]))
    )


@pytest.mark.parametrize("test", ["randomization", "bootstrap", "t"])
def test_without_correction_there_is_no_family(three, test):
    lines = compare(three, test=rule(test, "none"))

    assert [(line.p_value is None, line.p_corrected, line.family) for line in lines] == [
        (False, None, ""),
        (True, None, ""),
        (False, None, ""),
    ]


@pytest.mark.parametrize("test", ["randomization", "bootstrap"])
def test_maxt_never_lowers_a_p_value(three, test):
    lines = compare(three, [("m", "n"), ("k", "n"), ("m", "k")], [AP], rule(test))
    tested = [line for line in lines if line.p_value is not None]

    assert len(tested) == 6
    assert all(line.p_corrected >= line.p_value for line in tested)
    assert any(line.p_corrected > line.p_value for line in tested)


@pytest.mark.parametrize(
    ("test", "key"), [("randomization", "comparison.permutations"), ("bootstrap", "bootstrap.resamples")]
)
@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_too_few_permutations_are_refused(three, test, key, correction):
    """6 tests at 5% need 120 patterns: 119 could reject nothing. maxt and none need no more than one test does."""
    pairs = [("m", "n"), ("k", "n"), ("m", "k")]
    few = sample_of(three, 119)
    with pytest.raises(InputError) as refused:
        compare(few, pairs, [AP], rule(test, correction, 119))

    assert str(refused.value) == (
        f"{key}: 119 are too few for {correction} over the 6 tests on 'd': at level 0.05 none could be found; set at "
        "least 120, or correction: maxt"
    )
    assert len(compare(sample_of(three, 120), pairs, [AP], rule(test, correction, 120))) == 9
    assert len(compare(few, pairs, [AP], rule(test, "maxt", 119))) == 9
    assert len(compare(few, pairs, [AP], rule(test, "none", 119))) == 9


@pytest.mark.parametrize("clusters", [None, np.arange(N_QUERIES) // 2])
def test_the_tests_are_counted_before_anything_is_scored(three, clusters):
    groups = Groups(clusters, MARKETS)
    pairs = [("m", "n"), ("k", "n")]
    both = sample(*(scores(n, three.contributions[n, AP].numerators) for n in "mnk"), groups=groups, resamples=50)
    n_tested = sum(line.p_value is not None for line in compare(both, pairs, [AP]))

    assert n_tested == (4 if clusters is None else 2)
    assert paired.most_tests(2, [AP], groups, N_QUERIES) == n_tested
    assert paired.most_tests(2, [AP, RMSE, RETRIEVED], groups, N_QUERIES) == 2 * n_tested


def sample_of(three, resamples):
    results = [scores(name, three.contributions[name, AP].numerators) for name in "mnk"]
    return sample(*results, groups=three.groups, resamples=resamples)


@pytest.mark.parametrize(
    ("sizes", "refused"),
    [([10] * 20, False), ([1, 2] * 10, False), ([19] + [1] * 19, True), ([299] + [1] * 299, True), ([1] * 25, False)],
)
def test_t_is_refused_for_clusters_of_unlike_sizes(sizes, refused):
    """Unless they count as 70% of their number, or as 30: with half of all queries in one, 20 count as 3.8 and 300 as
    4.0. Sign flips take them.
    """
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    values = np.random.default_rng(0).random((2, len(clusters)))
    both = two_models(*values, groups=Groups(clusters=clusters))

    assert compare(both)[0].p_value is not None
    paired.refuse_unlike_clusters("d", Groups(clusters=clusters), rule("randomization"))
    if refused:
        message = r"t needs clusters of like weights.* set test: randomization or bootstrap"
        with pytest.raises(InputError, match=message):
            compare(both, test=rule("t", "holm"))
        with pytest.raises(InputError, match=message):
            paired.refuse_unlike_clusters("d", Groups(clusters=clusters), rule("t", "holm"))
    else:
        paired.refuse_unlike_clusters("d", Groups(clusters=clusters), rule("t", "holm"))
        assert compare(both, test=rule("t", "holm"))[0].p_value is not None


def test_t_is_refused_for_queries_of_unlike_weights():
    """One of 40 users has half of all ratings: by pairs they count as 3.9, by users of one weight as 40."""
    rng = np.random.default_rng(1)
    pairs = np.array([39.0, *[1.0] * 39])
    both = sample(*(scores(name, rng.gamma(2, 1, 40), RMSE, pairs) for name in "mn"))

    with pytest.raises(InputError, match=r"queries of like weights.* 40 of rmse on d count as 3\.9 of one"):
        compare(both, measures=[RMSE], test=rule("t", "holm"))


def test_measures_that_a_model_lacks_are_left_out(three):
    lacking = sample(scores("m", np.ones(4)), scores("n", np.ones(4), RMSE))

    assert compare(lacking, measures=[AP, RMSE]) == ()
    assert compare(three, [("m", "nobody")]) == ()


def test_t_needs_no_permutations_and_workers_change_no_line(three):
    assert compare(three, test=rule("t", "holm", 1))[0].p_corrected is not None

    asked = ([("m", "n"), ("k", "n")], [AP, RMSE])
    assert compare(three, *asked, dataclasses.replace(RANDOM, workers=Workers(2))) == compare(three, *asked)


@given(st.integers(0, 2**32))
def test_the_other_way_round_is_the_opposite(seed):
    ours, theirs = np.random.default_rng(seed).beta(1, 2, (2, 60)).round(1)
    both = two_models(ours, theirs, resamples=50)
    (one,), (other,) = compare(both), compare(both, [("n", "m")])

    assert one.difference == -other.difference
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
    assert (one.p_value, one.p_corrected) == (other.p_value, other.p_corrected)


def changed_models(n_models, n_queries=60):
    """A baseline, a model that differs from it, and others that are equal to it."""
    rng = np.random.default_rng(5)
    base = rng.beta(1, 2, n_queries)
    others = [scores(f"same{i}", base) for i in range(n_models - 1)]
    return sample(scores("n", base), scores("m", base + rng.normal(0.01, 0.05, n_queries)), *others)


@pytest.mark.parametrize("test", ["randomization", "bootstrap", "t"])
@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_pairs_without_a_changed_query_are_no_tests(test, correction):
    pairs = [("m", "n"), *((f"same{i}", "n") for i in range(4))]
    changed, *same = compare(changed_models(5), pairs, test=rule(test, correction))

    assert changed.p_corrected == changed.p_value < 1
    assert changed.family == "1 pair x 1 measure x 1 slice on d (1 test)"
    assert {(line.p_value, line.p_corrected, line.test, line.family) for line in same} == {(1.0, 1.0, "", "")}


def test_a_family_may_be_the_pairs_of_one_measure(three):
    """Holm over 2 pairs of each measure on all queries: 2 p and max(2 p, p'), by the rule; slices are beside them."""
    test = dataclasses.replace(rule("t", "holm"), family="measure")
    lines = compare(three, [("m", "n"), ("k", "n")], [AP, RMSE], test)
    for measure in ("ap", "rmse"):
        tested = [line for line in lines if (line.measure, line.slice) == (measure, "all")]
        low, high = sorted(tested, key=lambda line: line.p_value)
        assert low.p_corrected == min(2 * low.p_value, 1)
        assert high.p_corrected == max(low.p_corrected, high.p_value)
        assert low.family == "2 pairs x 1 measure x 1 slice on d (2 tests)"
    assert paired.most_tests(2, [AP, RMSE], three.groups, N_QUERIES, "measure") == 2


MN = Pair("m", "n", AP)


@pytest.mark.parametrize("seed", range(5))
def test_p_values_and_their_correction_agree_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    values = rng.beta(2, 2, (3, 40)) + np.array([0, 0, 0.08])[:, np.newaxis]
    three = sample(*(scores(name, row) for name, row in zip("mnk", values, strict=True)), resamples=300)
    pairs = [Pair(*names, AP) for names in ("mn", "mk", "nk")]
    apart = {pair: values["mnk".index(pair.model)] - values["mnk".index(pair.baseline)] for pair in pairs}
    errors = {pair: row.std() / np.sqrt(40) for pair, row in apart.items()}
    observed = {pair: abs(row.mean()) / errors[pair] for pair, row in apart.items()}
    away = {
        pair: np.abs(found.resamples - apart[pair].mean()) / errors[pair]
        for pair, found in zip(pairs, three.differences(pairs), strict=True)
    }

    p_values, corrected = bootstrap_test(three, pairs)

    expected = [(1 + sum(each >= observed[pair] for each in away[pair])) / 301 for pair in pairs]
    assert p_values == pytest.approx(expected)
    least = 0.0
    for pair in sorted(pairs, key=observed.__getitem__, reverse=True):
        below = [other for other in pairs if observed[other] <= observed[pair]]
        reached = sum(max(away[other][b] for other in below) >= observed[pair] for b in range(300))
        least = max(least, (1 + reached) / 301)
        assert corrected[pairs.index(pair)] == pytest.approx(least)


@pytest.mark.parametrize("seed", range(5))
def test_ties_are_decided_as_in_integers(seed):
    tenths = np.random.default_rng(seed).integers(-2, 5, 9)
    pairs = [two_models(scale * tenths + 0.0, np.zeros(9), resamples=999) for scale in (0.1, 1)]

    assert bootstrap_test(pairs[0], [MN])[0] == bootstrap_test(pairs[1], [MN])[0]


def test_equal_and_far_models():
    """Equal ones have a p-value of 1; of 200 resamples none is as far away as ten standard errors: 1 / 201."""
    values, far = np.random.default_rng(0).random(40), np.random.default_rng(0).normal(0.5, 0.1, 40)

    assert bootstrap_test(two_models(values, values), [MN])[0] == [1]
    assert bootstrap_test(two_models(far, np.full(40, 0.3)), [MN])[0] == pytest.approx(1 / 201)


def test_pairs_that_are_held_in_parts_are_one_family():
    values = np.random.default_rng(1).random((4, 50))
    four = [scores(name, row) for name, row in zip("abcd", values, strict=True)]
    pairs = [Pair(*names, AP) for names in itertools.combinations("abcd", 2)]
    whole = bootstrap_test(sample(*four), pairs)

    np.testing.assert_array_equal(bootstrap_test(sample(*four, together=2 * 200), pairs), whole)


def test_true_hypotheses_are_rejected_at_the_level():
    """At 5%, of 300 samples of 60 queries without difference, 5% within 4 errors."""
    rng = np.random.default_rng(2)
    models = [scores(str(i), rng.beta(1, 2, 60)) for i in range(600)]
    pairs = [Pair(str(i), str(i + 1), AP) for i in range(0, 600, 2)]

    p_values, _ = bootstrap_test(sample(*models, resamples=999), pairs)

    assert (p_values <= 0.05).mean() == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 300))
