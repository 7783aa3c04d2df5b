"""Receipts, and records that are old enough to go."""

import hashlib
import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rankledger.pipeline.commands.prune import clear_leftovers, reasons_to_stay, stored_records
from rankledger.pipeline.record.folder import order_records
from rankledger.pipeline.record.manifest import RECEIPTS, begun
from rankledger.pipeline.record.receipts import (
    PromotionReceipt,
    Receipt,
    SettledPromotion,
    read_promotions,
    read_receipt,
    write_receipt,
)
from rankledger.pipeline.record.store import Records, Remote
from rankledger.pipeline.support.errors import InputError
from tests.support.manifests import manifest

ID, OTHER = (f"20261120T020000Z-nightly-0000000{digit}" for digit in "12")
SERVER = "http://127.0.0.1:5000"
DELIVERED = Receipt(ID, "0" * 64, SERVER, "3", "r0", ({"dataset": "web", "model": "ü", "run_id": "r1"},), "now")
SETTLED = SettledPromotion("dense", "ränker", 3, "champion", "promoted", 3, f"2026-11-20 {ID}", "2026-11-20T02:00:00")
PROMOTED = PromotionReceipt(ID, "0" * 64, SERVER, (SETTLED,))


@pytest.fixture
def records(tmp_path: Path) -> Records:
    (tmp_path / "records" / ID).mkdir(parents=True)
    return Records(tmp_path / "records")


def test_a_receipt_is_read_as_it_was_written(records):
    write_receipt(records, DELIVERED)
    write_receipt(records, PROMOTED)

    assert (read_receipt(records, ID), read_promotions(records, ID)) == (DELIVERED, PROMOTED)
    assert (read_receipt(records, OTHER), read_promotions(records, OTHER)) == (None, None)


def test_a_receipt_of_a_record_that_was_deleted_meanwhile_makes_no_folder(records):
    (records.folder / ID).rmdir()

    with pytest.raises(FileNotFoundError):
        write_receipt(records, DELIVERED)

    assert [*records.folder.iterdir()] == []


@pytest.mark.parametrize(
    ("whole", "wrong", "found"),
    [
        (DELIVERED, {"runs": ["r1"]}, "is not a receipt (runs[0]: "),
        (DELIVERED, {"runs": [{"dataset": "web"}]}, "is not a receipt (a run lacks its dataset, model or run_id)"),
        (DELIVERED, {"server": None}, "is not a receipt (server: "),
        (DELIVERED, {"manifest_sha256": 3}, "is not a receipt (manifest_sha256: "),
        (DELIVERED, {"runs": None}, "is not a receipt (runs: "),
        (DELIVERED, {"evaluation_id": OTHER}, f"is the receipt of '{OTHER}'"),
        (PROMOTED, {"promotions": [{"model": "dense"}]}, "is not a receipt (promotions[0]."),
        (
            PROMOTED,
            {"promotions": [asdict(SETTLED) | {"outcome": "lost"}]},
            "is not a receipt (promotions[0].outcome: ",
        ),
        (PROMOTED, {"server": None}, "is not a receipt (server: "),
        (PROMOTED, {"evaluation_id": OTHER}, f"is the receipt of '{OTHER}'"),
    ],
)
def test_a_receipt_of_another_shape_is_refused(records, whole, wrong, found):
    is_promotion = whole is PROMOTED
    name = f"{ID}/{RECEIPTS[is_promotion]}"
    records.write(name, json.dumps(asdict(whole) | wrong).encode())

    with pytest.raises(InputError) as error:
        (read_promotions if is_promotion else read_receipt)(records, ID)

    assert f"{name} {found}" in str(error.value)
    assert str(error.value).endswith("; delete it and run `rankledger sync`")


OLD, NEW = "20260101T000000Z-nightly-00000001", "20260901T000000Z-nightly-00000002"
FILES = ("config.yaml", "scores.parquet", "summary.csv")
BEFORE = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def old_records(tmp_path) -> Records:
    (tmp_path / "elsewhere").mkdir()
    return Records(tmp_path / "here", Remote(f"file://{tmp_path}/elsewhere"))


def write(folder: Path, evaluation_id: str, **changes: object) -> None:
    path = folder / evaluation_id
    path.mkdir(parents=True)
    data = b"a file"
    described = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    for name in FILES:
        (path / name).write_bytes(data)
    plain = manifest(evaluation_id=evaluation_id, files=dict.fromkeys(FILES, described))
    (path / "manifest.json").write_text(json.dumps(plain | changes), encoding="utf-8")


def reasons(old_records: Records) -> dict[str, str]:
    return reasons_to_stay(stored_records(old_records)[0], old_records, before=BEFORE, accepted=())


