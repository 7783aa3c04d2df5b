"""Runs that are found again, and models that were logged."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.delivery.mlflow.send import find_logged_model
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.mlflow_stores import fetch_record
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.support.errors import InputError, TrackingError
from tests.support.generated_data import search_collection, write_config


class Tracked:
    def __init__(self, folder: Path) -> None:
        self.runs = folder / "runs"
        self.uri = f"sqlite:///{(self.runs / 'mlflow.db').resolve()}"
        config = write_config(folder, {"web": search_collection(60, n_queries=6)}, {"search": ["ap"]})
        self.evaluation: Evaluation = rankledger.evaluate_config(config, runs_dir=self.runs)
        self.client = client = self._client()
        self.own = self._run(client, "evaluation")
        self.of_model = self._run(client, "model")
        self.foreign = client.create_run("0").info.run_id

    def _client(self) -> Any:
        from mlflow import MlflowClient

        return MlflowClient(tracking_uri=self.uri)

    def _run(self, client: Any, kind: str) -> Any:
        experiment = client.get_experiment_by_name("generated").experiment_id
        return client.search_runs([experiment], f"tags.`rankledger.kind` = '{kind}'")[0].info.run_id

    def find(self, run_id: str, folder: Path, *, records: Path | None = None, uri: str | None = None) -> Path:
        workspace = Workspace(folder, Records(records or self.runs / "records"))
        return fetch_record(run_id, Tracking(uri=uri or self.uri), workspace)


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Tracked:
    return Tracked(tmp_path_factory.mktemp("looked up"))


def test_the_record_is_taken_where_it_lies(tracked, tmp_path):
    for run_id in (tracked.own, tracked.of_model):
        assert tracked.find(run_id, tmp_path) == tracked.evaluation.record
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_is_elsewhere_is_copied_once(tracked, tmp_path):
    copies = tmp_path / "mlflow-records"
    found = tracked.find(tracked.of_model, tmp_path, records=tmp_path)

    assert found == copies / tracked.evaluation.evaluation_id
    assert read_record(found).manifest == read_record(tracked.evaluation.record).manifest
    files = {file.name: file.read_bytes() for file in tracked.evaluation.record.iterdir()}
    assert files.pop("receipt.json")  # it says where this copy is, and is no part of it
    assert {file.name: file.read_bytes() for file in found.iterdir()} == files
    assert [path.name for path in copies.iterdir()] == [found.name]
    (found / "a mark").touch()
    assert (tracked.find(tracked.own, tmp_path, records=tmp_path) / "a mark").exists()


def test_a_copy_that_is_not_what_was_logged_is_refused(tracked, tmp_path):
    (manifest,) = tracked.runs.glob("mlflow-artifacts/**/manifest.json")
    before = manifest.read_bytes()
    manifest.write_bytes(before + b" ")
    try:
        with pytest.raises(InputError, match="are not the record that was logged"):
            tracked.find(tracked.own, tmp_path, records=tmp_path)
    finally:
        manifest.write_bytes(before)
    assert list((tmp_path / "mlflow-records").iterdir()) == []


def test_runs_that_are_none_of_an_evaluation_are_refused(tracked, tmp_path):
    """One that there is not, and one of somebody else; and a store that is away: a line each."""
    with pytest.raises(InputError, match=r"Run with id=?.* not found"):
        tracked.find("0" * 32, tmp_path)
    with pytest.raises(InputError, match="is not the run of an evaluation; name another"):
        tracked.find(tracked.foreign, tmp_path)
    with pytest.raises(InputError, match=r"MLflow at http://127\.0\.0\.1:1"):
        tracked.find(tracked.own, tmp_path, uri="http://127.0.0.1:1")


@pytest.mark.parametrize("evaluation_id", ["", "..", "../../etc", "/etc", "a/b", "nightly", ".", "x" * 300])
def test_a_tag_that_is_no_id_leads_nowhere(tracked, tmp_path, evaluation_id):
    run_id = tracked.client.create_run("0", tags={"rankledger.evaluation": evaluation_id}).info.run_id

    with pytest.raises(InputError, match="is not the run of an evaluation; name another"):
        tracked.find(run_id, tmp_path / "copies", records=tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_looking_makes_no_store(tracked, tmp_path):
    with pytest.raises(InputError, match=r"mlflow.db: no MLflow store found"):
        tracked.find(tracked.own, tmp_path, uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert list(tmp_path.iterdir()) == []


def test_a_gate_may_name_a_run(tracked, tmp_path):
    gates = [
        {"name": name, "measure": "ap", "against": f"mlflow:{run_id}", "margin": 0.1, "on_inconclusive": "warn"}
        for name, run_id in (("there", tracked.of_model), ("not there", "0" * 32))
    ]
    config = write_config(tmp_path, {"web": search_collection(60, n_queries=6)}, {"search": ["ap"]}, gates=gates)

    evaluation = rankledger.evaluate_config(config, runs_dir=tracked.runs, tracking=False)

    baselines = read_record(evaluation.record).manifest.baselines
    assert baselines["there"]["dense"].record == tracked.evaluation.evaluation_id
    assert baselines["not there"]["dense"].record is None
    assert "MLflow at sqlite:///" in baselines["not there"]["dense"].reason
    assert {verdict.outcome for verdict in evaluation.verdicts if verdict.gate == "not there"} == {"not comparable"}


os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Any:
    from mlflow import MlflowClient

    folder: Path = tmp_path_factory.mktemp("store")
    shutil.copyfile(empty_store, folder / "mlflow.db")
    uri = f"sqlite:///{folder}/mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", uri)  # the registry asks for the source of a version there
        client = MlflowClient(tracking_uri=uri)
        model = client.create_logged_model(client.create_experiment("training", folder.as_uri()), name="ranker")
        client.create_registered_model("ranker")
        client.create_model_version("ranker", source=f"models:/{model.model_id}", model_id=model.model_id)
        client.create_model_version("ranker", source=folder.as_uri())
        client.set_registered_model_alias("ranker", "champion", "1")
        yield client, model.model_id


@pytest.mark.parametrize("text", ["models:/ID", "models:/ranker/1", "models:/ranker@champion"])
def test_a_model_is_found_by_whatever_a_config_may_say(store, text):
    client, model_id = store

    assert find_logged_model(client, text.replace("ID", model_id)) == model_id


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models:/m-0", "unknown model models:/m-0 in MLflow; fix model_id or model_uri in the config"),
        ("models:/ranker/3", "unknown model models:/ranker/3 in MLflow; fix"),
        ("models:/nobody/1", "unknown model models:/nobody/1 in MLflow; fix"),
        ("models:/ranker@nobody", "unknown model models:/ranker@nobody in MLflow; fix"),
        ("models:/nobody@champion", "unknown model models:/nobody@champion in MLflow; fix"),
        (f"models:/ranker@{'a' * 300}", "unknown model models:/ranker@aaa"),
        ("models:/../1", "unknown model models:/../1 in MLflow; fix"),
        ("models:/ranker/2", "the registered model models:/ranker/2 has no logged model; name another"),
    ],
)
def test_what_is_no_logged_model_is_said_in_a_line(store, text, message):
    """It names what was written, for the config is what must be fixed."""
    with pytest.raises(TrackingError) as error:
        find_logged_model(store[0], text)

    assert str(error.value).startswith(message)
