"""Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankledger.pipeline.data.files import first_line
from rankledger.pipeline.data.formats.arrow import chains_of, lists_of, rows_of, values_of, wanted_names
from rankledger.pipeline.data.formats.common import PAGE, Cut, FilePart, Format, ListReader, Spans
from rankledger.pipeline.data.formats.layouts import RANK
from rankledger.pipeline.support.errors import InputError

_CELL = 8  # bytes that a value takes at least once it is read
_LISTED = 100  # rows that a list counts as, where its length is not known
_REPEATS = 2  # bytes stored of a value, below which texts are read as dictionaries: a few may stand in all rows


def _open(part: FilePart, coded: Sequence[str] = ()) -> Any:
    """Open the file with its schema only. Columns in `coded` become dictionaries."""
    from pyarrow import parquet

    try:
        stored = pa.BufferReader(part.data) if part.spans is None else part.spans.file()
        return parquet.ParquetFile(stored, read_dictionary=[*coded])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{part.path}: not Parquet ({first_line(error)}); write it again") from None


def _read(part: FilePart, file: Any, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
    """Read and validate these columns. Reject more bytes than the file may expand to."""
    # Of single columns nothing is asked: where the footer contradicts itself, Arrow's answer ends the process.
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    n_rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
    _refuse_large(part, n_rows, max(n_rows * len(names) * _CELL, sum(group.total_byte_size for group in groups)))
    repeats = part.size < n_rows * len(names) * _REPEATS
    try:
        opened = _open(part, names if repeats else coded) if repeats or coded else file
        table = _columns_of(part, opened, list(names)).select(list(names))
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{part.path}: damaged Parquet ({first_line(error)}); write it again") from None
    written_out = (_written_out(table.column(name)) for name in names if repeats or name not in coded)
    _refuse_large(part, n_rows, sum(written_out))
    return table


def _columns_of(part: FilePart, file: Any, names: list[str]) -> pa.Table:
    return file.read(columns=names) if part.groups is None else file.read_row_groups([*part.groups], columns=names)


def _refuse_large(part: FilePart, n_rows: int, n_bytes: int) -> None:
    if n_bytes > part.limit:
        found = f"{n_rows:,} rows of about {n_bytes:,} bytes come of {part.size:,}"
        raise InputError(f"{part.path}: {found}; check the file, or set allow_large: true")


def _written_out(column: pa.ChunkedArray) -> int:
    if not (pa.types.is_dictionary(column.type) and column.type.value_type in (pa.string(), pa.binary())):
        return 0
    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(found).as_py() or 0 for found in lengths)


def _parse(part: FilePart) -> pa.Table:
    file = _open(part)
    names = wanted_names(part, file.schema_arrow)
    queries = names[:1] if part.kind.ids[0] == "query_id" else []
    coded = [name for name in queries if file.schema_arrow.field(name).type == pa.string()]
    return rows_of(part, _read(part, file, names, coded))


def _lists(part: FilePart) -> pa.Table:
    assert part.lists is not None, "which its layout has"
    return lists_of(part, _table(part, part.lists.columns))


def _columns(part: FilePart) -> list[str]:
    return list(_open(part).schema_arrow.names)


def _table(part: FilePart, names: Sequence[str]) -> pa.Table:
    file = _open(part)
    part.check_columns(names, file.schema_arrow.names)
    return _read(part, file, names)


def _cells(part: FilePart, names: Sequence[str]) -> dict[str, list[object]]:
    table = _table(part, names)
    return {name: values_of(part, name, table.column(name)) for name in names}


def _end_size(end: memoryview) -> int:
    """Return the bytes of the footer with its size and mark. 0 without the mark."""
    return int.from_bytes(end[-8:-4], "little") + 8 if bytes(end[-4:]) == b"PAR1" else 0


def _cut(part: FilePart, n_rows: int) -> list[Cut]:
    file = _open(part)
    names = wanted_names(part, file.schema_arrow) if part.lists is None else part.lists.columns
    most = n_rows if part.lists is None else n_rows // _LISTED
    cuts, before, n_here = [0], [0], 0
    for number in range(file.metadata.num_row_groups):
        n_group = file.metadata.row_group(number).num_rows
        if n_here and n_here + n_group > most:
            cuts.append(number)
            before.append(before[-1] + n_here)
            n_here = 0
        n_here += n_group
    groups = [range(*both) for both in pairwise([*cuts, file.metadata.num_row_groups])]
    columns = [[*names] for _ in groups]
    if part.kind.value == "score" and RANK in file.schema_arrow.names:
        columns[0].append(RANK)  # with which the first scores are compared
    return [
        Cut(own if len(groups) > 1 else None, n_before, _spans_of(part, own, wanted) if part.spans else ())
        for own, n_before, wanted in zip(groups, before, columns, strict=True)
    ]


def _spans_of(part: FilePart, groups: Sequence[int], names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the spans of these columns in the file, found by noting which bytes Arrow asks for.

    The footer is not used, because a contradictory one would crash Arrow.
    """
    assert part.spans is not None, "of what is there as a whole nobody asks"
    views = [*part.spans.views]
    spans = Spans(part.size, views)
    file = _open(replace(part, spans=spans))
    views.clear()
    for number, name in product(groups, dict.fromkeys(names)):
        with suppress(pa.ArrowException, OSError):
            file.read_row_groups([number], columns=[name], use_threads=False)
    joined: list[tuple[int, int]] = []
    for place, n_bytes in sorted(spans.asked):
        near = bool(joined) and place <= joined[-1][1] + PAGE  # what is between costs less than a piece of its own
        begin, end = joined.pop() if near else (place, place)
        joined.append((begin, max(end, place + n_bytes)))
    return joined


PARQUET = Format(
    "parquet",
    (".parquet", ".pq", ".parq"),
    _parse,
    lambda part, row: f"row {part.before() + row + 1}",
    _columns,
    _cells,
    _table,
    _columns,
    typed=True,
    end_size=_end_size,
    cut=_cut,
    lists=ListReader(lambda part, _: chains_of(_open(part).schema_arrow), _lists),
)
