"""Write and read the folder of a record, which is renamed once it is complete, and read a few files of many records.

No remote record is copied to read a few of its files.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic_core import from_json

from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import ALL, Estimate, QueryChange
from rankledger.pipeline.record.evaluation import TABLES, Evaluation, QueryDetail, Tables
from rankledger.pipeline.record.manifest import (
    MANIFEST,
    Manifest,
    NightOrder,
    begun,
    evaluation_name,
    order_night,
    parse_manifest,
    rank_night,
)
from rankledger.pipeline.record.manifest_parts import File
from rankledger.pipeline.record.scores import CONTENTS, REPLICATES, SCORES, write_contents, write_scores
from rankledger.pipeline.record.store import Records, digest_of, is_trusted, remember_own
from rankledger.pipeline.record.tables import (
    gates_in,
    lines_in,
    query_changes_in,
    query_details_in,
    read_file,
    refuse_unknown,
    unchanged,
    write_gates,
    write_lines,
    write_query_changes,
    write_query_details,
)
from rankledger.pipeline.support.atomic import partial_beside, read_regular
from rankledger.pipeline.support.errors import InputError, likely, shorten
from rankledger.pipeline.support.progress import each

PAGE = "report.html"
CHANGES_PAGE = "changes.html"
"""What changed since the night before, as a page of its own."""


def new_evaluation_id(name: str, now: datetime) -> str:
    """Return `<UTC>-<name>-<8 hex digits>`, such as 20261120T020000Z-nightly-1f0c9a2b.

    The first two digits are the fraction of the second, so that ids sort by time. The others are random.
    """
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{name}-{now.microsecond * 256 // 10**6:02x}{secrets.token_hex(3)}"


def write_record(
    evaluation: Evaluation,
    *,
    config: str,
    query_changes: Sequence[QueryChange] = (),
    query_details: Sequence[QueryDetail] = (),
    page: str | None = None,
    changes_page: str | None = None,
    runs_dir: Path | None = None,
) -> Evaluation:
    """Write a complete record, or nothing.

    Args:
        evaluation: Evaluation to write. Its path is the new folder.
        config: Text of `config.yaml`.
        query_changes: Queries that moved most.
        query_details: Texts, slices and rankings of these queries.
        page: Text of `report.html`. None if there is none.
        changes_page: Text of `changes.html`. None if there is none.
        runs_dir: Runs folder of the user, whose record it becomes. None for a record of somebody else's config.

    Raises:
        OSError: It cannot be written. Nothing is left behind.
    """
    path, results = evaluation.path, evaluation.results
    with partial_beside(path) as partial:
        partial.mkdir(parents=True)
        (partial / "config.yaml").write_text(config, encoding="utf-8")
        for name, text in ((PAGE, page), (CHANGES_PAGE, changes_page)):
            if text is not None:
                (partial / name).write_text(text, encoding="utf-8", newline="\n")
        write_scores(partial / SCORES, results)
        if replicates := [each for scores in results for each in scores.replicates]:
            write_scores(partial / REPLICATES, replicates)
        write_contents(partial / CONTENTS, evaluation.contents)
        _write_tables(partial, evaluation)
        if query_changes:
            write_query_changes(partial / "movers.csv", query_changes)
        if query_details:
            write_query_details(partial / "queries.json", query_details)
        manifest = _finish(evaluation.manifest, partial)
        (partial / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
        for file in partial.iterdir():
            _sync(file)
        digest = digest_of(partial)
        warnings = evaluation.warnings
        if runs_dir is not None:  # before it has its name: a killed process leaves no record that is unknown
            try:
                remember_own(path.name, digest, runs_dir, manifest.records or str(path.parent.resolve()))
            except OSError as error:
                later = "`sync` cannot promote the record later. Set XDG_STATE_HOME to a folder that can be written"
                warnings = (*warnings, f"{error.filename or 'state folder'}: {error.strerror or error}, so {later}")
        partial.rename(path)
    with contextlib.suppress(OSError):  # some filesystems know no fsync of a folder; the record is whole anyway
        _sync(path.parent)
    trusted = runs_dir is not None or is_trusted(path.name, digest)
    return replace(evaluation, manifest=manifest, is_recorded=True, is_trusted=trusted, warnings=warnings)


def _write_tables(folder: Path, evaluation: Evaluation) -> None:
    tables = evaluation.tables
    for name, rows in tables.items():
        table = TABLES.get(name)
        if table is not None and table is not Evaluation.verdicts and (rows or table.has_header_alone):
            write_lines(folder / table.file, table.row, rows)
    if "verdicts" in tables:
        write_gates(folder / "gates.json", tables["verdicts"], evaluation.manifest.baselines, tables.get("looks", ()))


def _finish(manifest: Manifest, folder: Path) -> Manifest:
    files = {file.name: _describe_file(file) for file in sorted(folder.iterdir())}
    return manifest.model_copy(update={"finished": datetime.now(UTC).isoformat(), "files": files})


def _describe_file(path: Path) -> File:
    data = path.read_bytes()
    return File(size=len(data), sha256=hashlib.sha256(data).hexdigest())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


Read: TypeAlias = Callable[[str], bytes | None]
"""Gives what a file of a record holds, which is what was written; None if the record has none of that name."""


def read_record(path: Path) -> Evaluation:
    """Read the record in a folder. Each table is checked on first use.

    Raises:
        OtherSchemaError: Another version wrote it.
        InputError: It is no record, or is damaged.
    """
    data = _read_manifest(path)
    trusted = is_trusted(path.resolve().name, hashlib.sha256(data).hexdigest())
    return record_of(path, parse_manifest(data, path), trusted=trusted)


def record_of(path: Path, manifest: Manifest, read: Read | None = None, *, trusted: bool = False) -> Evaluation:
    """Return the record of a manifest. Each table is checked on first use."""
    read = read or partial(read_file, path, manifest)
    tables = Tables({}, lambda name: _read_rows(path, manifest, name, read))
    return Evaluation(manifest, tables, path, is_trusted=trusted)


def _read_manifest(path: Path) -> bytes:
    file = path / MANIFEST
    try:
        return read_regular(file)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{file}: file not found; restore the record or name another") from None
    except OSError as error:
        reason = f"{error.strerror or error}. Set its permissions, or restore the record"
        raise InputError(f"{file}: {reason}") from None


def read_query_changes(record: Evaluation) -> tuple[QueryChange, ...]:
    """Return the queries that moved most in a record."""
    data = read_file(record.path, record.manifest, "movers.csv")
    lines = () if data is None else query_changes_in(data, record.path / "movers.csv")
    refuse_unknown(record.manifest, record.path / "movers.csv", ((line.dataset, line.model) for line in lines))
    _refuse_undefined(record.manifest, record.path / "movers.csv", (line.measure for line in lines))
    return lines


def read_query_details(record: Evaluation) -> tuple[QueryDetail, ...]:
    """Return a record's details of the queries that moved most."""
    name = "queries.json"
    data = read_file(record.path, record.manifest, name)
    details = () if data is None else query_details_in(data, record.path / name)
    for detail in details:
        if detail.dataset not in record.manifest.datasets:
            raise InputError(f"{record.path / name}: {detail.dataset!r} is not in the record; restore the record")
    return details


