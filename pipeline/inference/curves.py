"""Eleven-point precision-recall curves with their bands, from the resamples that every figure rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from metrics.conventions import Profile
from metrics.measure import Measure
from pipeline.inference.estimates import IntervalRule
from pipeline.inference.samples import Sample
from pipeline.pages import CurvePoint
from pipeline.tables import Scores

__all__ = ["precision_by_recall", "recall_levels"]


def recall_levels(profile: Profile) -> tuple[Measure, ...]:
    """The interpolated precision at recall 0, 0.1 … 1, as the profile defines it; none where ties are averaged over.

    Over all orders of tied documents it has no exact mean.
    """
    if profile.conventions_of("iprec").ties == "expected":
        return ()
    return tuple(Measure.parse(f"iprec(recall={tenths / 10:g})", profile) for tenths in range(11))


def precision_by_recall(sample: Sample, results: Sequence[Scores], rule: IntervalRule) -> Iterator[CurvePoint]:
    """The points of each model's curve.

    Args:
        sample: the dataset's resamples.
        results: the scores of its models by `recall_levels`.
        rule: how an interval is read off.
    """
    for scores in results:
        for measure in scores.measures:
            resampled = sample.figure(scores.model, measure)
            low, high = rule.of(resampled)
            yield CurvePoint(
                dataset=scores.dataset,
                model=scores.model,
                curve="precision",
                at=float(measure.parameters["recall"]),
                estimate=resampled.estimate if math.isfinite(resampled.estimate) else None,
                ci_low=low,
                ci_high=high,
                n_queries=resampled.n_queries,
            )
