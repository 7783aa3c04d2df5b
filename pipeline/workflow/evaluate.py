"""From a config to a finished record, and to what it would be evaluated of."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import yaml

from pipeline.blocks import BlockStore
from pipeline.config.paths import relocate
from pipeline.config.plan import Plan, plan
from pipeline.config.sections import Config, Loaded, load
from pipeline.credentials import without_credentials
from pipeline.environment import environment
from pipeline.errors import InputError
from pipeline.evaluation import score
from pipeline.parallel import Workers
from pipeline.record import new_evaluation_id, write_record
from pipeline.sensitivity import bound_ties
from pipeline.tables import Evaluation, Record, Scores, Validation
from pipeline.workflow.inferring import Inferred, config_of, infer
from pipeline.workflow.judging import check_comparison
from pipeline.workflow.manifest import manifest_of
from pipeline.workflow.reading import Inputs, read_inputs
from pipeline.workflow.sources import Opened, open_source
from pipeline.workflow.tracking import track

__all__ = ["evaluate", "validate"]

Backend = Literal["threads", "processes"]


def evaluate(
    config: str | Path,
    *,
    overrides: Sequence[str] = (),
    date: str | None = None,
    jobs: int | None = None,
    backend: Backend | None = None,
    runs_dir: str | Path = "runs",
    tracking: bool = True,
    command: Sequence[str] = (),
) -> Evaluation:
    """Evaluate every model of a config, write the record, and log it to MLflow.

    Args:
        config: the YAML file; or a record, by its path or its id, to evaluate its config again. Its inputs must be what
            they were; outputs may be gone that the block store has.
        overrides: `key.path=value` texts that win over the file.
        date: what `{date}` in paths stands for; a record has its own.
        jobs: workers, instead of the config's.
        backend: `threads` or `processes`, instead of the config's.
        runs_dir: where records and the default MLflow store are.
        tracking: whether to log to MLflow, where the config does not rule it out.
        command: the words of the command line that asked for it, if one did; they are recorded.

    Raises:
        InputError: the config, judgments, queries or documents are wrong. A model output that is missing or refused is
            among the evaluation's failures instead, and the others are evaluated.
        OSError: the record could not be written.
    """
    started, clock = datetime.now(UTC), _Clock()
    opened = open_source(config, Path(runs_dir), overrides=overrides, date=date)
    loaded, planned = opened.loaded, opened.planned
    workers = _workers(loaded.config, jobs, backend)
    with clock.stage("read"):
        inputs = read_inputs(
            planned,
            loaded.config.conventions.resolved.conventions,
            workers,
            store=BlockStore(Path(runs_dir) / "blocks") if loaded.config.execution.blocks else None,
            record=opened.record,
        )
    check_comparison(loaded.config, planned, inputs, workers)
    with clock.stage("score"):
        results = _score(loaded.config, planned, inputs, workers)
    with clock.stage("resample"):
        inferred = infer(opened, inputs, results, workers=workers, runs_dir=Path(runs_dir), started=started)
    manifest = manifest_of(loaded, planned, inputs) | {
        **inferred.manifest,
        "config": str(config_of(opened)),
        "command": shlex.join(map(without_credentials, command)) or f"pipeline.evaluate({str(config)!r})",
        "repeats": opened.record.path.name if opened.record else None,
        "environment": environment(opened.config.parent),
        "created": started.isoformat(),
        "finished": datetime.now(UTC).isoformat(),
        "timings": clock.seconds,
    }
    record = _write(Path(runs_dir) / "records", loaded, started, results, inferred, manifest)
    evaluation = _evaluation(record, opened, inputs, results, inferred)
    if tracking and loaded.config.tracking.enabled:
        return track(evaluation, record, loaded.config, Path(runs_dir))
    return evaluation


def validate(
    config: str | Path, *, overrides: Sequence[str] = (), date: str | None = None, jobs: int | None = None
) -> Validation:
    """Read everything that a config names and compute nothing.

    Arguments and errors are those of `evaluate`.
    """
    loaded = load(config, overrides)
    planned = plan(loaded, date)
    workers = _workers(loaded.config, jobs, None)
    inputs = read_inputs(planned, loaded.config.conventions.resolved.conventions, workers)
    check_comparison(loaded.config, planned, inputs, workers)
    return Validation(
        n_queries={name: len(dataset.query_ids) for name, dataset in inputs.datasets.items()},
        n_measures={dataset.name: len(dataset.measures) for dataset in planned.datasets},
        models=tuple(planned.models),
        quality=inputs.quality,
        failures=inputs.failures,
        warnings=planned.warnings,
    )


class _Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - begin, 3)


def _workers(config: Config, jobs: int | None, backend: Backend | None) -> Workers:
    if jobs == 0:
        raise InputError("jobs is 0; write a number of workers, or -1 for one per core")
    return Workers(jobs or config.execution.jobs, backend or config.execution.backend)


def _score(config: Config, planned: Plan, inputs: Inputs, workers: Workers) -> tuple[Scores, ...]:
    measures = {dataset.name: dataset.measures for dataset in planned.datasets}
    profile = config.conventions.resolved
    clusters = {name: dataset.groups.clusters for name, dataset in inputs.datasets.items()}
    results = score(inputs.joined, measures, profile, workers, clusters=clusters)
    if "ties" in config.sensitivity:
        results = bound_ties(results, inputs.joined, profile, seed=config.seed, workers=workers)
    scores = {**{(result.dataset, result.model): result for result in results}, **inputs.given}
    return tuple(scores[task] for task in inputs.quality)


def _evaluation(
    record: Record, opened: Opened, inputs: Inputs, results: tuple[Scores, ...], inferred: Inferred
) -> Evaluation:
    planned = opened.planned
    return Evaluation(
        evaluation_id=record.path.name,
        name=opened.loaded.config.name,
        directions={str(m): m.metric.direction for dataset in planned.datasets for m in dataset.measures},
        results=results,
        estimates=inferred.estimates,
        quality=inputs.quality,
        failures=inputs.failures,
        record=record.path,
        warnings=(*planned.warnings, *inputs.remarks),
        comparison_lines=inferred.comparisons or (),
        verdicts=inferred.judged.verdicts if inferred.judged else (),
    )


def _write(
    records: Path,
    loaded: Loaded,
    started: datetime,
    results: Sequence[Scores],
    inferred: Inferred,
    manifest: Mapping[str, Any],
) -> Record:
    evaluation_id = new_evaluation_id(loaded.config.name, started)
    config = relocate(loaded.document, records / evaluation_id)
    return write_record(
        records,
        evaluation_id=evaluation_id,
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
        results=results,
        estimates=inferred.estimates,
        manifest=manifest,
        comparisons=inferred.comparisons,
        judged=inferred.judged,
    )
