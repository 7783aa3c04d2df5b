"""Tracking: a record, logged to a real sqlite store and read back by MLflow's own client; tests/system has a server."""

import hashlib
import math
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data.joined import Scores
from rankledger.pipeline.history.manifest import define_measures
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.mlflow_stores import TrackingStore
from rankledger.pipeline.report.markdown import note
from rankledger.pipeline.support.errors import TrackingError
from tests.support.manifests import whole, write_tables
from tests.support.servers import free_port

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

ROOT = Path(__file__).parents[3]
HOSTILE = """<script>alert(1)</script> "it's" 100% ü"""
EXPONENTIAL = "ndcg(gain=exponential)@10"
SUITES = {"search": ["ndcg@10", EXPONENTIAL, "avg_rp(cutoffs=[5,10])"], "top": ["rr@10", "ndcg@10"]}
FILES = [("judgments", "data/part-0.parquet", "a" * 64), ("judgments", "data/part-1.parquet", "b" * 64)]
PASSWORD = "s3cret/9"  # with a slash: the worst that a URI may hold


def write(folder: Path, name: str = "nightly", hex_id: str = "1f0c9a2b", **changes: Any) -> Evaluation:
    measures = {text: Measure.parse(text) for suite in SUITES.values() for text in suite} | {
        "rmse": Measure.parse("rmse")
    }
    tasks = {"web search": [HOSTILE, "bm25"], "stars": ["bm25"]}
    estimates = [
        Estimate("web search", model, "all", text, 0.3 + i / 7, 0.2 + i / 7, 0.4 + i / 7, 0.05 + i / 70, 50, 0, i)
        for model in tasks["web search"]
        for i, text in enumerate(m for m in measures if m != "rmse")
    ]
    estimates[1] = replace(estimates[1], estimate=None, ci_low=None, ci_high=None, std_error=None)
    estimates.append(Estimate("stars", "bm25", "all", "rmse", 0.912, None, None, None, 3, 0, 0))
    manifest: dict[str, Any] = {
        "name": name,
        "created": "2026-11-20T02:00:00.250000+00:00",
        "finished": "2026-11-20T02:00:07.500000+00:00",
        "seed": 20261120,
        "user": "bob",
        "host": "night-1",
        "command": f"rankledger evaluate nightly.yaml --set tracking.uri=http://ann:{PASSWORD}@mlflow.example",
        "bootstrap": {"resamples": 1000, "confidence": 0.95, "method": "percentile"},
        "definitions": define_measures(measures.values(), PROFILES["trec_eval"]),
        "datasets": {
            "web search": {
                "kind": "rankings",
                "suites": SUITES,
                "inputs": {
                    "judgments": [{"path": path, "size": 1, "sha256": sha} for _, path, sha in FILES],
                    "queries": [{"path": "data/queries.tsv", "size": 1, "sha256": "c" * 64}],
                },
            },
            "stars": {
                "kind": "ratings",
                "suites": {"errors": ["rmse"]},
                "inputs": {"ratings": [{"path": "s3://key:pw@eval/r.csv", "size": 1, "sha256": "d" * 64}]},
            },
        },
        "models": {
            HOSTILE: {"params": {}, "tags": {}, "owner": None},
            "late": {"params": {"k1": 2}, "tags": {}, "owner": None},
            "bm25": {
                "params": {"k1": 0.9, "stem": True, "fields": "title,body", "note": "", "what (ever)": 1},
                "tags": {"team": "search", "<b>": "bold"},
                "owner": "search-team",
            },
        },
        "outputs": [
            {"dataset": dataset, "model": model, "path": "x"} for dataset, models in tasks.items() for model in models
        ],
        "failures": [
            {"dataset": "web search", "model": "late", "reason": "late_1.tsv: file not found; write it\nor *not*"}
        ],
        "environment": {
            "git": {"commit": "0123456789abcdef" * 2, "dirty": True, "branch": "main", "url": "https://g.it"}
        },
    }
    result = Scores(
        dataset="stars",
        model="bm25",
        query_ids=np.array(["a", "b", "c"], dtype=object),
        measures=(measures["rmse"],),
        values=np.array([[0.5, 1.0, 1.5]]),
        weights=np.ones((1, 3)),
        figures={},
        missing=np.zeros(3, dtype=bool),
    )
    said = whole({"evaluation_id": f"20261120T020000Z-{name}-{hex_id}"} | manifest | changes)
    return write_tables(folder, said, {"estimates": tuple(estimates)}, [result], config=f"name: {name}\n")


