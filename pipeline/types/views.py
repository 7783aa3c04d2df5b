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
from rankledger.pipeline.types.recorded import InputChange
from rankledger.pipeline.types.results import Evaluation
from rankledger.pipeline.types.tables import CurvePoint, ModelPair

if TYPE_CHECKING:
    from rankledger.pipeline.types.manifest import Description

Tier: TypeAlias = Literal["step", "step or drift"]
"""How sure a step is: also if nights are correlated, or only if they are independent."""

FEWEST_NIGHTS = 8
"""Nights whose figures differ that a series needs before steps can be distinguished from noise."""


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
    breaks: tuple[InputChange, ...] = ()
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
