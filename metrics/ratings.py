"""Measures of rated or labelled pairs of queries and documents: errors, losses, areas, calibration.

A label is a rating, positive from `rel` on, and the prediction is a score such as the probability of a click. Each
function returns the value of every query (user). `average` of the measure says which value over queries is reported:
`pooled` of all pairs, where errors are means weighted by pairs and `r2` and `explained_variance` come from `moments` of
all queries; `query`, the mean of the queries' values; or their mean weighted by `impressions` or `positives`.
Where pairs have weights, sums over pairs are weighted, and a query weighs as much as its pairs together.

A pooled area compares pairs of different queries, so no sums over queries make it. Its `pseudo_values` do to the first
order, which is how DeLong et al. 1988, doi:10.2307/2531595, find its variance, and Obuchowski 1997,
doi:10.2307/2533958, the variance of clustered pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats, cut, divide, sum_down

__all__ = [
    "auc",
    "brier",
    "calibration_error",
    "explained_variance",
    "lauc",
    "log_loss",
    "mae",
    "mse",
    "pr_auc",
    "r2",
    "rmse",
]


def mae(block: RatingsBlock) -> Floats:
    """Compute the mean absolute error of a query's predictions.

    Formula: mean |prediction - rating|.

    Returns:
        (Q,), in units of the rating, 0 or more, lower is better. NaN if a query has no pair.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 5.1.
    """
    return block.mean(absolute_errors(block))


def mse(block: RatingsBlock) -> Floats:
    """Compute the mean squared error of a query's predictions.

    Formula: mean (prediction - rating)².

    Returns:
        (Q,), in squared units of the rating, 0 or more, lower is better. NaN if a query has no pair.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 5.1.
    """
    return block.mean(squared_errors(block))


def rmse(block: RatingsBlock) -> Floats:
    """Compute the root mean squared error of a query's predictions.

    Formula: √ mean (prediction - rating)².

    Returns:
        (Q,), in units of the rating, 0 or more, lower is better. NaN if a query has no pair.

    Reference:
        Herlocker et al. 2004, doi:10.1145/963770.963772, section 5.1.
    """
    return np.sqrt(mse(block))


def r2(block: RatingsBlock) -> Floats:
    """Compute the coefficient of determination: 1 minus squared errors over the ratings' squared deviations.

    Formula: 1 - Σ (prediction - rating)² / Σ (rating - mean rating)².

    The mean is of the pairs that are looked at: the query's own, or all pairs where they are pooled.

    Returns:
        (Q,), at most 1, which exact predictions score; 0 for predicting the mean rating, below 0 for worse; NaN if
        all ratings are equal (scikit-learn gives 1 to exact predictions of them and 0 to others). Pooled, ratings
        count as equal whose variance is less than 1e-12 of their mean square, as seen from the middle of all ratings.

    Reference:
        Wright 1921, Correlation and causation, Journal of Agricultural Research 20; scikit-learn `r2_score`.
    """
    return 1.0 - divide(block.sum(squared_errors(block)), _squared_deviations(block, block.ratings))


def explained_variance(block: RatingsBlock) -> Floats:
    """Compute the explained variance: 1 minus the variance of the errors over the variance of the ratings.

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
    """Return (Q,) sums of squared deviations from the query's mean, exactly 0 if all its values are equal."""
    mean = block.mean(np.where(np.isnan(values), 0.0, values))
    deviations = np.where(np.isnan(values), 0.0, values - mean)
    equal = np.fmax.reduce(values, axis=0) == np.fmin.reduce(values, axis=0)
    return np.where(equal, 0.0, block.sum(deviations**2))


def auc(block: RatingsBlock, *, rel: float = 1) -> Floats:
    """Compute the area under the ROC curve: the chance that a positive pair scores above a negative one.

    Formula: Σ over positives (negatives that score lower + ½ · negatives that score the same) / (P · N).

    P and N are the positives and the negatives, or what they weigh. The mean weighted by impressions is known as GAUC;
    RecBole's is weighted by positives.

    Args:
        rel: The minimum label that is positive.

    Returns:
        (Q,) scores in [0, 1], 0.5 without information. NaN if all labels of the query, or none, are positive.

    Reference:
        Hanley & McNeil 1982, doi:10.1148/radiology.143.1.7063747; GAUC: Zhou et al. 2018, doi:10.1145/3219819.3219823.
    """
    return roc_area(block, rel)[0]


