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
        spent: looks spent, this one included.
        of: how many there are.
        output: digest of the scores that were compared; empty if no look was spent on them.
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
    """What one gate says of one model on one dataset, by one measure, in one slice: a line of `gates.json`.

    Attributes:
        gate: the gate's name.
        dataset: the dataset; empty for an external metric.
        model: the model.
        measure: the measure, or the name of the number; empty where queries are counted.
        slice: `all`, or `column=value`.
        outcome: what was found; `not judged` for a slice that is too small to decide, whose effect is `pass`.
        effect: what that comes to: `pass`, `warn`, `fail`, or `stop` for one that did not fail and blocks the release;
            after `on_inconclusive`, `fail_after` and a waiver.
        reason: one sentence that says why.
        reference: what it was compared with, with the record's id if it is of one; None for a limit.
        estimate: the figure that was judged: an oriented difference, a figure, a count or a share.
        ci_low: lower end of its interval.
        ci_high: upper end.
        limit: what it was held to, in the same unit.
        confidence: the level of the interval, by the error of the end that decides a pass at both ends.
        interval: how it was made: a `bootstrap.method`; `t`, `betting` or `exact` where few queries decide; or empty.
            With `looks` or `per_night` the end that decides a failure is made apart: `bca+t/t` names how, after the
            slash.
        n_needed: queries that would settle an inconclusive verdict if the estimate stays and this interval shrinks with
            the root of their number; None where none would.
        nights: how many evaluations in a row failed, this one included.
        mark: `sparse`, `degenerate`, or empty.
        failing_error: how often, at most, the true figure lies beyond the end that decides a failure, if several
            lines, looks or other gates make that rarer than beyond the other end.
        looks: how many looks are spent; None without `looks`, and if that is not known.
        details: what the reason rests on: the level of the interval if it is not that of the tables, how far it can be
            trusted, where it changed, looks, advice; empty if there is nothing to say.
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
        """Return the verdict with more details; unchanged without."""
        return replace(self, details="; ".join(filter(None, [self.details, text])))

    @property
    def key(self) -> VerdictKey:
        """Identity in other evaluations."""
        return self.gate, self.dataset, self.model, self.measure, self.slice

    @property
    def counts_queries(self) -> bool:
        """True if the estimate is a count or a share of queries that lost much, and not a figure of the measure."""
        return self.interval == "exact"

    @property
    def blocks(self) -> bool:
        """True if it stops the release: it failed, or is undecided and must not be."""
        return self.effect in BLOCKING


def overall_outcome(verdicts: Sequence[Verdict]) -> Literal["pass", "fail", "inconclusive"]:
    """Return `fail` if a verdict fails, else `inconclusive` if one that must be settled is not, else `pass`."""
    effects = {verdict.effect for verdict in verdicts}
    if "fail" in effects:
        return "fail"
    return "inconclusive" if "stop" in effects else "pass"


def overall_effect(verdicts: Sequence[Verdict]) -> Literal["pass", "warn", "fail", "inconclusive", ""]:
    """Return the effect of all verdicts, in a word; empty if there are none."""
    found = overall_outcome(verdicts)
    if found == "pass" and any(verdict.effect == "warn" for verdict in verdicts):
        return "warn"
    return found if verdicts else ""
