"""One batch of cases in a process of its own: what comes of each, and what is left for whoever finds the process dead.

A case may take two seconds of processor time, on all cores together: on a machine that is busy the clock says nothing.
What it asks of memory is how far it drives the process beyond what that had before.
"""

import faulthandler
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import MutableSequence, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fuzz.cases import Case, Target, case_of

ROOT = Path(__file__).parents[2]
_STATUS = Path("/proc/self/status")
_TAIL = 6  # lines of a traceback that are kept


@dataclass(frozen=True)
class Limits:
    seconds: float = 2.0
    bytes: int = 500_000_000


@dataclass(frozen=True)
class Finding:
    target: str
    kind: str  # `bug`, an exception that is not the project's own; `slow`, `large`, `hang` or `crash`
    place: str  # what was raised and where, or what was at work: findings of one place count as one
    number: int
    detail: str  # the end of the traceback
    case: str  # the file that holds the case
    count: int = 1  # how often it was found


@dataclass(frozen=True)
class Batch:
    target: Target
    prepared: Path  # the folder that its cases need a copy of
    seeds: Sequence[Case]
    seed: int
    numbers: range
    limits: Limits  # what each may take
    folder: Path  # a folder for this batch alone

    def run(self, state: MutableSequence[float]) -> None:
        try:
            work = self.folder / "work"
            shutil.copytree(self.prepared, work)
            os.chdir(work)
            tempfile.tempdir = str(self.folder)
            _detach(self.folder / "trace")
            for number in self.numbers:
                state[0], state[1] = number, time.monotonic()
                case = case_of(self.target, self.seeds, self.seed, number)
                (self.folder / "case").write_bytes(case.name.encode() + b"\n" + case.data)
                state[1] = time.monotonic()
                state[2 + self._try(case, number)] += 1
        except BaseException:
            (self.folder / "failed").write_text(traceback.format_exc())
            raise

    def _try(self, case: Case, number: int) -> bool:
        refused = False
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before, began = resident(os.getpid()), time.process_time()
        try:
            self.target.run(case)
        except self.target.refusals:
            refused = True
        except BaseException as error:  # whatever a bug may raise
            self._note(number, "bug", f"{type(error).__name__} at {_place_of(error)}", _tail_of(error))
        took, grown = time.process_time() - began, _peak() - before
        if took > self.limits.seconds:
            trace = (self.folder / "trace").read_text(errors="replace")
            self._note(number, "slow", place_in(trace), f"{took:.1f} s of processor time")
        if grown > self.limits.bytes:
            self._note(number, "large", case.name, f"{grown / 1e6:.0f} MB more than before")
        return refused

    def _note(self, number: int, kind: str, place: str, detail: str) -> None:
        case = self.folder / f"{kind}-{number}"
        shutil.copyfile(self.folder / "case", case)
        finding = Finding(self.target.name, kind, place, number, detail, str(case))
        with (self.folder / "findings").open("a") as file:
            file.write(json.dumps(asdict(finding)) + "\n")


def found_in(folder: Path) -> list[Finding]:
    file = folder / "findings"
    return [Finding(**json.loads(line)) for line in file.read_text().splitlines()] if file.is_file() else []


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def place_in(trace: str) -> str:
    last = trace.rpartition("Current thread")[2]
    found = re.search(rf'File "{re.escape(str(ROOT))}/((?:metrics|pipeline)/[^"]+)", line (\d+)', last)
    return f"{found[1]}:{found[2]}" if found else "somewhere"


def _peak() -> int:
    status = _STATUS.read_bytes()
    begin = status.index(b"VmHWM:") + 6
    return int(status[begin : status.index(b"kB", begin)]) * 1024


def _detach(trace: Path) -> None:
    output, nowhere = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND), os.open(os.devnull, os.O_RDWR)
    for stream, descriptor in enumerate((nowhere, nowhere, output)):
        os.dup2(descriptor, stream)
    sys.stdout = sys.stderr = os.fdopen(nowhere, "w")
    faulthandler.enable(output)
    faulthandler.register(signal.SIGUSR1, output)


def _place_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(ROOT) and "/tests/" not in frame.filename]
    frame = (ours or frames)[-1]
    path = Path(frame.filename)
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{frame.lineno}"


def _tail_of(error: BaseException) -> str:
    lines = [line[:300] for line in "".join(traceback.format_exception(error)).splitlines()]
    return "\n".join(lines[-_TAIL:])
