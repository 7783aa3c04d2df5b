"""Lines and tables as a terminal of some width shows them, gathered as text."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.escaping import one_line

__all__ = ["Screen"]


class Screen:
    """What is shown, from top to bottom; `str` gives it.

    Attributes:
        width: columns of the terminal.
    """

    def __init__(self, *, width: int, colour: bool = False) -> None:
        """Begin with nothing.

        Args:
            width: columns of the terminal.
            colour: whether to write the terminal's colours.
        """
        self.width = width
        self._text = io.StringIO()
        self._console = Console(
            file=self._text, width=width, force_terminal=colour, no_color=not colour, highlight=False
        )

    def say(self, *lines: str, style: str = "") -> None:
        """Show lines, which the terminal itself may wrap; what would steer it is spelt out."""
        for line in lines:
            self._console.print(Text(one_line(line), style=style), soft_wrap=True)

    def draw(self, table: Table) -> None:
        """Show a table: wider than the terminal rather than cut."""
        self._console.print(table, crop=False)

    def columns(self, table: Table) -> int:
        """How wide a table would like to be."""
        return self._console.measure(table).maximum

    def __str__(self) -> str:
        """The lines, without the spaces that titles are padded with."""
        return "".join(f"{line.rstrip()}\n" for line in self._text.getvalue().splitlines())
