"""Inputs that have moved: files found again in a folder by their size and digest, and links by which they are read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import TypeVar

from pipeline.errors import InputError
from pipeline.tables import InputFile

__all__ = ["MovedFiles", "link_files", "most_alike"]

PathLike = TypeVar("PathLike", str, Path)


class MovedFiles:
    """The files below a folder, at any depth and of any name. A file is read only where its size is asked for."""

    def __init__(self, folder: Path) -> None:
        """Know the folder.

        Raises:
            InputError: there is none.
        """
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder; name one with --inputs in which the inputs are")
        self.folder = folder
        self._digests: dict[Path, str] = {}

    def find(self, file: InputFile) -> Path | None:
        """A file of the same bytes; None where there is none. Of several the first by its path."""
        same = (path for path in self._by_size.get(file.size, ()) if self.digest(path) == file.sha256)
        return next(same, None)

    def namesake(self, file: InputFile) -> Path | None:
        """The one file of the same name whose path ends most alike; None where there is none, or several."""
        return most_alike((path for paths in self._by_size.values() for path in paths), file.path)

    def digest(self, path: Path) -> str:
        """The hex digest of a file, which is read once."""
        if path not in self._digests:
            with path.open("rb") as file:
                self._digests[path] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._digests[path]

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
    """The one path of the same name whose end is most alike; None where there is none, or several."""
    alike = {path: _in_common(PurePath(path), PurePath(other)) for path in paths}
    best = [path for path, n_common in alike.items() if n_common and n_common == max(alike.values())]
    return best[0] if len(best) == 1 else None


def link_files(files: Sequence[Path], recorded: Sequence[InputFile], folder: Path) -> Path:
    """The path under which files are read in the place of those recorded: a link, or a folder of links.

    Args:
        files: where they are now.
        recorded: what they were, in the order in which they were read. The ending of a name, which tells the format,
            stays; in a folder the names begin with numbers, which keep the order.
        folder: where the links are made; it must not exist yet.
    """
    folder.mkdir(parents=True)
    links = [folder / f"{place:06}-{_name(file.path)}" for place, file in enumerate(recorded)]
    for link, file in zip(links, files, strict=True):
        link.symlink_to(file.absolute())
    return links[0] if len(links) == 1 else folder


def _in_common(path: PurePath, other: PurePath) -> int:
    """How many names the ends of two paths have in common."""
    parts = zip(reversed(path.parts), reversed(other.parts), strict=False)
    unlike = (place for place, (one, two) in enumerate(parts) if one != two)
    return next(unlike, min(len(path.parts), len(other.parts)))


def _name(path: str) -> str:
    """The last name of a path or URL, after which options of the filesystem may stand."""
    return PurePath(path.partition("?")[0] if "://" in path else path).name
