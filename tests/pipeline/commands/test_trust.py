"""Records that somebody else wrote: nothing in them chooses where secrets, runs or copies go."""

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

import rankledger
from rankledger.pipeline.commands.prune import prune
from rankledger.pipeline.commands.upkeep import verify
from rankledger.pipeline.config.schema import Config
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.mlflow_stores import open_store, tracking_of
from rankledger.pipeline.record.receipts import Receipt, write_receipt
from rankledger.pipeline.record.store import digest_of
from rankledger.pipeline.record.workspace import Workspace, open_record
from rankledger.pipeline.support.errors import InputError
from tests.support.generated_data import search_collection, write_config
from tests.support.records import manifest_of

SECRET = "wJalrXUtnFEMI-K7MDENG"


class Thief:
    def __init__(self) -> None:
        self.sent: list[str] = []
        sent = self.sent

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                sent.append(f"{self.path} {self.headers}")
                self.send_error(404)

            do_POST = do_PUT = do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


@pytest.fixture
def thief(monkeypatch: pytest.MonkeyPatch) -> Iterator[Thief]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", SECRET)
    found = Thief()
    yield found
    found.server.shutdown()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    collection = search_collection(3, n_queries=6)
    return write_config(tmp_path, {"web": collection}, {"search": ["ap"]}, report=False)


@pytest.fixture
def own(config: Path) -> Path:
    return rankledger.evaluate_config(config, runs_dir=config.parent / "runs", tracking=False).record


def rewritten(record: Path, change: Callable[[dict[str, Any]], object] = lambda _: None, **manifest: Any) -> Path:
    config = yaml.safe_load((record / "config.yaml").read_text(encoding="utf-8"))
    change(config)
    (record / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    data = (record / "config.yaml").read_bytes()
    found = manifest_of(record) | {"tracking": "on"}
    found["files"]["config.yaml"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (record / "manifest.json").write_text(json.dumps(found | manifest), encoding="utf-8")
    return record


def to(uri: str) -> Callable[[dict[str, Any]], object]:
    return lambda config: config.update(tracking={"uri": uri, "timeout": "20s"})


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://{thief}", "names the MLflow store http://{thief}; name the store with --tracking-uri"),
        ("http://${{AWS_SECRET_ACCESS_KEY}}@{thief}", "${{AWS_SECRET_ACCESS_KEY}} is not in the record"),
        ("http://${{MLFLOW_TRACKING_TOKEN}}@{thief}", "${{MLFLOW_TRACKING_TOKEN}} is not in the record"),
        ("http://{thief}/${{AWS_SECRET_ACCESS_KEY:-none}}", "names the MLflow store http://{thief}/none; name the"),
    ],
)
def test_sync_sends_nothing_where_the_record_of_somebody_else_says(own, thief, uri, said):
    rewritten(own, to(uri.format(thief=thief.address)))
    (synced,) = rankledger.sync(runs_dir=own.parents[1])
    assert said.format(thief=thief.address) in synced.reason
    assert SECRET not in synced.reason
    assert thief.sent == []


def test_sync_copies_nothing_to_where_the_record_of_somebody_else_says(own, thief, tmp_path):
    rewritten(own, records=f"s3://eval/records?endpoint_override={thief.address}&scheme=http")
    assert [synced.uploaded for synced in rankledger.sync(runs_dir=own.parents[1])] == [False]
    rewritten(own, records=f"file://{tmp_path}/elsewhere")
    assert [synced.uploaded for synced in rankledger.sync(runs_dir=own.parents[1])] == [False]
    assert thief.sent == []
    assert not (tmp_path / "elsewhere").exists()


def test_a_config_that_was_changed_is_refused_wherever_a_record_is_opened(own, thief):
    text = (own / "config.yaml").read_text(encoding="utf-8")
    (own / "config.yaml").write_text(f"{text}tracking: {{uri: 'http://{thief.address}'}}\n", encoding="utf-8")
    line = r"config\.yaml: has changed since it was written \(sha256 .*; restore the record"

    for used in (
        open_record,
        lambda path: rankledger.evaluate_config(path, runs_dir=own.parents[1]),
        tracking_of_in(own),
    ):
        with pytest.raises(InputError, match=line):
            used(own)
    assert thief.sent == []


