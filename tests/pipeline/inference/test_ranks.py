"""Rank intervals: the recipe in plain loops, the t-test for two models, ties, undefined figures and coverage."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.inference.paired import TestRule, compare
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.summary import (
    IntervalRule,
    count_agreement,
    estimate,
    estimate_pooled,
    kendall_tau,
    order_agreement,
    rank_intervals,
    with_ranks,
)
from rankledger.pipeline.scoring import average_replicates
from rankledger.pipeline.support.parallel import Workers
from tests.pipeline.inference.made_up_samples import AP, CONVENTIONS, ONE, sample, scores


def resampled(scores, n_resamples=1_000, seed=0):
    """(M, 1 + B): the means of M models, over the sample and over resamples of its queries."""
    n = scores.shape[1]
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_resamples)
    return np.concatenate([scores.mean(axis=1, keepdims=True), scores @ counts.T / n], axis=1)


def by_loops(figures, n, confidence):
    """The recipe: z beside the quantile of max |d* - d| / se*, as much wider as t(n - 1), and by √(n / (n - 1))."""
    pairs = list(combinations(range(len(figures)), 2))
    apart = {(i, j): figures[i] - figures[j] for i, j in pairs}
    errors = {pair: d[1:].std() for pair, d in apart.items()}
    greatest = [
        max(abs(d[b] - d[0]) / errors[pair] for pair, d in apart.items()) for b in range(1, figures.shape[1])
    ]  # the standard deviation about the mean: about the figure of the sample it is as large to 0.1%
    z = np.quantile(greatest, confidence)
    bound = stats.t.isf(stats.norm.sf(z), n - 1) * np.sqrt(n / (n - 1))
    low, high = np.ones(len(figures), dtype=int), np.full(len(figures), len(figures))
    for (i, j), d in apart.items():
        if abs(d[0]) / errors[i, j] > bound:
            better, worse = (i, j) if d[0] > 0 else (j, i)
            low[worse] += 1
            high[better] -= 1
    return list(zip(low.tolist(), high.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_the_recipe_in_plain_loops(seed):
    rng = np.random.default_rng(seed)
    scores = rng.beta(1, 2, 60) + 0.04 * np.arange(7)[:, np.newaxis] + 0.2 * rng.standard_normal((7, 60))
    figures = resampled(scores, 300, seed)
    found = rank_intervals(figures, 60, 0.95)

    assert found == by_loops(figures, 60, 0.95)
    assert len(set(found)) > 2


def test_two_models_are_parted_where_a_t_test_parts_them():
    """Over 120 pairs of 12 queries each, but where p is within 0.015 of 0.05, which resamples cannot tell."""
    rng = np.random.default_rng(0)
    p_values, parted = [], []
    for number in range(120):
        scores = rng.standard_normal((2, 12)) + np.array([[0.0], [1.0]])
        p_values.append(stats.ttest_rel(*scores).pvalue)
        parted.append((1, 1) in rank_intervals(resampled(scores, 2_000, number), 12, 0.95))
    clear = np.abs(np.array(p_values) - 0.05) > 0.015

    assert np.array_equal(np.array(parted)[clear], (np.array(p_values) < 0.05)[clear])
    assert 30 < sum(parted) < 100


def test_identical_models_share_their_ranks_and_rounding_is_no_difference():
    same = np.random.default_rng(0).random(50)
    figures = resampled(np.stack([same, same, same + np.random.default_rng(1).random(50), same]))
    assert rank_intervals(figures, 50, 0.95) == [(2, 4), (2, 4), (1, 1), (2, 4)]

    one = same + 0.1
    figures = resampled(np.stack([one + 0.2, one - 0.1 + 0.3]))
    assert figures[0, 0] != figures[1, 0] or (figures[0] != figures[1]).any()
    assert rank_intervals(figures, 50, 0.95) == [(1, 2), (1, 2)]


@pytest.mark.parametrize(("n", "ranks"), [(5, [(1, 2), (1, 2)]), (6, [(1, 1), (2, 2)])])
def test_a_difference_that_never_varies_counts_once_chance_is_ruled_out(n, ranks):
    """n differences of one sign have p = 2 / 2^n: 0.0625 for 5, 0.03125 for 6."""
    assert rank_intervals(resampled(np.outer([0.9, 0.2], np.ones(n))), n, 0.95) == ranks


def test_a_model_without_a_figure_has_no_rank():
    figures = resampled(np.random.default_rng(0).random((3, 50)) + np.arange(3)[:, np.newaxis])
    undefined, in_part = figures.copy(), figures.copy()
    undefined[1] = np.nan
    in_part[1, 7] = np.nan

    assert rank_intervals(figures, 50, 0.95) == [(3, 3), (2, 2), (1, 1)]
    assert rank_intervals(undefined, 50, 0.95) == [(2, 2), None, (1, 1)]
    assert rank_intervals(in_part, 50, 0.95) == [(2, 3), None, (1, 2)]


@pytest.mark.parametrize(("n_models", "n_clusters"), [(1, 50), (0, 50), (3, 1)])
def test_no_ranks_without_two_models_and_two_clusters(n_models, n_clusters):
    figures = np.arange(n_models)[:, np.newaxis] + np.zeros((n_models, 101))

    assert rank_intervals(figures, n_clusters, 0.95) == [None] * n_models


def test_the_order_of_models_is_none_of_the_result():
    """Models in another order have the same ranks; lower-is-better figures, turned around, the mirrored ones."""
    figures = resampled(np.random.default_rng(3).random((6, 80)) + 0.06 * np.arange(6)[:, np.newaxis])
    order = np.random.default_rng(4).permutation(6)
    ranks = rank_intervals(figures, 80, 0.95)

    assert rank_intervals(figures[order], 80, 0.95) == [ranks[model] for model in order]
    assert rank_intervals(-figures, 80, 0.95) == [(7 - worst, 7 - best) for best, worst in ranks]


@pytest.mark.parametrize("n", [20, 100])
def test_all_intervals_cover_together(n):
    """Five models of equal worth: in about 95% of 300 samples no two are parted; 92% is two standard errors lower."""
    rng = np.random.default_rng(n)
    whole = 0
    for number in range(300):
        scores = rng.beta(1, 2, n) + 0.2 * rng.standard_normal((5, n))
        whole += rank_intervals(resampled(scores, 500, number), n, 0.95) == [(1, 5)] * 5

    assert 0.92 <= whole / 300 <= 0.985


# ---- lines of the summary

MEASURES = tuple(map(Measure.parse, ("ap", "kendall_distance", "judged@10")))  # higher, lower and neither is better


def scores_of(model, values, dataset="d", measures=MEASURES):
    return scores(model, [values] * len(measures), measures, dataset=dataset)


def summary(*datasets, pooled=False, groups=None):
    rule = IntervalRule("percentile", 0.95)
    samples = [Sample(own, CONVENTIONS, groups or Groups(), Settings(500, 0, Workers())) for own in datasets]
    lines = [
        line for own, drawn in zip(datasets, samples, strict=True) for line in estimate(drawn, own, CONVENTIONS, rule)
    ]
    lines += estimate_pooled(samples, lines, rule) if pooled else ()
    ranked = with_ranks(lines, samples, 0.95)
    assert [dataclasses.replace(line, rank_low=None, rank_high=None) for line in ranked] == lines
    return {(line.dataset, line.slice, line.measure, line.model): (line.rank_low, line.rank_high) for line in ranked}


def three(dataset, gap, n=60):
    """`a` and `b` are alike, `c` is greater by the gap."""
    rng = np.random.default_rng(len(dataset))
    return [scores_of(model, rng.random(n) + gap * (model == "c"), dataset) for model in "abc"]


def test_the_least_figure_is_first_where_lower_is_better_and_slices_have_no_ranks():
    found = summary(three("d", 1.0), groups=Groups(slices={"market=de": np.arange(60) < 30}))

    assert [found["d", "all", "ap", model] for model in "abc"] == [(2, 3), (2, 3), (1, 1)]
    assert [found["d", "all", "kendall_distance", model] for model in "abc"] == [(1, 2), (1, 2), (3, 3)]
    assert [found["d", "all", "judged@10", model] for model in "abc"] == [(None, None)] * 3
    assert {rank for (_, part, _, _), rank in found.items() if part != "all"} == {(None, None)}


def test_the_mean_of_all_datasets_has_ranks_of_its_own():
    found = summary(*(three("d" * length, 0.09) for length in range(1, 9)), pooled=True)
    own = [found["d" * length, "all", "ap", "c"] for length in range(1, 9)]

    assert found["*", "all", "ap", "c"] == (1, 1)
    assert own.count((1, 1)) < 3


def test_the_mean_of_all_datasets_is_as_unsure_as_the_smallest():
    alike, large = [scores_of(model, [0.5] * 3, "d") for model in "abc"], three("dd", 0.22)

    assert summary(alike, large, pooled=True)["*", "all", "ap", "c"] == (1, 3)
    assert summary(large)["dd", "all", "ap", "c"] == (1, 1)


def test_clusters_of_unequal_size_count_as_fewer():
    """One of 36 queries and four of one are as 1.2 clusters, 40² / 1,300: too few to tell; forty of one are forty."""
    clusters = np.maximum(np.arange(40) - 35, 0)
    apart = [scores_of(model, np.full(40, worth)) for model, worth in (("a", 0.5), ("b", 0.6))]

    assert summary(apart, groups=Groups(clusters=clusters))["d", "all", "ap", "b"] == (None, None)
    assert summary(apart, groups=Groups(clusters=np.arange(40)))["d", "all", "ap", "b"] == (1, 1)


# ---- orders by two measures


@pytest.mark.parametrize("n_models", [3, 8])
def test_taus_are_those_of_scipy(n_models):
    for one, other in np.random.default_rng(n_models).integers(0, 5, (200, 2, n_models)) / 4:
        assert kendall_tau(one, other) == pytest.approx(stats.kendalltau(one, other).statistic, nan_ok=True)


def agreement(*datasets, pooled=False):
    rule = IntervalRule("percentile", 0.95)
    samples = [Sample(own, CONVENTIONS, Groups(), Settings(400, 0, Workers())) for own in datasets]
    both = zip(datasets, samples, strict=True)
    lines = [line for own, drawn in both for line in estimate(drawn, own, CONVENTIONS, rule)]
    lines += estimate_pooled(samples, lines, rule) if pooled else ()
    leading = {own[0].dataset: MEASURES[0] for own in datasets}
    return samples, {(line.dataset, line.measure): line for line in order_agreement(lines, samples, leading, 0.95)}


def test_a_measure_of_which_the_other_end_is_better_has_the_reversed_order():
    _, found = agreement(
        [scores_of(model, np.random.default_rng(seed).random(50)) for seed, model in enumerate("abcd")]
    )

    assert list(found) == [("d", "kendall_distance")]
    line = found["d", "kendall_distance"]
    assert (line.lead, line.tau, line.n_models, line.n_same) == ("ap", -1.0, 4, 0)
    assert (line.tau_low, line.tau_high) == (-1, line.n_undecided / 3 - 1)  # (0 - opposite ± undecided) / 6


ORDERS = tuple(map(Measure.parse, ("ap", "rr")))


def by_two(model, ap, rr, dataset="d"):
    """The scores of a model by AP and by RR."""
    return dataclasses.replace(scores_of(model, ap, dataset, ORDERS), values=np.array([ap, rr], dtype=float))


def test_pairs_of_models_are_the_same_opposite_or_undecided():
    """Worths 0.2, 0.5 and 0.8 by AP and 0.2, 0.8 and 0.5 by RR, noise of ±0.01 that cancels out: all are certain.

    a-b and a-c are in one order and b-c is not: tau is (2 - 1) / 3, and its bounds are the same. d has noise of ±0.2
    around c's figure by RR, so that c-d is undecided by RR alone, and that widens the bounds by 1 / 6 to each side.
    """
    noise = np.tile([0.01, -0.01], 20)
    worths = {"a": (0.2, 0.2), "b": (0.5, 0.8), "c": (0.8, 0.5)}
    models = [by_two(name, ap + noise, rr - noise * np.repeat([1, -1], 20)) for name, (ap, rr) in worths.items()]
    _, found = agreement(models)
    line = found["d", "rr"]
    assert (line.n_same, line.n_opposite, line.n_undecided, line.tau) == (2, 1, 0, pytest.approx(1 / 3))
    assert (line.tau_low, line.tau_high) == (pytest.approx(1 / 3), pytest.approx(1 / 3))

    _, found = agreement([*models, by_two("d", 0.95 + noise, 0.501 + 20 * noise)])
    line = found["d", "rr"]  # a-d is in one order and b-d is not, too
    assert (line.n_same, line.n_opposite, line.n_undecided) == (3, 2, 1)
    assert (line.tau_low, line.tau_high) == (pytest.approx(0), pytest.approx(2 / 6))


def test_the_intervals_of_both_measures_hold_together():
    """Pairs are told apart only if both measures do so by the critical value over all pairs of both.

    It is at least as great as the critical value of either, so no pair counts that the ranks by one leave open.
    """
    rng = np.random.default_rng(0)
    ease = rng.random(60)
    datasets = [
        [
            by_two(model, ease + rng.normal(worth, 0.1, 60), ease + rng.normal(worth, 0.2, 60), name)
            for worth, model in enumerate("abcde", 1)
        ]
        for name in ("d", "e")
    ]
    for own in (*datasets[0], *datasets[1]):
        own.values[:] *= 0.1
    samples, found = agreement(*datasets, pooled=True)
    assert {*found} == {("d", "rr"), ("e", "rr"), ("*", "rr")}

    figures = [np.array([samples[0].figures(model, measure) for model in "abcde"]) for measure in ORDERS]
    same, opposite, n_pairs = count_agreement(figures, 60, 0.95)
    assert (found["d", "rr"].n_same, found["d", "rr"].n_opposite, n_pairs) == (same, opposite, 10)
    by_ranks = [sum(5 - high + low - 1 for low, high in rank_intervals(own, 60, 0.95)) // 2 for own in figures]
    assert same + opposite <= min(by_ranks)


def test_models_that_cannot_be_told_apart_leave_tau_open():
    rng = np.random.default_rng(5)
    _, found = agreement([by_two(model, *rng.random((2, 30))) for model in "abc"])
    line = found["d", "rr"]

    assert (line.n_undecided, line.tau_low, line.tau_high) == (3, -1, 1)
    assert -1 <= line.tau <= 1


def test_further_replicates_may_turn_an_order_round():
    noise = np.tile([0.01, -0.01], 20)
    worths = {"a": 0.2, "b": 0.5, "c": 0.8}
    families = [
        average_replicates(
            [
                dataclasses.replace(by_two(name, worth + noise + shift, worth - noise + shift), replicate=f"{number}")
                for number, shift in enumerate((-0.19, 0.19))
            ]
        )
        for name, worth in worths.items()
    ]

    assert agreement(families)[1]["d", "rr"].n_undecided == 3


def test_two_models_have_no_order_to_agree_on():
    two = [scores_of(model, np.random.default_rng(seed).random(20)) for seed, model in enumerate("ab")]

    assert agreement(two)[1] == {}
    assert agreement([*two, scores_of("c", [np.nan] * 20)])[1] == {}


def test_ranks_do_not_contradict_the_test_of_a_pair():
    """5 of 60 queries are better alike: 2.2 standard errors, yet 2 of 2⁵ patterns of signs are as extreme."""
    theirs = np.linspace(0.1, 0.7, 60)
    results = [scores("n", theirs), scores("m", theirs + np.where(np.arange(60) < 5, 0.125, 0.0))]
    both = sample(*results, resamples=1_000)
    rule = IntervalRule("bca+t", 0.95)
    tested = compare(both, [("m", "n")], [AP], rule, TestRule("randomization", 300, "maxt", 0.05, 0, ONE), AP)
    lines = estimate(both, results, CONVENTIONS, rule)

    assert tested[0].p_corrected == 2 / 2**5
    assert [(line.rank_low, line.rank_high) for line in with_ranks(lines, [both], 0.95)] == [(2, 2), (1, 1)]
    assert [(line.rank_low, line.rank_high) for line in with_ranks(lines, [both], 0.95, tested)] == [(1, 2), (1, 2)]


def test_many_pairs_of_models_are_compared_over_fewer_resamples(monkeypatch):
    figures = np.random.default_rng(7).normal(0, 1, (6, 2_001)) + np.arange(6)[:, np.newaxis]
    over_all = rank_intervals(figures, 50.0, 0.95)

    monkeypatch.setattr("rankledger.pipeline.inference.summary._MOST_COMPARED", 15 * 700)

    assert rank_intervals(figures, 50.0, 0.95) == rank_intervals(figures[:, :701], 50.0, 0.95)
    assert over_all != [(1, 6)] * 6
