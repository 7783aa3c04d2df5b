"""Read rows from files of any format.

Ids are strings and keep their spelling: "01" is not "1". Texts of a queries table do, too. A whole number is written
without decimals, because a column with an empty cell becomes decimal, true and false as in JSON. An incomplete row is
rejected with its file and line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.pipeline.config.sources import InMemory, Source
from rankledger.pipeline.data.catalogue import joined_feature, read_features
from rankledger.pipeline.data.files import StoredFile, refusing_unreadable, suffixes
from rankledger.pipeline.data.formats import FORMATS, format_of, parse
from rankledger.pipeline.data.formats.common import PAGE, FilePart, Kind, count_lines, refuse_surrogates
from rankledger.pipeline.data.formats.delimited import last_fields
from rankledger.pipeline.data.formats.json import JsonObject, json_object
from rankledger.pipeline.data.formats.layouts import RANK, columns_line, is_number, recognise_names
from rankledger.pipeline.data.formats.parquet import refuse_second_list
from rankledger.pipeline.data.judgments import hash_ids
from rankledger.pipeline.data.locate import each_file, find_files
from rankledger.pipeline.data.parts import PART_ROWS, file_parts, recognised
from rankledger.pipeline.data.rows import (
    MANY_ROWS,
    Chunk,
    ExternalMetrics,
    Ids,
    InputFile,
    Rows,
    Spill,
    merge_rows,
    row_number,
)
from rankledger.pipeline.support.arrow import concatenate, floats, numpy_of, strings
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.support.parallel import map_ahead

_SHORTENED = re.compile(" fields found where | is not a number|: not (JSON|UTF-8)|unexpected end of data")
_LINES = 11  # the last one and ten before it, by which its number is known to be shorter
_DROPPED = 3  # zeros at the end of a number: of a thousand random numbers one has so many
_RANKED = 1 << 12  # rows whose ranks are compared with their scores
_FIRST_BYTES = 1 << 15  # bytes of text, likewise
_CLEAR = 0.9  # of neighbors by rank
_CHUNK = 1 << 17  # rows that are worked on at a time: a chunk fits into the cache
_OddValues: TypeAlias = tuple[tuple[Callable[[npt.NDArray[np.floating]], npt.NDArray[np.bool_]], str], ...]
_NOT_FINITE: _OddValues = ((lambda values: ~np.isfinite(values), "is not a finite number"),)
_NOT_SQUARE = (*_NOT_FINITE, (lambda values: np.abs(values) > 1e100, "has no square in doubles"))
_ODD_VALUES: Mapping[str, _OddValues] = {  # of each number, those that cannot stand in a row, and why
    "rating": _NOT_SQUARE,
    "prediction": _NOT_SQUARE,
    "weight": (*_NOT_FINITE, (lambda values: values < 0, "is negative")),
}
_JUDGMENTS = Kind(("query_id", "doc_id"), "relevance", ("query_id", "iteration", "doc_id", "relevance"))
_SUBTOPICS = Kind((*_JUDGMENTS.ids, "subtopic"), "relevance", ("query_id", "subtopic", "doc_id", "relevance"))
_PARTS = Kind((*_SUBTOPICS.ids, "part"), "relevance", ("query_id", "subtopic", "part", "doc_id", "relevance"))
_RANKING = Kind(("query_id", "doc_id"), "score", ("query_id", "Q0", "doc_id", "rank", "score", "tag"))
_RANKS = Kind(_RANKING.ids, "rank", _RANKING.trec)


T = TypeVar("T")


def read_external_metrics(path: str) -> ExternalMetrics:
    """Return the finite numbers of one JSON file. Nested names are joined by dots: `eval.p95`."""
    file, *others = find_files(path)
    if others:
        raise InputError(f"{path}: matches {1 + len(others)} files; name one JSON file")
    with file.contents() as contents:
        text, description = contents.read().to_pybytes(), contents.describe()
    try:
        content = json.loads(text, parse_int=float, object_pairs_hook=json_object)
        numbers = dict(_flatten_numbers(path, content)) if isinstance(content, dict) else {}
        "".join(numbers).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}); write an object of numbers") from None
    if not isinstance(content, dict):
        raise InputError(f'{path}: found {type(content).__name__}; write an object of numbers, as {{"cost": 1.5}}')
    return ExternalMetrics(numbers, description)


def _flatten_numbers(path: str, found: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name in found.doubled if isinstance(found, JsonObject) else ():  # either number could be meant
        raise InputError(f"{path}: is not JSON ('{shorten(name)}' occurs twice); write an object of numbers")
    for name, value in found.items():
        if isinstance(value, JsonObject):
            yield from _flatten_numbers(path, value, f"{prefix}{name}.")
        elif isinstance(value, float) and math.isfinite(value):
            yield prefix + name, value


def read_judgments(
    source: Source | str,
    *,
    subtopics: bool = False,
    parts: bool = False,
    folder: Path | None = None,
    _many: int = MANY_ROWS,
) -> Rows:
    """Read relevance judgments: (query_id, doc_id, relevance), in TREC text query, iteration, document, relevance.

    Args:
        source: Input, or its path.
        subtopics: True if there is a column `subtopic`, in TREC text in place of the iteration.
        parts: True if subtopics have parts: a further field of TREC text, which follows a tab in the subtopic.
        folder: Folder for the documents of many rows in a temporary file. None for the system's.
    """
    return _read_rows(source, _PARTS if parts else _SUBTOPICS if subtopics else _JUDGMENTS, folder, _many)


def read_ranking(source: Source | str, *, by: Literal["rank", "score"] = "score") -> Rows:
    """Read rankings: (query_id, doc_id, score), in TREC text query, Q0, document, rank, score, tag."""
    if by == "score":
        return _read_rows(source, _RANKING)
    return _negative(_read_rows(source, _RANKS))


def find_cut_number(source: Source) -> str | None:
    """Return a warning if the last, unended line has a number with fewer decimals than all others."""
    page = b""
    with suppress(InputError):
        file = StoredFile("", None, "") if source.held else find_files(source)[-1]
        if (source.format or format_of(file.suffix)) in ("trec", "tsv", "csv") and not suffixes(file.name)[1]:
            with file.contents() as contents:
                page = bytes(contents.end(PAGE))
    if page[-1:] in (b"", b"\n", b"\r"):
        return None
    texts = [re.findall(r"[^\s,]*$", line)[0] for line in page.decode(errors="replace").splitlines()[1:]]  # no header
    if len(texts) < _LINES or not all(map(is_number, texts)):
        return None
    *others, last = (len(text.lower().partition("e")[0].partition(".")[2]) for text in texts)
    if last >= min(others) or (last and len({*others}) > 1 and last > min(others) - _DROPPED):
        return None
    problem = f"its number {texts[-1]} has fewer decimals than all before it"
    return f"{file.path}: the last line has no end, and {problem}. Check if the file is cut off."


def _negative(rows: Rows) -> Rows:
    return replace(rows, chunks=tuple(replace(chunk, values=-chunk.values) for chunk in rows.chunks))


def _find_rank_order(part: FilePart, table: pa.Table) -> int:
    has_pairs = part.content is not None or (part.held is not None and isinstance(part.held.data, Mapping | list))
    if part.kind.value != "score" or part.lists or has_pairs:
        return 0
    rows: list[tuple[str, float, float]] = []
    with suppress(InputError, pa.ArrowException, KeyError):  # of a format that has no further columns
        table = _with_ranks(part, table)
        rows = sorted(zip(*(table.column(name).to_pylist() for name in ("query_id", RANK, "score")), strict=True))
    pairs = [(row, next_row) for row, next_row in pairwise(rows) if row[0] == next_row[0] and row[1] < next_row[1]]
    rises = [next_row[2] > row[2] for row, next_row in pairs if next_row[2] != row[2]]
    share = sum(rises) / len(rises) if len(rises) > 1 else 0.5
    return int(share >= _CLEAR) - int(share <= 1 - _CLEAR)


def _with_ranks(part: FilePart, table: pa.Table) -> pa.Table:
    if part.format.cut is not None and part.format.table is not None:
        ranks = part.format.table(part, [part.name(RANK)]).column(0).slice(0, _RANKED)
        return table.slice(0, _RANKED).append_column(RANK, ranks.drop_null().cast(pa.float64()))
    if part.held is not None:
        part = replace(part, held=replace(part.held, data=part.held.data[:_RANKED]))
    elif len(part.data) > _FIRST_BYTES:
        begin = bytes(part.data[:_FIRST_BYTES])
        part = replace(part, stored=pa.py_buffer(begin[: begin.rfind(b"\n") + 1]))
    return part.format.parse(replace(part, kind=replace(part.kind, further=(RANK,))))


def read_pairs(source: Source | str, value: Literal["rating", "prediction", "weight"] | None = None) -> Rows:
    """Read pairs (query_id, doc_id, value) with the named value. Without value it is 0 and pairs may repeat."""
    return _read_rows(source, Kind(("query_id", "doc_id"), value))


def read_queries(source: Source | str, *, further: Sequence[str] = (), others: bool = False) -> Ids:
    """Read a queries table's ids and the texts of the named columns, or with `others` of all columns."""

    def columns(part: FilePart) -> dict[str, list[str | None]]:
        named = {name: _texts(part, part.name(name)) for name in further}
        return named | (_other_texts(part, {part.name(name) for name in ("query_id", *further)}) if others else {})

    queries, parts = _read_ids(source, Kind(("query_id",), None), columns, alone=not (further or others))
    names = [name for name in parts[0] if all(name in part for part in parts)]
    return replace(queries, texts={name: [*chain.from_iterable(part[name] for part in parts)] for name in names})


