"""Gates to verdicts: what each gate finds, by count or by interval, and the result for each model.

A line passes where its whole interval is on the good side of the limit, fails where it is on the other, and is
inconclusive where it straddles it or rests on too little. All lines of a gate are judged at one level, so that the
gate as a whole errs no more often than one line would.

Outputs that are incomplete are found first, for nothing else can be judged of them. What a gate finds, its outcome, is
then weighed: what an undecided line comes to, how many nights in a row it must fail, and whether it is waived.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from rankledger.metrics.block import Floats, divide
from rankledger.pipeline.inference.gate_bounds import (
    UNSETTLED,
    Evidence,
    GateCheck,
    Limit,
    Subject,
    limits_of,
    simultaneous,
    slices_of,
    worst,
)
from rankledger.pipeline.inference.gate_messages import format_amount, reason_of, subject_name
from rankledger.pipeline.inference.resampling import Contributions
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.types.results import ALL, GateKind, Outcome, PlannedGate, Verdict

__all__ = ["judge", "judge_complete", "judge_differences", "judge_drops", "judge_extra", "judge_figures"]

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
    before, after = (_per_query(sample.contributions[name, measure]) for name in (baseline.key, model))
    drops = (after - before) if measure.metric.direction == "lower" else (before - after)
    mask = sample.slices[slice]
    drops = drops if mask is None else np.where(mask, drops, np.nan)
    crashed = np.flatnonzero(drops > gate.max_query_drop + _ROUNDING)  # NaN, where one is undefined, is not above
    crashed = crashed[np.argsort(-drops[crashed], kind="stable")]
    ids = evidence.query_ids[dataset]
    named = [
        f"{ids[query]} ({format_amount(before[query])} to {format_amount(after[query])})" for query in crashed[:_NAMED]
    ]
    queries = {0: "no query", 1: "1 query"}.get(len(crashed), f"{len(crashed):,} queries")
    reason = f"{queries} dropped by more than {gate.max_query_drop:g} in {subject_name(measure, model, slice)}"
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


def judge_figures(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
    """Figures held to limits, slice by slice."""
    lines = []
    for dataset, model, measure in subjects:
        sample = evidence.samples[dataset]
        for name in slices_of(gate, sample, model, measure):
            figure = sample.figure(model, measure, name)
            lines.append(GateCheck((dataset, model, measure), name, figure, figure, limits_of(gate), _unit(sample)))
    return _interval_verdicts(gate, lines, evidence.rule)


def judge_differences(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
    """Differences held to a margin, slice by slice."""
    lines: list[GateCheck] = []
    for dataset in dict.fromkeys(dataset for dataset, _, _ in subjects):
        own = [subject for subject in subjects if subject[0] == dataset]
        lines += _differences(gate, own, evidence.samples[dataset], evidence)
    return _interval_verdicts(gate, lines, evidence.rule)


def _differences(
    gate: PlannedGate, subjects: Sequence[Subject], sample: Sample, evidence: Evidence
) -> Iterator[GateCheck]:
    """The lines of one dataset. Their differences are asked for together: those of fewer queries are drawn anew."""
    asked = [(subject, name) for subject in subjects for name in slices_of(gate, sample, *subject[1:])]
    pairs = [pair for subject, name in asked for pair in _pairs(gate, subject, name, evidence)]
    found = iter(sample.differences(pairs))
    for subject, name in asked:
        baseline = evidence.baselines[gate.name, *subject[:2]]
        plain = next(found)
        if not gate.relative:
            yield GateCheck(subject, name, plain, plain, (Limit(0.0 - gate.margin),), _unit(sample), baseline)
            continue
        judged, own = next(found), next(found)
        theirs = _sign(subject) * (own.estimate - plain.estimate)
        factor = _factor(gate, subject)
        yield GateCheck(subject, name, judged, plain, (Limit(0.0),), _unit(sample), baseline, factor, theirs)


def _pairs(gate: PlannedGate, subject: Subject, slice: str, evidence: Evidence) -> list[Pair]:
    """The difference; where the margin is relative, that to a share of the baseline too, and the model's own figure."""
    dataset, model, measure = subject
    key = evidence.baselines[gate.name, dataset, model].key
    factors = (1.0, _factor(gate, subject), 0.0) if gate.relative else (1.0,)
    return [Pair(model, key, measure, slice, factor) for factor in factors]


