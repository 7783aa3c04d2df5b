"""The lines of the tables that not every record has; those of the summary and of comparisons are in `results`.

Differences are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, TypeAlias, get_type_hints

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.metrics.measure import Measure

if TYPE_CHECKING:
    import pandas as pd


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
    """A point of a model's curve on a dataset, a line of `curves.csv`; None if there is no figure.

    Attributes:
        dataset: the dataset's name.
        model: the model's.
        curve: what it is.
        at: where: the recall, in [0, 1], or the rank, from 1 on.
        estimate: the figure, in [0, 1].
        ci_low: lower end of its confidence interval; None for `judged`, which is no sample.
        ci_high: upper end.
        n_queries: queries that it rests on: the judged ones, or those that retrieve as many documents.
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
    """How far two measures put the models of a dataset in one order, a line of `agreement.csv`.

    Attributes:
        dataset: the dataset's name; `*` for the mean of all datasets.
        measure: a measure.
        lead: the lead measure, which it is compared with.
        tau: Kendall's tau-b of the two orders, in [-1, 1].
        tau_low: the least that it may be over all queries: (same - opposite - undecided) / pairs.
        tau_high: the most: (same - opposite + undecided) / pairs.
        n_models: the models that have a figure by both.
        n_same: pairs of models that both measures tell apart, in the same order.
        n_opposite: pairs that both tell apart, in opposite orders.
        n_undecided: all other pairs.
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
    """Two models on a dataset by a measure.

    Attributes:
        dataset: the dataset's name.
        model: the model that is compared.
        baseline: the one that it is compared with; `bm25 in ID` where that is of another record.
        measure: by what.
    """

    dataset: str
    model: str
    baseline: str
    measure: str


@dataclass(frozen=True)
class SliceChange(ModelPair):
    """A slice in which the change differs from that of the other queries.

    Attributes:
        slice: `column=value`, or two of them with ` & ` between; `outside column=value` are all other queries, where
            it is they that changed more.
        n_queries: queries of the slice that are defined in both.
        n_all: queries that are defined in both.
        before: the base's figure over the slice.
        after: the candidate's.
        change: the second less the first, the other way round where lower is better.
        share: of the change of all queries' sum how much is the slice's; None where that is 0.
        all_before: the base's figure over all queries.
        all_after: the candidate's.
        statistic: how many standard errors the change is from that of the rest; above 0 it is the better one.
        p_value: of the test that no slice differs, corrected for all slices that were searched.
        p_least: the least p-value that so many permutations can give: a p-value that equals it would be less with more
            of them.
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
        """Such as `family=internet, 59 of 300 queries, 0.5430 → 0.1630, accounts for 112% of the drop`.

        A slice that went the other way than all queries, or of a change that is next to nothing, has no share.
        """
        said = f"{self.slice}, {self.n_queries:,} of {self.n_all:,} queries, {self.before:.4f} → {self.after:.4f}"
        if self.share is None or not 0 <= self.share <= _MOST_SHARE:
            return f"{said}, while all queries together went {self.all_before:.4f} → {self.all_after:.4f}"
        change = "drop" if self.all_after < self.all_before else "rise"
        return f"{said}, accounts for {abs(self.share):.0%} of the {change}"


Since: TypeAlias = Literal["previous", "accepted"]
"""Since when a figure changed: since the record before, or since the one that was accepted for the model."""


