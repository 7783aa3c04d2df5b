"""Results: scores per query, estimates, comparisons, gate verdicts, and the evaluation that holds them.

Differences are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_type_hints

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.metrics.measure import Measure
from rankledger.pipeline.types.joined import Quality

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance

    from rankledger.pipeline.types.manifest import Manifest
    from rankledger.pipeline.types.views import OrderAgreement, SliceChange

__all__ = [
    "ALL",
    "LEAST_CLUSTERS",
    "Acceptance",
    "Comparison",
    "DataWarning",
    "Estimate",
    "Evaluation",
    "Failure",
    "GateKind",
    "ModelKey",
    "Outcome",
    "PlannedGate",
    "Record",
    "RecordedModel",
    "Reference",
    "Scores",
    "Validation",
    "Verdict",
    "Waiver",
    "frame",
    "overall_effect",
    "overall_outcome",
]

ALL = "all"
"""The slice that every query is in."""

LEAST_CLUSTERS = 30
"""Clusters that a judgment must rest on: a slice of fewer is shown and not judged."""


@dataclass(frozen=True)
class RecordedModel:
    """A model of an earlier evaluation, which stands among the models of this one.

    Attributes:
        model: its name there.
        manifest_sha256: the hash of the record's manifest.
    """

    model: str
    manifest_sha256: str


ModelKey: TypeAlias = str | RecordedModel
"""What the scores of a model are found by: a model of this evaluation by its name."""


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

    @property
    def key(self) -> ModelKey:
        """What they are found by among the scores of a dataset."""
        return self.model if self.record is None else RecordedModel(self.model, self.record)


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


GateKind: TypeAlias = Literal["difference", "limit", "query_drop", "complete", "extra"]
Outcome: TypeAlias = Literal["pass", "fail", "inconclusive", "not comparable", "not evaluated"]

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
        p_value: of the test that there is no difference.
        p_corrected: the same among all tests of the family.
        family: what the family is, in words.
        effect_size: the mean difference in standard deviations of the differences.
        wins: queries on which the model is better.
        ties: queries on which they are equal.
        losses: queries on which it is worse.
        minimum_detectable_difference: the least difference that would be found in 80% of samples of this size.
        n_queries: queries that are defined in both.
        n_clusters: clusters that they are in; the queries themselves if there are none.
        mark: why the line is not to be trusted: `sparse`, `degenerate`, or empty.
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
class Reference:
    """What a model is compared with: a model of this evaluation, or one of a record.

    Attributes:
        text: as it was written.
        record: an id or a path, `last`, `last_passed`, `previous`, `accepted` or `mlflow:RUN_ID`; None means this
            evaluation.
        model: the model there; None means the same model.
    """

    text: str
    record: str | None
    model: str | None


@dataclass(frozen=True)
class Acceptance:
    """A record that was accepted for one model.

    Attributes:
        record: its id.
        manifest_sha256: hex digest of its `manifest.json`.
        reason: why it was accepted.
        accepted: the day, such as `2026-11-20`.
        by: who accepted it.
    """

    record: str
    manifest_sha256: str
    reason: str
    accepted: str
    by: str


@dataclass(frozen=True)
class Waiver:
    """A gate that may fail for a while.

    Attributes:
        until: the last day on which it may.
        owner: who answers for it.
        reason: why.
    """

    until: date
    owner: str
    reason: str


@dataclass(frozen=True)
class PlannedGate:
    """A gate with its measures spelled out, and the models and datasets that it is for.

    Attributes:
        name: the gate's name.
        kind: `difference` (to a reference, against a margin), `limit` (of a figure), `query_drop` (how many queries
            lost much), `complete` (queries without output) or `extra` (an external metric).
        tasks: the (dataset, model) that it judges; the dataset is empty for `extra`.
        measures: what it looks at; none for `complete` and `extra`.
        against: what the model is compared with; None for a limit.
        margin: the drop that is still accepted, on the measure's scale or, where `relative`, as a share of the
            reference's figure; negative where the model must be better by that much.
        relative: whether the margin is a share.
        at_least: the least figure accepted.
        at_most: the greatest.
        max_query_drop: the drop of one query that counts as a crash.
        allow: how many queries may drop by more, or which share of all such queries.
        allow_share: whether `allow` is a share.
        max_missing: the share of queries that may be without output.
        extra: the name of the external metric.
        slices: columns of the queries table, of each of which every slice is judged beside `all`.
        on_inconclusive: what an inconclusive verdict comes to.
        fail_after: how many evaluations in a row must fail before the gate does.
        waiver: until when it may fail; None where it may not.
    """

    name: str
    kind: GateKind
    tasks: tuple[tuple[str, str], ...]
    measures: tuple[Measure, ...] = ()
    against: Reference | None = None
    margin: float = 0.0
    relative: bool = False
    at_least: float | None = None
    at_most: float | None = None
    max_query_drop: float | None = None
    allow: float = 0
    allow_share: bool = False
    max_missing: float | None = None
    extra: str | None = None
    slices: tuple[str, ...] = ()
    on_inconclusive: Literal["fail", "warn", "pass"] = "fail"
    fail_after: int = 1
    waiver: Waiver | None = None


@dataclass(frozen=True)
class Verdict:
    """What one gate says of one model on one dataset, by one measure, in one slice: a line of `gates.json`.

    Attributes:
        gate: the gate's name.
        dataset: the dataset; empty for an external metric.
        model: the model.
        measure: the measure, or the name of the number; empty where queries are counted.
        slice: `all`, or `column=value`.
        outcome: what was found.
        effect: what that comes to: `pass`, `warn` or `fail`, after `on_inconclusive`, `fail_after` and a waiver.
        reason: one sentence that says why.
        reference: what it was compared with, with the record's id if it is of one; None for a limit.
        estimate: the figure that was judged: an oriented difference, a figure, a count or a share.
        ci_low: lower end of its interval, at the level that the number of verdicts of the gate asks for.
        ci_high: upper end.
        limit: what it was held to, in the same unit.
        confidence: the level of the interval.
        interval: how it was made: a `bootstrap.method`; `betting` or `exact` where few queries decide; or empty.
        n_needed: queries that would settle an inconclusive verdict, if the estimate stays; None where none would.
        nights: how many evaluations in a row failed, this one included.
        mark: `sparse`, `degenerate`, or empty.
    """

    gate: str
    dataset: str
    model: str
    measure: str
    slice: str
    outcome: Outcome
    effect: Literal["pass", "warn", "fail"]
    reason: str
    reference: str | None = None
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    limit: float | None = None
    confidence: float | None = None
    interval: str = ""
    n_needed: int | None = None
    nights: int = 0
    mark: str = ""


def overall_outcome(verdicts: Sequence[Verdict]) -> Literal["pass", "fail", "inconclusive"]:
    """What all verdicts come to: `fail` where one fails, else `inconclusive` where one that must be settled is not."""
    effects = {(verdict.effect, verdict.outcome) for verdict in verdicts}
    if ("fail", "fail") in effects:
        return "fail"
    return "inconclusive" if any(effect == "fail" for effect, _ in effects) else "pass"


def overall_effect(verdicts: Sequence[Verdict]) -> Literal["pass", "warn", "fail", "inconclusive", ""]:
    """What all verdicts come to, in a word; empty if there are none."""
    found = overall_outcome(verdicts)
    if found == "pass" and any(verdict.effect == "warn" for verdict in verdicts):
        return "warn"
    return found if verdicts else ""


@dataclass(frozen=True)
class DataWarning:
    """What is likely wrong with the inputs, though nothing had to be refused.

    Attributes:
        dataset: the dataset's name.
        model: the model whose output it is of; empty where it is of the dataset itself.
        warning: one line.
    """

    dataset: str
    model: str
    warning: str

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
    """

    dataset: str
    model: str
    reason: str


