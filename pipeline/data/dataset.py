"""One dataset's own files and a model's output on it: read, checked and joined; whole, or one query of it.

A query's block has the same bits cut out and joined alone as among all others; only what is of the whole dataset, its
greatest grade and its number of documents, is taken along.

An output and the judgments must speak of the same queries and documents. An id that was read as a number, or has a
prefix on one side only, matches nothing and scores 0, which looks like a bad model. The likely causes are found by
trying them: ids of both sides are written alike in one way after another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from statistics import median
from typing import Literal, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.block import Bools
from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.exclusions import index_pairs, n_judged_themselves, own_documents, seen_pairs, sort_out
from rankledger.pipeline.data.files import each_file, files_there, find_files, suffixes
from rankledger.pipeline.data.formats import format_key, format_of
from rankledger.pipeline.data.join import Catalogue, join_predictions, known_documents
from rankledger.pipeline.data.judgments import Judgments, PairIndex, hash_pairs, index_judgments
from rankledger.pipeline.data.parts import PART_ROWS
from rankledger.pipeline.data.ranking import order_rows
from rankledger.pipeline.data.rankings import Depths, RankingJoin, join_ranking
from rankledger.pipeline.support.arrow import concatenate, strings
from rankledger.pipeline.support.errors import InputError, shorten
from rankledger.pipeline.types.inputs import Content, DatasetSource, Ids, InputFile, Rows, Source
from rankledger.pipeline.types.joined import Groups, Joined, Quality, QueryList, Unmatched

__all__ = [
    "ALLOW_NO_OVERLAP",
    "DatasetInput",
    "SingleQuery",
    "content_of",
    "describe",
    "exists",
    "group_queries",
    "is_missing",
    "judged_dataset",
    "likely_cause",
    "odd_rankings",
    "read_dataset",
    "read_output",
    "refuse_other_queries",
    "returns_any",
    "row_order",
    "size_of",
    "small_overlap",
]

ALLOW_NO_OVERLAP = "or accept it with outputs: {path: …, allow_no_overlap: true}"
"""The end of the message on an output that shares no query, document or pair with its dataset."""

_OURS, _THEIRS = 10_000, 100_000  # ids of an output and of the dataset that are looked at for a cause
_LONGEST = 256  # characters of an id that is looked at
_SHOWN = 80  # characters of an id in a message
_FEW = 0.1  # of the queries
_HALF = 0.5
_HARDLY = 0.01  # of the top 10
_TIMES = 10  # that the other models have
_MOST_VALUES = 50  # of a slice column: one with more is rarely of categories, and nobody reads so many lines

_Rule = Callable[[str], str]


def group_queries(
    query_ids: Sequence[str] | npt.NDArray[np.object_], queries: Ids, cluster: str | None, slices: Sequence[str]
) -> Groups:
    """The clusters and slices of these queries.

    Args:
        query_ids: (Q,) ids, all of them in the table.
        queries: the queries table, with the texts of the columns.
        cluster: the column whose queries of equal text are one cluster; None where each query stands for itself.
        slices: the columns whose texts make a slice each; a query without text is in none of the column's.

    Raises:
        InputError: a query has no cluster, a column has too many texts for slices, or two slices have one name.
    """
    places = {query_id: row for row, query_id in enumerate(queries.ids.to_pylist())}
    rows = [places[query_id] for query_id in query_ids]
    members: dict[str, Bools] = {}
    for column in slices:
        found = _slices(queries, column, rows)
        both = sorted(members.keys() & found.keys())
        if both:
            message = f"'{column}' has a slice '{shorten(both[0])}', as has another column; rename one of them"
            raise InputError(f"{queries.path}: {message}")
        members |= found
    columns = {name: [texts[row] for row in rows] for name, texts in queries.texts.items() if name != cluster}
    return Groups(None if cluster is None else _clusters(queries, cluster, rows), members, columns)


def _clusters(queries: Ids, column: str, rows: Sequence[int]) -> npt.NDArray[np.int64]:
    names = [queries.texts[column][row] for row in rows]
    if None in names:
        row = rows[names.index(None)]
        found = f"query '{shorten(queries.ids[row].as_py())}' has no {column} ({queries.place(row)})"
        raise InputError(f"{queries.path}: {found}, the cluster column; fill it")
    codes = {name: code for code, name in enumerate(sorted({name for name in names if name is not None}))}
    return np.array([codes[name] for name in names if name is not None], dtype=np.int64)


def _slices(queries: Ids, column: str, rows: Sequence[int]) -> dict[str, Bools]:
    names = np.array([queries.texts[column][row] for row in rows], dtype=object)
    distinct = sorted({name for name in names if name is not None})
    if len(distinct) > _MOST_VALUES:
        found = f"'{column}' has {len(distinct):,} values, and at most {_MOST_VALUES} make slices"
        raise InputError(f"{queries.path}: {found}; bin them into a column of their own")
    return {f"{column}={name}": names == name for name in distinct}


@dataclass(frozen=True, eq=False)
class DatasetInput:
    """A dataset's own files as they were read.

    Attributes:
        kind: `rankings` or `ratings`.
        judgments: its judgments or ratings.
        catalogue: what is known of its documents.
        files: what was read, by role: `judgments`, `ratings`, `queries`, `documents`, `interactions`, `exclude`.
        groups: the clusters and slices of its queries.
        excluded: the documents that are left out of rankings, and those seen in training; None if there are none.
        remarks: what is worth saying of its files, a line each.
    """

    kind: str
    judgments: Judgments
    catalogue: Catalogue
    files: Mapping[str, tuple[InputFile, ...]]
    groups: Groups = field(default_factory=Groups)
    excluded: PairIndex | None = None
    remarks: tuple[str, ...] = ()

    @property
    def query_ids(self) -> npt.NDArray[np.object_]:
        """(Q,) the judged queries, in the order of their ids as UTF-8 bytes."""
        return self.judgments.query_ids

    @property
    def n_documents(self) -> float:
        """Documents in the catalogue, NaN if unknown."""
        return float(self.catalogue.n_documents) or np.nan


def read_dataset(source: DatasetSource, conventions: Conventions, folder: Path | None = None) -> DatasetInput:
    """A dataset's own files.

    Args:
        source: where they are and how to read them.
        conventions: say whether a relevance may be negative.
        folder: where the documents of many judgments are kept in a temporary file; None for the system's.

    Raises:
        InputError: a file is missing or malformed, a judged query is not in the queries table or has no cluster there,
            a relevance is negative where that is an error, or no query of `exclude` is judged,
            or of `interactions` where `seen` is not `count`.
    """
    assert source.judgments is not None, "what has judgments or ratings"
    if source.kind == "ratings":
        role, rows = "ratings", readers.read_ratings(source.judgments)
    else:
        role, rows = "judgments", readers.read_judgments(source.judgments, subtopics=source.subtopics, folder=folder)
    if role == "judgments" and conventions.negative_grades == "error" and rows.values.min() < 0:
        row = int(np.flatnonzero(rows.values < 0)[0])
        raise InputError(f"{rows.path}: relevance {rows.values[row]:g} ({rows.place(row)}) is negative; fix it")
    files, remarks = {role: rows.files}, [*rows.remarks]
    indexed = index_judgments(rows, keep_first=source.keep_first)
    indexed = replace(indexed, weights=_weights(source, rows))
    rows = indexed.rows  # those that were read are let go
    groups = Groups()
    documents = interactions = None
    if source.queries is not None:
        table = readers.read_queries(source.queries, further=source.group_columns, others=source.search_slices)
        _refuse_unknown_queries(rows, table)
        files["queries"] = table.files
        remarks += table.remarks
        groups = group_queries(indexed.query_ids, table, source.cluster, source.slices)
    if source.documents is not None:
        documents = readers.read_documents(source.documents, features=source.features)
        files["documents"] = documents.files
        remarks += documents.remarks
    if source.interactions is not None:
        interactions = readers.read_interactions(source.interactions)
        files["interactions"] = interactions.files
        remarks += interactions.remarks
    pairs = []
    if source.exclude is not None:
        pairs.append(readers.read_interactions(source.exclude))
        files["exclude"] = pairs[0].files
        remarks += [*pairs[0].remarks, *_unjudged_exclusions(pairs[0], indexed)]
    if source.exclude_self:
        pairs.append(own_documents(indexed.query_ids.tolist()))
    if interactions is not None and source.kind == "rankings":
        pairs.append(seen_pairs(interactions, source.seen))
        if source.seen != "count":
            _unjudged(interactions, indexed, "seen")
    known = known_documents(documents, interactions, indexed.query_ids)
    catalogue = known.with_judged(indexed) if source.judged_documents else known
    excluded = index_pairs(indexed, pairs)
    return DatasetInput(source.kind, indexed, catalogue, files, groups, excluded, tuple(dict.fromkeys(remarks)))


def _weights(source: DatasetSource, rows: Rows) -> npt.NDArray[np.floating] | None:
    """(N,) what each row of the ratings weighs: their file is read again, and its rows stand in the same order."""
    if source.kind != "ratings" or source.judgments is None or "weight" not in source.judgments.columns:
        return None
    found = readers.read_weights(source.judgments)
    if found.files != rows.files:
        raise InputError(f"{rows.path}: changed while it was read; evaluate again when it is complete")
    return found.values


def judged_dataset(rows: Rows, excluded: Rows | None, *, keep_first: bool) -> DatasetInput:
    """A dataset of rankings that only judgments and excluded documents are asked of.

    Args:
        rows: the judgments.
        excluded: pairs of judged queries and documents that are left out of rankings; None if there are none.
        keep_first: whether a pair that is judged twice keeps its first judgment.
    """
    indexed = index_judgments(rows, keep_first=keep_first)
    catalogue = known_documents(None, None, indexed.query_ids)
    pairs = None if excluded is None else index_pairs(indexed, [excluded])
    return DatasetInput("rankings", indexed, catalogue, {}, excluded=pairs)


def _unjudged_exclusions(pairs: Rows, judgments: Judgments) -> Iterator[str]:
    """What to say of pairs to exclude whose queries are not judged."""
    others = _unjudged(pairs, judgments, "exclude")
    if others:
        of = f"{len(others):,} of the {len(pairs.query_ids):,} queries with documents to exclude"
        yield f"{pairs.path}: {of} {'is' if len(others) == 1 else 'are'} not judged, such as '{shorten(others[0])}'"


def _unjudged(pairs: Rows, judgments: Judgments, key: str) -> list[str]:
    """The queries of pairs that are not judged; if none is judged, their ids are wrong, and the key has no effect."""
    is_judged = judgments.find(pairs.query_ids) < len(judgments.query_ids)
    others = [query_id for query_id, judged in zip(pairs.query_ids, is_judged, strict=True) if not judged]
    if len(others) == len(pairs.query_ids):
        theirs = judgments.query_ids.tolist()
        one, other, remedy = likely_cause(others, theirs) or (others[0], theirs[0], "write the ids of both alike")
        found = f"{_none_of(len(others), 'queries')} is judged, such as '{one[:_SHOWN]}'"
        raise InputError(f"{pairs.path}: {found}; the judgments have '{other[:_SHOWN]}': {remedy}, or remove `{key}`")
    return others


def read_output(
    dataset: DatasetInput,
    output: Source,
    conventions: Conventions,
    *,
    with_catalogue: bool,
    depth: float = float("inf"),
    compared: float = 0.0,
    of_probabilities: str = "",
    allow_no_overlap: bool = False,
    n_rows: int = PART_ROWS,
    folder: Path | None = None,
    at_a_time: int = 1,
) -> tuple[tuple[InputFile, ...], Joined]:
    """One model's output on a dataset: the files it consists of, and what the join gives.

    Args:
        dataset: the dataset.
        output: the model's rankings or predictions.
        conventions: say what orders a ranking, and whether it may be incomplete.
        with_catalogue: whether a measure asks which documents were recommended.
        depth: the ranks down to which it asks.
        compared: the ranks down to which a measure compares rankings with another model's; 0 if none does.
        of_probabilities: a measure that takes predictions from 0 to 1 alone; empty if none does.
        allow_no_overlap: whether it may have no query, document or pair of the dataset.
        n_rows: rows of a ranking that are parsed at a time, about.
        folder: where a ranking's scattered rows are brought together in a temporary folder; None for the system's.
        at_a_time: ranges of a ranking that are parsed and joined side by side; the result does not depend on it.

    Raises:
        InputError: the output is missing or malformed, has no query or no rated pair of the dataset, or predicts what
            is no probability where one is needed.
    """
    if dataset.kind == "ratings":
        rows = readers.read_predictions(output)
        if of_probabilities:
            _refuse_other_than_probabilities(rows, of_probabilities)
        joined = join_predictions(dataset.judgments, rows)
        if joined.missing.all() and not allow_no_overlap:
            refuse_other_queries(rows.path, rows.query_ids, dataset.query_ids, what="rated")
            _refuse_other_pairs(dataset.judgments, rows)
        return rows.files, replace(joined, remarks=rows.remarks)
    ranges = readers.RankingRanges(output, by=row_order(conventions), n_rows=n_rows)
    depths = Depths(depth if with_catalogue else 0.0, compared)
    join = RankingJoin(dataset.judgments, conventions, depths, dataset.excluded)
    join.add_ranges(ranges, folder, at_a_time)
    files = ranges.files
    if not allow_no_overlap and not join.knows_query and conventions.missing_queries == "error":
        _refuse_other_rows(ranges, dataset)  # the join's message would say less
    joined = join.joined(output.path, dataset.n_documents, dataset.catalogue if with_catalogue else None)
    if not allow_no_overlap and joined.hits is not None and not joined.hits.ranks.size:
        _refuse_other_rows(ranges, dataset)
        joined = replace(joined, unmatched=_find_unmatched(dataset.judgments, dataset.catalogue, ranges))
    return files, joined


def returns_any(output: Source, documents: pa.StringArray, conventions: Conventions) -> bool:
    """Whether a ranking has any of these documents.

    Raises:
        InputError: it is missing or malformed.
    """
    ranges = readers.RankingRanges(output, by=row_order(conventions))
    found = [_any_in(chunk.doc_ids, documents) for rows in ranges for chunk in rows.chunks]
    return any(found)


def row_order(conventions: Conventions) -> Literal["rank", "score"]:
    """What orders the documents of a ranking under these conventions."""
    return "rank" if conventions.ties == "rank_column" else "score"


def _refuse_other_rows(ranges: readers.RankingRanges, dataset: DatasetInput) -> None:
    """Refuse an output that has no query of the dataset; it is read again for its queries."""
    query_ids = [*dict.fromkeys(query_id for rows in ranges for query_id in rows.query_ids)]
    refuse_other_queries(ranges.path, query_ids, dataset.query_ids)


def _refuse_unknown_queries(judgments: Rows, queries: Ids) -> None:
    judged = strings(judgments.query_ids)
    missing = judged.filter(pc.invert(pc.is_in(judged, queries.ids)))
    if len(missing):
        raise InputError(
            f"{queries.path}: of the queries judged in {judgments.path} it lacks {len(missing):,}, such as "
            f"'{shorten(missing[0].as_py())}'; complete it or leave it out"
        )


def exists(source: Source) -> bool:
    """Whether anything is there."""
    try:
        return bool(find_files(source))
    except InputError:
        return False


def is_missing(source: Source) -> bool:
    """Whether nothing is there, not even what cannot be read."""
    try:
        return not (files_there(source) or Path(source.path).is_dir())
    except InputError:
        return False


def size_of(source: Source) -> int:
    """Bytes of all files of the input.

    Raises:
        InputError: nothing is there.
    """
    return sum(file.size for file in find_files(source))


def describe(source: Source) -> tuple[InputFile, ...]:
    """The files of the input, in order; they are read for their digests.

    Raises:
        InputError: nothing is there, or it changed while it was read.
    """
    return tuple(file.describe() for file in each_file(source))


def content_of(source: Source, files: Sequence[InputFile]) -> Content:
    """All that decides which rows are read.

    Args:
        source: the input as the config names it.
        files: those that it consists of, or consisted of.
    """
    layouts = (suffixes(file.path) for file in files)
    return Content(
        files=tuple(
            (file.digest, format_key(source.format or format_of(suffix)), compression)
            for file, (suffix, compression) in zip(files, layouts, strict=True)
        ),
        size=sum(file.size for file in files),
        columns=tuple(sorted(source.columns.items())),
    )


@dataclass(frozen=True, eq=False)
class SingleQuery:
    """One query of a dataset, and where a model's output on it is.

    Attributes:
        dataset: the dataset's own files.
        output: the model's rankings or predictions.
        query_id: one of the dataset's queries.
        keep_first: whether a pair that is judged twice keeps its first judgment.
    """

    dataset: DatasetInput
    output: Source
    query_id: str
    keep_first: bool

    def listed(self, conventions: Conventions) -> QueryList:
        """The query as the conventions have it joined.

        Raises:
            InputError: the output is missing or malformed, or lacks the query where that is an error.
        """
        if self.dataset.kind == "ratings":
            return self._paired()
        rows, judged = self._rows(conventions), self._judgments
        excluded = None if self.dataset.excluded is None else index_pairs(judged, [self.dataset.excluded.rows])
        joined = join_ranking(judged, rows, conventions, n_documents=self.dataset.n_documents, excluded=excluded)
        if excluded is not None:
            out, *_ = sort_out(excluded, rows, hash_pairs(rows, judged.find(rows.query_ids)))
            rows = rows.without(out)
        retrieved, ties = self._ranked(rows, conventions) if rows.chunks else ((), ())
        return QueryList(
            block=joined.blocks[0],
            max_grade=self.dataset.judgments.max_grade,
            retrieved=retrieved,
            ties=ties,
            judged=tuple(judged.rows.take_doc_ids(np.arange(len(judged.grades))).to_pylist()),
            grades=tuple(judged.grades.tolist()),
            kept=tuple(judged.kept.tolist()),
            n_excluded=joined.quality.n_excluded or 0,
            n_seen=joined.quality.n_seen or 0,
        )

    def _ranked(self, rows: Rows, conventions: Conventions) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
        """The query's documents by rank, and the first and the last rank of each one's group of equal scores."""
        own = _rows_of(rows, self.query_id)
        ranks, tie_first, tie_last = order_rows(rows, conventions.ties, conventions.score_precision).ranks(own)
        order = np.argsort(ranks)
        ties = tuple(zip(tie_first[order].tolist(), tie_last[order].tolist(), strict=True))
        return tuple(rows.take_doc_ids(own[order]).to_pylist()), ties

    def files(self, conventions: Conventions) -> tuple[InputFile, ...]:
        """The files of the output that are read under these conventions."""
        return self._rows(conventions).files

    def _rows(self, conventions: Conventions) -> Rows:
        """The query's rows of a ranking."""
        return self._by_rank if conventions.ties == "rank_column" else self._by_score

    def _paired(self) -> QueryList:
        rows = self._by_score
        joined = join_predictions(self._judgments, rows)
        rated = set(self._judgments.rows.take_doc_ids(self._judgments.kept).to_pylist())
        own = _rows_of(rows, self.query_id)
        by_hash = own[np.argsort(hash_pairs(rows, np.zeros(len(rows.query_ids), dtype=np.int64))[own])]  # as they join
        found = [doc_id for doc_id in rows.take_doc_ids(by_hash).to_pylist() if doc_id in rated]
        return QueryList(joined.blocks[0], self.dataset.judgments.max_grade, tuple(found))

    @cached_property
    def _by_rank(self) -> Rows:
        return _cut_out(readers.read_ranking(self.output, by="rank"), self.query_id)

    @cached_property
    def _by_score(self) -> Rows:
        read = readers.read_predictions if self.dataset.kind == "ratings" else readers.read_ranking
        return _cut_out(read(self.output), self.query_id)

    @cached_property
    def _judgments(self) -> Judgments:
        judged = self.dataset.judgments
        own = index_judgments(_cut_out(judged.rows, self.query_id), keep_first=self.keep_first)
        if judged.weights is None:
            return own
        return replace(own, weights=judged.weights[_rows_of(judged.rows, self.query_id)])


