"""Files to rows, whatever their format.

A text of a queries table keeps its spelling. In JSON lines and Parquet a number is read as Python writes it, but a
whole one without decimals: 3.0 is "3", for a column of whole numbers becomes one of decimal numbers where a row has
none. True and false are read as JSON writes them.

A feature of documents that is a text holds categories with bars between them (`Action|Comedy`), a whole number is one
category, a list of either holds several, and a list of decimal numbers is a vector. Where a field is empty or null, the
document is without the feature.

Ids are strings and keep their spelling: "01" is not "1". A row that lacks something is refused with its file and line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, NoReturn, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.catalogue import Sparse
from rankledger.pipeline.data.files import Contents, StoredFile, each_file, refusing_unreadable
from rankledger.pipeline.data.formats import FORMATS, parse
from rankledger.pipeline.data.formats.common import FilePart, Kind, refuse_surrogates
from rankledger.pipeline.data.formats.json import double, written
from rankledger.pipeline.data.formats.layouts import RANK, columns_line
from rankledger.pipeline.data.formats.lists import OneList, listed_queries
from rankledger.pipeline.data.formats.trec import last_fields
from rankledger.pipeline.data.parts import PART_ROWS, file_parts, recognised
from rankledger.pipeline.data.stored_documents import DocumentFile
from rankledger.pipeline.support.arrow import concatenate, floats, integers, numpy_of, strings
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.support.parallel import map_ahead
from rankledger.pipeline.types.inputs import (
    MANY_ROWS,
    Chunk,
    Ids,
    InMemory,
    InputFile,
    Rows,
    Source,
    merge_rows,
    row_number,
)

__all__ = [
    "RankingRanges",
    "TextReader",
    "layout_remarks",
    "ranking_kind",
    "read_document_texts",
    "read_documents",
    "read_interactions",
    "read_judgments",
    "read_predictions",
    "read_queries",
    "read_query_texts",
    "read_ranking",
    "read_ratings",
    "read_weights",
    "take_ranking",
]

_CHUNK = 1 << 17  # rows that are worked on at a time: a chunk fits into the cache
_GREATEST_RATING = 1e100
_JUDGMENTS = Kind(("query_id", "doc_id"), "relevance", ("query_id", "iteration", "doc_id", "relevance"))
_SUBTOPICS = Kind((*_JUDGMENTS.ids, "subtopic"), "relevance", ("query_id", "subtopic", "doc_id", "relevance"))
_PARTS = Kind((*_SUBTOPICS.ids, "part"), "relevance", ("query_id", "subtopic", "part", "doc_id", "relevance"))
_RANKING = Kind(("query_id", "doc_id"), "score", ("query_id", "Q0", "doc_id", "rank", "score", "tag"))
_RANKS = Kind(_RANKING.ids, "rank", _RANKING.trec)
_RATINGS = Kind(("query_id", "doc_id"), "rating")
_PREDICTIONS = Kind(("query_id", "doc_id"), "prediction")
_WEIGHTS = Kind(("query_id", "doc_id"), "weight")
_INTERACTIONS = Kind(("query_id", "doc_id"), None)
_QUERIES = Kind(("query_id",), None)
_DOCUMENTS = Kind(("doc_id",), None)

_KINDS = "categories as texts or whole numbers, one or a list of them, or a vector as a list of decimal numbers"

T = TypeVar("T")


def read_judgments(
    source: Source | str,
    *,
    subtopics: bool = False,
    parts: bool = False,
    folder: Path | None = None,
    _many: int = MANY_ROWS,
) -> Rows:
    """Relevance judgments: (query_id, doc_id, relevance); in TREC text query, iteration, document, relevance.

    Args:
        source: the input, or its path.
        subtopics: whether documents are judged for subtopics: there is a further column `subtopic`, which in TREC text
            stands in the place of the iteration.
        parts: whether subtopics have parts: in TREC text a field follows, and stands after a tab in the subtopic.
        folder: where the documents of many rows are kept in a temporary file; None for the system's.

    Raises:
        InputError: the file is missing, empty or malformed, changed while it was read, is larger or has longer ids than
            it may, or a relevance is not a finite number.
    """
    return _read_rows(source, _PARTS if parts else _SUBTOPICS if subtopics else _JUDGMENTS, folder, _many)


def read_ranking(source: Source | str, *, by: Literal["rank", "score"] = "score") -> Rows:
    """A model's rankings: (query_id, doc_id, score); in TREC text query, Q0, document, rank, score, tag.

    Args:
        source: the input, or its path.
        by: what orders the documents: the score, or the rank, whose negative is then the score.

    Raises:
        InputError: as of `read_judgments`.
    """
    if by == "score":
        return _read_rows(source, _RANKING)
    return _negative(_read_rows(source, _RANKS))


def _negative(rows: Rows) -> Rows:
    return replace(rows, chunks=tuple(replace(chunk, values=-chunk.values) for chunk in rows.chunks))


def ranking_kind(by: Literal["rank", "score"]) -> Kind:
    """What is taken from a file of rankings whose documents are ordered by that."""
    return _RANKING if by == "score" else _RANKS


class RankingRanges:
    """A model's rankings as `read_ranking` reads them, range by range.

    Attributes:
        path: the input as it was named.
        last_fields: of TREC text, the fields of the last line that holds a row, once all ranges were taken.
    """

    def __init__(
        self, source: Source | str, *, by: Literal["rank", "score"] = "score", n_rows: int = PART_ROWS
    ) -> None:
        """Read nothing yet.

        Args:
            source: the input, or its path.
            by: as of `read_ranking`.
            n_rows: rows of a range, about.
        """
        self._reading = Reading(source, ranking_kind(by), n_rows)
        self.last_fields: list[bytes] = []
        self.path = self._reading.source.path

    @property
    def files(self) -> tuple[InputFile, ...]:
        """The files it consists of, once all ranges were taken."""
        return tuple(self._reading.files)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the layouts of its files were taken for, a line each, likewise."""
        return self._reading.remarks

    def __iter__(self) -> Iterator[Rows]:
        """The rows of each range, at least one; each time the input is read anew.

        Raises:
            InputError: as of `read_ranking`, once everything was read.
        """
        for begin, rows in self.each(lambda rows, _: rows):
            yield replace(rows, place=partial(self._placed, begin))

    def each(self, function: Callable[[Rows, bool], T], at_a_time: int = 1) -> Iterator[tuple[int, T]]:
        """The rows before each range, and what the function makes of its own, in order; the input is read anew.

        Args:
            function: takes the rows of a range, at least one, numbered from its first, and whether they are all rows.
            at_a_time: ranges that are parsed and given to the function side by side.

        Raises:
            InputError: as of `read_ranking`, once everything was read.
        """
        begin, odd = 0, None
        for taken in self._reading.each(partial(_take, self.path, self._reading.kind, function), at_a_time):
            self.last_fields = taken.last_fields
            if odd is None and taken.odd is not None:
                odd = taken.odd._replace(row=begin + taken.odd.row)
            if odd is None and taken.made is not None:
                yield begin, taken.made
            begin += taken.n_rows
        if odd is not None:
            _refuse_value(self.path, self._reading.kind, odd, self.place)

    def place(self, row: int) -> str:
        """Where a row stands, such as `line 3`; the ranges before it must have been taken."""
        return self._reading.place(row)

    def _placed(self, begin: int, row: int) -> str:
        return self.place(begin + row)


