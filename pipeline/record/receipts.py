"""Receipts of a record's delivery to MLflow and of its promotions, and the lock of a delivery."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from rankledger.pipeline.record.manifest import RECEIPTS
from rankledger.pipeline.record.store import STATE, Records, json_file, read_json_file
from rankledger.pipeline.support.atomic import clear_abandoned
from rankledger.pipeline.support.errors import InputError, LockedError

_LOCK = ".delivery.partial"


@dataclass(frozen=True)
class Receipt:
    """Proof of an evaluation's delivery."""

    evaluation_id: str
    manifest_sha256: str  # hex digest of the manifest that was delivered
    server: str  # tracking store without credentials
    experiment_id: str
    run_id: str
    runs: tuple[Mapping[str, str], ...]  # each model's `dataset`, `model`, `run_id` and perhaps `replicate`
    delivered: str  # in UTC

    def __post_init__(self) -> None:
        if not all(run.keys() >= {"dataset", "model", "run_id"} for run in self.runs):
            raise ValueError("a run lacks its dataset, model or run_id")

    @property
    def page(self) -> str:
        """Page of the evaluation's own run among those for model training. The store if it is no server.

        MLflow opens on its pages for generative AI by default.
        """
        if not self.server.startswith(("http://", "https://")):
            return self.server
        run = f"{self.server.rstrip('/')}/#/experiments/{self.experiment_id}/runs/{self.run_id}"
        return f"{run}?workflowType=machine_learning"


Settled: TypeAlias = Literal["promoted", "kept", "removed", "superseded"]


@dataclass(frozen=True)
class SettledPromotion:
    """Outcome of the promotion of a model.

    `outcome` is `kept` if the alias stayed at this version, a newer one, or where a later night put it, `removed` if
    somebody had taken the alias from this version, and `superseded` if a later night was evaluated before.
    """

    model: str
    registered: str  # name of the registered model
    version: int  # version that made the outputs
    alias: str
    outcome: Settled
    at: int | None  # version that had the alias then, None if none or unknown
    by: str | None  # night that had promoted a version there
    moment: str  # in UTC


@dataclass(frozen=True)
class PromotionReceipt:
    """Outcomes of the promotions of an evaluation."""

    evaluation_id: str
    manifest_sha256: str
    server: str
    promotions: tuple[SettledPromotion, ...]

    @property
    def by_model(self) -> dict[str, SettledPromotion]:
        return {settled.model: settled for settled in self.promotions}


@dataclass(frozen=True)
class TargetReceipt:
    """Proof that an installed target got an evaluation."""

    evaluation_id: str
    manifest_sha256: str
    target: str
    text: str  # what the target returned
    delivered: str  # in UTC


_Kind = TypeVar("_Kind", Receipt, PromotionReceipt, TargetReceipt)


def read_receipt(records: Records, evaluation_id: str) -> Receipt | None:
    """Return the receipt of an evaluation. None if it was not delivered yet."""
    return _read(records, evaluation_id, RECEIPTS[0], Receipt)


def read_promotions(records: Records, evaluation_id: str) -> PromotionReceipt | None:
    """Return the receipt of an evaluation's promotions. None if none is settled yet."""
    return _read(records, evaluation_id, RECEIPTS[1], PromotionReceipt)


def read_target_receipt(records: Records, evaluation_id: str, target: str) -> TargetReceipt | None:
    """Return the receipt of an installed target. None if it did not get the evaluation yet."""
    return _read(records, evaluation_id, f"receipt-{target}.json", TargetReceipt)


def _read(records: Records, evaluation_id: str, file: str, kind: type[_Kind]) -> _Kind | None:
    name = f"{evaluation_id}/{file}"
    remedy = "delete it and run `rankledger sync`"
    found = read_json_file(records, name, kind, "receipt", remedy)
    if found is None:
        return None
    if found[1].evaluation_id != evaluation_id:
        raise InputError(f"{records.place}: {name} is the receipt of {found[1].evaluation_id!r}; {remedy}")
    return found[1]


def write_receipt(records: Records, receipt: Receipt | PromotionReceipt | TargetReceipt) -> None:
    """Write a receipt into its record."""
    if isinstance(receipt, TargetReceipt):
        file = f"receipt-{receipt.target}.json"
    else:
        file = RECEIPTS[isinstance(receipt, PromotionReceipt)]
    records.write(f"{receipt.evaluation_id}/{file}", json_file(receipt))


@contextmanager
def one_at_a_time(records: Records, evaluation_id: str, seconds: float) -> Iterator[None]:
    """Lock the delivery of an evaluation on this machine, waiting for another process."""
    from filelock import FileLock, Timeout

    path = records.folder / _lock_of(evaluation_id)
    lock = FileLock(path, timeout=seconds)
    try:
        lock.acquire()
    except Timeout:
        raise LockedError(f"{evaluation_id}: another process has been delivering it for {seconds:g} s") from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held: whoever waits for it looks again whether it is there
        lock.release()


def clear_left_behind(records: Records, runs_dir: Path) -> None:
    """Delete temporary files and folders of ended processes, as far as possible."""
    cached = [folder for folder in (runs_dir / "cache").rglob("*") if folder.is_dir()]
    clear_abandoned(records.folder, *(records.folder / STATE).glob("*"), runs_dir / "mlflow-records", *cached)
    _clear_locks(records)


def _clear_locks(records: Records) -> None:
    for path in records.folder.glob(_lock_of("*")):
        evaluation_id = path.name.removeprefix(".").removesuffix(_LOCK)
        with suppress(LockedError, OSError), one_at_a_time(records, evaluation_id, 0):
            pass  # whoever has the lock deletes it


def _lock_of(evaluation_id: str) -> str:
    return f".{evaluation_id}{_LOCK}"
