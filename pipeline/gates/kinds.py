"""Kinds of gates: differences to a baseline, limits of values, and counts of queries that lost much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import Looks, PlannedGate
from rankledger.pipeline.config.values import Share
from rankledger.pipeline.gates.evidence import (
    ROUNDING,
    Evidence,
    GateJudge,
    Subject,
    count_look,
    errors_of,
    list_slices,
    name_unit,
    new_verdict,
    outcome_of_slice,
)
from rankledger.pipeline.gates.intervals import (
    CRASH,
    CrashCount,
    GateCheck,
    Limit,
    causes_of_rarity,
    count_crashes,
    fails_by_interval,
    format_apart,
    format_level,
    format_limits,
    interval_verdicts,
    is_enough,
    name_subject,
    query_drops,
    worst,
)
from rankledger.pipeline.gates.verdicts import Outcome, Verdict
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.slice_search import changed_slices
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.support.text import write_decimals


class DifferenceGate(GateJudge):
    """Gate that requires the interval of a difference to a baseline to be above a margin."""

    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        checks: list[GateCheck] = []
        for dataset in dict.fromkeys(dataset for dataset, _, _ in subjects):
            dataset_subjects = [subject for subject in subjects if subject[0] == dataset]
            checks += _differences(gate, dataset_subjects, evidence.samples[dataset], evidence)
        verdicts = interval_verdicts(gate, checks, evidence.rule)
        located = [_locate_change(check, verdict, evidence) for check, verdict in zip(checks, verdicts, strict=True)]
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
    counts = {task: count_look(gate, looks, outputs_of, evidence) for task, outputs_of in outputs.items()}
    limited = []
    for verdict in verdicts:
        count, note, allowed = counts[verdict.dataset, verdict.model]
        if allowed:
            verdict = verdict.with_details(note)
        else:
            verdict = replace(verdict, outcome="inconclusive", reason=f"{verdict.reason}; {note}")
        limited.append(replace(verdict, looks=count))
    return limited


def _locate_change(line: GateCheck, verdict: Verdict, evidence: Evidence) -> Verdict:
    if verdict.outcome == "pass" or verdict.slice != ALL or evidence.search is None or line.baseline is None:
        return verdict
    dataset, model, measure = line.subject
    sample = evidence.samples[dataset]
    sides = sample.contributions[model, measure], sample.contributions[line.baseline.key, measure]
    changes, _ = changed_slices((dataset, model, line.baseline.label), sides, sample.groups, evidence.search)
    worse = next((change for change in changes if change.statistic < 0), None)
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
            judged, baseline_estimate, pair = next(differences), sample.sides(pair)[1].estimate, line_pairs[1]
            may_be_negative = subject[2].metric.range[0] < 0
            ends = evidence.rule.of(sample.figure(baseline.key, subject[2], name)) if may_be_negative else (None, None)
            limits = (Limit(0.0),)
            check = replace(
                check, judged=judged, limits=limits, share=margin, theirs=baseline_estimate, theirs_ends=ends
            )
        values = None if is_enough(plain) else sample.differences_of(pair)
        drops = query_drops(sample, pair)
        count = count_crashes(sample, drops, np.flatnonzero(drops > CRASH + ROUNDING))
        crashes = count if subject[2].metric.range == (0, 1) else None
        yield replace(check, values=values, crashes=crashes, note=_describe_unpaired(sample, pair))


def _describe_unpaired(sample: Sample, pair: Pair) -> str:
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


def _list_limits(gate: PlannedGate) -> tuple[Limit, ...]:
    bounds = ((gate.settings.at_least, True), (gate.settings.at_most, False))
    return tuple(Limit(value, is_minimum) for value, is_minimum in bounds if value is not None)


class LimitGate(GateJudge):
    """Gate that requires the interval of a value to be within limits."""

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
        absent, vanished = evidence.absent.get(task), evidence.gone.get(dataset)
        reason = f"{absent}: {lack}, counted over all replicates" if absent else f"{lack} of {model}"
        reason += f", and {len(vanished):,} queries of earlier evaluations are gone" if vanished else ""
        reason += f"; at most {allowed * 100:.12g}% are allowed"
    outcome: Outcome = "fail" if share is None or share > allowed + ROUNDING else "pass"
    return replace(new_verdict(gate, (dataset, model, ""), outcome, reason), estimate=share, limit=allowed)


_NAMED = 5  # queries that a reason names


class QueryDropGate(GateJudge):
    """Gate on the number or share of queries that drop by more than a limit."""

    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        lines = [
            (subject, name)
            for subject in subjects
            for name in list_slices(gate, evidence.samples[subject[0]], *subject[1:])[0]
        ]
        gate_errors, n = errors_of(gate, evidence.rule.confidence), max(1, len(lines))
        errors = gate_errors and (gate_errors[0] / n, gate_errors[1])
        return [_judge_drops(gate, *line, evidence, errors, causes_of_rarity(gate, n)) for line in lines]

    def fails_anyway(self, gate: PlannedGate, verdict: Verdict, measure: Measure, share: float) -> bool:
        if not isinstance(gate.settings.allow, Share):
            return True
        return verdict.ci_low is not None and (1 - share) * verdict.ci_low > (verdict.limit or 0.0)


def _judge_drops(
    gate: PlannedGate, subject: Subject, slice: str, evidence: Evidence, errors: tuple[float, float] | None, rare: str
) -> Verdict:
    dataset, model, measure = subject
    limit, allow = gate.settings.max_query_drop, gate.settings.allow
    assert limit is not None, "a gate of this kind has it"
    sample, baseline = evidence.samples[dataset], evidence.baselines[gate.name, dataset, model]
    drops = query_drops(sample, Pair(model, baseline.key, measure, slice))
    crashed = np.flatnonzero(drops > limit + ROUNDING)  # NaN, where one is undefined, is not above
    crashed = crashed[np.argsort(-drops[crashed], kind="stable")]
    before, after = (sample.contributions[name, measure].scores for name in (baseline.key, model))
    ids = evidence.query_ids[dataset]
    named = [
        f"{ids[query]} ({write_decimals(before[query])} to {write_decimals(after[query])})"
        for query in crashed[:_NAMED]
    ]
    count, name = count_crashes(sample, drops, crashed), name_subject(measure, model, slice)
    what = f"dropped by more than {limit:g} in {name} against {baseline.name}"
    if errors is not None:
        verdict = _judge_share(gate, subject, slice, count, what, errors, rare)
    else:
        queries = {0: "no query", 1: "1 query"}.get(len(crashed), f"{len(crashed):,} queries")
        outcome: Outcome = "pass" if len(crashed) <= allow else "fail"
        reason = f"{queries} {what}; at most {allow:g} may"
        if not count.n:
            outcome, reason = "inconclusive", f"{name} is undefined: no query in common has scores of both models"
        verdict = new_verdict(gate, subject, outcome, reason, slice)
        verdict = replace(verdict, estimate=float(len(crashed)), limit=float(allow))
    return replace(verdict.with_details(", ".join(named)), reference=baseline.label)


def _judge_share(
    gate: PlannedGate,
    subject: Subject,
    slice: str,
    count: CrashCount,
    what: str,
    errors: tuple[float, float],
    rare: str,
) -> Verdict:
    (error, passing), allow = errors, float(gate.settings.allow)
    low, high = count.ends(error)[0], count.ends(passing)[1]
    outcome = Limit(allow, least=False).outcome(low, high)
    needed = count.n_needed(allow, error, passing) if outcome == "inconclusive" else None
    confidence = round(1 - 2 * passing, 12)  # 1 - 0.95 is not 0.05 to the last bit
    failing = error if error < passing else None
    shares = " to ".join(format_apart([low, high], allow, lambda share, digits: f"{share:.{digits}%}", 1))
    reason = f"{count} {what}, so {shares} of all {count.unit} could drop by that much; at most {allow * 100:.12g}% may"
    if outcome == "inconclusive":
        settle = "and no number of them" if needed is None else f"about {needed:,} {count.unit}"
        reason += f": undecided, {settle} would settle it"
    return replace(
        new_verdict(gate, subject, outcome_of_slice(gate, slice, outcome), reason, slice),
        details=f"interval of {format_level(confidence, (), failing, rare)}",
        estimate=count.crashed / count.n if count.n else None,
        ci_low=low,
        ci_high=high,
        limit=allow,
        confidence=confidence,
        interval="exact",
        failing_error=failing,
        n_needed=needed,
    )
