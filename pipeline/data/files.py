"""Where inputs are: files, globs and folders of parts, on disk or on any filesystem that pyarrow knows by its URL."""

from __future__ import annotations

import fnmatch
import functools
import glob
import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.fs

from pipeline.errors import InputError
from pipeline.tables import InputFile

__all__ = ["StoredFile", "endings", "files_there", "find_files"]

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True)
class StoredFile:
    """One file and the filesystem it is on.

    Attributes:
        path: as people write it, a path or a URL.
        filesystem: a pyarrow filesystem; None for standard input and for pipes, which can be read but once.
        name: its path on that filesystem.
    """

    path: str
    filesystem: Any
    name: str

    @property
    def suffix(self) -> str:
        """The ending that tells the format, in lower case: `.tsv` of `bm25.tsv.gz`."""
        return endings(self.name)[0]

    @property
    def size(self) -> int:
        """Bytes, as it is stored; a file on a disk or a server is not read for it."""
        if self.filesystem is None:
            return int(_stream(self.name).size)
        return int(self.filesystem.get_file_info(self.name).size)

    def open(self) -> pa.Buffer:
        """Its bytes as they are stored: a local file is mapped into memory, not copied."""
        if self.filesystem is None:
            return _stream(self.name)
        if isinstance(self.filesystem, pa.fs.LocalFileSystem):
            with pa.memory_map(self.name) as file:
                return file.read_buffer()
        with self.filesystem.open_input_file(self.name) as file:
            return file.read_buffer()

    def describe(self, stored: pa.Buffer) -> InputFile:
        """Its size and digest as it is stored."""
        return InputFile(self.path, stored.size, hashlib.sha256(stored).hexdigest())

    def uncompress(self, stored: pa.Buffer) -> pa.Buffer:
        """Its contents: the stored bytes, uncompressed where the name ends in .gz or .zst.

        Raises:
            InputError: it is not compressed as its name says.
        """
        compression = _COMPRESSIONS.get(endings(self.name)[1])
        if compression is None:
            return stored
        try:
            with pa.input_stream(stored, compression=compression) as stream:
                return pa.py_buffer(stream.read())
        except OSError as error:
            raise InputError(f"{self.path}: not {compression} ({_first_line(error)}); write it again") from None


def endings(name: str) -> tuple[str, str]:
    """What tells the format and what the compression, in lower case: `.tsv` and `.gz` of `bm25.tsv.gz`."""
    path = PurePosixPath(name.lower())
    return (PurePosixPath(path.stem).suffix, path.suffix) if path.suffix in _COMPRESSIONS else (path.suffix, "")


def find_files(path: str) -> list[StoredFile]:
    """The files that a path names, in the order of their names.

    Args:
        path: a file, a glob, a folder of parts (names that begin with `.` or `_` are passed over), or a URL of one of
            these, such as `s3://bucket/outputs/*.parquet`; or `-`, standard input; or a pipe, such as a shell's
            `<(zcat ranking.gz)`.

    Raises:
        InputError: nothing is there.
    """
    files = files_there(path)
    if not files and Path(path).is_dir():
        raise InputError(f"{path}: a folder without files, but for such as begin with . or _; mend the path")
    if not files:
        raise InputError(f"{path}: no such file; mend the path")
    return files


def files_there(path: str) -> list[StoredFile]:
    """The same, none where nothing is there.

    Raises:
        InputError: the URL is none that pyarrow knows.
    """
    if path == "-":
        return [StoredFile(path, None, path)]
    scheme, filesystem, name = _open(path)
    kind = filesystem.get_file_info(name).type
    if not scheme and (Path(name).is_fifo() or Path(name).is_char_device()):
        return [StoredFile(path, None, name)]
    if kind == pa.fs.FileType.File:
        return [StoredFile(path, filesystem, name)]
    if kind == pa.fs.FileType.Directory:
        names = _files_below(filesystem, name)
    elif scheme:
        folder = name.partition("*")[0].rpartition("/")[0]
        names = [found for found in _files_below(filesystem, folder) if _matches(found.split("/"), name.split("/"))]
    else:
        names = [found for found in glob.glob(name, recursive=True) if Path(found).is_file()]  # noqa: PTH207
    return [StoredFile(scheme + found, filesystem, found) for found in sorted(names)]


def _open(path: str) -> tuple[str, Any, str]:
    """The scheme with its `://` (empty for local paths), the filesystem, and the path on it."""
    scheme, separator, _ = path.rpartition("://")
    if not separator:
        return "", pa.fs.LocalFileSystem(), path
    try:
        return scheme + separator, *pa.fs.FileSystem.from_uri(path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError(f"{path}: {_first_line(error)}; mend the URL") from None


def _files_below(filesystem: Any, folder: str) -> list[str]:
    found = filesystem.get_file_info(pa.fs.FileSelector(folder, recursive=True, allow_not_found=True))
    return [
        info.path
        for info in found
        if info.type == pa.fs.FileType.File
        and not any(part[:1] in ("_", ".") for part in info.path[len(folder) :].strip("/").split("/"))
    ]


def _matches(parts: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_matches(parts[skipped:], patterns[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], patterns[0]) and _matches(parts[1:], patterns[1:])


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


@functools.cache  # it can be read once
def _stream(name: str) -> pa.Buffer:
    return pa.py_buffer(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes())
