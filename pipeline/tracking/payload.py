"""A record as MLflow runs: names, metrics and tags to log, worked out from the record alone.

Conventions: a figure that is not finite is never logged, for one NaN breaks the page of a run; `.n_undefined` says that
it is undefined. A run has so many metrics at most. Beyond, they are taken in the order of `_Order`, what belongs
together wholly or not at all, and within one order as the config lists its suites and measures. Of each suite one
measure is primary: the one that leads on the dataset, or the first of a suite without it.

Names are those of `types.mlflow_names`. A value that is too long ends in `…`; the record has the whole.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, TypeVar

from rankledger.pipeline.support.errors import TrackingError, shorten
from rankledger.pipeline.types.gates import LEAST_CLUSTERS, Verdict, night_of, overall_effect, overall_outcome
from rankledger.pipeline.types.manifest import Dataset, Description
from rankledger.pipeline.types.mlflow_names import (
    EXPERIMENT_LIMIT,
    EXTRA,
    FINGERPRINT,
    NAME_LIMIT,
    PARAM_LIMIT,
    TAG_LIMIT,
    WORST_SLICE,
    Naming,
    allowed,
    clashes,
    experiment_of,
    history_of,
    overall,
    overview,
    text_of,
)
from rankledger.pipeline.types.results import ALL, Comparison, Estimate, Record
from rankledger.pipeline.types.tables import ChangeSince

__all__ = [
    "DATASET",
    "EVALUATION",
    "FAILED",
    "HISTORY",
    "MANIFEST",
    "MODEL",
    "REPLICATE",
    "History",
    "Logged",
    "MetricSelection",
    "Run",
    "RunInput",
    "Task",
    "by_name",
    "runs_of",
]

EVALUATION = "rankledger.evaluation"
"""The tag by which every run of an evaluation is found again."""

DATASET = "rankledger.dataset"
MODEL = "rankledger.model"
"""The tags that say of what a model's run or history is."""

FAILED = "rankledger.failed"
"""The tag of a FAILED run that says what failed: `gates` of the evaluation, or the `output` of a model."""

MANIFEST = "rankledger.manifest_sha256"
"""The tag that the evaluation's own run alone has: the hash of its record's manifest."""

REPLICATE = "rankledger.replicate"
"""The tag that the run of a replicate alone has: the replicate's name."""

HISTORY = "rankledger.history"
"""The tag that the histories of models have: the name of the evaluation."""

Task: TypeAlias = tuple[str, ...] | None
"""What a run is of: a dataset and a model, a replicate after them, or the whole evaluation."""

Value = TypeVar("Value")


def by_name(kind: str, items: Iterable[tuple[str, str, Value]]) -> dict[str, Value]:
    """The values by the names that MLflow allows.

    Args:
        kind: what they are, for the message.
        items: (name, what has it, value).

    Raises:
        TrackingError: names coincide or are too long; of a record whose config was not checked for it.
    """
    listed = list(items)
    for problem in clashes((name, owner) for name, owner, _ in listed):
        raise TrackingError(f"{kind}: {problem}")
    return {allowed(name): value for name, _, value in listed}


