"""A record as MLflow runs: what tracking is to log, worked out from the record alone, before MLflow is touched.

Conventions: the template names a figure, `search/ndcg_at_10`, and what goes with it has the same name in two further
sections, `search.ci95/` (`.low`, `.high`) and `search.detail/` (`.std_error`, `.n_undefined`). A section is what stands
before the last slash; under a template without one the two are `ci95/` and `detail/`. A letter that MLflow does not
allow in a name becomes `_`, and names that then coincide are refused. A value that is too long ends in `…`; the record
has the whole.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pipeline.tables import Estimate, Record

__all__ = ["Run", "RunInput", "TrackingError", "runs_of"]

_NAME_LIMIT = 250  # letters in a run's name and in the key of a metric, param or tag
_EXPERIMENT_LIMIT = 256  # letters the database has room for; MLflow itself lets 500 pass
_PARAM_LIMIT = 6_000
_TAG_LIMIT = 7_999

Value = TypeVar("Value")


class TrackingError(Exception):
    """An evaluation could not be logged to MLflow: one line that says why. Its record is whole all the same."""

    exit_code = 5


@dataclass(frozen=True)
class RunInput:
    """A dataset as the input of a run.

    Attributes:
        name: the dataset's name.
        sha256: hex digest of the hex digests of its judgments' or ratings' files, one to a line.
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
    if note:
        tags["mlflow.note.content"] = _shortened(note)
    return Run(
        experiment=_experiment(manifest["name"]),
        name=_cut(manifest["evaluation_id"], _NAME_LIMIT),
        start=start,
        end=max(start, _milliseconds(manifest["finished"])),
        tags=_tags(manifest, tags),
        params=_params(settings),
        inputs=tuple(_input(name, dataset) for name, dataset in manifest["datasets"].items()),
        artifacts=record.path,
    )


def _model_run(record: Record, task: tuple[str, str], start: int, metric_name: str) -> Run:
    definitions = record.manifest["definitions"]
    measures = [measure for _, measure in _measures(record.manifest, task[0])]
    tags = {
        f"rankledger.fingerprint.{definitions[measure]['mlflow_key']}": definitions[measure]["fingerprint"]
        for measure in measures
    }
    return _task_run(record, task, start, tags, _metrics(record, task, metric_name))


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
    if described["owner"] is not None:
        found_by["rankledger.owner"] = described["owner"]
    when = f" {manifest['created'][:10]} {manifest['evaluation_id'].rpartition('-')[2]}"
    return Run(
        experiment=_experiment(f"{manifest['name']}/{dataset}"),
        name=_cut(model, _NAME_LIMIT - len(when)) + when,
        start=start,
        end=max(start, _milliseconds(manifest["finished"])),
        tags=_tags(manifest, found_by | dict(tags), described["tags"]),
        params=_params(described["params"]),
        metrics={} if metrics is None else metrics,
        inputs=(_input(dataset, manifest["datasets"][dataset]),),
        task=task,
        failed=metrics is None,
    )


def _metrics(record: Record, task: tuple[str, str], template: str) -> dict[str, float]:
    """The finite figures of one model on one dataset, under every suite that has the measure."""
    manifest = record.manifest
    interval = f"ci{manifest['bootstrap']['confidence'] * 100:.10g}"
    lines = {line.measure: line for line in record.summary if (line.dataset, line.model, line.slice) == (*task, "all")}

    def named() -> Iterator[tuple[str, str, float | None]]:
        for suite, measure in _measures(manifest, task[0]):
            name = template.format(suite=suite, measure=manifest["definitions"][measure]["mlflow_key"])
            for figure_name, figure in _figures(_allowed(name), interval, lines[measure]):
                yield figure_name, measure, figure

    figures = _by_name("measures", named())
    return {name: figure for name, figure in figures.items() if figure is not None and math.isfinite(figure)}


def _figures(name: str, interval: str, line: Estimate) -> Iterator[tuple[str, float | None]]:
    section, _, last = name.rpartition("/")
    beside = section and f"{section}."
    yield name, line.estimate
    yield f"{beside}{interval}/{last}.low", line.ci_low
    yield f"{beside}{interval}/{last}.high", line.ci_high
    yield f"{beside}detail/{last}.std_error", line.std_error
    yield f"{beside}detail/{last}.n_undefined", line.n_undefined
    yield f"{beside}detail/{last}.ties_least", line.ties_least
    yield f"{beside}detail/{last}.ties_greatest", line.ties_greatest


def _measures(manifest: Mapping[str, Any], dataset: str) -> list[tuple[str, str]]:
    """(suite, measure) of everything that is measured on the dataset."""
    suites = manifest["datasets"][dataset]["suites"]
    return [(suite, measure) for suite, measures in suites.items() for measure in measures]


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
    found = _by_name("tags", [*ours_first, *((key, key, value) for key, value in (given or {}).items())])
    return {key: _cut(value, _TAG_LIMIT) for key, value in found.items()}


def _params(values: Mapping[str, Any]) -> dict[str, str]:
    return _by_name("params", [(key, key, _cut(_text(value), _PARAM_LIMIT)) for key, value in values.items()])


def _input(name: str, dataset: Mapping[str, Any]) -> RunInput:
    files: Sequence[Mapping[str, str]] = [
        file for file in dataset["inputs"] if file["role"] in ("judgments", "ratings")
    ]
    scheme, separator, _ = files[0]["path"].partition("://")
    return RunInput(
        name=name,
        sha256=hashlib.sha256("\n".join(file["sha256"] for file in files).encode()).hexdigest(),
        source_type=scheme if separator else "local",
        source=json.dumps({"uri": files[0]["path"], "n_files": len(files)}, ensure_ascii=False),
    )


def _by_name(kind: str, items: Iterable[tuple[str, str, Value]]) -> dict[str, Value]:
    """The values by the names that MLflow allows.

    Args:
        kind: what they are, for the message.
        items: (name, what has it, value).
    """
    found: dict[str, tuple[str, Value]] = {}
    for name, owner, value in items:
        allowed = _allowed(name)
        if len(allowed) > _NAME_LIMIT:
            raise TrackingError(f"{kind}: the name '{allowed[:60]}…' has {len(allowed)} letters; MLflow takes 250")
        first = found.setdefault(allowed, (owner, value))[0]
        if first != owner:
            raise TrackingError(f"{kind}: '{first}' and '{owner}' would both be '{allowed}' in MLflow; rename one")
    return {name: value for name, (_, value) in found.items()}


def _allowed(name: str) -> str:
    """The name with `_` for every letter that MLflow refuses; it also refuses what is no plain path, such as `a//b`."""
    parts = re.sub(r"[^\w.\- :/]", "_", name).split("/")
    path = "/".join("_" * max(1, len(part)) if part in ("", ".", "..") else part for part in parts)
    return path.replace("..", "__", 1) if path.startswith("..") else path


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


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _text(value: object) -> str:
    """A value as YAML writes it: `true`, `0.9`, and a text without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)
