"""What all formats share: what is wanted of a file, and how its texts become the rows of a table."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import BinaryIO, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from rankledger.pipeline.errors import InputError, shorten
from rankledger.pipeline.support.parallel import map_threads

__all__ = [
    "BLOCK_SIZE",
    "LONGEST_ID",
    "PAGE",
    "FilePart",
    "Kind",
    "Row",
    "double",
    "first_empty",
    "holds",
    "odd_id",
    "parse_csv",
    "refuse_id",
    "refuse_surrogates",
    "row_of",
    "schema_of",
    "shown",
    "table_of",
]

BLOCK_SIZE = 1 << 22  # bytes that Arrow parses at a time: smaller pieces cost calls, larger ones leave the cache
PAGE = 1 << 16  # bytes that are searched at a time
LONGEST_ID = 1 << 16  # bytes: what is longer is no id but a file read as something else
_BOM = b"\xef\xbb\xbf"
_BEIR = MappingProxyType({"query_id": "query-id", "doc_id": "corpus-id", "relevance": "score"})

Row = tuple[str | float, ...]


@dataclass(frozen=True)
class Kind:
    """What a file holds.

    Attributes:
        ids: the columns that are ids.
        value: the column that is a number, if any.
        trec: the fields of a line of TREC text, if it can be TREC text; those after the last one wanted may be missing,
            and there may be more.
    """

    ids: tuple[str, ...]
    value: str | None
    trec: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, in order."""
        return (*self.ids, self.value) if self.value else self.ids

    @property
    def trec_places(self) -> tuple[int, ...]:
        """Where the columns stand among the fields of TREC text."""
        return tuple(self.trec.index(column) for column in self.columns)


@dataclass(frozen=True, eq=False)
class FilePart:
    """One file of an input.

    Attributes:
        path: as people write it.
        format: `trec`, `tsv`, `csv`, `jsonl`, `json` or `parquet`.
        stored: its bytes, uncompressed.
        kind: what to take from it.
        names: our column names to the file's, where they differ.
        limit: bytes that its rows may take.
    """

    path: str
    format: str
    stored: pa.Buffer
    kind: Kind
    names: Mapping[str, str]
    limit: float

    @property
    def data(self) -> memoryview:
        """The bytes without a byte-order mark."""
        view = memoryview(self.stored).cast("B")
        return view[len(_BOM) :] if view[: len(_BOM)] == _BOM else view

    def lines(self) -> BinaryIO:
        """The bytes as a file that is read line by line."""
        return io.BytesIO(self.data)

    def name(self, column: str) -> str:
        """Our column as the file calls it."""
        return self.names.get(column, column)

    def missing(self, column: str, found: Collection[str]) -> str:
        """What to do about one of our columns that is not among those of the file."""
        if self.name(column) == "score" and "rank" in found:  # mapped onto `score` it would turn the order round
            return "if its ranks are the order, set conventions: {ties: rank_column}, which reads no scores"
        return f"map it with columns: {{{column}: …}}"

    def with_columns(self, found: Collection[str]) -> FilePart:
        """The file as read by the names of its columns: BEIR's are known, those the config maps come first."""
        if not {"query-id", "corpus-id"} <= set(found):
            return self
        known = {ours: name for ours, name in _BEIR.items() if ours in self.kind.columns and ours not in found}
        return replace(self, names={**known, **self.names})


def parse_csv(
    part: FilePart, data: memoryview, delimiter: str, wanted: list[str], names: list[str], *, header: bool = False
) -> pa.Table:
    """The wanted columns by Arrow, piece by piece: Arrow's own threads would keep twice the memory of the file.

    Args:
        part: the file.
        data: its lines.
        delimiter: what stands between two fields.
        wanted: the columns to read, by the file's names.
        names: all columns of the file.
        header: whether the first line holds the names.

    Raises:
        pa.ArrowInvalid: a line has another number of fields, a number is none, or the text is not UTF-8.
    """
    quoted = part.format == "csv" and holds(data, b'"')  # a quoted field may hold line ends, and none can be cut at
    pieces = [data] if quoted else list(_pieces(data))
    types = {field.name: field.type for field in schema_of(part.kind, wanted)}
    if part.kind.ids[0] == "query_id":
        types[wanted[0]] = pa.dictionary(pa.int32(), pa.string())  # few distinct ones: cheaper than strings
    parsing = pa.csv.ParseOptions(
        delimiter=delimiter, quote_char='"' if part.format == "csv" else False, newlines_in_values=quoted
    )
    converting = pa.csv.ConvertOptions(
        include_columns=wanted, column_types=types, null_values=[], strings_can_be_null=False
    )

    def parse(piece: memoryview, *, first: bool) -> pa.Table:
        named = None if header and first else names
        reading = pa.csv.ReadOptions(column_names=named, use_threads=False, block_size=len(piece) + 1)
        return pa.csv.read_csv(pa.BufferReader(piece), reading, parsing, converting)

    tables = map_threads(lambda place, piece: parse(piece, first=place == 0), range(len(pieces)), pieces)
    return pa.concat_tables(tables).rename_columns(list(part.kind.columns))


