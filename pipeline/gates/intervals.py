"""Limits, joint intervals, and their verdicts with reasons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.gates import LEAST_CLUSTERS, PlannedGate
from rankledger.pipeline.gates.evidence import Baseline, Subject, errors_of, new_verdict, outcome_of_slice
from rankledger.pipeline.gates.verdicts import Outcome, Verdict
from rankledger.pipeline.inference.distributions import t_quantile
from rankledger.pipeline.inference.intervals import ENOUGH, Resampled, bounded_interval, exact_interval, known, tail_end
from rankledger.pipeline.inference.power import least_count
from rankledger.pipeline.inference.samples import Pair, Sample
from rankledger.pipeline.inference.summary import IntervalRule
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.support.text import write_decimals

_NORMAL = NormalDist()
_HIGHEST = 1 - 1e-12  # beyond it no resample is left outside anyway, and the tail would round to 0


def simultaneous(figures: Sequence[Resampled], rule: IntervalRule) -> IntervalRule:
    """Return the rule by which intervals of these values hold jointly.

    Over each resample the values' distances from their estimates, in standard errors, have a maximum. An interval
    reaches the quantile c of these maxima in standard errors, or BCa's counterpart of that level. Figures that move
    together, such as a slice and `all`, cost less than by Bonferroni's correction, which applies if one of the models
    has replicates.

    Args:
        figures: Figures that share B resamples. A resample that leaves a value undefined counts as infinitely far.
        rule: Method of the intervals, with their joint coverage.

    Reference:
        Westfall & Young 1993, Resampling-Based Multiple Testing, chapter 2: max t in a single step, as intervals.
    """
    if len(figures) < 2:
        return rule
    if any(figure.families for figure in figures):  # resamples of queries do not know how replicates vary
        return IntervalRule(rule.method, 1 - (1 - rule.confidence) / len(figures))
    maxima = np.zeros(len(figures[0].resamples))
    for figure in figures:  # one by one: all of them side by side would be large
        if figure.std_error > 0:  # queries that all moved alike are nowhere but at their estimate
            distances = np.abs(figure.resamples - figure.centre) / figure.std_error
            np.maximum(maxima, np.where(np.isnan(distances), np.inf, distances), out=maxima)
    reach = max(float(np.quantile(maxima, rule.confidence)), _NORMAL.inv_cdf((1 + rule.confidence) / 2))
    # The level beyond which that share of further resamples is expected: the least of B resamples has the level 0, yet
    # 1 in B + 1 further ones would lie below it.
    n_resamples = len(maxima)
    tail = max(0.0, (_NORMAL.cdf(-reach) * (n_resamples + 1) - 1) / (n_resamples - 1))
    return IntervalRule(rule.method, min(1 - 2 * tail, _HIGHEST))


Ends = tuple[float | None, float | None]
"""The two ends of an interval; (None, None) if there is none."""


@dataclass(frozen=True)
class GateRule:
    """Settings of the intervals of a gate's lines.

    A model is released only if all lines pass. So the end that decides a pass needs no correction for several lines
    (intersection-union test, Berger 1982), and the end that decides a failure does.
    """

    passing: IntervalRule  # of the end that decides a pass
    joint: IntervalRule  # of the end that decides a failure, for lines that are read off the resamples
    error: float  # one-sided error of that end on other lines
    # by task, the one-sided error of that end on any line; None without `looks` or `per_night`
    errors: Mapping[tuple[str, str], float] | None = None
    rare: str = ""  # why that end is further out than the other, such as `3 lines`; empty if both are of one interval


@dataclass(frozen=True)
class Found:
    """Interval that a line is judged by."""

    ends: Ends
    method: str  # as a verdict says it; empty if there is none
    confidence: float
    # error beyond the end that decides a failure, if that is rarer than beyond the other end
    failing_error: float | None = None
    level: str = ""  # such as `interval of 97.5%, for 2 lines`; empty if it is that of the tables, or there is none

    def written(self, estimate: float, limit: float, *, signed: bool = False) -> str:
        """Return the estimate with its interval, such as `0.0213 [0.0107, 0.0322]`, with digits that show the limit."""
        side = -1.0 if estimate < 0 and not signed else 1.0
        ends = [side * end for end in self.ends[:: int(side)] if end is not None]
        written, *interval = format_apart([side * estimate, *ends], side * limit)
        return f"{written} [{', '.join(interval)}]" if interval else written


def format_level(
    confidence: float, causes: Sequence[str] = (), failing_error: float | None = None, rare: str = ""
) -> str:
    """Return a text such as `98.3%, for 3 lines and few queries`, with two digits of the error."""
    error = 100 * (1 - confidence)
    level = f"{100 - float(f'{error:.2g}'):.12g}%" if error >= _LEAST_ERROR else f"over {100 - _LEAST_ERROR:g}%"
    level += f", for {' and '.join(causes)}" if causes else ""
    if failing_error is not None:
        level += f"; {100 * failing_error:.2g}% beyond the end that fails, for {rare}"
    return level


_LEAST_ERROR = 1e-4  # percent: nobody reads a row of nines
_SEVERITY: tuple[Outcome, ...] = ("pass", "inconclusive", "fail")
_SAME = 1e-12  # an estimate this close to its limit equals it: the rest is rounding
_MOST_DIGITS = 15


@dataclass(frozen=True)
class Limit:
    """Limit that a value must be above, or below."""

    value: float
    least: bool = True

    def outcome(self, low: float, high: float) -> Outcome:
        if low <= self.value <= high:
            return "inconclusive"
        return "pass" if (low > self.value) == self.least else "fail"

    def holds(self, number: float) -> bool:
        return number >= self.value if self.least else number <= self.value

    def __str__(self) -> str:
        return f"at least {self.value:.12g} is asked for" if self.least else f"at most {self.value:.12g} is allowed"


def format_limits(limits: Sequence[Limit]) -> str:
    """Return one or two limits in words."""
    return " and ".join(map(str, limits))


def worst(found: Sequence[tuple[Outcome, Limit]]) -> tuple[Outcome, Limit]:
    """Return the worst outcome of several limits, and the first limit that causes it."""
    return max(found, key=lambda pair: _SEVERITY.index(pair[0]))


CRASH = 0.2
"""The drop of a query's score, in [0, 1], that a passing gate counts."""


