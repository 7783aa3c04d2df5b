"""What reports show: a page of one evaluation, the history of a figure over many, and one query's score, taken apart.

Differences are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Floats
from rankledger.metrics.conventions import Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.types.checks import QueryChange
from rankledger.pipeline.types.results import Evaluation

if TYPE_CHECKING:
    from rankledger.pipeline.types.manifest import Description

__all__ = [
    "HEAD",
    "ConventionChoice",
    "Curve",
    "CurvePoint",
    "Explanation",
    "FalseSteps",
    "FigureMatch",
    "History",
    "LevelChange",
    "Night",
    "Outcome",
    "Page",
    "PairedScores",
    "ProfileComparison",
    "RecordList",
    "RecordSummary",
    "RecordedFigure",
    "RecordedScore",
    "ScoreTerm",
    "ScoreTotal",
    "Series",
    "SeriesBreak",
    "Tier",
]

Tier: TypeAlias = Literal["step", "step or drift"]
"""How sure a step is: also if nights are correlated, or only if they are independent."""


@dataclass(frozen=True)
class SeriesBreak:
    """What makes the figures from a night on no longer comparable with those before.

    Attributes:
        kind: `judgments`, or how they are read; the `definition` of the measure; the version of `rankledger`.
        before: their digest, fingerprint or version until then; None if unknown.
        after: from then on.
    """

    kind: Literal["judgments", "definition", "rankledger"]
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
    """

    noise: str
    n_nights: int
    step: float
    step_or_drift: float


@dataclass(frozen=True)
class Series:
    """The nights of a model on a dataset.

    Attributes:
        dataset: the dataset's name; `*` for the mean of all datasets.
        model: the model's name.
        nights: oldest first, at least one of which has a figure.
        steps: where the level moved, oldest first.
        noise: what nights differ by, in their standard errors; 0 where outputs stay and every change is a step;
            None where there are too few nights to tell steps.
        correlation: of successive nights, from 0 to 0.99, taken as a first-order autoregression; None if unknown.
        false_steps: how often series of about as many nights show a step though they have none; empty if there was
            no test.
    """

    dataset: str
    model: str
    nights: tuple[Night, ...]
    steps: tuple[LevelChange, ...]
    noise: float | None
    correlation: float | None
    false_steps: tuple[FalseSteps, ...] = ()


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
class RecordSummary:
    """A line of the list of evaluations.

    Attributes:
        evaluation_id: the id.
        name: the evaluation's name.
        date: its night.
        repeats: the id of the evaluation that it repeats; None where it repeats none.
        n_models: models of the config.
        n_datasets: datasets of the config.
        n_failures: outputs that were missing or refused.
        gates: what all its gates come to: `pass`, `warn`, `fail` or `inconclusive`; empty where it has none.
        delivered: when it was logged to MLflow; None if it was not.
        wanted: whether it is to be logged to MLflow.
        size: bytes of the record's files.
    """

    evaluation_id: str
    name: str
    date: str
    repeats: str | None
    n_models: int
    n_datasets: int
    n_failures: int
    gates: str
    delivered: str | None
    wanted: bool
    size: int


