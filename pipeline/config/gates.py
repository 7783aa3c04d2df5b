"""The sections of gates: what a model must hold to be released.

A gate is of one kind, which its keys tell: `margin` a difference, `max_query_drop` the queries that lost much,
`max_missing` the queries without output, `extra` a number from outside, and limits without `extra` a figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from pipeline.config.fields import Amount, Date, Finite, Name, OneOrMore, QueryColumns, Whole, is_share, number_of
from pipeline.config.section import Section
from pipeline.verdicts import GateKind

__all__ = ["Gate", "Waive"]


@dataclass(frozen=True)
class _Kind:
    """One kind of gate: the keys of which one makes it so, those it needs beside them, and those it may have."""

    kind: GateKind
    made_by: tuple[str, ...]
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


_KINDS = (
    _Kind("difference", ("margin",), ("measure", "against"), ("datasets", "slices")),
    _Kind("query_drop", ("max_query_drop",), ("measure", "against"), ("datasets", "slices", "allow")),
    _Kind("complete", ("max_missing",), may=("datasets",)),
    _Kind("extra", ("extra",), may=("at_least", "at_most")),
    _Kind("limit", ("at_least", "at_most"), ("measure",), ("datasets", "slices")),
)
_JUDGED = (
    *("datasets", "measure", "against", "margin", "at_least", "at_most", "max_query_drop", "allow", "max_missing"),
    *("extra", "slices"),
)


class Waive(Section):
    """A gate that may fail for a while."""

    until: Date
    """The last day on which it may, as 2026-12-31."""

    owner: str = Field(min_length=1)
    """Who answers for it."""

    reason: str = Field(min_length=1)
    """Why it may."""


class Gate(Section):
    """What models must hold, tonight and every night: one of `margin`, `max_query_drop`, `at_least` and `at_most`,
    `max_missing`, or `extra` with its limits.
    """

    name: Name
    """What the gate is called; each has a name of its own."""

    models: OneOrMore = ("*",)
    """The models that must hold it, by name; `*` for all, but the one that they are held against."""

    datasets: OneOrMore = ("*",)
    """The datasets it is judged on; `*` for all that have the models and a measure of the gate."""

    measure: OneOrMore | None = None
    """The measure, or several, each of a suite of the dataset."""

    against: str | None = Field(None, min_length=1)
    """What the models are held against: a model of this config; or a record, as `accepted`, `latest`, an evaluation's
    id, a path or `mlflow:RUN_ID`, and in it the same model, or another as in `accepted#bm25`."""

    margin: Amount | None = None
    """The drop from `against` that is accepted: on the measure's scale, or as a share of the figure there, as `2%`.
    Below 0 the models must be better by that much."""

    at_least: Finite | None = None
    """The least figure that is accepted."""

    at_most: Finite | None = None
    """The greatest figure that is accepted."""

    max_query_drop: Finite | None = Field(None, gt=0)
    """The drop of one query from `against` beyond which the query counts as lost."""

    allow: Whole = Field(0, ge=0)
    """How many queries may be lost."""

    max_missing: Amount | None = None
    """The share of queries that may be without output, as 0.01 or `1%`."""

    extra: str | None = Field(None, min_length=1)
    """The name of a number in the models' `extra`."""

    slices: QueryColumns = ()
    """Columns among the dataset's `slices`: every slice of them is judged, too."""

    on_inconclusive: Literal["fail", "warn", "pass"] = "fail"
    """What it comes to where the data do not decide."""

    fail_after: Whole = Field(1, ge=1)
    """How many evaluations in a row must fail before the gate does."""

    waive: Waive | None = None
    """Until when it may fail, and why."""

    @property
    def kind(self) -> GateKind:
        """What it judges."""
        return self._kinds()[0].kind

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Gate:
        kinds = self._kinds()
        if not kinds:
            advice = "`margin` or `max_query_drop` beside `against`, `at_least` or `at_most`, `max_missing` or `extra`"
            raise ValueError(f"it does not say what to judge; add one of {advice}")
        made_by = [next(key for key in kind.made_by if key in self._written()) for kind in kinds]
        if len(kinds) > 1:
            raise ValueError(f"`{made_by[0]}` and `{made_by[1]}` exclude each other; make two gates of it")
        lacking = [key for key in kinds[0].needs if key not in self._written()]
        if lacking:
            raise ValueError(f"`{made_by[0]}` needs `{lacking[0]}`; add it")
        idle = [key for key in self._written() if key not in (*kinds[0].made_by, *kinds[0].needs, *kinds[0].may)]
        if idle:
            raise ValueError(f"`{idle[0]}` has no effect beside `{made_by[0]}`; take it out")
        return self

    @model_validator(mode="after")
    def _has_limits_that_can_be_held(self) -> Gate:
        if self.extra is not None and self.at_least is None and self.at_most is None:
            raise ValueError("`extra` needs a limit; add `at_least` or `at_most`")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least:g} is above at_most {self.at_most:g}; no figure is both")
        if self.margin is not None and is_share(self.margin) and abs(number_of(self.margin)) >= 1:
            raise ValueError(f"a margin of {self.margin} is as much as there is; write a smaller share")
        if self.max_missing is not None and not 0 <= number_of(self.max_missing) <= 1:
            raise ValueError(f"max_missing is a share from 0 to 1, found {self.max_missing}; write it as 0.01 or 1%")
        return self

    def _kinds(self) -> list[_Kind]:
        """The kinds that its keys make it; limits are those of `extra` where that is written."""
        made = [kind for kind in _KINDS if set(kind.made_by) & set(self._written())]
        return [kind for kind in made if kind.kind != "limit" or self.extra is None]

    def _written(self) -> list[str]:
        """The keys of what is judged that are away from their defaults."""
        return [key for key in _JUDGED if getattr(self, key) != type(self).model_fields[key].default]
