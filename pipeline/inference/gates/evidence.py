"""What gates are judged by: plain values, gathered beforehand, so that judging reads no file and no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

import numpy as np
import numpy.typing as npt

from metrics.measure import Measure
from pipeline.inference.estimates import IntervalRule
from pipeline.inference.intervals import LEAST_CLUSTERS
from pipeline.inference.samples import ALL, Sample
from pipeline.verdicts import PlannedGate

__all__ = ["UNSETTLED", "Baseline", "Evidence", "NightKey", "Subject", "slices_of"]

UNSETTLED: Literal["fail"] = "fail"
"""The effect of a verdict before it is settled what its outcome comes to: to forget that would block, not let pass."""

NightKey = tuple[str, str, str, str, str]
"""A line of a gate over the nights: its gate, dataset, model, measure and slice, as a verdict names them."""

Subject = tuple[str, str, Measure]
"""What a gate looks at: a dataset, a model and a measure."""


@dataclass(frozen=True)
class Baseline:
    """What a gate holds one model against on one dataset.

    Attributes:
        column: the name under which its scores stand in the dataset's sample; empty where it has none.
        label: how it is printed, such as `bm25 in 20261120T020000Z-nightly-1f0c9a2b`.
        reasons: why it cannot be compared, by measure; a measure that can be is not among them.
        first: whether that is because there is no earlier evaluation yet.
    """

    column: str
    label: str
    reasons: Mapping[Measure, str] = field(default_factory=dict)
    first: bool = False


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that gates are judged by.

    Attributes:
        samples: the resamples by dataset; the scores of baselines stand among those of its models.
        rule: how an interval is read off, before the number of lines is accounted for.
        query_ids: (Q,) the ids of each dataset's queries, in the order of its scores.
        missing: the share of judged queries without output, by (dataset, model).
        failures: why an output is missing or was refused, by (dataset, model).
        extras: the numbers from outside, by model and name; or the reason why a model's cannot be read.
        baselines: by (gate, dataset, model).
        nights: how many of the directly preceding evaluations failed in a row, none where a line is not named; or the
            reason why that is not known.
        today: the day by which waivers end.
    """

    samples: Mapping[str, Sample]
    rule: IntervalRule
    query_ids: Mapping[str, npt.NDArray[np.object_]]
    missing: Mapping[tuple[str, str], float]
    failures: Mapping[tuple[str, str], str]
    extras: Mapping[str, Mapping[str, float] | str]
    baselines: Mapping[tuple[str, str, str], Baseline]
    nights: Mapping[NightKey, int] | str
    today: date

    def has(self, dataset: str, measure: Measure) -> bool:
        """Whether the dataset measures it: one of several measures of a gate may be another dataset's."""
        sample = self.samples.get(dataset)
        return sample is None or any(measure == scored for _, scored in sample.contributions)

    def incomparable(self, gate: PlannedGate, subject: Subject) -> str | None:
        """Why the model cannot be compared with the gate's baseline by this measure; None where it can."""
        dataset, model, measure = subject
        baseline = self.baselines[gate.name, dataset, model]
        if measure in baseline.reasons:
            return baseline.reasons[measure]
        if (baseline.column, measure) in self.samples[dataset].contributions:
            return None
        reason = self.failures.get((dataset, baseline.column))
        return reason or f"{baseline.label} has no scores of {measure} on {dataset}"


def slices_of(gate: PlannedGate, sample: Sample, model: str, measure: Measure) -> Iterator[str]:
    """`all`, and every slice of the gate's columns that has clusters enough to be judged."""
    yield ALL
    for name in sample.slices:
        asked = any(name.startswith(f"{column}=") for column in gate.slices)
        if asked and sample.figure(model, measure, name).n_clusters >= LEAST_CLUSTERS:
            yield name