def holds(data: memoryview, sign: bytes) -> bool:
    """Whether a byte stands anywhere in the data."""
    return any(sign in bytes(data[begin : begin + PAGE]) for begin in range(0, len(data), PAGE))


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
    """Ids as strings and the value as float64, under the file's names."""
    types = [pa.string() if column in kind.ids else pa.float64() for column in kind.columns]
    return pa.schema(list(zip(names, types, strict=True)))


def odd_id(table: pa.Table, column: str) -> int | None:
    """The first row whose id is empty or longer than `LONGEST_ID` bytes, if any."""
    ids = table.column(column)
    bounds = pc.min_max(pc.binary_length(_distinct(ids))).as_py()
    if not len(ids) or (bounds["min"] > 0 and bounds["max"] <= LONGEST_ID):
        return None
    lengths = pc.binary_length(ids.cast(pa.string()))
    row: int = pc.index(pc.or_(pc.equal(lengths, 0), pc.greater(lengths, LONGEST_ID)), True).as_py()
    return row if row >= 0 else None


def refuse_id(path: str, column: str, n_bytes: int, place: str) -> NoReturn:
    """Refuse an id of so many bytes, none or more than `LONGEST_ID`.

    Raises:
        InputError: always.
    """
    if not n_bytes:
        raise InputError(f"{path}: empty {column} ({place}); fill it")
    raise InputError(f"{path}: {column} of {n_bytes:,} bytes ({place}); write ids of at most {LONGEST_ID:,}")


def first_empty(table: pa.Table, column: str) -> int | None:
    """The first row whose id is empty, if any."""
    ids = table.column(column)
    if pc.min(pc.binary_length(_distinct(ids))).as_py() != 0:
        return None
    row = pc.index(ids.cast(pa.string()), "").as_py()
    return row if row >= 0 else None


def _distinct(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """All ids, some of them once."""
    if not pa.types.is_dictionary(ids.type):
        return ids
    return pa.chunked_array([chunk.dictionary for chunk in ids.chunks], ids.type.value_type)


def row_of(part: FilePart, number: int, texts: list[str]) -> Row:
    """The texts of a row, its value as a number."""
    refuse_surrogates(part, number, texts)
    if part.kind.value is None:
        return tuple(texts)
    try:
        if "_" in texts[-1] or not texts[-1].isascii():
            raise ValueError  # Python reads 1_000 and other scripts' digits, no other tool does
        return (*texts[:-1], float(texts[-1]))
    except ValueError:
        found = shorten(texts[-1])
        raise InputError(f"{part.path}:{number}: {part.kind.value} '{found}' is not a number; fix it") from None


def refuse_surrogates(part: FilePart, number: int, texts: list[str]) -> None:
    """Refuse texts that no UTF-8 has: bytes that could not be decoded stand in them as lone surrogates."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise InputError(f"{part.path}:{number}: not UTF-8; convert the file") from None


def double(number: float) -> float:
    """The number as a double; a whole one beyond all doubles is infinite."""
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def shown(value: object) -> str:
    """A value of JSON as it was written, cut short."""
    return shorten(json.dumps(value, ensure_ascii=False))


def table_of(part: FilePart, rows: Iterable[Row]) -> pa.Table:
    """The rows under our column names."""
    columns = list(zip(*rows, strict=True)) or [()] * len(part.kind.columns)
    schema = schema_of(part.kind, list(part.kind.columns))
    return pa.table([pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)], schema)
