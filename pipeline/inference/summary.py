"""Summary of a dataset: estimates with intervals, precision-recall curves, ranks of models and their agreement."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from rankledger.metrics.block import Bools, Floats, divide
from rankledger.metrics.conventions import Conventions, Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups, ModelKey, Scores
from rankledger.pipeline.inference.distributions import t_quantile
from rankledger.pipeline.inference.intervals import Method, Resampled, interval, known
from rankledger.pipeline.inference.ratios import contributions_of
from rankledger.pipeline.inference.samples import Pair, Sample, effective_clusters, pool
from rankledger.pipeline.inference.tables import (
    ALL,
    Comparison,
    CurvePoint,
    Estimate,
    OrderAgreement,
    ReplicateEstimate,
    VarianceComponents,
)
from rankledger.pipeline.support.progress import each

_NORMAL = NormalDist()
_FEWEST = 3  # models that have an order
_FEWEST_CLUSTERS = 2  # that vary
_MOST_COMPARED = 1 << 33  # pairs times resamples, beyond which fewer resamples are compared, but never fewer than
_LEAST_RESAMPLES = 500  # of which 25 are beyond the critical value of 95%
_CACHED = 1 << 15  # numbers that are compared at a time: 256 kB
_ROUNDING = 1e-12  # of the greatest figure: a difference, or the standard error of one, that is not greater is 0

POOLED = "*"
"""What the summary calls all datasets together."""


@dataclass(frozen=True)
class IntervalRule:
    """Method and confidence of the intervals."""

    method: Method
    confidence: float

    def of(self, resampled: Resampled) -> tuple[float | None, float | None]:
        return interval(resampled, self.method, self.confidence)


def estimate(
    sample: Sample,
    results: Sequence[Scores],
    conventions: Conventions,
    rule: IntervalRule,
    meanwhile: Callable[[Collection[Measure]], object] | None = None,
) -> tuple[Estimate, ...]:
    """Return the summary of one dataset: per model a line per measure, then list measures, then slices.

    There is no interval if a resample leaves the value undefined, and none for a measure of a set of documents,
    because a resample holds only 63% of the queries.
    """
    lines: dict[tuple[ModelKey, str, Measure], Estimate] = {}
    for block in each("Reading off intervals", sample.each_block(), len(sample.blocks), "blocks"):
        for measure in block:
            for scores in (result for result in results if measure in result.measures):
                row = scores.measures.index(measure)
                undefined = np.isnan(np.atleast_2d(scores.moments.get(measure, scores.values[row]))[0])
                for name in sample.slices_of(measure):
                    lines[scores.key, name, measure] = _line(sample, scores, row, name, undefined, conventions, rule)
            if meanwhile is not None:
                meanwhile([measure])  # while the influences of its figures are kept
    return tuple(line for scores in results for line in _order_rows(sample, scores, lines))


def _order_rows(
    sample: Sample, scores: Scores, lines: Mapping[tuple[ModelKey, str, Measure], Estimate]
) -> Iterator[Estimate]:
    for name in sample.slices:
        yield from (
            lines[scores.key, name, measure] for measure in scores.measures if name in sample.slices_of(measure)
        )
        if name == ALL:
            yield from _figures(scores, sample.n_clusters)


def _line(
    sample: Sample, scores: Scores, row: int, slice: str, undefined: Bools, conventions: Conventions, rule: IntervalRule
) -> Estimate:
    measure = scores.measures[row]
    resampled = sample.figure(scores.model, measure, slice)
    low, high = rule.of(resampled)
    mask = sample.slices[slice]
    bounds: list[float | None] = [None, None, None]
    if scores.tie_bounds is not None and measure.metric.input == "judged":
        ratios = [
            contributions_of(scores, row, bound, conventions).ratio(mask, None) for bound in scores.tie_bounds[:, row]
        ]
        bounds = [known(ratio.estimate) for ratio in ratios]
    return Estimate(
        dataset=scores.dataset,
        model=scores.model,
        slice=slice,
        measure=str(measure),
        estimate=known(resampled.estimate),
        ci_low=low,
        ci_high=high,
        std_error=known(resampled.std_error),
        n_queries=len(undefined) if mask is None else _count(mask, None),
        n_missing=_count(scores.missing, mask),
        n_undefined=_count(undefined, mask),
        n_clusters=resampled.n_clusters,
        mark=resampled.mark,
        ties_least=bounds[0],
        ties_expected=bounds[1],
        ties_greatest=bounds[2],
    )


def _count(queries: Bools, mask: Bools | None) -> int:
    return int(np.count_nonzero(queries if mask is None else queries & mask))


def _figures(scores: Scores, n_clusters: int) -> Iterator[Estimate]:
    for measure, figure in scores.figures.items():
        yield Estimate(
            dataset=scores.dataset,
            model=scores.model,
            slice=ALL,
            measure=str(measure),
            estimate=known(figure),
            ci_low=None,
            ci_high=None,
            std_error=known(scores.figure_errors.get(measure, math.nan)),
            n_queries=len(scores.query_ids),
            n_missing=int(scores.missing.sum()),
            n_undefined=0,
            n_clusters=n_clusters,
        )


def replicate_estimates(
    results: Sequence[Scores], groups: Groups, conventions: Conventions
) -> Iterator[ReplicateEstimate]:
    """Yield the values of each replicate."""
    for one_seed in (replicate for scores in results for replicate in scores.replicates):
        figures = {
            measure: contributions_of(one_seed, row, one_seed.values[row], conventions)
            .ratio(None, groups.clusters)
            .estimate
            for row, measure in enumerate(one_seed.measures)
        }
        n_missing = int(one_seed.missing.sum())
        for measure, figure in {**figures, **one_seed.figures}.items():
            yield ReplicateEstimate(
                one_seed.dataset, one_seed.model, one_seed.replicate, str(measure), known(figure), n_missing
            )


def variance_components(sample: Sample, results: Sequence[Scores]) -> Iterator[VarianceComponents]:
    """Yield the variance components of values with at least two replicates."""
    for scores in results:
        for measure in scores.measures:
            components = sample.components(scores.key, measure)
            if components is not None and math.isfinite(components.rest):
                yield VarianceComponents(
                    scores.dataset,
                    scores.model,
                    str(measure),
                    components.n_queries,
                    components.n_replicates,
                    max(components.queries, 0.0),
                    max(components.replicates, 0.0),
                    max(components.rest, 0.0),
                    components.std_error(),
                    components.std_error(queries=2),
                    components.std_error(replicates=2),
                    components.more,
                )


def estimate_pooled(samples: Sequence[Sample], lines: Sequence[Estimate], rule: IntervalRule) -> tuple[Estimate, ...]:
    """Return the unweighted mean over all datasets for every model and measure that all of them have."""
    pooled_lines: dict[tuple[str, str], list[Estimate]] = {}
    for line in lines:
        if line.slice == ALL:
            pooled_lines.setdefault((line.model, line.measure), []).append(line)
    return tuple(
        _pooled_line(samples, pooled_lines[model, str(measure)], model, measure, rule)
        for model, measure in samples[0].contributions
        if isinstance(model, str)
        and (model, str(measure)) in pooled_lines  # a sample may hold models of records, too
        and all((model, measure) in sample.contributions for sample in samples)
    )


def _pooled_line(
    samples: Sequence[Sample], own: Sequence[Estimate], model: str, measure: Measure, rule: IntervalRule
) -> Estimate:
    by_name = sorted(samples, key=lambda sample: sample.dataset)  # another order would round sums otherwise
    resampled = pool([sample.figure(model, measure) for sample in by_name])
    low, high = rule.of(resampled)
    return Estimate(
        dataset=POOLED,
        model=model,
        slice=ALL,
        measure=str(measure),
        estimate=known(resampled.estimate),
        ci_low=low,
        ci_high=high,
        std_error=known(resampled.std_error),
        n_queries=sum(line.n_queries for line in own),
        n_missing=sum(line.n_missing for line in own),
        n_undefined=sum(line.n_undefined for line in own),
        n_clusters=resampled.n_clusters,
        mark=resampled.mark,
    )


def recall_levels(profile: Profile) -> tuple[Measure, ...]:
    """Return the interpolated precision at recall 0, 0.1 … 1. None if ties are averaged, which has no exact mean."""
    if profile.conventions_of("iprec").ties == "expected":
        return ()
    return tuple(Measure.parse(f"iprec(recall={tenths / 10:g})", profile) for tenths in range(11))


def precision_by_recall(sample: Sample, results: Sequence[Scores], rule: IntervalRule) -> list[CurvePoint]:
    """Return the points of each model's curve, from its scores by `recall_levels`."""
    points: dict[tuple[str, Measure], CurvePoint] = {}
    for measure in dict.fromkeys(measure for scores in results for measure in scores.measures):
        for scores in results:  # model by model the sums of each measure would be drawn again and again
            resampled = sample.figure(scores.model, measure)
            low, high = rule.of(resampled)
            points[scores.model, measure] = CurvePoint(
                dataset=scores.dataset,
                model=scores.model,
                curve="precision",
                at=float(measure.parameters["recall"]),
                estimate=known(resampled.estimate),
                ci_low=low,
                ci_high=high,
                n_queries=resampled.n_queries,
            )
    return [points[scores.model, measure] for scores in results for measure in scores.measures]


