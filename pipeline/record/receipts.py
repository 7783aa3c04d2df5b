"""Outbox and receipts of deliveries, and leases on nights and promotions: only one process does the work.

On one machine a file lock decides, which the system releases with the process. Between machines that share a remote
store a conditional write of the lease's file decides. A lease only saves double work and expires after an hour. The id
of an evaluation is written before it begins, and the last id that has a record is the night's evaluation.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import MANIFEST, RECEIPTS
from rankledger.pipeline.record.mlflow_stores import TrackingStore
from rankledger.pipeline.record.store import STATE, Records, Remote, json_file, read_json_file
from rankledger.pipeline.support.atomic import clear_abandoned, hold_lock
from rankledger.pipeline.support.errors import InputError, LockedError, shorten

_LOCK = ".delivery.partial"


@dataclass(frozen=True)
class Outbox:
    """Locations that targets use. `open_store` is None if nothing is logged to MLflow."""

    records: Records
    open_store: Callable[[Evaluation], AbstractContextManager[tuple[TrackingStore, Tracking]]] | None
    is_new: bool = False
    """True if the record was just written, so that no receipt need be looked for."""

    again: bool = False
    """True logs what MLflow had before."""


Target: TypeAlias = Callable[[Evaluation, Outbox], Iterable[str]]
"""Function that delivers a record unless its receipt exists, and returns lines on what it did."""


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
        if bad := [name for name in (self.experiment_id, self.run_id) if not re.fullmatch(r"[\w-]{1,100}", name)]:
            raise ValueError(f"{shorten(repr(bad[0]), 80)} is not an id of MLflow")

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


@dataclass(frozen=True)
class TargetReceipt:
    """Proof that an installed target got an evaluation."""

    evaluation_id: str
    manifest_sha256: str
    target: str
    text: str  # what the target returned
    delivered: str  # in UTC


_Kind = TypeVar("_Kind", Receipt, PromotionReceipt, TargetReceipt)


def read_receipt(records: Records, evaluation_id: str, *, any_manifest: bool = False) -> Receipt | None:
    """Return the receipt of an evaluation, of its manifest or of any. None if it was not delivered yet."""
    return _read(records, evaluation_id, RECEIPTS[0], Receipt, any_manifest=any_manifest)


def read_promotions(records: Records, evaluation_id: str) -> PromotionReceipt | None:
    """Return the receipt of an evaluation's promotions. None if none is settled yet."""
    return _read(records, evaluation_id, RECEIPTS[1], PromotionReceipt)


def read_target_receipt(records: Records, evaluation_id: str, target: str) -> TargetReceipt | None:
    """Return the receipt of an installed target. None if it did not get the evaluation yet."""
    return _read(records, evaluation_id, f"receipt-{target}.json", TargetReceipt)


def _read(
    records: Records, evaluation_id: str, file: str, kind: type[_Kind], *, any_manifest: bool = False
) -> _Kind | None:
    name = f"{evaluation_id}/{file}"
    remedy = "delete it and run `rankledger sync`"
    found = read_json_file(records, name, kind, "receipt", remedy)
    if found is None:
        return None
    if found[1].evaluation_id != evaluation_id:
        raise InputError(f"{records.place}: {name} is the receipt of {found[1].evaluation_id!r}; {remedy}")
    manifest = f"{evaluation_id}/{MANIFEST}"
    data = None if any_manifest else records.read(manifest) or Records(records.folder).read(manifest)
    if data is not None and hashlib.sha256(data).hexdigest() != found[1].manifest_sha256:
        raise InputError(f"{records.place}: {name} is the receipt of another manifest; {remedy}")
    return found[1]


def write_receipt(records: Records, receipt: Receipt | PromotionReceipt | TargetReceipt) -> None:
    """Write a receipt into its record."""
    if isinstance(receipt, TargetReceipt):
        file = f"receipt-{receipt.target}.json"
    else:
        file = RECEIPTS[isinstance(receipt, PromotionReceipt)]
    records.write(f"{receipt.evaluation_id}/{file}", json_file(receipt))


def one_at_a_time(records: Records, evaluation_id: str, seconds: float) -> AbstractContextManager[None]:
    """Lock the delivery of an evaluation on this machine, waiting for another process."""
    busy = f"{evaluation_id}: another process has been delivering it for {seconds:g} s"
    return hold_lock(records.folder / _name_lock(evaluation_id), busy, seconds)


def clear_left_behind(records: Records, runs_dir: Path) -> None:
    """Delete temporary files and folders of ended processes, as far as possible."""
    cached = [folder for folder in (runs_dir / "cache").rglob("*") if folder.is_dir()]
    clear_abandoned(records.folder, *(records.folder / STATE).glob("*"), runs_dir / "mlflow-records", *cached)
    _clear_locks(records)


def _clear_locks(records: Records) -> None:
    for path in records.folder.glob(_name_lock("*")):
        evaluation_id = path.name.removeprefix(".").removesuffix(_LOCK)
        with suppress(LockedError, OSError), one_at_a_time(records, evaluation_id, 0):
            pass  # whoever has the lock deletes it


