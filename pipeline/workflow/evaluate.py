"""From a config to a finished record, and to what it would be evaluated of."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import yaml

from pipeline.config.paths import relocate
from pipeline.config.plan import Plan, plan
from pipeline.config.sections import Config, Loaded, load
from pipeline.credentials import without_credentials
from pipeline.environment import environment
from pipeline.errors import InputError
from pipeline.evaluation import score
from pipeline.inference.intervals import estimate
from pipeline.parallel import Workers
from pipeline.record import new_evaluation_id, write_record
from pipeline.report.text import note
from pipeline.sensitivity import bound_ties
from pipeline.tables import Estimate, Evaluation, Record, Scores, Validation
from pipeline.workflow.manifest import manifest_of
from pipeline.workflow.reading import Inputs, read_inputs

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
        config: the YAML file.
        overrides: `key.path=value` texts that win over the file.
        date: what `{date}` in paths stands for.
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
    loaded = load(config, overrides)
    planned = plan(loaded, date)
    workers = _workers(loaded.config, jobs, backend)
    with clock.stage("read"):
        inputs = read_inputs(planned, loaded.config.conventions.resolved.conventions, workers)
    with clock.stage("score"):
        results = _score(loaded.config, planned, inputs, workers)
    with clock.stage("resample"):
        estimates = _estimate(loaded.config, results, workers)
    manifest = manifest_of(loaded, planned, inputs) | {
        "command": shlex.join(map(without_credentials, command)) or f"pipeline.evaluate({str(config)!r})",
        "environment": environment(Path(config).parent),
        "created": started.isoformat(),
        "finished": datetime.now(UTC).isoformat(),
        "timings": clock.seconds,
    }
    record = _write(Path(runs_dir) / "records", loaded, started, results, estimates, manifest)
    evaluation = Evaluation(
        evaluation_id=record.path.name,
        name=loaded.config.name,
        directions={str(m): m.metric.direction for dataset in planned.datasets for m in dataset.measures},
        results=results,
        estimates=estimates,
        quality=inputs.quality,
        failures=inputs.failures,
        record=record.path,
    )
    if tracking and loaded.config.tracking.enabled:
        return _track(evaluation, record, loaded.config, Path(runs_dir))
    return evaluation


def validate(
    config: str | Path, *, overrides: Sequence[str] = (), date: str | None = None, jobs: int | None = None
) -> Validation:
    """Read everything that a config names and compute nothing.

    Arguments and errors are those of `evaluate`.
    """
    loaded = load(config, overrides)
    planned = plan(loaded, date)
    inputs = read_inputs(planned, loaded.config.conventions.resolved.conventions, _workers(loaded.config, jobs, None))
    return Validation(
        n_queries={name: len(dataset.judgments.query_ids) for name, dataset in inputs.datasets.items()},
        n_measures={dataset.name: len(dataset.measures) for dataset in planned.datasets},
        models=tuple(planned.models),
        quality=inputs.quality,
        failures=inputs.failures,
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
    results = score(inputs.joined, measures, profile, workers)
    if "ties" in config.sensitivity:
        results = bound_ties(results, inputs.joined, profile, seed=config.seed, workers=workers)
    return results


def _estimate(config: Config, results: Sequence[Scores], workers: Workers) -> tuple[Estimate, ...]:
    estimates: list[Estimate] = []
    for dataset in dict.fromkeys(result.dataset for result in results):
        estimates += estimate(
            [result for result in results if result.dataset == dataset],
            config.conventions.resolved.conventions,
            resamples=config.bootstrap.resamples,
            confidence=config.bootstrap.confidence,
            seed=config.seed,
            workers=workers,
        )
    return tuple(estimates)


def _write(
    records: Path,
    loaded: Loaded,
    started: datetime,
    results: Sequence[Scores],
    estimates: Sequence[Estimate],
    manifest: Mapping[str, Any],
) -> Record:
    evaluation_id = new_evaluation_id(loaded.config.name, started)
    config = relocate(loaded.document, records / evaluation_id)
    return write_record(
        records,
        evaluation_id=evaluation_id,
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
        results=results,
        estimates=estimates,
        manifest=manifest,
    )


def _track(evaluation: Evaluation, record: Record, config: Config, runs_dir: Path) -> Evaluation:
    """The evaluation with the store that holds it now, or with the reason why none does; the record is whole anyhow."""
    from pipeline.tracking.client import TrackingError, track  # imports MLflow, which only those wait for who track

    try:
        tracked = track(
            record,
            uri=_store(config.tracking.uri, runs_dir),
            artifacts=runs_dir / "mlflow-artifacts",
            metric_name=config.tracking.metric_name,
            note=note(evaluation),
        )
    except TrackingError as error:
        return replace(evaluation, untracked=str(error))
    except BaseException as error:
        error.add_note(f"the record is complete: {record.path}")  # for whoever says why it ended
        raise
    return replace(evaluation, store=tracked.url or tracked.uri)


def _store(uri: str | None, runs_dir: Path) -> str:
    """The tracking store; the path of a local one starts at the runs folder."""
    scheme, separator, path = (uri or "sqlite:///mlflow.db").rpartition("://")
    if uri == "databricks" or (separator and scheme != "sqlite"):
        return str(uri)
    return f"sqlite:///{(runs_dir / (path.removeprefix('/') if separator else path)).resolve()}"
