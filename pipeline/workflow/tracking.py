"""The tracking stores that configs mean, and the records that runs of MLflow are of."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from rankledger.pipeline.config.loader import allowed_variables
from rankledger.pipeline.config.schema import Loaded, Tracking
from rankledger.pipeline.errors import InputError
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.support.credentials import public_uri
from rankledger.pipeline.tracking.client import TrackingStore
from rankledger.pipeline.tracking.payload import TrackingError
from rankledger.pipeline.types.results import Record
from rankledger.pipeline.workflow.sources import Opened, open_record

__all__ = [
    "Stores",
    "fetch_record",
    "is_from_environment",
    "lost_store",
    "open_existing_store",
    "open_for_logging",
    "open_for_reading",
    "open_store",
    "sync_command",
    "tracking_of",
    "with_own_targets",
]

_DATABASE = "sqlite:///"
_ADDRESS = re.compile(r"[A-Za-z0-9.-]+:[0-9]+(/.*)?")  # of a server, whose scheme was forgotten
_VARIABLE = "MLFLOW_TRACKING_URI"
_NAME_A_STORE = f"name the store with --tracking-uri, or set {_VARIABLE}"


def open_store(tracking: Tracking, runs_dir: Path) -> TrackingStore:
    """The tracking store of a config, to be entered.

    Args:
        tracking: what the config says of it; the path of a local store starts at the runs folder. Where it names no
            store it is that of MLFLOW_TRACKING_URI, or else the default one.
        runs_dir: the runs folder.
    """
    return TrackingStore(_uri(tracking.uri, runs_dir), runs_dir / "mlflow-artifacts", timeout=tracking.timeout)


def open_for_logging(tracking: Tracking | None, runs_dir: Path) -> AbstractContextManager[TrackingStore | None]:
    """The same where MLflow is to be told; None if it is not."""
    return nullcontext() if tracking is None else open_store(tracking, runs_dir)


@contextmanager
def open_for_reading(tracking: Tracking, runs_dir: Path) -> Iterator[TrackingStore]:
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


def tracking_of(
    path: Path,
    runs_dir: Path,
    *,
    uri: str | None = None,
    allow_env: Sequence[str] = (),
    advice: str = _NAME_A_STORE,
    by_default: bool = True,
) -> Tracking:
    """Where the runs of a record belong: never at a store that the record of somebody else chooses.

    Args:
        path: the record's folder.
        runs_dir: the runs folder.
        uri: the store that the command names; it wins over the record's config.
        allow_env: the environment variables that the config may read, beside those of MLflow.
        advice: what to do otherwise.
        by_default: whether the default store will do for the record of somebody else.

    Raises:
        InputError: the config is not the one that was evaluated or reads another variable; or the record was
            not made by this user on this machine, and its config names another store than the local one.
    """
    overrides = ["tracking.uri="] if uri else []
    opened = open_record(path, overrides=overrides, tracking=True, allow_env=allow_env)
    if uri:
        return opened.loaded.config.tracking.model_copy(update={"uri": uri})
    return _local(opened, runs_dir, advice, by_default=by_default)


def is_from_environment(tracking: Tracking) -> bool:
    """Whether the store is that of MLFLOW_TRACKING_URI."""
    return tracking.uri is None and bool(os.environ.get(_VARIABLE))


def lost_store(record: Record, tracking: Tracking) -> str | None:
    """Why the default store is not the one that a record was to be logged to; None where nothing is known to differ.

    Args:
        record: the record.
        tracking: where it would go.
    """
    if tracking.uri is not None or is_from_environment(tracking):
        return None
    if not record.manifest.tracking.from_environment:
        return None
    return f"{record.path}: was to be logged to the store of {_VARIABLE}, which is not set; {_NAME_A_STORE}"


def sync_command(loaded: Loaded) -> str:
    """The command that delivers records of a config later, with the variables that it may read only where allowed."""
    withheld = {*allowed_variables((), loaded.document.expansions).withheld}
    names = sorted(withheld.intersection(loaded.document.tracking_variables))
    return " ".join(["rankledger sync", *(f"--allow-env {name}" for name in names)])


def with_own_targets(opened: Opened, runs_dir: Path, *, tracking: bool) -> Opened:
    """What was opened, to be evaluated: a record of somebody else chooses neither where runs go nor where records do.

    Args:
        opened: a config or a record.
        runs_dir: the runs folder.
        tracking: whether the evaluation is to be logged, where the config does not rule it out.

    Raises:
        InputError: it is to be logged, and its config names another store than the local one.
    """
    if opened.is_own:
        return opened
    config = opened.loaded.config
    if tracking and config.tracking.enabled:
        found = _local(opened, runs_dir, "set tracking.uri with --set, set MLFLOW_TRACKING_URI, or add --no-tracking")
    else:
        found = config.tracking.model_copy(update={"uri": None})
    loaded = replace(opened.loaded, config=config.model_copy(update={"tracking": found}))
    planned = opened.planned
    if planned.records is not None and not opened.is_typed(("records",)):
        ignored = f"{opened.config}: records: ignored, for you did not make the record on this machine; use --records"
        planned = replace(planned, records=None, warnings=(*planned.warnings, ignored))
    return replace(opened, loaded=loaded, planned=planned)


def _local(opened: Opened, runs_dir: Path, advice: str, *, by_default: bool = True) -> Tracking:
    """The store of a record's config, which for somebody else's must be that of MLFLOW_TRACKING_URI or the default."""
    tracking = opened.loaded.config.tracking
    if opened.is_own or (tracking.uri is not None and opened.is_typed(("tracking", "uri"))):
        return tracking
    is_chosen = bool(os.environ.get(_VARIABLE))
    theirs = None if tracking.uri is None else public_uri(_uri(tracking.uri, runs_dir)).rstrip("/")
    if (is_chosen or by_default) and theirs in (None, public_uri(_uri(None, runs_dir)).rstrip("/")):
        return tracking.model_copy(update={"uri": None})
    named = f"names the MLflow store {theirs}" if theirs else "names no MLflow store"
    raise InputError(f"{opened.config}: the record was not made by you on this machine, and {named}; {advice}")


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
    with open_for_reading(tracking, runs_dir) as store:
        found = store.ask("evaluation_of_run", run_id=run_id)
        evaluation_id = found["evaluation_id"]
        copy = runs_dir / "mlflow-records" / evaluation_id
        known = records.fetch(evaluation_id) or (copy if (copy / "manifest.json").is_file() else None)
        if known is None and found["run_id"] is None:
            missing = f"MLflow has no run of the evaluation {evaluation_id} itself"
            raise InputError(f"{missing}; name its record instead")
        return known or Path(store.ask("copy_record", run_id=found["run_id"], folder=str(copy)))


def _uri(uri: str | None, runs_dir: Path) -> str:
    """The tracking store; the path of a local one that a config names starts at the runs folder."""
    if uri is None and (chosen := os.environ.get(_VARIABLE)):
        return _as_mlflow_reads(chosen)
    if uri and _ADDRESS.fullmatch(uri):
        raise InputError(f"tracking.uri: found '{uri}'; write http://{uri} or https://{uri} for a server")
    scheme, separator, path = (uri or "sqlite:///mlflow.db").rpartition("://")
    if uri == "databricks" or (separator and scheme != "sqlite"):
        return str(uri)
    return f"{_DATABASE}{(runs_dir / (path.removeprefix('/') if separator else path)).resolve()}"


def _as_mlflow_reads(uri: str) -> str:
    """The value of MLFLOW_TRACKING_URI, in which MLflow has paths start at the working directory."""
    if uri.startswith(_DATABASE):
        return f"{_DATABASE}{Path(uri.removeprefix(_DATABASE)).absolute()}"
    if uri == "databricks" or "://" in uri or uri.startswith("file:"):
        return uri
    return str(Path(uri).absolute())
