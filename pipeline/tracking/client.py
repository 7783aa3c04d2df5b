"""From a finished record to MLflow, by nothing but the record: the same record gives the same runs whenever it is told.

Conventions: MLflow is imported when it is needed, for that takes longer than most evaluations; nothing it says reaches
stdout; nothing of ours stays behind in its settings or in the environment, and what the user has set there holds.
Credentials in a URI are left out of everything that is logged or said.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.credentials import public_uri, without_credentials
from pipeline.tables import Record
from pipeline.tracking.names import TrackingError
from pipeline.tracking.runs import Run, RunInput, runs_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput

__all__ = ["Tracked", "TrackingError", "reached", "track"]

_SERVERS = ("http://", "https://", "databricks")  # these keep artifacts themselves

_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}
_KNOCKING = {  # MLflow's own settings hang for minutes on a server that is away
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "8",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "PGCONNECT_TIMEOUT": "8",
}
_SENDING = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "30", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
_ONCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
_CONNECTION_ATTEMPTS = 3  # of a database; MLflow's 10 take 100 seconds

_IDENTITY = ("rankledger.evaluation", "rankledger.dataset", "rankledger.model")  # by which a run is found again
_BATCH_LIMITS = {"metrics": 1_000, "params": 100, "tags": 100}
_BATCH_LENGTH = 1_000
_BATCH_BYTES = 900_000


@dataclass(frozen=True)
class Tracked:
    """Where an evaluation is found in MLflow.

    Attributes:
        uri: the tracking store, without credentials.
        experiment: the name of the experiment that holds the evaluation's own run.
        experiment_id: its id.
        run_id: the evaluation's own run.
        runs: the models' runs, by (dataset, model).
    """

    uri: str
    experiment: str
    experiment_id: str
    run_id: str
    runs: Mapping[tuple[str, str], str]

    @property
    def url(self) -> str | None:
        """The page of the evaluation's own run; None where the store is a database and no server."""
        if not self.uri.startswith(("http://", "https://")):
            return None
        return f"{self.uri.rstrip('/')}/#/experiments/{self.experiment_id}/runs/{self.run_id}"


def track(
    record: Record, *, uri: str, artifacts: Path, metric_name: str = "{suite}/{measure}", note: str = ""
) -> Tracked:
    """Log a finished evaluation to MLflow: a run for it, and a run for each of its models on each dataset.

    Args:
        record: the evaluation.
        uri: the tracking store: a server's address, or a database such as `sqlite:////abs/mlflow.db`.
        artifacts: the folder for runs' files where the store is a database; a server has its own place for them.
        metric_name: the template of metric names, with `{measure}` and, if wanted, `{suite}`.
        note: Markdown that describes the evaluation, such as a short leaderboard; cut below 8,000 letters.

    Raises:
        TrackingError: MLflow cannot be reached or refuses something; it then holds a part of the runs, or none.
    """
    runs = runs_of(record, metric_name=metric_name, note=note)
    with _told(uri):
        return _log(runs, uri, artifacts)


@contextlib.contextmanager
def reached(uri: str) -> Iterator[MlflowClient]:
    """A client of the store for a few short requests.

    Raises:
        TrackingError: MLflow cannot be reached or refuses something.
    """
    with _told(uri), _defaults(_KNOCKING), _few_attempts():
        from mlflow import MlflowClient

        yield MlflowClient(tracking_uri=uri)


@contextlib.contextmanager
def _told(uri: str) -> Iterator[None]:
    """MLflow, kept quiet; what goes wrong with it is told in one line as a TrackingError."""
    with _defaults(_QUIET), _silence():
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (MlflowException, SQLAlchemyError, ImportError, OSError, ValueError) as error:
            raise TrackingError(f"MLflow at {public_uri(uri)}: {_reason(error, uri)}") from None


def _log(runs: tuple[Run, ...], uri: str, artifacts: Path) -> Tracked:
    with _defaults(_KNOCKING), _few_attempts():
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=uri)
        folder = None if uri.startswith(_SERVERS) else artifacts
        experiments = {
            name: _experiment(client, name, folder) for name in dict.fromkeys(run.experiment for run in runs)
        }
    with _defaults(_SENDING):
        ids = {run.task: _send(client, run, experiments[run.experiment], uri) for run in runs}
    evaluation = runs[-1]
    return Tracked(
        uri=public_uri(uri),
        experiment=evaluation.experiment,
        experiment_id=experiments[evaluation.experiment],
        run_id=ids[None],
        runs={task: run_id for task, run_id in ids.items() if task is not None},
    )


