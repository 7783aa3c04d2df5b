"""A terminal that a program is run on: what it has written so far, and the keys that are pressed."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len

from tests.support.forked import Forked, Loaded

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"

_PATIENCE = 250  # seconds after which what was waited for does not come any more
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def plain(text: str) -> str:
    return _SEQUENCE.sub("", text)


class Terminal:
    """A program with a terminal for stdin and stderr, and for stdout unless that is a file."""

    def __init__(
        self,
        code: str,
        arguments: Sequence[str] = (),
        *,
        folder: Path,
        columns: int = 120,
        environment: Mapping[str, str] | None = None,
        stdout: Path | None = None,
        by: Loaded | None = None,
    ) -> None:
        self._screen, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in _ASKED}
        variables = {**kept, "TERM": "xterm-256color", **(environment or {})}
        with (stdout or Path(os.devnull)).open("wb") as file:
            streams = {"stdin": terminal, "stdout": file.fileno() if stdout else terminal, "stderr": terminal}
            self._process: subprocess.Popen[bytes] | Forked = (
                by.start(code, arguments, folder=folder, environment=variables, **streams)
                if by
                else subprocess.Popen(
                    [sys.executable, "-c", code, *arguments],
                    cwd=folder,
                    env=variables,
                    start_new_session=True,
                    **streams,
                )
            )
        os.close(terminal)
        weakref.finalize(self, self._process.kill)  # what a test that failed was waiting for
        self._open = True
        self.written = ""

    def wait_for(self, *texts: str) -> None:
        end = time.monotonic() + _PATIENCE
        while not all(text in plain(self.written) for text in texts):
            assert self._open, f"it ended without {texts}: {self.written!r}"
            assert time.monotonic() < end, f"{texts} do not come: {self.written!r}"
            self._read()

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def hang_up(self) -> None:
        self._open = False
        os.close(self._screen)

    def end(self) -> int:
        while self._open:
            self._read()
            if not self._open:
                os.close(self._screen)
        return self._process.wait(_PATIENCE)

    def _read(self) -> None:
        if not select.select([self._screen], [], [], 0.1)[0]:
            return
        try:
            data = os.read(self._screen, 1 << 16)
        except OSError:  # the other end was closed
            data = b""
        self._open = bool(data)
        self.written += data.decode("utf-8", "replace")


_ASKED = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE")  # what a user may have said of colours and widths


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table, its headers first: lines that begin with a blank, parted by two in every line."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith(" ") and not line.startswith((" ~ ", " † ", " without ", " letters: ")):
            blocks[-1].append("".join(letter + "\0" * (cell_len(letter) - 1) for letter in line))
        elif blocks[-1]:
            blocks.append([])
    return [_cells(block) for block in blocks if block]


def table_rows(text: str) -> list[list[str]]:
    """The cells of all tables without their headers."""
    return [row for table in tables(text) for row in table[1:]]


def _cells(lines: Sequence[str]) -> list[list[str]]:
    width = max(map(len, lines)) + 2
    padded = [f"{line:{width}}" for line in lines]
    is_blank = [all(line[place] == " " for line in padded) for place in range(width)]
    starts = [place for place in range(1, width) if not is_blank[place] and all(is_blank[max(place - 2, 0) : place])]
    ends = [*starts[1:], width]
    return [
        [line[start:end].replace("\0", "").strip() for start, end in zip(starts, ends, strict=True)] for line in padded
    ]
