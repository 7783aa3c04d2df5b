"""Judge all gates and weigh the outcomes for each model.

A line passes if its whole interval is on the good side of the limit, fails if it is on the other, and is inconclusive
if it straddles the limit or rests on too little. All lines of a gate are judged at one level, so that the gate errs no
more often than one line. With looks, or with other gates of a night, the end that decides a failure is further out
(`errors`), and with all looks spent a line is inconclusive.

Incomplete outputs are found first, because nothing else can be judged of them. An outcome is then weighed by
`on_inconclusive`, `fail_after` and waivers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias

from rankledger.pipeline.config.gates import LEAST_CLUSTERS, GateKind, PlannedGate
from rankledger.pipeline.data.joined import count_short
from rankledger.pipeline.gates.evidence import (
    ROUNDING,
    Evidence,
    GateJudge,
    Subject,
    list_slices,
    name_unit,
    new_verdict,
    outcome_of_slice,
)
from rankledger.pipeline.gates.intervals import name_subject
from rankledger.pipeline.gates.kinds import CompleteGate, DifferenceGate, ExtraGate, LimitGate, QueryDropGate
from rankledger.pipeline.gates.verdicts import BLOCKING, Effect, Outcome, Verdict
from rankledger.pipeline.inference.tables import ALL

KINDS: Mapping[GateKind, GateJudge] = MappingProxyType(
    {
        "difference": DifferenceGate(),
        "limit": LimitGate(),
        "query_drop": QueryDropGate(),
        "complete": CompleteGate(),
        "extra": ExtraGate(),
    }
)

_Incomplete: TypeAlias = Mapping[tuple[str, str], Verdict]  # the verdict that an output is incomplete, by its task


def judge(gates: Sequence[PlannedGate], evidence: Evidence) -> tuple[Verdict, ...]:
    """Return a verdict per gate, dataset, model, measure and slice, in the order of the gates and their tasks.

    Slices of fewer than 30 clusters are `not judged`, and pass. By default so are slices that are undecided.
    """
    complete = {gate.name: _verdicts(gate, evidence, {}) for gate in gates if KINDS[gate.settings.kind].hinders}
    blocking_last = sorted(chain.from_iterable(complete.values()), key=lambda verdict: verdict.blocks)
    incomplete = {(verdict.dataset, verdict.model): verdict for verdict in blocking_last if verdict.outcome == "fail"}
    verdicts = [
        complete[gate.name] if gate.name in complete else _verdicts(gate, evidence, incomplete) for gate in gates
    ]
    return tuple(chain.from_iterable(verdicts))


def _verdicts(gate: PlannedGate, evidence: Evidence, incomplete: _Incomplete) -> list[Verdict]:
    kind = KINDS[gate.settings.kind]
    if not kind.by_measure:
        verdicts = kind.judge(gate, (), evidence)
    else:
        named = {  # by names, for datasets may define one measure each in its way
            (*task, str(measure)): (*task, measure)
            for task in gate.tasks
            for measure in gate.measures
            if evidence.has(task[0], measure)
        }
        subjects = list(named.values())
        hindered = [_find_hindrance(gate, subject, evidence, incomplete) for subject in subjects]
        free = [subject for subject, verdict in zip(subjects, hindered, strict=True) if verdict is None]
        places = {name: i for i, name in enumerate(named)}
        judged = [
            _limit_unscored(gate, named[verdict.dataset, verdict.model, verdict.measure], verdict, evidence)
            for verdict in kind.judge(gate, free, evidence)
        ]
        verdicts = sorted(
            [*filter(None, hindered), *judged, *_too_small(gate, free, evidence)],
            key=lambda verdict: places[verdict.dataset, verdict.model, verdict.measure],
        )
    return [_settle_verdict(gate, verdict, evidence, incomplete) for verdict in verdicts]


def _limit_unscored(gate: PlannedGate, subject: Subject, verdict: Verdict, evidence: Evidence) -> Verdict:
    """Return the verdict, inconclusive if too few queries have scores, unless no score could mend a failure."""
    measure, judged = subject[2], verdict
    if verdict.estimate is None or measure.metric.input == "logs":  # two logs are of different queries
        return verdict
    for n_lacking, n_expected, shortfall in _shortfalls(gate, subject, verdict.slice, evidence):
        share = n_lacking / max(1, n_expected)
        is_failure = verdict.outcome == "fail" and KINDS[gate.settings.kind].fails_anyway(gate, verdict, measure, share)
        if share > gate.settings.max_unscored + ROUNDING and not is_failure:
            reason = f"{name_subject(measure, subject[1], verdict.slice)} {shortfall}"
            reason += f": undecided, max_unscored allows {gate.settings.max_unscored * 100:.6g}%"
            outcome = outcome_of_slice(gate, verdict.slice, "inconclusive")
            return replace(verdict, outcome=outcome, reason=reason, n_needed=None).with_details(verdict.reason)
        judged = judged.with_details(shortfall) if n_lacking else judged
    return judged


def _shortfalls(gate: PlannedGate, subject: Subject, slice: str, evidence: Evidence) -> Iterator[tuple[int, int, str]]:
    n, total = _count_unscored(gate, subject, slice, evidence)
    yield n, total, f"has scores on {total - n:,} of {total:,} queries"
    dataset, model, measure = subject
    lists = {name: lengths for (list_dataset, name), lengths in evidence.lengths.items() if list_dataset == dataset}
    lengths, k, mask = lists.pop(model, None), measure.k, evidence.samples[dataset].slices[slice]
    if lengths is None or k is None:
        return
    against = gate.against.model if gate.against and gate.against.record is None else None
    others = (against,) if against else evidence.compared
    few = f"has fewer than {k:,} documents on"
    for name, other_lengths in ({name: lists[name] for name in others if name in lists} or lists).items():
        n, total = count_short(lengths, other_lengths, k, mask)
        yield n, total, f"{few} {n:,} of {total:,} queries on which {name} has enough"
        n, total = count_short(other_lengths, lengths, k, mask) if against else (0, 0)
        yield n, total, f"is compared with {name}, which {few} {n:,} of {total:,} queries on which {model} has enough"


def _count_unscored(gate: PlannedGate, subject: Subject, slice: str, evidence: Evidence) -> tuple[int, int]:
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


def _too_small(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> Iterator[Verdict]:
    for subject in subjects:
        sample = evidence.samples[subject[0]]
        for name, n in list_slices(gate, sample, *subject[1:])[1].items():
            yield new_verdict(
                gate, subject, "not judged", f"{n} {name_unit(sample)}, fewer than {LEAST_CLUSTERS}", name
            )


def _find_hindrance(gate: PlannedGate, subject: Subject, evidence: Evidence, incomplete: _Incomplete) -> Verdict | None:
    dataset, model, _ = subject
    hindrance: tuple[Outcome, str] | None = None
    if (dataset, model) in incomplete:
        failed = incomplete[dataset, model]
        hindrance = "not evaluated", f"gate {failed.gate!r} failed: {failed.reason}"
    elif (dataset, model) in evidence.failures:
        hindrance = "inconclusive", evidence.failures[dataset, model]
    elif gate.against is not None and (reason := evidence.explain_incomparable(gate, subject)) is not None:
        hindrance = "not comparable", reason
    if hindrance is None:
        return None
    baseline = evidence.baselines.get((gate.name, dataset, model))
    return replace(new_verdict(gate, subject, *hindrance), reference=baseline.label if baseline else None)


def _settle_verdict(gate: PlannedGate, verdict: Verdict, evidence: Evidence, incomplete: _Incomplete) -> Verdict:
    verdict = _count_queries(gate, verdict, evidence)
    effect = _effect(gate, verdict, evidence, incomplete)
    notes = [verdict.reason]
    if verdict.nights and effect == "warn":
        notes.append(f"failed, evaluation {verdict.nights} of {gate.settings.fail_after}")
    waiver = gate.settings.waive
    names = ((waiver.models, verdict.model), (waiver.slices, verdict.slice)) if waiver else ()
    if effect in BLOCKING and waiver is not None and all({"*", name} & {*chosen} for chosen, name in names):
        waived = evidence.night <= waiver.until
        effect = "warn" if waived else effect
        until = f"waived until {waiver.until}" if waived else f"its waiver ended on {waiver.until}"
        notes.append(f"{until} ({waiver.owner}: {waiver.reason})")
    if effect == "stop" and verdict.outcome == "inconclusive" and verdict.estimate is not None:  # nothing is missing
        key = "on_inconclusive" if verdict.slice == ALL else "on_inconclusive_slice"
        advice = f"undecided stops the release; set {key}: warn to get a warning instead"
        verdict = verdict.with_details(advice)
    return replace(verdict, effect=effect, reason="; ".join(notes))


def _count_queries(gate: PlannedGate, verdict: Verdict, evidence: Evidence) -> Verdict:
    if verdict.outcome != "fail":
        return verdict
    if not isinstance(evidence.failed_nights, str):
        return replace(verdict, nights=1 + evidence.failed_nights.get(verdict.key, 0))
    if gate.settings.fail_after == 1:
        return replace(verdict, nights=1)
    reason = f"{verdict.reason}; unknown if {gate.settings.fail_after} in a row failed: {evidence.failed_nights}"
    return replace(verdict, outcome="inconclusive", reason=reason)


def _effect(gate: PlannedGate, verdict: Verdict, evidence: Evidence, incomplete: _Incomplete) -> Effect:
    task = (verdict.dataset, verdict.model)
    if verdict.outcome in ("pass", "not judged"):
        return "pass"
    if verdict.outcome == "fail":
        return "fail" if verdict.nights >= gate.settings.fail_after else "warn"
    blocked_already = verdict.outcome == "not evaluated" and incomplete[task].blocks
    if blocked_already:
        return "warn"
    if verdict.outcome == "not comparable":
        is_last_passed = gate.against is not None and gate.against.record == "last_passed"
        # no earlier evaluation yet must not block the first one
        is_first = is_last_passed and evidence.baselines[gate.name, *task].first
        return "warn" if is_first else gate.settings.on_not_comparable
    asks = verdict.slice != ALL and gate.settings.on_inconclusive_slice != "pass"
    return gate.settings.on_inconclusive_slice if asks else gate.settings.on_inconclusive
