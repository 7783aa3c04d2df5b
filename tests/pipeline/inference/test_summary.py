"""Summaries of models by dataset and slice."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups, Scores
from rankledger.pipeline.inference.resampling import Settings
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.summary import IntervalRule, estimate, estimate_pooled
from rankledger.pipeline.support.parallel import Workers
from tests.oracle import RATINGS_ORACLE
from tests.pipeline.inference.made_up_samples import drawn_counts
from tests.support.blocks import random_ratings, ratings_block

CONVENTIONS = PROFILES["trec_eval"].conventions
GROUPS = Groups()
RUNGS = ["ap@1", "ap@2", "ap@3"]
SIXTEEN = [10, 12, 12.5, 12.5, 13.9, 15, 21, 22, 23, 34, 50, 81, 89, 121, 134, 213]


def scores(values, *, measures=("ap",), weights=None, model="m", missing=None, figures=None):
    """The scores of one model on the dataset `d`, a row of `values` per measure."""
    values = np.atleast_2d(np.asarray(values, dtype=float))
    n_queries = values.shape[1]
    return Scores(
        dataset="d",
        model=model,
        query_ids=np.array([f"q{i}" for i in range(n_queries)], dtype=object),
        measures=tuple(map(Measure.parse, measures)),
        values=values,
        weights=np.ones_like(values) if weights is None else np.atleast_2d(np.asarray(weights, dtype=float)),
        figures=figures or {},
        missing=np.zeros(n_queries, dtype=bool) if missing is None else np.asarray(missing),
    )


def summarise(
    *results, conventions=CONVENTIONS, resamples=1000, confidence=0.95, seed=0, method="percentile", groups=GROUPS
):
    sample = Sample(results, conventions, groups, Settings(resamples, seed, Workers(jobs=2)))
    return estimate(sample, results, conventions, IntervalRule(method, confidence))


@pytest.mark.parametrize(
    ("method", "expected"), [("basic", (23.77, 79.12)), ("percentile", (28.86, 84.21)), ("bca", (32.31, 91.43))]
)
@pytest.mark.parametrize("seed", range(2))
def test_intervals_of_sixteen_numbers(seed, method, expected):
    (line,) = summarise(scores(SIXTEEN), resamples=1_000_000, seed=seed, method=method)

    assert line.estimate == pytest.approx(np.mean(SIXTEEN))
    assert (line.ci_low, line.ci_high) == pytest.approx(expected, rel=0.005)


def test_agrees_with_scipy_on_random_scores():
    values = np.random.default_rng(0).beta(0.5, 2, 200)

    (line,) = summarise(scores(values), resamples=20_000)

    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1), batch=1000
    )
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert line.std_error == pytest.approx(theirs.standard_error, rel=0.03)
    assert line.ci_low == pytest.approx(theirs.confidence_interval.low, abs=0.03 * width)
    assert line.ci_high == pytest.approx(theirs.confidence_interval.high, abs=0.03 * width)


def test_a_95_percent_interval_covers_about_95_percent_of_the_time():
    """Of 1,000 samples of 100 skewed scores, between 92.5% and 97% of the intervals hold the true mean 0.25.

    Each sample stands as a measure's column would; the seeds differ by block of 50 samples, so that draws do too.
    """
    rng = np.random.default_rng(6)
    truth, covered = 0.25, 0
    for seed in range(20):
        samples = rng.beta(0.5, 1.5, (50, 100))
        measures = [f"ap@{k}" for k in range(1, 51)]
        lines = summarise(scores(samples, measures=measures), resamples=500, seed=seed)
        covered += sum(line.ci_low <= truth <= line.ci_high for line in lines)

    assert 0.925 <= covered / 1000 <= 0.97


def test_confidence_is_the_share_of_resamples_inside():
    values = np.random.default_rng(1).random(80)

    (wide,) = summarise(scores(values))
    (narrow,) = summarise(scores(values), confidence=0.5)

    assert wide.ci_low < narrow.ci_low < narrow.ci_high < wide.ci_high
    assert (narrow.ci_high - narrow.ci_low) / (wide.ci_high - wide.ci_low) < 0.5


SKIPPING = dataclasses.replace(CONVENTIONS, undefined_queries="skip")


@pytest.mark.parametrize(
    ("values", "measure", "conventions", "expected", "n_undefined"),
    [
        ([1, np.nan, 0.5], "ap", CONVENTIONS, 1.5 / 3, 1),
        ([1, np.nan, 0.5], "ap", SKIPPING, 1.5 / 2, 1),
        ([4, np.nan], "kendall_distance", CONVENTIONS, 4, 1),  # where a 0 would read as a perfect ranking
        ([np.nan, np.nan], "kendall_tau", CONVENTIONS, None, 2),
    ],
)
def test_undefined_queries_count_by_the_convention_and_as_undefined(
    values, measure, conventions, expected, n_undefined
):
    (line,) = summarise(scores(values, measures=[measure]), conventions=conventions)

    assert line.estimate == (None if expected is None else pytest.approx(expected))
    assert (line.n_queries, line.n_undefined) == (len(values), n_undefined)


def test_no_interval_where_a_resample_leaves_the_figure_undefined():
    (line,) = summarise(scores([4, np.nan, np.nan], measures=["kendall_distance"]))

    assert line.estimate == 4
    assert (line.ci_low, line.ci_high, line.std_error) == (None, None, None)


def test_missing_queries_are_counted_and_one_query_has_an_interval_of_no_width():
    (line,) = summarise(scores([1, 0], missing=[False, True]))
    assert (line.estimate, line.n_missing) == (0.5, 1)

    (line,) = summarise(scores([0.3]))
    assert (line.estimate, line.std_error) == (0.3, 0.0)
    assert line.ci_low == line.ci_high == pytest.approx(0.3, abs=1e-15)


def test_pooled_errors_weigh_queries_by_their_pairs():
    """Errors 1 over 3 pairs and 5 over 1 pair: MAE (3 + 5) / 4 = 2, RMSE sqrt((3 + 25) / 4) = 2.6458, not 3.

    Where every query has the same error, every resample has it too, however the pairs are spread: no width.
    """
    measures, weights = ["mae", "rmse", "rmse(average=query)"], [[3, 1], [3, 1], [1, 1]]
    lines = summarise(scores([[1, 5]] * 3, measures=measures, weights=weights))
    assert [line.estimate for line in lines] == pytest.approx([2, 7**0.5, 3])

    (line,) = summarise(scores([2, 2, 2, 2], measures=["rmse"], weights=[1, 10, 100, 1000]))
    assert (line.ci_low, line.ci_high) == pytest.approx((2, 2))


@pytest.mark.parametrize("name", ["r2", "explained_variance"])
def test_a_figure_of_several_means_is_resampled_exactly(name):
    measure = Measure.parse(name)
    users = random_ratings(np.random.default_rng(3), 40)
    block = ratings_block([ratings for ratings, _ in users], [predictions for _, predictions in users])
    values = measure.metric.function(block)
    given = scores(values, measures=[name], weights=block.n_pairs)

    (line,) = summarise(dataclasses.replace(given, moments={measure: measure.moments([block])}), resamples=100)

    resamples = [np.repeat(np.arange(40), times.astype(int)) for times in drawn_counts(40, 100)]
    figures = []
    for drawn in (range(40), *resamples):
        ratings, predictions = ([value for user in drawn for value in users[user][side]] for side in (0, 1))
        figures.append(RATINGS_ORACLE[name](ratings, predictions))
    expected = [figures[0], *np.quantile(figures[1:], [0.025, 0.975]), np.std(figures[1:], ddof=1)]
    assert [line.estimate, line.ci_low, line.ci_high, line.std_error] == pytest.approx(expected, abs=1e-9)
    assert line.n_undefined == sum(not ratings for ratings, _ in users)


def test_figures_of_a_set_have_no_interval_and_the_standard_error_that_they_came_with():
    coverage = Measure.parse("item_coverage@10")
    of_set = dataclasses.replace(scores([1, 0], figures={coverage: 0.25}), figure_errors={coverage: 0.125})
    lines = summarise(of_set, scores([0, 0], model="n"))
    assert [(line.model, line.measure, line.estimate) for line in lines] == [
        *(("m", "ap", 0.5), ("m", "item_coverage@10", 0.25), ("n", "ap", 0.0))
    ]
    assert (lines[1].std_error, lines[1].ci_low) == (0.125, None)

    none = np.empty((0, 2))
    (line,) = summarise(dataclasses.replace(of_set, measures=(), values=none, weights=none, figures={coverage: 1.0}))
    assert line.estimate == 1.0


def test_a_line_is_the_same_whatever_stands_beside_it():
    rng = np.random.default_rng(2)
    ours, theirs, other = rng.random(90), rng.random(90), rng.random(90)

    (alone,) = summarise(scores(ours))
    beside = summarise(
        scores([other, theirs], measures=["rr", "ap"], model="n"), scores([other, ours], measures=["rr", "ap"])
    )

    assert alone in beside


def test_slices_have_lines_of_their_own_after_all():
    """Scores 0.2, 0.4 and 0.9 of which the first two are German: a line of all queries, then one of those two."""
    groups = Groups(slices={"market=de": np.array([True, True, False])})

    lines = summarise(scores([0.2, 0.4, 0.9], missing=[True, False, True]), groups=groups)

    assert [(line.slice, line.n_queries, line.n_missing) for line in lines] == [("all", 3, 2), ("market=de", 2, 1)]
    assert [line.estimate for line in lines] == pytest.approx([0.5, 0.3])


def test_a_line_says_what_it_rests_on():
    """40 queries of which 3 score more than 0 rest on 3: sparse; all alike: degenerate; all different: neither."""
    varied = np.linspace(0.1, 0.9, 40)

    lines = summarise(scores([varied, np.where(np.arange(40) > 36, varied, 0), np.full(40, 0.3)], measures=RUNGS))

    assert [(line.n_clusters, line.mark) for line in lines] == [(40, ""), (40, "sparse"), (40, "degenerate")]


def test_all_datasets_together_are_their_unweighted_mean():
    """0.4 over two queries of one dataset and 0.1 over four of another make 0.25; what only one has is left out.

    Resamples of 0.3 and 0.5 reach from 0.3 to 0.5. Their variance is half of what is unbiased, so that they are moved
    √2 times as far from 0.4, and the mean of both datasets half of that from 0.25.
    """
    results = [scores([[0.3, 0.5], [1, 1]], measures=["ap", "rr"]), scores([0.1, 0.1, 0.1, 0.1])]
    results[1] = dataclasses.replace(results[1], dataset="e")
    samples = [Sample([result], CONVENTIONS, GROUPS, Settings(500, 0, Workers(1))) for result in results]
    rule = IntervalRule("bca", 0.95)
    lines = [
        line
        for sample, result in zip(samples, results, strict=True)
        for line in estimate(sample, [result], CONVENTIONS, rule)
    ]

    (pooled,) = estimate_pooled(samples, lines, rule)

    assert (pooled.dataset, pooled.measure, pooled.n_queries) == ("*", "ap", 6)
    assert pooled.estimate == pytest.approx(0.25)
    assert (pooled.ci_low, pooled.ci_high) == pytest.approx((0.25 - 0.05 * 2**0.5, 0.25 + 0.05 * 2**0.5))
