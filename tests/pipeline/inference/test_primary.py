"""The primary family: standard errors of resamples, and words that its p-values cannot contradict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference import paired
from rankledger.pipeline.inference.intervals import tail_end
from rankledger.pipeline.inference.primary import differences_with_errors, joint_differences
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.report.tables import effect_label
from tests.pipeline.inference.made_up_samples import (
    AP,
    CONVENTIONS,
    GMAP,
    ONE,
    RMSE,
    SKIPPING,
    drawn_counts,
    sample,
    scores,
    two_models,
)

RULE = paired.TestRule("randomization", 300, "maxt", 0.05, 0, ONE)
OUTER = IntervalRule("bca+t", 0.95)


def family(seed, n_queries=40, n_models=3, resamples=200):
    """A baseline and models that differ from it by skewed amounts, some of them much."""
    rng = np.random.default_rng(seed)
    baseline = rng.beta(1, 2, n_queries)
    shifts = rng.choice([0, 0.02, 0.1], n_models)
    noise = rng.standard_exponential((n_models, n_queries)) * rng.choice([0.02, 0.1]) * rng.choice([-1, 1])
    models = [scores(f"m{i}", baseline + shifts[i] + noise[i] - noise[i].mean() / 2) for i in range(n_models)]
    return sample(scores("n", baseline), *models, resamples=resamples), [
        Pair(f"m{i}", "n", AP) for i in range(n_models)
    ]


def long_tailed(seed, n_queries=30, n_models=3):
    """Models whose differences from a baseline have a long tail, so that a few queries decide most of them."""
    rng = np.random.default_rng(seed)
    apart = 0.01 * (rng.lognormal(0, 1.5, (n_models, n_queries)) - rng.uniform(1, 9))
    models = [scores(f"m{i}", 0.2 + np.clip(row, -0.2, 0.8)) for i, row in enumerate(apart)]
    both = sample(scores("n", np.full(n_queries, 0.2)), *models, resamples=400)
    return both, [Pair(f"m{i}", "n", AP) for i in range(n_models)]


def test_equal_columns_are_drawn_once():
    drawn = []

    class Watched(Sample):
        def differences_and_sums(self, pairs, columns):
            drawn.append(columns)
            return super().differences_and_sums(pairs, columns)

    models = [scores(name, np.random.default_rng(i).random(30)) for i, name in enumerate("nabc")]
    watched = Watched(models, CONVENTIONS, Groups(), Settings(200, 0, ONE))
    found = list(differences_with_errors(watched, [Pair(name, "n", AP) for name in "abc"]))

    assert [len(columns) for columns in drawn] == [2 * 3 + 1]
    for (difference, errors), name in zip(found, "abc", strict=True):
        ((_, alone),) = differences_with_errors(sample(*models), [Pair(name, "n", AP)])
        np.testing.assert_array_equal(errors, alone)
        assert errors[0] == pytest.approx(difference.error, rel=1e-9)


@pytest.mark.parametrize("measure", [AP, RMSE, GMAP])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_errors_are_those_of_samples_that_repeat_queries(measure, weighted):
    """Each resample written out, a query as often as it was drawn, has the standard error of its own influences."""
    rng = np.random.default_rng(0)
    ours, theirs = rng.uniform(0.1, 1, (2, 30))
    weights = rng.integers(1, 9, 30) if weighted else np.ones(30)
    both = sample(scores("m", ours, measure, weights), scores("n", theirs, measure, weights))
    ((_, errors),) = differences_with_errors(both, [Pair("m", "n", measure)])
    counts = drawn_counts(30, 200).astype(int)

    assert errors[0] == pytest.approx(both.differences([Pair("m", "n", measure)])[0].error, rel=1e-9)
    for count, error in zip(counts[:20], errors[1:], strict=False):
        rows = [np.repeat(row, count) for row in (ours, theirs, weights)]
        again = sample(scores("m", rows[0], measure, rows[2]), scores("n", rows[1], measure, rows[2]))
        assert error == pytest.approx(again.differences([Pair("m", "n", measure)])[0].error, rel=1e-9)


def test_clusters_are_what_varies():
    rng = np.random.default_rng(1)
    clusters = np.sort(np.concatenate([np.arange(12), rng.integers(0, 12, 30)]))
    ours, theirs = rng.random((2, len(clusters)))
    both = two_models(ours, theirs, groups=Groups(clusters=clusters))
    ((_, errors),) = differences_with_errors(both, [Pair("m", "n", AP)])

    for count, error in zip(drawn_counts(12, 200).astype(int)[:10], errors[1:], strict=False):
        drawn = np.repeat(np.arange(12), count)
        rows = np.concatenate([np.flatnonzero(clusters == cluster) for cluster in drawn])
        names = np.concatenate([np.full((clusters == cluster).sum(), i) for i, cluster in enumerate(drawn)])
        again = two_models(ours[rows], theirs[rows], groups=Groups(clusters=names))
        assert error == pytest.approx(again.differences([Pair("m", "n", AP)])[0].error, rel=1e-9)


def test_equal_queries_have_no_error():
    theirs = np.linspace(0.1, 0.7, 40)
    ((_, errors),) = differences_with_errors(two_models(theirs + 0.1, theirs), [Pair("m", "n", AP)])

    assert errors.tolist() == [0] * 201


def test_p_values_by_plain_loops():
    """How many resamples have a t* at least as far as t: of a model's own, and of the greatest of all models'."""
    both, pairs = family(3, n_queries=120)
    found = joint_differences(both, pairs, 0.05)
    assert not any(difference.mark for difference in both.differences(pairs))
    differences, errors = zip(*differences_with_errors(both, pairs), strict=True)
    stars = [
        np.abs(each.resamples - each.estimate) / error[1:] for each, error in zip(differences, errors, strict=True)
    ]

    for i, each in enumerate(found):
        t = abs(differences[i].estimate) / errors[i][0]
        assert each.p_value == (1 + sum(star >= t for star in stars[i])) / 201
        assert each.p_joint == (1 + sum(max(star) >= t for star in zip(*stars, strict=True))) / 201


@pytest.mark.parametrize("made", [family, long_tailed])
@given(st.integers(0, 2**32), st.sampled_from([0.02, 0.05, 0.1, 0.5]))
def test_a_p_value_is_below_alpha_where_0_is_outside(made, seed, alpha):
    """For every unmarked pair, whatever alpha. The interval of a marked one reaches further.

    The p-value among all is no less than that of one alone.
    """
    both, pairs = made(seed)

    for found, difference in zip(joint_differences(both, pairs, alpha), both.differences(pairs), strict=True):
        outside = found.ends[0] > 0 or found.ends[1] < 0
        assert outside == (found.p_joint < alpha) or difference.mark
        assert found.p_joint < alpha or not outside
        assert found.p_value <= found.p_joint


@pytest.mark.parametrize("seed", range(10))
def test_what_few_queries_decide_is_within_both_intervals(seed):
    """With a mark an interval has the outer ends of three: by |t*|, by t* to each side, and of a corrected t.

    To either side go the long tails of t* of all pairs together, and the short ones: t* of a sample that is skewed to
    the right has its long tail on the left.
    """
    both, pairs = long_tailed(seed)
    differences = both.differences(pairs)
    assert any(difference.mark for difference in differences)
    found = joint_differences(both, pairs, 0.06)
    signs = [-np.sign((difference.influence**3).sum()) for difference in differences]
    stars = [
        sign * (difference.resamples - difference.centre) / errors[1:]
        for sign, (difference, errors) in zip(signs, differences_with_errors(both, pairs), strict=True)
    ]
    plain = np.sort(np.max(np.abs(stars), axis=0))[-24]  # (1 + 23) / 401 is the greatest p-value below 0.06
    long, short = (np.sort(np.max(side * np.array(stars), axis=0))[-12] for side in (1, -1))  # and 12 / 401 below 0.03

    for sign, difference, joint in zip(signs, differences, found, strict=True):
        reaches = [plain, plain]
        if difference.mark:
            reaches = [max(plain, long), max(plain, short)] if sign > 0 else [max(plain, short), max(plain, long)]
        below, above = (reach * difference.error for reach in reaches)
        ends = [difference.estimate - below, difference.estimate + above]
        if difference.mark:
            tails = [tail_end(difference, 0.01, upper=upper) for upper in (False, True)]
            ends = [min(ends[0], tails[0]), max(ends[1], tails[1])]
        assert joint.ends == pytest.approx([max(ends[0], -1), min(ends[1], 1)], abs=1e-9)


@pytest.mark.parametrize("n_models", [1, 3])
@given(st.integers(0, 2**32))
def test_no_word_contradicts_its_p_value_where_few_queries_decide(n_models, seed):
    both, pairs = long_tailed(seed, n_models=n_models)

    for line in paired.compare(both, [(pair.model, "n") for pair in pairs], [AP], OUTER, RULE, AP):
        if line.is_primary:
            assert (effect_label(line, {}) in ("better", "worse")) == (line.p_corrected < 0.05)
            assert line.p_value <= line.p_corrected
            assert line.mark or line.test == "bootstrap-t"


@pytest.mark.parametrize("seed", range(10))
def test_the_larger_of_two_p_values_counts_if_a_long_tail_decides(seed):
    """One is by signs. The other doubles the share of resamples whose t* is at least t to the side of 0, in a loop."""
    both, (pair,) = long_tailed(seed, n_models=1)
    (line,) = paired.compare(both, [(pair.model, "n")], [AP], OUTER, RULE, AP)
    (by_signs,) = paired.compare(both, [(pair.model, "n")], [AP], OUTER, RULE)
    ((difference, errors),) = differences_with_errors(both, [pair])
    t = difference.estimate / errors[0]
    stars = (difference.resamples - difference.estimate) / errors[1:]
    beyond = sum(star >= t if t > 0 else star <= t for star in stars)

    assert (line.mark, line.wins + line.losses) == ("sparse", 30)
    assert line.p_corrected == pytest.approx(max(by_signs.p_value, min(1, 2 * (1 + beyond) / (1 + len(stars)))))


def test_too_few_resamples_decide_nothing():
    """A level of 0.001 needs 999 resamples: with 200 there is no interval."""
    both, pairs = family(0)

    assert {found.ends for found in joint_differences(both, pairs, 0.001)} == {(None, None)}


@given(st.integers(0, 2**32))
def test_no_word_contradicts_its_p_value(seed):
    both, pairs = family(seed)
    lines = paired.compare(both, [(pair.model, "n") for pair in pairs], [AP], OUTER, RULE, AP)

    for line in lines:
        if line.is_primary:
            word = effect_label(line, {})
            assert (word in ("better", "worse")) == (line.p_corrected < 0.05)
            assert word not in ("better", "worse") or (word == "better") == (line.difference > 0)


def test_the_family_is_the_lead_measure_on_all_queries():
    """Slices and other measures are exploratory. If 6 queries change alike, the p-value is 2 / 2⁶."""
    rng = np.random.default_rng(2)
    values = rng.beta(1, 2, (3, 2, 80))
    values[2] = values[0]
    values[2, :, :6] += 0.1
    results = [scores(name, values[i], (AP, RMSE)) for i, name in enumerate("nmk")]
    both = sample(*results, groups=Groups(slices={"market=de": np.arange(80) < 40}))
    lines = paired.compare(both, [("m", "n"), ("k", "n")], [AP, RMSE], OUTER, RULE, AP)
    primary = [line for line in lines if line.family == "2 pairs x 1 measure x 1 slice on d (2 primary tests)"]

    assert [(line.model, line.measure, line.slice) for line in primary] == [("m", "ap", "all"), ("k", "ap", "all")]
    assert [line.test for line in lines if line.is_primary] == ["bootstrap-t", "randomization"]
    assert (primary[1].p_value, primary[1].p_corrected) == (2 / 64, 4 / 64)  # times 2 pairs
    assert {line.test for line in lines if not line.is_primary} == {"randomization"}
    assert {line.family for line in lines} - {primary[0].family} == {
        "2 pairs x 2 measures x 2 slices on d (6 exploratory tests)"
    }
    alone = paired.compare(both, [("m", "n")], [AP], OUTER, RULE)
    assert alone[0].family == "1 pair x 1 measure x 2 slices on d (2 tests)"


def test_differences_drawn_beside_errors_keep_their_bits():
    rng = np.random.default_rng(4)
    values = rng.uniform(0.1, 1, (3, 2, 40))
    values[0, 0, :5] = np.nan
    both = sample(*(scores(name, values[i], (AP, RMSE)) for i, name in enumerate("mnk")), conventions=SKIPPING)
    pairs = [Pair("m", "n", AP), Pair("k", "n", AP), Pair("k", "n", RMSE), Pair("n", "k", AP, factor=0.98)]

    for (found, _), alone in zip(differences_with_errors(both, pairs), both.differences(pairs), strict=True):
        assert (found.estimate, found.centre) == (alone.estimate, alone.centre)
        np.testing.assert_array_equal(found.resamples, alone.resamples)


@pytest.mark.parametrize("n_better", range(2, 7))
def test_few_better_queries_have_the_p_value_of_their_signs(n_better):
    """Of the 2ᵏ patterns of k equal signs two are as extreme: p = 2 / 2ᵏ, below 0.05 from k = 6 on."""
    theirs = np.linspace(0.1, 0.7, 60)
    both = two_models(theirs + np.where(np.arange(60) < n_better, 0.125, 0.0), theirs)
    (line,) = paired.compare(both, [("m", "n")], [AP], OUTER, RULE, AP)

    assert (line.mark, line.test) == ("sparse", "randomization")
    assert line.role == ("primary" if n_better >= 6 else "exploratory")  # fewer cannot be found
    assert line.p_value == line.p_corrected == 2 / 2**n_better
    assert effect_label(line, {}) == ("better" if n_better >= 6 else "unclear")


def test_queries_that_are_all_better_alike_are_tested_by_their_signs():
    """12 queries, each better by 0.125: 2 of 2¹² patterns are as extreme."""
    theirs = np.linspace(0.1, 0.7, 12)
    (line,) = paired.compare(two_models(theirs + 0.125, theirs), [("m", "n")], [AP], OUTER, RULE, AP)

    assert (line.mark, line.role, line.p_value) == ("degenerate", "primary", 2 / 2**12)
    assert effect_label(line, {}) == "better"


def test_unmarked_differences_keep_their_p_values_beside_marked_ones():
    rng = np.random.default_rng(6)
    theirs = rng.beta(2, 2, 80)
    ours = [theirs + rng.normal(0.02, 0.1, 80), theirs + np.where(np.arange(80) < 9, 0.05 * rng.random(80), 0.0)]
    both = sample(scores("n", theirs), *(scores(f"m{i}", row) for i, row in enumerate(ours)))
    plain, marked = paired.compare(both, [("m0", "n"), ("m1", "n")], [AP], OUTER, RULE, AP)
    stars = []
    for difference, errors in differences_with_errors(both, [Pair(f"m{i}", "n", AP) for i in range(2)]):
        away = np.abs(difference.resamples - difference.centre) / errors[1:]
        stars.append(np.where(np.isfinite(away), away, np.inf))
        if len(stars) == 1:
            t = abs(difference.estimate) / errors[0]

    assert (plain.mark, marked.mark) == ("", "sparse")
    joint = (1 + np.sum(np.max(stars, axis=0) >= t)) / 201
    alone = (1 + np.sum(stars[0] >= t)) / 201
    assert plain.p_corrected in (joint, alone)  # alone if too many resamples of the other have no spread
    assert marked.p_corrected == 2 * marked.p_value
