"""Judgments of generated answers, as tables of nuggets or citations, from which scores are computed.

A row is one nugget or one citation. A line of AutoNuggetizer's assignments holds all nuggets of its query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from rankledger.metrics.answers import citation_scores, nugget_scores
from rankledger.pipeline.data.formats.common import FilePart, Format, Sample
from rankledger.pipeline.data.formats.delimited import CSV, TSV
from rankledger.pipeline.data.formats.json import JSONL
from rankledger.pipeline.data.formats.parquet import PARQUET
from rankledger.pipeline.data.formats.tools import samples_format
from rankledger.pipeline.support.errors import InputError, shorten

_TABLES: Mapping[str, Format] = {suffix: table for table in (TSV, CSV, JSONL, PARQUET) for suffix in table.suffixes}
_ASSIGNMENTS = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}  # AutoNuggetizer's words
_SUPPORT = _ASSIGNMENTS | {"full_support": 1.0, "no_support": 0.0}  # and those of the track's support evaluation
_IMPORTANCE = {"vital": True, "okay": False}
_FAILED = "failed"  # AutoNuggetizer's word for a nugget whose judge gave no answer


class _Row(NamedTuple):
    """One row: its place in the table, the query, the nugget or sentence, and the judge's words."""

    place: int
    query: object
    name: object
    words: Sequence[object]


def _nuggets(part: FilePart) -> Iterator[Sample]:
    table = _table(part)
    for query, rows in _by_query(table, _nugget_rows(table)).items():
        _refuse_repeat(table, query, rows)
        failed = any(_FAILED in row.words for row in rows)
        scores: dict[str, float] = {}
        if not failed:
            vital = [_word(table, row, row.words[0], "importance", _IMPORTANCE) for row in rows]
            support = [_word(table, row, row.words[1], "support", _SUPPORT) for row in rows]
            scores = nugget_scores(np.array(vital, dtype=bool), np.array(support, dtype=np.float64))
        yield Sample({part.name("query_id"): query}, {}, scores, failed)


def _citations(part: FilePart) -> Iterator[Sample]:
    table = _table(part)
    for query, rows in _by_query(table, _rows(table, "sentence", "support")).items():
        numbers = {name: number for number, name in enumerate(dict.fromkeys(row.name for row in rows))}
        support = [
            _word(table, row, row.words[0], "support", _SUPPORT) if row.words[0] not in (None, "") else np.nan
            for row in rows
        ]
        scores = citation_scores(np.array([numbers[row.name] for row in rows]), np.array(support, dtype=np.float64))
        yield Sample({part.name("query_id"): query}, {}, scores)


def _table(part: FilePart) -> FilePart:
    found = [_TABLES[suffix] for suffix in PurePath(part.path.lower()).suffixes if suffix in _TABLES]
    if not found:
        raise InputError(f"{part.path}: {part.format.name} stand in a table; name it {', '.join(_TABLES)}")
    return replace(part, format=found[-1])


def _nugget_rows(table: FilePart) -> Iterator[_Row]:
    if "nuggets" not in table.format.columns(table):
        yield from _rows(table, "nugget", "importance", "support")
        return
    lines = replace(table, names={"query_id": "qid", **table.names})
    for line in _rows(lines, "nuggets"):
        if not isinstance(line.name, list) or not all(isinstance(nugget, dict) for nugget in line.name):
            raise InputError(f"{table.path}: nuggets ({table.position(line.place)}): expected a list of objects")
        for nugget in line.name:
            yield _Row(line.place, line.query, nugget.get("text"), (nugget.get("importance"), nugget.get("assignment")))


def _rows(table: FilePart, *columns: str) -> Iterator[_Row]:
    names = [table.name(column) for column in ("query_id", *columns)]
    cells = table.format.cells(table, names)
    for place, (query, name, *words) in enumerate(zip(*(cells[name] for name in names), strict=True)):
        yield _Row(place, query, name, words)


def _by_query(table: FilePart, rows: Iterator[_Row]) -> dict[object, list[_Row]]:
    found: dict[object, list[_Row]] = {}
    for row in rows:
        for cell in (row.query, row.name):
            if isinstance(cell, list | dict):
                place = table.position(row.place)
                raise InputError(f"{table.path}: found {shorten(repr(cell))} ({place}); write a text or a number")
        found.setdefault(row.query, []).append(row)
    return found


def _word(table: FilePart, row: _Row, word: object, column: str, known: Mapping[str, Any]) -> Any:
    if not isinstance(word, str) or word not in known:
        found = f"{column} {shorten(repr(word))} ({table.position(row.place)})"
        raise InputError(f"{table.path}: {found}; write {', '.join(known)}")
    return known[word]


def _refuse_repeat(table: FilePart, query: object, rows: Sequence[_Row]) -> None:
    first: dict[object, _Row] = {}
    for row in rows:
        earlier = first.setdefault(row.name, row)
        if earlier is not row:
            places = " and ".join(table.position(each.place) for each in (earlier, row))
            found = f"query '{shorten(str(query))}' has the nugget {shorten(repr(row.name))} twice ({places})"
            raise InputError(f"{table.path}: {found}; keep one")


NUGGETS = samples_format("nuggets", _nuggets)
CITATIONS = samples_format("citations", _citations)