class _OddValue(NamedTuple):
    """A value that cannot stand in its row, and why."""

    row: int
    value: float
    problem: str


@dataclass(frozen=True, eq=False)
class _Taken(Generic[T]):
    """What was made of a range's rows, unless a value is odd, and the last fields of TREC text."""

    n_rows: int
    made: T | None
    odd: _OddValue | None
    last_fields: list[bytes]


def _take(path: str, kind: Kind, function: Callable[[Rows, bool], T], part: FilePart, table: pa.Table) -> _Taken[T]:
    """What the function makes of a range of the output at that path."""
    rows = _rows(path, (), kind, table, row_number)
    odd = _odd_value(rows, kind)
    last = last_fields(part.data) if part.format is FORMATS["trec"] else []
    ranked = rows if kind == _RANKING else _negative(rows)
    is_whole = part.whole and part.path == path  # of several files none is
    return _Taken(len(table), None if odd else function(ranked, is_whole), odd, last)


def take_ranking(part: FilePart, by: Literal["rank", "score"], function: Callable[[Rows], T]) -> tuple[int, T | None]:
    """How many rows a part of a ranking has, numbered from its first, and what the function makes of them, if any.

    Args:
        part: its layout was recognised.
        by: what orders the documents.
        function: takes the rows.

    Raises:
        InputError: it is malformed, or a score is not finite; where in the file is not said.
    """
    kind = ranking_kind(by)
    table = _parsed(part, kind)
    if not len(table):
        return 0, None
    taken = _take(part.path, kind, lambda rows, _: function(rows), part, table)
    if taken.odd is not None:
        _refuse_value(part.path, kind, taken.odd, row_number)
    return taken.n_rows, taken.made


