"""Gates as they are planned, what they are judged against, and their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from rankledger.metrics.measure import Measure

GateKind: TypeAlias = Literal["difference", "limit", "query_drop", "complete", "extra"]
Outcome: TypeAlias = Literal["pass", "fail", "inconclusive", "not comparable", "not evaluated", "not judged"]
Effect: TypeAlias = Literal["pass", "warn", "stop", "fail"]

BLOCKING: tuple[Effect, ...] = ("fail", "stop")
"""Effects that stop the release: a gate failed, or is undecided and must not be."""


LEAST_CLUSTERS = 30
"""Clusters that a judgment must rest on: a slice of fewer is shown and not judged."""

MOST_UNSCORED = 0.01
"""Share of queries that may lack a score before figures of the others mislead."""


def night_of(given: str | None, began: datetime) -> date:
    """The day of an evaluation, by which its looks are spent and waivers end.

    Args:
        given: its date, as `--date` gave it; a label such as `release-7` is no day.
        began: when it began, whose day in UTC it is without a day given.
    """
    try:
        return date.fromisoformat(given or "")
    except ValueError:
        return began.astimezone(UTC).date()


@dataclass(frozen=True)
class Reference:
    """What a model is compared with: a model of this evaluation, or one of a record.

    Attributes:
        text: as it was written.
        record: an id or a path, `last`, `last_passed`, `previous`, `accepted` or `mlflow:RUN_ID`; None means this
            evaluation.
        model: the model there; None means the same model.
    """

    text: str
    record: str | None
    model: str | None


@dataclass(frozen=True)
class Acceptance:
    """A record that was accepted for one model.

    Attributes:
        record: its id.
        manifest_sha256: hex digest of its `manifest.json`.
        reason: why it was accepted.
        accepted: the day, such as `2026-11-20`.
        by: who accepted it.
    """

    record: str
    manifest_sha256: str
    reason: str
    accepted: str
    by: str


@dataclass(frozen=True)
class Accepted:
    """What was accepted.

    Attributes:
        file: where it was written.
        entries: by model.
        replaced: by model, what was accepted before; models without one are left out.
        gates: what the gates of the record came to, in a word; empty if it has none.
        overrides: the values of `--set` that the record was evaluated with.
    """

    file: Path
    entries: Mapping[str, Acceptance]
    replaced: Mapping[str, Acceptance]
    gates: Literal["pass", "warn", "fail", "inconclusive", ""]
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Waiver:
    """A gate that may fail for a while.

    Attributes:
        until: the last day on which it may.
        owner: who answers for it.
        reason: why.
    """

    until: date
    owner: str
    reason: str


@dataclass(frozen=True)
class Looks:
    """Over how many changed outputs of each model on each dataset a gate may fail by mistake, and how rarely.

    Attributes:
        changed_outputs: how many.
        error: the chance that any of them fails though it is no worse than the margin.
        since: the first night whose looks count; None counts all.
    """

    changed_outputs: int
    error: float
    since: date | None = None


VerdictKey: TypeAlias = tuple[str, str, str, str, str]
"""What a verdict is found again by: its gate, dataset, model, measure and slice."""

LookKey: TypeAlias = tuple[str, str, str]
"""Whose looks are counted: a gate, a dataset and a model."""


@dataclass(frozen=True)
class LookCount:
    """How many looks a gate has spent on a model on a dataset.

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
    """The looks that a gate has spent on a model on a dataset.

    Attributes:
        gate: the gate's name.
        dataset: the dataset.
        model: the model.
        outputs: the night of each look, such as `2026-11-20`, by the digest of the scores that were compared.
    """

    gate: str
    dataset: str
    model: str
    outputs: dict[str, str]


@dataclass(frozen=True)
class PlannedGate:
    """A gate with its measures spelled out, and the models and datasets that it is for.

    Attributes:
        name: the gate's name.
        kind: `difference` (to a reference, against a margin), `limit` (of a figure), `query_drop` (how many queries
            lost much), `complete` (queries without output) or `extra` (an external metric).
        tasks: the (dataset, model) that it judges; the dataset is empty for `extra`.
        measures: what it looks at; none for `complete` and `extra`.
        against: what the model is compared with; None for a limit.
        margin: the drop that is still accepted, on the measure's scale or, where `relative`, as a share of the
            reference's figure; negative where the model must be better by that much.
        relative: whether the margin is a share.
        at_least: the least figure accepted.
        at_most: the greatest.
        max_query_drop: the drop of one query that counts as a crash.
        allow: how many queries may drop by more, or which share of all such queries.
        allow_share: whether `allow` is a share.
        max_missing: the share of queries that may be without output or score.
        max_unscored: the share of queries that may lack a score, or have a list that ends before the cutoff.
        extra: the name of the external metric.
        slices: columns of the queries table; every slice of each is judged, as `all` is.
        on_inconclusive: what an inconclusive verdict comes to.
        on_inconclusive_slice: the same of a slice. By default an undecided slice is not judged.
        fail_after: how many evaluations in a row must fail before the gate does.
        waiver: until when it may fail; None where it may not.
        looks: over how many nights its error is spread; None if each night has its own.
        n_sharing: among how many gates its error is divided, itself included.
    """

    name: str
    kind: GateKind
    tasks: tuple[tuple[str, str], ...]
    measures: tuple[Measure, ...] = ()
    against: Reference | None = None
    margin: float = 0.0
    relative: bool = False
    at_least: float | None = None
    at_most: float | None = None
    max_query_drop: float | None = None
    allow: float = 0
    allow_share: bool = False
    max_missing: float | None = None
    max_unscored: float = MOST_UNSCORED
    extra: str | None = None
    slices: tuple[str, ...] = ()
    on_inconclusive: Literal["stop", "warn", "pass"] = "stop"
    on_inconclusive_slice: Literal["stop", "warn", "pass"] = "pass"
    fail_after: int = 1
    waiver: Waiver | None = None
    looks: Looks | None = None
    n_sharing: int = 1

    @property
    def by_interval(self) -> bool:
        """Whether it is judged by an interval, and so may be wrong by chance; other gates count."""
        return self.kind in ("difference", "limit") or (self.kind == "query_drop" and self.allow_share)


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
        """The verdict with more details; unchanged without."""
        return replace(self, details="; ".join(filter(None, [self.details, text])))

    @property
    def key(self) -> VerdictKey:
        """What it is found again by in other evaluations."""
        return self.gate, self.dataset, self.model, self.measure, self.slice

    @property
    def counts_queries(self) -> bool:
        """Whether the estimate is a count or a share of queries that lost much, and not a figure of the measure."""
        return self.interval == "exact"

    @property
    def blocks(self) -> bool:
        """Whether it stops the release: it failed, or is undecided and must not be."""
        return self.effect in BLOCKING


def overall_outcome(verdicts: Sequence[Verdict]) -> Literal["pass", "fail", "inconclusive"]:
    """What all verdicts come to: `fail` where one fails, else `inconclusive` where one that must be settled is not."""
    effects = {verdict.effect for verdict in verdicts}
    if "fail" in effects:
        return "fail"
    return "inconclusive" if "stop" in effects else "pass"


def overall_effect(verdicts: Sequence[Verdict]) -> Literal["pass", "warn", "fail", "inconclusive", ""]:
    """What all verdicts come to, in a word; empty if there are none."""
    found = overall_outcome(verdicts)
    if found == "pass" and any(verdict.effect == "warn" for verdict in verdicts):
        return "warn"
    return found if verdicts else ""
