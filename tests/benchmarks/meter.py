"""What whole processes take: wall and CPU time, and the peak memory of a process with all its descendants."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

INTERVAL = 0.01
INTERVALS_PER_SEARCH = 10


@dataclass(frozen=True)
class Usage:
    wall: float
    cpu: float
    anonymous: float
    total: float
    printed: str = ""

    def __str__(self) -> str:
        return f"{self.wall:.2f} s, {self.cpu:.2f} s of CPU, {self.anonymous:,.0f} / {self.total:,.0f} MB"


def measure(command: Sequence[object], cwd: Path | None = None) -> Usage:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command], cwd=cwd, env=environment, stdout=out, stderr=err, start_new_session=True
        )
        anonymous = total = 0.0
        family, ended, looks = [], 0, 0
        try:
            while not ended:
                if looks % INTERVALS_PER_SEARCH == 0:
                    family = session(process.pid)
                held, resident, peaks = zip((0.0,) * 3, *map(memory, family), strict=True)
                anonymous, total = max(anonymous, sum(held)), max(total, sum(resident), *peaks)
                looks += 1
                time.sleep(INTERVAL)
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        finally:
            if not ended:
                os.killpg(process.pid, signal.SIGKILL)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit code {process.returncode}\n{err.read()[-3000:]}")
        return Usage(wall, usage.ru_utime + usage.ru_stime, anonymous, total, out.read())


def session(leader: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                after_name = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended
                continue
            if after_name[3] == str(leader):
                found.append(int(folder.name))
    return found


def memory(pid: int) -> tuple[float, float, float]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0, 0.0
    kib = {words[0]: int(words[1]) for words in map(str.split, lines) if words[-1:] == ["kB"]}
    anonymous, resident, peak = (kib.get(name, 0) * 1024 / 1e6 for name in ("RssAnon:", "VmRSS:", "VmHWM:"))
    return anonymous, resident, peak
