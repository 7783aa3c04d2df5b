"""What reports show: a page of one evaluation with the queries that changed, and the history of a figure over many.

Differences are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.pipeline.types.results import LEAST_CLUSTERS, Evaluation

if TYPE_CHECKING:
    from rankledger.pipeline.types.manifest import Description

__all__ = [
    "FEWEST_NIGHTS",
    "ChangeSince",
    "Curve",
    "CurvePoint",
    "FalseSteps",
    "History",
    "LevelChange",
    "ListedDocument",
    "Night",
    "OrderAgreement",
    "Page",
    "PairedScores",
    "QueryChange",
    "QueryDetail",
    "RankedDocument",
    "Series",
    "SeriesBreak",
    "Since",
    "SliceChange",
    "Tier",
]

Tier: TypeAlias = Literal["step", "step or drift"]
"""How sure a step is: also if nights are correlated, or only if they are independent."""

FEWEST_NIGHTS = 8
"""Nights whose figures differ that a series needs before steps can be distinguished from noise."""


@dataclass(frozen=True)
class SeriesBreak:
    """What makes the figures from a night on no longer comparable with those before.

    Attributes:
        kind: `judgments`, or how they are read; the `excluded documents`; the `definition` of the measure; the version
            of `rankledger`.
        before: their digest, fingerprint or version until then; None if unknown.
        after: from then on.
    """

    kind: Literal["judgments", "excluded documents", "definition", "rankledger"]
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Night:
    """What one night says of a model on a dataset by a measure; None if there is no figure.

    Attributes:
        date: the date that was given, or else the day on which the evaluation began, in UTC.
        evaluation_id: the last evaluation of that date.
        estimate: the figure.
        ci_low: lower end of its confidence interval.
        ci_high: upper end.
        std_error: its standard deviation over the resamples.
        n_queries: judged queries.
        mark: why the interval is not to be trusted: `sparse`, `degenerate`, or empty.
        change: the figure less that of the night before; None over a break.
        gates: what the gates of the model come to, the external metric included: `pass`, `warn`, `fail` or
            `inconclusive`; empty where it has none.
        commit: the commit of the config's repository; None outside one.
        breaks: what changed since the night before.
        failure: why the output was not evaluated; empty where it was.
        promoted: the version that it promoted in MLflow and the alias, `models:/ranker/3 @champion`; empty if none.
    """

    date: str
    evaluation_id: str
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    n_queries: int
    mark: str
    change: float | None
    gates: str
    commit: str | None
    breaks: tuple[SeriesBreak, ...] = ()
    failure: str = ""
    promoted: str = ""


@dataclass(frozen=True)
class LevelChange:
    """A step of a series.

    Attributes:
        date: the first night of the new level, the most likely one.
        earliest: the first night that it may be.
        latest: the last one.
        n_nights: how many nights with a figure the new level lasts: until the next step, a break, or the last. One is
            a night that stands alone, or is too new to tell.
        before: the level until then, a mean weighted by precision.
        after: the level from then on.
        std_error: the standard deviation of the change, where nights are as correlated as they seem to be; 0 if there
            is no noise.
        tier: `step`; or `step or drift`, which correlated nights alone may explain.
    """

    date: str
    earliest: str
    latest: str
    n_nights: int
    before: float
    after: float
    std_error: float
    tier: Tier = "step"


@dataclass(frozen=True)
class FalseSteps:
    """How often a series without a step shows one, by simulation.

    Attributes:
        noise: how nights differ in these series.
        n_nights: how many they have.
        step: the share that show a step.
        step_or_drift: the share that show one of either tier.
        correlation: of successive nights in these series, from 0 to 1.
    """

    noise: str
    n_nights: int
    step: float
    step_or_drift: float
    correlation: float


@dataclass(frozen=True)
class Series:
    """The nights of a model on a dataset.

    Attributes:
        dataset: the dataset's name; `*` for the mean of all datasets.
        model: the model's name.
        nights: oldest first; at least one has a figure.
        steps: where the level moved, oldest first.
        noise: what nights differ by, in their standard errors; 0 where outputs stay and every change is a step;
            None where there are too few nights to tell steps.
        correlation: of successive nights, from 0 to 0.99, taken as a first-order autoregression; None if unknown.
        false_steps: how often series of about as many nights show a step though they have none; empty if there was
            no test.
        n_different: where `noise` is None, how many nights there are whose figures differ.
    """

    dataset: str
    model: str
    nights: tuple[Night, ...]
    steps: tuple[LevelChange, ...]
    noise: float | None
    correlation: float | None
    false_steps: tuple[FalseSteps, ...] = ()
    n_different: int = 0


@dataclass(frozen=True)
class History:
    """The history of a measure in the evaluations of a name.

    Attributes:
        name: the evaluation's.
        measure: as it is written.
        direction: whether `higher` or `lower` is better, or `neither`.
        series: by dataset and model, in the order of the last evaluation.
        remarks: what was left out, a line each.
    """

    name: str
    measure: str
    direction: str
    series: tuple[Series, ...]
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """A line per series, and below it one per night."""
        lines = [f"<History of {self.measure} in {self.name}: {len(self.series)} series>"]
        for series in self.series:
            lines.append(f"{series.model} on {series.dataset}:")
            for night in series.nights:
                figure = night.failure or ("undefined" if night.estimate is None else f"{night.estimate:.4f}")
                lines.append(f"  {night.date} {figure} {night.gates}".rstrip())
        return "\n".join([*lines, *self.remarks])


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
        ci_low: lower end of its confidence interval; None where a resample leaves it undefined.
        ci_high: upper end.
        n_models: the models that have a figure by both.
    """

    dataset: str
    measure: str
    lead: str
    tau: float
    ci_low: float | None
    ci_high: float | None
    n_models: int


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


