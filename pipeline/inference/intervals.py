"""Scores to the lines of the summary: estimates, confidence intervals, standard errors, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from metrics.aggregation import contributions
from metrics.block import Floats, divide
from metrics.conventions import Conventions
from metrics.measure import Measure
from pipeline.inference.resample import resampled_sums
from pipeline.parallel import Workers
from pipeline.tables import Estimate, Scores

__all__ = ["estimate"]


@dataclass(frozen=True, eq=False)
class _Ratio:
    """One measure of one model as sums over queries, and what the summary says beside the figure.

    The numerators are (S, Q): one for most measures, several for a figure that is made of several means.
    """

    scores: Scores
    measure: Measure
    numerators: Floats
    denominators: Floats
    n_undefined: int
    tie_bounds: tuple[float | None, float | None, float | None] = (None, None, None)

    def figure(self, numerators: Floats, denominator: Floats) -> Floats:
        """The figure that these sums make, (S, …) and (…); NaN where nothing was counted."""
        figures: Floats = self.measure.aggregation.backward(divide(numerators, denominator))[0]
        return figures


def estimate(
    results: Sequence[Scores],
    conventions: Conventions,
    *,
    resamples: int,
    confidence: float,
    seed: int,
    workers: Workers,
) -> tuple[Estimate, ...]:
    """The summary of one dataset: a line per model and measure, in the order of the results.

    Intervals are percentile intervals: the (1 ± confidence) / 2 quantiles, interpolated linearly, of the figure over
    the resamples (Efron & Tibshirani 1993, chapter 13). There is none where a resample leaves the figure undefined, and
    none for a measure that describes a set of documents: a resample holds 63% of the queries and so less of the set.

    Args:
        results: the scores of the dataset's models.
        conventions: say what an undefined query counts as, and one without output.
        resamples: how often the queries are drawn.
        confidence: how often an interval should cover, in (0, 1).
        seed: root of all streams; the dataset's name is the stream's.
        workers: run the resampling.
    """
    ratios = [ratio for result in results for ratio in _ratios(result, conventions)]
    resampled = _resample(ratios, resamples, seed, workers)
    tail = (1 - confidence) / 2
    lows, highs = np.quantile(resampled, [tail, 1 - tail], axis=1)
    errors = (resampled - resampled[:, :1]).std(axis=1, ddof=1)  # shifted, so that equal figures have no spread at all
    lines = [
        _line(ratio, float(low), float(high), float(error))
        for ratio, low, high, error in zip(ratios, lows, highs, errors, strict=True)
    ]
    return tuple(line for result in results for line in (*_of(lines, result), *_figures(result)))


def _ratios(result: Scores, conventions: Conventions) -> list[_Ratio]:
    ratios = []
    for row, (measure, values) in enumerate(zip(result.measures, result.values, strict=True)):
        ratio = _ratio(result, row, values, conventions)
        if result.tie_bounds is not None and measure.metric.input == "judged":
            least, expected, greatest = (_ratio(result, row, bound, conventions) for bound in result.tie_bounds[:, row])
            ratio = replace(ratio, tie_bounds=(_overall(least), _overall(expected), _overall(greatest)))
        ratios.append(ratio)
    return ratios


def _ratio(result: Scores, row: int, values: Floats, conventions: Conventions) -> _Ratio:
    measure, weights = result.measures[row], result.weights[row]
    zero = measure.metric.undefined == "convention" and conventions.undefined_queries == "zero"
    if conventions.missing_queries == "skip":
        weights = np.where(result.missing, 0.0, weights)
    means = np.atleast_2d(result.moments.get(measure, values))
    numerators, denominators = contributions(measure.aggregation, means, weights, undefined_is_zero=zero)
    return _Ratio(result, measure, numerators, denominators[0], n_undefined=int(np.isnan(means[0]).sum()))


def _overall(ratio: _Ratio) -> float | None:
    """The figure over all queries."""
    return _known(float(ratio.figure(ratio.numerators.sum(axis=1), ratio.denominators.sum())))


def _resample(ratios: Sequence[_Ratio], resamples: int, seed: int, workers: Workers) -> Floats:
    """(len(ratios), B): each figure over each resample of the queries.

    A figure's resamples stand side by side: summed down a column, their last bits would depend on the columns beside.
    """
    if not ratios:
        return np.empty((0, resamples))
    distinct: dict[bytes, int] = {}  # most measures weigh the queries alike, and one column serves them all
    places = [distinct.setdefault(ratio.denominators.tobytes(), len(distinct)) for ratio in ratios]
    columns = [*(row for ratio in ratios for row in ratio.numerators), *map(np.frombuffer, distinct)]
    stream = ratios[0].scores.dataset
    sums = resampled_sums(np.stack(columns), resamples=resamples, seed=seed, stream=stream, workers=workers)
    denominators = sums[:, len(columns) - len(distinct) :]
    figures, begin = [], 0
    for ratio, place in zip(ratios, places, strict=True):
        end = begin + len(ratio.numerators)
        figures.append(ratio.figure(sums[:, begin:end].T, denominators[:, place]))
        begin = end
    return np.stack(figures)


def _line(ratio: _Ratio, low: float, high: float, error: float) -> Estimate:
    least, expected, greatest = ratio.tie_bounds
    return Estimate(
        dataset=ratio.scores.dataset,
        model=ratio.scores.model,
        slice="all",
        measure=str(ratio.measure),
        estimate=_overall(ratio),
        ci_low=_known(low),
        ci_high=_known(high),
        std_error=_known(error),
        n_queries=len(ratio.scores.query_ids),
        n_missing=int(ratio.scores.missing.sum()),
        n_undefined=ratio.n_undefined,
        ties_least=least,
        ties_expected=expected,
        ties_greatest=greatest,
    )


def _figures(result: Scores) -> list[Estimate]:
    """The lines of the measures that have one figure per dataset."""
    n_missing = int(result.missing.sum())
    return [
        Estimate(
            dataset=result.dataset,
            model=result.model,
            slice="all",
            measure=str(measure),
            estimate=_known(figure),
            ci_low=None,
            ci_high=None,
            std_error=None,
            n_queries=len(result.query_ids),
            n_missing=n_missing,
            n_undefined=0,
        )
        for measure, figure in result.figures.items()
    ]


def _of(lines: Sequence[Estimate], result: Scores) -> list[Estimate]:
    return [line for line in lines if line.model == result.model]


def _known(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None
