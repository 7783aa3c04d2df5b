"""Whether a record is what was written: every file by the manifest's hashes, and nothing beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from pipeline.progress import each
from pipeline.tables import Record

__all__ = ["damages", "strays"]

_MANIFEST = "manifest.json"


def damages(record: Record, *, but: str = "") -> Iterator[str]:
    """What is wrong with the files that the manifest has the hashes of, a line each: gone, unreadable, changed.

    Args:
        record: the record.
        but: the name of a file of which nothing is asked.
    """
    files = {name: described for name, described in record.manifest["files"].items() if name != but}
    for name, described in each("Checking", files.items(), len(files), "files"):
        path = record.path / name
        try:
            data = path.read_bytes()
        except OSError as error:
            yield f"{path}: {error.strerror or error}"
            continue
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 != described["sha256"]:
            sizes = f", {len(data):,} bytes and not {described['size']:,}" if len(data) != described["size"] else ""
            yield f"{path}: has changed since it was written (sha256 {sha256[:12]}…{sizes})"


def strays(record: Record) -> Iterator[str]:
    """The files and folders that are no part of the record, a line each."""
    known = {_MANIFEST, *record.manifest["files"]}
    for path in sorted(record.path.iterdir()):
        if path.name not in known:
            yield f"{path}: is no part of the record; take it away"
