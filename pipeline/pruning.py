"""What a pruning deletes, or would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

__all__ = ["Going", "Pruning"]


@dataclass(frozen=True)
class Going:
    """A record that goes.

    Attributes:
        evaluation_id: its id.
        size: bytes of its files.
        run_ids: the runs of MLflow that go with it.
    """

    evaluation_id: str
    size: int
    run_ids: tuple[str, ...]


@dataclass(frozen=True)
class Pruning:
    """What goes, or went.

    Attributes:
        before: what is older than this.
        done: whether it was deleted, or would be.
        records: the records, the oldest first; of those deleted, the ones that were.
        n_blocks: files of the block store.
        n_block_bytes: their bytes.
        stays: how many old records stay, by the reason.
        failures: why records could not be deleted that should have been.
    """

    before: datetime
    done: bool
    records: tuple[Going, ...]
    n_blocks: int
    n_block_bytes: int
    stays: Mapping[str, int]
    failures: tuple[str, ...] = ()
