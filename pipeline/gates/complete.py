"""Gates on the share of judged queries that an output lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rankledger.pipeline.config.planned_gates import PlannedGate
from rankledger.pipeline.gates.evidence import ROUNDING, Evidence, GateJudge, Subject, new_verdict
from rankledger.pipeline.gates.intervals import format_apart
from rankledger.pipeline.gates.verdicts import Verdict


class CompleteGate(GateJudge):
    """Gate on the share of judged queries without output. A missing output fails."""

    by_measure = False
    hinders = True

    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        return [_judge_output(gate, *task, evidence) for task in gate.tasks]


def _judge_output(gate: PlannedGate, dataset: str, model: str, evidence: Evidence) -> Verdict:
    assert gate.max_missing is not None, "a gate of this kind has it"
    reason = evidence.failures.get((dataset, model))
    share = None if reason is not None else evidence.missing[dataset, model]
    fails = share is None or share > gate.max_missing + ROUNDING
    if reason is None:
        absent, gone = evidence.absent.get((dataset, model)), evidence.gone.get(dataset)
        (percent,) = format_apart([share or 0.0], gate.max_missing, lambda number, digits: f"{number:.{digits}%}", 2)
        lack = f"{percent} of the judged queries are without output"
        lack += " or score" if (dataset, model) in evidence.unscored else ""
        reason = f"{absent}: {lack}, counted over all replicates" if absent else f"{lack} of {model}"
        reason += f", and {len(gone):,} queries of earlier evaluations are gone" if gone else ""
        reason += f"; at most {gate.max_missing * 100:.12g}% are allowed"
    verdict = new_verdict(gate, (dataset, model, ""), "fail" if fails else "pass", reason)
    return replace(verdict, estimate=share, limit=gate.max_missing)
