"""Old records, the runs that MLflow has of them, and what the block store has not been asked for: deleted, or told.

A record goes in steps that can be cut short anywhere: its runs, then the record whole, then its receipt. Whatever was
not reached is found again the next time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipeline.blocks import BlockStore
from pipeline.config.sections import Tracking, load
from pipeline.errors import InputError
from pipeline.progress import each
from pipeline.pruning import Going, Pruning
from pipeline.record import Records, open_records
from pipeline.record.acceptance import ACCEPTED, config_of, read_accepted
from pipeline.record.browsing import Entry
from pipeline.record.own import forget_own
from pipeline.record.receipts import Receipt, read_receipt, receipt_name
from pipeline.record.retention import begun, clear_leftovers, reasons_to_stay, stored_records
from pipeline.tracking.names import TrackingError
from pipeline.workflow.leftovers import clear_left_behind
from pipeline.workflow.tracking import Stores, open_existing_store, tracking_of

__all__ = ["prune"]

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
) -> Pruning:
    """Delete what is old and not needed any more, or say what that would be.

    Args:
        keep_days: records of fewer days stay, and blocks that were used since then.
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
    kept, store = open_records(Path(runs_dir), records), BlockStore(Path(runs_dir) / "blocks")
    going, stays = _sorted_out(kept, before, configs, tracking=tracking)
    failures: list[str] = []
    if delete:
        with Stores(open_existing_store, Path(runs_dir)) as stores:
            deleting = _Deleting(kept, Path(runs_dir), stores, tracking_uri)
            going = [found for found in each("Deleting", going, len(going), "records") if deleting.delete(found)]
        failures = deleting.failures
        clear_left_behind(kept, Path(runs_dir))
        clear_leftovers(kept, before=now - _CUT_SHORT)
    blocks = [*_sizes(store, before)]
    for path, _ in blocks if delete else ():
        path.unlink(missing_ok=True)
    return Pruning(before, delete, tuple(going), len(blocks), sum(n for _, n in blocks), stays, tuple(failures))


def _sorted_out(
    records: Records, before: datetime, configs: Sequence[str | Path], *, tracking: bool
) -> tuple[list[Going], Counter[str]]:
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
        going.append(Going(found.evaluation_id, found.size, _runs_of(receipt)))
    return going, Counter(reasons.values())


def _accepted(stored: Sequence[Entry], configs: Sequence[str | Path]) -> set[str]:
    """The ids of all records that are accepted beside any config."""
    beside = {config_of(found.record).parent for found in stored} | {Path(config).parent for config in configs}
    lists = [read_accepted(folder / ACCEPTED) for folder in sorted(beside)]
    return {entry.record for entries in lists for models in entries.values() for entry in models.values()}


def _runs_of(receipt: Receipt | None) -> tuple[str, ...]:
    """The models' runs, and last the evaluation's own: what is cut short leaves the one that has the record."""
    return () if receipt is None else (*(run["run_id"] for run in receipt.runs), receipt.run_id)


class _Deleting:
    """Deletes records with their runs."""

    def __init__(self, records: Records, runs_dir: Path, stores: Stores, tracking_uri: str | None) -> None:
        self.failures: list[str] = []
        self._records = records
        self._runs_dir = runs_dir
        self._stores = stores
        self._tracking_uri = tracking_uri

    def delete(self, going: Going) -> bool:
        """Delete a record and its runs; whether it is gone. It stays where MLflow cannot be told."""
        try:
            if going.run_ids:
                self._delete_runs(going)
        except (InputError, TrackingError, OSError) as error:
            self.failures.append(f"{going.evaluation_id} stays: {error}")
            return False
        self._records.delete(going.evaluation_id)
        self._records.forget(receipt_name(going.evaluation_id))
        with suppress(OSError):  # without the record it says nothing
            forget_own(going.evaluation_id)
        return True

    def _delete_runs(self, going: Going) -> None:
        """Delete the runs of a record.

        Raises:
            InputError: there is no such store, or the environment does not say where it is.
            TrackingError: it cannot be reached, or refuses.
        """
        with self._stores.at(self._tracking(going.evaluation_id)) as store:
            store.ask("delete_runs", run_ids=going.run_ids)

    def _tracking(self, evaluation_id: str) -> Tracking:
        """Where the runs of a record are: as its config says, or the command."""
        if self._tracking_uri:
            return Tracking(uri=self._tracking_uri)
        path = self._records.fetch(evaluation_id)
        if path is None:
            raise InputError("it is not there any more")
        return tracking_of(path, self._runs_dir)


def _sizes(store: BlockStore, before: datetime) -> Iterator[tuple[Path, int]]:
    for path in store.unused_since(before):
        with suppress(FileNotFoundError):  # another process may delete it, too
            yield path, path.stat().st_size
