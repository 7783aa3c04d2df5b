"""How many outputs, and ranges of them, are read at a time, so that they fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rankledger.pipeline.data.parts import peak_bytes
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.memory import MemoryLimit, format_bytes
from rankledger.pipeline.support.parallel import Workers
from rankledger.pipeline.types.inputs import Source

__all__ = ["OutputToRead", "plan_reading"]

_MOST_RANGES = 4  # of one output: what is done by one core is then a quarter of a range's time, and one core reads all


@dataclass(frozen=True)
class OutputToRead:
    """An output that is to be read.

    Attributes:
        source: where it is.
        in_ranges: whether it is read in ranges.
        is_cached: tells whether the output cache has it, so that it is not parsed; asked only if it does not fit.
    """

    source: Source
    in_ranges: bool
    is_cached: Callable[[], bool] = lambda: False


def plan_reading(workers: Workers, outputs: Sequence[OutputToRead]) -> tuple[Workers, int]:
    """The workers that read these outputs, and how many ranges of its output each of them has at a time.

    Args:
        workers: those that there are.
        outputs: the outputs.

    Raises:
        InputError: one of them needs more memory than the config allows.
    """
    limit = MemoryLimit.of(workers.memory)
    peaks = {output.source.path: peak for output in outputs if (peak := _peak_within(limit, output)) is not None}
    path, peak = max(peaks.items(), key=lambda item: item[1], default=("", 0.0))
    if peaks and limit.is_set and not limit.holds(peak):
        needed = format_bytes(limit.base + peak)
        found = f"{format_bytes(limit.limit)}, but reading {path} needs about {needed}"
        raise InputError(f"execution.memory: {found}; set at least {needed}")
    own = limit.base if workers.backend == "processes" else 0.0  # a process has the judgments, too
    n_outputs = limit.count(peak + own, min(workers.n_jobs, max(1, len(outputs))))
    n_ranges = min(_MOST_RANGES, workers.share(n_outputs), limit.count(peak, _MOST_RANGES * n_outputs) // n_outputs)
    return replace(workers, jobs=n_outputs), max(1, n_ranges)


def _peak_within(limit: MemoryLimit, output: OutputToRead) -> float | None:
    """The bytes that reading it takes; None if it does not fit and is not parsed, as the output cache has it."""
    try:
        peak = peak_bytes(output.source, in_ranges=output.in_ranges)
        return None if limit.is_set and not limit.holds(peak) and output.is_cached() else peak
    except InputError:  # whoever reads it says so
        return 0.0
