"""Rounds of the tasks of a case, in turn, and what they show."""

import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.cases import Case, Claim
from tests.benchmarks.tools import Run, run


def observed(case: Case, folder: Path, rounds: int) -> dict[str, object]:
    for path in {path for task in case.tasks for path in task.inputs}:
        _read(path)
    runs: dict[str, list[Run]] = {task.label: [] for task in case.tasks}
    for number in range(rounds):
        for task in case.tasks:
            runs[task.label].append(one := run(task, folder))
            print(f"  {number + 1}/{rounds} {task.label}: {one.usage}", flush=True)
        if number == 0:
            check_agreement(case, runs)
    kinds = ("wall", "cpu", "anonymous", "total")
    return {
        "tasks": {
            task.label: {"bytes": task.bytes()}
            | {kind: [getattr(one.usage, kind) for one in runs[task.label]] for kind in kinds}
            for task in case.tasks
        },
        "claims": [
            [claim.said(), claimed(claim, runs), claim.limit]
            for claim in case.claims
            if runs.keys() >= {claim.task, claim.of or claim.task}  # a tool may be left out
        ],
    }


def _read(path: Path) -> None:
    for file in (path,) if path.is_file() else path.iterdir():
        with file.open("rb") as opened:
            while opened.read(1 << 24):
                pass


def check_agreement(case: Case, runs: Mapping[str, list[Run]]) -> None:
    first: dict[str, tuple[str, Mapping[str, float]]] = {}
    for task in case.tasks:
        theirs = runs[task.label][0].figures
        label, ours = first.setdefault(task.data, (task.label, theirs))
        if task.prints and not theirs.keys() & ours.keys():
            sys.exit(f"{task.label}: no mean that {label} has, too")
        for name in theirs.keys() & ours.keys():
            if not abs(theirs[name] - ours[name]) <= task.tolerance:
                sys.exit(f"{task.label}: {name} is {theirs[name]!r}, and {ours[name]!r} by {label}")


def claimed(claim: Claim, runs: Mapping[str, list[Run]]) -> float:
    if claim.of is None:
        return max(getattr(one.usage, claim.what) for one in runs[claim.task])
    both = list(zip(runs[claim.task], runs[claim.of], strict=True))
    if claim.what == "digest":
        return sum(one.digest != other.digest for one, other in both)
    return statistics.median(getattr(one.usage, claim.what) / getattr(other.usage, claim.what) for one, other in both)
