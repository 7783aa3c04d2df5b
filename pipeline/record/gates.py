"""`gates.json`: the verdicts, and the record that each reference was resolved to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pipeline.verdicts import Verdict

__all__ = ["read_references", "read_verdicts", "verdicts_in", "write_gates"]

_FIELDS = frozenset(field.name for field in fields(Verdict))


def write_gates(path: Path, verdicts: Sequence[Verdict], references: Mapping[str, Any]) -> None:
    """Write the verdicts in their order.

    Args:
        path: the file.
        verdicts: what the gates say.
        references: by gate and model, what it holds the model against.
    """
    lines = [{name: _plain(value) for name, value in asdict(verdict).items()} for verdict in verdicts]
    text = json.dumps({"references": references, "verdicts": lines}, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_verdicts(path: Path) -> tuple[Verdict, ...]:
    """The verdicts in the record of that folder; none where its config had no gates."""
    file = path / "gates.json"
    if not file.is_file():
        return ()
    return verdicts_in(file.read_text(encoding="utf-8"))


def verdicts_in(text: str) -> tuple[Verdict, ...]:
    """The verdicts that `gates.json` holds."""
    lines = json.loads(text)["verdicts"]
    return tuple(Verdict(**{name: value for name, value in line.items() if name in _FIELDS}) for line in lines)


def read_references(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """By gate and model, what the gates of that record held models against; empty where it had none."""
    file = path / "gates.json"
    if not file.is_file():
        return {}
    references: Mapping[str, Mapping[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["references"]
    return references


def _plain(value: object) -> object:
    """The value as JSON has it, which knows no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
