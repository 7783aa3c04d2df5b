"""Gates as they are planned, and their references."""

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
    """Return the day of an evaluation: its date, or the day in UTC on which it began if the date is none."""
    try:
        return date.fromisoformat(given or "")
    except ValueError:
        return began.astimezone(UTC).date()


@dataclass(frozen=True)
class Reference:
    """Model to compare with, of this evaluation or of a record.

    Attributes:
        record: Id, path, `last`, `last_passed`, `previous`, `accepted` or `mlflow:RUN_ID`. None for this evaluation.
        model: None for the same model.
    """

    text: str
    record: str | None
    model: str | None


@dataclass(frozen=True)
class Waiver:
    """A gate that may fail until a day, for some models and slices. All of either if none is named."""

    until: date
    owner: str
    reason: str
    models: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Looks:
    """Number of changed outputs that a gate may look at, and its error over all of them.

    Attributes:
        since: First night whose looks count. None counts all.
    """

    changed_outputs: int
    error: float
    since: date | None = None


@dataclass(frozen=True)
class PlannedGate:
    """A gate with its measures resolved, and the models and datasets that it judges.

    Attributes:
        kind: `difference` (to a reference), `limit` (of an estimate), `query_drop` (queries that lost much),
            `complete` (queries without output) or `extra` (an external metric).
        tasks: (dataset, model). The dataset is empty for `extra`.
        measures: Empty for `complete` and `extra`.
        margin: Accepted drop on the measure's scale, or as a share if `relative`. Negative if the model must be better.
        max_query_drop: Drop of one query that counts as lost.
        allow: Number of queries that may be lost, or their share if `allow_share`.
        max_missing: Share of queries that may have no output or score.
        max_unscored: Share of queries that may lack a score, or have a list that ends before the cutoff.
        extra: Name of the external metric.
        slices: Columns of the queries table. Every slice of each is judged, as `all` is.
        fail_after: Evaluations in a row that must fail before the gate does.
        n_sharing: Number of gates that share the error of one.
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
    on_not_comparable: Literal["stop", "warn", "pass"] = "stop"
    fail_after: int = 1
    waiver: Waiver | None = None
    looks: Looks | None = None
    n_sharing: int = 1

    @property
    def by_interval(self) -> bool:
        """True if the gate is judged by an interval, and so may be wrong by chance."""
        return self.kind in ("difference", "limit") or (self.kind == "query_drop" and self.allow_share)
