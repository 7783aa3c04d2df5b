"""Memory limit of an evaluation."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_SHARE = 0.5  # of the memory that there is: the rest is left to files that the system keeps, and to others
_UNKNOWN = 150e6  # bytes, about what a process takes once it has read judgments
_UNITS = ("GiB", "MiB", "KiB")


@dataclass(frozen=True)
class MemoryLimit:
    """Bytes that an evaluation may take."""

    limit: float
    base: float  # bytes that it takes already
    is_set: bool  # True if the config sets the limit

    @classmethod
    def of(cls, n_bytes: int | None) -> MemoryLimit:
        """Return the limit of a config, or of the machine for None."""
        limit = _SHARE * physical_memory() if n_bytes is None else n_bytes
        return cls(limit, _resident_memory(), n_bytes is not None)

    def holds(self, peak: float) -> bool:
        return self.base + peak <= self.limit

    def count(self, peak: float, most: int) -> int:
        """Return the number of such tasks that fit at a time, from 1 to `most`."""
        free = max(0.0, self.limit - self.base)
        return max(1, most if free >= most * peak else int(free // peak))


def format_bytes(n_bytes: float) -> str:
    """Return bytes as in a config, rounded up: `2GiB`."""
    for power, unit in zip((30, 20, 10), _UNITS, strict=True):
        if n_bytes >= 1 << power:
            tenths = math.ceil(n_bytes * 10 / (1 << power))
            return f"{tenths / 10:.{0 if tenths % 10 == 0 else 1}f}{unit}"
    return f"{math.ceil(n_bytes)}B"


def physical_memory(*, _groups: Path = Path("/sys/fs/cgroup"), _own: Path = Path("/proc/self/cgroup")) -> float:
    """Return the bytes of this machine or container. Infinite if unknown."""
    known = hasattr(os, "sysconf")
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else math.inf
    return min([machine, *_limits_of_groups(_groups, _own)])


def _limits_of_groups(groups: Path, own: Path) -> Iterator[float]:
    with suppress(OSError):
        for line in own.read_text(encoding="utf-8").splitlines():
            number, _, path = line.split(":", 2)
            group = PurePosixPath(path.lstrip("/") if number == "0" else "")
            for each in (group, *group.parents):
                with suppress(OSError, ValueError):
                    yield float((groups / each / "memory.max").read_text(encoding="ascii"))


def give_back_memory() -> None:
    """Release memory that Arrow and the C library keep, often hundreds of megabytes."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # another system, or another C library
        ctypes.CDLL(None).malloc_trim(0)


def _resident_memory() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError):
        return _UNKNOWN
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
