"""What a file of scores holds, cell by cell, whichever way it is laid out.

A file is wide, a row per query and a column per score, which in JSON is `{query: {score: number}}`; or long, a row per
query and score, as `trec_eval -q` prints them. It is long where it has columns `measure` and `value`, unless all scores
that are wanted are columns too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.data.cells import column_names, read_cells
from pipeline.data.formats import Kind, Part, line_of
from pipeline.data.formats.layout import LONGEST_ID, refuse_id, refuse_surrogates
from pipeline.data.formats.nested import nested_objects
from pipeline.data.formats.trec import trec_lines
from pipeline.errors import InputError, shorten

__all__ = ["SCORES", "ScoreCell", "ScoreCells", "read_score_cells"]

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


def read_score_cells(part: Part, wanted: Sequence[str]) -> ScoreCells:
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


def _printed(part: Part, wanted: Sequence[str]) -> ScoreCells:
    """`measure query value`, a line each; the lines of all queries together are left out."""
    lines, row = [], -1
    for row, (number, line) in enumerate(trec_lines(part)):
        fields = line.decode("utf-8", "surrogateescape").split()
        refuse_surrogates(part, number, fields)
        if len(fields) < len(part.kind.trec):
            expected = ", ".join(part.kind.trec)
            raise InputError(
                f"{part.path}:{number}: {len(fields)} fields found where {expected} are expected; mend the line"
            )
        name, query_id, value = fields[:3]
        if query_id != _ALL_QUERIES:
            lines.append(ScoreCell(row, query_id, name, value))
    if row >= 0 and not lines:
        raise InputError(f"{part.path}: lines of all queries together alone; print those of each query too, with -q")
    return _of_long(lines, wanted)


def _nested(part: Part, wanted: Sequence[str]) -> ScoreCells:
    queries = [(query_id, dict(scores)) for query_id, scores in nested_objects(part)]
    names = frozenset(name for _, scores in queries for name in scores)
    cells = [
        ScoreCell(row, _id(part, row, query_id), name, scores.get(name))
        for row, (query_id, scores) in enumerate(queries)
        for name in wanted
    ]
    return ScoreCells(len(queries), names, cells)


def _long(part: Part, wanted: Sequence[str]) -> ScoreCells:
    columns = read_cells(part, [part.name(name) for name in ("query_id", "measure", "value")])
    lines = enumerate(zip(*columns.values(), strict=True))
    rows = [ScoreCell(row, _id(part, row, query), str(name), value) for row, (query, name, value) in lines]
    return _of_long(rows, wanted)


def _of_long(rows: Sequence[ScoreCell], wanted: Sequence[str]) -> ScoreCells:
    return ScoreCells(len(rows), frozenset(cell.name for cell in rows), [cell for cell in rows if cell.name in wanted])


def _wide(part: Part, wanted: Sequence[str]) -> ScoreCells:
    columns = read_cells(part, [part.name(name) for name in ("query_id", *wanted)])
    ids = [_id(part, row, cell) for row, cell in enumerate(columns[part.name("query_id")])]
    cells = [
        ScoreCell(row, query_id, name, columns[part.name(name)][row])
        for row, query_id in enumerate(ids)
        for name in wanted
    ]
    return ScoreCells(len(ids), frozenset(wanted), cells)


def _id(part: Part, row: int, cell: object) -> str:
    """The id of a query: a text, or a whole number as its digits."""
    if type(cell) is int or (isinstance(cell, str) and cell):
        text = str(cell)
        refuse_surrogates(part, row + 1, [text])
        if (n_bytes := len(text.encode())) > LONGEST_ID:
            refuse_id(part.path, "query_id", n_bytes, _place(part, row))
        return text
    place = _place(part, row)
    if cell in (None, ""):
        raise InputError(f"{part.path}: empty query_id ({place}); fill it")
    raise InputError(
        f"{part.path}: query_id {shorten(repr(cell))} ({place}) is no id; write a string or a whole number"
    )


def _place(part: Part, row: int) -> str:
    return f"object {row + 1}" if part.format == "json" else line_of(part, row)
