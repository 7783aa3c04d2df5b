"""What a check of a record found, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["verification"]


def verification(record: Path, n_files: int, witnesses: Sequence[str]) -> str:
    """Who agrees that the record is what was written, in a line.

    Args:
        record: its folder.
        n_files: its files.
        witnesses: who else has the hash of its manifest.
    """
    agree = f"the manifest is that of {' and '.join(witnesses)}" if witnesses else "nobody else has the manifest's hash"
    return f"{record}: all {n_files} files are as the manifest says; {agree}"
