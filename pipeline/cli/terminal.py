"""Exit codes, and printing: results on stdout, messages on stderr.

Whatever stands in a line, an id, a path or a key, neither ends it nor steers the terminal, nor is it a command to a CI.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from rankledger.pipeline.support.escaping import json_text, one_line
from rankledger.pipeline.support.progress import aside

if TYPE_CHECKING:
    from rankledger.pipeline.types.results import Evaluation

__all__ = [
    "BUG",
    "DIFFERENT",
    "DISK",
    "DONE",
    "INCOMPLETE",
    "INTERRUPTED",
    "NOT_RECORDED",
    "colour",
    "exit_code_of",
    "leave",
    "notes_of",
    "print_bytes",
    "print_json",
    "print_lines",
    "print_remark",
    "print_text",
    "unread_is_fine",
    "width",
]

DONE = 0
FAILED_GATE = 1
DIFFERENT = 1
INCONCLUSIVE = 3
INCOMPLETE = 4
NOT_RECORDED = 5
BUG = 70
DISK = 74
INTERRUPTED = 130


def exit_code_of(evaluation: Evaluation, *, require_tracking: bool) -> int:
    """What an evaluation came to: a gate that failed weighs more than a place that has no copy, that more than an
    output, and that more than doubt.

    Args:
        evaluation: what was evaluated.
        require_tracking: whether MLflow must have it.
    """
    from rankledger.pipeline.types.results import (
        overall_outcome,
    )  # imports NumPy, which `rankledger --help` must not wait for

    verdict = overall_outcome(evaluation.verdicts)
    if verdict == "fail":
        return FAILED_GATE
    if evaluation.unsaved or (require_tracking and evaluation.record and evaluation.store is None):
        return NOT_RECORDED
    if evaluation.failures:
        return INCOMPLETE
    return INCONCLUSIVE if verdict == "inconclusive" else DONE


def notes_of(error: BaseException) -> list[str]:
    """What was put on an error, or on the one that it stands for, to say what remains: the record, or nothing."""
    return [note for found in (error, error.__cause__) for note in getattr(found, "__notes__", ())]


def leave(code: int) -> None:
    """Exit, unless all is well."""
    if code != DONE:
        sys.exit(code)


def print_lines(*lines: str) -> None:
    """Print lines on stdout."""
    print_text("\n".join(map(one_line, lines)))


def print_json(data: Any, *, indent: int | None = None) -> None:
    """Print data on stdout as JSON."""
    print_text(json_text(data, indent=indent))


def print_text(text: str) -> None:
    """Print on stdout what was made for a terminal."""
    with aside(), unread_is_fine(sys.stdout):
        click.echo(text.rstrip("\n"), color=True)  # whether there is colour was decided when the text was made
        sys.stdout.flush()


def print_bytes(texts: Iterable[str]) -> None:
    """Write texts on stdout as they are, in UTF-8 wherever it goes: other programs compare the bytes."""
    with aside(), unread_is_fine(sys.stdout):
        sys.stdout.buffer.writelines(text.encode(errors="surrogateescape") for text in texts)
        sys.stdout.flush()


def print_remark(*lines: str) -> None:
    """Print what is worth knowing on stderr, a line each."""
    with aside(), unread_is_fine(sys.stderr):
        click.echo("\n".join(map(one_line, lines)), err=True)


def width() -> int:
    """The terminal's columns; a pipe gets enough for the first few measures."""
    return shutil.get_terminal_size(fallback=(120, 24)).columns


def colour() -> bool:
    """Whether stdout takes colours and bold: a terminal does, unless the user says otherwise.

    NO_COLOR forbids them (https://no-color.org), else FORCE_COLOR asks for them, each if it is not empty; a terminal
    that says it is dumb has none. As in Python's own output, in this order.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def unread_is_fine(stream: TextIO) -> Iterator[None]:
    """A reader that has gone, as in `rankledger … 2>&1 | head`, is no error; no error of a stream is met twice.

    What could not be written would be tried again when the process ends, and change its exit code. That says what
    happened where stderr takes nothing, as on a full disk: to fail for want of a place to say so would hide it.
    """
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is not sys.stderr and not isinstance(error, BrokenPipeError):
            raise
