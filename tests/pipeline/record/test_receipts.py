"""Receipts of deliveries and of promotions."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from rankledger.pipeline.record.manifest import RECEIPTS
from rankledger.pipeline.record.receipts import (
    PromotionReceipt,
    Receipt,
    SettledPromotion,
    read_promotions,
    read_receipt,
    write_receipt,
)
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.support.errors import InputError

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
    assert PROMOTED.by_model == {"dense": SETTLED}
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
