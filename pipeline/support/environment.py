"""Packages, platform, repository and memory limit of an evaluation."""

from __future__ import annotations

import ctypes
import getpass
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from threadpoolctl import ThreadpoolController

from rankledger.pipeline.support.text import public_uri

_SAFE_SETTINGS = {"core.fsmonitor": "false", "core.hooksPath": os.devnull}
_SAFE_VARIABLES = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}


def environment(repository: Path) -> dict[str, Any]:
    """Return versions of packages, platform, and state of the repository that holds a folder."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "blas": sorted(
            {f"{lib['internal_api']} {lib['version']}" for lib in threaded_libraries().info() if lib["version"]}
        ),
        "packages": packages(),
        "git": _git(repository),
    }


@cache
def threaded_libraries() -> ThreadpoolController:
    """Return the libraries with their own threads, such as NumPy's BLAS."""
    import numpy  # noqa: F401  (brings its BLAS)

    return ThreadpoolController()


def at_work() -> dict[str, str]:
    """Return user and host of this process."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # an id without a name, as in containers
        user = str(os.getuid())
    return {"user": user, "host": platform.node()}


def person(repository: Path) -> str:
    """Return the name that git signs with in a repository, or the user's."""
    name = _git_output(repository, "config", "user.name") or ""
    return name.strip() or os.environ.get("USER") or "unknown"


def packages() -> dict[str, str]:
    """Return versions of installed packages by the names of their metadata folders, which is fast."""
    found: dict[str, str] = {}
    for folder in (folder for path in sys.path for folder in sorted(Path(path).glob("*.dist-info"))):
        name, _, version = folder.stem.rpartition("-")
        found.setdefault(name, version)  # the first on the path is the one that Python imports
    return dict(sorted(found.items()))


def _cpu() -> str:
    try:
        names = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        names = []
    return f"{os.cpu_count()} × {names[0] if names else platform.processor() or platform.machine()}"


def _git(repository: Path) -> dict[str, Any] | None:
    commit = _git_output(repository, "rev-parse", "HEAD")
    if commit is None:
        return None
    url = (_git_output(repository, "remote", "get-url", "origin") or "").strip()
    plain = url.replace("ssh://git@", "ssh://")  # the user of `ssh://git@host` is everyone's
    return {
        "commit": commit.strip(),
        "branch": (_git_output(repository, "symbolic-ref", "--quiet", "--short", "HEAD") or "").strip() or None,
        "url": url if url and public_uri(plain) == plain else None,
        "dirty": _read_dirty(repository),
    }


def _read_dirty(repository: Path) -> bool | None:
    listed = _git_output(repository, "config", "--list", "--show-scope", "--name-only", "-z")
    if listed is None:
        return None
    entries = listed.split("\0")
    scopes = zip(entries[::2], entries[1::2], strict=False)
    filters = {name for scope, name in scopes if scope in ("local", "worktree") and name.startswith("filter.")}
    settings = _SAFE_SETTINGS | {name: "false" if name.endswith(".required") else "" for name in filters}
    arguments = ("--porcelain", "--untracked-files=no", "--no-renames", "--ignore-submodules=dirty")
    status = _git_output(repository, "status", *arguments, settings=settings)
    return None if status is None else bool(status)


def _git_output(repository: Path, *arguments: str, settings: Mapping[str, str] = _SAFE_SETTINGS) -> str | None:
    """Run a git command without programs that a repository can name. Return None if git fails or takes too long."""
    n_settings = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    variables = {**os.environ, **_SAFE_VARIABLES, "GIT_CONFIG_COUNT": str(n_settings + len(settings))}
    for number, (name, value) in enumerate(settings.items(), n_settings):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    command = ["git", "-C", str(repository), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, timeout=10, env=variables)
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(answer.stdout)


_SHARE = 0.5  # of the memory that there is: the rest is left to files that the system keeps, and to others
_UNKNOWN = 150e6  # bytes, about what a process takes once it has read judgments
_GROUPS, _GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")  # memory limits, and the process's own group
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


def physical_memory() -> float:
    """Return the bytes of this machine or container. Infinite if unknown."""
    known = hasattr(os, "sysconf")
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else math.inf
    return min([machine, *_limits_of_groups()])


def _limits_of_groups() -> Iterator[float]:
    with suppress(OSError):
        for line in _GROUP.read_text(encoding="utf-8").splitlines():
            number, _, path = line.split(":", 2)
            group = PurePosixPath(path.lstrip("/") if number == "0" else "")
            for each in (group, *group.parents):
                with suppress(OSError, ValueError):
                    yield float((_GROUPS / each / "memory.max").read_text(encoding="ascii"))


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
