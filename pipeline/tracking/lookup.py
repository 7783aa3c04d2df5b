"""From a run of MLflow to the record of its evaluation."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.atomic import partial_beside
from pipeline.credentials import public_uri
from pipeline.manifest import is_evaluation_id
from pipeline.tracking.names import EVALUATION, MANIFEST, TrackingError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

__all__ = ["copy_record", "evaluation_of_run"]


def evaluation_of_run(client: MlflowClient, run_id: str, uri: str) -> dict[str, str | None]:
    """The evaluation that a run is of, be it the evaluation's own run or that of one of its models.

    Args:
        client: of the tracking store.
        run_id: the run.
        uri: the tracking store, for the message.

    Returns:
        `evaluation_id`; and `run_id` and `manifest_sha256` of the evaluation's own run, None where there is none.

    Raises:
        TrackingError: the run is none of an evaluation.
    """
    run = client.get_run(run_id)
    evaluation_id = run.data.tags.get(EVALUATION)
    if evaluation_id is None or not is_evaluation_id(evaluation_id):
        raise TrackingError(f"the run {run_id} at {public_uri(uri)} is none of an evaluation; name another")
    own = _own_run(client, run, evaluation_id)
    return {
        "evaluation_id": evaluation_id,
        "run_id": None if own is None else own.info.run_id,
        "manifest_sha256": None if own is None else own.data.tags[MANIFEST],
    }


def copy_record(client: MlflowClient, run_id: str, folder: Path) -> Path:
    """The record that an evaluation's own run holds, copied under a temporary name and renamed once it is whole.

    Args:
        client: of the tracking store.
        run_id: the evaluation's own run.
        folder: what it is to be.

    Raises:
        TrackingError: the manifest is not the one that was logged.
    """
    run = client.get_run(run_id)
    with partial_beside(folder) as partial:
        partial.mkdir(parents=True)
        client.download_artifacts(run_id, "", str(partial))
        manifest = partial / "manifest.json"
        sha256 = hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else None
        if sha256 != run.data.tags[MANIFEST]:
            raise TrackingError(f"the files of the run {run_id} are not the record that was logged")
        return partial.rename(folder)


def _own_run(client: MlflowClient, run: Run, evaluation_id: str) -> Run | None:
    """The evaluation's own run, which alone has the record: in the experiment before the slash."""
    if MANIFEST in run.data.tags:
        return run
    name = client.get_experiment(run.info.experiment_id).name
    experiment = client.get_experiment_by_name(name.partition("/")[0])
    wanted = f"tags.`{EVALUATION}` = '{evaluation_id}'"
    found = client.search_runs([experiment.experiment_id], wanted) if experiment else []
    return next((run for run in found if MANIFEST in run.data.tags), None)
