"""What killed processes left in a runs folder goes with the next command that may write there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankledger.pipeline.cli.app import main
from tests.support.generated_data import search_collection, write_config

ROOT = Path(__file__).parents[3]
DIES = """
import os, sys
from pathlib import Path
from rankledger.pipeline.support.atomic import partial_beside
for path in map(Path, sys.argv[1:]):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_beside(path).__enter__().mkdir()
os._exit(9)
"""
FOLDERS = ("records", "records/nights", "mlflow-records", "cache/0123")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runs folder with what a killed process left in each of its folders, and the lock of a delivery."""
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "runs"
    command = [sys.executable, "-c", DIES, *(str(runs / folder / "left") for folder in FOLDERS)]
    assert subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False).returncode == 9
    (runs / "records" / ".20261120T020000Z-nightly-00000001.delivery.partial").touch()
    assert len(partials(runs)) == len(FOLDERS) + 1
    return runs


def partials(runs: Path) -> list[Path]:
    return [*runs.rglob("*.partial")]


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "config.yaml", "--no-tracking"],
        ["nightly", "config.yaml", "--no-tracking"],
        ["sync"],
        ["prune", "--keep-days", "0", "--yes"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_that_writes_clears_what_was_left(runs, command):
    """Whether or not it has anything to write."""
    config = write_config(runs.parent, {"web": search_collection(3, n_queries=3)}, {"search": ["ap"]})
    config.rename("config.yaml")

    main(command)
    assert partials(runs) == []


@pytest.mark.parametrize("command", [["list"], ["prune", "--keep-days", "0"]], ids=lambda command: command[0])
def test_a_command_that_only_reads_leaves_it(runs, command):
    """It may not be allowed to write there."""
    main(command)

    assert len(partials(runs)) == len(FOLDERS) + 1
