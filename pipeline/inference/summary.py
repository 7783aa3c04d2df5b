"""Estimates with intervals, the lines of the summary, and precision-recall curves with bands."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankledger.metrics.block import Bools
from rankledger.metrics.conventions import Conventions, Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.data.scores import ModelKey, Scores
from rankledger.pipeline.inference.intervals import Method, Resampled, interval, known
from rankledger.pipeline.inference.ratios import contributions_of
from rankledger.pipeline.inference.samples import Sample, pool
from rankledger.pipeline.inference.tables import ALL, CurvePoint, Estimate, ReplicateEstimate, VarianceComponents
from rankledger.pipeline.support.progress import each

POOLED = "*"
"""What the summary calls all datasets together."""


@dataclass(frozen=True)
class IntervalRule:
    """Method and confidence of the intervals."""

    method: Method
    confidence: float

    def of(self, resampled: Resampled) -> tuple[float | None, float | None]:
        """Return the two ends; None if there is no interval."""
        return interval(resampled, self.method, self.confidence)


def estimate(
    sample: Sample,
    results: Sequence[Scores],
    conventions: Conventions,
    rule: IntervalRule,
    meanwhile: Callable[[Collection[Measure]], object] | None = None,
) -> tuple[Estimate, ...]:
    """Return the summary of one dataset: per model a line per measure, then those of the set of lists, then the slices.

    There is no interval if a resample leaves the figure undefined, and none for a measure that describes a set of
    documents: a resample holds 63% of the queries and so less of the set.

    Args:
        sample: Resamples of the dataset.
        results: Scores of its models.
        conventions: Rules for undefined queries and for queries without output.
        rule: How an interval is read off.
        meanwhile: Reads off what else depends on the sums of these measures, which are not all kept.
    """
    lines: dict[tuple[ModelKey, str, Measure], Estimate] = {}
    for block in each("Reading off intervals", sample.each_block(), len(sample.blocks), "blocks"):
        for measure in block:
            for scores in (own for own in results if measure in own.measures):
                row = scores.measures.index(measure)
                undefined = np.isnan(np.atleast_2d(scores.moments.get(measure, scores.values[row]))[0])
                for name in sample.slices_of(measure):
                    lines[scores.key, name, measure] = _line(sample, scores, row, name, undefined, conventions, rule)
            if meanwhile is not None:
                meanwhile([measure])  # while the influences of its figures are kept
    return tuple(line for scores in results for line in _in_order(sample, scores, lines))


def _in_order(
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
    """Yield the figures of each replicate of the models that have some."""
    for own in (replicate for scores in results for replicate in scores.replicates):
        figures = {
            measure: contributions_of(own, row, own.values[row], conventions).ratio(None, groups.clusters).estimate
            for row, measure in enumerate(own.measures)
        }
        n_missing = int(own.missing.sum())
        for measure, figure in {**figures, **own.figures}.items():
            yield ReplicateEstimate(own.dataset, own.model, own.replicate, str(measure), known(figure), n_missing)


def variance_components(sample: Sample, results: Sequence[Scores]) -> Iterator[VarianceComponents]:
    """Yield the variance components of families' figures with at least two replicates."""
    for scores in results:
        for measure in scores.measures:
            found = sample.components(scores.key, measure)
            if found is not None and math.isfinite(found.rest):
                yield VarianceComponents(
                    scores.dataset,
                    scores.model,
                    str(measure),
                    found.n_queries,
                    found.n_replicates,
                    max(found.queries, 0.0),
                    max(found.replicates, 0.0),
                    max(found.rest, 0.0),
                    found.std_error(),
                    found.std_error(queries=2),
                    found.std_error(replicates=2),
                    found.more,
                )


def estimate_pooled(samples: Sequence[Sample], lines: Sequence[Estimate], rule: IntervalRule) -> tuple[Estimate, ...]:
    """Return the lines of all datasets together: the unweighted mean for every model and measure that all of them have.

    The interval is stratified: each dataset is resampled by itself, and a resample of the mean is the mean of theirs.
    """
    own: dict[tuple[str, str], list[Estimate]] = {}
    for line in lines:
        if line.slice == ALL:
            own.setdefault((line.model, line.measure), []).append(line)
    return tuple(
        _pooled_line(samples, own[model, str(measure)], model, measure, rule)
        for model, measure in samples[0].contributions
        if isinstance(model, str)
        and (model, str(measure)) in own  # a sample may hold models of records, too
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
    """Return the interpolated precision at recall 0, 0.1 … 1 by the profile; none if ties are averaged over.

    Over all orders of tied documents it has no exact mean.
    """
    if profile.conventions_of("iprec").ties == "expected":
        return ()
    return tuple(Measure.parse(f"iprec(recall={tenths / 10:g})", profile) for tenths in range(11))


def precision_by_recall(sample: Sample, results: Sequence[Scores], rule: IntervalRule) -> Iterator[CurvePoint]:
    """Yield the points of each model's curve, from its scores by `recall_levels`."""
    for scores in results:
        for measure in scores.measures:
            resampled = sample.figure(scores.model, measure)
            low, high = rule.of(resampled)
            yield CurvePoint(
                dataset=scores.dataset,
                model=scores.model,
                curve="precision",
                at=float(measure.parameters["recall"]),
                estimate=known(resampled.estimate),
                ci_low=low,
                ci_high=high,
                n_queries=resampled.n_queries,
            )