def lauc(block: RatingsBlock, *, k: int, rel: float = 1) -> Floats:
    """Compute the limited AUC: the area under the ROC curve of the top k, continued by a straight line.

    Formula: `auc`, where all documents below rank k score alike.

    The line is the mean over all orders of what is below rank k. Documents with the score of rank k are in the
    top k, too. This is implicit's `AUC_at_k`. The LAUC of Elliot and WarpRec, which name the same paper, is another:
    positives below rank k gain nothing, and it divides by min(P, k).

    Args:
        k: Ranks that count.
        rel: The minimum label that is positive.

    Returns:
        (Q,) scores in [0, 1]. NaN if all labels of the query are positive, or none is.

    Reference:
        Schröder, Thiele & Lehner 2011, Setting goals and choosing metrics for recommender system evaluations; implicit
        0.7 `AUC_at_k`.
    """
    last = -np.sort(-block.predictions, axis=0)[: int(cut(k))][-1:]  # NaN, below which nothing is, in shorter lists
    return auc(replace(block, predictions=np.where(block.predictions < last, -np.inf, block.predictions)), rel=rel)


def pr_auc(block: RatingsBlock, *, rel: float = 1) -> Floats:
    """Compute the area under the precision-recall curve: average precision with equal scores as one step.

    Formula: Σ over positives of the precision among the pairs that score at least as high / P.

    The trapezoidal area is another, which is too high between far points of the curve.

    Args:
        rel: The minimum label that is positive.

    Returns:
        (Q,), in (0, 1], about P / (P + N) for scores without information. NaN if the query has no positive label.

    Reference:
        Davis & Goadrich 2006, doi:10.1145/1143844.1143874; scikit-learn `average_precision_score`.
    """
    return precision_area(block, rel)[0]


def log_loss(block: RatingsBlock, *, rel: float = 1) -> Floats:
    """Compute the logarithmic loss (cross-entropy) of predicted probabilities.

    Formula: mean of -ln(prediction) over positives and -ln(1 - prediction) over negatives.

    Predictions within 2.2e-16 of 0 or 1 are taken for as far from them, as in scikit-learn.

    Args:
        rel: The minimum label that is positive.

    Returns:
        (Q,), in nats, 0 or more, lower is better. NaN if a query has no pair.

    Reference:
        Good 1952, doi:10.1111/j.2517-6161.1952.tb00104.x.
    """
    return block.mean(log_losses(block, rel=rel))


def brier(block: RatingsBlock, *, rel: float = 1) -> Floats:
    """Compute the Brier score: the mean squared error of predicted probabilities.

    Formula: mean (prediction - label)², the label 1 for positives and 0 for negatives.

    Args:
        rel: The minimum label that is positive.

    Returns:
        (Q,) scores in [0, 1], lower is better. NaN if a query has no pair.

    Reference:
        Brier 1950, doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2.
    """
    return block.mean(squared_gaps(block, rel=rel))


def calibration_error(block: RatingsBlock, *, bins: float = 15, binning: Binning = "width", rel: float = 1) -> Floats:
    """Compute the expected calibration error: the distance of bins' mean predictions from shares of positives.

    Formula: Σ over bins |Σ over the bin's pairs (label - prediction)| / number of pairs.

    It is biased upwards: even the true probabilities have an error in each bin by chance, together about
    √(2 p (1 - p) · bins / (π · pairs)) for labels with the probability p. So compare models on the same pairs alone,
    with few bins for few pairs; a query's own error is mostly that bias. `brier` and `log_loss` have none.

    Args:
        bins: Into how many bins predictions are sorted, at least 1.
        binning: `width`, bins of equal width from 0 to 1, each with its upper end; or `mass`, of as many pairs each,
            where equal predictions stay together. Pooled, they are bins of all pairs.
        rel: The minimum label that is positive.

    Returns:
        (Q,) scores in [0, 1], lower is better. NaN if a query has no pair.

    Reference:
        Guo et al. 2017, arXiv:1706.04599, equation 3; equal mass and the bias: Roelofs et al. 2022, arXiv:2012.08668.
    """
    codes, gaps = binned(block, bins, binning, rel)
    sums = np.stack([block.sum(np.where(codes == place, gaps, 0.0)) for place in range(int(bins))])
    return divide(sum_down(np.abs(sums)), block.weight)


