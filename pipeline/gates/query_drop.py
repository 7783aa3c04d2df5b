"""Gates on the number or the share of queries that lost much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.planned_gates import PlannedGate
from rankledger.pipeline.gates.errors import errors_of
from rankledger.pipeline.gates.evidence import (
    ROUNDING,
    Evidence,
    GateJudge,
    Subject,
    new_verdict,
    outcome_of_slice,
    slices_of,
)
from rankledger.pipeline.gates.intervals import (
    CrashCount,
    Limit,
    causes_of_rarity,
    count_crashes,
    format_amount,
    format_apart,
    format_level,
    query_drops,
    subject_name,
)
from rankledger.pipeline.gates.verdicts import Outcome, Verdict
from rankledger.pipeline.inference.samples import Pair

_NAMED = 5  # queries that a reason names


class QueryDropGate(GateJudge):
    """Gate on the number or share of queries that drop by more than a limit."""

    def judge(self, gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> list[Verdict]:
        asked = [
            (subject, name)
            for subject in subjects
            for name in slices_of(gate, evidence.samples[subject[0]], *subject[1:])[0]
        ]
        gate_errors, n = errors_of(gate, evidence.rule.confidence), max(1, len(asked))
        errors = gate_errors and (gate_errors[0] / n, gate_errors[1])
        return [_drops(gate, *line, evidence, errors, causes_of_rarity(gate, n)) for line in asked]

    def fails_anyway(self, gate: PlannedGate, verdict: Verdict, measure: Measure, share: float) -> bool:
        if not gate.allow_share:
            return True
        return verdict.ci_low is not None and (1 - share) * verdict.ci_low > (verdict.limit or 0.0)


def _drops(
    gate: PlannedGate, subject: Subject, slice: str, evidence: Evidence, errors: tuple[float, float] | None, rare: str
) -> Verdict:
    dataset, model, measure = subject
    assert gate.max_query_drop is not None, "a gate of this kind has it"
    sample, baseline = evidence.samples[dataset], evidence.baselines[gate.name, dataset, model]
    pair = Pair(model, baseline.key, measure, slice)
    drops = query_drops(sample, pair)
    crashed = np.flatnonzero(drops > gate.max_query_drop + ROUNDING)  # NaN, where one is undefined, is not above
    crashed = crashed[np.argsort(-drops[crashed], kind="stable")]
    before, after = (sample.contributions[name, measure].scores for name in (baseline.key, model))
    ids = evidence.query_ids[dataset]
    named = [
        f"{ids[query]} ({format_amount(before[query])} to {format_amount(after[query])})" for query in crashed[:_NAMED]
    ]
    count = count_crashes(sample, drops, crashed)
    what = f"dropped by more than {gate.max_query_drop:g} in {subject_name(measure, model, slice)}"
    what += f" against {baseline.name}"
    if errors is not None:
        verdict = _share_verdict(gate, subject, slice, count, what, errors, rare)
    else:
        queries = {0: "no query", 1: "1 query"}.get(len(crashed), f"{len(crashed):,} queries")
        outcome: Outcome = "pass" if len(crashed) <= gate.allow else "fail"
        verdict = new_verdict(gate, subject, outcome, f"{queries} {what}; at most {gate.allow:g} may", slice)
        verdict = replace(verdict, estimate=float(len(crashed)), limit=float(gate.allow))
        if not count.n:
            reason = f"{subject_name(measure, model, slice)} is undefined: no query in common has scores of both models"
            verdict = replace(verdict, outcome="inconclusive", reason=reason)
    return replace(verdict.with_details(", ".join(named)), reference=baseline.label)


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
        new_verdict(gate, subject, outcome_of_slice(gate, slice, outcome), reason, slice),
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
