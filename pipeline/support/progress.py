"""Progress on a terminal: nested stages of the running work, drawn by `rich.progress`.

A thread imports rich and draws after one second, so that short work does not wait for the import.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from rankledger.pipeline.support.text import one_line, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.progress import Progress

PATIENCE = 1.0
"""Seconds before a work, or a nested stage, is drawn."""

_DUMB = ("dumb", "unknown")  # terminals that cannot move their cursor
_BAR, _STATUS = 24, 40  # columns of a bar at most, and of most statuses
_NARROW = 72  # a terminal of fewer columns has no room for a bar or a pace
_INTERVAL = 0.25  # seconds between two drawings

T = TypeVar("T")


@dataclass(eq=False)
class Stage:
    """A part of the work."""

    title: str
    total: int | None = None  # None if unknown
    unit: str = ""
    until: str = ""
    nested: bool = False
    done: int = 0
    began: float = field(default_factory=time.monotonic)
    moved: float = 0.0

    def advance(self) -> None:
        self.done += 1
        self.moved = time.monotonic()

    def share(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 0.0

    def status(self, now: float, inner: Stage | None = None, *, narrow: bool = False) -> str:
        """Return a text such as `12 of 40 outputs, 3.1 a second, 9 s left`. `narrow` omits the pace."""
        within = inner if self.nested else None
        done = self.done + (within.share() if within else 0.0)
        moving = max(self.moved, within.moved if within else 0.0) - self.began
        counted = [] if self.total is None else [f"{self.done:,} of {self.total:,} {self.unit}"]
        if self.until:
            return ", ".join([*counted, f"until {self.until}"])
        if not self.total or done <= 0 or moving <= 0:
            return ", ".join([*counted, f"{_spelt(now - self.began)} so far"])
        pace, left = done / moving, moving / done * self.total - (now - self.began)  # left: it does not grow meanwhile
        rate = f"{_spelt(1 / pace)} each" if pace < 1 else f"{pace:,.{0 if pace >= 10 else 1}f} a second"
        if self.nested and self.total == 1:
            return f"{done:.0%}, {_spelt(left)} left"
        return ", ".join([*counted, *([] if narrow else [rate]), f"{_spelt(left)} left"])


class _Work:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.stages: list[Stage] = []
        self.silent = False
        self._ended: threading.Event | None = None
        self._live: Live | None = None

    def begin(self) -> bool:
        """Start to draw after a second. Return False if another thread draws already."""
        with self.lock:
            if self._ended is not None:
                return False
            self.stages.clear()  # an error that is kept keeps its frames, and these the stages that it ended
            self._ended = threading.Event()
            threading.Thread(target=self._draw, args=(self._ended,), daemon=True).start()
            return True

    def end(self) -> None:
        with self.lock:
            if self._ended is not None:
                self._ended.set()
            self._ended = None
            self.hide()

    def hide(self) -> None:
        if self._live is None:
            return
        with suppress(OSError, IndexError):  # IndexError: Ctrl-C came before, and rich has less to take back
            try:
                self._live.stop()
            except (KeyboardInterrupt, IndexError):  # Ctrl-C again: the cursor must be shown nonetheless
                self._live.console.show_cursor()
                raise
        self._live = None

    def _draw(self, ended: threading.Event) -> None:
        if ended.wait(PATIENCE):
            return
        from rich.console import Console

        console = Console(stderr=True)
        progress = _progress(console.width)
        with suppress(OSError):
            while not ended.is_set():
                with self.lock:
                    if not ended.is_set():  # it may have ended while this thread waited
                        self._refresh(progress, console)
                ended.wait(_INTERVAL)

    def _refresh(self, progress: Progress, console: Console) -> None:
        from rich.live import Live

        _update(progress, list(self.stages), narrow=console.width < _NARROW)
        if not self.stages:
            self.hide()
        elif self._live is not None:
            self._live.refresh()
        else:  # a new one: the last one would clear away what was written since
            self._live = Live(
                progress,
                console=console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,  # whoever writes does it aside
                redirect_stderr=False,
            )
            self._live.start(refresh=True)


def _progress(width: int) -> Progress:
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.table import Column

    columns: list[ProgressColumn] = [TextColumn("{task.description}", markup=False)]
    if width >= _NARROW:
        columns.append(BarColumn(None, table_column=Column(max_width=_BAR)))
    status = Column(no_wrap=True, min_width=_STATUS if width >= _NARROW else None)
    columns.append(TextColumn("{task.fields[status]}", markup=False, table_column=status))
    return Progress(*columns, auto_refresh=False)


def _update(progress: Progress, stages: Sequence[Stage], *, narrow: bool = False) -> None:
    tasks = {task.fields["stage"]: task.id for task in progress.tasks}
    for ended in tasks.keys() - set(stages):
        progress.remove_task(tasks[ended])
    now = time.monotonic()
    for depth, (stage, inner) in enumerate(zip(stages, [*stages, None][1:], strict=True)):
        if stage not in tasks:
            tasks[stage] = progress.add_task(visible("  " * depth + stage.title), stage=stage)
        progress.update(
            tasks[stage],
            total=stage.total,
            completed=stage.done + (inner.share() if inner and stage.nested else 0.0),
            visible=not depth or now - stage.began >= PATIENCE,  # what is quick would only flash
            status=visible(stage.status(now, inner, narrow=narrow)),
        )


def _spelt(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
    return f"{minutes // 60:,} h {minutes % 60:02} min"


_WORK = _Work()


@contextmanager
def work() -> Iterator[None]:
    """Draw the stages within, unless a caller draws them already. Also a decorator."""
    # a process without a stderr, such as one of a service, has None
    watched = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "") not in _DUMB
    if _WORK.silent or not watched or not _WORK.begin():
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
    """Yield a stage of the work. Call `advance` for each item that is done."""
    begun = Stage(title, total, unit, until, nested)
    with work():
        _WORK.stages.append(begun)
        try:
            yield begun
        finally:
            if begun in _WORK.stages:
                _WORK.stages.remove(begun)


def each(title: str, items: Iterable[T], total: int, unit: str, *, nested: bool = False) -> Iterator[T]:
    """Yield items in a stage. An item is done when the next is asked for."""
    with stage(title, total, unit, nested=nested) as counted:
        for item in items:
            yield item
            counted.advance()


@contextmanager
def aside() -> Iterator[None]:
    """Clear the drawn lines while another text is written."""
    with _WORK.lock:
        _WORK.hide()
        yield


def say(line: str) -> None:
    """Write a line on stderr, unless within `quiet`."""
    if not _WORK.silent:
        with aside():
            print(one_line(line), file=sys.stderr, flush=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Show no progress and write no lines."""
    before, _WORK.silent = _WORK.silent, True
    if not before:
        _WORK.end()
    try:
        yield
    finally:
        _WORK.silent = before