def _rows_of(rows: Rows, query_id: str) -> npt.NDArray[np.int64]:
    """The rows of one query, ascending."""
    return np.flatnonzero(rows.query_codes == (rows.query_ids.index(query_id) if query_id in rows.query_ids else -1))


def _cut_out(rows: Rows, query_id: str) -> Rows:
    """The rows of one query; where it has none, a row of another, which a join passes over, for none is no input."""
    own = _rows_of(rows, query_id)
    return rows.take(own if own.size else np.zeros(1, dtype=np.int64))


def refuse_other_queries(
    path: str, ours: Sequence[str], theirs: npt.NDArray[np.object_], *, what: str = "judged"
) -> None:
    """Refuse an output that has no query of the dataset.

    Args:
        path: the output as it was named.
        ours: its distinct queries, at least one.
        theirs: those of the dataset, at least one, ascending.
        what: where these stand: they are `judged`, `rated`, or in the `queries` table.

    Raises:
        InputError: none of its queries is among them.
    """
    places = ((bisect_left(theirs, query_id), query_id) for query_id in ours)  # the first is found as a rule
    if any(place < len(theirs) and theirs[place] == query_id for place, query_id in places):
        return
    found = f"{_none_of(len(ours), 'queries')} is " + ("in the queries table" if what == "queries" else what)
    others = {"judged": "the judgments have", "rated": "the ratings have"}.get(what, "the table has")
    raise InputError(_mismatch(path, found, ours, theirs.tolist(), others))


