"""Claims on nightly evaluations: one file per name and date says who evaluates it and what came of it.

Promotions are claimed in the same way, by a file of their own.

Whoever begins a night claims it, so that of two at once one does the work. On this machine a file lock decides, which
the system releases with the process however it ends. Where records are kept elsewhere a conditional write decides
between machines; such a claim is a lease, renewed while its holder lives, which another may take over once it expired.
A place elsewhere that is away stops no night: the machine goes by its own copy of the file, and by its lock.

The id of the evaluation is written down before it begins. So it is known afterwards which record is the night's, even
if the holder was killed between the record and its next word: the last of the ids that have a record.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from rankledger.pipeline.record.store import STATE, Records, json_file, read_json_file
from rankledger.pipeline.support.errors import InputError, LockedError


@dataclass(frozen=True)
class Holder:
    """Who evaluates the night.

    Attributes:
        key: random; two machines may call themselves the same.
        host: its machine.
        pid: its process.
        since: when it began, ISO 8601 in UTC.
        renewed: when it was last heard of.
    """

    key: str
    host: str
    pid: int
    since: str
    renewed: str

    def __post_init__(self) -> None:
        """Times without an offset cannot be compared.

        Raises:
            ValueError: a time is none, or has no offset.
        """
        if not all(datetime.fromisoformat(time).tzinfo for time in (self.since, self.renewed)):
            raise ValueError("a time has no offset")

    def __str__(self) -> str:
        """Who it is, as messages say it."""
        return f"process {self.pid} on {self.host} (since {_hour(self.since)}, heard of {_hour(self.renewed)} UTC)"

    @property
    def silent(self) -> timedelta:
        """How long ago it was last heard of."""
        return datetime.now(UTC) - datetime.fromisoformat(self.renewed)


@dataclass(frozen=True)
class Night:
    """What the file of a night holds.

    Attributes:
        holder: who evaluates it; None for nobody.
        evaluations: the ids of its evaluations, most recent last; the last may have come to nothing.
    """

    holder: Holder | None
    evaluations: tuple[str, ...] = ()

    def written(self) -> bytes:
        """As the file has it."""
        return json_file(self)


def read_night(records: Records, file: str) -> tuple[bytes, Night] | None:
    """What the file of a night holds, as it is and as it is meant; None if there is none.

    Raises:
        InputError: it is not what was written.
        OSError: it cannot be read.
    """
    return read_json_file(records, file, Night, "claim on a night or an alias")


def _hour(time: str) -> str:
    return f"{datetime.fromisoformat(time):%H:%M}"


LEASE = timedelta(minutes=10)
"""How long a holder elsewhere may be silent before another takes the night over."""

_RENEWALS = 5  # in the time of a lease: four may fail
_SOMEBODY = "another process"


def claim_night(records: Records, name: str, date: str) -> AbstractContextManager[Claim]:
    """Hold a night for as long as the block runs.

    Args:
        records: where records are kept.
        name: the evaluation's name.
        date: the night's date, YYYY-MM-DD.

    Raises:
        InputError: the night's file is not what was written.
        LockedError: another process holds it.
        OSError: the folder of the records cannot be written.
    """
    return _claim_file(records, f"{STATE}/nights/{name}-{date}.json", f"{name} of {date}")


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
    return _claim_file(records, f"{STATE}/promotions/{readable}-{digest}.json", work, seconds=seconds)


@contextmanager
def _claim_file(records: Records, file: str, work: str, *, seconds: float = 0) -> Iterator[Claim]:
    """Hold what a file beside the records stands for, as long as the block runs.

    Args:
        records: where records are kept.
        file: the file's name.
        work: what is done meanwhile, as messages say it.
        seconds: how long to wait for another process of this machine.

    Raises:
        InputError: the file is not what was written.
        LockedError: another process holds it.
        OSError: the folder of the records cannot be written.
    """
    from filelock import FileLock, Timeout

    path = records.folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_suffix(".lock"), timeout=seconds)
    try:
        lock.acquire()
    except Timeout:
        raise _locked(work, _holder_of(records, file)) from None
    try:
        claim = _claim_anywhere(records, file, work)
        with claim.renewed():
            yield claim
    finally:
        lock.release()


class Claim:
    """A night that this process holds.

    Attributes:
        records: where it is held: on this machine alone where the place elsewhere is away.
        away: why the place elsewhere could not be asked; empty where it was, and if there is none.
    """

    def __init__(self, records: Records, file: str, night: Night) -> None:
        """Know what the file holds; it was written by this process."""
        self.records = records
        self.away = ""
        self._file = file
        self._night = night
        self._seen = night.written()
        self._turn = threading.Lock()

    @property
    def evaluations(self) -> tuple[str, ...]:
        """The ids of the night's evaluations, most recent last; of some there may be no record."""
        return self._night.evaluations

    def begin(self, evaluation_id: str) -> None:
        """Write down the id of the evaluation that begins; on this machine alone where the place elsewhere is away.

        Raises:
            LockedError: another process has taken the night over, as this one was silent for too long.
            OSError: it cannot be written on this machine.
        """
        with self._turn:
            self._night = replace(self._night, evaluations=(*self._night.evaluations, evaluation_id))
            _note(self.records, self._file, self._night)
        with _unless_away(self.records):  # whatever is written next holds the id, too
            if not self._put(lambda night: night):
                taker = _holder_of(self.records, self._file) or _SOMEBODY
                raise LockedError(f"{self._file}: {taker} took over the night; wait until it is done")

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Renew the lease while the block runs, where there is one; then give the night back."""
        done = threading.Event()
        renewing = threading.Thread(target=self._renew_until, args=(done,), daemon=True)
        if self.records.remote is not None:
            renewing.start()
        try:
            yield
        finally:
            done.set()
            with suppress(OSError, InputError):  # the lease expires by itself, and the lock goes with the process
                self._put(lambda night: replace(night, holder=None))

    def _renew_until(self, done: threading.Event) -> None:
        while not done.wait(LEASE.total_seconds() / _RENEWALS):
            with suppress(OSError, InputError):  # the next one may reach it
                self._put(_renewed)

    def _put(self, change: Callable[[Night], Night]) -> bool:
        """Change what the file holds; gives whether it was ours still."""
        with self._turn:
            night = change(self._night)
            while not self.records.replace(self._file, night.written(), self._seen):
                found = read_night(self.records, self._file)
                if found is not None and found[0] == night.written():
                    break  # it arrived: its answer was lost, it was sent again, and stood in its own way
                if found is None or not _same(found[1].holder, self._night.holder):
                    return False
                self._seen = found[0]
            self._night, self._seen = night, night.written()
            return True


def _renewed(night: Night) -> Night:
    """The night with its holder heard of now; given back, it stays so."""
    return replace(night, holder=night.holder and replace(night.holder, renewed=_now()))


def _claim_anywhere(records: Records, file: str, work: str) -> Claim:
    try:
        return _claim(records, file, work)
    except OSError as error:
        if records.remote is None:
            raise
        claim = _claim(Records(records.folder), file, work)
        claim.away = records.describe_error(error)
        return claim


def _claim(records: Records, file: str, work: str) -> Claim:
    """The night, if it is nobody's: of a holder on this machine the lock has shown that it is gone."""
    here = read_night(Records(records.folder), file)
    known = Night(None) if here is None else here[1]
    now = _now()
    night = replace(known, holder=Holder(secrets.token_hex(8), socket.gethostname(), os.getpid(), now, now))
    if not records.create(file, night.written()):
        taken = _taken(records, file, night, known.holder)
        if taken is None:
            raise _locked(work, _holder_of(records, file))
        night = taken
    _note(records, file, night)
    return Claim(records, file, night)


