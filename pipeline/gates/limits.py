"""Gates that hold a figure, an external metric or the share of missing queries to limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import PlannedGate
from rankledger.pipeline.gates.evidence import (
    ROUNDING,
    Evidence,
    GateJudge,
    Subject,
    list_slices,
    name_unit,
    new_verdict,
)
from rankledger.pipeline.gates.intervals import (
    GateCheck,
    Limit,
    fails_by_interval,
    format_apart,
    format_limits,
    interval_verdicts,
    is_enough,
    worst,
)
from rankledger.pipeline.gates.verdicts import Outcome, Verdict


def _list_limits(gate: PlannedGate) -> tuple[Limit, ...]:
    bounds = ((gate.settings.at_least, True), (gate.settings.at_most, False))
    return tuple(Limit(value, least) for value, least in bounds if value is not None)


class LimitGate(GateJudge):
    """Gate that requires the interval of a figure to be within limits."""

    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        checks = []
        for dataset, model, measure in subjects:
            sample = evidence.samples[dataset]
            for name in list_slices(gate, sample, model, measure)[0]:
                figure = sample.figure(model, measure, name)
                values = None if is_enough(figure) else sample.scores_of(model, measure, name)
                subject = dataset, model, measure
                checks.append(GateCheck(subject, name, figure, figure, _list_limits(gate), name_unit(sample), values))
        return interval_verdicts(gate, checks, evidence.rule)

    def fails_anyway(self, gate: PlannedGate, verdict: Verdict, measure: Measure, share: float) -> bool:
        return fails_by_interval(verdict, measure, share, measure.metric.range[1])


class ExtraGate(GateJudge):
    """Gate that compares an external metric with limits."""

    by_measure = False

    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        return [_judge_number(gate, *task, evidence) for task in gate.tasks]


def _judge_number(gate: PlannedGate, dataset: str, model: str, evidence: Evidence) -> Verdict:
    name, limits = str(gate.settings.extra), _list_limits(gate)
    numbers = evidence.external_metrics.get(model, f"{model} has no `extra`; add it, or remove the model from the gate")
    names = [key for key in numbers if key == name or key.endswith(f".{name}")] if isinstance(numbers, Mapping) else []
    names = [name] if name in names else names
    number: float | None = None
    outcome, limit = worst([("inconclusive", bound) for bound in limits])
    if isinstance(numbers, str):
        reason = numbers
    elif len(names) != 1:
        several = f" but {', '.join(names)}. Use one of these" if names else ". Check the file"
        reason = f"the `extra` of {model} has no finite number {name!r}{several}"
    else:
        number = numbers[names[0]]
        outcome, limit = worst([("pass" if bound.holds(number) else "fail", bound) for bound in limits])
        (written,) = format_apart([number], limit.value, lambda value, digits: f"{value:,.{digits}g}", 6)
        reason = f"{name} of {model} is {written}; {format_limits(limits)}"
    return replace(new_verdict(gate, (dataset, model, name), outcome, reason), estimate=number, limit=limit.value)


class CompleteGate(GateJudge):
    """Gate on the share of judged queries without output. A missing output fails."""

    by_measure = False
    hinders = True

    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        return [_judge_output(gate, *task, evidence) for task in gate.tasks]


def _judge_output(gate: PlannedGate, dataset: str, model: str, evidence: Evidence) -> Verdict:
    task, allowed = (dataset, model), float(gate.settings.max_missing or 0)
    share, reason = None, evidence.failures.get(task)
    if reason is None:
        share = evidence.missing[task]
        (percent,) = format_apart([share], allowed, lambda number, digits: f"{number:.{digits}%}", 2)
        lack = f"{percent} of the judged queries are without output"
        lack += " or score" if task in evidence.unscored else ""
        absent, gone = evidence.absent.get(task), evidence.gone.get(dataset)
        reason = f"{absent}: {lack}, counted over all replicates" if absent else f"{lack} of {model}"
        reason += f", and {len(gone):,} queries of earlier evaluations are gone" if gone else ""
        reason += f"; at most {allowed * 100:.12g}% are allowed"
    outcome: Outcome = "fail" if share is None or share > allowed + ROUNDING else "pass"
    return replace(new_verdict(gate, (dataset, model, ""), outcome, reason), estimate=share, limit=allowed)
