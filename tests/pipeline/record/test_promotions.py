"""Receipts of promotions, and claims on the alias that is to move."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from rankledger.pipeline.record.promotions import (
    PromotionReceipt,
    SettledPromotion,
    claim_alias,
    promotion_receipt_name,
    read_promotions,
    write_promotions,
)
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.support.errors import InputError, LockedError

ID, OTHER = (f"20261120T020000Z-nightly-0000000{digit}" for digit in "12")
SETTLED = SettledPromotion("dense", "ränker", 3, "champion", "promoted", 3, f"2026-11-20 {ID}", "2026-11-20T02:00:00")
RECEIPT = PromotionReceipt(ID, "0" * 64, "http://127.0.0.1:5000", (SETTLED,))


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "records")


def test_a_receipt_is_read_as_it_was_written(records):
    """All of it, by model; an evaluation of which nothing is settled has none."""
    write_promotions(records, RECEIPT)

    assert read_promotions(records, ID) == RECEIPT
    assert RECEIPT.by_model == {"dense": SETTLED}
    assert read_promotions(records, OTHER) is None


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({"promotions": [{"model": "dense"}]}, "is no receipt (promotions[0]."),
        ({"promotions": [asdict(SETTLED) | {"outcome": "lost"}]}, "is no receipt (promotions[0].outcome: "),
        ({"server": None}, "is no receipt (server: "),
        ({"evaluation_id": OTHER}, f"is the receipt of '{OTHER}'"),
    ],
)
def test_a_receipt_of_another_shape_is_none(records, wrong, found):
    """One line names it and says what to do."""
    whole = json.loads(json.dumps(asdict(RECEIPT)))
    records.write(promotion_receipt_name(ID), json.dumps(whole | wrong).encode())

    with pytest.raises(InputError) as error:
        read_promotions(records, ID)

    assert f"{ID}.promotion.json {found}" in str(error.value)
    assert str(error.value).endswith("; delete it and run `rankledger sync`")


def test_an_alias_is_claimed_by_one(records):
    """Whoever comes meanwhile is told who holds it; another alias, and another model of that alias, are free."""
    with claim_alias(records, "a/ranker", "champion", seconds=0):
        with (
            pytest.raises(LockedError, match="a promotion to models:/a/ranker@champion is already running: process "),
            claim_alias(records, "a/ranker", "champion", seconds=0),
        ):
            pytest.fail("two hold it")
        with (
            claim_alias(records, "a/ranker", "challenger", seconds=0),
            claim_alias(records, "a_ranker", "champion", seconds=0),
        ):
            pass
    with claim_alias(records, "a/ranker", "champion", seconds=0) as claim:
        assert claim.away == ""
