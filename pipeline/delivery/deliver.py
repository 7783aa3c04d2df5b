"""Delivery of finished records to their remote copy and to MLflow.

A receipt in the record says that MLflow has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.delivery.mlflow.promotion import pending_promotions, promote
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.mlflow_stores import Stores, open_store, tracking_of
from rankledger.pipeline.record.receipts import Receipt, clear_left_behind, one_at_a_time, read_receipt, write_receipt
from rankledger.pipeline.record.store import DamagedError, Records, digest_of, open_records, own_places
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.support.errors import InputError, LockedError, TrackingError
from rankledger.pipeline.support.progress import each

if TYPE_CHECKING:
    from rankledger.pipeline.record.mlflow_process import TrackingStore


def deliver(
    evaluation: Evaluation, workspace: Workspace, *, store: TrackingStore | None, tracking: Tracking
) -> Evaluation:
    """Return the evaluation with its locations, or with the reasons why it was not delivered.

    `store` is an open tracking store. None logs nothing.
    """
    try:
        try:
            workspace.records.keep(evaluation.path)
        except OSError as error:
            evaluation = replace(evaluation, unsaved=workspace.records.describe_error(error))
        if store is None:
            return evaluation
        evaluation = replace(evaluation, store=_log(evaluation, workspace.records, store, tracking).page)
        if evaluation.unsaved:
            return evaluation
        try:
            for line in promote(evaluation, workspace.records, store):
                evaluation = replace(evaluation, promotions=(*evaluation.promotions, line))
        except TrackingError as error:
            evaluation = replace(evaluation, unpromoted=str(error))
        return evaluation
    except TrackingError as error:
        return replace(evaluation, untracked=str(error))
    except OSError as error:
        missing = f"the receipt of MLflow is not kept ({workspace.records.describe_error(error)})"
        return replace(evaluation, unsaved=evaluation.unsaved or missing)
    except BaseException as error:
        error.add_note(f"the record is complete: {evaluation.path}")  # for whoever says why it ended
        raise


def _log(
    record: Evaluation, records: Records, store: TrackingStore, tracking: Tracking, *, again: bool = False
) -> Receipt:
    receipt: Receipt | None = None
    try:
        with one_at_a_time(records, record.path.name, store.timeout):
            if not again:
                with suppress(OSError):  # if it cannot be read, logging once more does no harm
                    receipt = read_receipt(records, record.path.name)
            if receipt is None:
                receipt = _logged(record, store, tracking)
                write_receipt(records, receipt)
            return receipt
    except LockedError as error:
        raise TrackingError(str(error)) from None


def _logged(record: Evaluation, store: TrackingStore, tracking: Tracking) -> Receipt:
    from rankledger.pipeline.delivery.mlflow.delivery import send_runs
    from rankledger.pipeline.delivery.mlflow.payload import runs_of
    from rankledger.pipeline.report.markdown import note

    runs = runs_of(record, metric_name=tracking.metric_name, max_metrics=tracking.max_metrics, note=note(record))
    delivered = send_runs(store, runs)
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
    """Result of delivering one record.

    Attributes:
        evaluation_id: Evaluation of the record.
        uploaded: True if the record was copied to its remote location.
        tracked: Page in MLflow, or the store if it is no server. None if nothing was logged.
        alerted: Targets of `notify` that got an alert.
        promotions: One line for each promotion.
        reason: Reason why the record is not delivered. Empty if it is.
        unpromoted: Reason why a model was not promoted. Empty if there is none.
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
    """Retry pending uploads, MLflow deliveries and promotions, oldest first, then alerts.

    Args:
        runs_dir: Runs folder, with the default MLflow store.
        records: Records location, by default the runs folder. Your records whose config names a remote location are
            copied there, too.
        again: Log again what MLflow had before, for example after `mlflow gc`.
        tracking_uri: Store for all records. By default the store in the config of your record. A record of somebody
            else goes to the store of MLFLOW_TRACKING_URI, but only if its config names no other.

    Raises:
        InputError: The records location is invalid.
        OSError: The records location cannot be reached.
    """
    places = {"": records}
    if records is None:  # records at a URL are in the runs folder, too
        places |= {name: place for name, place in own_places(Path(runs_dir)).items() if "://" not in place}
    synced: set[Path] = set()
    for name, place in places.items():
        workspace = Workspace.open(runs_dir, place, tracking_uri)
        folder = workspace.records.folder.resolve()
        if name and not folder.is_dir():
            yield SyncResult(name, reason=f"{folder}: folder not found. Check `records` in the config.")
        elif folder not in synced:
            synced.add(folder)
            yield from _sync_place(workspace, again=again)


def _sync_place(workspace: Workspace, *, again: bool) -> Iterator[SyncResult]:
    from rankledger.pipeline.delivery.alerts import sync_alerts  # here, because its HTTP and TLS take time to import

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
    """Delivers records one by one. An unreachable location is tried once, because each attempt can take minutes."""

    def __init__(self, workspace: Workspace, stores: Stores, *, again: bool) -> None:
        self._workspace = workspace
        self._records = workspace.records
        self._stores = stores
        self._again = again
        self._places = {self._records.place: self._records}
        self._away: dict[str, OSError] = {}

    def deliver(self, evaluation_id: str) -> SyncResult:
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
            if record.manifest.is_tracked and not self._is_delivered(records, evaluation_id):
                tracking = tracking_of(path, self._workspace, by_default=False)
                with self._stores.at(tracking) as store:
                    receipt = _log(record, records, store, tracking, again=self._again)
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

    def place_of(self, record: Evaluation) -> Records:
        """Return the location that the record names if the user made it, else the location of all records."""
        place = (record.manifest.records if record.is_trusted else None) or self._records.place
        if place not in self._places:
            self._places[place] = open_records(self._workspace.runs_dir, place)
        return self._reach(self._places[place])

    def _reach(self, records: Records) -> Records:
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

    def _promote(self, done: SyncResult, record: Evaluation, records: Records) -> SyncResult:
        if not pending_promotions(record, records):
            return done
        tracking = tracking_of(record.path, self._workspace, by_default=False)
        try:
            with self._stores.at(tracking) as store:
                for line in promote(record, records, store):
                    done = replace(done, promotions=(*done.promotions, line))
        except TrackingError as error:
            done = replace(done, unpromoted=str(error))
        return done
