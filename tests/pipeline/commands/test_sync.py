"""Delivery, at once and later, to real files of SQLite, and stores; tests/system has a server that comes back."""

import errno
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import rankledger
from rankledger.pipeline.cli.app import main
from rankledger.pipeline.commands.upkeep import SyncResult, sync
from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.mlflow_stores import Stores, TrackingStore, open_store
from rankledger.pipeline.record.receipts import Receipt
from rankledger.pipeline.record.store import Records, Remote
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.support.errors import InputError, TrackingError
from tests.support.generated_data import search_collection, write_config
from tests.support.servers import free_port

NIGHTS = [datetime(2026, 11, day, 2, tzinfo=UTC) for day in (18, 19, 20)]


def config_in(folder: Path, **sections: Any) -> Path:
    return write_config(folder, {"web": search_collection(3, n_queries=6)}, {"search": ["ap"]}, **sections)


def evaluated(config: Path, night: datetime, monkeypatch: pytest.MonkeyPatch, **options: Any) -> rankledger.Evaluation:
    class Then(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return night

    monkeypatch.setattr("rankledger.pipeline.run.datetime", Then)
    evaluation: rankledger.Evaluation = rankledger.evaluate_config(config, runs_dir=config.parent / "runs", **options)
    monkeypatch.undo()
    return evaluation


def client_of(uri: str) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def runs_in(client: Any, kind: str = "evaluation") -> list[Any]:
    experiment = client.get_experiment_by_name("generated").experiment_id
    return list(reversed(client.search_runs([experiment], f"tags.`rankledger.kind` = '{kind}'")))


def logged(runs: Path) -> list[Any]:
    """All that the store in a runs folder says of its runs, but for their ids."""
    client = client_of(f"sqlite:///{runs}/mlflow.db")
    return [
        (run.info.start_time, run.info.end_time, run.info.run_name, run.to_dictionary()["data"], str(run.inputs))
        for run in [*runs_in(client), *runs_in(client, "model")]
    ]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("once")
    with pytest.MonkeyPatch.context() as monkeypatch:
        evaluated(config_in(folder), NIGHTS[0], monkeypatch)
    return folder / "runs"


@pytest.fixture
def runs(once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(once, tmp_path / "runs"))


def test_three_nights_without_a_store_are_delivered_in_order_and_once(tmp_path, monkeypatch):
    address = f"sqlite:///{tmp_path}/away/mlflow.db"
    (tmp_path / "away").touch()  # where its folder should be
    config = config_in(tmp_path, tracking={"uri": address})
    nights = [evaluated(config, night, monkeypatch) for night in NIGHTS]
    assert all(f"MLflow at {address}: " in str(night.untracked) for night in nights)
    assert {found.reason for found in sync(runs_dir=tmp_path / "runs")} == {nights[0].untracked}

    (tmp_path / "away").unlink()
    delivered = list(sync(runs_dir=tmp_path / "runs"))
    again = list(sync(runs_dir=tmp_path / "runs"))
    client = client_of(address)
    own, of_model = runs_in(client), runs_in(client, "model")

    assert delivered == [SyncResult(night.evaluation_id, tracked=address) for night in nights]
    assert again == []
    assert [run.data.tags["rankledger.evaluation"] for run in own] == [night.evaluation_id for night in nights]
    assert [datetime.fromtimestamp(run.info.start_time // 1000, UTC) for run in own] == NIGHTS
    assert [run.info.status for run in (*own, *of_model)] == ["FINISHED"] * (3 + 3 * 2)


def test_a_run_is_sent_again_only_where_that_is_asked_for(runs):
    before = logged(runs)
    (runs / "mlflow.db").unlink()

    assert list(sync(runs_dir=runs)) == []
    assert not (runs / "mlflow.db").exists()
    (synced,) = sync(runs_dir=runs, again=True)

    assert synced.reason == ""
    assert logged(runs) == before


def files_of(runs: Path) -> dict[str, list[str]]:
    """The files that MLflow has of each evaluation."""
    client = client_of(f"sqlite:///{runs}/mlflow.db")
    return {
        run.data.tags["rankledger.evaluation"]: [file.path for file in client.list_artifacts(run.info.run_id)]
        for run in runs_in(client)
    }


def anew(runs: Path) -> Path:
    """Forget that the record was delivered."""
    (runs / "mlflow.db").unlink()
    (receipt,) = runs.glob("records/*/receipt.json")
    receipt.unlink()
    return receipt.parent


def test_sync_logs_the_files_of_the_manifest_alone(runs, tmp_path):
    record = anew(runs)
    (tmp_path / "id_rsa").write_text("a secret")
    (record / "zz").symlink_to(tmp_path / "id_rsa")
    (record / "zero").symlink_to("/dev/zero")
    (record / "extra.txt").touch()
    os.mkfifo(record / "pipe")

    (synced,) = sync(runs_dir=runs)

    assert synced.reason == ""
    assert files_of(runs) == {record.name: sorted(["manifest.json", *read_record(record).manifest.files])}


@pytest.mark.parametrize("file", ["report.html", "receipt.json", "scores.parquet", "manifest.json"])
@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
def test_what_is_no_regular_file_delays_its_own_record_alone(runs, tmp_path, monkeypatch, file, kind):
    record = anew(runs)
    later = evaluated(config_in(tmp_path), NIGHTS[1], monkeypatch, tracking=True).record
    (later / "receipt.json").unlink()
    path = record / file
    secret = tmp_path / "secret"
    secret.write_bytes(path.read_bytes() if path.exists() else b"{}")  # a link to the same bytes is a link
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(secret if kind == "link" else "/dev/zero")

    reasons = {synced.evaluation_id: synced.reason for synced in sync(runs_dir=runs)}

    assert reasons[later.name] == ""
    assert later.name in files_of(runs)
    if file == "manifest.json" and kind != "link":
        assert record.name not in files_of(runs)
    elif (file, kind) not in (("receipt.json", "link"), ("manifest.json", "link")):
        assert str(path) in reasons[record.name] or f"{record.name}/{file}" in reasons[record.name]


@pytest.mark.parametrize("moved", ["moved", "copied", "store elsewhere"])
def test_files_follow_a_store_that_moved_with_its_runs_folder(tmp_path, monkeypatch, moved):
    before, after = tmp_path / "here", tmp_path / "job%2Fx?y#z"
    uri = {"uri": f"sqlite:///{tmp_path}/shared.db"} if moved == "store elsewhere" else {}
    first = evaluated(config_in(before, tracking=uri), NIGHTS[0], monkeypatch)
    assert first.untracked is None
    shutil.copytree(before, after)
    if moved == "copied":
        (old,) = (before / "runs/mlflow-artifacts").iterdir()
        n_files = len([*old.rglob("*")])
    else:
        shutil.rmtree(before)

    second = evaluated(after / "config.yaml", NIGHTS[1], monkeypatch)

    if moved == "store elsewhere":
        assert f"{before}/runs/mlflow-artifacts/" in second.untracked
        assert "folder of the experiment 'generated' not found. Add the folder." in second.untracked
    else:
        assert second.untracked is None
        (tmp_path / "plain").symlink_to(after)  # because MLflow itself decodes the path
        client = client_of(f"sqlite:///{tmp_path}/plain/runs/mlflow.db")
        runs = runs_in(client)
        assert len(runs) == 2
        assert all("manifest.json" in {file.path for file in client.list_artifacts(run.info.run_id)} for run in runs)
        assert {run.info.artifact_uri.partition("/runs/")[0] for run in runs} == {after.as_uri()}
    assert before.exists() == (moved == "copied")
    assert moved != "copied" or len([*old.rglob("*")]) == n_files


BARE = """
import pwd, tempfile

def missing(*_):
    raise {error}

{patched} = missing
"""


@pytest.mark.parametrize(
    ("patched", "error"),
    [
        ("pwd.getpwuid", "KeyError('uid not found')"),
        ("tempfile._get_default_tempdir", "FileNotFoundError(2, 'No usable temporary directory found')"),
    ],
)
def test_a_system_without_a_home_or_a_temporary_folder_delivers(tmp_path, patched, error):
    """The folders are missing in the process that evaluates and in the one that loads MLflow."""
    config = config_in(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(BARE.format(patched=patched, error=error))
    environment = {key: value for key, value in os.environ.items() if key not in ("HOME", "TMPDIR")}
    command = [Path(sys.executable).with_name("rankledger"), "evaluate", str(config), "-q"]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment | {"PYTHONPATH": str(tmp_path)}, capture_output=True, check=False
    )

    assert ended.returncode == 0
    assert b"not in MLflow" not in ended.stderr
    assert (tmp_path / "runs/mlflow.db").is_file()


def test_a_deleted_run_stays_deleted(runs):
    client = client_of(f"sqlite:///{runs}/mlflow.db")
    (run,) = runs_in(client)
    client.delete_run(run.info.run_id)

    (synced,) = sync(runs_dir=runs, again=True)

    assert synced.reason == ""
    assert runs_in(client) == []


def test_the_list_knows_a_receipt_where_the_users_config_keeps_records(tmp_path, run_cli, monkeypatch):
    from obstore.store import LocalStore

    far = tmp_path / "far"
    far.mkdir()
    monkeypatch.setattr("rankledger.pipeline.record.store._object_store", lambda url: LocalStore(far))
    config = config_in(tmp_path, records="s3://eval/records")
    record = rankledger.evaluate_config(config, runs_dir=tmp_path / "runs").record
    assert [path.parent.parent for path in tmp_path.rglob("receipt.json")] == [far]

    listed = run_cli("list", "--runs-dir", record.parents[1])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of somebody else"))
    foreign = run_cli("list", "--runs-dir", record.parents[1])
    assert " delivered" in listed.out
    assert " not yet" in foreign.out


def test_the_list_goes_on_without_a_place_that_cannot_be_reached(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    place = f"s3://eval/records?endpoint_override=127.0.0.1:{free_port()}&scheme=http&region=local"
    config = config_in(tmp_path, records=place)
    for date in ("2026-11-19", "2026-11-20"):
        assert rankledger.evaluate_config(config, date=date, runs_dir=tmp_path / "runs", tracking=False).unsaved

    listed = rankledger.list_evaluations(runs_dir=tmp_path / "runs")

    assert [entry["date"] for entry in listed.evaluations] == ["2026-11-20", "2026-11-19"]
    (remark,) = listed.remarks
    assert remark.startswith(f"{place}: ")
    assert remark.endswith("; receipts there are not read")


def test_what_was_not_to_be_tracked_is_not(tmp_path):
    for name, options, sections in (("a", {"tracking": False}, {}), ("b", {}, {"tracking": {"enabled": False}})):
        rankledger.evaluate_config(config_in(tmp_path / name, **sections), runs_dir=tmp_path / "runs", **options)
    assert list(sync(runs_dir=tmp_path / "runs", again=True)) == []
    assert not (tmp_path / "runs" / "mlflow.db").exists()


@pytest.mark.parametrize(("away", "n_asked"), [(True, 1), (False, 3)])
def test_a_place_of_records_that_is_away_is_asked_once(tmp_path, monkeypatch, away, n_asked):
    (tmp_path / "far").mkdir()
    config, place = config_in(tmp_path, tracking={"enabled": False}), Remote(f"file://{tmp_path}/far")
    nights = [evaluated(config, night, monkeypatch) for night in NIGHTS]
    asked = []

    def keep(self: Records, path: Path) -> bool:
        asked.append(path.name)
        if away or len(asked) == 1:
            raise OSError(errno.EIO, "refused", place.url)
        return True

    def folders(self: Remote) -> list[str]:
        if away and asked:
            raise OSError(errno.EIO, "away", self.url)
        return []

    monkeypatch.setattr(Records, "keep", keep)
    monkeypatch.setattr(Remote, "folders", folders)
    for module in ("commands.upkeep", "record.workspace"):
        monkeypatch.setattr(
            f"rankledger.pipeline.{module}.open_records", lambda runs, _: Records(runs / "records", place)
        )
    found = list(sync(runs_dir=tmp_path / "runs", records=place.url))

    assert len(asked) == n_asked
    assert [synced.evaluation_id for synced in found] == [night.evaluation_id for night in nights]
    later = [f"{place.url}: away"] * 2 if away else ["", ""]
    assert [synced.reason for synced in found] == [f"{place.url}: refused", *later]


def test_one_that_is_refused_does_not_stop_the_others(runs, tmp_path, run_cli):
    rankledger.evaluate_config(
        config_in(tmp_path / "gone", name="gone", tracking={"uri": "sqlite:///gone.db"}), runs_dir=runs
    )
    for receipt in (runs / "records").glob("*/receipt.json"):
        receipt.unlink()
    client = client_of(f"sqlite:///{runs}/mlflow.db")
    client.delete_experiment(client.get_experiment_by_name("generated").experiment_id)

    code, out, _ = run_cli("sync")

    lines = out.splitlines()
    assert code == 5
    assert "'generated' was deleted; restore it" in lines[0]
    assert lines[1].endswith(f"in MLflow at sqlite:///{runs.resolve()}/gone.db")


def test_a_server_that_does_not_answer_is_given_up_in_time(tmp_path):
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        evaluation = rankledger.evaluate_config(
            config_in(tmp_path, tracking={"uri": uri, "timeout": "1s"}), runs_dir=tmp_path / "runs"
        )

    assert evaluation.untracked == f"MLflow at {uri}: no answer within 1 s (tracking.timeout)"
    assert (evaluation.record / "manifest.json").is_file()


def test_sync_reads_the_variables_of_the_users_own_config(tmp_path, monkeypatch, run_cli):
    monkeypatch.setenv("TEAM_HOST", f"127.0.0.1:{free_port()}")
    monkeypatch.setenv("TEAM_TIME", "5s")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    uri = "http://${TEAM_HOST}/${TEAM_UNSET:-y}"
    config = config_in(tmp_path, tracking={"uri": uri, "timeout": "${TEAM_TIME}"})

    assert run_cli("evaluate", config).err.endswith("; `rankledger sync` delivers the record\n")
    assert "not delivered: MLflow at http://127.0.0.1:" in run_cli("sync").out


def test_a_record_of_the_store_that_a_variable_named_goes_to_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    evaluation = rankledger.evaluate_config(config_in(tmp_path), runs_dir=tmp_path / "runs")
    assert evaluation.untracked
    monkeypatch.delenv("MLFLOW_TRACKING_URI")

    (refused,) = sync(runs_dir=tmp_path / "runs")
    assert refused.tracked is None
    assert refused.reason == (
        f"{evaluation.record}: should be logged to the store of MLFLOW_TRACKING_URI, which is not set; name the store "
        "with --tracking-uri, or set MLFLOW_TRACKING_URI"
    )
    assert not (tmp_path / "runs" / "mlflow.db").exists()

    (delivered,) = sync(runs_dir=tmp_path / "runs", tracking_uri=f"sqlite:///{tmp_path}/other.db")
    assert delivered.tracked == f"sqlite:///{tmp_path}/other.db"


def test_a_night_of_the_store_that_a_variable_named_goes_to_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    config = config_in(tmp_path)
    first = rankledger.nightly(config, date="2026-11-20", runs_dir=tmp_path / "runs")
    monkeypatch.delenv("MLFLOW_TRACKING_URI")

    second = rankledger.nightly(config, date="2026-11-20", runs_dir=tmp_path / "runs")

    assert second.record == first.record
    assert second.untracked.startswith(f"{first.record}: should be logged to the store of MLFLOW_TRACKING_URI")
    assert not (tmp_path / "runs" / "mlflow.db").exists()


def test_a_folder_of_records_may_be_anywhere(tmp_path):
    config = config_in(tmp_path / "configs", records="../kept")
    evaluation = rankledger.evaluate_config(config, runs_dir=tmp_path / "runs", tracking=False)
    assert evaluation.record.parent.resolve() == tmp_path / "kept"
    copy = yaml.safe_load((evaluation.record / "config.yaml").read_text(encoding="utf-8"))
    assert (evaluation.record / copy["records"]).resolve() == tmp_path / "kept"


def test_a_later_delivery_logs_the_same_as_an_immediate_one(runs, once):
    (runs / "mlflow.db").unlink()
    for receipt in runs.glob("records/*/receipt.json"):
        receipt.unlink()
    (synced,) = sync(runs_dir=runs)
    assert synced.reason == ""
    assert logged(runs) == logged(once)


ONE, OTHER = Tracking(uri="http://one"), Tracking(uri="http://other")


class Silent(TrackingStore):
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
        InputError, match=r"Set http://mlflow\.example:5000 or https://mlflow\.example:5000 for a server"
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

    assert "--backend-store-uri sqlite:///chosen.db\n" in capfd.readouterr().out
    assert (tmp_path / "chosen.db").is_file()
    assert not (tmp_path / "runs/mlflow.db").exists()
    main(["sync"])
    assert capfd.readouterr().out == ""