def _refuse_other_than_probabilities(predictions: Rows, measure: str) -> None:
    outside = np.flatnonzero((predictions.values < 0) | (predictions.values > 1))
    if outside.size:
        row = int(outside[0])
        found = f"prediction {predictions.values[row]:g} ({predictions.place(row)}) is not from 0 to 1"
        raise InputError(
            f"{predictions.path}: {found}, and {measure} takes probabilities; scale it, or remove {measure}"
        )


def _refuse_other_pairs(ratings: Judgments, predictions: Rows) -> NoReturn:
    """Refuse predictions if none has a rating, though some of their queries have ratings."""
    ours, theirs = _distinct(_documents(predictions, ratings)), _distinct(ratings.rows.doc_ids)
    found = f"{_none_of(len(predictions.query_codes), 'predictions')} has a rating"
    if set(ours).isdisjoint(theirs):
        raise InputError(_mismatch(predictions.path, found, ours, theirs, "the ratings have"))
    remedy = "its queries and documents are rated, but not together; predict the pairs of the test data"
    raise InputError(f"{predictions.path}: {found}: {remedy}, {ALLOW_NO_OVERLAP}")


def _find_unmatched(judgments: Judgments, catalogue: Catalogue, ranges: readers.RankingRanges) -> Unmatched | None:
    """What is wrong with a ranking that has no hit; None if the dataset knows some of its documents in another role."""
    documents, judged = strings([]), judgments.rows.doc_ids
    for rows in ranges:
        documents = concatenate([documents, _documents(rows, judgments)]).unique()
    if not len(documents) or _any_in(documents, concatenate([judged, catalogue.ids])):
        return None
    found = f"{_none_of(len(documents), 'documents')} is judged"
    refusal = _mismatch(ranges.path, found, _distinct(documents), _distinct(judged), "the judgments have")
    return Unmatched(refusal, documents)


