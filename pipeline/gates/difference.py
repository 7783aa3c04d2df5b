"""Gates on the difference to a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import Looks, PlannedGate
from rankledger.pipeline.config.values import Share
from rankledger.pipeline.gates.errors import count_look
from rankledger.pipeline.gates.evidence import ROUNDING, Evidence, GateJudge, Subject, list_slices, name_unit
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
        checks: list[GateCheck] = []
        for dataset in dict.fromkeys(dataset for dataset, _, _ in subjects):
            dataset_subjects = [subject for subject in subjects if subject[0] == dataset]
            checks += _differences(gate, dataset_subjects, evidence.samples[dataset], evidence)
        verdicts = interval_verdicts(gate, checks, evidence.rule)
        located = [_located(check, verdict, evidence) for check, verdict in zip(checks, verdicts, strict=True)]
        return _limit_looks(gate, gate.settings.looks, subjects, located, evidence) if gate.settings.looks else located

    def fails_anyway(self, gate: PlannedGate, verdict: Verdict, measure: Measure, share: float) -> bool:
        low, high = measure.metric.range
        return fails_by_interval(verdict, measure, share, high - low)


def _limit_looks(
    gate: PlannedGate, looks: Looks, subjects: Sequence[Subject], verdicts: Sequence[Verdict], evidence: Evidence
) -> list[Verdict]:
    outputs: dict[tuple[str, str], list[Subject]] = {}
    for subject in subjects:
        outputs.setdefault(subject[:2], []).append(subject)
    counts = {task: count_look(gate, looks, own, evidence) for task, own in outputs.items()}
    limited = []
    for verdict in verdicts:
        count, note, allowed = counts[verdict.dataset, verdict.model]
        if allowed:
            verdict = verdict.with_details(note)
        else:
            verdict = replace(verdict, outcome="inconclusive", reason=f"{verdict.reason}; {note}")
        limited.append(replace(verdict, looks=count))
    return limited


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
    margin = gate.settings.margin
    assert margin is not None, "a gate of this kind has it"
    lines = [(subject, name) for subject in subjects for name in list_slices(gate, sample, *subject[1:])[0]]
    pairs = [_pairs(gate, margin, subject, name, sample, evidence) for subject, name in lines]
    differences = iter(sample.differences([*chain.from_iterable(pairs)]))
    for (subject, name), line_pairs in zip(lines, pairs, strict=True):
        baseline = evidence.baselines[gate.name, *subject[:2]]
        plain, pair = next(differences), line_pairs[0]
        check = GateCheck(subject, name, plain, plain, (Limit(0.0 - margin),), name_unit(sample), baseline=baseline)
        if isinstance(margin, Share):
            judged, theirs, pair = next(differences), sample.sides(pair)[1].estimate, line_pairs[1]
            may_be_negative = subject[2].metric.range[0] < 0
            ends = evidence.rule.of(sample.figure(baseline.key, subject[2], name)) if may_be_negative else (None, None)
            limits = (Limit(0.0),)
            check = replace(check, judged=judged, limits=limits, share=margin, theirs=theirs, theirs_ends=ends)
        values = None if is_enough(plain) else sample.differences_of(pair)
        drops = query_drops(sample, pair)
        count = count_crashes(sample, drops, np.flatnonzero(drops > CRASH + ROUNDING))
        crashes = count if subject[2].metric.range == (0, 1) else None
        yield replace(check, values=values, crashes=crashes, note=_unpaired(sample, pair))


def _unpaired(sample: Sample, pair: Pair) -> str:
    names = sample.unshared_replicates(pair)
    if not names:
        return ""
    missing = f"replicate {names[0]} is" if len(names) == 1 else f"replicates {', '.join(names)} are"
    return f"not paired by seed: {missing} on one side only"


def _pairs(
    gate: PlannedGate, margin: float, subject: Subject, slice: str, sample: Sample, evidence: Evidence
) -> list[Pair]:
    """Return the difference and, if the margin is relative, the difference to the share of the baseline to be kept.

    The margin is a share of the absolute mean of the baseline, so that a score below 0 may drop, too.
    """
    dataset, model, measure = subject
    plain = Pair(model, evidence.baselines[gate.name, dataset, model].key, measure, slice)
    if not isinstance(margin, Share):
        return [plain]
    sign = -1.0 if measure.metric.direction == "lower" else 1.0
    allowed = math.copysign(margin, sample.sides(plain)[1].estimate * margin)
    return [plain, replace(plain, factor=1.0 - sign * allowed)]
