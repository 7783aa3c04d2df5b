"""What checks of records return: reproductions and prunings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from rankledger.metrics.block import Bools, Floats

__all__ = ["ChangedInput", "ComparedFigures", "MovedFigure", "PruneResult", "PrunedRecord", "Reproduction"]


@dataclass(frozen=True)
class ChangedInput:
    """An input that is not what was evaluated.

    Attributes:
        what: whose it is, such as `judgments of web`.
        recorded: the path as it was recorded.
        found: the path as it was found.
        recorded_sha256: hex digest of what was evaluated.
        found_sha256: hex digest of what is there now.
    """

    what: str
    recorded: str
    found: str
    recorded_sha256: str
    found_sha256: str


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
