"""A record as MLflow runs: names, metrics and tags to log, computed from the record alone.

A value that is too long ends in `…`.
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

from rankledger.pipeline.config.gates import night_of
from rankledger.pipeline.delivery.mlflow.figures import NAME_LIMIT, Metrics, RecordMetrics, name_uniquely
from rankledger.pipeline.gates.verdicts import Verdict, overall_effect, overall_outcome
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.record.manifest_parts import Dataset
from rankledger.pipeline.support.errors import shorten

EVALUATION = "rankledger.evaluation"
"""Tag by which every run of an evaluation is found."""

DATASET = "rankledger.dataset"
MODEL = "rankledger.model"
"""Tags for the model and the dataset of a run or history."""

FAILED = "rankledger.failed"
"""Tag of a FAILED run: `gates` of the evaluation, or the `output` of a model."""

MANIFEST = "rankledger.manifest_sha256"
"""Tag of the evaluation's own run: the hash of its record's manifest."""

REPLICATE = "rankledger.replicate"
"""Tag of a replicate's run: the replicate's name."""

KIND = "rankledger.kind"
"""Tag that tells the runs of an experiment apart: `evaluation`, `model`, `replicate` or `history`."""

Task: TypeAlias = tuple[str, ...] | None
"""Subject of a run: a dataset and a model, with a replicate if any, or None for the whole evaluation."""


def _storable(text: str) -> str:
    """Replace what databases reject: NUL, and halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")


PARAM_LIMIT = 6_000
TAG_LIMIT = 8_000
"""Characters in the value of a param, and of a tag, in MLflow."""

_EPOCH = date(1970, 1, 1)
_LASTING = " history"  # ends the name of a run that all nights share
_DAY_LIMIT = 40  # letters of a `--date` that is none


@dataclass(frozen=True)
class Run:
    """Data of one MLflow run, or of the points that an evaluation adds to the long-lived run of its history."""

    experiment: str
    name: str
    start: int  # milliseconds since 1970, UTC
    end: int
    tags: Mapping[str, str]
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    inputs: tuple[Mapping[str, str], ...] = ()  # datasets, see `_inputs`
    artifacts: Path | None = None
    task: Task = None
    failed: bool = False
    primary: tuple[str, bool] | None = None
    logged_model: str | None = None
    step: int = 0  # of a history: days from 1970-01-01 to the night's date
    history: Run | None = None


