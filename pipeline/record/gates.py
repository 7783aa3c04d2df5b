"""`gates.json`: the verdicts, and the record that each reference was resolved to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.errors import InputError
from pipeline.manifest import finding
from pipeline.verdicts import Verdict

__all__ = ["verdicts_in", "write_gates"]


class _Gates(BaseModel):
    """What is read of the file: the manifest has the references, too."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    verdicts: tuple[Verdict, ...]


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


def verdicts_in(data: bytes, path: Path) -> tuple[Verdict, ...]:
    """The verdicts that the file holds.

    Args:
        data: what it holds.
        path: the file, for messages.

    Raises:
        InputError: it is not what was written.
    """
    try:
        return _Gates.model_validate_json(data).verdicts
    except ValidationError as error:
        raise InputError(f"{path}: {finding(error)}; restore the record") from None


def _plain(value: object) -> object:
    """The value as JSON has it, which knows no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
