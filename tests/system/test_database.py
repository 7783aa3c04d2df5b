"""A store in a file of SQLite that does not exist yet, made by one process of many, and whole or not at all."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.support.generated_data import search_collection, write_config

N_AT_ONCE = 3  # two seconds of CPU each, for MLflow's start
ROOT = Path(__file__).parents[2]
OF_EACH = "select count(*), count(distinct value) from tags where key = 'rankledger.evaluation'"


def test_evaluations_at_once_on_a_fresh_store(tmp_path):
    """Each is recorded and in MLflow, without a word of error, though the first one before them was broken off."""
    web = search_collection(40, n_queries=5, models=["bm25"])
    config = write_config(tmp_path / "configs", {"web": web}, {"search": ["ap"]}, tracking={"timeout": "10m"})
    (tmp_path / "runs").mkdir()
    with closing(sqlite3.connect(tmp_path / "runs" / ".mlflow.db.partial")) as broken_off:
        broken_off.execute("create table guardrails (id text)")  # a table that MLflow would make, and then cannot
        broken_off.commit()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MLFLOW_DISABLE_TELEMETRY": "true"}
    command = [
        sys.executable,
        "-c",
        "from rankledger.pipeline.cli.app import main; main()",
        "evaluate",
        str(config),
        "--json",
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    begun = [subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes) for _ in range(N_AT_ONCE)]
    printed = [process.communicate(timeout=600) for process in begun]

    assert [(process.returncode, err) for process, (_, err) in zip(begun, printed, strict=True)] == [
        (0, "")
    ] * N_AT_ONCE
    assert {json.loads(out)["store"] for out, _ in printed} == {f"sqlite:///{tmp_path}/runs/mlflow.db"}
    assert len({json.loads(out)["evaluation_id"] for out, _ in printed}) == N_AT_ONCE
    with closing(sqlite3.connect(tmp_path / "runs" / "mlflow.db")) as store:
        assert store.execute(OF_EACH).fetchall() == [(2 * N_AT_ONCE, N_AT_ONCE)]  # of each its own run, and the model's
        assert store.execute("select distinct status from runs").fetchall() == [("FINISHED",)]
