"""Rows of the result tables. Differences are oriented: positive is better for every direction of the measure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance

Decision: TypeAlias = Literal["better", "worse", ""]
"""The side on which two models differ significantly; empty if they do not."""


def decide(difference: float | None, p_corrected: float | None, alpha: float) -> Decision:
    """Return the side of a difference if its corrected p-value is below the level.

    Every word, letter, mark, color and count follows from this function.
    """
    if not difference or p_corrected is None or not p_corrected < round(alpha, 12):  # 1 - 0.95 is above 0.05
        return ""
    return "better" if difference > 0 else "worse"


Curve: TypeAlias = Literal["precision", "judged"]
"""`precision`: interpolated, by recall; `judged`: the share of the documents at a rank that are judged."""


@dataclass(frozen=True)
class CurvePoint:
    """Point of a model's curve on a dataset, a row of `curves.csv`.

    Attributes:
        dataset: Dataset name.
        model: Model name.
        curve: Name of the curve.
        at: Recall in [0, 1], or rank from 1 on.
        estimate: Value in [0, 1]. None if undefined.
        ci_low: Lower end of the confidence interval. None for `judged`, which is no sample.
        ci_high: Upper end.
        n_queries: Judged queries, or those that retrieve as many documents.
    """

    dataset: str
    model: str
    curve: Curve
    at: float
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    n_queries: int


@dataclass(frozen=True)
class OrderAgreement:
    """Agreement of two measures on the order of a dataset's models, a row of `agreement.csv`.

    Attributes:
        dataset: Dataset name. `*` for the mean of all datasets.
        measure: Measure.
        lead: Lead measure, with which it is compared.
        tau: Kendall's tau-b of the two orders, in [-1, 1].
        tau_low: Minimum over all queries: (same - opposite - undecided) / pairs.
        tau_high: Maximum: (same - opposite + undecided) / pairs.
        n_models: Models that have a value by both.
        n_same: Pairs of models that both measures put in the same order.
        n_opposite: Pairs that they put in opposite orders.
        n_undecided: All other pairs.
    """

    dataset: str
    measure: str
    lead: str
    tau: float
    tau_low: float
    tau_high: float
    n_models: int
    n_same: int
    n_opposite: int
    n_undecided: int


_MOST_SHARE = 10.0  # of a change that is next to nothing any slice accounts for many times


@dataclass(frozen=True)
class ModelPair:
    """Pair of models on a dataset by a measure.

    Attributes:
        dataset: Dataset name.
        model: Model that is compared.
        baseline: Model that it is compared with, `bm25 in ID` if it belongs to another record.
        measure: Measure.
    """

    dataset: str
    model: str
    baseline: str
    measure: str


@dataclass(frozen=True)
class SliceChange(ModelPair):
    """Slice in which the change differs from the other queries.

    Attributes:
        slice: `column=value`, or two of them joined by ` & `. `outside column=value` if all other queries changed more.
        n_queries: Queries of the slice that are defined in both.
        n_all: Queries that are defined in both.
        before: Base's value over the slice.
        after: Candidate's value over the slice.
        change: Oriented difference.
        share: Share of the slice in the summed change of all queries. None if that change is 0.
        all_before: Base's value over all queries.
        all_after: Candidate's value over all queries.
        statistic: Standard errors between the change and the change of the rest. Positive is better.
        p_value: P-value of no difference, corrected for all slices that were searched.
        p_least: Minimum p-value that this number of permutations can give.
    """

    slice: str
    n_queries: int
    n_all: int
    before: float
    after: float
    change: float
    share: float | None
    all_before: float
    all_after: float
    statistic: float
    p_value: float
    p_least: float | None = None

    def __str__(self) -> str:
        text = f"{self.slice}, {self.n_queries:,} of {self.n_all:,} queries, {self.before:.4f} → {self.after:.4f}"
        if self.share is None or not 0 <= self.share <= _MOST_SHARE:
            return f"{text}, while all queries together went {self.all_before:.4f} → {self.all_after:.4f}"
        change = "drop" if self.all_after < self.all_before else "rise"
        return f"{text}, accounts for {abs(self.share):.0%} of the {change}"


Since: TypeAlias = Literal["previous", "accepted"]
"""Since when a figure changed: since the record before, or since the one that was accepted for the model."""


@dataclass(frozen=True)
class ChangeSince:
    """Change of a model's value since an earlier record, over the queries of both: a row of `changes.csv`.

    Figures are None, and texts empty, if there are none.

    Attributes:
        dataset: Dataset name.
        model: Model name.
        measure: Measure as written.
        since: `previous`, the record before this one, or `accepted`, the one that was accepted for the model.
        reference: Id of that record.
        date: Its night.
        before: Model's value there.
        after: Model's value now.
        difference: Oriented difference.
        ci_low: Lower end of the difference's confidence interval.
        ci_high: Upper end.
        mark: Reason why the interval is unreliable: `sparse`, `degenerate`, or empty.
        n_queries: Queries that are defined in both.
        n_clusters: Clusters of these queries, or the queries if there are no clusters.
        slice: Slice that explains most of the change. Empty if none differs from the rest, or none was searched.
        slice_queries: Queries of the slice.
        slice_before: Figure over the slice there.
        slice_after: Figure over the slice now.
        slice_share: Share of the slice in the summed change of all queries.
        first_seen: First known night of the present level, or of uninterrupted gate failures. Empty if neither changed,
            or if this evaluation is the first and has no date.
        owner: Owner of the model.
        reason: Reason why there is no change. Empty if there is one.
        p_corrected: P-value of no change, corrected among all models that changed by this measure since that record.
        decision: `better` or `worse` by the corrected p-value, otherwise empty.
    """

    dataset: str
    model: str
    measure: str
    since: Since
    reference: str
    date: str
    before: float | None = None
    after: float | None = None
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    mark: str = ""
    n_queries: int = 0
    n_clusters: int = 0
    slice: str = ""
    slice_queries: int = 0
    slice_before: float | None = None
    slice_after: float | None = None
    slice_share: float | None = None
    first_seen: str = ""
    owner: str = ""
    reason: str = ""
    p_corrected: float | None = None
    decision: Decision = ""


@dataclass(frozen=True)
class ReplicateEstimate:
    """Figure of one replicate over all queries: a row of `replicates.csv`.

    Attributes:
        dataset: Dataset name.
        model: Model name.
        replicate: Replicate name.
        measure: Measure as written.
        estimate: Figure. None if undefined.
        n_missing: Judged queries without output.
    """

    dataset: str
    model: str
    replicate: str
    measure: str
    estimate: float | None
    n_missing: int


@dataclass(frozen=True)
class VarianceComponents:
    """Variance components of a model with replicates: a row of `variance_components.csv`.

    Variances come from a two-way analysis of variance, with 0 for a negative estimate.

    Attributes:
        dataset: Dataset name.
        model: Model name.
        measure: Measure as written.
        n_queries: Queries, or clusters.
        n_replicates: Replicates.
        queries: Variance between queries.
        replicates: Variance between replicates.
        rest: Variance of the interaction of queries and replicates.
        std_error: Standard error over queries and replicates.
        std_error_twice_queries: Standard error with twice the queries.
        std_error_twice_replicates: Standard error with twice the replicates.
        more: Remedy for uncertainty: `queries`, `replicates`, or `either` about as much.
    """

    dataset: str
    model: str
    measure: str
    n_queries: int
    n_replicates: int
    queries: float
    replicates: float
    rest: float
    std_error: float
    std_error_twice_queries: float
    std_error_twice_replicates: float
    more: Literal["queries", "replicates", "either"]


def frame(kind: type[DataclassInstance], lines: Sequence[object]) -> pd.DataFrame:
    """Return a row per object and a column per field, with NaN for missing values."""
    import pandas as pd

    types = get_type_hints(kind)
    columns = {field.name: [getattr(line, field.name) for line in lines] for field in fields(kind)}
    figures = [name for name, type_ in types.items() if type_ in (float | None, int | None)]
    return pd.DataFrame(columns | {name: np.array(columns[name], dtype=np.float64) for name in figures})


ALL = "all"
"""The slice that every query is in."""

_Measure = TypeVar("_Measure", Measure, str)


def lead_among(lead: _Measure | None, measures: Collection[_Measure]) -> _Measure | None:
    """Return the lead measure if it is one of these, else the first of them. None if there is none."""
    return lead if lead in measures else next(iter(measures), None)


@dataclass(frozen=True)
class Estimate:
    """Figure of a model by a measure in a slice: a row of `summary.csv`.

    Attributes:
        dataset: Dataset name. `*` for the mean of all datasets.
        model: Model name.
        slice: `all`, or `column=value` of the queries table.
        measure: Measure as written.
        estimate: Figure over the queries of the slice. None if undefined.
        ci_low: Lower end of the confidence interval.
        ci_high: Upper end.
        std_error: Standard deviation over the resamples, or by the jackknife for a value of a set.
        n_queries: Judged queries of the slice.
        n_missing: Queries without output.
        n_undefined: Queries whose score is undefined.
        n_clusters: Clusters of the queries in the mean, or these queries if there are no clusters.
        mark: Reason why the interval is unreliable: `sparse` if a few clusters decide it (κ below 8), `degenerate` if
            all clusters are alike, otherwise empty.
        ties_least: Minimum value over all orders of tied documents. None if it was not asked for.
        ties_expected: Mean value over these orders.
        ties_greatest: Maximum value over these orders.
        rank_low: Best possible rank among the dataset's models, from 1, jointly for all models by one measure. None for
            slices and without ranks.
        rank_high: Worst possible rank.
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
class Comparison(ModelPair):
    """Pair of models on the same queries by one measure: a row of `comparisons.csv`.

    Figures are None if there are none.

    Attributes:
        slice: `all`, or `column=value` of the queries table.
        estimate: Model's value over the queries that are defined in both.
        baseline_estimate: Baseline's value over the same queries.
        difference: Model's value less the baseline's, the other way round if lower is better.
        ci_low: Lower end of the difference's confidence interval.
        ci_high: Upper end.
        std_error: Standard deviation of the difference over the resamples.
        p_value: P-value of no difference. 1 if no query changed, which needs no test.
        p_corrected: P-value corrected among all tests of the family.
        family: Family in words.
        effect_size: Mean difference in standard deviations of the differences.
        wins: Queries on which the model is better.
        ties: Queries on which they are equal.
        losses: Queries on which it is worse.
        minimum_detectable_difference: Minimum difference that 80% of samples of this size find.
        n_queries: Queries that are defined in both.
        n_clusters: Clusters of these queries, or the queries if there are no clusters.
        mark: Reason why the interval is approximate: `sparse`, `degenerate`, or empty. The p-value decides all the
            same.
        test: Origin of the p-value: `variance components`, or `variance components of paired replicates`, if one of the
            two models has replicates. In the primary family `bootstrap-t`, or `randomization` if few queries decide the
            difference. Otherwise `randomization`, `t` or `bootstrap`. Empty if there is none.
        role: `primary`, of the family of the lead measure on all queries, whose intervals hold together, or
            `exploratory`, beside such a family. Empty if there is no test, or no primary family was asked for.
        p_least: Minimum p-value that this number of resamples or permutations can give. None if the p-value is not
            counted among draws.
        correction: Correction of the p-value: `maxt`, `holm`, `bh` or `none`. Empty if there is no test.
    """

    slice: str
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
        """Return the decision by the corrected p-value, or by the p-value if there is no correction."""
        p_value = self.p_value if self.p_corrected is None else self.p_corrected
        return decide(self.without_rounding().difference, p_value, alpha)

    @property
    def is_primary(self) -> bool:
        """True if the row is of the primary family."""
        return self.role == "primary"

    @property
    def is_of_replicates(self) -> bool:
        """True if at least one model has replicates, whose variance components give the p-value."""
        return self.test in (REPLICATE_TEST, PAIRED_REPLICATE_TEST)

    def without_rounding(self) -> Comparison:
        """Return the row with 0 for a difference or an end of its interval that is mere rounding.

        Figures that are equal to 12 digits are equal, as for wins: 0.1 + 0.2 - 0.3 is 0, though not in doubles.
        """
        minimum = _ROUNDING * max(abs(self.estimate or 0.0), abs(self.baseline_estimate or 0.0))
        difference, low, high = (
            0.0 if value is not None and abs(value) <= minimum else value
            for value in (self.difference, self.ci_low, self.ci_high)
        )
        return replace(self, difference=difference, ci_low=low, ci_high=high)


