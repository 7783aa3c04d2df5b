"""Select the records that may be deleted, and clean up after killed processes.

These old records stay:

- accepted ones, because models are compared with them
- references of gates in records that stay for another reason, or `last_passed` would chain all nights
- those that are not delivered yet, to MLflow or the remote store
- those at a place that was not named, which alone knows whether they are whole there
- the last of each evaluation, which the next night looks back on
- those whose manifest cannot be read, because nothing is known of them
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

from rankledger.pipeline.record.entries import RecordEntry
from rankledger.pipeline.record.manifest import MANIFEST, OtherSchemaError, begun, is_evaluation_id
from rankledger.pipeline.record.receipts import read_receipt
from rankledger.pipeline.record.store import Records
from rankledger.pipeline.record.tables import damaged_files
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.progress import each

ACCEPTED = "accepted"
_NEEDED = "baseline of a record that stays"
LAST = "the last of its evaluation"
_UNDELIVERED = "not delivered yet"
ELSEWHERE = "stored remotely; name the store with --records"


def stored_records(records: Records) -> Iterator[RecordEntry]:
    """Yield every record whose manifest can be read, the last night first."""
    entries = [RecordEntry(records, evaluation_id) for evaluation_id in records.ids()]
    readable = filter(_can_be_read, each("Reading records", entries, len(entries), "records"))
    yield from sorted(readable, key=lambda entry: entry.manifest.order, reverse=True)


def _can_be_read(entry: RecordEntry) -> bool:
    try:
        _ = entry.manifest
    except OtherSchemaError:
        raise
    except InputError:
        return False
    return True


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
            reasons[found.evaluation_id] = ACCEPTED
        elif found.evaluation_id in last:
            reasons[found.evaluation_id] = LAST
        elif records.remote is None and found.manifest.records:
            reasons[found.evaluation_id] = ELSEWHERE
        elif _is_undelivered(found, records):
            reasons[found.evaluation_id] = _UNDELIVERED
    going = {found.evaluation_id for found in old} - reasons.keys()
    staying = [found for found in all_ if found.evaluation_id not in going]
    needed = {evaluation_id for found in staying for evaluation_id in _held_against(found)}
    return reasons | dict.fromkeys(sorted(going & needed), _NEEDED)


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
    wanted = found.manifest.is_tracked
    if wanted and read_receipt(records, found.evaluation_id) is None:
        return True
    return records.remote is not None and not records.remote.has(f"{found.evaluation_id}/{MANIFEST}")


def _held_against(found: RecordEntry) -> Iterator[str]:
    for models in found.manifest.baselines.values():
        yield from (held.record for held in models.values() if held.record is not None)
