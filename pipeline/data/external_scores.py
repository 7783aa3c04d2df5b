"""Scores that another tool made: per-query scores as a dataset, and external metrics of a model.

A file is wide, a row per query and a column per score, which in JSON is `{query: {score: number}}`; or long, a row per
query and score, as `trec_eval -q` prints them. It is long where it has columns `measure` and `value`, unless all scores
that are wanted are columns too.

What stands in no row, in an empty cell or as NaN is an undefined score.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import Bools, Floats
from rankledger.metrics.conventions import Conventions
from rankledger.metrics.measure import Measure
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.dataset import Source, group_queries
from rankledger.pipeline.data.files import StoredFile, each_file, find_files, refusing_unreadable
from rankledger.pipeline.data.formats import line_of
from rankledger.pipeline.data.formats.common import LONGEST_ID, FilePart, Kind, double, refuse_id, refuse_surrogates
from rankledger.pipeline.data.formats.json import nested_objects
from rankledger.pipeline.data.formats.trec import trec_lines
from rankledger.pipeline.data.readers import column_names, read_cells
from rankledger.pipeline.errors import InputError, likely, shorten
from rankledger.pipeline.types.inputs import InputFile
from rankledger.pipeline.types.joined import Groups, Quality
from rankledger.pipeline.types.mlflow_names import EXTRA, clashes

__all__ = [
    "SCORES",
    "ExternalDataset",
    "ExternalMetrics",
    "ExternalOutput",
    "ScoreCell",
    "ScoreCells",
    "external_dataset",
    "read_external_metrics",
    "read_external_scores",
    "read_score_cells",
]


@dataclass(frozen=True)
class ExternalMetrics:
    """The numbers of one model, by name, and the file that they are from."""

    numbers: Mapping[str, float]
    file: InputFile


def read_external_metrics(path: str) -> ExternalMetrics:
    """The numbers of one file.

    Args:
        path: the file, or its URL; it may be compressed.

    Raises:
        InputError: it is missing, or no object of finite numbers under names that MLflow can hold.
    """
    file, *others = find_files(path)
    if others:
        raise InputError(f"{path}: {1 + len(others)} files are there; name one JSON object of numbers")
    stored = file.read()
    try:
        found = json.loads(file.uncompress(stored).to_pybytes(), parse_int=float, object_pairs_hook=_once)
        "".join(found if isinstance(found, dict) else ()).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}); write an object of numbers") from None
    if not isinstance(found, dict):
        raise InputError(f'{path}: found {type(found).__name__}; write an object of numbers, as {{"cost": 1.5}}')
    for name, number in found.items():
        if not isinstance(number, float) or not math.isfinite(number):
            raise InputError(
                f"{path}: {shorten(name)}: found {shorten(json.dumps(number))}; write a finite number, or leave it out"
            )
    for problem in clashes((EXTRA + name, name) for name in found):
        raise InputError(f"{path}: {problem}")
    return ExternalMetrics(found, file.describe_bytes(stored))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of a key that stands twice, either number could be meant.

    Raises:
        ValueError: a key stands twice.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"'{shorten(name)}' stands twice")
        found[name] = value
    return found


SCORES = Kind(("query_id", "measure"), "value", ("measure", "query_id", "value"))

_ALL_QUERIES = "all"  # what trec_eval calls the lines of its means


class ScoreCell(NamedTuple):
    """One score of one query.

    Attributes:
        row: where it stands, from 0.
        query_id: the query.
        name: the score's name.
        value: as it is written: a text, or in JSON and Parquet whatever stands there.
    """

    row: int
    query_id: str
    name: str
    value: object


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """What one file holds.

    Attributes:
        n_rows: rows of the file.
        names: the scores that are in it.
        cells: those wanted, row by row.
    """

    n_rows: int
    names: frozenset[str]
    cells: Sequence[ScoreCell]


def read_score_cells(part: FilePart, wanted: Sequence[str]) -> ScoreCells:
    """The cells of the scores wanted.

    Args:
        part: one file, of kind `SCORES`.
        wanted: names of scores, which a wide file must have as columns.

    Raises:
        InputError: the file is malformed, lacks a column, or a query's id is empty.
    """
    if part.format == "trec":
        return _printed(part, wanted)
    if part.format == "json":
        return _nested(part, wanted)
    found = set(column_names(part))
    long = {part.name("measure"), part.name("value")} <= found and not {part.name(name) for name in wanted} <= found
    return _long(part, wanted) if long else _wide(part, wanted)


def _printed(part: FilePart, wanted: Sequence[str]) -> ScoreCells:
    """`measure query value`, a line each; the lines of all queries together are left out."""
    lines, row = [], -1
    for row, (number, line) in enumerate(trec_lines(part)):
        fields = line.decode("utf-8", "surrogateescape").split()
        refuse_surrogates(part, number, fields)
        if len(fields) < len(part.kind.trec):
            expected = ", ".join(part.kind.trec)
            raise InputError(
                f"{part.path}:{number}: {len(fields)} fields found where {expected} are expected; fix the line"
            )
        name, query_id, value = fields[:3]
        if query_id != _ALL_QUERIES:
            lines.append(ScoreCell(row, query_id, name, value))
    if row >= 0 and not lines:
        raise InputError(f"{part.path}: lines of all queries together alone; print those of each query too, with -q")
    return _of_long(lines, wanted)


def _nested(part: FilePart, wanted: Sequence[str]) -> ScoreCells:
    queries = [(query_id, dict(scores)) for query_id, scores in nested_objects(part)]
    names = frozenset(name for _, scores in queries for name in scores)
    cells = [
        ScoreCell(row, _id(part, row, query_id), name, scores.get(name))
        for row, (query_id, scores) in enumerate(queries)
        for name in wanted
    ]
    return ScoreCells(len(queries), names, cells)


def _long(part: FilePart, wanted: Sequence[str]) -> ScoreCells:
    columns = read_cells(part, [part.name(name) for name in ("query_id", "measure", "value")])
    lines = enumerate(zip(*columns.values(), strict=True))
    rows = [ScoreCell(row, _id(part, row, query), str(name), value) for row, (query, name, value) in lines]
    return _of_long(rows, wanted)


def _of_long(rows: Sequence[ScoreCell], wanted: Sequence[str]) -> ScoreCells:
    return ScoreCells(len(rows), frozenset(cell.name for cell in rows), [cell for cell in rows if cell.name in wanted])


def _wide(part: FilePart, wanted: Sequence[str]) -> ScoreCells:
    columns = read_cells(part, [part.name(name) for name in ("query_id", *wanted)])
    ids = [_id(part, row, cell) for row, cell in enumerate(columns[part.name("query_id")])]
    cells = [
        ScoreCell(row, query_id, name, columns[part.name(name)][row])
        for row, query_id in enumerate(ids)
        for name in wanted
    ]
    return ScoreCells(len(ids), frozenset(wanted), cells)


def _id(part: FilePart, row: int, cell: object) -> str:
    """The id of a query: a text, or a whole number as its digits."""
    if type(cell) is int or (isinstance(cell, str) and cell):
        text = str(cell)
        refuse_surrogates(part, row + 1, [text])
        if (n_bytes := len(text.encode())) > LONGEST_ID:
            refuse_id(part.path, "query_id", n_bytes, _row_position(part, row))
        return text
    place = _row_position(part, row)
    if cell in (None, ""):
        raise InputError(f"{part.path}: empty query_id ({place}); fill it")
    raise InputError(
        f"{part.path}: query_id {shorten(repr(cell))} ({place}) is no id; write a string or a whole number"
    )


def _row_position(part: FilePart, row: int) -> str:
    return f"object {row + 1}" if part.format == "json" else line_of(part, row)


_WRITTEN = ("trec", "tsv", "csv")  # formats whose numbers are texts; in others a text is none


@dataclass(frozen=True, eq=False)
class ExternalOutput:
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
class ExternalDataset:
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


def external_dataset(
    outputs: Iterable[ExternalOutput],
    queries: Source | None,
    *,
    cluster: str | None = None,
    slices: Sequence[str] = (),
    recorded: Sequence[str] = (),
) -> ExternalDataset:
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
        return ExternalDataset(np.array(known, dtype=object), Groups(), {"scores": files})
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
    return ExternalDataset(query_ids, group_queries(query_ids, table, cluster, slices), {"queries": table.files})


def read_external_scores(output: Source, measures: Sequence[Measure]) -> ExternalOutput:
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
    return ExternalOutput(output.path, files, sum(table.n_rows for table in tables), tuple(columns), values)


def _read(file: StoredFile, output: Source, names: Sequence[str]) -> tuple[InputFile, FilePart, ScoreCells]:
    """One file's size and digest, its bytes, and the cells that stand in them."""
    with refusing_unreadable(file.path):
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
            raise InputError(f"{path}: no score '{name}' among {listed}{likely(name, found) or '; fix its name'}")


