"""Delivery of an evaluation's runs to MLflow, each exactly once.

MLflow has no conditional write, so that two deliveries may create a run twice. The run with the least id counts. The
others, ghosts, are marked and deleted. A deleted run without a mark was deleted by a user: a run of an evaluation then
stays deleted, and a history is replaced by a new one. A delivery continues where the last one stopped: a run that has
ended is whole, and a point of a history can be sent again, because MLflow keeps equal points once.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import shlex
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from rankledger.pipeline.config.sources import MODEL_ID, MODEL_URI
from rankledger.pipeline.delivery.mlflow.promotion import NO_REGISTRY, without_retries
from rankledger.pipeline.delivery.mlflow.runs import DATASET, EVALUATION, KIND, MODEL, REPLICATE, Run, Task
from rankledger.pipeline.support.errors import InputError, TrackingError
from rankledger.pipeline.support.text import without_credentials

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Metric
    from mlflow.entities import Run as FoundRun

Result = TypeVar("Result")
_Found: TypeAlias = Mapping[Task, Sequence["FoundRun"]]

SAME_ROW = "unique"  # part of the error for a row that exists, such as "UNIQUE constraint failed"
DELETED = "must be in the 'active' state"  # part of the error for a run that was deleted
_GHOST = "rankledger.ghost"  # tag of a ghost: the id of the run that counts
_UNLINKED = "rankledger.unlinked"
_PARENT = "mlflow.parentRunId"
_PRIMARY = "mlflow.experiment.primaryMetric"
_IDENTITY = (EVALUATION, DATASET, MODEL, REPLICATE, "mlflow.user")  # from a run's beginning
_UNKNOWN = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")  # the second of an alias, or of a name it never takes
_SERVERS = ("http://", "https://", "databricks")  # these keep artifacts themselves, and take several requests at a time
_LOCAL = ("file", "runs", "models")  # schemes of files on this machine, and of other runs, whose files may be
_THREADS = 4
_ATTEMPTS = 8
_PAUSE = 0.2  # seconds, by which those that met once are kept from meeting again
_PAGE = 1_000
_BATCH_LIMITS = {"metrics": 1_000, "params": 100, "tags": 100}
_BATCH_LENGTH = 1_000
_BATCH_BYTES = 900_000
_DIGEST = 32  # letters of a dataset's digest in MLflow


class ConflictError(Exception):
    """Error of a delivery whose run does not count any more."""


def deliver(client: MlflowClient, runs: Sequence[Run], *, uri: str, artifacts: Path) -> tuple[str, dict[Task, str]]:
    """Log the runs of an evaluation, each once and its own last. Return the experiment's id, and ids by task."""
    public = [_remove_credentials(run, uri) for run in runs]
    is_server = uri.startswith(_SERVERS)

    def attempt() -> tuple[str, dict[Task, str]]:
        experiment_id = open_experiment(client, public[-1], None if is_server else artifacts)
        return experiment_id, Sender(client, experiment_id, n_threads=_THREADS if is_server else 1).send(public)

    return retry_conflicts(attempt, SAME_ROW, DELETED)  # another machine may deliver the same


def open_experiment(client: MlflowClient, evaluation: Run, artifacts: Path | None) -> str:
    """Return the id of an experiment. Create a missing one. `artifacts` is None if the store keeps files itself."""
    name = evaluation.experiment
    found = client.get_experiment_by_name(name) or _create_experiment(client, name, artifacts)
    if found.lifecycle_stage == "deleted":
        restore = f"mlflow experiments restore --experiment-id {shlex.quote(str(found.experiment_id))}"
        raise TrackingError(
            f"the experiment '{name}' was deleted; restore it (`{restore}`) or change the config's name"
        )
    if artifacts is not None:
        follow_move(client, found, artifacts)
    if evaluation.primary:
        metric, is_greater_better = evaluation.primary
        for key, value in ((f"{_PRIMARY}.name", metric), (f"{_PRIMARY}.greaterIsBetter", str(is_greater_better))):
            if found.tags.get(key) != value:
                client.set_experiment_tag(found.experiment_id, key, value)
    return str(found.experiment_id)


