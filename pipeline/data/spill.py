"""Rows in a temporary file, because they take most of the memory and few are needed at a time."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.pipeline.data.judgments import hash_ids
from rankledger.pipeline.data.rows import Chunk, Rows, StoredChunk, row_number
from rankledger.pipeline.support.arrow import floats, integers, numpy_of, strings

_SHIFT = np.uint64(58)  # the upper six bits of a hash number the parts: the lower ones spread less

Ints = npt.NDArray[np.int64]


class Spill:
    """Temporary file of Arrow batches, which is deleted with the last function that reads from it."""

    def __init__(self, folder: Path | None) -> None:
        self._file = _create_file(folder)
        self._lock = Lock()

    def write(self, **columns: pa.Array) -> Callable[[], pa.RecordBatch]:
        batch = pa.RecordBatch.from_arrays([*columns.values()], [*columns])
        stored = batch.serialize()
        with self._lock:
            place = self._file.seek(0, 2)
            self._file.write(stored)
        return partial(self._read, place, len(stored), batch.schema)

    def keep(self, chunk: Chunk, n_queries: int) -> StoredChunk:
        numbers = pa.py_buffer(np.ascontiguousarray(chunk.query_codes))
        codes = self.write(query=pa.Int32Array.from_buffers(pa.int32(), len(chunk.values), [None, numbers]))
        documents = self.write(doc_id=chunk.doc_ids)
        return StoredChunk(
            chunk.values,
            lambda: numpy_of(codes().column(0), np.int32),
            lambda: documents().column(0),
            np.arange(n_queries, dtype=np.int32),
        )

    def _read(self, place: int, n_bytes: int, schema: pa.Schema) -> pa.RecordBatch:
        with self._lock:
            self._file.seek(place)
            stored = self._file.read(n_bytes)
        return pa.ipc.read_record_batch(pa.py_buffer(stored), schema)


def _create_file(folder: Path | None) -> Any:
    if folder is not None:
        with suppress(OSError):  # a folder may be read-only
            folder.mkdir(parents=True, exist_ok=True)
            return tempfile.TemporaryFile(dir=folder)
    return tempfile.TemporaryFile()


def partition_rows(ranges: Iterable[Rows], folder: Path | None) -> Iterator[tuple[Rows, Ints]]:
    """Yield the rows of some whole queries at a time, in the order of the output, and their row numbers there."""
    spill = Spill(folder)
    parts: dict[int, list[Callable[[], pa.RecordBatch]]] = defaultdict(list)
    begin = 0
    for rows in ranges:
        numbers = (hash_ids(strings(rows.query_ids)) >> _SHIFT).astype(np.int64)[rows.query_codes]
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        for own in np.split(order, cuts):
            stored = spill.write(
                query_id=strings(rows.query_ids).take(integers(rows.query_codes[own])),
                doc_id=rows.take_doc_ids(own),
                value=floats(rows.values[own]),
                number=integers(begin + own),
            )
            parts[int(numbers[own[0]])].append(stored)
        begin += rows.ends[-1]
    for number in sorted(parts):
        yield _rows_of([read() for read in parts.pop(number)])


def _rows_of(batches: list[pa.RecordBatch]) -> tuple[Rows, Ints]:
    table = pa.Table.from_batches(batches)
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
    return Rows("", (), query_ids, chunks, row_number), numbers
