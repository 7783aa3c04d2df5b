"""The record that a command names: by its path, its id, or a run of MLflow."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import InputError
from pipeline.record import Records, read_record
from pipeline.tables import Record
from pipeline.workflow.looking_back import MLFLOW
from pipeline.workflow.tracking import fetch_record, tracking_without_config

__all__ = ["named_path", "named_record"]


def named_path(text: str, records: Records, runs_dir: Path, tracking_uri: str | None = None) -> Path:
    """The folder of the record that `PATH|ID|mlflow:RUN_ID` means.

    Args:
        text: what was written.
        records: where a record is looked for by its id.
        runs_dir: where the default tracking store is, and copies from MLflow.
        tracking_uri: the tracking store that a run is in; that of MLFLOW_TRACKING_URI unless given, or the default one.

    Raises:
        InputError: there is no such record.
        OSError: the place of records cannot be reached.
    """
    path: Path | None
    if text.startswith(MLFLOW):
        tracking = tracking_without_config(tracking_uri)
        path = fetch_record(text.removeprefix(MLFLOW), tracking, runs_dir, records)
    else:
        path = records.find(text)
    if path is None:
        raise InputError(f"{text}: there is no such record, neither at that path nor in {records.place}")
    return path


def named_record(text: str, records: Records, runs_dir: Path, tracking_uri: str | None = None) -> Record:
    """The record itself; arguments and errors are those of `named_path`.

    Raises:
        InputError: it cannot be read, too.
    """
    path = named_path(text, records, runs_dir, tracking_uri)
    try:
        return read_record(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as a record ({error}); restore it or name another") from None