def _create_experiment(client: MlflowClient, name: str, artifacts: Path | None) -> Any:
    from mlflow.exceptions import MlflowException

    folder = None if artifacts is None else _choose_folder(name, artifacts)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    try:
        return client.get_experiment(client.create_experiment(name, folder.as_uri() if folder else None))
    except MlflowException as error:
        found = client.get_experiment_by_name(name)  # another evaluation may have been faster
        if error.error_code != "RESOURCE_ALREADY_EXISTS" or found is None:
            raise
        return found


def _choose_folder(experiment: str, artifacts: Path) -> Path:
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", experiment)[:80]
    return artifacts.absolute() / f"{readable}-{hashlib.sha256(experiment.encode()).hexdigest()[:8]}"


def follow_move(client: MlflowClient, experiment: Any, artifacts: Path) -> None:
    """Correct the paths of files in a SQLite store that moved with its runs folder. Reject other missing folders."""
    folder, written = _choose_folder(experiment.name, artifacts), str(experiment.artifact_location)
    before, after = Path(unquote(urlsplit(written).path)), folder.as_uri()
    if written == after or before.parts[-2:] != folder.parts[-2:] or (before.exists() and not folder.exists()):
        return
    database = Path(client.tracking_uri.removeprefix("sqlite:///")).absolute()
    if not client.tracking_uri.startswith("sqlite:///") or database.parent != artifacts.parent:
        raise TrackingError(f"{before}: folder of the experiment '{experiment.name}' not found. Add the folder.")
    folder.mkdir(parents=True, exist_ok=True)
    start = len(written) + 1
    moved = (after, start, experiment.experiment_id, start - 1, written)
    with closing(sqlite3.connect(database, timeout=60)) as connection, connection:
        connection.execute(
            "UPDATE runs SET artifact_uri = ? || substr(artifact_uri, ?)"
            " WHERE experiment_id = ? AND substr(artifact_uri, 1, ?) = ?",
            moved,
        )
        update = "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?"
        connection.execute(update, (after, experiment.experiment_id))


