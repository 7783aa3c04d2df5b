"""Results of a comparison of two records, and of a plan by one. Positive changes and differences are better."""

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


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
        reference: Reference as it was written.
        evaluation_id: Record id.
        record: Record folder.
        created: Time of the evaluation, ISO 8601.
        commit: Commit of the config's repository. None outside one.
        dirty: True if tracked files had changes.
        name: Evaluation name.
        night: Date that was given. None without one.
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
        base: Record to compare with.
        candidate: Record that is compared.
        models: Models, (candidate's, base's).
    """

    base: Side
    candidate: Side
    models: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class DatasetFigure(ModelPair):
    """Figure of a measure that has no scores per query.

    Attributes:
        before: Base's figure. None if undefined.
        after: Candidate's figure. None if undefined.
    """

    before: float | None
    after: float | None


@dataclass(frozen=True)
class ChangePart:
    """Part of a figure's change.

    Attributes:
        causes: Causes, several if they cannot be separated.
        amount: Oriented amount.
        reason: Reason why the causes cannot be separated. Empty if there is only one.
    """

    causes: tuple[Cause, ...]
    amount: float
    reason: str = ""


@dataclass(frozen=True)
class ChangeSplit(ModelPair):
    """Parts of a figure's change, if judgments, queries or definitions changed too.

    Attributes:
        before: Base's recorded figure.
        after: Candidate's figure.
        change: Oriented difference, the sum of the parts.
        parts: Parts in the order of the steps.
    """

    before: float
    after: float
    change: float
    parts: tuple[ChangePart, ...]


@dataclass(frozen=True, eq=False)
class ComparisonReport:
    """Result of comparing a candidate with a base.

    Attributes:
        records: Records that are compared, one pair unless a reference means another record for each model.
        unlike: Differences of judgments, queries and definitions, a line each.
        moved: True if any score of a common query, or any figure, changed.
        comparisons: Paired differences of every dataset, slice, measure and pair of models.
        leading: Measure for queries and slices, by dataset.
        slice_changes: Slices in which the change by it differs from the rest, for each pair of models.
        largest_changes: Queries that moved most by it, for each pair of models.
        figures: Figures of measures that have no scores per query.
        splits: Parts of the changes, if `unlike` has a line.
        confidence: Level of the intervals.
        remarks: Lines about things that were left out.
        warnings: Later records that were skipped because they are damaged, a line each.
        unchanged: Pairs of models with the same scores and weights on every common query, by dataset.
        scores: Scores of the other pairs by the leading measure, with the largest changes.
        details: Details of the queries with the largest changes, if asked for.
        kinds: `rankings`, `ratings` or `scores`, by dataset.
        practical_difference: Minimum difference that matters to the candidate, by measure.
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
        ids = ", ".join(f"{pair.base.evaluation_id} → {pair.candidate.evaluation_id}" for pair in self.records)
        if not self.moved:
            return f"<ComparisonReport {ids}: nothing changed>"
        return f"<ComparisonReport {ids}: {len(self.differences)} differences, {len(self.slices)} of slices>"

    @property
    def base(self) -> Side:
        """Record to compare with, the first one if there are several."""
        return self.records[0].base

    @property
    def candidate(self) -> Side:
        """Record that is compared, the first one if there are several."""
        return self.records[0].candidate

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Models, (candidate's, base's), of all records."""
        return tuple(models for pair in self.records for models in pair.models)

    @property
    def differences(self) -> pd.DataFrame:
        """A row per dataset, pair of models and measure, with the columns of `Comparison`."""
        return frame(Comparison, [line for line in self.comparisons if line.slice == ALL])

    @property
    def slices(self) -> pd.DataFrame:
        """A row per dataset, pair of models, measure and slice, with the columns of `Comparison`."""
        return frame(Comparison, [line for line in self.comparisons if line.slice != ALL])

    @property
    def changed_slices(self) -> pd.DataFrame:
        """A row per slice in which the change differs from the rest, with the columns of `SliceChange`."""
        return frame(SliceChange, self.slice_changes)

    @property
    def queries(self) -> pd.DataFrame:
        """A row per relevant document of a query that moved most, with grade and ranks, NaN if not retrieved."""
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


@dataclass(frozen=True)
class PowerRow:
    """Difference that is planned, and its queries.

    Attributes:
        dataset: Dataset name.
        slice: `all`, or `column=value` of the queries table.
        measure: Measure as it is written.
        model: Model that is compared.
        baseline: Model that it is compared with.
        n_queries: Queries that are defined in both: those of the record, or an assumed number.
        n_clusters: Clusters of these queries, or the queries if there are no clusters.
    """

    dataset: str
    slice: str
    measure: str
    model: str
    baseline: str
    n_queries: int
    n_clusters: int


@dataclass(frozen=True)
class PowerLine(PowerRow):
    """Queries that one difference needs. Values are None if nothing can be planned.

    Attributes:
        std_dev: Standard deviation of the clusters' differences.
        kappa: Effective number of clusters behind it.
        power: Probability that the record's number of queries passes.
        detectable: Minimum sum of margin and change at which they pass with the wanted power.
        clusters_needed: Clusters that pass with the wanted power.
        queries_needed: Queries of these clusters, if clusters are as large as in the record.
        queries_low: Lower end of the interval of `queries_needed`, because the standard deviation is an estimate.
        queries_high: Upper end.
        mark: Reason why nothing can be planned: `replicates` differ, so that more queries are not enough, `few` (under
            30 clusters), `sparse` (a few clusters decide the variance), `degenerate` (all clusters differ alike), or
            empty.
        reason: Reason in a sentence, and the action.
    """

    std_dev: float | None
    kappa: float
    power: float | None
    detectable: float | None
    clusters_needed: int | None
    queries_needed: int | None
    queries_low: int | None
    queries_high: int | None
    mark: str = ""
    reason: str = ""


@dataclass(frozen=True)
class PowerPoint(PowerRow):
    """Point of a power curve.

    Attributes:
        power: Probability that they pass. None if there are fewer than 30 clusters.
        power_low: Lower end of its interval.
        power_high: Upper end.
        detectable: Minimum sum of margin and change at which they pass with the wanted power. None likewise.
    """

    power: float | None
    power_low: float | None
    power_high: float | None
    detectable: float | None


@dataclass(frozen=True, eq=False)
class PowerPlan:
    """Number of queries that a gate needs.

    Attributes:
        records: Records whose differences are used. Both sides are the same record by default.
        margin: Drop that the gate accepts.
        change: Assumed true change.
        wanted: Wanted power.
        confidence: Level of the intervals of gates and of the plan.
        lines: Results per dataset, pair of models and slice.
        points: Power curves of the lines that have one.
        remarks: Lines about things that were left out.
        warnings: Later records that were skipped because they are damaged, a line each.
    """

    records: tuple[RecordPair, ...]
    margin: float
    change: float
    wanted: float
    confidence: float
    lines: tuple[PowerLine, ...]
    points: tuple[PowerPoint, ...]
    remarks: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        ids = ", ".join(dict.fromkeys(pair.candidate.evaluation_id for pair in self.records))
        return f"<PowerPlan margin {self.margin:g}, power {self.wanted:g}, by {ids}: {len(self.lines)} lines>"

    @property
    def needed(self) -> pd.DataFrame:
        """A row per dataset, pair of models and slice, with the columns of `PowerLine`."""
        return frame(PowerLine, self.lines)

    @property
    def curve(self) -> pd.DataFrame:
        """A row per point of a power curve, with the columns of `PowerPoint`."""
        return frame(PowerPoint, self.points)


def night_label(night: str | None, *, year: bool = False) -> str:
    """Return a night such as `Fri 20 Nov`. Other labels are unchanged, None is empty."""
    try:
        day = date.fromisoformat(night or "")
    except ValueError:
        return night or ""
    text = f"{_DAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]}"
    return f"{text} {day.year}" if year else text
