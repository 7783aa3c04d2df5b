"""A record as MLflow runs: names, metrics and tags to log, worked out from the record alone.

Names are those of `types.mlflow_names`. A value that is too long ends in `…`; the record has the whole.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeAlias

from rankledger.pipeline.config.mlflow_names import (
    EXPERIMENT_LIMIT,
    FINGERPRINT,
    NAME_LIMIT,
    PARAM_LIMIT,
    TAG_LIMIT,
    experiment_of,
    history_of,
    text_of,
)
from rankledger.pipeline.config.planned_gates import night_of
from rankledger.pipeline.delivery.mlflow.figures import MetricSelection, by_name
from rankledger.pipeline.gates.verdicts import Verdict, overall_effect, overall_outcome
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.record.manifest_parts import Dataset
from rankledger.pipeline.support.errors import TrackingError, shorten

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


def _storable(text: str) -> str:
    """The text with `?` or `�` for what databases refuse: halves of surrogate pairs, of no UTF-8 file name, and NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")


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


def runs_of(record: Evaluation, *, metric_name: str, max_metrics: int, note: str) -> tuple[Run, ...]:
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


def _replicates_of(manifest: Manifest) -> dict[tuple[str, str], list[tuple[str]]]:
    found = {task: [(output.replicate,) for output in own if output.replicate] for task, own in manifest.tasks.items()}
    for failure in manifest.failures:
        if failure.replicate and (failure.dataset, failure.model) in found:
            found[failure.dataset, failure.model].append((failure.replicate,))
    return found


def _replicate_run(record: Evaluation, task: tuple[str, ...], start: int, figures: MetricSelection) -> Run:
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


def _evaluation_run(record: Evaluation, start: int, figures: MetricSelection, note: str) -> Run:
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


def _model_run(record: Evaluation, task: tuple[str, str], start: int, figures: MetricSelection) -> Run:
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


def _history(manifest: Manifest, run: Run) -> History:
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


def _failed_run(record: Evaluation, task: tuple[str, str], start: int, figures: MetricSelection, reason: str) -> Run:
    verbatim = reason.replace("\n", "\n    ")  # Markdown would take `_` and `*` in a path for emphasis
    note = _shortened(f"Not evaluated:\n\n    {verbatim}")
    tags = {FAILED: "output", "rankledger.failure": reason, "mlflow.note.content": note}
    return replace(_task_run(record, task, start, figures, tags), failed=True)


def _task_run(
    record: Evaluation, task: tuple[str, str], start: int, figures: MetricSelection, tags: Mapping[str, str]
) -> Run:
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


def _name(manifest: Manifest, what: str) -> str:
    """What it is of, the month and the day that were evaluated, and the end of the evaluation's id.

    Tables have room for some twenty letters; MLflow itself shows the year.
    """
    day = re.sub(r"^[0-9]{4}-(?=[0-9]{2}-[0-9]{2}$)", "", manifest.date or manifest.created[:10])
    when = f" {shorten(day, _DAY_LIMIT)} {manifest.evaluation_id.rpartition('-')[2]}"
    return _storable(shorten(what, NAME_LIMIT - len(when)) + when)


def _gates(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The tag that says what the gates came to; none if there are none."""
    return {"rankledger.gates": overall_effect(verdicts)} if verdicts else {}


def _tags(manifest: Manifest, ours: Mapping[str, str], given: Mapping[str, str] | None = None) -> dict[str, str]:
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
    excluded = dataset.digests.get("excluded documents")
    digests = [file.digest for file in files] + ([excluded] if excluded else [])
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
    if len(note) <= TAG_LIMIT:
        return note
    ending = "\n\n… cut here; the record has the full text."
    kept = note[: TAG_LIMIT - len(ending)]
    return (kept[: kept.rfind("\n")] if "\n" in kept else kept) + ending


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)
