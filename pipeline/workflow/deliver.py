"""Delivering finished records to their remote copy and to MLflow: at once, or later with `sync`.

The record lies whole in the runs folder before any of this begins. A receipt beside it says that MLflow has it. Of two
processes of a machine that would tell MLflow of the same record, the second finds the receipt of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.errors import InputError, LockedError
from rankledger.pipeline.record.accepted import digest_of
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.receipts import Receipt, is_own, one_at_a_time, read_receipt, write_receipt
from rankledger.pipeline.record.retention import clear_left_behind
from rankledger.pipeline.record.store import DamagedError, Records, open_records
from rankledger.pipeline.report.markdown import note
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.tracking.client import TrackingStore
from rankledger.pipeline.tracking.payload import TrackingError, runs_of
from rankledger.pipeline.types.results import Evaluation, Record
from rankledger.pipeline.workflow.browse import evaluation_of
from rankledger.pipeline.workflow.tracking import Stores, lost_store, open_store, tracking_of
from rankledger.pipeline.workflow.workspace import Workspace

__all__ = ["SyncResult", "deliver", "log_record", "run_page", "sync"]


def deliver(
    evaluation: Evaluation, record: Record, *, records: Records, store: TrackingStore | None, metric_name: str
) -> Evaluation:
    """The evaluation with where it is now, or with the reasons why it is not; the record is whole anyhow.

    Args:
        evaluation: what was evaluated.
        record: its record, in the runs folder.
        records: where records are kept.
        store: the tracking store, which is open; None where MLflow is not to be told.
        metric_name: the template of metric names.
    """
    try:
        evaluation = _kept(evaluation, record, records)
        return evaluation if store is None else _tracked(evaluation, record, records, store, metric_name)
    except BaseException as error:
        error.add_note(f"the record is complete: {record.path}")  # for whoever says why it ended
        raise


def log_record(
    record: Record,
    evaluation: Evaluation,
    *,
    records: Records,
    store: TrackingStore,
    metric_name: str,
    again: bool = False,
) -> Receipt:
    """Have an open store hold the runs of an evaluation, and keep the receipt; gives it.

    Args:
        record: the evaluation's record.
        evaluation: the evaluation, as a report shows it.
        records: where the receipt is kept.
        store: the store.
        metric_name: the template of metric names.
        again: whether to tell it what it was told before.

    Raises:
        TrackingError: it cannot be reached or refuses something, or another process takes too long to tell it.
        OSError: it holds them, and the receipt cannot be kept.
    """
    try:
        with one_at_a_time(records, record.path.name, store.timeout):
            told = None if again else _known(records, record.path.name)
            if told is None:
                told = _logged(record, evaluation, store, metric_name)
                write_receipt(records, told)
            return told
    except LockedError as error:
        raise TrackingError(str(error)) from None


def _known(records: Records, evaluation_id: str) -> Receipt | None:
    """The receipt that another process wrote meanwhile; where it cannot be read MLflow is told, which does no harm."""
    try:
        return read_receipt(records, evaluation_id)
    except OSError:
        return None


def _logged(record: Record, evaluation: Evaluation, store: TrackingStore, metric_name: str) -> Receipt:
    delivered = store.deliver(runs_of(record, metric_name=metric_name, note=note(evaluation)))
    return Receipt(
        evaluation_id=record.path.name,
        manifest_sha256=digest_of(record.path),
        server=store.public_uri,
        experiment_id=delivered.experiment_id,
        run_id=delivered.run_id,
        runs=tuple(
            {"dataset": dataset, "model": model, "run_id": run_id}
            for (dataset, model), run_id in delivered.runs.items()
        ),
        delivered=datetime.now(UTC).isoformat(),
    )


def _kept(evaluation: Evaluation, record: Record, records: Records) -> Evaluation:
    try:
        records.keep(record.path)
    except OSError as error:
        return replace(evaluation, unsaved=records.told(error))
    return evaluation


def _tracked(
    evaluation: Evaluation, record: Record, records: Records, store: TrackingStore, metric_name: str
) -> Evaluation:
    try:
        receipt = log_record(record, evaluation, records=records, store=store, metric_name=metric_name)
    except TrackingError as error:
        return replace(evaluation, untracked=str(error))
    except OSError as error:
        missing = f"the receipt of MLflow is not kept ({records.told(error)})"
        return replace(evaluation, unsaved=evaluation.unsaved or missing)
    return replace(evaluation, store=run_page(receipt))


def run_page(receipt: Receipt) -> str:
    """The page of the evaluation's own run; the store where that is a database and no server."""
    if not receipt.server.startswith(("http://", "https://")):
        return receipt.server
    return f"{receipt.server.rstrip('/')}/#/experiments/{receipt.experiment_id}/runs/{receipt.run_id}"


