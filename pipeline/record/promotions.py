"""Receipts of promotions, `ID.promotion.json` beside a record; and claims on the alias that is to move.

A receipt says what became of each model that an evaluation was to promote. A model without a line in it is tried again.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from pydantic import ValidationError

from rankledger.pipeline.record.nights import Claim, claim_file
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.types.manifest import finding, read_typed

__all__ = [
    "PromotionReceipt",
    "SettledPromotion",
    "claim_alias",
    "promotion_receipt_name",
    "read_promotions",
    "write_promotions",
]

Settled: TypeAlias = Literal["promoted", "kept", "removed", "superseded"]


@dataclass(frozen=True)
class SettledPromotion:
    """What became of the promotion of a model.

    Attributes:
        model: the model of the config.
        registered: the name of the registered model.
        version: the version that made the outputs.
        alias: the alias.
        outcome: `promoted`; `kept`, the alias stayed, for it was at this version, at a newer one, or where a later
            night put it; `removed`, somebody had taken the alias from this version; `superseded`, a later night was
            evaluated before this one could be promoted.
        at: the version that had the alias then; None if none had, or nobody looked.
        by: the night that had promoted a version there; None if none had.
        moment: when, in UTC.
    """

    model: str
    registered: str
    version: int
    alias: str
    outcome: Settled
    at: int | None
    by: str | None
    moment: str


@dataclass(frozen=True)
class PromotionReceipt:
    """What became of the promotions of an evaluation.

    Attributes:
        evaluation_id: the evaluation.
        manifest_sha256: hex digest of its manifest.
        server: the tracking store, without credentials.
        promotions: those that are settled.
    """

    evaluation_id: str
    manifest_sha256: str
    server: str
    promotions: tuple[SettledPromotion, ...]

    @property
    def by_model(self) -> dict[str, SettledPromotion]:
        """What became of each model that is settled."""
        return {settled.model: settled for settled in self.promotions}


def promotion_receipt_name(evaluation_id: str) -> str:
    """What its file is called."""
    return f"{evaluation_id}.promotion.json"


def read_promotions(records: Records, evaluation_id: str) -> PromotionReceipt | None:
    """The receipt of an evaluation's promotions; None if none is settled yet.

    Raises:
        InputError: it is not what was written.
        OSError: it cannot be read.
    """
    name = promotion_receipt_name(evaluation_id)
    data = records.read(name)
    if data is None:
        return None
    try:
        receipt = read_typed(PromotionReceipt, data)
        found = "" if receipt.evaluation_id == evaluation_id else f"is the receipt of {receipt.evaluation_id!r}"
    except ValidationError as error:
        found = f"is no receipt ({finding(error)})"
    if found:
        raise InputError(f"{records.place}: {name} {found}; delete it and run `rankledger sync`")
    return receipt


def write_promotions(records: Records, receipt: PromotionReceipt) -> None:
    """Keep a receipt.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps(asdict(receipt), indent=2, ensure_ascii=False)
    records.write(promotion_receipt_name(receipt.evaluation_id), f"{text}\n".encode())


def claim_alias(records: Records, registered: str, alias: str, *, seconds: float) -> AbstractContextManager[Claim]:
    """Be the only one to promote to an alias, among those that keep their records here, as long as the block runs.

    Args:
        records: where records are kept.
        registered: the name of the registered model.
        alias: the alias.
        seconds: how long to wait for another process of this machine.

    Raises:
        InputError: the claim's file is not what was written.
        LockedError: another process holds it.
        OSError: the folder of the records cannot be written.
    """
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", f"{registered}-{alias}")[:80]
    digest = hashlib.sha256(f"{registered}@{alias}".encode()).hexdigest()[:8]
    work = f"a promotion to models:/{registered}@{alias}"
    return claim_file(records, f"promotions/{readable}-{digest}.json", work, seconds=seconds)
