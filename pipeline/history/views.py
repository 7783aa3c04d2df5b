"""History of a figure over many nights."""

from __future__ import annotations

from dataclasses import dataclass

from rankledger.pipeline.inference.changepoints import FalseSteps, LevelChange
from rankledger.pipeline.record.manifest_parts import InputChange


@dataclass(frozen=True)
class Night:
    """Figure of a model on a dataset in one night. Values are None if there is no figure.

    Attributes:
        date: Date that was given, or else the day on which the evaluation began, in UTC.
        evaluation_id: Last evaluation of that date.
        estimate: Figure.
        ci_low: Lower end of its confidence interval.
        ci_high: Upper end.
        std_error: Standard deviation over the resamples.
        n_queries: Judged queries.
        mark: Reason why the interval is unreliable: `sparse`, `degenerate`, or empty.
        change: Change since the night before. None over a break.
        gates: Effect of the model's gates, the external metric included: `pass`, `warn`, `fail` or `inconclusive`.
            Empty if there are none.
        commit: Commit of the config's repository. None outside one.
        breaks: Inputs that changed since the night before.
        failure: Reason why the output was not evaluated. Empty if it was.
        promoted: Version and alias that it promoted in MLflow, `models:/ranker/3 @champion`. Empty if none.
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
    """Nights of a model on a dataset.

    Attributes:
        dataset: Dataset name. `*` for the mean of all datasets.
        model: Model name.
        nights: Nights, oldest first. At least one has a figure.
        steps: Steps of the level, oldest first.
        noise: Variation of nights in their standard errors. 0 if outputs stay and every change is a step, None if there
            are too few nights to tell steps.
        correlation: Correlation of successive nights, from 0 to 0.99, as a first-order autoregression. None if unknown.
        false_steps: Rate of false steps in series of about as many nights. Empty if there was no test.
        n_different: Number of nights with different figures if `noise` is None.
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
    """History of a measure in the evaluations of a name.

    Attributes:
        name: Evaluation name.
        measure: Measure as it is written.
        direction: `higher` or `lower` if that is better, or `neither`.
        series: Series by dataset and model, in the order of the last evaluation.
        remarks: Lines about things that were left out.
    """

    name: str
    measure: str
    direction: str
    series: tuple[Series, ...]
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [f"<History of {self.measure} in {self.name}: {len(self.series)} series>"]
        for series in self.series:
            lines.append(f"{series.model} on {series.dataset}:")
            for night in series.nights:
                figure = night.failure or ("undefined" if night.estimate is None else f"{night.estimate:.4f}")
                lines.append(f"  {night.date} {figure} {night.gates}".rstrip())
        return "\n".join([*lines, *self.remarks])
