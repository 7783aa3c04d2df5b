"""Judgments prepared for joins: rows by query, found by hashes of (query, document), with their subtopics.

Every match of hashes is verified on the ids. If a query judges a document for several subtopics, its grade for the
query is their maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.block import Bools, Floats
from rankledger.pipeline.data.rows import MANY_ROWS, Chunk, Rows, StoredChunk
from rankledger.pipeline.support.arrow import numpy_of
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.support.parallel import map_threads

Hashes = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: multiplying by it spreads low bits upwards
_OTHER_ODD = np.uint64(0xC2B2AE3D27D4EB4F)
_WORD = 8  # bytes
_THREE, _SEVEN = np.uint64(3), np.uint64(7)
_TABLED = 1 << 21  # hashes whose table of 4 bytes each and more is worth its memory
_SHAPED = 1 << 14  # documents whose shapes are looked at
_SPARE_BITS = 2  # places for a hash: most have one of their own
_LOW_BYTES = np.array([(1 << 8 * n) - 1 for n in range(_WORD + 1)], dtype=np.uint64)  # masks of the first n bytes


def hash_pairs(rows: Rows, queries: npt.NDArray[np.int64]) -> Hashes:
    """Return (N,) hashes of each row's query and document. `queries` numbers `rows.query_ids`."""
    salts = queries.astype(np.uint64) * _OTHER_ODD
    hashes = np.empty(rows.ends[-1], dtype=np.uint64)

    def fill(chunk: Chunk | StoredChunk, end: int) -> None:
        span = slice(end - len(chunk.values), end)
        np.bitwise_xor(hash_ids(chunk.doc_ids), salts[chunk.query_codes], out=hashes[span])

    map_threads(fill, rows.chunks, rows.ends)
    return hashes


def hash_ids(ids: pa.StringArray) -> Hashes:
    """Return (n,) hashes of ids."""
    _, offsets, text = ids.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(ids) + 1, ids.offset * 4).astype(np.int64)
    starts, lengths = bounds[:-1] - bounds[0], np.diff(bounds)
    words = _overlapping_words(text, int(bounds[0]), int(bounds[-1]))
    hashes = lengths.astype(np.uint64) * _ODD
    rows: npt.NDArray[np.int64] | slice = slice(None)
    for begin in range(0, int(lengths.max(initial=0)), _WORD):
        if begin:
            rows = np.flatnonzero(lengths > begin)
        word = words[starts[rows] + begin] & _LOW_BYTES[np.minimum(lengths[rows] - begin, _WORD).clip(0)]
        mixed = (hashes[rows] ^ word) * _ODD
        hashes[rows] = mixed ^ (mixed >> np.uint64(29))
    return hashes


def id_shapes(ids: pa.StringArray) -> pa.StringArray:
    """Return (n,) shapes of ids by kinds of characters, as `aA0-0` for `docID17-2`."""
    for pattern, sign in (("^0+([0-9])", r"~\1"), ("[0-9]+", "0"), ("[a-z]+", "a"), ("[A-Z]+", "A")):
        ids = pc.replace_substring_regex(ids, pattern, sign)
    return ids


def _overlapping_words(text: pa.Buffer | None, begin: int, end: int) -> Hashes:
    size = end - begin
    padded = np.zeros(size + _WORD, dtype=np.uint8)
    if text is not None:
        padded[:size] = np.frombuffer(text, np.uint8, size, begin)
    return np.ndarray(size + 1, dtype=np.uint64, buffer=padded, strides=(1,))


Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Subtopics:
    """Grades of D judged documents for each of at most S subtopics of their queries."""

    # (S, D), NaN if not judged for the subtopic. Documents are ordered by query, the greatest id first; a query's
    # subtopics by id, the shorter ids first
    grades: Floats
    document: Ints  # (N,) document of each row of the judgments; -1 for rows that do not count
    n_subtopics: Ints  # (Q,) number of subtopics of each query