@dataclass(frozen=True)
class CrashCount:
    """Number of queries, or clusters, that dropped by more than a limit."""

    crashed: int
    n: int  # of how many
    unit: str  # `queries` or `clusters`

    def ends(self, error: float) -> tuple[float, float]:
        """Return the minimum and maximum possible share of such queries, each with this error."""
        return exact_interval(self.crashed, self.n, 1 - 2 * error) if self.n else (0.0, 1.0)

    def n_needed(self, share: float, failing: float, passing: float) -> int | None:
        """Return the queries that decide the share if it stays. None if no number does.

        `failing` is the one-sided error of showing it to be above, `passing` of showing it to be below.
        """
        crash_share = self.crashed / self.n if self.n else share
        if crash_share == share:
            return None

        def decides(n: int) -> bool:
            grown = CrashCount(round(crash_share * n), n, self.unit)
            return grown.ends(passing)[1] < share if crash_share < share else grown.ends(failing)[0] > share

        return least_count(decides, self.n)

    def __str__(self) -> str:
        unit = self.unit.removesuffix("s") if self.unit == "clusters" else "query"
        return f"{self.crashed:,} of {self.n:,} {self.unit}" if self.crashed else f"no {unit} of {self.n:,}"


def is_enough(figure: Resampled) -> bool:
    """Return whether a value has enough clusters for its resamples to decide."""
    return figure.mark == "" and figure.n_clusters >= LEAST_CLUSTERS


