"""The record that a command names: by its path, its id, a run of MLflow, or a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.config.references import MLFLOW
from pipeline.config.sections import Tracking
from pipeline.errors import InputError
from pipeline.record import Records, read_record
from pipeline.record.references import Resolved, Shelf
from pipeline.tables import Record
from pipeline.workflow.tracking import fetch_record

__all__ = ["lost_among", "named_path", "named_record", "newest_record", "one_record", "skipped"]


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
        path = fetch_record(text.removeprefix(MLFLOW), Tracking(uri=tracking_uri or None), runs_dir, records)
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
    return read_record(named_path(text, records, runs_dir, tracking_uri))


def newest_record(name: str, records: Records) -> Record:
    """The newest evaluation of that name.

    Raises:
        InputError: there is none.
        OSError: the place of records cannot be reached.
    """
    shelf = Shelf(records, name)
    newest = next(iter(shelf), None)
    if newest is None and shelf.lost:
        raise InputError(f"no record of {name!r} can be read: {shelf.lost[0]}")
    if newest is None:
        raise InputError(f"{records.place}: there is no evaluation of the name {name!r}; mend --name or --runs-dir")
    return newest


def one_record(reference: str, found: Iterable[Resolved]) -> Record:
    """The one record that a reference means for all models; those that it means none for are left out.

    Args:
        reference: as it was written.
        found: what it means for each model; one at least.

    Raises:
        InputError: it means none for any model, or another for each.
    """
    resolved = list(found)
    models = {each.record.path: each.model for each in resolved if each.record is not None}
    if len(models) > 1:
        listed = ", ".join(f"{model!r} in {path.name}" for path, model in models.items())
        raise InputError(f"{reference}: is of another record for each model ({listed}); add #model to name one")
    record = next((each.record for each in resolved if each.record is not None), None)
    if record is None:
        raise InputError(f"{reference}: {resolved[0].reason}")
    return record


def lost_among(found: Iterable[Resolved]) -> tuple[str, ...]:
    """Why damaged records were skipped that may be what a reference means, of all models; none where it is certain."""
    return tuple(dict.fromkeys(reason for each in found if each.record is not None for reason in each.lost))


def skipped(reference: str, lost: Sequence[str], used: Record) -> tuple[str, ...]:
    """The line that warns of them; none where there are none.

    Args:
        reference: as it was written.
        lost: as `lost_among` gives it.
        used: the record that is used.
    """
    if not lost:
        return ()
    damaged = "a newer record is damaged" if len(lost) == 1 else f"{len(lost)} newer records are damaged"
    return (f"{reference}: {damaged} ({lost[0]}); used {used.path.name} instead",)