@dataclass(frozen=True)
class Delivered:
    """What the process for MLflow answered."""

    experiment_id: str
    run_id: str
    runs: dict[tuple[str, ...], str]


def track(record: Evaluation, *, uri: str, artifacts: Path, max_metrics: int = 40, seconds: float = 600) -> Delivered:
    with TrackingStore(uri, artifacts, timeout=timedelta(seconds=seconds)) as store:
        answer = store.deliver(record.path, max_metrics=max_metrics)
    runs = {tuple(run[key] for key in ("dataset", "model", "replicate") if key in run): run for run in answer["runs"]}
    ids = {task: run["run_id"] for task, run in runs.items()}
    return Delivered(answer["experiment_id"], answer["run_id"], ids)


@dataclass(frozen=True)
class Store:
    uri: str
    artifacts: Path
    client: Any
    record: Evaluation
    tracked: Delivered

    def run(self, *task: str) -> Any:
        return self.client.get_run(self.tracked.runs[task] if task else self.tracked.run_id)


def of_evaluation(record: Evaluation) -> str:
    return f"tags.`rankledger.evaluation` = '{record.manifest.evaluation_id}'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("a folder, 100% real")


@pytest.fixture(scope="module")
def first_delivery(folder: Path) -> subprocess.CompletedProcess[str]:
    record = write(folder / "records")
    script = (
        "import sys; from datetime import timedelta; from pathlib import Path\n"
        "from rankledger.pipeline.record.mlflow_stores import TrackingStore\n"
        "with TrackingStore(sys.argv[2], Path(sys.argv[3]), timeout=timedelta(seconds=600)) as store:\n"
        "    store.deliver(Path(sys.argv[1]), max_metrics=40)\n"
        "assert 'mlflow' not in sys.modules"
    )
    place = [record.path, f"sqlite:///{folder}/fresh.db", folder / "kept"]
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, place)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        umask=0o002,
    )


@pytest.fixture(scope="module")
def sqlite(folder: Path, first_delivery: subprocess.CompletedProcess[str]) -> str:
    assert first_delivery.returncode == 0, first_delivery.stderr
    return f"sqlite:///{folder}/fresh.db"


@pytest.fixture(scope="module")
def uri(sqlite: str) -> str:
    return sqlite


@pytest.fixture(scope="module")
def store(uri: str, folder: Path) -> Store:
    from mlflow import MlflowClient

    record = write(folder / "logged", name="logged")
    artifacts = folder / "artifacts of models"
    tracked = track(record, uri=uri, artifacts=artifacts)
    return Store(uri, artifacts, MlflowClient(tracking_uri=uri), record, tracked)


def test_creating_a_store_prints_nothing(first_delivery):
    assert (first_delivery.returncode, first_delivery.stdout, first_delivery.stderr) == (0, "", "")


def test_a_group_can_write_a_store(folder, first_delivery):
    """By the umask of who made it, as the records."""
    modes = {name: (folder / name).stat().st_mode & 0o777 for name in ("fresh.db", "fresh.db.lock")}

    assert modes == {"fresh.db": 0o664, "fresh.db.lock": 0o664}


