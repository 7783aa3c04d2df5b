"""Input files: found by path, glob or URL, opened and hashed.

What is hashed is what is parsed: a file is read once, from the beginning, and rejected if it changed meanwhile. It is
not mapped, because a mapped file that is cut short ends the process, and its pages count as memory.
"""

from __future__ import annotations

import copy
import csv
import fnmatch
import functools
import glob
import hashlib
import lzma
import os
import posixpath
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.fs

from rankledger.pipeline.config.sources import IN_MEMORY, Source
from rankledger.pipeline.data.digests import Digest, describe_ranges, has_ranges
from rankledger.pipeline.data.folders import input_files
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.errors import InputError, shorten

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
_XZ_MEMORY = 1 << 28  # bytes for a file's dictionary: `xz -9` takes a quarter of it
_DAMAGED = (OSError, EOFError, NotImplementedError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)
_PIECE = 1 << 22  # bytes that are read or uncompressed at a time
_RATIO = 200  # of the bytes uncompressed to those stored: text reaches 20, tables of numbers 50, zeros 1,000
_GOOGLE_PATIENCE = timedelta(seconds=60)
_MOST_PARTS = 10_000  # files and folders below the folder of one input; `/` or a home folder holds more
_SPECIAL = {
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True)
class StoredFile:
    """One file and its filesystem."""

    path: str  # as people write it, a path or a URL
    filesystem: Any  # None for standard input and pipes, which can be read but once
    name: str  # path on the filesystem
    large: float = 10**9  # bytes that the file may expand to, whatever is stored

    @property
    def suffix(self) -> str:
        """Ending that tells the format, in lower case: `.tsv` of `bm25.tsv.gz`, or of the file in `bm25.zip`."""
        suffix, compression = suffixes(self.name)
        if compression == ".zip" and not suffix and self.filesystem is not None:
            with suppress(InputError, *_DAMAGED), self._opened() as (file, _), zipfile.ZipFile(file) as archive:
                return suffixes(_member(self.path, archive).filename)[0]
        return suffix

    @property
    def size(self) -> int:
        """Bytes as they are stored. The file is not read. An unreachable file is an InputError."""
        with refusing_unreadable(self.path):
            return self._state()[0]

    @contextmanager
    def contents(self) -> Iterator[Contents]:
        """Open the file. Raise an InputError if it cannot be read or changes while it is read."""
        with self._opened() as (file, size), ThreadPoolExecutor(1) as beside:
            yield Contents(self, _Stored(self.path, file, size, beside), size)

    def limit(self, size: int) -> float:
        """Return the most bytes that a file of this size may expand to."""
        return max(self.large, float(_RATIO * size))

    def describe(self) -> InputFile:
        """Read the file for its size and digest. Ranges of a large file are read side by side."""
        with self._opened() as (file, size):
            if not has_ranges(size):
                return InputFile(self.path, size, hashlib.file_digest(file, "sha256").hexdigest())
            if self.filesystem is None:
                return describe_ranges(self.path, file, size)
            with self.filesystem.open_input_file(self.name) as ranges:
                return describe_ranges(self.path, ranges, size)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, int]]:
        """Yield the open file and its size. Reject the file if it has changed when it is closed."""
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
        """Return the size, and what else changes if the bytes do."""
        if self._is_local:
            found = os.stat(self.name)  # noqa: PTH116
            _refuse_special(self.path, found.st_mode)
            return found.st_size, found.st_mtime_ns, found.st_dev, found.st_ino
        info = self.filesystem.get_file_info(self.name)
        if info.type != pa.fs.FileType.File:
            raise InputError(f"{self.path}: file not found; check the path")
        return int(info.size), info.mtime_ns or 0

    @property
    def _is_local(self) -> bool:
        return isinstance(self.filesystem, pa.fs.LocalFileSystem)


def _fill(file: Any, view: memoryview) -> int:
    """Fill the view from the file's current position. Return the number of bytes."""
    n_read = 0
    while n_read < len(view) and (n_more := file.readinto(view[n_read : n_read + _PIECE])):
        n_read += n_more
    return n_read


def _refuse_short(path: str, n_missing: int) -> NoReturn:
    raise InputError(f"{path}: ended {n_missing:,} bytes early while it was read; check the file")


