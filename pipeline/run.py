"""From a config to a finished record; or to what it would evaluate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from rankledger.pipeline.config.paths import relocate
from rankledger.pipeline.data.inputs import Inputs, read_inputs
from rankledger.pipeline.data.joined import DataWarning
from rankledger.pipeline.data.scores import Scores
from rankledger.pipeline.delivery.deliver import deliver
from rankledger.pipeline.history.analysis import Computed, analyze, check_comparison, score_recall
from rankledger.pipeline.history.manifest import NOT_TRACKED, build_manifest
from rankledger.pipeline.inference.tables import QueryChange
from rankledger.pipeline.record.evaluation import Evaluation, QueryDetail, Record
from rankledger.pipeline.record.folder import CHANGES_PAGE, new_evaluation_id, write_record
from rankledger.pipeline.record.manifest import Description
from rankledger.pipeline.record.manifest_parts import TrackingWish
from rankledger.pipeline.record.mlflow_stores import is_from_environment, open_for_logging
from rankledger.pipeline.record.receipts import clear_left_behind
from rankledger.pipeline.record.workspace import Opened, Workspace, evaluated_inputs, with_python_advice
from rankledger.pipeline.report.html.render import html
from rankledger.pipeline.report.page import new_page
from rankledger.pipeline.scoring import bound_ties, families, score
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import stage


def compute(opened: Opened, workers: Workers, workspace: Workspace, command: str) -> Computed:
    """Read, score and resample everything; nothing is written but to the output cache.

    Args:
        opened: the config and what it comes to; of a record, inputs must be what they were.
        workers: share the work.
        workspace: where the output cache and earlier evaluations are.
        command: what asked for it.

    Raises:
        InputError: judgments, queries or documents are wrong.
    """
    config, planned, started = opened.loaded.config, opened.planned, datetime.now(UTC)
    workspace = replace(workspace, cache_place=planned.cache)
    timings: dict[str, float] = {}
    with _timed("read", timings):
        inputs = read_inputs(
            planned,
            config.conventions.resolved.conventions,
            workers,
            store=workspace.cache if config.execution.cache else None,
            before=evaluated_inputs(opened.record) if opened.record else None,
        )
    if opened.is_in_memory:
        inputs = replace(inputs, failures=tuple(map(with_python_advice, inputs.failures)))
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
        inferred = analyze(opened, inputs, results, recall, workspace, workers=workers, started=started)
        inputs = replace(inputs, warnings=(*inputs.warnings, *inferred.gone))
    return Computed(opened, command, started, inputs, results, inferred, timings)


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
    return families([scores[key] for key in inputs.quality], sharing)


@dataclass(frozen=True)
class _RenderedPage:
    """The page of an evaluation, and the queries that it shows; or the bug why there is none, which costs no figure."""

    page: str | None = None
    query_changes: tuple[QueryChange, ...] = ()
    query_details: tuple[QueryDetail, ...] = ()
    error: Exception | None = None


@stage("Writing the record")
def _write(
    computed: Computed,
    rendered: _RenderedPage,
    manifest: Description,
    workspace: Workspace,
    compared: Callable[[Record], str | None] | None = None,
) -> Record:
    config = relocate(computed.opened.loaded.document, workspace.records.folder / manifest.evaluation_id)
    return write_record(
        workspace.records.folder,
        manifest=manifest,
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
        results=computed.results,
        tables=computed.inferred.tables,
        timings=computed.timings,
        query_changes=rendered.query_changes,
        query_details=rendered.query_details,
        page=rendered.page,
        compared=compared,
        trusted=computed.opened.is_trusted,
        contents=computed.inputs.contents,
    )


@dataclass(eq=False)
class _ChangesPage:
    """Makes `changes.html` of a dated evaluation: what changed since the night before.

    Attributes:
        warning: why there is none, though there was a night before; empty if there is one, or was none.
        error: the bug why there is none, which costs no figure.
    """

    computed: Computed
    workspace: Workspace
    warning: str = ""
    error: Exception | None = None

    @stage("Comparing with the night before")
    def __call__(self, record: Record) -> str | None:
        """The page; None if there was no night before, or the two cannot be compared."""
        from rankledger.pipeline.history.compare import changes_since_last_night
        from rankledger.pipeline.report.html.comparisons import comparison_html

        try:
            found = changes_since_last_night(self.computed, record, self.workspace)
            return None if found is None else comparison_html(found, in_record=True)
        except (InputError, OSError) as error:
            self.warning = f"not compared with the night before: {error}"
        except Exception as error:
            error.add_note(f"the record is complete but for {CHANGES_PAGE}: {record.manifest.evaluation_id}")
            self.error = error
        return None


@stage("Drawing the page")
def _render_page(
    evaluation: Evaluation, computed: Computed, manifest: Description, workspace: Workspace
) -> _RenderedPage:
    """The page, and the queries that changed most; an error is kept until the record is safe."""
    try:
        with _timed("report", computed.timings):
            page, query_changes = new_page(evaluation, manifest, computed, workspace)
            return _RenderedPage(html(page), query_changes, page.details)
    except Exception as error:
        error.add_note(f"the record is complete but for its page: {evaluation.record}")
        return _RenderedPage(error=error)


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
) -> tuple[Evaluation, Computed]:
    """Evaluate a config that was read and planned, and record the evaluation.

    Args:
        opened: the config and what it comes to; what its plan says is late is not read.
        workers: share the work.
        workspace: where the evaluation goes, and earlier ones are.
        tracking: whether to log to MLflow, where the config does not rule it out.
        command: what asked for it.
        evaluation_id: what the record is to be called; by default a new id.
        allow_empty: whether there is to be a record if no model output was evaluated.
        recorded: whether there is to be one at all; without, nothing is written.
        alerts: whether a change of state is to be sent, which the record says.

    Raises:
        InputError: judgments, queries or documents are wrong.
        OSError: the record could not be written.
    """
    config = opened.loaded.config
    if recorded:
        clear_left_behind(workspace.records, workspace.runs_dir)
    tracked = config.tracking if recorded and tracking and config.tracking.enabled else None
    with open_for_logging(tracked, workspace) as store:  # a process of its own loads MLflow while this one computes
        computed = compute(opened, workers, workspace, command)
        evaluation_id = evaluation_id or new_evaluation_id(config.name, computed.started)
        evaluation = _evaluation(workspace.records.folder / evaluation_id, computed)
        if not (recorded and (computed.results or allow_empty)):
            return replace(evaluation, record=None), computed
        wish = tracked and TrackingWish(wanted=True, from_environment=is_from_environment(tracked))
        manifest = build_manifest(computed, evaluation_id, workspace, tracking=wish or NOT_TRACKED, alerts=alerts)
        rendered = _render_page(evaluation, computed, manifest, workspace) if config.report else _RenderedPage()
        changes = _ChangesPage(computed, workspace)
        is_night = config.report and manifest.date is not None and opened.record is None
        record = _write(computed, rendered, manifest, workspace, changes if is_night else None)
        if changes.warning:
            evaluation = replace(evaluation, warnings=(*evaluation.warnings, changes.warning))
        delivered = deliver(evaluation, record, workspace, store=store, tracking=config.tracking)
        for error in (rendered.error, changes.error):
            if error is not None:
                raise error
        return delivered, computed


def _evaluation(path: Path, computed: Computed) -> Evaluation:
    opened, inputs, tables = computed.opened, computed.inputs, computed.inferred.tables
    planned = opened.planned
    return Evaluation(
        evaluation_id=path.name,
        name=opened.loaded.config.name,
        directions={str(m): m.metric.direction for dataset in planned.datasets for m in dataset.measures},
        results=computed.results,
        estimates=tables.summary,
        quality=inputs.model_quality,
        failures=inputs.failures,
        record=path,
        warnings=(*planned.warnings, *inputs.remarks, *computed.inferred.warnings),
        data_warnings=inputs.warnings,
        comparison_lines=tables.comparisons or (),
        slice_changes=tables.slice_changes or (),
        verdicts=tables.verdicts,
        agreement=tables.agreement,
        replicates=tables.replicates,
        components=tables.components,
        confidence=opened.loaded.config.bootstrap.confidence,
        lead={dataset: str(measure) for dataset, measure in planned.lead.items()},
        baseline=opened.loaded.config.comparison.baseline if opened.loaded.config.comparison else "",
        changes=tables.changes,
        date=planned.date or "",
        owners={name: model.owner for name, model in planned.models.items() if model.owner},
    )


@contextmanager
def write_temporary_record(computed: Computed, evaluation: Evaluation) -> Iterator[Path]:
    """Write the record of an evaluation to a temporary folder, which exists within the block."""
    with TemporaryDirectory(prefix="rankledger-") as folder:
        workspace = Workspace.open(folder)
        manifest = build_manifest(computed, evaluation.evaluation_id, workspace)
        rendered = _render_page(evaluation, computed, manifest, workspace)
        yield _write(computed, rendered, manifest, workspace).path
