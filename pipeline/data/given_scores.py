"""Scores of queries that were made elsewhere: by an LLM judge, from clicks, by another tool.

What stands in no row, in an empty cell or as NaN is an undefined score.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.block import Bools, Floats
from metrics.conventions import Conventions
from metrics.measure import Measure
from pipeline.data import readers
from pipeline.data.files import StoredFile, each_file, refusing
from pipeline.data.formats import Part, line_of
from pipeline.data.formats.layout import double
from pipeline.data.groups import group_queries
from pipeline.data.inputs import Source
from pipeline.data.score_cells import SCORES, ScoreCell, ScoreCells, read_score_cells
from pipeline.errors import InputError, likely, shorten
from pipeline.tables import Groups, InputFile, Quality

__all__ = ["GivenInput", "GivenOutput", "given_dataset", "read_given_scores"]

_WRITTEN = ("trec", "tsv", "csv")  # formats whose numbers are texts; in others a text is none


@dataclass(frozen=True, eq=False)
class GivenOutput:
    """One model's scores as they were read.

    Attributes:
        path: the input as it was named.
        files: the files it consists of.
        n_rows: their rows.
        query_ids: (N,) the queries that have a row.
        values: (M, N) the scores, in the order of the measures, NaN where undefined.
    """

    path: str
    files: tuple[InputFile, ...]
    n_rows: int
    query_ids: tuple[str, ...]
    values: Floats

    def of(self, query_ids: npt.NDArray[np.object_], conventions: Conventions) -> tuple[Floats, Bools, Quality]:
        """(M, Q) the scores of these queries, (Q,) which of them have no row, and what was found.

        Raises:
            InputError: a query has no row where that is an error.
        """
        places = {query_id: place for place, query_id in enumerate(self.query_ids)}
        own = np.array([places.get(query_id, -1) for query_id in query_ids], dtype=np.int64)
        missing = own < 0
        n_missing = int(missing.sum())
        if n_missing and conventions.missing_queries == "error":
            found = f"{n_missing} of {len(own)} queries are without scores, such as '{shorten(query_ids[missing][0])}'"
            raise InputError(f"{self.path}: {found}; complete it, or say missing_queries: skip")
        values = np.full((len(self.values), len(own)), np.nan)
        values[:, ~missing] = self.values[:, own[~missing]]
        n_others = len(self.query_ids) - (len(own) - n_missing)
        return values, missing, Quality(self.n_rows, n_unjudged_queries=n_others, n_missing_queries=n_missing)


@dataclass(frozen=True, eq=False)
class GivenInput:
    """A dataset of which nothing is known but its queries.

    Attributes:
        query_ids: (Q,) in the order of their ids as UTF-8 bytes.
        groups: their clusters and slices.
        files: what says so, by role: `queries`, or `scores`, the outputs, where there is no queries table.
        kind: `scores`.
    """

    query_ids: npt.NDArray[np.object_]
    groups: Groups
    files: Mapping[str, tuple[InputFile, ...]]
    kind: str = "scores"


def given_dataset(
    outputs: Iterable[GivenOutput],
    queries: Source | None,
    *,
    cluster: str | None = None,
    slices: Sequence[str] = (),
    recorded: Sequence[str] = (),
) -> GivenInput:
    """The queries of a dataset: those of its queries table, or else all that a model has a row of.

    Args:
        outputs: what was read of all models.
        queries: the queries table.
        cluster: the column of it whose queries of equal text are drawn as one.
        slices: the columns of it each text of which makes a slice.
        recorded: the queries of an earlier evaluation, where it is evaluated again: those they must be, whatever has
            become of the outputs.

    Raises:
        InputError: the table is missing or malformed or of other queries than those recorded, or a query has no
            cluster.
    """
    if queries is None:
        read = list(outputs)
        known = sorted(recorded or {query_id for output in read for query_id in output.query_ids})
        files = tuple(file for output in read for file in output.files)
        return GivenInput(np.array(known, dtype=object), Groups(), {"scores": files})
    further = [*dict.fromkeys(column for column in (cluster, *slices) if column is not None)]
    table = readers.read_queries(*queries.layout, further=further)
    query_ids = np.array(sorted(table.ids.to_pylist()), dtype=object)
    other = {*recorded} ^ {*query_ids}
    if recorded and other:
        found = (
            f"{len(query_ids)} queries are there, and {len(recorded)} were evaluated, "
            f"which differ in '{shorten(min(other))}'"
        )
        raise InputError(f"{queries.path}: has changed ({found}); restore it, or name the config instead of the record")
    return GivenInput(query_ids, group_queries(query_ids, table, cluster, slices), {"queries": table.files})


def read_given_scores(output: Source, measures: Sequence[Measure]) -> GivenOutput:
    """One model's scores.

    Args:
        output: the model's file.
        measures: the scores to take from it, by their names; others are passed over.

    Raises:
        InputError: the file is missing or malformed; a score is in no row, is no finite number, is outside its range,
            or stands twice for a query.
    """
    names = [str(measure) for measure in measures]
    read = [_read(file, output, names) for file in each_file(output.path, output.access)]
    files, parts, tables = zip(*read, strict=True)
    _refuse_lacking(output.path, names, {name for table in tables for name in table.names})
    cells = [(part, cell) for part, table in zip(parts, tables, strict=True) for cell in table.cells]
    columns = {query_id: column for column, query_id in enumerate(dict.fromkeys(cell.query_id for _, cell in cells))}
    _refuse_repeat(output.path, cells)
    values = np.full((len(names), len(columns)), np.nan)
    rows = {name: (row, *measures[row].metric.range) for row, name in enumerate(names)}
    for part, cell in cells:
        row, least, greatest = rows[cell.name]
        values[row, columns[cell.query_id]] = _value(part, cell, least, greatest)
    return GivenOutput(output.path, files, sum(table.n_rows for table in tables), tuple(columns), values)


def _read(file: StoredFile, output: Source, names: Sequence[str]) -> tuple[InputFile, Part, ScoreCells]:
    """One file's size and digest, its bytes, and the cells that stand in them."""
    with refusing(file.path):
        stored = file.read()
        part = readers.part_of(file, stored, SCORES, output.format, output.columns or {})
        table = read_score_cells(part, names)
    if not table.n_rows:
        raise InputError(f"{part.path}: no rows; write the file again")
    return file.describe_bytes(stored), part, table


