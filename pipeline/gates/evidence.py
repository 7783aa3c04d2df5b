"""What gates are judged by: the samples, the baselines, what is missing, and what earlier nights came to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import numpy.typing as npt

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.planned_gates import LEAST_CLUSTERS, PlannedGate
from rankledger.pipeline.data.scores import ModelKey
from rankledger.pipeline.gates.verdicts import LookKey, VerdictKey
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.slice_search import SearchRule
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.inference.tables import ALL

Subject = tuple[str, str, Measure]
"""What a gate looks at: a dataset, a model and a measure."""


@dataclass(frozen=True)
class Baseline:
    """What a gate compares one model with on one dataset.

    Attributes:
        key: what its scores are found by in the dataset's sample; empty where it has none.
        label: how verdicts refer to it, such as `bm25 in 20261120T020000Z-nightly-1f0c9a2b`.
        reasons: why it cannot be compared, by measure; a measure that can be is not among them.
        first: whether that is because there is no earlier evaluation yet.
        night: how reasons name a model of a record, such as `the night 2026-11-20`; empty for one of this evaluation.
        n_gone: by measure, queries that the record scored and that the dataset no longer has.
    """

    key: ModelKey
    label: str
    reasons: Mapping[Measure, str] = field(default_factory=dict)
    first: bool = False
    night: str = ""
    n_gone: Mapping[Measure, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How reasons name it."""
        return self.night or self.label


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that gates are judged by.

    Attributes:
        samples: the resamples by dataset; the scores of baselines stand among those of its models.
        rule: how an interval is read off, before the number of lines is accounted for.
        query_ids: (Q,) the ids of each dataset's queries, in the order of its scores.
        missing: the share of judged queries without output or score, by (dataset, model).
        unscored: the (dataset, model) that lack scores of queries with output.
        gone: the queries of earlier evaluations that a dataset without a queries table no longer has, by dataset.
        lengths: (Q,) the documents of each list, by (dataset, model); of replicates those of the shortest.
        compared: the models that others are compared with, beside gates.
        failures: why an output is missing or was refused, by (dataset, model).
        external_metrics: those of each model, by model and name; or the reason why a model's cannot be read.
        baselines: by (gate, dataset, model).
        nights: how many of the directly preceding evaluations failed in a row, none where a line is not named; or the
            reason why that is not known.
        night: the day of the evaluation, by which looks are spent and waivers end.
        search: how slices are searched in which a drop sits; None where they are not.
        absent: by (dataset, model), which replicates of those that are evaluated without them have no output, in words.
        looks: the looks spent before: the day of each by the digest of its scores; or the reason why that is not known.
    """

    samples: Mapping[str, Sample]
    rule: IntervalRule
    query_ids: Mapping[str, npt.NDArray[np.object_]]
    missing: Mapping[tuple[str, str], float]
    failures: Mapping[tuple[str, str], str]
    external_metrics: Mapping[str, Mapping[str, float] | str]
    baselines: Mapping[tuple[str, str, str], Baseline]
    nights: Mapping[VerdictKey, int] | str
    night: date
    search: SearchRule | None = None
    looks: Mapping[LookKey, Mapping[str, str]] | str = field(default_factory=dict)
    absent: Mapping[tuple[str, str], str] = field(default_factory=dict)
    unscored: Collection[tuple[str, str]] = ()
    gone: Mapping[str, Collection[str]] = field(default_factory=dict)
    lengths: Mapping[tuple[str, str], npt.NDArray[np.int64]] = field(default_factory=dict)
    compared: Collection[str] = ()

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
        if (baseline.key, measure) in self.samples[dataset].contributions:
            return None
        reason = self.failures.get((dataset, baseline.key)) if isinstance(baseline.key, str) else None
        return reason or f"{baseline.name} has no scores of {measure} on {dataset}"


def slices_of(gate: PlannedGate, sample: Sample, model: str, measure: Measure) -> tuple[list[str], dict[str, int]]:
    """`all` and the slices of the gate's columns with clusters enough to be judged; and the others, with theirs."""
    asked = {
        name: sample.figure(model, measure, name).n_clusters
        for name in sample.slices_of(measure)
        if any(name.startswith(f"{column}=") for column in gate.slices)
    }
    small = {name: n for name, n in asked.items() if n < LEAST_CLUSTERS}
    return [ALL, *(name for name in asked if name not in small)], small
