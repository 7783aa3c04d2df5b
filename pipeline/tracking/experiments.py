"""The experiments of an evaluation: one of its own, and one per dataset."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.tracking.names import TrackingError
from pipeline.tracking.runs import Run

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = ["open_experiments"]

_PRIMARY = "mlflow.experiment.primaryMetric"


def open_experiments(client: MlflowClient, runs: Iterable[Run], artifacts: Path | None) -> dict[str, str]:
    """The ids of the experiments of all runs, by name; those that are not there are created.

    Args:
        client: of the tracking store.
        runs: say which experiments, and which metric is the primary one of each.
        artifacts: the folder for the files of runs; None where the store has its own place for them.

    Raises:
        TrackingError: one was deleted.
    """
    primary = {run.experiment: run.primary for run in runs}
    return {name: _opened(client, name, primary[name], artifacts) for name in primary}


def _opened(client: MlflowClient, name: str, primary: tuple[str, bool] | None, artifacts: Path | None) -> str:
    found = client.get_experiment_by_name(name) or _created(client, name, artifacts)
    if found.lifecycle_stage == "deleted":
        restore = f"mlflow experiments restore --experiment-id {found.experiment_id}"
        raise TrackingError(
            f"the experiment '{name}' was deleted; restore it (`{restore}`) or change the config's name"
        )
    for key, value in _tags(primary).items():
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


def _tags(primary: tuple[str, bool] | None) -> dict[str, str]:
    """What MLflow takes for the metric that matters most, and whether more of it is better."""
    if primary is None:
        return {}
    return {f"{_PRIMARY}.name": primary[0], f"{_PRIMARY}.greaterIsBetter": str(primary[1])}


def _location(name: str, artifacts: Path | None) -> str | None:
    """A folder of the experiment's own, which can be deleted with it."""
    if artifacts is None:
        return None
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80]
    return (artifacts.absolute() / f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}").as_uri()
