"""Whether a record is what was written: by its own hashes, by its receipt, and by what MLflow has of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import InputError
from pipeline.manifest import MANIFEST
from pipeline.record import Records, open_records
from pipeline.record.acceptance import digest_of
from pipeline.record.checking import damages, strays
from pipeline.record.receipts import Receipt, read_receipt
from pipeline.tables import Record
from pipeline.workflow.named import named_record
from pipeline.workflow.tracking import asked_store, tracking_of

__all__ = ["Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """A record that is what was written.

    Attributes:
        record: its folder.
        n_files: its files, the manifest among them.
        witnesses: who else has the hash of its manifest: its receipt, runs of MLflow.
        remarks: who could not be asked, and why.
    """

    record: Path
    n_files: int
    witnesses: tuple[str, ...]
    remarks: tuple[str, ...]


def verify(
    record: str,
    *,
    tracking: bool = True,
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
) -> Verification:
    """Check a record.

    Args:
        record: its path or id, or `mlflow:` and the id of a run.
        tracking: whether MLflow is asked.
        runs_dir: where the record is looked for, and the default MLflow store is.
        records: where records are kept; in the runs folder unless given.
        tracking_uri: the tracking store; that of its config unless given.

    Raises:
        InputError: there is no such record, or it is not what was written; a line per file.
    """
    kept = open_records(Path(runs_dir), records)
    found = named_record(record, kept, Path(runs_dir), tracking_uri)
    digest = digest_of(found.path)
    receipt = _receipt(found, kept)
    witnesses = {} if receipt is None else {"its receipt": receipt.manifest_sha256}
    faults = [*damages(found), *strays(found)]
    remarks: list[str] = []
    if tracking and not faults:  # a config that was changed might name any store
        try:
            witnesses |= _logged(found, Path(runs_dir), tracking_uri)
        except InputError as error:
            remarks += error.lines
    faults += _denied(found.path / MANIFEST, digest, witnesses)
    if faults:
        raise InputError(*faults)
    return Verification(found.path, len(found.manifest["files"]) + 1, tuple(witnesses), tuple(remarks))


def _receipt(record: Record, kept: Records) -> Receipt | None:
    """The receipt where records are kept, or beside a record that lies elsewhere."""
    evaluation_id = record.manifest["evaluation_id"]
    return read_receipt(kept, evaluation_id) or read_receipt(Records(record.path.parent), evaluation_id)


def _logged(record: Record, runs_dir: Path, tracking_uri: str | None) -> dict[str, str]:
    """The hash of the manifest that the evaluation's own run of MLflow has.

    Raises:
        InputError: there is no such store, it cannot be reached, or the environment does not say where it is.
    """
    tracking = tracking_of(record.path, runs_dir, uri=tracking_uri)
    evaluation_id, name = (record.manifest[key] for key in ("evaluation_id", "name"))
    with asked_store(tracking, runs_dir) as store:
        found = store.ask("logged_digests", evaluation_id=evaluation_id, name=name)
    return {f"the run {run_id} of MLflow": digest for run_id, digest in found.items()}


def _denied(manifest: Path, digest: str, witnesses: Mapping[str, str]) -> Iterator[str]:
    """A line per witness who has another hash of the manifest."""
    for witness, told in witnesses.items():
        if told != digest:
            yield f"{manifest}: is not what was written (sha256 {digest[:12]}…, and {told[:12]}… by {witness})"
