"""`python -m tests.benchmarks [CASE …]`, or `make bench`: whole processes from files to figures, beside other tools.

Tasks of a case run in turn, round by round, so that what else the machine does falls on all alike; medians count.
Before that, inputs are read once, and a tiny workload makes bytecode and compiled code. Tasks whose means differ end
the program. The folder's results.json keeps what was found; --write puts it into docs/methods.md.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks import tables
from tests.benchmarks.cases import CASES, Bench
from tests.benchmarks.rounds import observed
from tests.benchmarks.tools import SCRIPTS, TOOLS, install, run
from tests.benchmarks.workload import Workload


def main() -> None:
    """Run cases, print their tables, and keep what they found."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all if none is named")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "rankledger-bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="a hundredth of the size, one round: tries the harness")
    parser.add_argument("--floor", type=Path, metavar="SCRIPT", help="also time a script of NumPy and PyArrow alone")
    parser.add_argument("--tools", nargs="*", default=list(SCRIPTS), choices=SCRIPTS, help="others (default: all)")
    parser.add_argument("--write", action="store_true", help="put what the folder has into docs/methods.md")
    parser.add_argument("--no-run", action="store_true", help="only print or write what the folder has")
    options = parser.parse_args()
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; the cases are {', '.join(CASES)}")
    if options.small and options.write:
        parser.error("--write is for figures of the full size")
    folder = options.folder / "small" if options.small else options.folder
    folder.mkdir(parents=True, exist_ok=True)
    python = install(options.folder.resolve())
    bench = Bench(folder.resolve(), 100 if options.small else 1, options.floor, python, options.tools)
    if not options.no_run:
        warm_up(bench)
        rounds = 1 if options.small else options.rounds
        for name in options.cases or CASES:
            print(f"{name}: making data", flush=True)
            keep(bench, name, observed(CASES[name](bench), bench.folder, rounds))
    found = json.loads((folder / "results.json").read_text())
    print(tables.measured(found), tables.claims(found), sep="\n\n")
    if options.write:
        tables.write(found)


def warm_up(bench: Bench) -> None:
    """Compile whatever is compiled at the first use."""
    load = Workload(10, 1_000)
    for kind in ("txt", "parquet"):
        for task in (bench.ours("ours", load, kind, resamples=1_000), *bench.others(load, kind)):
            run(task, bench.folder)


def keep(bench: Bench, name: str, found: dict[str, object]) -> None:
    path = bench.folder / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results[name] = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "versions": versions(bench)} | found
    path.write_text(json.dumps(results, indent=1))


def machine() -> str:
    cpu = Path("/proc/cpuinfo").read_text().partition("model name")[2].partition("\n")[0].strip("\t: ")
    kb = int(Path("/proc/meminfo").read_text().split()[1])
    return f"{os.cpu_count()} cores of {cpu}, {kb / 2**20:.0f} GB, Linux {platform.release().partition('-')[0]}"


def versions(bench: Bench) -> str:
    ask = f"from importlib.metadata import version; print(*(f'{{n}} {{version(n)}}' for n in {TOOLS}), sep=', ')"
    theirs = subprocess.run([bench.python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    ours = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pyarrow"))
    return f"Python {platform.python_version()}, {ours}; {theirs}"


if __name__ == "__main__":
    main()
