"""The evaluations that there are."""

from __future__ import annotations

from pathlib import Path

from pipeline.ledger import Listed, Listing
from pipeline.record import open_records
from pipeline.record.browsing import Entry, browse
from pipeline.record.receipts import read_receipt
from pipeline.verdicts import summed_up

__all__ = ["list_evaluations"]


def list_evaluations(name: str | None = None, *, runs_dir: str | Path = "runs", records: str | None = None) -> Listing:
    """The evaluations of a name, the newest first.

    Args:
        name: the evaluation's name in its config; all unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.

    Raises:
        InputError: there is none of that name, or none of them can be read.
        OSError: the place of records cannot be reached.
    """
    kept = open_records(Path(runs_dir), records)
    browsed = browse(kept, name, _listed)
    return Listing(kept.place, browsed.found, browsed.remarks)


def _listed(entry: Entry) -> Listed:
    manifest = entry.manifest
    receipt = read_receipt(entry.records, entry.evaluation_id)
    return Listed(
        evaluation_id=entry.evaluation_id,
        name=manifest["name"],
        date=entry.date,
        repeats=manifest["repeats"],
        n_models=len(manifest["models"]),
        n_datasets=len(manifest["datasets"]),
        n_failures=len(manifest["failures"]),
        gates=summed_up(entry.verdicts),
        delivered=None if receipt is None else receipt.delivered,
        wanted=bool(manifest["tracking"]["wanted"]),
        size=entry.size,
    )
