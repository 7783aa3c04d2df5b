"""Gates with an interval: differences held to a margin, and figures held to limits.

A line passes where its whole interval is on the good side of the limit, fails where it is on the other, and is
inconclusive where it straddles it or rests on too little. All lines of a gate are judged at one level, so that the
gate as a whole errs no more often than one line would.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pipeline.inference.estimates import IntervalRule
from pipeline.inference.gates.evidence import UNSETTLED, Evidence, Subject, slices_of
from pipeline.inference.gates.line import Limit, Line, limits_of
from pipeline.inference.gates.simultaneous import simultaneous
from pipeline.inference.gates.wording import reason_of
from pipeline.inference.samples import Pair, Sample
from pipeline.verdicts import PlannedGate, Verdict

__all__ = ["judge_differences", "judge_figures"]


def judge_figures(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
    """Figures held to limits, slice by slice."""
    lines = []
    for dataset, model, measure in subjects:
        sample = evidence.samples[dataset]
        for name in slices_of(gate, sample, model, measure):
            figure = sample.figure(model, measure, name)
            lines.append(Line((dataset, model, measure), name, figure, figure, limits_of(gate), _unit(sample)))
    return _verdicts(gate, lines, evidence.rule)


def judge_differences(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
    """Differences held to a margin, slice by slice."""
    lines: list[Line] = []
    for dataset in dict.fromkeys(dataset for dataset, _, _ in subjects):
        own = [subject for subject in subjects if subject[0] == dataset]
        lines += _differences(gate, own, evidence.samples[dataset], evidence)
    return _verdicts(gate, lines, evidence.rule)


def _differences(gate: PlannedGate, subjects: Sequence[Subject], sample: Sample, evidence: Evidence) -> Iterator[Line]:
    """The lines of one dataset. Their differences are asked for together: those of fewer queries are drawn anew."""
    asked = [(subject, name) for subject in subjects for name in slices_of(gate, sample, *subject[1:])]
    pairs = [pair for subject, name in asked for pair in _pairs(gate, subject, name, evidence)]
    found = iter(sample.differences(pairs))
    for subject, name in asked:
        baseline = evidence.baselines[gate.name, *subject[:2]]
        plain = next(found)
        if not gate.relative:
            yield Line(subject, name, plain, plain, (Limit(0.0 - gate.margin),), _unit(sample), baseline)
            continue
        judged, own = next(found), next(found)
        theirs = _sign(subject) * (own.estimate - plain.estimate)
        factor = _factor(gate, subject)
        yield Line(subject, name, judged, plain, (Limit(0.0),), _unit(sample), baseline, factor, theirs)


def _pairs(gate: PlannedGate, subject: Subject, slice: str, evidence: Evidence) -> list[Pair]:
    """The difference; where the margin is relative, that to a share of the baseline too, and the model's own figure."""
    dataset, model, measure = subject
    column = evidence.baselines[gate.name, dataset, model].column
    factors = (1.0, _factor(gate, subject), 0.0) if gate.relative else (1.0,)
    return [Pair(model, column, measure, slice, factor) for factor in factors]


def _factor(gate: PlannedGate, subject: Subject) -> float:
    """The share of the baseline's figure that must be kept, or of its error that may be made."""
    return 1.0 - _sign(subject) * gate.margin


def _sign(subject: Subject) -> float:
    return -1.0 if subject[2].metric.direction == "lower" else 1.0


def _unit(sample: Sample) -> str:
    return "queries" if sample.groups.clusters is None else "clusters"


def _verdicts(gate: PlannedGate, lines: Sequence[Line], rule: IntervalRule) -> list[Verdict]:
    joint = simultaneous([line.judged for line in lines if line.decidable], rule)
    return [_verdict(gate, line, joint) for line in lines]


def _verdict(gate: PlannedGate, line: Line, rule: IntervalRule) -> Verdict:
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
