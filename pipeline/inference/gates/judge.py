"""Gates to verdicts: what each gate finds, line by line, and what that comes to tonight.

Outputs that are incomplete are found first, for nothing else can be judged of them. What a gate finds, its outcome, is
then weighed: what an undecided line comes to, how many nights in a row it must fail, and whether it is waived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Literal, TypeAlias

from pipeline.inference.gates.by_count import judge_complete, judge_drops, judge_extra
from pipeline.inference.gates.by_interval import judge_differences, judge_figures
from pipeline.inference.gates.evidence import UNSETTLED, Evidence, Subject
from pipeline.inference.samples import ALL
from pipeline.verdicts import GateKind, Outcome, PlannedGate, Verdict

__all__ = ["judge"]

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
    if verdict.outcome != "not comparable" or gate.against is None or gate.against.record != "latest":
        return False
    return evidence.baselines[gate.name, verdict.dataset, verdict.model].first
