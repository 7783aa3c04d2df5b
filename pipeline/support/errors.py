"""Errors that are the user's to fix, the exit code of each, and what their messages share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from rankledger.pipeline.support.escaping import unbroken, visible

_LONGEST = 200  # characters of a value in a message


class InputError(Exception):
    """A bad config, file or command: one line that says where, what was found and what to do."""

    exit_code = 2

    def __init__(self, *lines: str) -> None:
        """Say it, a line for each finding about one input; an id or a path in it ends no line."""
        super().__init__(*(visible(unbroken(line)) for line in lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines."""
        return tuple(self.args)

    def __str__(self) -> str:
        """The lines, one below another."""
        return "\n".join(self.lines)


class InputWarning(UserWarning):
    """What is worth knowing of inputs that were read, or why a model's output was not: one line."""


class LockedError(Exception):
    """Another process is doing the same work: one line that says which, and what to do."""

    exit_code = 75


class TrackingError(Exception):
    """MLflow cannot be reached or refuses something: one line that says why. Records are whole anyway.

    Attributes:
        unreachable: whether nothing else can be asked of it, either.
    """

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        """Say why."""
        super().__init__(message)
        self.unreachable = unreachable


def likely(word: str, known: Iterable[str]) -> str:
    """The end of a message on an unknown word among many: the one that is likely meant, if there is one."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def shorten(text: str, most: int = _LONGEST) -> str:
    """At most `most` characters of a text, 200 in a message; the last of them is an ellipsis if there are more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
