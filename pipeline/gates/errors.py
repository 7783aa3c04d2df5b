"""Error rates of gates: in one night, of all gates in a night, and over the looks of many nights.

A gate with looks spends a part of its error on each new output. The same scores give the same verdict again at no cost.
By Bonferroni's inequality the parts add up.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from rankledger.pipeline.config.planned_gates import LEAST_CLUSTERS, PlannedGate
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.gates.evidence import Evidence, Subject
from rankledger.pipeline.gates.verdicts import LookCount, LookKey, SpentLooks, Verdict
from rankledger.pipeline.inference.power import POWER, least_count, standard_errors

_DIGITS = 16  # of a digest, in hexadecimal
_NAMED = 5  # slices that a line names
_SPREAD = 0.1  # of differences, as a share of the range, before anything is measured


def errors_of(gate: PlannedGate, confidence: float) -> tuple[float, float] | None:
    """Return a gate's rates of false alarms and of missed failures at its limit. None for gates that count."""
    if not gate.by_interval:
        return None
    passing = 1 - confidence if gate.kind == "query_drop" else (1 - confidence) / 2
    failing = passing if gate.looks is None else min(passing, gate.looks.error / gate.looks.changed_outputs)
    return failing / gate.n_sharing, passing


def false_alarm_rate(gates: Sequence[PlannedGate], confidence: float) -> str:
    """Return a sentence on the share of nights in which a gate fails though all models are at its limit.

    Independent gates do so in 1 - Π(1 - error) of nights, any gates in at most Σ error. Empty without such gates.
    """
    errors = [
        errors[0] * (2 if gate.at_least is not None and gate.at_most is not None else 1)
        for gate in gates
        if (errors := errors_of(gate, confidence)) is not None
    ]
    if not errors:
        return ""
    which = f"{len(errors)} of {len(gates)} gates use intervals" if len(gates) > 1 else "the gate uses an interval"
    most = min(1.0, math.fsum(errors))
    often = f"a gate fails by chance in at most {_percent(most)} of nights"
    said = f"false alarms: {which}; with every model exactly at its limits, {often}"
    if len(errors) == 1 or any(gate.n_sharing > 1 for gate in gates):
        return said
    independent = _percent(1 - math.prod(1 - error for error in errors))
    lower = f"gates_error_rate: per_night lowers this to {_percent(most / len(errors))}"
    return f"{said} ({independent} if gates err independently); {lower}"


def small_slices(gates: Sequence[PlannedGate], groups: Mapping[str, Groups], confidence: float) -> Iterator[str]:
    """Yield a line per gate and dataset on slices with too few queries or clusters to be decided.

    A margin counts as decided if an unchanged model passes with a power of 80% and differences have a standard
    deviation of a tenth of the measure's range.
    """
    for gate in gates:
        columns = tuple(f"{column}=" for column in gate.slices)
        for dataset in dict.fromkeys(dataset for dataset, _ in gate.tasks if columns and dataset in groups):
            clusters = groups[dataset].clusters
            counts = {
                name: int(mask.sum()) if clusters is None else len(np.unique(clusters[mask]))
                for name, mask in groups[dataset].slices.items()
                if name.startswith(columns)
            }
            needed, why = _decisive_count(gate, confidence)
            small = [f"{name} ({n:,})" for name, n in counts.items() if n < needed]
            if small:
                unit = "queries" if clusters is None else "clusters"
                names = ", ".join(small[:_NAMED]) + (f" and {len(small) - _NAMED} more" if len(small) > _NAMED else "")
                share = f"{len(small)} of {len(counts)} slices on {dataset} are too small to judge: {names}"
                yield f"gate {gate.name}: {share}; {why} takes {needed:,} {unit}"


