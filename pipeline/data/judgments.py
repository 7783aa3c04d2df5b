"""Judgments ready to be joined: rows numbered by query, and found again by hashes of (query, document).

Every match of hashes is verified on the ids themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from metrics.block import Bools
from pipeline.arrow import numpy_of
from pipeline.data.hashing import Hashes, hash_pairs
from pipeline.data.subtopics import SubtopicRows, Subtopics
from pipeline.errors import InputError, shorten
from pipeline.parallel import map_threads
from pipeline.tables import Rows

__all__ = ["SLICE", "Judgments", "find_repeats", "index_judgments", "match", "places_of", "refuse_repeat"]

Ints = npt.NDArray[np.int64]

SLICE = 1 << 17
"""Rows that are looked up at a time, so that the working set stays in the cache."""


@dataclass(frozen=True, eq=False)
class Judgments:
    """Judgments (or ratings) by query and document, ready to be joined with any number of model outputs.

    Attributes:
        rows: as they were read.
        query_ids: (Q,) the judged queries, in the order of their ids as UTF-8 bytes.
        queries: each row's place in `query_ids`.
        kept: the rows that count: all, or the first of each pair.
        hashes: of the rows kept, ascending.
        hashed_rows: the row that each hash is of.
        subtopics: the grades by subtopic, where documents are judged for subtopics.
    """

    rows: Rows
    query_ids: npt.NDArray[np.object_]
    queries: Ints
    kept: Ints
    hashes: Hashes
    hashed_rows: Ints
    subtopics: Subtopics | None = None

    @property
    def max_grade(self) -> float:
        """The greatest grade; 1 where none is above 0, for then nothing is gained whatever it is divided by."""
        greatest = float(self.rows.values[self.kept].max())
        return greatest if greatest > 0 else 1.0


def index_judgments(
    rows: Rows, *, keep_first: bool = False, remedy: str = "keep one, or say duplicates: keep_first"
) -> Judgments:
    """Judgments ready to be joined.

    Args:
        rows: judgments or ratings.
        keep_first: whether a pair that is judged twice keeps its first judgment instead of being refused.
        remedy: what to do where it is refused.

    Raises:
        InputError: a query judges a document twice, for the same subtopic where there are such.
    """
    query_ids = sorted(rows.query_ids)  # by code points, which is the order of their UTF-8 bytes
    places = places_of(rows, query_ids)
    hashes = hash_pairs(rows, places)
    queries = places[rows.query_codes]
    by_subtopic = None if rows.subtopics is None else SubtopicRows.of(rows, rows.subtopics, queries)
    repeats = by_subtopic.repeats() if by_subtopic else find_repeats(rows, hashes)
    if repeats.size and not keep_first:
        refuse_repeat(rows, repeats[0], "judges", remedy)
    kept, subtopics = np.delete(np.arange(len(hashes)), repeats[:, 1]), None
    if by_subtopic:
        kept, subtopics = by_subtopic.gather(kept, len(query_ids))
    order = kept[np.argsort(hashes[kept])]
    return Judgments(rows, np.array(query_ids, dtype=object), queries, kept, hashes[order], order, subtopics)


def places_of(rows: Rows, query_ids: Iterable[str]) -> Ints:
    """The place of each of the rows' queries among the judged ones; other queries get numbers beyond them."""
    known = {query_id: index for index, query_id in enumerate(query_ids)}
    places = (known.get(query_id, len(known) + code) for code, query_id in enumerate(rows.query_ids))
    return np.fromiter(places, dtype=np.int64, count=len(rows.query_ids))


def find_repeats(rows: Rows, hashes: Hashes, cuts: Sequence[int] = ()) -> Ints:
    """(N, 2): rows that name the same query and document as an earlier row, that one first; by the later row.

    Args:
        rows: the rows.
        hashes: theirs.
        cuts: where the rows may be cut, from 0 to their number, for no query stands on both sides.
    """
    pieces = [hashes[begin:end] for begin, end in pairwise(cuts or (0, len(hashes)))]
    if not any(map_threads(_has_equal, pieces)):
        return np.empty((0, 2), dtype=np.int64)
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    pairs = np.column_stack([order[same], order[same + 1]])
    pairs = pairs[_same_ids(rows, pairs[:, 0], rows, pairs[:, 1])]
    return pairs[np.argsort(pairs[:, 1])]


def _has_equal(hashes: Hashes) -> bool:
    ascending = np.sort(hashes)
    return bool((ascending[1:] == ascending[:-1]).any())


def refuse_repeat(rows: Rows, repeat: Ints, verb: str, remedy: str) -> NoReturn:
    """Refuse rows that name the same query and document.

    Args:
        rows: the rows.
        repeat: (2,) the earlier and the later of them.
        verb: what such a row does: it `judges`, `ranks` or `predicts`.
        remedy: what to do about it.

    Raises:
        InputError: always.
    """
    earlier, later = (int(row) for row in repeat)
    query_id = rows.query_ids[rows.query_codes[later]]
    places = f"{rows.place(earlier)} and {rows.place(later)}"
    document = rows.take_doc_ids(np.array([later]))[0].as_py()
    subtopic = "" if rows.subtopics is None else f" for subtopic '{shorten(rows.subtopics[later].as_py())}'"
    found = f"query '{shorten(query_id)}' {verb} document '{shorten(document)}'{subtopic} twice"
    raise InputError(f"{rows.path}: {found} ({places}); {remedy}")


def match(judgments: Judgments, rows: Rows, hashes: Hashes) -> tuple[Ints, Ints]:
    """The rows that are judged, and the judgment of each.

    Args:
        judgments: the judgments.
        rows: at least one row.
        hashes: theirs, of queries numbered by `places_of` among the judged ones.

    Returns:
        (n,) rows, ascending, and (n,) rows of the judgments that were kept.
    """
    # Most documents are not judged: a small table of the judgments' upper bits sorts them out before any search.
    bits = max(16, len(judgments.hashes).bit_length() + 5)
    shift = np.uint64(64 - bits)
    present = np.zeros(1 << bits, dtype=bool)
    present[judgments.hashes >> shift] = True

    def find(begin: int) -> Ints:
        return begin + np.flatnonzero(present[hashes[begin : begin + SLICE] >> shift])

    candidates = np.concatenate(map_threads(find, range(0, len(hashes), SLICE)))
    places = np.searchsorted(judgments.hashes, hashes[candidates])
    places[places == len(judgments.hashes)] = 0
    equal = judgments.hashes[places] == hashes[candidates]
    found, judged = candidates[equal], judgments.hashed_rows[places[equal]]
    same = _same_ids(rows, found, judgments.rows, judged)
    return found[same], judged[same]


def _same_ids(rows: Rows, at: Ints, others: Rows, others_at: Ints) -> Bools:
    """Whether the documents at these rows have the same ids; a hash has said so already."""
    equal = pc.equal(rows.take_doc_ids(at), others.take_doc_ids(others_at)).cast(pa.uint8())
    return numpy_of(equal, np.bool_)
