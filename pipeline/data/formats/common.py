"""What all formats share: what a format is, what is wanted of a file, and how its texts become rows of a table."""

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

from rankledger.pipeline.data.formats import layouts
from rankledger.pipeline.support.arrow import numpy_of
from rankledger.pipeline.support.errors import InputError, likely, shorten
from rankledger.pipeline.support.parallel import map_threads
from rankledger.pipeline.types.inputs import InMemory

BLOCK_SIZE = 1 << 22  # bytes that Arrow parses at a time: smaller pieces cost calls, larger ones leave the cache
PAGE = 1 << 16  # bytes that are searched at a time
LONGEST_ID = 1 << 16  # bytes: what is longer is no id but a file read as something else
REMEDIES = {"team": "write 1 where this model contributed the document, 0 where the other did, or the probability"}
"""What to write, by column, where `fix it` does not say it."""
_BOM = b"\xef\xbb\xbf"

EACH = "\0"  # in a chain of keys: each value of a list

Row = tuple[str | float, ...]
KeyChain: TypeAlias = tuple[str, ...]
"""The keys that lead to a value of a row: a column, and keys or fields below it."""

T = TypeVar("T")


@dataclass(frozen=True)
class Lists:
    """A layout with one row for each query, which has its documents as a list.

    Attributes:
        query_id: leads to the query.
        doc_id: leads to its documents.
        value: leads to their values; None if the order of the documents is their rank, or all are relevant.
        falling: whether the values must not rise within a list.
    """

    query_id: KeyChain
    doc_id: KeyChain
    value: KeyChain | None = None
    falling: bool = False

    @property
    def chains(self) -> Mapping[str, KeyChain]:
        """What leads to the query, the documents and the values, if there are any."""
        found = {"query_id": self.query_id, "doc_id": self.doc_id, "value": self.value}
        return {name: chain for name, chain in found.items() if chain is not None}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold them, each once."""
        return tuple(dict.fromkeys(chain[0] for chain in self.chains.values()))


class ListReader(NamedTuple):
    """How a format holds lists.

    Attributes:
        find: gives what leads to each value of a row, by name, from the beginning of a file and its first bytes.
        read: gives a part's rows: the query, `doc_id` as lists, and `value` likewise if there are values.
    """

    find: Callable[[FilePart, bytes], Mapping[str, KeyChain]]
    read: Callable[[FilePart], pa.Table]


@dataclass(frozen=True, eq=False)
class Format:
    """A file format: all that is known of it.

    Attributes:
        name: as a config writes it.
        suffixes: the endings of file names that mean it.
        parse: gives the columns of `part.kind` under our names, without nulls.
        position: says where a row, counted from 0, stands in the file, such as `line 3`.
        columns: gives the names of a file's columns.
        cells: gives the cells of these columns by name; a column that is missing or doubled is refused.
        table: gives the same columns as an Arrow table, faster; None if there is no such way.
        header: gives the names of the columns by the beginning of a file; None where they have no names.
        typed: whether a cell is a text, a number or a list; if not, all cells are texts.
        count_lines: counts the lines of bytes that end with a line; None if a file cannot be cut at line ends.
        end_size: how many bytes at a file's end say where its rows are, by some of the last; None if none do.
        cut: cuts a whole file, whose end must be there, into parts of about so many rows; None likewise.
        lists: how it holds lists of documents; None if it has none.
        unfold: gives a part whose content is loaded, or a row a line if the file holds a table; None if not needed.
        samples: gives the results of another tool; None for tables.
        is_recognised: whether a file that begins with these bytes is of that tool.
        repeats: the label that numbers the answers of one model to the same sample.
        groups: True if several tasks may be one dataset.
    """

    name: str
    suffixes: tuple[str, ...]
    parse: Callable[[FilePart], pa.Table]
    position: Callable[[FilePart, int], str]
    columns: Callable[[FilePart], list[str]]
    cells: Callable[[FilePart, Sequence[str]], Mapping[str, Sequence[Any]]]
    table: Callable[[FilePart, Sequence[str]], pa.Table] | None = None
    header: Callable[[FilePart], list[str]] | None = None
    typed: bool = False
    count_lines: Callable[[bytes], int] | None = None
    end_size: Callable[[memoryview], int] | None = None
    cut: Callable[[FilePart, int], Sequence[Cut]] | None = None
    lists: ListReader | None = None
    unfold: Callable[[FilePart], FilePart] | None = None
    samples: Callable[[FilePart], list[Sample]] | None = None
    is_recognised: Callable[[bytes], bool] | None = None
    repeats: str = ""
    groups: bool = False


class Sample(NamedTuple):
    """What another tool measured of one sample.

    Attributes:
        ids: what may name the query; `query_id` if nothing else is asked for.
        labels: what is measured: the task, the model and the like.
        scores: by name, as they stand in the file, but words that mean a number as that number.
        failed: whether there is no answer to score.
        content: The field that tells what was asked, and its value. Empty if the file does not tell.
        is_cached: True if the answer came from the tool's cache.
    """

    ids: Mapping[str, object]
    labels: Mapping[str, object]
    scores: Mapping[str, object]
    failed: bool = False
    content: tuple[str, object] = ("", None)
    is_cached: bool = False


@dataclass(frozen=True)
class Kind:
    """What a file holds.

    Attributes:
        ids: the columns that are ids.
        value: the column that is a number, if any.
        trec: the fields of a line of TREC text, if it can be TREC text; those after the last one wanted may be missing,
            and there may be more.
        totals: what stands for the query in lines of TREC text that are of all queries, which are passed over.
        further: more columns that are numbers.
    """

    ids: tuple[str, ...]
    value: str | None
    trec: tuple[str, ...] = ()
    totals: str = ""
    further: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, in order."""
        return (*self.ids, self.value, *self.further) if self.value else self.ids

    @property
    def trec_places(self) -> tuple[int, ...]:
        """Where the columns stand among the fields of TREC text."""
        return tuple(self.trec.index(column) for column in self.columns)