def _name_lock(evaluation_id: str) -> str:
    return f".{evaluation_id}{_LOCK}"


_HOLD = timedelta(hours=1)  # after which another machine need not wait


@dataclass(frozen=True)
class ClaimFile:
    """Ids of a night's evaluations, the latest last, and the process at work. `since` is empty if there is none."""

    evaluations: tuple[str, ...] = ()
    host: str = ""
    pid: int = 0
    since: str = ""

    def __post_init__(self) -> None:
        if self.since and datetime.fromisoformat(self.since).tzinfo is None:
            raise ValueError("a time has no offset")


class Claim:
    """Night or alias that this process has leased."""

    def __init__(self, records: Records, file: str, work: str) -> None:
        self.records, self.away, self._file, self._work = records, "", file, work
        self._local = Records(records.folder)
        here = read_claim(self._local, file)
        try:
            self._seen = read_claim(records, file)
        except OSError as error:
            if records.remote is None:
                raise
            self.records, self.away, self._seen = self._local, records.describe_error(error), here
        claim = self._seen[1] if self._seen else ClaimFile()
        if records.remote and not self.away and claim.since and not self._is_free(records.remote, claim, here):
            raise _make_locked(work, claim)
        unknown = {*(here[1].evaluations if here else ())} - {*claim.evaluations}  # begun while the store was away
        self.evaluations = tuple(sorted({*claim.evaluations, *unknown})) if unknown else claim.evaluations

    def _is_free(self, remote: Remote, claim: ClaimFile, here: tuple[bytes, ClaimFile] | None) -> bool:
        if abs(datetime.now(UTC) - datetime.fromisoformat(claim.since)) > _HOLD:  # a clock may be years ahead
            return True
        if any(remote.has(f"{evaluation_id}/{MANIFEST}") for evaluation_id in claim.evaluations[-1:]):
            return True  # whose record is the night's
        was_here = here is not None and replace(here[1], since=claim.since) == claim
        return was_here and claim.host == socket.gethostname()  # its file lock is free

    def begin(self, evaluation_id: str = "") -> None:
        """Write the lease, with the id of the evaluation that begins, if there is one."""
        self.evaluations = (*self.evaluations, *filter(None, [evaluation_id]))
        self._write(datetime.now(UTC).isoformat(timespec="seconds"))

    def end(self) -> None:
        with suppress(OSError, LockedError):
            self._write("")

    def _write(self, since: str) -> None:
        claim, seen = ClaimFile(self.evaluations, socket.gethostname(), os.getpid(), since), self._seen
        data = json_file(claim)
        self._local.write(self._file, data)
        remote = self.records.remote
        if remote is None:
            return
        with suppress(OSError):  # the remote store is away, and gets the id at the end
            written = remote.replace(self._file, data, seen[0]) if seen else remote.create(self._file, data)
            current = (data, claim) if written else read_claim(self.records, self._file)
            if current and current[1] != claim:  # otherwise only the answer was lost
                raise _make_locked(self._work, current[1])
            self._seen = current


def claim_night(records: Records, name: str, date: str) -> AbstractContextManager[Claim]:
    """Lock the night of a date on this machine. `begin` leases it from other machines.

    Raises:
        InputError: The lease's file is damaged.
        LockedError: Another process holds it.
        OSError: The folder of the records cannot be written.
    """
    return _claim_file(records, f"{STATE}/nights/{name}-{date}.json", f"{name} of {date}", 0)


@contextmanager
def claim_alias(records: Records, registered: str, alias: str, *, seconds: float) -> Iterator[Claim]:
    """Lock an alias of a registered model, with the errors of `claim_night`."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", f"{registered}-{alias}")[:80]
    file = f"{STATE}/promotions/{readable}-{hashlib.sha256(f'{registered}@{alias}'.encode()).hexdigest()[:8]}.json"
    with _claim_file(records, file, f"a promotion to models:/{registered}@{alias}", seconds) as claim:
        claim.begin()
        yield claim


@contextmanager
def _claim_file(records: Records, file: str, work: str, seconds: float) -> Iterator[Claim]:
    path = records.folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    busy = f"{work} is already running: another process; wait until it is done"
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(path.with_suffix(".lock"), busy, seconds))
        except LockedError:
            with suppress(OSError, InputError):
                if (here := read_claim(Records(records.folder), file)) and here[1].since:
                    raise _make_locked(work, here[1]) from None
            raise
        claim = Claim(records, file, work)
        stack.callback(claim.end)
        yield claim


def read_claim(records: Records, file: str) -> tuple[bytes, ClaimFile] | None:
    """Return the lease's file as bytes and parsed. None if there is none."""
    return read_json_file(records, file, ClaimFile, "claim on a night or an alias")


def _make_locked(work: str, claim: ClaimFile) -> LockedError:
    since = f" (since {datetime.fromisoformat(claim.since):%H:%M} UTC)" if claim.since else ""
    process = f"process {claim.pid} on {claim.host}{since}"
    return LockedError(f"{work} is already running: {process}; wait until it is done")
