"""From the words of a config to the logged model of a real store."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from rankledger.pipeline.delivery.mlflow.send import find_logged_model
from rankledger.pipeline.support.errors import TrackingError

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
