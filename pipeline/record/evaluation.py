"""An evaluation: its manifest, result tables and scores, in memory or in the folder of its record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, overload

from rankledger.pipeline.data.joined import DataWarning, Failure, JoinStats, Scores
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
from rankledger.pipeline.record.manifest import Manifest

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


@dataclass(frozen=True)
class ListedDocument:
    """One of the first documents of a ranking.

    Attributes:
        rank: Rank from 1.
        doc_id: Document id. None if it is not judged and the ranking could not be read again.
        grade: Grade. None without judgment.
        title: Title. Empty if unknown.
    """

    rank: int
    doc_id: str | None
    grade: float | None
    title: str = ""


@dataclass(frozen=True)
class QueryDetail:
    """Details of a query: an entry of `queries.json`.

    Attributes:
        dataset: Dataset name.
        query_id: Query id.
        text: Text of the query. Empty if unknown.
        slices: Its slices, `column=value` each.
        lists: First documents of its ranking by model, `bm25 in ID` for a model of another record. Unknown rankings are
            left out.
    """

    dataset: str
    query_id: str
    text: str
    slices: tuple[str, ...]
    lists: Mapping[str, tuple[ListedDocument, ...]]


class Tables(dict[str, tuple[Any, ...]]):
    """Rows of result tables by name, and `results`, the scores. A record's are read on first use."""

    def __init__(
        self, rows: Mapping[str, tuple[Any, ...]], read: Callable[[str], tuple[Any, ...]] | None = None
    ) -> None:
        super().__init__(rows)
        self._read = read

    def __missing__(self, name: str) -> tuple[Any, ...]:
        if self._read is None:
            return ()
        self[name] = self._read(name)
        return self[name]

    def updated(self, **rows: tuple[Any, ...]) -> Tables:
        """Return the tables with other rows for some of them."""
        return Tables({**self, **rows}, self._read)