def open_files(client: MlflowClient, run_id: str) -> Any:
    """Return the artifact repository of a run. Reject a folder of this machine that a server names."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
    from mlflow.utils.uri import add_databricks_profile_info_to_artifact_uri as add_profile

    location = add_profile(client.get_run(run_id).info.artifact_uri, client.tracking_uri)  # type: ignore[no-untyped-call]
    scheme = urlsplit(location).scheme
    if client.tracking_uri.startswith(_SERVERS) and (len(scheme) < 2 or scheme in _LOCAL):  # one letter is a drive
        raise TrackingError(
            f"keeps the files of the run {run_id} at {location!r}, which may be a folder of this machine. "
            "Set --artifacts-destination of the server."
        )
    return get_artifact_repository(location, tracking_uri=client.tracking_uri)


def find_logged_model(client: MlflowClient, text: str) -> str:
    """Return the id of a logged model by `m-…` or `models:/…`. Raise TrackingError if there is none."""
    from mlflow.exceptions import MlflowException

    try:
        if found := re.fullmatch(r"models:/(?P<name>[^/@]+)(?:/(?P<version>\d+)|@(?P<alias>.+))", text):
            name, version, alias = found["name"], found["version"], found["alias"]
            registered = (
                client.get_model_version(name, version) if version else client.get_model_version_by_alias(name, alias)
            )
            source = MODEL_URI.fullmatch(registered.source or "")  # MLflow's own registry keeps the id in it alone
            model_id = registered.model_id or (source and MODEL_ID.fullmatch(source[1]) and source[1])
            if not model_id:
                raise TrackingError(f"the registered model {text} has no logged model; name another in the config")
            return str(model_id)
        return str(client.get_logged_model(text.removeprefix("models:/")).model_id)
    except MlflowException as error:
        if error.error_code not in (*_UNKNOWN, *NO_REGISTRY):
            raise
        raise TrackingError(f"unknown model {text} in MLflow; fix model_id or model_uri in the config") from None


class Sender:
    """Sender of one evaluation's runs, and of their histories, to an experiment."""

    def __init__(self, client: MlflowClient, experiment_id: str, *, n_threads: int = 1) -> None:
        self._client = client
        self._experiment_id = experiment_id
        self._n_threads = n_threads
        self._ended: dict[str, FoundRun] = {}

    def send(self, runs: Sequence[Run]) -> dict[Task, str]:
        """Log the runs. The evaluation's own run is the last one, and ends last."""
        search = f"tags.`{EVALUATION}` = '{runs[-1].tags[EVALUATION]}'"
        found = self._create_missing(runs, lambda: self._find(search, deleted=True), _IDENTITY)
        ids = {run.task: self._choose(found[run.task]) for run in runs}
        self.log_histories([run.history for run in runs if run.history is not None])
        self._fill_all(runs, ids)
        self._sweep(search, ids)
        return ids

    def log_histories(self, histories: Sequence[Run]) -> None:
        """Log the figures of an evaluation to the histories of its models, each once.

        If there are several runs of a history, the points of the others are copied to the one that counts.

        Raises:
            ConflictError: Another delivery made another run count. Repeat all steps.
        """
        if not histories:
            return

        def find() -> _Found:
            return self._find(f"tags.`{KIND}` = 'history'")

        tasks = {history.task for history in histories}
        found = {task: runs for task, runs in self._create_missing(histories, find).items() if task in tasks}
        several = {task: runs for task, runs in found.items() if len(runs) > 1}
        for counting, *others in several.values():
            for other in others:
                self._copy_points(other, _read_id(counting))
        if several:
            _check_unchanged(several, find())
            for counting, *others in several.values():
                delete_ghosts(self._client, others, _read_id(counting))
        self._each(lambda history: self._log_history(history, found[history.task][0]), histories)
        _check_unchanged(found, find())

    def _create_missing(self, runs: Sequence[Run], find: Callable[[], _Found], tags: Iterable[str] = ()) -> _Found:
        """Return the runs that exist, by task. Create missing ones with the named tags, by default with all.

        If another delivery creates them at the same time, at least one of both sees all runs afterwards.
        """
        found = find()
        missing = [run for run in runs if run.task not in found]
        if not missing:
            return found

        def create(run: Run) -> None:
            identity = {key: run.tags[key] for key in tags or run.tags if key in run.tags}
            self._client.create_run(self._experiment_id, run.start, identity, run.name)

        with without_retries():
            self._each(create, missing)
        found = find()
        if any(run.task not in found for run in missing):
            raise TrackingError("does not list a run that it created. Check if the server reads from a late copy.")
        return found

    def _find(self, search: str, *, deleted: bool = False) -> _Found:
        """Return the runs of a search by task, the least id first. Delete ghosts that were only marked."""
        from mlflow.entities import ViewType

        view = ViewType.ALL if deleted else ViewType.ACTIVE_ONLY
        found: dict[Task, list[FoundRun]] = defaultdict(list)
        token: str | None = None
        while token != "":
            page = self._client.search_runs([self._experiment_id], search, view, _PAGE, page_token=token)
            for run in page:
                tags = run.data.tags
                if _GHOST in tags:
                    delete_ghosts(self._client, [run], tags[_GHOST])
                    continue
                found[tuple(tags[key] for key in (DATASET, MODEL, REPLICATE) if key in tags) or None].append(run)
            token = page.token or ""
        return {task: sorted(runs, key=_read_id) for task, runs in found.items()}

    def _choose(self, found: Sequence[FoundRun]) -> str:
        counting, *ghosts = found
        run_id = _read_id(counting)
        delete_ghosts(self._client, ghosts, run_id)
        if counting.info.lifecycle_stage == "deleted" or counting.info.status not in ("RUNNING", "SCHEDULED"):
            self._ended[run_id] = counting
        return run_id

    def _fill_all(self, runs: Sequence[Run], ids: Mapping[Task, str]) -> None:
        """Fill and end the runs that have not ended."""
        for run in runs:  # a replicate's run that has ended may hang below a ghost
            ended = self._ended.get(ids[run.task])
            for key, value in _link_parent(run, ids).items() if ended else ():
                if ended and ended.data.tags.get(key) != value and ended.info.lifecycle_stage != "deleted":
                    self._client.set_tag(ended.info.run_id, key, value)
        waiting = [run for run in runs if ids[run.task] not in self._ended]
        models: dict[str | None, tuple[str | None, dict[str, str]]] = {None: (None, {})}
        for text in {run.logged_model for run in waiting if run.logged_model}:
            try:
                models[text] = (find_logged_model(self._client, text), {})
            except TrackingError as error:
                models[text] = (None, {_UNLINKED: str(error)})

        def fill(run: Run) -> None:
            model_id, tags = models[run.logged_model]
            whole = replace(run, tags={**run.tags, **tags, **_link_parent(run, ids)})
            retry_conflicts(lambda: self._fill(whole, ids[run.task], model_id), SAME_ROW)

        self._each(fill, [run for run in waiting if run.task is not None])
        self._each(fill, [run for run in waiting if run.task is None])

    def _fill(self, run: Run, run_id: str, model_id: str | None) -> None:
        from mlflow.entities import LoggedModelInput

        for batch in _split_batches(run, model_id):
            self._client.log_batch(run_id, batch["metrics"], batch["params"], batch["tags"])
        models = [LoggedModelInput(model_id)] if model_id else None
        self._client.log_inputs(run_id, list(_dataset_inputs(run)), models)
        if run.files:
            files = open_files(self._client, run_id)
            for path in run.files:
                if path.is_symlink() or not path.is_file():
                    raise InputError(f"{path}: is not a regular file. Check the record with `rankledger verify`.")
                files.log_artifact(str(path))
        self._client.set_terminated(run_id, "FAILED" if run.failed else "FINISHED", run.end)

    def _sweep(self, search: str, ids: Mapping[Task, str]) -> None:
        """Mark runs that appeared meanwhile, because a server may be late with a request that was given up."""
        for task, runs in self._find(f"{search} AND attributes.status = 'RUNNING'", deleted=True).items():
            if any(_read_id(run) < ids[task] for run in runs):
                raise ConflictError(ids[task])
            delete_ghosts(self._client, [run for run in runs if _read_id(run) != ids[task]], ids[task])

    def _log_history(self, history: Run, run: FoundRun) -> None:
        from mlflow.entities import Metric

        points = [Metric(key, value, history.end, history.step) for key, value in history.metrics.items()]
        self._log_points(points, _read_id(run))
        if run.info.status == "RUNNING":  # as it is created
            self._client.set_terminated(_read_id(run), "FINISHED", history.end)

    def _copy_points(self, source: FoundRun, target: str) -> None:
        from mlflow.entities import Metric

        points = [
            Metric(point.key, point.value, point.timestamp, point.step)
            for key in source.data.metrics
            for point in self._client.get_metric_history(_read_id(source), key)
        ]
        self._log_points(points, target)

    def _log_points(self, points: Sequence[Metric], run_id: str) -> None:
        size = _BATCH_LIMITS["metrics"]
        for first in range(0, len(points), size):
            batch = points[first : first + size]
            retry_conflicts(lambda batch=batch: self._client.log_batch(run_id, batch), SAME_ROW)  # type: ignore[misc]

    def _each(self, step: Callable[[Run], None], runs: Sequence[Run]) -> None:
        """Run the step for every run, a few at a time. None begins once one has failed."""
        pool = ThreadPoolExecutor(self._n_threads)
        try:
            list(pool.map(step, runs))
        finally:
            pool.shutdown(cancel_futures=True)


