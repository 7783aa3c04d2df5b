"""The stages of what is under way in this process, one within another, and when they are shown.

`work` is a piece of work from beginning to end, such as a command; a `stage` is a part of it that has a name and may be
counted. A second after the work began a thread of its own imports what draws, and draws until the work ends: what is
over by then has waited for nothing.
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
        total: how much there is of it; None where that is not known.
        unit: of what, in the plural.
        until: when it ends at the latest, such as `06:00 UTC`; then it has no pace. Empty for any other.
        nested: whether each of its things is done by one stage within it, so that what that has done is a part of it.
        done: how much of it is done.
        began: when it began, in seconds of the monotonic clock.
        moved: when the last was done, or it began.
    """

    title: str
    total: int | None = None
    unit: str = ""
    until: str = ""
    nested: bool = False
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


class _Work:
    """What is under way in this process, of which there is one at a time."""

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
        """Show it, a second from now; false where it has begun, which another thread may have done."""
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
        """A stage, which is drawn where it is time to."""
        self.stages.append(stage)
        try:
            self._draw()
            yield
        finally:
            if stage in self.stages:
                self.stages.remove(stage)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Clear away what is drawn; where a stage is under way it is drawn again afterwards."""
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

        with self.lock:
            if self.begun:  # it may have ended while this was imported
                self._display = Display(self.stages)
                self._draw()


_WORK = _Work()


@contextmanager
def work() -> Iterator[None]:
    """A piece of work, within which stages follow one another on the same lines; that of a caller where it has one.

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
def stage(
    title: str, total: int | None = None, unit: str = "", *, until: str = "", nested: bool = False
) -> Iterator[Stage]:
    """A stage of the work, or a work of its own: what is done of it is to be told to what this gives."""
    found = Stage(title, total, unit, until, nested)
    with work(), _WORK.during(found):
        yield found


def each(title: str, items: Iterable[T], total: int, unit: str, *, nested: bool = False) -> Iterator[T]:
    """The items, in a stage of which one is done whenever the next is asked for."""
    with stage(title, total, unit, nested=nested) as found:
        for item in items:
            yield item
            found.advance()


def aside() -> AbstractContextManager[None]:
    """Where something else is written on the terminal."""
    return _WORK.hidden() if _WORK.begun else nullcontext()


def say(line: str) -> None:
    """Write a line on stderr that logs are to have too, unless it is to be quiet."""
    if not _WORK.silent:
        with aside():
            print(one_line(line), file=sys.stderr, flush=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Show nothing, and say nothing."""
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
