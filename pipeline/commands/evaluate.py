"""Evaluations of configs and of outputs in memory, and reading of inputs without evaluating them."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from rankledger.metrics.metric import MetricError
from rankledger.pipeline.config.plan import unlisted_replicates, unpaired_gates
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.config.sources import Given, GivenPairs
from rankledger.pipeline.config.yaml import KeyPath
from rankledger.pipeline.data.inputs import Validation, is_kept, read_inputs
from rankledger.pipeline.data.outputs import left_to_evaluation
from rankledger.pipeline.history.references import source_of_reference
from rankledger.pipeline.inference.infer import check_comparison
from rankledger.pipeline.record.evaluation import Evaluation as Evaluation  # with the methods that are set below
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
from rankledger.pipeline.run import evaluate_opened, write_temporary_record
from rankledger.pipeline.support.errors import InputError, InputWarning
from rankledger.pipeline.support.progress import work
from rankledger.pipeline.support.text import without_credentials

if TYPE_CHECKING:
    from rankledger.pipeline.data.joined import RetrievedRanks
    from rankledger.pipeline.explain import Explanation
    from rankledger.pipeline.history.baselines import RecordedDataset
    from rankledger.pipeline.history.comparison import ComparisonReport
    from rankledger.pipeline.report import Fit, Form, TableStyle

_CALLER = 4  # frames from a warning to the call of `evaluate`: that of `_warn`, its own, and that of `work`


def _compare(
    evaluation: Evaluation, base: str, candidate: str, *, measure: str | None = None, top: int = 10
) -> ComparisonReport:
    """Compare two models query by query.

    Args:
        evaluation: Evaluation of both.
        base: Model to compare with.
        candidate: Model to compare.
        measure: Measure that orders the queries. By default the primary measure.
        top: Number of queries to list on each dataset.

    Raises:
        InputError: The model or the measure does not exist.
    """
    from rankledger.pipeline.history.baselines import retrieved_ranks
    from rankledger.pipeline.history.compare import compare_sides
    from rankledger.pipeline.history.references import open_sides

    def ranks(kept: RecordedDataset, of: str) -> RetrievedRanks:
        known = evaluation.source[1].ranks(kept.planned.name, of) if evaluation.source else None
        return known or retrieved_ranks(kept, of)

    with _open_folder(evaluation) as path:
        texts = f"{path}#{base}", f"{path}#{candidate}"
        sides = open_sides(*texts, name=None, workspace=Workspace.open("runs"))
        return compare_sides(sides, texts, ranks, measure=measure, top=top)


def _explain(
    evaluation: Evaluation, model: str, query: str | int, measure: str | None = None, *, dataset: str | None = None
) -> Explanation:
    """Explain the score of one query by its documents.

    Args:
        evaluation: Evaluation of the model.
        model: Model to explain.
        query: Query to explain.
        measure: Measure, computed or not. By default the primary measure.
        dataset: Dataset. By default the one that judges the query.

    Raises:
        InputError: A name is unknown, or a file has changed.
    """
    from rankledger.pipeline.commands import explain

    if evaluation.source:
        opened, _ = evaluation.source
        return explain.explain_opened(opened, model=model, query=str(query), measure=measure, dataset=dataset)
    path = str(evaluation.path.absolute())
    return explain.explain(path, model=model, query=str(query), measure=measure, dataset=dataset)


def _to_latex(
    evaluation: Evaluation,
    measures: Sequence[str] = (),
    *,
    intervals: bool = False,
    sort: bool = False,
    arrows: bool = False,
    caption: str = "",
    headers: Mapping[str, str] | None = None,
    fit: Fit = "column",
) -> str:
    """Write a LaTeX table per dataset, of all measures that fit by default. See `TableStyle`."""
    from rankledger.pipeline.report import TableStyle

    style = TableStyle(intervals, sort, arrows, caption, headers or {}, fit)
    return _write_report(evaluation, "latex", measures, style)


def _to_markdown(evaluation: Evaluation, measures: Sequence[str] = ()) -> str:
    """Write a summary for a pull request, by default of all measures that fit."""
    return _write_report(evaluation, "markdown", measures)


def _report(evaluation: Evaluation, path: str | Path, measures: Sequence[str] = ()) -> None:
    """Write a report. The path ends in .html, .md, .tex or .csv.

    Raises:
        InputError: The path has another ending, or the measure does not exist.
        OSError: The file cannot be written.
    """
    from rankledger.pipeline.report import ENDINGS
    from rankledger.pipeline.report.verdicts import write_text

    form = ENDINGS.get(Path(path).suffix.lower())
    if form is None:
        raise InputError(f"{path}: unknown file type; let the name end in {', '.join(ENDINGS)}")
    write_text(Path(path), _write_report(evaluation, form, measures))


def _write_report(evaluation: Evaluation, form: Form, measures: Sequence[str], style: TableStyle | None = None) -> str:
    from rankledger.pipeline.commands.report import report

    with _open_folder(evaluation) as path:
        chosen = [measures] if isinstance(measures, str) else measures
        return report(str(path), form=form, measures=chosen, style=style)


@contextmanager
def _open_folder(evaluation: Evaluation) -> Iterator[Path]:
    """Yield the folder of the record, a temporary one if nothing was recorded."""
    if evaluation.record is not None:
        yield evaluation.record.absolute()
        return
    if not evaluation.source or not evaluation.results:
        raise InputError("no model output was evaluated, so there is nothing to show; see `failures`")
    with write_temporary_record(evaluation) as path:
        try:
            yield path
        except InputError as error:  # nobody knows the folder
            raise InputError(*(line.replace(str(path), evaluation.evaluation_id) for line in error.lines)) from None


def _describe(evaluation: object) -> str:
    from rankledger.pipeline.report.terminal import first_screen

    assert isinstance(evaluation, Evaluation)
    width = get_terminal_size(fallback=(120, 24)).columns
    return first_screen(evaluation, width=width, colour=False, paths=False).rstrip()


def _describe_for_notebooks(evaluation: Evaluation) -> str:
    from rankledger.pipeline.report.terminal import notebook_leaderboard

    return notebook_leaderboard(evaluation)


def _headline(evaluation: Evaluation) -> str:
    """First line of the verdict: what failed, where, since when, and who owns it, or which gates pass."""
    from rankledger.pipeline.report.headline import headline_of

    return headline_of(evaluation)


Evaluation.headline = property(_headline)
Evaluation.compare = _compare
Evaluation.explain = _explain
Evaluation.to_latex = _to_latex
Evaluation.to_markdown = _to_markdown
Evaluation.report = _report
Evaluation._repr_html_ = _describe_for_notebooks
Evaluation.__str__ = _describe  # type: ignore[method-assign]


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
    evaluation = evaluate_opened(
        opened,
        workers_of(opened.loaded.config, jobs),
        Workspace.open(runs_dir, opened.planned.records),
        tracking=tracking,
        command="rankledger.evaluate(...)",
        recorded=record or tracking,
    )
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
    evaluation = evaluate_opened(
        opened,
        workers_of(opened.loaded.config, jobs, backend, scheduler),
        Workspace.open(runs_dir, opened.planned.records) if records is None else workspace,
        tracking=tracking,
        command=shlex.join(map(without_credentials, command)) or f"rankledger.evaluate_config({str(config)!r})",
        recorded=record,
    )
    if not command:
        _warn(evaluation)
    return replace(evaluation, source=None) if record else evaluation


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
    check_comparison(loaded.config, planned, inputs, workers)
    unlisted = unlisted_replicates(loaded) if ("nightly",) in loaded.document.origins else []
    hints = (loaded.document.finding(*found) for found in (*unlisted, *unpaired_gates(loaded, planned)))
    gate_notes: tuple[str, ...] = ()
    if planned.gates:
        from rankledger.pipeline.gates.evidence import false_alarm_rate, small_slices

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


@work()
def read_shard(
    config: str,
    shard: str,
    *,
    overrides: Sequence[str] = (),
    date: str | None = None,
    jobs: int | None = None,
    backend: Backend | None = None,
    scheduler: str | None = None,
    runs_dir: str = "runs",
) -> dict[str, Any]:
    """Read every Nth output of a config into the output cache. Score and record nothing.

    Args:
        config: Path of the config.
        shard: `3/16` is the third of every sixteen outputs, in the order of the config.
        overrides: `key.path=value` texts that set keys of the config.
        date: Value of `{date}` in paths.
        jobs: Number of workers, instead of the config's.
        backend: `threads`, `processes` or `dask`, instead of the config's.
        scheduler: Address of a Dask cluster, instead of the config's.
        runs_dir: Runs folder with the output cache that all shards share.

    Returns:
        `shard`, the `folder` of the cache, how many outputs were read (`n_parsed`) and in the cache (`n_found`),
        `n_left` (outputs of all shards that the cache cannot hold), `failures` and `remarks`.

    Raises:
        InputError: The config, the shard, judgments or documents are wrong, or the cache is off or not writable.
    """
    place, n_shards = _parse_shard(shard)
    opened = open_config(config, overrides=overrides, date=date)
    loaded, planned = opened.loaded, opened.planned
    if not loaded.config.execution.cache:
        raise InputError(f"{config}: execution.cache is off, and a shard only fills the cache; remove it or --shard")
    store = replace(Workspace.open(runs_dir), cache_place=planned.cache).cache
    store.refuse_unwritable()
    keeps = {dataset.name: is_kept(dataset) for dataset in planned.datasets}
    kept = [task for task in planned.tasks if keeps[task.dataset]]
    tasks = tuple(kept[place - 1 :: n_shards])
    datasets = tuple(dataset for dataset in planned.datasets if any(task.dataset == dataset.name for task in tasks))
    inputs = read_inputs(
        replace(planned, tasks=tasks, datasets=datasets),
        loaded.config.conventions.resolved.conventions,
        workers_of(loaded.config, jobs, backend, scheduler),
        cache=store,
    )
    n_parsed = sum(output.parsed for output in inputs.joined.values())
    n_left = len(planned.tasks) - len(kept)
    return {
        "shard": shard,
        "folder": str(store.place),
        "n_parsed": n_parsed,
        "n_found": len(inputs.joined) - n_parsed,
        "n_left": n_left,
        "failures": inputs.failures,
        "remarks": (*inputs.remarks, *([left_to_evaluation(n_left)] if n_left else [])),
    }


def _parse_shard(shard: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", shard, re.ASCII)
    place, n_shards = (int(part) for part in found.groups()) if found else (0, 0)
    if not 1 <= place <= n_shards:
        raise InputError(f"--shard: found {shard!r}; write it as 3/16, from 1/16 to 16/16")
    return place, n_shards
