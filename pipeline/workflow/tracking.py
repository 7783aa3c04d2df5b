"""The tracking stores that configs mean, and the records that runs of MLflow are of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

from pipeline.config.sections import Tracking
from pipeline.errors import InputError
from pipeline.record import Records
from pipeline.tracking.names import TrackingError
from pipeline.tracking.store import TrackingStore

__all__ = [
    "Stores",
    "asked_store",
    "fetch_record",
    "open_existing_store",
    "open_store",
    "told_store",
    "tracking_without_config",
]

_DATABASE = "sqlite:///"


def open_store(tracking: Tracking, runs_dir: Path) -> TrackingStore:
    """The tracking store of a config, to be entered.

    Args:
        tracking: what the config says of it; the path of a local store starts at the runs folder.
        runs_dir: the runs folder.
    """
    return TrackingStore(_uri(tracking.uri, runs_dir), runs_dir / "mlflow-artifacts", timeout=tracking.timeout)


def told_store(tracking: Tracking | None, runs_dir: Path) -> AbstractContextManager[TrackingStore | None]:
    """The same where MLflow is to be told; None where it is not."""
    return nullcontext() if tracking is None else open_store(tracking, runs_dir)


@contextmanager
def asked_store(tracking: Tracking, runs_dir: Path) -> Iterator[TrackingStore]:
    """A tracking store that is open and is asked something, never told.

    Raises:
        InputError: there is no such store, it cannot be reached, or what is asked for is not there.
    """
    try:
        with open_existing_store(tracking, runs_dir) as store:
            yield store
    except TrackingError as error:
        raise InputError(str(error)) from None


def open_existing_store(tracking: Tracking, runs_dir: Path) -> TrackingStore:
    """The tracking store of a config, to be entered and asked: MLflow would make a local one that is not there.

    Raises:
        InputError: it is not there.
    """
    uri = _uri(tracking.uri, runs_dir)
    if uri.startswith(_DATABASE) and not Path(uri.removeprefix(_DATABASE)).is_file():
        raise InputError(f"{uri.removeprefix(_DATABASE)}: there is no such store of MLflow")
    return open_store(tracking, runs_dir)


class Stores:
    """The tracking stores of many records: each is opened once, and given up once it cannot be reached."""

    def __init__(self, opener: Callable[[Tracking, Path], TrackingStore], runs_dir: Path) -> None:
        """Know how a store is opened, and where the path of a local one starts."""
        self._opener = opener
        self._runs_dir = runs_dir
        self._opened = ExitStack()
        self._stores: dict[str | None, TrackingStore] = {}
        self._away: dict[str | None, str] = {}

    def __enter__(self) -> Stores:
        """Nothing is opened yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was opened."""
        self._opened.close()

    @contextmanager
    def at(self, tracking: Tracking) -> Iterator[TrackingStore]:
        """The store of a config, for what the block has to do with it.

        Raises:
            InputError: the opener says that it is not there.
            TrackingError: it could not be reached, now or before.
        """
        if tracking.uri in self._away:
            raise TrackingError(self._away[tracking.uri])
        if tracking.uri not in self._stores:
            self._stores[tracking.uri] = self._opened.enter_context(self._opener(tracking, self._runs_dir))
        try:
            yield self._stores[tracking.uri]
        except TrackingError as error:
            if error.unreachable:
                self._away[tracking.uri] = str(error)
            raise


def tracking_without_config(uri: str | None = None) -> Tracking:
    """Where a run is that is named beside no config: in that store, in that of MLFLOW_TRACKING_URI, or the default one.

    Args:
        uri: the store, if the command names one.
    """
    return Tracking(uri=uri or os.environ.get("MLFLOW_TRACKING_URI") or None)


def fetch_record(run_id: str, tracking: Tracking, runs_dir: Path, records: Records) -> Path:
    """The folder of the record that a run of MLflow is of; copied from there if it is not among the records.

    Args:
        run_id: the run.
        tracking: says where the store is.
        runs_dir: where the default store is, and copies from MLflow.
        records: where the record is looked for first.

    Raises:
        InputError: there is no such run, or MLflow cannot be reached.
    """
    with asked_store(tracking, runs_dir) as store:
        found = store.ask("evaluation_of_run", run_id=run_id)
        evaluation_id = found["evaluation_id"]
        copy = runs_dir / "mlflow-records" / evaluation_id
        known = records.fetch(evaluation_id) or (copy if (copy / "manifest.json").is_file() else None)
        if known is None and found["run_id"] is None:
            missing = f"MLflow has no run of the evaluation {evaluation_id} itself"
            raise InputError(f"{missing}; name its record instead")
        return known or Path(store.ask("copy_record", run_id=found["run_id"], folder=str(copy)))


def _uri(uri: str | None, runs_dir: Path) -> str:
    """The tracking store; the path of a local one starts at the runs folder."""
    scheme, separator, path = (uri or "sqlite:///mlflow.db").rpartition("://")
    if uri == "databricks" or (separator and scheme != "sqlite"):
        return str(uri)
    return f"{_DATABASE}{(runs_dir / (path.removeprefix('/') if separator else path)).resolve()}"
