"""Inputs located by path, glob, folder or URL, their markers, and recorded files that were moved."""

from __future__ import annotations

import copy
import fnmatch
import glob
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.fs

from rankledger.pipeline.config.sources import BEIR_TABLES, IN_MEMORY, Source
from rankledger.pipeline.data.files import StoredFile, first_line, refuse_special, refusing_unreadable, without_options
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.errors import InputError

_QRELS = "qrels/"
_TEST = f"{_QRELS}test.tsv"
_CARDS = {"README.md", "dataset_dict.json", "dataset_info.json", "dataset_infos.json"}  # beside HuggingFace's Parquet
_SHARD = re.compile(r"(.*?)([^/]+)-(\d{5})-of-(\d{5})\.parquet")
_SPLITS = {"dev", "test", "train", "valid", "validation"}
_MOST_PARTS = 10_000  # files and folders below the folder of one input; `/` or a home folder holds more
_GOOGLE_PATIENCE = timedelta(seconds=10)
_WILD = re.compile(r"[*?[]")

PathLike = TypeVar("PathLike", str, Path)


def each_file(source: Source | str) -> Iterator[StoredFile]:
    """Yield the files of an input. Raise an InputError if there are others after the last one."""
    path = _source(source).path
    files = find_files(source)
    yield from files
    if [file.path for file in files] not in ([path], [file.path for file in files_there(source)]):
        raise InputError(f"{path}: its files changed while it was read; evaluate again when it is complete")


def find_files(source: Source | str) -> list[StoredFile]:
    """Return the files of an input like `files_there`. Raise an InputError if there is none."""
    path = _source(source).path
    files = files_there(source)
    if not files and Path(path).is_dir():
        raise InputError(f"{path}: a folder without files (names that begin with . or _ do not count); fix the path")
    if not files:
        raise InputError(f"{path}: file not found; check the path")
    return files


def files_there(source: Source | str) -> list[StoredFile]:
    """Return the files of an input, in the order of their names, none if nothing is there.

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
    return [StoredFile(scheme + name, filesystem, name, source.large) for name in sorted(names)]


def list_files(folder: Path) -> list[StoredFile]:
    """Return every file below a local folder, without names that begin with `_` or `.`."""
    filesystem = pa.fs.LocalFileSystem()
    with refusing_unreadable(str(folder)):
        return [StoredFile(path, filesystem, path) for path in sorted(_list_files(filesystem, str(folder)))]


def _source(source: Source | str) -> Source:
    return Source(source) if isinstance(source, str) else source


def _names(path: str, filesystem: Any, name: str, *, is_url: bool) -> list[str]:
    kind = filesystem.get_file_info(name).type
    if kind == pa.fs.FileType.File:
        return [name]
    if kind == pa.fs.FileType.Directory:
        return _input_files(name, _list_files(filesystem, name))
    if kind == pa.fs.FileType.Unknown:
        refuse_special(path, os.stat(name).st_mode)  # noqa: PTH116
    if is_url:
        folder = name.partition("*")[0].rpartition("/")[0]
        return [file for file in _list_files(filesystem, folder) if _matches(file.split("/"), name.split("/"))]
    folders = glob.iglob(f"{posixpath.dirname(name)}/", recursive=True)  # noqa: PTH207
    if any(True for _ in islice(folders, _MOST_PARTS, None)):
        problem = f"more than {_MOST_PARTS:,} folders match before the last `/`"
        raise InputError(f"{path}: {problem}. Set a folder in place of the first wildcard.")
    return [match for match in glob.glob(name, recursive=True) if _is_file(match)]  # noqa: PTH207


def _is_file(name: str) -> bool:
    with refusing_unreadable(name):
        mode = os.stat(name).st_mode  # noqa: PTH116
    refuse_special(name, mode)
    return stat.S_ISREG(mode)


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
    return scheme + separator, _configure(filesystem), name


def _configure(filesystem: Any) -> Any:
    if filesystem.type_name == "s3":  # by its URL, Arrow asks a server that does not answer thirty times, for 100 s
        return copy.copy(filesystem)  # three times
    if filesystem.type_name == "gcs":  # by its URL, Arrow asks for a quarter of an hour
        build, (options,) = filesystem.__reduce__()
        return build({**options, "retry_time_limit": options["retry_time_limit"] or _GOOGLE_PATIENCE})
    if filesystem.type_name == "abfs" and (key := os.environ.get("AZURE_STORAGE_ACCOUNT_KEY")):
        build, (options,) = filesystem.__reduce__()
        return build({**options, "account_key": key})
    return filesystem


def _list_files(filesystem: Any, folder: str) -> list[str]:
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
                refuse_special(info.path, os.stat(info.path).st_mode)  # noqa: PTH116
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


def _input_files(folder: str, names: Sequence[str]) -> list[str]:
    """Return the files of a folder that are one input: for BEIR the judgments of the test split, otherwise all data."""
    below = {name.removeprefix(folder.rstrip("/") + "/"): name for name in names}
    judged = sorted(name for name in below if name.startswith(_QRELS))
    if judged and {*BEIR_TABLES.values()} & below.keys():
        if _TEST in below or len(judged) == 1:
            return [below[_TEST if _TEST in below else judged[0]]]
        raise InputError(f"{folder}: holds judgments of several splits; name one, as in {below[judged[0]]}")
    several = sorted(name.partition(f"/{_QRELS}")[0] for name in below if f"/{_QRELS}" in name)
    if several:
        raise InputError(f"{folder}: holds folders of datasets; name one, such as {folder.rstrip('/')}/{several[0]}")
    data = [name for name in below if name not in _CARDS]
    if data and all(name.endswith(".parquet") for name in data):
        _refuse_splits(folder, data)
        return [below[name] for name in data]
    if any(name.endswith(".arrow") for name in data):
        raise InputError(f"{folder}: holds Arrow files, as of save_to_disk; write it with to_parquet")
    return list(names)


def _refuse_splits(folder: str, names: Sequence[str]) -> None:
    shards: dict[tuple[str, str, str], set[int]] = {}
    for shard in filter(None, map(_SHARD.fullmatch, names)):
        shards.setdefault((shard[1], shard[2], shard[4]), set()).add(int(shard[3]))
    splits = sorted({split for _, split, _ in shards} & _SPLITS)
    if len(splits) > 1:
        place = next(place for place, split, _ in shards if split == splits[0])
        example = f"{folder.rstrip('/')}/{place}{splits[0]}-*.parquet"
        raise InputError(f"{folder}: holds the splits {', '.join(splits)}; name one, as in {example}")
    for (place, split, n_all), numbers in shards.items():
        missing = sorted({*range(int(n_all))} - numbers)
        if missing:
            name = f"{place}{split}-{missing[0]:05}-of-{n_all}.parquet"
            raise InputError(f"{folder}: lacks {len(missing)} of {int(n_all)} shards, such as {name}; complete it")


def find_sizes(path: str) -> dict[str, int]:
    """Return the bytes of each file of an input that exists now, by its path. Raise InputError if they are unknown."""
    return {file.path: file.size for file in files_there(path)}


def marker_beside(path: str, sizes: Mapping[str, int], marker: str) -> str:
    """Return the path of an input's marker in the folder of its files."""
    scheme, separator, name = path.rpartition("://")
    query = ""
    if separator:
        name, mark, parameters = name.partition("?")
        query = mark + parameters
    folder = name
    if path in sizes:
        folder = posixpath.dirname(name)
    elif wild := _WILD.search(name):
        folder = posixpath.dirname(name[: wild.start()])
    return f"{scheme}{separator}{posixpath.normpath(posixpath.join(folder, marker))}{query}"


