"""Types and functions of all formats."""

from __future__ import annotations

import decimal
import io
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from rankledger.pipeline.config.sources import InMemory
from rankledger.pipeline.data.formats import layouts
from rankledger.pipeline.support.arrow import numpy_of
from rankledger.pipeline.support.errors import InputError, likely, shorten
from rankledger.pipeline.support.parallel import map_threads

BLOCK_SIZE = 1 << 22  # bytes that Arrow parses at a time: smaller pieces cost calls, larger ones leave the cache
PAGE = 1 << 16  # bytes that are searched at a time
LONGEST_ID = 1 << 16  # bytes: what is longer is no id but a file read as something else
REMEDIES = {"team": "write 1 where this model contributed the document, 0 where the other did, or the probability"}
"""Actions of error messages by column."""
_BOM = b"\xef\xbb\xbf"

Row = tuple[str | float, ...]
Cut: TypeAlias = tuple[Sequence[int] | None, int, Sequence[tuple[int, int]]]
"""Part of a file: its row groups (None for all), the rows before it, and (begin, end) of the bytes of its columns."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Format:
    """File format with its functions."""

    name: str
    suffixes: tuple[str, ...]  # endings of file names
    parse: Callable[[FilePart], pa.Table]  # the columns of `part.kind` under our names, without nulls
    position: Callable[[FilePart, int], str]  # where a row, counted from 0, is in the file, such as `line 3`
    columns: Callable[[FilePart], list[str]]  # names of a file's columns
    # the cells of these columns by name; a missing or doubled column is rejected
    cells: Callable[[FilePart, Sequence[str]], Mapping[str, Sequence[Any]]]
    table: Callable[[FilePart, Sequence[str]], pa.Table] | None = None  # the same as an Arrow table, faster
    # names of the columns by the beginning of a file; None if columns have no names
    header: Callable[[FilePart], list[str]] | None = None
    typed: bool = False  # True if a cell is a text, a number or a list; otherwise all cells are texts
    # lines of bytes that end with a line; None if a file cannot be cut at line ends
    count_lines: Callable[[bytes], int] | None = None
    # bytes at a file's end that say where its rows are, by some of the last
    end_size: Callable[[memoryview], int] | None = None
    # parts of about so many rows of a file whose end is there
    cut: Callable[[FilePart, int], Sequence[Cut]] | None = None
    # of a format with lists: the keys that lead to each value, by name, from a part and the first bytes of its file
    find_chains: Callable[[FilePart, bytes], Mapping[str, layouts.KeyChain]] | None = None
    # rows of a part with lists: the query, and `doc_id` and `value` (if there are values) as lists
    read_lists: Callable[[FilePart], pa.Table] | None = None
    # a part with loaded content, or a row a line if the file holds a table
    unfold: Callable[[FilePart], FilePart] | None = None
    samples: Callable[[FilePart], list[Sample]] | None = None  # results of another tool; None for tables
    is_recognised: Callable[[bytes], bool] | None = None  # whether a file that begins with these bytes is of that tool
    repeats: str = ""  # label that numbers the answers of one model to the same sample
    groups: bool = False  # True if several tasks may be one dataset


class Sample(NamedTuple):
    """Sample of another tool's results."""

    ids: Mapping[str, object]  # candidates for the query's id; `query_id` by default
    labels: Mapping[str, object]  # the task, the model and the like
    scores: Mapping[str, object]  # as they are in the file, but words that mean a number as that number
    failed: bool = False  # True if there is no answer to score
    content: tuple[str, object] = ("", None)  # field that tells what was asked, and its value
    is_cached: bool = False  # True if the answer came from the tool's cache


@dataclass(frozen=True)
class Kind:
    """Columns to read from a file."""

    ids: tuple[str, ...]
    value: str | None  # column that is a number, if any
    # fields of a line of TREC text; those after the last one wanted may be missing, and there may be more
    trec: tuple[str, ...] = ()
    totals: str = ""  # query of TREC lines that are of all queries, which are skipped
    further: tuple[str, ...] = ()  # more columns that are numbers

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.ids, self.value, *self.further) if self.value else self.ids

    @property
    def trec_places(self) -> tuple[int, ...]:
        return tuple(self.trec.index(column) for column in self.columns)


