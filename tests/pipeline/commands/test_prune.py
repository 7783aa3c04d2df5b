"""`prune`: what goes, what stays and why; and what killed processes left goes with the next command that writes."""

import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.cli.app import main
from rankledger.pipeline.commands.prune import prune
from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.history.lookup import ACCEPTED, Acceptance, write_accepted
from rankledger.pipeline.record.mlflow_stores import open_store
from rankledger.pipeline.record.receipts import Receipt, read_receipt, write_receipt
from rankledger.pipeline.record.store import Records, digest_of, open_records
from rankledger.pipeline.record.workspace import Workspace
from tests.support.generated_data import search_collection, write_config
from tests.support.manifests import forge, manifest

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OLD = 200  # days


@pytest.fixture
def runs(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").touch()
    (tmp_path / "runs/records").mkdir(parents=True)
    return Path("runs")


def record(runs: Path, days: int, name: str = "nightly", *, against: str = "", **changes: Any) -> str:
    number = len([*(runs / "records").glob("*/")])
    evaluation_id = f"{NOW - timedelta(days=days):%Y%m%dT%H%M%SZ}-{name}-{number:08x}"
    path = runs / "records" / evaluation_id
    path.mkdir()
    held = {"reference": "self@last_passed", "record": against, "model": "bm25", "manifest_sha256": "0" * 64}
    none = {"reference": "self@last_passed", "record": None, "reason": "there is none", "first": True}
    plain = {
        "evaluation_id": evaluation_id,
        "config": "config.yaml",
        "baselines": {"no-drop": {"bm25": held, "new": none}} if against else {},
        "files": {file: {"size": 0, "sha256": "0" * 64} for file in ("config.yaml", "scores.parquet")},
    }
    (path / "manifest.json").write_text(json.dumps(manifest(name, **plain | changes)), encoding="utf-8")
    forge(path, "config.yaml", b"")
    forge(path, "scores.parquet", b"")
    forge(path, "summary.csv", b"x" * 1_000)
    return evaluation_id


def named_config(folder: Path, name: str) -> Path:
    return write_config(folder, {"web": search_collection(92, n_queries=2)}, {"search": ["ap"]}, name=name)


def look(runs: Path, keep_days: int = 90, **options: Any) -> rankledger.PruneResult:
    return prune(keep_days=keep_days, runs_dir=runs, now=NOW, **options)


def going(runs: Path, **options: Any) -> list[str]:
    return [found["evaluation_id"] for found in look(runs, **options).records]


def there(runs: Path) -> set[str]:
    return {path.name for path in (runs / "records").iterdir()}


def test_old_records_go_the_oldest_first_if_that_is_asked_for(runs):
    ids = [record(runs, days) for days in (300, 91, 90, 1)]
    before = there(runs)

    found = look(runs)
    assert [entry["evaluation_id"] for entry in found.records] == ids[:2]
    size = sum(file.stat().st_size for file in (runs / "records" / ids[0]).iterdir())
    assert {entry["size"] for entry in found.records} == {size}
    assert found.before == NOW - timedelta(days=90)
    assert (found.done, there(runs)) == (False, before)

    assert look(runs, delete=True) == replace(found, done=True)
    assert there(runs) == {*ids[2:]}
    assert look(runs, delete=True).records == ()


def test_the_last_record_of_each_evaluation_stays(runs):
    ids = [record(runs, OLD), record(runs, OLD - 1), record(runs, OLD, "weekly")]
    repeat = record(runs, OLD - 2, repeats=ids[0])
    assert set(going(runs)) == {ids[0], repeat}
    assert look(runs).stays == {"the last of its evaluation": 2}


def test_what_is_not_delivered_stays(runs):
    waiting = record(runs, OLD, tracking="on")
    delivered = record(runs, OLD, tracking="on")
    unwanted = record(runs, OLD)
    record(runs, 1)
    foreign = record(runs, OLD, tracking="on")
    for evaluation_id, digest in ((delivered, digest_of(runs / "records" / delivered)), (foreign, "0" * 64)):
        receipt = Receipt(evaluation_id, digest, "sqlite:///x", "1", "own", (), "")
        write_receipt(open_records(runs), receipt)

    assert set(going(runs)) == {delivered, unwanted}
    assert look(runs).stays == {"not delivered yet": 2}
    assert {waiting, foreign} < there(runs)


def test_a_link_and_a_record_that_cannot_be_deleted_keep_no_other_from_going(runs, tmp_path, monkeypatch):
    linked, held, free, _ = (record(runs, days) for days in (300, 200, 150, 1))
    path = runs / "records" / linked
    path.symlink_to(path.rename(tmp_path / linked), target_is_directory=True)
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name == held:
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    pruned = look(runs, delete=True)

    assert [entry["evaluation_id"] for entry in pruned.records] == [free]
    assert pruned.stays == {f"{path} is a link. Remove the link": 1}
    assert pruned.failures == (f"{held} is not deleted: {runs / 'records' / held}: Permission denied",)
    assert (path.is_symlink(), (tmp_path / linked / "manifest.json").is_file()) == (True, True)


def test_what_is_accepted_stays(runs, tmp_path):
    ids = [record(runs, days) for days in (300, 299, 298, 1)]
    elsewhere = tmp_path / "elsewhere"
    config = named_config(elsewhere, "nightly")
    for folder, evaluation_id in ((tmp_path, ids[0]), (elsewhere, ids[1])):
        entry = Acceptance(record=evaluation_id, manifest_sha256="0" * 64, reason="", accepted="", by="")
        write_accepted(folder / ACCEPTED, {"nightly": {"bm25": entry}})

    assert going(runs) == ids[1:3]
    assert going(runs, configs=[config]) == [ids[2]]
    assert going(runs, keep_days=10**12) == []  # which no calendar holds
    (tmp_path / ACCEPTED).write_text("[", encoding="utf-8")
    with pytest.raises(rankledger.InputError, match=r"accepted\.yaml: is not YAML"):
        look(runs, delete=True)


def test_without_the_config_nothing_is_known_to_be_not_accepted(runs, tmp_path):
    gone = record(runs, OLD, config="gone/config.yaml")
    record(runs, 1)
    (reason,) = look(runs).stays
    assert "name it with --config" in reason
    assert going(runs, configs=[named_config(tmp_path / "a", "weekly")]) == []
    assert going(runs, configs=[named_config(tmp_path / "b", "nightly")]) == [gone]


def test_the_list_is_that_beside_the_runs_folder(runs, tmp_path, monkeypatch):
    accepted = record(runs, OLD)
    record(runs, 1)
    entry = Acceptance(record=accepted, manifest_sha256="0" * 64, reason="", accepted="", by="")
    write_accepted(tmp_path / ACCEPTED, {"nightly": {"bm25": entry}})
    named_config(tmp_path / "another", "nightly")
    monkeypatch.chdir(tmp_path / "another")

    assert going(tmp_path / "runs") == []


def test_what_another_pruning_deleted_meanwhile_is_no_error(runs):
    gone = record(runs, OLD)
    for _ in range(2):
        open_records(runs).delete(gone)
    assert there(runs) == set()


def test_blocks_go_by_their_last_use(runs, tmp_path):
    assert look(runs).n_cached == 0
    collection = search_collection(90, n_queries=6)
    config = write_config(tmp_path / "lab", {"web": collection}, {"search": ["ap"]})
    rankledger.evaluate_config(config, tracking=False, runs_dir=runs)
    files = sorted((runs / "cache").rglob("*.*"))
    assert len(files) == 3  # the judgments, and two outputs
    for file in files:
        os.utime(file, (0, 0))
    rankledger.evaluate_config(config, overrides=["models.dense="], tracking=False, runs_dir=runs)

    found = prune(keep_days=1, delete=True, runs_dir=runs)

    (gone,) = set(files) - set((runs / "cache").rglob("*.*"))
    assert gone.suffix == ".hits"
    assert not gone.parent.exists()  # it was alone of its size
    assert (found.n_cached, found.n_cached_bytes > 0) == (1, True)


@dataclass(frozen=True)
class Tracked:
    runs: Path
    first: str
    second: str

    @property
    def records(self) -> Records:
        return open_records(self.runs)

    def active(self) -> set[str]:
        from mlflow import MlflowClient

        client = MlflowClient(f"sqlite:///{self.runs / 'mlflow.db'}")
        found = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
        tags = [run.data.tags for run in found]
        return {own["rankledger.evaluation"] for own in tags if "rankledger.evaluation" in own}

    def prune(self, **options: Any) -> rankledger.PruneResult:
        in_a_year = datetime.now(UTC) + timedelta(days=365)
        return prune(keep_days=90, delete=True, runs_dir=self.runs, now=in_a_year, **options)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Tracked:
    folder = tmp_path_factory.mktemp("pruned")
    config = write_config(folder, {"web": search_collection(91, n_queries=6)}, {"search": ["ap"]})
    runs = folder / "runs"
    return Tracked(runs, *(rankledger.evaluate_config(config, runs_dir=runs).evaluation_id for _ in range(2)))


@pytest.fixture
def tracked(original, tmp_path) -> Tracked:
    return replace(original, runs=shutil.copytree(original.runs, tmp_path / "runs"))


def test_the_runs_go_with_the_record_and_its_receipt(tracked):
    found = tracked.prune()
    assert [(entry["evaluation_id"], len(entry["run_ids"])) for entry in found.records] == [(tracked.first, 3)]
    assert there(tracked.runs) == {tracked.second}
    assert tracked.active() == {tracked.second}


def test_a_receipt_deletes_no_run_of_something_else(tracked):
    mine, other = (read_receipt(tracked.records, found) for found in (tracked.first, tracked.second))
    assert mine is not None
    assert other is not None
    write_receipt(tracked.records, replace(mine, runs=other.runs, run_id=other.run_id))
    tracked.prune()
    assert tracked.active() == {tracked.first, tracked.second}


def test_runs_can_be_left(tracked):
    assert tracked.prune(tracking=False).records[0]["run_ids"] == ()
    assert tracked.active() == {tracked.first, tracked.second}


def test_a_record_that_cannot_be_logged_or_read_stays(tracked):
    found = tracked.prune(tracking_uri="sqlite:///gone.db")
    assert found.records == ()
    (failure,) = found.failures
    assert failure.startswith(f"{tracked.first} stays: ")
    assert "no MLflow store found" in failure
    assert read_receipt(tracked.records, tracked.first) is not None

    (tracked.runs / "records" / tracked.first / "config.yaml").unlink()

    found = tracked.prune()
    assert found.records == ()
    (failure,) = found.failures
    assert failure.startswith(f"{tracked.first} stays: ")
    assert "config.yaml: file not found" in failure


@pytest.mark.parametrize("step", ["delete", "rmtree"])
def test_a_kill_in_the_middle_is_made_good(tracked, monkeypatch, step: str):
    targets: dict[str, tuple[Any, str]] = {"delete": (Records, "delete"), "rmtree": (shutil, "rmtree")}
    with monkeypatch.context() as killed:
        killed.setattr(*targets[step], _killed)
        with pytest.raises(KeyboardInterrupt):
            tracked.prune()
    whole = {tracked.second}
    visible = {path for path in there(tracked.runs) if not path.startswith(".")}
    assert visible - whole == ({tracked.first} if step == "delete" else set())

    tracked.prune()
    assert {path for path in there(tracked.runs) if not path.startswith(".")} == whole
    assert tracked.active() == {tracked.second}


def _killed(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_runs_that_are_gone_already_are_no_error(tracked):
    receipt = read_receipt(tracked.records, tracked.first)
    assert receipt is not None
    with open_store(Tracking(), Workspace.open(tracked.runs)) as store:
        store.ask("delete_runs", evaluation_id=tracked.first, run_ids=[receipt.run_id])
    assert len(tracked.prune().records) == 1


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
FOLDERS = ("records", "records/.state/nights", "mlflow-records", "cache/0123")


@pytest.fixture
def left_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
def test_a_command_that_writes_clears_what_was_left(left_over, command):
    config = write_config(left_over.parent, {"web": search_collection(3, n_queries=3)}, {"search": ["ap"]})
    config.rename("config.yaml")
    main(command)
    assert partials(left_over) == []


@pytest.mark.parametrize("command", [["list"], ["prune", "--keep-days", "0"]], ids=lambda command: command[0])
def test_a_command_that_only_reads_leaves_it(left_over, command):
    main(command)
    assert len(partials(left_over)) == len(FOLDERS) + 1