def _storable(text: str) -> str:
    """The text with `?` or `�` for what databases refuse: halves of surrogate pairs, of no UTF-8 file name, and NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")


class _Order(IntEnum):
    """What is logged first where not all can be."""

    PRIMARY = 0
    """The primary measures, with all that is said of them."""

    WORST_SLICE = 1
    """Their worst slices."""

    CHANGE = 2
    """How figures changed since the previous and since the accepted evaluation."""

    UNDEFINED = 3
    """How many queries are undefined, by measures where there are any."""

    EXTRA = 4
    """External metrics."""

    ESTIMATE = 5
    """The figures of the other measures."""

    PRIMARY_DIFFERENCE = 6
    """How the primary measures differ from other models."""

    INTERVAL = 7
    """The intervals of the other measures."""

    DIFFERENCE = 8
    """How these differ from other models."""

    DETAIL = 9
    """Their standard errors, bounds over ties, and that no query is undefined."""


_FIELDS = {
    _Order.ESTIMATE: ("estimate",),
    _Order.INTERVAL: ("ci_low", "ci_high"),
    _Order.UNDEFINED: ("n_undefined",),
    _Order.DETAIL: ("std_error", "ties_least", "ties_greatest"),
}


@dataclass(frozen=True)
class Logged:
    """What a run says of figures.

    Attributes:
        metrics: finite figures by name.
        tags: which slices are the worst, and how many metrics were left out.
    """

    metrics: Mapping[str, float]
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _MetricGroup:
    """Metrics that are logged all or not at all: (name, what has it, figure)."""

    order: _Order
    metrics: tuple[tuple[str, str, float], ...]


class MetricSelection:
    """The figures of a record, by dataset and model."""

    def __init__(self, record: Record, template: str, limit: int) -> None:
        """Index a record.

        Args:
            record: what was evaluated.
            template: that of metric names, with `{measure}` and, if wanted, `{suite}`.
            limit: metrics of a run, at most.
        """
        manifest = record.manifest
        self._limit = limit
        self._manifest = manifest
        self._naming = Naming(template, manifest.bootstrap.confidence)
        self._lines: dict[tuple[str, str], dict[str, list[Estimate]]] = defaultdict(lambda: defaultdict(list))
        for line in record.summary:
            self._lines[line.dataset, line.model][line.measure].append(line)
        self._slice_changes = record.slice_changes
        self._replicates = {
            (line.dataset, line.model, line.replicate, line.measure): line.estimate for line in record.replicates
        }
        self._compared: dict[tuple[str, str], dict[str, list[Comparison]]] = defaultdict(lambda: defaultdict(list))
        for compared in record.comparisons:
            if compared.slice == ALL:
                self._compared[compared.dataset, compared.model][compared.measure].append(compared)
        self._changes: dict[tuple[str, str], dict[str, list[ChangeSince]]] = defaultdict(lambda: defaultdict(list))
        for change in record.changes:
            self._changes[change.dataset, change.model][change.measure].append(change)

    def of_model(self, task: tuple[str, str]) -> Logged:
        """What the run of a model on a dataset says: every suite's figures, differences, and its own numbers."""
        dataset, model = task
        parts: list[_MetricGroup] = []
        tags: dict[str, str] = {}
        primary = _primary(self._manifest, dataset)
        for suite, measure in _measures_of(self._manifest, dataset):
            name, lines = self._name(suite, measure), self._lines[task][measure]
            whole = next(line for line in lines if line.slice == ALL)
            parts += _own(self._naming.own(name), measure, whole, [*_FIELDS] if measure in primary else ())
            parts += self._differences(task, measure, name, measure in primary)
            parts += self._changed(task, measure, name)
            worst = self._worst_slice(task, measure) if measure in primary else None
            if worst is not None:
                found = ((self._naming.worst_slice(name), f"the worst slice of {measure}", worst[1]),)
                parts.append(_part(_Order.WORST_SLICE, found))
                tags[WORST_SLICE + name] = worst[0]
        return self._logged([*parts, *self._external_metrics(model)], tags)

    def of_replicate(self, dataset: str, model: str, replicate: str) -> Logged:
        """What the run of a replicate says: every suite's figures."""
        primary = _primary(self._manifest, dataset)
        parts = []
        for suite, measure in _measures_of(self._manifest, dataset):
            figure = self._replicates.get((dataset, model, replicate, measure))
            order = _Order.PRIMARY if measure in primary else _Order.ESTIMATE
            parts.append(_part(order, [(self._name(suite, measure), measure, figure)]))
        return self._logged(parts, {})

    def of_evaluation(self) -> Logged:
        """What the evaluation's own run says: how its models did, so that its nights can be seen side by side.

        In a section of each model it is the figure by the measure that leads on every dataset; and where figures are
        pooled, those over all datasets together.
        """
        primary = {measure for dataset in self._manifest.datasets for measure in _primary(self._manifest, dataset)}
        parts: list[_MetricGroup] = []
        for (dataset, model), measures in self._lines.items():
            if dataset != "*":
                parts.append(self._overview(dataset, model))
            for measure, lines in measures.items() if dataset == "*" else ():
                names = self._naming.own(overall(model, self._key(measure)))
                first = [_Order.ESTIMATE] if measure in primary else ()
                parts += _own(names, f"{measure} of {model}", lines[0], first)
        return self._logged(parts, {})

    def _overview(self, dataset: str, model: str) -> _MetricGroup:
        measure = self._manifest.lead[dataset]
        whole = next(line for line in self._lines[dataset, model][measure] if line.slice == ALL)
        name = overview(model, dataset, self._key(measure))
        return _part(_Order.PRIMARY, [(name, f"{measure} of {model} on {dataset}", whole.estimate)])

    def primary(self, dataset: str) -> tuple[str, bool] | None:
        """The metric that a dataset's models are distinguished by, and whether more of it is better.

        It is the one that leads, or else the first measure, in the order of the suites, of which more or less is
        better; None if there is none.
        """
        lead = self._manifest.lead.get(dataset)
        for suite, measure in sorted(_measures_of(self._manifest, dataset), key=lambda found: found[1] != lead):
            if self._direction(measure) != "neither":
                return self._name(suite, measure), self._direction(measure) == "higher"
        return None

    def _worst_slice(self, task: tuple[str, str], measure: str) -> tuple[str, float | None] | None:
        """The slice that lost most against the rest, where slices were searched; else the one with the worst figure."""
        for change in self._slice_changes:
            if (change.dataset, change.model, change.measure) == (*task, measure) and change.statistic < 0:
                return change.slice, change.after
        worst = _worst(self._lines[task][measure], self._direction(measure))
        return None if worst is None else (worst.slice, worst.estimate)

    def _key(self, measure: str) -> str:
        return self._manifest.definitions[measure].mlflow_key

    def _name(self, suite: str, measure: str) -> str:
        return self._naming.figure(suite, self._key(measure))

    def _direction(self, measure: str) -> str:
        return self._manifest.definitions[measure].direction

    def _differences(self, task: tuple[str, str], measure: str, name: str, primary: bool) -> Iterator[_MetricGroup]:
        order = _Order.PRIMARY_DIFFERENCE if primary else _Order.DIFFERENCE
        for line in self._compared[task][measure]:
            names, owner = self._naming.difference(name, line.baseline), f"{measure} of {line.baseline}"
            yield _part(order, ((names[key], _owner(key, owner), getattr(line, key)) for key in names))

    def _changed(self, task: tuple[str, str], measure: str, name: str) -> Iterator[_MetricGroup]:
        for line in self._changes[task][measure]:
            names, owner = self._naming.change(name, line.since), f"{measure} since {line.since}"
            yield _part(_Order.CHANGE, ((names[key], _owner(key, owner), getattr(line, key)) for key in names))

    def _external_metrics(self, model: str) -> Iterator[_MetricGroup]:
        external = self._manifest.external_metrics.get(model)
        for number, figure in external.numbers.items() if external else ():
            yield _part(_Order.EXTRA, [(EXTRA + number, f"the extra {number}", figure)])

    def _logged(self, parts: Sequence[_MetricGroup], tags: Mapping[str, str]) -> Logged:
        """As many of the parts as a run takes, in the order of importance, under names that MLflow allows."""
        every = by_name("measures", (metric for part in parts for metric in part.metrics))
        chosen: dict[str, float] = {}
        for part in sorted(parts, key=lambda part: part.order):
            further = {allowed(name): figure for name, _, figure in part.metrics if allowed(name) not in chosen}
            if len(chosen) + len(further) <= self._limit:
                chosen |= further
        n_left_out = len(every) - len(chosen)
        left_out = {"rankledger.n_metrics_left_out": str(n_left_out)} if n_left_out else {}
        return Logged({name: figure for name, figure in every.items() if name in chosen}, {**tags, **left_out})


