"""A record as MLflow runs: what tracking is to log, worked out from the record alone, before MLflow is touched.

Conventions: names are those of `pipeline.mlflow_names`. A value that is too long ends in `…`; the record has the whole.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.mlflow_names import (
    EXPERIMENT_LIMIT,
    FINGERPRINT,
    NAME_LIMIT,
    PARAM_LIMIT,
    TAG_LIMIT,
    cut,
    experiment_of,
    text_of,
)
from pipeline.tables import Record, definitions_on
from pipeline.tracking.figures import Figures, measures_of
from pipeline.tracking.names import EVALUATION, MANIFEST, TrackingError, by_name, storable
from pipeline.verdicts import Verdict, failed

__all__ = ["Run", "RunInput", "runs_of"]

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
        task: the dataset and the model; None for the evaluation's own run.
        failed: whether the model's output was missing or refused.
        primary: the metric that the experiment's runs are told apart by, and whether more of it is better; the tags
            `mlflow.experiment.primaryMetric.name` and `.greaterIsBetter` of the experiment. None where there is none.
        logged_model: `models:/…`, the logged or registered model that the metrics are of, too; None where none is.
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
    task: tuple[str, str] | None = None
    failed: bool = False
    primary: tuple[str, bool] | None = None
    logged_model: str | None = None


def runs_of(record: Record, *, metric_name: str, note: str) -> tuple[Run, ...]:
    """The runs of an evaluation: one per dataset and model in the config's order, and last the evaluation's own.

    MLflow lists the latest start first. They start a millisecond apart, so that the evaluation's own run stands on top
    and the models stand below in the config's order.

    Args:
        record: what was evaluated.
        metric_name: the template of metric names, with `{measure}` and, if wanted, `{suite}`.
        note: Markdown that describes the evaluation; none where empty.

    Raises:
        TrackingError: a name is too long for MLflow, or two names are one to it.
    """
    manifest = record.manifest
    failures = {(failure["dataset"], failure["model"]): failure["reason"] for failure in manifest["failures"]}
    known = failures.keys() | {(output["dataset"], output["model"]) for output in manifest["outputs"]}
    tasks = [
        (dataset, model)
        for dataset in manifest["datasets"]
        for model in manifest["models"]
        if (dataset, model) in known
    ]
    last = _milliseconds(manifest["created"]) + len(tasks)
    figures = Figures(record, metric_name)
    models = [
        _failed_run(record, task, last - 1 - i, figures, failures[task])
        if task in failures
        else _model_run(record, task, last - 1 - i, figures)
        for i, task in enumerate(tasks)
    ]
    return (*models, _evaluation_run(record, last, figures, note))


def _evaluation_run(record: Record, start: int, figures: Figures, note: str) -> Run:
    manifest, logged = record.manifest, figures.of_evaluation()
    settings = {"seed": manifest["seed"]}
    settings |= {f"conventions.{name}": value for name, value in manifest["conventions"].items() if value is not None}
    settings |= {f"bootstrap.{name}": value for name, value in manifest["bootstrap"].items()}
    tags = {MANIFEST: hashlib.sha256((record.path / "manifest.json").read_bytes()).hexdigest()}
    tags |= {**logged.tags, **_gates(record.verdicts)}
    if note:
        tags["mlflow.note.content"] = _shortened(note)
    return Run(
        experiment=_experiment(experiment_of(manifest["name"])),
        name=_name(manifest, manifest["name"]),
        start=start,
        end=max(start, _milliseconds(manifest["finished"])),
        tags=_tags(manifest, tags),
        params=_params(settings),
        metrics=logged.metrics,
        inputs=_inputs(manifest["datasets"]),
        artifacts=record.path,
    )


def _model_run(record: Record, task: tuple[str, str], start: int, figures: Figures) -> Run:
    definitions = definitions_on(record.manifest, task[0])
    measures = [measure for _, measure in measures_of(record.manifest, task[0])]
    logged = figures.of_model(task)
    tags = {
        FINGERPRINT + definitions[measure]["mlflow_key"]: definitions[measure]["fingerprint"] for measure in measures
    }
    warnings = [
        warning["warning"]
        for warning in record.manifest["warnings"]
        if warning["dataset"] == task[0] and warning["model"] in ("", task[1])
    ]
    tags |= {"rankledger.warnings": "\n".join(warnings)} if warnings else {}
    run = _task_run(record, task, start, figures, {**logged.tags, **tags})
    return replace(run, metrics=logged.metrics)


def _failed_run(record: Record, task: tuple[str, str], start: int, figures: Figures, reason: str) -> Run:
    verbatim = reason.replace("\n", "\n    ")  # Markdown would take `_` and `*` in a path for emphasis
    note = _shortened(f"Not evaluated:\n\n    {verbatim}")
    tags = {"rankledger.failure": reason, "mlflow.note.content": note}
    return replace(_task_run(record, task, start, figures, tags), failed=True)


def _task_run(record: Record, task: tuple[str, str], start: int, figures: Figures, tags: Mapping[str, str]) -> Run:
    """A model's run but for its metrics."""
    manifest = record.manifest
    dataset, model = task
    described = manifest["models"][model]
    found_by = {"rankledger.dataset": dataset, "rankledger.model": model}
    found_by |= _gates([verdict for verdict in record.verdicts if verdict.model == model])
    told = {f"rankledger.{key}": described.get(key) for key in ("owner", "model_id", "model_uri")}
    found_by |= {key: value for key, value in told.items() if value is not None}
    model_id = described.get("model_id")
    return Run(
        experiment=_experiment(experiment_of(manifest["name"], dataset)),
        name=_name(manifest, model),
        start=start,
        end=max(start, _milliseconds(manifest["finished"])),
        tags=_tags(manifest, found_by | dict(tags), described["tags"]),
        params=_params(described["params"]),
        inputs=_inputs({dataset: manifest["datasets"][dataset]}),
        task=task,
        primary=figures.primary(dataset),
        logged_model=f"models:/{model_id}" if model_id else described.get("model_uri"),
    )


