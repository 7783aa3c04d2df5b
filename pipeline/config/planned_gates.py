"""Gates as they are planned, what they are judged against, and their verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal, TypeAlias

from rankledger.metrics.measure import Measure

GateKind: TypeAlias = Literal["difference", "limit", "query_drop", "complete", "extra"]


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
