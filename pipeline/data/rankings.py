"""Join a model's rankings with judgments, part by part, so that memory does not grow with their rows.

Most outputs have a query's rows together. So each part is joined at once, except its first and last query, which may
continue in neighboring parts and are joined in the end. If a joined query returns in another part, the rows are
scattered, and are brought together on disk first. The result does not depend on the parts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.agreement import Ranked
from rankledger.metrics.block import Floats
from rankledger.metrics.catalogue import CatalogueBlock
from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.config.sources import Source
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.catalogue import Catalogue
from rankledger.pipeline.data.checks import look_alikes
from rankledger.pipeline.data.join import (
    Ordering,
    assemble,
    beyond_single,
    counts,
    exclude_rows,
    judged_share,
    order_rows,
)
from rankledger.pipeline.data.joined import HitColumns, Hits, JoinStats, JudgedOutput, hit_columns
from rankledger.pipeline.data.judgments import (
    SLICE,
    Hashes,
    Judgments,
    PairIndex,
    RowProblem,
    describe_repeat,
    find_repeats,
    hash_ids,
    hash_pairs,
    id_shapes,
    index_judgments,
    match,
)
from rankledger.pipeline.data.readers import RankingRanges
from rankledger.pipeline.data.rows import Chunk, Rows, Spill, merge_rows, row_number
from rankledger.pipeline.support.arrow import floats, integers, numpy_of, strings
from rankledger.pipeline.support.errors import InputError

Ints = npt.NDArray[np.int64]

_SHIFT = np.uint64(58)  # the upper six bits of a hash number the parts: the lower ones spread less
_SAMPLED = 1 << 12  # rows of a range that are looked at for ids written otherwise
_UNMATCHED = 1_000  # queries, and documents, that are kept of a range


Depths: TypeAlias = tuple[float, float]
"""Ranks down to which documents are needed even if they are not judged: for measures of recommended documents, and for
measures that compare rankings with another model's. 0 for none."""


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """Result of joining rows that hold their queries completely."""

    hits: HitColumns  # of the judged queries in their order here, and by rank
    retrieved: Ints  # (3, q) places of the judged queries, documents that each retrieved, and judged ones
    totals: Counter[str]  # some of `JoinStats`, which are added up over the parts
    # recommended documents of judged queries: `number` (row of the output), `query` (place), `rank`, `hash` of the
    # pair, `score`, `doc_id`
    recommended: pa.Table | None = None
    compared: pa.Table | None = None  # the same without ids
    # some unjudged queries, and odd unjudged documents, each behind its query and a NUL
    unmatched: pa.StringArray = field(default_factory=lambda: strings([]))


def join_rows(
    judgments: Judgments,
    excluded: PairIndex | None,
    rows: Rows,
    numbers: Ints,
    conventions: Conventions,
    depths: Depths,
) -> JoinedRows | RowProblem:
    """Join rows that hold their queries completely. `numbers` are their rows in the output."""
    odd = beyond_single(rows) if conventions.score_precision == "float32" else None
    if odd is not None:
        return replace(odd, rows=(int(numbers[odd.rows[0]]),))
    places = judgments.find(rows.query_ids)
    hashes = hash_pairs(rows, places)
    totals = Counter(n_rows=len(hashes))
    if excluded is not None:
        remaining = exclude_rows(excluded, rows, numbers, hashes)
        if not isinstance(remaining, tuple):
            return remaining
        rows, numbers, hashes, found_totals = remaining
        totals += found_totals
    if not rows.chunks:
        none, hits = np.empty(0, dtype=np.int64), hit_columns(*np.empty((4, 0), dtype=np.int64))
        top = _build_table(none, none, none, none.astype(np.uint64), np.empty(0), strings([]))
        return JoinedRows(hits, np.empty((3, 0), dtype=np.int64), totals, top, top.drop_columns(["doc_id"]))
    ordering = order_rows(rows, conventions.ties, conventions.score_precision)
    repeats = find_repeats(rows, hashes, ordering.cuts(SLICE))
    if repeats.size:
        return describe_repeat(rows, repeats[0], "ranks", "keep one", numbers)
    matched, judgment_rows = match(judgments.pairs(places), rows, hashes)
    codes, ranks = rows.query_codes[matched], ordering.ranks(matched)
    keys = (codes.astype(np.int64) << 32) | ranks[0]
    by_rank = np.argsort(keys) if (keys[1:] < keys[:-1]).any() else slice(None)
    is_ranked = rows.counts > 0
    is_known = is_ranked & (places < len(judgments.query_ids))
    n_hits = np.bincount(codes, minlength=len(places))
    top = partial(_top, ordering, places, hashes, numbers, len(judgments.query_ids))
    return JoinedRows(
        hits=hit_columns(*(column[by_rank] for column in (judgment_rows, *ranks))),
        retrieved=np.stack([places[is_known], rows.counts[is_known], n_hits[is_known]]),
        totals=totals
        + Counter(
            n_unjudged_queries=int((is_ranked & ~is_known).sum()),
            n_tied=ordering.n_tied,
            n_rounded=ordering.n_rounded,
            n_self_first=ordering.n_self_first,
            n_rising=ordering.n_rising,
        ),
        recommended=top(depths[0], with_ids=True) if depths[0] else None,
        compared=top(depths[1], with_ids=False) if depths[1] else None,
        unmatched=_find_unmatched(judgments, places, rows, matched),
    )


