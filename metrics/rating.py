"""Errors of predicted ratings, per query (per user), over the pairs that have both a rating and a prediction.

A query's own mean is what each function returns. Which mean over queries is reported is the `average` of the measure:
`pooled` weighs every query by its pairs, which is the mean over all pairs; `query` counts every query equally.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.block import Floats, divide, sum_down

__all__ = ["RatingsBlock", "mae", "mse", "rmse"]


@dataclass(frozen=True, eq=False)
class RatingsBlock:
    """The rating pairs of Q queries, at most P each.

    Attributes:
        query_ids: (Q,) the queries' ids, str.
        ratings: (P, Q) what each query (user) rated, NaN where padded.
        predictions: (P, Q) what the model predicted for the same pair, NaN where padded.
        n_pairs: (Q,) pairs that have both.
    """

    query_ids: npt.NDArray[np.object_]
    ratings: Floats
    predictions: Floats
    n_pairs: Floats


def mae(block: RatingsBlock) -> Floats:
    """Mean absolute error of a query's predictions.

    Args:
        block: the rating pairs of each query.

    Returns:
        (Q,), in units of the rating, 0 or more, lower is better; NaN where a query has no pair.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 5.1.
    """
    return divide(sum_down(np.abs(_errors(block))), block.n_pairs)


def mse(block: RatingsBlock) -> Floats:
    """Mean squared error of a query's predictions.

    Args:
        block: the rating pairs of each query.

    Returns:
        (Q,), in squared units of the rating, 0 or more, lower is better; NaN where a query has no pair.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 5.1.
    """
    return divide(sum_down(_errors(block) ** 2), block.n_pairs)


def rmse(block: RatingsBlock) -> Floats:
    """Root mean squared error of a query's predictions.

    Args:
        block: the rating pairs of each query.

    Returns:
        (Q,), in units of the rating, 0 or more, lower is better; NaN where a query has no pair.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 5.1.
    """
    return np.sqrt(mse(block))


def _errors(block: RatingsBlock) -> Floats:
    return np.where(np.isnan(block.ratings), 0.0, block.predictions - block.ratings)
