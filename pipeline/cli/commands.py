"""The command line as a whole: all commands, and how a result becomes an exit code and a line on stderr."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import TextIO

import click

from rankledger.pipeline.cli.everyday import compare, evaluate, history, nightly, report, show
from rankledger.pipeline.cli.keep import accept, list_evaluations, prune, reproduce, sync, verify
from rankledger.pipeline.cli.reference import schema, trec_eval
from rankledger.pipeline.cli.terminal import BUG, DISK, DONE, INTERRUPTED, notes_of, print_remark, unread_is_fine
from rankledger.pipeline.cli.understand import explain, find, measures, plan, validate
from rankledger.pipeline.support.errors import InputError, LockedError
from rankledger.pipeline.support.progress import work

__all__ = ["GROUPS", "cli", "main"]

GROUPS: Mapping[str, tuple[click.Command, ...]] = {
    "Everyday": (evaluate, nightly, show, compare, history, report),
    "Understand": (explain, plan, validate, measures, find),
    "Keep": (accept, sync, prune, verify, reproduce, list_evaluations),
    "More": (trec_eval, schema),
}
"""The commands, in the order of the help."""


class _GroupedHelp(click.Group):
    """A command whose help lists its commands by group."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [str(command.name) for commands in GROUPS.values() for command in commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{command.name:10}", command.get_short_help_str(80)) for command in commands])


@click.group(cls=_GroupedHelp, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rankledger", prog_name="rankledger")
def cli() -> None:
    """Evaluate rankers, recommenders and rating predictors, with confidence intervals, recorded in MLflow.

    \b
    Example:
        rankledger evaluate configs/quickstart.yaml
        rankledger compare last#tfidf last#bm25 --name quickstart
        rankledger report --open --name quickstart
    """


for _commands in GROUPS.values():
    for _command in _commands:
        cli.add_command(_command)


# NumPy and Arrow ask for huge pages, which the system must first clear where memory is fragmented: right after another
# large process that took an evaluation of 7 million rows 0.7 s more of 2.0 s. Read when NumPy and Arrow are imported.
_ALLOCATION = {"NUMPY_MADVISE_HUGEPAGE": "0", "ARROW_DEFAULT_MEMORY_POOL": "system"}

# pydantic reads the entry points of every installed package to find plugins, which takes as long as all our models.
_PLUGINS = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}

# Objects until the next search for cycles of garbage. At Python's 700 a small evaluation spends a fifteenth of its time
# on searching modules, classes and functions that it is importing, none of which is garbage.
_OBJECTS = 50_000


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit by the rule: 0, 1, 2, 3, 4, 5, 70, 74, 75 or 130.

    Args:
        arguments: the words of the command; those of the process if None, which ends with it.
    """
    _prepare()
    code = _run(arguments)
    if arguments is None:
        _end(code)
    if code != DONE:
        sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    """Run the command line; the exit code."""
    try:
        with work():
            cli.main(arguments, prog_name="rankledger", standalone_mode=False)
    except SystemExit as error:
        return int(error.code or 0)
    except click.ClickException as error:
        print_remark(*_usage(error))
        return InputError.exit_code
    except InputError as error:
        print_remark(*error.lines)
        return error.exit_code
    except LockedError as error:
        print_remark(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        print_remark("; ".join(["interrupted", *notes_of(error)]))
        return INTERRUPTED
    except OSError as error:
        print_remark("; ".join([f"{error.filename or 'disk'}: {error.strerror or error}", *notes_of(error)]))
        return DISK
    except Exception:
        print_remark(*traceback.format_exc().rstrip("\n").split("\n"))
        print_remark("this is a bug of rankledger; please report it with the lines above")
        return BUG
    return DONE


def _end(code: int) -> None:
    """End the process with its exit code, without taking Python apart.

    A thread of Arrow's that lets go of a buffer while Python is taken apart aborts the process, now and then and with
    exit code 134 (apache/arrow#34314): a night whose output was refused would seem to have crashed.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with unread_is_fine(stream):
            stream.flush()
    os._exit(code)


def _usage(error: click.ClickException) -> list[str]:
    """What click's own `show` says of a wrong command, with the message on one line whatever word it repeats."""
    message = f"Error: {error.format_message()}"
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return [message]
    hint = f"Try '{error.ctx.command_path} {error.ctx.help_option_names[0]}' for help."
    return [*error.ctx.get_usage().split("\n"), hint, "", message]


def _prepare() -> None:
    """Set what holds for the whole process."""
    for name, value in (_ALLOCATION | _PLUGINS).items():
        os.environ.setdefault(name, value)
    gc.set_threshold(_OBJECTS)
    sys.stdout = sys.stdout or _nowhere()  # None where it was closed, as by `>&-`
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without box drawing gets question marks, not a crash
    if threading.current_thread() is threading.main_thread():  # no other may say what signals do
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # who ends a job means what Ctrl-C means


def _nowhere() -> TextIO:
    """A stream that takes everything; it has the lowest number that is free, so that no file gets that of a stream."""
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