def with_ranks(
    lines: Sequence[Estimate], samples: Sequence[Sample], confidence: float, comparisons: Sequence[Comparison] = ()
) -> tuple[Estimate, ...]:
    """Return the lines of the summary, with the models' ranks on all queries.

    Models are ranked by the values of the lines, even if they leave out different queries. A measure without a
    direction or without resamples ranks none.
    """
    measures = _ordering_measures(samples)
    columns = _index_rows(lines, measures)
    tested: dict[tuple[str, str], list[Comparison]] = {}
    for line in comparisons:
        if line.slice == ALL and line.p_value is not None:
            tested.setdefault((line.dataset, line.measure), []).append(line)
    ranked = list(lines)
    for (dataset, name), places in columns.items():
        dataset_lines, measure = [lines[place] for place in places], measures[dataset, name]
        drawn = [sample for sample in samples if dataset in (sample.dataset, POOLED)]
        figures = _oriented_figures(drawn, dataset_lines, measure)
        defined = [line.model for line in dataset_lines if line.estimate is not None]
        sizes = [_effective_clusters(sample, model, measure) for sample in drawn for model in defined]
        models = [line.model for line in dataset_lines]
        rows = {model: row for row, model in enumerate(models)}
        unsure = _unsure(drawn, models, figures[:, 0], measure, confidence)
        for line in tested.get((dataset, name), ()):
            first, other = rows[line.model], rows[line.baseline]
            leads = "better" if figures[first, 0] > figures[other, 0] else "worse"
            unsure[[first, other], [other, first]] |= line.decide(1 - confidence) != leads
        ranks = rank_intervals(figures, min(sizes, default=0.0), confidence, unsure)
        for place, rank in zip(places, ranks, strict=True):
            low, high = rank or (None, None)
            ranked[place] = replace(lines[place], rank_low=low, rank_high=high)
    return tuple(ranked)


