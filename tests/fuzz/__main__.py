"""`python -m tests.fuzz`: mutated inputs for every part that reads one, and what came of them."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.cases import Target
    from tests.fuzz.runner import Tally

_KINDS = ("bug", "slow", "large", "hang", "crash")


def main(arguments: list[str] | None = None) -> int:
    """Run cases and report; 1 where anything was found, else 0."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # NumPy's threads must not be forked
    from tests.fuzz.batch import Limits
    from tests.fuzz.runner import run

    parser = _parser()
    options = parser.parse_args(arguments)
    known: dict[str, Target] = {target.name: target for target in importlib.import_module(options.targets).TARGETS}
    unknown = [name for name in options.target if name not in known]
    if unknown:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(known)}")
    tally = run(
        [known[name] for name in options.target or known],
        seed=options.seed,
        runs=options.runs,
        keep=options.keep,
        seconds=options.seconds,
        jobs=options.jobs,
        limits=Limits(options.case_seconds, options.case_megabytes * 1_000_000),
    )
    print(_report(tally, [*known]))
    return 1 if tally.findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=0, help="of the cases; the same seed gives the same cases (default: 0)")
    add("--runs", type=int, default=200_000, help="executions over all targets (default: 200000)")
    add("--target", action="append", default=[], metavar="NAME", help="a target; may be repeated (default: all)")
    add("--seconds", type=float, default=float("inf"), help="begin no batch after so many (default: no limit)")
    add("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    add(
        "--keep",
        type=Path,
        default=Path("runs/fuzz"),
        metavar="DIR",
        help="for cases with findings (default: runs/fuzz)",
    )
    add("--case-seconds", type=float, default=2.0, help="processor time that a case may take (default: 2)")
    add("--case-megabytes", type=int, default=500, help="memory that a case may take (default: 500)")
    add("--targets", default="tests.fuzz.targets", metavar="MODULE", help="that holds TARGETS (default: %(default)s)")
    return parser


def _report(tally: Tally, names: Sequence[str]) -> str:
    found = Counter[tuple[str, str]]()
    for finding in tally.findings.values():
        found[finding.target, finding.kind] += finding.count
    heads = ("target", "runs", "ok", "refused", *_KINDS)
    rows = [
        (name, tally.runs[name], tally.accepted[name], tally.refused[name], *(found[name, kind] for kind in _KINDS))
        for name in names
        if tally.runs[name]
    ]
    totals = [sum(column) for column in list(zip(*rows, strict=True))[1:]]
    lines = ["  ".join([f"{row[0]:<16}", *(f"{cell:>7}" for cell in row[1:])]) for row in (heads, *rows, ("", *totals))]
    for finding in sorted(tally.findings.values(), key=lambda finding: (finding.target, -finding.count)):
        lines += ["", f"{finding.target}: {finding.kind}, {finding.place}, {finding.count} times; {finding.case}"]
        lines += [f"    {line}" for line in finding.detail.splitlines()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
