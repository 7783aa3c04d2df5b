"""Results: scores per query, estimates, comparisons, and the evaluation that holds them.

Differences are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from rankledger.pipeline.data.joined import DataWarning, Failure, JoinStats
from rankledger.pipeline.data.scores import Scores
from rankledger.pipeline.gates.verdicts import Verdict, overall_outcome
from rankledger.pipeline.inference.tables import (
    ChangeSince,
    Comparison,
    CurvePoint,
    Estimate,
    OrderAgreement,
    ReplicateEstimate,
    SliceChange,
    VarianceComponents,
    frame,
    lead_among,
)

if TYPE_CHECKING:
    import pandas as pd

    from rankledger.pipeline.record.manifest import Manifest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


T = TypeVar("T")


@dataclass(frozen=True)
class ListedDocument:
    """One of the first documents of a ranking.

    Attributes:
        rank: its place, from 1.
        doc_id: the document; None if it is not judged and the ranking could not be read again.
        grade: as it was judged; None without judgment.
        title: what it is called; empty if that is not known.
    """

    rank: int
    doc_id: str | None
    grade: float | None
    title: str = ""


@dataclass(frozen=True)
class QueryDetail:
    """What a person sees of a query: an entry of `queries.json`.

    Attributes:
        dataset: the dataset's name.
        query_id: the query.
        text: what it says; empty if the queries table does not say, or there is none.
        slices: those that it is in, `column=value` each.
        lists: by model, `bm25 in ID` for a model of another record, the first documents of its ranking; those that
            nothing is known of are left out.
    """

    dataset: str
    query_id: str
    text: str
    slices: tuple[str, ...]
    lists: Mapping[str, tuple[ListedDocument, ...]]


class _Table(cached_property[tuple[T, ...]]):
    """The lines of a table of a record, had when it is first asked for; none if the record has no such table."""

    def __init__(self) -> None:
        """The table of the name that it has in its class."""
        super().__init__(lambda record: record._lines(self.attrname))


class Record:
    """A finished record as it lies on disk.

    A table is had when it is first asked for: those of a large evaluation take seconds to read, and whoever wants the
    scores of a record, or to know whether it is whole, needs none. It raises an InputError if it is not what was
    written.

    Attributes:
        path: its folder.
        manifest: what `manifest.json` holds.
        is_trusted: True if the user made the record on this machine. Nothing else chooses a server, a folder or code.
        summary: the lines of `summary.csv`.
        comparisons: those of `comparisons.csv`.
        slice_changes: those of `slice_changes.csv`.
        verdicts: those of `gates.json`.
        agreement: those of `agreement.csv`.
        replicates: those of `replicates.csv`.
        components: those of `variance_components.csv`.
        changes: those of `changes.csv`.
        curves: those of `curves.csv`.
    """

    summary = _Table[Estimate]()
    comparisons = _Table[Comparison]()
    slice_changes = _Table[SliceChange]()
    verdicts = _Table[Verdict]()
    agreement = _Table[OrderAgreement]()
    replicates = _Table[ReplicateEstimate]()
    components = _Table[VarianceComponents]()
    changes = _Table[ChangeSince]()
    curves = _Table[CurvePoint]()

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        lines: Callable[[str], tuple[Any, ...]] = lambda name: (),
        *,
        is_trusted: bool = False,
    ) -> None:
        """Know where the record is, and what gives the lines of each of its tables, by its name here."""
        self.path = path
        self.manifest = manifest
        self.is_trusted = is_trusted
        self._lines = lines

    def __eq__(self, other: object) -> bool:
        """Whether that is a record, written or read, that holds the same."""
        if not isinstance(other, Record):
            return False
        names = [name for name, table in vars(Record).items() if isinstance(table, _Table)]
        return all(getattr(self, name) == getattr(other, name) for name in ("path", "manifest", *names))

    __hash__ = None  # type: ignore[assignment]  # it holds tables


State: TypeAlias = Literal["passed", "failed", "inconclusive", "incomplete"]


def find_state(verdicts: Sequence[Verdict], failures: Sequence[Failure], warnings: Iterable[DataWarning]) -> State:
    """Return the state of an evaluation, in the order of exit codes.

    Args:
        verdicts: the gates' verdicts.
        failures: the model outputs that are missing or were refused.
        warnings: warnings of the data; a warning with a measure says that the measure failed.
    """
    outcome = overall_outcome(verdicts)
    if outcome == "fail":
        return "failed"
    if failures or any(warning.measure for warning in warnings):
        return "incomplete"
    return "inconclusive" if outcome == "inconclusive" else "passed"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What one evaluation measured.

    Attributes:
        evaluation_id: `<UTC>-<name>-<8 hex>`.
        name: the config's name.
        directions: whether higher or lower is better, by measure.
        results: one `Scores` per dataset and model, in the config's order; none where it was read from its record.
        estimates: the lines of the summary.
        quality: what the join found, by (dataset, model).
        failures: the model outputs that were missing or refused.
        record: the record's folder; None if no model output was evaluated: then there is no record.
        store: the MLflow store that holds it too; None where it was not tracked.
        untracked: why it was not tracked though it should have been.
        unsaved: why the record is not where records are kept, but in the runs folder alone.
        promotions: what became of the promotions that were settled just now, a line each.
        unpromoted: why a model was not promoted though it should have been.
        unsent: why alerts were not sent, a line each; the same command sends them later.
        warnings: what is worth knowing and stopped nothing, a line each.
        data_warnings: what is likely wrong with the inputs.
        comparison_lines: the paired comparisons.
        slice_changes: the slices in which a difference is not that of the rest, if they were searched.
        verdicts: what the gates say.
        agreement: how far each measure agrees with the lead measure on the order of models.
        confidence: level of the intervals; tests use 1 − confidence.
        lead: by dataset, the lead measure of the plan.
        replicates: the figures of each replicate of models that are families.
        components: what the errors of families of replicates are made of.
        baseline: the model that the others are compared with, or several: each dataset uses the first it has.
        changes: how figures changed since the record before, and since the accepted one.
        date: its night, as `--date` gave it; empty without.
        owners: who answers for each model that has an owner.
    """

    evaluation_id: str
    name: str
    directions: Mapping[str, str]
    results: tuple[Scores, ...]
    estimates: tuple[Estimate, ...]
    quality: Mapping[tuple[str, str], JoinStats]
    failures: tuple[Failure, ...]
    record: Path | None
    store: str | None = None
    untracked: str | None = None
    unsaved: str | None = None
    promotions: tuple[str, ...] = ()
    unpromoted: str | None = None
    unsent: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    data_warnings: tuple[DataWarning, ...] = ()
    comparison_lines: tuple[Comparison, ...] = ()
    slice_changes: tuple[SliceChange, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    agreement: tuple[OrderAgreement, ...] = ()
    confidence: float = 0.95
    lead: Mapping[str, str] = field(default_factory=dict)
    replicates: tuple[ReplicateEstimate, ...] = ()
    components: tuple[VarianceComponents, ...] = ()
    baseline: str | Sequence[str] = ""
    changes: tuple[ChangeSince, ...] = ()
    date: str = ""
    owners: Mapping[str, str] = field(default_factory=dict)

    @property
    def failed_measures(self) -> tuple[DataWarning, ...]:
        """Measures of the user's own that failed, each with its dataset, its model and the reason."""
        return tuple(warning for warning in self.data_warnings if warning.measure)

    def __repr__(self) -> str:
        """Which one it is and where: all of its fields would be as long as the record."""
        return f"<Evaluation {self.evaluation_id} in {self.record or 'memory'}>"

    @cached_property
    def leading(self) -> Mapping[str, str]:
        """By dataset, the lead measure used in every table and page.

        The mean of all datasets, `*`, leads with the first of their measures that it has.
        """
        measures: dict[str, dict[str, None]] = {}
        for line in self.estimates:
            measures.setdefault(line.dataset, {})[line.measure] = None
        return {
            dataset: next(lead for lead in (self.lead.get(dataset, ""), *self.lead.values(), *own) if lead in own)
            for dataset, own in measures.items()
        }

    @cached_property
    def leading_difference(self) -> Mapping[str, str]:
        """By dataset, the measure whose differences lead: the lead measure.

        Where models are compared by others alone, it is the first of those.
        """
        compared: dict[str, dict[str, None]] = {}
        for line in self.comparison_lines:
            compared.setdefault(line.dataset, {})[line.measure] = None
        return {dataset: lead_among(lead, compared.get(dataset, {})) or lead for dataset, lead in self.leading.items()}

    @property
    def summary(self) -> pd.DataFrame:
        """A row per dataset, model, slice and measure, with the columns of `Estimate`; NaN if there is no figure."""
        return frame(Estimate, self.estimates)

    @property
    def comparisons(self) -> pd.DataFrame:
        """A row per pair, measure and slice, with the columns of `Comparison`; NaN if there is no figure."""
        return frame(Comparison, self.comparison_lines)

    @property
    def changed_slices(self) -> pd.DataFrame:
        """A row per slice in which a difference is not that of the rest, with the columns of `SliceChange`."""
        return frame(SliceChange, self.slice_changes)

    @property
    def changes_since(self) -> pd.DataFrame:
        """A row per change since an earlier record, with the columns of `ChangeSince`; NaN if there is no figure."""
        return frame(ChangeSince, self.changes)

    @property
    def gates(self) -> pd.DataFrame:
        """A row per verdict, with the columns of `Verdict`; NaN if there is no figure."""
        return frame(Verdict, self.verdicts)

    @property
    def scores(self) -> pd.DataFrame:
        """A row per dataset, model and query, and a column per measure; NaN where undefined or not measured there."""
        import pandas as pd

        tables = [
            pd.DataFrame(
                {"dataset": result.dataset, "model": result.model, "query_id": result.query_ids}
                | {str(measure): row for measure, row in zip(result.measures, result.values, strict=True)}
            )
            for result in self.results
        ]
        if not tables:
            return pd.DataFrame(columns=["dataset", "model", "query_id"])
        return pd.concat(tables, ignore_index=True)


def evaluation_of(record: Record) -> Evaluation:
    """The evaluation that a record is of, without the scores of its queries and the warnings, which no report shows.

    What is printed of it, and its note in MLflow, are the same as when it was evaluated, to the letter.
    """
    manifest = record.manifest
    return Evaluation(
        evaluation_id=manifest.evaluation_id,
        name=manifest.name,
        directions={measure: found.direction for measure, found in manifest.definitions.items()},
        results=(),
        estimates=record.summary,
        quality={
            task: JoinStats.of_replicates([output.quality for output in outputs])
            for task, outputs in manifest.tasks.items()
        },
        failures=tuple(manifest.failures),
        record=record.path,
        data_warnings=tuple(manifest.warnings),
        comparison_lines=record.comparisons,
        slice_changes=record.slice_changes,
        verdicts=record.verdicts,
        agreement=record.agreement,
        replicates=record.replicates,
        components=record.components,
        confidence=manifest.bootstrap.confidence,
        lead=manifest.lead,
        baseline=manifest.comparison.baseline if manifest.comparison else "",
        changes=record.changes,
        date=manifest.date or "",
        owners=manifest.owners,
    )
