"""Packages, platform and repository of an evaluation."""

from __future__ import annotations

import getpass
import os
import platform
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

from rankledger.pipeline.support.credentials import public_uri


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
    """Return commit, branch, public URL, and whether tracked files differ. None if unknown."""
    commit = _git_output(repository, "rev-parse", "HEAD")
    if commit is None:
        return None
    url = (_git_output(repository, "remote", "get-url", "origin") or "").strip()
    plain = url.replace("ssh://git@", "ssh://")  # the user of `ssh://git@host` is everyone's
    return {
        "commit": commit.strip(),
        "branch": (_git_output(repository, "symbolic-ref", "--quiet", "--short", "HEAD") or "").strip() or None,
        "url": url if url and public_uri(plain) == plain else None,
        "dirty": bool(_git_output(repository, "status", "--porcelain", "--untracked-files=no")),
    }


def _git_output(repository: Path, *arguments: str) -> str | None:
    try:
        command = ["git", "-C", str(repository), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return None