class Table(Generic[T]):
    """Declaration of a result table: its file in a record, and the type of its rows."""

    def __init__(self, file: str, row: type[T], *, has_header_alone: bool = False) -> None:
        self.file = file
        self.row = row
        self.has_header_alone = has_header_alone
        """True if a table without rows is written, too."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, evaluation: None, owner: type) -> Table[T]: ...
    @overload
    def __get__(self, evaluation: Evaluation, owner: type) -> tuple[T, ...]: ...
    def __get__(self, evaluation: Evaluation | None, owner: type) -> Table[T] | tuple[T, ...]:
        return self if evaluation is None else evaluation.tables[self.name]


State: TypeAlias = Literal["passed", "failed", "inconclusive", "incomplete"]


def find_state(verdicts: Sequence[Verdict], failures: Sequence[Failure], warnings: Iterable[DataWarning]) -> State:
    """Return the state of an evaluation, in the order of exit codes."""
    outcome = overall_outcome(verdicts)
    if outcome == "fail":
        return "failed"
    if failures or any(warning.measure for warning in warnings):
        return "incomplete"
    return "inconclusive" if outcome == "inconclusive" else "passed"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Everything that one evaluation measured, in memory or in a record.

    Attributes:
        manifest: Contents of `manifest.json`: settings, inputs, and definitions of the measures.
        tables: Rows of all result tables.
        path: Folder of the record, or where it would be.
        is_recorded: False if nothing was written.
        is_trusted: True if the user made the record on this machine. Nothing else chooses a server, a folder or code.
        warnings: Lines about problems that stopped nothing.
        store: MLflow store that has the evaluation, too. None if it is not tracked.
        untracked: Reason why it is not tracked, although it should be.
        unsaved: Reason why the record is in the runs folder alone.
        promotions: Lines about the promotions that were settled just now.
        unpromoted: Reason why a model was not promoted, although it should be.
        unsent: Reasons why alerts were not sent. The same command sends them later.
        source: Config and inputs, if they are in memory alone.
    """

    manifest: Manifest
    tables: Tables
    path: Path
    is_recorded: bool = True
    is_trusted: bool = False
    warnings: tuple[str, ...] = ()
    store: str | None = None
    untracked: str | None = None
    unsaved: str | None = None
    promotions: tuple[str, ...] = ()
    unpromoted: str | None = None
    unsent: tuple[str, ...] = ()
    source: Any = None

    # `commands.evaluate` sets these methods, because they need packages after this one.
    headline: ClassVar[property]
    compare: ClassVar[Callable[..., Any]]
    explain: ClassVar[Callable[..., Any]]
    to_latex: ClassVar[Callable[..., Any]]
    to_markdown: ClassVar[Callable[..., Any]]
    report: ClassVar[Callable[..., Any]]
    _repr_html_: ClassVar[Callable[..., Any]]

    estimates = Table("summary.csv", Estimate, has_header_alone=True)
    comparison_lines = Table("comparisons.csv", Comparison, has_header_alone=True)
    agreement = Table("agreement.csv", OrderAgreement)
    slice_changes = Table("slice_changes.csv", SliceChange, has_header_alone=True)
    components = Table("variance_components.csv", VarianceComponents)
    replicates = Table("replicates.csv", ReplicateEstimate)
    curves = Table("curves.csv", CurvePoint)
    changes = Table("changes.csv", ChangeSince)
    verdicts = Table("gates.json", Verdict)

    def __repr__(self) -> str:
        return f"<Evaluation {self.evaluation_id} in {self.record or 'memory'}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Evaluation) and all(
            getattr(self, name) == getattr(other, name) for name in ("path", "manifest", *TABLES)
        )

    __hash__ = None  # type: ignore[assignment]  # it holds tables

    @property
    def record(self) -> Path | None:
        """Folder of the record. None if nothing was recorded."""
        return self.path if self.is_recorded else None

    @property
    def evaluation_id(self) -> str:
        """`<UTC>-<name>-<8 hex>`."""
        return self.manifest.evaluation_id

    @property
    def name(self) -> str:
        """Name of the config."""
        return self.manifest.name

    @property
    def date(self) -> str:
        """Night that `--date` named. Empty if there was none."""
        return self.manifest.date or ""

    @property
    def confidence(self) -> float:
        """Level of the intervals. Tests use 1 - confidence."""
        return self.manifest.bootstrap.confidence

    @property
    def baseline(self) -> str | Sequence[str]:
        """Model that others are compared with, or several: each dataset uses the first it has."""
        return self.manifest.comparison.baseline if self.manifest.comparison else ""

    @cached_property
    def directions(self) -> Mapping[str, str]:
        """Side that is better, `higher` or `lower`, by measure."""
        return {measure: definition.direction for measure, definition in self.manifest.definitions.items()}

    @cached_property
    def quality(self) -> Mapping[tuple[str, str], JoinStats]:
        """Counts from joining outputs with judgments, by dataset and model."""
        return {
            task: JoinStats.of_replicates([output.quality for output in outputs])
            for task, outputs in self.manifest.tasks.items()
        }

    @property
    def results(self) -> tuple[Scores, ...]:
        """Scores by dataset and model, in the config's order."""
        return self.tables["results"]

    @property
    def contents(self) -> Mapping[str, Mapping[str, str]]:
        """Questions of each dataset, by query, if logs have them and the inputs are in memory."""
        return self.source[1].contents if self.source else {}

    @property
    def owners(self) -> Mapping[str, str]:
        """Owner of each model that has one."""
        return self.manifest.owners

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Model outputs that are missing or were rejected."""
        return tuple(self.manifest.failures)

    @property
    def data_warnings(self) -> tuple[DataWarning, ...]:
        """Likely faults of the inputs."""
        return tuple(self.manifest.warnings)

    @property
    def failed_measures(self) -> tuple[DataWarning, ...]:
        """Custom measures that failed, each with its dataset, its model and the reason."""
        return tuple(warning for warning in self.data_warnings if warning.measure)

    @cached_property
    def leading(self) -> Mapping[str, str]:
        """Lead measure of each dataset, used in every table and page.

        The mean of all datasets, `*`, leads with the first of their measures that it has.
        """
        measures: dict[str, dict[str, None]] = {}
        leads = self.manifest.lead
        for line in self.estimates:
            measures.setdefault(line.dataset, {})[line.measure] = None
        return {
            dataset: next(lead for lead in (leads.get(dataset, ""), *leads.values(), *own) if lead in own)
            for dataset, own in measures.items()
        }

    @cached_property
    def leading_difference(self) -> Mapping[str, str]:
        """Lead measure of each dataset's comparisons.

        If models are compared only by other measures, it is the first of those.
        """
        compared: dict[str, dict[str, None]] = {}
        for line in self.comparison_lines:
            compared.setdefault(line.dataset, {})[line.measure] = None
        return {dataset: lead_among(lead, compared.get(dataset, {})) or lead for dataset, lead in self.leading.items()}

    @property
    def summary(self) -> pd.DataFrame:
        """A row per dataset, model, slice and measure, with the columns of `Estimate`. Missing figures are NaN."""
        return frame(Estimate, self.estimates)

    @property
    def comparisons(self) -> pd.DataFrame:
        """A row per pair, measure and slice, with the columns of `Comparison`. Missing figures are NaN."""
        return frame(Comparison, self.comparison_lines)

    @property
    def changed_slices(self) -> pd.DataFrame:
        """A row per slice in which a difference is unlike the rest, with the columns of `SliceChange`."""
        return frame(SliceChange, self.slice_changes)

    @property
    def changes_since(self) -> pd.DataFrame:
        """A row per change since an earlier record, with the columns of `ChangeSince`. Missing figures are NaN."""
        return frame(ChangeSince, self.changes)

    @property
    def gates(self) -> pd.DataFrame:
        """A row per verdict, with the columns of `Verdict`. Missing figures are NaN."""
        return frame(Verdict, self.verdicts)

    @property
    def scores(self) -> pd.DataFrame:
        """A row per dataset, model and query, and a column per measure. NaN if undefined or not measured."""
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


TABLES = {name: table for name, table in vars(Evaluation).items() if isinstance(table, Table)}
"""Result tables by name, in the order of their files."""
