"""Upkeep of records: accepting, verifying and pruning them.

A record goes in steps that can be cut short anywhere: its runs, then the record whole, then its receipt. Whatever was
not reached is found again the next time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rankledger.pipeline.config.paths import parse_reference
from rankledger.pipeline.config.schema import Tracking, load
from rankledger.pipeline.data.cache import OutputCache
from rankledger.pipeline.errors import InputError, likely
from rankledger.pipeline.record.accepted import ACCEPTED, config_of, digest_of, read_accepted, write_accepted
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.integrity import damaged_files, unexpected_files
from rankledger.pipeline.record.lookup import RecordEntry, damage, failures_of
from rankledger.pipeline.record.receipts import Receipt, forget_own, read_receipt, receipt_name
from rankledger.pipeline.record.retention import (
    begun,
    clear_left_behind,
    clear_leftovers,
    reasons_to_stay,
    stored_records,
)
from rankledger.pipeline.record.store import Records, open_records
from rankledger.pipeline.support.environment import person
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.tracking.payload import TrackingError
from rankledger.pipeline.types.checks import PrunedRecord, PruneResult
from rankledger.pipeline.types.manifest import MANIFEST
from rankledger.pipeline.types.results import Acceptance, Record
from rankledger.pipeline.workflow.browse import record_to_show, resolve_record
from rankledger.pipeline.workflow.tracking import Stores, open_existing_store, open_for_reading, tracking_of
from rankledger.pipeline.workflow.workspace import Workspace

__all__ = ["Accepted", "Verification", "accept", "prune", "verify"]


@dataclass(frozen=True)
class Accepted:
    """What was accepted.

    Attributes:
        file: where it was written.
        entries: by model.
        replaced: by model, what was accepted before; models without one are left out.
    """

    file: Path
    entries: Mapping[str, Acceptance]
    replaced: Mapping[str, Acceptance]


def accept(
    record: str,
    *,
    models: Sequence[str] = (),
    reason: str,
    name: str | None = None,
    config: str | Path | None = None,
    runs_dir: str | Path = "runs",
    records: str | None = None,
) -> Accepted:
    """Accept a record as what its models are held against by `accepted`; other entries of the file stay.

    Args:
        record: an id, a path, `last`, `last_passed`, `previous` or `mlflow:RUN_ID`, with or without `#model`; a model
            that it names is accepted.
        models: further models it is accepted for; all of the record unless one is named.
        reason: why.
        name: the evaluation that the words refer to; the only one that has records unless given.
        config: the config beside which `accepted.yaml` lies; the one that was evaluated unless given.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.

    Raises:
        InputError: there is no such record or model, an output of the model failed, the record has changed, the
            reason is empty, or a later record that may be meant is damaged.
        OSError: the file cannot be written; it stays as it was.
    """
    if not reason.strip():
        raise InputError("the reason is empty; say in --reason why the record is accepted")
    kept = open_records(Path(runs_dir), records)
    path = kept.find(record)
    found, lost = (read_record(path), ()) if path else record_to_show(record, name, kept, runs_dir, tracking_uri=None)
    if lost:
        advice = f"restore it, or name the record to accept by its id, such as {found.path.name}"
        raise InputError(f"{record}: a later record is damaged ({lost[0]}); {advice}")
    if changed := damage(found):
        raise InputError(changed)
    named = None if path else parse_reference(record, ()).model
    accepted_models = _choose(found, [*models, *([named] if named else [])])
    beside = _config_of(found, config).parent
    entry = Acceptance(
        record=found.manifest.evaluation_id,
        manifest_sha256=digest_of(found.path),
        reason=reason.strip(),
        accepted=datetime.now(UTC).date().isoformat(),
        by=person(beside),
    )
    name, file = found.manifest.name, beside / ACCEPTED
    before = read_accepted(file)
    known = before.get(name, {})
    write_accepted(file, {**before, name: {**known, **dict.fromkeys(accepted_models, entry)}})
    return Accepted(
        file=file,
        entries=dict.fromkeys(accepted_models, entry),
        replaced={model: known[model] for model in accepted_models if model in known},
    )


def _choose(record: Record, models: Sequence[str]) -> list[str]:
    """The models to accept the record for; each was evaluated wherever it should have been."""
    known = list(record.manifest.models)
    for model in models:
        if model not in known:
            raise InputError(f"{record.path}: has no model {model!r}{likely(model, known)}; it has {', '.join(known)}")
    chosen = list(dict.fromkeys(models)) or known
    for model in chosen:
        failures = failures_of(record, model)
        if failures:
            advice = "accept another record, or name the models that were evaluated with --model"
            raise InputError(f"{record.path}: {model!r} was not evaluated on {failures[0]}; {advice}")
    return chosen


def _config_of(record: Record, config: str | Path | None) -> Path:
    """The config beside which the file lies."""
    path = Path(config) if config else config_of(record)
    if not path.is_file():
        named = f"{path}: there is no such config" if path.name else f"{record.path}: does not say what was evaluated"
        raise InputError(f"{named}; name the config with --config, beside which {ACCEPTED} is kept")
    return path


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
    workspace = Workspace.open(runs_dir, records, tracking_uri)
    kept = workspace.records
    found = resolve_record(record, kept, workspace.runs_dir, tracking_uri)
    digest = digest_of(found.path)
    receipt = _receipt(found, kept)
    witnesses = {} if receipt is None else {"its receipt": receipt.manifest_sha256}
    faults = [*damaged_files(found), *unexpected_files(found)]
    remarks: list[str] = []
    if tracking and not faults:  # a config that was changed might name any store
        try:
            witnesses |= _logged(found, workspace)
        except InputError as error:
            remarks += error.lines
    faults += _denied(found.path / MANIFEST, digest, witnesses)
    if faults:
        raise InputError(*faults)
    return Verification(found.path, len(found.manifest.files) + 1, tuple(witnesses), tuple(remarks))


def _receipt(record: Record, kept: Records) -> Receipt | None:
    """The receipt where records are kept, or beside a record that lies elsewhere."""
    evaluation_id = record.manifest.evaluation_id
    return read_receipt(kept, evaluation_id) or read_receipt(Records(record.path.parent), evaluation_id)


def _logged(record: Record, workspace: Workspace) -> dict[str, str]:
    """The hash of the manifest that the evaluation's own run of MLflow has.

    Raises:
        InputError: there is no such store, it cannot be reached, or the environment does not say where it is.
    """
    tracking = tracking_of(record.path, workspace.runs_dir, uri=workspace.tracking_uri)
    evaluation_id, name = record.manifest.evaluation_id, record.manifest.name
    with open_for_reading(tracking, workspace.runs_dir) as store:
        found = store.ask("logged_digests", evaluation_id=evaluation_id, name=name)
    return {f"the run {run_id} of MLflow": digest for run_id, digest in found.items()}


def _denied(manifest: Path, digest: str, witnesses: Mapping[str, str]) -> Iterator[str]:
    """A line per witness who has another hash of the manifest."""
    for witness, told in witnesses.items():
        if told != digest:
            yield f"{manifest}: is not what was written (sha256 {digest[:12]}…, and {told[:12]}… by {witness})"


_NO_CONFIG = "the config that says what is accepted is not here; name it with --config"
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_CUT_SHORT = timedelta(days=1)  # after which nobody is still at work on what is half written or half deleted


def prune(
    *,
    keep_days: int,
    delete: bool = False,
    tracking: bool = True,
    configs: Sequence[str | Path] = (),
    runs_dir: str | Path = "runs",
    records: str | None = None,
    tracking_uri: str | None = None,
    now: datetime | None = None,
) -> PruneResult:
    """Delete what is old and not needed any more, or say what that would be.

    Args:
        keep_days: records of fewer days stay, and files of the output cache that were used since then.
        delete: whether to delete anything.
        tracking: whether the runs of MLflow go, too.
        configs: configs of the same name as those that were evaluated, beside which a list of what is accepted lies,
            too.
        runs_dir: the runs folder.
        records: where records are kept; in the runs folder unless given.
        tracking_uri: the tracking store of the runs; that of each record's config unless given.
        now: the moment from which days are counted.

    Raises:
        InputError: a list of what is accepted cannot be read, nor a config that is named, nor what a record that
            stays was held against.
        OSError: something cannot be deleted, or the place of records cannot be reached.
    """
    now = now or datetime.now(UTC)
    before = now - timedelta(days=min(keep_days, (now - _FIRST).days))
    workspace = Workspace.open(runs_dir, records, tracking_uri)
    kept = workspace.records
    going, stays = _sorted_out(kept, before, configs, tracking=tracking)
    failures: list[str] = []
    if delete:
        with Stores(open_existing_store, workspace.runs_dir) as stores:
            deleting = _Deleting(workspace, stores)
            going = [found for found in each("Deleting", going, len(going), "records") if deleting.delete(found)]
        failures = deleting.failures
        clear_left_behind(kept, workspace.runs_dir)
        clear_leftovers(kept, before=now - _CUT_SHORT)
    cached = [*_sizes(workspace.cache, before)]
    for path, _ in cached if delete else ():
        path.unlink(missing_ok=True)
    return PruneResult(before, delete, tuple(going), len(cached), sum(n for _, n in cached), stays, tuple(failures))


def _sorted_out(
    records: Records, before: datetime, configs: Sequence[str | Path], *, tracking: bool
) -> tuple[list[PrunedRecord], Counter[str]]:
    """The old records that go, the oldest first, and how many stay, by the reason."""
    stored = [*stored_records(records)]
    reasons = reasons_to_stay(stored, records, before=before, accepted=_accepted(stored, configs))
    named = {load(config, ["tracking="]).config.name for config in configs}
    going = []
    for found in reversed(stored):
        if begun(found.evaluation_id) >= before or found.evaluation_id in reasons:
            continue
        if found.name not in named and not config_of(found.record).is_file():
            reasons[found.evaluation_id] = _NO_CONFIG
            continue
        receipt = read_receipt(records, found.evaluation_id) if tracking else None
        going.append(PrunedRecord(found.evaluation_id, found.size, _runs_of(receipt)))
    return going, Counter(reasons.values())


def _accepted(stored: Sequence[RecordEntry], configs: Sequence[str | Path]) -> set[str]:
    """The ids of all records that are accepted beside any config."""
    beside = {config_of(found.record).parent for found in stored} | {Path(config).parent for config in configs}
    lists = [read_accepted(folder / ACCEPTED) for folder in sorted(beside)]
    return {entry.record for entries in lists for models in entries.values() for entry in models.values()}


def _runs_of(receipt: Receipt | None) -> tuple[str, ...]:
    """The models' runs, and last the evaluation's own: what is cut short leaves the one that has the record."""
    return () if receipt is None else (*(run["run_id"] for run in receipt.runs), receipt.run_id)


class _Deleting:
    """Deletes records with their runs."""

    def __init__(self, workspace: Workspace, stores: Stores) -> None:
        self.failures: list[str] = []
        self._workspace = workspace
        self._stores = stores

    def delete(self, going: PrunedRecord) -> bool:
        """Delete a record and its runs; whether it is gone. It stays where MLflow cannot be told."""
        try:
            if going.run_ids:
                self._delete_runs(going)
        except (InputError, TrackingError, OSError) as error:
            self.failures.append(f"{going.evaluation_id} stays: {error}")
            return False
        self._workspace.records.delete(going.evaluation_id)
        self._workspace.records.forget(receipt_name(going.evaluation_id))
        with suppress(OSError):  # without the record it says nothing
            forget_own(going.evaluation_id)
        return True

    def _delete_runs(self, going: PrunedRecord) -> None:
        """Delete the runs of a record.

        Raises:
            InputError: there is no such store, or the environment does not say where it is.
            TrackingError: it cannot be reached, or refuses.
        """
        with self._stores.at(self._tracking(going.evaluation_id)) as store:
            store.ask("delete_runs", run_ids=going.run_ids)

    def _tracking(self, evaluation_id: str) -> Tracking:
        """Where the runs of a record are: as its config says, or the command."""
        if self._workspace.tracking_uri:
            return Tracking(uri=self._workspace.tracking_uri)
        path = self._workspace.records.fetch(evaluation_id)
        if path is None:
            raise InputError("it is not there any more")
        return tracking_of(path, self._workspace.runs_dir)


def _sizes(store: OutputCache, before: datetime) -> Iterator[tuple[Path, int]]:
    for path in store.unused_since(before):
        with suppress(FileNotFoundError):  # another process may delete it, too
            yield path, path.stat().st_size
