"""Delivering finished records to their remote copy and to MLflow, at once or with `sync`; and which store that is.

The record lies whole in the runs folder before any of this begins. A receipt that is put in it says that MLflow has it.
Of two processes of a machine that would log the same record, the second finds the receipt of the first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.manifest import MANIFEST
from rankledger.pipeline.record.workspace import Opened, Workspace, open_record
from rankledger.pipeline.support.credentials import public_uri
from rankledger.pipeline.support.errors import InputError, TrackingError

if TYPE_CHECKING:
    from rankledger.pipeline.record.mlflow_process import TrackingStore


_DATABASE = "sqlite:///"
_ADDRESS = re.compile(r"[A-Za-z0-9.-]+:[0-9]+(/.*)?")  # of a server, whose scheme was forgotten
_VARIABLE = "MLFLOW_TRACKING_URI"
_NAME_A_STORE = f"name the store with --tracking-uri, or set {_VARIABLE}"


def open_store(tracking: Tracking, workspace: Workspace) -> TrackingStore:
    """The tracking store of a config, to be entered.

    Args:
        tracking: what the config says of it; the path of a local store starts at the runs folder. If it names no store,
            it is that of MLFLOW_TRACKING_URI, or else the default one.
        workspace: has the runs folder.
    """
    from rankledger.pipeline.record.mlflow_process import TrackingStore

    artifacts = workspace.runs_dir / "mlflow-artifacts"
    return TrackingStore(_uri(tracking.uri, workspace), artifacts, timeout=tracking.timeout)


def open_for_logging(tracking: Tracking | None, workspace: Workspace) -> AbstractContextManager[TrackingStore | None]:
    """The same if the evaluation is to be logged; None if not."""
    return nullcontext() if tracking is None else open_store(tracking, workspace)


@contextmanager
def open_for_reading(tracking: Tracking, workspace: Workspace) -> Iterator[TrackingStore]:
    """A tracking store that is open, and from which is only read.

    Raises:
        InputError: there is no such store, it cannot be reached, or what is asked for is not there.
    """
    try:
        with open_existing_store(tracking, workspace) as store:
            yield store
    except TrackingError as error:
        raise InputError(str(error)) from None


def open_existing_store(tracking: Tracking, workspace: Workspace) -> TrackingStore:
    """The tracking store of a config, to be entered, if it exists: MLflow would make a local one that does not.

    Raises:
        InputError: it is not there.
    """
    uri = _uri(tracking.uri, workspace)
    if uri.startswith(_DATABASE) and not Path(uri.removeprefix(_DATABASE)).is_file():
        raise InputError(f"{uri.removeprefix(_DATABASE)}: no MLflow store found")
    return open_store(tracking, workspace)


class Stores(ExitStack):
    """The tracking stores of many records: each is opened once, and given up once it cannot be reached."""

    def __init__(self, opener: Callable[[Tracking, Workspace], TrackingStore], workspace: Workspace) -> None:
        """Know how a store is opened, and where the path of a local one starts."""
        super().__init__()
        self._opener = opener
        self._workspace = workspace
        self._stores: dict[str | None, TrackingStore] = {}
        self._away: dict[str | None, str] = {}

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
            self._stores[tracking.uri] = self.enter_context(self._opener(tracking, self._workspace))
        try:
            yield self._stores[tracking.uri]
        except TrackingError as error:
            if error.unreachable:
                self._away[tracking.uri] = str(error)
            raise


def tracking_of(path: Path, workspace: Workspace, *, advice: str = _NAME_A_STORE, by_default: bool = True) -> Tracking:
    """Where the runs of a record belong: never at a store that the record of somebody else chooses.

    Args:
        path: the record's folder.
        workspace: has the runs folder, and the store that the command names, which wins over the record's config.
        advice: what to do otherwise.
        by_default: whether the default store will do for the record of somebody else.

    Raises:
        InputError: the config is not the one that was evaluated; or the record is untrusted, and its config reads a
            variable or names another store than the local one; or it was to be logged to the store of
            MLFLOW_TRACKING_URI, which is not set.
    """
    uri = workspace.tracking_uri
    opened = open_record(path, overrides=["tracking.uri="] if uri else [], tracking=True)
    if uri:
        return opened.loaded.config.tracking.model_copy(update={"uri": uri})
    tracking = _local(opened, workspace, advice, by_default=by_default)
    if opened.record is not None and (lost := lost_store(opened.record, tracking, advice)):
        raise InputError(lost)
    return tracking


def is_from_environment(tracking: Tracking) -> bool:
    """Whether the store is that of MLFLOW_TRACKING_URI."""
    return tracking.uri is None and bool(os.environ.get(_VARIABLE))


def lost_store(record: Evaluation, tracking: Tracking, advice: str = _NAME_A_STORE) -> str | None:
    """Why the default store is not the one that a record was to be logged to; None if nothing is known to differ.

    Args:
        record: the record.
        tracking: where it would go.
        advice: what to do.
    """
    is_default = tracking.uri is None and not is_from_environment(tracking)
    if not (is_default and record.manifest.tracking.from_environment):
        return None
    return f"{record.path}: should be logged to the store of {_VARIABLE}, which is not set; {advice}"


def with_trusted_store(opened: Opened, workspace: Workspace, *, tracking: bool) -> Opened:
    """Replace the store of an untrusted record by the user's.

    Args:
        opened: a config or a record.
        workspace: has the runs folder.
        tracking: whether the evaluation is to be logged, where the config does not rule it out.

    Raises:
        InputError: the evaluation is to be logged, and the config names another store than the local one.
    """
    if opened.is_trusted:
        return opened
    config = opened.loaded.config
    allowed = config.tracking.model_copy(update={"uri": None})
    if tracking and config.tracking.enabled:
        advice = f"set tracking.uri with --set, set {_VARIABLE}, or add --no-tracking"
        allowed = _local(opened, workspace, advice)
    config = config.model_copy(update={"tracking": allowed})
    return replace(opened, loaded=replace(opened.loaded, config=config))


def _local(opened: Opened, workspace: Workspace, advice: str, *, by_default: bool = True) -> Tracking:
    tracking = opened.loaded.config.tracking
    if opened.is_trusted or (tracking.uri is not None and opened.is_overridden(("tracking", "uri"))):
        return tracking
    is_chosen = bool(os.environ.get(_VARIABLE))
    theirs = None if tracking.uri is None else public_uri(_uri(tracking.uri, workspace)).rstrip("/")
    if (is_chosen or by_default) and theirs in (None, public_uri(_uri(None, workspace)).rstrip("/")):
        return tracking.model_copy(update={"uri": None})
    named = f"names the MLflow store {theirs}" if theirs else "names no MLflow store"
    raise InputError(f"{opened.config}: the record was not made by you on this machine, and {named}; {advice}")


def fetch_record(run_id: str, tracking: Tracking, workspace: Workspace) -> Path:
    """The folder of the record that a run of MLflow is of; copied from there if it is not among the records.

    Args:
        run_id: the run.
        tracking: says where the store is.
        workspace: where the record is looked for first, and copies from MLflow are.

    Raises:
        InputError: there is no such run, or MLflow cannot be reached.
    """
    with open_for_reading(tracking, workspace) as store:
        run = store.ask("evaluation_of_run", run_id=run_id)
        evaluation_id = run["evaluation_id"]
        copy = workspace.runs_dir / "mlflow-records" / evaluation_id
        known = workspace.records.fetch(evaluation_id) or (copy if (copy / MANIFEST).is_file() else None)
        if known is None and run["run_id"] is None:
            raise InputError(f"MLflow has no run of the evaluation {evaluation_id} itself; name its record instead")
        return known or Path(store.ask("copy_record", run_id=run["run_id"], folder=str(copy)))


def _uri(uri: str | None, workspace: Workspace) -> str:
    """The tracking store; the path of a local one that a config names starts at the runs folder."""
    if uri is None and (
        chosen := os.environ.get(_VARIABLE)
    ):  # in which MLflow has paths start at the working directory
        if chosen.startswith(_DATABASE):
            return f"{_DATABASE}{Path(chosen.removeprefix(_DATABASE)).absolute()}"
        is_url = chosen == "databricks" or "://" in chosen or chosen.startswith("file:")
        return chosen if is_url else str(Path(chosen).absolute())
    if uri and _ADDRESS.fullmatch(uri):
        raise InputError(f"tracking.uri: found '{uri}'; write http://{uri} or https://{uri} for a server")
    scheme, separator, path = (uri or "sqlite:///mlflow.db").rpartition("://")
    if uri == "databricks" or (separator and scheme != "sqlite"):
        return str(uri)
    return f"{_DATABASE}{(workspace.runs_dir / (path.removeprefix('/') if separator else path)).resolve()}"