@dataclass(frozen=True, eq=False)
class GateCheck:
    """Figure, or difference of two, that is compared with limits."""

    subject: Subject
    slice: str
    judged: Resampled  # what is compared with the limits
    plain: Resampled  # the difference itself, if a share of the baseline is taken off what is judged; else the same
    limits: tuple[Limit, ...]  # all of which must hold
    unit: str  # `queries` or `clusters`
    # (Q,) what `judged` is the plain mean of, by sorted query id; None if there is none or it is not needed
    values: Floats | None = None
    baseline: Baseline | None = None  # None for a figure
    share: float | None = None  # margin as a share of the baseline's score; None if it is not relative
    theirs: float = math.nan  # the baseline's score over the same queries
    theirs_ends: Ends = (None, None)  # its interval, if it may be negative
    # queries that dropped by more than `CRASH`; None for a figure, and for other scales than [0, 1]
    crashes: CrashCount | None = None
    note: str = ""  # what a reader should know of the comparison

    @property
    def unchanged(self) -> bool:
        """True if every difference is 0, on enough queries to say that the models are the same."""
        is_same = self.baseline is not None and self.plain.mark == "degenerate" and abs(self.plain.estimate) <= _SAME
        return is_same and self.plain.n_clusters >= LEAST_CLUSTERS

    @property
    def trusted(self) -> bool:
        """True if the interval of the resamples may decide, which needs 30 queries and no few that dominate."""
        return is_enough(self.plain) and math.isfinite(self.judged.std_error)

    @property
    def few(self) -> bool:
        """True if few queries decide a difference, then judged by Student's t with κ - 1 degrees of freedom."""
        enough = self.plain.n_clusters >= LEAST_CLUSTERS and 2 <= self.plain.kappa < ENOUGH
        return enough and self.baseline is not None and math.isfinite(self.judged.estimate)

    @property
    def bounded(self) -> bool:
        """True if the interval holds for any scores in a range: of a level, or if t has less than one degree."""
        finite = all(math.isfinite(end) for end in self.judged.range)
        other = self.trusted or self.unchanged or self.few
        return not other and finite and self.values is not None and len(self.values) > 0

    @property
    def zero_baseline(self) -> bool:
        """True if the baseline's score may be 0, so that no share of it can be taken."""
        low, high = self.theirs_ends
        return low is not None and high is not None and low <= 0 <= high and not self.unchanged

    def found(self, rule: GateRule, limit: Limit) -> Found:
        confidence = rule.passing.confidence
        method, (low, high) = self._interval(rule.passing)
        error, how, far = self._failing_end(rule, limit) if rule.rare else (None, "", low)
        if low is None or high is None or far is None:
            return Found((None, None), "", confidence)
        if not all(map(math.isfinite, self.judged.range)):  # a sample often lacks the long tail
            end = tail_end(self.judged, (1 - confidence) / 2, upper=not limit.least)
            low, high = (min(low, end), high) if limit.least else (low, max(high, end))
        if error is not None:
            method += f"/{how}" if rule.errors else ""
            low, high = (low, max(high, far)) if limit.least else (min(low, far), high)
        causes = (f"few {self.unit}",) if self.few or self.bounded else ()
        level = format_level(confidence, causes, error, rule.rare) if causes or error is not None else ""
        return Found((low, high), method, confidence, error, level and f"interval of {level}")

    def _interval(self, rule: IntervalRule) -> tuple[str, Ends]:
        judged, method = self.judged, ""
        if self.bounded:
            assert self.values is not None, "that is what bounded means"
            method, ends = bounded_interval(self.values, judged.range, rule.confidence)
        elif self.few:
            degrees = min(self.plain.kappa, judged.kappa) - 1
            reach = t_quantile((1 + rule.confidence) / 2, degrees) * judged.error
            method, ends = "t", judged.outer(judged.estimate, judged.estimate, reach)
        else:
            of_resamples = rule.of(judged)
            return rule.method if of_resamples[0] is not None else "", of_resamples
        return method, judged.outer(*ends, judged.total_error.reach(rule.confidence)) if judged.families else ends

    def _failing_end(self, rule: GateRule, limit: Limit) -> tuple[float, str, float | None]:
        error = (1 - rule.joint.confidence) / 2 if self.trusted else rule.error
        if rule.errors:
            error = rule.errors[self.subject[:2]]
        if not (rule.errors and self.trusted):
            joint = rule.joint if self.trusted else IntervalRule(rule.joint.method, 1 - 2 * error)
            method, ends = self._interval(joint)
            return error, method, ends[limit.least]
        end = tail_end(self.judged, error, upper=limit.least)
        if self.judged.families:
            end = self.judged.outer(end, end, self.judged.total_error.reach(1 - 2 * error))[limit.least]
        return error, "t", end

    def outcome(self, ends: Ends, limit: Limit) -> Outcome:
        if self.unchanged:  # nothing is estimated here: the difference is 0, which a margin of 0 allows
            return "pass" if (limit.value if self.share is None else -self.share) <= 0 else "fail"
        low, high = ends
        if not (self.trusted or self.few or self.bounded) or self.zero_baseline or low is None or high is None:
            return "inconclusive"
        return limit.outcome(low, high)

    def n_needed(self, found: Found, limit: Limit) -> int | None:
        """Return the queries that would decide if the estimate stays. None if no number would."""
        minimum = 1.0
        if not (self.trusted or self.few or self.bounded) and self.plain.n_clusters:
            few = LEAST_CLUSTERS / self.plain.n_clusters
            minimum = max(ENOUGH / self.plain.kappa, few) if self.plain.kappa else few
        times = self._times(found.ends, limit, minimum)
        return None if times is None else max(math.ceil(self.judged.n_queries * times), self.judged.n_queries + 1)

    def _times(self, ends: Ends, limit: Limit, least: float) -> float | None:
        low, high = ends
        if self.judged.total_error.replicates or self.zero_baseline:  # which more queries may leave as they are
            return None
        alike = self.baseline is None and self.plain.mark == "degenerate" and not self.bounded
        distance = self.judged.estimate - limit.value
        if low is None or high is None or alike or (abs(distance) <= _SAME and low < high):
            return None
        if low == high:
            return least
        reach = self.judged.estimate - low if distance > 0 else high - self.judged.estimate
        return max(least, (reach / distance) ** 2)


