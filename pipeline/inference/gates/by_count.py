"""Gates without an interval: queries that crashed, queries without output, and numbers from outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metrics.block import Floats, divide
from pipeline.inference.gates.evidence import UNSETTLED, Evidence, Subject, slices_of
from pipeline.inference.gates.line import limits_of, worst
from pipeline.inference.gates.wording import amount, called
from pipeline.inference.ratios import Contributions
from pipeline.inference.samples import ALL
from pipeline.verdicts import PlannedGate, Verdict

__all__ = ["judge_complete", "judge_drops", "judge_extra"]

_NAMED = 5  # queries that a reason names
_ROUNDING = 1e-12  # 0.9 - 0.7 is above 0.2 by less than this, and no drop of more than 0.2


def judge_drops(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
    """How many queries dropped by more than one may, slice by slice."""
    return [
        _drops(gate, subject, name, evidence)
        for subject in subjects
        for name in slices_of(gate, evidence.samples[subject[0]], *subject[1:])
    ]


def _drops(gate: PlannedGate, subject: Subject, slice: str, evidence: Evidence) -> Verdict:
    dataset, model, measure = subject
    assert gate.max_query_drop is not None, "a gate of this kind has it"
    sample, baseline = evidence.samples[dataset], evidence.baselines[gate.name, dataset, model]
    before, after = (_per_query(sample.contributions[name, measure]) for name in (baseline.column, model))
    drops = (after - before) if measure.metric.direction == "lower" else (before - after)
    mask = sample.slices[slice]
    drops = drops if mask is None else np.where(mask, drops, np.nan)
    crashed = np.flatnonzero(drops > gate.max_query_drop + _ROUNDING)  # NaN, where one is undefined, is not above
    crashed = crashed[np.argsort(-drops[crashed], kind="stable")]
    ids = evidence.query_ids[dataset]
    named = [f"{ids[query]} ({amount(before[query])} to {amount(after[query])})" for query in crashed[:_NAMED]]
    queries = {0: "no query", 1: "1 query"}.get(len(crashed), f"{len(crashed):,} queries")
    reason = f"{queries} dropped by more than {gate.max_query_drop:g} in {called(measure, model, slice)}"
    reason += f" against {baseline.label}; at most {gate.allow} may" + (f": {', '.join(named)}" if named else "")
    return Verdict(
        gate=gate.name,
        dataset=dataset,
        model=model,
        measure=str(measure),
        slice=slice,
        outcome="pass" if len(crashed) <= gate.allow else "fail",
        effect=UNSETTLED,
        reason=reason,
        reference=baseline.label,
        estimate=float(len(crashed)),
        limit=float(gate.allow),
    )


def _per_query(contributions: Contributions) -> Floats:
    """(Q,): the score of each query; NaN where it does not count."""
    means = divide(contributions.numerators, contributions.denominators)
    scores: Floats = contributions.measure.aggregation.backward(means)[0]
    return scores


def judge_complete(gate: PlannedGate, evidence: Evidence) -> list[Verdict]:
    """The share of judged queries without output, task by task; an output that is missing as a whole fails."""
    return [_complete(gate, dataset, model, evidence) for dataset, model in gate.tasks]


def _complete(gate: PlannedGate, dataset: str, model: str, evidence: Evidence) -> Verdict:
    assert gate.max_missing is not None, "a gate of this kind has it"
    reason = evidence.failures.get((dataset, model))
    share = None if reason is not None else evidence.missing[dataset, model]
    fails = share is None or share > gate.max_missing + _ROUNDING
    if reason is None:
        reason = f"{share:.2%} of the judged queries are without output of {model}"
        reason += f"; at most {gate.max_missing * 100:.6g}% are allowed"
    return Verdict(
        gate=gate.name,
        dataset=dataset,
        model=model,
        measure="",
        slice=ALL,
        outcome="fail" if fails else "pass",
        effect=UNSETTLED,
        reason=reason,
        estimate=share,
        limit=gate.max_missing,
    )


def judge_extra(gate: PlannedGate, evidence: Evidence) -> list[Verdict]:
    """A number from outside, model by model."""
    return [_extra(gate, dataset, model, evidence) for dataset, model in gate.tasks]


def _extra(gate: PlannedGate, dataset: str, model: str, evidence: Evidence) -> Verdict:
    assert gate.extra is not None, "a gate of this kind has it"
    name, limits = gate.extra, limits_of(gate)
    numbers = evidence.extras.get(model, f"{model} has no `extra`; add one to the model, or leave it out of the gate")
    number: float | None = None
    outcome, limit = worst([("inconclusive", bound) for bound in limits])
    if isinstance(numbers, str):
        reason = numbers
    elif name not in numbers:
        reason = f"the `extra` of {model} has no number {name!r}"
    else:
        number = numbers[name]
        outcome, limit = worst([("pass" if bound.holds(number) else "fail", bound) for bound in limits])
        reason = f"{name} of {model} is {number:,.6g}; {limit}"
    return Verdict(
        gate=gate.name,
        dataset=dataset,
        model=model,
        measure=name,
        slice=ALL,
        outcome=outcome,
        effect=UNSETTLED,
        reason=reason,
        estimate=number,
        limit=limit.value,
    )
