"""A line of a gate that is judged by an interval: what it is held to, how that comes out, and what would decide it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.inference.gates.evidence import Baseline, Subject
from pipeline.inference.intervals import LEAST_CLUSTERS, Resampled
from pipeline.verdicts import Outcome, PlannedGate

__all__ = ["Ends", "Limit", "Line", "limits_of", "worst"]

Ends = tuple[float | None, float | None]
"""The two ends of an interval; (None, None) where there is none."""

_SEVERITY: tuple[Outcome, ...] = ("pass", "inconclusive", "fail")
_SAME = 1e-12  # an estimate this close to its limit is at it: what is left is rounding


@dataclass(frozen=True)
class Limit:
    """What a figure is held to.

    Attributes:
        value: the limit.
        least: whether the figure must be above it, rather than below.
    """

    value: float
    least: bool = True

    def outcome(self, low: float, high: float) -> Outcome:
        """Where an interval lies; one that touches the limit straddles it."""
        if low <= self.value <= high:
            return "inconclusive"
        return "pass" if (low > self.value) == self.least else "fail"

    def holds(self, number: float) -> bool:
        """Whether a number that is known exactly is within it, or just at it."""
        return number >= self.value if self.least else number <= self.value

    def __str__(self) -> str:
        """What it asks for, in words."""
        return f"at least {self.value:g} is asked for" if self.least else f"at most {self.value:g} is allowed"


def limits_of(gate: PlannedGate) -> tuple[Limit, ...]:
    """The limits of a gate on figures or on numbers from outside."""
    bounds = ((gate.at_least, True), (gate.at_most, False))
    return tuple(Limit(value, least) for value, least in bounds if value is not None)


def worst(found: Sequence[tuple[Outcome, Limit]]) -> tuple[Outcome, Limit]:
    """What several limits come to, and the first of them that it is due to."""
    return max(found, key=lambda pair: _SEVERITY.index(pair[0]))


@dataclass(frozen=True, eq=False)
class Line:
    """A figure, or a difference of two, that is held to limits.

    Attributes:
        subject: its dataset, model and measure.
        slice: its queries.
        judged: what is held to the limits.
        plain: the difference as it is, where a share of the baseline is taken off what is judged; else the same.
        limits: all of which must hold.
        unit: what is drawn as one: `queries` or `clusters`.
        baseline: what the model is held against; None for a figure.
        factor: the share of the baseline's figure that is taken off; 1 where the margin is not relative.
        theirs: the baseline's figure over the same queries.
    """

    subject: Subject
    slice: str
    judged: Resampled
    plain: Resampled
    limits: tuple[Limit, ...]
    unit: str
    baseline: Baseline | None = None
    factor: float = 1.0
    theirs: float = math.nan

    @property
    def unchanged(self) -> bool:
        """Whether every difference is 0, on enough queries to say that the models are the same."""
        same = self.baseline is not None and self.plain.mark == "degenerate"
        return same and self.plain.n_clusters >= LEAST_CLUSTERS

    @property
    def decidable(self) -> bool:
        """Whether an interval of it may decide: not where it is sparse or constant, or a resample is undefined."""
        return self.plain.mark == "" and math.isfinite(self.judged.std_error)

    def outcome(self, ends: Ends) -> tuple[Outcome, Limit]:
        """What comes of it with this interval, and the limit that it is due to."""
        return worst([(self._outcome(ends, limit), limit) for limit in self.limits])

    def _outcome(self, ends: Ends, limit: Limit) -> Outcome:
        if self.unchanged:  # nothing is estimated here: the difference is 0, which a margin of 0 allows
            return "pass" if self.judged.estimate >= limit.value else "fail"
        low, high = ends
        if not self.decidable or low is None or high is None:
            return "inconclusive"
        return limit.outcome(low, high)

    def n_needed(self, ends: Ends, limit: Limit) -> int | None:
        """How many queries would decide, if the estimate stays; None where none would.

        An interval shrinks with the root of the number of queries, and must shrink to the distance between estimate
        and limit. And what it rests on must grow to 30 clusters, that many of them away from the most frequent value.
        """
        low, high = ends
        alike = self.baseline is None and self.plain.mark == "degenerate"  # more of the same would tell nothing
        distance = self.judged.estimate - limit.value
        if low is None or high is None or alike or (abs(distance) <= _SAME and low < high):
            return None
        times = [LEAST_CLUSTERS / n for n in (self.plain.n_clusters, self.plain.n_away) if n]
        if low < high:
            reach = self.judged.estimate - low if distance > 0 else high - self.judged.estimate
            times.append((reach / distance) ** 2)
        return max(math.ceil(self.judged.n_queries * max(times)), self.judged.n_queries + 1)
