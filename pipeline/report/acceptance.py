"""What was accepted, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.verdicts import Acceptance

__all__ = ["acceptance"]


def acceptance(file: Path, entries: Mapping[str, Acceptance], replaced: Mapping[str, Acceptance]) -> list[str]:
    """A line per model that says what was accepted, and what it replaces; then the file, which is to be committed.

    Args:
        file: where it was written.
        entries: what was accepted, by model.
        replaced: what was accepted before, by model.
    """
    lines = []
    for model, entry in entries.items():
        before = replaced.get(model)
        instead = f", instead of {before.record} ({before.reason}; {before.by}, {before.accepted})" if before else ""
        lines.append(f"{model}: {entry.record}{instead}")
    return [*lines, f"written to {file}; commit it"]
