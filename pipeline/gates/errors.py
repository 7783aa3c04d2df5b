"""Error rates of gates: in one night, of all gates in a night, and over the looks of many nights.

A gate with looks spends a part of its error on each new output. The same scores give the same verdict again at no cost.
By Bonferroni's inequality the parts add up.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import numpy as np

from rankledger.pipeline.config.gates import LEAST_CLUSTERS, Looks, PlannedGate
from rankledger.pipeline.config.values import Share
from rankledger.pipeline.data.joined import Groups
from rankledger.pipeline.gates.evidence import Evidence, Subject
from rankledger.pipeline.gates.verdicts import LookCount, LookKey, SpentLooks, Verdict
from rankledger.pipeline.inference.power import POWER, least_count, standard_errors

_DIGITS = 16  # of a digest, in hexadecimal
_NAMED = 5  # slices that a line names
_SPREAD = 0.1  # of differences, as a share of the range, before anything is measured


def errors_of(gate: PlannedGate, confidence: float) -> tuple[float, float] | None:
    """Return a gate's rates of false alarms and of missed failures at its limit. None for gates that count."""
    settings = gate.settings
    if not settings.by_interval:
        return None
    passing = 1 - confidence if settings.kind == "query_drop" else (1 - confidence) / 2
    looks = settings.looks
    failing = passing if looks is None else min(passing, looks.error / looks.changed_outputs)
    return failing / gate.n_sharing, passing


def false_alarm_rate(gates: Sequence[PlannedGate], confidence: float) -> str:
    """Return a sentence on the share of nights in which a gate fails though all models are at its limit.

    Independent gates do so in 1 - Π(1 - error) of nights, any gates in at most Σ error. Empty without such gates.
    """
    errors = [
        errors[0] * (2 if gate.settings.at_least is not None and gate.settings.at_most is not None else 1)
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
        columns = tuple(f"{column}=" for column in gate.settings.slices)
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
    margin, allow, errors = gate.settings.margin, gate.settings.allow, errors_of(gate, confidence)
    if gate.settings.kind == "query_drop" and errors is not None:
        n = math.ceil(math.log(errors[1]) / math.log1p(-allow))
        return max(LEAST_CLUSTERS, n), f"a share of {100 * allow:g}% with no query lost"
    ranges = [measure.metric.range for measure in gate.measures]
    spread = max((_SPREAD * (high - low) for low, high in ranges), default=0)
    if margin is None or isinstance(margin, Share) or margin <= 0 or not math.isfinite(spread):
        return LEAST_CLUSTERS, "a verdict"

    def decides(n: int) -> bool:
        return spread / math.sqrt(n) * standard_errors(1 - confidence, POWER, n - 1) <= margin

    n = LEAST_CLUSTERS if decides(LEAST_CLUSTERS) else least_count(decides, LEAST_CLUSTERS)
    return n, f"a margin of {margin:g}, if differences have a standard deviation of {spread:g},"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:.0f}%"


def count_look(
    gate: PlannedGate, looks: Looks, subjects: Sequence[Subject], evidence: Evidence
) -> tuple[LookCount | None, str, bool]:
    """Count the look of a gate at one output on one dataset, by one or several measures.

    Returns:
        The looks spent, this one included, or None if unknown; a note; and False if the looks are spent or unknown,
        so that the verdicts are inconclusive.
    """
    of, digest = looks.changed_outputs, _digest(gate, subjects, evidence)
    if isinstance(evidence.looks, str):
        unknown = f"unknown how many of {of} looks are spent: {evidence.looks}"
        return (None, unknown, False) if digest else (None, "", True)
    spent = _counting(gate, evidence.looks.get((gate.name, *subjects[0][:2]), {}), evidence.night)
    n_spent = len(spent)
    if not digest:
        return LookCount(n_spent, of), "", True
    if digest in spent:
        note = f"these scores were compared before: {n_spent} of {of} looks spent"
        return LookCount(n_spent, of, digest), note, True
    if n_spent >= of:
        advice = f"all {of} looks are spent, the last on {max(spent.values())}"
        return LookCount(n_spent, of), f"{advice}; set looks.since to a later day to renew them", False
    return LookCount(n_spent + 1, of, digest), f"look {n_spent + 1} of {of}", True


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
    since = gate.settings.looks.since if gate.settings.looks else None
    return {digest: day for digest, day in days.items() if since is None or since > night or day >= str(since)}


def _digest(gate: PlannedGate, subjects: Sequence[Subject], evidence: Evidence) -> str:
    """Return a digest of margin, slices and the scores of both models. Empty if they score alike on all queries."""
    margin, slices = gate.settings.margin, gate.settings.slices
    digest, same = hashlib.sha256(repr((margin, isinstance(margin, Share), slices)).encode()), True
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
