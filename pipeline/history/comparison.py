"""Results of a comparison of two records, and the scores that the two have in common. Positive changes are better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.measure import Measure
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.checks import content_warning, rename_by_content
from rankledger.pipeline.data.dataset import describe, group_queries
from rankledger.pipeline.data.joined import Groups, Scores
from rankledger.pipeline.data.outputs import refuse_changed
from rankledger.pipeline.data.rows import short_digest
from rankledger.pipeline.history.baselines import RecordedDataset
from rankledger.pipeline.history.changes import definition_differences
from rankledger.pipeline.history.references import Pair, Sides, measure_among
from rankledger.pipeline.inference.power import PowerLine, PowerPoint
from rankledger.pipeline.inference.tables import (
    ALL,
    Comparison,
    ModelPair,
    PairedScores,
    QueryChange,
    RankedDocument,
    SliceChange,
    frame,
    lead_among,
)
from rankledger.pipeline.record.evaluation import QueryDetail
from rankledger.pipeline.record.manifest_parts import OPTIONAL, InputChange
from rankledger.pipeline.record.scores import SCORES, read_contents, read_scores
from rankledger.pipeline.record.workspace import Opened, refuse_foreign_inputs
from rankledger.pipeline.support.errors import InputError, shorten

if TYPE_CHECKING:
    import pandas as pd

Cause: TypeAlias = Literal[
    "queries removed", "definition", "judgments", "excluded documents", "queries added", "documents", "output"
]

ChangeStep: TypeAlias = tuple[Cause, float | None, str]
"""A change of the inputs, the figure after it, and the reason why that is None."""


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Side:
    """Side of a comparison.

    Attributes:
        reference: Reference as written.
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
    """Pair of records that are compared.

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
        before: Base's value. None if undefined.
        after: Candidate's value. None if undefined.
    """

    before: float | None
    after: float | None


@dataclass(frozen=True)
class ChangePart:
    """Part of a value's change.

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
    """Parts of a value's change, if judgments, queries or definitions changed too.

    Attributes:
        before: Base's recorded value.
        after: Candidate's value.
        change: Oriented difference, the sum of the parts.
        parts: Parts in the order of the steps.
    """

    before: float
    after: float
    change: float
    parts: tuple[ChangePart, ...]


def split_change(before: float, steps: Sequence[ChangeStep], *, sign: float = 1.0) -> tuple[ChangePart, ...]:
    """Return the parts of a change, which add up to the last value less the first.

    The steps before and after an unknown value are one part with several causes. `sign` is -1 if lower is better.

    Reference:
        Das Gupta 1993, Standardization and Decomposition of Rates, chapter 1: in a sequential decomposition the joint
        effect of two changes goes to the later one.
    """
    parts: list[ChangePart] = []
    causes: list[Cause] = []
    reasons: list[str] = []
    for cause, figure, reason in steps:
        causes.append(cause)
        if figure is None:
            reasons.append(reason)
            continue
        parts.append(ChangePart(tuple(causes), sign * (figure - before), "; ".join(dict.fromkeys(reasons))))
        before, causes, reasons = figure, [], []
    return tuple(parts)


@dataclass(frozen=True, eq=False)
class ComparisonReport:
    """Result of comparing a candidate with a base.

    Attributes:
        records: Records that are compared, one pair unless a reference means another record for each model.
        unlike: Differences of judgments, queries and definitions, a line each.
        moved: True if any score of a common query, or any value, changed.
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
        """A row per part of a value's change: `causes` joined by ` + `, `amount` and `reason`."""
        import pandas as pd

        names = ["dataset", "model", "baseline", "measure"]
        rows = [
            [*(getattr(split, name) for name in names), " + ".join(part.causes), part.amount, part.reason]
            for split in self.splits
            for part in split.parts
        ]
        return pd.DataFrame(rows, columns=[*names, "causes", "amount", "reason"])


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


