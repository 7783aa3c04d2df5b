"""Rated or labelled pairs of queries and documents, and what is made of each: errors, losses, bins, places by score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats, divide, sum_down

__all__ = [
    "Binning",
    "Ints",
    "RatingsBlock",
    "absolute_errors",
    "binned",
    "in_one_column",
    "log_losses",
    "positive_weight",
    "precision_area",
    "roc_area",
    "squared_errors",
    "squared_gaps",
]

Ints = npt.NDArray[np.int64]
Binning = Literal["width", "mass"]

_LEAST = float(np.finfo(np.float64).eps)  # the least probability whose logarithm is taken, as in scikit-learn


@dataclass(frozen=True, eq=False)
class RatingsBlock:
    """Rating pairs of Q queries, at most P each.

    Attributes:
        query_ids: (Q,) the queries' ids, str.
        ratings: (P, Q) what each query (user) rated, NaN where padded.
        predictions: (P, Q) what the model predicted for the same pair, NaN where padded.
        n_pairs: (Q,) pairs that have both.
        weights: (P, Q) what each pair weighs, 0 where padded; None if all weigh 1.
    """

    query_ids: npt.NDArray[np.object_]
    ratings: Floats
    predictions: Floats
    n_pairs: Floats
    weights: Floats | None = None

    @cached_property
    def weight(self) -> Floats:
        """Return the (Q,) total weights of each query's pairs."""
        return self.n_pairs if self.weights is None else sum_down(self.weights)

    @cached_property
    def pair_weights(self) -> Floats:
        """Return the (P, Q) weights, 0 if padded."""
        return (~np.isnan(self.ratings)).astype(np.float64) if self.weights is None else self.weights

    def sum(self, values: Floats) -> Floats:
        """Return the (Q,) weighted sums of (P, Q) values, which are 0 where padded."""
        return sum_down(values if self.weights is None else values * self.weights)

    def mean(self, values: Floats) -> Floats:
        """Return (Q,) weighted means, NaN if a query has no pair with a weight."""
        return divide(self.sum(values), self.weight)


def absolute_errors(block: RatingsBlock) -> Floats:
    """Return (P, Q) values |prediction - rating|, 0 if padded."""
    return np.abs(_errors(block))


def squared_errors(block: RatingsBlock) -> Floats:
    """Return (P, Q) values (prediction - rating)², 0 if padded."""
    return _errors(block) ** 2


def log_losses(block: RatingsBlock, *, rel: float = 1) -> Floats:
    """Return the (P, Q) logarithmic losses, 0 if padded. Errors are those of `log_loss`."""
    likely = np.clip(_probabilities(block), _LEAST, 1 - _LEAST)
    losses = -np.log(np.where(block.ratings >= rel, likely, 1 - likely))
    return np.where(np.isnan(block.ratings), 0.0, losses)


def squared_gaps(block: RatingsBlock, *, rel: float = 1) -> Floats:
    """Return (P, Q) values (prediction - label)², 0 if padded. Errors are those of `brier`."""
    return _gaps(block, rel) ** 2


def positive_weight(block: RatingsBlock, *, rel: float = 1) -> Floats:
    """Return the (Q,) total weights of each query's positive pairs."""
    return sum_down(_classes(block, rel)[0])


def roc_area(block: RatingsBlock, rel: float) -> tuple[Floats, Floats]:
    """Return the (Q,) `auc` and its (P, Q) influences for `pseudo_values`."""
    positive, negative = _classes(block, rel)
    n_positive, n_negative = sum_down(positive), sum_down(negative)
    steps = _Steps.of(block.predictions)
    below, above = n_negative - steps.middle(negative), steps.middle(positive)
    area = divide(sum_down(positive * below), n_positive * n_negative)
    of_positive = divide(positive * (divide(below, n_negative) - area), n_positive)
    return area, of_positive + divide(negative * (divide(above, n_positive) - area), n_negative)


def precision_area(block: RatingsBlock, rel: float) -> tuple[Floats, Floats]:
    """Return the (Q,) `pr_auc` and its (P, Q) influences for `pseudo_values`."""
    positive, negative = _classes(block, rel)
    n_positive = sum_down(positive)
    steps = _Steps.of(block.predictions)
    hits, n_found = steps.around(positive)[1], steps.around(positive + negative)[1]
    found = np.where(n_found > 0, n_found, 1.0)
    precision = hits / found
    area = divide(sum_down(positive * precision), n_positive)
    # A pair changes the precision at its own score and at every lower one.
    lower, lower_hits = (
        sum_down(weights) - steps.around(weights)[0] for weights in (positive / found, positive * precision / found)
    )
    moved = positive * (precision - area + lower) - (positive + negative) * lower_hits
    return area, divide(moved, n_positive)