class Spans:
    """Python file of some bytes with their positions. Arrow reads it by one thread at a time.

    Attributes:
        size: Bytes of the whole file.
        views: Pieces that are there, each with the place of its first byte.
        asked: Places and numbers of bytes that were read but are not there.
    """

    closed = False

    def __init__(self, size: int, views: Sequence[tuple[int, memoryview]]) -> None:
        self.size = size
        self.views = views
        self.asked: list[tuple[int, int]] = []
        self._place = 0

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        self._place = place + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self.size}[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, size: int) -> memoryview:
        """Return these bytes without a copy. Empty if some are missing."""
        begin = self._place
        for place, view in self.views:
            if place <= begin and begin + size <= place + len(view):
                self._place += size
                return view[begin - place : begin - place + size]
        self.asked.append((begin, size))
        return memoryview(b"")

    def close(self) -> None:
        """Do nothing, though Arrow asks for it."""


@dataclass(frozen=True, eq=False)
class FilePart:
    """File of an input, or a part of it."""

    path: str
    format: Format
    stored: pa.Buffer  # uncompressed bytes; for Parquet those of the whole file, or none if there are spans
    kind: Kind
    names: Mapping[str, str]  # our column names to the file's, where they differ
    limit: float  # bytes that the rows may take
    # first lines of the file, down to one that is not blank; None if the part begins the file
    head: bytes | None = None
    before: Callable[[], int] = int  # number of lines, or rows of Parquet, before the part; only messages ask
    groups: Sequence[int] | None = None  # row groups of the part; None for all
    whole: bool = True  # True if the part is all of the file
    spans: Spans | None = None  # bytes of a Parquet file that are there
    held: InMemory | None = None  # input in memory; there are no bytes then
    content: Any = None  # object that a JSON file holds
    remark: str = ""  # layout that was recognised
    separator: str = ""  # separator of fields, if it is no single character
    # if a row holds all documents of its query: the keys to `query_id`, `doc_id` and, if there are any, `value`
    lists: Mapping[str, layouts.KeyChain] = field(default_factory=dict)
    falls: bool = False  # True if the values must not rise within a list

    @property
    def size(self) -> int:
        """Bytes of the part, for Parquet of the whole file."""
        return len(self.data) if self.spans is None else self.spans.size

    @property
    def data(self) -> memoryview:
        view = memoryview(self.stored).cast("B")
        return view if self.head is not None else without_bom(view)

    @property
    def beginning(self) -> FilePart:
        """Part at the beginning of the file, or only its head for any other part."""
        return self if self.head is None else replace(self, stored=pa.py_buffer(self.head), head=None, before=int)

    @property
    def list_columns(self) -> tuple[str, ...]:
        """Columns of the file that hold lists, or the queries beside them."""
        return tuple(dict.fromkeys(keys[0] for keys in self.lists.values()))

    def lines(self) -> io.BytesIO:
        return io.BytesIO(self.data)

    def position(self, row: int) -> str:
        """Return the place of a row, counted from 0, such as `line 3`."""
        if self.lists and self.format.read_lists:
            sizes = pc.list_value_length(self.format.read_lists(self).column("doc_id")).combine_chunks()
            row = int(np.searchsorted(np.cumsum(numpy_of(sizes, np.int64)), row, side="right"))
        return self.format.position(self, row)

    def at(self, number: int) -> str:
        """Return a line of the part for messages, such as `qrels.txt:3`."""
        is_json = self.format.name == "json"  # whose rows are numbered, not its lines
        return f"{self.path}: row {number}" if is_json else f"{self.path}:{self.before() + number}"

    def name(self, column: str) -> str:
        return self.names.get(column, column)

    def missing(self, columns: Sequence[str], found: Collection[str]) -> str:
        """Return the action if some of our columns are not among the file's."""
        if self.held is not None:
            return f"name its columns {', '.join(self.kind.columns)}"
        fields = dict(zip(self.kind.trec, next(iter(found), "").split(), strict=False)) if len(found) == 1 else {}
        if fields.get(self.kind.value or "", "").lstrip("+-.")[:1].isdigit():  # a header has no number there
            return "looks like TREC text; set format: trec, or rename it to .txt"
        if cause := layouts.explain_header(found):
            return cause
        if not self.format.typed and any(map(layouts.is_number, found)):
            numbers = layouts.columns_line(dict.fromkeys(self.kind.columns, "…"))
            return f"its first line is no header; add one of {len(found)} names, or write {numbers} with field numbers"
        return f"map it with {layouts.columns_line(layouts.suggest(columns, self.names, found))}"

    def check_columns(self, names: Sequence[str], found: Sequence[str], line: str = "") -> None:
        """Reject names that are missing or occur twice. `line` is the header's, such as `:1`."""
        present = {self.name(column): column for column in self.kind.columns if self.name(column) in names}
        for name in names:
            if name not in found:
                listed = shorten(", ".join(dict.fromkeys(found))) or "nothing"
                hint = f"; {self.missing([*present.values()], found)}" if name in present else likely(name, found)
                raise InputError(f"{self.path}{line}: no column '{name}' among {listed}{hint or '; fix its name'}")
            if found.count(name) > 1:
                raise InputError(f"{self.path}{line}: column '{name}' occurs twice; name each column once")