def test_every_figure_is_found_again(store):
    """Metrics equal the record's values to the last bit. A measure of two suites is logged once."""
    lines = {line.measure: line for line in store.record.estimates if line.model == "bm25"}
    keys = {
        "ndcg_at_10": "ndcg@10",
        "ndcg.gain_exponential_at_10": EXPONENTIAL,
        "avg_rp.cutoffs_5_10": "avg_rp(cutoffs=[5,10])",
        "rr_at_10": "rr@10",
    }
    expected: dict[str, float | None] = {}
    for key, measure in keys.items():
        expected |= {
            key: lines[measure].estimate,
            f"ci95/{key}.low": lines[measure].ci_low,
            f"ci95/{key}.high": lines[measure].ci_high,
        }
        if lines[measure].n_undefined:
            expected[f"n_undefined/{key}"] = lines[measure].n_undefined

    assert store.run("web search", "bm25").data.metrics == expected
    assert store.run("stars", "bm25").data.metrics == {"rmse": 0.912}
    assert store.run().data.metrics == {
        "_script_alert_1___script_ _it_s_ 100_ ü/web search.ndcg_at_10": 0.3,
        "bm25/web search.ndcg_at_10": lines["ndcg@10"].estimate,
        "bm25/stars.rmse": 0.912,
    }


def test_undefined_figures_are_left_out(store):
    """None is never logged; that queries were undefined is."""
    metrics = store.run("web search", HOSTILE).data.metrics

    assert {name for name in metrics if "exponential" in name} == {"n_undefined/ndcg.gain_exponential_at_10"}
    assert all(math.isfinite(value) for value in metrics.values())


def test_params_are_found_again(store):
    assert store.run("web search", "bm25").data.params == {
        "k1": "0.9",
        "stem": "true",
        "fields": "title,body",
        "note": "",
        "what _ever_": "1",
    }
    assert store.run().data.params == {
        "seed": "20261120",
        "conventions.profile": "trec_eval",
        "conventions.ties": "doc_id_desc",
        "conventions.score_precision": "float32",
        "conventions.missing_queries": "empty",
        "conventions.undefined_queries": "zero",
        "conventions.negative_grades": "unjudged",
        "conventions.unjudged_documents": "non_relevant",
        "bootstrap.resamples": "1000",
        "bootstrap.confidence": "0.95",
        "bootstrap.method": "percentile",
    }


def test_tags_tie_runs_to_their_evaluation(store):
    manifest = store.record.manifest
    ours = {
        "rankledger.evaluation": manifest.evaluation_id,
        "rankledger.command": "rankledger evaluate nightly.yaml --set tracking.uri=http://mlflow.example",
        "rankledger.host": "night-1",
        "mlflow.user": "bob",
        "mlflow.source.name": "nightly.yaml",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": "0123456789abcdef" * 2,
        "mlflow.source.git.dirty": "true",
        "mlflow.source.git.branch": "main",
        "mlflow.source.git.repoURL": "https://g.it",
    }
    manifest_hash = hashlib.sha256((store.record.path / "manifest.json").read_bytes()).hexdigest()

    assert store.run("stars", "bm25").data.tags == ours | {
        "mlflow.runName": "bm25 stars 11-20 1f0c9a2b",
        "rankledger.kind": "model",
        "rankledger.dataset": "stars",
        "rankledger.model": "bm25",
        "rankledger.owner": "search-team",
        "rankledger.fingerprint.rmse": manifest.definitions["rmse"].fingerprint,
        "team": "search",
        "_b_": "bold",
    }
    assert store.run().data.tags == ours | {
        "mlflow.runName": f"{manifest.name} 11-20 1f0c9a2b",
        "rankledger.kind": "evaluation",
        "rankledger.manifest_sha256": manifest_hash,
        "mlflow.note.content": note(store.record),
    }


def test_a_hostile_model_name_is_kept_as_it_is(store):
    """Markup, quotes and blanks are the model's name and nothing else."""
    run = store.run("web search", HOSTILE)

    assert run.data.tags["rankledger.model"] == HOSTILE
    assert run.info.run_name == f"{HOSTILE} web search 11-20 1f0c9a2b"


