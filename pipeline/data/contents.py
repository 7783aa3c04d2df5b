"""What is in an input, known without parsing it: its files' sizes and digests, and how their rows are read."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.data.files import each_file, endings, find_files
from pipeline.data.inputs import Source
from pipeline.data.readers import format_of
from pipeline.errors import InputError
from pipeline.tables import Content, InputFile

__all__ = ["content_of", "describe", "exists", "size_of"]


def exists(source: Source) -> bool:
    """Whether anything is there."""
    try:
        return bool(find_files(source.path))
    except InputError:
        return False


def size_of(source: Source) -> int:
    """Bytes of all files of the input.

    Raises:
        InputError: nothing is there.
    """
    return sum(file.size for file in find_files(source.path))


def describe(source: Source) -> tuple[InputFile, ...]:
    """The files of the input, in order; they are read for their digests.

    Raises:
        InputError: nothing is there, or it changed while it was read.
    """
    return tuple(file.describe() for file in each_file(source.path))


def content_of(source: Source, files: Sequence[InputFile]) -> Content:
    """All that decides which rows are read.

    Args:
        source: the input as the config names it.
        files: those that it consists of, or consisted of.
    """
    return Content(
        files=tuple((file.sha256, *_layout(file.path, source.format)) for file in files),
        size=sum(file.size for file in files),
        columns=tuple(sorted((source.columns or {}).items())),
    )


def _layout(path: str, format: str | None) -> tuple[str, str]:
    """The format and the compression of a file."""
    name = path.partition("?")[0] if "://" in path else path  # after it stand options of the filesystem
    suffix, compression = endings(name)
    return format or format_of(suffix), compression
