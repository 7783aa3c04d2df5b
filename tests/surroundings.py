"""`python -m tests.surroundings [--write]`, or `make surroundings`: what is tried with faults around the record."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from tests.support.filled_pages import filled

PAGE = Path(__file__).parents[1] / "docs/methods.md"
TRIED = {
    "Evaluations killed at a changing system call": "tests/system/test_kills.py::test_killed_at_changing_calls",
    "Commands where a folder is closed or the user has no home": "tests/system/test_permissions.py",
    "Nights with a clock that jumps": (
        "tests/pipeline/commands/test_alerts.py::test_twenty_nights_with_a_clock_that_jumps_tell_each_change_once"
    ),
    "Answers of a hostile MLflow server": "tests/system/test_hostile_server.py",
}


def count(tests: str) -> tuple[int, int]:
    """Run tests with all their cases. Return the cases and the failed tests."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.xml"
        command = [sys.executable, "-m", "pytest", "--numprocesses", "0", f"--junitxml={file}", tests]
        subprocess.run(command, env={**os.environ, "SURROUNDINGS": "full"}, check=False)
        return read_counts(file)


def read_counts(file: Path) -> tuple[int, int]:
    """Return the cases in JUnit's XML, by the property `cases` or one per test, and the failed tests."""
    cases = [*ElementTree.parse(file).getroot().iter("testcase")]
    sizes = [case.find("properties/property[@name='cases']") for case in cases]
    n_failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    return sum(1 if size is None else int(size.attrib["value"]) for size in sizes), n_failed


def table(counts: dict[str, tuple[int, int]]) -> str:
    """Return the counts as a table in Markdown."""
    rows = [f"| {name} | {n_cases:,} | {n_failed:,} |" for name, (n_cases, n_failed) in counts.items()]
    return "\n".join(["| what is tried | cases | tests that fail |", "|---|---:|---:|", *rows])


def main() -> None:
    """Run the tests with all their cases, and print a table; with --write, put it into the guide."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/methods.md")
    options = parser.parse_args()
    text = table({name: count(tests) for name, tests in TRIED.items()})
    print(text)
    if options.write:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), "counted", {"surroundings": text}), encoding="utf-8")


if __name__ == "__main__":
    main()
