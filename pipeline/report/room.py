"""Text that must not grow beyond a number of bytes: whole lines or none, and what is left out is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["COMMENT", "Room", "n_bytes"]

COMMENT = 60_000
"""Bytes of a text for a pull request: GitHub cuts a comment at 65,536 letters."""

_SPARE = 200  # bytes that are kept for what is said of rows that were cut, and for the end of what is folded away


class Room:
    """Lines, as many as there is room for.

    Attributes:
        lines: those that were put in, without their ends.
        left: bytes that there is still room for.
    """

    def __init__(self, most: int) -> None:
        """Room for so many bytes."""
        self.lines: list[str] = []
        self.left = most

    def put(self, *lines: str, spare: int = _SPARE) -> bool:
        """Whether the lines fit: they are put in all together, or none of them.

        Args:
            lines: without their ends.
            spare: bytes that must be left behind them.
        """
        fits = n_bytes(lines) + spare <= self.left
        if fits:
            self.lines += lines
            self.left -= n_bytes(lines)
        return fits

    def put_rows(
        self, head: Sequence[str], rows: Iterable[str], *, where: str, most: int | None = None, spare: int = 0
    ) -> None:
        """Put a table in, as many of its rows as fit, and say how many more there are.

        Args:
            head: the lines above the rows.
            rows: a line each.
            where: the file that has the others.
            most: rows to show, if they fit; all unless given.
            spare: bytes that must be left behind the table.
        """
        waiting = list(rows)
        n_shown = 0
        if self.put(*head):
            while n_shown < len(waiting[:most]) and self.put(waiting[n_shown], spare=_SPARE + spare):
                n_shown += 1
        self.put("", spare=0)
        if n_shown < len(waiting):
            self.put(f"{len(waiting) - n_shown:,} more in {where}.", "", spare=_SPARE // 2)


def n_bytes(lines: Iterable[str]) -> int:
    """The bytes of lines with their ends."""
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)