def read_documents(source: Source | str, *, features: Sequence[str] = ()) -> Ids:
    """Read a catalog's ids and these features of its documents. Reject a repeated id."""
    documents, parts = _read_ids(
        source, Kind(("doc_id",), None), partial(read_features, names=features), alone=not features
    )
    joined = zip(features, zip(*parts, strict=True), strict=True)
    n_documents = len(documents.ids)
    return replace(
        documents,
        features={name: joined_feature(documents.path, name, columns, n_documents) for name, columns in joined},
    )


def read_texts(
    source: Source, key: Literal["query_id", "doc_id"], ids: Collection[str], columns: Sequence[str]
) -> tuple[tuple[InputFile, ...], dict[str, str]]:
    """Return the files, and the texts of some queries or documents, from the first of the columns in a file."""
    id_array = strings(ids)

    def take(part: FilePart, table: pa.Table) -> dict[str, str]:
        names = part.format.columns(part)
        named = next((name for name in columns if names.count(name) == 1), None)
        if named is None:
            return {}
        id_column = table.column(key).cast(pa.string())
        is_wanted = pc.is_in(id_column, id_array).cast(pa.uint8()).combine_chunks()
        places = np.flatnonzero(numpy_of(is_wanted, np.uint8))
        cells = part.format.cells(part, [named])[named]
        texts = {id_column[place].as_py(): _text(part, named, place, cells[place]) for place in places.tolist()}
        return {name: text for name, text in texts.items() if text is not None}

    reading = Reading(source, Kind((key,), None))
    text_of = {name: text for texts in reading.each(take) for name, text in texts.items()}
    return tuple(reading.files), text_of


