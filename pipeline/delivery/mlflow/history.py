"""Histories in MLflow: one long-lived run per model and dataset, with every record's figures as points.

A point's run, metric, step, timestamp and value are its key in MLflow, so that a point can be sent again. If two
deliveries create a run, the run with the least id counts. Each delivery copies the points of the other runs to it,
checks again that it still counts, and then deletes the others. A run that a user deleted is replaced by a new one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rankledger.pipeline.delivery.mlflow.conflicts import (
    SAME_ROW,
    ConflictError,
    delete_ghosts,
    find_runs,
    retry_conflicts,
    without_retries,
)
from rankledger.pipeline.delivery.mlflow.payload import DATASET, KIND, MODEL, History

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric
    from mlflow.entities import Run as FoundRun


_BATCH = 1_000  # points that MLflow takes at once

_Each: TypeAlias = Callable[[Callable[[History], None], Sequence[History]], object]
_Found: TypeAlias = Mapping[tuple[str, str], Sequence["FoundRun"]]


def log_histories(client: MlflowClient, histories: Sequence[History], experiment_id: str, *, each: _Each) -> None:
    """Log the figures of an evaluation to the histories of its models, each once.

    `each` runs a step for every history, possibly several at a time.

    Raises:
        ConflictError: Another delivery made another run count. Repeat all steps.
    """
    if histories:
        _Sender(client, histories, experiment_id, each).send()


class _Sender:
    def __init__(self, client: MlflowClient, histories: Sequence[History], experiment_id: str, each: _Each) -> None:
        self._client = client
        self._histories = {history.task: history for history in histories}
        self._experiment_id = experiment_id
        self._each = each

    def send(self) -> None:
        found = self._join(self._open())
        self._each(lambda history: self._log(history, found[history.task][0]), [*self._histories.values()])
        self._check(found)

    def _open(self) -> _Found:
        found = self._found()
        missing = [history for task, history in self._histories.items() if task not in found]
        if not missing:
            return found
        with without_retries():
            self._each(self._create, missing)
        return self._found()

    def _join(self, found: _Found) -> _Found:
        several = {task: runs for task, runs in found.items() if len(runs) > 1}
        if several:
            for kept, *others in several.values():
                for other in others:
                    self._copy(other, _id_of(kept))
            self._check(several)
            for kept, *others in several.values():
                delete_ghosts(self._client, others, _id_of(kept))
        return found

    def _check(self, expected: _Found) -> None:
        found = self._found()
        for task, (run, *_) in expected.items():
            if task not in found or _id_of(found[task][0]) != _id_of(run):
                raise ConflictError(_id_of(run))

    def _found(self) -> _Found:
        found: dict[tuple[str, str], list[FoundRun]] = defaultdict(list)
        for run in find_runs(self._client, self._experiment_id, f"tags.`{KIND}` = 'history'"):
            task = run.data.tags.get(DATASET, ""), run.data.tags.get(MODEL, "")
            if task in self._histories:
                found[task].append(run)
        return {task: sorted(runs, key=_id_of) for task, runs in found.items()}

    def _create(self, history: History) -> None:
        self._client.create_run(self._experiment_id, history.start, dict(history.tags), history.name)

    def _log(self, history: History, run: FoundRun) -> None:
        from mlflow.entities import Metric

        points = [Metric(key, value, history.time, history.step) for key, value in history.metrics.items()]
        self._log_points(points, _id_of(run))
        if run.info.status == "RUNNING":  # as it is created
            self._client.set_terminated(_id_of(run), "FINISHED", history.time)

    def _copy(self, source: FoundRun, target: str) -> None:
        from mlflow.entities import Metric

        points = [
            Metric(point.key, point.value, point.timestamp, point.step)
            for key in source.data.metrics
            for point in self._client.get_metric_history(_id_of(source), key)
        ]
        self._log_points(points, target)

    def _log_points(self, points: Sequence[Metric], run_id: str) -> None:
        for first in range(0, len(points), _BATCH):
            batch = points[first : first + _BATCH]
            retry_conflicts(lambda batch=batch: self._client.log_batch(run_id, batch), SAME_ROW)  # type: ignore[misc]


def _id_of(run: Any) -> str:
    return str(run.info.run_id)