def line_position(rows: Callable[[FilePart], Iterator[tuple[int, Any]]]) -> Callable[[FilePart, int], str]:
    """Return the `position` of rows with line numbers."""
    return lambda part, row: f"line {part.before() + next(islice(rows(part), row, None))[0]}"


def count_lines(data: bytes) -> int:
    """Count the ended lines of bytes. A carriage return ends a line, too."""
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def without_bom(data: memoryview) -> memoryview:
    """Return the bytes without a byte-order mark."""
    return data[len(_BOM) :] if data[: len(_BOM)] == _BOM else data


def parse_csv(
    part: FilePart,
    data: memoryview,
    delimiter: str,
    wanted: list[str],
    names: list[str],
    *,
    header: bool = False,
    quotes: bool = False,
    whole_number: str = "",
) -> pa.Table:
    """Parse the wanted columns by Arrow, piece by piece, because its own threads would keep twice the memory.

    `whole_number` is a further column that must hold whole numbers.

    Raises:
        pa.ArrowInvalid: A line has another number of fields, a number is invalid, or the text is not UTF-8.
    """
    quoted = quotes and any(b'"' in bytes(data[begin : begin + PAGE]) for begin in range(0, len(data), PAGE))
    pieces = [data] if quoted else list(_pieces(data))  # a quoted field may hold line ends, and none can be cut at
    types = {field.name: field.type for field in schema_of(part.kind, wanted)}
    if part.kind.ids[0] == "query_id":
        types[wanted[0]] = pa.dictionary(pa.int32(), pa.string())  # few distinct ones: cheaper than strings
    types |= {whole_number: pa.int64()} if whole_number else {}
    parsing = pa.csv.ParseOptions(delimiter=delimiter, quote_char='"' if quotes else False, newlines_in_values=quoted)
    converting = pa.csv.ConvertOptions(
        include_columns=[*types], column_types=types, null_values=[], strings_can_be_null=False
    )

    def parse(number: int, piece: memoryview) -> pa.Table:
        named = None if header and number == 0 else names
        reading = pa.csv.ReadOptions(column_names=named, use_threads=False, block_size=len(piece) + 1)
        return pa.csv.read_csv(pa.BufferReader(piece), reading, parsing, converting).select(wanted)

    return pa.concat_tables(map_threads(parse, range(len(pieces)), pieces)).rename_columns(list(part.kind.columns))


