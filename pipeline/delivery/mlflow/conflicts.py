"""Retries and duplicate runs of deliveries that may meet others.

MLflow has no conditional write, so that two deliveries may create a run twice. The run with the least id counts. The
others, ghosts, are marked and deleted. A deleted run without a mark was deleted by a user.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as FoundRun


Result = TypeVar("Result")

SAME_ROW = "unique"
"""Part of the error for a row that exists, such as "UNIQUE constraint failed"."""

DELETED = "must be in the 'active' state"
"""Part of the error for a run that was deleted."""

GHOST = "rankledger.ghost"
"""Tag of a ghost: the id of the run that counts."""

NO_REGISTRY = ("FEATURE_DISABLED", "ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED")
"""Error codes of MLflow, and of servers with its API, that have no registered models."""

_PAGE = 1_000
_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
_ATTEMPTS = 8
_PAUSE = 0.2  # seconds, by which those that met once are kept from meeting again


class ConflictError(Exception):
    """Error of a delivery whose run does not count any more."""


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


def delete_ghosts(client: MlflowClient, ghosts: Iterable[FoundRun], kept: str) -> None:
    """Mark, end and delete runs. `kept` is the id of the run that counts."""
    for ghost in ghosts:
        if ghost.info.lifecycle_stage != "deleted":
            client.set_tag(ghost.info.run_id, GHOST, kept)
            client.set_terminated(ghost.info.run_id, "KILLED")
            client.delete_run(ghost.info.run_id)


def find_runs(client: MlflowClient, experiment_id: str, wanted: str, *, deleted: bool = False) -> Iterator[FoundRun]:
    """Return the runs of a search without marked ghosts. Delete ghosts that were marked only."""
    from mlflow.entities import ViewType

    view = ViewType.ALL if deleted else ViewType.ACTIVE_ONLY
    token: str | None = None
    while token != "":
        page = client.search_runs([experiment_id], wanted, view, _PAGE, page_token=token)
        for run in page:
            if GHOST in run.data.tags:
                delete_ghosts(client, [run], run.data.tags[GHOST])
            else:
                yield run
        token = page.token or ""


@contextlib.contextmanager
def without_retries() -> Iterator[None]:
    """Turn off MLflow's own retries. MLflow reads its settings at every request."""
    before = os.environ.get(_RETRIES)
    os.environ[_RETRIES] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_RETRIES]
        else:
            os.environ[_RETRIES] = before
