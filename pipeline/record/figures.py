"""The figures of a record as they lie in its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa

from pipeline.arrow import numpy_of
from pipeline.errors import InputError
from pipeline.pages import CurvePoint
from pipeline.record.lines import lines_in
from pipeline.record.scores import SCORES, scores_in
from pipeline.reproduction import Figures
from pipeline.tables import Estimate
from pipeline.verdicts import Comparison

__all__ = ["FIGURES", "read_figures"]

FIGURES = ("summary.csv", "comparisons.csv", "curves.csv", SCORES)
"""The files that the same inputs, config and seed give byte by byte, the shortest first."""

_LINES: dict[str, Any] = {"summary.csv": Estimate, "comparisons.csv": Comparison, "curves.csv": CurvePoint}
_KEYS = ("dataset", "model", "baseline", "slice", "measure", "query_id", "curve", "at")
"""What a row is called by, where it has them."""


def read_figures(path: Path) -> Figures:
    """The figures in one of these files.

    Raises:
        InputError: it is not what was written.
    """
    return _of_lines(path) if path.name in _LINES else _of_scores(path)


def _of_lines(path: Path) -> Figures:
    kind = _LINES[path.name]
    try:
        lines = lines_in(path.read_bytes(), kind, path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; restore the record") from None
    types = get_type_hints(kind)
    columns = {name: [getattr(line, name) for line in lines] for name in types}
    figures = {name: cells for name, cells in columns.items() if name not in _KEYS}
    numbers = {name: cells for name, cells in figures.items() if types[name] is not str}
    return Figures(
        file=path.name,
        rows=list(zip(*(map(str, columns[name]) for name in _KEYS if name in columns), strict=True)),
        numbers={name: np.array(cells, dtype=np.float64) for name, cells in numbers.items()},
        blank={name: np.array([cell is None for cell in cells], dtype=bool) for name, cells in numbers.items()},
        words={name: cells for name, cells in figures.items() if types[name] is str},
    )


def _of_scores(path: Path) -> Figures:
    table = scores_in(path)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    numbers = {name: column for name, column in columns.items() if pa.types.is_floating(column.type)}
    flags = {name: column for name, column in columns.items() if pa.types.is_boolean(column.type)}
    return Figures(
        file=path.name,
        rows=list(zip(*(columns[name].to_pylist() for name in _KEYS if name in columns), strict=True)),
        numbers={name: numpy_of(column.fill_null(float("nan")), np.float64) for name, column in numbers.items()},
        blank={name: np.array(column.is_null().to_pylist(), dtype=bool) for name, column in numbers.items()},
        words={name: [str(flag) for flag in column.to_pylist()] for name, column in flags.items()},
    )
