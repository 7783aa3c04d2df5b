"""What goes or went with a pruning, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from pipeline.report.sheets import size

__all__ = ["pruning"]


def pruning(
    before: datetime,
    *,
    done: bool,
    records: Sequence[tuple[str, int, int]],
    n_blocks: int,
    n_block_bytes: int,
    stays: Mapping[str, int],
) -> str:
    """A line per record that goes; then their sum, that of the block store, and what stays though it is old.

    Args:
        before: what is older than this.
        done: whether it was deleted, or would be.
        records: the id, the bytes and the number of runs of each.
        n_blocks: files of the block store.
        n_block_bytes: their bytes.
        stays: how many old records stay, by the reason.
    """
    return "\n".join(_lines(before, done, records, n_blocks, n_block_bytes, stays))


def _lines(
    before: datetime,
    done: bool,
    records: Sequence[tuple[str, int, int]],
    n_blocks: int,
    n_block_bytes: int,
    stays: Mapping[str, int],
) -> Iterator[str]:
    yield from (f"{name}  {size(n_bytes)}, {_number(n_runs, 'run')}" for name, n_bytes, n_runs in records)
    verb = "deleted" if done else "would delete"
    n_bytes, n_runs = sum(n_bytes for _, n_bytes, _ in records), sum(n_runs for _, _, n_runs in records)
    since = f"{before:%Y-%m-%d %H:%M} UTC"
    yield f"{verb} {_number(len(records), 'record')} from before {since}, {size(n_bytes)}, {_number(n_runs, 'run')}"
    yield f"{verb} {_number(n_blocks, 'file')} of the block store not used since, {size(n_block_bytes)}"
    for reason, n_records in stays.items():
        yield f"{_number(n_records, 'older record')} stay{'s' * (n_records == 1)}: {reason}"
    if not done and (records or n_blocks):
        yield "nothing is deleted yet; add --yes"


def _number(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"
