"""Tables of text, `summary.csv` and `comparisons.csv`: a line per row, a column per field."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pipeline.tables import Estimate
from pipeline.verdicts import Comparison

__all__ = ["lines_of", "read_lines", "write_lines"]

Line = TypeVar("Line", Estimate, Comparison)


def write_lines(path: Path, kind: type[Line], lines: Sequence[Line]) -> None:
    """Write a header and the lines; shortest digits that give the same double again."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(kind)], lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: "" if v is None else v for key, v in asdict(line).items()} for line in lines)


def read_lines(path: Path, kind: type[Line]) -> tuple[Line, ...]:
    """The lines as they were written; a column that an older record lacks holds the field's default."""
    with path.open(encoding="utf-8", newline="") as file:
        return _parsed(file, kind)


def lines_of(text: str, measure: str) -> tuple[Estimate, ...]:
    """The lines of one measure of what `summary.csv` holds; the others are passed over and not parsed.

    Args:
        text: the file's.
        measure: as it is written there.
    """
    header, *rows = text.split("\n")
    if '"' not in text:  # else a row may run over several lines
        rows = [row for row in rows if f",{measure}," in row]
    found = _parsed((f"{row}\n" for row in [header, *rows]), Estimate)
    return tuple(line for line in found if line.measure == measure)


def _parsed(lines: Iterable[str], kind: type[Line]) -> tuple[Line, ...]:
    types = get_type_hints(kind)
    return tuple(kind(**_values(row, types)) for row in csv.DictReader(lines))


def _values(row: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(text, types[name]) for name, text in row.items() if name in types}


def _value(text: str, type_: Any) -> str | int | float | None:
    if type_ is str:
        return text
    if type_ is int:
        return int(text)
    return float(text) if text else None
