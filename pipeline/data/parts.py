"""Files as the parts that are parsed one after the other: text cut at line ends, Parquet between row groups.

Where a part ends follows from the file and from the rows that a part should have, never from who reads it: text is cut
at the first line end at or behind each multiple of the bytes that so many rows take, by the file's first lines. What is
compressed is cut as it is uncompressed. CSV, where a line end may stand within quotation marks, and JSON are one part.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.pipeline.data.files import Contents, StoredFile, files_there, suffixes
from rankledger.pipeline.data.formats import FORMATS, format_of
from rankledger.pipeline.data.formats.common import PAGE, FilePart, Format, Kind, without_bom
from rankledger.pipeline.types.inputs import Source

__all__ = ["PART_ROWS", "file_parts", "peak_bytes"]

PART_ROWS = 1_000_000
"""Rows of a part, about: enough that its own cost does not count, few enough for any memory."""

_LARGEST = 1 << 26  # bytes of text in a part, however long its lines are
_UNPACKED = 5  # bytes of text that come of a byte compressed, or of Parquet
_TIMES = 2  # bytes of memory for a byte of text that is parsed and joined
_BESIDE = 100e6  # bytes that are taken beside them by large ranges: what is sorted, looked up and put aside
_LINE_FEED = b"\n"
_Bytes = npt.NDArray[np.uint8]


def peak_bytes(source: Source, *, in_ranges: bool) -> float:
    """The bytes of memory that parsing and joining take at a time, about, as was measured; 0 if nothing is there.

    At a URL nothing is asked, as a store that is away takes seconds to say so: it counts as a range of full size.

    Args:
        source: the output.
        in_ranges: whether it is read in ranges, or as a whole.

    Raises:
        InputError: it cannot be reached.
    """
    if "://" in source.path:
        return _TIMES * _LARGEST + _BESIDE
    return max((_peak_of(file, source, in_ranges=in_ranges) for file in files_there(source)), default=0.0)


def _peak_of(file: StoredFile, source: Source, *, in_ranges: bool) -> float:
    layout = FORMATS[source.format or format_of(file.suffix)]
    is_packed = layout.cut is not None or bool(suffixes(file.name)[1])
    text = file.size * (_UNPACKED if is_packed else 1)
    if in_ranges and (layout.count_lines or layout.cut):
        text = min(text, _LARGEST)
    return _TIMES * text + min(_BESIDE, text * _UNPACKED) + (file.size if layout.cut else 0)


def file_parts(
    file: StoredFile, contents: Contents, kind: Kind, source: Source, n_rows: int | None = None
) -> Iterator[FilePart]:
    """The parts of a file, at least one, in order, with its format: the source's own, or as the file's name tells.

    Args:
        file: where it is.
        contents: what it holds, from the beginning.
        kind: what to take from it.
        source: the input.
        n_rows: rows of a part, about; None if the file is to be one part.

    Raises:
        InputError: it cannot be read, is compressed otherwise than its name says, or larger than it may be.
    """
    layout = FORMATS[source.format or format_of(file.suffix)]
    if n_rows is None or layout.count_lines is None:
        part = FilePart(file.path, layout, contents.read(), kind, source.columns, contents.limit)
        yield from [part] if n_rows is None or layout.cut is None else layout.cut(part, n_rows)
        return
    head = None
    for number, (lines, ended) in enumerate(_cut(contents, n_rows)):
        before = partial(_lines_before, file, layout, n_rows, number) if number else int
        stored = pa.py_buffer(lines)
        part = FilePart(file.path, layout, stored, kind, source.columns, contents.limit, head, before)
        yield replace(part, whole=ended and not number)
        head = head or _head(part.data)
        del lines, stored, part  # before the next is read


def _cut(contents: Contents, n_rows: int) -> Iterator[tuple[_Bytes, bool]]:
    """The contents, cut at line ends, and whether nothing is known to follow; at least once, whatever is in them.

    The first cut has a row or a header.
    """
    lines = _Lines(contents)
    size = lines.bytes_of(n_rows)
    taken = lines.take(size)
    while not _holds_row(taken) and not lines.ended:
        taken = np.concatenate([taken, lines.take(1)])
    begin = 0
    while n_bytes := len(taken):
        yield taken, lines.at_end
        del taken  # before the next is read
        begin += n_bytes
        taken = lines.take(size - begin % size)
    if not begin:
        yield taken, True


class _Lines:
    """What is read piece by piece, as whole lines.

    Attributes:
        ended: whether nothing is left to be read.
    """

    def __init__(self, contents: Contents) -> None:
        self.ended = False
        self._contents = contents
        self._rest = self._filled(np.empty(0, np.uint8), PAGE)

    def bytes_of(self, n_rows: int) -> int:
        """The bytes of so many lines, if all are as long as the first ones; no more than a part may have."""
        n_lines = self._rest.tobytes().count(_LINE_FEED)
        return max(1, min(len(self._rest) * n_rows // max(1, n_lines), _LARGEST))

    @property
    def at_end(self) -> bool:
        """Whether nothing is known to be left to take."""
        return self.ended and not len(self._rest)

    def take(self, least: int) -> _Bytes:
        """The next lines, of at least so many bytes together; fewer at the end."""
        read = self._filled(self._rest, least + PAGE)
        while (end := least + read[least - 1 :].tobytes().find(_LINE_FEED)) < least and not self.ended:
            read = self._filled(read, 2 * len(read))
        taken, rest = np.split(read, [len(read) if end < least else end])
        self._rest = rest.copy()  # the lines are not kept for it
        return taken

    def _filled(self, read: _Bytes, size: int) -> _Bytes:
        """What was read, with more behind it up to that size."""
        if self.ended or len(read) >= size:
            return read
        filled = np.empty(size, np.uint8)
        filled[: len(read)] = read
        n_read = len(read) + self._contents.readinto(filled[len(read) :].data)
        self.ended = n_read < size
        return filled[:n_read]


def _holds_row(lines: _Bytes) -> bool:
    data = without_bom(lines.data)
    texts = (io.BytesIO(data[:size]) for size in (PAGE, len(data)))  # most are known by their first lines
    return any(line.strip() and not line.startswith(b"#") for text in texts for line in text)


def _head(data: memoryview) -> bytes:
    """The first line that is not blank, with the blank ones before it."""
    beginning = bytes(data[:PAGE])
    text = beginning if _LINE_FEED in beginning.lstrip() else bytes(data)
    blank = len(text) - len(text.lstrip())
    return text[: text.find(_LINE_FEED, blank) + 1]


def _lines_before(file: StoredFile, layout: Format, n_rows: int, number: int) -> int:
    """The lines in the parts before that one; the file is read again for it."""
    assert layout.count_lines is not None, "what is cut at line ends"
    with file.contents() as contents:
        return sum(layout.count_lines(lines.tobytes()) for lines, _ in islice(_cut(contents, n_rows), number))
