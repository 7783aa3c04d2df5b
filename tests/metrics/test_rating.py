"""Errors of predicted ratings, worked by hand."""

import numpy as np
import pytest

from rankledger.metrics.aggregation import MOMENTS, contributions, moments, origins
from rankledger.metrics.ratings import explained_variance, mae, mse, r2, rmse
from rankledger.metrics.registry import METRICS
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
    closer = ratings_block(ratings=[[3, 5, 1]], predictions=[[3.5, 3, 1]])

    assert metric(closer) < metric(BLOCK)[:1]
