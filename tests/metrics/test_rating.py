"""Errors of predicted ratings, worked by hand."""

import numpy as np
import pytest

from rankledger.metrics.aggregation import MOMENTS, contributions, moments, origins
from rankledger.metrics.rating import explained_variance, mae, mse, r2, rmse
from rankledger.metrics.registry import METRICS
from tests.oracle import RATINGS_ORACLE
from tests.support.blocks import random_ratings, ratings_block

# Errors: +1, -2 and 0 for the first user, +0.5 for the second, none for the third.
BLOCK = ratings_block(ratings=[[3, 5, 1], [4], []], predictions=[[4, 3, 1], [4.5], []])


def test_mean_absolute_error():
    """(1 + 2 + 0) / 3 = 1 and 0.5; a user without a pair is undefined."""
    np.testing.assert_allclose(mae(BLOCK), [1, 0.5, np.nan])


def test_mean_squared_error():
    """(1 + 4 + 0) / 3 = 5/3 and 0.25."""
    np.testing.assert_allclose(mse(BLOCK), [5 / 3, 0.25, np.nan])


def test_root_mean_squared_error():
    """√(5/3) and 0.5."""
    np.testing.assert_allclose(rmse(BLOCK), [np.sqrt(5 / 3), 0.5, np.nan])


def test_exact_predictions_have_no_error():
    """Predictions equal to the ratings err by 0, which is not undefined."""
    block = ratings_block(ratings=[[1, 2.5, 5]], predictions=[[1, 2.5, 5]])

    assert [metric(block).item() for metric in (mae, mse, rmse)] == [0, 0, 0]


def test_the_sign_of_an_error_does_not_matter():
    swapped = ratings_block(ratings=[[4, 3, 1]], predictions=[[3, 5, 1]])

    for metric in (mae, mse, rmse):
        np.testing.assert_array_equal(metric(swapped), metric(BLOCK)[:1])


@pytest.mark.parametrize(("name", "expected"), [("mae", 3.5 / 4), ("mse", 5.25 / 4), ("rmse", np.sqrt(5.25 / 4))])
def test_pooled_figures_are_those_over_all_pairs(name, expected):
    """Four pairs in all, absolute errors 1 2 0 0.5 and squares 1 4 0 0.25, whatever user they belong to."""
    metric = METRICS[name]
    scale, values = metric.aggregation, metric.function(BLOCK)
    numerators, denominators = contributions(scale, values, BLOCK.n_pairs, undefined_is_zero=False)

    assert scale.backward(numerators.sum() / denominators.sum()) == pytest.approx(expected)


def test_coefficient_of_determination():
    """Ratings 3 5 1 deviate from 3 by 0 2 -2, squared 8, errors +1 -2 0 squared 5: 1 - 5/8; one rating is undefined."""
    np.testing.assert_allclose(r2(BLOCK), [1 - 5 / 8, np.nan, np.nan])


def test_explained_variance():
    """Errors +1 -2 0 deviate from -1/3 by 4/3 -5/3 1/3, squared 42/9: 1 - 42/9 / 8 = 5/12."""
    np.testing.assert_allclose(explained_variance(BLOCK), [5 / 12, np.nan, np.nan])


def test_what_the_mean_rating_explains():
    """To predict the mean of the ratings explains nothing; to be off by 1 all along explains everything but itself."""
    block = ratings_block(ratings=[[1, 2, 6], [1, 2, 6]], predictions=[[3, 3, 3], [2, 3, 7]])

    np.testing.assert_allclose(r2(block), [0, 1 - 3 / 14])
    np.testing.assert_allclose(explained_variance(block), [0, 1])


def test_equal_ratings_have_nothing_to_explain():
    """Not even where their mean is rounded: three times 0.1 add up to more than 0.3."""
    block = ratings_block(ratings=[[0.1, 0.1, 0.1]], predictions=[[0.1, 0.2, 0.3]])

    for name in ("r2", "explained_variance"):
        assert np.isnan(METRICS[name].function(block)).all()
        means = moments(block, origins([block]))
        assert np.isnan(METRICS[name].aggregation.backward(means)).all()


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
    """Without any pair the origins are 0, and the means NaN."""
    block = ratings_block([[]], [[]])

    assert origins([block]) == origins([]) == (0.0, 0.0)
    assert np.isnan(moments(block, origins([block]))).all()


@pytest.mark.parametrize(("name", "expected"), [("r2", 1 - 5.25 / 8.75), ("explained_variance", 1 - 5.1875 / 8.75)])
def test_pooled_figures_are_made_of_all_pairs(name, expected):
    """Ratings 3 5 1 4 deviate from 13/4 by -1/4 7/4 -9/4 3/4: 8.75; errors 1 -2 0 0.5 from -1/8: 5.25 - 4/64."""
    metric = METRICS[name]
    sums = contributions(metric.aggregation, moments(BLOCK, origins([BLOCK])), BLOCK.n_pairs, undefined_is_zero=False)
    means = sums[0].sum(axis=1) / sums[1].sum(axis=1)

    assert metric.aggregation.backward(means) == pytest.approx(expected)


@pytest.mark.parametrize("metric", [mae, mse, rmse, r2, explained_variance, lambda block: moments(block, (2.9, 0.1))])
def test_neighbours_change_no_bit(metric):
    """A user alone has the bits of a user among 99 others, with and without padding."""
    users = random_ratings(np.random.default_rng(7), 100)
    together = metric(ratings_block([ratings for ratings, _ in users], [predictions for _, predictions in users]))
    alone = [metric(ratings_block([ratings], [predictions])) for ratings, predictions in users]

    np.testing.assert_array_equal(together, np.concatenate(alone, axis=-1))


@pytest.mark.parametrize("metric", [mae, mse, rmse])
def test_a_better_prediction_never_hurts(metric):
    closer = ratings_block(ratings=[[3, 5, 1]], predictions=[[3.5, 3, 1]])

    assert metric(closer) < metric(BLOCK)[:1]


def test_squares_weigh_large_errors_more():
    """Errors 0 2 and 1 1 have the same mean, but the first pair the greater root mean square: √2 against 1."""
    block = ratings_block(ratings=[[1, 1], [1, 1]], predictions=[[1, 3], [2, 2]])

    assert mae(block).tolist() == [1, 1]
    assert rmse(block) == pytest.approx([np.sqrt(2), 1])
