"""Metrics of ratings and of labelled candidates."""

import math

import numpy as np
import pytest

from rankledger.metrics.aggregation import (
    CALIBRATION_ERROR,
    MOMENTS,
    contributions,
    moments,
    origins,
    pooled_auc,
    pooled_calibration_error,
    pooled_moments,
    pooled_pr_auc,
)
from rankledger.metrics.ratings import (
    RatingsBlock,
    auc,
    brier,
    calibration_error,
    explained_variance,
    lauc,
    log_loss,
    mae,
    mse,
    positive_weight,
    pr_auc,
    r2,
    rmse,
)
from rankledger.metrics.registry import METRICS
from tests import oracle
from tests.oracle import RATINGS_ORACLE
from tests.support.blocks import random_ratings, ratings_block

# Errors: +1, -2 and 0 for the first user, +0.5 for the second, none for the third.
BLOCK = ratings_block(ratings=[[3, 5, 1], [4], []], predictions=[[4, 3, 1], [4.5], []])


NAN = np.nan
HAND = [  # metric, block, expected; a user without a pair is undefined
    (mae, BLOCK, [(1 + 2 + 0) / 3, 0.5, NAN]),
    (mse, BLOCK, [(1 + 4 + 0) / 3, 0.25, NAN]),
    (rmse, BLOCK, [np.sqrt(5 / 3), 0.5, NAN]),
    # The ratings deviate from 3 by 0 2 -2, squared 8; the errors are 5, and deviate from -1/3 by 4/3 -5/3 1/3: 42/9.
    (r2, BLOCK, [1 - 5 / 8, NAN, NAN]),
    (explained_variance, BLOCK, [1 - 42 / 9 / 8, NAN, NAN]),
    *((metric, ratings_block([[1, 2.5, 5]], [[1, 2.5, 5]]), [0]) for metric in (mae, mse, rmse)),  # 0 is not undefined
    # In each other's place ratings and predictions have the same errors.
    (mae, ratings_block([[4, 3, 1]], [[3, 5, 1]]), [1]),
    (mse, ratings_block([[4, 3, 1]], [[3, 5, 1]]), [5 / 3]),
    (rmse, ratings_block([[4, 3, 1]], [[3, 5, 1]]), [np.sqrt(5 / 3)]),
    # Errors 0 2 and 1 1: squares weigh large ones more.
    (mae, ratings_block([[1, 1], [1, 1]], [[1, 3], [2, 2]]), [1, 1]),
    (rmse, ratings_block([[1, 1], [1, 1]], [[1, 3], [2, 2]]), [np.sqrt(2), 1]),
    # The mean of the ratings explains nothing; to be off by 1 all along explains everything but itself.
    (r2, ratings_block([[1, 2, 6], [1, 2, 6]], [[3, 3, 3], [2, 3, 7]]), [0, 1 - 3 / 14]),
    (explained_variance, ratings_block([[1, 2, 6], [1, 2, 6]], [[3, 3, 3], [2, 3, 7]]), [0, 1]),
]


@pytest.mark.parametrize(("metric", "block", "expected"), HAND)
def test_hand_worked_users(metric, block, expected):
    np.testing.assert_allclose(metric(block), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Four pairs in all: absolute errors 1 2 0 0.5, squares 1 4 0 0.25, whatever user they belong to.
        *(("mae", 3.5 / 4), ("mse", 5.25 / 4), ("rmse", np.sqrt(5.25 / 4))),
        # Ratings 3 5 1 4 deviate from 13/4 by -1/4 7/4 -9/4 3/4: 8.75; errors 1 -2 0 0.5 from -1/8: 5.25 - 4/64.
        *(("r2", 1 - 5.25 / 8.75), ("explained_variance", 1 - 5.1875 / 8.75)),
    ],
)
def test_pooled_figures_are_those_over_all_pairs(name, expected):
    scale = METRICS[name].aggregation
    values = moments(BLOCK, origins([BLOCK])) if METRICS[name].moments else METRICS[name].function(BLOCK)
    numerators, denominators = contributions(scale, values, BLOCK.n_pairs, undefined_is_zero=False)

    assert scale.backward(numerators.sum(axis=-1) / denominators.sum(axis=-1)) == pytest.approx(expected)


def test_equal_ratings_have_nothing_to_explain():
    """Not even where their mean is rounded: three times 0.1 add up to more than 0.3."""
    block = ratings_block(ratings=[[0.1, 0.1, 0.1]], predictions=[[0.1, 0.2, 0.3]])

    for name in ("r2", "explained_variance"):
        assert np.isnan(METRICS[name].function(block)).all()
        assert np.isnan(METRICS[name].aggregation.backward(moments(block, origins([block])))).all()


