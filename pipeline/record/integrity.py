"""Whether a record is what was written: every file by the manifest's hashes, and nothing beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from rankledger.pipeline.errors import InputError
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.types.manifest import MANIFEST, Description, File, Manifest
from rankledger.pipeline.types.results import Record

__all__ = ["damaged_files", "read_file", "read_unchanged", "refuse_unknown", "unchanged", "unexpected_files"]


def damaged_files(record: Record, *, but: str = "") -> Iterator[str]:
    """What is wrong with the files that the manifest has the hashes of, a line each: gone, unreadable, changed.

    Args:
        record: the record.
        but: the name of a file of which nothing is asked.
    """
    names = [name for name in record.manifest.files if name != but]
    for name in each("Checking", names, len(names), "files"):
        try:
            read_file(record.path, record.manifest, name)
        except InputError as error:
            yield str(error)


def read_file(path: Path, manifest: Manifest, name: str) -> bytes | None:
    """What a file of a record holds, which is what was written; None if the record has none of that name.

    Args:
        path: the record's folder.
        manifest: what its manifest holds.
        name: the file.

    Raises:
        InputError: it is gone, cannot be read, or has changed.
    """
    written = manifest.files.get(name)
    return None if written is None else read_unchanged(path / name, written)


def read_unchanged(path: Path, written: File) -> bytes:
    """What a file holds, which is what was written; errors are those of `read_file`."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: file not found; restore the record") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; restore the record") from None
    return unchanged(data, written, path)


def unchanged(data: bytes, written: File, path: Path) -> bytes:
    """The same bytes, if they are those that were written.

    Args:
        data: what a file of a record holds.
        written: its size and hash, as the manifest has them.
        path: the file, for messages.

    Raises:
        InputError: it has changed.
    """
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 != written.sha256:
        sizes = f", {len(data):,} bytes and not {written.size:,}" if len(data) != written.size else ""
        found = f"has changed since it was written (sha256 {sha256[:12]}…{sizes})"
        raise InputError(f"{path}: {found}; restore the record")
    return data


def refuse_unknown(manifest: Description, file: Path, tasks: Iterable[tuple[str, str]]) -> None:
    """Refuse lines of what was not evaluated.

    Args:
        manifest: what the record's manifest holds.
        file: the table, for messages.
        tasks: the dataset, `*` for the mean of all, and the model of each line.

    Raises:
        InputError: a line is of no output of the record.
    """
    outputs = set(manifest.tasks)
    outputs |= {("*", model) for _, model in outputs}
    for dataset, model in dict.fromkeys(tasks):
        if (dataset, model) not in outputs:
            raise InputError(f"{file}: {model!r} on {dataset!r} is no output of the record; restore the record")


def unexpected_files(record: Record) -> Iterator[str]:
    """The files and folders that are no part of the record, a line each."""
    known = {MANIFEST, *record.manifest.files}
    for path in sorted(record.path.iterdir()):
        if path.name not in known:
            yield f"{path}: is no part of the record; take it away"
