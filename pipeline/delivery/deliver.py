"""Delivering finished records to their remote copy and to MLflow, at once or with `sync`; and which store that is.

The record lies whole in the runs folder before any of this begins. A receipt that is put in it says that MLflow has it.
Of two processes of a machine that would log the same record, the second finds the receipt of the first.
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
from rankledger.pipeline.record.store import DamagedError, Records, digest_of, open_records
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.support.errors import InputError, LockedError, TrackingError
from rankledger.pipeline.support.progress import each

if TYPE_CHECKING:
    from rankledger.pipeline.record.mlflow_process import TrackingStore


def deliver(
    evaluation: Evaluation, workspace: Workspace, *, store: TrackingStore | None, tracking: Tracking
) -> Evaluation:
    """The evaluation with where it is now, or with the reasons why it is not; the record is whole anyhow.

    Args:
        evaluation: what was evaluated, with its record in the runs folder.
        workspace: where records are kept.
        store: the tracking store, which is open; None if nothing is to be logged.
        tracking: which metrics are logged, and how they are called.
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
    """Log the runs of an evaluation to an open store, as a report shows it, and keep the receipt; gives it."""
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
    from rankledger.pipeline.delivery.alerts import sync_alerts  # here, because its HTTP and TLS take time to import

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
