"""Gates to verdicts: what each gate finds, by count or by interval, and the result for each model.

A line passes where its whole interval is on the good side of the limit, fails where it is on the other, and is
inconclusive where it straddles it or rests on too little. All lines of a gate are judged at one level, so that the
gate as a whole errs no more often than one line would. With looks, or with other gates of a night, the end that decides
a failure is further out (`gate_errors`), and with all looks spent a line is inconclusive.

Outputs that are incomplete are found first, for nothing else can be judged of them. What a gate finds, its outcome, is
then weighed: what an undecided line comes to, how many nights in a row it must fail, and whether it is waived.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.planned_gates import LEAST_CLUSTERS, GateKind, PlannedGate
from rankledger.pipeline.data.joined import count_short
from rankledger.pipeline.gates.bounds import (
    CRASH,
    UNSETTLED,
    CrashCount,
    GateCheck,
    GateRule,
    Limit,
    asked,
    format_amount,
    format_apart,
    format_level,
    is_enough,
    limits_of,
    reason_of,
    simultaneous,
    subject_name,
    worst,
)
from rankledger.pipeline.gates.errors import errors_of, look_at
from rankledger.pipeline.gates.evidence import Evidence, Subject, slices_of
from rankledger.pipeline.gates.verdicts import BLOCKING, Effect, Outcome, Verdict
from rankledger.pipeline.inference.intervals import known
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.slice_search import changed_slices
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.inference.tables import ALL

_NAMED = 5  # queries that a reason names
_ROUNDING = 1e-12  # 0.9 - 0.7 is above 0.2 by less than this, and no drop of more than 0.2


def _judge_drops(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
    asked = [
        (subject, name)
        for subject in subjects
        for name in slices_of(gate, evidence.samples[subject[0]], *subject[1:])[0]
    ]
    gate_errors, n = errors_of(gate, evidence.rule.confidence), max(1, len(asked))
    errors = gate_errors and (gate_errors[0] / n, gate_errors[1])
    return [_drops(gate, *line, evidence, errors, _rare(gate, n)) for line in asked]


def _rare(gate: PlannedGate, n_lines: int) -> str:
    """Why the end that decides a failure is further out than the other, such as `90 looks, 3 gates and 4 lines`."""
    counts = {"looks": gate.looks.changed_outputs if gate.looks else 1, "gates": gate.n_sharing, "lines": n_lines}
    causes = [f"{n} {name}" for name, n in counts.items() if n > 1]
    return " and ".join(filter(None, [", ".join(causes[:-1]), *causes[-1:]]))


def _drops(
    gate: PlannedGate, subject: Subject, slice: str, evidence: Evidence, errors: tuple[float, float] | None, rare: str
) -> Verdict:
    dataset, model, measure = subject
    assert gate.max_query_drop is not None, "a gate of this kind has it"
    sample, baseline = evidence.samples[dataset], evidence.baselines[gate.name, dataset, model]
    pair = Pair(model, baseline.key, measure, slice)
    drops = _query_drops(sample, pair)
    crashed = np.flatnonzero(drops > gate.max_query_drop + _ROUNDING)  # NaN, where one is undefined, is not above
    crashed = crashed[np.argsort(-drops[crashed], kind="stable")]
    before, after = (sample.contributions[name, measure].scores for name in (baseline.key, model))
    ids = evidence.query_ids[dataset]
    named = [
        f"{ids[query]} ({format_amount(before[query])} to {format_amount(after[query])})" for query in crashed[:_NAMED]
    ]
    count = _counted_crashes(sample, drops, crashed)
    what = f"dropped by more than {gate.max_query_drop:g} in {subject_name(measure, model, slice)}"
    what += f" against {baseline.name}"
    if errors is not None:
        verdict = _share_verdict(gate, subject, slice, count, what, errors, rare)
    else:
        queries = {0: "no query", 1: "1 query"}.get(len(crashed), f"{len(crashed):,} queries")
        outcome: Outcome = "pass" if len(crashed) <= gate.allow else "fail"
        verdict = _verdict(gate, subject, outcome, f"{queries} {what}; at most {gate.allow:g} may", slice)
        verdict = replace(verdict, estimate=float(len(crashed)), limit=float(gate.allow))
        if not count.n:
            reason = f"{subject_name(measure, model, slice)} is undefined: no query in common has scores of both models"
            verdict = replace(verdict, outcome="inconclusive", reason=reason)
    return replace(verdict.with_details(", ".join(named)), reference=baseline.label)


def _query_drops(sample: Sample, pair: Pair) -> Floats:
    before, after = (sample.contributions[name, pair.measure].scores for name in (pair.baseline, pair.model))
    drops = (after - before) if pair.measure.metric.direction == "lower" else (before - after)
    mask = sample.slices[pair.slice]
    return drops if mask is None else np.where(mask, drops, np.nan)


def _counted_crashes(sample: Sample, drops: Floats, crashed: npt.NDArray[np.int64]) -> CrashCount:
    clusters, defined = sample.groups.clusters, np.flatnonzero(~np.isnan(drops))
    if clusters is None:
        return CrashCount(len(crashed), len(defined), "queries")
    return CrashCount(len(np.unique(clusters[crashed])), len(np.unique(clusters[defined])), "clusters")


def _share_verdict(
    gate: PlannedGate,
    subject: Subject,
    slice: str,
    count: CrashCount,
    what: str,
    errors: tuple[float, float],
    rare: str,
) -> Verdict:
    error, passing = errors
    limit = Limit(gate.allow, least=False)
    low, high = count.ends(error)[0], count.ends(passing)[1]
    outcome = limit.outcome(low, high)
    needed = count.n_needed(gate.allow, error, passing) if outcome == "inconclusive" else None
    confidence = round(1 - 2 * passing, 12)  # 1 - 0.95 is not 0.05 to the last bit
    failing = error if error < passing else None
    level = format_level(confidence, (), failing, rare)
    shares = " to ".join(format_apart([low, high], gate.allow, lambda share, digits: f"{share:.{digits}%}", 1))
    reason = f"{count} {what}, so {shares} of all {count.unit} could drop by that much; "
    reason += f"at most {gate.allow * 100:.12g}% may"
    if outcome == "inconclusive":
        settle = "and no number of them" if needed is None else f"about {needed:,} {count.unit}"
        reason += f": undecided, {settle} would settle it"
    return replace(
        _verdict(gate, subject, _outcome_of_slice(gate, slice, outcome), reason, slice),
        details=f"interval of {level}",
        estimate=count.crashed / count.n if count.n else None,
        ci_low=low,
        ci_high=high,
        limit=gate.allow,
        confidence=confidence,
        interval="exact",
        failing_error=failing,
        n_needed=needed,
    )


def _verdict(
    gate: PlannedGate, subject: tuple[str, str, Measure | str], outcome: Outcome, reason: str, slice: str = ALL
) -> Verdict:
    dataset, model, measure = subject
    return Verdict(gate.name, dataset, model, str(measure), slice, outcome, UNSETTLED, reason)


def _complete(gate: PlannedGate, dataset: str, model: str, evidence: Evidence) -> Verdict:
    """The share of judged queries without output or score; an output that is missing as a whole fails."""
    assert gate.max_missing is not None, "a gate of this kind has it"
    reason = evidence.failures.get((dataset, model))
    share = None if reason is not None else evidence.missing[dataset, model]
    fails = share is None or share > gate.max_missing + _ROUNDING
    if reason is None:
        absent, gone = evidence.absent.get((dataset, model)), evidence.gone.get(dataset)
        (percent,) = format_apart([share or 0.0], gate.max_missing, lambda number, digits: f"{number:.{digits}%}", 2)
        lack = f"{percent} of the judged queries are without output"
        lack += " or score" if (dataset, model) in evidence.unscored else ""
        reason = f"{absent}: {lack}, counted over all replicates" if absent else f"{lack} of {model}"
        reason += f", and {len(gone):,} queries of earlier evaluations are gone" if gone else ""
        reason += f"; at most {gate.max_missing * 100:.12g}% are allowed"
    verdict = _verdict(gate, (dataset, model, ""), "fail" if fails else "pass", reason)
    return replace(verdict, estimate=share, limit=gate.max_missing)


def _external(gate: PlannedGate, dataset: str, model: str, evidence: Evidence) -> Verdict:
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
    return replace(_verdict(gate, (dataset, model, name), outcome, reason), estimate=number, limit=limit.value)


def _judge_figures(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
    lines = []
    for dataset, model, measure in subjects:
        sample = evidence.samples[dataset]
        for name in slices_of(gate, sample, model, measure)[0]:
            figure = sample.figure(model, measure, name)
            values = None if is_enough(figure) else sample.scores_of(model, measure, name)
            subject = dataset, model, measure
            lines.append(GateCheck(subject, name, figure, figure, limits_of(gate), _unit(sample), values))
    return _interval_verdicts(gate, lines, evidence.rule)


def _judge_differences(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
    lines: list[GateCheck] = []
    for dataset in dict.fromkeys(dataset for dataset, _, _ in subjects):
        own = [subject for subject in subjects if subject[0] == dataset]
        lines += _differences(gate, own, evidence.samples[dataset], evidence)
    verdicts = _interval_verdicts(gate, lines, evidence.rule)
    located = [_located(line, verdict, evidence) for line, verdict in zip(lines, verdicts, strict=True)]
    return located if gate.looks is None else _looked(gate, subjects, located, evidence)


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
    """The lines of one dataset. Their differences are asked for together: those of fewer queries are drawn anew."""
    asked = [(subject, name) for subject in subjects for name in slices_of(gate, sample, *subject[1:])[0]]
    pairs = [_pairs(gate, subject, name, sample, evidence) for subject, name in asked]
    found = iter(sample.differences([*chain.from_iterable(pairs)]))
    for (subject, name), own in zip(asked, pairs, strict=True):
        baseline = evidence.baselines[gate.name, *subject[:2]]
        plain, pair = next(found), own[0]
        line = GateCheck(subject, name, plain, plain, (Limit(0.0 - gate.margin),), _unit(sample), baseline=baseline)
        if gate.relative:
            judged, theirs, pair = next(found), sample.sides(pair)[1].estimate, own[1]
            may_be_negative = subject[2].metric.range[0] < 0
            ends = evidence.rule.of(sample.figure(baseline.key, subject[2], name)) if may_be_negative else (None, None)
            limits = (Limit(0.0),)
            line = replace(line, judged=judged, limits=limits, share=gate.margin, theirs=theirs, theirs_ends=ends)
        values = None if is_enough(plain) else sample.differences_of(pair)
        drops = _query_drops(sample, pair)
        count = _counted_crashes(sample, drops, np.flatnonzero(drops > CRASH + _ROUNDING))
        crashes = count if subject[2].metric.range == (0, 1) else None
        yield replace(line, values=values, crashes=crashes, note=_unpaired(sample, pair))


def _unpaired(sample: Sample, pair: Pair) -> str:
    """That families share their seeds and cannot be paired by them, and why; empty otherwise."""
    names = sample.unshared_replicates(pair)
    if not names:
        return ""
    missing = f"replicate {names[0]} is" if len(names) == 1 else f"replicates {', '.join(names)} are"
    return f"not paired by seed: {missing} on one side only"


def _pairs(gate: PlannedGate, subject: Subject, slice: str, sample: Sample, evidence: Evidence) -> list[Pair]:
    """Return the difference and, if the margin is relative, also that from the share of the baseline to be kept.

    The margin is a share of the absolute value of the baseline's mean, so that a score below 0 may drop, too.
    """
    dataset, model, measure = subject
    plain = Pair(model, evidence.baselines[gate.name, dataset, model].key, measure, slice)
    if not gate.relative:
        return [plain]
    sign = -1.0 if measure.metric.direction == "lower" else 1.0
    allowed = math.copysign(gate.margin, sample.sides(plain)[1].estimate * gate.margin)
    return [plain, replace(plain, factor=1.0 - sign * allowed)]


def _unit(sample: Sample) -> str:
    return "queries" if sample.groups.clusters is None else "clusters"


def _interval_verdicts(gate: PlannedGate, lines: Sequence[GateCheck], rule: IntervalRule) -> list[Verdict]:
    """Judge lines so that all ends which decide a failure hold at once, as often as one would alone."""
    trusted, n_others = [line.judged for line in lines if line.trusted], sum(line.few or line.bounded for line in lines)
    error = (1 - rule.confidence) / max(1, len(trusted) + n_others)
    shared = replace(rule, confidence=1 - error * len(trusted)) if trusted and n_others else rule
    errors, rare = _failing_errors(gate, lines, rule.confidence), _rare(gate, len(trusted) + n_others)
    joint = rule if errors else simultaneous(trusted, shared)
    ends = GateRule(rule, joint, error / 2, errors, rare)
    return [_interval_verdict(gate, line, ends) for line in lines]


def _failing_errors(
    gate: PlannedGate, lines: Sequence[GateCheck], confidence: float
) -> Mapping[tuple[str, str], float] | None:
    """By (dataset, model), the error of the end of each line that decides a failure; None if it needs no correction.

    That of the gate is divided by its outputs, and that of an output by its lines. So whatever cannot be judged in one
    night, the errors of an output's looks add up to its part. So far out max t would need hundreds of times as many
    resamples, to save little: the furthest tails of lines that move together are nearly those of independent ones.
    """
    errors = errors_of(gate, confidence)
    if errors is None or errors[0] == errors[1]:
        return None
    n_lines = Counter(line.subject[:2] for line in lines)
    return {task: errors[0] / len(gate.tasks) / n for task, n in n_lines.items()}


def _interval_verdict(gate: PlannedGate, line: GateCheck, rule: GateRule) -> Verdict:
    found_by = {limit: line.found(rule, limit) for limit in line.limits}
    outcome, limit = worst([(line.outcome(found.ends, limit), limit) for limit, found in found_by.items()])
    found = found_by[limit]
    if outcome == "pass" and len(line.limits) > 1:  # each end decided it
        lows, highs = zip(*(each.ends for each in found_by.values()), strict=True)
        found = replace(found, ends=(lows[0], highs[1]), failing_error=None, level="")
    ends = found.ends
    needed = line.n_needed(found, limit) if outcome == "inconclusive" else None
    reason, details = reason_of(line, found, outcome, limit, needed)
    return replace(
        _verdict(gate, line.subject, _outcome_of_slice(gate, line.slice, outcome), reason, line.slice),
        details="; ".join(details),
        reference=line.baseline.label if line.baseline else None,
        estimate=known(line.judged.estimate),
        ci_low=ends[0],
        ci_high=ends[1],
        limit=limit.value,
        confidence=None if ends[0] is None else found.confidence,
        interval=found.method,
        failing_error=found.failing_error,
        n_needed=needed,
        mark=line.plain.mark,
    )


def _outcome_of_slice(gate: PlannedGate, slice: str, outcome: Outcome) -> Outcome:
    """Return the outcome, or `not judged` for an undecided slice that the gate lets pass."""
    is_small = outcome == "inconclusive" and slice != ALL and gate.on_inconclusive_slice == "pass"
    return "not judged" if is_small else outcome


_Judge: TypeAlias = Callable[[PlannedGate, Sequence[Subject], Evidence], list[Verdict]]
_Incomplete: TypeAlias = Mapping[tuple[str, str], Verdict]  # the verdict that an output is incomplete, by its task

_JUDGES: Mapping[GateKind, _Judge] = MappingProxyType(
    {"difference": _judge_differences, "limit": _judge_figures, "query_drop": _judge_drops}
)


def judge(gates: Sequence[PlannedGate], evidence: Evidence) -> tuple[Verdict, ...]:
    """A verdict per gate, dataset, model, measure and slice, in the order of the gates and their tasks.

    Slices of fewer than 30 clusters are `not judged`, and pass. By default so are slices that are undecided.

    Args:
        gates: with the models and datasets that they are for.
        evidence: all that they are judged by.
    """
    complete = {
        gate.name: [_settled(gate, _complete(gate, *task, evidence), evidence, {}) for task in gate.tasks]
        for gate in gates
        if gate.kind == "complete"
    }
    blocking_last = sorted(chain.from_iterable(complete.values()), key=lambda verdict: verdict.blocks)
    incomplete = {(verdict.dataset, verdict.model): verdict for verdict in blocking_last if verdict.outcome == "fail"}
    found = [complete[gate.name] if gate.name in complete else _verdicts(gate, evidence, incomplete) for gate in gates]
    return tuple(chain.from_iterable(found))


def _verdicts(gate: PlannedGate, evidence: Evidence, incomplete: _Incomplete) -> list[Verdict]:
    if gate.kind == "extra":
        found = [_external(gate, *task, evidence) for task in gate.tasks]
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
        judged = [
            _limit_unscored(gate, named[verdict.dataset, verdict.model, verdict.measure], verdict, evidence)
            for verdict in _JUDGES[gate.kind](gate, free, evidence)
        ]
        found = sorted(
            [*filter(None, hindered), *judged, *_too_small(gate, free, evidence)],
            key=lambda verdict: places[verdict.dataset, verdict.model, verdict.measure],
        )
    return [_settled(gate, verdict, evidence, incomplete) for verdict in found]


def _limit_unscored(gate: PlannedGate, subject: Subject, verdict: Verdict, evidence: Evidence) -> Verdict:
    """Return the verdict, inconclusive if it rests on too few queries; a failure that no score could mend stays one."""
    measure, judged = subject[2], verdict
    if verdict.estimate is None or measure.metric.input == "logs":  # two logs are of different queries
        return verdict
    for n_lacking, n_expected, found in _shortfalls(gate, subject, verdict.slice, evidence):
        share = n_lacking / max(1, n_expected)
        is_failure = verdict.outcome == "fail" and _fails_anyway(gate, verdict, measure, share)
        if share > gate.max_unscored + _ROUNDING and not is_failure:
            reason = f"{subject_name(measure, subject[1], verdict.slice)} {found}"
            reason += f": undecided, max_unscored allows {gate.max_unscored * 100:.6g}%"
            outcome = _outcome_of_slice(gate, verdict.slice, "inconclusive")
            return replace(verdict, outcome=outcome, reason=reason, n_needed=None).with_details(verdict.reason)
        judged = judged.with_details(found) if n_lacking else judged
    return judged


def _shortfalls(gate: PlannedGate, subject: Subject, slice: str, evidence: Evidence) -> Iterator[tuple[int, int, str]]:
    n, of = _count_unscored(gate, subject, slice, evidence)
    yield n, of, f"has scores on {of - n:,} of {of:,} queries"
    dataset, model, measure = subject
    lists = {name: lengths for (where, name), lengths in evidence.lengths.items() if where == dataset}
    own, k, mask = lists.pop(model, None), measure.k, evidence.samples[dataset].slices[slice]
    if own is None or k is None:
        return
    against = gate.against.model if gate.against and gate.against.record is None else None
    others = (against,) if against else evidence.compared
    few = f"has fewer than {k:,} documents on"
    for name, theirs in ({name: lists[name] for name in others if name in lists} or lists).items():
        n, of = count_short(own, theirs, k, mask)
        yield n, of, f"{few} {n:,} of {of:,} queries on which {name} has enough"
        n, of = count_short(theirs, own, k, mask) if against else (0, 0)
        yield n, of, f"is compared with {name}, which {few} {n:,} of {of:,} queries on which {model} has enough"


def _count_unscored(gate: PlannedGate, subject: Subject, slice: str, evidence: Evidence) -> tuple[int, int]:
    """Count the queries without a score of the model, and all that should have one: those with one of the reference."""
    dataset, model, measure = subject
    sample, n_gone = evidence.samples[dataset], len(evidence.gone.get(dataset, ()))
    counted, expected = sample.contributions[model, measure].counted, sample.expected(model, measure)
    if gate.against is not None:
        baseline = evidence.baselines[gate.name, dataset, model]
        expected, n_gone = sample.contributions[baseline.key, measure].counted, baseline.n_gone.get(measure, 0)
    mask = sample.slices[slice]
    if mask is not None:
        expected, n_gone = expected & mask, 0  # without a queries table there are no slices
    return int((expected & ~counted).sum()) + n_gone, int(expected.sum()) + n_gone


def _fails_anyway(gate: PlannedGate, verdict: Verdict, measure: Measure, share: float) -> bool:
    low, high = measure.metric.range
    limit = verdict.limit or 0.0
    if gate.kind == "query_drop" and not gate.allow_share:
        return True
    if verdict.ci_low is None or verdict.ci_high is None or verdict.estimate is None:
        return False
    if gate.kind == "query_drop":
        return (1 - share) * verdict.ci_low > limit
    if verdict.estimate > limit:
        return (1 - share) * verdict.ci_low + share * low > limit
    best = high - low if gate.kind == "difference" else high
    return (1 - share) * verdict.ci_high + share * best < limit


def _too_small(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> Iterator[Verdict]:
    for subject in subjects:
        sample = evidence.samples[subject[0]]
        for name, n in slices_of(gate, sample, *subject[1:])[1].items():
            yield _verdict(gate, subject, "not judged", f"{n} {_unit(sample)}, fewer than {LEAST_CLUSTERS}", name)


def _hindered(gate: PlannedGate, subject: Subject, evidence: Evidence, incomplete: _Incomplete) -> Verdict | None:
    dataset, model, _ = subject
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
    return replace(_verdict(gate, subject, *hindrance), reference=baseline.label if baseline else None)


def _settled(gate: PlannedGate, verdict: Verdict, evidence: Evidence, incomplete: _Incomplete) -> Verdict:
    verdict = _counted(gate, verdict, evidence)
    effect = _effect(gate, verdict, evidence, incomplete)
    notes = [verdict.reason]
    if verdict.nights and effect == "warn":
        notes.append(f"failed, evaluation {verdict.nights} of {gate.fail_after}")
    if effect in BLOCKING and (waiver := gate.waiver) is not None:
        waived = evidence.night <= waiver.until
        effect = "warn" if waived else effect
        until = f"waived until {waiver.until}" if waived else f"its waiver ended on {waiver.until}"
        notes.append(f"{until} ({waiver.owner}: {waiver.reason})")
    if effect == "stop" and verdict.outcome == "inconclusive" and verdict.estimate is not None:  # nothing is missing
        key = "on_inconclusive" if verdict.slice == ALL else "on_inconclusive_slice"
        advice = f"undecided stops the release; set {key}: warn to get a warning instead"
        verdict = verdict.with_details(advice)
    return replace(verdict, effect=effect, reason="; ".join(notes))


def _counted(gate: PlannedGate, verdict: Verdict, evidence: Evidence) -> Verdict:
    """The verdict with how often in a row it failed; undecided where that is not known and would decide."""
    if verdict.outcome != "fail":
        return verdict
    if not isinstance(evidence.nights, str):
        return replace(verdict, nights=1 + evidence.nights.get(verdict.key, 0))
    if gate.fail_after == 1:
        return replace(verdict, nights=1)
    reason = f"{verdict.reason}; unknown if {gate.fail_after} in a row failed: {evidence.nights}"
    return replace(verdict, outcome="inconclusive", reason=reason)


def _effect(gate: PlannedGate, verdict: Verdict, evidence: Evidence, incomplete: _Incomplete) -> Effect:
    task = (verdict.dataset, verdict.model)
    if verdict.outcome in ("pass", "not judged"):
        return "pass"
    if verdict.outcome == "fail":
        return "fail" if verdict.nights >= gate.fail_after else "warn"
    blocked_already = verdict.outcome == "not evaluated" and incomplete[task].blocks
    if blocked_already:
        return "warn"
    if verdict.outcome == "not comparable" and gate.against is not None and gate.against.record == "last_passed":
        first = evidence.baselines[gate.name, *task].first  # no earlier evaluation yet must not block the first one
        return "warn" if first else gate.on_inconclusive
    asks = verdict.slice != ALL and gate.on_inconclusive_slice != "pass"
    return gate.on_inconclusive_slice if asks else gate.on_inconclusive
