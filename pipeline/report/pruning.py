"""What goes or went with a pruning, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.pruning import Pruning
from pipeline.report.sheets import counted, size

__all__ = ["lines"]


def lines(pruning: Pruning) -> Iterator[str]:
    """A line per record that goes; then their sum, that of the block store, and what stays though it is old."""
    for going in pruning.records:
        yield f"{going.evaluation_id}  {size(going.size)}, {counted(len(going.run_ids), 'run')}"
    verb = "deleted" if pruning.done else "would delete"
    n_bytes = sum(going.size for going in pruning.records)
    n_runs = sum(len(going.run_ids) for going in pruning.records)
    since = f"{pruning.before:%Y-%m-%d %H:%M} UTC"
    records = f"{counted(len(pruning.records), 'record')} from before {since}"
    yield f"{verb} {records}, {size(n_bytes)}, {counted(n_runs, 'run')}"
    yield f"{verb} {counted(pruning.n_blocks, 'file')} of the block store not used since, {size(pruning.n_block_bytes)}"
    for reason, n_records in pruning.stays.items():
        yield f"{counted(n_records, 'older record')} stay{'s' * (n_records == 1)}: {reason}"
    if not pruning.done and (pruning.records or pruning.n_blocks):
        yield "nothing is deleted yet; add --yes"
