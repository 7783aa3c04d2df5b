"""The figures of a record as they lie in its files, whichever version wrote them: no column is filled in."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from pipeline.arrow import numpy_of
from pipeline.pages import CurvePoint
from pipeline.reproduction import Figures
from pipeline.tables import Estimate
from pipeline.verdicts import Comparison

__all__ = ["FIGURES", "read_figures"]

FIGURES = ("summary.csv", "comparisons.csv", "curves.csv", "scores.parquet")
"""The files that the same inputs, config and seed give byte by byte, the shortest first."""

_LINES = {"summary.csv": Estimate, "comparisons.csv": Comparison, "curves.csv": CurvePoint}
_KEYS = (
    "dataset",
    "model",
    "baseline",
    "slice",
    "measure",
    "query_id",
    "curve",
    "at",
)  # what a row is called by, where it has them


def read_figures(path: Path) -> Figures:
    """The figures in one of these files."""
    return _of_lines(path) if path.name in _LINES else _of_scores(path)


def _of_lines(path: Path) -> Figures:
    types = get_type_hints(_LINES[path.name])
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        lines = list(reader)
    columns = {name: [line[name] for line in lines] for name in reader.fieldnames or ()}
    figures = {name: cells for name, cells in columns.items() if name in types and name not in _KEYS}
    numbers = {name: cells for name, cells in figures.items() if types[name] is not str}
    words = {name: cells for name, cells in figures.items() if types[name] is str}
    return Figures(
        file=path.name,
        rows=list(zip(*(columns[name] for name in _KEYS if name in columns), strict=True)),
        numbers={name: np.array([float(cell or "nan") for cell in cells]) for name, cells in numbers.items()},
        blank={name: np.array([not cell for cell in cells], dtype=bool) for name, cells in numbers.items()},
        words=words,
    )


def _of_scores(path: Path) -> Figures:
    table = parquet.read_table(path)
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
