"""Evidence that gates judge by, the base class of their kinds, and their error rates.

A gate with looks spends a part of its error on each new output. The same scores give the same verdict again at no cost.
By Bonferroni's inequality the parts add up.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import LEAST_CLUSTERS, Looks, PlannedGate
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.config.values import Share
from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.data.joined import Groups, ModelKey, Scores
from rankledger.pipeline.data.outputs import absent_replicates
from rankledger.pipeline.data.rows import ExternalMetrics
from rankledger.pipeline.gates.verdicts import LookCount, LookKey, Outcome, SpentLooks, Verdict, VerdictKey
from rankledger.pipeline.inference.power import POWER, least_count, standard_errors
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
    failed_nights: Mapping[VerdictKey, int] | str
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
        for scored in counted:
            lacking, n_gone = samples[scored.dataset].lacking, len(earlier["gone"].get(scored.dataset, ()))
            missing[scored.dataset, scored.model] = inputs.missing_share(scored, lacking, n_gone)
            if (lacking(scored) & ~scored.missing).any():
                unscored.append((scored.dataset, scored.model))
        return cls(
            samples=samples,
            rule=rule,
            query_ids={scored.dataset: scored.query_ids for scored in scores},
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


_DIGITS = 16  # of a digest, in hexadecimal
_NAMED = 5  # slices that a line names
_SPREAD = 0.1  # of differences, as a share of the range, before anything is measured


def errors_of(gate: PlannedGate, confidence: float) -> tuple[float, float] | None:
    """Return a gate's rates of false alarms and of missed failures at its limit. None for gates that count."""
    settings = gate.settings
    if not settings.by_interval:
        return None
    passing = 1 - confidence if settings.kind == "query_drop" else (1 - confidence) / 2
    looks = settings.looks
    failing = passing if looks is None else min(passing, looks.error / looks.changed_outputs)
    return failing / gate.n_sharing, passing


def false_alarm_rate(gates: Sequence[PlannedGate], confidence: float) -> str:
    """Return a sentence on the share of nights in which a gate fails though all models are at its limit.

    Independent gates do so in 1 - Π(1 - error) of nights, any gates in at most Σ error. Empty without such gates.
    """
    errors = [
        errors[0] * (2 if gate.settings.at_least is not None and gate.settings.at_most is not None else 1)
        for gate in gates
        if (errors := errors_of(gate, confidence)) is not None
    ]
    if not errors:
        return ""
    which = f"{len(errors)} of {len(gates)} gates use intervals" if len(gates) > 1 else "the gate uses an interval"
    rate = min(1.0, math.fsum(errors))
    often = f"a gate fails by chance in at most {_percent(rate)} of nights"
    text = f"false alarms: {which}; with every model exactly at its limits, {often}"
    if len(errors) == 1 or any(gate.n_sharing > 1 for gate in gates):
        return text
    independent = _percent(1 - math.prod(1 - error for error in errors))
    lower = f"gates_error_rate: per_night lowers this to {_percent(rate / len(errors))}"
    return f"{text} ({independent} if gates err independently); {lower}"


def small_slices(gates: Sequence[PlannedGate], groups: Mapping[str, Groups], confidence: float) -> Iterator[str]:
    """Yield a line per gate and dataset on slices with too few queries or clusters to be decided.

    A margin counts as decided if an unchanged model passes with a power of 80% and differences have a standard
    deviation of a tenth of the measure's range.
    """
    for gate in gates:
        columns = tuple(f"{column}=" for column in gate.settings.slices)
        for dataset in dict.fromkeys(dataset for dataset, _ in gate.tasks if columns and dataset in groups):
            clusters = groups[dataset].clusters
            counts = {
                name: int(mask.sum()) if clusters is None else len(np.unique(clusters[mask]))
                for name, mask in groups[dataset].slices.items()
                if name.startswith(columns)
            }
            needed, why = _decisive_count(gate, confidence)
            small = [f"{name} ({n:,})" for name, n in counts.items() if n < needed]
            if small:
                unit = "queries" if clusters is None else "clusters"
                names = ", ".join(small[:_NAMED]) + (f" and {len(small) - _NAMED} more" if len(small) > _NAMED else "")
                share = f"{len(small)} of {len(counts)} slices on {dataset} are too small to judge: {names}"
                yield f"gate {gate.name}: {share}; {why} takes {needed:,} {unit}"


