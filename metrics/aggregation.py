"""Estimates over queries from scores: weighted means, moments of rating pairs, and jackknife errors.

An estimate is `backward(Σ weight · forward(score) / Σ weight)`. The identity both ways gives a mean, square and square
root a root mean square, logarithm and exponential a geometric mean. Both sums are linear in the queries, so a resample
of the queries is a matrix product. An estimate that is no mean on any scale is made of several means: see `moments`. If
no sums over queries make it, because it compares pairs of different queries, it is linearized: see `LINEARISED`.

The means are sums over pairs divided by the number of pairs, as sums over queries. A resample of the queries has its
own sums, and its estimate is exactly the estimate of its pairs. A variance is the mean of squares less the square of
the mean, which cancel if values are far from 0. So values are taken from an origin between them, one for all queries.

A bootstrap resample holds 63% of the queries, and so less of the catalogue: coverage would look lower than it is.
Leaving out a few queries at a time keeps nearly all of the set. It gives a standard error, but no interval and no
correction of bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats, divide
from rankledger.metrics.catalogue import Attention, CatalogueBlock, Lists, Sparse
from rankledger.metrics.language_models import ConfidenceBlock
from rankledger.metrics.ratings import Binning, RatingsBlock, binned, in_one_column, precision_area, roc_area

__all__ = [
    "CALIBRATION_ERROR",
    "EFFECTIVE_SHARE",
    "EXPLAINED_VARIANCE",
    "GEOMETRIC_MEAN",
    "GROUPS",
    "LINEARISED",
    "MEAN",
    "MOMENTS",
    "RATIO",
    "ROOT_MEAN_SQUARE",
    "R_SQUARED",
    "Aggregation",
    "contributions",
    "delete_a_group_error",
    "moments",
    "origins",
    "pooled_auc",
    "pooled_calibration_error",
    "pooled_moments",
    "pooled_pr_auc",
    "pseudo_values",
    "unchanged",
]

_FLOOR = 0.00001  # trec_eval's MIN_GEO_MEAN: the least value of a query, for one 0 would make the mean 0


@dataclass(frozen=True)
class Aggregation:
    """Scale on which scores are averaged.

    Attributes:
        forward: Takes scores to the scale.
        backward: Takes means back, (1, …) to (1, …), or several means to one estimate, (S, …) to (1, …).
        slope: Derivative of `backward` by each mean, (S, …) to (S, …).
    """

    forward: Callable[[Floats], Floats]
    backward: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


def unchanged(values: Floats) -> Floats:
    """Return the values."""
    return values


def _floored_logarithm(values: Floats) -> Floats:
    return np.log(np.maximum(values, _FLOOR))


def _slope_of_root(means: Floats) -> Floats:
    """Return half the reciprocal of the root. 0 if the mean is 0, because every value is 0 then and none moves it."""
    return np.divide(0.5, np.sqrt(means), out=np.zeros_like(means), where=means > 0)


MEAN = Aggregation(forward=unchanged, backward=unchanged, slope=np.ones_like)
ROOT_MEAN_SQUARE = Aggregation(forward=np.square, backward=np.sqrt, slope=_slope_of_root)
GEOMETRIC_MEAN = Aggregation(forward=_floored_logarithm, backward=np.exp, slope=np.exp)
LINEARISED = Aggregation(forward=unchanged, backward=unchanged, slope=np.ones_like)
"""Of a figure that is the mean of what `pseudo_values` gives: over all queries exactly, over a resample to the
first order. Over some of the queries it is not theirs, so there is no figure of a slice."""


def _sum_of_gaps(means: Floats) -> Floats:
    gaps: Floats = np.abs(means).sum(axis=0, keepdims=True)
    return gaps


CALIBRATION_ERROR = Aggregation(forward=unchanged, backward=_sum_of_gaps, slope=np.sign)


def contributions(
    aggregation: Aggregation, values: Floats, weights: Floats, *, undefined_is_zero: bool
) -> tuple[Floats, Floats]:
    """Return what each query adds to the two sums of an estimate. Nothing else decides how undefined queries count.

    Args:
        aggregation: Scale to average on.
        values: (Q,) scores, or (S, Q) values of several means, NaN if undefined.
        weights: (Q,) weights of the queries.
        undefined_is_zero: True if an undefined query counts as 0, False if it does not count.

    Returns:
        Numerators and denominators, shaped as the values, without NaN.
    """
    defined = ~np.isnan(values)
    counted = np.where(defined | undefined_is_zero, weights, 0.0)
    return aggregation.forward(np.where(defined, values, 0.0)) * counted, counted


MOMENTS = ("rating", "squared_rating", "error", "squared_deviation", "squared_error")


def origins(blocks: Sequence[RatingsBlock]) -> tuple[float, float]:
    """Return the midpoint of all ratings of the blocks, and of the errors. 0 without pairs."""
    return (
        _middle([block.ratings for block in blocks]),
        _middle([block.predictions - block.ratings for block in blocks]),
    )


def moments(block: RatingsBlock, origins: tuple[float, float]) -> Floats:
    """Return each query's (5, Q) means of `MOMENTS` over its pairs, NaN if it has none.

    Args:
        block: Rating pairs of each query.
        origins: Origins of all pairs of the dataset. Ratings and their squares are taken from the first, errors and
            squared deviations of errors from the second, squared errors from 0.
    """
    padded = np.isnan(block.ratings)
    errors = np.where(padded, 0.0, block.predictions - block.ratings)
    ratings = np.where(padded, 0.0, block.ratings - origins[0])
    moved = np.where(padded, 0.0, errors - origins[1])
    terms = (ratings, ratings**2, moved, moved**2, errors**2)
    return np.stack([block.mean(each) for each in terms])


def pooled_moments(blocks: Sequence[RatingsBlock]) -> Floats:
    """Return the (5, Q) `moments` of all queries of a dataset, from the midpoints of its pairs."""
    origin = origins(blocks)
    return np.concatenate([moments(block, origin) for block in blocks], axis=1)


def pooled_auc(blocks: Sequence[RatingsBlock], *, rel: float = 1) -> Floats:
    """Return the (1, Q) `pseudo_values` of the `auc` of all pairs."""
    return pseudo_values(blocks, lambda pairs: roc_area(pairs, rel))


def pooled_pr_auc(blocks: Sequence[RatingsBlock], *, rel: float = 1) -> Floats:
    """Return the (1, Q) `pseudo_values` of the `pr_auc` of all pairs."""
    return pseudo_values(blocks, lambda pairs: precision_area(pairs, rel))


def pooled_calibration_error(
    blocks: Sequence[RatingsBlock], *, bins: float = 15, binning: Binning = "width", rel: float = 1
) -> Floats:
    """Return (bins, Q) sums of label - prediction of each query in each bin of all pairs, over its weight."""
    pairs, queries = in_one_column(blocks)
    codes, gaps = binned(pairs, bins, binning, rel)
    weight, n_bins = _pair_weight(blocks), int(bins)
    cells = n_bins * queries + codes[:, 0]
    sums = np.bincount(cells, (gaps * pairs.pair_weights)[:, 0], n_bins * len(weight)).astype(np.float64)
    return divide(sums.reshape(-1, n_bins).T, weight)


def pseudo_values(blocks: Sequence[RatingsBlock], influence: Callable[[RatingsBlock], tuple[Floats, Floats]]) -> Floats:
    """Return (1, Q) numbers whose mean, weighted by the pairs of the queries, is an estimate over all pairs.

    If queries are weighted otherwise, as in a resample, their mean moves as the estimate does, to the first order.

    Args:
        blocks: All queries of a dataset.
        influence: Returns the estimate over the pairs of one query, (1,), and its derivative by the weight of each
            pair, (P, 1), times this weight, which sums to 0.
    """
    pairs, queries = in_one_column(blocks)
    figure, pulls = influence(pairs)
    weight = _pair_weight(blocks)
    of_queries: Floats = np.bincount(queries, pulls[:, 0], len(weight)).astype(np.float64)
    return (figure + divide(of_queries * weight.sum(), weight))[np.newaxis]


def _pair_weight(blocks: Sequence[RatingsBlock]) -> Floats:
    return np.concatenate([block.weight for block in blocks])


def _middle(values: Sequence[Floats]) -> float:
    minimum = min((float(np.fmin.reduce(each, axis=None, initial=np.inf)) for each in values), default=np.inf)
    maximum = max((float(np.fmax.reduce(each, axis=None, initial=-np.inf)) for each in values), default=-np.inf)
    return minimum / 2 + maximum / 2 if minimum <= maximum else 0.0


def _r_squared(means: Floats) -> Floats:
    _, _, _, _, squared_error = means
    return np.expand_dims(1 - squared_error / _variance(means), 0)


def _explained_variance(means: Floats) -> Floats:
    _, _, error, squared_deviation, _ = means
    return np.expand_dims(1 - (squared_deviation - error**2) / _variance(means), 0)


def _variance(means: Floats) -> Floats:
    """Return the variance of the ratings, NaN if it is 0 or lost in the rounding of their squares."""
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
    """Return the (5, …) derivative of 1 - unexplained / variance by each mean, from the derivative of `unexplained`."""
    rating = means[0]
    variance = _variance(means)
    of_ratings = np.stack([-2 * rating, np.ones_like(rating)]) * unexplained / variance**2
    return np.concatenate([of_ratings, -np.stack(of_unexplained) / variance])


R_SQUARED = Aggregation(forward=unchanged, backward=_r_squared, slope=_r_squared_slope)
EXPLAINED_VARIANCE = Aggregation(forward=unchanged, backward=_explained_variance, slope=_explained_variance_slope)


def _ratio(means: Floats) -> Floats:
    return np.expand_dims(divide(means[0], means[1]), 0)


def _ratio_slope(means: Floats) -> Floats:
    return np.stack([divide(np.ones_like(means[1]), means[1]), -divide(_ratio(means)[0], means[1])])


def _effective_share(means: Floats) -> Floats:
    return means[:1] * _ratio(means)


def _effective_share_slope(means: Floats) -> Floats:
    ratio = _ratio(means)[0]
    return np.stack([2 * ratio, -(ratio**2)])


RATIO = Aggregation(forward=unchanged, backward=_ratio, slope=_ratio_slope)
EFFECTIVE_SHARE = Aggregation(forward=unchanged, backward=_effective_share, slope=_effective_share_slope)


GROUPS = 200
"""How many groups are left out, one at a time, where there are as many clusters: the error is then good to 5%."""


def delete_a_group_error(
    figure: Callable[..., float],
    block: CatalogueBlock | ConfidenceBlock,
    clusters: npt.NDArray[np.int64] | None = None,
    *,
    groups: int = GROUPS,
) -> float:
    """Return the standard error of an estimate over all queries, by a delete-a-group jackknife over clusters.

    Clusters are dealt to G groups like cards: cluster c goes to group c modulo G, so that sizes of groups differ by at
    most 1. With θ_g the estimate without group g the error is √((G - 1) / G Σ (θ_g - mean θ)²). With as many groups
    as queries this is the plain jackknife.

    Args:
        figure: Takes a block, or the sums of its lists, to one estimate.
        block: Documents that each query was given, or its scores and confidences.
        clusters: (Q,) cluster of each query, from 0 on. None if each query is its own.
        groups: Maximum number of groups.

    Returns:
        0 or more. NaN for fewer than two clusters, or if the estimate is undefined without some group.

    Reference:
        Kott 2001, The delete-a-group jackknife, Journal of Official Statistics 17, 521-526; the plain one is Efron &
        Tibshirani 1993, chapter 11.
    """
    codes = np.arange(block.n_queries) if clusters is None else clusters
    n_groups = min(groups, int(codes.max(initial=-1)) + 1)
    if n_groups < 2:
        return math.nan
    value_of_all = cache(lambda name, *arguments: getattr(block, name)(*arguments))

    def without(group: Bools) -> Lists | ConfidenceBlock:
        if isinstance(block, ConfidenceBlock):
            return block.of(np.flatnonzero(~group))
        return _Without(block.of(np.flatnonzero(group)), block.n_queries, value_of_all)

    figures = np.array([figure(without(codes % n_groups == group)) for group in range(n_groups)])
    deviations = figures - figures.mean()
    return math.sqrt((n_groups - 1) / n_groups * float((deviations**2).sum()))


@dataclass(frozen=True, eq=False)
class _Without:
    """Lists of all queries but some: the sums over all of them less the sums over those left out.

    Attributes:
        out: Queries that are left out.
        n_all: Number of queries with them.
        whole: Returns the result of a method of the block of all queries, by name and arguments.
    """

    out: CatalogueBlock
    n_all: int
    whole: Callable[..., Any]

    @property
    def n_documents(self) -> int:
        """Documents of the catalogue, regardless of the queries left out."""
        return self.out.n_documents

    @property
    def n_queries(self) -> int:
        return self.n_all - self.out.n_queries

    @property
    def popularity(self) -> Floats | None:
        return self.out.popularity

    @property
    def features(self) -> Mapping[str, Sparse]:
        return self.out.features

    def exposure(self, k: int | None, new: bool = False) -> npt.NDArray[np.int64]:
        return self._left("exposure", k, new)

    def attention(self, k: int | None, attention: Attention, rel: float | None = None) -> Floats:
        return self._left("attention", k, attention, rel)

    def wanted(self, rel: float) -> Floats:
        return self._left("wanted", rel)

    def consumed(self) -> Floats:
        return self._left("consumed")

    def unit_sums(self, k: int | None) -> tuple[Floats, int]:
        all_sums, n_lists = self.whole("unit_sums", k)
        removed, n_gone = self.out.unit_sums(k)
        return _less(all_sums, removed), n_lists - n_gone

    def _left(self, name: str, *arguments: Any) -> npt.NDArray[Any]:
        return _less(self.whole(name, *arguments), getattr(self.out, name)(*arguments))


def _less(whole: npt.NDArray[Any], gone: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return sums by document less the other sums, which may lack the last documents."""
    rest = whole.copy()
    rest[: len(gone)] -= gone
    return rest
