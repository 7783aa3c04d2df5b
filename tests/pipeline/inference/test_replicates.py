"""Families of replicates: variance components, and what is claimed of further replicates."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankledger.pipeline.inference import paired
from rankledger.pipeline.inference.intervals import interval
from rankledger.pipeline.inference.ratios import ReplicateEffects, TotalError, estimate_components, mean_effects
from rankledger.pipeline.inference.samples import Pair, pool
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.scoring import average_replicates
from tests.pipeline.inference.made_up_samples import AP, GMAP, ONE, RMSE, sample, scores

RATINGS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float)
"""Six targets rated by four judges: Shrout & Fleiss 1979, doi:10.1037/0033-2909.86.2.420, table 2."""

RULE = paired.TestRule("t", 300, "holm", 0.05, 0, ONE)
OUTER = IntervalRule("bca+t", 0.95)


def family(model, values, measure=AP, shared_seeds=False, names=None, weights=None):
    """A model whose replicates have the rows of the values."""
    names = names or [f"{i}" for i in range(len(values))]
    own = [
        dataclasses.replace(scores(model, row, measure, weights), replicate=name, shared_seeds=shared_seeds)
        for name, row in zip(names, values, strict=True)
    ]
    return average_replicates(own)


def made_up(seed, n_replicates=3, n_queries=40, between=0.05):
    """(R, Q): scores with an effect of the query, one of the replicate, and a rest."""
    rng = np.random.default_rng(seed)
    queries, replicates = rng.uniform(0.3, 0.7, n_queries), rng.normal(0, between, (n_replicates, 1))
    return np.clip(queries + replicates + rng.normal(0, 0.05, (n_replicates, n_queries)), 0, 1)


def test_a_published_example_of_variance_components():
    """The mean squares 11.24, 32.49 and 1.02 of the published table 3, and its ICC(2, 1) = .29 and ICC(2, 4) = .62."""
    found = estimate_components(RATINGS)

    assert 4 * found.queries + found.rest == pytest.approx(11.24, abs=0.005)
    assert 6 * found.replicates + found.rest == pytest.approx(32.49, abs=0.005)
    assert found.rest == pytest.approx(1.02, abs=0.005)
    total = found.queries + found.replicates + found.rest
    assert found.queries / total == pytest.approx(0.29, abs=0.005)
    assert found.queries / (found.queries + (found.replicates + found.rest) / 4) == pytest.approx(0.62, abs=0.005)


def test_the_error_of_the_published_example_by_hand():
    """V = MSq / (C R) + (MSr - MSe) / (C R) = 11.24 / 24 + (32.49 - 1.02) / 24."""
    found = estimate_components(RATINGS)
    error = RATINGS.mean(axis=1).std(ddof=1) / math.sqrt(6)
    total = TotalError.of(error, 5, [ReplicateEffects.of("abcd", RATINGS)])

    assert total.total**2 == pytest.approx((11.24 + 32.49 - 1.02) / 24, abs=0.001)
    assert total.total == pytest.approx(found.std_error())
    assert (total.degrees, total.replicate_degrees) == (5, 3)
    assert found.more == "replicates"


def test_each_part_reaches_as_far_as_its_own_t():
    """An interval's half width is the root of the sum of squares of what each part alone would reach."""
    total = TotalError(0.03, 49, 0.04, 2.0)
    parts = [stats.t.ppf(0.975, 49) * 0.03, stats.t.ppf(0.975, 2) * 0.04]

    assert total.reach(0.95) == pytest.approx(math.hypot(*parts))
    assert TotalError(0.03, 49).reach(0.95) == pytest.approx(parts[0])


