"""The user's own records: a list outside every runs folder, by which they are told from those of somebody else.

Whoever writes a record writes its manifest and can make all hashes fit; and whole runs folders are sent around. So what
says that a record is one's own lies in the user's state folder: a file per record, with the hash of its manifest.
"""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.record.acceptance import digest_of

__all__ = ["forget_own", "is_own", "remember_own"]


def remember_own(evaluation_id: str, manifest_sha256: str) -> None:
    """Put a record on the list.

    Raises:
        OSError: the list cannot be written; the record then counts as somebody else's.
    """
    file = _entry(evaluation_id)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_text(f"{manifest_sha256}\n", encoding="ascii")


def is_own(path: Path) -> bool:
    """Whether the record in that folder is on the list, with the manifest that it has."""
    try:
        return _entry(path.resolve().name).read_bytes().strip() == digest_of(path).encode()
    except OSError:
        return False


def forget_own(evaluation_id: str) -> None:
    """Take a record off the list, if it is on it.

    Raises:
        OSError: the list cannot be written.
    """
    _entry(evaluation_id).unlink(missing_ok=True)


def _entry(evaluation_id: str) -> Path:
    """The file of a record in `rankledger/records` of the user's state folder, which is where the XDG standard says.

    Raises:
        OSError: the user has no home.
    """
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        try:
            state = Path.home() / ".local" / "state"
        except RuntimeError as error:
            raise OSError(str(error)) from None
    return state / "rankledger" / "records" / evaluation_id
