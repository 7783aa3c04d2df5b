"""A record as MLflow runs: what tracking is to log, worked out from the record alone, before MLflow is touched.

Conventions: the template names a figure, `search/ndcg_at_10`, and what goes with it has the same name in two further
sections, `search.ci95/` (`.low`, `.high`) and `search.detail/` (`.std_error`, `.n_undefined`). The
difference to another model, which a comparison gives, is in `search.vs_bm25/`. A section is what stands before the
last slash; under a template without one the two are `ci95/` and `detail/`. A letter that MLflow does not
allow in a name becomes `_`, and names that then coincide are refused. A value that is too long ends in `…`; the record
has the whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.tables import Record
from pipeline.tracking.figures import measures_of, metrics_of, pooled_of
from pipeline.tracking.names import NAME_LIMIT, TrackingError, by_name, cut
from pipeline.verdicts import Verdict, failed

__all__ = ["Run", "RunInput", "runs_of"]

_EXPERIMENT_LIMIT = 256  # letters the database has room for; MLflow itself lets 500 pass
_PARAM_LIMIT = 6_000
_TAG_LIMIT = 7_999


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
    models = [
        _failed_run(record, task, last - 1 - i, failures[task])
        if task in failures
        else _model_run(record, task, last - 1 - i, metric_name)
        for i, task in enumerate(tasks)
    ]
    return (*models, _evaluation_run(record, last, note))


def _evaluation_run(record: Record, start: int, note: str) -> Run:
    manifest = record.manifest
    settings = {"seed": manifest["seed"]}
    settings |= {f"conventions.{name}": value for name, value in manifest["conventions"].items() if value is not None}
    settings |= {f"bootstrap.{name}": value for name, value in manifest["bootstrap"].items()}
    tags = {"rankledger.manifest_sha256": hashlib.sha256((record.path / "manifest.json").read_bytes()).hexdigest()}
    tags |= _gates(record.verdicts)
    if note:
        tags["mlflow.note.content"] = _shortened(note)
    return Run(
        experiment=_experiment(manifest["name"]),
        name=cut(manifest["evaluation_id"], NAME_LIMIT),
        start=start,
        end=max(start, _milliseconds(manifest["finished"])),
        tags=_tags(manifest, tags),
        params=_params(settings),
        metrics=pooled_of(record),
        inputs=_inputs(manifest["datasets"]),
        artifacts=record.path,
    )


def _model_run(record: Record, task: tuple[str, str], start: int, metric_name: str) -> Run:
    definitions = record.manifest["definitions"]
    measures = [measure for _, measure in measures_of(record.manifest, task[0])]
    tags = {
        f"rankledger.fingerprint.{definitions[measure]['mlflow_key']}": definitions[measure]["fingerprint"]
        for measure in measures
    }
    return _task_run(record, task, start, tags, metrics_of(record, task, metric_name))


def _failed_run(record: Record, task: tuple[str, str], start: int, reason: str) -> Run:
    verbatim = reason.replace("\n", "\n    ")  # Markdown would take `_` and `*` in a path for emphasis
    note = _shortened(f"Not evaluated:\n\n    {verbatim}")
    return _task_run(record, task, start, {"rankledger.failure": reason, "mlflow.note.content": note}, None)


def _task_run(
    record: Record, task: tuple[str, str], start: int, tags: Mapping[str, str], metrics: Mapping[str, float] | None
) -> Run:
    manifest = record.manifest
    dataset, model = task
    described = manifest["models"][model]
    found_by = {"rankledger.dataset": dataset, "rankledger.model": model}
    found_by |= _gates([verdict for verdict in record.verdicts if verdict.model == model])
    if described["owner"] is not None:
        found_by["rankledger.owner"] = described["owner"]
    when = f" {manifest['created'][:10]} {manifest['evaluation_id'].rpartition('-')[2]}"
    return Run(
        experiment=_experiment(f"{manifest['name']}/{dataset}"),
        name=cut(model, NAME_LIMIT - len(when)) + when,
        start=start,
        end=max(start, _milliseconds(manifest["finished"])),
        tags=_tags(manifest, found_by | dict(tags), described["tags"]),
        params=_params(described["params"]),
        metrics={} if metrics is None else metrics,
        inputs=_inputs({dataset: manifest["datasets"][dataset]}),
        task=task,
        failed=metrics is None,
    )


def _gates(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The tag that says what the gates came to; none where there are none."""
    return {"rankledger.gates": failed(verdicts)} if verdicts else {}


def _tags(
    manifest: Mapping[str, Any], ours: Mapping[str, str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    fixed = {
        "rankledger.evaluation": manifest["evaluation_id"],
        "mlflow.source.name": manifest["command"],
        "mlflow.source.type": "LOCAL",
    }
    git = manifest["environment"]["git"]
    if git is not None:
        fixed |= {"mlflow.source.git.commit": git["commit"], "mlflow.source.git.dirty": _text(git["dirty"])}
    ours_first = [(key, "rankledger's own", value) for key, value in {**fixed, **ours}.items()]
    found = by_name("tags", [*ours_first, *((key, key, value) for key, value in (given or {}).items())])
    return {key: cut(value, _TAG_LIMIT) for key, value in found.items()}


def _params(values: Mapping[str, Any]) -> dict[str, str]:
    return by_name("params", [(key, key, cut(_text(value), _PARAM_LIMIT)) for key, value in values.items()])


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
    if len(name) > _EXPERIMENT_LIMIT:
        raise TrackingError(f"the experiment '{name[:60]}…' has {len(name)} letters; MLflow takes {_EXPERIMENT_LIMIT}")
    return name


def _shortened(note: str) -> str:
    """The note, cut after a whole line where it is too long."""
    if len(note) <= _TAG_LIMIT:
        return note
    ending = "\n\n… cut here; the record has the whole."
    kept = note[: _TAG_LIMIT - len(ending)]
    return (kept[: kept.rfind("\n")] if "\n" in kept else kept) + ending


def _text(value: object) -> str:
    """A value as YAML writes it: `true`, `0.9`, and a text without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)
