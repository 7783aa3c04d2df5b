"""Which records may be deleted: those that are old and that nothing refers to; and what killed processes left behind.

What stays, though it is old:

- what is accepted, for models are compared with it;
- what a record that stays for another reason held a model against, be the verdict waived or not. A record that stays
  for this reason alone keeps none: `last_passed` makes a chain of all nights, which would never end;
- what has not been delivered yet, to MLflow or to where records are kept;
- what is kept at a place that was not named, where alone it is known whether it is whole there;
- the last of each evaluation, which the next night looks back on;
- what cannot be known: a record whose manifest cannot be read is not ours to delete.
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
    """Every record whose manifest can be read, the last night first.

    Raises:
        OtherSchemaError: another version wrote one: what it was compared with is not known.
        OSError: the place elsewhere cannot be reached.
    """
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
    """Why records stay that began before a moment, by their ids; those that may go are left out.

    Args:
        stored: all records, the last night first.
        records: where they are kept.
        before: the moment.
        accepted: the ids of records that are accepted.

    Raises:
        InputError: a receipt is not what was written.
        OSError: the place elsewhere cannot be reached.
    """
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
    """Delete records without a manifest from a remote store, which a writer or deleter left that was cut short.

    A record that is not here is not being uploaded from here, and one that another machine uploads has new files.

    Args:
        records: where records are kept.
        before: the moment before which all files of such a record were written.

    Raises:
        OSError: something cannot be deleted, or the store cannot be reached.
    """
    if (remote := records.remote) is None:
        return
    for evaluation_id in remote.folders():
        if not is_evaluation_id(evaluation_id) or (records.folder / evaluation_id).is_dir():
            continue
        is_whole = remote.has(f"{evaluation_id}/{MANIFEST}")
        if not is_whole and all(written < before for written in remote.written(evaluation_id)):
            remote.delete_folder(evaluation_id)


def _last_records(stored: Iterable[RecordEntry], records: Records) -> set[str]:
    """The last record of each evaluation and, if it is damaged, the last whole one; what repeats is no new one."""
    last: set[str] = set()
    known: set[str] = set()
    for found in stored:
        if not found.manifest.repeats and found.manifest.name not in known:
            last.add(found.evaluation_id)
            if not records.has_here(found.evaluation_id) or not any(damaged_files(found.record)):
                known.add(found.manifest.name)
    return last


def _is_undelivered(found: RecordEntry, records: Records) -> bool:
    wanted = found.manifest.tracking.wanted
    if wanted and read_receipt(records, found.evaluation_id) is None:
        return True
    return records.remote is not None and not records.remote.has(f"{found.evaluation_id}/{MANIFEST}")


def _held_against(found: RecordEntry) -> Iterator[str]:
    for models in found.manifest.baselines.values():
        yield from (held.record for held in models.values() if held.record is not None)
