"""A record as MLflow runs: names, metrics and tags to log, computed from the record alone.

A value that is too long ends in `…`. An estimate has the measure's name, `ndcg_at_10`. What belongs to it is in a
section: `ci95/ndcg_at_10.low`, `vs_bm25/ndcg_at_10`. Values that are not finite are never logged, because one NaN
breaks the page of a run.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeGuard, TypeVar

from rankledger.pipeline.config.gates import LEAST_CLUSTERS, night_of
from rankledger.pipeline.gates.verdicts import Verdict, overall_effect, overall_outcome
from rankledger.pipeline.inference.tables import ALL, ChangeSince, Comparison, Estimate, lead_among
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import MANIFEST as MANIFEST_FILE
from rankledger.pipeline.record.manifest import Manifest
from rankledger.pipeline.record.manifest_parts import Dataset
from rankledger.pipeline.support.errors import shorten

EVALUATION = "rankledger.evaluation"  # tag by which every run of an evaluation is found
DATASET = "rankledger.dataset"
MODEL = "rankledger.model"
FAILED = "rankledger.failed"  # tag of a FAILED run: `gates` of the evaluation, or the `output` of a model
MANIFEST = "rankledger.manifest_sha256"  # tag of the evaluation's own run: the hash of its record's manifest
REPLICATE = "rankledger.replicate"
KIND = "rankledger.kind"  # tag with the kind of a run: `evaluation`, `model`, `replicate` or `history`

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
    files: tuple[Path, ...] = ()  # to keep with the run
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
    failures, replicates = manifest.not_evaluated, _list_replicates(manifest)
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


def _list_replicates(manifest: Manifest) -> dict[tuple[str, str], list[tuple[str]]]:
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
        tags["mlflow.note.content"] = _shorten_note(note)
    return Run(
        experiment=manifest.name,
        name=_name(manifest, manifest.name),
        start=start,
        end=max(start, _milliseconds(manifest.finished)),
        tags=_tags(manifest, tags),
        params=_params(settings),
        metrics=logged.values,
        inputs=_inputs(manifest.datasets),
        files=tuple(record.path / name for name in sorted([MANIFEST_FILE, *manifest.files])),
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
    note = _shorten_note(f"Not evaluated:\n\n    {verbatim}")
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
        "mlflow.source.git.dirty": json.dumps(git.dirty) if git and git.dirty is not None else None,
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


def _shorten_note(note: str) -> str:
    if len(note) <= TAG_LIMIT:
        return note
    ending = "\n\n… cut here; the record has the full text."
    kept = note[: TAG_LIMIT - len(ending)]
    return (kept[: kept.rfind("\n")] if "\n" in kept else kept) + ending


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


NAME_LIMIT = 250
"""Characters in the name of a run, and in the key of a metric, param or tag."""

_SECTION_LIMIT = 60  # characters of a model or a dataset in the name of a metric

Value = TypeVar("Value")
Row = TypeVar("Row", Estimate, Comparison, ChangeSince)
Group: TypeAlias = list[tuple[str, str, float]]
"""Metrics (name, meaning, value) that are logged all or not at all."""


class Metrics(NamedTuple):
    """Metrics of a run by name, the number that did not fit, and the tags that go with them."""

    values: Mapping[str, float]
    n_omitted: int = 0
    tags: Mapping[str, str] = {}


def name_uniquely(items: Iterable[tuple[str, str, Value]]) -> dict[str, Value]:
    """Return values by names that MLflow allows.

    Characters that MLflow refuses become `_`. A name ends in a hash of its meaning if it is too long, or if another
    meaning has the name already.
    """
    values: dict[str, Value] = {}
    meanings: dict[str, str] = {}
    for name, meaning, value in items:
        key = _replace_refused(name)
        if len(key) > NAME_LIMIT or meanings.get(key, meaning) != meaning:
            key = _cut(key, meaning, NAME_LIMIT)
        meanings[key] = meaning
        values[key] = value
    return values


def _replace_refused(name: str) -> str:
    parts = re.sub(r"[^\w.\- :/]", "_", name).split("/")
    path = "/".join("_" * max(1, len(part)) if part in ("", ".", "..") else part for part in parts)
    return path.replace("..", "__", 1) if path.startswith("..") else path


def _cut(name: str, meaning: str, limit: int) -> str:
    digest = hashlib.sha256(meaning.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[: limit - 9]}_{digest[:8]}"


def _section(name: str) -> str:
    """Return a model or dataset as a part of a metric's name."""
    part = name if len(name) <= _SECTION_LIMIT else _cut(name, name, _SECTION_LIMIT)
    return part.replace("/", "_")


