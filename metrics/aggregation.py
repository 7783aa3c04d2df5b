"""From one value per query to one figure per dataset: weighted means, moments of rating pairs, and jackknife errors.

A figure is `backward(Σ weight · forward(value) / Σ weight)`: with the identity both ways a mean, with square and square
root a root mean square, with logarithm and exponential a geometric mean. Both sums are linear in the queries, so that a
resample of the queries is a matrix product. A figure that is no mean on any scale is made of several; see `moments`.
One that no sums over queries make, as it compares pairs of different queries, is linearised; see `LINEARISED`.

The means are sums over pairs divided by the number of pairs, and sums over queries of what each query adds: a resample
of the queries has its own, and its figure is exactly that of its pairs. A variance is the mean of squares less the
square of the mean, which cancel where values are far from 0: they are taken from an origin in their midst, one for all
queries.

A bootstrap resample holds 63% of the queries, and so less of the catalogue than all of them: it would say that coverage
is lower than it is. Leaving a few queries out at a time keeps nearly all of the set. It gives a standard error alone:
no interval, and no correction of bias.
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
from rankledger.metrics.pairs import Binning, RatingsBlock, binned, in_one_column, precision_area, roc_area

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
    return np.stack([block.mean(each) for each in terms])


def pooled_moments(blocks: Sequence[RatingsBlock]) -> Floats:
    """(5, Q): the `moments` of all queries of a dataset, from origins in the midst of its pairs."""
    found = origins(blocks)
    return np.concatenate([moments(block, found) for block in blocks], axis=1)


def pooled_auc(blocks: Sequence[RatingsBlock], *, rel: float = 1) -> Floats:
    """(1, Q): the `pseudo_values` of the `auc` of all pairs."""
    return pseudo_values(blocks, lambda pairs: roc_area(pairs, rel))


def pooled_pr_auc(blocks: Sequence[RatingsBlock], *, rel: float = 1) -> Floats:
    """(1, Q): the `pseudo_values` of the `pr_auc` of all pairs."""
    return pseudo_values(blocks, lambda pairs: precision_area(pairs, rel))


def pooled_calibration_error(
    blocks: Sequence[RatingsBlock], *, bins: float = 15, binning: Binning = "width", rel: float = 1
) -> Floats:
    """(bins, Q): of each query the sum of label - prediction in each bin of all pairs, over the weight of its pairs."""
    pairs, queries = in_one_column(blocks)
    codes, gaps = binned(pairs, bins, binning, rel)
    weight, n_bins = _pair_weight(blocks), int(bins)
    cells = n_bins * queries + codes[:, 0]
    sums = np.bincount(cells, (gaps * pairs.pair_weights)[:, 0], n_bins * len(weight)).astype(np.float64)
    return divide(sums.reshape(-1, n_bins).T, weight)


def pseudo_values(blocks: Sequence[RatingsBlock], influence: Callable[[RatingsBlock], tuple[Floats, Floats]]) -> Floats:
    """(1, Q): numbers whose mean, weighted by the queries' pairs, is a figure of all pairs.

    Where queries are weighed otherwise, as in a resample, their mean moves as the figure does, to the first order.

    Args:
        blocks: all queries of a dataset.
        influence: gives the figure of one query, (1,), and how much it moves with the weight of each of its pairs,
            (P, 1), times that weight, which sums to 0.
    """
    pairs, queries = in_one_column(blocks)
    figure, pulls = influence(pairs)
    weight = _pair_weight(blocks)
    of_queries: Floats = np.bincount(queries, pulls[:, 0], len(weight)).astype(np.float64)
    return (figure + divide(of_queries * weight.sum(), weight))[np.newaxis]


def _pair_weight(blocks: Sequence[RatingsBlock]) -> Floats:
    """(Q,): what the pairs of each query weigh together."""
    return np.concatenate([block.weight for block in blocks])


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
    """The standard error of a figure of all queries, by a delete-a-group jackknife over clusters.

    Clusters are dealt to G groups like cards, in their order: cluster c goes to group c modulo G, so that groups are of
    equal size or differ by one. With θ_g the figure without group g the error is √((G - 1) / G Σ (θ_g - mean θ)²). With
    as many groups as queries it is the plain jackknife.

    Args:
        figure: takes a block, or the sums of its lists, to one figure.
        block: the documents each query was given, or its scores and confidences.
        clusters: (Q,) the cluster of each query, from 0 on; None where each query stands for itself.
        groups: the most groups that are made.

    Returns:
        0 or more; NaN where there are fewer than two clusters, or the figure is undefined without some group.

    Reference:
        Kott 2001, The delete-a-group jackknife, Journal of Official Statistics 17, 521-526; the plain one is Efron &
        Tibshirani 1993, chapter 11.
    """
    codes = np.arange(block.n_queries) if clusters is None else clusters
    n_groups = min(groups, int(codes.max(initial=-1)) + 1)
    if n_groups < 2:
        return math.nan
    whole = cache(lambda name, *arguments: getattr(block, name)(*arguments))

    def without(group: Bools) -> Lists | ConfidenceBlock:
        if isinstance(block, ConfidenceBlock):
            return block.of(np.flatnonzero(~group))
        return _Without(block.of(np.flatnonzero(group)), block.n_queries, whole)

    figures = np.array([figure(without(codes % n_groups == group)) for group in range(n_groups)])
    deviations = figures - figures.mean()
    return math.sqrt((n_groups - 1) / n_groups * float((deviations**2).sum()))


@dataclass(frozen=True, eq=False)
class _Without:
    """The lists of all queries but some: what all of them come to, less what is left out.

    Attributes:
        out: the queries that are left out.
        n_all: how many queries there are with these.
        whole: gives what a method of the block of all gives, by its name and arguments.
    """

    out: CatalogueBlock
    n_all: int
    whole: Callable[..., Any]

    @property
    def n_documents(self) -> int:
        """As `CatalogueBlock`: of the catalogue, whoever is left out."""
        return self.out.n_documents

    @property
    def n_queries(self) -> int:
        """As `CatalogueBlock`, of the lists that are left, as are all others."""
        return self.n_all - self.out.n_queries

    @property
    def popularity(self) -> Floats | None:
        """As `CatalogueBlock`."""
        return self.out.popularity

    @property
    def features(self) -> Mapping[str, Sparse]:
        """As `CatalogueBlock`."""
        return self.out.features

    def exposure(self, k: int | None, new: bool = False) -> npt.NDArray[np.int64]:
        """As `CatalogueBlock`."""
        return self._left("exposure", k, new)

    def attention(self, k: int | None, attention: Attention, rel: float | None = None) -> Floats:
        """As `CatalogueBlock`."""
        return self._left("attention", k, attention, rel)

    def wanted(self, rel: float) -> Floats:
        """As `CatalogueBlock`."""
        return self._left("wanted", rel)

    def consumed(self) -> Floats:
        """As `CatalogueBlock`."""
        return self._left("consumed")

    def unit_sums(self, k: int | None) -> tuple[Floats, int]:
        """As `CatalogueBlock`."""
        all_sums, n_lists = self.whole("unit_sums", k)
        gone, n_gone = self.out.unit_sums(k)
        return _less(all_sums, gone), n_lists - n_gone

    def _left(self, name: str, *arguments: Any) -> npt.NDArray[Any]:
        return _less(self.whole(name, *arguments), getattr(self.out, name)(*arguments))


def _less(whole: npt.NDArray[Any], gone: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """By document; the last ones may have nothing that is gone."""
    left = whole.copy()
    left[: len(gone)] -= gone
    return left