def _factor(gate: PlannedGate, subject: Subject) -> float:
    """The share of the baseline's figure that must be kept, or of its error that may be made."""
    return 1.0 - _sign(subject) * gate.margin


def _sign(subject: Subject) -> float:
    return -1.0 if subject[2].metric.direction == "lower" else 1.0


def _unit(sample: Sample) -> str:
    return "queries" if sample.groups.clusters is None else "clusters"


def _interval_verdicts(gate: PlannedGate, lines: Sequence[GateCheck], rule: IntervalRule) -> list[Verdict]:
    joint = simultaneous([line.judged for line in lines if line.decidable], rule)
    return [_interval_verdict(gate, line, joint) for line in lines]


def _interval_verdict(gate: PlannedGate, line: GateCheck, rule: IntervalRule) -> Verdict:
    dataset, model, measure = line.subject
    ends = rule.of(line.judged)
    outcome, limit = line.outcome(ends)
    needed = line.n_needed(ends, limit) if outcome == "inconclusive" else None
    return Verdict(
        gate=gate.name,
        dataset=dataset,
        model=model,
        measure=str(measure),
        slice=line.slice,
        outcome=outcome,
        effect=UNSETTLED,
        reason=reason_of(line, ends, outcome, limit, needed),
        reference=line.baseline.label if line.baseline else None,
        estimate=line.judged.estimate if math.isfinite(line.judged.estimate) else None,
        ci_low=ends[0],
        ci_high=ends[1],
        limit=limit.value,
        confidence=None if ends[0] is None else rule.confidence,
        n_needed=needed,
        mark=line.plain.mark,
    )


_Effect: TypeAlias = Literal["pass", "warn", "fail"]
_Judge: TypeAlias = Callable[[PlannedGate, Sequence[Subject], Evidence], list[Verdict]]
_Incomplete: TypeAlias = Mapping[tuple[str, str], Verdict]  # the verdict that an output is incomplete, by its task

_JUDGES: Mapping[GateKind, _Judge] = MappingProxyType(
    {"difference": judge_differences, "limit": judge_figures, "query_drop": judge_drops}
)


def judge(gates: Sequence[PlannedGate], evidence: Evidence) -> tuple[Verdict, ...]:
    """A verdict per gate, dataset, model, measure and slice, in the order of the gates and their tasks.

    Slices of fewer than 30 clusters have none: they are shown in the summary and not judged.

    Args:
        gates: with the models and datasets that they are for.
        evidence: all that they are judged by.
    """
    complete = {
        gate.name: [_settled(gate, verdict, evidence, {}) for verdict in judge_complete(gate, evidence)]
        for gate in gates
        if gate.kind == "complete"
    }
    blocking_last = sorted(chain.from_iterable(complete.values()), key=lambda verdict: verdict.effect == "fail")
    incomplete = {(verdict.dataset, verdict.model): verdict for verdict in blocking_last if verdict.outcome == "fail"}
    found = [complete[gate.name] if gate.name in complete else _verdicts(gate, evidence, incomplete) for gate in gates]
    return tuple(chain.from_iterable(found))


def _verdicts(gate: PlannedGate, evidence: Evidence, incomplete: _Incomplete) -> list[Verdict]:
    """A gate's verdicts, those that nothing could be found for in their places among the others."""
    if gate.kind == "extra":
        found = judge_extra(gate, evidence)
    else:
        named = {  # by names, for datasets may define one measure each in its way
            (*task, str(measure)): (*task, measure)
            for task in gate.tasks
            for measure in gate.measures
            if evidence.has(task[0], measure)
        }
        subjects = list(named.values())
        hindered = [_hindered(gate, subject, evidence, incomplete) for subject in subjects]
        free = [subject for subject, verdict in zip(subjects, hindered, strict=True) if verdict is None]
        places = {name: i for i, name in enumerate(named)}
        found = sorted(
            [*filter(None, hindered), *_JUDGES[gate.kind](gate, free, evidence)],
            key=lambda verdict: places[verdict.dataset, verdict.model, verdict.measure],
        )
    return [_settled(gate, verdict, evidence, incomplete) for verdict in found]