class RecordMetrics:
    """Metrics of each run of a record, `limit` at most."""

    def __init__(self, record: Evaluation, limit: int) -> None:
        self._limit = limit
        self._manifest = record.manifest
        self._interval = f"ci{100 * record.manifest.bootstrap.confidence:.10g}"
        self._estimates = _group_by_task(record.estimates)
        self._slice_changes = record.slice_changes
        self._replicates = record.replicates
        self._comparisons = _group_by_task(row for row in record.comparison_lines if row.slice == ALL)
        self._changes = _group_by_task(record.changes)

    def of_model(self, dataset: str, model: str) -> Metrics:
        """Return the metrics of a model on a dataset, the most important ones if they are too many."""
        task = dataset, model
        lead, others = self._split_measures(dataset)
        worst = self._find_worst_slice(task, lead)
        tags = {}
        groups: list[Iterable[Group]] = [self._list_estimates(task, lead), self._list_intervals(task, lead)]
        if worst is not None:
            groups.append([[(f"worst_slice/{self._key(lead)}", f"worst slice of {lead}", worst[1])]])
            tags[f"rankledger.worst_slice.{self._key(lead)}"] = worst[0]
        groups += [self._list_changes(task, measure) for measure in (lead, *others)]
        groups += [self._list_undefined(task, measure) for measure in (lead, *others)]
        groups.append(self._list_external(model))
        groups += [self._list_estimates(task, measure) for measure in others]
        groups.append(self._list_differences(task, lead))
        groups += [self._list_intervals(task, measure) for measure in others]
        groups += [self._list_differences(task, measure) for measure in others]
        return self._choose(chain.from_iterable(groups))._replace(tags=tags)

    def of_replicate(self, dataset: str, model: str, replicate: str) -> Metrics:
        lead, _ = self._split_measures(dataset)
        rows = [
            row for row in self._replicates if (row.dataset, row.model, row.replicate) == (dataset, model, replicate)
        ]
        rows.sort(key=lambda row: row.measure != lead)
        return self._choose(_keep_finite([(self._key(row.measure), row.measure, row.estimate)]) for row in rows)

    def of_evaluation(self) -> Metrics:
        """Return the estimates of all models by the lead measure of each dataset, and those of all datasets."""
        groups = []
        for (dataset, model), measures in self._estimates.items():
            for measure in measures if dataset == "*" else [self._manifest.lead[dataset]]:
                part = "" if dataset == "*" else f"{_section(dataset)}."
                name = f"{_section(model)}/{part}{self._key(measure)}"
                meaning = f"{measure} of {model} on {dataset}"
                groups.append(_keep_finite([(name, meaning, self._whole((dataset, model), measure).estimate)]))
        groups.sort(key=lambda group: any(" on *" in meaning for _, meaning, _ in group))
        return self._choose(groups)

    def primary(self, dataset: str) -> tuple[str, bool] | None:
        """Return the metric that orders a dataset's models, and whether higher is better. None if there is none."""
        lead, others = self._split_measures(dataset)
        directions = ((measure, self._manifest.definitions[measure].direction) for measure in (lead, *others))
        return next(((self._key(one), way == "higher") for one, way in directions if way != "neither"), None)

    def _split_measures(self, dataset: str) -> tuple[str, list[str]]:
        measures = self._manifest.datasets[dataset].measures
        lead = lead_among(self._manifest.lead.get(dataset), measures)
        assert lead is not None, "a dataset has measures"
        return lead, [measure for measure in measures if measure != lead]

    def _key(self, measure: str) -> str:
        return self._manifest.definitions[measure].mlflow_key.replace("/", "_")

    def _whole(self, task: tuple[str, str], measure: str) -> Estimate:
        return next(row for row in self._estimates[task][measure] if row.slice == ALL)

    def _list_estimates(self, task: tuple[str, str], measure: str) -> Iterator[Group]:
        yield _keep_finite([(self._key(measure), measure, self._whole(task, measure).estimate)])

    def _list_intervals(self, task: tuple[str, str], measure: str) -> Iterator[Group]:
        yield self._name_parts(self._interval, measure, self._whole(task, measure), ("ci_low", "ci_high"))

    def _list_undefined(self, task: tuple[str, str], measure: str) -> Iterator[Group]:
        if n_undefined := self._whole(task, measure).n_undefined:
            yield [(f"n_undefined/{self._key(measure)}", f"undefined queries of {measure}", n_undefined)]

    def _list_changes(self, task: tuple[str, str], measure: str) -> Iterator[Group]:
        for row in self._changes[task][measure]:
            yield self._name_parts(f"since_{row.since}", measure, row, ("difference", "ci_low", "ci_high"))

    def _list_differences(self, task: tuple[str, str], measure: str) -> Iterator[Group]:
        for row in self._comparisons[task][measure]:
            section = f"vs_{_section(row.baseline)}"
            fields = ("difference", "ci_low", "ci_high", "p_corrected")
            yield self._name_parts(section, f"{measure} to {row.baseline}", row, fields)

    def _list_external(self, model: str) -> Iterator[Group]:
        external = self._manifest.external_metrics.get(model)
        for name, value in external.numbers.items() if external else ():
            yield _keep_finite([(f"external/{name}", f"external {name}", value)])

    def _name_parts(self, section: str, subject: str, row: Row, fields: Sequence[str]) -> Group:
        name = f"{section}/{self._key(row.measure)}"
        return _keep_finite(
            [(name + _ENDINGS[field], f"{field} of {subject} in {section}", getattr(row, field)) for field in fields]
        )

    def _find_worst_slice(self, task: tuple[str, str], measure: str) -> tuple[str, float] | None:
        """Return the slice that lost most against the rest if slices were searched, else the worst slice."""
        for change in self._slice_changes:
            if (change.dataset, change.model, change.measure) == (*task, measure) and change.statistic < 0:
                return change.slice, change.after
        direction = self._manifest.definitions[measure].direction
        large = [
            (row.estimate, row.slice)
            for row in self._estimates[task][measure]
            if row.slice != ALL
            and row.mark != "sparse"
            and row.n_clusters >= LEAST_CLUSTERS
            and _is_finite(row.estimate)
        ]
        if not large or direction == "neither":
            return None
        sign = 1 if direction == "higher" else -1
        value, worst = min(large, key=lambda found: sign * found[0])
        whole = self._whole(task, measure).estimate  # if all large slices are better, the worse ones are too small
        return None if whole is not None and sign * value > sign * whole else (worst, value)

    def _choose(self, groups: Iterable[Group]) -> Metrics:
        every: Group = []
        chosen: Group = []
        for group in groups:
            every += group
            if len(chosen) + len(group) <= self._limit:
                chosen += group
        return Metrics(name_uniquely(chosen), len(every) - len(chosen))


_ENDINGS = {"difference": "", "ci_low": ".low", "ci_high": ".high", "p_corrected": ".p_corrected"}


def _group_by_task(rows: Iterable[Row]) -> dict[tuple[str, str], dict[str, list[Row]]]:
    grouped: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        grouped[row.dataset, row.model][row.measure].append(row)
    return grouped


def _keep_finite(metrics: Iterable[tuple[str, str, float | None]]) -> Group:
    return [(name, meaning, value) for name, meaning, value in metrics if _is_finite(value)]


def _is_finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
