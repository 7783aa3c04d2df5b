"""Sections of the config for gates. The keys of a gate give its kind."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.values import Amount, Date, Finite, Name, OneOrMore, QueryColumns, Section, Share, Whole

GateKind: TypeAlias = Literal["difference", "limit", "query_drop", "complete", "extra"]
Lenience: TypeAlias = Literal["stop", "warn", "pass"]

LEAST_CLUSTERS = 30
"""Minimum number of clusters for a judgment. A slice of fewer is not judged."""

MOST_UNSCORED = 0.01
"""Maximum share of queries without a score."""

_SLICED = ("datasets", "slices", "on_inconclusive_slice", "max_unscored")
_AGAINST = ("measure", "against")
# by kind: the keys that make a gate of this kind, those that it needs, too, and those that it may have
_KINDS: dict[GateKind, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "difference": (("margin",), _AGAINST, (*_SLICED, "on_not_comparable", "looks")),
    "query_drop": (("max_query_drop",), _AGAINST, (*_SLICED, "on_not_comparable", "allow")),
    "complete": (("max_missing",), (), ("datasets",)),
    "extra": (("extra",), (), ("at_least", "at_most")),
    "limit": (("at_least", "at_most"), ("measure",), _SLICED),
}
_KEYS = dict.fromkeys(key for groups in _KINDS.values() for keys in groups for key in keys)


class Waive(Section):
    """A gate that may fail for a while."""

    until: Date
    """The last night on which it may fail, as 2026-12-31."""

    owner: str = Field(min_length=1)
    """Who is responsible."""

    reason: str = Field(min_length=1)
    """Why it may fail."""

    models: OneOrMore = ("*",)
    """Models that it may fail for; `*` for all that it judges."""

    slices: OneOrMore = ("*",)
    """Slices that it may fail in, such as `device=phone`; `all` for all queries together, `*` for everything."""


class Looks(Section):
    """Number of changed outputs that a gate may look at, and its error over all of them."""

    changed_outputs: Whole = Field(ge=1, le=10_000)
    """Number of outputs of a model on a dataset that differ in their scores; an output seen before is no new look.
    After that many the gate is inconclusive."""

    error: Finite = Field(0.05, gt=0, lt=0.5)
    """Chance that any of them fails though it is no worse than the margin."""

    since: Date | None = None
    """The first night whose looks count, as 2026-11-01; a later one renews the looks. A night is the day of `--date`,
    or else the day in UTC on which the evaluation began."""


class Gate(Section):
    """A condition for models.

    It has one of `margin`, `max_query_drop`, `at_least` and `at_most`, `max_missing`, or `extra` with its limits.
    """

    name: Name
    """The name of the gate, which no other gate has."""

    models: OneOrMore = ("*",)
    """Models to judge; `*` for all except the one that they are compared with."""

    datasets: OneOrMore = ("*",)
    """Datasets to judge on; `*` for all that have the models and a measure of the gate."""

    measure: OneOrMore | None = None
    """One or several measures, each from a suite of the dataset."""

    against: str | None = Field(None, min_length=1)
    """What to compare the models with: a model of this config; or a record: `accepted`, `last_passed`, an evaluation's
    id, a path or `mlflow:RUN_ID`, and in it the same model, or another as in `accepted#bm25`."""

    margin: Amount | None = None
    """The accepted drop from `against`: on the measure's scale, or as a share of the figure there, as `2%`. Below 0 the
    models must be better by that much."""

    at_least: Finite | None = None
    """The lowest accepted figure."""

    at_most: Finite | None = None
    """The highest accepted figure."""

    max_query_drop: Finite | None = Field(None, gt=0)
    """A query that drops by more than this from `against` counts as lost."""

    allow: Amount = 0
    """Queries that may be lost: a number of the judged ones, or a share of all such queries, as `5%`, which the gate
    must be sure of: with none lost, 59 queries show `5%`."""

    max_missing: Amount | None = None
    """Accepted share of queries without output or score, as 0.01 or `1%`."""

    max_unscored: Amount = Field(MOST_UNSCORED, json_schema_extra={"default": "1%"})
    """Accepted share of queries that have a score of `against` (without `against`, that should have a score) and have
    none of the model, or a list that ends before the cutoff. With more the gate does not pass."""

    extra: str | None = Field(None, min_length=1)
    """Name of an external metric in the models' `extra`."""

    slices: QueryColumns = ()
    """Columns among the dataset's `slices`; the gate judges each of their slices, too."""

    looks: Looks | None = None
    """Spread the error of a gate with a `margin` over many nights."""

    on_inconclusive: Lenience = "stop"
    """Effect if the data do not decide: `stop` blocks the release, with exit code 3."""

    on_inconclusive_slice: Lenience = "pass"
    """Effect if the data of a slice do not decide. With `pass` the slice counts as too small to judge."""

    on_not_comparable: Lenience = "stop"
    """Effect if the models cannot be compared with `against`, as after a change of judgments. The first night warns."""

    fail_after: Whole = Field(1, ge=1)
    """Number of evaluations in a row that must fail before the gate fails."""

    waive: Waive | None = None
    """Until when the gate may fail, and why."""

    @property
    def kind(self) -> GateKind:
        return self._kinds()[0]

    @property
    def by_interval(self) -> bool:
        """True if the gate is judged by an interval, and so may be wrong by chance."""
        return self.kind in ("difference", "limit") or (self.kind == "query_drop" and isinstance(self.allow, Share))

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Gate:
        kinds, written = self._kinds(), self._list_written()
        if not kinds:
            advice = "`margin` or `max_query_drop` with `against`, `at_least` or `at_most`, `max_missing` or `extra`"
            raise ValueError(f"the gate has no condition; add one of {advice}")
        made_by = [next(key for key in _KINDS[kind][0] if key in written) for kind in kinds]
        if len(kinds) > 1:
            raise ValueError(f"`{made_by[0]}` and `{made_by[1]}` cannot be combined; write two gates")
        making, needs, may = _KINDS[kinds[0]]
        for key in needs:
            if key not in written:
                raise ValueError(f"`{made_by[0]}` needs `{key}`; add it")
        for key in written:
            if key not in (*making, *needs, *may):
                raise ValueError(f"`{key}` has no effect with `{made_by[0]}`; remove it")
        return self

    @model_validator(mode="after")
    def _has_limits_that_can_be_held(self) -> Gate:
        if self.extra is not None and self.at_least is None and self.at_most is None:
            raise ValueError("`extra` needs a limit; add `at_least` or `at_most`")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least:g} is above at_most {self.at_most:g}; no figure satisfies both")
        if isinstance(self.margin, Share) and abs(self.margin) >= 1:
            raise ValueError(f"a margin of {self.margin} is the whole figure or more; write a smaller share")
        if isinstance(self.allow, Share) and not 0 < self.allow < 1:
            raise ValueError(f"allow is a share between 0% and 100%, found {self.allow}; write it as 5%")
        if not isinstance(self.allow, Share) and (self.allow < 0 or self.allow % 1):
            raise ValueError(f"allow is a number of queries or a share, found {self.allow:g}; write it as 3 or 5%")
        for key, share in {"max_missing": self.max_missing, "max_unscored": self.max_unscored}.items():
            if share is not None and not 0 <= share <= 1:
                raise ValueError(f"{key} is a share from 0 to 1, found {share}; write it as 0.01 or 1%")
        return self

    def _kinds(self) -> list[GateKind]:
        written = self._list_written()
        kinds = [kind for kind, (made_by, _, _) in _KINDS.items() if not written.isdisjoint(made_by)]
        return [kind for kind in kinds if kind != "limit" or self.extra is None]

    def _list_written(self) -> Set[str]:
        return {key: None for key in _KEYS if getattr(self, key) != type(self).model_fields[key].default}.keys()


@dataclass(frozen=True)
class Reference:
    """Model to compare with, of this evaluation or of a record."""

    text: str
    record: str | None  # id, path, word or `mlflow:RUN_ID`. None for this evaluation
    model: str | None  # None for the same model


@dataclass(frozen=True)
class PlannedGate:
    """A gate as written, and the models, datasets and measures that it judges."""

    settings: Gate
    tasks: tuple[tuple[str, str], ...]  # (dataset, model). The dataset is empty for `extra`
    measures: tuple[Measure, ...] = ()  # empty for `complete` and `extra`
    against: Reference | None = None
    n_sharing: int = 1  # gates that share the error of one

    @property
    def name(self) -> str:
        return self.settings.name


def night_of(given: str | None, began: datetime) -> date:
    """Return the day of an evaluation: its date, or the day in UTC on which it began."""
    try:
        return date.fromisoformat(given or "")
    except ValueError:
        return began.astimezone(UTC).date()
