"""Batches of cases in processes of their own, watched; what ends a process is a finding, and the rest runs in another.

The process that starts the others opens no file of Arrow's and no thread, so that it can be forked at any time.
"""

import multiprocessing
import os
import shutil
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from tests.fuzz.batch import Batch, Finding, Limits, found_in, place_in, resident
from tests.fuzz.cases import Case, Target

T = TypeVar("T")

_SIZE = 500  # cases of a batch
_HANG = 30  # times the seconds of a case, by the clock: who sleeps or waits takes no processor time
_LOST = 10  # processes that a target may end before it is given up
_FRAMES = 6  # of a trace, the innermost, that are reported
_FORK = multiprocessing.get_context("fork")


@dataclass
class Tally:
    """What came of a run."""

    runs: Counter[str] = field(default_factory=Counter)  # by target, the cases that were run
    accepted: Counter[str] = field(default_factory=Counter)  # by target, those that raised nothing
    refused: Counter[str] = field(default_factory=Counter)  # by target, those that were refused as they should be
    lost: Counter[str] = field(default_factory=Counter)  # by target, those that ended their process
    findings: dict[tuple[str, str, str], Finding] = field(default_factory=dict)

    def add(self, finding: Finding, keep: Path) -> None:
        """Count a finding, and keep the smallest case of its kind."""
        key = finding.target, finding.kind, finding.place
        before = self.findings.get(key)
        count = 1 + (before.count if before else 0)
        if before is None or Path(finding.case).stat().st_size < Path(before.case).stat().st_size:
            if before is not None:
                Path(before.case).unlink()
            finding = replace(finding, case=str(_kept(finding, keep)))
        else:
            finding = before
        self.findings[key] = replace(finding, count=count)


class _Running:
    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.state: MutableSequence[float] = _FORK.RawArray("d", [batch.numbers.start, float("inf"), 0, 0])
        self.ended = ""
        self._traced = -1.0
        batch.folder.mkdir()
        self.process = _FORK.Process(target=batch.run, args=(self.state,))
        self.process.start()

    def watch(self) -> None:
        """End the process if its case takes far too much; have it write a trace if it takes too long."""
        pid, limits = self.process.pid or 0, self.batch.limits
        seconds = time.monotonic() - self.state[1]
        if seconds > limits.seconds and self._traced != self.state[0]:
            self._traced = self.state[0]
            _signal(pid, signal.SIGUSR1)
        if seconds > _HANG * limits.seconds:
            self.ended = "hang"
        elif resident(pid) > 4 * limits.bytes:
            self.ended = "large"
        if self.ended:
            _signal(pid, signal.SIGUSR1)
            time.sleep(0.1)
            _signal(pid, signal.SIGKILL)

    def lost(self) -> Finding | None:
        """The case that ended the process; None where the batch came to its end."""
        code, failed, trace = self.process.exitcode or 0, self.batch.folder / "failed", self.batch.folder / "trace"
        if failed.is_file():
            raise RuntimeError(f"{self.batch.target.name}: the harness failed:\n{failed.read_text()}")
        if not code:
            return None
        text = trace.read_text(errors="replace")
        kind = self.ended or "crash"
        how = f"{_name_of(code)}\n" if kind == "crash" else ""
        frames = [line for line in text.rpartition("Current thread")[2].splitlines() if "File" in line]
        lines = [line for line in frames if "/multiprocessing/" not in line and "/batch.py" not in line][:_FRAMES]
        case = str(self.batch.folder / "case")
        return Finding(self.batch.target.name, kind, place_in(text), int(self.state[0]), how + "\n".join(lines), case)


