"""Many records, of each of which only the small files are read: what was asked for, the summary, the gates.

Where records are kept elsewhere these files are read there, several at a time, and no record is copied for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from pipeline.errors import InputError, likely
from pipeline.manifest import MANIFEST, evaluation_name, parse_manifest
from pipeline.progress import each
from pipeline.record.checking import refuse_unknown, unchanged
from pipeline.record.gates import verdicts_in
from pipeline.record.lines import lines_of
from pipeline.record.store import Records
from pipeline.tables import Estimate, Record
from pipeline.verdicts import Verdict

__all__ = ["Browsed", "Entry", "browse"]

_AT_A_TIME = 16  # a read elsewhere is all waiting

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """A record among others.

    Attributes:
        records: where it is kept.
        evaluation_id: its id.
    """

    records: Records
    evaluation_id: str

    @property
    def path(self) -> Path:
        """Where it lies on this machine, or would."""
        return self.records.folder / self.evaluation_id

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """What `manifest.json` holds.

        Raises:
            OtherSchemaError: another version wrote it.
            InputError: it is missing, or not what was written.
        """
        return parse_manifest(self._manifest, self.path)

    @property
    def record(self) -> Record:
        """The record without its lines."""
        return Record(self.path, self.manifest)

    @property
    def name(self) -> str:
        """What the evaluation is called."""
        return str(self.manifest["name"])

    @property
    def date(self) -> str:
        """Its night: the date that was given, or else the day on which it began, in UTC."""
        began = datetime.fromisoformat(self.manifest["created"]).astimezone(UTC)
        return str(self.manifest["date"] or began.date())

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What the gates said; none where the config had none.

        Raises:
            InputError: it is not what was written.
        """
        data = self._read_unchanged("gates.json")
        return () if data is None else verdicts_in(data, self.path / "gates.json")

    def lines(self, measure: str) -> tuple[Estimate, ...]:
        """The lines of the summary by that measure.

        Raises:
            InputError: the summary is missing, or not what was written.
        """
        data = self._read_unchanged("summary.csv")
        if data is None:
            return ()
        lines = lines_of(data, measure, self.path / "summary.csv")
        refuse_unknown(self.manifest, self.path / "summary.csv", ((line.dataset, line.model) for line in lines))
        return lines

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return len(self._manifest) + sum(int(file["size"]) for file in self.manifest["files"].values())

    @cached_property
    def _manifest(self) -> bytes:
        return self._read(MANIFEST)

    def _read_unchanged(self, name: str) -> bytes | None:
        """What a file of it holds; None if the manifest knows none of that name."""
        described = self.manifest["files"].get(name)
        return None if described is None else unchanged(self._read(name), described, self.path / name)

    def _read(self, name: str) -> bytes:
        """What a file of it holds: here, if the record is here, or else elsewhere.

        Raises:
            InputError: it is missing, or cannot be read here.
            OSError: the place elsewhere cannot be reached.
        """
        data = None
        if self.records.has_here(self.evaluation_id):
            try:
                return (self.path / name).read_bytes()
            except OSError as error:
                raise InputError(f"{self.path / name}: {error.strerror or error}; restore the record") from None
        if self.records.remote is not None:
            data = self.records.read(f"{self.evaluation_id}/{name}")
        if data is None:
            raise InputError(f"{self.records.place}/{self.evaluation_id}/{name}: file not found; restore the record")
        return data


@dataclass(frozen=True)
class Browsed(Generic[T]):
    """What was read of many records, the newest first, and the ids of those that cannot be read."""

    found: tuple[T, ...]
    unreadable: tuple[str, ...]

    @property
    def remarks(self) -> tuple[str, ...]:
        """That some were passed over, a line each."""
        return tuple(f"{evaluation_id}: cannot be read as a record, left out" for evaluation_id in self.unreadable)


def browse(records: Records, name: str | None, look: Callable[[Entry], T]) -> Browsed[T]:
    """What is read of every record of an evaluation; a folder that cannot be read as a record is passed over.

    Args:
        records: where they are kept.
        name: the evaluation; None for all.
        look: what to read of each; several may be read at a time.

    Raises:
        InputError: a name is given, and no evaluation of it can be read.
        OSError: the place elsewhere cannot be reached.
    """

    def looked(evaluation_id: str) -> tuple[T, ...]:
        try:
            return (look(Entry(records, evaluation_id)),)
        except InputError:
            return ()

    ids = records.ids(name)
    if records.remote is None:
        found = list(each("Reading records", map(looked, ids), len(ids), "records"))
    else:
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            found = list(each("Reading records", pool.map(looked, ids), len(ids), "records"))
    unreadable = tuple(evaluation_id for evaluation_id, read in zip(ids, found, strict=True) if not read)
    if name is not None and len(unreadable) == len(ids):
        raise InputError(_nothing(records, name, ids))
    return Browsed(tuple(item for read in found for item in read), unreadable)


def _nothing(records: Records, name: str, ids: Sequence[str]) -> str:
    """Why nothing is read of an evaluation: there is none of that name, or none of its records is whole."""
    if ids:
        return f"{records.place}: no record of {name!r} can be read, such as {ids[0]}; restore it or name another"
    known = sorted({str(evaluation_name(evaluation_id)) for evaluation_id in records.ids()})
    return f"{records.place}: there is no evaluation of the name {name!r}{likely(name, known)}"