def _decisive_count(gate: PlannedGate, confidence: float) -> tuple[int, str]:
    margin, allow, errors = gate.settings.margin, gate.settings.allow, errors_of(gate, confidence)
    if gate.settings.kind == "query_drop" and errors is not None:
        n = math.ceil(math.log(errors[1]) / math.log1p(-allow))
        return max(LEAST_CLUSTERS, n), f"a share of {100 * allow:g}% with no query lost"
    ranges = [measure.metric.range for measure in gate.measures]
    spread = max((_SPREAD * (high - low) for low, high in ranges), default=0)
    if margin is None or isinstance(margin, Share) or margin <= 0 or not math.isfinite(spread):
        return LEAST_CLUSTERS, "a verdict"

    def decides(n: int) -> bool:
        return spread / math.sqrt(n) * standard_errors(1 - confidence, POWER, n - 1) <= margin

    n = LEAST_CLUSTERS if decides(LEAST_CLUSTERS) else least_count(decides, LEAST_CLUSTERS)
    return n, f"a margin of {margin:g}, if differences have a standard deviation of {spread:g},"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:.0f}%"


def count_look(
    gate: PlannedGate, looks: Looks, subjects: Sequence[Subject], evidence: Evidence
) -> tuple[LookCount | None, str, bool]:
    """Count the look of a gate at one output on one dataset, by one or several measures.

    Returns:
        The looks spent, this one included, or None if unknown; a note; and False if the looks are spent or unknown,
        so that the verdicts are inconclusive.
    """
    n_looks, digest = looks.changed_outputs, _digest(gate, subjects, evidence)
    if isinstance(evidence.looks, str):
        unknown = f"unknown how many of {n_looks} looks are spent: {evidence.looks}"
        return (None, unknown, False) if digest else (None, "", True)
    spent = _counting(gate, evidence.looks.get((gate.name, *subjects[0][:2]), {}), evidence.night)
    n_spent = len(spent)
    if not digest:
        return LookCount(n_spent, n_looks), "", True
    if digest in spent:
        note = f"these scores were compared before: {n_spent} of {n_looks} looks spent"
        return LookCount(n_spent, n_looks, digest), note, True
    if n_spent >= n_looks:
        advice = f"all {n_looks} looks are spent, the last on {max(spent.values())}"
        return LookCount(n_spent, n_looks), f"{advice}; set looks.since to a later day to renew them", False
    return LookCount(n_spent + 1, n_looks, digest), f"look {n_spent + 1} of {n_looks}", True


def looks_after(
    gates: Sequence[PlannedGate],
    verdicts: Sequence[Verdict],
    before: Mapping[LookKey, Mapping[str, str]] | str,
    night: date,
) -> tuple[SpentLooks, ...] | None:
    """Return all looks spent, now and before, also of other gates. None if unknown."""
    if isinstance(before, str):
        return None
    by_name = {gate.name: gate for gate in gates}
    after = {
        key: _counting(by_name[key[0]], days, night) if key[0] in by_name else dict(days)
        for key, days in before.items()
    }
    for verdict in verdicts:
        if verdict.looks is not None and verdict.looks.output:
            key = verdict.gate, verdict.dataset, verdict.model
            after.setdefault(key, {}).setdefault(verdict.looks.output, str(night))
    return tuple(SpentLooks(*key, outputs) for key, outputs in after.items() if outputs)


def _counting(gate: PlannedGate, days: Mapping[str, str], night: date) -> dict[str, str]:
    since = gate.settings.looks.since if gate.settings.looks else None
    return {digest: day for digest, day in days.items() if since is None or since > night or day >= str(since)}


def _digest(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> str:
    """Return a digest of margin, slices and the scores of both models. Empty if they score alike on all queries."""
    margin, slices = gate.settings.margin, gate.settings.slices
    digest, is_same = hashlib.sha256(repr((margin, isinstance(margin, Share), slices)).encode()), True
    for dataset, model, measure in subjects:
        baseline = evidence.baselines[gate.name, dataset, model].key
        contributions = evidence.samples[dataset].contributions
        first, second = contributions[model, measure], contributions[baseline, measure]
        digest.update(f"{measure}\n".encode())
        for side in (first, second):
            digest.update(side.numerators.tobytes())
            digest.update(side.denominators.tobytes())
        is_same &= np.array_equal(first.numerators, second.numerators, equal_nan=True)
        is_same &= np.array_equal(first.denominators, second.denominators)
    return "" if is_same else digest.hexdigest()[:_DIGITS]