def test_moments():
    """Means over the pairs of each user: ratings less 3 and errors less -1/2, their squares, and the squared errors.

    The ratings 3 5 1 and 4 are 3 in their middle, the errors 1 -2 0 and 0.5 are -1/2.
    """
    assert MOMENTS == ("rating", "squared_rating", "error", "squared_deviation", "squared_error")
    assert origins([BLOCK]) == (3.0, -0.5)
    expected = [
        *([0, 1, np.nan], [8 / 3, 1, np.nan], [1 / 6, 1, np.nan]),
        *([19 / 12, 1, np.nan], [5 / 3, 0.25, np.nan]),
    ]
    np.testing.assert_allclose(moments(BLOCK, origins([BLOCK])), expected)


@pytest.mark.parametrize("bias", [0.0, 2.0**20])
@pytest.mark.parametrize("offset", [0.0, 2.0**30])
def test_pooled_figures_far_from_zero(offset, bias):
    """Ratings a thousand million up, or predictions a million too high, keep nine digits.

    The oracle sees the same ratings near 0; all these numbers are exact in doubles.
    """
    rng = np.random.default_rng(3)
    ratings = [list(rng.integers(1, 6, 20) + offset) for _ in range(50)]
    errors = rng.integers(-8, 9, (50, 20)) / 8 + bias
    predictions = [list(row + error) for row, error in zip(ratings, errors, strict=True)]
    block = ratings_block(ratings, predictions)
    every = np.concatenate(ratings) - offset, np.concatenate(predictions) - offset

    for name in ("r2", "explained_variance"):
        aggregation = METRICS[name].aggregation
        found = contributions(aggregation, moments(block, origins([block])), block.n_pairs, undefined_is_zero=False)
        expected = RATINGS_ORACLE[name](*map(list, every))
        assert aggregation.backward(found[0].sum(axis=1) / found[1].sum(axis=1)) == pytest.approx(expected, rel=1e-9)


def test_no_pairs_have_an_origin():
    block = ratings_block([[]], [[]])

    assert origins([block]) == origins([]) == (0.0, 0.0)
    assert np.isnan(moments(block, origins([block]))).all()


@pytest.mark.parametrize("metric", [mae, mse, rmse, r2, explained_variance, lambda block: moments(block, (2.9, 0.1))])
def test_neighbours_change_no_bit(metric):
    users = random_ratings(np.random.default_rng(7), 100)
    together = metric(ratings_block([ratings for ratings, _ in users], [predictions for _, predictions in users]))
    alone = [metric(ratings_block([ratings], [predictions])) for ratings, predictions in users]

    np.testing.assert_array_equal(together, np.concatenate(alone, axis=-1))


@pytest.mark.parametrize("metric", [mae, mse, rmse])
def test_a_better_prediction_never_hurts(metric):
    assert metric(ratings_block(ratings=[[3, 5, 1]], predictions=[[3.5, 3, 1]])) < metric(BLOCK)[:1]


# The first user clicked on the second and third of four, the second on one of two that score alike, the third on all.
CLICKS = ratings_block(
    ratings=[[0, 1, 1, 0], [1, 0], [1, 1], []], predictions=[[0.9, 0.8, 0.4, 0.2], [0.5, 0.5], [0.6, 0.1], []]
)
AREAS = {auc: pooled_auc, pr_auc: pooled_pr_auc}


def users(seed: int, n_users: int = 60) -> RatingsBlock:
    rng = np.random.default_rng(seed)
    labels, scores, weights = [], [], []
    for size in rng.integers(1, 13, n_users):
        likely = 1 / (1 + np.exp(-rng.normal() - rng.normal(size=size)))
        labels.append(list((rng.random(size) < likely).astype(float)))
        scores.append(list(np.clip(likely + rng.normal(0, 0.2, size), 0, 1).round(2)))
        weights.append(list(rng.integers(1, 4, size).astype(float)))
    return ratings_block(labels, scores, weights)


def in_one(block: RatingsBlock, times: np.ndarray | None = None) -> RatingsBlock:
    there = ~np.isnan(block.ratings.T)
    weights = block.pair_weights * (np.ones(there.shape[0]) if times is None else times)
    columns = (list(own.T[there]) for own in (block.ratings, block.predictions, weights))
    return ratings_block(*([column] for column in columns))


def repeated(block: RatingsBlock) -> RatingsBlock:
    columns = []
    for own in (block.ratings, block.predictions):
        pairs = zip(own.T, block.pair_weights.T, strict=True)
        columns.append([list(np.repeat(values, times.astype(int))) for values, times in pairs])
    return ratings_block(*columns)


