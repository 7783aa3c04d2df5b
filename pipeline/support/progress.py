"""Progress: the stages of the work under way, and how they are shown on stderr.

`work` is a piece of work from beginning to end, such as a command; a `stage` is a part of it that has a name and may be
counted. A second after the work began a thread of its own imports what draws, and draws until the work ends: what is
over by then has waited for nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rankledger.pipeline.support.escaping import one_line, visible

__all__ = ["PATIENCE", "Display", "Stage", "aside", "each", "quiet", "say", "stage", "told", "work"]

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


_BAR = 24  # columns at most
_NARROW = 8  # a bar of fewer columns tells nothing
_WORDS = 40  # columns of most words
_A_SECOND = 4  # how often it is drawn


class Display:
    """The lines on the terminal, of the stages that there are whenever it is drawn.

    A terminal that goes away meanwhile ends nothing: nobody looks any more, and the work goes on.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        """Know the stages, outermost first; nothing is drawn yet."""
        self._stages = stages
        self._console = Console(stderr=True)
        self._live: Live | None = None

    def show(self) -> None:
        """Draw, and draw again until it is hidden; nothing where that is done already."""
        if self._live is not None:
            return
        self._live = Live(
            get_renderable=self._lines,
            console=self._console,
            refresh_per_second=_A_SECOND,
            transient=True,
            redirect_stdout=False,  # whoever writes does it aside
            redirect_stderr=False,
        )
        with suppress(OSError):
            self._live.start(refresh=True)

    def hide(self) -> None:
        """Clear it away and show the cursor."""
        if self._live is None:
            return
        with suppress(OSError, IndexError):  # IndexError: Ctrl-C came while it began, and rich has less to take back
            try:
                self._live.stop()
            except (KeyboardInterrupt, IndexError):  # Ctrl-C again: there is to be a cursor nonetheless
                self._console.show_cursor()
                raise
        self._live = None

    def _lines(self) -> Table | Group:
        now, stages = time.monotonic(), list(self._stages)
        lines: list[tuple[Text, ProgressBar, Text]] = []
        for place, stage in enumerate(stages):
            if place and now - stage.began < PATIENCE:  # what is quick would only flash
                break
            within = stages[place + 1] if place + 1 < len(stages) else None
            said = ("  " * place + stage.title, told(stage, within, now))
            title, words = (Text(visible(text), no_wrap=True) for text in said)
            lines.append((title, ProgressBar(stage.total, _done(stage, within), pulse=stage.total is None), words))
        return self._beside(lines) if lines else Group()  # a table without rows is a line

    def _beside(self, lines: Sequence[tuple[Text, ProgressBar, Text]]) -> Table:
        """Titles, bars and words; bars have what the others leave, which hardly changes while these do."""
        titles, _, words = zip(*lines, strict=True)
        room = self._console.width - max(map(len, titles)) - max(_WORDS, *map(len, words)) - 2
        found = Table.grid(padding=(0, 1))
        for title, bar, told_of in lines:
            bar.width = min(_BAR, room)
            found.add_row(*((title, bar, told_of) if room >= _NARROW else (title, told_of)))
        return found


def told(stage: Stage, within: Stage | None, now: float) -> str:
    """What a line says of a stage, such as `12 of 40 outputs, 3.1 a second, 9 s left`.

    Args:
        stage: the stage.
        within: the stage that is under way within it; None where there is none.
        now: seconds of the clock that they began by.
    """
    seconds, done = now - stage.began, _done(stage, within)
    counted = _counted(stage, done)
    if stage.until:
        return ", ".join(filter(None, (counted, f"until {stage.until}")))
    moving = max(stage.moved, within.moved if within and stage.nested else 0.0) - stage.began
    if stage.total is None or done <= 0 or moving <= 0:
        return ", ".join(filter(None, (counted, f"{_spelt(seconds)} so far")))
    left = moving / done * stage.total - seconds  # of what the last that was done tells: it does not grow meanwhile
    pace = _pace(stage.done / (stage.moved - stage.began)) if stage.moved > stage.began else ""
    return f"{counted}, {pace}{_spelt(left)} left"


def _counted(stage: Stage, done: float) -> str:
    """How many are done of how many; of a single thing that has parts the share."""
    if stage.total is None:
        return ""
    if stage.total == 1 and stage.nested:
        return f"{done:.0%}"
    return f"{stage.done:,} of {stage.total:,} {stage.unit}"


def _done(stage: Stage, within: Stage | None) -> float:
    """How many are done, with the part of the next one that the stage within it has done."""
    part = within.done / within.total if stage.nested and within and within.total else 0.0
    return stage.done + min(part, 1.0)


def _pace(rate: float) -> str:
    """How many are done a second, or how long each takes."""
    if rate >= 1:
        return f"{rate:,.0f} a second, " if rate >= 10 else f"{rate:.1f} a second, "
    return f"{_spelt(1 / rate)} each, "


def _spelt(seconds: float) -> str:
    """A time to two units: `9 s`, `2 min 05 s`, `1 h 12 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3_600:,} h {whole % 3_600 // 60:02} min"