def _measures_of(manifest: Description, dataset: str) -> list[tuple[str, str]]:
    """(suite, measure) of everything that is measured on the dataset."""
    suites = manifest.datasets[dataset].suites
    return [(suite, measure) for suite, measures in suites.items() for measure in measures]


def _primary(manifest: Description, dataset: str) -> set[str]:
    lead = manifest.lead.get(dataset)
    return {lead if lead in measures else measures[0] for measures in manifest.datasets[dataset].suites.values()}


def _own(names: Mapping[str, str], owner: str, line: Estimate, first: Collection[_Order]) -> Iterator[_MetricGroup]:
    """A figure and all that is said of it; the orders that are named come first instead."""
    for order, keys in _FIELDS.items():
        at = order
        if order is _Order.UNDEFINED and line.n_undefined == 0 and _finite(line.estimate):
            at = _Order.DETAIL
        found = ((names[key], _owner(key, owner), getattr(line, key)) for key in keys)
        yield _part(_Order.PRIMARY if order in first else at, found)


def _owner(key: str, owner: str) -> str:
    return owner if key in ("estimate", "difference") else f"{key} of {owner}"


def _part(order: _Order, metrics: Iterable[tuple[str, str, float | None]]) -> _MetricGroup:
    """What of it is finite."""
    return _MetricGroup(order, tuple((name, owner, figure) for name, owner, figure in metrics if _finite(figure)))


