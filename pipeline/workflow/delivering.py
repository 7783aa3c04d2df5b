"""Finished records to where they are kept and to MLflow: at once, or later what could not be delivered.

The record lies whole in the runs folder before any of this begins. A receipt beside it says that MLflow has it. Of two
processes of a machine that would tell MLflow of the same record, the second finds the receipt of the first.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from pipeline.errors import LockedError
from pipeline.record import Records
from pipeline.record.acceptance import digest_of
from pipeline.record.receipts import Receipt, one_at_a_time, read_receipt, write_receipt
from pipeline.report.markdown import note
from pipeline.tables import Evaluation, Record
from pipeline.tracking.names import TrackingError
from pipeline.tracking.runs import runs_of
from pipeline.tracking.store import TrackingStore

__all__ = ["deliver", "page_of", "track"]


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


def track(
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
                told = _told(record, evaluation, store, metric_name)
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


def _told(record: Record, evaluation: Evaluation, store: TrackingStore, metric_name: str) -> Receipt:
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
        receipt = track(record, evaluation, records=records, store=store, metric_name=metric_name)
    except TrackingError as error:
        return replace(evaluation, untracked=str(error))
    except OSError as error:
        missing = f"the receipt of MLflow is not kept ({records.told(error)})"
        return replace(evaluation, unsaved=evaluation.unsaved or missing)
    return replace(evaluation, store=page_of(receipt))


def page_of(receipt: Receipt) -> str:
    """The page of the evaluation's own run; the store where that is a database and no server."""
    if not receipt.server.startswith(("http://", "https://")):
        return receipt.server
    return f"{receipt.server.rstrip('/')}/#/experiments/{receipt.experiment_id}/runs/{receipt.run_id}"
