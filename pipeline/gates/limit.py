"""Gates that hold a figure to limits."""

from __future__ import annotations

from collections.abc import Sequence

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.planned_gates import PlannedGate
from rankledger.pipeline.gates.evidence import Evidence, GateJudge, Subject, slices_of, unit_of
from rankledger.pipeline.gates.intervals import GateCheck, fails_by_interval, interval_verdicts, is_enough, limits_of
from rankledger.pipeline.gates.verdicts import Verdict


class LimitGate(GateJudge):
    """Gate that requires the interval of a figure to be within limits."""

    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        lines = []
        for dataset, model, measure in subjects:
            sample = evidence.samples[dataset]
            for name in slices_of(gate, sample, model, measure)[0]:
                figure = sample.figure(model, measure, name)
                values = None if is_enough(figure) else sample.scores_of(model, measure, name)
                subject = dataset, model, measure
                lines.append(GateCheck(subject, name, figure, figure, limits_of(gate), unit_of(sample), values))
        return interval_verdicts(gate, lines, evidence.rule)

    def fails_anyway(self, gate: PlannedGate, verdict: Verdict, measure: Measure, share: float) -> bool:
        return fails_by_interval(verdict, measure, share, measure.metric.range[1])
