"""What changed between two records.

Changes are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from rankledger.pipeline.inference.tables import (
    ALL,
    Comparison,
    ModelPair,
    PairedScores,
    QueryChange,
    RankedDocument,
    SliceChange,
    frame,
)
from rankledger.pipeline.record.evaluation import QueryDetail

if TYPE_CHECKING:
    import pandas as pd


Cause: TypeAlias = Literal[
    "queries removed", "definition", "judgments", "excluded documents", "queries added", "documents", "output"
]


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def night_label(night: str | None, *, year: bool = False) -> str:
    """A night as people say it, such as `Fri 20 Nov`; a label that is no day as it is, and nothing for None.

    Args:
        night: the date of an evaluation, `2026-11-20` or `20261120`.
        year: whether to add the year.
    """
    try:
        day = date.fromisoformat(night or "")
    except ValueError:
        return night or ""
    text = f"{_DAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]}"
    return f"{text} {day.year}" if year else text


@dataclass(frozen=True)
class Side:
    """One of the two that are compared.

    Attributes:
        reference: as it was asked for.
        evaluation_id: the record's id.
        record: its folder.
        created: when it was evaluated, ISO 8601.
        commit: the commit of the repository that its config was in; None outside one.
        dirty: whether anything tracked there differed from it.
        name: what the evaluation is called.
        night: the date that was given; None if none was.
    """

    reference: str
    evaluation_id: str
    record: Path
    created: str
    commit: str | None
    dirty: bool
    name: str = ""
    night: str | None = None


@dataclass(frozen=True)
class RecordPair:
    """Two records that are compared.

    Attributes:
        base: what is compared with.
        candidate: what is compared.
        models: the models, (candidate's, base's).
    """

    base: Side
    candidate: Side
    models: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class DatasetFigure(ModelPair):
    """A measure that has one figure for all lists together and no score per query.

    Attributes:
        before: the figure in the base; None if it is undefined.
        after: the figure in the candidate, likewise.
    """

    before: float | None
    after: float | None


@dataclass(frozen=True)
class ChangePart:
    """What a figure's change is due to.

    Attributes:
        causes: what changed; several where their parts cannot be separated.
        amount: how much of the change is due to it, oriented.
        reason: why the causes cannot be separated; empty if there is only one.
    """

    causes: tuple[Cause, ...]
    amount: float
    reason: str = ""


@dataclass(frozen=True)
class ChangeSplit(ModelPair):
    """A figure's change taken apart, where judgments, queries or definitions changed too.

    Attributes:
        before: the figure in the base, as it was evaluated.
        after: the figure in the candidate.
        change: the second less the first, oriented; the parts add up to it.
        parts: in the order in which one thing after the other is changed.
    """

    before: float
    after: float
    change: float
    parts: tuple[ChangePart, ...]


@dataclass(frozen=True, eq=False)
class ComparisonReport:
    """What moved from the base to the candidate.

    Attributes:
        records: the records that are compared; one pair unless a reference means another record for each model.
        unlike: how judgments, queries and definitions differ, a line each; none where they are the same.
        moved: whether the score of any query of both, or any figure, is another.
        comparisons: the paired differences of every dataset, slice, measure and pair of models.
        leading: by dataset, the measure that queries and slices are looked at by.
        slice_changes: the slices in which the change by it differs from the rest, for each pair of models.
        largest_changes: the queries that moved most by it, for each pair of models.
        figures: the measures that have one figure of all lists together.
        splits: the changes taken apart, where `unlike` has a line.
        confidence: the level of the intervals.
        remarks: what was left out, and why.
        warnings: later records that were skipped because they are damaged, a line each.
        unchanged: by dataset, the pairs of models that have the same score and weight on every query of both.
        scores: by the leading measure, the scores of the other pairs query by query, with the largest changes.
        details: of the queries with the largest changes, what is known of them, if that was asked for.
        kinds: by dataset, what is evaluated: `rankings`, `ratings` or `scores`.
        practical_difference: by measure, the least difference that matters to the candidate.
    """

    records: tuple[RecordPair, ...]
    unlike: tuple[str, ...]
    moved: bool
    comparisons: tuple[Comparison, ...]
    leading: Mapping[str, str]
    slice_changes: tuple[SliceChange, ...]
    largest_changes: tuple[QueryChange, ...]
    figures: tuple[DatasetFigure, ...]
    splits: tuple[ChangeSplit, ...]
    confidence: float
    remarks: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    unchanged: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    scores: tuple[PairedScores, ...] = ()
    details: tuple[QueryDetail, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    practical_difference: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        """What is compared, and how much is in it."""
        ids = ", ".join(f"{pair.base.evaluation_id} → {pair.candidate.evaluation_id}" for pair in self.records)
        if not self.moved:
            return f"<ComparisonReport {ids}: nothing changed>"
        return f"<ComparisonReport {ids}: {len(self.differences)} differences, {len(self.slices)} of slices>"

    @property
    def base(self) -> Side:
        """The record that is compared with; the first one if there are several."""
        return self.records[0].base

    @property
    def candidate(self) -> Side:
        """The record that is compared; the first one if there are several."""
        return self.records[0].candidate

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The models, (candidate's, base's), of all records."""
        return tuple(models for pair in self.records for models in pair.models)

    @property
    def differences(self) -> pd.DataFrame:
        """A row per dataset, pair of models and measure, with the columns of `Comparison`; NaN for no figure."""
        return frame(Comparison, [line for line in self.comparisons if line.slice == ALL])

    @property
    def slices(self) -> pd.DataFrame:
        """The same of every slice."""
        return frame(Comparison, [line for line in self.comparisons if line.slice != ALL])

    @property
    def changed_slices(self) -> pd.DataFrame:
        """A row per slice in which the change differs from the rest, with the columns of `SliceChange`."""
        return frame(SliceChange, self.slice_changes)

    @property
    def queries(self) -> pd.DataFrame:
        """A row per query that moved most and relevant document of it: `doc_id`, `grade`, `rank_before`, `rank_after`;
        NaN where it was not retrieved, and one row without document where ranks were not kept.
        """
        import pandas as pd

        names = [field.name for field in fields(QueryChange) if field.name != "documents"]
        nothing = RankedDocument("", float("nan"), None, None)
        rows = [
            [*(getattr(query, name) for name in names), *vars(document).values()]
            for query in self.largest_changes
            for document in query.documents or (nothing,)
        ]
        table = pd.DataFrame(rows, columns=[*names, "doc_id", "grade", "rank_before", "rank_after"])
        return table.astype({"rank_before": float, "rank_after": float})

    @property
    def parts(self) -> pd.DataFrame:
        """A row per part of a figure's change: `causes` joined by ` + `, `amount` and `reason`."""
        import pandas as pd

        names = ["dataset", "model", "baseline", "measure"]
        rows = [
            [*(getattr(split, name) for name in names), " + ".join(part.causes), part.amount, part.reason]
            for split in self.splits
            for part in split.parts
        ]
        return pd.DataFrame(rows, columns=[*names, "causes", "amount", "reason"])
