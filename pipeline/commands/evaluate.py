"""Evaluation and validation of a config, or of outputs in memory."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rankledger.metrics.metric import MetricError
from rankledger.pipeline.commands.evaluation import Evaluation
from rankledger.pipeline.config.plan import unlisted_replicates, unpaired_gates
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.config.sources import Given, GivenPairs
from rankledger.pipeline.config.yaml import KeyPath
from rankledger.pipeline.data.inputs import Validation, read_inputs
from rankledger.pipeline.history.analysis import check_comparison
from rankledger.pipeline.history.references import source_of_reference
from rankledger.pipeline.record.mlflow_stores import with_trusted_store
from rankledger.pipeline.record.workspace import (
    Backend,
    MeasureLike,
    Workspace,
    open_config,
    open_given,
    open_source,
    workers_of,
)
from rankledger.pipeline.run import evaluate_opened
from rankledger.pipeline.support.errors import InputError, InputWarning
from rankledger.pipeline.support.progress import work
from rankledger.pipeline.support.text import without_credentials

_CALLER = 4  # frames from a warning to the call of `evaluate`: that of `_warn`, its own, and that of `work`


@work()
def evaluate(
    judgments: Given,
    outputs: Mapping[str, Given] | Given,
    measures: MeasureLike | Sequence[MeasureLike],
    *,
    baseline: str | None = None,
    queries: Given | None = None,
    documents: Given | None = None,
    interactions: GivenPairs | None = None,
    exclude: GivenPairs | None = None,
    settings: Mapping[str, object] | None = None,
    dataset: str = "data",
    jobs: int | None = None,
    runs_dir: str | Path = "runs",
    record: bool = False,
    tracking: bool = False,
) -> Evaluation:
    """Evaluate outputs in memory or in files.

    The scores are those of a config with files of the same rows and the same dataset name. Refused outputs and other
    notices are warnings of the category `InputWarning`.

    Args:
        judgments: A path, a data frame or Arrow table with `query_id`, `doc_id` and `relevance`,
            `{query: {document: relevance}}`, or tuples of these three.
        outputs: Outputs by model in the same forms, with `score` in place of `relevance`, or a single output. If the
            first measure is for ratings, the columns are `rating` and `prediction`.
        measures: Measures, such as `["ndcg@10", "ap"]`, the primary measure first. A custom metric is a function, a
            `Metric`, or a `Measure` of it.
        baseline: Model that the others are compared with, or `all_pairs`. By default none are compared.
        queries: Queries table: a path, or a table with the column `query_id`.
        documents: Catalogue: a path, or a table with the column `doc_id`.
        interactions: Training interactions: a path, a table with `query_id` and `doc_id`, `{query: [document, …]}`, or
            tuples of these two.
        exclude: Documents to remove from the rankings of queries, in the same forms.
        settings: Further keys of a config, such as `{"bootstrap": {"resamples": 2000}, "seed": 7}`.
        dataset: Name of the dataset, on which random numbers depend.
        jobs: Number of workers.
        runs_dir: Folder of records and of the default MLflow store.
        record: True writes a record.
        tracking: True writes a record and logs it to MLflow.

    Raises:
        InputError: An argument, judgments, queries or documents are wrong, or all outputs are.
        OSError: The record could not be written.
    """
    opened = open_given(
        judgments,
        outputs,
        measures,
        tables={"queries": queries, "documents": documents, "interactions": interactions, "exclude": exclude},
        settings=settings or {},
        baseline=baseline,
        dataset=dataset,
        recorded=record or tracking,
    )
    opened = with_trusted_store(opened, Workspace.open(runs_dir), tracking=tracking)
    plain, inputs = evaluate_opened(
        opened,
        workers_of(opened.loaded.config, jobs),
        Workspace.open(runs_dir, opened.planned.records),
        tracking=tracking,
        command="rankledger.evaluate(...)",
        recorded=record or tracking,
    )
    evaluation = Evaluation.from_results(plain, (opened, inputs))
    if not evaluation.quality:
        raise InputError(*(failure.reason for failure in evaluation.failures))
    _warn(evaluation)
    return evaluation


@work()
def evaluate_config(
    config: str | Path,
    *,
    name: str | None = None,
    overrides: Sequence[str] = (),
    date: str | None = None,
    jobs: int | None = None,
    backend: Backend | None = None,
    scheduler: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    record: bool = True,
    tracking: bool = True,
    command: Sequence[str] = (),
) -> Evaluation:
    """Evaluate every model of a config.

    Refused outputs and other notices are warnings of the category `InputWarning`.

    Args:
        config: Path of a config. Or a record to evaluate again from its unchanged inputs: its path or id, `last`,
            `last_passed`, `previous` or `accepted`.
        name: Evaluation that the words refer to. Optional if only one has records.
        overrides: `key.path=value` texts that set keys of the config.
        date: Value of `{date}` in paths. A record has its own.
        jobs: Number of workers, instead of the config's.
        backend: `threads`, `processes` or `dask`, instead of the config's.
        scheduler: Address of a Dask cluster, instead of the config's.
        runs_dir: Folder of records and of the default MLflow store.
        records: Folder or URL of the records, instead of the config's.
        record: False writes nothing and does not log to MLflow.
        tracking: False does not log to MLflow.
        command: Arguments of the command line to record. Warnings are then left to the command.

    Raises:
        InputError: The config, an argument, judgments, queries or documents are wrong. A missing or refused output is
            among the evaluation's failures instead.
        OSError: The record could not be written.
    """
    workspace = Workspace.open(runs_dir, records, wanted=name or str(config))
    source = source_of_reference(config, name, workspace)
    uncached = overrides if record else [*overrides, "execution.cache=false"]
    opened = open_source(source, workspace, overrides=uncached, date=date)
    opened = with_trusted_store(opened, workspace, tracking=tracking and record)
    plain, inputs = evaluate_opened(
        opened,
        workers_of(opened.loaded.config, jobs, backend, scheduler),
        Workspace.open(runs_dir, opened.planned.records) if records is None else workspace,
        tracking=tracking,
        command=shlex.join(map(without_credentials, command)) or f"rankledger.evaluate_config({str(config)!r})",
        recorded=record,
    )
    evaluation = Evaluation.from_results(plain, None if record else (opened, inputs))
    if not command:
        _warn(evaluation)
    return evaluation


def _warn(evaluation: Evaluation) -> None:
    reasons = (failure.reason for failure in evaluation.failures)
    for line in dict.fromkeys((*reasons, *map(str, evaluation.data_warnings), *evaluation.warnings)):
        warnings.warn(line, InputWarning, stacklevel=_CALLER)


def validate(
    config: str | Path, *, overrides: Sequence[str] = (), date: str | None = None, jobs: int | None = None
) -> Validation:
    """Read everything that a config names and compute nothing. Arguments and errors are those of `evaluate_config`."""
    opened = open_config(config, overrides=overrides, date=date)
    loaded, planned = opened.loaded, opened.planned
    if unusable := loaded.document.unusable_targets:
        raise InputError(*map(str, unusable.values()))
    if planned.metrics:
        loaded.document.refuse([*_failing_metrics(planned)])
    workers = workers_of(loaded.config, jobs, None)
    inputs = read_inputs(planned, loaded.config.conventions.resolved.conventions, workers)
    check_comparison(opened, inputs, workers)
    unlisted = unlisted_replicates(loaded) if ("nightly",) in loaded.document.origins else []
    hints = (loaded.document.finding(*found) for found in (*unlisted, *unpaired_gates(loaded, planned)))
    gate_notes: tuple[str, ...] = ()
    if planned.gates:
        from rankledger.pipeline.gates.errors import false_alarm_rate, small_slices

        groups = {name: dataset.groups for name, dataset in inputs.datasets.items()}
        confidence = loaded.config.bootstrap.confidence
        gate_notes = (false_alarm_rate(planned.gates, confidence), *small_slices(planned.gates, groups, confidence))
    return Validation(
        n_queries={name: len(dataset.query_ids) for name, dataset in inputs.datasets.items()},
        n_measures={dataset.name: len(dataset.measures) for dataset in planned.datasets},
        models=tuple(planned.models),
        quality=inputs.model_quality,
        replicates=inputs.replicates,
        failures=inputs.failures,
        warnings=(*planned.warnings, *inputs.remarks, *map(str, hints), *map(str, inputs.warnings)),
        gate_notes=tuple(filter(None, gate_notes)),
    )


def _failing_metrics(planned: Plan) -> Iterator[tuple[KeyPath, str]]:
    from rankledger.pipeline.config.own_metrics import try_metric

    failing: dict[KeyPath, str] = {}
    for measure in dict.fromkeys(measure for dataset in planned.datasets for measure in dataset.measures):
        if measure.metric.code:
            try:
                try_metric(measure.metric, measure.arguments(max_grade=2))
            except MetricError as error:
                failing.setdefault(("metrics", measure.metric.name), f"{measure}: {error}")
    yield from failing.items()
