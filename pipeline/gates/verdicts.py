"""Verdicts of gates, and the looks that they spend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["pass", "fail", "inconclusive", "not comparable", "not evaluated", "not judged"]
Effect: TypeAlias = Literal["pass", "warn", "stop", "fail"]

BLOCKING: tuple[Effect, ...] = ("fail", "stop")
"""Effects that stop the release: a gate failed, or is undecided and must not be."""


VerdictKey: TypeAlias = tuple[str, str, str, str, str]
"""What a verdict is found again by: its gate, dataset, model, measure and slice."""

LookKey: TypeAlias = tuple[str, str, str]
"""Whose looks are counted: a gate, a dataset and a model."""


@dataclass(frozen=True)
class LookCount:
    """Number of looks that a gate has spent on a model on a dataset.

    Attributes:
        spent: Looks spent, including this one.
        of: Number of looks.
        output: Digest of the scores that were compared. Empty if no look was spent on them.
    """

    spent: int
    of: int
    output: str = ""


@dataclass(frozen=True)
class SpentLooks:
    """Looks that a gate has spent on a model on a dataset."""

    gate: str
    dataset: str
    model: str
    # the night of each look, such as `2026-11-20`, by the digest of the scores that were compared
    outputs: dict[str, str]


@dataclass(frozen=True)
class Verdict:
    """Verdict of a gate on one model on one dataset, by one measure, in one slice: an entry of `gates.json`.

    Attributes:
        gate: Gate name.
        dataset: Dataset. Empty for an external metric.
        model: Model.
        measure: Measure, or name of the external metric. Empty if queries are counted.
        slice: `all`, or `column=value`.
        outcome: Outcome. `not judged` for a slice that is too small to decide, whose effect is `pass`.
        effect: `pass`, `warn`, `fail`, or `stop` for one that did not fail and blocks the release, after
            `on_inconclusive`, `fail_after` and a waiver.
        reason: One sentence that says why.
        reference: Model that it was compared with, with the id of another record. None for a limit.
        estimate: Value that was judged: an oriented difference, a value, a count or a share.
        ci_low: Lower end of its interval.
        ci_high: Upper end.
        limit: Limit in the same unit.
        confidence: Level of the interval, with the error of the passing end at both ends.
        interval: Method of the interval: a `bootstrap.method`, `t`, `betting` or `exact` if few queries decide, or
            empty. With `looks` or `per_night` the failing end has a method of its own after the slash: `bca+t/t`.
        n_needed: Queries that would settle an inconclusive verdict if the estimate stays and the interval shrinks with
            the root of their number. None if no number would.
        nights: Number of evaluations in a row that failed, including this one.
        mark: `sparse`, `degenerate`, or empty.
        failing_error: Maximum rate at which the true value lies beyond the end that decides a failure, if several
            lines, looks or other gates make that rarer than beyond the other end.
        looks: Number of looks spent. None without `looks`, or if unknown.
        details: Basis of the reason: the level of the interval if it is not the tables', its reliability, changes,
            looks, advice. Empty if there is none.
    """

    gate: str
    dataset: str
    model: str
    measure: str
    slice: str
    outcome: Outcome
    effect: Effect
    reason: str
    reference: str | None = None
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    limit: float | None = None
    confidence: float | None = None
    interval: str = ""
    n_needed: int | None = None
    nights: int = 0
    mark: str = ""
    failing_error: float | None = None
    looks: LookCount | None = None
    details: str = ""

    def with_details(self, text: str) -> Verdict:
        """Return the verdict with more details."""
        return replace(self, details="; ".join(filter(None, [self.details, text])))

    @property
    def key(self) -> VerdictKey:
        """Identity in other evaluations."""
        return self.gate, self.dataset, self.model, self.measure, self.slice

    @property
    def blocks(self) -> bool:
        """True if it stops the release: it failed, or is undecided and must not be."""
        return self.effect in BLOCKING


def overall_outcome(verdicts: Sequence[Verdict]) -> Literal["pass", "fail", "inconclusive"]:
    """Return `fail` if a verdict fails, else `inconclusive` if a required one is not settled, else `pass`."""
    effects = {verdict.effect for verdict in verdicts}
    if "fail" in effects:
        return "fail"
    return "inconclusive" if "stop" in effects else "pass"


def overall_effect(verdicts: Sequence[Verdict]) -> Literal["pass", "warn", "fail", "inconclusive", ""]:
    """Return the effect of all verdicts in a word. Empty if there are none."""
    outcome = overall_outcome(verdicts)
    if outcome == "pass" and any(verdict.effect == "warn" for verdict in verdicts):
        return "warn"
    return outcome if verdicts else ""
