"""Files in parts, which are parsed one after the other: text is cut at line ends, Parquet between row groups.

Of Parquet only the wanted columns of one part stay in memory, while all of the file is read in order for its digest.
Its end, which locates the columns, is read first. The cuts depend only on the file and the rows of a part. Compressed
files are cut uncompressed. CSV, where a line end may be within quotation marks, and JSON are one part.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data.files import Contents, StoredFile, suffixes
from rankledger.pipeline.data.formats import FORMATS, find_format, format_of, layouts, tool_of
from rankledger.pipeline.data.formats.common import PAGE, FilePart, Format, Kind, Spans, without_bom
from rankledger.pipeline.data.formats.delimited import are_quoted
from rankledger.pipeline.data.locate import files_there
from rankledger.pipeline.support.errors import InputError

PART_ROWS = 1_000_000
"""Rows of a part, about: enough to make its overhead negligible, few enough for any memory."""

_LARGEST = 1 << 26  # bytes of text in a part, however long its lines are
_LONG = 256  # bytes of a line that may be a list: the rows that come of its bytes take four times as many
_LARGEST_OF_LONG = 1 << 24  # bytes of text in a part of such lines
_UNPACKED = 5  # bytes of text that come of a byte compressed, or of Parquet
_TIMES = 2  # bytes of memory for a byte of text that is parsed and joined
_READ_SCORE, _KEPT_SCORE = 26, 8  # bytes of memory for a byte of a table of scores: each cell is an object of Python
_SCORES_OF_LOG = 0.25  # share of a log's bytes
_BESIDE = 100e6  # bytes that are taken beside them by large ranges: what is sorted, looked up and put aside
_LINE_FEED = b"\n"
_TEXTS = {name for name, layout in FORMATS.items() if layout.cut is None and layout.samples is None}
_SIGNATURES = {
    b"\x1f\x8b": ("gzip", "Add .gz to its name"),
    b"\x28\xb5\x2f\xfd": ("zstd", "Add .zst to its name"),
    b"\xfd7zXZ\0": ("xz", "Add .xz to its name"),
    **{b"BZh%d1AY&SY" % level: ("bzip2", "Add .bz2 to its name") for level in range(1, 10)},
    b"PK\x03\x04": ("a ZIP archive, as .xlsx is", "Use CSV or Parquet for tables, and .zip for other files"),
    b"PAR1\x15": ("Parquet", "Set format: parquet"),
    b"ARROW1\0\0": ("an Arrow (Feather) file", "Use Parquet"),
    b"\x04\x22M\x18": ("LZ4", "Unpack the file, or use gzip or zstd"),
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), ("UTF-16", "Use UTF-8")),
}
_Bytes = npt.NDArray[np.uint8]


def peak_bytes(source: Source, *, in_ranges: bool) -> float:
    """Return the estimated peak memory of parsing and joining, 0 without files."""
    if source.held is not None:
        return 0.0  # it is there already, and what its join takes beside it is little
    if "://" in source.path:
        return _TIMES * _LARGEST + _BESIDE
    maximum = 0.0
    for file in files_there(source):
        layout = find_format(source.format or format_of(file.suffix), file.path)
        is_compressed = bool(suffixes(file.name)[1])
        text = file.size * (_UNPACKED if layout.cut is not None or is_compressed else 1)
        if in_ranges and (layout.count_lines or layout.cut):
            text = min(text, _LARGEST)
        is_kept = layout.cut is not None and (not in_ranges or is_compressed)
        maximum = max(maximum, _TIMES * text + min(_BESIDE, text * _UNPACKED) + (file.size if is_kept else 0))
    return maximum


def score_bytes(source: Source) -> tuple[float, float]:
    """Return the estimated memory of external scores while they are read, and once they are."""
    text = 0.0
    for file in [] if source.held is not None or "://" in source.path else files_there(source):
        layout = find_format(source.format or format_of(file.suffix), file.path)
        is_packed = layout.cut is not None or suffixes(file.name)[1]
        text += file.size * (_UNPACKED if is_packed else _SCORES_OF_LOG if layout.typed else 1)
    return _READ_SCORE * text, _KEPT_SCORE * text


def file_parts(
    file: StoredFile, contents: Contents, kind: Kind, source: Source, n_rows: int | None = None
) -> Iterator[FilePart]:
    """Yield the parts of a file of about `n_rows` (None for one part), in the format of source or name."""
    layout = find_format(source.format or format_of(file.suffix), file.path)
    part = FilePart(file.path, layout, pa.py_buffer(b""), kind, source.columns, file.limit(contents.size))
    if n_rows is not None and layout.count_lines is not None:
        yield from _lines(file, contents, part, n_rows)
    elif n_rows is not None and layout.cut is not None:
        yield from _row_groups(contents, part, n_rows)
    else:
        stored = contents.read()
        part = recognised(replace(part, stored=stored), memoryview(stored)[:PAGE], ended=len(stored) <= PAGE)
        yield replace(part, stored=_replace_separator(part, part.stored))


def recognised(part: FilePart, sample: memoryview, *, ended: bool) -> FilePart:
    """Return the part with the layout of its column names, or of its first lines if it has no header."""
    _refuse_other_kinds(part, bytes(sample))
    if not {"query_id", "doc_id", "subtopic"}.issuperset(part.kind.ids):
        return part
    part = part.format.unfold(part) if part.format.unfold else part
    if part.format.header is not None:
        header, value = part.format.header(part), part.kind.value
        names, own_value, remark = layouts.recognise_names(part.kind.columns, value, part.names, header)
        if part.format.find_chains is not None and part.kind.ids == ("query_id", "doc_id"):
            chains = part.format.find_chains(part, bytes(without_bom(sample)))
            typed = part.format.typed
            if lists := layouts.recognise_lists(part.path, value, part.names, (names, own_value), chains, typed=typed):
                names, value, keys, falls, remark = lists
                kind = replace(part.kind, value=value)
                return replace(part, names=names, kind=kind, lists=keys, falls=falls, remark=remark)
        kind = replace(part.kind, value=own_value)
        if not remark and part.format is FORMATS["tsv"] and are_quoted(sample):
            remark = "read without the quotation marks around fields"
        part = replace(part, names=names, kind=kind, remark=remark)
        if part.format is not FORMATS["tsv"] or all(part.name(column) in header for column in kind.columns):
            return part
    elif part.format is not FORMATS["trec"]:
        return part
    data = bytes(without_bom(sample))
    lines = (data if ended else data[: data.rfind(_LINE_FEED) + 1]).splitlines()
    tsv = part.format is FORMATS["tsv"]
    fields = layouts.recognise_fields(part.path, part.kind.columns, part.names, lines, tsv=tsv)
    if fields is None:
        return part
    columns, value, separator, remark = fields
    kind = replace(part.kind, value=value or None, trec=columns or part.kind.trec)
    names = {name: str(place) for place, name in enumerate(columns, 1)}
    return replace(part, format=FORMATS["trec"], kind=kind, names=names, separator=separator, remark=remark)


def _refuse_other_kinds(part: FilePart, begin: bytes) -> None:
    for sign, (what, remedy) in _SIGNATURES.items():
        if part.format.name in _TEXTS and begin.startswith(sign) and tool_of(begin) is None:
            raise InputError(f"{part.path}: looks like {what}, which is not text. {remedy}.")


def _replace_separator(part: FilePart, stored: pa.Buffer) -> pa.Buffer:
    if not part.separator:
        return stored
    return pa.py_buffer(stored.to_pybytes().replace(part.separator.encode(), b"\t"))


def _lines(file: StoredFile, contents: Contents, blank: FilePart, n_rows: int) -> Iterator[FilePart]:
    head = None
    read = _Lines(contents)
    sample, sample_ended = read.sample, read.ended
    for number, (lines, ended) in enumerate(_cut(read, n_rows)):
        stored = pa.py_buffer(lines)
        if not number:
            first = recognised(replace(blank, stored=stored), memoryview(sample), ended=sample_ended)
            blank = replace(first, stored=blank.stored)
            del first
        stored = _replace_separator(blank, stored)
        before = partial(_lines_before, file, blank.format, n_rows, number) if number else int
        part = replace(blank, stored=stored, head=head, before=before)
        yield replace(part, whole=ended and not number)
        head = head or _head(part.data)
        del lines, stored, part  # before the next is read


def _row_groups(contents: Contents, blank: FilePart, n_rows: int) -> Iterator[FilePart]:
    layout = blank.format
    assert layout.cut, "what is cut between row groups"
    assert layout.end_size, "which its end tells"
    if contents.is_packed:
        blank = replace(blank, stored=contents.read())
    else:
        tail = contents.end(max(PAGE, layout.end_size(contents.end(PAGE))))
        blank = replace(blank, spans=Spans(contents.size, [(contents.size - len(tail), tail)]))
    blank = recognised(blank, memoryview(b""), ended=True)
    cuts = layout.cut(blank, n_rows)
    places = [0, *(place for _, _, spans in cuts for span in spans for place in span), contents.size]
    if blank.spans and any(place > next_place for place, next_place in pairwise(places)):
        blank = replace(blank, stored=contents.read(), spans=None)
    for groups, n_before, spans_of in cuts:
        views = [*blank.spans.views] if blank.spans else []
        for begin, end in spans_of:
            contents.skip_to(begin)
            views.append((begin, np.empty(end - begin, np.uint8).data))
            contents.readinto(views[-1][1])
        spans = blank.spans and Spans(blank.spans.size, views)
        is_whole = len(cuts) == 1
        yield replace(blank, groups=groups, before=partial(int, n_before), whole=is_whole, spans=spans)
        del spans, views  # before the next are read


def _cut(lines: _Lines, n_rows: int) -> Iterator[tuple[_Bytes, bool]]:
    n_lines = max(1, lines.sample.count(_LINE_FEED))
    largest = _LARGEST if len(lines.sample) < n_lines * _LONG else _LARGEST_OF_LONG
    size = max(1, min(len(lines.sample) * n_rows // n_lines, largest))
    piece = lines.take(size)
    while not _holds_row(piece.data) and not lines.ended:
        piece = np.concatenate([piece, lines.take(1)])
    begin = 0
    while n_bytes := len(piece):
        yield piece, lines.ended and not lines.n_left
        del piece  # before the next is read
        begin += n_bytes
        piece = lines.take(size - begin % size)
    if not begin:
        yield piece, True


class _Lines:
    """Contents read piece by piece, in whole lines."""

    def __init__(self, contents: Contents) -> None:
        self.ended = False
        self._contents = contents
        self._rest = self._fill_buffer(np.empty(0, np.uint8), PAGE)
        self.sample = self._rest.tobytes()
        self.n_left = len(self._rest)

    def take(self, least: int) -> _Bytes:
        read = self._fill_buffer(self._rest, least + PAGE)
        while (end := least + read[least - 1 :].tobytes().find(_LINE_FEED)) < least and not self.ended:
            read = self._fill_buffer(read, 2 * len(read))
        piece, rest = np.split(read, [len(read) if end < least else end])
        self._rest = rest.copy()  # the lines are not kept for it
        self.n_left = len(rest)
        return piece

    def _fill_buffer(self, read: _Bytes, size: int) -> _Bytes:
        if self.ended or len(read) >= size:
            return read
        filled = np.empty(size, np.uint8)
        filled[: len(read)] = read
        n_read = len(read) + self._contents.readinto(filled[len(read) :].data)
        self.ended = n_read < size
        return filled[:n_read]


def _holds_row(lines: memoryview) -> bool:
    data = without_bom(lines)
    texts = (io.BytesIO(data[:size]) for size in (PAGE, len(data)))  # most are known by their first lines
    return any(line.strip() and not line.startswith(b"#") for text in texts for line in text)


def _head(data: memoryview) -> bytes:
    beginning = bytes(data[:PAGE])
    text = beginning if _LINE_FEED in beginning.lstrip() else bytes(data)
    blank = len(text) - len(text.lstrip())
    return text[: text.find(_LINE_FEED, blank) + 1]


def _lines_before(file: StoredFile, layout: Format, n_rows: int, number: int) -> int:
    assert layout.count_lines is not None, "what is cut at line ends"
    with file.contents() as contents:
        return sum(layout.count_lines(lines.tobytes()) for lines, _ in islice(_cut(_Lines(contents), n_rows), number))