def _texts(part: FilePart, name: str) -> list[str | None]:
    return [_text(part, name, row, cell) for row, cell in enumerate(part.format.cells(part, [name])[name])]


def _other_texts(part: FilePart, known: Collection[str]) -> dict[str, list[str | None]]:
    columns = part.format.columns(part)
    texts = {}
    for name in columns:
        if name not in known and columns.count(name) == 1:
            with suppress(InputError):
                texts[name] = _texts(part, name)
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
    reading = Reading(source, kind, PART_ROWS)
    path = reading.source.path
    parts: list[Rows] = []
    stored, n_rows = None, 0
    for rows in reading.each(partial(_rows, path, kind)):
        n_rows += rows.ends[-1]
        parts.append(rows)
        if n_rows > many:
            stored = stored or Spill(folder)
            for number, part in enumerate(parts):  # whose documents are not there already
                kept = [stored.keep(c, len(part.query_ids)) if isinstance(c, Chunk) else c for c in part.chunks]
                parts[number] = replace(part, chunks=tuple(kept))
    return replace(merge_rows(parts), files=tuple(reading.files), place=reading.place, remarks=reading.remarks)


def _rows(path: str, kind: Kind, part: FilePart, table: pa.Table) -> Rows:
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
    rows = Rows(path, (), query_ids, chunks, row_number, subtopics)
    for is_odd, problem in _ODD_VALUES.get(kind.value or "", _NOT_FINITE):
        if any(is_odd(chunk.values).any() for chunk in chunks):
            row = int(np.argmax(is_odd(rows.values)))
            file_hint = "" if part.path == path else f" of {part.path}"
            raise InputError(
                f"{path}: {kind.value} {rows.values[row]} ({part.position(row)}{file_hint}) {problem}; fix it"
            )
    return rows


