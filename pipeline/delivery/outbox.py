"""Outbox of records: each target gets every finished record once, and a receipt in the record says so.

Targets are the remote copy, MLflow, promotion, and the entry points in the group `rankledger.delivery`. Alerts tell of
the last night and not of one record, so `alerts` keeps what each of its receivers was told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rankledger.pipeline.config.schema import Tracking
from rankledger.pipeline.delivery.mlflow.promotion import promote
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.mlflow_stores import TrackingStore
from rankledger.pipeline.record.receipts import (
    Outbox,
    Receipt,
    Target,
    TargetReceipt,
    one_at_a_time,
    read_receipt,
    read_target_receipt,
    write_receipt,
)
from rankledger.pipeline.record.store import Records, digest_of
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.support.errors import InputError, LockedError, TrackingError
from rankledger.pipeline.support.own_code import find_installed, installed, reason_of
from rankledger.pipeline.support.text import one_line

GROUP = "rankledger.delivery"
"""Group of entry points: functions that get an `Evaluation`, and return a text for the receipt or None."""


@dataclass(frozen=True)
class TargetResult:
    """Lines of a target that did something, and the error that ended it."""

    target: str
    lines: tuple[str, ...] = ()
    error: Exception | None = None

    def describe_error(self, records: Records) -> str:
        if isinstance(self.error, OSError):
            return records.describe_error(self.error)
        reason = "; ".join(self.error.lines) if isinstance(self.error, InputError) else str(self.error)
        is_expected = reason and isinstance(self.error, InputError | LockedError | TrackingError)
        return reason if is_expected else one_line(f"{type(self.error).__name__}: {reason}")


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
    with outbox.open_store(record) as (store, tracking), one_at_a_time(records, evaluation_id, store.timeout):
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
        except Exception as error:  # a target decides nothing about the evaluation
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