def retry_conflicts(step: Callable[[], Result], *conflicts: str) -> Result:
    """Return the result of a step. Repeat the step while its error contains one of `conflicts`."""
    from mlflow.exceptions import MlflowException

    for attempt in range(1, _ATTEMPTS):
        try:
            return step()
        except ConflictError:
            pass
        except MlflowException as error:
            if not any(conflict in str(error).lower() for conflict in conflicts):
                raise
        time.sleep(random.uniform(0, attempt * _PAUSE))
    return step()


def delete_ghosts(client: MlflowClient, ghosts: Iterable[FoundRun], counting: str) -> None:
    """Mark, end and delete runs. `counting` is the id of the run that counts."""
    for ghost in ghosts:
        if ghost.info.lifecycle_stage != "deleted":
            client.set_tag(ghost.info.run_id, _GHOST, counting)
            client.set_terminated(ghost.info.run_id, "KILLED")
            client.delete_run(ghost.info.run_id)


def _check_unchanged(expected: _Found, found: _Found) -> None:
    for task, (run, *_) in expected.items():
        if task not in found or _read_id(found[task][0]) != _read_id(run):
            raise ConflictError(_read_id(run))


def _read_id(run: Any) -> str:
    return str(run.info.run_id)


def _remove_credentials(run: Run, uri: str) -> Run:
    def clean(texts: Mapping[str, str]) -> dict[str, str]:
        return {key: without_credentials(value, uri) for key, value in texts.items()}

    inputs = tuple({**each, "source": without_credentials(each["source"], uri)} for each in run.inputs)
    return replace(run, tags=clean(run.tags), params=clean(run.params), inputs=inputs)


