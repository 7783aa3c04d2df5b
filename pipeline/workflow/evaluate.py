"""From a config to a finished record; or to what it would evaluate."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import yaml

from rankledger.pipeline.config.paths import relocate
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.config.schema import Config, load
from rankledger.pipeline.config.values import checked_jobs
from rankledger.pipeline.errors import InputError
from rankledger.pipeline.record.folder import new_evaluation_id, write_record
from rankledger.pipeline.record.retention import clear_left_behind
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.report.html.render import html
from rankledger.pipeline.scoring import bound_ties, score
from rankledger.pipeline.support.credentials import without_credentials
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import stage, work
from rankledger.pipeline.types.changes import QueryChange
from rankledger.pipeline.types.manifest import Description, TrackingWish
from rankledger.pipeline.types.results import Evaluation, Record, Scores, Validation
from rankledger.pipeline.workflow.analysis import Analysis, analyze, check_comparison, config_of, score_recall
from rankledger.pipeline.workflow.deliver import deliver
from rankledger.pipeline.workflow.evaluation import DisplayedEvaluation
from rankledger.pipeline.workflow.inputs import Inputs, read_inputs
from rankledger.pipeline.workflow.manifest import build_manifest
from rankledger.pipeline.workflow.page import Column, largest_changes, new_page, paired_scores
from rankledger.pipeline.workflow.sources import Opened, checked_date, open_source
from rankledger.pipeline.workflow.tracking import is_from_environment, open_for_logging, sync_command, with_own_targets
from rankledger.pipeline.workflow.workspace import Workspace

__all__ = [
    "Backend",
    "Clock",
    "Computed",
    "RenderedPage",
    "compute",
    "evaluate",
    "evaluate_opened",
    "render_page",
    "validate",
    "workers_of",
    "write",
]

Backend = Literal["threads", "processes"]


@dataclass(frozen=True, eq=False)
class Computed:
    """What came of a config.

    Attributes:
        inputs: what was read.
        results: the scores, in the order of the plan's tasks.
        inferred: what is said of them.
        clock: the seconds by stage.
    """

    inputs: Inputs
    results: tuple[Scores, ...]
    inferred: Analysis
    clock: Clock


def compute(opened: Opened, workers: Workers, workspace: Workspace, *, started: datetime) -> Computed:
    """Read, score and resample everything; nothing is written but to the output cache.

    Args:
        opened: the config and what it comes to; of a record, inputs must be what they were.
        workers: share the work.
        workspace: where the output cache and earlier evaluations are.
        started: when the evaluation began.

    Raises:
        InputError: judgments, queries or documents are wrong.
    """
    config, planned, clock = opened.loaded.config, opened.planned, Clock()
    with clock.stage("read"):
        inputs = read_inputs(
            planned,
            config.conventions.resolved.conventions,
            workers,
            store=workspace.cache if config.execution.cache else None,
            record=opened.record,
        )
    check_comparison(config, planned, inputs, workers)
    with clock.stage("score"):
        results = _score(config, planned, inputs, workers)
        recall = score_recall(config, planned, inputs, workers)
    with clock.stage("resample"):
        inferred = analyze(opened, inputs, results, recall, workspace, workers=workers, started=started)
    return Computed(inputs, results, inferred, clock)


def workers_of(config: Config, jobs: int | None = None, backend: Backend | None = None) -> Workers:
    """The workers that a config asks for, or a command instead.

    Raises:
        InputError: the command asks for none, for too many, or for a backend that there is not.
    """
    try:
        wanted = config.execution.jobs if jobs is None else checked_jobs(jobs)
    except ValueError as error:
        raise InputError(f"--jobs: {error}") from None
    if backend not in (None, *get_args(Backend)):
        raise InputError(f"--backend: found {backend!r}; write {' or '.join(get_args(Backend))}")
    return Workers(wanted, backend or config.execution.backend)


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        """Begin without a stage."""
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """The time that passes within is the stage's."""
        begin = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - begin, 3)


def _score(config: Config, planned: Plan, inputs: Inputs, workers: Workers) -> tuple[Scores, ...]:
    measures = {dataset.name: dataset.measures for dataset in planned.datasets}
    profile = config.conventions.resolved
    clusters = {name: dataset.groups.clusters for name, dataset in inputs.datasets.items()}
    results = score(inputs.joined, measures, profile, workers, clusters=clusters)
    if "ties" in config.sensitivity:
        results = bound_ties(results, inputs.joined, profile, seed=config.seed, workers=workers)
    scores = {**{(result.dataset, result.model): result for result in results}, **inputs.given}
    return tuple(scores[task] for task in inputs.quality)