@dataclass(frozen=True)
class RankedDocument:
    """Relevant document of a query that moved.

    Attributes:
        doc_id: Document id.
        grade: Grade in the candidate's judgments.
        before: Rank in the base's output. None if not retrieved.
        after: Rank in the candidate's output. None if not retrieved.
    """

    doc_id: str
    grade: float
    before: int | None
    after: int | None


@dataclass(frozen=True)
class QueryChange(ModelPair):
    """Query whose score changed.

    Attributes:
        query_id: Query id.
        before: Score in the base.
        after: Score in the candidate.
        change: Oriented difference.
        documents: Relevant documents, the candidate's first. None if their ranks were not kept.
    """

    query_id: str
    before: float
    after: float
    change: float
    documents: tuple[RankedDocument, ...] | None


@dataclass(frozen=True, eq=False)
class PairedScores(ModelPair):
    """Scores of two models on the same queries by one measure.

    Attributes:
        query_ids: (Q,) ids, ascending.
        before: (Q,) baseline's scores, NaN if undefined or left out of every mean.
        after: (Q,) model's scores.
        change: (Q,) oriented differences.
        largest_changes: Queries that moved most, the maximum change first.
        record: Id of the baseline's record. Empty if it is the model's record.
        baseline_model: Name of the baseline in that record.
    """

    query_ids: npt.NDArray[np.object_]
    before: Floats
    after: Floats
    change: Floats
    largest_changes: tuple[QueryChange, ...] = ()
    record: str = ""
    baseline_model: str = ""