def _read_rows(path: Path, manifest: Manifest, name: str, read: Read) -> tuple[Any, ...]:
    if name == "results":
        return ()
    if name == "verdicts":
        return _verdicts(path, manifest, read)
    file, kind = path / TABLES[name].file, TABLES[name].row
    data = read(file.name)
    lines = () if data is None else lines_in(data, kind, file)
    models, measures = (
        [key for key in keys if key in kind.__dataclass_fields__]
        for keys in (("model", "baseline"), ("measure", "lead"))
    )
    refuse_unknown(manifest, file, ((line.dataset, getattr(line, key)) for line in lines for key in models))
    _refuse_undefined(manifest, file, (getattr(line, key) for line in lines for key in measures))
    for line in lines if name in ("agreement", "curves") else ():
        if line.dataset not in ("*", *manifest.datasets):
            raise InputError(f"{file}: {shorten(repr(line.dataset))} is not in the record; restore the record")
        if name == "curves" and not (0 <= line.at <= 1 if line.curve == "precision" else 1 <= line.at < math.inf):
            raise InputError(f"{file}: the curve {line.curve} has a point at {line.at:g}; restore the record")
    if name == "estimates":
        _refuse_incomplete(manifest, file, lines)
    return lines


def _refuse_incomplete(manifest: Manifest, file: Path, lines: Iterable[Estimate]) -> None:
    there = {(line.dataset, line.model, line.measure) for line in lines if line.slice == ALL}
    for output in manifest.outputs:
        for measure in manifest.datasets[output.dataset].measures:
            if (*output.task, measure) not in there:
                lack = f"{measure} of {output.model!r} on {output.dataset!r} is missing"
                raise InputError(f"{file}: {lack}; restore the record")


def _verdicts(path: Path, manifest: Manifest, read: Read) -> tuple[Verdict, ...]:
    file = path / "gates.json"
    verdicts = gates_in(read(file.name), file).verdicts
    for verdict in verdicts:
        if verdict.model not in manifest.models:
            raise InputError(f"{file}: {verdict.model!r} is not in the record; restore the record")
    return verdicts