class Record:
    """A finished record as it lies on disk.

    A table is had when it is first asked for: those of a large evaluation take seconds to read, and whoever wants the
    scores of a record, or to know whether it is whole, needs none.

    Attributes:
        path: its folder.
        manifest: what `manifest.json` holds.
    """

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        *,
        summary: Callable[[], tuple[Estimate, ...]] = tuple,
        comparisons: Callable[[], tuple[Comparison, ...]] = tuple,
        slice_changes: Callable[[], tuple[SliceChange, ...]] = tuple,
        verdicts: Callable[[], tuple[Verdict, ...]] = tuple,
        agreement: Callable[[], tuple[OrderAgreement, ...]] = tuple,
    ) -> None:
        """Know where the record is, and how each of its tables is had."""
        self.path = path
        self.manifest = manifest
        self._summary = summary
        self._comparisons = comparisons
        self._slice_changes = slice_changes
        self._verdicts = verdicts
        self._agreement = agreement

    def __eq__(self, other: object) -> bool:
        """Whether that is a record, written or read, that holds the same."""
        return isinstance(other, Record) and self._contents == other._contents

    __hash__ = None  # type: ignore[assignment]  # it holds tables

    @cached_property
    def summary(self) -> tuple[Estimate, ...]:
        """The lines of `summary.csv`.

        Raises:
            InputError: it is not what was written.
        """
        return self._summary()

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Those of `comparisons.csv`; none if it has none. Errors are those of `summary`."""
        return self._comparisons()

    @cached_property
    def slice_changes(self) -> tuple[SliceChange, ...]:
        """Those of `slice_changes.csv`; none if it has none. Errors are those of `summary`."""
        return self._slice_changes()

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those of `gates.json`; none if it has none. Errors are those of `summary`."""
        return self._verdicts()

    @cached_property
    def agreement(self) -> tuple[OrderAgreement, ...]:
        """Those of `agreement.csv`; none if it has none. Errors are those of `summary`."""
        return self._agreement()

    @property
    def _contents(self) -> tuple[object, ...]:
        tables = self.summary, self.comparisons, self.slice_changes, self.verdicts, self.agreement
        return self.path, self.manifest, *tables


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
        delivery: the command that delivers it later.
        warnings: what is worth knowing and stopped nothing, a line each.
        data_warnings: what is likely wrong with the inputs.
        comparison_lines: the paired comparisons.
        slice_changes: the slices in which a difference is not that of the rest, if they were searched.
        verdicts: what the gates say.
        agreement: how far each measure agrees with the lead measure on the order of models.
        confidence: level of the intervals; tests use 1 − confidence.
        lead: by dataset, the lead measure of the plan.
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
    delivery: str = "rankledger sync"
    warnings: tuple[str, ...] = ()
    data_warnings: tuple[DataWarning, ...] = ()
    comparison_lines: tuple[Comparison, ...] = ()
    slice_changes: tuple[SliceChange, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    agreement: tuple[OrderAgreement, ...] = ()
    confidence: float = 0.95
    lead: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Which one it is and where: all of its fields would be as long as the record."""
        return f"<Evaluation {self.evaluation_id} in {self.record}>"

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
        return {
            dataset: lead if lead in (own := compared.get(dataset, {lead: None})) else next(iter(own))
            for dataset, lead in self.leading.items()
        }

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
        from rankledger.pipeline.types.views import SliceChange

        return frame(SliceChange, self.slice_changes)

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
    """

    n_queries: Mapping[str, int]
    n_measures: Mapping[str, int]
    models: tuple[str, ...]
    quality: Mapping[tuple[str, str], Quality]
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...] = ()


def frame(kind: type[DataclassInstance], lines: Sequence[object]) -> pd.DataFrame:
    """A row per line and a column per field; figures that may be missing are doubles."""
    import pandas as pd

    types = get_type_hints(kind)
    columns = {field.name: [getattr(line, field.name) for line in lines] for field in fields(kind)}
    figures = [name for name, type_ in types.items() if type_ in (float | None, int | None)]
    return pd.DataFrame(columns | {name: np.array(columns[name], dtype=np.float64) for name in figures})