@dataclass(frozen=True, eq=False)
class Spans:
    """Some bytes of a file at their places, and its size; the others cannot be read.

    Attributes:
        size: bytes of the file.
        views: the bytes, each piece with the place of its first.
        asked: (place, bytes) of what was read and was not there.
    """

    size: int
    views: Sequence[tuple[int, memoryview]]
    asked: list[tuple[int, int]] = field(default_factory=list)

    def file(self) -> Any:
        """An Arrow file of them, which ends early where they are not."""
        return pa.PythonFile(_SpansFile(self), mode="r")

    def read(self, begin: int, n_bytes: int) -> memoryview:
        """These bytes, not copied; none if some of them are not there."""
        for place, view in self.views:
            if place <= begin and begin + n_bytes <= place + len(view):
                return view[begin - place : begin - place + n_bytes]
        self.asked.append((begin, n_bytes))
        return memoryview(b"")


class _SpansFile:
    """The same as Python has files; one thread at a time reads it, as Arrow sees to."""

    closed = False

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        self._place = 0

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        self._place = place + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._spans.size}[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, size: int) -> memoryview:
        found = self._spans.read(self._place, size)
        self._place += len(found)
        return found

    def close(self) -> None:
        """Nothing, though Arrow asks for it."""


@dataclass(frozen=True)
class Cut:
    """Where a file is cut.

    Attributes:
        groups: the row groups of a part; None for all.
        n_before: rows before it.
        spans: (begin, end) of each piece of the file that reading its columns takes; empty if all of it is there.
    """

    groups: Sequence[int] | None
    n_before: int
    spans: Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class FilePart:
    """One file of an input, or a part of it that is read on its own.

    Attributes:
        path: as people write it.
        format: its format.
        stored: its bytes, uncompressed; of a part of Parquet those of the whole file, or none if there are spans.
        kind: what to take from it.
        names: our column names to the file's, where they differ.
        limit: bytes that its rows may take.
        head: the file's beginning down to its first line that is not blank; None if the part begins the file.
        before: gives the number of lines, or of rows of Parquet, that stand before the part; messages alone ask.
        groups: the row groups that are the part; None for all.
        whole: whether it is all of the file.
        spans: of a part of Parquet, the bytes of the file that are there.
        held: the input itself, if it was given in memory; there are no bytes then.
        content: of JSON, the object that the file holds.
        remark: what the file's layout was taken for, if it had to be recognised.
        separator: what stands between two fields of the file, if it is no single character.
        lists: where the lists are, if a row holds all documents of its query.
    """

    path: str
    format: Format
    stored: pa.Buffer
    kind: Kind
    names: Mapping[str, str]
    limit: float
    head: bytes | None = None
    before: Callable[[], int] = int
    groups: Sequence[int] | None = None
    whole: bool = True
    spans: Spans | None = None
    held: InMemory | None = None
    content: Any = None
    remark: str = ""
    separator: str = ""
    lists: Lists | None = None

    @property
    def size(self) -> int:
        """Bytes of the part; of Parquet those of the whole file."""
        return len(self.data) if self.spans is None else self.spans.size

    @property
    def data(self) -> memoryview:
        """The bytes without the file's byte-order mark."""
        view = memoryview(self.stored).cast("B")
        return view if self.head is not None else without_bom(view)

    @property
    def beginning(self) -> FilePart:
        """The part that begins the file; of it, for any other, there is only the head."""
        return self if self.head is None else replace(self, stored=pa.py_buffer(self.head), head=None, before=int)

    def lines(self) -> io.BytesIO:
        """The bytes as a file that is read line by line."""
        return io.BytesIO(self.data)

    def position(self, row: int) -> str:
        """Where a row, counted from 0, stands, such as `line 3`; of lists, each document is a row."""
        if self.lists is not None and self.format.lists is not None:
            sizes = pc.list_value_length(self.format.lists.read(self).column("doc_id")).combine_chunks()
            row = int(np.searchsorted(np.cumsum(numpy_of(sizes, np.int64)), row, side="right"))
        return self.format.position(self, row)

    def at(self, number: int) -> str:
        """A line of the part as a message names it, such as `qrels.txt:3`."""
        is_json = self.format.name == "json"  # whose rows are numbered, not its lines
        return f"{self.path}: row {number}" if is_json else f"{self.path}:{self.before() + number}"

    def name(self, column: str) -> str:
        """Our column as the file calls it."""
        return self.names.get(column, column)

    def missing(self, columns: Sequence[str], found: Collection[str]) -> str:
        """What to do if some columns of ours are not among those of the file."""
        names = [*found]
        fields = dict(zip(self.kind.trec, names[0].split() if len(names) == 1 else (), strict=False))
        if self.held is not None and all(map(layouts.is_number, found)):
            return f"its columns have no names; name them, such as {', '.join(self.kind.columns)}"
        if fields.get(self.kind.value or "", "").lstrip("+-.")[:1].isdigit():  # a header has no number there
            return "looks like TREC text; set format: trec, or rename it to .txt"
        if cause := layouts.explain_header([*map(self.name, columns)], found):
            return cause
        meant = layouts.suggest(columns, self.names, found)
        if self.held is not None:
            renamed = ", ".join(f"'{name}' to '{column}'" for column, name in meant.items() if name != "…")
            return f"needed are {', '.join(self.kind.columns)}" + (f": rename {renamed}" if renamed else "")
        if not self.format.typed and any(layouts.is_number(name) for name in found):
            numbers = layouts.columns_line(dict.fromkeys(self.kind.columns, "…"))
            return f"its first line is no header; add one of {len(names)} names, or write {numbers} with field numbers"
        unknown = meant.get("score") == "…"
        direction = " where a higher score is better (negate distances), or {rank: …}" if unknown else ""
        return f"map it with {layouts.columns_line(meant)}{direction}"

    def check_columns(self, names: Sequence[str], found: Sequence[str], line: str = "") -> None:
        """Refuse columns that are not in the file, or occur twice.

        Args:
            names: columns, as the file calls them.
            found: those of the file.
            line: where these stand, such as `:1`.
        """
        ours = {self.name(column): column for column in self.kind.columns if self.name(column) in names}
        for name in names:
            if name not in found:
                listed = shorten(", ".join(dict.fromkeys(found))) or "nothing"
                meant = f"; {self.missing([*ours.values()], found)}" if name in ours else likely(name, found)
                raise InputError(f"{self.path}{line}: no column '{name}' among {listed}{meant or '; fix its name'}")
            if found.count(name) > 1:
                raise InputError(f"{self.path}{line}: column '{name}' occurs twice; name each column once")


