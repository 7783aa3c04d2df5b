"""How stages look: a line with a bar, how many are done, how fast, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rankledger.pipeline.support.escaping import visible
from rankledger.pipeline.support.progress import PATIENCE, Stage

__all__ = ["Display", "told"]

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