def _taken(records: Records, file: str, night: Night, gone: Holder | None) -> Night | None:
    """The night, taken from a holder that is gone, with all ids that are known of it; None if it is not ours."""
    found = read_night(records, file)
    if found is None:
        return None
    seen, before = found
    if seen == night.written():
        return night  # the answer was lost, as above
    if records.remote is not None and before.holder is not None and before.holder.silent <= LEASE:
        ours = before.holder.host == socket.gethostname() and _same(before.holder, gone)
        if not ours:  # machines that share a folder may have locks of their own: the host counts, too
            return None
    # An id begins with its time: what this machine began while the place was away is put where it belongs.
    unknown = set(night.evaluations) - set(before.evaluations)
    evaluations = tuple(sorted({*before.evaluations, *unknown})) if unknown else before.evaluations
    night = replace(night, evaluations=evaluations)
    if records.replace(file, night.written(), seen):
        return night
    found = read_night(records, file)
    return night if found is not None and found[0] == night.written() else None


def _same(one: Holder | None, other: Holder | None) -> bool:
    return one is not None and other is not None and one.key == other.key


def _note(records: Records, file: str, night: Night) -> None:
    """Have this machine know what it wrote elsewhere, for when that is away."""
    if records.remote is not None:
        Records(records.folder).write(file, night.written())


@contextmanager
def _unless_away(records: Records) -> Iterator[None]:
    """An error of the place elsewhere is none here; on this machine alone it is."""
    try:
        yield
    except OSError:
        if records.remote is None:
            raise


def _holder_of(records: Records, file: str) -> Holder | None:
    """Who has the night, as far as it can be known; this machine's own copy is asked where the other place is away."""
    for place in (records, Records(records.folder)):
        with suppress(OSError, InputError):
            found = read_night(place, file)
            if found is not None and found[1].holder is not None:
                return found[1].holder
    return None


def _locked(work: str, holder: Holder | None) -> LockedError:
    return LockedError(f"{work} is already running: {holder or _SOMEBODY}; wait until it is done")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