@dataclass(frozen=True, eq=False)
class Match:
    """Dataset of both sides with their scores, and the measures that both have per query."""

    before: RecordedDataset
    after: RecordedDataset
    scores: Mapping[Pair, tuple[Scores, Scores]]
    measures: tuple[Measure, ...]
    contents: str = ""  # warning on query ids with other contents

    @property
    def name(self) -> str:
        return self.after.planned.name

    @cached_property
    def query_ids(self) -> npt.NDArray[np.object_]:
        before, after = next(iter(self.scores.values()))
        ids_before = set(before.query_ids.tolist())
        return np.array([query_id for query_id in after.query_ids.tolist() if query_id in ids_before], dtype=object)

    @property
    def n_removed(self) -> int:
        return len(next(iter(self.scores.values()))[0].query_ids) - len(self.query_ids)

    @property
    def n_added(self) -> int:
        return len(next(iter(self.scores.values()))[1].query_ids) - len(self.query_ids)

    @cached_property
    def differences(self) -> Mapping[Measure, tuple[InputChange, ...]]:
        """Differing inputs besides outputs and queries, by measure."""
        changes = {}
        for measure in self.measures:
            then, now = (side.comparability(measure) for side in (self.before, self.after))
            changes[measure] = tuple(change for change in then.differences(now) if change.kind != "queries")
        return changes

    def differs_by(self, measure: Measure, *kinds: str) -> bool:
        return any(change.kind in kinds for change in self.differences[measure])

    def unlike(self) -> Iterator[str]:
        kinds = {change.kind for changes in self.differences.values() for change in changes}
        if "judgments" in kinds:
            judged = [file for side in (self.before, self.after) for file in side.files_of("judgments", "ratings")[:1]]
            digests = [short_digest(file.digest) for file in judged]
            yield f"{self.name}: the judgments differ ({' and '.join(digests)})"
        if "excluded documents" in kinds:
            excluded = [_describe_exclusions(side) for side in (self.before, self.after)]
            yield f"{self.name}: the excluded documents differ ({' and '.join(excluded)})"
        if self.n_removed or self.n_added:
            yield f"{self.name}: the queries differ ({self.n_removed:,} are gone, {self.n_added:,} are new)"
        for kind in OPTIONAL:
            if names := [str(measure) for measure in self.measures if self.differs_by(measure, kind)]:
                yield f"{self.name}: the {kind} differ, which count in {', '.join(names)}"
        redefined = [str(measure) for measure in self.measures if self.differs_by(measure, "definition")]
        for line in definition_differences(
            self.before.record.manifest, self.after.record.manifest, redefined, self.name
        ):
            yield f"{self.name}: the definitions differ: {line}"

    def shared(self, pair: Pair) -> tuple[Scores, Scores]:
        before, after = (_only(scores, self.query_ids, self.measures) for scores in self.scores[pair])
        return before, after

    def comparable(self) -> Match | None:
        measures = tuple(measure for measure in self.measures if not self.differences[measure])
        return replace(self, measures=measures) if measures else None

    def only(self, measure: Measure) -> Match:
        return replace(self, measures=(measure,))

    @cached_property
    def unchanged(self) -> tuple[Pair, ...]:
        """Pairs of models with the same score and weight by every measure on each query of both."""
        return tuple(pair for pair in self.scores if _are_equal(*self.shared(pair)))

    def changed(self) -> Match | None:
        changed = {pair: scores for pair, scores in self.scores.items() if pair not in self.unchanged}
        return replace(self, scores=changed) if changed else None

    def paired(self) -> tuple[list[Scores], dict[tuple[str, str], Pair]]:
        """Return the scores of every model on the queries of both under unique names, and the pairs of these names."""
        results: dict[str, Scores] = {}
        pairs: dict[tuple[str, str], Pair] = {}
        for pair in self.scores:
            model, baseline = f"{self.after.record.path}#{pair[0]}", f"{self.before.record.path}#{pair[1]}"
            before, after = self.shared(pair)
            results |= {model: replace(after, model=model), baseline: replace(before, model=baseline)}
            pairs[model, baseline] = pair
        return [*results.values()], pairs

    def groups(self) -> Groups:
        planned = self.after.planned
        if planned.queries is None:
            return Groups()
        refuse_foreign_inputs(self.after.opened)
        queries = planned.queries.shown
        refuse_changed(self.after.record.manifest.datasets[self.name].files("queries"), describe(queries))
        table = readers.read_queries(queries, further=planned.shown.group_columns, others=True)
        return group_queries(self.query_ids, table, planned.cluster, planned.slices)


def _describe_exclusions(side: RecordedDataset) -> str:
    parts = [short_digest(file.digest) for file in side.files_of("exclude")[:1]]
    parts += ["exclude_self"] if side.planned.exclude_self else []
    if side.planned.seen == "remove":
        parts += [f"seen: remove, {short_digest(file.digest)}" for file in side.files_of("interactions")[:1]]
    return " with ".join(parts) or "none"


def match_datasets(sides: Sides) -> tuple[Match, ...]:
    """Return the datasets on which two models were evaluated on both sides, with common queries and measures."""
    before = {dataset.name: dataset for dataset in sides.base.planned.datasets}
    matches = [
        _match(RecordedDataset(sides.base, base), RecordedDataset(sides.candidate, after), sides.pairs)
        for after in sides.candidate.planned.datasets
        if (base := before.get(after.name) or before.get(after.was or ""))
    ]
    return tuple(match for match in matches if match.scores and match.measures and len(match.query_ids))