def test_a_refused_output_is_a_failed_run(store):
    run = store.run("web search", "late")
    note = "Not evaluated:\n\n    late_1.tsv: file not found; write it\n    or *not*"

    assert (run.info.status, run.data.metrics, run.data.params) == ("FAILED", {}, {"k1": "2"})
    assert run.data.tags["rankledger.failure"] == "late_1.tsv: file not found; write it\nor *not*"
    assert run.data.tags["mlflow.note.content"] == note
    assert [store.run(*task).info.status for task in [(), ("web search", HOSTILE), ("stars", "bm25")]] == [
        "FINISHED"
    ] * 3


def test_inputs_carry_digests(store):
    full = hashlib.sha256(f"{'a' * 64}\n{'b' * 64}".encode()).hexdigest()
    (found,) = store.run("web search", "bm25").inputs.dataset_inputs
    (rated,) = store.run("stars", "bm25").inputs.dataset_inputs

    assert found.dataset.to_dictionary() == {
        "name": "web search",
        "digest": full[:32],
        "source_type": "local",
        "source": '{"uri": "data/part-0.parquet", "n_files": 2}',
        "schema": None,
        "profile": None,
    }
    assert {tag.key: tag.value for tag in found.tags} == {
        "mlflow.data.context": "evaluation",
        "rankledger.sha256": full,
    }
    assert (rated.dataset.source_type, rated.dataset.source) == ("s3", '{"uri": "s3://eval/r.csv", "n_files": 1}')
    assert {item.dataset.name for item in store.run().inputs.dataset_inputs} == {"web search", "stars"}


def test_the_record_is_kept_with_the_run(store, tmp_path):
    kept = Path(store.client.download_artifacts(store.tracked.run_id, "", str(tmp_path)))

    assert {file.name: file.read_bytes() for file in kept.iterdir()} == {
        file.name: file.read_bytes() for file in store.record.path.iterdir()
    }


def test_the_evaluation_stands_on_top(store):
    runs = store.client.search_runs([store.tracked.experiment_id], of_evaluation(store.record))
    expected = [None, ("web search", HOSTILE), ("web search", "late"), ("web search", "bm25"), ("stars", "bm25")]

    assert [run.info.run_id for run in runs] == [store.run(*task or ()).info.run_id for task in expected]
    assert [run.info.start_time - 1795140000250 for run in runs] == [4, 3, 2, 1, 0]
    finished = datetime.fromisoformat(store.record.manifest.finished)
    assert {run.info.end_time for run in runs} == {round(finished.timestamp() * 1000)}


def test_one_experiment_has_all_runs(store):
    every = [experiment.experiment_id for experiment in store.client.search_experiments()]
    experiment = store.client.get_experiment(store.tracked.experiment_id)
    found = store.client.search_runs(every, of_evaluation(store.record))
    histories = store.client.search_runs([experiment.experiment_id], "tags.`rankledger.kind` = 'history'")
    runs = [*found, *histories]

    assert experiment.name == store.record.manifest.name
    assert {run.info.experiment_id for run in runs} == {experiment.experiment_id}
    assert Counter((run.data.tags["rankledger.kind"], run.data.tags.get("rankledger.dataset")) for run in runs) == {
        ("evaluation", None): 1,
        ("model", "web search"): 3,
        ("model", "stars"): 1,
        ("history", "web search"): 2,
        ("history", "stars"): 1,
    }
    assert len({run.info.run_name for run in runs}) == len(runs)
    assert not any("mlflow.parentRunId" in run.data.tags for run in runs)


def test_another_evaluation_is_another_set_of_runs(store, folder, capfd):
    again = write(folder / "again", name=store.record.manifest.name, hex_id="77777777")
    before = dict(os.environ)

    tracked = track(again, uri=store.uri, artifacts=store.artifacts)

    assert capfd.readouterr() == ("", "")
    assert before == dict(os.environ)
    for record, receipt in ((store.record, store.tracked), (again, tracked)):
        found = store.client.search_runs([tracked.experiment_id], of_evaluation(record))
        assert {run.info.run_id for run in found} == {receipt.run_id, *receipt.runs.values()}