def likely_cause(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, str, str] | None:
    """The way of writing ids by which most of them would match, though none does as they are.

    Args:
        ours: the ids of an output.
        theirs: those of the dataset.

    Returns:
        An id of each side that would match, and what to do; None if no way makes any match.
    """
    ours = [text for text in ours[:_OURS] if len(text) <= _LONGEST]
    theirs = [text for text in theirs[:_THEIRS] if len(text) <= _LONGEST]
    plain = {text: text for text in theirs}
    most, cause = 0, None
    for remedy, rule, of_both in _ways(ours, theirs):
        known = {rule(text): text for text in reversed(theirs)} if of_both else plain
        pairs = [(text, known[written]) for text in ours if (written := rule(text)) in known]
        if len(pairs) > most:
            most, cause = len(pairs), (*pairs[0], remedy)
    return cause


def small_overlap(
    n_queries: int, quality: Quality, others: Sequence[Quality], *, n_judged: int | None = None
) -> str | None:
    """What to know of an output that has little in common with the dataset; None if it has enough.

    Args:
        n_queries: queries of the dataset.
        quality: what the join found.
        others: what it found of the other models' outputs on the dataset.
        n_judged: judged documents among those retrieved; None for predictions.
    """
    found = [*_few_queries(n_queries, quality)]
    judged, beside = quality.judged_at_10, [one.judged_at_10 for one in others if one.judged_at_10 is not None]
    typical = median(beside) if beside else 0.0
    if n_judged == 0 and quality.n_missing_queries < n_queries:
        found.append("none of the documents retrieved is judged for its query")
    elif judged is not None and judged < _HARDLY and typical > 0 and typical >= _TIMES * judged:
        found.append(f"{judged:.2%} of the top 10 is judged, and {typical:.2%} of the other models' (median)")
    return f"small overlap with the dataset: {'; '.join(found)}; check the ids" if found else None


