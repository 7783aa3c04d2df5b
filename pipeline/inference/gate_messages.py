"""Verdicts in words: a sentence that a release manager understands, with the figures it rests on."""

from __future__ import annotations

import math

from rankledger.metrics.measure import Measure
from rankledger.pipeline.inference.gate_bounds import Ends, GateCheck, Limit
from rankledger.pipeline.types.results import ALL, LEAST_CLUSTERS, Outcome

__all__ = ["format_amount", "reason_of", "subject_name"]


def reason_of(line: GateCheck, ends: Ends, outcome: Outcome, limit: Limit, needed: int | None) -> str:
    """Why a line came out as it did.

    Args:
        line: what was judged.
        ends: of its interval.
        outcome: what came of it.
        limit: what it is due to.
        needed: the queries that would decide, where it is inconclusive.
    """
    _, model, measure = line.subject
    name = subject_name(measure, model, line.slice)
    if not math.isfinite(line.judged.estimate):
        return f"{name} is undefined: no query counts" + (" for both models" if line.baseline else "")
    said = f"{name} {_found(line, ends, limit)}"
    return f"{said}, {_undecided(line, ends, needed)}" if outcome == "inconclusive" else said


def subject_name(measure: Measure, model: str, slice: str) -> str:
    """What is judged, such as `ndcg@10 of dense on market=de`."""
    return f"{measure} of {model}" if slice == ALL else f"{measure} of {model} on {slice}"


def format_amount(value: float) -> str:
    """A figure with four decimals; one too small for them has an exponent, and 0 no sign."""
    return f"{value + 0.0:.4f}" if value == 0 or abs(value) >= 0.00005 else f"{value:.1e}"


def _found(line: GateCheck, ends: Ends, limit: Limit) -> str:
    """The figures, and what was asked for."""
    if line.baseline is None:
        return f"is {format_amount(line.judged.estimate)}{_interval(ends)}; {limit}"
    if line.factor != 1:
        return _from_share(line, ends)
    _, _, measure = line.subject
    difference, label = line.judged.estimate, line.baseline.label
    if line.plain.mark == "degenerate":
        return f"is the same as of {label} on every query ({line.plain.n_queries:,}); {_asked(measure, limit, 0.0)}"
    verb = _verbs(measure)[difference < 0]
    by = f"by {format_amount(abs(difference))}{_interval(_outwards(difference, ends))}"
    return f"{verb} {by} against {label}; {_asked(measure, limit, difference)}"


def _from_share(line: GateCheck, ends: Ends) -> str:
    """How far the model is from its baseline, in percent, and how far from the share of it that is asked for."""
    _, _, measure = line.subject
    assert line.baseline is not None, "only a difference has a share"
    distance, lower = line.judged.estimate, measure.metric.direction == "lower"
    better = line.plain.estimate
    if line.theirs:
        change = f"{_verbs(measure)[better < 0]} by {abs(better / line.theirs):.2%} against {line.baseline.label}"
    else:
        change = f"moved from 0 against {line.baseline.label}"
    far = f"{format_amount(abs(distance))}{_interval(_outwards(distance, ends))}"
    side = "above" if (distance < 0) == lower else "below"
    return f"{change}, {far} {side} the {line.factor * 100:g}% that {'are allowed' if lower else 'are asked for'}"


def _asked(measure: Measure, limit: Limit, difference: float) -> str:
    """What a margin asks for."""
    better, worse = _verbs(measure, stem=True)
    if limit.value > 0:
        return f"it must {better} by at least {limit.value:g}"
    if limit.value == 0:
        return f"it may not {worse}"
    return f"at most {-limit.value:g} is allowed" if difference < 0 else f"it may {worse} by at most {-limit.value:g}"


def _undecided(line: GateCheck, ends: Ends, needed: int | None) -> str:
    """Why nothing is decided, and what would."""
    what = "figure" if line.baseline is None else "difference"
    if ends[0] is None:
        return "but there is no interval, for some resamples hold no query that counts"
    if line.plain.mark == "degenerate" and line.baseline is None:
        return "but scores that are all alike leave nothing to judge by"
    settled = f"about {_about(needed or 0)} queries would settle it if the {what} stays"
    if needed is None:
        settled = f"and no number of queries would settle it while the {what} stays just there"
    return f"but {_weakness(line)}: {settled}"


def _weakness(line: GateCheck) -> str:
    n_clusters, n_away = line.plain.n_clusters, math.floor(line.plain.n_away)
    if n_clusters < LEAST_CLUSTERS:
        return f"{n_clusters} {line.unit} are too few to judge by"
    if line.plain.mark:
        differ = "differ" if line.baseline else "differ from the most frequent score"
        return f"only {n_away} of {n_clusters:,} {line.unit} {differ}, too few to judge by"
    return "the interval holds that limit"


def _about(n_queries: int) -> str:
    """A number of queries, rounded up to two digits."""
    step = 10 ** max(0, len(str(n_queries)) - 2)
    return f"{-(-n_queries // step) * step:,}"


def _outwards(difference: float, ends: Ends) -> Ends:
    """The ends of an amount: those of a difference, mirrored where it is negative and its amount is told."""
    low, high = ends
    if difference >= 0 or low is None or high is None:
        return ends
    return -high, -low


def _interval(ends: Ends) -> str:
    low, high = ends
    return "" if low is None or high is None else f" [{format_amount(low)}, {format_amount(high)}]"


def _verbs(measure: Measure, *, stem: bool = False) -> tuple[str, str]:
    """For the better and for the worse: an error does not drop when it gets worse."""
    if measure.metric.direction == "lower":
        return ("improve", "worsen") if stem else ("improved", "worsened")
    return ("rise", "drop") if stem else ("rose", "dropped")
