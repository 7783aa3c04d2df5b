"""The stages of what is running in this process, one within another, and when they are shown.

`work` is a piece of work from beginning to end, such as a command; a `stage` is a part of it that has a name and may be
counted. A second after the work began a thread imports rich and draws until the work ends: work that is over by then
has waited for nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from rankledger.pipeline.support.escaping import one_line

if TYPE_CHECKING:
    from rankledger.pipeline.support.progress_display import Display

__all__ = ["PATIENCE", "Stage", "aside", "each", "quiet", "say", "stage", "work"]

PATIENCE = 1.0
"""Seconds for which nothing is shown: of the work, and of a stage within another."""

_DUMB = ("dumb", "unknown")  # terminals that cannot move their cursor

T = TypeVar("T")


@dataclass(eq=False)
class Stage:
    """A part of the work.

    Attributes:
        title: what is being done.
        total: how much there is of it; None if that is not known.
        unit: what is counted, in the plural.
        until: when it ends at most, such as `06:00 UTC`; it then has no pace. Empty for any other.
        done: how much of it is done.
        began: when it began, in seconds of the monotonic clock.
        moved: when the last was done, or it began.
    """

    title: str
    total: int | None = None
    unit: str = ""
    until: str = ""
    done: int = 0
    began: float = field(default_factory=time.monotonic)
    moved: float = 0.0

    def __post_init__(self) -> None:
        """Nothing has moved yet."""
        self.moved = self.moved or self.began

    def advance(self) -> None:
        """One more is done."""
        self.done += 1
        self.moved = time.monotonic()

    def status(self, now: float) -> str:
        """How far it is, such as `12 of 40 outputs, 3.1 a second, 9 s left`, at a time of the clock it began by."""
        counted = "" if self.total is None else f"{self.done:,} of {self.total:,} {self.unit}, "
        if self.until:
            return f"{counted}until {self.until}"
        moving = self.moved - self.began
        if self.total is None or not self.done or moving <= 0:
            return f"{counted}{_spelt(now - self.began)} so far"
        each = moving / self.done
        left = each * self.total - (now - self.began)  # by the pace until the last was done: it does not grow meanwhile
        return f"{counted}{_pace(1 / each)}, {_spelt(left)} left"


def _pace(rate: float) -> str:
    """How many are done a second, or how long each takes."""
    if rate >= 1:
        return f"{rate:,.0f} a second" if rate >= 10 else f"{rate:.1f} a second"
    return f"{_spelt(1 / rate)} each"


def _spelt(seconds: float) -> str:
    """A time to two units: `9 s`, `2 min 05 s`, `1 h 12 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3_600:,} h {whole % 3_600 // 60:02} min"


class _Work:
    """The work of this process, one at a time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.stages: list[Stage] = []
        self.silent = False
        self._timer: threading.Timer | None = None
        self._display: Display | None = None

    @property
    def begun(self) -> bool:
        return self._timer is not None

    def begin(self) -> bool:
        """Show it, a second from now; false if it has begun, which another thread may have done."""
        with self.lock:
            if self.begun:
                return False
            self.stages.clear()  # an error that is kept keeps its frames, and these the stages that it ended
            self._timer = threading.Timer(PATIENCE, self._show)
            self._timer.daemon = True
            self._timer.start()
            return True

    def end(self) -> None:
        """Leave the terminal as it was."""
        with self.lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._display is not None:
                self._display.hide()
            self._timer = self._display = None

    @contextmanager
    def during(self, stage: Stage) -> Iterator[None]:
        """A stage, drawn if it is time to."""
        self.stages.append(stage)
        try:
            self._draw()
            yield
        finally:
            if stage in self.stages:
                self.stages.remove(stage)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Clear away what is drawn; if a stage is running it is drawn again afterwards."""
        with self.lock:
            if self._display is not None:
                self._display.hide()
            try:
                yield
            finally:
                self._draw()

    def _draw(self) -> None:
        if self._display is not None and self.stages:
            with self.lock:
                self._display.show()

    def _show(self) -> None:
        from rankledger.pipeline.support.progress_display import Display

        display = Display(self.stages)
        with self.lock:
            if self.begun:  # it may have ended while rich was imported
                self._display = display
                self._draw()


_WORK = _Work()


@contextmanager
def work() -> Iterator[None]:
    """A piece of work, within which stages follow one another on the same lines; that of a caller if it has one.

    A function is one with `@work()` above it.
    """
    if _WORK.silent or not _is_watched() or not _WORK.begin():
        yield
        return
    try:
        yield
    finally:
        _WORK.end()


@contextmanager
def stage(title: str, total: int | None = None, unit: str = "", *, until: str = "") -> Iterator[Stage]:
    """A stage of the work, or a work of its own: call `advance` of what this gives whenever one more is done."""
    begun = Stage(title, total, unit, until)
    with work(), _WORK.during(begun):
        yield begun


def each(title: str, items: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """The items, in a stage of which one is done whenever the next is asked for."""
    with stage(title, total, unit) as counted:
        for item in items:
            yield item
            counted.advance()


def aside() -> AbstractContextManager[None]:
    """Clear the lines away while something else is written on the terminal."""
    return _WORK.hidden() if _WORK.begun else nullcontext()


def say(line: str) -> None:
    """Write a line on stderr, for logs too, unless within `quiet`."""
    if not _WORK.silent:
        with aside():
            print(one_line(line), file=sys.stderr, flush=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Neither show progress nor write lines."""
    before, _WORK.silent = _WORK.silent, True
    if not before:
        _WORK.end()
    try:
        yield
    finally:
        _WORK.silent = before


def _is_watched() -> bool:
    """Whether stderr is a terminal on which lines can be drawn again."""
    # a process without a stderr, such as one of a service, has None
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "") not in _DUMB
