"""Evaluate a planned config: read, score, look back, infer, judge, write the record, deliver."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import extract_tb
from typing import Any

import yaml

from rankledger.pipeline.config.paths import relocate
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.data.inputs import Inputs, read_inputs
from rankledger.pipeline.data.joined import DataWarning, Scores
from rankledger.pipeline.data.rows import ExternalMetrics
from rankledger.pipeline.delivery.outbox import deliver
from rankledger.pipeline.history.manifest import build_manifest, describe_environment
from rankledger.pipeline.history.since import Earlier, explain_changes, look_back
from rankledger.pipeline.inference.infer import check_comparison, infer, interval_rule, search_rule
from rankledger.pipeline.inference.samples import Sample
from rankledger.pipeline.inference.summary import recall_levels
from rankledger.pipeline.record.evaluation import Evaluation, Tables
from rankledger.pipeline.record.folder import CHANGES_PAGE, PAGE, new_evaluation_id, write_record
from rankledger.pipeline.record.manifest import TrackingState
from rankledger.pipeline.record.mlflow_stores import describe_tracking, open_for_logging
from rankledger.pipeline.record.receipts import clear_left_behind
from rankledger.pipeline.record.workspace import Opened, Workspace, evaluated_inputs, with_python_advice
from rankledger.pipeline.report.html.render import html
from rankledger.pipeline.report.page import new_page
from rankledger.pipeline.scoring import bound_ties, join_replicates, score
from rankledger.pipeline.support.errors import InputError, describe_system_error
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
) -> Evaluation:
    """Evaluate a planned config, record the evaluation and deliver the record.

    Args:
        opened: Config and its plan. Outputs that are late by the plan are not read.
        tracking: Log to MLflow, unless the config rules it out.
        allow_empty: Write a record even if no model output was evaluated.
        recorded: Write and deliver a record.
        alerts: True if a change of state is sent, which the record says.

    Raises:
        InputError: Judgments, queries or documents are wrong.
        OSError: The record could not be written.
    """
    config = opened.loaded.config
    if recorded:
        clear_left_behind(workspace.records, workspace.runs_dir)
    tracked = config.tracking if recorded and tracking and config.tracking.enabled else None
    with open_for_logging(tracked, workspace) as store:  # a process of its own loads MLflow while this one computes
        evaluation, earlier = compute(
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
            pages: dict[str, Any] = {}
            if config.report:
                evaluation, pages = _draw_page(evaluation, workspace)
            if config.report and evaluation.date and opened.record is None:
                evaluation, pages["changes_page"] = _compare_nights(evaluation, earlier)
            evaluation = _write(evaluation, opened, pages, workspace.runs_dir if opened.is_trusted else None)
            evaluation = deliver(evaluation, workspace, store=store, tracking=config.tracking)
    return evaluation


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
) -> tuple[Evaluation, Earlier]:
    """Evaluate a planned config in memory. Outputs are cached, and records that gates need are downloaded."""
    config, plan, started = opened.loaded.config, opened.planned, datetime.now(UTC)
    workspace = replace(workspace, cache_place=plan.cache)
    timings: dict[str, float] = {}
    with _time("read", timings):
        inputs = read_inputs(
            plan,
            config.conventions.resolved.conventions,
            workers,
            cache=workspace.cache if config.execution.cache else None,
            before=evaluated_inputs(opened.record) if opened.record else None,
        )
    if opened.is_in_memory:
        advised = {failure.output: with_python_advice(failure) for failure in inputs.failures}
        inputs = replace(inputs, outputs={**inputs.outputs, **advised})
    check_comparison(config, plan, inputs, workers)
    with _time("score", timings):
        scores, recall = _score(opened, inputs, workers)
    with _time("resample", timings):
        earlier = look_back(opened, inputs, scores, workspace, workers, started)
        tables, samples, changes, remarks = infer(
            config, plan, inputs, scores, recall, workers, baselines=earlier.scores, changes=earlier.changes
        )
        external_metrics = _read_external_metrics(plan)
        if plan.gates:
            tables |= _judge(opened, inputs, scores, samples, external_metrics, earlier, workers)
        if earlier.resolver and changes:
            verdicts, search = tables.get("verdicts", ()), search_rule(config, workers)
            tables["changes"] = explain_changes(changes, samples, verdicts, earlier.resolver, search)
    failed = (  # measures of the user's own have no figures if they fail, and all others have theirs
        DataWarning(own.dataset, own.model, f"{measure} failed: {reason}", str(measure))
        for own in scores
        for measure, reason in own.failed.items()
    )
    inputs = replace(inputs, warnings=(*inputs.warnings, *failed, *earlier.data_warnings))
    manifest = build_manifest(
        opened,
        inputs,
        workspace,
        baselines=earlier.references,
        external_metrics=external_metrics,
        evaluation_id=evaluation_id or new_evaluation_id(config.name, started),
        started=started,
        command=command,
        tracking=tracking,
        alerts=alerts,
        recorded=recorded,
        timings=timings,
    )
    evaluation = Evaluation(
        manifest,
        Tables({**tables, "results": scores}),
        workspace.records.folder / manifest.evaluation_id,
        is_recorded=False,
        warnings=(*plan.warnings, *inputs.remarks, *remarks, *earlier.warnings),
        source=(opened, inputs),
    )
    return evaluation, earlier


@contextmanager
def _time(name: str, timings: dict[str, float]) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    timings[name] = round(time.perf_counter() - begin, 3)


def _score(opened: Opened, inputs: Inputs, workers: Workers) -> tuple[tuple[Scores, ...], tuple[Scores, ...]]:
    """Return the scores by the measures, and those for curves of precision by recall if a page shows them."""
    config, plan = opened.loaded.config, opened.planned
    measures = {dataset.name: dataset.measures for dataset in plan.datasets}
    profile = config.conventions.resolved
    clusters = {name: dataset.groups.clusters for name, dataset in inputs.datasets.items()}
    results = score(inputs.joined, measures, profile, workers, clusters=clusters)
    if "ties" in config.sensitivity:
        results = bound_ties(results, inputs.joined, profile, seed=config.seed, workers=workers)
    scores = {**{result.output: result for result in results}, **inputs.external_scores}
    sharing = [name for name, model in plan.models.items() if model.shared_seeds]
    joined = join_replicates([scores[key] for key in inputs.quality], sharing)
    if not config.report:
        return joined, ()
    rankings = (dataset for dataset in plan.datasets if dataset.kind == "rankings")
    levels = {dataset.name: tuple(map(dataset.defined, recall_levels(profile))) for dataset in rankings}
    ranked = {key: own for key, own in inputs.joined.items() if key[0] in levels}
    return joined, join_replicates(score(ranked, levels, profile, workers), sharing)


def _read_external_metrics(plan: Plan) -> dict[str, ExternalMetrics]:
    metrics: dict[str, ExternalMetrics] = {}
    for model, file in plan.external_metrics.items():
        try:
            from rankledger.pipeline.data.readers import read_external_metrics

            metrics[model] = read_external_metrics(file.shown.path)
        except InputError as error:
            metrics[model] = ExternalMetrics(reason=str(error))
    return metrics


@stage("Judging")
def _judge(
    opened: Opened,
    inputs: Inputs,
    scores: tuple[Scores, ...],
    samples: Mapping[str, Sample],
    external_metrics: Mapping[str, ExternalMetrics],
    earlier: Earlier,
    workers: Workers,
) -> dict[str, Any]:
    from rankledger.pipeline.gates.evidence import Evidence, looks_after
    from rankledger.pipeline.gates.judge import judge

    config, plan = opened.loaded.config, opened.planned
    evidence = Evidence.gather(
        plan,
        inputs,
        scores,
        samples,
        interval_rule(config),
        external_metrics,
        search=search_rule(config, workers),
        baselines=earlier.baselines,
        gone=earlier.gone,
        failed_nights=earlier.failed_nights,
        night=earlier.night,
        looks=earlier.looks,
    )
    verdicts = judge(plan.gates, evidence)
    return {"verdicts": verdicts, "looks": looks_after(plan.gates, verdicts, earlier.looks, earlier.night)}


def _draw_page(evaluation: Evaluation, workspace: Workspace) -> tuple[Evaluation, dict[str, Any]]:
    """Return the page and its tables as arguments of `write_record`, with a warning in the evaluation after a bug."""
    opened, inputs = evaluation.source
    try:
        with stage("Drawing the page"), _time("report", evaluation.manifest.timings):
            page, query_changes = new_page(replace(evaluation, is_recorded=True), opened, inputs, workspace)
            return evaluation, {"page": html(page), "query_changes": query_changes, "query_details": page.details}
    except Exception as error:
        return _warn_of_bug(evaluation, PAGE, error), {}


def _compare_nights(evaluation: Evaluation, earlier: Earlier) -> tuple[Evaluation, str | None]:
    """Return the page of changes since the night before, with a warning in the evaluation if there can be none."""
    from rankledger.pipeline.history.compare import changes_since_night
    from rankledger.pipeline.report.html.comparisons import comparison_html

    try:
        with stage("Comparing with the night before"):
            before = next(earlier.resolver.history.nights(), None) if earlier.resolver else None
            changes = changes_since_night(before, evaluation, *evaluation.source)
            return evaluation, None if changes is None else comparison_html(changes, in_record=True)
    except (InputError, OSError) as error:
        warning = f"not compared with the night before: {error}"
        return replace(evaluation, warnings=(*evaluation.warnings, warning)), None
    except Exception as error:
        return _warn_of_bug(evaluation, CHANGES_PAGE, error), None


def _warn_of_bug(evaluation: Evaluation, page: str, error: Exception) -> Evaluation:
    if line := describe_system_error(error):
        warning = f"{page}: not written ({line}). The record is complete without the page."
        return replace(evaluation, warnings=(*evaluation.warnings, warning))
    place = extract_tb(error.__traceback__)[-1]
    bug = f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}: {error}"
    warning = f"{page}: not written because of a bug ({bug}). The record is complete without it. Report the bug."
    return replace(evaluation, warnings=(*evaluation.warnings, warning))


@stage("Writing the record")
def _write(evaluation: Evaluation, opened: Opened, pages: Mapping[str, Any], runs_dir: Path | None) -> Evaluation:
    document = relocate(opened.loaded.document, evaluation.path)
    written = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return write_record(evaluation, config=written, runs_dir=runs_dir, **pages)


@contextmanager
def write_temporary_record(evaluation: Evaluation) -> Iterator[Path]:
    """Write an evaluation's record to a temporary folder, which is deleted after the block."""
    opened, _ = evaluation.source
    with TemporaryDirectory(prefix="rankledger-") as folder:
        workspace = Workspace.open(folder)
        manifest = evaluation.manifest.model_copy(update={"environment": describe_environment(opened)})
        evaluation = replace(evaluation, manifest=manifest, path=workspace.records.folder / evaluation.evaluation_id)
        evaluation, pages = _draw_page(evaluation, workspace)
        yield _write(evaluation, opened, pages, workspace.runs_dir if opened.is_trusted else None).path