def order_agreement(
    lines: Sequence[Estimate], samples: Sequence[Sample], leading: Mapping[str, Measure], confidence: float
) -> tuple[OrderAgreement, ...]:
    """Compare the order of at least three models by each measure with their order by the lead measure."""
    measures = _ordering_measures(samples)
    columns = {key: [lines[place] for place in places] for key, places in _index_rows(lines, measures).items()}
    agreements = []
    for (dataset, measure), column in columns.items():
        names = map(str, [leading[dataset]] if dataset in leading else leading.values())
        lead = next((name for name in names if (dataset, name) in columns), measure)
        if measure != lead and len(column) >= _FEWEST:
            drawn = [sample for sample in samples if dataset in (sample.dataset, POOLED)]
            models = {line.model for line in column}
            led = [line for line in columns[dataset, lead] if line.model in models]
            both = [(led, measures[dataset, lead]), (column, measures[dataset, measure])]
            figures = np.stack([_oriented_figures(drawn, rows, by) for rows, by in both])
            complete = np.isfinite(figures).all(axis=(0, 2))
            compared, figures = [column[place].model for place in np.flatnonzero(complete)], figures[:, complete]
            tau = kendall_tau(*figures[:, :, 0])
            if len(compared) >= _FEWEST and math.isfinite(tau):
                sizes = [_effective_clusters(each, name, by) for each in drawn for name in compared for _, by in both]
                likely = zip(figures[:, :, 0], both, strict=True)
                unsure = [_unsure(drawn, compared, rows, by, (1 + confidence) / 2) for rows, (_, by) in likely]
                n_same, opposite, n_pairs = count_agreement(figures, min(sizes), confidence, np.stack(unsure))
                undecided = n_pairs - n_same - opposite
                low, high = ((n_same - opposite + side * undecided) / n_pairs for side in (-1, 1))
                counts = (len(compared), n_same, opposite, undecided)
                agreements.append(OrderAgreement(dataset, measure, lead, tau, low, high, *counts))
    return tuple(agreements)