def run(
    targets: Sequence[Target],
    *,
    seed: int,
    runs: int,
    keep: Path,
    seconds: float = float("inf"),
    jobs: int = 2,
    limits: Limits | None = None,
) -> Tally:
    """Run many cases of the targets, by their shares."""
    tally, began = Tally(), time.monotonic()
    memory = Path("/dev/shm")
    with TemporaryDirectory(prefix="fuzz-", dir=memory if os.access(memory, os.W_OK) else None) as name:
        prepared = _prepared(targets, Path(name))
        left = list(_batches(targets, seed, runs, limits or Limits(), prepared, Path(name)))[::-1]
        working: list[_Running] = []
        while left or working:
            if left and len(working) < jobs:
                batch = left.pop()
                if time.monotonic() - began < seconds and tally.lost[batch.target.name] < _LOST:
                    working.append(_Running(batch))
                continue
            wait([running.process.sentinel for running in working], timeout=0.05)
            for running in [*working]:
                if running.process.exitcode is None:
                    running.watch()
                    continue
                working.remove(running)
                left += _ended(running, tally, keep)
    return tally


def _batches(
    targets: Sequence[Target],
    seed: int,
    runs: int,
    limits: Limits,
    prepared: Mapping[str, tuple[Path, Sequence[Case]]],
    folder: Path,
) -> Iterator[Batch]:
    shares = sum(target.share for target in targets)
    sizes = {target.name: max(1, round(runs * target.share / shares)) for target in targets}
    for begin in range(0, max(sizes.values()), _SIZE):
        for target in targets:
            numbers = range(begin, min(sizes[target.name], begin + _SIZE))
            if numbers:
                place, seeds = prepared[target.name]
                yield Batch(target, place, seeds, seed, numbers, limits, folder / f"{target.name}-{begin}")


def _ended(running: _Running, tally: Tally, keep: Path) -> list[Batch]:
    batch, name = running.batch, running.batch.target.name
    for finding in found_in(batch.folder):
        tally.add(finding, keep)
    accepted, refused = int(running.state[2]), int(running.state[3])
    n_bugs = sum(finding.kind == "bug" for finding in found_in(batch.folder))
    tally.accepted[name] += accepted - n_bugs
    tally.refused[name] += refused
    tally.runs[name] += accepted + refused
    lost = running.lost()
    rest: list[Batch] = []
    if lost is not None:
        tally.add(lost, keep)
        tally.runs[name] += 1
        tally.lost[name] += 1
        numbers = range(lost.number + 1, batch.numbers.stop)
        again = batch.folder.with_name(f"{batch.folder.name}+")
        rest = [replace(batch, numbers=numbers, folder=again)] if numbers else []
    shutil.rmtree(batch.folder)
    return rest


def _prepared(targets: Sequence[Target], folder: Path) -> dict[str, tuple[Path, Sequence[Case]]]:
    places: dict[Callable[[], None], Path] = {}
    found = {}
    for target in targets:
        if target.prepare not in places:
            places[target.prepare] = folder / f"prepared-{len(places)}"
            places[target.prepare].mkdir()
            _elsewhere(target.prepare, places[target.prepare])
        found[target.name] = places[target.prepare], _elsewhere(target.seeds, places[target.prepare])
    return found


def _elsewhere(function: Callable[[], T], folder: Path) -> T:
    """Call a function in a folder, in a process of its own: what Arrow starts must not be forked."""
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_send, args=(function, folder, sender))
    process.start()
    sender.close()
    try:
        found, failed = receiver.recv()
    except EOFError:
        found, failed = None, "it was killed"
    process.join()
    if failed:
        raise RuntimeError(f"the harness cannot be prepared:\n{failed}")
    result: T = found
    return result


def _send(function: Callable[[], object], folder: Path, sender: Any) -> None:
    os.chdir(folder)
    try:
        sender.send((function(), ""))
    except Exception:
        sender.send((None, traceback.format_exc()))


def _kept(finding: Finding, keep: Path) -> Path:
    name, _, data = Path(finding.case).read_bytes().partition(b"\n")
    keep.mkdir(parents=True, exist_ok=True)
    plain = name.decode().replace("/", "+").replace(" ", "_")
    path = keep / f"{finding.target}-{finding.kind}-{finding.number}-{plain}"
    path.write_bytes(data)
    return path


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _name_of(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