def _read_ids(
    source: Source | str, kind: Kind, further: Callable[[FilePart], T], *, alone: bool
) -> tuple[Ids, list[T]]:
    reading = Reading(source, kind, PART_ROWS if alone else None)
    tables, results = zip(*reading.each(lambda part, table: (table, further(part))), strict=True)
    path = reading.source.path
    ids = pa.concat_tables(tables).column(kind.ids[0]).cast(pa.string()).combine_chunks()
    if pc.count_distinct(ids).as_py() < len(ids):
        first: dict[str, int] = {}
        for row, name in enumerate(ids.to_pylist()):
            if first.setdefault(name, row) != row:
                rows = f"{reading.place(first[name])} and {reading.place(row)}"
                raise InputError(f"{path}: {kind.ids[0]} '{shorten(name)}' occurs twice ({rows}); keep one")
    return Ids(path, tuple(reading.files), ids, place=reading.place, remarks=reading.remarks), [*results]


def _parse_part(part: FilePart, kind: Kind) -> pa.Table:
    if part.kind.value is None and part.format is FORMATS["jsonl"]:
        columns = part.format.columns(part)  # the layout was recognised by the first object
        _, value, _ = recognise_names(kind.columns, kind.value, part.names, columns)
        part = part if value is None else replace(part, kind=kind)
    table = parse(part)
    if part.kind.value is None and kind.value:
        return table.append_column(kind.value, pa.chunked_array([floats(np.ones(len(table)))]))
    return _scores_of_ranks(part, table) if part.kind.value == RANK != kind.value else table


def _scores_of_ranks(part: FilePart, table: pa.Table) -> pa.Table:
    ranks = table.column(RANK).to_numpy()
    odd = np.flatnonzero(~((ranks >= 0) & (ranks == np.rint(ranks))))
    if odd.size:
        problem = f"rank {ranks[odd[0]]:g} ({part.position(int(odd[0]))}) is not a whole number from 0"
        form = "format: trec, " if part.format is FORMATS["trec"] else ""
        id_names = {column: part.names[column] for column in part.kind.ids if column in part.names}
        score = form + columns_line({**id_names, "score": part.name(RANK)})
        raise InputError(f"{part.path}: {problem}; fix it, or if the highest comes first, say {score}")
    return table.set_column(table.column_names.index(RANK), "score", pa.chunked_array([floats(-ranks)]))


def _cut_off(part: FilePart, message: str) -> str:
    data = part.data
    if part.spans is not None or not len(data) or bytes(data[-1:]) == b"\n":
        return ""
    number = part.before() + count_lines(bytes(data)) + 1
    is_last = _SHORTENED.search(message) and message.startswith(f"{part.path}:{number}:")
    return "; it is the last line and has no end, so the file may be cut off" if is_last else ""


