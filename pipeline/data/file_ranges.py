"""Ranges of an input that any process reads by itself: their bytes, and digests that prove them to be the file's.

A file below 4 GiB is known by the SHA-256 of all its bytes, which takes them one after the other: one range is all of
the file, and only hashed, while others are parsed beside it. A larger one is known by the digests of its ranges of
64 MiB: each range of ours hashes those that begin with it, and text is cut at the same places, so that its bytes are
read once.

What one process hashed another may have parsed. Both hash those bytes by themselves, too, and whoever has the digests
of all ranges compares them: if they differ, the file has changed.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa

from rankledger.pipeline.data.digests import Digest, described, has_ranges, hashed_alone
from rankledger.pipeline.data.files import StoredFile, find_files, refusing_unreadable
from rankledger.pipeline.data.formats.common import FilePart
from rankledger.pipeline.data.formats.lists import ListedQueries
from rankledger.pipeline.data.parts import PartPlace, Span, file_parts, open_part, part_places
from rankledger.pipeline.data.readers import ranking_kind, take_ranking
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.parallel import map_threads
from rankledger.pipeline.types.inputs import InputFile, Rows, Source

_PIECE = 1 << 24  # bytes that are read at a time: a request at a URL

T = TypeVar("T")
By = Literal["rank", "score"]


@dataclass(frozen=True)
class FileRange:
    """What one process reads of a file.

    Attributes:
        path: the file, as people write it.
        size: its bytes.
        place: the part of it that is parsed; None if it is only hashed, or read from its beginning to its end.
        hashed: the bytes whose digests are the file's, maybe none; None if all of it is read and parsed.
        checked: bytes that another range reads, too, so that their digests must be equal.
    """

    path: str
    size: int
    place: PartPlace | None = None
    hashed: Span | None = None
    checked: tuple[Span, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it is all of a file, parsed from its beginning to its end."""
        return self.hashed is None

    @property
    def is_parsed(self) -> bool:
        """Whether anything of it is."""
        return self.is_whole or self.place is not None

    @property
    def part(self) -> str:
        """Which part of its file is parsed, as a message says it, such as `bytes 51 to 100`; else `it`."""
        if self.place is None:
            return "it"
        if self.place.groups is not None:
            first, end = self.place.groups
            return f"row groups {first + 1} to {end}"
        return f"bytes {self.place.begin + 1:,} to {self.place.spans[-1][1]:,}"


@dataclass(frozen=True)
class RangeDigests:
    """What was hashed of a range.

    Attributes:
        file: the file, if all of it was read and parsed.
        hashed: hex digests of what is hashed for the file's digest.
        checked: hex digests of what is checked.
    """

    file: InputFile | None = None
    hashed: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()


@dataclass(frozen=True)
class RangeReader:
    """Reads the ranges of one ranking.

    Attributes:
        source: the input.
        by: what orders the documents.
        n_rows: rows that are parsed at a time, about.
    """

    source: Source
    by: By
    n_rows: int

    def listing(self) -> str:
        """What tells which files it consists of.

        Raises:
            InputError: nothing is there.
        """
        return hashlib.sha256(json.dumps([file.path for file in find_files(self.source)]).encode()).hexdigest()

    def ranges(self) -> list[FileRange]:
        """All ranges, file by file; those that are only hashed are the last of their file.

        Raises:
            InputError: a file is missing or cannot be cut.
        """
        ranges: list[FileRange] = []
        for file in find_files(self.source):
            size, places = part_places(file, ranking_kind(self.by), self.source, self.n_rows)
            ranges += _with_digests(file.path, size, places) if places else [FileRange(file.path, size)]
        return ranges

    def open(self, wanted: FileRange) -> tuple[FilePart | None, RangeDigests]:
        """What is parsed of a range that is cut, if anything, and the digests of its bytes, which are read once.

        Raises:
            InputError: the file is missing, or is not the one that was cut.
        """
        file = self._file(wanted)
        spans = wanted.place.spans if wanted.place else ()
        views, digests = _read(file, wanted, spans)
        if wanted.place is None:
            return None, digests
        return open_part(file, wanted.size, wanted.place, views, ranking_kind(self.by), self.source), digests

    def read(self, wanted: FileRange, function: Callable[[Rows], T]) -> tuple[list[tuple[int, T]], str, RangeDigests]:
        """Of each part of a whole file that has rows, how many, and what the function makes of them.

        Then what its layout was taken for, if it had to be recognised, and its digest.

        Args:
            wanted: the file.
            function: takes the rows of a part, numbered from its first.

        Raises:
            InputError: the file is missing or malformed, or changed while it was read.
        """
        file = self._file(wanted)
        found, remark, lists = [], "", ListedQueries()
        with refusing_unreadable(file.path), file.contents() as contents:
            for part in file_parts(file, contents, ranking_kind(self.by), self.source, self.n_rows):
                remark = part.remark
                n_rows, made = take_ranking(part, self.by, lambda rows: (rows.query_ids, function(rows)))
                if made is not None:
                    lists.add(part, made[0])
                    found.append((n_rows, made[1]))
            return found, remark, RangeDigests(contents.describe())

    def _file(self, wanted: FileRange) -> StoredFile:
        files = {file.path: file for file in find_files(self.source)}
        if wanted.path not in files:
            raise InputError(f"{wanted.path}: file not found; check the path")
        return files[wanted.path]


