"""From a config to a finished record; or to what it would evaluate."""

from __future__ import annotations

import shlex
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import yaml

from rankledger.metrics.metric import MetricError
from rankledger.pipeline.config.paths import relocate
from rankledger.pipeline.config.plan import unlisted_replicates, unpaired_gates
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.config.yaml import KeyPath
from rankledger.pipeline.inference.changes import RetrievedRanks
from rankledger.pipeline.record.folder import CHANGES_PAGE, new_evaluation_id, write_record
from rankledger.pipeline.record.receipts import clear_left_behind
from rankledger.pipeline.report.html.render import html
from rankledger.pipeline.scoring import bound_ties, families, score
from rankledger.pipeline.support.credentials import without_credentials
from rankledger.pipeline.support.errors import InputError, InputWarning
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.support.progress import stage, work
from rankledger.pipeline.types.inputs import Given, GivenPairs
from rankledger.pipeline.types.manifest import Description
from rankledger.pipeline.types.recorded import TrackingWish
from rankledger.pipeline.types.results import DataWarning, Record, Scores, Validation
from rankledger.pipeline.types.views import QueryChange, QueryDetail
from rankledger.pipeline.workflow.analysis import Analysis, analyze, check_comparison, score_recall
from rankledger.pipeline.workflow.deliver import deliver, is_from_environment, open_for_logging, with_trusted_store
from rankledger.pipeline.workflow.evaluation import Evaluation
from rankledger.pipeline.workflow.inputs import Inputs, read_inputs
from rankledger.pipeline.workflow.manifest import NOT_TRACKED, build_manifest
from rankledger.pipeline.workflow.page import new_page
from rankledger.pipeline.workflow.references import source_of_reference
from rankledger.pipeline.workflow.workspace import (
    Backend,
    MeasureLike,
    Opened,
    Workspace,
    open_config,
    open_given,
    open_source,
    with_python_advice,
    workers_of,
)

if TYPE_CHECKING:
    pass

_CALLER = 4  # frames from a warning to the call of `evaluate`: that of `_warn`, its own, and that of `work`


@dataclass(frozen=True, eq=False)
class Computed:
    """What came of a config: what was read, the scores in the order of the plan, what is said of them, the seconds.

    It is the `Session` of an evaluation that is not recorded, or is of data in memory.
    """

    opened: Opened
    command: str
    started: datetime
    inputs: Inputs
    results: tuple[Scores, ...]
    inferred: Analysis
    timings: dict[str, float]

    def ranks(self, dataset: str, model: str) -> RetrievedRanks | None:
        """The ranks of judged documents in a model's output on a dataset."""
        return self.inputs.ranks(dataset, model)

    @contextmanager
    def written(self, evaluation: Evaluation) -> Iterator[Path]:
        """A record of the evaluation in a temporary folder."""
        with TemporaryDirectory(prefix="rankledger-") as folder:
            workspace = Workspace.open(folder)
            manifest = build_manifest(self, evaluation.evaluation_id, workspace)
            rendered = _render_page(evaluation, self, manifest, workspace)
            yield _write(self, rendered, manifest, workspace).path


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
            record=opened.record,
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
        from rankledger.pipeline.report.html.comparisons import comparison_html
        from rankledger.pipeline.workflow.compare import changes_since_last_night

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


