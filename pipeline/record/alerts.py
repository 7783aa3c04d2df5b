"""Log of an evaluation's alerts, `.state/alerts/NAME.json`: what each target is due, and receipts of what arrived.

An attempt is written down before it begins. So whoever finds it without its receipt knows that it may have arrived, and
marks what is sent again. Where records are kept elsewhere, a conditional write decides between machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rankledger.pipeline.record.entries import RecordEntry
from rankledger.pipeline.record.store import STATE, Records, json_file, read_json_file
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.types.alerts import AlertLog, NightState, state_of


def read_log(records: Records, name: str) -> AlertLog | None:
    """The log of alerts of an evaluation; None if there is none.

    Raises:
        InputError: it is not what was written.
        OSError: it cannot be read.
    """
    return _read(records, name)[1]


def change_log(records: Records, name: str, change: Callable[[AlertLog], AlertLog]) -> AlertLog:
    """Change the log of an evaluation; gives it as it is then.

    Args:
        records: where records are kept.
        name: the evaluation's name.
        change: gives the new log; called again if another process wrote the log meanwhile.

    Raises:
        InputError: the log is not what was written.
        OSError: it cannot be read or written.
    """
    while True:
        seen, before = _read(records, name)
        after = change(before or AlertLog())
        if after == before:
            return after
        data = json_file(after)
        written = records.create(_file(name), data) if seen is None else records.replace(_file(name), data, seen)
        if written:
            return after


def new_nights(records: Records, name: str, latest: NightState | None) -> tuple[list[NightState], NightState | None]:
    """The nights that began after the latest that was looked at, in their order; and what to hold the first against.

    Records that cannot be read are passed over, and so are those whose alerts were not asked for. The last of these
    before the others is what the first is held against, if nothing was looked at yet.

    Args:
        records: where records are kept.
        name: the evaluation's name.
        latest: the latest night that was looked at; None for none.

    Raises:
        OSError: the place elsewhere cannot be reached.
    """
    nights: list[NightState] = []
    others: list[NightState] = []
    since = None if latest is None else latest.order[1]
    for alerts, night in _nights(records, name):
        if since is not None and night.order[1] <= since:
            break
        (nights if alerts else others).append(night)
    nights.sort(key=lambda night: night.order)
    earlier = [night for night in others if nights and night.order < nights[0].order]
    return nights, max(earlier, key=lambda night: night.order, default=None)


def _nights(records: Records, name: str) -> Iterator[tuple[bool, NightState]]:
    """Whether alerts of a night were asked for, and its state; the last that began comes first."""
    for evaluation_id in records.ids(name):
        entry = RecordEntry(records, evaluation_id)
        try:
            manifest = entry.manifest
            if manifest.date is None or manifest.repeats is not None:
                continue
            state = state_of(entry.record.verdicts, manifest.failures, manifest.warnings)
        except InputError:
            continue
        yield manifest.alerts, NightState(evaluation_id, manifest.date, manifest.created, state)


def _read(records: Records, name: str) -> tuple[bytes | None, AlertLog | None]:
    return read_json_file(records, _file(name), AlertLog, "log of alerts") or (None, None)


def _file(name: str) -> str:
    return f"{STATE}/alerts/{name}.json"