def _with_digests(path: str, size: int, places: Sequence[PartPlace]) -> list[FileRange]:
    hashed = _hashed(size, places)
    borders = [begin for begin, end in hashed if begin < end] + [size]
    hashers = {begin: number for number, (begin, end) in enumerate(hashed) if begin < end}
    checked: list[set[Span]] = [set() for _ in hashed]
    for number, place in enumerate(places):
        for piece in (piece for span in place.spans for piece in _split(span, borders)):
            hasher = hashers[borders[bisect_right(borders, piece[0]) - 1]]
            if hasher != number:
                checked[number].add(piece)
                checked[hasher].add(piece)
    parsed = [*places, *[None] * (len(hashed) - len(places))]
    return [
        FileRange(path, size, place, own, tuple(sorted(pieces)))
        for place, own, pieces in zip(parsed, hashed, checked, strict=True)
    ]


def _hashed(size: int, places: Sequence[PartPlace]) -> list[Span]:
    """What each range hashes for the file's digest: every byte once, in order; one more range if there is but one."""
    if not has_ranges(size):
        return [*((0, 0) for _ in places), (0, size)]
    unit = hashed_alone(size)
    return [*pairwise([0, *(place.begin // unit * unit for place in places[1:]), size])]


def _split(span: Span, borders: Sequence[int]) -> Iterator[Span]:
    begin, end = span
    return pairwise([begin, *borders[bisect_right(borders, begin) : bisect_left(borders, end)], end])


def _read(file: StoredFile, wanted: FileRange, spans: Sequence[Span]) -> tuple[list[memoryview], RangeDigests]:
    """The bytes of the spans, and the digests of the range; a byte that several of them have is read once."""
    views, digest = [np.empty(end - begin, np.uint8) for begin, end in spans], Digest(wanted.size)
    checks = [hashlib.sha256() for _ in wanted.checked]
    hashed = wanted.hashed or (0, 0)
    sinks: list[tuple[Span, Callable[[memoryview], object]]] = [(hashed, digest.update)]
    sinks += [(span, check.update) for span, check in zip(wanted.checked, checks, strict=True)]
    writers = (pa.FixedSizeBufferWriter(pa.py_buffer(view)) for view in views)
    sinks += [(span, writer.write) for span, writer in zip(spans, writers, strict=True)]
    with file.positioned() as (read, size):
        if size != wanted.size:
            raise InputError(f"{file.path}: changed while it was read; evaluate again when it is complete")
        for begin, end in _pieces([span for span, _ in sinks]):
            data = read(begin, end)
            taking = [
                (sink, data[max(own[0], begin) - begin : min(own[1], end) - begin])
                for own, sink in sinks
                if own[0] < end and begin < own[1]
            ]
            map_threads(lambda sink, some: sink(some), *zip(*taking, strict=True))
    of_file = tuple(digest.digests) if hashed[0] < hashed[1] else ()
    return [view.data for view in views], RangeDigests(None, of_file, tuple(check.hexdigest() for check in checks))


def _pieces(spans: Sequence[Span]) -> Iterator[Span]:
    """All places of the spans, in order and each once, at most so many at a time."""
    done = 0
    for begin, end in sorted(spans):
        for place in range(max(begin, done), end, _PIECE):
            yield place, min(place + _PIECE, end)
        done = max(done, end)


def content_of_range(wanted: FileRange, digests: RangeDigests) -> InputFile:
    """What stands for the bytes that were parsed of a range, as a file stands for its own."""
    if digests.file is not None:
        return digests.file
    text = json.dumps([asdict(wanted) | {"path": ""}, digests.hashed, digests.checked])
    return InputFile(wanted.path, wanted.size, hashlib.sha256(text.encode()).hexdigest())


def files_of(ranges: Sequence[FileRange], found: Sequence[RangeDigests]) -> tuple[InputFile, ...]:
    """The files of an input, from what was hashed of all of its ranges.

    Raises:
        InputError: two ranges did not read the same bytes.
    """
    checked: dict[tuple[str, Span], str] = {}
    hashed: dict[tuple[str, int], list[str]] = {}
    whole = {}
    for wanted, digests in zip(ranges, found, strict=True):
        hashed.setdefault((wanted.path, wanted.size), []).extend(digests.hashed)
        if digests.file is not None:
            whole[wanted.path] = digests.file
        for span, digest in zip(wanted.checked, digests.checked, strict=True):
            if checked.setdefault((wanted.path, span), digest) != digest:
                raise InputError(f"{wanted.path}: changed while it was read; evaluate again when it is complete")
    return tuple(whole.get(path) or described(path, size, own) for (path, size), own in hashed.items())
