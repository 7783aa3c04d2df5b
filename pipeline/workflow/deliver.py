"""Delivering finished records to their remote copy and to MLflow, at once or with `sync`; and which store that is.

The record lies whole in the runs folder before any of this begins. A receipt that is put in it says that MLflow has it.
Of two processes of a machine that would log the same record, the second finds the receipt of the first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.receipts import Receipt, clear_left_behind, one_at_a_time, read_receipt, write_receipt
from rankledger.pipeline.record.store import DamagedError, Records, digest_of, open_records
from rankledger.pipeline.support.credentials import public_uri
from rankledger.pipeline.support.errors import InputError, LockedError, TrackingError
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.types.manifest import MANIFEST
from rankledger.pipeline.types.results import Evaluation, Record
from rankledger.pipeline.workflow.evaluation import evaluation_of
from rankledger.pipeline.workflow.promote import pending_promotions, promote
from rankledger.pipeline.workflow.workspace import Opened, Workspace, open_record

if TYPE_CHECKING:
    from rankledger.pipeline.tracking.client import TrackingStore

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
    from rankledger.pipeline.tracking.client import TrackingStore

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


def lost_store(record: Record, tracking: Tracking, advice: str = _NAME_A_STORE) -> str | None:
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


_Evaluation = TypeVar("_Evaluation", bound=Evaluation)


def deliver(
    evaluation: _Evaluation, record: Record, workspace: Workspace, *, store: TrackingStore | None, tracking: Tracking
) -> _Evaluation:
    """The evaluation with where it is now, or with the reasons why it is not; the record is whole anyhow.

    Args:
        evaluation: what was evaluated.
        record: its record, in the runs folder.
        workspace: where records are kept.
        store: the tracking store, which is open; None if nothing is to be logged.
        tracking: which metrics are logged, and how they are called.
    """
    try:
        try:
            workspace.records.keep(record.path)
        except OSError as error:
            evaluation = replace(evaluation, unsaved=workspace.records.describe_error(error))
        if store is None:
            return evaluation
        evaluation = replace(evaluation, store=_log(record, evaluation, workspace.records, store, tracking).page)
        if evaluation.unsaved:
            return evaluation
        result = promote(record, workspace.records, store)
        return replace(evaluation, promotions=result.lines, unpromoted=result.reason or None)
    except TrackingError as error:
        return replace(evaluation, untracked=str(error))
    except OSError as error:
        missing = f"the receipt of MLflow is not kept ({workspace.records.describe_error(error)})"
        return replace(evaluation, unsaved=evaluation.unsaved or missing)
    except BaseException as error:
        error.add_note(f"the record is complete: {record.path}")  # for whoever says why it ended
        raise


def _log(
    record: Record,
    evaluation: Evaluation,
    records: Records,
    store: TrackingStore,
    tracking: Tracking,
    *,
    again: bool = False,
) -> Receipt:
    """Log the runs of an evaluation to an open store, as a report shows it, and keep the receipt; gives it."""
    receipt: Receipt | None = None
    try:
        with one_at_a_time(records, record.path.name, store.timeout):
            if not again:
                with suppress(OSError):  # if it cannot be read, logging once more does no harm
                    receipt = read_receipt(records, record.path.name)
            if receipt is None:
                receipt = _logged(record, evaluation, store, tracking)
                write_receipt(records, receipt)
            return receipt
    except LockedError as error:
        raise TrackingError(str(error)) from None


def _logged(record: Record, evaluation: Evaluation, store: TrackingStore, tracking: Tracking) -> Receipt:
    from rankledger.pipeline.report.markdown import note
    from rankledger.pipeline.tracking.payload import runs_of

    runs = runs_of(record, metric_name=tracking.metric_name, max_metrics=tracking.max_metrics, note=note(evaluation))
    delivered = store.deliver(runs)
    return Receipt(
        evaluation_id=record.path.name,
        manifest_sha256=digest_of(record.path),
        server=store.public_uri,
        experiment_id=delivered.experiment_id,
        run_id=delivered.run_id,
        runs=tuple(
            {**dict(zip(("dataset", "model", "replicate"), task, strict=False)), "run_id": run_id}
            for task, run_id in delivered.runs.items()
        ),
        delivered=datetime.now(UTC).isoformat(),
    )


@dataclass(frozen=True)
class SyncResult:
    """What became of a record.

    Attributes:
        evaluation_id: the evaluation.
        uploaded: whether it was copied to where records are kept.
        tracked: its page in MLflow, or the store if that is no server; None if it was not logged.
        alerted: the targets of `notify` that got an alert.
        promotions: what became of its promotions, a line each.
        reason: why it is not delivered; empty if it is.
        unpromoted: why a model was not promoted though it should have been; empty if none was to be.
    """

    evaluation_id: str
    uploaded: bool = False
    tracked: str | None = None
    alerted: tuple[str, ...] = ()
    promotions: tuple[str, ...] = ()
    reason: str = ""
    unpromoted: str = ""


def sync(
    *, runs_dir: str | Path = "runs", records: str | None = None, again: bool = False, tracking_uri: str | None = None
) -> Iterator[SyncResult]:
    """Retry pending uploads, deliveries and promotions, oldest first, then alerts; skip what needs nothing.

    Args:
        runs_dir: where records are, and the default MLflow store.
        records: where records are kept; by default in the runs folder. Your records in the runs folder whose config
            names a remote store are copied there, too.
        again: whether to log again what MLflow had before, as after `mlflow gc`.
        tracking_uri: the store for all of them. By default a record of the user goes where its config says, and one of
            somebody else to the store of MLFLOW_TRACKING_URI if its config names no other, or nowhere.

    Raises:
        InputError: the records location is invalid.
        OSError: the records location cannot be reached.
    """
    from rankledger.pipeline.workflow.alerts import sync_alerts  # here, because its HTTP and TLS take time to import

    workspace = Workspace.open(runs_dir, records, tracking_uri)
    clear_left_behind(workspace.records, workspace.runs_dir)
    with Stores(open_store, workspace) as stores:
        syncer = _Syncer(workspace, stores, again=again)
        ids = workspace.records.ids()
        for evaluation_id in each("Delivering", reversed(ids), len(ids), "records"):
            result = syncer.deliver(evaluation_id)
            if result != SyncResult(evaluation_id):
                yield result
        for alerts in sync_alerts(workspace, syncer.place_of):
            yield SyncResult(alerts.evaluation_id, alerted=alerts.sent, reason="; ".join(alerts.unsent))


class _Syncer:
    """Delivers records, one by one; a place that is away is asked once, for each time takes seconds, or minutes."""

    def __init__(self, workspace: Workspace, stores: Stores, *, again: bool) -> None:
        self._workspace = workspace
        self._records = workspace.records
        self._stores = stores
        self._again = again
        self._places = {self._records.place: self._records}
        self._away: dict[str, OSError] = {}

    def deliver(self, evaluation_id: str) -> SyncResult:
        """Deliver one record, as far as it is not."""
        done = SyncResult(evaluation_id)
        try:
            if not self._records.has_here(evaluation_id):
                self._reach(self._records)
                if self._is_delivered(self._records, evaluation_id):
                    return done  # and need not be fetched
            path = self._records.fetch(evaluation_id)
            if path is None:
                return done
            record = read_record(path)
            records = self.place_of(record)
            done = replace(done, uploaded=records.keep(path))
            if record.manifest.tracking.wanted and not self._is_delivered(records, evaluation_id):
                tracking = tracking_of(path, self._workspace, by_default=False)
                with self._stores.at(tracking) as store:
                    receipt = _log(record, evaluation_of(record), records, store, tracking, again=self._again)
                done = replace(done, tracked=receipt.page)
            return self._promote(done, record, records)
        except InputError as error:
            return replace(done, reason="; ".join(error.lines))
        except TrackingError as error:
            return replace(done, reason=str(error))
        except OSError as error:
            self._look_whether_away(error)
            return replace(done, reason=self._records.describe_error(error))

    def _is_delivered(self, records: Records, evaluation_id: str) -> bool:
        return not self._again and read_receipt(records, evaluation_id) is not None

    def place_of(self, record: Record) -> Records:
        """Where the record says that it is kept, if it is the user's; where records are, otherwise."""
        place = (record.manifest.records if record.is_trusted else None) or self._records.place
        if place not in self._places:
            self._places[place] = open_records(self._workspace.runs_dir, place)
        return self._reach(self._places[place])

    def _reach(self, records: Records) -> Records:
        """The same place, unless it could not be reached before."""
        if records.place in self._away:
            raise self._away[records.place]
        return records

    def _look_whether_away(self, error: OSError) -> None:
        records = self._places.get(str(error.filename))
        if records is None or isinstance(error, DamagedError) or records.place in self._away:
            return
        try:
            records.ids()
        except OSError as away:
            self._away[records.place] = away

    def _promote(self, done: SyncResult, record: Record, records: Records) -> SyncResult:
        if not pending_promotions(record, records):
            return done
        tracking = tracking_of(record.path, self._workspace, by_default=False)
        try:
            with self._stores.at(tracking) as store:
                result = promote(record, records, store)
                done = replace(done, promotions=result.lines, unpromoted=result.reason)
                if result.away:
                    raise TrackingError(result.reason, unreachable=True)
        except TrackingError as error:
            done = replace(done, unpromoted=str(error))
        return done
