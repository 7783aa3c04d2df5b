"""Files as the parts that are parsed one after the other: text cut at line ends, Parquet between row groups.

Of Parquet only the columns that are wanted stay in memory, those of one part at a time, while all of the file is read
in its order: a file's digest is that of all its bytes. Its end, which says where the columns are, is read before.

Where a part ends follows from the file and from the rows that a part should have, never from who reads it: text is cut
at the first line end at or behind each multiple of the bytes that so many rows take, by the file's first lines. What is
compressed is cut as it is uncompressed. CSV, where a line end may stand within quotation marks, and JSON are one part.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.pipeline.data.files import Contents, StoredFile, files_there, suffixes
from rankledger.pipeline.data.formats import FORMATS, format_of, layouts
from rankledger.pipeline.data.formats.common import PAGE, Cut, FilePart, Format, Kind, Spans, without_bom
from rankledger.pipeline.types.inputs import Source

__all__ = ["PART_ROWS", "file_parts", "peak_bytes", "recognised"]

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
    if source.held is not None:
        return 0.0  # it is there already, and what its join takes beside it is little
    if "://" in source.path:
        return _TIMES * _LARGEST + _BESIDE
    return max((_peak_of(file, source, in_ranges=in_ranges) for file in files_there(source)), default=0.0)


def _peak_of(file: StoredFile, source: Source, *, in_ranges: bool) -> float:
    layout = FORMATS[source.format or format_of(file.suffix)]
    is_packed = layout.cut is not None or bool(suffixes(file.name)[1])
    text = file.size * (_UNPACKED if is_packed else 1)
    if in_ranges and (layout.count_lines or layout.cut):
        text = min(text, _LARGEST)
    is_kept = layout.cut is not None and (not in_ranges or bool(suffixes(file.name)[1]))
    return _TIMES * text + min(_BESIDE, text * _UNPACKED) + (file.size if is_kept else 0)


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
    part = FilePart(file.path, layout, pa.py_buffer(b""), kind, source.columns, contents.limit)
    if n_rows is not None and layout.count_lines is not None:
        yield from _lines(file, contents, part, n_rows)
    elif n_rows is not None and layout.cut is not None:
        yield from _row_groups(contents, part, n_rows)
    else:
        stored = contents.read()
        part = recognised(replace(part, stored=stored), memoryview(stored)[:PAGE], ended=len(stored) <= PAGE)
        yield replace(part, stored=_tabbed(part, stored))


def recognised(part: FilePart, sample: memoryview, *, ended: bool) -> FilePart:
    """The file as the names of its columns tell, or its first lines where it has none: the same of all its parts.

    Args:
        part: the beginning of the file, at least its first row.
        sample: its first bytes, as many whatever the parts are.
        ended: whether the file ends with them.

    Raises:
        InputError: its first lines may mean two things.
    """
    if not {"query_id", "doc_id", "subtopic"}.issuperset(part.kind.ids):
        return part
    if part.format.header is not None:
        found = part.format.header(part)
        names, by_rank, remark = layouts.recognise(part.kind.columns, part.names, found)
        kind = replace(part.kind, value=layouts.RANK) if by_rank else part.kind
        part = replace(part, names=names, kind=kind, remark=remark)
        if part.format is not FORMATS["tsv"] or all(part.name(column) in found for column in kind.columns):
            return part
    elif part.format is not FORMATS["trec"]:
        return part
    data = bytes(without_bom(sample))
    lines = (data if ended else data[: data.rfind(_LINE_FEED) + 1]).splitlines()
    tsv = part.format is FORMATS["tsv"]
    fields = layouts.recognise_fields(part.path, part.kind.columns, part.names, lines, tsv=tsv)
    if fields is None:
        return part
    value = fields.value or None
    kind = replace(part.kind, value=value, trec=fields.fields or part.kind.trec)
    names = {name: str(place) for place, name in enumerate(fields.fields, 1)}
    return replace(
        part, format=FORMATS["trec"], kind=kind, names=names, separator=fields.separator, remark=fields.remark
    )


def _tabbed(part: FilePart, stored: pa.Buffer) -> pa.Buffer:
    """The text with a tab in the place of a separator of several characters; lines stay where they are."""
    if not part.separator:
        return stored
    return pa.py_buffer(stored.to_pybytes().replace(part.separator.encode(), b"\t"))


def _lines(file: StoredFile, contents: Contents, blank: FilePart, n_rows: int) -> Iterator[FilePart]:
    """The parts of text; `blank` is one without bytes."""
    head = None
    read = _Lines(contents)
    sample, sample_ended = read.sample, read.ended
    for number, (lines, ended) in enumerate(_cut(read, n_rows)):
        stored = pa.py_buffer(lines)
        if not number:
            first = recognised(replace(blank, stored=stored), memoryview(sample), ended=sample_ended)
            blank = replace(first, stored=blank.stored)
            del first
        stored = _tabbed(blank, stored)
        before = partial(_lines_before, file, blank.format, n_rows, number) if number else int
        part = replace(blank, stored=stored, head=head, before=before)
        yield replace(part, whole=ended and not number)
        head = head or _head(part.data)
        del lines, stored, part  # before the next is read


def _row_groups(contents: Contents, blank: FilePart, n_rows: int) -> Iterator[FilePart]:
    """The parts of Parquet; what is compressed as a whole or not in the order of the file is read as a whole."""
    layout = blank.format
    assert layout.cut, "what is cut between row groups"
    assert layout.end_size, "which its end tells"
    if contents.is_packed:
        blank = replace(blank, stored=contents.read())
    else:
        end = contents.end(max(PAGE, layout.end_size(contents.end(PAGE))))
        blank = replace(blank, spans=Spans(contents.size, [(contents.size - len(end), end)]))
    blank = recognised(blank, memoryview(b""), ended=True)
    cuts = layout.cut(blank, n_rows)
    if blank.spans and not _in_order(cuts, blank.spans.size):
        blank = replace(blank, stored=contents.read(), spans=None)
    for cut in cuts:
        spans = blank.spans and replace(blank.spans, views=[*blank.spans.views, *_views(contents, cut)])
        whole = len(cuts) == 1
        yield replace(blank, groups=cut.groups, before=partial(int, cut.n_before), whole=whole, spans=spans)
        del spans  # before the next are read


def _in_order(cuts: Sequence[Cut], size: int) -> bool:
    """Whether all of them lie in the file, each behind the ones before."""
    places = [place for cut in cuts for span in cut.spans for place in span]
    return all(one <= other for one, other in pairwise([0, *places, size]))


def _views(contents: Contents, cut: Cut) -> Iterator[tuple[int, memoryview]]:
    """The bytes of the spans with their places, read in order."""
    for begin, end in cut.spans:
        contents.skip(begin - contents.n_read)
        view = np.empty(end - begin, np.uint8).data
        contents.readinto(view)
        yield begin, view


def _cut(lines: _Lines, n_rows: int) -> Iterator[tuple[_Bytes, bool]]:
    """The contents, cut at line ends, and whether nothing is known to follow; at least once, whatever is in them.

    The first cut has a row or a header.
    """
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
        sample: the first bytes, as many whatever is taken.
    """

    def __init__(self, contents: Contents) -> None:
        self.ended = False
        self._contents = contents
        self._rest = self._filled(np.empty(0, np.uint8), PAGE)
        self.sample = self._rest.tobytes()

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
        return sum(layout.count_lines(lines.tobytes()) for lines, _ in islice(_cut(_Lines(contents), n_rows), number))
