"""Errors of predicted ratings, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.aggregation import terms
from metrics.rating import mae, mse, rmse
from metrics.registry import METRICS
from tests.blocks import random_ratings, ratings_block

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
    """Ratings and predictions in each other's place have the same errors."""
    swapped = ratings_block(ratings=[[4, 3, 1]], predictions=[[3, 5, 1]])

    for metric in (mae, mse, rmse):
        np.testing.assert_array_equal(metric(swapped), metric(BLOCK)[:1])


@pytest.mark.parametrize(("name", "expected"), [("mae", 3.5 / 4), ("mse", 5.25 / 4), ("rmse", np.sqrt(5.25 / 4))])
def test_pooled_figures_are_those_over_all_pairs(name, expected):
    """Four pairs in all, absolute errors 1 2 0 0.5 and squares 1 4 0 0.25, whatever user they belong to."""
    metric = METRICS[name]
    numerators, denominators = terms(metric.pooled, metric.function(BLOCK), BLOCK.n_pairs, undefined_is_zero=False)

    assert metric.pooled.backward(numerators.sum() / denominators.sum()) == pytest.approx(expected)


@pytest.mark.parametrize("metric", [mae, mse, rmse])
def test_neighbours_change_no_bit(metric):
    """A user alone has the bits of a user among 99 others, with and without padding."""
    users = random_ratings(np.random.default_rng(7), 100)
    together = metric(ratings_block([ratings for ratings, _ in users], [predictions for _, predictions in users]))
    alone = [metric(ratings_block([ratings], [predictions])).item() for ratings, predictions in users]

    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("metric", [mae, mse, rmse])
def test_a_better_prediction_never_hurts(metric):
    """Moving one prediction halfway towards its rating lowers every error."""
    closer = ratings_block(ratings=[[3, 5, 1]], predictions=[[3.5, 3, 1]])

    assert metric(closer) < metric(BLOCK)[:1]


def test_squares_weigh_large_errors_more():
    """Errors 0 2 and 1 1 have the same mean, but the first pair the greater root mean square: √2 against 1."""
    block = ratings_block(ratings=[[1, 1], [1, 1]], predictions=[[1, 3], [2, 2]])

    assert mae(block).tolist() == [1, 1]
    assert rmse(block) == pytest.approx([np.sqrt(2), 1])