def kendall_tau(one: Floats, other: Floats) -> float:
    """Return Kendall's tau-b of two (M,) orders. NaN if all are equal by one of them.

    Reference:
        Kendall 1945, doi:10.1093/biomet/33.3.239; scipy.stats.kendalltau.
    """
    sums = np.zeros(3)
    for place in range(len(one)):  # model by model: the pairs of thousands are too many to hold
        signs, other_signs = np.sign(one[place] - one), np.sign(other[place] - other)
        sums += (signs * other_signs).sum(), np.abs(signs).sum(), np.abs(other_signs).sum()
    return float(divide(sums[0], np.sqrt(sums[1] * sums[2])))


def count_agreement(
    figures: Floats | Sequence[Floats], n_clusters: float, confidence: float, unsure: Bools | None = None
) -> tuple[int, int, int]:
    """Count the pairs of models in the same order by two measures, in opposite orders, and all pairs."""
    n_pairs = math.comb(len(figures[0]), 2)
    if not n_clusters >= _FEWEST_CLUSTERS:
        return 0, 0, n_pairs
    first, other = _better(figures, n_clusters, confidence) & (True if unsure is None else ~unsure)
    return int((first & other).sum()), int((first & other.T).sum()), n_pairs


def _ordering_measures(samples: Sequence[Sample]) -> dict[tuple[str, str], Measure]:
    pairs = {(sample.dataset, measure) for sample in samples for _, measure in sample.contributions}
    pairs |= {(POOLED, measure) for sample in samples[:1] for _, measure in sample.contributions}
    return {(dataset, str(measure)): measure for dataset, measure in pairs if measure.metric.direction != "neither"}


def _index_rows(
    lines: Sequence[Estimate], measures: Mapping[tuple[str, str], Measure]
) -> dict[tuple[str, str], list[int]]:
    columns: dict[tuple[str, str], list[int]] = {}
    for place, line in enumerate(lines):
        if line.slice == ALL and (line.dataset, line.measure) in measures:
            columns.setdefault((line.dataset, line.measure), []).append(place)
    return columns


def _oriented_figures(samples: Sequence[Sample], lines: Sequence[Estimate], measure: Measure) -> Floats:
    by_name = sorted(samples, key=lambda sample: sample.dataset)  # another order would round sums otherwise
    sums = [np.stack([sample.figures(line.model, measure) for sample in by_name]).sum(axis=0) for line in lines]
    figures = np.stack(sums) / len(samples)
    return -figures if measure.metric.direction == "lower" else figures


def _effective_clusters(sample: Sample, model: str, measure: Measure) -> float:
    weights, clusters = sample.contributions[model, measure].denominators, sample.groups.clusters
    if clusters is not None:
        weights = np.bincount(clusters, weights, sample.n_clusters).astype(np.float64)
    return effective_clusters(weights)


def _unsure(
    samples: Sequence[Sample], models: Sequence[str], figures: Floats, measure: Measure, confidence: float
) -> Bools:
    by_name = sorted(samples, key=lambda sample: sample.dataset)
    unsure = np.zeros((len(models), len(models)), dtype=bool)
    n_pairs = len(models) * (len(models) - 1) / 2
    families = [any(sample.is_family(model, measure) for sample in samples) for model in models]
    for first, other in combinations(range(len(models)) if any(families) else (), 2):
        if families[first] or families[other]:
            pair = Pair(models[first], models[other], measure)
            difference = pool([sample.differences([pair])[0] for sample in by_name])
            distance = abs(float(figures[first] - figures[other]))
            reach = difference.total_error.reach(1 - (1 - confidence) / n_pairs)
            unsure[first, other] = unsure[other, first] = not distance > reach
    return unsure


