"""What the join finds in ranges, as a table of the output cache: a row per range, and lists in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.pipeline.data.cache import RANGES
from rankledger.pipeline.data.exclusions import Totals
from rankledger.pipeline.data.rankings import JoinedRange, JoinedRows
from rankledger.pipeline.support.arrow import concatenate, floats, integers, numpy_of, strings
from rankledger.pipeline.types.inputs import Chunk, Rows, row_number
from rankledger.pipeline.types.joined import hit_columns

Ints = npt.NDArray[np.int64]

_NONE = JoinedRows(hit_columns(*np.empty((4, 0), np.int64)), np.empty((3, 0), np.int64), Totals())


def table_of_ranges(found: Sequence[tuple[int, JoinedRange]]) -> pa.Table:
    """The table of ranges that are not all of an output and have no problem, with the rows of each."""
    rows = [_row(n_rows, each) for n_rows, each in found]
    columns = [_column([row[name] for row in rows], kind) for name, kind in RANGES.items()]
    return pa.Table.from_arrays(columns, names=[*RANGES])


def _row(n_rows: int, found: JoinedRange) -> dict[str, Any]:
    within, aside = found.within or _NONE, found.aside
    assert isinstance(within, JoinedRows), "what has no problem"
    assert aside is not None, "what is not all of an output"
    codes = integers(aside.query_codes.astype(np.int64))
    return {
        **within.totals._asdict(),
        "n_rows": n_rows,
        "n_joined": within.totals.n_rows,
        "knows_query": int(found.knows_query),
        "hits": integers(np.concatenate(within.hits, dtype=np.int64)),
        "retrieved": integers(within.retrieved.ravel()),
        "aside_query": strings(aside.query_ids).take(codes),
        "aside_doc": aside.doc_ids,
        "unmatched": within.unmatched,
        "aside_value": floats(aside.values),
        "aside_number": integers(found.numbers),
        "hash": integers(found.queries.view(np.int64)),
        "aside_hash": integers(found.queries_aside.view(np.int64)),
    }


def _column(cells: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.int64():
        return integers(np.array(cells, dtype=np.int64))
    offsets = integers(np.cumsum([0, *map(len, cells)]))
    return pa.LargeListArray.from_arrays(offsets, concatenate(cells))


def ranges_in(table: pa.Table) -> Iterator[tuple[int, JoinedRange]]:
    """The rows of each range of a table, and what the join found in it."""
    columns = {name: table.column(name).combine_chunks() for name in RANGES}
    for row in range(table.num_rows):
        yield _range({name: _cell(column, row) for name, column in columns.items()})


def _cell(column: Any, row: int) -> Any:
    if pa.types.is_large_list(column.type):
        begin, end = numpy_of(column.offsets, np.int64)[row : row + 2].tolist()
        return column.values[begin:end]
    return int(numpy_of(column, np.int64)[row])


def _range(cells: dict[str, Any]) -> tuple[int, JoinedRange]:
    numbers = {
        name: numpy_of(cells[name], np.int64) for name in ("hits", "retrieved", "aside_number", "hash", "aside_hash")
    }
    within = JoinedRows(
        hit_columns(*numbers["hits"].reshape(4, -1)),
        numbers["retrieved"].reshape(3, -1),
        Totals(*(cells[name] for name in Totals._fields))._replace(n_rows=cells["n_joined"]),
        unmatched=cells["unmatched"],
    )
    coded = cells["aside_query"].dictionary_encode()
    chunk = Chunk(numpy_of(coded.indices, np.int32), cells["aside_doc"], numpy_of(cells["aside_value"], np.float64))
    return cells["n_rows"], JoinedRange(
        within=within if within.totals.n_rows else None,
        aside=Rows("", (), coded.dictionary.to_pylist(), (chunk,), row_number),
        numbers=numbers["aside_number"],
        queries=numbers["hash"].view(np.uint64),
        queries_aside=numbers["aside_hash"].view(np.uint64),
        knows_query=bool(cells["knows_query"]),
    )