@dataclass(frozen=True)
class RecordList:
    """Evaluations, most recent first.

    Attributes:
        place: where the records are.
        evaluations: a line each.
        remarks: what was passed over, a line each.
    """

    place: str
    evaluations: tuple[RecordSummary, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordedFigure:
    """A figure of a record.

    Attributes:
        evaluation_id: the evaluation.
        date: its night.
        dataset: the dataset; `*` for the mean of all datasets.
        model: the model.
        slice: `all`, or `column=value`.
        measure: as it is written.
        estimate: the figure.
        ci_low: lower end of its confidence interval; None where it has none.
        ci_high: upper end.
        fingerprint: what the measure means there; empty where the record does not say.
    """

    evaluation_id: str
    date: str
    dataset: str
    model: str
    slice: str
    measure: str
    estimate: float
    ci_low: float | None
    ci_high: float | None
    fingerprint: str


@dataclass(frozen=True)
class FigureMatch:
    """Where a published figure may come from.

    Attributes:
        published: the figure as it was written.
        measure: the measure that was asked for; None for all.
        n_records: records that were looked through.
        figures: those that round to it, most recent first.
        remarks: what was passed over, a line each.
    """

    published: str
    measure: str | None
    n_records: int
    figures: tuple[RecordedFigure, ...]
    remarks: tuple[str, ...] = ()


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
        history: series of the evaluations of its name; none on the page that lies in the record.
    """

    title: str
    evaluation: Evaluation
    manifest: Description
    curves: tuple[CurvePoint, ...] = ()
    pairs: tuple[PairedScores, ...] = ()
    remarks: tuple[str, ...] = ()
    history: tuple[History, ...] = ()

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that a model was evaluated on, `*` for the mean of all, in the order of the summary."""
        return tuple(dict.fromkeys(line.dataset for line in self.evaluation.estimates))

    @property
    def practical_difference(self) -> Mapping[str, float]:
        """By measure, the least difference that matters, where the config says."""
        return self.manifest.practical_difference


HEAD = 20  # ranks down to which every document is named, judged or not


@dataclass(frozen=True)
class ScoreTerm:
    """One document and what it adds; None if there is no such thing.

    Attributes:
        rank: its place in the list, from 1; None where all orders of equal scores count.
        ties: the first and the last rank of its group of equal scores; None where its score is its own.
        doc_id: the document; None in an ideal list that is not ordered by grade.
        grade: its relevance as it was judged; None for a document without judgment.
        factors: what its term is made of, by name.
        term: what it adds to the sum; None for a document without judgment.
        running: the sum down to it.
        found_at: of a document of an ideal list, the first and the last rank that it may have in the ranking; None
            where it was not retrieved.
    """

    rank: int | None
    ties: tuple[int, int] | None
    doc_id: str | None
    grade: float | None
    factors: Mapping[str, float | bool | None]
    term: float | None
    running: float | None
    found_at: tuple[int, int] | None = None

    @property
    def place(self) -> int:
        """Where the line stands: at its rank, or at the first of its group of equal scores; 0 without a rank."""
        return self.rank or (self.ties or (0, 0))[0]


@dataclass(frozen=True)
class ScoreTotal:
    """The last line: the score is `scale (rest + total) / divisor`, or the square root of that.

    Attributes:
        total: the sum of all terms.
        rest: what is added whatever the places of the documents; None where nothing is.
        scale: what the sum is multiplied by.
        divisor: what it is divided by; None if it is not.
        root: whether the square root is taken.
    """

    total: float
    rest: float | None
    scale: float
    divisor: float | None
    root: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a query scores and what it is in the mean.

    Attributes:
        value: the score; None where it is undefined.
        counts_as: what enters the mean; None where the query is left out of it.
        refused: what is refused, so that there is no score at all; None where there is one.
    """

    value: float | None
    counts_as: float | None
    refused: str | None = None

    def same_as(self, other: Outcome) -> bool:
        """Whether it is the same but for the rounding of the last digits, which no choice is meant to make."""
        figures = ((self.value, other.value), (self.counts_as, other.counts_as))
        return self.refused == other.refused and all(
            one == another or (one is not None and another is not None and math.isclose(one, another, rel_tol=1e-12))
            for one, another in figures
        )


@dataclass(frozen=True)
class ConventionChoice:
    """One choice on which two profiles differ.

    Attributes:
        name: the convention, or the parameter of the metric.
        own: what holds in the evaluation.
        other: what holds under the other profile.
        alone: with this choice of the other profile, and everything else as in the evaluation.
        all_others: with every other choice of the other profile, and this one as in the evaluation.
        because: who does what, with the name of the profile that says so.
    """

    name: str
    own: str
    other: str
    alone: Outcome
    all_others: Outcome
    because: str


@dataclass(frozen=True)
class ProfileComparison:
    """The score under another profile.

    Attributes:
        profile: the other profile.
        outcome: under it.
        choices: those that make a difference, alone or to the others together.
        idle: those that make none.
    """

    profile: Profile
    outcome: Outcome
    choices: tuple[ConventionChoice, ...]
    idle: tuple[ConventionChoice, ...]


@dataclass(frozen=True)
class RecordedScore:
    """What a record says of a score; where it has the score, it is the same one.

    Attributes:
        evaluation_id: the record's.
        measured: whether it has the measure.
        same_definition: whether the measure had the fingerprint then that it has now.
    """

    evaluation_id: str
    measured: bool
    same_definition: bool


@dataclass(frozen=True)
class Explanation:
    """One score, taken apart.

    Attributes:
        dataset: the dataset's name.
        model: the model's name.
        query_id: the query.
        measure: what is measured.
        profile: the evaluation's.
        outcome: the score, and what it is in the mean.
        why: why the score is undefined; None if it is not.
        documents: every judged document of the list, and the others at its head, by rank.
        n_retrieved: how many documents the list has.
        n_condensed: how many documents were taken out of it for want of a judgment.
        ideal: the perfect ranking, where its sum is the divisor.
        sum: the last line.
        comparison: the score under another profile, if one was asked for.
        recorded: what the record says of the score, if one was asked about.
    """

    dataset: str
    model: str
    query_id: str
    measure: Measure
    profile: Profile
    outcome: Outcome
    why: str | None
    documents: tuple[ScoreTerm, ...]
    n_retrieved: int
    n_condensed: int
    ideal: tuple[ScoreTerm, ...] | None
    sum: ScoreTotal
    comparison: ProfileComparison | None = None
    recorded: RecordedScore | None = None

    def __repr__(self) -> str:
        """The score, and a line per document."""
        value = self.outcome.value
        score = self.outcome.refused or self.why or "undefined" if value is None else f"{value:.4f}"
        lines = [f"<Explanation {self.measure} of {self.model} on {self.dataset}, query {self.query_id}: {score}>"]
        for line in self.documents:
            grade = "not judged" if line.grade is None else f"grade {line.grade:g}"
            term = "" if line.term is None else f", adds {line.term:.4f}"
            lines.append(f"  {line.rank or '-'} {line.doc_id}: {grade}{term}")
        return "\n".join(lines)