def _hindered(gate: PlannedGate, subject: Subject, evidence: Evidence, incomplete: _Incomplete) -> Verdict | None:
    """The verdict on what cannot be judged, and why; None where it can."""
    dataset, model, measure = subject
    hindrance: tuple[Outcome, str] | None = None
    if (dataset, model) in incomplete:
        found = incomplete[dataset, model]
        hindrance = "not evaluated", f"gate {found.gate!r} failed: {found.reason}"
    elif (dataset, model) in evidence.failures:
        hindrance = "inconclusive", evidence.failures[dataset, model]
    elif gate.against is not None and (reason := evidence.incomparable(gate, subject)) is not None:
        hindrance = "not comparable", reason
    if hindrance is None:
        return None
    baseline = evidence.baselines.get((gate.name, dataset, model))
    return Verdict(
        gate=gate.name,
        dataset=dataset,
        model=model,
        measure=str(measure),
        slice=ALL,
        outcome=hindrance[0],
        effect=UNSETTLED,
        reason=hindrance[1],
        reference=baseline.label if baseline else None,
    )


def _settled(gate: PlannedGate, verdict: Verdict, evidence: Evidence, incomplete: _Incomplete) -> Verdict:
    """The verdict with what its outcome comes to."""
    verdict = _counted(gate, verdict, evidence)
    effect = _effect(gate, verdict, evidence, incomplete)
    notes = [verdict.reason]
    if verdict.nights and effect == "warn":
        notes.append(f"failed, evaluation {verdict.nights} of {gate.fail_after}")
    if effect == "fail" and (waiver := gate.waiver) is not None:
        waived = evidence.today <= waiver.until
        effect = "warn" if waived else "fail"
        until = f"waived until {waiver.until}" if waived else f"its waiver ended on {waiver.until}"
        notes.append(f"{until} ({waiver.owner}: {waiver.reason})")
    return replace(verdict, effect=effect, reason="; ".join(notes))


def _counted(gate: PlannedGate, verdict: Verdict, evidence: Evidence) -> Verdict:
    """The verdict with how often in a row it failed; undecided where that is not known and would decide."""
    if verdict.outcome != "fail":
        return verdict
    if not isinstance(evidence.nights, str):
        key = (verdict.gate, verdict.dataset, verdict.model, verdict.measure, verdict.slice)
        return replace(verdict, nights=1 + evidence.nights.get(key, 0))
    if gate.fail_after == 1:
        return replace(verdict, nights=1)
    reason = f"{verdict.reason}; whether {gate.fail_after} in a row failed is not known: {evidence.nights}"
    return replace(verdict, outcome="inconclusive", reason=reason)


def _effect(gate: PlannedGate, verdict: Verdict, evidence: Evidence, incomplete: _Incomplete) -> _Effect:
    """What an outcome comes to, waivers aside."""
    task = (verdict.dataset, verdict.model)
    if verdict.outcome == "pass":
        return "pass"
    if verdict.outcome == "fail":
        return "fail" if verdict.nights >= gate.fail_after else "warn"
    told = verdict.outcome == "not evaluated" and incomplete[task].effect == "fail"
    if told or _is_first_night(gate, verdict, evidence):
        return "warn"
    return gate.on_inconclusive


def _is_first_night(gate: PlannedGate, verdict: Verdict, evidence: Evidence) -> bool:
    """Whether there is no earlier evaluation yet, which must not block the first one."""
    if verdict.outcome != "not comparable" or gate.against is None or gate.against.record != "last_passed":
        return False
    return evidence.baselines[gate.name, verdict.dataset, verdict.model].first