def reason_of(
    line: GateCheck, found: Found, outcome: Outcome, limit: Limit, needed: int | None
) -> tuple[str, list[str]]:
    """Return the reason for a line's outcome in a sentence, and the details behind it."""
    _, model, measure = line.subject
    name = name_subject(measure, model, line.slice)
    if not math.isfinite(line.judged.estimate):
        return (
            f"{name} is undefined: no query {'in common has scores of both models' if line.baseline else 'counts'}",
            [],
        )
    reason, details = f"{name} {_figures(line, found, limit)}", [found.level]
    if outcome == "inconclusive":
        reason = f"{reason}: undecided, {_settling(line, found.ends, needed)}"
        details.append(_weakness(line) if found.ends[0] is not None else "")
    if outcome == "pass" and line.crashes and not line.unchanged:
        details.append(_unseen(line.crashes))
    return reason, [text for text in (*details, line.note) if text]


def _unseen(crashes: CrashCount) -> str:
    _, share = crashes.ends(0.05)
    could = f"up to {share:.1%} of all {crashes.unit} could ({format_level(0.95)})"
    return f"a mean can hide large drops: {crashes} dropped by more than {CRASH:g}, so {could}"


def name_subject(measure: Measure, model: str, slice: str) -> str:
    """Return a text such as `ndcg@10 of dense on market=de`."""
    return f"{measure} of {model}" if slice == ALL else f"{measure} of {model} on {slice}"


def format_apart(
    numbers: Sequence[float], limit: float, write: Callable[[float, int], str] = write_decimals, digits: int = 4
) -> list[str]:
    """Format numbers with equally many digits, enough to tell them from a limit that they do not equal."""
    others = [number for number in numbers if abs(number - limit) > _SAME]
    while digits < _MOST_DIGITS and any(write(number, digits) == write(limit, digits) for number in others):
        digits += 1
    return [write(number, digits) for number in numbers]


def _figures(line: GateCheck, found: Found, limit: Limit) -> str:
    if line.baseline is None:
        return f"is {found.written(line.judged.estimate, limit.value, signed=True)}; {format_limits(line.limits)}"
    if line.share is not None:
        return _from_share(line, line.share, found)
    _, _, measure = line.subject
    difference, label, allowed = line.judged.estimate, line.baseline.name, f"{abs(limit.value):.12g}"
    if line.plain.mark == "degenerate" and abs(difference) <= _SAME:
        text = f"is the same as of {label} on every query ({line.plain.n_queries:,})"
        return f"{text}; {_describe_limit(measure, limit.value, allowed, 0.0)}"
    by = f"{_verbs(measure)[difference < 0]} by {found.written(difference, limit.value)}"
    return f"{by} against {label}; {_describe_limit(measure, limit.value, allowed, difference)}"


