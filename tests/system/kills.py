"""`rankledger` as a process of its own that can be killed, with whatever it has started, at any rename or request."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.support.forked import Forked, Loaded, import_commands
from tests.support.warm_worker import import_stores

Case = TypeVar("Case")

ROOT = Path(__file__).parents[2]
_HOOKS = Path(__file__).with_name("hooks")
_CODE = "from rankledger.pipeline.cli.app import main; main()"
_FORKED = f"""
import os, resource, runpy, sys
from tests.system.worker import fork_workers, trace
limit = int(sys.argv.pop(1))
if os.environ["KILL_WHEN"] not in ("before", "after"):
    trace(os.environ["KILLS"], os.environ["KILL_WHEN"], int(os.environ["KILL_AT"]))
    os.environ["KILL_AT"] = "0"
notes = runpy.run_path({str(_HOOKS / "sitecustomize.py")!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
fork_workers(notes)
{_CODE}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: its exit code; the signal, negative, where one ended it.
        out: what it printed.
        err: what it said on stderr.
        renames: `source > target` in their order.
        calls: its changing system calls in their order, with the process, if they were traced.
    """

    code: int
    out: str
    err: str
    renames: tuple[str, ...]
    calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Running:
    """A command under way; `notes` is the folder in which its processes and renames are written down."""

    process: subprocess.Popen[str] | Forked
    notes: Path

    def kill(self) -> None:
        """SIGKILL to every process of it, at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # those, too, that have not written their ids down yet
        for process in self._processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def wait(self, seconds: float = 600) -> Ended:
        """How it ends."""
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        renames = tuple(line.partition(" ")[2].rstrip() for line in self._read_notes("renames"))
        return Ended(self.process.returncode, out, err, renames, tuple(self._read_notes("calls")))

    def _read_notes(self, name: str) -> list[str]:
        file = self.notes / name
        return file.read_text(errors="replace").splitlines() if file.exists() else []

    def left(self) -> list[int]:
        """Its processes that live on."""
        return [process for process in self._processes() if _lives(process)]

    def _processes(self) -> list[int]:
        with suppress(FileNotFoundError):
            return [int(line) for line in (self.notes / "processes").read_text().split()]
        return []


def start(
    *arguments: str | Path,
    cwd: Path,
    by: Loaded | None = None,
    kill_at: int = 0,
    when: str = "before",
    environment: Mapping[str, str] | None = None,
    limit: int = -1,
    under: tuple[str, ...] = (),
) -> Running:
    """Start `rankledger` with arguments."""
    notes = Path(tempfile.mkdtemp(prefix="notes-", dir=cwd))
    variables = os.environ | {
        "PYTHONPATH": f"{_HOOKS}{os.pathsep}{ROOT}",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "COLUMNS": "120",
        "KILLS": str(notes) if limit == -1 else "",
        "KILL_AT": str(kill_at),
        "KILL_WHEN": when,
        **(environment or {}),
    }
    words = [*map(str, arguments)]
    if by is not None:
        return Running(by.start(_FORKED, [str(limit), *words], folder=cwd, environment=variables), notes)
    process = subprocess.Popen(
        [*under, sys.executable, "-c", _CODE, *words],
        cwd=cwd,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    return Running(process, notes)


def run(*arguments: str | Path, cwd: Path, **options: Any) -> Ended:
    """Run `rankledger` to its end; options are those of `start`."""
    return start(*arguments, cwd=cwd, **options).wait()


def import_all() -> None:
    """Import what an evaluation needs that logs to MLflow."""
    import_commands()
    import_stores()


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def each(stage: Callable[[Case], None], cases: Iterable[Case]) -> None:
    """Do every case, as many at a time as there are cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(stage, cases))
