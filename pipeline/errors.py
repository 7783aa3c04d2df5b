"""Errors that are the user's to mend, and the exit code each one asks for."""

from __future__ import annotations

__all__ = ["InputError"]


class InputError(Exception):
    """A bad config, file or command: one line that says where, what was found and what to do.

    Several findings about one input are joined by line breaks, one line each.
    """

    exit_code = 2
