"""The text files of a record, written and read: the CSV tables and `gates.json`.

A text that a spreadsheet would compute stands after an apostrophe, which is taken away when it is read.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from functools import partial
from io import StringIO
from itertools import accumulate, groupby
from math import isfinite
from operator import attrgetter
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from rankledger.pipeline.gates.verdicts import SpentLooks, Verdict
from rankledger.pipeline.inference.tables import QueryChange, RankedDocument
from rankledger.pipeline.record.evaluation import Evaluation, QueryDetail
from rankledger.pipeline.record.manifest import MANIFEST, RECEIPTS, Manifest, RecordedBaseline, finding, read_typed
from rankledger.pipeline.record.manifest_parts import File
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.progress import each
from rankledger.pipeline.support.text import from_cell, to_cell

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Line = TypeVar("Line", bound="DataclassInstance")
Parser: TypeAlias = Callable[[str], Any]

_MOST = 2**63  # what a column of counts holds is less


class _Rows:
    """A file to which a CSV writer writes: rows end with a line feed, and a cell with any other line break is quoted.

    A writer quotes what its own `lineterminator` holds, so that is both, and the file gets one.
    """

    END = "\r\n"

    def __init__(self, file: TextIO) -> None:
        """Rows go to this file."""
        self._file = file

    def write(self, row: str) -> int:
        """Write a row, which a writer gives whole."""
        return self._file.write(row.removesuffix(self.END) + "\n")


def write_lines(path: Path, kind: type[Line], lines: Sequence[Line]) -> None:
    """Write a header and the lines; shortest digits that give the same double again."""
    names, types = [field.name for field in fields(kind)], get_type_hints(kind)
    texts = [place for place, name in enumerate(names) if is_text(types[name])]
    known = {text for place in texts for text in set(map(attrgetter(names[place]), lines))}
    rows = map(attrgetter(*names), lines)  # None is an empty cell
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(_Rows(file), lineterminator=_Rows.END)
        writer.writerow(names)
        plain = all(text == to_cell(text) for text in known)
        writer.writerows(rows if plain else (_cells(row, texts) for row in rows))


def lines_in(data: bytes, kind: type[Line], path: Path, *, measure: str | None = None) -> tuple[Line, ...]:
    """The lines as they were written.

    Args:
        data: what the file holds.
        kind: what its lines are.
        path: the file, for messages.
        measure: as it is written there; lines of others are passed over and not parsed. None for all.

    Raises:
        InputError: it is no such table: the row, and what is wrong with it.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start:,}); restore the record") from None
    if measure is None:
        return tuple(_parsed(StringIO(text, newline=""), kind, path))
    header, *rows = text.split("\n")
    if '"' not in text:  # else a row may run over several lines
        rows = [row for row in rows if f",{to_cell(measure)}," in row]
    found = _parsed((f"{row}\n" for row in [header, *rows]), kind, path)
    return tuple(line for line in found if getattr(line, "measure", None) == measure)


def _parsed(lines: Iterable[str], kind: type[Line], path: Path) -> Iterator[Line]:
    """The lines after the header; empty rows are passed over.

    What is made for every cell of a record takes seconds, so little is made here.
    """
    rows, types = csv.reader(lines), get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    parsers = [_parser(types[name]) for name in names]
    row_number = 1
    try:
        if (header := next(rows, [])) != names:
            raise ValueError(f"the columns are {', '.join(header)[:200] or 'missing'}, not {', '.join(names)}")
        for row in rows:
            row_number += 1
            if not row:
                continue
            if len(row) != len(names):
                raise ValueError(f"found {len(row)} cells, not {len(names)}")
            yield kind(*(parse(text) for parse, text in zip(parsers, row, strict=True)))
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path}: row {row_number}: {str(error)[:300]}; restore the record") from None


def _cells(row: Sequence[Any], texts: Sequence[int]) -> list[Any]:
    cells = list(row)
    for place in texts:
        cells[place] = to_cell(cells[place])
    return cells


def is_text(type_: Any) -> bool:
    """Whether a column of that type holds texts, be they any or some words."""
    return type_ is str or get_origin(type_) is Literal


