"""Delivery of the runs of an evaluation to MLflow, each exactly once.

Runs are found by the tag of the evaluation's id, and a delivery continues where the last one stopped. A run that has
ended is whole. A run that a user deleted stays deleted.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rankledger.pipeline.config.sources import MODEL_ID, MODEL_URI
from rankledger.pipeline.delivery.mlflow.conflicts import (
    DELETED,
    NO_REGISTRY,
    SAME_ROW,
    ConflictError,
    delete_ghosts,
    find_runs,
    retry_conflicts,
    without_retries,
)
from rankledger.pipeline.delivery.mlflow.history import log_histories
from rankledger.pipeline.delivery.mlflow.payload import (
    DATASET,
    EVALUATION,
    KIND,
    MODEL,
    REPLICATE,
    History,
    Run,
    RunInput,
    Task,
)
from rankledger.pipeline.record.manifest import RECEIPTS
from rankledger.pipeline.support.errors import TrackingError
from rankledger.pipeline.support.text import without_credentials

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput
    from mlflow.entities import Run as FoundRun

    from rankledger.pipeline.record.mlflow_process import TrackingStore


Item = TypeVar("Item", Run, History)
Result = TypeVar("Result")

_PRIMARY = "mlflow.experiment.primaryMetric"


def open_experiment(client: MlflowClient, evaluation: Run, artifacts: Path | None) -> str:
    """Return the id of the experiment of an evaluation's runs. Create a missing one.

    `artifacts` is the folder for the files of runs. None if the store has its own.

    Raises:
        TrackingError: The experiment was deleted.
    """
    name = evaluation.experiment
    found = client.get_experiment_by_name(name) or _created(client, name, artifacts)
    if found.lifecycle_stage == "deleted":
        restore = f"mlflow experiments restore --experiment-id {found.experiment_id}"
        raise TrackingError(
            f"the experiment '{name}' was deleted; restore it (`{restore}`) or change the config's name"
        )
    if evaluation.primary:
        metric, is_better = evaluation.primary
        for key, value in {f"{_PRIMARY}.name": metric, f"{_PRIMARY}.greaterIsBetter": str(is_better)}.items():
            if found.tags.get(key) != value:
                client.set_experiment_tag(found.experiment_id, key, value)
    return str(found.experiment_id)


def _created(client: MlflowClient, name: str, artifacts: Path | None) -> Any:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_experiment(client.create_experiment(name, _location(name, artifacts)))
    except MlflowException as error:
        found = client.get_experiment_by_name(name)  # another evaluation may have been faster
        if error.error_code != "RESOURCE_ALREADY_EXISTS" or found is None:
            raise
        return found


def _location(name: str, artifacts: Path | None) -> str | None:
    if artifacts is None:
        return None
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80]
    return (artifacts.absolute() / f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}").as_uri()


_UNKNOWN = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")  # the second of an alias, or of a name it never takes


def logged_model_id(client: MlflowClient, text: str) -> str:
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


SERVERS = ("http://", "https://", "databricks")  # these keep artifacts themselves, and take several requests at a time

_UNLINKED = "rankledger.unlinked"
_PARENT = "mlflow.parentRunId"
_IDENTITY = (EVALUATION, KIND, DATASET, MODEL, REPLICATE, "mlflow.user")  # from a run's beginning
_THREADS = 4
_BATCH_LIMITS = {"metrics": 1_000, "params": 100, "tags": 100}
_BATCH_LENGTH = 1_000
_BATCH_BYTES = 900_000


@dataclass(frozen=True)
class Delivered:
    """Experiment and run of the evaluation, and the runs of models and replicates by task."""

    experiment_id: str
    run_id: str
    runs: Mapping[tuple[str, ...], str]


def send_runs(store: TrackingStore, runs: Sequence[Run]) -> Delivered:
    """Log the runs of an evaluation to an open store, each once.

    Raises:
        TrackingError: The store cannot be reached or refuses something. Some runs may be logged.
    """
    plain = [{**asdict(run), "artifacts": run.artifacts and str(run.artifacts.absolute())} for run in runs]
    answer = store.ask("deliver", runs=plain)
    runs_by_task = {tuple(task): run_id for *task, run_id in answer["runs"]}
    return Delivered(answer["experiment_id"], answer["run_id"], runs_by_task)


def deliver(client: MlflowClient, runs: Sequence[Run], *, uri: str, artifacts: Path) -> Delivered:
    """Log the runs of an evaluation, each once.

    Args:
        client: Client of the tracking store.
        runs: Runs of the models, and last the evaluation's own.
        uri: Tracking store. Only its public part is logged.
        artifacts: Folder for the files of runs if the store is a database.

    Raises:
        Exception: Any error of MLflow. Some runs may be logged.
    """
    public = [_public(run, uri) for run in runs]
    is_server = uri.startswith(SERVERS)

    def attempt() -> Delivered:
        experiment_id = open_experiment(client, public[-1], None if is_server else artifacts)
        return _Sender(client, experiment_id, n_threads=_THREADS if is_server else 1).send(public)

    return retry_conflicts(attempt, SAME_ROW, DELETED)  # another machine may deliver the same


class _Sender:
    def __init__(self, client: MlflowClient, experiment_id: str, *, n_threads: int) -> None:
        self._client = client
        self._experiment_id = experiment_id
        self._n_threads = n_threads
        self._ended: dict[str, FoundRun] = {}

    def send(self, runs: Sequence[Run]) -> Delivered:
        ids = self.create(runs)
        histories = [run.history for run in runs if run.history is not None]
        log_histories(self._client, histories, self._experiment_id, each=self._each)
        self.fill(runs, ids)
        self.sweep(runs, ids)
        return Delivered(
            experiment_id=self._experiment_id,
            run_id=ids[None],
            runs={task: run_id for task, run_id in ids.items() if task is not None},
        )

    def create(self, runs: Sequence[Run]) -> dict[Task, str]:
        """Return the id of every run. Create missing ones.

        If another delivery creates them at the same time, at least one of both sees all runs afterwards.
        """
        evaluation_id = runs[-1].tags[EVALUATION]
        found = self._found(evaluation_id)
        missing = [run for run in runs if run.task not in found]
        if missing:
            with without_retries():
                self._each(self._create, missing)
            found = self._found(evaluation_id)
        return {run.task: self._one(found[run.task]) for run in runs}

    def fill(self, runs: Sequence[Run], ids: Mapping[Task, str]) -> None:
        """Fill and end the runs that have not ended. The evaluation's own run comes last."""
        waiting = [run for run in runs if ids[run.task] not in self._ended]
        self._link([run for run in runs if ids[run.task] in self._ended], ids)
        models = self._models({run.logged_model for run in waiting if run.logged_model})

        def fill(run: Run) -> None:
            model_id, missing = models.get(run.logged_model, (None, {}))
            whole = replace(run, tags={**run.tags, **missing, **_parent(run, ids)})
            retry_conflicts(lambda: self._fill(whole, ids[run.task], model_id), SAME_ROW)

        self._each(fill, [run for run in waiting if run.task is not None])
        for run in waiting:
            if run.task is None:
                fill(run)

    def _link(self, ended: Iterable[Run], ids: Mapping[Task, str]) -> None:
        for run in ended:
            found = self._ended[ids[run.task]]
            for key, value in _parent(run, ids).items():
                if found.data.tags.get(key) != value and found.info.lifecycle_stage != "deleted":
                    self._client.set_tag(found.info.run_id, key, value)

    def _models(self, wanted: Iterable[str]) -> dict[str | None, tuple[str | None, dict[str, str]]]:
        found: dict[str | None, tuple[str | None, dict[str, str]]] = {}
        for text in wanted:
            try:
                found[text] = (logged_model_id(self._client, text), {})
            except TrackingError as error:
                found[text] = (None, {_UNLINKED: str(error)})
        return found

    def sweep(self, runs: Sequence[Run], ids: Mapping[Task, str]) -> None:
        """Mark runs that appeared meanwhile, because a server may be late with a request that was given up."""
        for task, found in self._found(runs[-1].tags[EVALUATION], "attributes.status = 'RUNNING'").items():
            if any(str(run.info.run_id) < ids[task] for run in found):
                raise ConflictError(ids[task])
            delete_ghosts(self._client, [run for run in found if run.info.run_id != ids[task]], ids[task])

    def _found(self, evaluation_id: str, further: str = "") -> dict[Task, list[FoundRun]]:
        wanted = f"tags.`{EVALUATION}` = '{evaluation_id}'" + (f" AND {further}" if further else "")
        found: dict[Task, list[FoundRun]] = {}
        for run in find_runs(self._client, self._experiment_id, wanted, deleted=True):
            found.setdefault(_task_of(run.data.tags), []).append(run)
        return found

    def _one(self, found: Iterable[FoundRun]) -> str:
        first, *others = sorted(found, key=lambda run: str(run.info.run_id))
        run_id = str(first.info.run_id)
        delete_ghosts(self._client, others, run_id)
        if _has_ended(first):
            self._ended[run_id] = first
        return run_id

    def _create(self, run: Run) -> None:
        identity = {key: run.tags[key] for key in _IDENTITY if key in run.tags}
        self._client.create_run(self._experiment_id, run.start, identity, run.name)

    def _fill(self, run: Run, run_id: str, model_id: str | None) -> None:
        for batch in _batches(run, model_id):
            self._client.log_batch(run_id, batch["metrics"], batch["params"], batch["tags"])
        self._log_inputs(run, run_id, model_id)
        if run.artifacts is not None:
            for file in sorted(run.artifacts.iterdir()):
                if file.name not in RECEIPTS:  # of this delivery, or of an earlier one
                    self._client.log_artifact(run_id, str(file))
        self._client.set_terminated(run_id, "FAILED" if run.failed else "FINISHED", run.end)

    def _log_inputs(self, run: Run, run_id: str, model_id: str | None) -> None:
        from mlflow.entities import LoggedModelInput

        models = [LoggedModelInput(model_id)] if model_id else None
        self._client.log_inputs(run_id, [_dataset_input(found) for found in run.inputs], models)

    def _each(self, step: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Run the step for every run or history, a few at a time. None begins once one has failed."""
        pool = ThreadPoolExecutor(self._n_threads)
        try:
            return list(pool.map(step, items))
        finally:
            pool.shutdown(cancel_futures=True)


def _public(run: Run, uri: str) -> Run:
    def cleaned(texts: Mapping[str, str]) -> dict[str, str]:
        return {key: without_credentials(value, uri) for key, value in texts.items()}

    inputs = tuple(replace(found, source=without_credentials(found.source, uri)) for found in run.inputs)
    return replace(run, tags=cleaned(run.tags), params=cleaned(run.params), inputs=inputs)


def _has_ended(run: FoundRun) -> bool:
    return run.info.lifecycle_stage == "deleted" or run.info.status not in ("RUNNING", "SCHEDULED")


def _task_of(tags: Mapping[str, str]) -> Task:
    if DATASET not in tags:
        return None
    task = tags[DATASET], tags[MODEL]
    return (*task, tags[REPLICATE]) if REPLICATE in tags else task


def _parent(run: Run, ids: Mapping[Task, str]) -> dict[str, str]:
    """Return the tag by which MLflow shows a replicate's run below its model's. Empty for other runs."""
    return {_PARENT: ids[run.task[:2]]} if run.task is not None and len(run.task) > 2 else {}


def _dataset_input(found: RunInput) -> DatasetInput:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    dataset = Dataset(found.name, found.digest, found.source_type, found.source)
    return DatasetInput(
        dataset, [InputTag("mlflow.data.context", "evaluation"), InputTag("rankledger.sha256", found.sha256)]
    )


def _batches(run: Run, model_id: str | None) -> Iterator[dict[str, list[Any]]]:
    """Split tags, params and metrics into few requests within MLflow's limits on numbers and bytes."""
    from mlflow.entities import Param, RunTag

    tags = {key: value for key, value in run.tags.items() if key not in _IDENTITY}
    entities: list[tuple[str, Any]] = [("tags", RunTag(key, value)) for key, value in tags.items()]
    entities += [("params", Param(key, value)) for key, value in run.params.items()]
    entities += [("metrics", metric) for metric in _metrics(run, model_id)]
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


def _metrics(run: Run, model_id: str | None) -> Iterator[Any]:
    from mlflow.entities import Metric

    of_model: dict[str, str] = {}
    if model_id:
        of_model["model_id"] = model_id
        if run.inputs:
            of_model |= {"dataset_name": run.inputs[0].name, "dataset_digest": run.inputs[0].digest}
    for key, value in run.metrics.items():
        yield Metric(key, value, run.end, 0, **of_model)