@dataclass(frozen=True)
class RenderedPage:
    """The page of an evaluation.

    Attributes:
        page: its text; None where there is none.
        movers: the queries that moved most, which it shows.
        error: why there is none though there should be: a bug, which must cost no figure.
    """

    page: str | None = None
    movers: tuple[QueryChange, ...] = ()
    error: Exception | None = None


@stage("Writing the record")
def write(
    evaluation: Evaluation,
    opened: Opened,
    computed: Computed,
    drawn: RenderedPage,
    manifest: Description,
    folder: Path,
) -> Record:
    """Write the record.

    Args:
        evaluation: what was evaluated, with the folder that the record is to have.
        opened: the config and what it comes to.
        computed: what came of it.
        drawn: its page.
        manifest: what the manifest says of it.
        folder: where records are written.

    Raises:
        OSError: it cannot be written.
    """
    config = relocate(opened.loaded.document, folder / evaluation.evaluation_id)
    return write_record(
        folder,
        manifest=manifest,
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
        results=computed.results,
        estimates=computed.inferred.estimates,
        timings=computed.clock.seconds,
        comparisons=computed.inferred.comparisons,
        judged=computed.inferred.judged,
        curves=computed.inferred.curves,
        movers=drawn.movers,
        page=drawn.page,
        own=opened.is_own,  # else its config is still somebody else's
    )


@stage("Drawing the page")
def render_page(evaluation: Evaluation, computed: Computed, manifest: Description, records: Records) -> RenderedPage:
    """The page, and the queries that moved most; whatever goes wrong is kept for when the record is safe.

    Args:
        evaluation: what was evaluated.
        computed: what came of it.
        manifest: what the manifest says.
        records: where the records are that models were held against.
    """
    try:
        with computed.clock.stage("report"):
            scored = {(scores.dataset, scores.model): scores for scores in computed.results}
            shown, remarks = paired_scores(evaluation, manifest, partial(_column, scored), records)
            movers = tuple(largest_changes(shown, computed.inputs))
            curves = computed.inferred.curves
            page = new_page(evaluation, manifest, curves=curves, movers=movers, shown=shown, remarks=remarks)
            return RenderedPage(html([page]), movers)
    except Exception as error:
        error.add_note(f"the record is complete but for its page: {evaluation.record}")
        return RenderedPage(error=error)


def _column(scored: Mapping[tuple[str, str], Scores], dataset: str, model: str, measure: str) -> Column | None:
    """What `read_column` will read of the record."""
    scores = scored.get((dataset, model))
    for row, found in enumerate(scores.measures if scores else ()):
        if scores and str(found) == measure:
            return scores.query_ids, scores.values[row], scores.missing
    return None


@work()
def evaluate(
    config: str | Path,
    *,
    overrides: Sequence[str] = (),
    date: str | None = None,
    jobs: int | None = None,
    backend: Backend | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking: bool = True,
    allow_env: Sequence[str] = (),
    command: Sequence[str] = (),
) -> Evaluation:
    """Evaluate every model of a config, write the record, and log it to MLflow; of no model output there is no record.

    Args:
        config: the YAML file; or a record, by its path or its id, to evaluate its config again. Its inputs must be what
            they were; outputs may be gone that the output cache has.
        overrides: `key.path=value` texts that win over the file.
        date: what `{date}` in paths stands for; a record has its own.
        jobs: workers, instead of the config's.
        backend: `threads` or `processes`, instead of the config's.
        runs_dir: where records and the default MLflow store are.
        records: where records are kept, instead of where the config says: a folder, or the URL of one.
        tracking: whether to log to MLflow, where the config does not rule it out.
        allow_env: the environment variables that `tracking` of a record's config may read, beside those of MLflow.
        command: the words of the command line that asked for it, if one did; they are recorded.

    Raises:
        InputError: the config, judgments, queries or documents are wrong. A model output that is missing or refused is
            among the evaluation's failures instead, and the others are evaluated.
        OSError: the record could not be written.
    """
    workspace = Workspace.open(runs_dir, records)
    opened = open_source(config, workspace.records, overrides=overrides, date=date, allow_env=allow_env)
    opened = with_own_targets(opened, workspace.runs_dir, tracking=tracking)
    return evaluate_opened(
        opened,
        workers_of(opened.loaded.config, jobs, backend),
        Workspace.open(runs_dir, opened.planned.records) if records is None else workspace,
        tracking=tracking,
        command=shlex.join(map(without_credentials, command)) or f"rankledger.evaluate({str(config)!r})",
    )


