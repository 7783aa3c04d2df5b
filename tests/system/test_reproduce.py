"""A record reproduced from a run of a real server, by processes of their own: in an empty folder, and by another numpy.

Another numpy is installed beside the one that is pinned, which only the processes see that look there first.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.support.generated_data import rating_collection, search_collection, write_config

ROOT = Path(__file__).parents[2]
OTHER = "2.3.5" if not np.__version__.startswith("2.3.") else "2.2.6"  # of another minor version
DATA = {"web": search_collection(95, n_queries=60), "stars": rating_collection(96, n_users=40)}
SUITES = {"search": ["ndcg@10", "ap", "err@10", "bpref"], "errors": ["rmse", "mae", "r2"]}


def run_cli(*arguments: str, cwd: Path, first: Path | None = None, **variables: str) -> tuple[int, str]:
    path = os.pathsep.join(map(str, filter(None, (first, ROOT))))
    done = subprocess.run(
        [sys.executable, "-c", "from rankledger.pipeline.cli.app import main; main()", *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": path} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def other_numpy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numpy")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    subprocess.run([*command, f"numpy=={OTHER}"], check=True)
    return folder


@pytest.fixture(scope="module")
def tracked(mlflow: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    night = tmp_path_factory.mktemp("night")
    config = write_config(night, DATA, SUITES, ending=".tsv")
    written = yaml.safe_load(config.read_text(encoding="utf-8"))
    written |= {"tracking": {"uri": mlflow}, "comparison": {"baseline": "all_pairs"}, "bootstrap": {"resamples": 2_000}}
    config.write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")
    run_cli("evaluate", "config.yaml", cwd=night)
    (receipt,) = (night / "runs/records").glob("*/receipt.json")
    found = json.loads(receipt.read_text(encoding="utf-8"))["run_id"]
    shutil.rmtree(night / "runs")
    return f"mlflow:{found}", night.rename(night.with_name("inputs"))


@pytest.fixture
def run_id(tracked: tuple[str, Path], tmp_path: Path) -> str:
    """That run; the inputs are in `empty/inputs`, and nothing else is."""
    found, night = tracked
    for name in DATA:
        shutil.copytree(night / name, tmp_path / "empty/inputs" / name)
    return found


def test_from_a_run_id_in_an_empty_folder(run_id, mlflow, tmp_path):
    empty = tmp_path / "empty"

    code, printed = run_cli("reproduce", run_id, "--inputs", "inputs", cwd=empty, MLFLOW_TRACKING_URI=mlflow)
    assert (code, printed.splitlines()[0]) == (0, "identical")

    judged = empty / "inputs/web/judged.tsv"
    data = judged.read_bytes()
    assert data.count(b"\t4\n")
    judged.write_bytes(data.replace(b"\t4\n", b"\t1\n", 1))
    code, printed = run_cli("reproduce", run_id, "--inputs", "inputs", cwd=empty, MLFLOW_TRACKING_URI=mlflow)
    assert code == 1
    assert printed.splitlines()[0].startswith("different: ")
    assert printed.splitlines()[1].startswith("input: judgments of web: ")


def test_by_another_numpy(run_id, mlflow, tmp_path, other_numpy):
    code, printed = run_cli(
        "reproduce", run_id, "--inputs", "inputs", cwd=tmp_path / "empty", first=other_numpy, MLFLOW_TRACKING_URI=mlflow
    )

    assert code == 0
    assert printed.startswith(("equal: ", "identical, "))
    assert f"numpy {np.__version__} → {OTHER}" in printed