def read_ratings(source: Source | str) -> Rows:
    """Ratings: (query_id, doc_id, rating). Errors are those of `read_judgments`."""
    return _read_rows(source, _RATINGS)


def read_weights(source: Source | str) -> Rows:
    """What the pairs of a file of ratings weigh: (query_id, doc_id, weight). Errors are those of `read_judgments`."""
    return _read_rows(source, _WEIGHTS)


def read_predictions(source: Source | str) -> Rows:
    """A model's predicted ratings: (query_id, doc_id, prediction). Errors are those of `read_judgments`."""
    return _read_rows(source, _PREDICTIONS)


def read_interactions(source: Source | str) -> Rows:
    """What queries consumed before: (query_id, doc_id), repeated or not; the value is 0. As `read_judgments`."""
    return _read_rows(source, _INTERACTIONS)


def read_queries(source: Source | str, *, further: Sequence[str] = (), others: bool = False) -> Ids:
    """The queries table's ids and the texts of these columns. As `read_judgments`; an id that occurs twice is refused.

    Args:
        source: the input, or its path.
        further: columns of the file, by their names there or as its `columns` map them.
        others: whether to read the other columns, too: those that every file has, with texts or numbers in all cells.
    """

    def columns(part: FilePart) -> dict[str, list[str | None]]:
        named = {name: _texts(part, name) for name in further}
        return named | (_other_texts(part, {part.name(name) for name in ("query_id", *further)}) if others else {})

    queries, parts = _read_ids(source, _QUERIES, columns, alone=not (further or others))
    names = [name for name in parts[0] if all(name in part for part in parts)]
    return replace(queries, texts={name: [*chain.from_iterable(part[name] for part in parts)] for name in names})


def read_documents(source: Source | str, *, features: Sequence[str] = ()) -> Ids:
    """The catalogue's ids and these features of its documents. As `read_judgments`; an id that occurs twice is refused.

    Args:
        source: the input, or its path.
        features: columns of the file, by their names there.
    """
    documents, parts = _read_ids(
        source, _DOCUMENTS, lambda part: _read_features(part, features) if features else [], alone=not features
    )
    joined = zip(features, zip(*parts, strict=True), strict=True)
    n_documents = len(documents.ids)
    return replace(
        documents,
        features={name: _joined_feature(documents.path, name, columns, n_documents) for name, columns in joined},
    )


TextReader: TypeAlias = Callable[[Source, Collection[str], Sequence[str]], tuple[tuple[InputFile, ...], dict[str, str]]]
"""Reads the texts of some ids from the first of these columns that a file has, and says which files it read."""


def read_query_texts(
    source: Source, ids: Collection[str], columns: Sequence[str]
) -> tuple[tuple[InputFile, ...], dict[str, str]]:
    """The texts of these queries of a queries table. Errors are those of `read_judgments`."""
    return _read_texts(Reading(source, _QUERIES), ids, columns)


def read_document_texts(
    source: Source, ids: Collection[str], columns: Sequence[str]
) -> tuple[tuple[InputFile, ...], dict[str, str]]:
    """The texts of these documents of a catalogue. Errors are those of `read_judgments`."""
    return _read_texts(Reading(source, _DOCUMENTS), ids, columns)


def _read_texts(
    reading: Reading, ids: Collection[str], columns: Sequence[str]
) -> tuple[tuple[InputFile, ...], dict[str, str]]:
    wanted = strings(ids)

    def take(part: FilePart, table: pa.Table) -> dict[str, str]:
        known = part.format.columns(part)
        named = next((name for name in columns if known.count(name) == 1), None)
        if named is None:
            return {}
        own = table.column(reading.kind.ids[0]).cast(pa.string())
        places = np.flatnonzero(pc.is_in(own, wanted).to_numpy(zero_copy_only=False))
        cells = part.format.cells(part, [named])[named]
        texts = {own[place].as_py(): _text(part, named, place, cells[place]) for place in places.tolist()}
        return {name: text for name, text in texts.items() if text is not None}

    found = {name: text for texts in reading.each(take) for name, text in texts.items()}
    return tuple(reading.files), found