def _refuse_repeat(path: str, cells: Sequence[tuple[FilePart, ScoreCell]]) -> None:
    first: dict[tuple[str, str], tuple[FilePart, ScoreCell]] = {}
    for part, cell in cells:
        other, earlier = first.setdefault((cell.query_id, cell.name), (part, cell))
        if earlier is not cell:
            places = f"{_cell_position(other, earlier, path)} and {_cell_position(part, cell, path)}"
            raise InputError(f"{path}: query '{shorten(cell.query_id)}' has {cell.name} twice ({places}); keep one")


def _cell_position(part: FilePart, cell: ScoreCell, path: str) -> str:
    if part.format == "json":
        return f"query '{shorten(cell.query_id)}' of {part.path}"
    return line_of(part, cell.row) + (f" of {part.path}" if part.path != path else "")


def _value(part: FilePart, cell: ScoreCell, least: float, greatest: float) -> float:
    """The score, NaN where the cell is empty.

    Raises:
        InputError: it is no finite number, or outside the range.
    """
    try:
        number = _number(cell.value, written=part.format in _WRITTEN)
    except ValueError:
        raise _wrong(part, cell, "is not a number", "fix it, or leave the cell empty") from None
    if np.isinf(number):
        raise _wrong(part, cell, "is not a finite number", "fix it, or leave the cell empty")
    if number < least or number > greatest:
        raise _wrong(part, cell, f"is outside {least:g} to {greatest:g}", "fix it, or the range in the config")
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


def _wrong(part: FilePart, cell: ScoreCell, problem: str, remedy: str) -> InputError:
    found = shorten(repr(cell.value) if isinstance(cell.value, str) else str(cell.value))
    query = shorten(cell.query_id)
    place = "" if part.format == "json" else f" ({line_of(part, cell.row)})"
    return InputError(f"{part.path}: {cell.name} {found} of query '{query}'{place} {problem}; {remedy}")
