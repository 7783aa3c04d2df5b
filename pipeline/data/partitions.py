"""Scattered rows brought together: an output's rows in files on disk, those of a query all in one of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.pipeline.data.judgments import hash_ids
from rankledger.pipeline.data.rows import Chunk, Rows, row_number
from rankledger.pipeline.data.stored_documents import temporary_in
from rankledger.pipeline.support.arrow import floats, integers, numpy_of, strings

_N_FILES = 64
_SHIFT = np.uint64(58)  # the upper six bits of a hash: the lower ones spread less

Ints = npt.NDArray[np.int64]


def partitioned(ranges: Iterable[Rows], folder: Path | None) -> Iterator[tuple[Rows, Ints]]:
    """Yield the rows of some whole queries at a time, in the order of the output, and their row numbers there."""
    with temporary_in(folder, lambda place: tempfile.TemporaryDirectory(prefix="scattered-", dir=place)) as temporary:
        for path in _write(ranges, Path(temporary)):
            yield _read(path)
            path.unlink()


def _write(ranges: Iterable[Rows], folder: Path) -> list[Path]:
    writers: dict[int, Any] = {}
    begin = 0
    with ExitStack() as stack:
        for rows in ranges:
            number_of = (hash_ids(strings(rows.query_ids)) >> _SHIFT).astype(np.int64)[rows.query_codes]
            order = np.argsort(number_of, kind="stable")
            query_ids = strings(rows.query_ids).take(integers(rows.query_codes[order].astype(np.int64)))
            columns = [query_ids, rows.take_doc_ids(order), floats(rows.values[order]), integers(begin + order)]
            batch = pa.RecordBatch.from_arrays(columns, names=["query_id", "doc_id", "value", "number"])
            cuts = np.searchsorted(number_of[order], np.arange(_N_FILES + 1))
            for number in np.flatnonzero(np.diff(cuts)).tolist():
                if number not in writers:
                    file = stack.enter_context(pa.OSFile(str(folder / f"{number}.arrow"), "wb"))
                    writers[number] = stack.enter_context(pa.ipc.new_stream(file, batch.schema))
                writers[number].write_batch(batch.slice(cuts[number], cuts[number + 1] - cuts[number]))
            begin += rows.ends[-1]
    return [folder / f"{number}.arrow" for number in sorted(writers)]


def _read(path: Path) -> tuple[Rows, Ints]:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
        table = reader.read_all()
    table = table.set_column(0, "query_id", table.column("query_id").dictionary_encode()).unify_dictionaries()
    batches = table.to_batches()
    chunks = tuple(
        Chunk(
            numpy_of(batch.column("query_id").indices, np.int32),
            batch.column("doc_id"),
            numpy_of(batch.column("value"), np.float64),
        )
        for batch in batches
    )
    numbers = np.concatenate([numpy_of(batch.column("number"), np.int64) for batch in batches])
    query_ids = batches[0].column("query_id").dictionary.to_pylist()
    return Rows(str(path), (), query_ids, chunks, row_number), numbers
