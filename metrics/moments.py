"""Figures of all rating pairs that are no mean on any scale, but are made of several means.

The means are sums over pairs divided by the number of pairs, and sums over queries of what each query adds: a resample
of the queries has its own, and its figure is exactly that of its pairs.
"""

from __future__ import annotations

import numpy as np

from metrics.aggregation import Aggregation, unchanged
from metrics.block import Floats, divide, sum_down
from metrics.rating import RatingsBlock

__all__ = ["EXPLAINED_VARIANCE", "MOMENTS", "R_SQUARED", "moments"]

MOMENTS = ("rating", "squared_rating", "error", "squared_error")


def moments(block: RatingsBlock) -> Floats:
    """(4, Q): each query's means of `MOMENTS` over its pairs, NaN where it has none."""
    padded = np.isnan(block.ratings)
    ratings = np.where(padded, 0.0, block.ratings)
    errors = np.where(padded, 0.0, block.predictions - block.ratings)
    return np.stack([divide(sum_down(terms), block.n_pairs) for terms in (ratings, ratings**2, errors, errors**2)])


def _r_squared(means: Floats) -> Floats:
    _, _, _, squared_error = means
    return np.expand_dims(1 - squared_error / _variance(means), 0)


def _explained_variance(means: Floats) -> Floats:
    _, _, error, squared_error = means
    return np.expand_dims(1 - (squared_error - error**2) / _variance(means), 0)


def _variance(means: Floats) -> Floats:
    """The variance of the ratings, NaN where it is 0 or lost in the rounding of their squares."""
    rating, squared_rating, _, _ = means
    variance = squared_rating - rating**2
    return np.where(variance > 1e-12 * squared_rating, variance, np.nan)


R_SQUARED = Aggregation(forward=unchanged, backward=_r_squared)
EXPLAINED_VARIANCE = Aggregation(forward=unchanged, backward=_explained_variance)
