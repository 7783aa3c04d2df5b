"""Gates on the number or the share of queries that lost much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import PlannedGate
from rankledger.pipeline.config.values import Share
from rankledger.pipeline.gates.errors import errors_of
from rankledger.pipeline.gates.evidence import (
    ROUNDING,
    Evidence,
    GateJudge,
    Subject,
    list_slices,
    new_verdict,
    outcome_of_slice,
)
from rankledger.pipeline.gates.intervals import (
    CrashCount,
    Limit,
    causes_of_rarity,
    count_crashes,
    format_apart,
    format_level,
    name_subject,
    query_drops,
)
from rankledger.pipeline.gates.verdicts import Outcome, Verdict
from rankledger.pipeline.inference.samples import Pair
from rankledger.pipeline.support.text import write_decimals

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
    most, allow = gate.settings.max_query_drop, gate.settings.allow
    assert most is not None, "a gate of this kind has it"
    sample, baseline = evidence.samples[dataset], evidence.baselines[gate.name, dataset, model]
    drops = query_drops(sample, Pair(model, baseline.key, measure, slice))
    crashed = np.flatnonzero(drops > most + ROUNDING)  # NaN, where one is undefined, is not above
    crashed = crashed[np.argsort(-drops[crashed], kind="stable")]
    before, after = (sample.contributions[name, measure].scores for name in (baseline.key, model))
    ids = evidence.query_ids[dataset]
    named = [
        f"{ids[query]} ({write_decimals(before[query])} to {write_decimals(after[query])})"
        for query in crashed[:_NAMED]
    ]
    count, name = count_crashes(sample, drops, crashed), name_subject(measure, model, slice)
    what = f"dropped by more than {most:g} in {name} against {baseline.name}"
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
