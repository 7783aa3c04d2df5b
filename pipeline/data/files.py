"""Input files, opened and hashed.

A file is read once, from the beginning, and rejected if it changes meanwhile, so that the parsed bytes are hashed. It
is not mapped, because a mapped file that is cut short ends the process, and its pages count as memory. The digest is
one SHA-256, or above a certain size the SHA-256 of the digests of ranges, which are hashed in parallel.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import lzma
import os
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.fs

from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.support.parallel import map_threads

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
_XZ_MEMORY = 1 << 28  # bytes for a file's dictionary: `xz -9` takes a quarter of it
DAMAGED = (OSError, EOFError, NotImplementedError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)
_PIECE = 1 << 22  # bytes that are read or uncompressed at a time
_RATIO = 200  # of the bytes uncompressed to those stored: text reaches 20, tables of numbers 50, zeros 1,000
_SPECIAL = {
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_LARGEST = 1 << 32  # bytes of a file with one SHA-256
_RANGE = 1 << 26  # bytes
_REQUEST = 1 << 24  # bytes that are read at a time: a request at a URL


def has_ranges(size: int) -> bool:
    """Return whether a file of this size is hashed in ranges."""
    return size > _LARGEST


def describe_ranges(path: str, file: Any, size: int) -> InputFile:
    """Hash the ranges of a large Arrow file, with a thread per core."""

    def digest_from(begin: int) -> str:
        digest, end = hashlib.sha256(), begin + _RANGE
        while data := file.read_at(min(_REQUEST, end - begin), begin):
            digest.update(data)
            begin += len(data)
        return digest.hexdigest()

    return _describe(path, size, map_threads(digest_from, range(0, size, _RANGE)))


def _describe(path: str, size: int, digests: Iterable[str]) -> InputFile:
    lines = "".join(f"{digest}\n" for digest in digests)
    return InputFile(path, size, ranges_sha256=hashlib.sha256(lines.encode()).hexdigest())


class Digest:
    """Digest of successive bytes."""

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


@dataclass(frozen=True)
class StoredFile:
    """File and its filesystem."""

    path: str  # as people write it, a path or a URL
    filesystem: Any  # None for standard input and pipes, which can be read but once
    name: str  # path on the filesystem
    large: float = 10**9  # bytes that the file may expand to, whatever is stored

    @property
    def suffix(self) -> str:
        """Format suffix in lower case: `.tsv` of `bm25.tsv.gz`, or of the file in `bm25.zip`."""
        suffix, compression = suffixes(self.name)
        if compression == ".zip" and not suffix and self.filesystem is not None:
            with suppress(InputError, *DAMAGED), self._open_unchanged() as (file, _), zipfile.ZipFile(file) as archive:
                return suffixes(_member(self.path, archive).filename)[0]
        return suffix

    @property
    def size(self) -> int:
        """Stored bytes. An unreachable file is an InputError."""
        with refusing_unreadable(self.path):
            return self._state()[0]

    @contextmanager
    def contents(self) -> Iterator[Contents]:
        with self._open_unchanged() as (file, size), ThreadPoolExecutor(1) as pool:
            yield Contents(self, _Stored(self.path, file, size, pool), size)

    def limit(self, size: int) -> float:
        return max(self.large, float(_RATIO * size))

    def describe(self) -> InputFile:
        with self._open_unchanged() as (file, size):
            if not has_ranges(size):
                return InputFile(self.path, size, hashlib.file_digest(file, "sha256").hexdigest())
            if self.filesystem is None:
                return describe_ranges(self.path, file, size)
            with self.filesystem.open_input_file(self.name) as ranges:
                return describe_ranges(self.path, ranges, size)

    @contextmanager
    def _open_unchanged(self) -> Iterator[tuple[Any, int]]:
        if self.filesystem is None:
            stored = _stream(self.name)
            yield pa.BufferReader(stored), stored.size
            return
        with refusing_unreadable(self.path):
            before = self._state()
            refused = None
            with self._open() as file:
                try:
                    with refusing_unreadable(self.path):
                        yield file, before[0]
                except InputError as error:
                    refused = error
            if self._state() != before:
                raise InputError(f"{self.path}: changed while it was read; evaluate again when it is complete")
            if refused:
                raise refused

    def _open(self) -> Any:
        if not self._is_local:
            return self.filesystem.open_input_file(self.name)
        # Nobody waits for the other end of a pipe that took the file's place.
        at_once = getattr(os, "O_NONBLOCK", 0)
        return open(self.name, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | at_once))

    def _state(self) -> tuple[int, ...]:
        if self._is_local:
            state = os.stat(self.name)  # noqa: PTH116
            refuse_special(self.path, state.st_mode)
            return state.st_size, state.st_mtime_ns, state.st_dev, state.st_ino
        info = self.filesystem.get_file_info(self.name)
        if info.type != pa.fs.FileType.File:
            raise InputError(f"{self.path}: file not found; check the path")
        return int(info.size), info.mtime_ns or 0

    @property
    def _is_local(self) -> bool:
        return isinstance(self.filesystem, pa.fs.LocalFileSystem)


def _fill(file: Any, view: memoryview) -> int:
    n_read = 0
    while n_read < len(view) and (n_more := file.readinto(view[n_read : n_read + _PIECE])):
        n_read += n_more
    return n_read


def _refuse_short(path: str, n_missing: int) -> NoReturn:
    raise InputError(f"{path}: ended {n_missing:,} bytes early while it was read; check the file")


class _Stored:
    """Stored bytes, read in order and hashed by a second thread."""

    closed = False  # as Arrow asks of files

    def __init__(self, path: str, file: Any, size: int, beside: ThreadPoolExecutor) -> None:
        self.left = size
        self._end = memoryview(b"")  # what was read before it was its turn
        self._path = path
        self._file = file
        self._beside = beside
        self._digest = Digest(size)
        self._hashing: Future[Any] = beside.submit(int)

    def readinto(self, view: memoryview) -> int:
        view = view[: self.left]
        n_file = min(len(view), max(0, self.left - len(self._end)))
        n_read = _fill(self._file, view[:n_file])
        self.left -= n_read
        if n_read < n_file:
            _refuse_short(self._path, self.left)
        if n_file < len(view):
            n_begun = len(self._end) - self.left
            view[n_file:] = self._end[n_begun : n_begun + len(view) - n_file]
            self.left -= len(view) - n_file
        self._hashing.result()
        self._hashing = self._beside.submit(self._digest.update, view)
        return len(view)

    def end(self, size: int) -> memoryview:
        """Return the last bytes before any other is read. They are read again from memory."""
        end = memoryview(bytearray(min(size, self.left)))
        self._file.seek(self.left - len(end))
        n_read = _fill(self._file, end)
        if n_read < len(end):
            _refuse_short(self._path, len(end) - n_read)
        self._file.seek(0)
        self._end = end
        return end

    def read(self, size: int) -> memoryview:
        view = np.empty(min(size, self.left), np.uint8).data  # in huge pages: a third of the time of Arrow's own memory
        self.readinto(view)
        return view

    def close(self) -> None:
        """Do nothing, because the opener closes the file and not Arrow."""

    def describe(self) -> InputFile:
        while self.left:
            self.read(_PIECE)
        self._hashing.result()
        return self._digest.describe(self._path)


@dataclass
class _XzStream:
    """Uncompressed bytes of a .xz file, whose streams may follow each other."""

    _stored: _Stored
    _decoder: lzma.LZMADecompressor

    def readinto(self, view: memoryview) -> int:
        data = b""
        while not data:
            eof, packed = self._decoder.eof, self._decoder.unused_data
            if not packed and (eof or self._decoder.needs_input):
                packed = bytes(self._stored.read(_PIECE))
                if not packed and not eof:
                    raise EOFError("it ends early")
            if eof:
                if not (packed := packed.lstrip(b"\0")) and not self._stored.left:  # streams are padded
                    return 0
                self._decoder = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
            data = self._decoder.decompress(packed, len(view))
        view[: len(data)] = data
        return len(data)


def _member(path: str, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    files = [each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX/")]
    if len(files) != 1:
        listed = shorten(", ".join(each.filename for each in files)) or "none"
        raise InputError(f"{path}: {len(files)} files in the archive ({listed}). Unzip it, and name one of them.")
    if files[0].flag_bits & 1:
        raise InputError(f"{path}: the archive is encrypted. Unzip it with its password.")
    return files[0]


class Contents:
    """Contents of a file from the beginning, uncompressed if the name ends in .gz, .zst, .bz2, .xz or .zip."""

    def __init__(self, file: StoredFile, stored: _Stored, size: int) -> None:
        self.limit = file.limit(size)
        self._path = file.path
        self._stored = stored
        self.size = size
        self._n_read = 0
        self._compression = _COMPRESSIONS.get(suffixes(file.name)[1])
        self.is_packed = self._compression is not None
        self._stream: Any = stored
        if self._compression == "xz":
            self._stream = _XzStream(stored, lzma.LZMADecompressor(memlimit=_XZ_MEMORY))
        elif self._compression == "zip":
            with self._refusing_damaged():
                archive = zipfile.ZipFile(pa.BufferReader(pa.py_buffer(stored.read(stored.left))))
                self._stream = archive.open(_member(file.path, archive))
        elif self._compression:
            self._stream = pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), self._compression)

    @contextmanager
    def _refusing_damaged(self) -> Iterator[None]:
        try:
            yield
        except DAMAGED as error:
            raise InputError(f"{self._path}: not {self._compression} ({first_line(error)}); write it again") from None

    def readinto(self, view: memoryview) -> int:
        if not self._compression:
            return self._stored.readinto(view)
        n_read = 0
        with self._refusing_damaged():
            while n_read < len(view) and (n_more := self._stream.readinto(view[n_read : n_read + _PIECE])):
                n_read += n_more
                self._n_read += n_more
                if self._n_read > self.limit:
                    problem = f"more than {self.limit:,.0f} bytes come of {self.size:,}"
                    raise InputError(f"{self._path}: {problem}; check the file, or set allow_large: true")
        return n_read

    def read(self) -> pa.Buffer:
        if not self._compression:
            return pa.py_buffer(self._stored.read(self._stored.left))
        sink = pa.BufferOutputStream()
        piece = memoryview(bytearray(_PIECE))
        while n_read := self.readinto(piece):
            sink.write(piece[:n_read])
        return sink.getvalue()

    def end(self, n_bytes: int) -> memoryview:
        """Return the last bytes of an uncompressed file, before any other is read."""
        return self._stored.end(n_bytes)

    def skip_to(self, place: int) -> None:
        while (n_bytes := place - (self.size - self._stored.left)) > 0:
            self._stored.read(min(n_bytes, _PIECE))

    def describe(self) -> InputFile:
        return self._stored.describe()


@contextmanager
def refusing_unreadable(path: str) -> Iterator[None]:
    """Turn errors of libraries and of the system into an InputError with the path and the reason."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read ({first_line(error)}); check it") from None


def suffixes(name: str) -> tuple[str, str]:
    """Return the format and compression suffixes in lower case: `.tsv` and `.gz` of `bm25.tsv.gz`."""
    path = PurePosixPath(without_options(name).lower())
    return (PurePosixPath(path.stem).suffix, path.suffix) if path.suffix in _COMPRESSIONS else (path.suffix, "")


def refuse_special(path: str, mode: int) -> None:
    """Reject special files, which may have no end or block."""
    if special := _SPECIAL.get(stat.S_IFMT(mode)):
        raise InputError(f"{path}: {special}, not a file; write the data to a file and name that")


def first_line(error: Exception) -> str:
    """Return the system's reason, or the first line of a library's message."""
    reason = error.strerror if isinstance(error, OSError) else None
    return shorten((reason or str(error) or type(error).__name__).partition("\n")[0])


@functools.cache  # it can be read once
def _stream(name: str) -> pa.Buffer:
    return pa.py_buffer(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes())


def without_options(path: str) -> str:
    """Return a path, or a URL without the options of the filesystem after its `?`."""
    return path.partition("?")[0] if "://" in path else path