class Reading:
    """Input that is parsed from beginning to end at each iteration."""

    def __init__(self, source: Source | str, kind: Kind, n_rows: int | None = None) -> None:
        self.source = Source(source) if isinstance(source, str) else source
        self.kind = kind
        self.files: list[InputFile] = []
        self._wanted = (kind, self.source, n_rows)
        self._opened: list[StoredFile] = []
        self._sizes: list[list[int]] = []  # rows of each part that has any or none, by file
        self._listed = np.empty(0, np.uint64)  # hashes of the queries that have a list
        self._paths: dict[str, str] = {}  # of each remark, the first file that it is about

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(f"{remark} (such as {path})" for remark, path in self._paths.items() if remark)

    def each(self, take: Callable[[FilePart, pa.Table], T], at_a_time: int = 1) -> Iterator[T]:
        """Yield the result of `take` for each part with rows, in the order of the files."""
        self.files, self._opened, self._sizes, self._listed = [], [], [], self._listed[:0]
        if self.source.held is not None:
            yield self._take_held(self.source.held, take)
            return
        for file in each_file(self.source):
            self._opened.append(file)
            self._sizes.append([])
            yield from self._read_file(file, take, at_a_time)
        if not any(map(sum, self._sizes)):
            raise InputError(f"{self.source.path}: no rows; write the file again")

    def _read_file(self, file: StoredFile, take: Callable[[FilePart, pa.Table], T], at_a_time: int) -> Iterator[T]:

        def parsed(part: FilePart) -> tuple[FilePart, Sequence[str], int, list[T]]:
            try:
                table = _parse_part(part, self.kind)
            except InputError as error:
                raise InputError(error.lines[0] + _cut_off(part, error.lines[0])) from None
            listed = bool(part.lists) and len(table) > 0
            layout = replace(part, stored=pa.py_buffer(b""), spans=None)  # its bytes are not kept
            queries = table.column("query_id").unify_dictionaries().chunk(0).dictionary.to_pylist() if listed else []
            return layout, queries, len(table), [take(part, table)] if len(table) else []

        sizes = self._sizes[-1]
        with refusing_unreadable(file.path), file.contents() as contents:
            for part, queries, n_rows, results in map_ahead(
                parsed, file_parts(file, contents, *self._wanted), at_a_time
            ):
                sizes.append(n_rows)
                self._paths.setdefault(part.remark, file.path)
                hashes = hash_ids(strings(queries))
                for place in np.flatnonzero(np.isin(hashes, self._listed))[:1].tolist():
                    refuse_second_list(part, queries[place])
                self._listed = np.concatenate([self._listed, hashes])
                yield from results
            self.files.append(contents.describe())

    def _take_held(self, held: InMemory, take: Callable[[FilePart, pa.Table], T]) -> T:
        from rankledger.pipeline.data.formats.memory import describe_rows

        empty = InputError(f"{held.name}: no rows; give some")
        if not len(held.data):  # columns without cells have types that mean nothing, such as null
            raise empty
        part = self.held_part(held)
        table = _parse_part(part, self.kind)
        if not len(table):
            raise empty
        self._paths[part.remark] = part.path
        if held.recorded:
            self.files = [describe_rows(part, table)]
        return take(part, table)

    def held_part(self, held: InMemory) -> FilePart:
        from rankledger.pipeline.data.formats.memory import MEMORY

        source = self.source
        stored = pa.py_buffer(b"")
        part = FilePart(source.path, MEMORY, stored, self.kind, source.columns, source.large, held=held)
        return recognised(part, memoryview(b""), ended=True)

    def place(self, row: int) -> str:
        if self.source.held is not None:
            return self.held_part(self.source.held).position(row)
        number = 0
        while row >= sum(self._sizes[number]):
            row -= sum(self._sizes[number])
            number += 1
        file_hint = f" of {self._opened[number].path}" if len(self._opened) > 1 else ""
        return self._place(number, row) + file_hint

    def _place(self, number: int, row: int) -> str:
        file, position, rest = self._opened[number], "", row
        try:
            with file.contents() as contents:
                for part, size in zip(file_parts(file, contents, *self._wanted), self._sizes[number], strict=False):
                    if 0 <= rest < size:
                        position = part.position(rest)
                    rest -= size
                if self.files[number : number + 1] in ([], [contents.describe()]):
                    return position
        except InputError:
            pass
        return f"row {row + 1}"


class RankingRanges(Reading):
    """Rankings of a model as `read_ranking` reads them, part by part."""

    def __init__(
        self, source: Source | str, *, by: Literal["rank", "score"] = "score", n_rows: int = PART_ROWS
    ) -> None:
        super().__init__(source, _RANKING if by == "score" else _RANKS, n_rows)
        self.path = self.source.path
        self.last_fields: list[bytes] = []  # of TREC text, of the last line with a row, once all parts were taken
        self.rank_order = 0  # 1 if scores rise with the ranks beside them, -1 if they fall, 0 if neither is clear

    def __iter__(self) -> Iterator[Rows]:
        for begin, rows in self.each_range(lambda rows, _: rows):
            yield replace(rows, place=partial(lambda begin, row: self.place(begin + row), begin))

    def each_range(self, function: Callable[[Rows, bool], T], at_a_time: int = 1) -> Iterator[tuple[int, T]]:
        """Yield the number of rows before each part, and the function's result for its rows."""

        def take(part: FilePart, table: pa.Table) -> tuple[int, T, list[bytes], int]:
            rows = _rows(self.path, self.kind, part, table)
            last = last_fields(part.data, part.kind) if part.format is FORMATS["trec"] else []
            order = _find_rank_order(part, table) if part.head is None and not part.before() else 0
            is_whole = part.whole and part.path == self.path  # of several files none is
            made = function(rows if self.kind == _RANKING else _negative(rows), is_whole)
            return len(table), made, last, order

        begin = 0
        for n_rows, made, last, order in self.each(take, at_a_time):
            self.last_fields = last
            self.rank_order = order if not begin else self.rank_order
            yield begin, made
            begin += n_rows
