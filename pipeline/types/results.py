"""Results: scores per query, estimates, comparisons, and the evaluation that holds them.

Differences are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.types.gates import Verdict, overall_outcome
from rankledger.pipeline.types.joined import ModelKey, OutputKey, Quality, RecordedModel, Replicate
from rankledger.pipeline.types.tables import (
    ChangeSince,
    CurvePoint,
    Decision,
    OrderAgreement,
    ReplicateEstimate,
    SliceChange,
    VarianceComponents,
    decide,
    frame,
)

if TYPE_CHECKING:
    import pandas as pd

    from rankledger.pipeline.types.manifest import Manifest

ALL = "all"
"""The slice that every query is in."""

_Measure = TypeVar("_Measure", Measure, str)
T = TypeVar("T")


def lead_among(lead: _Measure | None, measures: Collection[_Measure]) -> _Measure | None:
    """The lead measure if it is one of these, else the first of them; None if there is none."""
    return lead if lead in measures else next(iter(measures), None)


@dataclass(frozen=True, eq=False)
class Scores:
    """One model's scores on one dataset: a row per judged query, in the order of their ids as UTF-8 bytes.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        query_ids: (Q,) ids.
        measures: the M measures of the rows of `values`.
        values: (M, Q) scores, NaN where undefined.
        weights: (M, Q) what each query weighs in the mean: 1, or its pairs where the measure is pooled.
        figures: the measures that have one figure per dataset and none per query.
        missing: (Q,) whether the query is without output.
        tie_bounds: (3, M, Q) the least, mean and greatest score over all orders of tied documents, where asked for;
            NaN where undefined, and for measures that rank nothing.
        moments: by measure the (S, Q) means that its figure is made of, where that is none of its scores.
        figure_errors: the jackknife standard error of each of `figures`, NaN where it is undefined.
        record: the hash of the record's manifest that the scores are of; None for scores of this evaluation.
        replicates: the scores of each replicate, whose means these are; empty for a model with one output.
        replicate: the name of the replicate; empty for a model's own scores.
        shared_seeds: whether replicates of the same name have the same seed as those of other models that say so.
        failed: by measure of the user's own that failed, why; its scores are NaN, and count as nothing.
        unscored: (Q,) whether an external score that had to be given is undefined; False of other scores.
        n_gone: by measure, queries that a record scored and that the dataset no longer has, if no table names them.
    """

    dataset: str
    model: str
    query_ids: npt.NDArray[np.object_]
    measures: tuple[Measure, ...]
    values: Floats
    weights: Floats
    figures: Mapping[Measure, float]
    missing: Bools
    tie_bounds: Floats | None = None
    moments: Mapping[Measure, Floats] = field(default_factory=dict)
    figure_errors: Mapping[Measure, float] = field(default_factory=dict)
    record: str | None = None
    replicates: tuple[Scores, ...] = ()
    replicate: str = ""
    shared_seeds: bool = False
    failed: Mapping[Measure, str] = field(default_factory=dict)
    unscored: Bools = field(default_factory=lambda: np.array(False))
    n_gone: Mapping[Measure, int] = field(default_factory=dict)

    def renamed(self, ids: Mapping[str, str]) -> Scores:
        """Return the same scores with other ids of some queries."""
        query_ids = np.array([ids.get(query_id, query_id) for query_id in self.query_ids.tolist()], dtype=object)
        return replace(self, query_ids=query_ids, replicates=tuple(own.renamed(ids) for own in self.replicates))

    @property
    def key(self) -> ModelKey:
        """What they are found by among the scores of a dataset."""
        return self.model if self.record is None else RecordedModel(self.model, self.record)

    @property
    def output(self) -> OutputKey:
        """The output that they are of."""
        return self.dataset, Replicate(self.model, self.replicate) if self.replicate else self.model


@dataclass(frozen=True)
class Estimate:
    """One line of the summary; None if there is no figure.

    Attributes:
        dataset: the dataset's name; `*` for the mean of all datasets.
        model: the model's name.
        slice: `all`, or `column=value` of the queries table.
        measure: the measure as it is written.
        estimate: the figure over the queries of the slice; None where it is undefined.
        ci_low: lower end of the confidence interval.
        ci_high: upper end.
        std_error: standard deviation of the figure over the resamples; by the jackknife for a figure of a set.
        n_queries: judged queries of the slice.
        n_missing: those without output.
        n_undefined: those whose score is undefined.
        n_clusters: clusters that the figure rests on: those of the queries that are in its mean, each query being one
            if there are no clusters.
        mark: why the interval is not to be trusted: `sparse`, where a few clusters decide it (κ below 8),
            `degenerate`, where all clusters are alike; or empty.
        ties_least: the least figure over all orders of tied documents; None where that was not asked for.
        ties_expected: the mean figure over them.
        ties_greatest: the greatest.
        rank_low: the best rank that the model may have among those of the dataset, from 1; None for slices, and where
            the models have no ranks. The intervals of all models by one measure cover together.
        rank_high: the worst.
    """

    dataset: str
    model: str
    slice: str
    measure: str
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    n_queries: int
    n_missing: int
    n_undefined: int
    n_clusters: int = 0
    mark: str = ""
    ties_least: float | None = None
    ties_expected: float | None = None
    ties_greatest: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None


REPLICATE_TEST = "variance components"
"""What makes the p-values of differences with a family of replicates."""

Role: TypeAlias = Literal["primary", "exploratory", ""]
"""Of a comparison; see `Comparison.role`."""

PAIRED_REPLICATE_TEST = "variance components of paired replicates"
"""The same, of two families whose replicates share their seeds."""

_ROUNDING = 1e-12  # of the greater of two figures: a difference that is not greater is none


@dataclass(frozen=True)
class Comparison:
    """Two models on the same queries, by one measure: a line of `comparisons.csv`; None if there is no figure.

    Attributes:
        dataset: the dataset's name.
        slice: `all`, or `column=value` of the queries table.
        measure: the measure as it is written.
        model: the model that is compared.
        baseline: the model that it is compared with.
        estimate: the model's figure over the queries that are defined in both.
        baseline_estimate: the baseline's over the same queries.
        difference: the model's less the baseline's, the other way round where lower is better.
        ci_low: lower end of the difference's confidence interval.
        ci_high: upper end.
        std_error: standard deviation of the difference over the resamples.
        p_value: of the test that there is no difference; 1 if no query changed, which needs no test.
        p_corrected: the same among all tests of the family.
        family: what the family is, in words.
        effect_size: the mean difference in standard deviations of the differences.
        wins: queries on which the model is better.
        ties: queries on which they are equal.
        losses: queries on which it is worse.
        minimum_detectable_difference: the least difference that would be found in 80% of samples of this size.
        n_queries: queries that are defined in both.
        n_clusters: clusters that they are in; the queries themselves if there are none.
        mark: why the interval is approximate: `sparse`, `degenerate`, or empty. The p-value decides all the same.
        test: what made the p-value: `variance components`, or `variance components of paired replicates`, if one of the
            two models has replicates; else in the primary family `bootstrap-t`, or `randomization` if few queries
            decide the difference; else `randomization`, `t` or `bootstrap`; empty if there is none.
        role: `primary`, of the family of the lead measure on all queries, whose intervals hold together;
            `exploratory`, beside such a family; empty if there is no test, or no primary family was asked for.
        p_least: the least p-value that so many resamples or permutations can give: a p-value that equals it would be
            less with more of them. None if the p-value is not counted among draws.
        correction: how the p-value is corrected: `maxt`, `holm`, `bh` or `none`; empty if there is no test.
    """

    dataset: str
    slice: str
    measure: str
    model: str
    baseline: str
    estimate: float | None
    baseline_estimate: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    p_value: float | None
    p_corrected: float | None
    family: str
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    minimum_detectable_difference: float | None
    n_queries: int
    n_clusters: int
    mark: str = ""
    test: str = ""
    role: Role = ""
    p_least: float | None = None
    correction: str = ""

    def decide(self, alpha: float) -> Decision:
        """Return what the corrected p-value decides, or the p-value if there is no correction."""
        p_value = self.p_value if self.p_corrected is None else self.p_corrected
        return decide(self.without_rounding().difference, p_value, alpha)

    @property
    def is_primary(self) -> bool:
        """True if the line is of the primary family."""
        return self.role == "primary"

    @property
    def is_of_replicates(self) -> bool:
        """Whether one of the two models has replicates, by whose variance components the p-value is."""
        return self.test in (REPLICATE_TEST, PAIRED_REPLICATE_TEST)

    def without_rounding(self) -> Comparison:
        """The line with 0 for a difference or an end of its interval that is but the rounding of the two figures.

        Figures that are equal to 12 digits are equal, as scores are where wins are counted: 0.1 + 0.2 - 0.3 is 0,
        though not in doubles, nor in the steps that resampled scores are rounded to.
        """
        least = _ROUNDING * max(abs(self.estimate or 0.0), abs(self.baseline_estimate or 0.0))
        difference, low, high = (
            0.0 if value is not None and abs(value) <= least else value
            for value in (self.difference, self.ci_low, self.ci_high)
        )
        return replace(self, difference=difference, ci_low=low, ci_high=high)


@dataclass(frozen=True)
class DataWarning:
    """What is likely wrong with the inputs, though nothing had to be refused.

    Attributes:
        dataset: the dataset's name.
        model: the model whose output it is of; empty where it is of the dataset itself.
        warning: one line.
        measure: the measure of the user's own that failed, and has no figures; empty where it is of something else.
    """

    dataset: str
    model: str
    warning: str
    measure: str = ""

    def __str__(self) -> str:
        """The line with what it is of."""
        return f"{self.model} on {self.dataset}: {self.warning}" if self.model else f"{self.dataset}: {self.warning}"


@dataclass(frozen=True)
class Failure:
    """A model output that is missing or was refused.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        reason: one line: file, row, what was found, what to do.
        replicate: the replicate of the model; empty for a model of one output.
    """

    dataset: str
    model: str
    reason: str
    replicate: str = ""

    @property
    def output(self) -> OutputKey:
        """The output that failed."""
        return self.dataset, Replicate(self.model, self.replicate) if self.replicate else self.model

    @property
    def subject(self) -> str:
        """What failed, such as `dense on web`."""
        return f"{self.output[1]} on {self.dataset}"


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
    quality: Mapping[tuple[str, str], Quality]
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


@dataclass(frozen=True, eq=False)
class Validation:
    """What a config comes to and what its inputs hold, with nothing computed.

    Attributes:
        n_queries: judged queries, by dataset.
        n_measures: distinct measures, by dataset.
        models: the models, in order.
        quality: what the join found, by (dataset, model).
        failures: the model outputs that are missing or refused.
        warnings: settings that are valid but probably not intended, a line each.
        gate_notes: how often gates fail by mistake, and which slices are too small for them, a line each.
        replicates: the replicates that were found, by (dataset, model), of models that are families.
    """

    n_queries: Mapping[str, int]
    n_measures: Mapping[str, int]
    models: tuple[str, ...]
    quality: Mapping[tuple[str, str], Quality]
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...] = ()
    gate_notes: tuple[str, ...] = ()
    replicates: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