class _Stored:
    """Stored bytes, read in order. A second thread hashes what was read."""

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
        """Return the last bytes, before any other is read. In their turn they are taken from memory."""
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
        """Do nothing, though Arrow asks for it: who opened the file closes it."""

    def describe(self) -> InputFile:
        """Return the file with its digest, for which the remaining bytes are read."""
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
        except _DAMAGED as error:
            raise InputError(f"{self._path}: not {self._compression} ({first_line(error)}); write it again") from None

    def readinto(self, view: memoryview) -> int:
        """Fill as much of the view as there are bytes left. Reject a damaged or too large file."""
        if not self._compression:
            return self._stored.readinto(view)
        n_read = 0
        with self._refusing_damaged():
            while n_read < len(view) and (n_more := self._stream.readinto(view[n_read : n_read + _PIECE])):
                n_read += n_more
                self._n_read += n_more
                if self._n_read > self.limit:
                    found = f"more than {self.limit:,.0f} bytes come of {self.size:,}"
                    raise InputError(f"{self._path}: {found}; check the file, or set allow_large: true")
        return n_read

    def read(self) -> pa.Buffer:
        """Return all remaining bytes."""
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
        """Read an uncompressed file up to a place for its digest, and keep nothing."""
        while (n_bytes := place - (self.size - self._stored.left)) > 0:
            self._stored.read(min(n_bytes, _PIECE))

    def describe(self) -> InputFile:
        """Return the size and digest of the stored bytes that were read."""
        return self._stored.describe()


