"""Leases on nightly evaluations and on promotions, so that only one process does the work.

On one machine a file lock decides, which the system releases with the process. Between machines that share a remote
store a conditional write of the lease's file decides. A lease only saves double work and expires after an hour. The id
of an evaluation is written before it begins, and the last id that has a record is the night's evaluation.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from rankledger.pipeline.record.manifest import MANIFEST
from rankledger.pipeline.record.store import STATE, Records, Remote, json_file, read_json_file
from rankledger.pipeline.support.errors import InputError, LockedError

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
            raise _locked(work, claim)
        unknown = {*(here[1].evaluations if here else ())} - {*claim.evaluations}  # begun while the store was away
        self.evaluations = tuple(sorted({*claim.evaluations, *unknown})) if unknown else claim.evaluations

    def _is_free(self, remote: Remote, claim: ClaimFile, here: tuple[bytes, ClaimFile] | None) -> bool:
        if datetime.now(UTC) - datetime.fromisoformat(claim.since) > _HOLD:
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
        if self.records.remote is None:
            return
        with suppress(OSError):  # the remote store is away, and gets the id at the end
            written = self.records.replace(self._file, data, seen[0]) if seen else self.records.create(self._file, data)
            current = (data, claim) if written else read_claim(self.records, self._file)
            if current and current[1] != claim:  # otherwise only the answer was lost
                raise _locked(self._work, current[1])
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
    from filelock import FileLock, Timeout

    path = records.folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_suffix(".lock"), timeout=seconds)
    try:
        lock.acquire()
    except Timeout:
        with suppress(OSError, InputError):
            if (here := read_claim(Records(records.folder), file)) and here[1].since:
                raise _locked(work, here[1]) from None
        raise LockedError(f"{work} is already running: another process; wait until it is done") from None
    try:
        claim = Claim(records, file, work)
        try:
            yield claim
        finally:
            claim.end()
    finally:
        lock.release()


def read_claim(records: Records, file: str) -> tuple[bytes, ClaimFile] | None:
    """Return the lease's file as bytes and parsed. None if there is none."""
    return read_json_file(records, file, ClaimFile, "claim on a night or an alias")


def _locked(work: str, claim: ClaimFile) -> LockedError:
    since = f" (since {datetime.fromisoformat(claim.since):%H:%M} UTC)" if claim.since else ""
    process = f"process {claim.pid} on {claim.host}{since}"
    return LockedError(f"{work} is already running: {process}; wait until it is done")