def _link_parent(run: Run, ids: Mapping[Task, str]) -> dict[str, str]:
    """Return the tag by which MLflow shows a replicate's run below its model's. Empty for other runs."""
    return {_PARENT: ids[run.task[:2]]} if run.task is not None and len(run.task) > 2 else {}


def _dataset_inputs(run: Run) -> Iterator[DatasetInput]:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    for each in run.inputs:
        tags = [InputTag("mlflow.data.context", "evaluation"), InputTag("rankledger.sha256", each["sha256"])]
        dataset = Dataset(each["name"], each["sha256"][:_DIGEST], each["source_type"], each["source"])
        yield DatasetInput(dataset, tags)


def _split_batches(run: Run, model_id: str | None) -> Iterator[dict[str, list[Any]]]:
    """Split tags, params and metrics into few requests within MLflow's limits on numbers and bytes."""
    from mlflow.entities import Metric, Param, RunTag

    of_model: dict[str, str] = {}
    if model_id:
        of_model["model_id"] = model_id
        if run.inputs:
            of_model |= {"dataset_name": run.inputs[0]["name"], "dataset_digest": run.inputs[0]["sha256"][:_DIGEST]}
    entities: list[tuple[str, Any]] = [
        ("tags", RunTag(key, value)) for key, value in run.tags.items() if key not in _IDENTITY
    ]
    entities += [("params", Param(key, value)) for key, value in run.params.items()]
    entities += [("metrics", Metric(key, value, run.end, 0, **of_model)) for key, value in run.metrics.items()]
    batch: dict[str, list[Any]] = {kind: [] for kind in _BATCH_LIMITS}
    n_bytes = 0
    for kind, entity in entities:
        size = len(json.dumps([entity.key, entity.value])) + 150
        is_full = len(batch[kind]) == _BATCH_LIMITS[kind] or sum(map(len, batch.values())) == _BATCH_LENGTH
        if is_full or n_bytes + size > _BATCH_BYTES:
            yield batch
            batch, n_bytes = {kind: [] for kind in _BATCH_LIMITS}, 0
        batch[kind].append(entity)
        n_bytes += size
    yield batch
