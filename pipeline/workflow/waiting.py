"""Waiting for the inputs of a night until all are ready or the time is up.

An input that is ready is not looked at again. What changes while it is read afterwards is its reader's to refuse.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pipeline.config.fields import spell_duration
from pipeline.config.nightly import STABLE, Nightly
from pipeline.data.readiness import Sight, look, marker_beside
from pipeline.progress import stage

__all__ = ["Clock", "Late", "SystemClock", "Wanted", "wait_for"]

_NOT_THERE = "not there"
_NAMED = 5  # of what is still missing, in a line of progress


class Clock(Protocol):
    """The time, and its passing; tests have one of their own."""

    def now(self) -> datetime:
        """The time in UTC."""

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The time in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        time.sleep(seconds)


@dataclass(frozen=True)
class Wanted:
    """An input that is waited for.

    Attributes:
        path: as messages name it; a file, a glob, a folder of parts or a URL.
        task: the (dataset, model) that it is the output of; None for any other file.
        marker: the name of the file beside it that says it is whole; None where none is asked for.
        lack: what it is known to lack, so that it need not be looked at; empty where it must be.
    """

    path: str
    task: tuple[str, str] | None = None
    marker: str | None = None
    lack: str = ""


@dataclass(frozen=True)
class Late:
    """An input that was not ready in time, and why: one line with its path, the hour and what to do."""

    wanted: Wanted
    reason: str


def wait_for(
    wanted: Callable[[], Sequence[Wanted]], rule: Nightly, *, clock: Clock, say: Callable[[str], None]
) -> tuple[Late, ...]:
    """Wait until everything is ready, at most as long as the rule says; gives what is late.

    Args:
        wanted: what to wait for; asked before every look, as outputs of models that nobody listed may turn up.
        rule: how long, how often, and what ready means.
        clock: tells the time.
        say: takes a line of progress, whenever something else is missing than before.
    """
    watch = _Watch(rule, clock)
    deadline = clock.now() + rule.wait
    until = f"{deadline:%H:%M} UTC"
    said: dict[str, str] = {}
    with stage("Waiting", unit="inputs", until=until) as waiting:
        while True:
            inputs = wanted()
            missing = {each: lack for each in inputs if (lack := watch.lack_of(each))}
            left = (deadline - clock.now()).total_seconds()
            if not missing or left <= 0:
                return tuple(Late(each, _reason(each, lack, until, rule)) for each, lack in missing.items())
            waiting.total, waiting.done = len(inputs), len(inputs) - len(missing)
            lacks = {each.path: lack for each, lack in missing.items()}
            if lacks != said:
                say(f"waiting until {until} for {len(missing)} of {len(inputs)}: {_named(lacks)}")
                said = lacks
            clock.sleep(min(rule.every.total_seconds(), left))


class _Watch:
    """What was seen so far."""

    def __init__(self, rule: Nightly, clock: Clock) -> None:
        self._rule = rule
        self._clock = clock
        self._ready: set[Wanted] = set()
        self._seen: dict[str, tuple[Sight, datetime]] = {}

    def lack_of(self, wanted: Wanted) -> str:
        """What an input lacks to be ready; empty where it is."""
        if wanted.lack or wanted in self._ready:
            return wanted.lack
        sight = look(wanted.path)
        if sight.trouble:
            return f"cannot be looked at ({sight.trouble})"
        if not sight.sizes:
            return _NOT_THERE
        if wanted.marker is not None and not look(marker := marker_beside(wanted.path, sight, wanted.marker)).sizes:
            return f"no {marker}"
        if self._rule.ready == STABLE and not self._is_settled(wanted.path, sight):
            return "not settled"
        self._ready.add(wanted)
        return ""

    def _is_settled(self, path: str, sight: Sight) -> bool:
        now = self._clock.now()
        before, since = self._seen.get(path, (None, now))
        if before != sight:
            self._seen[path] = (sight, now)
            return False
        return now - since >= self._rule.every


def _reason(wanted: Wanted, lack: str, until: str, rule: Nightly) -> str:
    if lack == _NOT_THERE and not rule.wait:
        return f"{wanted.path}: file not found by {until}; check the path, or run nightly --again once it is there"
    waited = f" (waited {spell_duration(rule.wait)})" if rule.wait else ""
    return f"{wanted.path}: late: {lack} by {until}{waited}; once it is there, run nightly --again"


def _named(lacks: dict[str, str]) -> str:
    shown = [f"{path} ({lack})" for path, lack in lacks.items()]
    more = len(shown) - _NAMED
    return ", ".join(shown[:_NAMED]) + (f" and {more} more" if more > 0 else "")