def _finite(figure: float | None) -> TypeGuard[float]:
    return figure is not None and math.isfinite(figure)


def _worst(lines: Sequence[Estimate], direction: str) -> Estimate | None:
    """The slice with the worst figure, of those that are not too small to tell; the first of equals.

    None where each of them is better than all queries are: then what is worse is too small to tell.
    """
    large = [
        line for line in lines if line.slice != ALL and line.mark != "sparse" and line.n_clusters >= LEAST_CLUSTERS
    ]
    figures = [(line.estimate, line) for line in large if _finite(line.estimate)]
    if not figures or direction == "neither":
        return None
    sign = 1 if direction == "higher" else -1
    figure, worst = min(figures, key=lambda found: sign * found[0])
    whole = next((line.estimate for line in lines if line.slice == ALL), None)
    return worst if whole is None or not sign * figure > sign * whole else None


_EPOCH = date(1970, 1, 1)
_DAY_LIMIT = 40  # letters of a `--date` that is none


@dataclass(frozen=True)
class RunInput:
    """A dataset as the input of a run.

    Attributes:
        name: the dataset's name.
        sha256: hex digest of the hex digests of its judgments' or ratings' files, one to a line; of its queries' or
            its scores' where scores are given.
        source_type: `local`, or the scheme of a URL.
        source: JSON: the first file, and how many there are.
    """

    name: str
    sha256: str
    source_type: str
    source: str

    @property
    def digest(self) -> str:
        """As much of the hash as MLflow has room for."""
        return self.sha256[:32]


@dataclass(frozen=True)
class History:
    """The long-lived run of a model on a dataset, and the points that an evaluation adds to it.

    Attributes:
        experiment: the experiment's name.
        name: what tables and charts call it.
        tags: those that it has from its beginning: whose it is, and what its points are.
        start: milliseconds since 1970, UTC, at which it began if this is its first evaluation.
        step: days from 1970-01-01 to the night's date.
        time: milliseconds since 1970, UTC, at which the evaluation ended.
        metrics: the figures, one point each.
    """

    experiment: str
    name: str
    tags: Mapping[str, str]
    start: int
    step: int
    time: int
    metrics: Mapping[str, float]

    @property
    def task(self) -> tuple[str, str]:
        """The dataset and the model."""
        return self.tags[DATASET], self.tags[MODEL]