def line_position(rows: Callable[[FilePart], Iterator[tuple[int, Any]]]) -> Callable[[FilePart, int], str]:
    """The `position` of a format whose rows come with the numbers of their lines."""
    return lambda part, row: f"line {part.before() + next(islice(rows(part), row, None))[0]}"


def count_lines(data: bytes) -> int:
    """The lines of bytes that end with one, where a carriage return ends a line, too."""
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def without_bom(data: memoryview) -> memoryview:
    """The bytes without a byte-order mark at their beginning."""
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
) -> pa.Table:
    """The wanted columns by Arrow, piece by piece: Arrow's own threads would keep twice the memory of the file.

    Args:
        part: the file.
        data: its lines.
        delimiter: what stands between two fields.
        wanted: the columns to read, by the file's names.
        names: all columns of the file.
        header: whether the first line holds the names.
        quotes: whether quotation marks may enclose a field.

    Raises:
        pa.ArrowInvalid: a line has another number of fields, a number is none, or the text is not UTF-8.
    """
    quoted = quotes and any(b'"' in bytes(data[begin : begin + PAGE]) for begin in range(0, len(data), PAGE))
    pieces = [data] if quoted else list(_pieces(data))  # a quoted field may hold line ends, and none can be cut at
    types = {field.name: field.type for field in schema_of(part.kind, wanted)}
    if part.kind.ids[0] == "query_id":
        types[wanted[0]] = pa.dictionary(pa.int32(), pa.string())  # few distinct ones: cheaper than strings
    parsing = pa.csv.ParseOptions(delimiter=delimiter, quote_char='"' if quotes else False, newlines_in_values=quoted)
    converting = pa.csv.ConvertOptions(
        include_columns=wanted, column_types=types, null_values=[], strings_can_be_null=False
    )

    def parse(number: int, piece: memoryview) -> pa.Table:
        named = None if header and number == 0 else names
        reading = pa.csv.ReadOptions(column_names=named, use_threads=False, block_size=len(piece) + 1)
        return pa.csv.read_csv(pa.BufferReader(piece), reading, parsing, converting)

    return pa.concat_tables(map_threads(parse, range(len(pieces)), pieces)).rename_columns(list(part.kind.columns))


