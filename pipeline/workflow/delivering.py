"""Finished records to where they are kept and to MLflow: at once, or later what could not be delivered.

The record lies whole in the runs folder before any of this begins. A receipt beside it says that MLflow has it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from pipeline.record import Records
from pipeline.record.acceptance import digest_of
from pipeline.record.receipts import Receipt, write_receipt
from pipeline.report.text import note
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


def track(record: Record, evaluation: Evaluation, store: TrackingStore, metric_name: str) -> Receipt:
    """Have an open store hold the runs of an evaluation.

    Args:
        record: the evaluation's record.
        evaluation: the evaluation, as a report shows it.
        store: the store.
        metric_name: the template of metric names.

    Raises:
        TrackingError: it cannot be reached or refuses something.
    """
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
        receipt = track(record, evaluation, store, metric_name)
    except TrackingError as error:
        return replace(evaluation, untracked=str(error))
    try:
        write_receipt(records, receipt)
    except OSError as error:
        missing = f"the receipt of MLflow is not kept ({records.told(error)})"
        return replace(evaluation, unsaved=evaluation.unsaved or missing)
    return replace(evaluation, store=page_of(receipt))


def page_of(receipt: Receipt) -> str:
    """The page of the evaluation's own run; the store where that is a database and no server."""
    if not receipt.server.startswith(("http://", "https://")):
        return receipt.server
    return f"{receipt.server.rstrip('/')}/#/experiments/{receipt.experiment_id}/runs/{receipt.run_id}"
