"""Planned gates and their references."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal, TypeAlias

from rankledger.metrics.measure import Measure

GateKind: TypeAlias = Literal["difference", "limit", "query_drop", "complete", "extra"]


LEAST_CLUSTERS = 30
"""Minimum number of clusters for a judgment. A slice of fewer is not judged."""

MOST_UNSCORED = 0.01
"""Maximum share of queries without a score."""


def night_of(given: str | None, began: datetime) -> date:
    """Return the day of an evaluation: its date, or the day in UTC on which it began."""
    try:
        return date.fromisoformat(given or "")
    except ValueError:
        return began.astimezone(UTC).date()


@dataclass(frozen=True)
class Reference:
    """Model to compare with, of this evaluation or of a record."""

    text: str
    record: str | None  # id, path, word or `mlflow:RUN_ID`. None for this evaluation
    model: str | None  # None for the same model


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
    """Number of changed outputs that a gate may look at, and its error over all of them."""

    changed_outputs: int
    error: float
    since: date | None = None  # first night whose looks count. None counts all


@dataclass(frozen=True)
class PlannedGate:
    """A gate with its measures resolved, and the models and datasets that it judges."""

    name: str
    kind: GateKind
    tasks: tuple[tuple[str, str], ...]  # (dataset, model). The dataset is empty for `extra`
    measures: tuple[Measure, ...] = ()  # empty for `complete` and `extra`
    against: Reference | None = None
    margin: float = 0.0  # a share if `relative`. Negative if the model must be better
    relative: bool = False
    at_least: float | None = None
    at_most: float | None = None
    max_query_drop: float | None = None  # of one query that counts as lost
    allow: float = 0  # number of queries, or their share if `allow_share`
    allow_share: bool = False
    max_missing: float | None = None
    max_unscored: float = MOST_UNSCORED  # share of queries without a score, or with a list that ends early
    extra: str | None = None
    slices: tuple[str, ...] = ()
    on_inconclusive: Literal["stop", "warn", "pass"] = "stop"
    on_inconclusive_slice: Literal["stop", "warn", "pass"] = "pass"
    on_not_comparable: Literal["stop", "warn", "pass"] = "stop"
    fail_after: int = 1
    waiver: Waiver | None = None
    looks: Looks | None = None
    n_sharing: int = 1  # gates that share the error of one

    @property
    def by_interval(self) -> bool:
        """True if the gate is judged by an interval, and so may be wrong by chance."""
        return self.kind in ("difference", "limit") or (self.kind == "query_drop" and self.allow_share)