class _Texts(dict[str, str]):
    """The texts of cells: the same few names stand in every line."""

    def __missing__(self, cell: str) -> str:
        text = self[cell] = intern(from_cell(cell))
        return text


def _parser(type_: Any) -> Parser:
    if get_origin(type_) is Literal:
        return partial(_word, get_args(type_))
    if type_ is str:
        return _Texts().__getitem__
    if type_ is int:
        return _count
    if type_ == int | None:
        return _rank
    return _number if type_ is float else _figure


def _word(words: Collection[str], text: str) -> str:
    if text not in words:
        raise ValueError(f"found {text!r}, not one of {', '.join(words)}")
    return text


def _figure(text: str) -> float | None:
    """A number; None for an empty cell."""
    return _number(text) if text else None


def _number(text: str) -> float:
    """A number; a ValueError if it is none, or not finite."""
    found = float(text)
    if not isfinite(found):
        raise ValueError(f"found {text!r}, not a finite number")
    return found


def _rank(text: str) -> int | None:
    """A rank; None for an empty cell."""
    return _count(text) if text else None


def _count(text: str) -> int:
    found = int(text)
    if not 0 <= found < _MOST:
        raise ValueError(f"found {text!r}, not a count")
    return found


@dataclass(frozen=True)
class _ChangeRow:
    """A row of `movers.csv`: a query with one of its documents.

    If its documents are not known it has one row without; if none is graded above 0, one with the grade 0.
    """

    dataset: str
    model: str
    baseline: str
    query_id: str
    measure: str
    before: float
    after: float
    change: float
    doc_id: str = ""
    grade: float | None = None
    rank_before: int | None = None
    rank_after: int | None = None


_OF_QUERY = 8  # columns; the others are of the document


def write_query_changes(path: Path, query_changes: Sequence[QueryChange]) -> None:
    """Write the queries in their order, each with its documents; shortest digits that give the same double again."""
    none = RankedDocument("", 0.0, None, None)
    rows = [
        _ChangeRow(*[*vars(query).values()][:_OF_QUERY], *document)
        for query in query_changes
        for document in ([()] if query.documents is None else map(astuple, query.documents or [none]))
    ]
    write_lines(path, _ChangeRow, rows)


def query_changes_in(data: bytes, path: Path) -> tuple[QueryChange, ...]:
    """The queries that the file holds, as they were written.

    Args:
        data: what it holds.
        path: the file, for messages.

    Raises:
        InputError: it is no such table.
    """
    own = attrgetter("dataset", "model", "baseline", "query_id", "measure")
    return tuple(_query([*rows]) for _, rows in groupby(lines_in(data, _ChangeRow, path), key=own))


def _query(rows: Sequence[_ChangeRow]) -> QueryChange:
    known = [RankedDocument(*astuple(row)[_OF_QUERY:]) for row in rows if row.grade is not None]
    documents = tuple(document for document in known if document.grade > 0) if known else None
    return QueryChange(*[*astuple(rows[0])[:_OF_QUERY], documents])


@dataclass(frozen=True)
class _Queries:
    """What `queries.json` holds."""

    queries: tuple[QueryDetail, ...]


_DETAILS = 1_000_000  # bytes of queries.json


def fitting_details(details: Iterable[QueryDetail]) -> tuple[QueryDetail, ...]:
    """As many of them, from the first on, as `queries.json` may hold: 1 MB."""
    own = tuple(details)
    sizes = accumulate(len(_detail_line(detail).encode()) + 2 for detail in own)
    return tuple(detail for detail, size in zip(own, sizes, strict=True) if size <= _DETAILS)


def write_query_details(path: Path, details: Sequence[QueryDetail]) -> None:
    """Write what is known of queries, a line each, in their order."""
    lines = ",\n".join(map(_detail_line, details))
    path.write_text(f'{{"queries": [\n{lines}\n]}}\n', encoding="utf-8", newline="\n")


def _detail_line(detail: QueryDetail) -> str:
    return json.dumps(asdict(detail), ensure_ascii=False, allow_nan=False)


def query_details_in(data: bytes, path: Path) -> tuple[QueryDetail, ...]:
    """What the file says of queries, as it was written.

    Args:
        data: what it holds.
        path: the file, for messages.

    Raises:
        InputError: it is not what was written.
    """
    return _typed_in(data, _Queries, path).queries