def _texts(part: FilePart, column: str) -> list[str | None]:
    """The texts of a column, None for a cell that is empty or holds blanks alone."""
    name = part.name(column)
    return [_text(part, name, row, cell) for row, cell in enumerate(part.format.cells(part, [name])[name])]


def _other_texts(part: FilePart, known: Collection[str]) -> dict[str, list[str | None]]:
    """The texts of the columns but these; a column that is not of texts or numbers, or occurs twice, is passed over."""
    columns = part.format.columns(part)
    texts = {}
    for name in columns:
        if name not in known and columns.count(name) == 1:
            with suppress(InputError):
                texts[name] = [
                    _text(part, name, row, cell) for row, cell in enumerate(part.format.cells(part, [name])[name])
                ]
    return texts


def _text(part: FilePart, name: str, row: int, cell: object) -> str | None:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, list | dict | bytes):
        holds = "a list" if isinstance(cell, list) else "a mapping" if isinstance(cell, dict) else "bytes"
        raise InputError(f"{part.path}: '{name}' holds {holds} ({part.position(row)}); write a text or a number")
    if isinstance(cell, bool):
        return "true" if cell else "false"
    text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
    refuse_surrogates(part, row + 1, [text])
    return text if text.strip() else None


def _read_rows(source: Source | str, kind: Kind, folder: Path | None = None, many: int = MANY_ROWS) -> Rows:
    """All rows; if they are many, their documents are in a file in the folder."""
    reading = Reading(source, kind, PART_ROWS)
    path = reading.source.path
    parts: list[Rows] = []
    stored, n_rows, odd = None, 0, None
    for rows in reading.each(lambda _, table: _rows(path, (), kind, table, row_number)):
        if odd is None and (found := _odd_value(rows, kind)):
            odd = found._replace(row=n_rows + found.row)
        n_rows += rows.ends[-1]
        parts.append(rows)
        if n_rows > many:
            stored = stored or DocumentFile(folder)
            parts = [_with_documents_in(stored, own) for own in parts]
    rows = replace(merge_rows(parts), files=tuple(reading.files), place=reading.place, remarks=reading.remarks)
    if odd:
        _refuse_value(rows.path, kind, odd, rows.place)
    return rows


def _with_documents_in(file: DocumentFile, rows: Rows) -> Rows:
    """The rows with their documents in the file, if they are not there already."""
    n_queries = len(rows.query_ids)
    chunks = [file.keep(chunk, n_queries) if isinstance(chunk, Chunk) else chunk for chunk in rows.chunks]
    return replace(rows, chunks=tuple(chunks))


def _rows(path: str, files: tuple[InputFile, ...], kind: Kind, table: pa.Table, place: Callable[[int], str]) -> Rows:
    batches = [batch for batch in table.unify_dictionaries().to_batches(max_chunksize=_CHUNK) if batch.num_rows]
    chunks = tuple(
        Chunk(
            query_codes=numpy_of(batch.column("query_id").indices, np.int32),
            doc_ids=batch.column("doc_id"),
            values=numpy_of(batch.column(kind.value), np.float64) if kind.value else np.zeros(batch.num_rows),
        )
        for batch in batches
    )
    names = [name for name in ("subtopic", "part") if name in kind.ids]
    columns = [concatenate([batch.column(name) for batch in batches]) for name in names]
    subtopics = pc.binary_join_element_wise(*columns, "\t") if len(columns) > 1 else next(iter(columns), None)
    query_ids = batches[0].column(0).dictionary.to_pylist()
    return Rows(path, files, query_ids, chunks, place, subtopics)


def _odd_value(rows: Rows, kind: Kind) -> _OddValue | None:
    """The first value that cannot stand in its row; None if there is none."""
    if not all(np.isfinite(chunk.values).all() for chunk in rows.chunks):
        row = int(np.flatnonzero(~np.isfinite(rows.values))[0])
        return _OddValue(row, float(rows.values[row]), "is not a finite number")
    if kind in (_RATINGS, _PREDICTIONS) and np.abs(rows.values).max() > _GREATEST_RATING:
        row = int(np.abs(rows.values).argmax())
        return _OddValue(row, float(rows.values[row]), "has no square in doubles")
    if kind == _WEIGHTS and rows.values.min() < 0:
        row = int(np.argmax(rows.values < 0))
        return _OddValue(row, float(rows.values[row]), "is negative")
    return None


