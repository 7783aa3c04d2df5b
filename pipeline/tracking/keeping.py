"""What MLflow holds of evaluations that are long over: the hash that it has of a record, and runs to be deleted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipeline.tracking.names import EVALUATION, MANIFEST

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = ["delete_runs", "logged_digests"]

_GONE = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "INVALID_STATE")  # how stores refuse to delete twice


def logged_digests(client: MlflowClient, evaluation_id: str, name: str) -> dict[str, str]:
    """The hashes that MLflow has of a record's manifest, by the evaluation's own runs; none where it has no such run.

    Args:
        client: of the tracking store.
        evaluation_id: the record's.
        name: the name of the evaluation, which is that of its experiment.
    """
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return {}
    found = client.search_runs([experiment.experiment_id], f"tags.`{EVALUATION}` = '{evaluation_id}'")
    return {run.info.run_id: run.data.tags[MANIFEST] for run in found if MANIFEST in run.data.tags}


def delete_runs(client: MlflowClient, run_ids: Iterable[str]) -> None:
    """Delete runs, which can be restored until `mlflow gc` frees them; those that are not there are passed over."""
    from mlflow.exceptions import MlflowException

    for run_id in run_ids:
        try:
            client.delete_run(run_id)
        except MlflowException as error:
            if error.error_code not in _GONE:
                raise