class MovedFiles:
    """Files below a folder. A file is read only if its size matches."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder}: folder not found; name the folder of the inputs with --inputs")
        self.folder = folder
        self._described: dict[Path, InputFile] = {}

    def find(self, file: InputFile) -> Path | None:
        """Return the first file of the same bytes, None if there is none."""
        matches = (path for path in self._files_by_size.get(file.size, ()) if self.describe(path).digest == file.digest)
        return next(matches, None)

    def namesake(self, file: InputFile) -> Path | None:
        """Return the file of the same name whose path ends most alike, None if there is no single one."""
        return most_alike((path for paths in self._files_by_size.values() for path in paths), file.path)

    def describe(self, path: Path) -> InputFile:
        if path not in self._described:
            self._described[path] = StoredFile(str(path), pa.fs.LocalFileSystem(), str(path)).describe()
        return self._described[path]

    @cached_property
    def _files_by_size(self) -> dict[int, list[Path]]:
        files: dict[int, list[Path]] = {}
        for folder, folders, names in os.walk(self.folder):
            folders.sort()
            for path in (Path(folder, name) for name in sorted(names)):
                if path.is_file():
                    files.setdefault(path.stat().st_size, []).append(path)
        return files


def most_alike(paths: Iterable[PathLike], other: str) -> PathLike | None:
    """Return the path of the same name whose end is most alike, None if there is no single one."""
    end = PurePath(other).parts[::-1]
    alike = {path: len(os.path.commonprefix([PurePath(path).parts[::-1], end])) for path in paths}  # noqa: RUF071 (tuples)
    best = [path for path, n_common in alike.items() if n_common and n_common == max(alike.values())]
    return best[0] if len(best) == 1 else None


def link_files(files: Sequence[Path], recorded: Sequence[InputFile], folder: Path) -> Path:
    """Link files in place of the recorded ones. Return the path of the link, or of the folder of links."""
    folder.mkdir(parents=True)
    links = [folder / f"{place:06}-{PurePath(without_options(file.path)).name}" for place, file in enumerate(recorded)]
    for link, file in zip(links, files, strict=True):
        link.symlink_to(file.absolute())
    return links[0] if len(links) == 1 else folder
