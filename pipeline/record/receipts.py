"""Receipts of a record's delivery to MLflow and of its promotions, and the lock of who delivers the record.

`ID/receipt.json` says which runs a tracking store has. `ID/promotion.json` says what became of each model that the
evaluation was to promote; a model without a line in it is tried again.
"""

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
    """That an evaluation was delivered.

    Attributes:
        evaluation_id: the evaluation.
        manifest_sha256: hex digest of the manifest that was delivered.
        server: the tracking store, without credentials.
        experiment_id: the experiment of the evaluation's own run.
        run_id: that run.
        runs: the models' runs, `dataset`, `model`, `replicate` if it is of one, and `run_id` each.
        delivered: when, in UTC.
    """

    evaluation_id: str
    manifest_sha256: str
    server: str
    experiment_id: str
    run_id: str
    runs: tuple[Mapping[str, str], ...]
    delivered: str

    def __post_init__(self) -> None:
        """What a file holds is taken for what was written by whoever asks for the receipt.

        Raises:
            ValueError: a run lacks something.
        """
        if not all(run.keys() >= {"dataset", "model", "run_id"} for run in self.runs):
            raise ValueError("a run lacks its dataset, model or run_id")

    @property
    def page(self) -> str:
        """The page of the evaluation's own run, among those for model training; the store if it is no server.

        MLflow opens on its pages for generative AI, unless the address or an earlier visit says otherwise.
        """
        if not self.server.startswith(("http://", "https://")):
            return self.server
        run = f"{self.server.rstrip('/')}/#/experiments/{self.experiment_id}/runs/{self.run_id}"
        return f"{run}?workflowType=machine_learning"


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


_Kind = TypeVar("_Kind", Receipt, PromotionReceipt)


def read_receipt(records: Records, evaluation_id: str) -> Receipt | None:
    """The receipt of an evaluation; None if it was not delivered yet.

    Raises:
        InputError: it is not what was written.
        OSError: it cannot be read.
    """
    return _read(records, evaluation_id, RECEIPTS[0], Receipt)


def read_promotions(records: Records, evaluation_id: str) -> PromotionReceipt | None:
    """The receipt of an evaluation's promotions; None if none is settled yet.

    Raises:
        InputError: it is not what was written.
        OSError: it cannot be read.
    """
    return _read(records, evaluation_id, RECEIPTS[1], PromotionReceipt)


def _read(records: Records, evaluation_id: str, file: str, kind: type[_Kind]) -> _Kind | None:
    name = f"{evaluation_id}/{file}"
    remedy = "delete it and run `rankledger sync`"
    found = read_json_file(records, name, kind, "receipt", remedy)
    if found is None:
        return None
    if found[1].evaluation_id != evaluation_id:
        raise InputError(f"{records.place}: {name} is the receipt of {found[1].evaluation_id!r}; {remedy}")
    return found[1]


def write_receipt(records: Records, receipt: Receipt | PromotionReceipt) -> None:
    """Keep a receipt.

    Raises:
        OSError: it cannot be written.
    """
    file = RECEIPTS[isinstance(receipt, PromotionReceipt)]
    records.write(f"{receipt.evaluation_id}/{file}", json_file(receipt))


@contextmanager
def one_at_a_time(records: Records, evaluation_id: str, seconds: float) -> Iterator[None]:
    """While this process alone of this machine delivers an evaluation; another that does is waited for.

    The lock is a file of a temporary name, which is gone afterwards; one that a killed process left holds nobody up.

    Args:
        records: where its record is.
        evaluation_id: the evaluation.
        seconds: how long to wait.

    Raises:
        LockedError: the other takes longer.
        OSError: the lock cannot be made.
    """
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
    """Delete the temporary files and folders whose process is gone: of records, claims, copies, and the output cache.

    What cannot be deleted stays: it is in nobody's way.

    Args:
        records: where records are.
        runs_dir: the runs folder.
    """
    cached = [folder for folder in (runs_dir / "cache").rglob("*") if folder.is_dir()]
    clear_abandoned(records.folder, *(records.folder / STATE).glob("*"), runs_dir / "mlflow-records", *cached)
    _clear_locks(records)


def _clear_locks(records: Records) -> None:
    """Delete the locks of deliveries whose process is gone; what cannot be deleted stays, and holds nobody up."""
    for path in records.folder.glob(_lock_of("*")):
        evaluation_id = path.name.removeprefix(".").removesuffix(_LOCK)
        with suppress(LockedError, OSError), one_at_a_time(records, evaluation_id, 0):
            pass  # whoever has the lock deletes it


def _lock_of(evaluation_id: str) -> str:
    return f".{evaluation_id}{_LOCK}"
