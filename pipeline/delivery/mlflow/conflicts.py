"""What deliveries that may meet others have in common: steps that are repeated, and duplicate runs, of which one stays.

MLflow has no conditional write: whoever creates a run twice has two. Of several the one of the least id counts, whoever
looks; the others, ghosts, are marked, ended and deleted. So a deleted run without a mark is one that a user deleted.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as FoundRun


Result = TypeVar("Result")

SAME_ROW = "unique"
"""What a server says of a row that is there: "UNIQUE constraint failed", "violates unique constraint"."""

DELETED = "must be in the 'active' state"
"""What it says of a run that was deleted."""

GHOST = "rankledger.ghost"
"""The tag of a run that is not the one that counts: the id of that one."""

NO_REGISTRY = ("FEATURE_DISABLED", "ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED")
"""Error codes of MLflow, and of servers with its API, that have no registered models."""

_PAGE = 1_000
_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
_ATTEMPTS = 8
_PAUSE = 0.2  # seconds, by which those that met once are kept from meeting again


class ConflictError(Exception):
    """Another delivery has chosen another run."""


def retry_conflicts(step: Callable[[], Result], *conflicts: str) -> Result:
    """What a step gives, which may be done again: it is where the server said that another came between.

    Args:
        step: requests of MLflow's client.
        conflicts: what the server then says: `SAME_ROW`, `DELETED`.

    Raises:
        Exception: whatever else it raises, or that there is no end of others.
    """
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
    """Mark, end and delete runs, as far as they are not.

    Args:
        client: of the tracking store.
        ghosts: the runs.
        kept: the id of the run that counts.
    """
    for ghost in ghosts:
        if ghost.info.lifecycle_stage != "deleted":
            client.set_tag(ghost.info.run_id, GHOST, kept)
            client.set_terminated(ghost.info.run_id, "KILLED")
            client.delete_run(ghost.info.run_id)


def find_runs(
    client: MlflowClient, experiment_ids: Sequence[str], wanted: str, *, deleted: bool = False
) -> Iterator[FoundRun]:
    """The runs of a search, but for marked ghosts, whose deletion may have been broken off and is done now.

    Args:
        client: of the tracking store.
        experiment_ids: where to look.
        wanted: MLflow's filter.
        deleted: whether to find deleted runs, too.
    """
    from mlflow.entities import ViewType

    view = ViewType.ALL if deleted else ViewType.ACTIVE_ONLY
    token: str | None = None
    while token != "":
        page = client.search_runs([*experiment_ids], wanted, view, _PAGE, page_token=token)
        for run in page:
            if GHOST in run.data.tags:
                delete_ghosts(client, [run], run.data.tags[GHOST])
            else:
                yield run
        token = page.token or ""


@contextlib.contextmanager
def without_retries() -> Iterator[None]:
    """MLflow's own retries off for a while: it reads its settings at every request."""
    before = os.environ.get(_RETRIES)
    os.environ[_RETRIES] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_RETRIES]
        else:
            os.environ[_RETRIES] = before
