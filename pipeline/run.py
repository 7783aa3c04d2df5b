"""Evaluate a planned config and write its record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from rankledger.pipeline.config.paths import relocate
from rankledger.pipeline.data.inputs import Inputs, read_inputs
from rankledger.pipeline.data.joined import DataWarning, Scores
from rankledger.pipeline.delivery.outbox import deliver
from rankledger.pipeline.history.analysis import analyze, check_comparison, score_recall
from rankledger.pipeline.history.manifest import build_manifest, describe_environment
from rankledger.pipeline.inference.tables import QueryChange
from rankledger.pipeline.record.evaluation import Evaluation, QueryDetail
from rankledger.pipeline.record.folder import CHANGES_PAGE, new_evaluation_id, write_record
from rankledger.pipeline.record.manifest import TrackingState
from rankledger.pipeline.record.mlflow_stores import describe_tracking, open_for_logging
from rankledger.pipeline.record.receipts import clear_left_behind
from rankledger.pipeline.record.workspace import Opened, Workspace, evaluated_inputs, with_python_advice
from rankledger.pipeline.report.html.render import html
from rankledger.pipeline.report.page import new_page
from rankledger.pipeline.scoring import bound_ties, join_replicates, score
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import stage


def evaluate_opened(
    opened: Opened,
    workers: Workers,
    workspace: Workspace,
    *,
    tracking: bool,
    command: str,
    evaluation_id: str | None = None,
    allow_empty: bool = False,
    recorded: bool = True,
    alerts: bool = False,
) -> tuple[Evaluation, Inputs]:
    """Evaluate a planned config, record the evaluation and deliver the record.

    Args:
        opened: Config and its plan. Outputs that are late by the plan are not read.
        tracking: Log to MLflow, unless the config rules it out.
        allow_empty: Write a record even if no model output was evaluated.
        recorded: Write a record. False writes nothing.
        alerts: True if a change of state is sent, which the record says.

    Raises:
        InputError: Judgments, queries or documents are wrong.
        OSError: The record could not be written.
    """
    config = opened.loaded.config
    bugs: list[Exception] = []  # of pages, without which the record is whole
    if recorded:
        clear_left_behind(workspace.records, workspace.runs_dir)
    tracked = config.tracking if recorded and tracking and config.tracking.enabled else None
    with open_for_logging(tracked, workspace) as store:  # a process of its own loads MLflow while this one computes
        evaluation, inputs = compute(
            opened,
            workers,
            workspace,
            command,
            evaluation_id=evaluation_id,
            tracking=describe_tracking(tracked),
            alerts=alerts,
            recorded=recorded,
        )
        if recorded and (evaluation.results or allow_empty):
            evaluation = _write_with_pages(evaluation, opened, inputs, workspace, bugs)
            evaluation = deliver(evaluation, workspace, store=store, tracking=config.tracking)
    if bugs:
        raise bugs[0]
    return evaluation, inputs


def compute(
    opened: Opened,
    workers: Workers,
    workspace: Workspace,
    command: str,
    *,
    evaluation_id: str | None = None,
    tracking: TrackingState = "off",
    alerts: bool = False,
    recorded: bool = True,
) -> tuple[Evaluation, Inputs]:
    """Read, score and resample everything. Write nothing but the output cache."""
    config, planned, started = opened.loaded.config, opened.planned, datetime.now(UTC)
    workspace = replace(workspace, cache_place=planned.cache)
    timings: dict[str, float] = {}
    with _timed("read", timings):
        inputs = read_inputs(
            planned,
            config.conventions.resolved.conventions,
            workers,
            cache=workspace.cache if config.execution.cache else None,
            before=evaluated_inputs(opened.record) if opened.record else None,
        )
    if opened.is_in_memory:
        advised = {failure.output: with_python_advice(failure) for failure in inputs.failures}
        inputs = replace(inputs, outputs={**inputs.outputs, **advised})
    check_comparison(opened, inputs, workers)
    with _timed("score", timings):
        results = _score(opened, inputs, workers)
        failed = [  # measures of the user's own have no figures if they fail, and all others have theirs
            DataWarning(result.dataset, result.model, f"{measure} failed: {reason}", str(measure))
            for result in results
            for measure, reason in result.failed.items()
        ]
        inputs = replace(inputs, warnings=(*inputs.warnings, *failed))
        recall = score_recall(opened, inputs, workers)
    with _timed("resample", timings):
        analysis = analyze(opened, inputs, results, recall, workspace, workers=workers, started=started)
        inputs = replace(inputs, warnings=(*inputs.warnings, *analysis.gone))
    manifest = build_manifest(
        opened,
        inputs,
        analysis,
        workspace,
        evaluation_id=evaluation_id or new_evaluation_id(config.name, started),
        started=started,
        command=command,
        tracking=tracking,
        alerts=alerts,
        recorded=recorded,
        timings=timings,
    )
    path = workspace.records.folder / manifest.evaluation_id
    warnings = (*planned.warnings, *inputs.remarks, *analysis.warnings)
    tables = analysis.tables.updated(results=results)
    return Evaluation(manifest, tables, path, is_recorded=False, warnings=warnings, source=(opened, inputs)), inputs


@contextmanager
def _timed(name: str, timings: dict[str, float]) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    timings[name] = round(time.perf_counter() - begin, 3)


def _score(opened: Opened, inputs: Inputs, workers: Workers) -> tuple[Scores, ...]:
    config = opened.loaded.config
    measures = {dataset.name: dataset.measures for dataset in opened.planned.datasets}
    profile = config.conventions.resolved
    clusters = {name: dataset.groups.clusters for name, dataset in inputs.datasets.items()}
    results = score(inputs.joined, measures, profile, workers, clusters=clusters)
    if "ties" in config.sensitivity:
        results = bound_ties(results, inputs.joined, profile, seed=config.seed, workers=workers)
    scores = {**{result.output: result for result in results}, **inputs.external_scores}
    sharing = [name for name, model in opened.planned.models.items() if model.shared_seeds]
    return join_replicates([scores[key] for key in inputs.quality], sharing)


def _write_with_pages(
    evaluation: Evaluation,
    opened: Opened,
    inputs: Inputs,
    workspace: Workspace,
    bugs: list[Exception],
    *,
    is_temporary: bool = False,
) -> Evaluation:
    """Draw the pages of an evaluation and write its record. A bug in a page costs that page alone."""
    evaluation = replace(evaluation, is_recorded=True)
    page: str | None = None
    query_changes: tuple[QueryChange, ...] = ()
    query_details: tuple[QueryDetail, ...] = ()
    warnings: list[str] = []
    if opened.loaded.config.report or is_temporary:
        try:
            with stage("Drawing the page"), _timed("report", evaluation.manifest.timings):
                drawn, query_changes = new_page(evaluation, opened, inputs, workspace)
                page, query_details = html(drawn), drawn.details
        except Exception as error:
            error.add_note(f"the record is complete but for its page: {evaluation.path}")
            bugs.append(error)
            query_changes = ()

    def compare_nights(record: Evaluation) -> str | None:
        from rankledger.pipeline.history.compare import changes_since_last_night
        from rankledger.pipeline.report.html.comparisons import comparison_html

        try:
            with stage("Comparing with the night before"):
                changes = changes_since_last_night(record, opened, inputs, workspace)
                return None if changes is None else comparison_html(changes, in_record=True)
        except (InputError, OSError) as error:
            warnings.append(f"not compared with the night before: {error}")
        except Exception as error:
            error.add_note(f"the record is complete but for {CHANGES_PAGE}: {record.manifest.evaluation_id}")
            bugs.append(error)
        return None

    is_night = opened.loaded.config.report and evaluation.manifest.date is not None and opened.record is None
    document = relocate(opened.loaded.document, evaluation.path)
    with stage("Writing the record"):
        evaluation = write_record(
            evaluation,
            config=yaml.safe_dump(document, sort_keys=False, allow_unicode=True),
            query_changes=query_changes,
            query_details=query_details,
            page=page,
            compared=compare_nights if is_night and not is_temporary else None,
            runs_dir=workspace.runs_dir if opened.is_trusted else None,
            contents=inputs.contents,
        )
    return replace(evaluation, warnings=(*evaluation.warnings, *warnings))


@contextmanager
def write_temporary_record(evaluation: Evaluation, opened: Opened, inputs: Inputs) -> Iterator[Path]:
    """Write an evaluation's record to a temporary folder, which is deleted after the block."""
    with TemporaryDirectory(prefix="rankledger-") as folder:
        workspace = Workspace.open(folder)
        manifest = evaluation.manifest.model_copy(update={"environment": describe_environment(opened)})
        evaluation = replace(evaluation, manifest=manifest, path=workspace.records.folder / evaluation.evaluation_id)
        yield _write_with_pages(evaluation, opened, inputs, workspace, [], is_temporary=True).path