def _refuse_value(path: str, kind: Kind, odd: _OddValue, place: Callable[[int], str]) -> NoReturn:
    raise InputError(f"{path}: {kind.value} {odd.value} ({place(odd.row)}) {odd.problem}; fix it")


def _read_ids(
    source: Source | str, kind: Kind, further: Callable[[FilePart], T], *, alone: bool
) -> tuple[Ids, list[T]]:
    """The ids, and what `further` takes from each file; if the ids are alone, a file is read in ranges."""
    reading = Reading(source, kind, PART_ROWS if alone else None)
    tables, taken = zip(*reading.each(lambda part, table: (table, further(part))), strict=True)
    path = reading.source.path
    ids = pa.concat_tables(tables).column(kind.ids[0]).cast(pa.string()).combine_chunks()
    if pc.count_distinct(ids).as_py() < len(ids):
        first: dict[str, int] = {}
        for row, name in enumerate(ids.to_pylist()):
            if first.setdefault(name, row) != row:
                rows = f"{reading.place(first[name])} and {reading.place(row)}"
                raise InputError(f"{path}: {kind.ids[0]} '{shorten(name)}' occurs twice ({rows}); keep one")
    return Ids(path, tuple(reading.files), ids, place=reading.place, remarks=reading.remarks), [*taken]


def _parsed(part: FilePart, kind: Kind) -> pa.Table:
    """The rows of a part; of one that has ranks where scores are wanted, with scores."""
    table = parse(part)
    return _scores_of_ranks(part, table) if part.kind.value == RANK != kind.value else table


def _scores_of_ranks(part: FilePart, table: pa.Table) -> pa.Table:
    """The ranks of a file without scores as scores: their negatives. What is no rank may be a score of that name."""
    ranks = table.column(RANK).to_numpy()
    odd = np.flatnonzero(~((ranks >= 0) & (ranks == np.rint(ranks))))
    if odd.size:
        found = f"rank {ranks[odd[0]]:g} ({part.position(int(odd[0]))}) is not a whole number from 0"
        form = "format: trec, " if part.format is FORMATS["trec"] else ""
        known = {column: part.names[column] for column in part.kind.ids if column in part.names}
        score = form + columns_line({**known, "score": part.name(RANK)})
        raise InputError(f"{part.path}: {found}; fix it, or if the highest comes first, say {score}")
    return table.set_column(table.column_names.index(RANK), "score", pa.chunked_array([floats(-ranks)]))


def layout_remarks(paths: Mapping[str, str]) -> tuple[str, ...]:
    """What files were taken for, a line each: of each remark on a layout the first file that it is about."""
    return tuple(f"{remark} (such as {path})" for remark, path in paths.items() if remark)


