"""Read a few files of many records, wherever the records are kept. No remote record is copied."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import record_of
from rankledger.pipeline.record.manifest import (
    MANIFEST,
    Manifest,
    NightOrder,
    begun,
    evaluation_name,
    order_night,
    parse_manifest,
)
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.record.tables import lines_in, refuse_unknown, unchanged
from rankledger.pipeline.support.errors import InputError, likely
from rankledger.pipeline.support.progress import each

_AT_A_TIME = 16  # a read elsewhere is all waiting

T = TypeVar("T")


@dataclass(frozen=True)
class RecordEntry:
    """One of many records."""

    records: Records
    evaluation_id: str

    @property
    def path(self) -> Path:
        return self.records.folder / self.evaluation_id

    @cached_property
    def manifest(self) -> Manifest:
        """Contents of `manifest.json`."""
        return parse_manifest(self._manifest, self.path)

    @cached_property
    def record(self) -> Evaluation:
        return record_of(self.path, self.manifest, self._read_unchanged)

    def lines(self, measure: str | None) -> tuple[Estimate, ...]:
        data = self._summary
        if data is None:
            return ()
        lines = lines_in(data, Estimate, self.path / "summary.csv", measure=measure)
        refuse_unknown(self.manifest, self.path / "summary.csv", ((line.dataset, line.model) for line in lines))
        return lines

    def page(self) -> bytes | None:
        return self._read_unchanged("report.html")

    @property
    def order(self) -> NightOrder:
        """Position among all nights, by the id if the manifest cannot be read."""
        try:
            found = json.loads(self._manifest)
            began = datetime.fromisoformat(found["created"])
            return order_night(found.get("date"), began.astimezone(UTC), self.evaluation_id)
        except (InputError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            began = begun(self.evaluation_id).replace(microsecond=999_999)  # ids have whole seconds
            return order_night(None, began, self.evaluation_id)

    @property
    def is_readable(self) -> bool:
        try:
            return bool(self.manifest)
        except InputError:
            return False

    @property
    def stamp(self) -> str:
        """Text that identifies an unchanged record without reading it: records never change."""
        try:
            found = (self.path / MANIFEST).stat()
        except OSError:
            return ""
        return f"{found.st_size} {found.st_mtime_ns}"

    @property
    def size(self) -> int:
        return len(self._manifest) + sum(file.size for file in self.manifest.files.values())

    @cached_property
    def _summary(self) -> bytes | None:
        return self._read_unchanged("summary.csv")

    @cached_property
    def _manifest(self) -> bytes:
        return self._read(MANIFEST)

    def _read_unchanged(self, name: str) -> bytes | None:
        described = self.manifest.files.get(name)
        return None if described is None else unchanged(self._read(name), described, self.path / name)

    def _read(self, name: str) -> bytes:
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
class _RecordScan(Generic[T]):
    """Results of reading many records, most recent first, and the ids of unreadable ones."""

    found: tuple[T, ...]
    unreadable: tuple[str, ...]

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(f"{evaluation_id}: cannot be read as a record, left out" for evaluation_id in self.unreadable)


def scan_records(records: Records, name: str | None, look: Callable[[RecordEntry], T]) -> _RecordScan[T]:
    """Read every record of an evaluation, the last night first. Folders that are no records are skipped."""
    ids = records.ids(name)
    scan = _scanned(records, ids, lambda entry: (entry.manifest.order, look(entry)))
    if name is not None and len(scan.unreadable) == len(ids):
        raise InputError(no_records(records, name, ids))
    ordered = sorted(scan.found, key=lambda read: read[0], reverse=True)
    return _RecordScan(tuple(item for _, item in ordered), scan.unreadable)


def scan_earlier(
    records: Records, name: str, order: NightOrder, most: int, look: Callable[[RecordEntry], T]
) -> _RecordScan[T]:
    """Read the last records that began before an order, of nights that are no later."""

    def is_earlier(other: NightOrder) -> bool:
        night, began, evaluation_id = other
        if night <= order[0] and began < order[1]:
            return True  # without a look at whether it can be read, which takes time
        return begun(evaluation_id) < order[1] and not RecordEntry(records, evaluation_id).is_readable

    earlier = filter(is_earlier, order_records(records, name))
    return _scanned(records, [evaluation_id for _, _, evaluation_id in islice(earlier, most)], look)


def order_records(records: Records, name: str | None = None) -> list[NightOrder]:
    """Return the positions of the records of an evaluation, or of all, the last night first."""
    return sorted(_scanned(records, records.ids(name), lambda entry: entry.order).found, reverse=True)


def _scanned(records: Records, ids: Sequence[str], look: Callable[[RecordEntry], T]) -> _RecordScan[T]:
    def looked(evaluation_id: str) -> tuple[T, ...]:
        try:
            return (look(RecordEntry(records, evaluation_id)),)
        except InputError:
            return ()

    if records.remote is None:
        found = list(each("Reading records", map(looked, ids), len(ids), "records"))
    else:
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            found = list(each("Reading records", pool.map(looked, ids), len(ids), "records"))
    unreadable = tuple(evaluation_id for evaluation_id, read in zip(ids, found, strict=True) if not read)
    return _RecordScan(tuple(item for read in found for item in read), unreadable)


def no_records(records: Records, name: str, ids: Sequence[str] = ()) -> str:
    """Return why an evaluation cannot be read: no record has its name, or all are damaged."""
    if ids:
        return f"{records.place}: no record of {name!r} can be read, such as {ids[0]}; restore it or name another"
    known = sorted({str(evaluation_name(evaluation_id)) for evaluation_id in records.ids()})
    return f"{records.place}: no evaluation is called {name!r}{likely(name, known)}"