def _refuse_undefined(manifest: Manifest, file: Path, measures: Iterable[str]) -> None:
    for measure in dict.fromkeys(measures):
        if measure not in manifest.definitions:
            raise InputError(f"{file}: {shorten(repr(measure))} has no definition in the record; restore the record")


def config_of(record: Evaluation) -> Path:
    """Return the path of the config that was evaluated.

    The recorded path is relative to the working directory of then, which usually held the runs folder. It is looked up
    there first, because the current working directory may hold another config of that name.
    """
    written = Path(record.manifest.config)
    there = record.path.absolute().parent.parent.parent / written
    return written if there == written.absolute() or not there.is_file() else there


_AT_A_TIME = 16  # a read elsewhere is all waiting

T = TypeVar("T")


@dataclass(frozen=True)
class RecordEntry:
    """One of many records."""

    records: Records
    evaluation_id: str

    @cached_property
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
            found = from_json(self._manifest)
            began = datetime.fromisoformat(found["created"])
            return order_night(found.get("date"), began.astimezone(UTC), self.evaluation_id)
        except (InputError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            fraction = int(self.evaluation_id[-8:-6], 16) + 1  # of the second, in 256 parts: the end of the part
            began = begun(self.evaluation_id) + timedelta(microseconds=fraction * 10**6 // 256 - 1)
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
        path = self.path / name
        try:
            return read_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            is_remote = self.records.remote is not None and not self.records.has_here(self.evaluation_id)
        except OSError as error:
            reason = f"{error.strerror or error}. Set its permissions, or restore the record"
            raise InputError(f"{path}: {reason}") from None
        data = self.records.read(f"{self.evaluation_id}/{name}") if is_remote else None
        if data is None:
            place = self.records.place if is_remote else self.records.folder
            raise InputError(f"{place}/{self.evaluation_id}/{name}: file not found; restore the record")
        return data


@dataclass(frozen=True)
class _RecordScan(Generic[T]):
    """Results of reading many records, most recent first, and the reasons why others cannot be read by id."""

    found: tuple[T, ...]
    unreadable: Mapping[str, str]

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(f"{name}: cannot be read as a record, left out: {why}" for name, why in self.unreadable.items())


def scan_records(records: Records, name: str | None, look: Callable[[RecordEntry], T]) -> _RecordScan[T]:
    """Read every record of an evaluation, the last night first. Folders that are no records are skipped."""
    ids = records.ids(name)
    scan = _scan_ids(records, ids, lambda entry: (entry.manifest.order, look(entry)))
    if name is not None and not scan.found:
        raise InputError(no_records(records, name, scan.unreadable))
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
    return _scan_ids(records, [evaluation_id for _, _, evaluation_id in islice(earlier, most)], look)


def order_records(records: Records, name: str | None = None) -> list[NightOrder]:
    """Return the positions of the records of an evaluation, or of all, the last night first and the future last."""
    orders, now = _scan_ids(records, records.ids(name), lambda entry: entry.order).found, datetime.now(UTC)
    return sorted(orders, key=lambda order: rank_night(order, now), reverse=True)


def _scan_ids(records: Records, ids: Sequence[str], look: Callable[[RecordEntry], T]) -> _RecordScan[T]:
    def looked(evaluation_id: str) -> tuple[T] | str | None:
        try:
            return (look(RecordEntry(records, evaluation_id)),)
        except InputError as error:
            return str(error) if records.may_have(evaluation_id) else None  # another process may delete records

    if records.remote is None:
        found = list(each("Reading records", map(looked, ids), len(ids), "records"))
    else:
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            found = list(each("Reading records", pool.map(looked, ids), len(ids), "records"))
    unreadable = {name: read for name, read in zip(ids, found, strict=True) if isinstance(read, str)}
    return _RecordScan(tuple(read[0] for read in found if isinstance(read, tuple)), unreadable)


def no_records(records: Records, name: str, unreadable: Mapping[str, str] | None = None) -> str:
    """Return why an evaluation cannot be read: no record has its name, or all are unreadable."""
    for evaluation_id, reason in (unreadable or {}).items():
        return f"{records.place}: no record of {name!r} can be read, such as {evaluation_id} ({reason})"
    known = sorted({str(evaluation_name(evaluation_id)) for evaluation_id in records.ids()})
    if name in known:
        return f"{records.place}: no evaluation of {name!r} was finished. Use `rankledger list` to see why."
    return f"{records.place}: no evaluation is called {name!r}{likely(name, known)}"
