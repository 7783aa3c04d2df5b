"""Deletion of old records, their MLflow runs and unused cache. It can stop anywhere, and the next call continues.

These old records stay:

- accepted ones, because models are compared with them
- references of gates in records that stay for another reason, or `last_passed` would chain all nights
- those that are not delivered yet, to MLflow or the remote store
- those at a place that was not named, which alone knows whether they are whole there
- the last of each evaluation, which the next night looks back on
- those whose manifest cannot be read, because nothing is known of them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rankledger.pipeline.config.schema import Tracking, load
from rankledger.pipeline.history.lookup import ACCEPTED, read_accepted
from rankledger.pipeline.record.folder import RecordEntry, config_of
from rankledger.pipeline.record.manifest import MANIFEST, OtherSchemaError, begun, is_evaluation_id, rank_night
from rankledger.pipeline.record.mlflow_stores import Stores, open_existing_store, tracking_of
from rankledger.pipeline.record.receipts import clear_left_behind, read_receipt
from rankledger.pipeline.record.store import Records, forget_own
from rankledger.pipeline.record.tables import damaged_files
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.report.text_table import byte_size
from rankledger.pipeline.support.errors import InputError, TrackingError
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.support.text import counted

_NO_CONFIG = "the config with the accepted records was not found; name it with --config"
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_CUT_SHORT = timedelta(days=1)  # after which nobody is still at work on what is half written or half deleted


def pruning_lines(pruning: PruneResult) -> Iterator[str]:
    """Yield a line per record to delete, the totals, and the old records that stay."""
    for record in pruning.records:
        yield f"{record['evaluation_id']}  {byte_size(record['size'])}, {counted(len(record['run_ids']), 'run')}"
    verb = "deleted" if pruning.done else "would delete"
    size = byte_size(sum(record["size"] for record in pruning.records))
    n_runs = sum(len(record["run_ids"]) for record in pruning.records)
    since = f"{pruning.before:%Y-%m-%d %H:%M} UTC"
    yield f"{verb} {counted(len(pruning.records), 'record')} from before {since}, {size}, {counted(n_runs, 'run')}"
    cached, size = counted(pruning.n_cached, "file"), byte_size(pruning.n_cached_bytes)
    yield f"{verb} {cached} of the output cache not used since, {size}"
    for reason, n_records in pruning.stays.items():
        yield f"{counted(n_records, 'older record')} stay{'s' * (n_records == 1)}: {reason}"
    if not pruning.done and (pruning.records or pruning.n_cached):
        yield "nothing is deleted yet; add --yes"


@dataclass(frozen=True)
class PruneResult:
    """Records that are or would be deleted.

    Attributes:
        before: Time limit of the deletion.
        done: True if they were deleted, False if they would be.
        records: Records, the oldest first. A dictionary each: `evaluation_id`, `size` (bytes of its files) and
            `run_ids` (MLflow runs that are deleted with it).
        n_cached: Files of the output cache.
        n_cached_bytes: Bytes of these files.
        stays: Number of old records that stay, by reason.
        failures: Reasons why records could not be deleted.
    """

    before: datetime
    done: bool
    records: tuple[Mapping[str, Any], ...]
    n_cached: int
    n_cached_bytes: int
    stays: Mapping[str, int]
    failures: tuple[str, ...] = ()


def stored_records(records: Records) -> tuple[list[RecordEntry], dict[str, str]]:
    """Return the readable records, the last night first and the future last, and by id why others are not."""
    entries = [RecordEntry(records, evaluation_id) for evaluation_id in records.ids()]
    readable, unreadable = [], {}
    for entry in each("Reading records", entries, len(entries), "records"):
        try:
            _ = entry.manifest
            readable.append(entry)
        except OtherSchemaError:
            raise
        except InputError as error:
            unreadable[entry.evaluation_id] = str(error)
    now = datetime.now(UTC)
    return sorted(readable, key=lambda entry: rank_night(entry.manifest.order, now), reverse=True), unreadable


def reasons_to_stay(
    stored: Iterable[RecordEntry], records: Records, *, before: datetime, accepted: Collection[str]
) -> dict[str, str]:
    """Return why records that began before a moment stay, by id. Those that may be deleted are left out."""
    all_ = list(stored)
    old = [found for found in all_ if begun(found.evaluation_id) < before]
    last = _last_records(all_, records)
    reasons: dict[str, str] = {}
    for found in old:
        if found.evaluation_id in accepted:
            reasons[found.evaluation_id] = "accepted"
        elif found.evaluation_id in last:
            reasons[found.evaluation_id] = "the last of its evaluation"
        elif found.path.is_symlink():
            reasons[found.evaluation_id] = f"{found.path} is a link. Remove the link"
        elif records.remote is None and found.manifest.records:
            reasons[found.evaluation_id] = "stored remotely; name the store with --records"
        elif _is_undelivered(found, records):
            reasons[found.evaluation_id] = "not delivered yet"
    going = {found.evaluation_id for found in old} - reasons.keys()
    staying = [found for found in all_ if found.evaluation_id not in going]
    needed = {evaluation_id for found in staying for evaluation_id in _held_against(found)}
    return reasons | dict.fromkeys(sorted(going & needed), "baseline of a record that stays")


def clear_leftovers(records: Records, *, before: datetime) -> None:
    """Delete old records without a manifest from a remote store, left by an interrupted process."""
    if (remote := records.remote) is None:
        return
    for evaluation_id in remote.folders():
        if not is_evaluation_id(evaluation_id) or (records.folder / evaluation_id).is_dir():
            continue
        is_whole = remote.has(f"{evaluation_id}/{MANIFEST}")
        if not is_whole and all(written < before for written in remote.written(evaluation_id)):
            remote.delete_folder(evaluation_id)


def _last_records(stored: Iterable[RecordEntry], records: Records) -> set[str]:
    last: set[str] = set()
    known: set[str] = set()
    for found in stored:
        if not found.manifest.repeats and found.manifest.name not in known:
            last.add(found.evaluation_id)
            if not records.has_here(found.evaluation_id) or not any(damaged_files(found.record)):
                known.add(found.manifest.name)
    return last


def _is_undelivered(found: RecordEntry, records: Records) -> bool:
    try:
        if found.manifest.is_tracked and read_receipt(records, found.evaluation_id) is None:
            return True
    except InputError:  # not the record's own receipt
        return True
    return records.remote is not None and not records.remote.has(f"{found.evaluation_id}/{MANIFEST}")


def _held_against(found: RecordEntry) -> Iterator[str]:
    for models in found.manifest.baselines.values():
        yield from (held.record for held in models.values() if held.record is not None)


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
    """Delete, or list, old records and cached files that nothing needs.

    Args:
        keep_days: Keep records newer than this many days, and cached files used since then.
        delete: True deletes them.
        tracking: True deletes the MLflow runs, too.
        configs: Further configs of the evaluations. Records in their lists of accepted records are kept.
        runs_dir: Runs folder.
        records: Records location, by default as in the evaluated config.
        tracking_uri: Tracking store of the runs. By default the one in each record's config.
        now: Time from which days are counted.

    Raises:
        InputError: A list of accepted records, a config, or a record that a kept one was compared with cannot be read.
        OSError: A file cannot be deleted, or the records location cannot be reached.
    """
    now = now or datetime.now(UTC)
    before = now - timedelta(days=min(keep_days, (now - _FIRST).days))
    if records is None and len(configs) == 1:
        records = str(configs[0])
    workspace = Workspace.open(runs_dir, records, tracking_uri, wanted="" if records else None)
    going, stays = _sorted_out(workspace, before, configs, tracking=tracking)
    failures: list[str] = []
    if delete:
        with Stores(open_existing_store, workspace) as stores:
            progress = each("Deleting", going, len(going), "records")
            going = [
                found
                for found in progress
                if _delete(found["evaluation_id"], found["run_ids"], workspace, stores, failures)
            ]
        clear_left_behind(workspace.records, workspace.runs_dir)
        clear_leftovers(workspace.records, before=now - _CUT_SHORT)
    sizes = []
    for path in workspace.cache.unused_since(before):
        with suppress(FileNotFoundError):  # another process may delete it, too
            sizes.append(path.stat().st_size)
        if delete:
            path.unlink(missing_ok=True)
            for folder in path.parents[:2]:  # nothing may be left in them
                with suppress(OSError):
                    folder.rmdir()
    return PruneResult(before, delete, tuple(going), len(sizes), sum(sizes), stays, tuple(failures))


def _sorted_out(
    workspace: Workspace, before: datetime, configs: Sequence[str | Path], *, tracking: bool
) -> tuple[list[dict[str, Any]], Counter[str]]:
    records = workspace.records
    stored, unreadable = stored_records(records)
    beside = {config_of(found.record).parent for found in stored} | {Path(config).parent for config in configs}
    lists = [read_accepted(folder / ACCEPTED) for folder in sorted(beside)]
    accepted = {entry.record for entries in lists for models in entries.values() for entry in models.values()}
    reasons = reasons_to_stay(stored, records, before=before, accepted=accepted)
    named = {load(config, ["tracking=", "notify="]).config.name for config in configs}
    going = []
    for found in reversed(stored):
        if begun(found.evaluation_id) >= before or found.evaluation_id in reasons:
            continue
        if found.manifest.name not in named and not config_of(found.record).is_file():
            reasons[found.evaluation_id] = _NO_CONFIG
            continue
        receipt = read_receipt(records, found.evaluation_id) if tracking else None
        # the evaluation's own run is the last: what is cut short leaves the one that has the record
        runs = () if receipt is None else (*(run["run_id"] for run in receipt.runs), receipt.run_id)
        going.append({"evaluation_id": found.evaluation_id, "size": found.size, "run_ids": runs})
    return going, Counter([*reasons.values(), *unreadable.values()])


def _delete(
    evaluation_id: str, run_ids: Sequence[str], workspace: Workspace, stores: Stores, failures: list[str]
) -> bool:
    """Delete a record and its runs. Return False if they cannot be deleted."""
    try:
        if run_ids:
            with stores.at(_tracking(evaluation_id, workspace)) as store:
                store.ask("delete_runs", evaluation_id=evaluation_id, run_ids=run_ids)
    except (InputError, TrackingError, OSError) as error:
        failures.append(f"{evaluation_id} stays: {error}; use --no-tracking to prune without MLflow")
        return False
    try:
        workspace.records.delete(evaluation_id)
    except OSError as error:
        if error.filename == workspace.records.place:  # as it would for all the others
            raise
        failures.append(f"{evaluation_id} is not deleted: {workspace.records.describe_error(error)}")
        return False
    with suppress(OSError):  # without the record it says nothing
        forget_own(evaluation_id)
    return True


def _tracking(evaluation_id: str, workspace: Workspace) -> Tracking:
    if workspace.tracking_uri:
        return Tracking(uri=workspace.tracking_uri)
    path = workspace.records.fetch(evaluation_id)
    if path is None:
        raise InputError("it is not there any more")
    return tracking_of(path, workspace)
