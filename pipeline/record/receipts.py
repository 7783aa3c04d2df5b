"""Receipts of delivery: which evaluations a tracking store has, and who delivers one at the moment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import ValidationError

from rankledger.pipeline.record.store import Records
from rankledger.pipeline.support.atomic import clear_abandoned
from rankledger.pipeline.support.errors import InputError, LockedError
from rankledger.pipeline.types.manifest import finding, read_typed

__all__ = ["Receipt", "clear_left_behind", "one_at_a_time", "read_receipt", "receipt_name", "write_receipt"]

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


def receipt_name(evaluation_id: str) -> str:
    """What its file is called."""
    return f"{evaluation_id}.receipt.json"


def read_receipt(records: Records, evaluation_id: str) -> Receipt | None:
    """The receipt of an evaluation; None where it was not delivered yet.

    Raises:
        InputError: it is not what was written.
        OSError: it cannot be read.
    """
    name = receipt_name(evaluation_id)
    data = records.read(name)
    if data is None:
        return None
    try:
        receipt = read_typed(Receipt, data)
    except ValidationError as error:
        found = f"{name} is no receipt ({finding(error)})"
        raise InputError(f"{records.place}: {found}; delete it and run `rankledger sync`") from None
    if receipt.evaluation_id != evaluation_id:
        found = f"{name} is the receipt of {receipt.evaluation_id!r}"
        raise InputError(f"{records.place}: {found}; delete it and run `rankledger sync`")
    return receipt


def write_receipt(records: Records, receipt: Receipt) -> None:
    """Keep a receipt.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps(asdict(receipt), indent=2, ensure_ascii=False)
    records.write(receipt_name(receipt.evaluation_id), f"{text}\n".encode())


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
    claims = (records.folder / "nights", records.folder / "promotions")
    clear_abandoned(records.folder, *claims, runs_dir / "mlflow-records", *cached)
    _clear_locks(records)


def _clear_locks(records: Records) -> None:
    """Delete the locks of deliveries whose process is gone; what cannot be deleted stays, and holds nobody up."""
    for path in records.folder.glob(_lock_of("*")):
        evaluation_id = path.name.removeprefix(".").removesuffix(_LOCK)
        with suppress(LockedError, OSError), one_at_a_time(records, evaluation_id, 0):
            pass  # whoever has the lock deletes it


def _lock_of(evaluation_id: str) -> str:
    return f".{evaluation_id}{_LOCK}"
