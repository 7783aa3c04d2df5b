"""`verify`: a record by its own hashes, its receipt and MLflow, in a real store."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import rankledger
from rankledger.pipeline.commands.upkeep import Verification, verify
from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.record.mlflow_stores import open_store
from rankledger.pipeline.record.receipts import read_receipt
from rankledger.pipeline.record.store import open_records
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.support.errors import InputError
from tests.support.generated_data import search_collection, write_config


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> rankledger.Evaluation:
    folder = tmp_path_factory.mktemp("verified")
    config = write_config(folder, {"web": search_collection(71, n_queries=6)}, {"search": ["ap"]})
    evaluation = rankledger.evaluate_config(config, runs_dir=folder / "runs")
    assert evaluation.untracked is None
    return evaluation


@pytest.fixture
def runs(original, tmp_path) -> Path:
    return Path(shutil.copytree(original.record.parents[1], tmp_path / "runs"))


def check(original: rankledger.Evaluation, runs: Path, **options: Any) -> Verification:
    return verify(original.evaluation_id, runs_dir=runs, **options)


def run_of(original: rankledger.Evaluation, runs: Path) -> str:
    receipt = read_receipt(open_records(runs), original.evaluation_id, any_manifest=True)
    assert receipt is not None
    return receipt.run_id


def edit_manifest(original: rankledger.Evaluation, runs: Path) -> None:
    path = runs / "records" / original.evaluation_id / "manifest.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"seed": 20261120', '"seed": 20261121'), encoding="utf-8")


def test_a_record_that_all_agree_on(original, runs):
    found = check(original, runs)
    assert found.record == runs / "records" / original.evaluation_id
    assert found.n_files == 1 + len(json.loads((found.record / "manifest.json").read_text("utf-8"))["files"])
    assert found.witnesses == ("its receipt", f"the run {run_of(original, runs)} of MLflow")
    assert found.remarks == ()

    (runs / "mlflow.db").unlink()

    found = check(original, runs)
    assert found.witnesses == ("its receipt",)
    assert found.remarks == (f"{(runs / 'mlflow.db').resolve()}: no MLflow store found",)
    assert not (runs / "mlflow.db").exists()


def test_a_manifest_that_was_changed_is_denied_by_receipt_and_mlflow(original, runs):
    edit_manifest(original, runs)

    with pytest.raises(InputError) as refused:
        check(original, runs)
    lines = str(refused.value).splitlines()
    assert ["by its receipt)" in lines[0], f"by the run {run_of(original, runs)} of MLflow)" in lines[1]] == [True] * 2
    assert all("manifest.json: is not what was written" in line for line in lines)

    (runs / "records" / original.evaluation_id / "receipt.json").unlink()

    with pytest.raises(InputError, match=r"manifest.json: is not what was written .* of MLflow\)$"):
        check(original, runs)
    assert check(original, runs, tracking=False).witnesses == ()


def test_the_record_of_a_run_is_checked_where_the_record_is_not(original, runs, tmp_path):
    uri = f"sqlite:///{(runs / 'mlflow.db').resolve()}"
    elsewhere = tmp_path / "elsewhere"
    run = f"mlflow:{run_of(original, runs)}"

    found = verify(run, runs_dir=elsewhere, tracking_uri=uri)
    assert found.record == elsewhere / "mlflow-records" / original.evaluation_id
    assert found.witnesses == (f"the run {run_of(original, runs)} of MLflow",)

    (found.record / "scores.parquet").unlink()
    with pytest.raises(InputError, match=r"scores.parquet: file not found"):
        verify(run, runs_dir=elsewhere, tracking_uri=uri)


def test_a_damaged_file_is_listed_with_all_others(original, runs):
    with open_store(Tracking(), Workspace.open(runs)) as store:
        store.ask("delete_runs", evaluation_id=original.evaluation_id, run_ids=[run_of(original, runs)])
    assert check(original, runs).witnesses == ("its receipt",)

    record = runs / "records" / original.evaluation_id
    (record / "summary.csv").write_text("dataset\n", encoding="utf-8")
    (record / "extra.txt").touch()

    with pytest.raises(InputError) as refused:
        check(original, runs, tracking=False)
    assert [line.partition(":")[0] for line in str(refused.value).splitlines()] == [
        str(record / "summary.csv"),
        str(record / "extra.txt"),
    ]


def test_a_record_cannot_ask_for_the_witnesses_of_another(original, runs):
    manifest = runs / "records" / original.evaluation_id / "manifest.json"
    written = json.loads(manifest.read_text(encoding="utf-8"))
    others = {"evaluation_id": original.evaluation_id[:-8] + "00000000", "name": "another"}
    for key, other in others.items():
        manifest.write_text(json.dumps(written | {key: other}), encoding="utf-8")

        with pytest.raises(InputError, match=r"manifest.json: (is of .*, not of|the evaluation id has another name)"):
            check(original, runs, tracking=False)


def test_the_receipt_beside_a_record_is_its_witness(original, runs):
    edit_manifest(original, runs)
    (runs / "records").rename(runs / "fetched")
    with pytest.raises(InputError, match="by its receipt"):
        verify(str(runs / "fetched" / original.evaluation_id), runs_dir=runs, tracking=False)