def evaluate_opened(
    opened: Opened,
    workers: Workers,
    workspace: Workspace,
    *,
    tracking: bool,
    command: str,
    evaluation_id: str | None = None,
    even_of_nothing: bool = False,
) -> Evaluation:
    """The same of a config that was read and planned.

    Args:
        opened: the config and what it comes to; what its plan says is late is not read.
        workers: share the work.
        workspace: where the evaluation goes, and earlier ones are.
        tracking: whether to log to MLflow, where the config does not rule it out.
        command: what asked for it.
        evaluation_id: what the record is to be called; a new id unless given.
        even_of_nothing: whether there is to be a record if no model output was evaluated.

    Raises:
        InputError: judgments, queries or documents are wrong.
        OSError: the record could not be written.
    """
    config, records = opened.loaded.config, workspace.records
    clear_left_behind(records, workspace.runs_dir)
    wanted = config.tracking if tracking and config.tracking.enabled else None
    with open_for_logging(
        wanted, workspace.runs_dir
    ) as store:  # MLflow is loaded by a process of its own while this one computes
        started = datetime.now(UTC)
        computed = compute(opened, workers, workspace, started=started)
        evaluation_id = evaluation_id or new_evaluation_id(config.name, started)
        path = records.folder / evaluation_id
        if not (computed.results or even_of_nothing):
            return replace(_evaluation(path, opened, computed), record=None)
        evaluation = _evaluation(path, opened, computed)
        manifest = build_manifest(
            opened,
            computed.inputs,
            evaluation_id=evaluation_id,
            created=started,
            command=command,
            config=str(config_of(opened)),
            records=records.remote.url if records.remote else None,
            tracking=TrackingWish(
                wanted=wanted is not None, from_environment=wanted is not None and is_from_environment(wanted)
            ),
            baselines=computed.inferred.baselines,
            extras=computed.inferred.extras,
        )
        drawn = render_page(evaluation, computed, manifest, records) if config.report else RenderedPage()
        record = write(evaluation, opened, computed, drawn, manifest, records.folder)
        found = deliver(evaluation, record, records=records, store=store, metric_name=config.tracking.metric_name)
        if drawn.error is not None:
            raise drawn.error
        return found


def validate(
    config: str | Path, *, overrides: Sequence[str] = (), date: str | None = None, jobs: int | None = None
) -> Validation:
    """Read everything that a config names and compute nothing.

    Arguments and errors are those of `evaluate`.
    """
    loaded = load(config, overrides)
    planned = plan(loaded, checked_date(date))
    workers = workers_of(loaded.config, jobs, None)
    inputs = read_inputs(planned, loaded.config.conventions.resolved.conventions, workers)
    check_comparison(loaded.config, planned, inputs, workers)
    return Validation(
        n_queries={name: len(dataset.query_ids) for name, dataset in inputs.datasets.items()},
        n_measures={dataset.name: len(dataset.measures) for dataset in planned.datasets},
        models=tuple(planned.models),
        quality=inputs.quality,
        failures=inputs.failures,
        warnings=(*planned.warnings, *map(str, inputs.warnings)),
    )


def _evaluation(path: Path, opened: Opened, computed: Computed) -> Evaluation:
    planned, inputs, inferred = opened.planned, computed.inputs, computed.inferred
    return DisplayedEvaluation(
        evaluation_id=path.name,
        name=opened.loaded.config.name,
        directions={str(m): m.metric.direction for dataset in planned.datasets for m in dataset.measures},
        results=computed.results,
        estimates=inferred.estimates,
        quality=inputs.quality,
        failures=inputs.failures,
        record=path,
        delivery=sync_command(opened.loaded),
        warnings=(*planned.warnings, *inputs.remarks),
        data_warnings=inputs.warnings,
        comparison_lines=inferred.comparisons or (),
        verdicts=inferred.judged.verdicts if inferred.judged else (),
        confidence=opened.loaded.config.bootstrap.confidence,
        lead={dataset: str(measure) for dataset, measure in planned.lead.items()},
    )