@dataclass(frozen=True)
class SyncResult:
    """What became of a record.

    Attributes:
        evaluation_id: the evaluation.
        uploaded: whether it was copied to where records are kept.
        tracked: the store of MLflow that holds it from now on; None where none does that did not before.
        reason: why it is not delivered; empty where it is.
    """

    evaluation_id: str
    uploaded: bool = False
    tracked: str | None = None
    reason: str = ""


def sync(
    *,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    again: bool = False,
    tracking_uri: str | None = None,
    allow_env: Sequence[str] = (),
) -> Iterator[SyncResult]:
    """Deliver what is undelivered, the oldest evaluation first; one that needs nothing is passed over.

    Args:
        runs_dir: where records are, and the default MLflow store.
        records: where records are kept; in the runs folder unless given. Records of the user that lie in the runs
            folder and say themselves that they are kept elsewhere are copied there, too.
        again: whether to log again what MLflow had before, as after `mlflow gc`.
        tracking_uri: the store for all of them. Unless given, a record of the user goes where its config says, and one
            of somebody else to the store of MLFLOW_TRACKING_URI if its config names no other, or nowhere.
        allow_env: the environment variables that `tracking` of a record's config may read, beside those of MLflow.

    Raises:
        InputError: the place of records is none.
        OSError: it cannot be reached.
    """
    workspace = Workspace.open(runs_dir, records)
    folder = workspace.runs_dir
    clear_left_behind(workspace.records, folder)
    with Stores(open_store, folder) as stores:
        find = partial(tracking_of, runs_dir=folder, uri=tracking_uri, allow_env=allow_env, by_default=False)
        syncer = _Syncer(workspace, stores, find, again=again)
        ids = workspace.records.ids()
        for evaluation_id in each("Delivering", reversed(ids), len(ids), "records"):
            found = syncer.deliver(evaluation_id)
            if found != SyncResult(evaluation_id):
                yield found


class _Syncer:
    """Delivers records, one by one; a place that is away is asked once, for each time takes seconds, or minutes."""

    def __init__(self, workspace: Workspace, stores: Stores, find: Callable[[Path], Tracking], *, again: bool) -> None:
        self._records = workspace.records
        self._runs_dir = workspace.runs_dir
        self._stores = stores
        self._find = find
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
            records = self._place_of(record)
            done = replace(done, uploaded=records.keep(path))
            if not record.manifest.tracking.wanted or self._is_delivered(records, evaluation_id):
                return done
            return replace(done, tracked=self._track(record, records))
        except InputError as error:
            return replace(done, reason="; ".join(error.lines))
        except TrackingError as error:
            return replace(done, reason=str(error))
        except OSError as error:
            self._look_whether_away(error)
            return replace(done, reason=self._records.told(error))

    def _is_delivered(self, records: Records, evaluation_id: str) -> bool:
        """Whether MLflow was told before, and is not to be told again."""
        return not self._again and read_receipt(records, evaluation_id) is not None

    def _place_of(self, record: Record) -> Records:
        """Where the record says that it is kept, if it is the user's; where records are, otherwise.

        Raises:
            OSError: that could not be reached before.
        """
        place = record.manifest.records if is_own(record.path) else None
        if place is None:
            return self._reach(self._records)
        if place not in self._places:
            self._places[place] = open_records(self._runs_dir, place)
        return self._reach(self._places[place])

    def _reach(self, records: Records) -> Records:
        if records.place in self._away:
            raise self._away[records.place]
        return records

    def _look_whether_away(self, error: OSError) -> None:
        """Whether the place is away, or it was the one record or file that could not be had."""
        records = self._places.get(str(error.filename))
        if records is None or isinstance(error, DamagedError) or records.place in self._away:
            return
        try:
            records.ids()
        except OSError as away:
            self._away[records.place] = away

    def _track(self, record: Record, records: Records) -> str:
        """Have MLflow hold a record; gives the store."""
        tracking = self._find(record.path)
        if lost := lost_store(record, tracking):
            raise InputError(lost)
        with self._stores.at(tracking) as store:
            receipt = log_record(
                record,
                evaluation_of(record),
                records=records,
                store=store,
                metric_name=tracking.metric_name,
                again=self._again,
            )
        return receipt.server
