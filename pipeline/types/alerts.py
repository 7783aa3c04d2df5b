"""Alerts: the state of an evaluation on a night, what is due to each target, and what was sent.

A night comes after another by its date, and among evaluations of one date by when they began. What a later night says
replaces what an earlier one has not said yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeAlias

from rankledger.pipeline.types.gates import Verdict, overall_outcome
from rankledger.pipeline.types.results import DataWarning, Failure

State: TypeAlias = Literal["passed", "failed", "inconclusive", "incomplete"]

STATES: tuple[State, ...] = ("passed", "failed", "inconclusive", "incomplete")


def state_of(verdicts: Sequence[Verdict], failures: Sequence[Failure], warnings: Iterable[DataWarning]) -> State:
    """What an evaluation came to, in the order of exit codes: a failed gate, what is missing, an undecided gate.

    Args:
        verdicts: what the gates say.
        failures: the model outputs that are missing or were refused.
        warnings: those of the data; one with a measure says that the measure failed.
    """
    outcome = overall_outcome(verdicts)
    if outcome == "fail":
        return "failed"
    if failures or any(warning.measure for warning in warnings):
        return "incomplete"
    return "inconclusive" if outcome == "inconclusive" else "passed"


@dataclass(frozen=True)
class NightState:
    """What an evaluation came to on a night.

    Attributes:
        evaluation_id: the evaluation.
        date: the night's date, YYYY-MM-DD.
        created: when it began, ISO 8601 with its offset.
        state: what it came to.
    """

    evaluation_id: str
    date: str
    created: str
    state: State

    def __post_init__(self) -> None:
        """A file may hold anything.

        Raises:
            ValueError: the time is none, or has no offset.
        """
        if datetime.fromisoformat(self.created).tzinfo is None:
            raise ValueError("a time has no offset")

    @property
    def order(self) -> tuple[str, datetime]:
        """What nights are put in order by."""
        return self.date, datetime.fromisoformat(self.created)


@dataclass(frozen=True)
class Alert:
    """A change of state that is due to a target.

    Attributes:
        alert_id: made from the evaluation's name, the date and the state.
        night: the night that it tells of.
        before: the night before it, whose state was another; None if there was none.
        attempts: how often it was sent, or was about to be.
        unconfirmed: whether an attempt may have arrived though no answer says so.
    """

    alert_id: str
    night: NightState
    before: NightState | None = None
    attempts: int = 0
    unconfirmed: bool = False


@dataclass(frozen=True)
class TargetLog:
    """What a target is due, and what it got.

    Attributes:
        pending: what is due; None for nothing.
        sent: the last alert that arrived: its receipt; None if none did.
        sent_at: when, ISO 8601 in UTC; empty if none did.
    """

    pending: Alert | None = None
    sent: Alert | None = None
    sent_at: str = ""


@dataclass(frozen=True)
class AlertLog:
    """The file of alerts of an evaluation: how far its nights were looked at, and how each target stands.

    Attributes:
        latest: the latest night that was looked at; None for none.
        issued: the states of the alerts that this night's date gave rise to.
        targets: by the key of the target.
    """

    latest: NightState | None = None
    issued: tuple[State, ...] = ()
    targets: Mapping[str, TargetLog] = field(default_factory=dict)

    def advanced(self, name: str, night: NightState, targets: Collection[str], always: Collection[str]) -> AlertLog:
        """The log with what a night gives rise to; the same log for a night that is not later than its latest.

        A target is due an alert if the state has changed; without a night before, if it is not `passed`.
        What a target is due already is replaced by this night's, unless it may have arrived and the state stays.

        Args:
            name: the evaluation's name.
            night: the night.
            targets: the keys of all targets.
            always: the keys of those that are due every night.
        """
        before = self.latest
        if before is not None and night.order <= before.order:
            return self
        issued = self.issued if before is not None and before.date == night.date else ()
        changed = night.state != (before.state if before else "passed")
        fresh = Alert(_id_of(name, night, issued.count(night.state)), night, before)
        logs = {}
        for key in targets:
            log = self.targets.get(key, TargetLog())
            due = log.pending
            if changed or key in always:
                log = replace(log, pending=fresh)
            elif due is not None and not due.unconfirmed:
                log = replace(log, pending=replace(fresh, before=due.before))
            logs[key] = log
        return AlertLog(night, (*issued, night.state) if changed else issued, logs)

    def updated(self, key: str, alert: Alert, log: TargetLog) -> AlertLog:
        """The log with that of a target replaced, if the target is due this alert still."""
        found = self.targets.get(key)
        if found is None or found.pending is None or found.pending.alert_id != alert.alert_id:
            return self
        return replace(self, targets={**self.targets, key: log})


def _id_of(name: str, night: NightState, earlier: int) -> str:
    """The id of an alert: the same for the same name, date and state, however often and wherever it is made.

    A night that is evaluated again may come back to a state; that is news, and the count makes it another id.
    """
    parts = [name, night.date, night.state, *([str(earlier + 1)] if earlier else [])]
    return f"alert_{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"
