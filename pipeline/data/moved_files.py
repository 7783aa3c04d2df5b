"""Inputs that were moved: found again by their bytes or names, and read under the recorded path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import TypeVar

import pyarrow as pa
import pyarrow.fs

from rankledger.pipeline.data.files import StoredFile, without_options
from rankledger.pipeline.data.rows import InputFile
from rankledger.pipeline.support.errors import InputError

PathLike = TypeVar("PathLike", str, Path)


class MovedFiles:
    """Files below a folder. A file is read only if its size is asked for."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder}: folder not found; name the folder of the inputs with --inputs")
        self.folder = folder
        self._described: dict[Path, InputFile] = {}

    def find(self, file: InputFile) -> Path | None:
        """Return the first file of the same bytes, None if there is none."""
        same = (path for path in self._by_size.get(file.size, ()) if self.describe(path).digest == file.digest)
        return next(same, None)

    def namesake(self, file: InputFile) -> Path | None:
        """Return the one file of the same name whose path ends most alike, None if there are none or several."""
        return most_alike((path for paths in self._by_size.values() for path in paths), file.path)

    def describe(self, path: Path) -> InputFile:
        """Return the size and digest of a file, which is read once."""
        if path not in self._described:
            self._described[path] = StoredFile(str(path), pa.fs.LocalFileSystem(), str(path)).describe()
        return self._described[path]

    @cached_property
    def _by_size(self) -> dict[int, list[Path]]:
        found: dict[int, list[Path]] = {}
        for folder, folders, names in os.walk(self.folder):
            folders.sort()
            for path in (Path(folder, name) for name in sorted(names)):
                if path.is_file():
                    found.setdefault(path.stat().st_size, []).append(path)
        return found


def most_alike(paths: Iterable[PathLike], other: str) -> PathLike | None:
    """Return the one path of the same name whose end is most alike, None if there are none or several."""
    end = PurePath(other).parts[::-1]
    alike = {path: len(os.path.commonprefix([PurePath(path).parts[::-1], end])) for path in paths}  # noqa: RUF071 (tuples)
    best = [path for path, n_common in alike.items() if n_common and n_common == max(alike.values())]
    return best[0] if len(best) == 1 else None


def link_files(files: Sequence[Path], recorded: Sequence[InputFile], folder: Path) -> Path:
    """Link files in place of the recorded ones. Return the path of the link, or of the folder of links.

    The ending of a name, which tells the format, stays. In a folder the names begin with numbers, which keep the order.
    """
    folder.mkdir(parents=True)
    links = [folder / f"{place:06}-{PurePath(without_options(file.path)).name}" for place, file in enumerate(recorded)]
    for link, file in zip(links, files, strict=True):
        link.symlink_to(file.absolute())
    return links[0] if len(links) == 1 else folder