class Reading:
    """An input that is parsed from its beginning to its end, each time that it is gone through.

    Attributes:
        source: the input.
        kind: what to take from it.
        files: the files that were read to their ends.
    """

    def __init__(self, source: Source | str, kind: Kind, n_rows: int | None = None) -> None:
        """Read nothing yet.

        Args:
            source: the input, or its path.
            kind: what to take from it.
            n_rows: rows of a part, about; None if each file is one part.
        """
        self.source = Source(source) if isinstance(source, str) else source
        self.kind = kind
        self.files: list[InputFile] = []
        self._n_rows = n_rows
        self._opened: list[StoredFile] = []
        self._sizes: list[list[int]] = []  # rows of each part that has any or none, by file
        self._lists = OneList()
        self._paths: dict[str, str] = {}  # of each remark, the first file that it is about

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the layouts of the files that were read were taken for, a line each."""
        return layout_remarks(self._paths)

    def each(self, take: Callable[[FilePart, pa.Table], T], at_a_time: int = 1) -> Iterator[T]:
        """What is taken from each part that has rows, in the order of the files.

        Args:
            take: what to take from a part, given its rows, too.
            at_a_time: parts of a file that are parsed and taken from side by side.

        Raises:
            InputError: a file is missing, empty or malformed, or changed while it was read.
        """
        self.files, self._opened, self._sizes, self._lists = [], [], [], OneList()
        if self.source.held is not None:
            yield self._take_held(self.source.held, take)
            return
        for file in each_file(self.source):
            self._opened.append(file)
            self._sizes.append([])
            yield from self._each_of(file, take, at_a_time)

    def _each_of(self, file: StoredFile, take: Callable[[FilePart, pa.Table], T], at_a_time: int) -> Iterator[T]:
        """What is taken from one file, and its size and digest: all of the same bytes, read once."""

        def parsed(part: FilePart) -> tuple[FilePart, Sequence[str], int, list[T]]:
            table = _parsed(part, self.kind)
            layout = replace(part, stored=pa.py_buffer(b""), spans=None)  # its bytes are not kept
            return layout, listed_queries(part, table), len(table), [take(part, table)] if len(table) else []

        sizes = self._sizes[-1]
        with refusing_unreadable(file.path), file.contents() as contents:
            for part, queries, n_rows, taken in map_ahead(parsed, self._parts(file, contents), at_a_time):
                sizes.append(n_rows)
                self._paths.setdefault(part.remark, file.path)
                self._lists.add(part, queries)
                yield from taken
            if not sum(sizes):
                raise InputError(f"{file.path}: no rows; write the file again")
            self.files.append(contents.describe())

    def _take_held(self, held: InMemory, take: Callable[[FilePart, pa.Table], T]) -> T:
        """What is taken from an input in memory, which is one part."""
        from rankledger.pipeline.data.formats.memory import describe_rows

        part = self._held_part(held)
        table = _parsed(part, self.kind)
        if not len(table):
            raise InputError(f"{part.path}: no rows; give some")
        self._paths[part.remark] = part.path
        if held.recorded:
            self.files = [describe_rows(part, table)]
        return take(part, table)

    def _held_part(self, held: InMemory) -> FilePart:
        from rankledger.pipeline.data.formats.memory import MEMORY

        source = self.source
        stored = pa.py_buffer(b"")
        part = FilePart(source.path, MEMORY, stored, self.kind, source.columns, source.large, held=held)
        return recognised(part, memoryview(b""), ended=True)

    def _parts(self, file: StoredFile, contents: Contents) -> Iterator[FilePart]:
        return file_parts(file, contents, self.kind, self.source, self._n_rows)

    def place(self, row: int) -> str:
        """Where a row stands, such as `line 3`; with its file, if there are several."""
        if self.source.held is not None:
            return self._held_part(self.source.held).position(row)
        number = 0
        while row >= sum(self._sizes[number]):
            row -= sum(self._sizes[number])
            number += 1
        of = f" of {self._opened[number].path}" if len(self._opened) > 1 else ""
        return self._place(number, row) + of

    def _place(self, number: int, row: int) -> str:
        """Where a row of a file stands; its number if the file has changed since it was read."""
        file, position, left = self._opened[number], "", row
        try:
            with file.contents() as contents:
                for part, size in zip(self._parts(file, contents), self._sizes[number], strict=False):
                    if 0 <= left < size:
                        position = part.position(left)
                    left -= size
                if self.files[number : number + 1] in ([], [contents.describe()]):
                    return position
        except InputError:
            pass
        return f"row {row + 1}"


@dataclass(frozen=True, eq=False)
class _Feature:
    """One feature of a file's documents: how many categories or numbers each has, and all of them in one array."""

    sizes: npt.NDArray[np.int64]
    values: pa.Array


def _read_features(part: FilePart, names: Sequence[str]) -> list[_Feature]:
    """These columns of one file of documents that was read before, so that its rows are known to be sound."""
    if part.format.table is None:
        cells = part.format.cells(part, names)
        return [_of_cells(part.path, name, cells[name]) for name in names]
    table = part.format.table(part, names)
    return [_of_array(part.path, name, table.column(name).combine_chunks()) for name in names]


def _joined_feature(path: str, name: str, columns: Sequence[_Feature], n_documents: int) -> Sparse:
    """The feature of all documents, from its columns in the files they stand in."""
    if len({column.values.type for column in columns if len(column.values)}) > 1:
        raise InputError(f"{path}: '{name}' holds categories in one file and vectors in another; write one kind")
    sizes = np.concatenate([column.sizes for column in columns])
    if len(sizes) != n_documents:
        raise InputError(
            f"{path}: '{name}' has {len(sizes)} rows, but there are {n_documents} ids; write the file again"
        )
    values = [column.values for column in columns if len(column.values)]
    if values and pa.types.is_floating(values[0].type):
        return _vectors(path, name, sizes, np.concatenate([numpy_of(part, np.float64) for part in values]))
    return _categories(sizes, concatenate(values))


