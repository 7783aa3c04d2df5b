"""Scores of queries, and the lines of the summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from metrics.block import Bools, Floats
from metrics.measure import Measure

__all__ = ["Estimate", "Scores"]


@dataclass(frozen=True, eq=False)
class Scores:
    """One model's scores on one dataset: a row per judged query, in the order of their ids as UTF-8 bytes.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        query_ids: (Q,) ids.
        measures: the M measures of the rows of `values`.
        values: (M, Q) scores, NaN where undefined.
        weights: (M, Q) what each query weighs in the mean: 1, or its pairs where the measure is pooled.
        figures: the measures that have one figure per dataset and none per query.
        missing: (Q,) whether the query is without output.
        tie_bounds: (3, M, Q) the least, mean and greatest score over all orders of tied documents, where asked for;
            NaN where undefined, and for measures that rank nothing.
        moments: by measure the (S, Q) means that its figure is made of, where that is none of its scores.
        figure_errors: the jackknife standard error of each of `figures`, NaN where it is undefined.
    """

    dataset: str
    model: str
    query_ids: npt.NDArray[np.object_]
    measures: tuple[Measure, ...]
    values: Floats
    weights: Floats
    figures: Mapping[Measure, float]
    missing: Bools
    tie_bounds: Floats | None = None
    moments: Mapping[Measure, Floats] = field(default_factory=dict)
    figure_errors: Mapping[Measure, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimate:
    """One line of the summary; None where there is no figure.

    Attributes:
        dataset: the dataset's name; `*` for the mean of all datasets.
        model: the model's name.
        slice: `all`, or `column=value` of the queries table.
        measure: the measure as it is written.
        estimate: the figure over the queries of the slice; None where it is undefined.
        ci_low: lower end of the confidence interval.
        ci_high: upper end.
        std_error: standard deviation of the figure over the resamples; by the jackknife for a figure of a set.
        n_queries: judged queries of the slice.
        n_missing: those without output.
        n_undefined: those whose score is undefined.
        n_clusters: clusters that the figure rests on: those of the queries that are in its mean, each query being one
            where there are no clusters.
        mark: why the interval is not to be trusted: `sparse`, where it rests on fewer than 30 (effective) clusters away
            from the most frequent value, `degenerate`, where all are equal; or empty.
        ties_least: the least figure over all orders of tied documents; None where that was not asked for.
        ties_expected: the mean figure over them.
        ties_greatest: the greatest.
    """

    dataset: str
    model: str
    slice: str
    measure: str
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    n_queries: int
    n_missing: int
    n_undefined: int
    n_clusters: int = 0
    mark: str = ""
    ties_least: float | None = None
    ties_expected: float | None = None
    ties_greatest: float | None = None