Ints = npt.NDArray[np.int64]
Binning = Literal["width", "mass"]

_LEAST = float(np.finfo(np.float64).eps)  # the least probability whose logarithm is taken, as in scikit-learn


@dataclass(frozen=True, eq=False)
class RatingsBlock:
    """Rating pairs of Q queries, at most P each.

    Attributes:
        query_ids: (Q,) the queries' ids, str.
        ratings: (P, Q) what each query (user) rated, NaN if padded.
        predictions: (P, Q) what the model predicted for the same pair, NaN if padded.
        n_pairs: (Q,) pairs that have both.
        weights: (P, Q) what each pair weighs, 0 if padded; None if all weigh 1.
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
        """Return the (Q,) weighted sums of (P, Q) values, which are 0 if padded."""
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
    """Return the (P, Q) logarithmic losses, 0 if padded. Raises the errors of `log_loss`."""
    likely = np.clip(_probabilities(block), _LEAST, 1 - _LEAST)
    losses = -np.log(np.where(block.ratings >= rel, likely, 1 - likely))
    return np.where(np.isnan(block.ratings), 0.0, losses)


def squared_gaps(block: RatingsBlock, *, rel: float = 1) -> Floats:
    """Return (P, Q) values (prediction - label)², 0 if padded. Raises the errors of `brier`."""
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
    n_above = np.where(n_found > 0, n_found, 1.0)
    precision = hits / n_above
    area = divide(sum_down(positive * precision), n_positive)
    # A pair changes the precision at its own score and at every lower one.
    lower, lower_hits = (
        sum_down(weights) - steps.around(weights)[0] for weights in (positive / n_above, positive * precision / n_above)
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
        problem = f"it takes probabilities, from 0 to 1, found the prediction {block.predictions[outside][0]:g}"
        raise ValueError(f"{problem}; scale them, or remove the measure")
    return block.predictions


def _classes(block: RatingsBlock, rel: float) -> tuple[Floats, Floats]:
    """Return the (P, Q) weights of pairs as positive ones, and as negative ones, 0 if they are not."""
    positive = block.ratings >= rel
    return np.where(positive, block.pair_weights, 0.0), np.where(positive, 0.0, block.pair_weights)


def in_one_column(blocks: Sequence[RatingsBlock]) -> tuple[RatingsBlock, Ints]:
    """Return all pairs as pairs of one query, and the column of each pair's query."""
    rated = [~np.isnan(block.ratings.T) for block in blocks]

    def column(arrays: Sequence[Floats]) -> Floats:
        return np.concatenate([array.T[there] for array, there in zip(arrays, rated, strict=True)])[:, np.newaxis]

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
        return self._restore_rows(sums, self.first), self._restore_rows(sums, self.last + 1)

    def middle(self, weights: Floats) -> Floats:
        """Return the (P, Q) weights of pairs with higher scores, plus half of the weights of equal ones."""
        higher, as_high = self.around(weights)
        return (higher + as_high) / 2

    def _restore_rows(self, sums: Floats, rows: Ints) -> Floats:
        placed = np.empty(self.order.shape)
        np.put_along_axis(placed, self.order, np.take_along_axis(sums, rows, axis=0), axis=0)
        return placed


def _errors(block: RatingsBlock) -> Floats:
    return np.where(np.isnan(block.ratings), 0.0, block.predictions - block.ratings)