STARS = ratings_block(ratings=[[5, 4, 3, 1]], predictions=[[0.9, 0.3, 0.6, 0.1]])
LEVEL = ratings_block(ratings=[[1, 1, 0, 0]], predictions=[[0.9, 0.5, 0.5, 0.1]])
LOW = ratings_block(ratings=[[1, 0, 0, 0], [1, 0, 0]], predictions=[[0.4, 0.3, 0.2, 0.1], [0.2, 0.2, 0.2]])
HAND_LABELLED = [  # metric, block, options, expected
    # 0.8 and 0.4 are above 0.2, and below 0.9; one pair that scores alike counts half; one class has no area.
    (auc, CLICKS, {}, [2 / 4, 1 / 2, NAN, NAN]),
    (auc, STARS, {"rel": 4}, [3 / 4]),
    (auc, STARS, {}, [NAN]),
    # Cut at 1, 0.9 is above both clicks, and 0.2 level with them; at 2, 0.8 is above 0.2, and 0.4 level with it.
    *(
        (lauc, CLICKS, {"k": k}, [area, 1 / 2, NAN, NAN])
        for k, area in ((1, 1 / 4), (2, 3 / 8), (3, 1 / 2), (4, 1 / 2), (9, 1 / 2))
    ),
    (lauc, LEVEL, {"k": 2}, [(1 + 1 + 1 / 2 + 1) / 4]),  # two ranks hold three documents
    # Precision 1/2 at 0.8 and 2/3 at 0.4; 1/2 where both score alike; 1 where all are clicked.
    (pr_auc, CLICKS, {}, [(1 / 2 + 2 / 3) / 2, 1 / 2, 1, NAN]),
    (log_loss, CLICKS, {}, [-math.log(0.1 * 0.8 * 0.4 * 0.8) / 4, math.log(2), -math.log(0.6 * 0.1) / 2, NAN]),
    # A probability of 0 for what happened is taken for 2**-52, and its loss is not infinite.
    (log_loss, ratings_block(ratings=[[1, 0]], predictions=[[0, 0]]), {}, [52 * math.log(2) / 2]),
    (brier, CLICKS, {}, [(0.81 + 0.04 + 0.36 + 0.04) / 4, 0.25, (0.16 + 0.81) / 2, NAN]),
    # 0.4 and 0.2 have 1 click and expect 0.6, 0.9 and 0.8 have 1 and expect 1.7; the bin up to 0.5 holds 0.5.
    (calibration_error, CLICKS, {"bins": 2}, [(0.4 + 0.7) / 4, 0, (2 - 0.7) / 2, NAN]),
    (calibration_error, CLICKS, {"bins": 1}, [(2.3 - 2) / 4, 0, (2 - 0.7) / 2, NAN]),
    # Two bins of two pairs each, though all predictions are below 0.5; equal ones are never parted.
    (calibration_error, LOW, {"bins": 2, "binning": "mass"}, [(0.3 + 0.3) / 4, 0.4 / 3]),
]


@pytest.mark.parametrize(("metric", "block", "options", "expected"), HAND_LABELLED)
def test_hand_worked_labels(metric, block, options, expected):
    np.testing.assert_allclose(metric(block, **options), expected, rtol=1e-12, atol=1e-15)


