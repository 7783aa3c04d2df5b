"""The lines of progress on a terminal, imported only by work that takes long enough to show any.

rich's `Live` draws them. Its `Progress` shows a stage from its first moment on, and forgets a pace of more than 30 s.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from rankledger.pipeline.support.escaping import visible
from rankledger.pipeline.support.progress import PATIENCE, Stage

__all__ = ["Display"]

_BAR, _STATUS = 24, 40  # columns of a bar at most, and of most statuses
_NARROW = 72  # a terminal of fewer columns has no room for a bar
_A_SECOND = 4  # how often it is drawn


class Display:
    """The stages that there are whenever it is drawn.

    A terminal that goes away meanwhile ends nothing: nobody looks any more, and the work goes on.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        """Know the stages, outermost first; nothing is drawn yet."""
        self._stages = stages
        self._console = Console(stderr=True)
        self._live: Live | None = None

    def show(self) -> None:
        """Draw, and draw again until it is hidden; do nothing if it is drawn already."""
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
            except (KeyboardInterrupt, IndexError):  # Ctrl-C again: the cursor must be shown nonetheless
                self._console.show_cursor()
                raise
        self._live = None

    def _lines(self) -> Table | Group:
        now, stages = time.monotonic(), list(self._stages)
        if self._console.width < _NARROW:
            lines = Table.grid(Column(no_wrap=True), Column(no_wrap=True), padding=(0, 1))
        else:  # the bar alone may shrink
            status = Column(no_wrap=True, min_width=_STATUS)
            lines = Table.grid(Column(no_wrap=True), Column(max_width=_BAR), status, padding=(0, 1))
        for depth, stage in enumerate(stages):
            if depth and now - stage.began < PATIENCE:  # what is quick would only flash
                break
            title, words = Text(visible("  " * depth + stage.title)), Text(visible(stage.status(now)))
            bar = [ProgressBar(stage.total, stage.done)] if len(lines.columns) > 2 else []
            lines.add_row(title, *bar, words)
        return lines if lines.row_count else Group()  # a table without rows is a line
