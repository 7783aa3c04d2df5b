"""Exit codes and printing: results on stdout, messages on stderr.

Text from a file cannot end a line, control the terminal or give a CI a command.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from rankledger.pipeline.support.progress import aside
from rankledger.pipeline.support.text import json_text, one_line, unbroken

if TYPE_CHECKING:
    from rankledger.pipeline.record.evaluation import Evaluation

_Result = TypeVar("_Result")

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
    """Return the exit code of an evaluation. A failed gate comes first, a gate in doubt last."""
    from rankledger.pipeline.gates.verdicts import overall_outcome  # imports NumPy, which `--help` must not wait for

    verdict = overall_outcome(evaluation.verdicts)
    if verdict == "fail":
        return FAILED_GATE
    lacks_tracking = evaluation.record and (evaluation.store is None or evaluation.unpromoted)
    if evaluation.unsaved or (require_tracking and lacks_tracking):
        return NOT_RECORDED
    if evaluation.failures or evaluation.failed_measures:
        return INCOMPLETE
    return INCONCLUSIVE if verdict == "inconclusive" else DONE


def notes_of(error: BaseException) -> list[str]:
    """Return the notes on an error and on the error it was raised from."""
    return [note for each in (error, error.__context__) for note in getattr(each, "__notes__", ())]


def leave(code: int) -> None:
    """Exit with the code, unless it is 0."""
    if code != DONE:
        sys.exit(code)


def print_lines(*lines: str) -> None:
    """Print lines on stdout."""
    print_text("\n".join(map(one_line, lines)))


def print_json(data: Any, *, indent: int | None = None) -> None:
    """Print data on stdout as JSON."""
    print_text(json_text(data, indent=indent))


def print_result(
    result: _Result,
    form: str | None,
    *,
    json: Callable[[_Result], Any],
    markdown: Callable[[_Result], str],
    table: Callable[..., str],
) -> None:
    """Print a result on stdout in the form of the options."""
    if form == "json":
        print_json(json(result))
    elif form == "markdown":
        print_text(markdown(result))
    else:
        print_text(table(result, width=width(), colour=colour()))


def print_text(text: str) -> None:
    """Print text for a terminal on stdout."""
    with aside(), unread_is_fine(sys.stdout):
        click.echo(text.rstrip("\n"), color=True)  # whether there is colour was decided when the text was made
        sys.stdout.flush()


def print_bytes(texts: Iterable[str]) -> None:
    """Write texts on stdout in UTF-8 unchanged."""
    with aside(), unread_is_fine(sys.stdout):
        sys.stdout.buffer.writelines(text.encode(errors="surrogateescape") for text in texts)
        sys.stdout.flush()


def print_remark(*lines: str) -> None:
    """Print lines on stderr."""
    with aside(), unread_is_fine(sys.stderr):
        for line in lines:
            click.echo(one_line(unbroken(line)), err=True)


def width() -> int:
    """Return the terminal's columns. A pipe gets enough for the first few measures."""
    return shutil.get_terminal_size(fallback=(120, 24)).columns


def colour() -> bool:
    """Return whether stdout takes colors, by NO_COLOR, FORCE_COLOR and the terminal, as in Python."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def unread_is_fine(stream: TextIO) -> Iterator[None]:
    """Ignore a closed reader, as in `rankledger … 2>&1 | head`, and any error of stderr.

    After an error the stream writes to /dev/null, because Python would try the rest again at exit.
    """
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is not sys.stderr and not isinstance(error, BrokenPipeError):
            raise