def rank_intervals(
    figures: Floats, n_clusters: float, confidence: float, unsure: Bools | None = None
) -> list[tuple[int, int] | None]:
    """Return the best and the worst possible rank of each of M models, jointly for all.

    One model is better than another if their difference is more than c standard errors from 0. c is the `confidence`
    quantile over resamples of the maximum `|d* - d| / se*` of all pairs, widened to Student's t and by √(n / (n - 1)),
    by which resamples are too narrow. Equal models share their ranks. A difference that is the same in every resample
    counts if a sign test of so many clusters finds it. More than about 1,300 models are compared over fewer resamples,
    at least 500, so that time does not grow with the number of pairs.

    Args:
        figures: (M, 1 + B) over the sample and over the same resamples, greater is better.
        n_clusters: Effective number of clusters, of several datasets the minimum.
        confidence: Joint coverage of all intervals, in (0, 1).
        unsure: (M, M) pairs in which neither model is better, for any resamples. None if there are none.

    Returns:
        Two ranks by model, from 1 on. None if its value is undefined, or if fewer than two models have one. A model
        that is undefined over a resample alone may have any rank.

    Reference:
        Mogstad, Romano, Shaikh & Wilhelm 2024, doi:10.1093/restud/rdad006: ranks from simultaneous confidence intervals
        of all differences, in one step. d* and d are values of a resample and of the sample.
    """
    complete = np.isfinite(figures).all(axis=1)
    if complete.sum() < 2 or n_clusters < _FEWEST_CLUSTERS:
        return [None] * len(figures)
    (better,), n_models = _better([figures[complete]], n_clusters, confidence), int(np.isfinite(figures[:, 0]).sum())
    if unsure is not None:
        better &= ~unsure[np.ix_(complete, complete)]
    ranks: list[tuple[int, int] | None] = [None] * len(figures)
    above, below = better.sum(axis=0).tolist(), better.sum(axis=1).tolist()
    for place, model in enumerate(np.flatnonzero(complete)):
        ranks[model] = 1 + above[place], n_models - below[place]
    return ranks


def _better(measures: Floats | Sequence[Floats], n_clusters: float, confidence: float) -> Bools:
    n_models = len(measures[0])
    n_pairs = len(measures) * n_models * (n_models - 1) / 2
    by_sign = 2.0 ** (1 - n_clusters) * n_pairs <= 1 - confidence
    n_resamples = min(measures[0].shape[1] - 1, max(_LEAST_RESAMPLES, int(_MOST_COMPARED / n_pairs)))
    n_rows = max(1, _CACHED // n_resamples)
    standardized = np.zeros((len(measures), n_models, n_models))
    maxima, space = np.zeros(n_resamples), np.empty((n_rows, n_resamples))
    for figures, z in zip(measures, standardized, strict=True):
        sample, shifts = figures[:, 0], figures[:, 1 : 1 + n_resamples] - figures[:, :1]
        negligible = _ROUNDING * float(np.abs(sample).max())
        for first in range(n_models - 1):
            for begin in range(first + 1, n_models, n_rows):  # a few pairs at a time, so that they stay in the cache
                others = slice(begin, begin + n_rows)
                squares = np.subtract(shifts[first], shifts[others], out=space[: n_models - begin])
                np.square(squares, out=squares)
                variances, differences = squares.mean(axis=1), sample[first] - sample[others]
                varies = variances > negligible * negligible
                squares /= np.where(varies, variances, np.inf)[:, np.newaxis]
                np.maximum(maxima, squares.max(axis=0), out=maxima)
                certain = np.copysign(np.inf, differences) if by_sign else np.zeros_like(differences)
                studentized = np.where(varies, differences / np.sqrt(np.where(varies, variances, 1.0)), certain)
                z[first, others] = np.where(np.abs(differences) > negligible, studentized, 0.0)
    critical = _critical(math.sqrt(_quantile(maxima, confidence)), n_clusters)
    better: Bools = standardized > critical
    better |= (standardized < -critical).transpose(0, 2, 1)
    return better


def _critical(z: float, n_clusters: float) -> float:
    """Return the normal bound `z` widened for a mean of this many clusters over its bootstrap error."""
    return -t_quantile(_NORMAL.cdf(-z), n_clusters - 1) * math.sqrt(n_clusters / (n_clusters - 1))


def _quantile(values: Floats, level: float) -> float:
    """Return `np.quantile` to the last bit, without importing numpy.ma. NaN if any value is NaN."""
    ordered, place = np.sort(values), level * (len(values) - 1)
    below = int(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    share = place - below
    if math.isnan(ordered[-1]):
        return math.nan
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1 - share)
