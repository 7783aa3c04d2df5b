"""Which records may go: those that are old, and that nothing asks for any more.

What stays, though it is old:

- what is accepted, for models are held against it;
- what a record that stays for another reason held a model against, be the verdict waived or not. A record that stays
  for this reason alone keeps none: `latest` makes a chain of all nights, which would never end;
- what has not been delivered yet, to MLflow or to where records are kept;
- what is kept at a place that was not named, where alone it is known whether it is whole there;
- the newest of each evaluation, which the next night looks back on;
- what cannot be told: a record of which the manifest cannot be read is none of ours.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from pipeline.errors import InputError
from pipeline.progress import each
from pipeline.record.browsing import UNREADABLE, Entry
from pipeline.record.receipts import read_receipt, receipt_name
from pipeline.record.remote import Remote
from pipeline.record.store import Records, is_evaluation_id

__all__ = [
    "ACCEPTED",
    "ELSEWHERE",
    "HELD_AGAINST",
    "NEWEST",
    "UNDELIVERED",
    "begun",
    "clear_leftovers",
    "reasons_to_stay",
    "stored_records",
]

ACCEPTED = "accepted"
HELD_AGAINST = "held against by a record that stays"
NEWEST = "the newest of its evaluation"
UNDELIVERED = "not delivered yet"
ELSEWHERE = "kept elsewhere; name the place with --records"


def stored_records(records: Records) -> Iterator[Entry]:
    """Every record whose manifest can be read, the newest first.

    Raises:
        InputError: a later version wrote one: what it was held against is not known.
        OSError: the place elsewhere cannot be reached.
    """
    ids = records.ids()
    for evaluation_id in each("Reading records", ids, len(ids), "records"):
        entry = Entry(records, evaluation_id)
        try:  # whatever is asked of it below
            (
                begun(evaluation_id),
                entry.name,
                entry.size,
                entry.manifest["repeats"],
                entry.manifest["tracking"]["wanted"],
            )
        except UNREADABLE:
            continue
        yield entry


def begun(evaluation_id: str) -> datetime:
    """When an evaluation began, by its id."""
    return datetime.strptime(evaluation_id.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def reasons_to_stay(
    stored: Iterable[Entry], records: Records, *, before: datetime, accepted: Collection[str]
) -> dict[str, str]:
    """Why records stay that began before a moment, by their ids; those that may go are left out.

    Args:
        stored: all records, the newest first.
        records: where they are kept.
        before: the moment.
        accepted: the ids of records that are accepted.

    Raises:
        InputError: what a record that stays was held against cannot be read.
        OSError: the place elsewhere cannot be reached.
    """
    all_ = list(stored)
    old = [found for found in all_ if begun(found.evaluation_id) < before]
    newest = _newest(all_)
    reasons: dict[str, str] = {}
    for found in old:
        if found.evaluation_id in accepted:
            reasons[found.evaluation_id] = ACCEPTED
        elif found.evaluation_id in newest:
            reasons[found.evaluation_id] = NEWEST
        elif records.remote is None and found.manifest.get("records"):
            reasons[found.evaluation_id] = ELSEWHERE
        elif _is_undelivered(found, records):
            reasons[found.evaluation_id] = UNDELIVERED
    going = {found.evaluation_id for found in old} - reasons.keys()
    staying = [found for found in all_ if found.evaluation_id not in going]
    needed = {evaluation_id for found in staying for evaluation_id in _held_against(found)}
    return reasons | dict.fromkeys(sorted(going & needed), HELD_AGAINST)


def clear_leftovers(records: Records, *, before: datetime) -> None:
    """Delete what writers and deleters left that were cut short before a moment.

    That is folders and files of temporary names, records elsewhere that have lost their manifest, and receipts of
    records that are gone.

    Raises:
        OSError: something cannot be deleted, or the place elsewhere cannot be reached.
    """
    for path in records.folder.glob(".*.partial"):
        with contextlib.suppress(FileNotFoundError):  # another process may do the same
            if path.stat().st_mtime < before.timestamp():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    if records.remote is None:
        for path in records.folder.glob(receipt_name("*")):
            if not (records.folder / path.name.removesuffix(receipt_name(""))).is_dir():
                path.unlink(missing_ok=True)
    else:
        _clear_elsewhere(records, records.remote, before)


def _clear_elsewhere(records: Records, remote: Remote, before: datetime) -> None:
    """What is not here is not being uploaded from here; and what another machine uploads has files that are new."""
    for evaluation_id in remote.folders():
        if not is_evaluation_id(evaluation_id) or (records.folder / evaluation_id).is_dir():
            continue
        is_whole = remote.has(f"{evaluation_id}/manifest.json")
        if not is_whole and all(written < before for written in remote.written(evaluation_id)):
            remote.delete_folder(evaluation_id)
            remote.delete(receipt_name(evaluation_id))


def _newest(stored: Iterable[Entry]) -> set[str]:
    """The newest record of each evaluation; one that repeats another is no new one."""
    newest: dict[str, str] = {}
    for found in stored:
        if not found.manifest["repeats"]:
            newest.setdefault(found.name, found.evaluation_id)
    return set(newest.values())


def _is_undelivered(found: Entry, records: Records) -> bool:
    wanted = found.manifest["tracking"]["wanted"]
    if wanted and read_receipt(records, found.evaluation_id) is None:
        return True
    return records.remote is not None and not records.remote.has(f"{found.evaluation_id}/manifest.json")


def _held_against(found: Entry) -> Iterator[str]:
    """The ids of the records that its gates held models against."""
    if "gates.json" not in found.manifest["files"]:
        return
    try:
        gates: dict[str, Any] = json.loads(found.read("gates.json") or b"")
        held = [reference["record"] for models in gates["references"].values() for reference in models.values()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        known = f"{found.path / 'gates.json'}: cannot be read ({error}), and says what stays"
        raise InputError(f"{known}; restore it, or delete that record") from None
    yield from (evaluation_id for evaluation_id in held if evaluation_id is not None)