def test_the_bias_of_calibration_errors():
    """True probabilities of 1/2 have no error, but 10 bins of 1,000 labels have √(2/4 · 10 / (π · 1000)) = 0.0399."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, (400, 1000)).astype(float)
    scores = 0.5 + np.linspace(-1e-9, 1e-9, 1000)
    block = ratings_block(labels, [scores] * 400)

    assert calibration_error(block, bins=10, binning="mass").mean() == pytest.approx(0.0399, rel=0.05)


def test_positive_pairs_weigh_from_rel():
    assert positive_weight(STARS, rel=4).tolist() == [2]


@pytest.mark.parametrize("metric", [log_loss, brier, calibration_error])
def test_scores_that_are_no_probabilities_are_refused(metric):
    block = ratings_block(ratings=[[1, 0]], predictions=[[3.5, 0.5]])

    assert auc(block).item() == 1
    with pytest.raises(ValueError, match=r"takes probabilities, from 0 to 1, found the prediction 3\.5; scale them"):
        metric(block)


@pytest.mark.parametrize("bins", [0, 2.5])
def test_bins_are_whole(bins):
    with pytest.raises(ValueError, match=f"bins is a whole number from 1, found {bins:g}"):
        calibration_error(CLICKS, bins=bins)


@pytest.mark.parametrize(
    "metric",
    [
        *(auc, pr_auc, log_loss, brier, calibration_error, mae, mse, rmse, r2),
        lambda block: calibration_error(block, binning="mass", bins=4),
    ],
)
def test_a_weight_of_2_is_a_pair_twice(metric):
    block = users(1)

    np.testing.assert_allclose(metric(block), metric(repeated(block)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("binning", ["width", "mass"])
@pytest.mark.parametrize("metric", [auc, pr_auc, calibration_error, lauc])
def test_neighbours_change_no_bit_of_labels(metric, binning):
    options = {"binning": binning} if metric is calibration_error else {"k": 3} if metric is lauc else {}
    block = users(2)
    there = ~np.isnan(block.ratings)
    together = metric(block, **options)
    alone = []
    for user in range(60):
        own = (column[there[:, user], user] for column in (block.ratings, block.predictions, block.pair_weights))
        alone.append(metric(ratings_block(*([list(values)] for values in own)), **options)[0])

    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("metric", AREAS)
def test_pseudo_values_add_up_to_the_figure_of_all_pairs(metric):
    block = repeated(users(3))
    halves = [block, users(4)]
    values = AREAS[metric](halves)[0]
    weight = np.concatenate([own.weight for own in halves])
    every = [in_one(repeated(own)) for own in halves]
    labels, scores = (
        [*every[0].__dict__[name][:, 0], *every[1].__dict__[name][:, 0]] for name in ("ratings", "predictions")
    )

    expected = oracle.RATINGS_ORACLE[metric.__name__](labels, scores)
    assert (values * weight).sum() / weight.sum() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("metric", AREAS)
def test_pseudo_values_are_the_derivative(metric):
    block = users(5)
    values, weight = AREAS[metric]([block])[0], block.weight
    figure, step = metric(in_one(block))[0], 1e-4

    for user in range(60):
        times = np.ones(60)
        times[user] += step
        slope = (metric(in_one(block, times))[0] - figure) / step
        assert slope == pytest.approx(weight[user] * (values[user] - figure) / weight.sum(), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("metric", AREAS)
def test_the_error_of_a_pooled_area_is_that_of_drawing_users_again(metric):
    block = users(6, 200)
    values, weight = AREAS[metric]([block])[0], block.weight
    figure = metric(in_one(block))[0]
    spread = np.sqrt(((weight * (values - figure) / weight.sum()) ** 2).sum())
    rng = np.random.default_rng(7)
    drawn = [metric(in_one(block, np.bincount(rng.integers(0, 200, 200), minlength=200)))[0] for _ in range(600)]

    assert spread == pytest.approx(np.std(drawn), rel=0.1)


def test_an_interval_of_users_covers_the_area():
    truth = auc(in_one(users(8, 10_000)))[0]
    covered = 0
    for seed in range(300):
        block = users(1000 + seed)
        values, weight = pooled_auc([block])[0], block.weight
        figure = (values * weight).sum() / weight.sum()
        error = np.sqrt(60 / 59 * ((weight * (values - figure) / weight.sum()) ** 2).sum())
        covered += abs(figure - truth) < 2.0 * error

    assert 0.91 <= covered / 300 <= 0.99


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_a_pooled_calibration_error_has_the_bins_of_all_pairs(binning):
    blocks = [users(9), users(10, 30)]
    weight = np.concatenate([block.weight for block in blocks])
    means = pooled_calibration_error(blocks, bins=5, binning=binning)
    pooled = CALIBRATION_ERROR.backward((means * weight).sum(axis=1, keepdims=True) / weight.sum())
    every = [in_one(repeated(block)) for block in blocks]
    labels, scores = (
        np.concatenate([getattr(own, name)[:, 0] for own in every]) for name in ("ratings", "predictions")
    )

    assert means.shape == (5, 90)
    expected = oracle.calibration_error(list(labels), list(scores), bins=5, binning=binning)
    assert pooled.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("pooled", [pooled_auc, pooled_pr_auc, pooled_calibration_error, pooled_moments])
def test_no_pairs_have_no_pooled_figure(pooled):
    assert np.isnan(pooled([ratings_block([[], []], [[], []])])).all()


def test_one_class_has_no_pooled_area():
    nobody = ratings_block([[0, 0], [0]], [[0.2, 0.1], [0.3]])

    assert np.isnan(pooled_auc([nobody])).all()
    assert np.isnan(pooled_pr_auc([nobody])).all()


def test_a_user_without_pairs_adds_nothing_to_a_pooled_area():
    assert np.isnan(pooled_auc([CLICKS])[0]).tolist() == [False, False, False, True]
