"""Results of work on a folder of records: lists, figures, reproductions and prunings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from rankledger.metrics.block import Bools, Floats


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


@dataclass(frozen=True)
class RecordedFigure:
    """Figure of a record.

    Attributes:
        evaluation_id: Evaluation id.
        date: Night.
        dataset: Dataset. `*` for the mean of all datasets.
        model: Model.
        slice: `all`, or `column=value`.
        measure: Measure as it is written.
        estimate: Figure.
        ci_low: Lower end of its confidence interval. None if there is none.
        ci_high: Upper end.
        fingerprint: Fingerprint of the measure's definition. Empty if unknown.
    """

    evaluation_id: str
    date: str
    dataset: str
    model: str
    slice: str
    measure: str
    estimate: float
    ci_low: float | None
    ci_high: float | None
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
