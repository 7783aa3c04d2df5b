"""Compare the records of two checkouts byte by byte: `python -m tests.support.same_records OTHER_CHECKOUT`.

Evaluates the examples (and any configs you name) with this checkout and with the other one, at 1 and at 7 jobs, and
prints every file whose bytes differ. Of the manifest it compares the values, but for the id, the times, the host and
the command. Use it before and after a change that must not move a figure:

    git worktree add ../before main
    python -m tests.support.same_records ../before /data/trec-covid.yaml

It exits with 1 if anything differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
JOBS = (1, 7)
QUICKSTART_OUTPUTS = "defaults.model.outputs=configs/quickstart/{model}.tsv"
EXAMPLES = (
    ("configs/quickstart.yaml",),
    ("configs/recommender.yaml",),
    ("configs/nightly.yaml", "--date", "2026-11-20", "--set", QUICKSTART_OUTPUTS, "--set", "nightly="),
)
RENAMED_COLUMNS = {"detectable": "minimum_detectable_difference"}  # before: after, in the headers of the CSV files
RENAMED_KEYS = {"extras": "external_metrics", "matters": "practical_difference"}  # before: after, of the manifest
RENAMED_REFERENCES = {"self@latest": "self@last_passed"}  # before: after, in gates.json and the manifest
VARYING = {  # keys of the manifest that differ from one evaluation to the next, or from machine to machine
    *("command", "created", "duration", "environment", "evaluation_id", "files", "finished", "host", "pid", "stages"),
    *("config", "person", "started", "timings", "user"),
}
VARYING_OF_OUTPUTS = {"parsed"}  # the output cache has what a worker read before it died
NOT_COMPARED = {  # paths start in the checkout; the page shows the id and the times; the first record has no changes
    *("config.yaml", "report.html", "changes.csv")
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate with both checkouts and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("other", type=Path, help="another checkout, such as a worktree of main")
    parser.add_argument("configs", nargs="*", type=Path, help="configs to evaluate beside the examples")
    parser.add_argument(
        "--entry", default="rankledger.pipeline.cli.app", help="the other checkout's module with main()"
    )
    asked = parser.parse_intermixed_args(arguments)
    examples = [*EXAMPLES, *((str(config.resolve()),) for config in asked.configs)]
    n_files = n_differences = 0
    with tempfile.TemporaryDirectory() as folder:
        for example in examples:
            for jobs in JOBS:
                runs = Path(folder) / f"{Path(example[0]).stem}-{jobs}"
                before = evaluate(asked.other, asked.entry, example, jobs, runs / "before")
                after = evaluate(ROOT, "rankledger.pipeline.cli.app", example, jobs, runs / "after")
                names = {path.name for record in (before, after) for path in record.iterdir()} - NOT_COMPARED
                found = [line for name in sorted(names) for line in differences(before / name, after / name)]
                n_files, n_differences = n_files + len(names), n_differences + len(found)
                print(f"{example[0]}, {jobs} jobs: {len(names)} files, {len(found)} differences", flush=True)
                print(*(f"  {line}" for line in found), sep="\n", end="\n" if found else "")
    print(f"{n_files} files compared, {n_differences} differences")
    return 1 if n_differences else 0


def evaluate(checkout: Path, entry: str, example: Sequence[str], jobs: int, runs: Path) -> Path:
    """The record that a checkout writes of an example."""
    code = f"import sys; from {entry} import main; main(sys.argv[1:])"
    command = [sys.executable, "-P", "-c", code, "evaluate", *example, "--jobs", str(jobs)]
    done = subprocess.run(
        [*command, "--runs-dir", str(runs), "--no-tracking", "--quiet"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout.resolve()), "XDG_STATE_HOME": str(runs / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    records = [path.parent for path in runs.glob("records/*/manifest.json")]
    if len(records) != 1:
        sys.exit(f"{checkout}: {example[0]}: no record, exit code {done.returncode}\n{done.stderr}")
    return records[0]


def differences(before: Path, after: Path) -> Iterator[str]:
    """What differs between two files of the same name, a line each."""
    if not before.exists() or not after.exists():
        yield f"{after.name}: only {'after' if after.exists() else 'before'}"
    elif after.name == "manifest.json":
        old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
        yield from _unlike(old, new, "manifest.json")
    elif _renamed(before) != after.read_bytes():
        yield f"{after.name}: {before.stat().st_size} and {after.stat().st_size} bytes, which differ"


def _renamed(path: Path) -> bytes:
    content = path.read_bytes()
    if path.name == "gates.json":
        for before, after in RENAMED_REFERENCES.items():
            content = content.replace(f'"{before}"'.encode(), f'"{after}"'.encode())
    if path.suffix != ".csv":
        return content
    header, line_break, rest = content.partition(b"\n")
    names = [RENAMED_COLUMNS.get(name, name) for name in header.decode().split(",")]
    return ",".join(names).encode() + line_break + rest


def _unlike(old: Any, new: Any, where: str, varying: Set[str] = VARYING) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        old = {RENAMED_KEYS.get(key, key): value for key, value in old.items()}
        for key in sorted({*old, *new} - varying):
            yield from _unlike(old.get(key), new.get(key), f"{where}: {key}", varying)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _unlike(one, other, f"{where}[{i}]", VARYING_OF_OUTPUTS)
    elif (RENAMED_REFERENCES.get(old, old) if isinstance(old, str) else old) != new:
        yield f"{where}: {json.dumps(old)[:80]} became {json.dumps(new)[:80]}"


if __name__ == "__main__":
    sys.exit(main())