def _find_unmatched(judgments: Judgments, places: Ints, rows: Rows, found: Ints) -> pa.StringArray:
    n_queries, n_rows = len(judgments.query_ids), rows.ends[-1]
    others = np.flatnonzero((places >= n_queries) & (rows.counts > 0))[:_UNMATCHED]
    sample = np.arange(0, n_rows, n_rows // _SAMPLED + 1)
    is_hit = np.append(found, -1)[np.searchsorted(found, sample)] == sample
    sample = sample[~is_hit & (places[rows.query_codes[sample]] < n_queries)]
    documents = rows.take_doc_ids(sample)
    coded = documents.dictionary_encode()  # shapes take long, and many queries retrieve the same documents
    is_odd = pc.invert(pc.is_in(id_shapes(coded.dictionary), judgments.shapes)).cast(pa.uint8())
    odd = np.flatnonzero(numpy_of(is_odd, np.uint8)[numpy_of(coded.indices, np.int32)])[:_UNMATCHED]
    queries = (rows.query_ids[code] for code in rows.query_codes[sample[odd]].tolist())
    pairs = zip(queries, documents.take(integers(odd)).to_pylist(), strict=True)
    return strings([*(rows.query_ids[code] for code in others.tolist()), *map("\0".join, pairs)])


def _top(
    ordering: Ordering, places: Ints, hashes: Hashes, numbers: Ints, n_queries: int, depth: float, *, with_ids: bool
) -> pa.Table:
    queries = places[ordering.ranking.query_codes]
    rows = np.flatnonzero(queries < n_queries)
    ranks, _, _ = ordering.ranks(rows)
    shallow = np.flatnonzero(ranks <= depth)
    rows = rows[shallow]
    doc_ids = ordering.ranking.take_doc_ids(rows) if with_ids else None
    scores = ordering.ranking.values[rows]
    return _build_table(numbers[rows], queries[rows], ranks[shallow], hashes[rows], scores, doc_ids)


def _build_table(
    numbers: Ints,
    queries: Ints,
    ranks: Ints,
    hashes: Hashes,
    scores: npt.NDArray[np.floating],
    doc_ids: pa.StringArray | None,
) -> pa.Table:
    columns = {"number": integers(numbers), "query": integers(queries), "rank": integers(ranks)}
    columns |= {"hash": integers(hashes.view(np.int64)), "score": floats(scores)}
    return pa.table(columns | ({} if doc_ids is None else {"doc_id": doc_ids}))


def _joined_tops(found: Sequence[pa.Table | None]) -> tuple[pa.Table, Ints, Ints, Hashes]:
    top = pa.concat_tables([top for top in found if top is not None]).sort_by("number")
    queries, ranks, hashes = (numpy_of(top.column(n).combine_chunks(), np.int64) for n in ("query", "rank", "hash"))
    return top, queries, ranks, hashes.view(np.uint64)


JoinedRange: TypeAlias = tuple[JoinedRows | RowProblem | None, tuple[Rows, Ints] | None, Hashes, Hashes, bool]
"""Result for the queries that lie within a part (None if there are none), the rows of its first and last query with
their numbers (None if the part is all of the output), the hashes of the joined and of these queries, and whether any
query is judged."""


def join_range(
    judgments: Judgments,
    excluded: PairIndex | None,
    conventions: Conventions,
    depths: Depths,
    rows: Rows,
    is_whole: bool,
) -> JoinedRange:
    """Join one part of an output, which may be all of it (`is_whole`). Rows are numbered from its first."""
    ends = [] if is_whole else [*{int(rows.query_codes[0]), int(rows.query_codes[-1])}]
    within, outside = _split(rows, ends)
    hashes = hash_ids(strings(rows.query_ids))
    joined = None
    if len(within):
        joined = join_rows(judgments, excluded, _some(rows, within), within, conventions, depths)
    aside = (replace(rows.take(outside), place=row_number), outside) if ends else None
    knows_query = bool((judgments.find(rows.query_ids) < len(judgments.query_ids)).any())
    return joined, aside, np.delete(hashes, ends), hashes[ends], knows_query


class RankingJoin:
    """Join of one model's rankings with a dataset's judgments."""

    def __init__(
        self,
        judgments: Judgments,
        conventions: Conventions,
        depths: Depths = (0.0, 0.0),
        excluded: PairIndex | None = None,
    ) -> None:
        self.knows_query = False
        self.remarks: tuple[str, ...] = ()
        self._rank_order = 0
        self._judgments = judgments
        self._excluded = excluded
        self._conventions = conventions
        deepest = conventions.depth or np.inf
        self._depths = min(depths[0], deepest), min(depths[1], deepest)
        self._found: list[JoinedRows] = []
        self._aside: list[tuple[Rows, Ints]] = []
        self._queries: list[Hashes] = []  # by range, of those that were joined
        self._queries_aside: list[Hashes] = []
        self._problem: RowProblem | None = None
        self._place: Callable[[int], str] = row_number

    def add(self, rows: Rows, numbers: Ints | None = None) -> None:
        if numbers is None:
            self._place, numbers = rows.place, np.arange(rows.ends[-1])
        self.knows_query |= bool((self._judgments.find(rows.query_ids) < len(self._judgments.query_ids)).any())
        self._keep(join_rows(self._judgments, self._excluded, rows, numbers, self._conventions, self._depths))

    def _keep(self, joined: JoinedRows | RowProblem) -> None:
        if isinstance(joined, JoinedRows):
            self._found.append(joined)
        elif self._problem is None or _order(joined) < _order(self._problem):
            self._problem = joined

    def add_ranges(self, ranges: RankingRanges, folder: Path | None = None, at_a_time: int = 1) -> None:
        self._place = ranges.place
        is_together = self._add_together(ranges, at_a_time)
        self._rank_order = ranges.rank_order
        if is_together:
            self.remarks = ranges.remarks
            return
        problem = "the rows of its queries are scattered, so they were brought together on disk"
        self._found, self._aside, self._problem = [], [], None
        for rows, numbers in partition_rows(ranges, folder):
            self.add(rows, numbers)
        scattered = f"{ranges.path}: {problem}; write a query's rows together to read it faster"
        self.remarks = (*ranges.remarks, scattered)

    def _add_together(self, ranges: RankingRanges, at_a_time: int) -> bool:
        join = partial(join_range, self._judgments, self._excluded, self._conventions, self._depths)
        for begin, (within, aside, queries, queries_aside, knows_query) in ranges.each_range(join, at_a_time):
            self.knows_query |= knows_query
            if within is not None:
                self._keep(_shift_rows(within, begin))
            if aside is not None:
                self._aside.append((aside[0], begin + aside[1]))
            self._queries.append(queries)
            self._queries_aside.append(queries_aside)
            n_ranges = len(self._queries)  # twice as many as when the queries were last looked at
            if not n_ranges & (n_ranges - 1) and self._is_scattered():
                return False
        if self._is_scattered():
            return False
        if self._aside:
            rows, numbers = zip(*self._aside, strict=True)
            self.add(merge_rows(rows), np.concatenate(numbers))
        return True

    def _is_scattered(self) -> bool:
        joined = np.sort(np.concatenate(self._queries))
        aside = np.concatenate(self._queries_aside)
        places = np.minimum(np.searchsorted(joined, aside), len(joined) - 1)
        returned = len(joined) and (joined[places] == aside).any()
        return bool(returned or (joined[1:] == joined[:-1]).any())

    def joined(self, path: str, n_documents: float = float("nan"), catalogue: Catalogue | None = None) -> JudgedOutput:
        """Return the ranks and grades of the judged documents that the model retrieved.

        `catalogue` is needed if a measure asks for the recommended documents. A repeated document, a score beyond
        float32, and a judged query without output where that is an error are InputErrors.
        """
        if self._problem:
            raise InputError(f"{path}: {self._problem.message(self._place)}")
        recommended_depth, compared_depth = self._depths
        recommended = [part.recommended for part in self._found if recommended_depth]
        compared = [part.compared for part in self._found if compared_depth]
        hits = self._hits()
        return replace(
            assemble(self._judgments, hits, self._conventions, n_documents, path=path),
            catalogue=self._build_recommended(recommended, catalogue, hits)
            if catalogue and recommended_depth
            else None,
            ranked=self._build_compared(compared, hits) if compared else None,
            remarks=self.remarks,
        )

    def _hits(self) -> Hits:
        n_retrieved, n_hits = np.zeros((2, len(self._judgments.query_ids)), dtype=np.int64)
        for part in self._found:
            places = part.retrieved[0]
            n_retrieved[places], n_hits[places] = part.retrieved[1:]
        kinds = [np.result_type(np.uint8, *values) for values in zip(*(part.hits for part in self._found), strict=True)]
        columns = [np.empty(n_hits.sum(), dtype=kind) for kind in kinds]
        starts = np.cumsum(n_hits) - n_hits
        unmatched = [text for part in self._found for text in part.unmatched.to_pylist()]
        totals = sum((part.totals for part in self._found), Counter[str]())
        while self._found:
            part = self._found.pop()
            places, _, sizes = part.retrieved
            positions = np.repeat(starts[places] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
            for column, values in zip(columns, part.hits, strict=True):
                column[positions] = values
        rows, ranks, tie_first, tie_last = columns
        grades = self._judgments.grades[rows]
        has_excluded, has_seen = counts(self._excluded)
        added: dict[str, Any] = {"n_unjudged_queries": 0, **totals}
        added["n_excluded"] = totals["n_excluded"] if has_excluded else None
        added["n_seen"] = totals["n_seen"] if has_seen else None
        quality = JoinStats(
            **added,
            n_missing_queries=int((n_retrieved == 0).sum()),
            judged_at_10=judged_share(ranks, grades, n_retrieved),
            rank_order=self._rank_order,
        )
        hits = Hits(n_hits, rows, ranks, tie_first, tie_last, n_retrieved, quality)
        return replace(hits, quality=replace(quality, look_alikes=look_alikes(unmatched, self._judgments, hits)))

    def _build_recommended(self, found: Sequence[pa.Table | None], catalogue: Catalogue, hits: Hits) -> CatalogueBlock:
        top, queries, ranks, _ = _joined_tops(found)
        block = catalogue.block(top.column("doc_id").combine_chunks(), ranks, queries, len(hits.n_retrieved))
        grades = np.full(block.codes.shape, np.nan)
        hit = np.flatnonzero(hits.ranks <= min(self._depths[0], len(grades)))
        grades[hits.ranks[hit] - 1, hits.queries[hit]] = self._judgments.grades[hits.judgment_rows[hit]]
        return replace(block, grades=grades)

    def _build_compared(self, found: Sequence[pa.Table | None], hits: Hits) -> Ranked:
        top, queries, ranks, hashes = _joined_tops(found)
        order = np.argsort(hashes)
        n_compared = np.minimum(hits.n_retrieved, self._depths[1]).astype(np.float64)
        scores = numpy_of(top.column("score").combine_chunks(), np.float64)
        return Ranked(hashes[order], queries[order], ranks[order], scores[order], n_compared)


def partition_rows(ranges: Iterable[Rows], folder: Path | None) -> Iterator[tuple[Rows, Ints]]:
    """Yield the rows of some whole queries at a time, in the order of the output, and their row numbers there."""
    spill = Spill(folder)
    parts: dict[int, list[Callable[[], pa.RecordBatch]]] = defaultdict(list)
    begin = 0
    for rows in ranges:
        numbers = (hash_ids(strings(rows.query_ids)) >> _SHIFT).astype(np.int64)[rows.query_codes]
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        for span in np.split(order, cuts):
            stored = spill.write(
                query_id=strings(rows.query_ids).take(integers(rows.query_codes[span])),
                doc_id=rows.take_doc_ids(span),
                value=floats(rows.values[span]),
                number=integers(begin + span),
            )
            parts[int(numbers[span[0]])].append(stored)
        begin += rows.ends[-1]
    for number in sorted(parts):
        yield _build_rows([read() for read in parts.pop(number)])


def _build_rows(batches: list[pa.RecordBatch]) -> tuple[Rows, Ints]:
    table = pa.Table.from_batches(batches)
    table = table.set_column(0, "query_id", table.column("query_id").dictionary_encode()).unify_dictionaries()
    batches = table.to_batches()
    chunks = tuple(
        Chunk(
            numpy_of(batch.column("query_id").indices, np.int32),
            batch.column("doc_id"),
            numpy_of(batch.column("value"), np.float64),
        )
        for batch in batches
    )
    numbers = np.concatenate([numpy_of(batch.column("number"), np.int64) for batch in batches])
    query_ids = batches[0].column("query_id").dictionary.to_pylist()
    return Rows("", (), query_ids, chunks, row_number), numbers


def join_ranking(
    judgments: Judgments,
    ranking: Rows,
    conventions: Conventions,
    *,
    n_documents: float = float("nan"),
    excluded: PairIndex | None = None,
) -> JudgedOutput:
    """Return the ranks and grades of the judged documents of an output in memory."""
    join = RankingJoin(judgments, conventions, excluded=excluded)
    join.add(ranking)
    return join.joined(ranking.path, n_documents)


def _shift_rows(found: JoinedRows | RowProblem, begin: int) -> JoinedRows | RowProblem:
    if isinstance(found, JoinedRows):
        recommended, compared = (
            top and top.set_column(0, "number", pc.add(top.column("number"), integers(np.array([begin]))[0]))
            for top in (found.recommended, found.compared)
        )
        return replace(found, recommended=recommended, compared=compared)
    return replace(found, rows=tuple(begin + row for row in found.rows))


def _split(rows: Rows, ends: Collection[int]) -> tuple[Ints, Ints]:
    is_outside = np.zeros(len(rows.query_codes), dtype=bool)
    for code in ends:
        is_outside |= rows.query_codes == code
    return np.flatnonzero(~is_outside), np.flatnonzero(is_outside)


def _some(rows: Rows, numbers: Ints) -> Rows:
    begin, end = int(numbers[0]), int(numbers[-1]) + 1
    return rows.between(begin, end) if end - begin == len(numbers) else rows.take(numbers)


def _order(problem: RowProblem) -> tuple[bool, int]:
    return not problem.is_score, problem.rows[-1]


_NAME = 5  # the place of an output's name in a line of TREC text


JudgedPreferences: TypeAlias = tuple[Sequence[Sequence[Floats]], int]
"""Rankings of each judge of a query: (N,) levels of the judged documents, the retrieved first, and their number."""


def join_qrels(qrels: str, ranking: str, conventions: Conventions, *, n_documents: int) -> tuple[JudgedOutput, str]:
    """Join judgments and a ranking. Return the output's tag, from the ranking's last line."""
    judged = _read(qrels)
    _refuse_fractions(judged)
    ranges = _ranges(ranking)
    join = RankingJoin(index_judgments(judged, remedy="keep one"), conventions)
    join.add_ranges(ranges)
    joined = join.joined(ranking, float(n_documents))
    return joined, _tag(ranges)


def join_groups(
    qrels: str, ranking: str, conventions: Conventions, *, n_documents: int
) -> tuple[list[JudgedOutput], str]:
    """Join the first, second, … group of judgments of each query (`-R qrels_jg`), in the order of their names."""
    judged = _read(qrels, groups=True)
    _refuse_fractions(judged)
    groups = _group_numbers(judged)
    ranked, tag = _read_ranking(ranking)
    parts = [replace(judged.take(np.flatnonzero(groups == number)), subtopics=None) for number in np.unique(groups)]
    indexed = [index_judgments(part, remedy="keep one") for part in parts]
    return [join_ranking(judgments, ranked, conventions, n_documents=float(n_documents)) for judgments in indexed], tag


def join_preferences(
    path: str, ranking: str, conventions: Conventions, *, subgroups: bool
) -> tuple[JudgedOutput, list[JudgedPreferences], str]:
    """Join preferences: lines of query, judge, the judge's ranking (if `subgroups`), document and level."""
    judged = _read(path, groups=True, subgroups=subgroups)
    ranked, tag = _read_ranking(ranking)
    judgments = index_judgments(replace(judged, subtopics=None), keep_first=True)
    joined = join_ranking(judgments, ranked, replace(conventions, ties="doc_id_asc"))
    doc_ids = judged.doc_ids.to_pylist()
    retrieved = [
        [doc_ids[row] for row in rows[ranks <= (conventions.depth or np.inf)].tolist() if row >= 0]
        for block in joined.blocks
        for rows, ranks in zip(block.judgment_row.T, block.ranks.T, strict=True)  # type: ignore[union-attr]
    ]
    levels = _levels(judged, doc_ids)
    lists = zip(joined.query_ids.tolist(), retrieved, strict=True)
    return joined, [_preferences(levels[query_id], documents) for query_id, documents in lists], tag


def read_z_scores(path: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the mean and the standard deviation by query and measure, from lines of these four fields."""
    rows = _read(path, groups=True)  # the measure stands where a group does, and its mean where a document does
    assert rows.subtopics is not None, "what was asked for"
    names, means = rows.subtopics.to_pylist(), rows.doc_ids.to_pylist()
    fields = zip(rows.query_codes.tolist(), names, means, rows.values.tolist(), strict=True)
    try:
        return {(rows.query_ids[code], name): (float(mean), deviation) for code, name, mean, deviation in fields}
    except ValueError as error:
        raise InputError(f"{path}: {error}; lines are query, measure, mean and deviation") from None


def _levels(judged: Rows, doc_ids: Sequence[str]) -> dict[str, dict[tuple[str, ...], dict[str, float]]]:
    assert judged.subtopics is not None, "what was asked for"
    levels: dict[str, dict[tuple[str, ...], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    rows = zip(judged.query_codes.tolist(), judged.subtopics.to_pylist(), doc_ids, judged.values.tolist(), strict=True)
    for row, (code, group, doc_id, level) in enumerate(rows):
        group_levels = levels[judged.query_ids[code]][tuple(group.split("\t"))]
        if doc_id in group_levels:
            twice = f"query '{judged.query_ids[code]}' judges document '{doc_id}' twice in a ranking"
            raise InputError(f"{judged.path}: {twice} ({judged.place(row)}); keep one")
        group_levels[doc_id] = level
    return levels


def _preferences(levels: dict[tuple[str, ...], dict[str, float]], retrieved: Sequence[str]) -> JudgedPreferences:
    others = {doc_id for group_levels in levels.values() for doc_id in group_levels}.difference(retrieved)
    documents = [*retrieved, *sorted(others)]
    judges: dict[str, list[Floats]] = defaultdict(list)
    for (judge, *_), group_levels in sorted(levels.items()):
        judges[judge].append(np.array([group_levels.get(doc_id, np.nan) for doc_id in documents]))
    return [*judges.values()], len(retrieved)


def _read(path: str, *, groups: bool = False, subgroups: bool = False) -> Rows:
    judged = readers.read_judgments(Source(path, "trec", streams=True), subtopics=groups, parts=subgroups)
    if judged.remarks:
        raise InputError(f"{path}: {judged.remarks[0].partition(' (')[0]}; trec_eval has 4 fields; write them")
    return judged


def _ranges(ranking: str) -> readers.RankingRanges:
    return readers.RankingRanges(Source(ranking, "trec", streams=True))


def _read_ranking(ranking: str) -> tuple[Rows, str]:
    ranges = _ranges(ranking)
    return merge_rows([*ranges]), _tag(ranges)


def _tag(ranges: readers.RankingRanges) -> str:
    if len(ranges.last_fields) <= _NAME:
        raise InputError(f"{ranges.path}: the last line has no sixth field, the tag of the output; add it")
    return ranges.last_fields[_NAME].decode("utf-8", errors="surrogateescape")


def _group_numbers(judged: Rows) -> npt.NDArray[np.int64]:
    assert judged.subtopics is not None, "what was asked for"
    names, codes = np.unique(np.array(judged.subtopics.to_pylist(), dtype=object), return_inverse=True)
    groups, rows = np.unique(judged.query_codes.astype(np.int64) * len(names) + codes, return_inverse=True)
    queries = groups // len(names)
    numbers: npt.NDArray[np.int64] = (np.arange(len(groups)) - np.searchsorted(queries, queries))[rows]
    return numbers


def _refuse_fractions(judged: Rows) -> None:
    fractions = np.flatnonzero(judged.values != np.trunc(judged.values))
    if fractions.size:
        row = int(fractions[0])
        problem = f"relevance {judged.values[row]:g} ({judged.place(row)}) is not a whole number"
        raise InputError(f"{judged.path}: {problem}, and trec_eval would truncate it; write whole grades")