def _match(before: RecordedDataset, after: RecordedDataset, pairs: Sequence[Pair]) -> Match:
    measures = [measure for measure in after.planned.measures if measure.metric.per == "query"]
    scores: dict[Pair, tuple[Scores, Scores]] = {}
    then, now = (read_contents(side.record, after.planned.name) for side in (before, after))
    ids, n_differing = rename_by_content(then, now)
    for model, baseline in pairs:
        scores_after = read_scores(after.record, after.planned.name, model, measures)
        scores_before = read_scores(before.record, before.planned.name, baseline, measures)
        if scores_after is not None and scores_before is not None:
            scores[model, baseline] = (scores_before.renamed(ids), scores_after)
    for side, side_scores in zip((before, after), zip(*scores.values(), strict=True), strict=False):
        if any(not np.array_equal(other.query_ids, side_scores[0].query_ids) for other in side_scores):
            different = f"models have scores of different queries of '{shorten(side.planned.name)}'"
            raise InputError(f"{side.record.path / SCORES}: {different}; restore it")
    measured = [set(side.measures) for both in scores.values() for side in both]
    name, warning = after.planned.name, ""
    if n_differing:
        warning = f"{name}: {content_warning(now, n_differing, 'in the base', paired=bool(ids))}"
    return Match(before, after, scores, tuple(m for m in measures if all(m in side for side in measured)), warning)


def _are_equal(one: Scores, other: Scores) -> bool:
    pairs = [(one.values, other.values), (one.weights, other.weights)]
    pairs += [(means, other.moments.get(measure, means)) for measure, means in one.moments.items()]
    return all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


def _only(scores: Scores, query_ids: npt.NDArray[np.object_], measures: Sequence[Measure]) -> Scores:
    column_of = {query_id: column for column, query_id in enumerate(scores.query_ids.tolist())}
    columns = [column_of[query_id] for query_id in query_ids.tolist()]
    rows = [scores.measures.index(measure) for measure in measures]
    moments = {measure: means[:, columns] for measure, means in scores.moments.items() if measure in measures}
    if len(columns) < len(scores.query_ids):
        moments |= {key: np.full_like(means, np.nan) for key, means in moments.items() if not key.has_slices}
    return replace(
        scores,
        query_ids=query_ids,
        measures=tuple(measures),
        values=scores.values[np.ix_(rows, columns)],
        weights=scores.weights[np.ix_(rows, columns)],
        missing=scores.missing[columns],
        moments=moments,
        replicates=tuple(_only(replicate, query_ids, measures) for replicate in scores.replicates),
    )


def leading_measures(
    matches: Sequence[Match], asked: str | None, lead: Mapping[str, Measure], lacking: str = "the two do not both have"
) -> dict[str, Measure]:
    """Return the leading measure of each dataset that has it: the asked one, else the lead measure or the first."""
    shared: dict[str, list[Measure]] = {}
    for match in matches:
        measures = shared.setdefault(match.name, [*match.measures])
        shared[match.name] = [measure for measure in measures if measure in match.measures]
    if asked is None:
        chosen = {name: lead_among(lead.get(name), measures) for name, measures in shared.items()}
        return {name: measure for name, measure in chosen.items() if measure is not None}
    names = dict.fromkeys(str(measure) for measures in shared.values() for measure in measures)
    written = measure_among(asked, names, lacking)
    return {dataset: measure for dataset, measures in shared.items() for measure in measures if str(measure) == written}


def record_pairs(base: str, candidate: str, matched: Sequence[tuple[Sides, Sequence[Match]]]) -> Iterator[RecordPair]:
    """Yield the pairs of records whose models were compared."""
    for sides, matches in matched:
        if models := tuple(dict.fromkeys(pair for match in matches for pair in match.scores)):
            yield RecordPair(_side(base, sides.base), _side(candidate, sides.candidate), models)


def _side(reference: str, opened: Opened) -> Side:
    assert opened.record is not None, "a reference means a record"
    record = opened.record
    git = record.manifest.environment.git
    return Side(
        reference=reference,
        evaluation_id=record.manifest.evaluation_id,
        record=record.path,
        created=record.manifest.created,
        commit=git.commit if git else None,
        dirty=git is not None and bool(git.dirty),
        name=record.manifest.name,
        night=record.manifest.date,
    )
