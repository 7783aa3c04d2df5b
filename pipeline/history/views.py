"""What reports show: a page of one evaluation with the queries that changed, and the history of a figure over many.

Differences are oriented: positive is better, whatever the measure's direction.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankledger.pipeline.inference.changepoints import FalseSteps, LevelChange
from rankledger.pipeline.record.manifest_parts import InputChange


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
        n_undefined: Number of judged queries without a score.
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
    n_undefined: int = 0


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
