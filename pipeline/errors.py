"""Errors that are the user's to mend, and the exit code each one asks for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["InputError", "LockedError", "likely"]


class InputError(Exception):
    """A bad config, file or command: one line that says where, what was found and what to do.

    Several findings about one input are joined by line breaks, one line each.
    """

    exit_code = 2


class LockedError(Exception):
    """Another process is at the same work: one line that says which, and what to do."""

    exit_code = 75


def likely(word: str, known: Iterable[str]) -> str:
    """The end of a message on an unknown word among many: the one that is likely meant, if there is one."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