@dataclass(frozen=True)
class Run:
    """One run as it is to be logged.

    Attributes:
        experiment: the experiment's name.
        name: what tables and charts call it.
        start: milliseconds since 1970, UTC.
        end: the same.
        tags: by key.
        params: by key.
        metrics: finite figures by key.
        inputs: the datasets.
        artifacts: a folder whose files are kept with it.
        task: the dataset and the model, and the replicate for the run of one, whose parent is the model's run; None for
            the evaluation's own run.
        failed: whether the model's output was missing or refused, or a gate failed, of the evaluation's own run.
        primary: the metric that the experiment's runs are distinguished by, and whether more of it is better; the tags
            `mlflow.experiment.primaryMetric.name` and `.greaterIsBetter` of the experiment. None if there is none.
        logged_model: `models:/…`, the logged or registered model that the metrics are of, too; None where none is.
        history: the long-lived run of the same model that gets the metrics as points; None where none does.
    """

    experiment: str
    name: str
    start: int
    end: int
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Mapping[str, float] = field(default_factory=dict)
    inputs: tuple[RunInput, ...] = ()
    artifacts: Path | None = None
    task: Task = None
    failed: bool = False
    primary: tuple[str, bool] | None = None
    logged_model: str | None = None
    history: History | None = None


def runs_of(record: Record, *, metric_name: str, max_metrics: int, note: str) -> tuple[Run, ...]:
    """The runs of an evaluation: one per dataset and model in the config's order, and last the evaluation's own.

    A model with replicates has a run for each of them after its own.

    MLflow lists the most recent start first. They start a millisecond apart, so that the evaluation's own run stands on
    top and the models stand below in the config's order.

    Args:
        record: what was evaluated.
        metric_name: the template of metric names, with `{measure}` and, if wanted, `{suite}`.
        max_metrics: metrics of a run, at most.
        note: Markdown that describes the evaluation; none where empty.

    Raises:
        TrackingError: a name is too long for MLflow, or two names are one to it.
    """
    manifest = record.manifest
    failures, replicates = manifest.not_evaluated, _replicates_of(manifest)
    known = failures.keys() | manifest.tasks.keys()
    tasks = [
        (*task, *replicate)
        for task in ((dataset, model) for dataset in manifest.datasets for model in manifest.models)
        if task in known
        for replicate in ((), *replicates.get(task, ()))
    ]
    last = _milliseconds(manifest.created) + len(tasks)
    figures = MetricSelection(record, metric_name, max_metrics)
    models = [
        _replicate_run(record, task, last - 1 - i, figures)
        if len(task) > 2
        else _failed_run(record, task[:2], last - 1 - i, figures, failures[task[:2]])
        if task in failures
        else _model_run(record, task[:2], last - 1 - i, figures)
        for i, task in enumerate(tasks)
    ]
    return (*models, _evaluation_run(record, last, figures, note))


def _replicates_of(manifest: Description) -> dict[tuple[str, str], list[tuple[str]]]:
    """By dataset and model, the replicates that were evaluated, and those that failed beside one that was."""
    found = {task: [(output.replicate,) for output in own if output.replicate] for task, own in manifest.tasks.items()}
    for failure in manifest.failures:
        if failure.replicate and (failure.dataset, failure.model) in found:
            found[failure.dataset, failure.model].append((failure.replicate,))
    return found


def _replicate_run(record: Record, task: tuple[str, ...], start: int, figures: MetricSelection) -> Run:
    """The run of one replicate: its figures over all queries, without intervals, or why it was not evaluated."""
    dataset, model, replicate = task
    reasons = {(each.dataset, each.model, each.replicate): each.reason for each in record.manifest.failures}
    if task in reasons:
        run = _failed_run(record, (dataset, model), start, figures, reasons[task])
    else:
        logged = figures.of_replicate(dataset, model, replicate)
        run = replace(_task_run(record, (dataset, model), start, figures, logged.tags), metrics=logged.metrics)
    tags = {key: value for key, value in run.tags.items() if key != "rankledger.gates"}
    own = _tags(record.manifest, {REPLICATE: replicate})[REPLICATE]
    name = _name(record.manifest, f"{model} {replicate}")
    return replace(run, name=name, task=task, tags=tags | {REPLICATE: own}, logged_model=None)


