"""Finished records to MLflow, and runs of MLflow to records: where the store is, and what is said where it is away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeline.config.sections import Config
from pipeline.errors import InputError
from pipeline.report.text import note
from pipeline.tables import Evaluation, Record

__all__ = ["fetch_record", "track"]


def track(evaluation: Evaluation, record: Record, config: Config, runs_dir: Path) -> Evaluation:
    """The evaluation with the store that holds it now, or with the reason why none does; the record is whole anyhow."""
    from pipeline.tracking.client import TrackingError  # imports MLflow, which only those wait for who track
    from pipeline.tracking.client import track as log

    try:
        tracked = log(
            record,
            uri=_store(config.tracking.uri, runs_dir),
            artifacts=runs_dir / "mlflow-artifacts",
            metric_name=config.tracking.metric_name,
            note=note(evaluation),
        )
    except TrackingError as error:
        return replace(evaluation, untracked=str(error))
    except BaseException as error:
        error.add_note(f"the record is complete: {record.path}")  # for whoever says why it ended
        raise
    return replace(evaluation, store=tracked.url or tracked.uri)


def fetch_record(run_id: str, uri: str | None, runs_dir: Path) -> Path:
    """The folder of the record that a run of MLflow is of; copied from there if it is not among the records.

    Args:
        run_id: the run.
        uri: the tracking store, as a config has it.
        runs_dir: where records and the default store are.

    Raises:
        InputError: there is no such run, or MLflow cannot be reached.
    """
    from pipeline.tracking.client import TrackingError
    from pipeline.tracking.lookup import find_record_of

    try:
        return find_record_of(
            run_id,
            uri=_store(uri, runs_dir),
            records=runs_dir / "records",
            copies=runs_dir / "mlflow-records",
        )
    except TrackingError as error:
        raise InputError(str(error)) from None


def _store(uri: str | None, runs_dir: Path) -> str:
    """The tracking store; the path of a local one starts at the runs folder."""
    scheme, separator, path = (uri or "sqlite:///mlflow.db").rpartition("://")
    if uri == "databricks" or (separator and scheme != "sqlite"):
        return str(uri)
    return f"sqlite:///{(runs_dir / (path.removeprefix('/') if separator else path)).resolve()}"
