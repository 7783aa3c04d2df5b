"""Errors that users can fix, and helpers for messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from rankledger.pipeline.support.text import unbroken, visible

_LONGEST = 200  # characters of a value in a message


class InputError(Exception):
    """A bad config, file or command."""

    exit_code = 2

    def __init__(self, *lines: str) -> None:
        super().__init__(*(visible(unbroken(line)) for line in lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of the message."""
        return tuple(self.args)

    def __str__(self) -> str:
        return "\n".join(self.lines)


class InputWarning(UserWarning):
    """A notice on inputs, or the reason why an output was refused."""


class LockedError(Exception):
    """Error if another process does the same work."""

    exit_code = 75


class TrackingError(Exception):
    """MLflow cannot be reached or refuses something. The record is complete."""

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


def describe_system_error(error: BaseException) -> str | None:
    """Return the line on an error of the disk, of memory or of another limit of the machine. None for other errors."""
    if isinstance(error, OSError):
        return f"{error.filename or 'disk'}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "memory: the process ran out of memory. Set fewer jobs, or use a machine with more memory"
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return "threads: the system allows no further thread. Set fewer jobs, or a higher limit of processes or memory"
    return None


def likely(word: str, known: Iterable[str]) -> str:
    """Return the end of a message with the likely word. Empty if there is none."""
    close = difflib.get_close_matches(word, [each for each in known if each != word], n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def shorten(text: str, most: int = _LONGEST) -> str:
    """Return a text of at most `most` characters, an ellipsis included."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