def _code_subtopics(rows: Rows, subtopics: pa.StringArray) -> tuple[Ints, Ints]:
    """Return the documents and subtopics as numbers from 0: the greatest document, the shortest, smallest subtopic."""
    documents, coded = rows.doc_ids.dictionary_encode(), subtopics.dictionary_encode()
    descending = numpy_of(pc.array_sort_indices(documents.dictionary, order="descending"), np.uint64)
    ids = coded.dictionary.to_pylist()
    by_length = sorted(range(len(ids)), key=lambda code: (len(ids[code]), ids[code]))
    return _places(documents, descending), _places(coded, by_length)


def _find_subtopic_repeats(queries: npt.NDArray[np.int32], documents: Ints, subtopics: Ints) -> Ints:
    order = np.lexsort((subtopics, documents, queries))
    is_same = np.ones(len(order) - 1, dtype=bool)
    for column in (queries, documents, subtopics):
        is_same &= column[order[1:]] == column[order[:-1]]
    pairs = np.column_stack([order[:-1][is_same], order[1:][is_same]])
    return pairs[np.argsort(pairs[:, 1])]


def _gather_subtopics(rows: Rows, documents: Ints, subtopics: Ints, kept: Ints) -> tuple[Ints, Subtopics]:
    values, queries = rows.values, rows.query_codes
    order = kept[np.lexsort((-values[kept], documents[kept], queries[kept]))]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (np.diff(queries[order]) != 0) | (np.diff(documents[order]) != 0)
    document = np.full(len(values), -1)
    document[order] = np.cumsum(begins) - 1
    n_ids = subtopics.max() + 1
    distinct, places = np.unique(queries[kept] * n_ids + subtopics[kept], return_inverse=True)
    n_subtopics = np.bincount(distinct // n_ids, minlength=len(rows.query_ids))
    firsts = np.cumsum(n_subtopics) - n_subtopics
    grades = np.full((n_subtopics.max(), begins.sum()), np.nan)
    grades[places - firsts[queries[kept]], document[kept]] = values[kept]
    return np.sort(order[begins]), Subtopics(grades, document, n_subtopics)


def _places(coded: pa.DictionaryArray, order: Sequence[int] | npt.NDArray[np.uint64]) -> Ints:
    places = np.empty(len(coded.dictionary), dtype=np.int64)
    places[np.asarray(order, dtype=np.int64)] = np.arange(len(places))
    numbers: Ints = places[numpy_of(coded.indices, np.int32)]
    return numbers


SLICE = 1 << 17
"""Rows that are looked up at a time, so that the working set stays in the cache."""


@dataclass(frozen=True, eq=False)
class PairIndex:
    """Pairs of query and document, indexed by their hashes."""

    rows: Rows
    hashes: Hashes  # of the rows that count, at least one, ascending
    hashed_rows: Ints  # row of each hash

    @cached_property
    def upper_bits(self) -> tuple[np.uint64, npt.NDArray[np.uint8]]:
        """Right shift of a hash, and a bit for each shifted hash that a counted row has."""
        bits = max(16, len(self.hashes).bit_length() + 4)
        shift = np.uint64(64 - bits)
        present = np.zeros(1 << bits - 3, dtype=np.uint8)
        for begin in range(0, len(self.hashes), SLICE):
            upper = self.hashes[begin : begin + SLICE] >> shift
            np.bitwise_or.at(present, upper >> _THREE, _bits(upper))
        return shift, present


@dataclass(frozen=True, eq=False)
class Judgments:
    """Judgments (or ratings) by query and document, prepared for joins with any number of model outputs."""

    rows: Rows  # as they were read, but a row's code is its query's place
    query_ids: npt.NDArray[np.object_]  # (Q,) in the order of their ids as UTF-8 bytes
    grades: npt.NDArray[np.floating]  # (N,) of 32 bits if these hold all of them exactly, else of 64
    counted: Bools | None  # (N,) False for the later rows of a pair; None if all count
    # (N,) place of each row in `query_ids`; None if the rows of each query are together
    queries: npt.NDArray[np.int32] | None
    order: npt.NDArray[np.int32] | None  # (N,) rows by query and then by row; None likewise
    starts: Ints  # (Q,) first row of each query in that order
    sizes: Ints  # (Q,) rows of each query, those that do not count included
    index: PairIndex | None = None  # None if the pairs are so many that each part of an output gets its own
    subtopics: Subtopics | None = None
    weights: npt.NDArray[np.floating] | None = None  # (N,) weights of ratings; None if all weigh 1

    @property
    def kept(self) -> Ints:
        return np.arange(len(self.grades)) if self.counted is None else np.flatnonzero(self.counted)

    @property
    def kept_grades(self) -> npt.NDArray[np.floating]:
        return self.grades if self.counted is None else self.grades[self.counted]

    @property
    def max_grade(self) -> float:
        """Maximum grade, or 1 if no grade is positive, so that nothing is divided by 0."""
        maximum = float(self.kept_grades.max())
        return maximum if maximum > 0 else 1.0

    @cached_property
    def n_judged(self) -> Ints:
        """(Q,) rows of each query that count."""
        if self.counted is None:
            return self.sizes
        return np.bincount(self.queries_of(self.kept), minlength=len(self.query_ids))

    @cached_property
    def shapes(self) -> pa.StringArray:
        """Distinct shapes of the documents, sampled if there are many."""
        n_rows = len(self.grades)
        return id_shapes(self.rows.take_doc_ids(np.arange(0, n_rows, n_rows // _SHAPED + 1)).unique()).unique()

    @cached_property
    def _queries_by_start(self) -> tuple[Ints, Ints]:
        queries = np.argsort(self.starts)
        return queries, self.starts[queries]

    def queries_of(self, rows: npt.NDArray[np.integer]) -> Ints:
        if self.queries is not None:
            codes: Ints = self.queries[rows].astype(np.int64)
            return codes
        queries, starts = self._queries_by_start
        numbers: Ints = queries[np.searchsorted(starts, rows, side="right") - 1]
        return numbers

    def have_any(self, rows: Bools) -> Bools:
        """Return (Q,) True if any row of the query is among these (N,) rows."""
        queries, starts = self._queries_by_start
        has_any = np.empty(len(queries), dtype=bool)
        has_any[queries] = np.logical_or.reduceat(rows if self.order is None else rows[self.order], starts)
        return has_any

    def find(self, query_ids: Sequence[str]) -> Ints:
        """Return the index of each of these distinct queries. Unjudged ones get indices beyond, in order."""
        ids = np.array(query_ids, dtype=object)
        places = np.searchsorted(self.query_ids, ids)
        places[places == len(self.query_ids)] = 0
        return np.where(self.query_ids[places] == ids, places, len(self.query_ids) + np.arange(len(ids)))

    def rows_of(self, places: Ints) -> Ints:
        sizes = self.sizes[places]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        positions = np.repeat(self.starts[places], sizes) + within
        rows: Ints = positions if self.order is None else self.order[positions].astype(np.int64)
        return rows if self.counted is None else rows[self.counted[rows]]

    def grades_of(self, place: int) -> dict[str, float]:
        rows = self.rows_of(np.array([place]))
        return dict(zip(self.rows.take_doc_ids(rows).to_pylist(), self.grades[rows].tolist(), strict=True))

    def pairs(self, places: Ints) -> PairIndex | None:
        if self.index is not None:
            return self.index
        numbers = self.rows_of(places[places < len(self.query_ids)])
        if not numbers.size:
            return None
        hashes = self.hashes_of(numbers)
        order = np.argsort(hashes)
        return PairIndex(self.rows, hashes[order], numbers[order])

    def hashes_of(self, rows: Ints) -> Hashes:
        salts = self.queries_of(rows).astype(np.uint64) * _OTHER_ODD
        return hash_ids(self.rows.take_doc_ids(rows)) ^ salts


def index_judgments(
    rows: Rows, *, keep_first: bool = False, remedy: str = "keep one, or say duplicates: keep_first"
) -> Judgments:
    """Return judgments prepared for joins. Repeated pairs are rejected, or keep their first judgment."""
    query_ids = np.array(sorted(rows.query_ids), dtype=object)  # by code points: the order of their UTF-8 bytes
    rows, grades = _compact(rows, query_ids)
    queries, order, starts, sizes = _sort_by_query(rows)
    counted, subtopics = np.ones(len(grades), dtype=bool), None
    judgments = Judgments(rows, query_ids, grades, None, queries, order, starts, sizes)
    hashes = hash_pairs(rows, np.arange(len(query_ids))) if len(grades) <= MANY_ROWS else None
    coded = None if rows.subtopics is None else _code_subtopics(rows, rows.subtopics)
    repeats = _find_subtopic_repeats(rows.query_codes, *coded) if coded else _find_repeats(judgments, hashes)
    if repeats.size and not keep_first:
        repeat = describe_repeat(rows, repeats[0], "judges", remedy)
        raise InputError(f"{rows.path}: {repeat.message(rows.place)}")
    counted[repeats[:, 1]] = False
    if coded:
        kept, subtopics = _gather_subtopics(rows, *coded, np.flatnonzero(counted))
        counted[:] = False
        counted[kept] = True
    index = None
    if hashes is not None:
        numbers = np.flatnonzero(counted)
        numbers = numbers[np.argsort(hashes[numbers])]
        index = PairIndex(rows, hashes[numbers], numbers)
    return replace(judgments, counted=None if counted.all() else counted, index=index, subtopics=subtopics)


def _compact(rows: Rows, query_ids: npt.NDArray[np.object_]) -> tuple[Rows, npt.NDArray[np.floating]]:
    places = np.searchsorted(query_ids, np.array(rows.query_ids, dtype=object)).astype(np.int32)
    is_single = all((chunk.values == chunk.values.astype(np.float32)).all() for chunk in rows.chunks)
    grades: npt.NDArray[np.floating] = np.empty(rows.ends[-1], dtype=np.float32 if is_single else np.float64)
    chunks, begin = [], 0
    for chunk, end in zip(rows.chunks, rows.ends, strict=True):
        grades[begin:end] = chunk.values
        chunks.append(replace(chunk.recoded(places), values=grades[begin:end]))
        begin = end
    return replace(rows, query_ids=query_ids.tolist(), chunks=tuple(chunks)), grades


def _sort_by_query(rows: Rows) -> tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.int32] | None, Ints, Ints]:
    n_queries, last, begin = len(rows.query_ids), -1, 0
    sizes = np.zeros(n_queries, dtype=np.int64)
    first, ahead = [], []
    for chunk, end in zip(rows.chunks, rows.ends, strict=True):
        codes = chunk.query_codes
        changes = np.flatnonzero(np.diff(codes, prepend=last))
        first.append(begin + changes)
        ahead.append(codes[changes])
        sizes += np.bincount(codes, minlength=n_queries)
        last, begin = int(codes[-1]), end
    queries, begins = np.concatenate(ahead), np.concatenate(first)
    if len(queries) == n_queries:
        starts = np.empty(n_queries, dtype=np.int64)
        starts[queries] = begins
        return None, None, starts, sizes
    codes = rows.query_codes
    return codes, np.argsort(codes, kind="stable").astype(np.int32), np.cumsum(sizes) - sizes, sizes


def _find_repeats(judgments: Judgments, hashes: Hashes | None) -> Ints:
    rows = judgments.rows
    if hashes is not None:
        return find_repeats(rows, hashes)
    chunks = []
    steps = np.cumsum(judgments.sizes) // max(1, MANY_ROWS // 8)
    for places in np.split(np.arange(len(steps)), np.flatnonzero(np.diff(steps)) + 1):
        numbers = np.sort(judgments.rows_of(places))
        chunks.append(numbers[find_repeats(rows, judgments.hashes_of(numbers), numbers=numbers)])
    repeats = np.concatenate(chunks)
    return repeats[np.argsort(repeats[:, 1])]


def find_repeats(rows: Rows, hashes: Hashes, cuts: Sequence[int] = (), numbers: Ints | None = None) -> Ints:
    """Return (N, 2) rows with the same query and document, the earlier one first, by the later row."""
    pieces = [hashes[begin:end] for begin, end in pairwise(cuts or (0, len(hashes)))]
    if not any(map_threads(_has_equal, pieces)):
        return np.empty((0, 2), dtype=np.int64)
    order = np.argsort(hashes, kind="stable")
    equal = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    pairs = np.column_stack([order[equal], order[equal + 1]])
    named = pairs if numbers is None else numbers[pairs]
    pairs = pairs[_same_ids(rows, named[:, 0], rows, named[:, 1])]
    return pairs[np.argsort(pairs[:, 1])]


def _has_equal(hashes: Hashes) -> bool:
    if len(hashes) > _TABLED:
        return _has_equal_neighbours(np.sort(hashes))
    bits = len(hashes).bit_length() + _SPARE_BITS
    places = (hashes >> np.uint64(64 - bits)).view(np.int64)
    numbers = np.arange(len(hashes), dtype=np.uint16 if len(hashes) <= 1 << 16 else np.uint32)
    table = np.empty(1 << bits, dtype=numbers.dtype)  # only what is written is read
    table[places] = numbers
    last = table[places]
    lost = np.flatnonzero(last != numbers)
    equal = hashes[lost] == hashes[last[lost]]
    return bool(equal.any()) or _has_equal_neighbours(np.sort(hashes[lost]))


def _has_equal_neighbours(hashes: Hashes) -> bool:
    return bool((hashes[1:] == hashes[:-1]).any())


@dataclass(frozen=True)
class RowProblem:
    """Rows that cannot be joined, and a message that names their places."""

    rows: tuple[int, ...]  # as numbered in the input, in their order
    subject: str
    problem: str
    is_score: bool = False  # True if a score is wrong, which is found first

    def message(self, place: Callable[[int], str]) -> str:
        return f"{self.subject} ({' and '.join(map(place, self.rows))}){self.problem}"


def describe_repeat(rows: Rows, pair: Ints, verb: str, remedy: str, numbers: Ints | None = None) -> RowProblem:
    """Describe (2,) rows that `find_repeats` found, with their `numbers` in the input, if given.

    The verb is `judges`, `ranks` or `predicts`.
    """
    later = int(pair[1])
    subtopic = "" if rows.subtopics is None else f" for subtopic '{shorten(rows.subtopics[later].as_py())}'"
    document = shorten(rows.take_doc_ids(np.array([later]))[0].as_py())
    query = shorten(rows.query_ids[rows.query_codes[later]])
    places = pair if numbers is None else numbers[pair]
    return RowProblem(
        tuple(places.tolist()), f"query '{query}' {verb} document '{document}'{subtopic} twice", f"; {remedy}"
    )


def match(known: PairIndex | None, rows: Rows, hashes: Hashes) -> tuple[Ints, Ints]:
    """Return the rows whose pairs are known, ascending, and the known row of each."""
    if known is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    # Most documents are not known: a small table of the upper bits sorts them out before any search.
    shift, present = known.upper_bits

    def find(begin: int) -> Ints:
        upper = hashes[begin : begin + SLICE] >> shift
        return begin + np.flatnonzero(present[upper >> _THREE] & _bits(upper))

    candidates = np.concatenate(map_threads(find, range(0, len(hashes), SLICE)))
    places = np.searchsorted(known.hashes, hashes[candidates])
    places[places == len(known.hashes)] = 0
    equal = known.hashes[places] == hashes[candidates]
    matched, pairs = candidates[equal], known.hashed_rows[places[equal]]
    is_same = _same_ids(rows, matched, known.rows, pairs)
    return matched[is_same], pairs[is_same]


def _bits(places: Hashes) -> npt.NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (places & _SEVEN).astype(np.uint8))


def _same_ids(rows: Rows, at: Ints, others: Rows, others_at: Ints) -> Bools:
    equal = pc.equal(rows.take_doc_ids(at), others.take_doc_ids(others_at)).cast(pa.uint8())
    return numpy_of(equal, np.bool_)