def test_credentials_stay_out_of_the_store(store):
    texts = [str(store.client.get_run(run_id).to_dictionary()) for run_id in store.tracked.runs.values()]
    texts += [str(store.run().to_dictionary()), str(store.tracked)]

    assert not any("s3cret" in text or "ann" in text or "key:pw" in text for text in texts)


def test_a_deleted_experiment_is_named(sqlite, folder):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=sqlite)
    deleted = client.create_experiment("gone")
    client.delete_experiment(deleted)

    with pytest.raises(TrackingError, match=f"'gone' was deleted; restore it .*--experiment-id {deleted}"):
        track(write(folder / "gone", name="gone"), uri=sqlite, artifacts=folder)


def _refused(uri: str, folder: Path) -> str:
    with pytest.raises(TrackingError) as error:
        track(write(folder), uri=uri, artifacts=folder, seconds=240)
    return str(error.value)


def test_a_dead_server_fails_at_once(tmp_path, capfd):
    port = free_port()

    said = _refused(f"http://ann:{PASSWORD.replace('/', '%2F')}@127.0.0.1:{port}/", tmp_path)

    assert said == f"MLflow at http://127.0.0.1:{port}: [Errno 111] Connection refused"
    assert capfd.readouterr() == ("", "")


def test_a_silent_server_times_out_as_configured(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        said = _refused(f"http://ann:{PASSWORD.replace('/', '%2F')}@127.0.0.1:{silent.getsockname()[1]}", tmp_path)
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):  # nobody came a second time
            silent.accept()

    assert said.endswith(": timed out")
    assert "s3cret" not in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("sqlite:////proc/no/mlflow.db", "MLflow at sqlite:////proc/no/mlflow.db: "),
        (
            f"postgresql+nothing://ann:{PASSWORD}@db.example/mlflow?password=s3cret",
            "MLflow at postgresql+nothing://db.example/",
        ),
        (f"postgresql://ann:{PASSWORD}@db.example:port/mlflow", "MLflow at postgresql://db.example:port/mlflow: "),
        (f"gopher://ann:{PASSWORD}@db.example", "MLflow at gopher://db.example: "),
        ("http://u:[s3cret]x@127.0.0.1:9/s3cret-path", "MLflow at http://127.0.0.1:9: "),
        ("http://[::1/s3cret", "MLflow at http://[::1: "),
        ("localhost:5000", "MLFLOW_TRACKING_URI: 'localhost:5000' has no scheme. Set http://localhost:5000 or https:"),
    ],
)
def test_an_impossible_store_is_refused_in_one_line(tmp_path, uri, said):
    found = _refused(uri, tmp_path)

    assert found.startswith(said)
    assert "s3cret" not in found
    assert "ann" not in found.replace("cannot", "")
    assert "\n" not in found
    assert "no answer within" not in found


def test_a_killed_process_is_one_line_and_the_next_request_starts_another(tmp_path, empty_store):
    shutil.copyfile(empty_store, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    with TrackingStore(uri, tmp_path / "artifacts", timeout=timedelta(seconds=600)) as store:
        record = write(tmp_path).path
        store._process.kill()
        with pytest.raises(TrackingError) as error:
            store.deliver(record, max_metrics=40)
        assert str(error.value) == f"MLflow at {uri}: its process was killed (signal 9, perhaps out of memory)"
        assert not error.value.unreachable
        assert store.deliver(record, max_metrics=40)["run_id"]


def test_the_cause_of_a_database_is_shown(tmp_path, empty_store):
    """SQLAlchemy puts advice on its own session before the cause."""
    shutil.copyfile(empty_store, tmp_path / "mlflow.db")
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON tags BEGIN SELECT RAISE(ABORT, 'planted cause'); END")

    said = _refused(f"sqlite:///{tmp_path}/mlflow.db", tmp_path)

    assert said == f"MLflow at sqlite:///{tmp_path}/mlflow.db: planted cause"