@given(st.floats(0.001, 1), st.floats(0.001, 1), st.integers(1, 200), st.floats(1, 9), st.floats(0, 0.5))
def test_a_p_value_is_the_inversion_of_the_interval(queries, replicates, degrees, others, estimate):
    """0 is outside the interval of confidence 1 - a for a above p, and inside for a below."""
    total = TotalError(queries, degrees, replicates, others)
    p_value = total.p_value(estimate)

    assert total.reach(max(0.0, 1 - p_value * 1.001 - 1e-9)) <= estimate + 1e-9
    if p_value > 1e-11:
        assert total.reach(1 - p_value * 0.999) >= estimate * (1 - 1e-9)


def test_two_families_add_up_by_welch():
    """With queries that all agree, the degrees of freedom of two families are those of Welch's t test."""
    one, other = np.array([0.1, 0.3, 0.2]), np.array([0.9, 0.4, 0.8, 0.7])
    families = [ReplicateEffects(dict(enumerate(own - own.mean())), 0.0) for own in (one, other)]
    total = TotalError.of(0.0, 100, families)
    welch = stats.ttest_ind(one, other, equal_var=False)

    assert total.replicate_degrees == pytest.approx(welch.df)
    assert total.p_value(one.mean() - other.mean()) == pytest.approx(welch.pvalue, rel=1e-6)


def test_replicates_that_differ_by_chance_alone_add_nothing():
    cells = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    assert TotalError.of(0.1, 2, [ReplicateEffects.of("ab", cells)]) == TotalError(0.1, 2)


@pytest.mark.parametrize("measure", [AP, GMAP, RMSE])
def test_the_cells_of_a_figure_are_its_replicates(measure):
    values = made_up(0)
    drawn = sample(family("m", values, measure), *[scores(f"m{i}", row, measure) for i, row in enumerate(values)])
    (effects,) = drawn.figure("m", measure).families
    alone = np.array([drawn.figure(f"m{i}", measure).estimate for i in range(3)])

    assert [*effects.shifts.values()] == pytest.approx(alone - alone.mean(), rel=1e-9 if measure is AP else 0.1)
    expected = estimate_components(values.T)
    if measure is AP:
        assert dataclasses.astuple(drawn.components("m", AP)) == pytest.approx(dataclasses.astuple(expected))


def test_the_error_of_a_difference_of_families_by_hand():
    """V is that of the queries' mean differences and of both families' replicates, (s² - MSE / C) / R each."""
    ours, theirs = made_up(1), made_up(2, n_replicates=2)
    drawn = sample(family("m", ours), family("n", theirs))
    difference = drawn.differences([Pair("m", "n", AP)])[0]
    parts = [estimate_components(values.T).replicates / len(values) for values in (ours, theirs)]
    apart = ours.mean(axis=0) - theirs.mean(axis=0)

    assert difference.estimate == pytest.approx(apart.mean())
    assert difference.total_error.total**2 == pytest.approx(apart.var(ddof=1) / 40 + max(0, sum(parts)))


def test_shared_seeds_are_paired():
    """Replicates of one name that share seeds are subtracted first: what a seed does to both models cancels."""
    values = made_up(3, between=0.2)
    pairs = [Pair("m", "n", AP)]
    by_itself = sample(family("m", values), family("n", values + 0.01)).differences(pairs)[0]
    shared = sample(family("m", values, shared_seeds=True), family("n", values + 0.01, shared_seeds=True))
    other = sample(
        family("m", values, shared_seeds=True), family("n", values + 0.01, shared_seeds=True, names=["1", "2", "7"])
    )

    assert by_itself.total_error.replicates > 0.05
    assert shared.differences(pairs)[0].total_error.replicates == 0
    assert other.differences(pairs)[0].total_error == by_itself.total_error


def test_one_replicate_claims_nothing_beyond_itself():
    values = made_up(4)[:1]
    drawn = sample(family("m", values), scores("n", values[0]))
    one, other = drawn.figure("m", AP), drawn.figure("n", AP)

    assert (one.estimate, interval(one, "bca+t", 0.95)) == (other.estimate, interval(other, "bca+t", 0.95))
    assert drawn.components("m", AP) is None