def _from_share(line: GateCheck, share: float, found: Found) -> str:
    _, _, measure = line.subject
    assert line.baseline is not None, "only a difference has a share"
    distance, lower = line.judged.estimate, measure.metric.direction == "lower"
    better = line.plain.estimate
    if line.theirs:
        (percent,) = format_apart([abs(better / line.theirs)], abs(share), lambda x, digits: f"{x:.{digits}%}", 2)
        change = f"{_verbs(measure)[better < 0]} by {percent} against {line.baseline.name}"
    else:
        change = f"moved from 0 against {line.baseline.name}"
    asked_for = _describe_limit(measure, -share, f"{abs(share) * 100:g}%", better)
    if line.zero_baseline:
        baseline = (
            f"{write_decimals(line.theirs)} [{', '.join(write_decimals(end or 0.0) for end in line.theirs_ends)}]"
        )
        return f"{change}; {asked_for}, but the score there is {baseline}, which may be 0"
    side = "above" if (distance < 0) == lower else "below"
    kept = 1 + (share if lower == (line.theirs >= 0) else -share)
    score = "that score" if line.theirs >= 0 else f"that score of {write_decimals(line.theirs)}"
    return f"{change}; {asked_for}, and it is {found.written(distance, 0.0)} {side} {kept * 100:.12g}% of {score}"


def _describe_limit(measure: Measure, wanted: float, amount: str, difference: float) -> str:
    better, worse = _verbs(measure, stem=True)
    if wanted > 0:
        return f"it must {better} by at least {amount}"
    if wanted == 0:
        return f"it may not {worse}"
    return f"at most {amount} is allowed" if difference < 0 else f"it may {worse} by at most {amount}"


def _settling(line: GateCheck, ends: Ends, needed: int | None) -> str:
    if line.zero_baseline:
        return "as no share of it can be taken. Set a margin on the measure's scale"
    if ends[0] is None:
        return "for some resamples hold no query that counts"
    if line.plain.mark == "degenerate" and not line.bounded and line.baseline is None:
        return "for scores that are all alike leave nothing to judge by"
    if line.judged.total_error.replicates:
        return "as replicates differ; evaluate more replicates or more queries"
    if needed is None:
        return f"and no number of queries would settle it while the {'difference' if line.baseline else 'figure'} stays"
    step = 10 ** max(0, len(str(needed)) - 2)  # rounded up to two digits
    return f"about {-(-needed // step) * step:,} queries would settle it"


def _weakness(line: GateCheck) -> str:
    n_clusters = line.plain.n_clusters
    if line.trusted or line.zero_baseline:
        return ""
    if n_clusters < LEAST_CLUSTERS:
        return f"{n_clusters} {line.unit} are too few to judge by"
    kappa = min(max(1.0, round(line.plain.kappa, 1)), ENOUGH - 0.1)  # 7.96 is below 8, and is not written as 8
    return f"it rests on about {kappa:g} of {n_clusters:,} {line.unit}{'' if line.few or line.bounded else ', too few'}"


def _verbs(measure: Measure, *, stem: bool = False) -> tuple[str, str]:
    if measure.metric.direction == "lower":
        return ("improve", "worsen") if stem else ("improved", "worsened")
    return ("rise", "drop") if stem else ("rose", "dropped")


def query_drops(sample: Sample, pair: Pair) -> Floats:
    """Return (Q,) drops of the queries of a slice, NaN if undefined."""
    before, after = (sample.contributions[name, pair.measure].scores for name in (pair.baseline, pair.model))
    drops = (after - before) if pair.measure.metric.direction == "lower" else (before - after)
    mask = sample.slices[pair.slice]
    return drops if mask is None else np.where(mask, drops, np.nan)


