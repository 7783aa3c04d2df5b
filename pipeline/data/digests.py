"""Digest of an input's bytes: one SHA-256, or for a large file the SHA-256 of the digests of its ranges.

Which of the two follows from the size alone. Ranges are hashed side by side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.parallel import map_threads

_LARGEST = 1 << 32  # bytes of a file with one SHA-256
_RANGE = 1 << 26  # bytes
_PIECE = 1 << 24  # bytes that are read at a time: a request at a URL


def has_ranges(size: int) -> bool:
    """Return whether a file of this size is hashed in ranges."""
    return size > _LARGEST


def describe_ranges(path: str, file: Any, size: int) -> InputFile:
    """Hash the ranges of a large file, by a thread per core. `file` is an Arrow file."""

    def digest_from(begin: int) -> str:
        digest, end = hashlib.sha256(), begin + _RANGE
        while data := file.read_at(min(_PIECE, end - begin), begin):
            digest.update(data)
            begin += len(data)
        return digest.hexdigest()

    return _describe(path, size, map_threads(digest_from, range(0, size, _RANGE)))


def _describe(path: str, size: int, digests: Iterable[str]) -> InputFile:
    lines = "".join(f"{digest}\n" for digest in digests)
    return InputFile(path, size, ranges_sha256=hashlib.sha256(lines.encode()).hexdigest())


class Digest:
    """Digest of bytes that are passed one after the other."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._ranges: list[str] = []
        self._current = hashlib.sha256()
        self._n_bytes = 0  # of the current range

    def update(self, view: memoryview) -> None:
        while has_ranges(self._size) and self._n_bytes + len(view) >= _RANGE:
            n_left = _RANGE - self._n_bytes
            self._current.update(view[:n_left])
            self._ranges.append(self._current.hexdigest())
            self._current, self._n_bytes, view = hashlib.sha256(), 0, view[n_left:]
        self._current.update(view)
        self._n_bytes += len(view)

    def describe(self, path: str) -> InputFile:
        if not has_ranges(self._size):
            return InputFile(path, self._size, self._current.hexdigest())
        return _describe(path, self._size, [*self._ranges, *([self._current.hexdigest()] if self._n_bytes else [])])
