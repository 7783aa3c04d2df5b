"""History of a measure, night by night, from the records of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeVar

from rankledger.pipeline.gates.verdicts import Verdict, overall_effect
from rankledger.pipeline.history.references import last_record, measure_among, name_of_evaluation, spelled
from rankledger.pipeline.inference.changepoints import SeriesSteps, find_changepoints
from rankledger.pipeline.inference.tables import ALL, Estimate
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import RecordEntry, scan_earlier, scan_records
from rankledger.pipeline.record.manifest import Manifest, order_night
from rankledger.pipeline.record.manifest_parts import Comparability, InputChange
from rankledger.pipeline.record.receipts import read_promotions
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.support.errors import InputError, likely
from rankledger.pipeline.support.progress import each, work

_POOLED = "*"  # what the summary calls all datasets together
_MOST_KNOWN = 30  # records that are read for a page

Task = tuple[str, str]  # dataset, model


@dataclass(frozen=True)
class Night:
    """Estimate of a model on a dataset in one night. Values are None if there is none.

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


@dataclass(frozen=True, kw_only=True)
class Series(SeriesSteps):
    """Nights of a model on a dataset, with the attributes of `SeriesSteps`.

    Attributes:
        dataset: Dataset name. `*` for the mean of all datasets.
        model: Model name.
        nights: Nights, oldest first. At least one has a value.
    """

    dataset: str
    model: str
    nights: tuple[Night, ...]