_MOST_SHARE = 10.0  # of a change that is next to nothing any slice accounts for many times


@dataclass(frozen=True)
class SliceChange:
    """A slice in which the change differs from that of the other queries.

    Attributes:
        dataset: the dataset's name.
        model: the candidate's model.
        baseline: the base's.
        measure: by which it changed.
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

    dataset: str
    model: str
    baseline: str
    measure: str
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

    @property
    def is_clear(self) -> bool:
        """Whether the whole interval lies on one side of 0, and neither a few queries decide it nor are there few."""
        is_one_sided = (self.ci_low or 0.0) > 0 or (self.ci_high or 0.0) < 0
        return is_one_sided and self.mark != "sparse" and self.n_clusters >= LEAST_CLUSTERS

    @property
    def is_worse(self) -> bool:
        """Whether that is so, and the interval lies below 0."""
        return self.is_clear and (self.ci_high or 0.0) < 0


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


@dataclass(frozen=True, eq=False)
class PairedScores:
    """The scores that two models have on the same queries by one measure.

    Attributes:
        dataset: the dataset's name.
        model: the model that is compared.
        baseline: the one that it is compared with; `bm25 in ID` where that is of another record.
        measure: by what.
        query_ids: (Q,) the queries, in the order of their ids.
        before: (Q,) the baseline's scores, NaN where undefined or left out of every mean.
        after: (Q,) the model's.
        change: (Q,) the second less the first, the other way round where lower is better.
        largest_changes: the queries that moved most, the greatest change first.
        record: the id of the record that the baseline is of; empty if that is the model's.
        baseline_model: what the baseline is called in that record.
    """

    dataset: str
    model: str
    baseline: str
    measure: str
    query_ids: npt.NDArray[np.object_]
    before: Floats
    after: Floats
    change: Floats
    largest_changes: tuple[QueryChange, ...] = ()
    record: str = ""
    baseline_model: str = ""


@dataclass(frozen=True, eq=False)
class Page:
    """All that a report shows of one evaluation.

    Attributes:
        title: what it is called: the evaluation's name, with the date where one was given; its id where a report shows
            several.
        evaluation: its figures, as `evaluation_of` gives them.
        manifest: what the record's `manifest.json` says of the evaluation. The page in the record shows nothing of it
            that differs each time: no id, time, user, host, platform or seconds.
        curves: the points of its curves.
        pairs: the pairs that are shown query by query.
        remarks: what is left out, and why, a line each.
        history: series of the evaluations of its name; on the page in the record those known when it was written.
        details: of the queries with the largest changes, what is known of them.
    """

    title: str
    evaluation: Evaluation
    manifest: Description
    curves: tuple[CurvePoint, ...] = ()
    pairs: tuple[PairedScores, ...] = ()
    remarks: tuple[str, ...] = ()
    history: tuple[History, ...] = ()
    details: tuple[QueryDetail, ...] = ()

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that a model was evaluated on, `*` for the mean of all, in the order of the summary."""
        return tuple(dict.fromkeys(line.dataset for line in self.evaluation.estimates))

    @property
    def practical_difference(self) -> Mapping[str, float]:
        """By measure, the least difference that matters, where the config says."""
        return self.manifest.practical_difference