def tracking_of_in(record: Path) -> Callable[[Path], object]:
    return lambda path: tracking_of(path, Workspace.open(record.parents[1]))


def test_a_record_of_ones_own_goes_where_its_config_says(config, monkeypatch):
    text = config.read_text(encoding="utf-8") + "\ntracking: {uri: 'https://${TEAM_USER}@mlflow.internal'}\n"
    config.write_text(text, encoding="utf-8")
    monkeypatch.setenv("TEAM_USER", "ann")
    record = rankledger.evaluate_config(config, runs_dir=config.parent / "runs", tracking=False).record
    assert read_record(record).is_trusted
    assert tracking_of(record, Workspace.open(record.parents[1])).uri == "https://ann@mlflow.internal"


def test_sync_believes_no_receipt_of_another_manifest(own):
    receipt = Receipt(own.name, digest_of(own), "sqlite:///x", "1", "a" * 32, (), "now")
    write_receipt(Workspace.open(own.parents[1]).records, receipt)
    rewritten(own)

    (synced,) = rankledger.sync(runs_dir=own.parents[1])

    assert synced.reason.endswith(
        "receipt.json is the receipt of another manifest; delete it and run `rankledger sync`"
    )


def test_the_record_of_somebody_else_goes_to_the_store_that_both_name(own, monkeypatch):
    rewritten(own, to("https://mlflow.internal/"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://ann:x@mlflow.internal")

    found = tracking_of(own, Workspace.open(own.parents[1]))

    assert found.uri is None
    assert open_store(found, Workspace.open(own.parents[1])).public_uri == "https://mlflow.internal"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://staging.internal")
    with pytest.raises(InputError, match=r"names the MLflow store https://mlflow\.internal; name the store with"):
        tracking_of(own, Workspace.open(own.parents[1]))
    assert tracking_of(own, Workspace.open(own.parents[1], tracking_uri="https://typed")).uri == "https://typed"


def test_no_command_takes_the_default_store_for_that_of_a_variable(own, config):
    runs = config.parent / "runs"
    rankledger.evaluate_config(config, runs_dir=runs, tracking=False)
    old = own.rename(own.with_name("20260101T000000Z-generated-00000000"))
    rewritten(old, tracking="environment", evaluation_id=old.name)
    records = Workspace.open(runs).records
    write_receipt(records, Receipt(old.name, digest_of(old), "https://mlflow.internal", "1", "a" * 32, (), "now"))
    line = f"{old}: should be logged to the store of MLFLOW_TRACKING_URI, which is not set; name the store with"

    (remark,) = verify(str(old), runs_dir=runs).remarks
    pruned = prune(keep_days=1, delete=True, runs_dir=runs)

    assert remark.startswith(line)
    (failure,) = pruned.failures
    assert failure.startswith(f"{old.name} stays: {line}")
    assert old.is_dir()


def test_the_config_of_an_untrusted_record_reads_no_variable(own, monkeypatch, run_cli, thief):
    rewritten(own, to("https://${TEAM_HOST}/x"))
    monkeypatch.setenv("TEAM_HOST", "mlflow.internal")
    problem = "tracking.uri: ${TEAM_HOST} is not in the record, whose config reads no variable of this machine."

    assert problem in run_cli("sync", "--runs-dir", own.parents[1]).out
    assert problem in run_cli("evaluate", own, "--runs-dir", own.parents[1]).err
    assert tracking_of(own, Workspace.open(own.parents[1], tracking_uri="https://typed")).uri == "https://typed"

    rewritten(own, lambda config: config.update(slices=["${MLFLOW_TRACKING_TOKEN}"], tracking={"uri": "http://x"}))
    with pytest.raises(InputError, match=r"\$\{MLFLOW_TRACKING_TOKEN\} is not in the record"):
        open_record(own, tracking=True)


def keys_of(schema: dict[str, Any], definitions: dict[str, Any], depth: int = 4) -> Iterator[Any]:
    """Yield the values that a section can have, each with a variable in one key."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    for choice in schema.get("anyOf", schema.get("oneOf", ())):
        yield from keys_of(choice, definitions, depth)
    if not depth:
        return
    named = dict(schema.get("properties", {}))
    if isinstance(schema.get("additionalProperties"), dict):
        named["web"] = schema["additionalProperties"]
    for key, below in named.items():
        yield from ({key: value} for value in keys_of(below, definitions, depth - 1))
    if isinstance(schema.get("items"), dict):
        yield from ([value] for value in keys_of(schema["items"], definitions, depth - 1))
    yield "${MLFLOW_TRACKING_TOKEN}.{measure}"


def test_no_key_of_an_untrusted_record_reads_a_variable(own, thief):
    schema = Config.model_json_schema()
    written = yaml.safe_load((own / "config.yaml").read_text(encoding="utf-8"))
    sections = [section for section in keys_of(schema, schema["$defs"]) if isinstance(section, dict)]
    assert len(sections) > 150
    n_refused = 0
    for section in sections:
        rewritten(own, lambda config, section=section: (config.clear(), config.update(written | section)))
        try:
            opened = open_record(own, tracking=True)
            text = f"{opened.loaded.document.data} {opened.loaded.config}"
        except InputError as error:
            text = str(error)
        n_refused += "${MLFLOW_TRACKING_TOKEN} is not in the record" in text
        assert SECRET not in text, section
    untouched = ("records", "cache", "scheduler", "notify", "extends")  # keys that are not read at all
    assert n_refused >= sum(not any(f"'{key}'" in str(section) for key in untouched) for section in sections)
    assert thief.sent == []


def test_to_evaluate_the_record_of_somebody_else_opens_no_server_of_its_choice(own, thief, tmp_path):
    runs = own.parents[1]
    rewritten(own, to(f"http://{thief.address}"))
    with pytest.raises(
        InputError, match=r"set tracking\.uri with --set, set MLFLOW_TRACKING_URI, or add --no-tracking"
    ):
        rankledger.evaluate_config(own, runs_dir=runs)

    elsewhere = str(tmp_path / "elsewhere")
    rewritten(own, lambda config: config.update(records=elsewhere, execution={"cache": elsewhere}))
    again = rankledger.evaluate_config(own, runs_dir=runs, tracking=False)
    assert again.record.parent == runs / "records"
    ignored = "records and execution.cache and execution.scheduler are ignored, because you did not make the record on"
    assert any(ignored in warning for warning in again.warnings)
    assert not Path(elsewhere).exists()
    assert not read_record(again.record).is_trusted

    url = f"s3://eval/q.tsv?endpoint_override={thief.address}&scheme=http"
    rewritten(own, lambda config: config.update(execution={"cache": url}))
    rankledger.evaluate_config(own, runs_dir=runs, tracking=False)
    rewritten(own, lambda config: config.update(execution={}))
    rewritten(own, lambda config: config["datasets"]["web"].update(judgments=url))
    for used in (rankledger.evaluate_config, rankledger.reproduce):
        with pytest.raises(InputError, match=r"datasets\.web\.judgments: s3://eval/q\.tsv.* names a server"):
            used(own if used is rankledger.evaluate_config else str(own), runs_dir=runs)
    assert thief.sent == []


def test_a_record_of_ones_own_is_one_wherever_it_is_copied_and_nobody_elses_becomes_one(own, tmp_path, monkeypatch):
    assert read_record(own).is_trusted
    assert read_record(Path(shutil.copytree(own, tmp_path / "copy" / own.name))).is_trusted
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert not read_record(own).is_trusted
    monkeypatch.undo()
    (own / "manifest.json").write_bytes((own / "manifest.json").read_bytes() + b" ")
    assert not read_record(own).is_trusted


def test_a_user_without_a_state_folder_has_all_the_rest(config, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    evaluation = rankledger.evaluate_config(config, runs_dir=config.parent / "runs", tracking=False)
    assert (evaluation.record / "manifest.json").is_file()
    assert any("/proc/nowhere" in warning and "Set XDG_STATE_HOME" in warning for warning in evaluation.warnings)
    assert evaluation.is_trusted
    assert not read_record(evaluation.record).is_trusted