def _evaluation_run(record: Record, start: int, figures: MetricSelection, note: str) -> Run:
    manifest, logged = record.manifest, figures.of_evaluation()
    settings: dict[str, object] = {"seed": manifest.seed}
    settings |= {f"conventions.{name}": value for name, value in manifest.conventions if value is not None}
    settings |= {f"bootstrap.{name}": value for name, value in manifest.bootstrap}
    tags = {MANIFEST: hashlib.sha256((record.path / "manifest.json").read_bytes()).hexdigest()}
    tags |= {**logged.tags, **_gates(record.verdicts)}
    failed = overall_outcome(record.verdicts) == "fail"
    if failed:
        tags[FAILED] = "gates"
    if note:
        tags["mlflow.note.content"] = _shortened(note)
    return Run(
        experiment=_experiment(experiment_of(manifest.name)),
        name=_name(manifest, manifest.name),
        start=start,
        end=max(start, _milliseconds(manifest.finished)),
        tags=_tags(manifest, tags),
        params=_params(settings),
        metrics=logged.metrics,
        inputs=_inputs(manifest.datasets),
        artifacts=record.path,
        failed=failed,
    )


def _model_run(record: Record, task: tuple[str, str], start: int, figures: MetricSelection) -> Run:
    manifest, (dataset, model) = record.manifest, task
    definitions = manifest.definitions_for(dataset)
    logged = figures.of_model(task)
    measured = [definitions[measure] for measure in manifest.datasets[dataset].measures]
    tags = {FINGERPRINT + definition.mlflow_key: definition.fingerprint for definition in measured}
    warnings = [
        warning.warning for warning in manifest.warnings if warning.dataset == dataset and warning.model in ("", model)
    ]
    tags |= {"rankledger.warnings": "\n".join(warnings)} if warnings else {}
    run = _task_run(record, task, start, figures, {**logged.tags, **tags})
    run = replace(run, metrics=logged.metrics)
    return replace(run, history=_history(manifest, run)) if logged.metrics else run


_NOTE = """\
One point per record and metric. The step is the night's date in days since 1970-01-01, the time that of the record: \
choose *Time (wall)* as the x-axis to see dates. A night that was evaluated again has a point for each record."""


def _history(manifest: Description, run: Run) -> History:
    """The history of the model that a run is of, and its points."""
    night = night_of(manifest.date, datetime.fromisoformat(manifest.created))
    tags = {HISTORY: manifest.name, "mlflow.note.content": _NOTE}
    return History(
        experiment=_experiment(history_of(manifest.name, run.tags[DATASET])),
        name=shorten(run.tags[MODEL], NAME_LIMIT),
        tags=tags | {key: run.tags[key] for key in (DATASET, MODEL, "mlflow.user") if key in run.tags},
        start=run.start,
        step=(night - _EPOCH).days,
        time=run.end,
        metrics=run.metrics,
    )


def _failed_run(record: Record, task: tuple[str, str], start: int, figures: MetricSelection, reason: str) -> Run:
    verbatim = reason.replace("\n", "\n    ")  # Markdown would take `_` and `*` in a path for emphasis
    note = _shortened(f"Not evaluated:\n\n    {verbatim}")
    tags = {FAILED: "output", "rankledger.failure": reason, "mlflow.note.content": note}
    return replace(_task_run(record, task, start, figures, tags), failed=True)


def _task_run(
    record: Record, task: tuple[str, str], start: int, figures: MetricSelection, tags: Mapping[str, str]
) -> Run:
    """A model's run but for its metrics."""
    manifest = record.manifest
    dataset, model = task
    described = manifest.models[model]
    found_by = {DATASET: dataset, MODEL: model}
    found_by |= _gates([verdict for verdict in record.verdicts if verdict.model == model])
    named = {"owner": described.owner, "model_id": described.model_id, "model_uri": described.model_uri}
    found_by |= {f"rankledger.{key}": value for key, value in named.items() if value is not None}
    return Run(
        experiment=_experiment(experiment_of(manifest.name, dataset)),
        name=_name(manifest, model),
        start=start,
        end=max(start, _milliseconds(manifest.finished)),
        tags=_tags(manifest, found_by | dict(tags), described.tags),
        params=_params(described.params),
        inputs=_inputs({dataset: manifest.datasets[dataset]}),
        task=task,
        primary=figures.primary(dataset),
        logged_model=f"models:/{described.model_id}" if described.model_id else described.model_uri,
    )


