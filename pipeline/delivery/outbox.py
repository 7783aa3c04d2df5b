"""Outbox of records: each target gets every finished record once, and a receipt in the record says so.

Targets are the remote copy, MLflow, promotion, and the entry points in the group `rankledger.delivery`. Alerts tell of
the last night and not of one record, so `alerts` keeps what each of its receivers was told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.delivery.mlflow.promotion import promote
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.mlflow_stores import Stores, open_store, tracking_of
from rankledger.pipeline.record.receipts import (
    Receipt,
    TargetReceipt,
    clear_left_behind,
    one_at_a_time,
    read_receipt,
    read_target_receipt,
    write_receipt,
)
from rankledger.pipeline.record.store import DamagedError, Records, digest_of, open_records, own_places
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.support.errors import InputError, LockedError, TrackingError
from rankledger.pipeline.support.own_code import find_installed, installed, reason_of
from rankledger.pipeline.support.progress import each

if TYPE_CHECKING:
    from rankledger.pipeline.record.mlflow_stores import TrackingStore

GROUP = "rankledger.delivery"
"""Group of entry points: functions that get an `Evaluation`, and return a text for the receipt or None."""


@dataclass(frozen=True)
class Outbox:
    """Locations that targets use. `open_store` is None if nothing is logged to MLflow."""

    records: Records
    open_store: Callable[[Evaluation], AbstractContextManager[tuple[TrackingStore, Tracking]]] | None
    is_new: bool = False
    """True if the record was just written, so that no receipt need be looked for."""

    again: bool = False
    """True logs what MLflow had before."""


Target: TypeAlias = Callable[[Evaluation, Outbox], Iterable[str]]
"""Function that delivers a record unless its receipt exists, and returns lines on what it did."""


@dataclass(frozen=True)
class TargetResult:
    """Lines of a target that did something, and the error that ended it."""

    target: str
    lines: tuple[str, ...] = ()
    error: Exception | None = None

    def describe_error(self, records: Records) -> str:
        if isinstance(self.error, OSError):
            return records.describe_error(self.error)
        return "; ".join(self.error.lines) if isinstance(self.error, InputError) else str(self.error)


def copy_record(record: Evaluation, outbox: Outbox) -> Iterable[str]:
    """Copy a record to its remote location, where its manifest is the receipt."""
    return ("uploaded",) if outbox.records.keep(record.path) else ()


def log_record(record: Evaluation, outbox: Outbox) -> Iterable[str]:
    """Log a record to MLflow. Return the page of its run."""
    records, evaluation_id = outbox.records, record.path.name
    if outbox.open_store is None or not record.manifest.is_tracked:
        return ()
    if not (outbox.is_new or outbox.again) and read_receipt(records, evaluation_id) is not None:
        return ()
    with outbox.open_store(record) as (store, tracking):
        try:
            with one_at_a_time(records, evaluation_id, store.timeout):
                receipt: Receipt | None = None
                if not outbox.again:
                    with suppress(OSError):  # if it cannot be read, logging once more does no harm
                        receipt = read_receipt(records, evaluation_id)
                if receipt is None:
                    runs = store.deliver(record.path, max_metrics=tracking.max_metrics)
                    moment = datetime.now(UTC).isoformat()
                    receipt = Receipt(evaluation_id, digest_of(record.path), store.public_uri, **runs, delivered=moment)
                    write_receipt(records, receipt)
                return (receipt.page,)
        except LockedError as error:
            raise TrackingError(str(error)) from None


def promote_models(record: Evaluation, outbox: Outbox) -> Iterable[str]:
    """Promote the models of a record that passed."""
    return () if outbox.open_store is None else promote(record, outbox.records, outbox.open_store)


def _call_installed(name: str, record: Evaluation, outbox: Outbox) -> Iterable[str]:
    """Give a record to an entry point, unless its receipt exists or the record is somebody else's."""
    if not record.is_trusted or not (
        outbox.is_new or read_target_receipt(outbox.records, record.path.name, name) is None
    ):
        return
    code: Any = find_installed(GROUP, name)
    try:
        text = code.value(record)
    except Exception as error:
        raise InputError(f"{name}: {reason_of(error)}") from error
    if text is not None:
        moment = datetime.now(UTC).isoformat()
        write_receipt(outbox.records, TargetReceipt(record.path.name, digest_of(record.path), name, str(text), moment))
        yield f"{name}: {text}"


def run_targets(record: Evaluation, outbox: Outbox) -> Iterator[TargetResult]:
    """Yield the result of each target that did something or failed. Skip targets that need a failed one."""
    targets: dict[str, Target] = {"copy": copy_record, "mlflow": log_record, "promotion": promote_models}
    needs = {"mlflow": set() if outbox.is_new else {"copy"}, "promotion": {"copy", "mlflow"}}
    failed: set[str] = set()
    for name, target in (targets | {name: partial(_call_installed, name) for name in installed(GROUP)}).items():
        if failed & needs.get(name, set()):
            continue
        lines: list[str] = []
        try:
            lines.extend(target(record, outbox))  # lines before an error stay
        except (InputError, TrackingError, OSError, ValueError) as error:
            failed.add(name)
            yield TargetResult(name, tuple(lines), error)
        else:
            if lines:
                yield TargetResult(name, tuple(lines))