def _refuse_lacking(path: str, names: Sequence[str], found: set[str]) -> None:
    for name in names:
        if name not in found:
            listed = shorten(", ".join(sorted(found))) or "nothing"
            raise InputError(f"{path}: no score '{name}' among {listed}{likely(name, found) or '; mend its name'}")


def _refuse_repeat(path: str, cells: Sequence[tuple[Part, ScoreCell]]) -> None:
    first: dict[tuple[str, str], tuple[Part, ScoreCell]] = {}
    for part, cell in cells:
        other, earlier = first.setdefault((cell.query_id, cell.name), (part, cell))
        if earlier is not cell:
            places = f"{_place(other, earlier, path)} and {_place(part, cell, path)}"
            raise InputError(f"{path}: query '{shorten(cell.query_id)}' has {cell.name} twice ({places}); keep one")


def _place(part: Part, cell: ScoreCell, path: str) -> str:
    if part.format == "json":
        return f"query '{shorten(cell.query_id)}' of {part.path}"
    return line_of(part, cell.row) + (f" of {part.path}" if part.path != path else "")


def _value(part: Part, cell: ScoreCell, least: float, greatest: float) -> float:
    """The score, NaN where the cell is empty.

    Raises:
        InputError: it is no finite number, or outside the range.
    """
    try:
        number = _number(cell.value, written=part.format in _WRITTEN)
    except ValueError:
        raise _wrong(part, cell, "is not a number", "mend it, or leave the cell empty") from None
    if np.isinf(number):
        raise _wrong(part, cell, "is not a finite number", "mend it, or leave the cell empty")
    if number < least or number > greatest:
        raise _wrong(part, cell, f"is outside {least:g} to {greatest:g}", "mend it, or the range in the config")
    return number


def _number(value: object, *, written: bool) -> float:
    """The number that a cell holds, or that its text writes where all cells are texts."""
    if value is None:
        return float("nan")
    if isinstance(value, str) and written:
        text = value.strip()
        if "_" in text or not text.isascii():
            raise ValueError  # Python reads 1_000 and other scripts' digits, no other tool does
        return float(text or "nan")
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        raise ValueError
    return double(float(value) if isinstance(value, decimal.Decimal) else value)


def _wrong(part: Part, cell: ScoreCell, problem: str, remedy: str) -> InputError:
    found = shorten(repr(cell.value) if isinstance(cell.value, str) else str(cell.value))
    query = shorten(cell.query_id)
    place = "" if part.format == "json" else f" ({line_of(part, cell.row)})"
    return InputError(f"{part.path}: {cell.name} {found} of query '{query}'{place} {problem}; {remedy}")
