"""Gates on the difference to a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.planned_gates import PlannedGate
from rankledger.pipeline.gates.errors import look_at
from rankledger.pipeline.gates.evidence import ROUNDING, Evidence, GateJudge, Subject, slices_of, unit_of
from rankledger.pipeline.gates.intervals import (
    CRASH,
    GateCheck,
    Limit,
    count_crashes,
    fails_by_interval,
    interval_verdicts,
    is_enough,
    query_drops,
)
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.slice_search import changed_slices
from rankledger.pipeline.inference.tables import ALL


class DifferenceGate(GateJudge):
    """Gate that requires the interval of a difference to a baseline to be above a margin."""

    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        lines: list[GateCheck] = []
        for dataset in dict.fromkeys(dataset for dataset, _, _ in subjects):
            own = [subject for subject in subjects if subject[0] == dataset]
            lines += _differences(gate, own, evidence.samples[dataset], evidence)
        verdicts = interval_verdicts(gate, lines, evidence.rule)
        located = [_located(line, verdict, evidence) for line, verdict in zip(lines, verdicts, strict=True)]
        return located if gate.looks is None else _looked(gate, subjects, located, evidence)

    def fails_anyway(self, gate: PlannedGate, verdict: Verdict, measure: Measure, share: float) -> bool:
        low, high = measure.metric.range
        return fails_by_interval(verdict, measure, share, high - low)


def _looked(
    gate: PlannedGate, subjects: Sequence[Subject], verdicts: Sequence[Verdict], evidence: Evidence
) -> list[Verdict]:
    outputs: dict[tuple[str, str], list[Subject]] = {}
    for subject in subjects:
        outputs.setdefault(subject[:2], []).append(subject)
    looks = {task: look_at(gate, own, evidence) for task, own in outputs.items()}
    return [looks[verdict.dataset, verdict.model].applied(verdict) for verdict in verdicts]


def _located(line: GateCheck, verdict: Verdict, evidence: Evidence) -> Verdict:
    if verdict.outcome == "pass" or verdict.slice != ALL or evidence.search is None or line.baseline is None:
        return verdict
    dataset, model, measure = line.subject
    sample = evidence.samples[dataset]
    sides = sample.contributions[model, measure], sample.contributions[line.baseline.key, measure]
    found, _ = changed_slices((dataset, model, line.baseline.label), sides, sample.groups, evidence.search)
    worse = next((change for change in found if change.statistic < 0), None)
    return verdict if worse is None else verdict.with_details(f"where it changed: {worse}")


def _differences(
    gate: PlannedGate, subjects: Sequence[Subject], sample: Sample, evidence: Evidence
) -> Iterator[GateCheck]:
    asked = [(subject, name) for subject in subjects for name in slices_of(gate, sample, *subject[1:])[0]]
    pairs = [_pairs(gate, subject, name, sample, evidence) for subject, name in asked]
    found = iter(sample.differences([*chain.from_iterable(pairs)]))
    for (subject, name), own in zip(asked, pairs, strict=True):
        baseline = evidence.baselines[gate.name, *subject[:2]]
        plain, pair = next(found), own[0]
        line = GateCheck(subject, name, plain, plain, (Limit(0.0 - gate.margin),), unit_of(sample), baseline=baseline)
        if gate.relative:
            judged, theirs, pair = next(found), sample.sides(pair)[1].estimate, own[1]
            may_be_negative = subject[2].metric.range[0] < 0
            ends = evidence.rule.of(sample.figure(baseline.key, subject[2], name)) if may_be_negative else (None, None)
            limits = (Limit(0.0),)
            line = replace(line, judged=judged, limits=limits, share=gate.margin, theirs=theirs, theirs_ends=ends)
        values = None if is_enough(plain) else sample.differences_of(pair)
        drops = query_drops(sample, pair)
        count = count_crashes(sample, drops, np.flatnonzero(drops > CRASH + ROUNDING))
        crashes = count if subject[2].metric.range == (0, 1) else None
        yield replace(line, values=values, crashes=crashes, note=_unpaired(sample, pair))


def _unpaired(sample: Sample, pair: Pair) -> str:
    names = sample.unshared_replicates(pair)
    if not names:
        return ""
    missing = f"replicate {names[0]} is" if len(names) == 1 else f"replicates {', '.join(names)} are"
    return f"not paired by seed: {missing} on one side only"


def _pairs(gate: PlannedGate, subject: Subject, slice: str, sample: Sample, evidence: Evidence) -> list[Pair]:
    """Return the difference and, if the margin is relative, the difference to the share of the baseline to be kept.

    The margin is a share of the absolute mean of the baseline, so that a score below 0 may drop, too.
    """
    dataset, model, measure = subject
    plain = Pair(model, evidence.baselines[gate.name, dataset, model].key, measure, slice)
    if not gate.relative:
        return [plain]
    sign = -1.0 if measure.metric.direction == "lower" else 1.0
    allowed = math.copysign(gate.margin, sample.sides(plain)[1].estimate * gate.margin)
    return [plain, replace(plain, factor=1.0 - sign * allowed)]