def _typed_in(data: bytes, kind: type[Line], path: Path) -> Line:
    try:
        return read_typed(kind, data)
    except ValidationError as error:
        raise InputError(f"{path}: {finding(error)}; restore the record") from None


@dataclass(frozen=True)
class RecordedGates:
    """What is read of `gates.json`: the manifest has the references, too.

    Attributes:
        verdicts: what the gates say.
        looks: those that they had spent; None if that was not known.
    """

    verdicts: tuple[Verdict, ...]
    looks: tuple[SpentLooks, ...] | None = ()


_RARE = ("failing_error", "looks")  # keys that only verdicts of some gates have


def write_gates(
    path: Path,
    verdicts: Sequence[Verdict],
    references: Mapping[str, Mapping[str, RecordedBaseline]],
    looks: Sequence[SpentLooks] | None = (),
) -> None:
    """Write the verdicts in their order.

    Args:
        path: the file.
        verdicts: what the gates say.
        references: by gate and model, what it holds the model against.
        looks: those spent up to now, which the file has if there are any; None if unknown.
    """
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
    """What the file holds; no verdicts if the record has none.

    Args:
        data: what it holds; None if there is none.
        path: the file, for messages.

    Raises:
        InputError: it is not what was written.
    """
    return RecordedGates(()) if data is None else _typed_in(data, RecordedGates, path)


def _plain(value: object) -> object:
    """The value as JSON has it, which knows no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def damaged_files(record: Evaluation, *, but: str = "") -> Iterator[str]:
    """What is wrong with the files that the manifest has the hashes of, a line each: gone, unreadable, changed.

    Args:
        record: the record.
        but: the name of a file that is not checked.
    """
    names = [name for name in record.manifest.files if name != but]
    for name in each("Checking", names, len(names), "files"):
        try:
            read_file(record.path, record.manifest, name)
        except InputError as error:
            yield str(error)


def read_file(path: Path, manifest: Manifest, name: str) -> bytes | None:
    """What a file of a record holds, which is what was written; None if the record has none of that name.

    Args:
        path: the record's folder.
        manifest: what its manifest holds.
        name: the file.

    Raises:
        InputError: it is gone, cannot be read, or has changed.
    """
    written = manifest.files.get(name)
    return None if written is None else read_unchanged(path / name, written)


def read_unchanged(path: Path, written: File) -> bytes:
    """What a file holds, which is what was written; errors are those of `read_file`."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: file not found; restore the record") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; restore the record") from None
    return unchanged(data, written, path)


def unchanged(data: bytes, written: File, path: Path) -> bytes:
    """The same bytes, if they are those that were written.

    Args:
        data: what a file of a record holds.
        written: its size and hash, as the manifest has them.
        path: the file, for messages.

    Raises:
        InputError: it has changed.
    """
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 != written.sha256:
        sizes = f", {len(data):,} bytes and not {written.size:,}" if len(data) != written.size else ""
        found = f"has changed since it was written (sha256 {sha256[:12]}…{sizes})"
        raise InputError(f"{path}: {found}; restore the record")
    return data


def refuse_unknown(manifest: Manifest, file: Path, tasks: Iterable[tuple[str, str]]) -> None:
    """Refuse lines of what was not evaluated.

    Args:
        manifest: what the record's manifest holds.
        file: the table, for messages.
        tasks: the dataset, `*` for the mean of all, and the model of each line.

    Raises:
        InputError: a line is of no output of the record.
    """
    outputs = set(manifest.tasks)
    outputs |= {("*", model) for _, model in outputs}
    for dataset, model in dict.fromkeys(tasks):
        if (dataset, model) not in outputs:
            raise InputError(f"{file}: {model!r} on {dataset!r} is not an output of the record; restore the record")


def unexpected_files(record: Evaluation) -> Iterator[str]:
    """The files and folders that are no part of the record, a line each."""
    known = {MANIFEST, *RECEIPTS, *record.manifest.files}
    for path in sorted(record.path.iterdir()):
        if path.name not in known:
            yield f"{path}: is not part of the record; remove it"