@pytest.mark.parametrize("method", ["bca+t", "bca", "percentile", "basic"])
def test_an_interval_is_the_outer_one(method):
    values = made_up(5, between=0.1)
    figure = sample(family("m", values)).figure("m", AP)
    low, high = interval(figure, method, 0.95)
    inner = interval(dataclasses.replace(figure, families=()), method, 0.95)
    reach = figure.total_error.reach(0.95)

    assert low == pytest.approx(max(0, min(inner[0], figure.estimate - reach)))
    assert high == pytest.approx(min(1, max(inner[1], figure.estimate + reach)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("others", [0, 2])
def test_words_never_contradict_p_values_of_families(seed, others):
    rng = np.random.default_rng(seed)
    values = made_up(seed, between=rng.choice([0, 0.02, 0.1]))
    models = [family(f"m{i}", values + shift) for i, shift in enumerate((0.0, 0.03))]
    models += [scores(f"o{i}", values[0] + rng.normal(0.01, 0.02, 40)) for i in range(others)]
    baseline = scores("n", made_up(seed + 99, 1)[0])
    drawn = sample(baseline, *models)
    lines = paired.compare(drawn, [(model.model, "n") for model in models], [AP], OUTER, RULE, AP)

    assert {line.family for line in lines} == {
        f"{len(models)} pairs x 1 measure x 1 slice on d ({len(models)} primary tests)"
    }
    for line in lines:
        assert (line.p_corrected < 0.05) == (line.ci_low > 0 or line.ci_high < 0)


@pytest.mark.parametrize("correction", ["maxt", "holm", "bh"])
def test_exploratory_tests_hold_over_replicates_too(correction):
    queries = np.random.default_rng(0).uniform(0.3, 0.6, 60)
    drawn = sample(family("m", [queries + 0.2, queries]), scores("n", queries))
    rule = dataclasses.replace(RULE, test="randomization", correction=correction)
    (line,) = paired.compare(drawn, [("m", "n")], [AP], OUTER, rule)

    assert line.p_value > 0.3
    assert line.p_corrected > 0.3
    assert line.ci_low < 0 < line.ci_high


def test_figures_of_several_datasets_share_their_replicates():
    """The shifts of replicates of one name are averaged; their variance is that of the replicates' means."""
    values = [made_up(seed, between=0.1) for seed in (6, 7)]
    figures = [sample(family("m", own)).figure("m", AP) for own in values]
    mean = np.mean([own.mean(axis=1) for own in values], axis=0)

    (effects,) = pool(figures).families
    assert effects.variance == pytest.approx(mean.var(ddof=1))
    noise = sum(estimate_components(own.T).rest / 40 for own in values) / 4
    assert effects.noise == pytest.approx(noise)


def test_figures_whose_replicates_differ_are_by_themselves():
    families = [ReplicateEffects({"1": 0.1, "2": -0.1}, 0.01), ReplicateEffects({"a": 0.2, "b": -0.2}, 0.02)]
    found = mean_effects([[own] for own in families])

    assert [own.variance for own in found] == pytest.approx([own.variance / 4 for own in families])
    assert [own.noise for own in found] == pytest.approx([0.0025, 0.005])


def test_an_average_is_undefined_where_one_replicate_is():
    """0.2 and 0.4 come to 0.3, and what one replicate does not define the family does not."""
    found = family("m", [[0.2, np.nan, 0.5], [0.4, 0.3, 0.5]])

    np.testing.assert_allclose(found.values, [[0.3, np.nan, 0.5]])


def test_errors_are_averaged_as_squares():
    """Root mean squares of 3 and 1 over one and three pairs: √((9 + 3) / 4), with the mean of the pairs as weight."""
    own = [
        dataclasses.replace(scores("m", [value], RMSE, [weight]), replicate=name)
        for name, value, weight in (("a", 3, 1), ("b", 1, 3))
    ]
    found = average_replicates(own)

    assert found.values == pytest.approx(np.array([[math.sqrt(3)]]))
    assert found.weights == pytest.approx(np.array([[2.0]]))