def binned(block: RatingsBlock, bins: float, binning: Binning, rel: float) -> tuple[Ints, Floats]:
    """Return the (P, Q) bin of each pair, from 0 on, and its label less its prediction, 0 if padded."""
    if not (bins >= 1 and float(bins).is_integer()):
        raise ValueError(f"bins is a whole number from 1, found {bins:g}")
    gaps = _gaps(block, rel)
    if binning == "width":
        return np.searchsorted(np.linspace(0, 1, int(bins) + 1)[1:-1], block.predictions), gaps
    share = np.nan_to_num(1 - divide(_Steps.of(block.predictions).middle(block.pair_weights), block.weight))
    return np.clip(np.floor(bins * share), 0, bins - 1).astype(np.int64), gaps


def _gaps(block: RatingsBlock, rel: float) -> Floats:
    """Return (P, Q) labels less predictions, 0 if padded."""
    return np.where(np.isnan(block.ratings), 0.0, (block.ratings >= rel) - _probabilities(block))


def _probabilities(block: RatingsBlock) -> Floats:
    outside: Bools = (block.predictions < 0) | (block.predictions > 1)
    if outside.any():
        found = f"it takes probabilities, from 0 to 1, found the prediction {block.predictions[outside][0]:g}"
        raise ValueError(f"{found}; scale them, or remove the measure")
    return block.predictions


def _classes(block: RatingsBlock, rel: float) -> tuple[Floats, Floats]:
    """Return the (P, Q) weights of pairs as positive ones, and as negative ones, 0 if they are not."""
    positive = block.ratings >= rel
    return np.where(positive, block.pair_weights, 0.0), np.where(positive, 0.0, block.pair_weights)


def in_one_column(blocks: Sequence[RatingsBlock]) -> tuple[RatingsBlock, Ints]:
    """Return all pairs as pairs of one query, and the column of each pair's query."""
    rated = [~np.isnan(block.ratings.T) for block in blocks]

    def column(arrays: Sequence[Floats]) -> Floats:
        return np.concatenate([own.T[there] for own, there in zip(arrays, rated, strict=True)])[:, np.newaxis]

    n_pairs = np.concatenate([there.sum(axis=1) for there in rated])
    pairs = RatingsBlock(
        query_ids=np.array(["*"], dtype=object),
        ratings=column([block.ratings for block in blocks]),
        predictions=column([block.predictions for block in blocks]),
        n_pairs=np.array([float(n_pairs.sum())]),
        weights=column([block.pair_weights for block in blocks]),
    )
    return pairs, np.repeat(np.arange(len(n_pairs)), n_pairs)


@dataclass(frozen=True, eq=False)
class _Steps:
    """The pairs of each query from the highest score down, where equal scores are one step.

    Attributes:
        order: (P, Q) the pairs, the highest score first.
        first: (P, Q) where the step of each pair begins in that order.
        last: (P, Q) where it ends.
    """

    order: npt.NDArray[np.intp]
    first: Ints
    last: Ints

    @classmethod
    def of(cls, scores: Floats) -> _Steps:
        """Prepare the steps of (P, Q) scores, NaN if padded."""
        order = np.argsort(-scores, axis=0, kind="stable")
        ordered = np.take_along_axis(scores, order, axis=0)
        n_rows = len(scores)
        outer, inner = np.ones_like(scores[:1], dtype=bool), ordered[1:] != ordered[:-1]
        rows = np.arange(n_rows)[:, np.newaxis]
        first = np.maximum.accumulate(np.where(np.vstack([outer, inner]), rows, 0), axis=0)
        ends = np.where(np.vstack([inner, outer]), rows, n_rows)
        return cls(order, first, np.minimum.accumulate(ends[::-1], axis=0)[::-1])

    def around(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the (P, Q) weights of pairs with higher scores, and with scores at least as high."""
        ordered = np.take_along_axis(weights, self.order, axis=0)
        sums = np.vstack([np.zeros_like(weights, shape=(1, weights.shape[1])), ordered.cumsum(axis=0)])
        return self._in_place(sums, self.first), self._in_place(sums, self.last + 1)

    def middle(self, weights: Floats) -> Floats:
        """Return the (P, Q) weights of pairs with higher scores, plus half of the weights of equal ones."""
        higher, as_high = self.around(weights)
        return (higher + as_high) / 2

    def _in_place(self, sums: Floats, rows: Ints) -> Floats:
        placed = np.empty(self.order.shape)
        np.put_along_axis(placed, self.order, np.take_along_axis(sums, rows, axis=0), axis=0)
        return placed


def _errors(block: RatingsBlock) -> Floats:
    return np.where(np.isnan(block.ratings), 0.0, block.predictions - block.ratings)