def odd_rankings(n_queries: int, quality: Quality, judgments: Judgments) -> Iterator[str]:
    """What to know of an output that may hold ranks in place of scores, or finds the queries themselves.

    Args:
        n_queries: queries of the dataset.
        quality: what the join found.
        judgments: the dataset's.
    """
    n_own = n_queries - quality.n_missing_queries + quality.n_unjudged_queries
    if quality.n_rank_like == n_own and quality.n_rows >= 2 * n_own > 0:
        yield (
            "the scores of every query are 1, 2, 3 and so on down the file, and the greatest comes first; if they are "
            "ranks, write columns: {rank: score}, with the name of that column"
        )
    if quality.n_self_first > _HALF * n_own and n_judged_themselves(judgments) <= _HALF * n_queries:
        yield (
            f"{quality.n_self_first:,} of {n_own:,} queries find the document of their own id first; if queries are "
            "documents, leave these out with exclude_self: true on the dataset"
        )


def _few_queries(n_queries: int, quality: Quality) -> Iterator[str]:
    """Few queries of the dataset have output; or few of the output's are the dataset's, and these are not most."""
    shared = n_queries - quality.n_missing_queries
    n_own = shared + quality.n_unjudged_queries
    if shared < _FEW * n_queries:
        yield f"{shared:,} of the dataset's {n_queries:,} queries are in the output"
    elif shared < _FEW * n_own and shared < _HALF * n_queries:
        yield f"{shared:,} of the output's {n_own:,} queries are the dataset's"


