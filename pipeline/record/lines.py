"""Tables of text, `summary.csv` and `comparisons.csv`: a line per row, a column per field."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pipeline.tables import Estimate
from pipeline.verdicts import Comparison

__all__ = ["read_lines", "write_lines"]

Line = TypeVar("Line", Estimate, Comparison)


def write_lines(path: Path, kind: type[Line], lines: Sequence[Line]) -> None:
    """Write a header and the lines; shortest digits that give the same double again."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(kind)], lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: "" if v is None else v for key, v in asdict(line).items()} for line in lines)


def read_lines(path: Path, kind: type[Line]) -> tuple[Line, ...]:
    """The lines as they were written; a column that an older record lacks holds the field's default."""
    types = get_type_hints(kind)
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(kind(**_values(row, types)) for row in csv.DictReader(file))


def _values(row: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(text, types[name]) for name, text in row.items() if name in types}


def _value(text: str, type_: Any) -> str | int | float | None:
    if type_ is str:
        return text
    if type_ is int:
        return int(text)
    return float(text) if text else None