def test_a_record_that_lies_elsewhere_alone_is_known(old_records, tmp_path):
    write(tmp_path / "elsewhere", OLD)
    size = (tmp_path / "elsewhere" / OLD / "manifest.json").stat().st_size

    (found,), _ = stored_records(old_records)

    assert (found.evaluation_id, found.manifest.name, found.size) == (OLD, "nightly", 18 + size)
    assert found.path == tmp_path / "here" / OLD
    assert not (tmp_path / "here").exists()


def test_a_record_that_is_here_alone_is_not_delivered(old_records, tmp_path):
    write(tmp_path / "here", OLD)
    write(tmp_path / "elsewhere", NEW)
    assert reasons(old_records) == {OLD: "not delivered yet"}

    old_records.keep(tmp_path / "here" / OLD)
    assert reasons(old_records) == {}


def test_the_last_record_stays_beside_one_of_the_future(tmp_path):
    """A clock stood a year ahead or more for one night, whose record is no reference of the next one."""
    write(tmp_path, OLD, tracking="off", date="2026-01-01")
    write(tmp_path, NEW.replace("2026", "2126", 1), tracking="off", date="2126-09-01")

    assert reasons(Records(tmp_path)) == {OLD: "the last of its evaluation"}
    assert next(order[2] for order in order_records(Records(tmp_path))) == OLD


def test_the_last_whole_record_stays_beside_a_damaged_one(tmp_path):
    old_records = Records(tmp_path)
    older, newer = OLD, NEW.replace("2026", "2025", 1)
    write(tmp_path, older, tracking="off")
    write(tmp_path, newer, tracking="off")
    assert reasons(old_records) == {max(older, newer): "the last of its evaluation"}

    (tmp_path / max(older, newer) / FILES[0]).write_bytes(b"changed")
    assert reasons(old_records) == dict.fromkeys((older, newer), "the last of its evaluation")


def test_what_a_record_was_held_against_stays_with_it(old_records, tmp_path):
    held = {
        "reference": "self@last_passed",
        "record": OLD,
        "model": "bm25",
        "manifest_sha256": "0" * 64,
        "new_datasets": [],
    }
    write(tmp_path / "elsewhere", OLD)
    write(tmp_path / "elsewhere", NEW, baselines={"no-drop": {"bm25": held}})

    assert reasons(old_records) == {OLD: "baseline of a record that stays"}


@pytest.mark.parametrize("first", ["00000001", "ffffffff"])
def test_two_records_of_one_second_have_an_order(tmp_path, first):
    ids = [f"20260101T000000Z-nightly-{part}" for part in (first, "88888888")]
    for evaluation_id, millisecond in zip(ids, ("250", "750"), strict=True):
        write(tmp_path, evaluation_id, created=f"2026-01-01T00:00:00.{millisecond}+00:00")

    assert [found.evaluation_id for found in stored_records(Records(tmp_path))[0]] == ids[::-1]
    assert reasons(Records(tmp_path)) == {ids[1]: "the last of its evaluation"}


def test_the_time_is_that_of_the_id():
    assert begun(OLD) == datetime(2026, 1, 1, tzinfo=UTC)


def test_what_is_kept_at_a_place_that_is_not_named_stays(tmp_path):
    write(tmp_path, OLD, records="s3://bucket/records")
    write(tmp_path, NEW)

    assert reasons(Records(tmp_path)) == {OLD: "stored remotely; name the store with --records"}


@pytest.mark.parametrize("data", ["[]", "{}", '{"files": []}'])
def test_a_manifest_of_another_form_is_none_of_ours(tmp_path, data):
    write(tmp_path, OLD)
    (tmp_path / OLD / "manifest.json").write_text(data, encoding="utf-8")
    write(tmp_path, "20261340T000000Z-nightly-00000003")

    stored, unreadable = stored_records(Records(tmp_path))
    assert (stored, [*unreadable]) == ([], [OLD])


def test_a_deletion_elsewhere_that_was_cut_short_is_finished(old_records, tmp_path, monkeypatch):
    for evaluation_id in (OLD, NEW):
        write(tmp_path / "here", evaluation_id)
        old_records.keep(tmp_path / "here" / evaluation_id)
    with monkeypatch.context() as killed:
        killed.setattr(Remote, "delete_folder", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            old_records.delete(OLD)
    elsewhere = tmp_path / "elsewhere"
    old_records.write(f"{OLD}/receipt.json", b"{}")
    assert sorted(path.name for path in (elsewhere / OLD).iterdir()) == sorted([*FILES, "receipt.json"])
    assert [found.evaluation_id for found in stored_records(old_records)[0]] == [NEW]

    clear_leftovers(old_records, before=datetime.now(UTC) - timedelta(days=1))
    assert (elsewhere / OLD).is_dir()  # another machine may be uploading it
    clear_leftovers(old_records, before=datetime.now(UTC) + timedelta(days=1))
    assert [path.name for path in elsewhere.iterdir()] == [NEW]
