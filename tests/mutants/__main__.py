"""`python -m tests.mutants`: change the code in one place at a time, and count the changes that a test notices.

The sample. A mutant is one change of one node inside a function of metrics, inference, join or record: see
`sites.ROOMS` and `sites.CHANGES`; `sites.mutants` says what is never changed. All mutants are sorted by a hash of the
seed and their names, and the first N are taken. So each has the same chance, and a room has mutants by its share of
mutable nodes.

The tests. A first run of the tests records which functions each test calls. A mutant then faces the tests that call its
function, those first that call little else, until one fails: it is killed. A test that takes 30 s and
30 times its usual CPU time fails. A mutant that no test has killed when the CPU seconds are used up is cut off.

All is kept in a folder; started again, it goes on from there.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutants.calls import CUT_OFF
from tests.mutants.sites import ROOMS, Function, Mutant, functions, mutants, rewrite

ROOT = Path(__file__).parents[2]
BATCHES = (4.0, 15.0, float("inf"))  # seconds that the tests of the first, the second and the last process take
COLLECTION = 0.3  # seconds per test file, beside its tests
NOT_COPIED = (".git", ".venv", "runs", "site", "build", "*.egg-info", ".mypy_cache", ".ruff_cache", ".pytest_cache")
PYTEST = ("-m", "pytest", "-q", "-p", "calls", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-rfE")


def main(arguments: Sequence[str] | None = None) -> int:
    """Sample, test and report."""
    options = _parser().parse_args(arguments)
    options.keep.mkdir(parents=True, exist_ok=True)
    sample = sampled(options.n, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
        calls = recorded(tree, options.tests, options.keep)
        results = options.keep / "results.jsonl"
        done = {line["mutant"] for line in _lines(results)}
        for mutant in sample:
            if mutant.key not in done:
                outcome = tested(tree, mutant, calls, options.cpu_seconds)
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"mutant": mutant.key, "room": mutant.function.room, **outcome}) + "\n")
                print(outcome["outcome"], mutant.place, mutant.operator, outcome["by"], sep="  ", flush=True)
    print(summary(sample, {line["mutant"]: line for line in _lines(results)}))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").split("\n", 1)[0])
    add = parser.add_argument
    add("--n", type=int, default=200, help="mutants (default: 200)")
    add("--seed", type=int, default=0, help="of the sample (default: 0)")
    add("--tests", nargs="+", default=["tests"], metavar="PATH", help="tests to run (default: tests)")
    add("--cpu-seconds", type=float, default=60.0, help="per mutant (default: 60)")
    add("--keep", type=Path, default=Path("runs/mutants"), metavar="DIR", help="for results (default: runs/mutants)")
    return parser


def sampled(n: int, seed: int) -> list[Mutant]:
    every = {mutant.key: mutant for function in functions(ROOT, ROOMS) for mutant in mutants(function)}
    return [every[key] for key in sorted(every, key=lambda key: hashlib.sha256(f"{seed}:{key}".encode()).digest())[:n]]


@dataclass(frozen=True)
class Call:
    test: str | None
    seconds: float
    called: frozenset[str]

    @property
    def file(self) -> str:
        return (self.test or "").partition("::")[0]


def recorded(tree: Path, tests: Sequence[str], keep: Path) -> list[Call]:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(tree.rglob("*.py")))).hexdigest()[:16]
    calls = []
    for path in tests:
        record = keep / f"calls-{path.replace('/', '-')}-{digest}.jsonl"
        if not record.exists():
            part = record.with_suffix(".part")
            part.unlink(missing_ok=True)
            print("recording", path, flush=True)
            done = _pytest(tree, [path], {"MUTANTS_RECORD": str(part.resolve())})
            if done.returncode not in (0, 1):
                sys.exit(f"pytest {path} exited with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
            print(*done.stdout.splitlines()[-20:], sep="\n", flush=True)
            part.rename(record)
        calls += [Call(line["test"], line["seconds"], frozenset(line["called"])) for line in _lines(record)]
    return calls


def tested(tree: Path, mutant: Mutant, calls: Sequence[Call], cpu_seconds: float) -> dict[str, Any]:
    path = tree / mutant.function.path
    source, times = path.read_text(encoding="utf-8"), path.stat()
    used, by, outcome = 0.0, "", "survived"
    path.write_text(rewrite(source, mutant), encoding="utf-8")
    try:
        for batch in batches(mutant.function, calls):
            before = _cpu_of_children()
            outcome, by = _run(tree, batch, cpu_seconds - used)
            used += _cpu_of_children() - before
            if outcome != "survived":
                break
    finally:
        path.write_text(source, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # its compiled file is up to date again
    place = {"place": mutant.place, "operator": mutant.operator, "change": mutant.change}
    place["line"] = source.split("\n")[mutant.node.lineno - 1].strip()  # type: ignore[attr-defined]
    return {**place, "outcome": outcome, "by": by, "seconds": round(used, 1)}


def batches(function: Function, calls: Sequence[Call]) -> Iterator[dict[str, float]]:
    own = {f"{function.path}:{line}" for line in function.lines}
    files: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.test and call.called & own:
            files[call.file].append(call)
    if not files or any(call.test is None and call.called & own for call in calls):  # a broken import fails any test
        cheapest = min((call for call in calls if call.test), key=lambda call: call.seconds)
        files[cheapest.file].append(cheapest)
    batch: dict[str, float] = {}
    seconds, limits = 0.0, iter(BATCHES)
    limit = next(limits)
    for tests in sorted(files.values(), key=lambda tests: min(len(call.called) for call in tests)):
        cost = COLLECTION + sum(call.seconds for call in tests)
        if batch and seconds + cost > limit:
            yield batch
            batch, seconds, limit = {}, 0.0, next(limits, float("inf"))
        batch |= {str(call.test): call.seconds for call in sorted(tests, key=lambda call: len(call.called))}
        seconds += cost
    yield batch


def _run(tree: Path, tests: dict[str, float], cpu_seconds: float) -> tuple[str, str]:
    chosen = tree.parent / "chosen.json"
    chosen.write_text(json.dumps({"tests": tests, "cpu_seconds": max(cpu_seconds, 0.0)}), encoding="utf-8")
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    done = _pytest(tree, ["-x", *files], {"MUTANTS_TESTS": str(chosen)})
    if done.returncode in (0, CUT_OFF):
        return ("survived" if done.returncode == 0 else "cut off"), ""
    if done.returncode == 5:
        sys.exit(f"no test of {files} was collected\n{done.stdout}")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "killed", failed[-1][:200] if failed else f"exit code {done.returncode}"


def _pytest(tree: Path, arguments: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    recording = "MUTANTS_RECORD" in environment
    paths = os.pathsep.join([str(tree), str(Path(__file__).parent)])
    fixed = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if not recording:
        fixed["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(
        [sys.executable, *PYTEST, *arguments],
        cwd=tree,
        env={**os.environ, **fixed, **environment},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=None if recording else _limits,
    )


def _limits() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (200, 210))  # a hang in a library, where no signal is heard
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))  # an endless list


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def summary(sample: Sequence[Mutant], results: dict[str, dict[str, Any]]) -> str:
    lines = [f"{'room':12}{'mutants':>8}{'killed':>8}{'survived':>10}{'cut off':>9}"]
    outcomes = Counter((each["room"], each["outcome"]) for each in (results[mutant.key] for mutant in sample))
    for room in (*ROOMS, "all"):
        of_room = [
            sum(n for (at, what), n in outcomes.items() if room in (at, "all") and what == outcome)
            for outcome in ("killed", "survived", "cut off")
        ]
        lines.append(f"{room:12}{sum(of_room):>8}{of_room[0]:>8}{of_room[1]:>10}{of_room[2]:>9}")
    for mutant in sample:
        result = results[mutant.key]
        if result["outcome"] != "killed":
            lines += ["", f"{result['outcome']}  {mutant.place}  {mutant.function.name}  {mutant.operator}"]
            lines += [f"    {result['line']}", f"    {mutant.change}"]
    return "\n".join(lines)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


if __name__ == "__main__":
    sys.exit(main())
