"""Receipts of deliveries to MLflow, and the list of the user's own records.

Whoever writes a record writes its manifest and can make all hashes fit; and whole runs folders are sent around. So what
says that a record is one's own lies in the user's state folder: a file per record, with the hash of its manifest.

It ends the delivery: a record with a receipt is not sent again, not even after its runs were deleted. It is none of the
record's own files, which never change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import ValidationError

from rankledger.pipeline.errors import InputError, LockedError
from rankledger.pipeline.record.accepted import digest_of
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.types.manifest import finding, read_typed

__all__ = [
    "Receipt",
    "clear_locks",
    "forget_own",
    "is_own",
    "one_at_a_time",
    "read_receipt",
    "receipt_name",
    "remember_own",
    "write_receipt",
]


def remember_own(evaluation_id: str, manifest_sha256: str) -> None:
    """Put a record on the list.

    Raises:
        OSError: the list cannot be written; the record then counts as somebody else's.
    """
    file = _entry(evaluation_id)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_text(f"{manifest_sha256}\n", encoding="ascii")


def is_own(path: Path) -> bool:
    """Whether the record in that folder is on the list, with the manifest that it has."""
    try:
        return _entry(path.resolve().name).read_bytes().strip() == digest_of(path).encode()
    except OSError:
        return False


def forget_own(evaluation_id: str) -> None:
    """Take a record off the list, if it is on it.

    Raises:
        OSError: the list cannot be written.
    """
    _entry(evaluation_id).unlink(missing_ok=True)


def _entry(evaluation_id: str) -> Path:
    """The file of a record in `rankledger/records` of the user's state folder, which is where the XDG standard says.

    Raises:
        OSError: the user has no home.
    """
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        try:
            state = Path.home() / ".local" / "state"
        except RuntimeError as error:
            raise OSError(str(error)) from None
    return state / "rankledger" / "records" / evaluation_id


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
        runs: the models' runs, `dataset`, `model` and `run_id` each.
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


def clear_locks(records: Records) -> None:
    """Delete the locks of deliveries whose process is gone; what cannot be deleted stays, and holds nobody up."""
    for path in records.folder.glob(_lock_of("*")):
        evaluation_id = path.name.removeprefix(".").removesuffix(_LOCK)
        with suppress(LockedError, OSError), one_at_a_time(records, evaluation_id, 0):
            pass  # whoever has the lock deletes it


def _lock_of(evaluation_id: str) -> str:
    return f".{evaluation_id}{_LOCK}"