def count_crashes(sample: Sample, drops: Floats, crashed: npt.NDArray[np.int64]) -> CrashCount:
    """Count the crashed queries or clusters, and all that are defined."""
    clusters, defined = sample.groups.clusters, np.flatnonzero(~np.isnan(drops))
    if clusters is None:
        return CrashCount(len(crashed), len(defined), "queries")
    return CrashCount(len(np.unique(clusters[crashed])), len(np.unique(clusters[defined])), "clusters")


def causes_of_rarity(gate: PlannedGate, n_lines: int) -> str:
    """Return the reasons for a corrected failing end, such as `90 looks, 3 gates and 4 lines`."""
    looks = gate.settings.looks
    counts = {"looks": looks.changed_outputs if looks else 1, "gates": gate.n_sharing, "lines": n_lines}
    causes = [f"{n} {name}" for name, n in counts.items() if n > 1]
    return " and ".join(filter(None, [", ".join(causes[:-1]), *causes[-1:]]))


def interval_verdicts(gate: PlannedGate, lines: Sequence[GateCheck], rule: IntervalRule) -> list[Verdict]:
    """Judge lines so that all ends that decide a failure hold jointly."""
    trusted, n_others = [line.judged for line in lines if line.trusted], sum(line.few or line.bounded for line in lines)
    error = (1 - rule.confidence) / max(1, len(trusted) + n_others)
    shared = replace(rule, confidence=1 - error * len(trusted)) if trusted and n_others else rule
    errors, rare = _failing_errors(gate, lines, rule.confidence), causes_of_rarity(gate, len(trusted) + n_others)
    joint = rule if errors else simultaneous(trusted, shared)
    ends = GateRule(rule, joint, error / 2, errors, rare)
    return [_interval_verdict(gate, line, ends) for line in lines]


def _failing_errors(
    gate: PlannedGate, lines: Sequence[GateCheck], confidence: float
) -> Mapping[tuple[str, str], float] | None:
    """Return the error of the end that decides a failure, by task. None if it needs no correction.

    The error of the gate is divided by its outputs, and the error of an output by its lines, so that the errors of an
    output's looks add up to its part. Max t would need hundreds of times as many resamples at these levels, to save
    little.
    """
    errors = errors_of(gate, confidence)
    if errors is None or errors[0] == errors[1]:
        return None
    n_lines = Counter(line.subject[:2] for line in lines)
    return {task: errors[0] / len(gate.tasks) / n for task, n in n_lines.items()}


def _interval_verdict(gate: PlannedGate, line: GateCheck, rule: GateRule) -> Verdict:
    found_by = {limit: line.found(rule, limit) for limit in line.limits}
    outcome, limit = worst([(line.outcome(judged.ends, limit), limit) for limit, judged in found_by.items()])
    judged = found_by[limit]
    if outcome == "pass" and len(line.limits) > 1:  # each end decided it
        lows, highs = zip(*(each.ends for each in found_by.values()), strict=True)
        judged = replace(judged, ends=(lows[0], highs[1]), failing_error=None, level="")
    ends = judged.ends
    needed = line.n_needed(judged, limit) if outcome == "inconclusive" else None
    reason, details = reason_of(line, judged, outcome, limit, needed)
    return replace(
        new_verdict(gate, line.subject, outcome_of_slice(gate, line.slice, outcome), reason, line.slice),
        details="; ".join(details),
        reference=line.baseline.label if line.baseline else None,
        estimate=known(line.judged.estimate),
        ci_low=ends[0],
        ci_high=ends[1],
        limit=limit.value,
        confidence=None if ends[0] is None else judged.confidence,
        interval=judged.method,
        failing_error=judged.failing_error,
        n_needed=needed,
        mark=line.plain.mark,
    )


def fails_by_interval(verdict: Verdict, measure: Measure, share: float, best: float) -> bool:
    """Return whether a failure remains if the queries without a score had the best value."""
    if verdict.ci_low is None or verdict.ci_high is None or verdict.estimate is None:
        return False
    limit = verdict.limit or 0.0
    if verdict.estimate > limit:
        return (1 - share) * verdict.ci_low + share * measure.metric.range[0] > limit
    return (1 - share) * verdict.ci_high + share * best < limit
