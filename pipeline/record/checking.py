"""Whether a record is what was written: every file by the manifest's hashes, and nothing beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.progress import each
from pipeline.tables import Record

__all__ = ["damages", "refuse_changed_config", "strays"]

_CONFIG = "config.yaml"
_MANIFEST = "manifest.json"


def damages(record: Record, *, but: str = "") -> Iterator[str]:
    """What is wrong with the files that the manifest has the hashes of, a line each: gone, unreadable, changed.

    Args:
        record: the record.
        but: the name of a file of which nothing is asked.
    """
    files = {name: described for name, described in record.manifest["files"].items() if name != but}
    for name, described in each("Checking", files.items(), len(files), "files"):
        if found := _damage(record.path / name, described):
            yield found


def refuse_changed_config(record: Record) -> None:
    """Refuse a record whose config is not the one that was evaluated.

    Raises:
        InputError: it is gone, or has another hash than the manifest says.
    """
    path = record.path / _CONFIG
    described = record.manifest["files"].get(_CONFIG)
    found = f"{path}: the manifest has no hash of it" if described is None else _damage(path, described)
    if found:
        raise InputError(f"{found}; restore it, or name another record")


def _damage(path: Path, described: Mapping[str, Any]) -> str | None:
    """What is wrong with a file; None if it has the hash that the manifest says."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 == described["sha256"]:
        return None
    sizes = f", {len(data):,} bytes and not {described['size']:,}" if len(data) != described["size"] else ""
    return f"{path}: has changed since it was written (sha256 {sha256[:12]}…{sizes})"


def strays(record: Record) -> Iterator[str]:
    """The files and folders that are no part of the record, a line each."""
    known = {_MANIFEST, *record.manifest["files"]}
    for path in sorted(record.path.iterdir()):
        if path.name not in known:
            yield f"{path}: is no part of the record; take it away"
