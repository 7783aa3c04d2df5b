"""From one value per query to one figure per dataset: weighted means, taken on the scale the metric asks for.

A figure is `backward(Σ weight · forward(value) / Σ weight)`: with the identity both ways a mean, with square and square
root a root mean square. Both sums are linear in the queries, so that a resample of the queries is a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metrics.block import Floats

__all__ = ["MEAN", "ROOT_MEAN_SQUARE", "Aggregation", "terms"]


@dataclass(frozen=True)
class Aggregation:
    """The scale on which values are averaged.

    Attributes:
        forward: takes values to the scale they are averaged on.
        backward: takes a mean back.
    """

    forward: Callable[[Floats], Floats]
    backward: Callable[[Floats], Floats]


def _identity(values: Floats) -> Floats:
    return values


MEAN = Aggregation(forward=_identity, backward=_identity)
ROOT_MEAN_SQUARE = Aggregation(forward=np.square, backward=np.sqrt)


def terms(
    aggregation: Aggregation, values: Floats, weights: Floats, *, undefined_is_zero: bool
) -> tuple[Floats, Floats]:
    """What each query adds to the two sums of a figure. The only place that decides what an undefined query counts as.

    Args:
        aggregation: the scale to average on.
        values: (Q,) scores, NaN where undefined.
        weights: (Q,) what each query weighs.
        undefined_is_zero: whether an undefined query counts as one that scored 0, or not at all.

    Returns:
        (Q,) numerators and (Q,) denominators; no NaN.
    """
    defined = ~np.isnan(values)
    numerators = np.where(defined, aggregation.forward(values) * weights, 0.0)
    return numerators, weights.copy() if undefined_is_zero else np.where(defined, weights, 0.0)
