"""A family of replicates in MLflow: a run for the model, and below it one for each replicate, once and linked."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.delivery.mlflow.runs import Run, build_runs
from rankledger.pipeline.delivery.mlflow.send import deliver
from rankledger.pipeline.history.manifest import define_measures
from rankledger.pipeline.inference.tables import Estimate, ReplicateEstimate
from tests.support.manifests import record_of_tables, whole

if TYPE_CHECKING:
    from mlflow import MlflowClient


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Run, ...]:
    folder = tmp_path / "record"
    folder.mkdir()
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    manifest = whole(
        {
            "name": "nightly",
            "evaluation_id": "20261120T020000Z-nightly-1f0c9a2b",
            "created": "2026-11-20T02:00:00+00:00",
            "finished": "2026-11-20T02:00:07+00:00",
            "definitions": define_measures([Measure.parse("ndcg@10")], PROFILES["trec_eval"]),
            "datasets": {"web": {"kind": "rankings", "suites": {"search": ["ndcg@10"]}, "inputs": {}}},
            "models": {"dense": {"params": {"k": 1}, "tags": {}, "owner": None}, "bm25": {}},
            "outputs": [
                {"dataset": "web", "model": "dense", "replicate": "1"},
                {"dataset": "web", "model": "dense", "replicate": "2"},
                {"dataset": "web", "model": "bm25"},
            ],
            "failures": [{"dataset": "web", "model": "dense", "replicate": "3", "reason": "3.tsv: file not found"}],
            "warnings": [],
        }
    )
    summary = tuple(Estimate("web", m, "all", "ndcg@10", 0.5, 0.4, 0.6, 0.05, 50, 0, 0) for m in ("dense", "bm25"))
    figures = tuple(ReplicateEstimate("web", "dense", f"{i}", "ndcg@10", 0.4 + i / 10, 0) for i in (1, 2))
    record = record_of_tables(folder, manifest, estimates=summary, replicates=figures)
    return build_runs(record, metric_name="{suite}/{measure}", max_metrics=40, note="")


@pytest.fixture
def client(tmp_path: Path, empty_store: Path) -> MlflowClient:
    from mlflow import MlflowClient

    shutil.copyfile(empty_store, tmp_path / "mlflow.db")
    return MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")


def send(client: MlflowClient, runs: tuple[Run, ...], folder: Path) -> dict[tuple[str, ...], str]:
    delivered = deliver(client, runs, uri=client.tracking_uri, artifacts=folder / "artifacts")
    return {**delivered.runs}


def test_a_family_has_a_run_and_each_replicate_one(runs):
    own = {run.task: run for run in runs}

    assert [*own] == [("web", "dense"), ("web", "dense", "1"), ("web", "dense", "2"), ("web", "dense", "3"),
                      ("web", "bm25"), None]  # fmt: skip
    assert own["web", "dense"].metrics["search/ndcg_at_10"] == 0.5
    assert own["web", "dense", "2"].metrics == {"search/ndcg_at_10": pytest.approx(0.6)}
    assert own["web", "dense", "2"].tags["rankledger.replicate"] == "2"
    assert own["web", "dense", "2"].name == "dense 2 11-20 1f0c9a2b"
    assert own["web", "dense", "3"].failed
    assert own["web", "dense", "3"].tags["rankledger.failure"] == "3.tsv: file not found"
    assert not own["web", "dense"].failed
    starts = [run.start for run in runs]
    assert sorted(starts[:-1], reverse=True) == starts[:-1]


def test_delivery_links_replicates_and_repeats_nothing(runs, client, tmp_path):
    broken = client.create_experiment("nightly", (tmp_path / "artifacts").as_uri())
    first = runs[1]
    identity = {key: value for key, value in first.tags.items() if key.startswith("rankledger.")}
    client.create_run(broken, first.start, identity, first.name)
    ids = send(client, runs, tmp_path)
    again = send(client, runs, tmp_path)

    assert again == ids
    found = client.search_runs([broken], "tags.`rankledger.kind` != 'history'")
    assert len(found) == 6
    parents = {run.data.tags.get("rankledger.replicate"): run.data.tags.get("mlflow.parentRunId") for run in found}
    assert parents == {"1": ids["web", "dense"], "2": ids["web", "dense"], "3": ids["web", "dense"], None: None}


def test_a_run_below_another_deliverys_run_is_linked_anew(runs, client, tmp_path):
    ids = send(client, runs, tmp_path)
    client.set_tag(ids["web", "dense", "1"], "mlflow.parentRunId", "f" * 32)
    send(client, runs, tmp_path)

    assert client.get_run(ids["web", "dense", "1"]).data.tags["mlflow.parentRunId"] == ids["web", "dense"]


def test_a_deleted_replicate_stays_deleted(runs, client, tmp_path):
    ids = send(client, runs, tmp_path)
    client.set_tag(ids["web", "dense", "1"], "mlflow.parentRunId", "f" * 32)
    client.delete_run(ids["web", "dense", "1"])

    assert send(client, [replace(run) for run in runs], tmp_path) == ids
    assert client.get_run(ids["web", "dense", "1"]).info.lifecycle_stage == "deleted"