def build_runs(record: Evaluation, *, max_metrics: int, note: str) -> tuple[Run, ...]:
    """Return one run per dataset and model in the config's order, each followed by its replicates' runs.

    The evaluation's own run is last. Runs start a millisecond apart, because MLflow lists the most recent start first.
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
    metrics = RecordMetrics(record, max_metrics)
    models = [
        _replicate_run(record, task, last - 1 - i, metrics)
        if len(task) > 2
        else _failed_run(record, task[:2], last - 1 - i, failures[task[:2]])
        if task in failures
        else _model_run(record, task[:2], last - 1 - i, metrics)
        for i, task in enumerate(tasks)
    ]
    return (*models, _evaluation_run(record, last, metrics, note))


def _replicates_of(manifest: Manifest) -> dict[tuple[str, str], list[tuple[str]]]:
    found = {task: [(output.replicate,) for output in own if output.replicate] for task, own in manifest.tasks.items()}
    for failure in manifest.failures:
        if failure.replicate and (failure.dataset, failure.model) in found:
            found[failure.dataset, failure.model].append((failure.replicate,))
    return found


def _replicate_run(record: Evaluation, task: tuple[str, ...], start: int, metrics: RecordMetrics) -> Run:
    dataset, model, replicate = task
    reasons = {(each.dataset, each.model, each.replicate): each.reason for each in record.manifest.failures}
    if task in reasons:
        run = _failed_run(record, (dataset, model), start, reasons[task])
    else:
        run = _task_run(record, (dataset, model), start, {}, metrics.of_replicate(dataset, model, replicate))
    tags = {key: value for key, value in run.tags.items() if key != "rankledger.gates"}
    own = _tags(record.manifest, {REPLICATE: replicate})[REPLICATE]
    name = _name(record.manifest, _subject(record.manifest, task))
    return replace(run, name=name, task=task, tags=tags | {KIND: "replicate", REPLICATE: own}, logged_model=None)


def _evaluation_run(record: Evaluation, start: int, metrics: RecordMetrics, note: str) -> Run:
    manifest, logged = record.manifest, metrics.of_evaluation()
    settings: dict[str, object] = {"seed": manifest.seed}
    settings |= {f"conventions.{name}": value for name, value in manifest.conventions if value is not None}
    settings |= {f"bootstrap.{name}": value for name, value in manifest.bootstrap}
    tags = {KIND: "evaluation", MANIFEST: hashlib.sha256((record.path / "manifest.json").read_bytes()).hexdigest()}
    tags |= {**_count_omitted(logged), **_gates(record.verdicts)}
    failed = overall_outcome(record.verdicts) == "fail"
    if failed:
        tags[FAILED] = "gates"
    if note:
        tags["mlflow.note.content"] = _shortened(note)
    return Run(
        experiment=manifest.name,
        name=_name(manifest, manifest.name),
        start=start,
        end=max(start, _milliseconds(manifest.finished)),
        tags=_tags(manifest, tags),
        params=_params(settings),
        metrics=logged.values,
        inputs=_inputs(manifest.datasets),
        artifacts=record.path,
        failed=failed,
        primary=next(filter(None, map(metrics.primary, manifest.datasets)), None),
    )


def _model_run(record: Evaluation, task: tuple[str, str], start: int, metrics: RecordMetrics) -> Run:
    manifest, (dataset, model) = record.manifest, task
    definitions = manifest.definitions_for(dataset)
    logged = metrics.of_model(dataset, model)
    measured = [definitions[measure] for measure in manifest.datasets[dataset].measures]
    tags = {f"rankledger.fingerprint.{definition.mlflow_key}": definition.fingerprint for definition in measured}
    warnings = [
        warning.warning for warning in manifest.warnings if warning.dataset == dataset and warning.model in ("", model)
    ]
    tags |= {"rankledger.warnings": "\n".join(warnings)} if warnings else {}
    run = _task_run(record, task, start, tags, logged)
    return replace(run, history=_history(manifest, run, task)) if logged.values else run


_NOTE = """\
One point per record and metric. The step is the night's date in days since 1970-01-01, the time that of the record: \
choose *Time (wall)* as the x-axis to see dates. A night that was evaluated again has a point for each record."""


def _history(manifest: Manifest, run: Run, task: tuple[str, str]) -> Run:
    night = night_of(manifest.date, datetime.fromisoformat(manifest.created))
    tags = {key: run.tags[key] for key in (DATASET, MODEL, "mlflow.user") if key in run.tags}
    return Run(
        experiment=run.experiment,
        name=_storable(shorten(_subject(manifest, task), NAME_LIMIT - len(_LASTING)) + _LASTING),
        start=run.start,
        end=run.end,
        tags={KIND: "history", "mlflow.note.content": _NOTE, **tags},
        metrics=run.metrics,
        task=task,
        step=(night - _EPOCH).days,
    )


def _failed_run(record: Evaluation, task: tuple[str, str], start: int, reason: str) -> Run:
    verbatim = reason.replace("\n", "\n    ")  # Markdown would take `_` and `*` in a path for emphasis
    note = _shortened(f"Not evaluated:\n\n    {verbatim}")
    tags = {FAILED: "output", "rankledger.failure": reason, "mlflow.note.content": note}
    return replace(_task_run(record, task, start, tags), failed=True)