def _pieces(data: memoryview) -> Iterator[memoryview]:
    """Yield pieces of about `BLOCK_SIZE` bytes, cut after line ends, without blank lines."""
    begin = 0
    while begin < len(data):
        end = begin + BLOCK_SIZE
        while end < len(data):
            offset = bytes(data[end : end + PAGE]).find(b"\n")
            if offset >= 0:
                end += offset + 1
                break
            end += PAGE
        piece = data[begin:end]
        if bytes(piece[:PAGE]).strip() or bytes(piece).strip():
            yield piece
        begin = end


def schema_of(kind: Kind, names: list[str]) -> pa.Schema:
    """Return the schema of a kind: ids as strings and numbers as float64, under the file's names."""
    types = [pa.string() if column in kind.ids else pa.float64() for column in kind.columns]
    return pa.schema(list(zip(names, types, strict=True)))


def odd_id(table: pa.Table, column: str) -> int | None:
    """Return the first row with an empty or too long id. None if there is none."""
    ids = table.column(column)
    is_coded = pa.types.is_dictionary(ids.type)
    texts = pa.chunked_array([chunk.dictionary for chunk in ids.chunks], ids.type.value_type) if is_coded else ids
    bounds = pc.min_max(pc.binary_length(texts)).as_py()
    if not len(ids) or (bounds["min"] > 0 and bounds["max"] <= LONGEST_ID):
        return None
    lengths = pc.binary_length(ids.cast(pa.string()))
    row: int = pc.index(pc.or_(pc.equal(lengths, 0), pc.greater(lengths, LONGEST_ID)), True).as_py()
    return row if row >= 0 else None


def refuse_id(part: FilePart, column: str, text: str, row: int) -> NoReturn:
    """Reject an empty or too long id."""
    if not text:
        raise InputError(f"{part.path}: empty {column} ({part.position(row)}); fill it")
    problem = f"{column} of {len(text.encode()):,} bytes ({part.position(row)})"
    raise InputError(f"{part.path}: {problem}; write ids of at most {LONGEST_ID:,}")


def row_of(part: FilePart, number: int, texts: list[str]) -> Row:
    """Return the texts of a row with its values as numbers."""
    refuse_surrogates(part, number, texts)
    n_ids = len(part.kind.ids)
    values = zip(part.kind.columns[n_ids:], texts[n_ids:], strict=True)
    return (*texts[:n_ids], *(_number(part, number, column, text) for column, text in values))


def number_in(text: str) -> float:
    """Return the number of a text. Raise ValueError if there is none."""
    if "_" in text or not text.isascii():
        raise ValueError  # Python reads 1_000 and other scripts' digits, no other tool does
    return float(text)


_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0} | dict.fromkeys(
    ("", "none", "null", "na", "n/a", "<na>", "#n/a", "#na", "nat", "unscored"), math.nan
)


def score_in(value: object) -> float:
    """Return the score of a value in any tool, NaN if there is none. Raise ValueError for other values.

    True and yes are 1, false and no are 0, and numbers may be strings.
    """
    if value is None:
        return math.nan
    if isinstance(value, str):
        word = value.strip().lower()
        return _WORDS[word] if word in _WORDS else number_in(word)
    if not isinstance(value, int | float | decimal.Decimal):
        raise ValueError
    return double(value)


def double(number: float | decimal.Decimal) -> float:
    """Return the number as a double. A whole one beyond all doubles is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _number(part: FilePart, number: int, column: str, text: str) -> float:
    try:
        return number_in(text)
    except ValueError:
        remedy = REMEDIES.get(column, "fix it")
        raise InputError(f"{part.at(number)}: {column} '{shorten(text)}' is not a number; {remedy}") from None


def refuse_surrogates(part: FilePart, number: int, texts: Iterable[str]) -> None:
    """Reject texts with lone surrogates, which are undecodable bytes."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise InputError(f"{part.at(number)}: not UTF-8; convert the file") from None


def table_of(part: FilePart, rows: Iterable[Row]) -> pa.Table:
    """Return the rows as a table under our column names."""
    columns = list(zip(*rows, strict=True)) or [()] * len(part.kind.columns)
    schema = schema_of(part.kind, list(part.kind.columns))
    return pa.table([pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)], schema)
