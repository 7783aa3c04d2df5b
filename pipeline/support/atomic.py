"""Atomic writes: files and folders are written under a temporary name, then renamed.

The temporary name, `.NAME.<host>-<pid>-<start>-<random>.partial`, names the writing process. The next writer deletes
leftovers of ended processes of this host, and of other hosts after a day. Locks are of files, too.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from rankledger.pipeline.support.errors import LockedError

_DAY = 86_400  # seconds
_NAME_BYTES = 120  # of the file's own name: most filesystems take 255 for all of it
_PARTIAL = re.compile(r"\..*\.(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)-(?P<start>[0-9]+)-[0-9a-f]{8}\.partial", re.DOTALL)


@contextmanager
def partial_beside(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside a path. Delete the file or folder afterwards if it remains."""
    _clear_once(path.parent.absolute())
    name = path.name.encode()[:_NAME_BYTES].decode(errors="ignore")
    partial = path.with_name(
        f".{name}.{_host()}-{os.getpid()}-{_read_start(os.getpid())}-{secrets.token_hex(4)}.partial"
    )
    try:
        yield partial
    finally:
        with suppress(OSError):
            _delete(partial)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file or replace it. Its bytes are on disk before it has its name."""
    with partial_beside(path) as partial:
        write_to_disk(partial, data)
        partial.replace(path)


def write_to_disk(path: Path, data: bytes) -> None:
    """Write a file and have the system write it out, because a power cut could empty it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def hold_lock(path: Path, busy: str, seconds: float) -> Iterator[None]:
    """Hold the lock of a file, which ends with the process. Delete the file afterwards.

    Args:
        path: File.
        busy: Message of the error if another process holds the lock.
        seconds: Time limit of waiting for it.

    Raises:
        LockedError: Another process holds the lock.
        OSError: The file cannot be locked, as on NFS without locks. The error names the file.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=seconds)
    try:
        lock.acquire()
    except Timeout:
        raise LockedError(busy) from None
    except OSError as error:
        if error.filename:
            raise
        reason = f"{error.strerror or error}. Use a folder on a filesystem with locks"
        raise OSError(error.errno, reason, str(path)) from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held: whoever waits for it looks again whether it is there
        lock.release()


def read_regular(path: Path) -> bytes:
    """Read a regular file. Raise OSError for a pipe or a device, which may never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.read_bytes()


def clear_abandoned(*folders: Path) -> None:
    """Delete temporary files and folders of processes that are gone. Skip folders that cannot be read."""
    for folder in folders:
        with suppress(OSError):
            for path in folder.glob(".*.partial"):
                if _is_abandoned(path):
                    _delete(path)


_clear_once = cache(clear_abandoned)


def _is_abandoned(path: Path) -> bool:
    found = _PARTIAL.fullmatch(path.name)
    if found is None:
        return False
    start = _read_start(int(found["pid"])) if found["host"] == _host() else None
    if start is not None:
        return start != found["start"]
    with suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime > _DAY
    return False


def _delete(path: Path) -> None:
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@cache
def _host() -> str:
    """Return the scope of process ids. Each container and each boot has its own."""
    names = [socket.gethostname()]
    with suppress(OSError):
        names += [
            Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"),
            str(Path("/proc/self/ns/pid").readlink()),
        ]
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]


def _read_start(pid: int) -> str | None:
    """Return the start of a process, `gone`, or None if unknown. Process ids are reused."""
    if sys.platform != "linux":
        return "0" if pid == os.getpid() else _sign_of_life(pid)
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return "gone"
    except OSError:
        return None
    state, *fields = status.rpartition(")")[2].split()
    return "gone" if state in "ZX" else fields[18]


def _sign_of_life(pid: int) -> str | None:
    if sys.platform == "win32":
        return None  # there signal 0 is Ctrl-C
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "gone"
    except OSError:
        return "0"
    return "0"