def _task_run(
    record: Evaluation, task: tuple[str, str], start: int, tags: Mapping[str, str], metrics: Metrics | None = None
) -> Run:
    manifest, metrics = record.manifest, metrics or Metrics({})
    dataset, model = task
    described = manifest.models[model]
    found_by = {KIND: "model", DATASET: dataset, MODEL: model}
    found_by |= _gates([verdict for verdict in record.verdicts if verdict.model == model])
    named = {"owner": described.owner, "model_id": described.model_id, "model_uri": described.model_uri}
    found_by |= {f"rankledger.{key}": value for key, value in named.items() if value is not None}
    return Run(
        experiment=manifest.name,
        name=_name(manifest, _subject(manifest, task)),
        start=start,
        end=max(start, _milliseconds(manifest.finished)),
        tags=_tags(manifest, {**found_by, **metrics.tags, **_count_omitted(metrics), **tags}, described.tags),
        params=_params(described.params),
        metrics=metrics.values,
        inputs=_inputs({dataset: manifest.datasets[dataset]}),
        task=task,
        logged_model=f"models:/{described.model_id}" if described.model_id else described.model_uri,
    )


def _subject(manifest: Manifest, task: tuple[str, ...]) -> str:
    """Return a model with its replicate, and its dataset if there are several."""
    dataset, *names = task
    return " ".join([*names, dataset] if len(manifest.datasets) > 1 else names)


def _name(manifest: Manifest, what: str) -> str:
    """Return a name of some twenty letters: the subject, month and day, and the end of the evaluation's id."""
    day = re.sub(r"^[0-9]{4}-(?=[0-9]{2}-[0-9]{2}$)", "", manifest.date or manifest.created[:10])
    when = f" {shorten(day, _DAY_LIMIT)} {manifest.evaluation_id.rpartition('-')[2]}"
    return _storable(shorten(what, NAME_LIMIT - len(when)) + when)


def _count_omitted(metrics: Metrics) -> dict[str, str]:
    return {"rankledger.n_metrics_left_out": str(metrics.n_omitted)} if metrics.n_omitted else {}


def _gates(verdicts: Sequence[Verdict]) -> dict[str, str]:
    return {"rankledger.gates": overall_effect(verdicts)} if verdicts else {}


def _tags(manifest: Manifest, ours: Mapping[str, str], given: Mapping[str, str] | None = None) -> dict[str, str]:
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
        "mlflow.source.git.dirty": json.dumps(git.dirty) if git else None,
    }
    known = {**{key: value for key, value in fixed.items() if value is not None}, **ours}
    ours_first = [(key, "rankledger's own", value) for key, value in known.items()]
    found = name_uniquely([*ours_first, *((key, key, value) for key, value in (given or {}).items())])
    return {key: shorten(_storable(value), TAG_LIMIT) for key, value in found.items()}


def _params(values: Mapping[str, Any]) -> dict[str, str]:
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in values.items()
    }
    return name_uniquely((key, key, shorten(_storable(text), PARAM_LIMIT)) for key, text in texts.items())


def _inputs(datasets: Mapping[str, Dataset]) -> tuple[dict[str, str], ...]:
    """Return the datasets as inputs of a run, without score datasets of which nothing could be read.

    `sha256` is the digest of the digests of its judgments or ratings and exclusions, or of its queries table or scores.
    `source` has the first file and the number of files in JSON, `source_type` is `local` or the scheme of a URL.
    """
    inputs = []
    for name, dataset in datasets.items():
        if not dataset.inputs:
            continue
        files = dataset.files(*(("queries", "scores") if dataset.kind == "scores" else ("judgments", "ratings")))
        excluded = dataset.digests.get("excluded documents")
        digests = [file.digest for file in files] + ([excluded] if excluded else [])
        scheme, separator, _ = files[0].path.partition("://")
        sha256 = hashlib.sha256("\n".join(digests).encode()).hexdigest()
        source = json.dumps({"uri": files[0].path, "n_files": len(files)}, ensure_ascii=False)
        source_type = scheme if separator else "local"
        inputs.append({"name": name, "sha256": sha256, "source_type": source_type, "source": source})
    return tuple(inputs)


def _shortened(note: str) -> str:
    if len(note) <= TAG_LIMIT:
        return note
    ending = "\n\n… cut here; the record has the full text."
    kept = note[: TAG_LIMIT - len(ending)]
    return (kept[: kept.rfind("\n")] if "\n" in kept else kept) + ending


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)
