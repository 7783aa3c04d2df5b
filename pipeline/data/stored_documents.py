"""Documents of many rows in a temporary file: they take most of the memory, and few are asked for at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TypeVar

import numpy as np
import pyarrow as pa

from rankledger.pipeline.data.rows import Chunk, StoredChunk

T = TypeVar("T")


class DocumentFile:
    """Temporary file, which goes with the last chunk that reads from it."""

    def __init__(self, folder: Path | None) -> None:
        self._file = temporary_in(folder, lambda place: tempfile.TemporaryFile(dir=place))  # noqa: SIM115 - chunks read it
        self._lock = Lock()

    def keep(self, chunk: Chunk, n_queries: int) -> StoredChunk:
        """Write the queries and documents of a chunk. Return a chunk that reads them."""
        ids = chunk.doc_ids
        _, offsets, text = ids.buffers()
        bounds = np.frombuffer(offsets, np.int32, len(ids) + 1, ids.offset * 4)
        begin, end = int(bounds[0]), int(bounds[-1])
        with self._lock:
            place = self._file.seek(0, 2)
            self._file.write(chunk.query_codes.tobytes())
            self._file.write((bounds - bounds[0]).tobytes())
            self._file.write(memoryview(text)[begin:end] if text is not None else b"")
        return StoredChunk(
            chunk.values,
            lambda: np.frombuffer(self._read(place, 4 * len(ids)), np.int32),
            partial(self._documents, place + 4 * len(ids), len(ids), end - begin),
            np.arange(n_queries, dtype=np.int32),
        )

    def _documents(self, place: int, n_ids: int, n_bytes: int) -> pa.StringArray:
        n_offsets = (n_ids + 1) * 4
        data = pa.py_buffer(self._read(place, n_offsets + n_bytes))
        return pa.StringArray.from_buffers(n_ids, data[:n_offsets], data[n_offsets:])

    def _read(self, place: int, n_bytes: int) -> bytes:
        with self._lock:
            self._file.seek(place)
            return self._file.read(n_bytes)


def temporary_in(folder: Path | None, make: Callable[[Path | None], T]) -> T:
    """Return what a function makes in a folder, or in the system's (None) if the folder cannot be used."""
    if folder is not None:
        with suppress(OSError):  # what may only be read
            folder.mkdir(parents=True, exist_ok=True)
            return make(folder)
    return make(None)