def _decisive_count(gate: PlannedGate, confidence: float) -> tuple[int, str]:
    errors = errors_of(gate, confidence)
    if gate.kind == "query_drop" and errors is not None:
        n = math.ceil(math.log(errors[1]) / math.log1p(-gate.allow))
        return max(LEAST_CLUSTERS, n), f"a share of {100 * gate.allow:g}% with no query lost"
    spread = max(
        (_SPREAD * (high - low) for low, high in (measure.metric.range for measure in gate.measures)), default=0
    )
    if gate.kind != "difference" or gate.relative or gate.margin <= 0 or not math.isfinite(spread):
        return LEAST_CLUSTERS, "a verdict"

    def decides(n: int) -> bool:
        return spread / math.sqrt(n) * standard_errors(1 - confidence, POWER, n - 1) <= gate.margin

    n = LEAST_CLUSTERS if decides(LEAST_CLUSTERS) else least_count(decides, LEAST_CLUSTERS)
    return n, f"a margin of {gate.margin:g}, if differences have a standard deviation of {spread:g},"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:.0f}%"


@dataclass(frozen=True)
class Look:
    """Look of a gate at an output."""

    count: LookCount | None  # looks spent, this one included; None if unknown
    note: str = ""
    allowed: bool = True  # False if its verdicts are inconclusive

    def applied(self, verdict: Verdict) -> Verdict:
        if self.allowed:
            return replace(verdict.with_details(self.note), looks=self.count)
        reason = f"{verdict.reason}; {self.note}"
        return replace(verdict, outcome="inconclusive", reason=reason, looks=self.count)


def look_at(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> Look:
    """Return the look of a gate at one output on one dataset, by one or several measures."""
    assert gate.looks is not None, "other gates count no looks"
    of, digest = gate.looks.changed_outputs, _digest(gate, subjects, evidence)
    if isinstance(evidence.looks, str):
        unknown = f"unknown how many of {of} looks are spent: {evidence.looks}"
        return Look(None, unknown, allowed=False) if digest else Look(None)
    spent = _counting(gate, evidence.looks.get((gate.name, *subjects[0][:2]), {}), evidence.night)
    n_spent = len(spent)
    if not digest:
        return Look(LookCount(n_spent, of))
    if digest in spent:
        return Look(LookCount(n_spent, of, digest), f"these scores were compared before: {n_spent} of {of} looks spent")
    if n_spent >= of:
        last = max(spent.values())
        advice = f"all {of} looks are spent, the last on {last}; set looks.since to a later day to renew them"
        return Look(LookCount(n_spent, of), advice, allowed=False)
    return Look(LookCount(n_spent + 1, of, digest), f"look {n_spent + 1} of {of}")


def looks_after(
    gates: Sequence[PlannedGate],
    verdicts: Sequence[Verdict],
    before: Mapping[LookKey, Mapping[str, str]] | str,
    night: date,
) -> tuple[SpentLooks, ...] | None:
    """Return all looks spent, now and before, also of other gates. None if unknown."""
    if isinstance(before, str):
        return None
    by_name = {gate.name: gate for gate in gates}
    after = {
        key: _counting(by_name[key[0]], days, night) if key[0] in by_name else dict(days)
        for key, days in before.items()
    }
    for verdict in verdicts:
        if verdict.looks is not None and verdict.looks.output:
            key = verdict.gate, verdict.dataset, verdict.model
            after.setdefault(key, {}).setdefault(verdict.looks.output, str(night))
    return tuple(SpentLooks(*key, outputs) for key, outputs in after.items() if outputs)


def _counting(gate: PlannedGate, days: Mapping[str, str], night: date) -> dict[str, str]:
    since = gate.looks.since if gate.looks else None
    return {digest: day for digest, day in days.items() if since is None or since > night or day >= str(since)}


def _digest(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> str:
    """Return a digest of all that verdicts depend on. Empty if the model scores like its baseline everywhere."""
    digest, same = hashlib.sha256(repr((gate.margin, gate.relative, gate.slices)).encode()), True
    for dataset, model, measure in subjects:
        baseline = evidence.baselines[gate.name, dataset, model].key
        contributions = evidence.samples[dataset].contributions
        ours, theirs = contributions[model, measure], contributions[baseline, measure]
        digest.update(f"{measure}\n".encode())
        for side in (ours, theirs):
            digest.update(side.numerators.tobytes())
            digest.update(side.denominators.tobytes())
        same &= np.array_equal(ours.numerators, theirs.numerators, equal_nan=True)
        same &= np.array_equal(ours.denominators, theirs.denominators)
    return "" if same else digest.hexdigest()[:_DIGITS]
