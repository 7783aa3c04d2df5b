"""Evidence that gates judge by, and the base class of their kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import LEAST_CLUSTERS, PlannedGate
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.data.joined import ModelKey, Scores
from rankledger.pipeline.data.outputs import absent_replicates
from rankledger.pipeline.data.rows import ExternalMetrics
from rankledger.pipeline.gates.verdicts import LookKey, Outcome, Verdict, VerdictKey
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.slice_search import SearchRule
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.inference.tables import ALL

Subject = tuple[str, str, Measure]
"""What a gate looks at: a dataset, a model and a measure."""

UNSETTLED: Literal["fail"] = "fail"
"""Effect of a verdict before it is weighed: to forget that would block, not let pass."""

ROUNDING = 1e-12
"""Rounding of a share or a drop: 0.9 - 0.7 is above 0.2 by less, and no drop of more than 0.2."""


@dataclass(frozen=True)
class Baseline:
    """Scores that a gate compares one model with on one dataset."""

    key: ModelKey  # of its scores in the dataset's sample; empty if it has none
    label: str  # in verdicts, such as `bm25 in 20261120T020000Z-nightly-1f0c9a2b`
    # why it cannot be compared, by measure; a measure that can be is not among them
    reasons: Mapping[Measure, str] = field(default_factory=dict)
    first: bool = False  # True if there is no earlier evaluation yet
    night: str = ""  # in reasons, such as `the night 2026-11-20`; empty for a model of this evaluation
    # by measure, queries that the record scored and that the dataset no longer has
    n_gone: Mapping[Measure, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.night or self.label


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that gates judge by. Tasks are (dataset, model)."""

    samples: Mapping[str, Sample]  # by dataset; the scores of baselines are among those of its models
    rule: IntervalRule  # before the number of lines is accounted for
    query_ids: Mapping[str, npt.NDArray[np.object_]]  # (Q,) ids of each dataset's queries, in the order of its scores
    missing: Mapping[tuple[str, str], float]  # share of judged queries without output or score, by task
    failures: Mapping[tuple[str, str], str]  # why an output is missing or was rejected, by task
    # by model and name; or the reason why a model's cannot be read
    external_metrics: Mapping[str, Mapping[str, float] | str]
    baselines: Mapping[tuple[str, str, str], Baseline]  # by (gate, dataset, model)
    # number of the directly preceding evaluations that failed in a row; or why that is unknown
    nights: Mapping[VerdictKey, int] | str
    night: date  # by which looks are spent and waivers end
    search: SearchRule | None = None  # None if no slices are searched
    # looks spent before: the day of each by the digest of its scores; or why that is unknown
    looks: Mapping[LookKey, Mapping[str, str]] | str = field(default_factory=dict)
    # which replicates of a task have no output, in words
    absent: Mapping[tuple[str, str], str] = field(default_factory=dict)
    unscored: Collection[tuple[str, str]] = ()  # tasks that lack scores of queries with output
    # queries of earlier evaluations that a dataset without a queries table no longer has
    gone: Mapping[str, Collection[str]] = field(default_factory=dict)
    # (Q,) documents of each list, by task; of replicates those of the shortest
    lengths: Mapping[tuple[str, str], npt.NDArray[np.int64]] = field(default_factory=dict)
    compared: Collection[str] = ()  # models that others are compared with, beside gates

    @classmethod
    def gather(
        cls,
        plan: Plan,
        inputs: Inputs,
        scores: Sequence[Scores],
        samples: Mapping[str, Sample],
        rule: IntervalRule,
        external_metrics: Mapping[str, ExternalMetrics],
        **earlier: Any,
    ) -> Evidence:
        """Return the evidence of an evaluation. `earlier` has the fields that need earlier evaluations."""
        counted = scores if any(gate.settings.kind == "complete" for gate in plan.gates) else ()
        missing, unscored = {}, []
        for own in counted:
            lacking, n_gone = samples[own.dataset].lacking, len(earlier["gone"].get(own.dataset, ()))
            missing[own.dataset, own.model] = inputs.missing_share(own, lacking, n_gone)
            if (lacking(own) & ~own.missing).any():
                unscored.append((own.dataset, own.model))
        return cls(
            samples=samples,
            rule=rule,
            query_ids={own.dataset: own.query_ids for own in scores},
            missing=missing,
            unscored=unscored,
            lengths=inputs.lengths,
            compared=plan.comparison.rules.baselines if plan.comparison else (),
            failures=inputs.reasons,
            external_metrics={name: extra.reason or extra.numbers for name, extra in external_metrics.items()},
            absent=absent_replicates(inputs.failures, inputs.replicates),
            **earlier,
        )

    def has(self, dataset: str, measure: Measure) -> bool:
        sample = self.samples.get(dataset)
        return sample is None or any(measure == scored for _, scored in sample.contributions)

    def explain_incomparable(self, gate: PlannedGate, subject: Subject) -> str | None:
        dataset, model, measure = subject
        baseline = self.baselines[gate.name, dataset, model]
        if measure in baseline.reasons or (baseline.key, measure) in self.samples[dataset].contributions:
            return baseline.reasons.get(measure)
        reason = self.failures.get((dataset, baseline.key)) if isinstance(baseline.key, str) else None
        return reason or f"{baseline.name} has no scores of {measure} on {dataset}"


def list_slices(gate: PlannedGate, sample: Sample, model: str, measure: Measure) -> tuple[list[str], dict[str, int]]:
    """Return `all` and the slices with enough clusters to be judged, and the others with their clusters."""
    n_clusters = {
        name: sample.figure(model, measure, name).n_clusters
        for name in sample.slices_of(measure)
        if any(name.startswith(f"{column}=") for column in gate.settings.slices)
    }
    small = {name: n for name, n in n_clusters.items() if n < LEAST_CLUSTERS}
    return [ALL, *(name for name in n_clusters if name not in small)], small


class GateJudge(ABC):
    """Kind of gate. Each has a module and a row in the table of `judge`."""

    by_measure: ClassVar[bool] = True  # False for a kind that judges a task as a whole, whatever the measures
    hinders: ClassVar[bool] = False  # True if no other gate judges a model that fails

    @abstractmethod
    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        """Return the verdicts on these subjects before they are weighed. None of the subjects is hindered."""

    def fails_anyway(self, gate: PlannedGate, verdict: Verdict, measure: Measure, share: float) -> bool:
        """Return whether a failure remains for any scores of this share of queries."""
        return False


def new_verdict(
    gate: PlannedGate, subject: tuple[str, str, Measure | str], outcome: Outcome, reason: str, slice: str = ALL
) -> Verdict:
    """Return a verdict that is not weighed yet."""
    dataset, model, measure = subject
    return Verdict(gate.name, dataset, model, str(measure), slice, outcome, UNSETTLED, reason)


def outcome_of_slice(gate: PlannedGate, slice: str, outcome: Outcome) -> Outcome:
    """Return the outcome, or `not judged` for an undecided slice that the gate lets pass."""
    is_small = outcome == "inconclusive" and slice != ALL and gate.settings.on_inconclusive_slice == "pass"
    return "not judged" if is_small else outcome


def name_unit(sample: Sample) -> str:
    """Return the sampling unit: `queries` or `clusters`."""
    return "queries" if sample.groups.clusters is None else "clusters"
