"""The digest of an input's bytes: one SHA-256; or, of a large file, that of the digests of its ranges.

One SHA-256 takes the bytes one after the other, at a gigabyte or two in a second. Ranges are hashed at once. Which of
the two a file has follows from its size alone, so that the same bytes always have the same digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from rankledger.pipeline.support.parallel import map_threads
from rankledger.pipeline.types.inputs import InputFile

_LARGEST = 1 << 32  # bytes of a file with one SHA-256
_RANGE = 1 << 26  # bytes
_PIECE = 1 << 24  # bytes that are read at a time: a request at a URL


def has_ranges(size: int) -> bool:
    """Whether a file of so many bytes has the digest of its ranges."""
    return size > _LARGEST


def hashed_alone(size: int) -> int:
    """How many bytes of a file of so many are hashed without those before them: of a large one those of a range."""
    return _RANGE if has_ranges(size) else size


def describe_ranges(path: str, file: Any, size: int) -> InputFile:
    """A large file by its ranges, which are read and hashed at once, by a thread per core.

    Args:
        path: as people write it.
        file: an Arrow file that can be read anywhere.
        size: its bytes. If there are fewer by now, the digest is of no use.
    """

    def digest_from(begin: int) -> str:
        digest, end = hashlib.sha256(), begin + _RANGE
        while data := file.read_at(min(_PIECE, end - begin), begin):
            digest.update(data)
            begin += len(data)
        return digest.hexdigest()

    return described(path, size, map_threads(digest_from, range(0, size, _RANGE)))


def described(path: str, size: int, digests: Iterable[str]) -> InputFile:
    """The file of these digests: of its bytes or, if it is large, of its ranges in their order."""
    if not has_ranges(size):
        (digest,) = digests
        return InputFile(path, size, digest)
    lines = "".join(f"{digest}\n" for digest in digests)
    return InputFile(path, size, ranges_sha256=hashlib.sha256(lines.encode()).hexdigest())


class Digest:
    """The digest of bytes that are given one after the other."""

    def __init__(self, size: int) -> None:
        """Begin with none of so many bytes."""
        self._size = size
        self._ranges: list[str] = []
        self._current = hashlib.sha256()
        self._n_bytes = 0  # of the current range

    def update(self, view: memoryview) -> None:
        """Take the next bytes."""
        while has_ranges(self._size) and self._n_bytes + len(view) >= _RANGE:
            n_left = _RANGE - self._n_bytes
            self._current.update(view[:n_left])
            self._ranges.append(self._current.hexdigest())
            self._current, self._n_bytes, view = hashlib.sha256(), 0, view[n_left:]
        self._current.update(view)
        self._n_bytes += len(view)

    @property
    def digests(self) -> list[str]:
        """Those of the ranges that were given, the last of which may be short; of a file that has none, its own."""
        is_last = self._n_bytes or not has_ranges(self._size)
        return [*self._ranges, *([self._current.hexdigest()] if is_last else [])]

    def describe(self, path: str) -> InputFile:
        """The file at that path, once all of its bytes were given."""
        return described(path, self._size, self.digests)
