"""Tracking stores of many records: opened once each, and given up one by one."""

from datetime import timedelta
from pathlib import Path

import pytest

from rankledger.pipeline.cli.app import main
from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.record.mlflow_stores import Stores, TrackingStore, open_store
from rankledger.pipeline.record.receipts import Receipt
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.support.errors import InputError, TrackingError
from tests.support.generated_data import search_collection, write_config

ONE, OTHER = Tracking(uri="http://one"), Tracking(uri="http://other")


class Silent(TrackingStore):
    """A store of which no process is started."""

    def __enter__(self) -> TrackingStore:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def opened() -> list[str]:
    return []


@pytest.fixture
def stores(opened: list[str], tmp_path: Path) -> Stores:
    def opener(tracking: Tracking, workspace: Workspace) -> TrackingStore:
        opened.append(str(tracking.uri))
        return Silent(str(tracking.uri), workspace.runs_dir, timeout=timedelta(seconds=1))

    return Stores(opener, Workspace.open(tmp_path))


def test_an_address_without_a_scheme_is_no_file(tmp_path):
    with pytest.raises(
        InputError, match=r"write http://mlflow\.example:5000 or https://mlflow\.example:5000 for a server"
    ):
        open_store(Tracking(uri="mlflow.example:5000"), Workspace.open(tmp_path))


def test_each_store_is_opened_once(stores, opened):
    with stores:
        for tracking in (ONE, OTHER, ONE, OTHER):
            with stores.at(tracking) as store:
                assert store.public_uri == tracking.uri

    assert opened == ["http://one", "http://other"]


def test_a_store_that_cannot_be_reached_is_given_up_alone(stores):
    with stores:
        with pytest.raises(TrackingError), stores.at(ONE):
            raise TrackingError("no answer", unreachable=True)

        with pytest.raises(TrackingError, match="no answer"), stores.at(ONE):
            pytest.fail("it was asked")
        with stores.at(OTHER) as store:
            assert store.public_uri == "http://other"


def test_a_store_that_refused_one_record_is_asked_for_the_next(stores):
    with stores:
        with pytest.raises(TrackingError), stores.at(ONE):
            raise TrackingError("refused")

        with stores.at(ONE) as store:
            assert store.public_uri == "http://one"


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("https://ann:secret@mlflow.example/x", "https://mlflow.example/x"),
        ("databricks://team", "databricks://team"),
        ("sqlite:///own.db", "sqlite:///{cwd}/own.db"),
        ("sqlite:////data/own.db", "sqlite:////data/own.db"),
        ("file:mlruns", "file:mlruns"),
        ("mlruns", "{cwd}/mlruns"),
        ("", "sqlite:///{runs}/mlflow.db"),
    ],
)
def test_a_config_without_a_store_goes_where_mlflow_itself_would(tmp_path, monkeypatch, variable, expected):
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", variable)
    runs = tmp_path / "runs"
    workspace = Workspace.open(runs)

    assert open_store(Tracking(), workspace).public_uri == expected.format(cwd=tmp_path / "cwd", runs=runs)
    assert open_store(Tracking(uri="https://written"), workspace).public_uri == "https://written"
    assert open_store(Tracking(uri="sqlite:///own.db"), workspace).public_uri == f"sqlite:///{runs}/own.db"


@pytest.mark.parametrize(
    ("server", "page"),
    [
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000/#/experiments/7/runs/0a1b?workflowType=machine_learning"),
        ("https://e.example/x/", "https://e.example/x/#/experiments/7/runs/0a1b?workflowType=machine_learning"),
        ("sqlite:////runs/mlflow.db", "sqlite:////runs/mlflow.db"),
        ("databricks", "databricks"),
    ],
)
def test_the_page_of_a_run_is_one_for_model_training(server, page):
    receipt = Receipt("20261120T020000Z-nightly-1f0c9a2b", "a" * 64, server, "7", "0a1b", (), "2026-11-20T02:00:00Z")

    assert receipt.page == page


def test_an_evaluation_and_its_last_lines_name_the_store_of_the_environment(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///chosen.db")
    config = write_config(tmp_path, {"web": search_collection(3, n_queries=6)}, {"search": ["ap"]}, report=False)

    main(["evaluate", str(config)])

    assert f"--backend-store-uri sqlite:///{tmp_path}/chosen.db\n" in capfd.readouterr().out
    assert (tmp_path / "chosen.db").is_file()
    assert not (tmp_path / "runs/mlflow.db").exists()
    main(["sync"])
    assert capfd.readouterr().out == ""
