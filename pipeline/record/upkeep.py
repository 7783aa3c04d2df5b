"""Work on a folder of records: results, comparable figures, and the records that may be deleted.

These old records stay:

- accepted ones, because models are compared with them
- references of gates in records that stay for another reason, or `last_passed` would chain all nights
- those that are not delivered yet, to MLflow or the remote store
- those at a place that was not named, which alone knows whether they are whole there
- the last of each evaluation, which the next night looks back on
- those whose manifest cannot be read, because nothing is known of them
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, get_type_hints

import numpy as np
import pyarrow as pa

from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.inference.tables import Estimate
from rankledger.pipeline.record.evaluation import TABLES
from rankledger.pipeline.record.folder import RecordEntry
from rankledger.pipeline.record.manifest import MANIFEST, OtherSchemaError, begun, is_evaluation_id
from rankledger.pipeline.record.receipts import read_receipt
from rankledger.pipeline.record.scores import REPLICATES, SCORES, scores_in
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.record.tables import damaged_files, is_text, lines_in
from rankledger.pipeline.support.arrow import numpy_of
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.progress import each


@dataclass(frozen=True)
class RecordSummary:
    """Entry of the list of evaluations.

    Attributes:
        evaluation_id: Id.
        name: Evaluation name.
        date: Night.
        repeats: Id of the evaluation that it repeats. None if it repeats none.
        n_models: Models of the config.
        n_datasets: Datasets of the config.
        n_failures: Outputs that were missing or rejected.
        gates: Effect of all gates: `pass`, `warn`, `fail` or `inconclusive`. Empty if there are none.
        delivered: Time of its delivery to MLflow. None if it was not delivered.
        wanted: True if it should be logged to MLflow.
        size: Bytes of the record's files.
    """

    evaluation_id: str
    name: str
    date: str
    repeats: str | None
    n_models: int
    n_datasets: int
    n_failures: int
    gates: str
    delivered: str | None
    wanted: bool
    size: int


@dataclass(frozen=True)
class RecordList:
    """Evaluations, most recent first.

    Attributes:
        place: Location of the records.
        evaluations: Entries.
        remarks: Lines about records that were skipped.
    """

    place: str
    evaluations: tuple[RecordSummary, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RecordedFigure(Estimate):
    """Figure of a record, with the attributes of `Estimate`.

    Attributes:
        evaluation_id: Evaluation id.
        date: Night.
        fingerprint: Fingerprint of the measure's definition. Empty if unknown.
    """

    evaluation_id: str
    date: str
    fingerprint: str


@dataclass(frozen=True)
class FigureMatch:
    """Possible origins of a published figure.

    Attributes:
        published: Figure as it was written.
        measure: Measure that was asked for. None for all.
        n_records: Records that were searched.
        figures: Figures that round to it, most recent first.
        remarks: Lines about records that were skipped.
    """

    published: str
    measure: str | None
    n_records: int
    figures: tuple[RecordedFigure, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangedInput:
    """Input that differs from the evaluated one.

    Attributes:
        what: Owner of the input, such as `judgments of web`.
        recorded: Path as it was recorded.
        found: Path as it was found.
        recorded_digest: Digest of the evaluated file.
        found_digest: Digest of the present file.
    """

    what: str
    recorded: str
    found: str
    recorded_digest: str
    found_digest: str


@dataclass(frozen=True, eq=False)
class ComparedFigures:
    """Figures of a file, N rows."""

    file: str
    rows: Sequence[tuple[str, ...]]  # N names, each once, such as (dataset, model, query)
    numbers: Mapping[str, Floats]  # (N,) by column, NaN if undefined
    blank: Mapping[str, Bools]  # (N,) by column, True if there is no number
    words: Mapping[str, Sequence[str]]  # N texts by column

    @property
    def n_figures(self) -> int:
        return sum(int((~blank).sum()) for blank in self.blank.values())


@dataclass(frozen=True)
class MovedFigure:
    """Cell of a record's tables that changed.

    Attributes:
        file: File of the record.
        row: Names of its row, such as (dataset, model, slice, measure). Empty for a whole column.
        column: Column. Empty for a whole row.
        before: Recorded value. None if there was none.
        after: Present value. None if there is none.
    """

    file: str
    row: tuple[str, ...]
    column: str
    before: float | str | None
    after: float | str | None


@dataclass(frozen=True)
class Reproduction:
    """Result of evaluating a record again.

    Attributes:
        record: Record.
        verdict: `identical` (same bytes of the same inputs), `equal` (every figure within 1e-12), or `different`.
        files: Files of the record that were compared.
        n_figures: Numbers in the files whose bytes differ.
        moved: Changed cells, the summary's first, limited to a readable number.
        n_moved: Number of all changed cells.
        n_found: Input files that were found at another path.
        inputs: Inputs that changed.
        versions: Versions of then and now, such as `numpy 2.4.6 → 2.3.5`.
        definitions: Measures whose definition changed.
        code: Differences of the config's repository.
        failures: Outputs that could not be evaluated again, and why.
    """

    record: Path
    verdict: Literal["identical", "equal", "different"]
    files: tuple[str, ...]
    n_figures: int
    moved: tuple[MovedFigure, ...]
    n_moved: int
    n_found: int
    inputs: tuple[ChangedInput, ...]
    versions: tuple[str, ...]
    definitions: tuple[str, ...]
    code: tuple[str, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True)
class PrunedRecord:
    """Record that is deleted.

    Attributes:
        evaluation_id: Id.
        size: Bytes of its files.
        run_ids: MLflow runs that are deleted with it.
    """

    evaluation_id: str
    size: int
    run_ids: tuple[str, ...]


@dataclass(frozen=True)
class PruneResult:
    """Records that are or would be deleted.

    Attributes:
        before: Time limit of the deletion.
        done: True if they were deleted, False if they would be.
        records: Records, the oldest first.
        n_cached: Files of the output cache.
        n_cached_bytes: Bytes of these files.
        stays: Number of old records that stay, by reason.
        failures: Reasons why records could not be deleted.
    """

    before: datetime
    done: bool
    records: tuple[PrunedRecord, ...]
    n_cached: int
    n_cached_bytes: int
    stays: Mapping[str, int]
    failures: tuple[str, ...] = ()


_LINES = {table.file: table.row for name, table in TABLES.items() if name not in ("changes", "verdicts")}

FIGURES = (*_LINES, SCORES, REPLICATES)
"""The files that the same inputs, config and seed give byte by byte, the shortest first."""

_KEYS = ("dataset", "model", "replicate", "baseline", "slice", "measure", "query_id", "curve", "at")
"""What a row is called by, where it has them."""


def read_figures(path: Path) -> ComparedFigures:
    """Return the figures in a file of a record."""
    return _of_lines(path) if path.name in _LINES else _of_scores(path)


def _of_lines(path: Path) -> ComparedFigures:
    kind = _LINES[path.name]
    try:
        lines = lines_in(path.read_bytes(), kind, path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; restore the record") from None
    types = get_type_hints(kind)
    columns = {name: [getattr(line, name) for line in lines] for name in types}
    figures = {name: cells for name, cells in columns.items() if name not in _KEYS}
    numbers = {name: cells for name, cells in figures.items() if not is_text(types[name])}
    return ComparedFigures(
        file=path.name,
        rows=list(zip(*(map(str, columns[name]) for name in _KEYS if name in columns), strict=True)),
        numbers={name: np.array(cells, dtype=np.float64) for name, cells in numbers.items()},
        blank={name: np.array([cell is None for cell in cells], dtype=bool) for name, cells in numbers.items()},
        words={name: cells for name, cells in figures.items() if is_text(types[name])},
    )


def _of_scores(path: Path) -> ComparedFigures:
    table = scores_in(path)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    numbers = {name: column for name, column in columns.items() if pa.types.is_floating(column.type)}
    flags = {name: column for name, column in columns.items() if pa.types.is_boolean(column.type)}
    return ComparedFigures(
        file=path.name,
        rows=list(zip(*(columns[name].to_pylist() for name in _KEYS if name in columns), strict=True)),
        numbers={name: numpy_of(column.fill_null(float("nan")), np.float64) for name, column in numbers.items()},
        blank={name: np.array(column.is_null().to_pylist(), dtype=bool) for name, column in numbers.items()},
        words={name: [str(flag) for flag in column.to_pylist()] for name, column in flags.items()},
    )


ACCEPTED = "accepted"
_NEEDED = "baseline of a record that stays"
LAST = "the last of its evaluation"
_UNDELIVERED = "not delivered yet"
ELSEWHERE = "stored remotely; name the store with --records"


def stored_records(records: Records) -> Iterator[RecordEntry]:
    """Yield every record whose manifest can be read, the last night first."""
    entries = [RecordEntry(records, evaluation_id) for evaluation_id in records.ids()]
    readable = filter(_can_be_read, each("Reading records", entries, len(entries), "records"))
    yield from sorted(readable, key=lambda entry: entry.manifest.order, reverse=True)


def _can_be_read(entry: RecordEntry) -> bool:
    try:
        _ = entry.manifest
    except OtherSchemaError:
        raise
    except InputError:
        return False
    return True


def reasons_to_stay(
    stored: Iterable[RecordEntry], records: Records, *, before: datetime, accepted: Collection[str]
) -> dict[str, str]:
    """Return why records that began before a moment stay, by id. Those that may be deleted are left out."""
    all_ = list(stored)
    old = [found for found in all_ if begun(found.evaluation_id) < before]
    last = _last_records(all_, records)
    reasons: dict[str, str] = {}
    for found in old:
        if found.evaluation_id in accepted:
            reasons[found.evaluation_id] = ACCEPTED
        elif found.evaluation_id in last:
            reasons[found.evaluation_id] = LAST
        elif records.remote is None and found.manifest.records:
            reasons[found.evaluation_id] = ELSEWHERE
        elif _is_undelivered(found, records):
            reasons[found.evaluation_id] = _UNDELIVERED
    going = {found.evaluation_id for found in old} - reasons.keys()
    staying = [found for found in all_ if found.evaluation_id not in going]
    needed = {evaluation_id for found in staying for evaluation_id in _held_against(found)}
    return reasons | dict.fromkeys(sorted(going & needed), _NEEDED)


def clear_leftovers(records: Records, *, before: datetime) -> None:
    """Delete old records without a manifest from a remote store, left by an interrupted process."""
    if (remote := records.remote) is None:
        return
    for evaluation_id in remote.folders():
        if not is_evaluation_id(evaluation_id) or (records.folder / evaluation_id).is_dir():
            continue
        is_whole = remote.has(f"{evaluation_id}/{MANIFEST}")
        if not is_whole and all(written < before for written in remote.written(evaluation_id)):
            remote.delete_folder(evaluation_id)


def _last_records(stored: Iterable[RecordEntry], records: Records) -> set[str]:
    last: set[str] = set()
    known: set[str] = set()
    for found in stored:
        if not found.manifest.repeats and found.manifest.name not in known:
            last.add(found.evaluation_id)
            if not records.has_here(found.evaluation_id) or not any(damaged_files(found.record)):
                known.add(found.manifest.name)
    return last


def _is_undelivered(found: RecordEntry, records: Records) -> bool:
    wanted = found.manifest.is_tracked
    if wanted and read_receipt(records, found.evaluation_id) is None:
        return True
    return records.remote is not None and not records.remote.has(f"{found.evaluation_id}/{MANIFEST}")


def _held_against(found: RecordEntry) -> Iterator[str]:
    for models in found.manifest.baselines.values():
        yield from (held.record for held in models.values() if held.record is not None)
