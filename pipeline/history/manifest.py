"""Build the manifest of an evaluation."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankledger.metrics.conventional_scores import sampled
from rankledger.metrics.conventions import Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.config.planned import Plan, Task
from rankledger.pipeline.config.schema import Bootstrap, Comparison, Config, Conventions, Loaded
from rankledger.pipeline.config.sources import Model, PlannedDataset
from rankledger.pipeline.data.checks import n_without_relevant
from rankledger.pipeline.data.dataset import DatasetInput
from rankledger.pipeline.data.inputs import Inputs
from rankledger.pipeline.data.joined import Failure, JudgedOutput
from rankledger.pipeline.data.rows import ExternalMetrics
from rankledger.pipeline.history.changes import digest_inputs, name_needs
from rankledger.pipeline.record.manifest import SCHEMA_VERSION, Manifest, RecordedBaseline, TrackingState
from rankledger.pipeline.record.manifest_parts import Dataset, Definition, Environment, Output
from rankledger.pipeline.record.workspace import Opened, Workspace
from rankledger.pipeline.support.environment import at_work, environment

_UNKNOWN = Environment(python="", platform="", cpu="", blas=[], packages={}, git=None)


def describe_environment(opened: Opened) -> Environment:
    """Return packages, platform and repository of an evaluation, which takes about 10 ms."""
    return Environment.model_validate(environment(opened.repository))


def build_manifest(
    opened: Opened,
    inputs: Inputs,
    workspace: Workspace,
    *,
    baselines: Mapping[str, Mapping[str, RecordedBaseline]],
    external_metrics: Mapping[str, ExternalMetrics],
    evaluation_id: str,
    started: datetime,
    command: str,
    tracking: TrackingState,
    alerts: bool,
    recorded: bool,
    timings: Mapping[str, float],
) -> Manifest:
    """Build the manifest of an evaluation before its record is written."""
    remote = workspace.records.remote
    return Manifest(
        schema_version=SCHEMA_VERSION,
        evaluation_id=evaluation_id,
        **_settings(opened.loaded.config),
        **_plan(opened.planned),
        **_results(opened, inputs) | at_work(),
        expansions=dict(opened.loaded.document.expansions),
        baselines={gate: dict(models) for gate, models in baselines.items()},
        external_metrics=dict(external_metrics),
        records=remote.url if remote else None,
        tracking=tracking,
        alerts=alerts,
        error="",
        config="" if opened.is_in_memory else str(opened.original_config),
        command=command,
        repeats=opened.record.manifest.evaluation_id if opened.record else None,
        environment=describe_environment(opened) if recorded else _UNKNOWN,
        created=started.isoformat(),
        timings=dict(timings),
    )


def build_failed_manifest(
    loaded: Loaded,
    planned: Plan | None,
    config: Path,
    error: str,
    evaluation_id: str,
    workspace: Workspace,
    **known: Any,
) -> Manifest:
    """Build the manifest of an evaluation in which every model failed for one reason.

    Without a plan, because no model was found, there is one model called `*`.
    """
    written, remote = loaded.config, workspace.records.remote
    if planned is None:
        datasets = {name: _unread_dataset(dataset.kind) for name, dataset in written.datasets.items()}
        models = {name: Model(params={}, tags={}, owner=model.owner) for name, model in written.models.items()}
        failures = [Failure(dataset, model, error) for dataset in datasets for model in models]
        plan: dict[str, Any] = {"lead": {}, "practical_difference": {}, "models": models}
        shared: dict[str, Definition] = {}
    else:
        profile = written.conventions.resolved
        shared = _shared_definitions(planned, profile)
        datasets = {}
        for dataset in planned.datasets:
            redefined = (
                each for each in dataset.measures if each.fingerprint(profile) != shared[str(each)].fingerprint
            )
            datasets[dataset.name] = _unread_dataset(dataset.kind).model_copy(
                update={
                    "relevant": dataset.relevant,
                    "definitions": define_measures(redefined, profile),
                    "suites": {suite: [*map(str, measures)] for suite, measures in dataset.suites.items()},
                }
            )
        failures = [Failure(task.dataset, task.model, error, task.replicate) for task in planned.tasks]
        plan = _plan(planned)
    return Manifest(
        schema_version=SCHEMA_VERSION,
        evaluation_id=evaluation_id,
        **_settings(written) | plan | at_work() | known,
        definitions=shared,
        own_metrics=_own_metrics(planned) if planned else {},
        n_queries=0,
        datasets=datasets,
        outputs=[],
        failures=failures,
        warnings=[],
        expansions=dict(loaded.document.expansions),
        baselines={},
        external_metrics={},
        records=remote.url if remote else None,
        config=os.path.relpath(config) if config.absolute().is_relative_to(Path.cwd()) else str(config.absolute()),
        repeats=None,
        environment=Environment.model_validate(environment(config.parent)),
        error=error,
        timings={},
    )


def _unread_dataset(kind: Literal["rankings", "ratings", "scores"]) -> Dataset:
    return Dataset(
        kind=kind, digests={}, relevant=None, definitions={}, n_queries=0, n_without_relevant=None, suites={}, inputs={}
    )


def _settings(config: Config) -> dict[str, Any]:
    conventions, comparison = config.conventions, config.comparison
    return {
        "name": config.name,
        "seed": config.seed,
        "conventions": Conventions(profile=conventions.profile, **asdict(conventions.resolved.conventions)),
        "bootstrap": Bootstrap(**config.bootstrap.model_dump()),
        "comparison": comparison
        and Comparison(
            **comparison.model_dump() | {"correction": comparison.chosen_correction, "primary": comparison.has_primary}
        ),
        "sensitivity": list(config.sensitivity),
    }


def _plan(planned: Plan) -> dict[str, Any]:
    return {
        "date": planned.date,
        "lead": {dataset: str(measure) for dataset, measure in planned.lead.items()},
        "practical_difference": dict(planned.practical_difference),
        "models": {
            name: Model(**{key: getattr(model, key) for key in (*_RECORDED, *(model.model_fields_set & _OPTIONAL))})
            for name, model in planned.models.items()
        },
    }


_RECORDED = ("params", "tags", "owner", "model_id", "model_uri")
_OPTIONAL = {"shared_seeds", "promote"}


def _results(opened: Opened, inputs: Inputs) -> dict[str, Any]:
    planned, profile = opened.planned, opened.loaded.config.conventions.resolved
    shared = _shared_definitions(planned, profile)
    return {
        "definitions": shared,
        "own_metrics": _own_metrics(planned),
        "n_queries": len(set().union(*(dataset.query_ids.tolist() for dataset in inputs.datasets.values()))),
        "datasets": {dataset.name: _dataset(dataset, inputs, profile, shared) for dataset in planned.datasets},
        "outputs": [_output(task, inputs) for task in planned.tasks if task.key in inputs.quality],
        "failures": list(inputs.failures),
        "warnings": list(inputs.warnings),
    }


def _own_metrics(planned: Plan) -> dict[str, dict[str, Any]]:
    measures = (measure for dataset in planned.datasets for measure in dataset.measures)
    if not (metrics := {measure.metric.name: measure.metric for measure in measures if measure.metric.code}):
        return {}
    from rankledger.pipeline.record.manifest_parts import describe_metric

    return {name: describe_metric(metric) for name, metric in metrics.items()}


def _dataset(dataset: PlannedDataset, inputs: Inputs, profile: Profile, shared: Mapping[str, Definition]) -> Dataset:
    read = inputs.datasets[dataset.name]
    digests = digest_inputs(dataset, read.files, read.query_ids)
    optional: dict[str, Any] = {"exclude_self": dataset.exclude_self} if "excluded documents" in digests else {}
    if dataset.kind == "rankings" and dataset.interactions is not None:
        optional["seen"] = dataset.seen
    if dataset.was:
        optional["was"] = dataset.was
    redefined = (each for each in dataset.measures if each.fingerprint(profile) != shared[str(each)].fingerprint)
    return Dataset(
        kind=dataset.kind,
        digests=digests,
        relevant=dataset.relevant,
        definitions=define_measures(redefined, profile),
        n_queries=len(read.query_ids),
        n_without_relevant=n_without_relevant(read.judgments, dataset.relevant)
        if isinstance(read, DatasetInput) and read.kind == "rankings"
        else None,
        suites={suite: [str(measure) for measure in measures] for suite, measures in dataset.suites.items()},
        inputs={role: tuple(files) for role, files in read.files.items()},
        **optional,
    )


def _output(task: Task, inputs: Inputs) -> Output:
    read = inputs.evaluated_outputs[task.key]
    fields: dict[str, Any] = {"replicate": task.replicate} if task.replicate else {}
    return Output(
        dataset=task.dataset,
        model=task.model,
        path=task.output.shown.path,
        files=tuple(read.files),
        parsed=read.parsed if isinstance(read, JudgedOutput) else True,
        quality=read.quality,
        depth=_depth(read) if isinstance(read, JudgedOutput) else None,
        **fields,
    )


def define_measures(measures: Iterable[Measure], profile: Profile) -> dict[str, Definition]:
    """Return the definition of each measure: metric, parameters, formula, reference and fingerprint."""
    return {
        str(measure): Definition(
            title=measure.metric.title,
            formula=measure.metric.formula,
            direction=measure.metric.direction,
            range=[None if math.isinf(end) else end for end in measure.metric.range],
            reference=measure.metric.reference,
            version=measure.metric.version,
            parameters={
                name: list(value) if isinstance(value, tuple) else value for name, value in measure.parameters.items()
            },
            k=measure.k,
            mlflow_key=measure.key,
            fingerprint=measure.fingerprint(profile),
            drawn_bounds=list(sampled(measure, profile.conventions_of(measure.metric.name))),
            needs=name_needs(measure),
        )
        for measure in measures
    }


def _shared_definitions(planned: Plan, profile: Profile) -> dict[str, Definition]:
    definitions: dict[str, Measure] = {}
    for measure in (measure for dataset in planned.datasets for measure in dataset.measures):
        first = definitions.setdefault(str(measure), measure)
        if measure != first:
            definitions[str(measure)] = measure.with_default("rel", None)
    return define_measures(definitions.values(), profile)


def _depth(joined: JudgedOutput) -> list[float] | None:
    if joined.hits is None:
        return None
    depths = joined.hits.n_retrieved[joined.hits.n_retrieved > 0]
    return [float(depths.min()), float(np.median(depths)), float(depths.max())] if depths.size else None
