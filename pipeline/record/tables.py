"""Write and read the text files of a record: the CSV tables and `gates.json`.

A text that a spreadsheet would compute is written after an apostrophe, which is removed on reading.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import accumulate, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TextIO,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions, ParseOptions, read_csv
from pydantic import Field, ValidationError

from rankledger.pipeline.gates.verdicts import SpentLooks, Verdict
from rankledger.pipeline.inference.tables import QueryChange, RankedDocument
from rankledger.pipeline.record.evaluation import Evaluation, QueryDetail
from rankledger.pipeline.record.manifest import MANIFEST, Manifest, RecordedBaseline, finding, is_receipt, read_typed
from rankledger.pipeline.record.manifest_parts import File
from rankledger.pipeline.support.arrow import strings
from rankledger.pipeline.support.atomic import read_regular
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.support.text import from_cell, to_cell

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Line = TypeVar("Line", bound="DataclassInstance")
T = TypeVar("T")


class _Rows:
    """File for a CSV writer whose rows end with a line feed. A cell with any other line break is quoted.

    A writer quotes what its own `lineterminator` holds, so that is both, and the file gets one.
    """

    END = "\r\n"

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> int:
        return self._file.write(row.removesuffix(self.END) + "\n")


def write_lines(path: Path, kind: type[Line], lines: Sequence[Line]) -> None:
    """Write a header and the rows, with the shortest digits that give the same double again."""
    types = get_type_hints(kind)
    _write_rows(path, types, [*map(attrgetter(*types), lines)])


def _write_rows(path: Path, types: Mapping[str, Any], rows: Sequence[Sequence[Any]]) -> None:
    texts = [place for place, type_ in enumerate(types.values()) if is_text(type_)]
    is_plain = all(text == to_cell(text) for place in texts for text in {row[place] for row in rows})
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(_Rows(file), lineterminator=_Rows.END)
        writer.writerow(types)
        writer.writerows(rows if is_plain else (_cells(row, texts) for row in rows))  # None is an empty cell


_find_types = cache(get_type_hints)
_FEW = 20_000  # bytes that Python reads sooner than Arrow


def lines_in(data: bytes, kind: type[Line], path: Path, *, measure: str | None = None) -> tuple[Line, ...]:
    """Return the rows of a table, by a measure or all."""
    types = _find_types(kind)
    columns = _read_few(data, types, measure) if len(data) < _FEW else None
    return tuple(map(kind, *(_read_columns(data, types, path, measure) if columns is None else columns)))


def _read_few(data: bytes, types: Mapping[str, Any], measure: str | None) -> list[list[Any]] | None:
    """Return the columns of a short table. None if Arrow must say what is wrong."""
    try:
        header, *rows = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
        if header != [*types] or any(len(row) != len(header) for row in rows):
            return None
        if measure is not None:
            rows = [row for row in rows if from_cell(row[header.index("measure")]) == measure]
        columns = zip(*rows, strict=True) if rows else ([] for _ in types)
        return [[*map(_choose_parser(type_), column)] for type_, column in zip(types.values(), columns, strict=True)]
    except (KeyError, ValueError, csv.Error):
        return None


@cache
def _choose_parser(type_: Any) -> Callable[[str], Any]:
    if type_ not in _ARROW_TYPES:
        return {word: word for word in get_args(type_)}.__getitem__ if get_origin(type_) is Literal else from_cell
    is_optional = type_ not in (float, int)
    parse, limit = (int, 2**63 - 1) if _ARROW_TYPES[type_] == pa.int64() else (float, sys.float_info.max)
    least = 0 if parse is int else -limit

    def parse_number(cell: str) -> float | None:
        number = None if is_optional and not cell else parse(cell)
        if number is not None and not least <= number <= limit:
            raise ValueError(cell)
        return number

    return parse_number


def _read_columns(data: bytes, types: Mapping[str, Any], path: Path, measure: str | None = None) -> list[list[Any]]:
    columns = {name: _ARROW_TYPES.get(type_, pa.string()) for name, type_ in types.items()}
    parsing = ParseOptions(newlines_in_values=True)
    converting = ConvertOptions(column_types=columns, null_values=[""], strings_can_be_null=False)
    try:
        table = read_csv(pa.BufferReader(data), parse_options=parsing, convert_options=converting)
        if table.column_names != [*columns]:
            found = ", ".join(table.column_names)[:200]
            raise ValueError(f"the columns are {found}, not {', '.join(columns)}")
        if measure is not None:
            table = table.filter(pc.equal(table["measure"], strings([to_cell(measure)])[0]))
        return [_column(name, type_, table[name]) for name, type_ in types.items()]
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"{path}: {str(error)[:300]}; restore the record") from None


_ARROW_TYPES = {float: pa.float64(), float | None: pa.float64(), int: pa.int64(), int | None: pa.int64()}


def _column(name: str, type_: Any, column: pa.ChunkedArray) -> list[Any]:
    if type_ in (float, int) and column.null_count:
        raise ValueError(f"{name}: a row has no number")
    if type_ in _ARROW_TYPES:
        is_count = pa.types.is_integer(column.type)
        if (pc.min(column).as_py() or 0) < 0 if is_count else pc.all(pc.is_finite(column)).as_py() is False:
            raise ValueError(f"{name}: a row has no {'count' if is_count else 'finite number'}")
        numbers: list[Any] = column.to_pylist()
        return numbers
    coded = column.combine_chunks().dictionary_encode()  # because the same few names are in every row
    words = [from_cell(word) for word in coded.dictionary.to_pylist()]
    if get_origin(type_) is Literal and (unknown := {*words} - {*get_args(type_)}):
        raise ValueError(f"{name}: found {unknown.pop()!r}, not one of {', '.join(get_args(type_))}")
    return [words[code] for code in coded.indices.to_pylist()]


def _cells(row: Sequence[Any], texts: Sequence[int]) -> list[Any]:
    cells = list(row)
    for place in texts:
        cells[place] = to_cell(cells[place])
    return cells


def is_text(type_: Any) -> bool:
    """Return whether a column type is `str` or a `Literal`."""
    return type_ is str or get_origin(type_) is Literal


_QUERY = attrgetter("dataset", "model", "baseline", "query_id", "measure", "before", "after", "change")
_DOCUMENT = attrgetter("doc_id", "grade", "before", "after")
_MOVERS = dict.fromkeys(("dataset", "model", "baseline", "query_id", "measure"), str) | {
    **dict.fromkeys(("before", "after", "change"), float),
    "doc_id": str,
    "grade": float | None,
    "rank_before": int | None,
    "rank_after": int | None,
}
"""Columns of `movers.csv`, a row per query and document: of the query, then of the document."""

_UNREAD, _NONE = ("", None, None, None), ("", 0.0, None, None)  # documents that are unknown, and no documents


def write_query_changes(path: Path, query_changes: Sequence[QueryChange]) -> None:
    """Write the queries in their order, each with its documents."""
    rows = [
        (*_QUERY(query), *document)
        for query in query_changes
        for document in ([_UNREAD] if query.documents is None else [*map(_DOCUMENT, query.documents)] or [_NONE])
    ]
    _write_rows(path, _MOVERS, rows)


def query_changes_in(data: bytes, path: Path) -> tuple[QueryChange, ...]:
    """Return the queries in the file."""
    changes = []
    for query, rows in groupby(zip(*_read_columns(data, _MOVERS, path), strict=True), key=itemgetter(*range(8))):
        documents = [RankedDocument(*row[8:]) for row in rows if row[9] is not None]
        relevant = tuple(document for document in documents if document.grade > 0)
        changes.append(
            QueryChange(**dict(zip(_MOVERS, query, strict=False)), documents=relevant if documents else None)
        )
    return tuple(changes)


_DETAILS = 1_000_000  # bytes of queries.json
_DetailsFile: TypeAlias = Annotated[dict[Literal["queries"], tuple[QueryDetail, ...]], Field(min_length=1)]


def fitting_details(details: Iterable[QueryDetail]) -> tuple[QueryDetail, ...]:
    """Return the first details, up to 1 MB of `queries.json`."""
    own = tuple(details)
    sizes = accumulate(len(_detail_line(detail).encode()) + 2 for detail in own)
    return tuple(detail for detail, size in zip(own, sizes, strict=True) if size <= _DETAILS)


def write_query_details(path: Path, details: Sequence[QueryDetail]) -> None:
    """Write details of queries, a line each, in their order."""
    lines = ",\n".join(map(_detail_line, details))
    path.write_text(f'{{"queries": [\n{lines}\n]}}\n', encoding="utf-8", newline="\n")


def _detail_line(detail: QueryDetail) -> str:
    return json.dumps(asdict(detail), ensure_ascii=False, allow_nan=False)


def query_details_in(data: bytes, path: Path) -> tuple[QueryDetail, ...]:
    """Return the details of queries in the file."""
    return _read_typed(data, _DetailsFile, path)["queries"]


def _read_typed(data: bytes, kind: type[T], path: Path) -> T:
    try:
        return read_typed(kind, data)
    except ValidationError as error:
        raise InputError(f"{path}: {finding(error)}; restore the record") from None


@dataclass(frozen=True)
class RecordedGates:
    """Verdicts and looks in `gates.json`. The references are in the manifest, too."""

    verdicts: tuple[Verdict, ...]
    looks: tuple[SpentLooks, ...] | None = ()  # None if unknown


_RARE = ("failing_error", "looks")  # keys that only verdicts of some gates have


def write_gates(
    path: Path,
    verdicts: Sequence[Verdict],
    references: Mapping[str, Mapping[str, RecordedBaseline]],
    looks: Sequence[SpentLooks] | None = (),
) -> None:
    """Write the verdicts in their order, with references by gate and model, and all looks spent (None if unknown)."""
    lines = [
        {name: _plain(value) for name, value in asdict(verdict).items() if value is not None or name not in _RARE}
        for verdict in verdicts
    ]
    described = {
        gate: {model: held.model_dump(exclude_unset=True) for model, held in models.items()}
        for gate, models in references.items()
    }
    spent = {} if looks == () else {"looks": None if looks is None else [asdict(own) for own in looks]}
    found = {"references": described, "verdicts": lines, **spent}
    text = json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def gates_in(data: bytes | None, path: Path) -> RecordedGates:
    """Return the verdicts and looks in the file, no verdicts if `data` is None."""
    return RecordedGates(()) if data is None else _read_typed(data, RecordedGates, path)


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def damaged_files(record: Evaluation, *, but: str = "") -> Iterator[str]:
    """Yield a line for each missing, unreadable or changed file of a record, except the file `but`."""
    names = [name for name in record.manifest.files if name != but]
    for name in each("Checking", names, len(names), "files"):
        try:
            read_file(record.path, record.manifest, name)
        except InputError as error:
            yield str(error)


def read_file(path: Path, manifest: Manifest, name: str) -> bytes | None:
    """Return a file of a record, checked by its hash. None if the record has none of that name."""
    written = manifest.files.get(name)
    return None if written is None else read_unchanged(path / name, written)


def read_unchanged(path: Path, written: File) -> bytes:
    """Return a file's contents, with the errors of `read_file`."""
    try:
        data = read_regular(path)
    except FileNotFoundError:
        raise InputError(f"{path}: file not found; restore the record") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; restore the record") from None
    return unchanged(data, written, path)