def deliver(
    evaluation: Evaluation,
    workspace: Workspace,
    *,
    store: TrackingStore | None,
    tracking: Tracking,
    is_new: bool = True,
) -> Evaluation:
    """Return the evaluation with its locations, or with the reasons why it was not delivered.

    `store` is an open tracking store. None logs nothing.
    """
    records = workspace.records
    outbox = Outbox(records, None if store is None else lambda _: nullcontext((store, tracking)), is_new=is_new)
    try:
        for result in run_targets(evaluation, outbox):
            reason = result.describe_error(records) if result.error else None
            if result.target == "copy":
                evaluation = replace(evaluation, unsaved=reason)
            elif result.target == "mlflow" and isinstance(result.error, OSError):
                missing = f"the receipt of MLflow is not kept ({reason})"
                evaluation = replace(evaluation, unsaved=evaluation.unsaved or missing)
            elif result.target == "mlflow":
                evaluation = replace(evaluation, store=next(iter(result.lines), None), untracked=reason)
            elif result.target == "promotion":
                evaluation = replace(evaluation, promotions=result.lines, unpromoted=reason)
            elif reason:
                warning = f"not delivered: {reason}; `rankledger sync` tries it again"
                evaluation = replace(evaluation, warnings=(*evaluation.warnings, warning))
    except BaseException as error:
        error.add_note(f"the record is complete: {evaluation.path}")  # for whoever says why it ended
        raise
    return evaluation


@dataclass(frozen=True)
class SyncResult:
    """Result of delivering one record.

    Attributes:
        evaluation_id: Evaluation of the record.
        uploaded: True if the record was copied to its remote location.
        tracked: Page in MLflow, or the store if it is no server. None if nothing was logged.
        alerted: Targets of `notify` that got an alert.
        delivered: One line for each installed target that got the record.
        promotions: One line for each promotion.
        reason: Reason why the record is not delivered. Empty if it is.
        unpromoted: Reason why a model was not promoted. Empty if there is none.
    """

    evaluation_id: str
    uploaded: bool = False
    tracked: str | None = None
    alerted: tuple[str, ...] = ()
    delivered: tuple[str, ...] = ()
    promotions: tuple[str, ...] = ()
    reason: str = ""
    unpromoted: str = ""


def sync(
    *, runs_dir: str | Path = "runs", records: str | None = None, again: bool = False, tracking_uri: str | None = None
) -> Iterator[SyncResult]:
    """Retry pending uploads, MLflow deliveries, promotions and other targets, oldest first, then alerts.

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
        for evaluation_id, sent, unsent in sync_alerts(workspace, syncer.place_of):
            yield SyncResult(evaluation_id, alerted=sent, reason="; ".join(unsent))


class _Syncer:
    """Delivers records one by one. An unreachable location is tried once, because each attempt can take minutes."""

    def __init__(self, workspace: Workspace, stores: Stores, *, again: bool) -> None:
        self._workspace = workspace
        self._stores = stores
        self._again = again
        self._places = {workspace.records.place: workspace.records}
        self._away: dict[str, OSError] = {}

    def deliver(self, evaluation_id: str) -> SyncResult:
        done, records = SyncResult(evaluation_id), self._workspace.records
        try:
            if not records.has_here(evaluation_id):
                self._reach(records)
                if not self._again and read_receipt(records, evaluation_id) is not None:
                    return done  # and need not be fetched
            path = records.fetch(evaluation_id)
            if path is None:
                return done
            record = read_record(path)
            outbox = Outbox(self.place_of(record), self._open_store, again=self._again)
            results = list(run_targets(record, outbox))
        except (InputError, OSError) as error:
            results = [TargetResult("record", error=error)]
        reasons = []
        for result in results:
            if isinstance(result.error, OSError):
                self._look_whether_away(result.error)
            reason = result.describe_error(records) if result.error else ""
            if result.target == "promotion":
                done = replace(done, promotions=result.lines, unpromoted=reason)
                continue
            reasons += [reason] if reason else []
            if result.target == "copy":
                done = replace(done, uploaded=bool(result.lines))
            elif result.target == "mlflow":
                done = replace(done, tracked=next(iter(result.lines), None))
            else:
                done = replace(done, delivered=(*done.delivered, *result.lines))
        return replace(done, reason="; ".join(reasons))

    @contextmanager
    def _open_store(self, record: Evaluation) -> Iterator[tuple[TrackingStore, Tracking]]:
        tracking = tracking_of(record.path, self._workspace, by_default=False)
        with self._stores.at(tracking) as store:
            yield store, tracking

    def place_of(self, record: Evaluation) -> Records:
        """Return the location that the record names if the user made it, else the location of all records."""
        place = (record.manifest.records if record.is_trusted else None) or self._workspace.records.place
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
