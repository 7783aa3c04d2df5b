"""Errors of predicted ratings, per query (per user), over the pairs that have both a rating and a prediction.

A query's own figure is what each function returns. Which figure over queries is reported is the `average` of the
measure: `pooled` is that of all pairs, whoever's they are: for errors the mean in which a query weighs as much as it
has pairs, for `r2` and `explained_variance` made of the `moments` of all queries; `query` is the mean of the queries'
own figures. Where pairs have weights, sums over pairs are weighted, and a query weighs as much as its pairs together.
"""

from __future__ import annotations

import numpy as np

from rankledger.metrics.block import Floats, divide
from rankledger.metrics.pairs import RatingsBlock, absolute_errors, squared_errors

__all__ = ["explained_variance", "mae", "mse", "r2", "rmse"]


def mae(block: RatingsBlock) -> Floats:
    """Mean absolute error of a query's predictions.

    Formula: mean |prediction - rating|.

    Returns:
        (Q,), in units of the rating, 0 or more, lower is better; NaN where a query has no pair.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 5.1.
    """
    return block.mean(absolute_errors(block))


def mse(block: RatingsBlock) -> Floats:
    """Mean squared error of a query's predictions.

    Formula: mean (prediction - rating)².

    Returns:
        (Q,), in squared units of the rating, 0 or more, lower is better; NaN where a query has no pair.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 5.1.
    """
    return block.mean(squared_errors(block))


def rmse(block: RatingsBlock) -> Floats:
    """Root mean squared error of a query's predictions.

    Formula: √ mean (prediction - rating)².

    Returns:
        (Q,), in units of the rating, 0 or more, lower is better; NaN where a query has no pair.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 5.1.
    """
    return np.sqrt(mse(block))


def r2(block: RatingsBlock) -> Floats:
    """Coefficient of determination: 1 minus the squared errors over the squared deviations of ratings from their mean.

    Formula: 1 - Σ (prediction - rating)² / Σ (rating - mean rating)².

    The mean is of the pairs that are looked at: the query's own, or all pairs where they are pooled.

    Returns:
        (Q,), at most 1, which exact predictions score; 0 for predicting the mean rating, below 0 for worse; NaN where
        all ratings are equal (scikit-learn gives 1 to exact predictions of them and 0 to others). Pooled, ratings
        count as equal whose variance is less than 1e-12 of their mean square, as seen from the middle of all ratings.

    Reference:
        Wright 1921, Correlation and causation, Journal of Agricultural Research 20; scikit-learn `r2_score`.
    """
    return 1.0 - divide(block.sum(squared_errors(block)), _squared_deviations(block, block.ratings))


def explained_variance(block: RatingsBlock) -> Floats:
    """Explained variance: 1 minus the variance of the errors over that of the ratings.

    Formula: 1 - variance of (prediction - rating) / variance of the rating.

    It differs from `r2` in that predictions may all be too high or too low by the same amount.

    Returns:
        (Q,), at most 1, which predictions score that are off by a constant; NaN as for `r2`.

    Reference:
        scikit-learn `explained_variance_score`.
    """
    errors = block.predictions - block.ratings
    return 1.0 - divide(_squared_deviations(block, errors), _squared_deviations(block, block.ratings))


def _squared_deviations(block: RatingsBlock, values: Floats) -> Floats:
    """(Q,): the sum of squared deviations from the query's mean; exactly 0 where all its values are equal."""
    mean = block.mean(np.where(np.isnan(values), 0.0, values))
    deviations = np.where(np.isnan(values), 0.0, values - mean)
    equal = np.fmax.reduce(values, axis=0) == np.fmin.reduce(values, axis=0)
    return np.where(equal, 0.0, block.sum(deviations**2))