def unchanged(data: bytes, written: File, path: Path) -> bytes:
    """Return the data if it has the recorded size and hash. Raise InputError otherwise."""
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 != written.sha256:
        sizes = f", {len(data):,} bytes and not {written.size:,}" if len(data) != written.size else ""
        found = f"has changed since it was written (sha256 {sha256[:12]}…{sizes})"
        raise InputError(f"{path}: {found}; restore the record")
    return data


def refuse_unknown(manifest: Manifest, file: Path, tasks: Iterable[tuple[str, str]]) -> None:
    """Reject rows of tasks that were not evaluated. `*` is the mean of all datasets."""
    outputs = set(manifest.tasks)
    outputs |= {("*", model) for _, model in outputs}
    for dataset, model in dict.fromkeys(tasks):
        if (dataset, model) not in outputs:
            task = f"{shorten(repr(model))} on {shorten(repr(dataset))}"
            raise InputError(f"{file}: {task} is not an output of the record; restore the record")


def unexpected_files(record: Evaluation) -> Iterator[str]:
    """Yield the files and folders that are no part of the record, a line each."""
    known = {MANIFEST, *record.manifest.files}
    for path in sorted(record.path.iterdir()):
        if path.name not in known and not is_receipt(path.name):
            yield f"{path}: is not part of the record; remove it"
