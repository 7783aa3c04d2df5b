"""No input of any kind does harm: the seeded run that every change has to pass, and whether such a run finds faults."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import planted
from tests.fuzz.cases import case_of
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
RUNS = 1_200  # `make fuzz` runs 200,000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured by /proc")


def fuzz(*arguments: str, keep: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "tests.fuzz", "--keep", str(keep), *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def test_a_seeded_run_over_all_targets_finds_nothing(tmp_path):
    code, report = fuzz("--seed", "0", "--runs", str(RUNS), keep=tmp_path)

    assert code == 0, report
    rows = [line.split() for line in report.splitlines()[1:-1]]
    assert [name for name, *_ in rows] == [target.name for target in TARGETS]
    assert all(int(accepted) and int(refused) for _, _, accepted, refused, *_ in rows), report


@pytest.fixture(scope="module")
def planted_run(tmp_path_factory) -> tuple[int, str, Path]:
    keep = tmp_path_factory.mktemp("kept")
    limits = ("--case-seconds", "0.3", "--case-megabytes", "150")
    return *fuzz("--targets", "tests.fuzz.planted", "--runs", "22", *limits, keep=keep), keep


@pytest.mark.parametrize(
    ("target", "kind", "detail"),
    [
        ("bug", "bug", "KeyError at tests/fuzz/planted.py"),
        ("crash", "crash", "SIGSEGV"),
        ("exit", "crash", "exit code 3"),
        ("slow", "slow", "s of processor time"),
        ("large", "large", "MB more than before"),
        ("hang", "hang", "in _hang"),
        ("hog", "large", "in _hog"),
    ],
)
def test_a_planted_fault_is_found_with_its_case(planted_run, target, kind, detail):
    """An exception, a signal, an exit, too much time or memory, what never ends: each is reported, its case kept."""
    code, report, keep = planted_run

    (found,) = re.findall(rf"^{target}: ({kind}, .*(?:\n    .*)*)", report, re.MULTILINE)
    assert (code, detail in found) == (1, True)
    assert list(keep.glob(f"{target}-{kind}-*"))


def test_a_run_goes_on_after_a_process_that_was_ended(planted_run):
    _, report, _ = planted_run
    rows = {line.split()[0]: line.split()[1:] for line in report.splitlines()[1:10]}

    assert rows["crash"] == ["4", "0", "0", "0", "0", "0", "0", "4"]
    assert rows["sound"] == ["4", "4", "0", "0", "0", "0", "0", "0"]
    assert rows["refuse"] == ["4", "0", "4", "0", "0", "0", "0", "0"]
    assert not re.search("^(sound|refuse):", report, re.MULTILINE)


def test_the_seed_and_the_number_make_the_case():
    target = planted.TARGETS[0]
    cases = [[case_of(target, target.seeds(), seed, number) for number in range(100)] for seed in (0, 0, 1)]

    assert cases[0] == cases[1]
    assert len({case.data for case in cases[0]}) > 60
    assert sum(one == other for one, other in zip(cases[0], cases[2], strict=True)) < 10