def _mismatch(path: str, found: str, ours: Sequence[str], theirs: Sequence[str], others: str) -> str:
    """One line on ids that match nothing: an id of each side, and what to do."""
    one, other, remedy = likely_cause(ours, theirs) or (ours[0], theirs[0], "write the ids of both alike")
    return f"{path}: {found}, such as '{one[:_SHOWN]}'; {others} '{other[:_SHOWN]}': {remedy}, {ALLOW_NO_OVERLAP}"


def _none_of(n: int, things: str) -> str:
    return f"none of its {n:,} {things}" if n > 1 else f"none of its {things}"


def _ways(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[str, _Rule, bool]]:
    """What would be done, how an id of the output is written then, and whether one of the dataset is, too."""
    yield "remove the whitespace around ids", str.strip, True
    yield "write ids as text (pandas made floats of them)", _without("", ".0"), False
    yield "write the dataset's ids as text (pandas made floats of them)", "{}.0".format, False
    yield "write the leading zeros on both sides or on neither", lambda text: text.lstrip("0") or text[-1:], True
    yield "write the letters of both in the same case", str.casefold, True
    for end in _beginnings(ours):
        yield f"remove the prefix '{end}'", _without(end), False
    for end in _beginnings(theirs):
        yield f"add the prefix '{end}'", end.__add__, False
    for end in _endings(ours):
        yield f"remove the suffix '{end}'", _without("", end), False
    for end in _endings(theirs):
        yield f"add the suffix '{end}'", _with_suffix(end), False