def _pieces(data: memoryview) -> Iterator[memoryview]:
    """The data cut after line ends into pieces of about `BLOCK_SIZE` bytes; pieces of blank lines are left out."""
    begin = 0
    while begin < len(data):
        end = begin + BLOCK_SIZE
        while end < len(data):
            found = bytes(data[end : end + PAGE]).find(b"\n")
            if found >= 0:
                end += found + 1
                break
            end += PAGE
        piece = data[begin:end]
        if bytes(piece[:PAGE]).strip() or bytes(piece).strip():
            yield piece
        begin = end


def schema_of(kind: Kind, names: list[str]) -> pa.Schema:
    """Ids as strings and numbers as float64, under the file's names."""
    types = [pa.string() if column in kind.ids else pa.float64() for column in kind.columns]
    return pa.schema(list(zip(names, types, strict=True)))


def odd_id(table: pa.Table, column: str) -> int | None:
    """The first row whose id is empty or longer than `LONGEST_ID` bytes, if any."""
    ids = table.column(column)
    is_coded = pa.types.is_dictionary(ids.type)
    texts = pa.chunked_array([own.dictionary for own in ids.chunks], ids.type.value_type) if is_coded else ids
    bounds = pc.min_max(pc.binary_length(texts)).as_py()
    if not len(ids) or (bounds["min"] > 0 and bounds["max"] <= LONGEST_ID):
        return None
    lengths = pc.binary_length(ids.cast(pa.string()))
    row: int = pc.index(pc.or_(pc.equal(lengths, 0), pc.greater(lengths, LONGEST_ID)), True).as_py()
    return row if row >= 0 else None


def refuse_id(part: FilePart, column: str, text: str, row: int) -> NoReturn:
    """Refuse an id that is empty or longer than `LONGEST_ID` bytes."""
    if not text:
        raise InputError(f"{part.path}: empty {column} ({part.position(row)}); fill it")
    found = f"{column} of {len(text.encode()):,} bytes ({part.position(row)})"
    raise InputError(f"{part.path}: {found}; write ids of at most {LONGEST_ID:,}")


def row_of(part: FilePart, number: int, texts: list[str]) -> Row:
    """The texts of the row on that line, its values as numbers."""
    refuse_surrogates(part, number, texts)
    n_ids = len(part.kind.ids)
    values = zip(part.kind.columns[n_ids:], texts[n_ids:], strict=True)
    return (*texts[:n_ids], *(_number(part, number, column, text) for column, text in values))


def number_in(text: str) -> float:
    """The number that a text writes.

    Raises:
        ValueError: it writes none.
    """
    if "_" in text or not text.isascii():
        raise ValueError  # Python reads 1_000 and other scripts' digits, no other tool does
    return float(text)


_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0} | dict.fromkeys(
    ("", "none", "null", "na", "n/a", "<na>", "#n/a", "#na", "nat", "unscored"), math.nan
)


def score_in(value: object) -> float:
    """Return the score that a value stands for, whatever format it is in. NaN if there is none.

    Evaluation tools count true and yes as 1, false and no as 0. Some write numbers as strings.

    Raises:
        ValueError: No tool counts the value.
    """
    if value is None:
        return math.nan
    if isinstance(value, str):
        word = value.strip().lower()
        return _WORDS[word] if word in _WORDS else number_in(word)
    if not isinstance(value, int | float | decimal.Decimal):
        raise ValueError
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all doubles
        return math.inf if value > 0 else -math.inf


def _number(part: FilePart, number: int, column: str, text: str) -> float:
    try:
        return number_in(text)
    except ValueError:
        remedy = REMEDIES.get(column, "fix it")
        raise InputError(f"{part.at(number)}: {column} '{shorten(text)}' is not a number; {remedy}") from None


def refuse_surrogates(part: FilePart, number: int, texts: Iterable[str]) -> None:
    """Refuse texts that no UTF-8 has: bytes that could not be decoded stand in them as lone surrogates."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise InputError(f"{part.at(number)}: not UTF-8; convert the file") from None


def table_of(part: FilePart, rows: Iterable[Row]) -> pa.Table:
    """The rows under our column names."""
    columns = list(zip(*rows, strict=True)) or [()] * len(part.kind.columns)
    schema = schema_of(part.kind, list(part.kind.columns))
    return pa.table([pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)], schema)