def _name(manifest: Description, what: str) -> str:
    """What it is of, the month and the day that were evaluated, and the end of the evaluation's id.

    Tables have room for some twenty letters; MLflow itself shows the year.
    """
    day = re.sub(r"^[0-9]{4}-(?=[0-9]{2}-[0-9]{2}$)", "", manifest.date or manifest.created[:10])
    when = f" {shorten(day, _DAY_LIMIT)} {manifest.evaluation_id.rpartition('-')[2]}"
    return _storable(shorten(what, NAME_LIMIT - len(when)) + when)


def _gates(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The tag that says what the gates came to; none if there are none."""
    return {"rankledger.gates": overall_effect(verdicts)} if verdicts else {}


def _tags(manifest: Description, ours: Mapping[str, str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Who and what made the run, under the keys that MLflow's pages look for; what is ours; and the user's own."""
    git = manifest.environment.git
    fixed = {
        EVALUATION: manifest.evaluation_id,
        "rankledger.command": manifest.command,
        "rankledger.host": manifest.host,
        "mlflow.user": manifest.user,
        "mlflow.source.name": manifest.config or None,
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": git.commit if git else None,
        "mlflow.source.git.branch": git.branch if git else None,
        "mlflow.source.git.repoURL": git.url if git else None,
        "mlflow.source.git.dirty": text_of(git.dirty) if git else None,
    }
    known = {**{key: value for key, value in fixed.items() if value is not None}, **ours}
    ours_first = [(key, "rankledger's own", value) for key, value in known.items()]
    found = by_name("tags", [*ours_first, *((key, key, value) for key, value in (given or {}).items())])
    return {key: shorten(_storable(value), TAG_LIMIT) for key, value in found.items()}


def _params(values: Mapping[str, Any]) -> dict[str, str]:
    return by_name(
        "params", [(key, key, shorten(_storable(text_of(value)), PARAM_LIMIT)) for key, value in values.items()]
    )


def _inputs(datasets: Mapping[str, Dataset]) -> tuple[RunInput, ...]:
    """The datasets as inputs of a run; one of given scores that nothing could be read of is none."""
    return tuple(_input(name, dataset) for name, dataset in datasets.items() if dataset.inputs)


def _input(name: str, dataset: Dataset) -> RunInput:
    """The dataset by its judgments or ratings, and what is excluded; of scores by its queries table or the scores."""
    roles = ("queries", "scores") if dataset.kind == "scores" else ("judgments", "ratings")
    files = dataset.files(*roles)
    digests = [file.digest for file in files] + ([dataset.exclusions_digest] if dataset.exclusions_digest else [])
    scheme, separator, _ = files[0].path.partition("://")
    return RunInput(
        name=name,
        sha256=hashlib.sha256("\n".join(digests).encode()).hexdigest(),
        source_type=scheme if separator else "local",
        source=json.dumps({"uri": files[0].path, "n_files": len(files)}, ensure_ascii=False),
    )


def _experiment(name: str) -> str:
    if len(name) > EXPERIMENT_LIMIT:
        raise TrackingError(
            f"the experiment '{name[:60]}…' has {len(name)} characters, and MLflow allows {EXPERIMENT_LIMIT}"
        )
    return name


def _shortened(note: str) -> str:
    """The note, cut after a whole line where it is too long."""
    if len(note) <= TAG_LIMIT:
        return note
    ending = "\n\n… cut here; the record has the full text."
    kept = note[: TAG_LIMIT - len(ending)]
    return (kept[: kept.rfind("\n")] if "\n" in kept else kept) + ending


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)