@work()
def evaluate(
    judgments: Given,
    outputs: Mapping[str, Given] | None = None,
    measures: MeasureLike | Sequence[MeasureLike] = (),
    *,
    baseline: str | None = None,
    queries: Given | None = None,
    documents: Given | None = None,
    interactions: GivenPairs | None = None,
    exclude: GivenPairs | None = None,
    exclude_self: bool | None = None,
    seen: Literal["refuse", "remove", "count"] | None = None,
    dataset: str = "data",
    name: str | None = None,
    overrides: Sequence[str] = (),
    date: str | None = None,
    jobs: int | None = None,
    backend: Backend | None = None,
    scheduler: str | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    record: bool | None = None,
    tracking: bool | None = None,
    command: Sequence[str] = (),
) -> Evaluation:
    """Evaluate every model of a config, or outputs in memory.

    A config's evaluation is recorded and logged to MLflow; if no output can be evaluated, no record is written. Of
    judgments and outputs nothing is written unless you ask for it, and the figures are those that a config with files
    of the same rows and the same name of the dataset gives. What is worth knowing, such as the tool that a file was
    taken to be of, is a warning of the category `InputWarning`, and so is an output that was refused.

    Args:
        judgments: a config: the YAML file; or a record, by its path or id, `last`, `last_passed`, `previous` or
            `accepted`, to evaluate its config again. Its inputs must be what they were; outputs may be missing if the
            output cache has them. With `outputs`, the judgments: a path, a data frame or Arrow table with the columns
            `query_id`, `doc_id` and `relevance`, `{query: {document: relevance}}`, or tuples of these three.
        outputs: the models' outputs, by model: likewise, with `score` in the place of `relevance`. If the first measure
            is for ratings, the columns are `rating` and `prediction`.
        measures: the measures of outputs in memory, such as `["ndcg@10", "ap"]`; the first one leads. A metric of your
            own is a function, a `Metric`, or a `Measure` of it.
        baseline: the model that the others are compared with, or `all_pairs`; by default none are compared.
        queries: the queries table: a path, or a table with the column `query_id`.
        documents: the catalogue: a path, or a table with the column `doc_id`.
        interactions: what users consumed in training: a path, a table with `query_id` and `doc_id`, `{query:
            [document, …]}`, or tuples of these two.
        exclude: documents to leave out of the rankings of queries: likewise.
        exclude_self: whether to leave out the document whose id is the query's, too.
        seen: whether recommendations that stand in the interactions are a reason to `refuse` the output, or to `remove`
            them, or are counted, `count`, as by default.
        dataset: what the dataset is called. Random numbers are drawn by its name.
        name: of outputs in memory, what the evaluation is called, by default `in-memory`; else the evaluation that the
            words refer to, by default the only one that has records.
        overrides: `key.path=value` texts that win over the file, or that set any key of a config that has no argument.
        date: what `{date}` in paths stands for; a record has its own.
        jobs: workers, instead of the config's.
        backend: `threads`, `processes` or `dask`, instead of the config's.
        scheduler: the address of a Dask cluster, instead of the config's; the backend is `dask` then.
        runs_dir: where records and the default MLflow store are.
        records: where records are kept, instead of where the config says: a folder, or the URL of one.
        record: whether to write a record; by default for a config, and for outputs in memory that are tracked.
        tracking: whether to log to MLflow, where the config does not rule it out; by default for a recorded config.
        command: the words of the command line that asked for it, if one did; they are recorded, and what would be a
            warning is the command's to print.

    Raises:
        InputError: the config, an argument, judgments, queries or documents are wrong, or all outputs in memory are. A
            model output that is missing or refused is among the evaluation's failures instead, and the others are
            evaluated.
        OSError: the record could not be written.
    """
    workspace = Workspace.open(runs_dir, records)
    tables = {"queries": queries, "documents": documents, "interactions": interactions, "exclude": exclude}
    settings: dict[str, bool | str | None] = {"exclude_self": exclude_self, "seen": seen}
    if outputs is None:
        if not isinstance(judgments, str | Path):
            found = f"found a {type(judgments).__name__}; give the path of a YAML file"
            raise InputError(f"config: {found}, or `outputs` with judgments in memory")
        for argument, value in {"measures": measures or None, "baseline": baseline, **tables, **settings}.items():
            if value is not None:
                raise InputError(f"{argument}: is for outputs in memory; remove it, or give `outputs`")
        recorded = record is not False
        tracked = recorded if tracking is None else tracking
        source = source_of_reference(judgments, name, workspace)
        uncached = overrides if recorded else [*overrides, "execution.cache=false"]
        opened = open_source(source, workspace, overrides=uncached, date=date)
    else:
        if date is not None:
            raise InputError("date: fills {date} in the paths of a config; remove it")
        tracked = bool(tracking)
        recorded = tracked if record is None else record
        opened = open_given(
            judgments,
            outputs,
            measures,
            baseline=baseline,
            tables=tables,
            settings=settings,
            name=name or "in-memory",
            dataset=dataset,
            overrides=overrides,
            recorded=recorded,
        )
    if tracked and not recorded:
        raise InputError("tracking: logs a record, and record=False writes none; remove one of them")
    opened = with_trusted_store(opened, workspace, tracking=tracked)
    called = f"rankledger.evaluate({str(judgments)!r})" if outputs is None else "rankledger.evaluate(...)"
    evaluation = evaluate_opened(
        opened,
        workers_of(opened.loaded.config, jobs, backend, scheduler),
        Workspace.open(runs_dir, opened.planned.records) if records is None else workspace,
        tracking=tracked,
        command=shlex.join(map(without_credentials, command)) or called,
        recorded=recorded,
    )
    if outputs is not None and not evaluation.quality:
        raise InputError(*(failure.reason for failure in evaluation.failures))
    if not command:
        _warn(evaluation)
    return evaluation


def _warn(evaluation: Evaluation) -> None:
    """Say, where `evaluate` was called, what a command prints on stderr or below its tables."""
    reasons = (failure.reason for failure in evaluation.failures)
    for line in dict.fromkeys((*reasons, *map(str, evaluation.data_warnings), *evaluation.warnings)):
        warnings.warn(line, InputWarning, stacklevel=_CALLER)


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
    """The same of a config that was read and planned.

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
        if opened.is_in_memory or not recorded:
            evaluation = replace(evaluation, _session=computed)
        if not (recorded and (computed.results or allow_empty)):
            return replace(evaluation, record=None)
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
        return delivered


def validate(
    config: str | Path, *, overrides: Sequence[str] = (), date: str | None = None, jobs: int | None = None
) -> Validation:
    """Read everything that a config names and compute nothing.

    Arguments and errors are those of `evaluate`.
    """
    opened = open_config(config, overrides=overrides, date=date)
    loaded, planned = opened.loaded, opened.planned
    if planned.metrics:
        loaded.document.refuse([*_failing_metrics(planned)])
    workers = workers_of(loaded.config, jobs, None)
    inputs = read_inputs(planned, loaded.config.conventions.resolved.conventions, workers)
    check_comparison(opened, inputs, workers)
    unlisted = unlisted_replicates(loaded) if ("nightly",) in loaded.document.origins else []
    hints = (loaded.document.finding(*found) for found in (*unlisted, *unpaired_gates(loaded, planned)))
    gate_notes: tuple[str, ...] = ()
    if planned.gates:
        from rankledger.pipeline.inference.gate_errors import false_alarm_rate, small_slices

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
    from rankledger.pipeline.types.own_metrics import try_metric

    failing: dict[KeyPath, str] = {}
    for measure in dict.fromkeys(measure for dataset in planned.datasets for measure in dataset.measures):
        if measure.metric.code:
            try:
                try_metric(measure.metric, measure.arguments(max_grade=2))
            except MetricError as error:
                failing.setdefault(("metrics", measure.metric.name), f"{measure}: {error}")
    yield from failing.items()


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