@contextmanager
def refusing_unreadable(path: str) -> Iterator[None]:
    """Turn errors of libraries and of the system into an InputError with the path and the reason."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read ({first_line(error)}); check it") from None


def suffixes(name: str) -> tuple[str, str]:
    """Return the endings for the format and the compression, in lower case: `.tsv` and `.gz` of `bm25.tsv.gz`."""
    path = PurePosixPath(without_options(name).lower())
    return (PurePosixPath(path.stem).suffix, path.suffix) if path.suffix in _COMPRESSIONS else (path.suffix, "")


def each_file(source: Source | str) -> Iterator[StoredFile]:
    """Yield the files of an input. Raise an InputError if there are others after the last one."""
    path = _source(source).path
    files = find_files(source)
    yield from files
    if [file.path for file in files] not in ([path], [file.path for file in files_there(source)]):
        raise InputError(f"{path}: its files changed while it was read; evaluate again when it is complete")


def find_files(source: Source | str) -> list[StoredFile]:
    """Return the files of an input, in the order of their names, as `files_there`. No file is an InputError."""
    path = _source(source).path
    files = files_there(source)
    if not files and Path(path).is_dir():
        raise InputError(f"{path}: a folder without files (names that begin with . or _ do not count); fix the path")
    if not files:
        raise InputError(f"{path}: file not found; check the path")
    return files


def files_there(source: Source | str) -> list[StoredFile]:
    """Return the files of an input, in the order of their names; none if nothing is there.

    The input is a file, a glob, a folder of parts (names that begin with `.` or `_` are skipped) or a URL of one of
    these. An unreachable input, or one that is neither file nor folder, is an InputError.
    """
    source = _source(source)
    path = source.path
    if source.streams and (path == "-" or Path(path).is_fifo()):
        return [StoredFile(path, None, path)]
    with refusing_unreadable(path):
        if "\0" in path:
            raise InputError(f"{path}: a path cannot hold a NUL character; check the path".replace("\0", "\\0"))
        scheme, filesystem, name = open_filesystem(path)
        names = _names(path, filesystem, name, is_url=bool(scheme))
    if names == [name]:
        return [StoredFile(path, filesystem, name, source.large)]
    return [StoredFile(scheme + found, filesystem, found, source.large) for found in sorted(names)]


def list_files(folder: Path) -> list[StoredFile]:
    """Return every file in a local folder and below, but for names that begin with `_` or `.`.

    Raises:
        InputError: The folder cannot be read, or holds more than 10,000 files.
    """
    filesystem = pa.fs.LocalFileSystem()
    with refusing_unreadable(str(folder)):
        return [StoredFile(path, filesystem, path) for path in sorted(_files_below(filesystem, str(folder)))]


def _source(source: Source | str) -> Source:
    return Source(source) if isinstance(source, str) else source


def _names(path: str, filesystem: Any, name: str, *, is_url: bool) -> list[str]:
    kind = filesystem.get_file_info(name).type
    if kind == pa.fs.FileType.File:
        return [name]
    if kind == pa.fs.FileType.Directory:
        return input_files(name, _files_below(filesystem, name))
    if kind == pa.fs.FileType.Unknown:
        _refuse_special(path, os.stat(name).st_mode)  # noqa: PTH116
    if is_url:
        folder = name.partition("*")[0].rpartition("/")[0]
        return [found for found in _files_below(filesystem, folder) if _matches(found.split("/"), name.split("/"))]
    return [match for match in glob.glob(name, recursive=True) if _is_file(match)]  # noqa: PTH207


def _is_file(name: str) -> bool:
    """Return whether a path is a file and not a folder. Reject anything else, and broken links."""
    with refusing_unreadable(name):
        mode = os.stat(name).st_mode  # noqa: PTH116
    _refuse_special(name, mode)
    return stat.S_ISREG(mode)


def _refuse_special(path: str, mode: int) -> None:
    """Reject what is neither file nor folder: it may have no end, or wait for a writer."""
    if special := _SPECIAL.get(stat.S_IFMT(mode)):
        raise InputError(f"{path}: {special}, not a file; write the data to a file and name that")


def open_filesystem(path: str) -> tuple[str, Any, str]:
    """Return the scheme with its `://` (empty for local paths), the filesystem, and the path on it."""
    scheme, separator, _ = path.rpartition("://")
    if not separator:
        return "", pa.fs.LocalFileSystem(), path
    if path.startswith(IN_MEMORY):
        raise InputError(f"{path}: was given in memory, and a record keeps no inputs; evaluate again from its data")
    try:
        filesystem, name = pa.fs.FileSystem.from_uri(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: {first_line(error)}; fix the URL") from None
    return scheme + separator, _configured(filesystem), name


def _configured(filesystem: Any) -> Any:
    """Return the filesystem with what its URL does not say: retries, and the key of an Azure account."""
    if filesystem.type_name == "s3":  # by its URL, Arrow asks a server that does not answer thirty times, for 100 s
        return copy.copy(filesystem)  # three times
    if filesystem.type_name == "gcs":  # by its URL, Arrow asks for a quarter of an hour
        build, (options,) = filesystem.__reduce__()
        return build({**options, "retry_time_limit": options["retry_time_limit"] or _GOOGLE_PATIENCE})
    if filesystem.type_name == "abfs" and (key := os.environ.get("AZURE_STORAGE_ACCOUNT_KEY")):
        build, (options,) = filesystem.__reduce__()
        return build({**options, "account_key": key})
    return filesystem


def _files_below(filesystem: Any, folder: str) -> list[str]:
    """Return the files in a folder and its subfolders. Names that begin with `_` or `.` are skipped."""
    folders, files = [folder], list[str]()
    n_found = 0
    is_flat = filesystem.type_name == "gcs"  # where Arrow lists no subfolders, but all that is below a folder
    while folders:
        selector = pa.fs.FileSelector(folders.pop(), allow_not_found=True, recursive=is_flat)
        entries = filesystem.get_file_info(selector)
        n_found += len(entries)
        if n_found > _MOST_PARTS:
            raise InputError(f"{folder}: holds more than {_MOST_PARTS:,} files; name the folder of one input")
        for info in entries:
            names = info.path.removeprefix(folder).split("/") if is_flat else [info.base_name]
            if any(name.startswith(("_", ".")) for name in names):
                continue
            if info.type == pa.fs.FileType.Unknown:
                _refuse_special(info.path, os.stat(info.path).st_mode)  # noqa: PTH116
            elif info.type == pa.fs.FileType.Directory and not is_flat:
                folders.append(info.path)
            elif info.type == pa.fs.FileType.File:
                files.append(info.path)
    return files


def _matches(parts: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_matches(parts[skipped:], patterns[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], patterns[0]) and _matches(parts[1:], patterns[1:])


def first_line(error: Exception) -> str:
    """Return why something failed: the system's reason, or the first line of a library's message."""
    reason = error.strerror if isinstance(error, OSError) else None
    return shorten((reason or str(error) or type(error).__name__).partition("\n")[0])


@functools.cache  # it can be read once
def _stream(name: str) -> pa.Buffer:
    return pa.py_buffer(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes())


_WILD = re.compile(r"[*?[]")


@dataclass(frozen=True)
class InputState:
    """Files of an input at one moment."""

    sizes: tuple[tuple[str, int], ...] = ()  # bytes of each file, by its path
    trouble: str = ""  # why the files are unknown; empty if they are known


def input_state(path: str) -> InputState:
    """Return which files of an input exist now."""
    try:
        return InputState(tuple((file.path, file.size) for file in files_there(path)))
    except InputError as error:  # also of a server that is away now, or a file that was just replaced
        return InputState(trouble=str(error))


def marker_beside(path: str, sight: InputState, marker: str) -> str:
    """Return the path of an input's marker: in the folder of parts, or in the folder of the file or the glob's matches.

    Args:
        path: Path or URL of the input.
        sight: Files of the input, at least one.
        marker: Name of the marker, which may begin with folders or `..`.
    """
    scheme, separator, name = path.rpartition("://")
    query = ""
    if separator:
        name, mark, asked = name.partition("?")
        query = mark + asked
    folder = name
    if sight.sizes[0][0] == path:
        folder = posixpath.dirname(name)
    elif wild := _WILD.search(name):
        folder = posixpath.dirname(name[: wild.start()])
    return f"{scheme}{separator}{posixpath.normpath(posixpath.join(folder, marker))}{query}"


def without_options(path: str) -> str:
    """Return a path, or a URL without the options of the filesystem after its `?`."""
    return path.partition("?")[0] if "://" in path else path
