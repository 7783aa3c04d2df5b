"""What every Python under test imports at its start, by standing on PYTHONPATH: it counts renames, and kills at one.

Conventions: `KILLS` names a folder. Every process writes its id into `processes` there, and a line per rename into
`renames`; both are appended to, which the system does one process at a time, so the place of a line is its number over
all processes. At rename `KILL_AT` (from 1) all of them are killed, before or after it as `KILL_WHEN` says.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDTH = 1000  # of a line, so that its place tells its number
_ONE_AT_A_TIME = threading.Lock()


def _append(name: str, text: str) -> int:
    descriptor = os.open(Path(os.environ["KILLS"]) / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, text.encode("ascii", "replace")[: WIDTH - 1].ljust(WIDTH - 1) + b"\n")
        return os.lseek(descriptor, 0, os.SEEK_CUR) // WIDTH
    finally:
        os.close(descriptor)


def _kill_all() -> None:
    lines = (Path(os.environ["KILLS"]) / "processes").read_text().split()
    for process in set(map(int, lines)) - {os.getpid()}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)  # this one, and those that have not come so far as to write their ids down


def _counted(rename: Callable[..., None]) -> Callable[..., None]:
    def counting(source: Any, target: Any, **options: Any) -> None:
        with _ONE_AT_A_TIME:  # of this process's threads: none gets further while another kills
            number = _append("renames", f"{os.getpid()} {os.fspath(source)} > {os.fspath(target)}")
            due = number == int(os.environ["KILL_AT"])
            if due and os.environ["KILL_WHEN"] == "before":
                _kill_all()
            rename(source, target, **options)
            if due:
                _kill_all()

    return counting


if os.environ.get("KILLS"):
    _append("processes", str(os.getpid()))
    os.rename, os.replace = _counted(os.rename), _counted(os.replace)
