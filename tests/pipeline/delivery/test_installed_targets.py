"""Targets of installed packages: each gets a record once, and again only after an error."""

import json
import sys
from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.delivery.outbox import SyncResult
from tests.support.generated_data import search_collection, write_config

CODE = """
from pathlib import Path

def deliver(evaluation):
    with Path("told.txt").open("a") as file:
        file.write(f"{evaluation.evaluation_id} {len(evaluation.estimates)}\\n")
    if Path("away").exists():
        raise ConnectionError("the warehouse is away")
    return None if evaluation.name == "unwanted" else "2 rows"
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    info = site / "warehouse_target-1.0.dist-info"
    info.mkdir(parents=True)
    work.mkdir()
    (site / "warehouse_target.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: warehouse-target\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rankledger.delivery]\nwarehouse = warehouse_target:deliver\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "warehouse_target", raising=False)
    monkeypatch.chdir(work)


def evaluate(**changes: object) -> rankledger.Evaluation:
    config = write_config(
        Path(), {"web": search_collection(3, n_queries=6)}, {"search": ["ap"]}, report=False, **changes
    )
    return rankledger.evaluate_config(config, tracking=False)


def test_a_target_gets_a_record_once_and_leaves_a_receipt():
    evaluation = evaluate()

    assert Path("told.txt").read_text() == f"{evaluation.evaluation_id} {len(evaluation.estimates)}\n"
    assert evaluation.record is not None
    receipt = json.loads((evaluation.record / "receipt-warehouse.json").read_text())
    assert (receipt["evaluation_id"], receipt["target"], receipt["text"]) == (
        evaluation.evaluation_id,
        "warehouse",
        "2 rows",
    )
    assert [*rankledger.sync()] == []
    assert rankledger.verify(evaluation.evaluation_id, tracking=False).remarks == ()


def test_a_target_that_fails_gets_the_record_by_sync():
    Path("away").touch()
    evaluation = evaluate()
    reason = "warehouse: ConnectionError: the warehouse is away"

    assert f"not delivered: {reason}; `rankledger sync` tries it again" in evaluation.warnings
    assert [*rankledger.sync()] == [SyncResult(evaluation.evaluation_id, reason=reason)]
    Path("away").unlink()
    assert [*rankledger.sync()] == [SyncResult(evaluation.evaluation_id, delivered=("warehouse: 2 rows",))]
    assert len(Path("told.txt").read_text().splitlines()) == 3


def test_a_target_that_wants_no_record_leaves_no_receipt():
    evaluation = evaluate(name="unwanted")

    assert evaluation.record is not None
    assert not (evaluation.record / "receipt-warehouse.json").exists()


def test_somebody_elses_record_is_given_to_no_target(monkeypatch, tmp_path):
    evaluate()
    for receipt in Path("runs/records").glob("*/receipt-warehouse.json"):
        receipt.unlink()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of somebody else"))

    assert [*rankledger.sync()] == []
    assert len(Path("told.txt").read_text().splitlines()) == 1
