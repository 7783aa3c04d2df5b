"""From a config to a finished record, and to what it would be evaluated of."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pipeline.config.plan import plan
from pipeline.config.sections import load
from pipeline.credentials import without_credentials
from pipeline.environment import at_work, environment
from pipeline.parallel import Workers
from pipeline.progress import work
from pipeline.record import Records, new_evaluation_id, open_records
from pipeline.tables import Evaluation, Validation
from pipeline.workflow.computing import Backend, Computed, compute, workers_of
from pipeline.workflow.delivering import deliver
from pipeline.workflow.displayed import DisplayedEvaluation
from pipeline.workflow.inferring import config_of
from pipeline.workflow.judging import check_comparison
from pipeline.workflow.leftovers import clear_left_behind
from pipeline.workflow.manifest import manifest_of
from pipeline.workflow.reading import read_inputs
from pipeline.workflow.recording import Drawn, draw, keep
from pipeline.workflow.sources import Opened, checked_date, open_source, repository_of
from pipeline.workflow.tracking import is_from_environment, sync_command, told_store, with_own_places

__all__ = ["evaluate", "evaluate_opened", "validate"]


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
            they were; outputs may be gone that the block store has.
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
    kept = open_records(Path(runs_dir), records)
    opened = open_source(config, kept, overrides=overrides, date=date, allow_env=allow_env)
    opened = with_own_places(opened, Path(runs_dir), tracking=tracking)
    return evaluate_opened(
        opened,
        workers_of(opened.loaded.config, jobs, backend),
        runs_dir=Path(runs_dir),
        records=open_records(Path(runs_dir), opened.planned.records if records is None else records),
        tracking=tracking,
        command=shlex.join(map(without_credentials, command)) or f"pipeline.evaluate({str(config)!r})",
    )


def evaluate_opened(
    opened: Opened,
    workers: Workers,
    *,
    runs_dir: Path,
    records: Records,
    tracking: bool,
    command: str,
    evaluation_id: str | None = None,
    even_of_nothing: bool = False,
) -> Evaluation:
    """The same of a config that was read and planned.

    Args:
        opened: the config and what it comes to; what its plan says is late is not read.
        workers: share the work.
        runs_dir: the runs folder.
        records: where records are kept.
        tracking: whether to log to MLflow, where the config does not rule it out.
        command: what asked for it.
        evaluation_id: what the record is to be called; a new id unless given.
        even_of_nothing: whether there is to be a record if no model output was evaluated.

    Raises:
        InputError: judgments, queries or documents are wrong.
        OSError: the record could not be written.
    """
    config = opened.loaded.config
    clear_left_behind(records, runs_dir)
    wanted = config.tracking if tracking and config.tracking.enabled else None
    with told_store(wanted, runs_dir) as store:  # MLflow is loaded by a process of its own while this one computes
        started = datetime.now(UTC)
        computed = compute(opened, workers, runs_dir=runs_dir, records=records, started=started)
        evaluation_id = evaluation_id or new_evaluation_id(config.name, started)
        path = records.folder / evaluation_id
        if not (computed.results or even_of_nothing):
            return replace(_evaluation(path, opened, computed), record=None)
        evaluation = _evaluation(path, opened, computed)
        manifest = manifest_of(opened.loaded, opened.planned, computed.inputs) | {
            **computed.inferred.manifest,
            "records": records.remote and records.remote.url,
            "tracking": {
                "wanted": wanted is not None,
                "from_environment": wanted is not None and is_from_environment(wanted),
            },
            "config": str(config_of(opened)),
            "command": command,
            "repeats": opened.record.manifest["evaluation_id"] if opened.record else None,
            **at_work(),
            "environment": environment(repository_of(opened)),
            "created": started.isoformat(),
        }
        drawn = draw(evaluation, computed, manifest, records) if config.report else Drawn()
        record = keep(evaluation, opened, computed, drawn, manifest, records.folder)
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
