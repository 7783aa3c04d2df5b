"""From one value per query to one figure per dataset: weighted means, taken on the scale the metric asks for.

A figure is `backward(Σ weight · forward(value) / Σ weight)`: with the identity both ways a mean, with square and square
root a root mean square, with logarithm and exponential a geometric mean. Both sums are linear in the queries, so that a
resample of the queries is a matrix product. A figure that is no mean on any scale is made of several; see `moments`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metrics.block import Floats

__all__ = ["GEOMETRIC_MEAN", "MEAN", "ROOT_MEAN_SQUARE", "Aggregation", "contributions", "unchanged"]

_FLOOR = 0.00001  # trec_eval's MIN_GEO_MEAN: the least value of a query, for one 0 would make the mean 0


@dataclass(frozen=True)
class Aggregation:
    """The scale on which values are averaged.

    Attributes:
        forward: takes values to the scale they are averaged on.
        backward: takes means back, (1, …) to (1, …); or several to one figure, (S, …) to (1, …).
        slope: how much the figure moves with each mean, (S, …) to (S, …): the derivative of `backward`.
    """

    forward: Callable[[Floats], Floats]
    backward: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


def unchanged(values: Floats) -> Floats:
    """The values as they are."""
    return values


def _floored_logarithm(values: Floats) -> Floats:
    return np.log(np.maximum(values, _FLOOR))


def _slope_of_root(means: Floats) -> Floats:
    """Half the reciprocal of the root; 0 where the mean is 0, for then every value is 0 and none of them moves it."""
    return np.divide(0.5, np.sqrt(means), out=np.zeros_like(means), where=means > 0)


MEAN = Aggregation(forward=unchanged, backward=unchanged, slope=np.ones_like)
ROOT_MEAN_SQUARE = Aggregation(forward=np.square, backward=np.sqrt, slope=_slope_of_root)
GEOMETRIC_MEAN = Aggregation(forward=_floored_logarithm, backward=np.exp, slope=np.exp)


def contributions(
    aggregation: Aggregation, values: Floats, weights: Floats, *, undefined_is_zero: bool
) -> tuple[Floats, Floats]:
    """What each query adds to the two sums of a figure. The only place that decides what an undefined query counts as.

    Args:
        aggregation: the scale to average on.
        values: (Q,) scores, or (S, Q) of several means, NaN where undefined.
        weights: (Q,) what each query weighs.
        undefined_is_zero: whether an undefined query counts as one that scored 0, or not at all.

    Returns:
        Numerators and denominators, shaped as the values; no NaN.
    """
    defined = ~np.isnan(values)
    counted = np.where(defined | undefined_is_zero, weights, 0.0)
    return aggregation.forward(np.where(defined, values, 0.0)) * counted, counted
