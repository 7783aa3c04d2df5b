"""What is there of an input that may still be on its way, at one moment: its files, and the marker beside them."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from pipeline.data.files import files_there
from pipeline.errors import InputError

__all__ = ["Sight", "look", "marker_beside"]

_WILD = re.compile(r"[*?[]")


@dataclass(frozen=True)
class Sight:
    """What is there at one moment.

    Attributes:
        sizes: bytes of each file, by its path; none where nothing is there.
        trouble: why that could not be told, in one line; empty where it could.
    """

    sizes: tuple[tuple[str, int], ...] = ()
    trouble: str = ""


def look(path: str) -> Sight:
    """What is there of a file, a glob, a folder of parts or a URL of these; what is not there may still come."""
    try:
        return Sight(tuple((file.path, file.size) for file in files_there(path)))
    except InputError as error:  # also of a server that is away now, or a file that was just replaced
        return Sight(trouble=str(error))


def marker_beside(path: str, sight: Sight, marker: str) -> str:
    """The path of an input's marker: in the folder of parts, or in the one that holds the file or the glob's matches.

    Args:
        path: the input's; a URL keeps what follows its `?`.
        sight: what is there of it, at least one file.
        marker: the marker's name; it may begin with folders, and `..` is the one above.
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