def _experiment(client: MlflowClient, name: str, artifacts: Path | None) -> str:
    """The id of the experiment, which is created if there is none."""
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, _location(name, artifacts)))
        except MlflowException as error:
            found = client.get_experiment_by_name(name)  # another evaluation may have been faster
            if error.error_code != "RESOURCE_ALREADY_EXISTS" or found is None:
                raise
    if found.lifecycle_stage == "deleted":
        restore = f"mlflow experiments restore --experiment-id {found.experiment_id}"
        raise TrackingError(
            f"the experiment '{name}' was deleted; restore it (`{restore}`) or change the config's name"
        )
    return str(found.experiment_id)


def _location(name: str, artifacts: Path | None) -> str | None:
    """A folder of the experiment's own, which can be deleted with it."""
    if artifacts is None:
        return None
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80]
    return (artifacts.absolute() / f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}").as_uri()


def _send(client: MlflowClient, run: Run, experiment_id: str, uri: str) -> str:
    """Log one run; gives its id."""
    tags = {key: without_credentials(value, uri) for key, value in run.tags.items()}
    identity = {key: tags.pop(key) for key in _IDENTITY if key in tags}
    with _environment(_ONCE):  # a repeated request may create a second run
        created = client.create_run(experiment_id, run.start, identity, run.name)
    run_id = str(created.info.run_id)
    for batch in _batches(run, tags, uri):
        client.log_batch(run_id, batch["metrics"], batch["params"], batch["tags"])
    client.log_inputs(run_id, [_dataset_input(found, uri) for found in run.inputs])
    if run.artifacts is not None:
        client.log_artifacts(run_id, str(run.artifacts))
    client.set_terminated(run_id, "FAILED" if run.failed else "FINISHED", run.end)
    return run_id


def _dataset_input(found: RunInput, uri: str) -> DatasetInput:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    dataset = Dataset(found.name, found.digest, found.source_type, without_credentials(found.source, uri))
    return DatasetInput(
        dataset, [InputTag("mlflow.data.context", "evaluation"), InputTag("rankledger.sha256", found.sha256)]
    )


def _batches(run: Run, tags: Mapping[str, str], uri: str) -> Iterator[dict[str, list[Any]]]:
    """Tags, params and metrics in as few requests as MLflow allows: it limits their numbers and a request's bytes."""
    from mlflow.entities import Metric, Param, RunTag

    entities: list[tuple[str, Any]] = [("tags", RunTag(key, value)) for key, value in tags.items()]
    entities += [("params", Param(key, without_credentials(value, uri))) for key, value in run.params.items()]
    entities += [("metrics", Metric(key, value, run.end, 0)) for key, value in run.metrics.items()]
    batch: dict[str, list[Any]] = {kind: [] for kind in _BATCH_LIMITS}
    n_bytes = 0
    for kind, entity in entities:
        size = len(json.dumps([entity.key, entity.value])) + 150
        full = len(batch[kind]) == _BATCH_LIMITS[kind] or sum(map(len, batch.values())) == _BATCH_LENGTH
        if full or n_bytes + size > _BATCH_BYTES:
            yield batch
            batch, n_bytes = {kind: [] for kind in _BATCH_LIMITS}, 0
        batch[kind].append(entity)
        n_bytes += size
    yield batch


@contextlib.contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """These environment variables for a while; MLflow reads its settings there at every request."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _defaults(settings: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
    """The same for those that the user has not set."""
    return _environment({name: value for name, value in settings.items() if name not in os.environ})


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what MLflow and its libraries print and log to themselves; what is wrong comes as an exception anyhow."""
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow  # noqa: F401  (sets up its loggers)

        loggers = [logging.getLogger(name) for name in ("mlflow", "alembic", "sqlalchemy", "urllib3.connectionpool")]
        levels = [logger.level for logger in loggers]
        try:
            if "MLFLOW_LOGGING_LEVEL" not in os.environ:
                for logger in loggers:
                    logger.setLevel(logging.CRITICAL)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


@contextlib.contextmanager
def _few_attempts() -> Iterator[None]:
    """Have MLflow give up a database that cannot be opened; there is no setting for it."""
    from mlflow.store.db import utils

    before = utils.MAX_RETRY_COUNT
    utils.MAX_RETRY_COUNT = _CONNECTION_ATTEMPTS
    try:
        yield
    finally:
        utils.MAX_RETRY_COUNT = before


def _reason(error: BaseException, uri: str) -> str:
    """Why, in one line: what the system said at the root of it, else what MLflow says."""
    root = error
    while (deeper := root.__cause__ or root.__context__) is not None:
        root = deeper
    said = str(root) if isinstance(root, OSError) else str(error)
    line = " ".join(said.partition("\n")[0].split()) or type(root).__name__
    line = without_credentials(line, uri)
    return line if len(line) <= 300 else f"{line[:299]}…"
