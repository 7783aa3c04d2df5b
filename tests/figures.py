"""Comparison of the figures of two checkouts, value by value: `make figures BASE=<commit>`."""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).parents[1]
TABLES = ("scores.parquet", "summary.csv", "comparisons.csv", "curves.csv", "gates.json")
ID = re.compile(r"\d{8}T\d{6}Z-[\w.-]+?-[0-9a-f]{8}")  # an evaluation id, which gates name and each run makes anew
NIGHTS = [f"nightly configs/nightly.yaml --set nightly= --date {date}".split() for date in ("2026-11-20", "2026-11-21")]
RUNS = {
    "quickstart": [["evaluate", "configs/quickstart.yaml"]],
    "recommender": [["evaluate", "configs/recommender.yaml"]],
    "nightly": [[*night, "--set", "defaults.model.outputs=configs/quickstart/{model}.tsv"] for night in NIGHTS],
}


def evaluate(root: Path, folder: Path) -> None:
    """Evaluate the example configs of a checkout at 1 and 7 jobs, with the records in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(root), "XDG_STATE_HOME": str(folder / "state")}
    program = [sys.executable, "-c", "from rankledger.pipeline.cli.app import main; main()"]
    for jobs in ("1", "7"):
        for name, commands in RUNS.items():
            options = ["--jobs", jobs, "--no-tracking", "--runs-dir", str(folder / f"{name}-{jobs}")]
            for command in commands:
                done = subprocess.run(
                    [*program, *command, *options], cwd=root, env=environment, capture_output=True, text=True
                )
                if done.returncode not in {0, 1, 3}:  # a gate may fail
                    sys.exit(f"{root}: {' '.join(command)} exits {done.returncode}\n{done.stderr}")


def compare(before: Path, after: Path) -> Iterator[str]:
    """Return a line for each table that differs between two folders of `evaluate`."""
    old, new = _find_tables(before), _find_tables(after)
    if not old:
        yield f"{before}: no tables"
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            yield f"{name}: only {'before' if name in old else 'after'}"
        elif old[name].read_bytes() != new[name].read_bytes():
            differences = "; ".join(_describe_differences(_read(old[name]), _read(new[name])))
            if differences or not name.endswith(".json"):
                yield f"{name}: {differences or 'bytes alone'}"


def _find_tables(folder: Path) -> dict[str, Path]:
    tables: dict[str, Path] = {}
    for group in sorted(folder.iterdir()):
        for number, record in enumerate(sorted(group.glob("records/*Z-*")), 1):
            tables |= {f"{group.name}/{number}/{name}": record / name for name in TABLES if (record / name).is_file()}
    return tables


def _read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)) if path.suffix == ".csv" else json.load(file)["verdicts"]


def _describe_differences(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Iterator[str]:
    if len(old) != len(new):
        yield f"{len(old)} rows before, {len(new)} after"
    pairs = list(zip_longest(old, new, fillvalue={}))
    for column in dict.fromkeys(name for pair in pairs for row in pair for name in row):
        values = [tuple(ID.sub("ID", repr(row.get(column))) for row in pair) for pair in pairs]
        others = [pair for pair in values if pair[0] != pair[1]]
        if others:
            yield f"{column} in {len(others)} rows, such as {others[0][0]} before, {others[0][1]} after"


def main(base: str) -> int:
    """Compare the working tree with a commit. Return 1 if a value differs."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder / "base", base], cwd=ROOT, check=True)
        try:
            evaluate(folder / "base", folder / "before")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder / "base"], cwd=ROOT, check=True)
        evaluate(ROOT, folder / "after")
        differences = list(compare(folder / "before", folder / "after"))
        print(*differences or [f"{len(_find_tables(folder / 'after'))} tables have the same values"], sep="\n")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