def _name(manifest: Mapping[str, Any], what: str) -> str:
    """What it is of, the month and the day that were evaluated, and the end of the evaluation's id.

    Tables have room for some twenty letters; the year is told by MLflow itself.
    """
    day = re.sub(r"^[0-9]{4}-(?=[0-9]{2}-[0-9]{2}$)", "", manifest.get("date") or manifest["created"][:10])
    when = f" {cut(day, _DAY_LIMIT)} {manifest['evaluation_id'].rpartition('-')[2]}"
    return storable(cut(what, NAME_LIMIT - len(when)) + when)


def _gates(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The tag that says what the gates came to; none where there are none."""
    return {"rankledger.gates": failed(verdicts)} if verdicts else {}


def _tags(
    manifest: Mapping[str, Any], ours: Mapping[str, str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Who and what made the run, under the keys that MLflow's pages look for; what is ours; and the user's own."""
    git = manifest["environment"]["git"] or {}
    fixed = {
        EVALUATION: manifest["evaluation_id"],
        "rankledger.command": manifest["command"],
        "rankledger.host": manifest.get("host"),
        "mlflow.user": manifest.get("user"),
        "mlflow.source.name": manifest.get("config") or None,
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": git.get("commit"),
        "mlflow.source.git.branch": git.get("branch"),
        "mlflow.source.git.repoURL": git.get("url"),
        "mlflow.source.git.dirty": text_of(git["dirty"]) if git else None,
    }
    known = {**{key: value for key, value in fixed.items() if value is not None}, **ours}
    ours_first = [(key, "rankledger's own", value) for key, value in known.items()]
    found = by_name("tags", [*ours_first, *((key, key, value) for key, value in (given or {}).items())])
    return {key: cut(storable(value), TAG_LIMIT) for key, value in found.items()}


def _params(values: Mapping[str, Any]) -> dict[str, str]:
    return by_name("params", [(key, key, cut(storable(text_of(value)), PARAM_LIMIT)) for key, value in values.items()])


def _inputs(datasets: Mapping[str, Mapping[str, Any]]) -> tuple[RunInput, ...]:
    """The datasets as inputs of a run; one of given scores that nothing could be read of is none."""
    return tuple(_input(name, dataset) for name, dataset in datasets.items() if dataset["inputs"])


def _input(name: str, dataset: Mapping[str, Any]) -> RunInput:
    """The dataset by its judgments or ratings; or, where scores are given, by its queries table or by the scores."""
    roles = ("queries", "scores") if dataset["kind"] == "scores" else ("judgments", "ratings")
    files: Sequence[Mapping[str, str]] = [file for file in dataset["inputs"] if file["role"] in roles]
    scheme, separator, _ = files[0]["path"].partition("://")
    return RunInput(
        name=name,
        sha256=hashlib.sha256("\n".join(file["sha256"] for file in files).encode()).hexdigest(),
        source_type=scheme if separator else "local",
        source=json.dumps({"uri": files[0]["path"], "n_files": len(files)}, ensure_ascii=False),
    )


def _experiment(name: str) -> str:
    if len(name) > EXPERIMENT_LIMIT:
        raise TrackingError(f"the experiment '{name[:60]}…' has {len(name)} letters; MLflow takes {EXPERIMENT_LIMIT}")
    return name


def _shortened(note: str) -> str:
    """The note, cut after a whole line where it is too long."""
    if len(note) <= TAG_LIMIT:
        return note
    ending = "\n\n… cut here; the record has the whole."
    kept = note[: TAG_LIMIT - len(ending)]
    return (kept[: kept.rfind("\n")] if "\n" in kept else kept) + ending


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)