def _beginnings(ids: Sequence[str]) -> Iterator[str]:
    """How all of them begin, the shortest first; digits alone are left out, for numbers share them by chance."""
    least, greatest = min(ids, default=""), max(ids, default="")  # all others begin as these two do
    shared = takewhile(lambda n: least[:n] == greatest[:n], range(1, min(len(least), _SHOWN) + 1))
    yield from (least[:n] for n in shared if not least[:n].isdigit())


def _endings(ids: Sequence[str]) -> Iterator[str]:
    """How all of them end, likewise."""
    yield from (end[::-1] for end in _beginnings([text[::-1] for text in ids]))


def _without(prefix: str, suffix: str = "") -> _Rule:
    return lambda text: text.removeprefix(prefix).removesuffix(suffix)


def _with_suffix(suffix: str) -> _Rule:
    return lambda text: text + suffix


def _documents(rows: Rows, judgments: Judgments) -> pa.StringArray:
    """The documents of the rows whose query is judged."""
    places = judgments.find(rows.query_ids)
    return rows.take_doc_ids(np.flatnonzero(places[rows.query_codes] < len(judgments.query_ids)))


def _any_in(documents: pa.StringArray, known: pa.StringArray) -> bool:
    return bool(pc.any(pc.is_in(documents, known)).as_py())


def _distinct(documents: pa.StringArray) -> list[str]:
    return documents.unique().to_pylist()  # type: ignore[no-any-return]
