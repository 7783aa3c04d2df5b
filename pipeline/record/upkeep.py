"""What work on a folder of records returns: lists, figures that were found, reproductions and prunings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from rankledger.metrics.block import Bools, Floats


@dataclass(frozen=True)
class RecordSummary:
    """A line of the list of evaluations.

    Attributes:
        evaluation_id: the id.
        name: the evaluation's name.
        date: its night.
        repeats: the id of the evaluation that it repeats; None where it repeats none.
        n_models: models of the config.
        n_datasets: datasets of the config.
        n_failures: outputs that were missing or refused.
        gates: what all its gates come to: `pass`, `warn`, `fail` or `inconclusive`; empty where it has none.
        delivered: when it was logged to MLflow; None if it was not.
        wanted: whether it is to be logged to MLflow.
        size: bytes of the record's files.
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
        place: where the records are.
        evaluations: a line each.
        remarks: what was passed over, a line each.
    """

    place: str
    evaluations: tuple[RecordSummary, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordedFigure:
    """A figure of a record.

    Attributes:
        evaluation_id: the evaluation.
        date: its night.
        dataset: the dataset; `*` for the mean of all datasets.
        model: the model.
        slice: `all`, or `column=value`.
        measure: as it is written.
        estimate: the figure.
        ci_low: lower end of its confidence interval; None where it has none.
        ci_high: upper end.
        fingerprint: what the measure means there; empty where the record does not say.
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
    """Where a published figure may come from.

    Attributes:
        published: the figure as it was written.
        measure: the measure that was asked for; None for all.
        n_records: records that were looked through.
        figures: those that round to it, most recent first.
        remarks: what was passed over, a line each.
    """

    published: str
    measure: str | None
    n_records: int
    figures: tuple[RecordedFigure, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangedInput:
    """An input that is not what was evaluated.

    Attributes:
        what: whose it is, such as `judgments of web`.
        recorded: the path as it was recorded.
        found: the path as it was found.
        recorded_digest: digest of what was evaluated, as an input file has it.
        found_digest: digest of what is there now.
    """

    what: str
    recorded: str
    found: str
    recorded_digest: str
    found_digest: str


@dataclass(frozen=True, eq=False)
class ComparedFigures:
    """A file of figures, N rows.

    Attributes:
        file: its name.
        rows: N names, each once, such as (dataset, model, query).
        numbers: by column, (N,), NaN where undefined.
        blank: by column of numbers, (N,), whether there is none.
        words: by column, N texts.
    """

    file: str
    rows: Sequence[tuple[str, ...]]
    numbers: Mapping[str, Floats]
    blank: Mapping[str, Bools]
    words: Mapping[str, Sequence[str]]

    @property
    def n_figures(self) -> int:
        """Numbers that there are."""
        return sum(int((~blank).sum()) for blank in self.blank.values())


@dataclass(frozen=True)
class MovedFigure:
    """A cell of a record's tables that is not what it was.

    Attributes:
        file: the file of the record.
        row: the names of its row, such as (dataset, model, slice, measure); empty for a whole column.
        column: the column; empty for a whole row.
        before: what was recorded; None where there was nothing.
        after: what it is now; None where there is nothing.
    """

    file: str
    row: tuple[str, ...]
    column: str
    before: float | str | None
    after: float | str | None


@dataclass(frozen=True)
class Reproduction:
    """What came of evaluating a record again.

    Attributes:
        record: the record.
        verdict: `identical`, the same bytes of the same inputs; `equal`, every figure within 1e-12; or `different`.
        files: those of the record that were compared.
        n_figures: numbers in the files whose bytes differ.
        moved: those that are not the same, the summary's first; at most as many as are worth reading.
        n_moved: how many there are in all.
        n_found: files of inputs that were found elsewhere.
        inputs: inputs that have changed.
        versions: what ran then and runs now, such as `numpy 2.4.6 → 2.3.5`.
        definitions: measures that mean something else now.
        code: how the repository of the config differs.
        failures: what could not be evaluated again, and why.
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
    """A record that goes.

    Attributes:
        evaluation_id: its id.
        size: bytes of its files.
        run_ids: the runs of MLflow that go with it.
    """

    evaluation_id: str
    size: int
    run_ids: tuple[str, ...]


@dataclass(frozen=True)
class PruneResult:
    """What goes, or went.

    Attributes:
        before: what is older than this.
        done: whether it was deleted, or would be.
        records: the records, the oldest first; of those deleted, the ones that were.
        n_cached: files of the output cache.
        n_cached_bytes: their bytes.
        stays: how many old records stay, by the reason.
        failures: why records could not be deleted that should have been.
    """

    before: datetime
    done: bool
    records: tuple[PrunedRecord, ...]
    n_cached: int
    n_cached_bytes: int
    stays: Mapping[str, int]
    failures: tuple[str, ...] = ()
