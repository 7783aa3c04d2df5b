"""Progress on a terminal: nested stages of the running work, drawn by rich.

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
    from rich.table import Table

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
    done: int = 0
    began: float = field(default_factory=time.monotonic)
    moved: float = 0.0

    def advance(self) -> None:
        self.done += 1
        self.moved = time.monotonic()

    def describe(self, now: float, *, narrow: bool = False) -> str:
        """Return a text such as `12 of 40 outputs, 3.1 a second, 9 s left`. `narrow` omits the pace."""
        elapsed, moving = now - self.began, self.moved - self.began
        words = [] if self.total is None else [f"{self.done:,} of {self.total:,} {self.unit}"]
        if self.until:
            words.append(f"until {self.until}")
        elif not self.total or not self.done or moving <= 0:
            words.append(f"{_format_seconds(elapsed)} so far")
        else:
            pace = self.done / moving
            if not narrow and pace < 1:
                words.append(f"{_format_seconds(1 / pace)} each")
            elif not narrow:
                words.append(f"{pace:,.{0 if pace >= 10 else 1}f} a second")
            words.append(f"{_format_seconds(self.total / pace - elapsed)} left")
        return ", ".join(words)


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
        with suppress(OSError):
            while not ended.is_set():
                with self.lock:
                    if not ended.is_set():  # it may have ended while this thread waited
                        self._refresh(console)
                ended.wait(_INTERVAL)

    def _refresh(self, console: Console) -> None:
        from rich.live import Live

        table = _draw_stages(list(self.stages), narrow=console.width < _NARROW)
        if not self.stages:
            self.hide()
        elif self._live is not None:
            self._live.update(table, refresh=True)
        else:  # a new one: the last one would clear away what was written since
            self._live = Live(
                table,
                console=console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,  # whoever writes does it aside
                redirect_stderr=False,
            )
            self._live.start(refresh=True)


def _draw_stages(stages: Sequence[Stage], *, narrow: bool) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table, now = Table.grid(padding=(0, 1, 0, 0)), time.monotonic()
    table.add_column(no_wrap=True)
    if not narrow:
        table.add_column(max_width=_BAR)
    table.add_column(no_wrap=True, min_width=None if narrow else _STATUS)
    for depth, stage in enumerate(stages):
        if not depth or now - stage.began >= PATIENCE:  # what is quick would only flash
            bar = [] if narrow else [ProgressBar(stage.total, stage.done)]
            status = stage.describe(now, narrow=narrow)
            table.add_row(Text(visible("  " * depth + stage.title)), *bar, Text(visible(status)))
    return table


def _format_seconds(seconds: float) -> str:
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
def stage(title: str, total: int | None = None, unit: str = "", *, until: str = "") -> Iterator[Stage]:
    """Yield a stage of the work. Call `advance` for each item that is done."""
    begun = Stage(title, total, unit, until)
    with work():
        _WORK.stages.append(begun)
        try:
            yield begun
        finally:
            if begun in _WORK.stages:
                _WORK.stages.remove(begun)


def each(title: str, items: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """Yield items in a stage. An item is done when the next is asked for."""
    with stage(title, total, unit) as counted:
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
