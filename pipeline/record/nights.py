"""Claims on nightly evaluations and on promotions, so that of two processes at once one does the work.

On this machine a file lock decides, which the system releases with the process. Between machines that share a remote
store a conditional write of the claim's file decides. It only saves double work: a claim is void after an hour. The id
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
    """The ids of a night's evaluations, the latest last, and the process at work; `since` is empty if there is none."""

    evaluations: tuple[str, ...] = ()
    host: str = ""
    pid: int = 0
    since: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError if the time is none, or has no offset."""
        if self.since and datetime.fromisoformat(self.since).tzinfo is None:
            raise ValueError("a time has no offset")


class Claim:
    """A night or an alias that this process has claimed.

    Attributes:
        records: the place of the claim: this machine alone if the remote store is away.
        away: why the remote store could not be asked; empty if it was, or if there is none.
        evaluations: the ids of the night's evaluations, the latest last; some may have no record.
    """

    def __init__(self, records: Records, file: str, work: str) -> None:
        """Read the claim's file, here and in the remote store, and refuse a claim of another machine."""
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
        """Return whether the process at work need not be waited for."""
        if datetime.now(UTC) - datetime.fromisoformat(claim.since) > _HOLD:
            return True
        if any(remote.has(f"{evaluation_id}/{MANIFEST}") for evaluation_id in claim.evaluations[-1:]):
            return True  # whose record is the night's
        was_here = here is not None and replace(here[1], since=claim.since) == claim
        return was_here and claim.host == socket.gethostname()  # its file lock is free

    def begin(self, evaluation_id: str = "") -> None:
        """Write the claim, with the id of the evaluation that begins, if there is one.

        Raises:
            LockedError: a process of another machine was faster.
            OSError: it cannot be written on this machine.
        """
        self.evaluations = (*self.evaluations, *filter(None, [evaluation_id]))
        self._write(datetime.now(UTC).isoformat(timespec="seconds"))

    def end(self) -> None:
        """Write that nobody is at work; a claim of another machine stays."""
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
    """Hold the night of a date on this machine; `begin` claims it from other machines.

    Raises:
        InputError: the claim's file is not what was written.
        LockedError: another process holds it.
        OSError: the folder of the records cannot be written.
    """
    return _claim_file(records, f"{STATE}/nights/{name}-{date}.json", f"{name} of {date}", 0)


@contextmanager
def claim_alias(records: Records, registered: str, alias: str, *, seconds: float) -> Iterator[Claim]:
    """Hold an alias of a registered model, with the errors of `claim_night`.

    Args:
        records: where records are kept.
        registered: the name of the registered model.
        alias: the alias.
        seconds: how long to wait for another process of this machine.
    """
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
    """Return the claim's file as bytes and as read; None if there is none.

    Raises:
        InputError: it is not what was written.
        OSError: it cannot be read.
    """
    return read_json_file(records, file, ClaimFile, "claim on a night or an alias")


def _locked(work: str, claim: ClaimFile) -> LockedError:
    since = f" (since {datetime.fromisoformat(claim.since):%H:%M} UTC)" if claim.since else ""
    process = f"process {claim.pid} on {claim.host}{since}"
    return LockedError(f"{work} is already running: {process}; wait until it is done")