@dataclass(frozen=True)
class ChangeSince:
    """How a model's figure changed since an earlier record, over the queries of both: a line of `changes.csv`.

    Figures are None, and texts empty, where there are none.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        measure: the measure as it is written.
        since: `previous`, the record before this one, or `accepted`, the one that was accepted for the model.
        reference: the id of that record.
        date: its night.
        before: the model's figure there.
        after: the model's figure now.
        difference: the second less the first, the other way round where lower is better.
        ci_low: lower end of the difference's confidence interval.
        ci_high: upper end.
        mark: why the interval is not to be trusted: `sparse`, `degenerate`, or empty.
        n_queries: queries that are defined in both.
        n_clusters: clusters that they are in; the queries themselves if there are none.
        slice: the slice that explains most of the change; empty if none differs from the rest, or none was searched.
        slice_queries: its queries.
        slice_before: the figure over the slice there.
        slice_after: the figure over the slice now.
        slice_share: how much of the change of all queries' sum is the slice's.
        first_seen: the first night that is known of the present level, or of gates failing without a break; empty if
            neither changed, and where it is this evaluation and has no date.
        owner: who answers for the model.
        reason: why there is no change to tell; empty where there is one.
        p_corrected: of the test that nothing changed, among all models that changed by this measure since that record.
        decision: `better` or `worse` by the corrected p-value; empty if neither.
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
    """The figure of one replicate over all queries: a line of `replicates.csv`.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        replicate: the replicate's.
        measure: the measure as it is written.
        estimate: the figure; None where it is undefined.
        n_missing: judged queries without output.
    """

    dataset: str
    model: str
    replicate: str
    measure: str
    estimate: float | None
    n_missing: int


@dataclass(frozen=True)
class VarianceComponents:
    """What the error of a family's figure is made of: a line of `variance_components.csv`.

    Variances are those of a two-way analysis of variance; 0 for an estimate below 0.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        measure: the measure as it is written.
        n_queries: the queries, or clusters.
        n_replicates: the replicates.
        queries: the variance between queries.
        replicates: the variance between replicates.
        rest: the variance of what differs by query and replicate at once.
        std_error: of the figure, over queries and replicates.
        std_error_twice_queries: the same with twice the queries.
        std_error_twice_replicates: the same with twice the replicates.
        more: what makes the figure more certain: `queries`, `replicates`, or `either` about as much.
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
    """A row per line and a column per field; figures that may be missing are doubles."""
    import pandas as pd

    types = get_type_hints(kind)
    columns = {field.name: [getattr(line, field.name) for line in lines] for field in fields(kind)}
    figures = [name for name, type_ in types.items() if type_ in (float | None, int | None)]
    return pd.DataFrame(columns | {name: np.array(columns[name], dtype=np.float64) for name in figures})


ALL = "all"
"""The slice that every query is in."""

_Measure = TypeVar("_Measure", Measure, str)


def lead_among(lead: _Measure | None, measures: Collection[_Measure]) -> _Measure | None:
    """The lead measure if it is one of these, else the first of them; None if there is none."""
    return lead if lead in measures else next(iter(measures), None)


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
class RankedDocument:
    """A relevant document of a query that moved.

    Attributes:
        doc_id: the document.
        grade: as the candidate's judgments have it.
        before: its rank in the base's output; None where it was not retrieved.
        after: its rank in the candidate's.
    """

    doc_id: str
    grade: float
    before: int | None
    after: int | None


@dataclass(frozen=True)
class QueryChange:
    """A query whose score is another.

    Attributes:
        dataset: the dataset's name.
        model: the candidate's model.
        baseline: the base's.
        query_id: the query.
        measure: by which it moved.
        before: its score in the base.
        after: its score in the candidate.
        change: the second less the first, the other way round where lower is better.
        documents: its relevant documents, those of the candidate's first; None where their ranks were not kept.
    """

    dataset: str
    model: str
    baseline: str
    query_id: str
    measure: str
    before: float
    after: float
    change: float
    documents: tuple[RankedDocument, ...] | None


@dataclass(frozen=True, eq=False)
class PairedScores(ModelPair):
    """The scores that two models have on the same queries by one measure.

    Attributes:
        query_ids: (Q,) the queries, in the order of their ids.
        before: (Q,) the baseline's scores, NaN where undefined or left out of every mean.
        after: (Q,) the model's.
        change: (Q,) the second less the first, the other way round where lower is better.
        largest_changes: the queries that moved most, the greatest change first.
        record: the id of the record that the baseline is of; empty if that is the model's.
        baseline_model: what the baseline is called in that record.
    """

    query_ids: npt.NDArray[np.object_]
    before: Floats
    after: Floats
    change: Floats
    largest_changes: tuple[QueryChange, ...] = ()
    record: str = ""
    baseline_model: str = ""
