"""How many outputs, and ranges of them, are read at a time, so that they fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rankledger.pipeline.data.parts import peak_bytes
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.memory import MemoryLimit, format_bytes
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.types.inputs import Source

__all__ = ["plan_reading"]

_MOST_RANGES = 4  # of one output: what is done by one core is then a quarter of a range's time, and one core reads all


def plan_reading(workers: Workers, outputs: Sequence[tuple[Source, bool]]) -> tuple[Workers, int]:
    """The workers that read these outputs, and how many ranges of its output each of them has at a time.

    Args:
        workers: those that there are.
        outputs: each output, and whether it is read in ranges.

    Raises:
        InputError: one of them needs more memory than the config allows.
    """
    peaks = {output.path: _peak(output, in_ranges=in_ranges) for output, in_ranges in outputs}
    limit = MemoryLimit.of(workers.memory)
    path, peak = max(peaks.items(), key=lambda item: item[1], default=("", 0.0))
    if limit.is_set and not limit.holds(peak):
        needed = format_bytes(limit.base + peak)
        found = f"{format_bytes(limit.limit)}, but reading {path} needs about {needed}"
        raise InputError(f"execution.memory: {found}; set at least {needed}")
    own = limit.base if workers.backend == "processes" else 0.0  # a process has the judgments, too
    n_outputs = limit.count(peak + own, min(workers.n_jobs, max(1, len(outputs))))
    n_ranges = min(_MOST_RANGES, workers.share(n_outputs), limit.count(peak, _MOST_RANGES * n_outputs) // n_outputs)
    return replace(workers, jobs=n_outputs), max(1, n_ranges)


def _peak(output: Source, *, in_ranges: bool) -> float:
    try:
        return peak_bytes(output, in_ranges=in_ranges)
    except InputError:  # whoever reads it says so
        return 0.0