@dataclass(frozen=True)
class History:
    """History of a measure in the evaluations of a name.

    Attributes:
        name: Evaluation name.
        measure: Measure as written.
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


class _Evaluated(Protocol):
    @property
    def evaluation_id(self) -> str: ...
    @property
    def date(self) -> str: ...
    @property
    def created(self) -> datetime: ...
    @property
    def repeats(self) -> bool: ...


Entry = TypeVar("Entry", bound=_Evaluated)


@dataclass(frozen=True)
class HistoryEntry:
    """Part of one record that the history of a measure needs."""

    evaluation_id: str
    measure: str
    date: str
    created: datetime
    repeats: bool  # True if it repeats an earlier evaluation, which is no new night
    lines: Mapping[Task, Estimate]  # of all queries, by dataset and model
    failures: Mapping[Task, str]  # reasons by dataset and model
    verdicts: tuple[Verdict, ...]
    direction: str | None
    rests_on: Mapping[str, Comparability]  # by dataset
    version: str | None
    commit: str | None
    promoted: Mapping[str, str] = field(default_factory=dict)  # version and alias in MLflow by model


@work()
def history(
    name: str | None = None,
    *,
    measure: str | None = None,
    model: str | None = None,
    dataset: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
) -> History:
    """Return the history of a measure, night by night.

    Args:
        name: Evaluation name in its config. By default the only one that has records.
        measure: Measure, such as `nDCG@10`. By default the lead measure of the last evaluation on that dataset, or on
            the first if none is named.
        model: Model. By default all.
        dataset: Dataset, `*` for the mean of all. By default all.
        runs_dir: Runs folder.
        records: Location of records. By default as in the evaluated config.

    Raises:
        InputError: There is no evaluation of that name, or none has that measure, model or dataset.
        OSError: The location of records is unreachable.
    """
    workspace = Workspace.open(runs_dir, records, wanted=name or "")
    name = name_of_evaluation(name, workspace)
    lead: Mapping[str, str] = {} if measure else last_record(name, workspace).manifest.lead
    lead = {on: leading for on, leading in lead.items() if on == dataset} or lead
    chosen = measure or next(iter(lead.values()), None)
    if chosen is None:
        raise InputError(f"the last evaluation of {name!r} has no lead measure; name one with --measure")
    result = measured_history(name, chosen, workspace, model=model, dataset=dataset)
    others = [f"{leading} leads on {on}; name it with --measure" for on, leading in lead.items() if leading != chosen]
    return replace(result, remarks=(*result.remarks, *others))


def measured_history(
    name: str, measure: str, workspace: Workspace, *, model: str | None = None, dataset: str | None = None
) -> History:
    """Return the history of a measure, with the arguments and errors of `history`."""

    def look(entry: RecordEntry) -> HistoryEntry:
        return replace(_make_entry(entry, spelled(measure, entry) or measure), promoted=_list_promotions(entry))

    scan = scan_records(workspace.records, name, look)
    written = next((entry.measure for entry in scan.found if entry.lines), None)
    if written is None:
        measures = scan_records(workspace.records, name, lambda entry: tuple(entry.manifest.definitions)).found
        names = [*dict.fromkeys(chain.from_iterable(measures))]
        written = measure_among(measure, names, f"no evaluation of {name!r} has")
    result = history_of(name, written, scan.found, model=model, dataset=dataset)
    return replace(result, remarks=(*result.remarks, *scan.remarks))


def history_of(
    name: str,
    measure: str,
    evaluations: Sequence[HistoryEntry],
    *,
    model: str | None = None,
    dataset: str | None = None,
) -> History:
    """Return the history of a measure in these evaluations, in any order."""
    nights, remarks = nights_of(evaluations)
    tasks = list(dict.fromkeys(task for evaluated in reversed(nights) for task in evaluated.lines))
    chosen = [task for task in tasks if dataset in (None, task[0]) and model in (None, task[1])]
    if not chosen:
        raise InputError(_nothing(measure, tasks, dataset, model))
    direction = next(evaluated.direction for evaluated in reversed(nights) if evaluated.direction)
    series = tuple(_series(task, nights) for task in each("Looking for steps", chosen, len(chosen), "series"))
    return History(name, measure, direction, series, remarks)


def known_history(
    evaluation: Evaluation, manifest: Manifest, workspace: Workspace
) -> tuple[tuple[History, ...], tuple[str, ...]]:
    """Return the history of each lead measure when an evaluation was recorded, and unreadable records.

    It contains the evaluation and the 30 records before it, of nights that are no later, so that later evaluations do
    not change it. A series has at least two nights, the evaluation's being the last.
    """
    if manifest.repeats:
        return (), ()
    measures = tuple(dict.fromkeys(evaluation.leading.values()))

    def look(entry: RecordEntry) -> tuple[HistoryEntry, ...]:
        return tuple(_make_entry(entry, spelled(measure, entry) or measure) for measure in measures)

    try:
        scan = scan_earlier(workspace.records, evaluation.name, manifest.order, _MOST_KNOWN, look)
    except OSError as error:
        return (), (f"no history: {error}",)
    histories = []
    for place, measure in enumerate(measures):
        tonight = _entry(evaluation.evaluation_id, manifest, measure, evaluation.estimates, evaluation.verdicts)
        entries = [entries[place] for entries in scan.found]
        tasks = tonight.lines.keys() | tonight.failures.keys()
        result = history_of(evaluation.name, measure, [*entries, tonight])
        series = tuple(
            one_series
            for one_series in result.series
            if (one_series.dataset, one_series.model) in tasks
            and evaluation.leading.get(one_series.dataset) == measure
            and len(one_series.nights) > 1
        )
        if series:
            histories.append(replace(result, series=series, remarks=()))
    return tuple(histories), tuple(f"history: {line}" for line in scan.remarks)


def _make_entry(entry: RecordEntry, measure: str) -> HistoryEntry:
    return _entry(entry.evaluation_id, entry.manifest, measure, entry.lines(measure), entry.record.verdicts)


def _entry(
    evaluation_id: str, manifest: Manifest, measure: str, lines: Iterable[Estimate], verdicts: tuple[Verdict, ...]
) -> HistoryEntry:
    definition = manifest.definitions.get(measure)
    git = manifest.environment.git
    return HistoryEntry(
        evaluation_id=evaluation_id,
        measure=measure,
        date=manifest.night,
        created=datetime.fromisoformat(manifest.created).astimezone(UTC),
        repeats=bool(manifest.repeats),
        lines={(line.dataset, line.model): line for line in lines if (line.measure, line.slice) == (measure, ALL)},
        failures=manifest.not_evaluated,
        verdicts=verdicts,
        direction=definition.direction if definition else None,
        rests_on={name: manifest.comparability(name, measure) for name in (*manifest.datasets, _POOLED)},
        version=manifest.environment.packages.get("rankledger"),
        commit=git.commit if git else None,
    )


def _list_promotions(entry: RecordEntry) -> dict[str, str]:
    receipt = None
    if any(model.promote for model in entry.manifest.models.values()):
        with suppress(InputError):
            receipt = read_promotions(entry.records, entry.evaluation_id)
    return {
        settled.model: f"models:/{settled.registered}/{settled.version} @{settled.alias}"
        for settled in (receipt.promotions if receipt else ())
        if settled.outcome == "promoted"
    }


def nights_of(evaluations: Sequence[Entry]) -> tuple[list[Entry], tuple[str, ...]]:
    """Return the last evaluation of each date without repeats, by date, and lines on those left out."""
    ordered = sorted(evaluations, key=lambda entry: order_night(entry.date, entry.created, entry.evaluation_id))
    first_runs = [evaluated for evaluated in ordered if not evaluated.repeats]
    last = {evaluated.date: evaluated for evaluated in first_runs}
    n_repeats, n_earlier = len(ordered) - len(first_runs), len(first_runs) - len(last)
    remarks = []
    if n_repeats:
        some = "1 evaluation that repeats" if n_repeats == 1 else f"{n_repeats} evaluations that repeat"
        remarks.append(f"left out: {some} an earlier one")
    if n_earlier:
        some = "1 evaluation" if n_earlier == 1 else f"{n_earlier} evaluations"
        remarks.append(f"left out: {some} with a later one of the same date; `evaluate --date LABEL` keeps them apart")
    return [entry for entry in first_runs if entry is last[entry.date]], tuple(remarks)


def _nothing(measure: str, tasks: Iterable[Task], dataset: str | None, model: str | None) -> str:
    datasets, models = ([*dict.fromkeys(part)] for part in zip(*tasks, strict=True))
    for kind, value, names in (("dataset", dataset, datasets), ("model", model, models)):
        if value is not None and value not in names:
            return f"no {kind} {value!r} has {measure}; those that have: {', '.join(names)}{likely(value, names)}"
    return f"{model!r} was never evaluated on {dataset!r} by {measure}"


def _series(task: Task, evaluations: Sequence[HistoryEntry]) -> Series:
    nights = tuple(_list_nights(task, evaluations))
    figures = {place: night.estimate for place, night in enumerate(nights) if night.estimate is not None}
    shown = [nights[place] for place in figures]
    steps = find_changepoints(
        [night.date for night in shown],
        [*figures.values()],
        [night.std_error for night in shown],
        [place for place, night in enumerate(shown) if night.breaks],
    )
    return Series(**vars(steps), dataset=task[0], model=task[1], nights=nights)


def _list_nights(task: Task, evaluations: Iterable[HistoryEntry]) -> Iterator[Night]:
    before: tuple[HistoryEntry, Night] | None = None  # the last night with a figure
    for evaluated in evaluations:
        if task not in evaluated.lines:
            if task in evaluated.failures:
                yield _night(evaluated, task, None, ())
            continue
        line = evaluated.lines[task]
        breaks = () if before is None or line.estimate is None else tuple(_breaks(task[0], before[0], evaluated))
        night = _night(evaluated, task, line, breaks)
        if before is not None and not breaks and line.estimate is not None and before[1].estimate is not None:
            night = replace(night, change=line.estimate - before[1].estimate)
        yield night
        if night.estimate is not None:
            before = evaluated, night


def _night(evaluated: HistoryEntry, task: Task, line: Estimate | None, breaks: tuple[InputChange, ...]) -> Night:
    dataset, model = task
    judged = [v for v in evaluated.verdicts if v.model == model and (dataset == _POOLED or v.dataset in (dataset, ""))]
    return Night(
        date=evaluated.date,
        evaluation_id=evaluated.evaluation_id,
        estimate=line.estimate if line else None,
        ci_low=line.ci_low if line else None,
        ci_high=line.ci_high if line else None,
        std_error=line.std_error if line else None,
        n_queries=line.n_queries if line else 0,
        mark=line.mark if line else "",
        change=None,
        gates=overall_effect(judged),
        commit=evaluated.commit,
        breaks=breaks,
        failure="" if line else evaluated.failures[task],
        promoted=evaluated.promoted.get(model, ""),
        n_undefined=line.n_undefined if line else 0,
    )


def _breaks(dataset: str, before: HistoryEntry, after: HistoryEntry) -> Iterator[InputChange]:
    nothing = Comparability({})
    yield from before.rests_on.get(dataset, nothing).differences(after.rests_on.get(dataset, nothing))
    if before.version != after.version:
        yield InputChange("rankledger", before.version, after.version)
