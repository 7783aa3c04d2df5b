"""Start and end of the command line process."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn, TextIO

# NumPy and Arrow ask for huge pages, which the system must first clear where memory is fragmented: right after another
# large process that took an evaluation of 7 million rows 0.7 s more of 2.0 s. Read when NumPy and Arrow are imported.
_ALLOCATION = {"NUMPY_MADVISE_HUGEPAGE": "0", "ARROW_DEFAULT_MEMORY_POOL": "system"}

# pydantic reads the entry points of every installed package to find plugins, which takes as long as all our models.
_PLUGINS = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}

# Objects until the next search for cycles of garbage. At Python's 700 a small evaluation spends a fifteenth of its time
# on searching modules, classes and functions that it is importing, none of which is garbage; it has some 110,000.
_OBJECTS = 200_000

_INTERRUPTED = 130  # the exit code


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code. `arguments` are by default the arguments of the process."""
    _prepare()
    with _ending_at_once():
        from rankledger.pipeline.cli.commands import run  # takes a tenth of a second
    code = run(arguments)
    if arguments is None:
        _end(code)
    if code:
        sys.exit(code)


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process during imports, which would print a traceback."""
    is_main = threading.current_thread() is threading.main_thread()
    ours = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)  # the first may be ignored, as by `nohup … &`
        if is_main and signal.getsignal(number) is signal.default_int_handler
    ]
    for number in ours:
        signal.signal(number, _end_at_once)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.default_int_handler)


def _end_at_once(_signal: int, _frame: object) -> NoReturn:
    with suppress(OSError):  # nobody may read it
        os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)


def _end(code: int) -> None:
    """End the process without finalizing Python, because Arrow's threads may abort it (apache/arrow#34314)."""
    from rankledger.pipeline.cli.terminal import unread_is_fine

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with unread_is_fine(stream):
            stream.flush()
    os._exit(code)


def _prepare() -> None:
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
    """Return a sink with the lowest free descriptor, so that no file gets a standard stream's."""
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
