"""From a run of MLflow to the record of its evaluation."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.credentials import public_uri
from pipeline.tracking.client import TrackingError, reached

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

__all__ = ["find_record_of"]

_EVALUATION = "rankledger.evaluation"
_DATABASE = "sqlite:///"


def find_record_of(run_id: str, *, uri: str, records: Path, copies: Path) -> Path:
    """The folder of the record that a run is of, be it the evaluation's own run or that of one of its models.

    Args:
        run_id: the run.
        uri: the tracking store.
        records: where the record is looked for first.
        copies: where it is copied to from MLflow if it is not there.

    Raises:
        TrackingError: MLflow cannot be reached, has no such run, or it is none of an evaluation; or the files there
            are not those that were logged.
    """
    database = Path(uri.removeprefix(_DATABASE))
    if uri.startswith(_DATABASE) and not database.is_file():
        raise TrackingError(f"{database}: there is no such store of MLflow")  # which MLflow would make, an empty one
    with reached(uri) as client:
        run = client.get_run(run_id)
        evaluation_id = run.data.tags.get(_EVALUATION)
        if evaluation_id is None or Path(evaluation_id).name != evaluation_id:
            raise TrackingError(f"the run {run_id} at {public_uri(uri)} is none of an evaluation; name another")
        here = [folder / evaluation_id for folder in (records, copies)]
        known = next((path for path in here if (path / "manifest.json").is_file()), None)
        return known or _copied(client, _own_run(client, run, evaluation_id), copies / evaluation_id)


def _own_run(client: MlflowClient, run: Run, evaluation_id: str) -> Run:
    """The evaluation's own run, which alone has the record: in the experiment before the slash."""
    if "rankledger.manifest_sha256" in run.data.tags:
        return run
    name = client.get_experiment(run.info.experiment_id).name
    experiment = client.get_experiment_by_name(name.partition("/")[0])
    wanted = f"tags.`{_EVALUATION}` = '{evaluation_id}'"
    found = client.search_runs([experiment.experiment_id], wanted) if experiment else []
    own = [run for run in found if "rankledger.manifest_sha256" in run.data.tags]
    if not own:
        raise TrackingError(f"MLflow has no run of the evaluation {evaluation_id} itself; name its record instead")
    return own[0]


def _copied(client: MlflowClient, run: Run, folder: Path) -> Path:
    """The record, copied under a temporary name and renamed once its manifest is the one that was logged."""
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.partial")
    partial.mkdir(parents=True)
    try:
        client.download_artifacts(run.info.run_id, "", str(partial))
        manifest = partial / "manifest.json"
        sha256 = hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else None
        if sha256 != run.data.tags["rankledger.manifest_sha256"]:
            raise TrackingError(f"the files of the run {run.info.run_id} are not the record that was logged")
        return partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
