"""Figures of all rating pairs that are no mean on any scale, but are made of several means.

The means are sums over pairs divided by the number of pairs, and sums over queries of what each query adds: a resample
of the queries has its own, and its figure is exactly that of its pairs. A variance is the mean of squares less the
square of the mean, which cancel where values are far from 0: they are taken from an origin in their midst, one for all
queries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metrics.aggregation import Aggregation, unchanged
from metrics.block import Floats, divide, sum_down
from metrics.rating import RatingsBlock

__all__ = ["EXPLAINED_VARIANCE", "MOMENTS", "R_SQUARED", "moments", "origins"]

MOMENTS = ("rating", "squared_rating", "error", "squared_deviation", "squared_error")


def origins(blocks: Sequence[RatingsBlock]) -> tuple[float, float]:
    """The middle between the least and the greatest rating of all blocks, and that of the errors; 0 without pairs."""
    return (
        _middle([block.ratings for block in blocks]),
        _middle([block.predictions - block.ratings for block in blocks]),
    )


def moments(block: RatingsBlock, origins: tuple[float, float]) -> Floats:
    """(5, Q): each query's means of `MOMENTS` over its pairs, NaN where it has none.

    Args:
        block: the rating pairs of each query.
        origins: of all the dataset's pairs; the ratings and their squares are taken from the first, the errors and
            their squared deviations from the second, the squared errors from 0.
    """
    padded = np.isnan(block.ratings)
    errors = np.where(padded, 0.0, block.predictions - block.ratings)
    ratings = np.where(padded, 0.0, block.ratings - origins[0])
    moved = np.where(padded, 0.0, errors - origins[1])
    terms = (ratings, ratings**2, moved, moved**2, errors**2)
    return np.stack([divide(sum_down(each), block.n_pairs) for each in terms])


def _middle(values: Sequence[Floats]) -> float:
    least = min((float(np.fmin.reduce(each, axis=None, initial=np.inf)) for each in values), default=np.inf)
    greatest = max((float(np.fmax.reduce(each, axis=None, initial=-np.inf)) for each in values), default=-np.inf)
    return least / 2 + greatest / 2 if least <= greatest else 0.0


def _r_squared(means: Floats) -> Floats:
    _, _, _, _, squared_error = means
    return np.expand_dims(1 - squared_error / _variance(means), 0)


def _explained_variance(means: Floats) -> Floats:
    _, _, error, squared_deviation, _ = means
    return np.expand_dims(1 - (squared_deviation - error**2) / _variance(means), 0)


def _variance(means: Floats) -> Floats:
    """The variance of the ratings, NaN where it is 0 or lost in the rounding of their squares."""
    rating, squared_rating, _, _, _ = means
    variance = squared_rating - rating**2
    return np.where(variance > 1e-12 * squared_rating, variance, np.nan)


def _r_squared_slope(means: Floats) -> Floats:
    _, _, _, _, squared_error = means
    none = np.zeros_like(squared_error)
    return _slope(means, squared_error, (none, none, none + 1))


def _explained_variance_slope(means: Floats) -> Floats:
    _, _, error, squared_deviation, _ = means
    none = np.zeros_like(error)
    return _slope(means, squared_deviation - error**2, (-2 * error, none + 1, none))


def _slope(means: Floats, unexplained: Floats, of_unexplained: tuple[Floats, Floats, Floats]) -> Floats:
    """(5, …): the derivative of 1 - unexplained / variance by each mean, given that of what is unexplained."""
    rating = means[0]
    variance = _variance(means)
    of_ratings = np.stack([-2 * rating, np.ones_like(rating)]) * unexplained / variance**2
    return np.concatenate([of_ratings, -np.stack(of_unexplained) / variance])


R_SQUARED = Aggregation(forward=unchanged, backward=_r_squared, slope=_r_squared_slope)
EXPLAINED_VARIANCE = Aggregation(forward=unchanged, backward=_explained_variance, slope=_explained_variance_slope)
