"""Gates on external metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rankledger.pipeline.config.planned_gates import PlannedGate
from rankledger.pipeline.gates.evidence import Evidence, GateJudge, Subject, new_verdict
from rankledger.pipeline.gates.intervals import asked, format_apart, limits_of, worst
from rankledger.pipeline.gates.verdicts import Verdict


class ExtraGate(GateJudge):
    """Gate that compares an external metric with limits."""

    by_measure = False

    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        return [_judge_number(gate, *task, evidence) for task in gate.tasks]


def _judge_number(gate: PlannedGate, dataset: str, model: str, evidence: Evidence) -> Verdict:
    assert gate.extra is not None, "a gate of this kind has it"
    name, limits = gate.extra, limits_of(gate)
    numbers = evidence.external_metrics.get(model, f"{model} has no `extra`; add it, or remove the model from the gate")
    number: float | None = None
    outcome, limit = worst([("inconclusive", bound) for bound in limits])
    names = [own for own in numbers if own == name or own.endswith(f".{name}")] if isinstance(numbers, Mapping) else []
    names = [name] if name in names else names
    if isinstance(numbers, str):
        reason = numbers
    elif len(names) != 1:
        several = f" but {', '.join(names)}. Use one of these" if names else ". Check the file"
        reason = f"the `extra` of {model} has no finite number {name!r}{several}"
    else:
        number = numbers[names[0]]
        outcome, limit = worst([("pass" if bound.holds(number) else "fail", bound) for bound in limits])
        (written,) = format_apart([number], limit.value, lambda value, digits: f"{value:,.{digits}g}", 6)
        reason = f"{name} of {model} is {written}; {asked(limits)}"
    return replace(new_verdict(gate, (dataset, model, name), outcome, reason), estimate=number, limit=limit.value)
