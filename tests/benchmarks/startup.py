"""What starting up costs: whole processes beside `import mlflow`, in CPU time, as medians with their spread.

`python -m tests.benchmarks.startup`, or `make startup`. Every round runs each command once, so that what else the
machine does falls on all alike; a first round, which compiles modules and fills the disk cache, is not counted.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).parents[2]
N_QUERIES, DEPTH = 200, 100
CONFIG = """\
name: startup
datasets: {small: {judgments: judgments.trec}}
models: {one: {outputs: one.trec}, other: {outputs: other.trec}}
comparison: {baseline: one}
suites: {search: [ndcg@10, ap, rr, "p@5,10", r@100]}
"""
RUN = "from rankledger.pipeline.cli.app import main; main()"
COUNT = """\
import atexit, sys
atexit.register(lambda: print(sum(name.startswith("rankledger.") for name in sys.modules)))
"""


def write_small(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    for model in ("one", "other"):
        rows = (
            f"q{query} Q0 d{document} {rank} {DEPTH - rank} {model}\n"
            for query in range(N_QUERIES)
            for rank, document in enumerate(rng.permutation(1_000)[:DEPTH], start=1)
        )
        (folder / f"{model}.trec").write_text("".join(rows), encoding="ascii")
    judged = (
        f"q{query} 0 d{document} {rng.integers(0, 4)}\n"
        for query in range(N_QUERIES)
        for document in rng.permutation(1_000)[:50]
    )
    (folder / "judgments.trec").write_text("".join(judged), encoding="ascii")
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    return folder / "config.yaml"


def cpu_seconds(command: Sequence[str]) -> float:
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("MLFLOW_")
    }


def main() -> None:
    """Print each command's CPU time and its ratio to that of `import mlflow`, and what a quickstart loads."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with TemporaryDirectory() as folder:
        small = [RUN, "evaluate", str(write_small(Path(folder))), "--no-tracking", "--runs-dir", f"{folder}/small"]
        quickstart = [RUN, "evaluate", "configs/quickstart.yaml", "--runs-dir", f"{folder}/quickstart"]
        commands = {
            "import mlflow": ["import mlflow"],
            "--help": [RUN, "--help"],
            f"{N_QUERIES} queries × {DEPTH} documents, no tracking": small,
            "the same without a page": [*small, "--set", "report=false"],
            "quickstart, tracking to sqlite": quickstart,
        }
        rows = [[cpu_seconds(["-c", *command]) for command in commands.values()] for _ in range(rounds + 1)]
        loaded = subprocess.run(
            [sys.executable, "-c", COUNT + RUN, *quickstart[1:], "--no-tracking", "--quiet"],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
    seconds = [sorted(column) for column in zip(*rows[1:], strict=True)]  # the first round is not counted
    reference = statistics.median(seconds[0])
    for name, found in zip(commands, seconds, strict=True):
        median = statistics.median(found)
        print(f"{name:48} {median:6.2f} s ({found[0]:.2f} to {found[-1]:.2f})   ratio {median / reference:.3f}")
    print(f"{'modules of rankledger that the quickstart loads':48} {loaded.stdout.split()[-1]:>6}")


if __name__ == "__main__":
    main()