def _of_cells(path: str, name: str, cells: Sequence[Any]) -> _Feature:
    """Cell by cell: Arrow would take texts that look like dates for dates."""
    lists = [cell if isinstance(cell, list) else [] if cell is None else [cell] for cell in cells]
    entries = [entry for values in lists for entry in values]
    sizes = np.array([len(values) for values in lists], dtype=np.int64)
    types = {type(entry) for entry in entries}
    if types <= {int, float} and float in types and all(cell is None or isinstance(cell, list) for cell in cells):
        return _Feature(sizes, floats(np.array([*map(double, entries)])))
    if not types <= {str, int}:
        odd = next(entry for entry in entries if type(entry) not in (str, int))
        raise InputError(f"{path}: '{name}' holds {written(odd)}; write {_KINDS}")
    return _split(sizes, strings(map(str, entries)))


def _of_array(path: str, name: str, column: pa.Array) -> _Feature:
    """One column of a table of Arrow."""
    found = column.type
    if pa.types.is_dictionary(found):
        column = column.dictionary_decode()
    plain = column.type
    if pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_integer(plain):
        texts = pc.fill_null(column.cast(pa.string()), "")
        return _split(np.ones(len(texts), dtype=np.int64), texts)
    if pa.types.is_list(plain) or pa.types.is_large_list(plain) or pa.types.is_fixed_size_list(plain):
        sizes = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
        values = pc.list_flatten(column)
        if pa.types.is_floating(plain.value_type):
            return _Feature(numpy_of(sizes, np.int64), pc.fill_null(values.cast(pa.float64()), float("nan")))
        if pa.types.is_string(plain.value_type) or pa.types.is_integer(plain.value_type):
            return _split(numpy_of(sizes, np.int64), pc.fill_null(values.cast(pa.string()), ""))
    raise InputError(f"{path}: '{name}' is {shorten(str(found))}; write {_KINDS}")


def _split(sizes: npt.NDArray[np.int64], texts: pa.StringArray) -> _Feature:
    """The categories in these texts, some texts to a document: without blanks around them, none of them empty."""
    parts = pc.split_pattern(texts, "|")
    rows = np.repeat(np.repeat(np.arange(len(sizes)), sizes), numpy_of(pc.list_value_length(parts), np.int32))
    names = pc.utf8_trim_whitespace(pc.list_flatten(parts))
    full = np.flatnonzero(numpy_of(pc.binary_length(names), np.int32))
    return _Feature(np.bincount(rows[full], minlength=len(sizes)), names.take(integers(full)))


def _categories(sizes: npt.NDArray[np.int64], names: pa.StringArray) -> Sparse:
    """A column for each category, in the order of their names; a document has each of its own once."""
    coded = names.dictionary_encode()
    distinct = coded.dictionary.to_pylist()
    order = np.argsort(np.array(sorted(range(len(distinct)), key=distinct.__getitem__), dtype=np.int64))
    n_columns = max(1, len(distinct))
    rows = np.repeat(np.arange(len(sizes)), sizes)
    keys = np.unique(rows * n_columns + order[numpy_of(coded.indices, np.int32)])
    starts = np.searchsorted(keys // n_columns, np.arange(len(sizes) + 1))
    return Sparse(starts.astype(np.int64), (keys % n_columns).astype(np.int32), np.ones(len(keys)))


def _vectors(path: str, name: str, sizes: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> Sparse:
    lengths = np.unique(sizes[sizes > 0])
    if len(lengths) > 1:
        found = f"of {lengths[0]} and of {lengths[1]} numbers"
        raise InputError(f"{path}: '{name}' has vectors {found}; give all the same length")
    if not np.isfinite(values).all():
        raise InputError(f"{path}: '{name}' holds a number that is not finite; fix it")
    columns = np.tile(np.arange(lengths[0], dtype=np.int32), len(values) // int(lengths[0]))
    return Sparse(np.concatenate([[0], np.cumsum(sizes)]), columns, values)
