"""Read, check and join one dataset's files and a model's output on it, also of a few queries alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.block import Bools
from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.cache import Key
from rankledger.pipeline.data.catalogue import Catalogue, known_documents
from rankledger.pipeline.data.checks import (
    any_in,
    find_unmatched,
    mismatch,
    none_of,
    refuse_other_pairs,
    refuse_other_queries,
    similar_ids,
)
from rankledger.pipeline.data.files import suffixes
from rankledger.pipeline.data.formats import format_key, format_of
from rankledger.pipeline.data.join import (
    index_pairs,
    join_predictions,
    match_exclusions,
    order_rows,
    own_documents,
    seen_pairs,
)
from rankledger.pipeline.data.joined import HEAD, Groups, JudgedOutput, QueryList
from rankledger.pipeline.data.judgments import Judgments, PairIndex, hash_pairs, index_judgments
from rankledger.pipeline.data.locate import each_file, files_there, find_files
from rankledger.pipeline.data.parts import PART_ROWS
from rankledger.pipeline.data.rankings import RankingJoin, join_ranking
from rankledger.pipeline.data.rows import Ids, InputFile, Rows
from rankledger.pipeline.support.arrow import strings
from rankledger.pipeline.support.errors import InputError, shorten

_MOST_VALUES = 50  # of a slice column: one with more is rarely of categories, and nobody reads so many lines


def group_queries(
    query_ids: Sequence[str] | npt.NDArray[np.object_], queries: Ids, cluster: str | None, slices: Sequence[str]
) -> Groups:
    """Return the clusters and slices of these queries, all of which are in the table."""
    places = {query_id: row for row, query_id in enumerate(queries.ids.to_pylist())}
    rows = [places[query_id] for query_id in query_ids]
    members: dict[str, Bools] = {}
    for column in slices:
        column_slices = _slices(queries, column, rows)
        both = sorted(members.keys() & column_slices.keys())
        if both:
            message = f"'{column}' has a slice '{shorten(both[0])}', as has another column; rename one of them"
            raise InputError(f"{queries.path}: {message}")
        members |= column_slices
    columns = {name: [texts[row] for row in rows] for name, texts in queries.texts.items() if name != cluster}
    return Groups(None if cluster is None else _clusters(queries, cluster, rows), members, columns)


def _clusters(queries: Ids, column: str, rows: Sequence[int]) -> npt.NDArray[np.int64]:
    names = [queries.texts[column][row] for row in rows]
    if None in names:
        row = rows[names.index(None)]
        problem = f"query '{shorten(queries.ids[row].as_py())}' has no {column} ({queries.place(row)})"
        raise InputError(f"{queries.path}: {problem}, the cluster column; fill it")
    codes = {name: code for code, name in enumerate(sorted({name for name in names if name is not None}))}
    return np.array([codes[name] for name in names if name is not None], dtype=np.int64)


def _slices(queries: Ids, column: str, rows: Sequence[int]) -> dict[str, Bools]:
    names = np.array([queries.texts[column][row] for row in rows], dtype=object)
    distinct = sorted({name for name in names if name is not None})
    if len(distinct) > _MOST_VALUES:
        problem = f"'{column}' has {len(distinct):,} values, and at most {_MOST_VALUES} make slices"
        raise InputError(f"{queries.path}: {problem}; bin them into a column of their own")
    return {f"{column}={name}": names == name for name in distinct}


@dataclass(frozen=True, eq=False)
class DatasetInput:
    """Contents of a dataset's own files."""

    kind: str  # `rankings` or `ratings`
    judgments: Judgments
    catalogue: Catalogue
    # by role: `judgments`, `ratings`, `queries`, `documents`, `interactions`, `exclude`
    files: Mapping[str, tuple[InputFile, ...]]
    groups: Groups = field(default_factory=Groups)
    excluded: PairIndex | None = None  # documents left out of rankings, or seen in training
    remarks: tuple[str, ...] = ()

    @property
    def query_ids(self) -> npt.NDArray[np.object_]:
        """(Q,) judged queries in the order of their ids as UTF-8 bytes."""
        return self.judgments.query_ids

    @property
    def n_documents(self) -> float:
        return float(self.catalogue.known.n_documents) or np.nan


def read_dataset(source: PlannedDataset, conventions: Conventions, folder: Path | None = None) -> DatasetInput:
    """Read a dataset's own files. Many documents go to a temporary file in `folder`.

    Raises:
        InputError: A file is missing or malformed, a judged query is not in the queries table or has no cluster, a
            relevance is negative where that is an error, or no query of `exclude` or `interactions` is judged.
    """
    assert source.judgments is not None, "what has judgments or ratings"
    if source.kind == "ratings":
        role, rows = "ratings", readers.read_pairs(source.judgments, "rating")
    else:
        role, rows = "judgments", readers.read_judgments(source.judgments, subtopics=source.subtopics, folder=folder)
    if role == "judgments" and conventions.negative_grades == "error" and rows.values.min() < 0:
        row = int(np.flatnonzero(rows.values < 0)[0])
        raise InputError(f"{rows.path}: relevance {rows.values[row]:g} ({rows.place(row)}) is negative; fix it")
    read: dict[str, Rows | Ids] = {role: rows}
    indexed = index_judgments(rows, keep_first=source.keep_first)
    indexed = replace(indexed, weights=_weights(source, rows))
    rows = indexed.rows  # those that were read are let go
    groups = Groups()
    documents = interactions = None
    if source.queries is not None:
        table = readers.read_queries(source.queries, further=source.group_columns, others=source.search_slices)
        _refuse_unknown_queries(rows, table)
        groups = group_queries(indexed.query_ids, table, source.cluster, source.slices)
        read["queries"] = table
    if source.documents is not None:
        read["documents"] = documents = readers.read_documents(source.documents, features=source.features)
    if source.interactions is not None:
        read["interactions"] = interactions = readers.read_pairs(source.interactions)
    pairs, remarks = [], list[str]()
    if source.exclude is not None:
        read["exclude"] = exclude = readers.read_pairs(source.exclude)
        remarks += _unjudged_exclusions(exclude, indexed)
        pairs.append(exclude)
    if source.exclude_self:
        pairs.append(own_documents(indexed.query_ids.tolist()))
    if interactions is not None and source.kind == "rankings":
        pairs.append(seen_pairs(interactions, source.seen))
        if source.seen != "count":
            _list_unjudged(interactions, indexed, "seen")
    all_documents = known_documents(documents, interactions, indexed.query_ids)
    catalogue = all_documents.with_judged(indexed) if source.judged_documents else all_documents
    excluded = index_pairs(indexed, pairs)
    layouts = [remark for table in read.values() for remark in table.remarks]
    return DatasetInput(
        source.kind,
        indexed,
        catalogue,
        {role: table.files for role, table in read.items()},
        groups,
        excluded,
        tuple(dict.fromkeys([*layouts, *remarks])),
    )


def _weights(source: PlannedDataset, rows: Rows) -> npt.NDArray[np.floating] | None:
    if source.kind != "ratings" or source.judgments is None or "weight" not in source.judgments.columns:
        return None
    weights = readers.read_pairs(source.judgments, "weight")
    if weights.files != rows.files:
        raise InputError(f"{rows.path}: changed while it was read; evaluate again when it is complete")
    return weights.values


def judged_dataset(rows: Rows, excluded: Rows | None, *, keep_first: bool) -> DatasetInput:
    """Return a dataset of rankings of which only judgments and excluded documents are needed."""
    indexed = index_judgments(rows, keep_first=keep_first)
    catalogue = known_documents(None, None, indexed.query_ids)
    pairs = None if excluded is None else index_pairs(indexed, [excluded])
    return DatasetInput("rankings", indexed, catalogue, {}, excluded=pairs)


def _unjudged_exclusions(pairs: Rows, judgments: Judgments) -> Iterator[str]:
    others = _list_unjudged(pairs, judgments, "exclude")
    if others:
        share = f"{len(others):,} of the {len(pairs.query_ids):,} queries with documents to exclude"
        yield f"{pairs.path}: {share} {'is' if len(others) == 1 else 'are'} not judged, such as '{shorten(others[0])}'"


def _list_unjudged(pairs: Rows, judgments: Judgments, key: str) -> list[str]:
    is_judged = judgments.find(pairs.query_ids) < len(judgments.query_ids)
    others = [query_id for query_id, judged in zip(pairs.query_ids, is_judged, strict=True) if not judged]
    if len(others) == len(pairs.query_ids):
        problem = f"{none_of(len(others), 'queries')} is judged"
        judged_ids = judgments.query_ids.tolist()
        raise InputError(mismatch(pairs.path, problem, others, judged_ids, "the judgments have", f"or remove `{key}`"))
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
) -> JudgedOutput:
    """Read one model's output and join it with the dataset.

    `depth` counts the ranks down to which a measure needs the recommended documents, and `compared` those down to which
    rankings are compared with another model's. `of_probabilities` is a measure that takes only predictions from 0 to 1.
    `n_rows` is the approximate size of a part, of which `at_a_time` are parsed in parallel. Scattered rows go to
    `folder`.

    Raises:
        InputError: The output is missing or malformed, has nothing in common with the dataset, or predicts no
            probability where one is needed.
    """
    if dataset.kind == "ratings":
        rows = readers.read_pairs(output, "prediction")
        if of_probabilities:
            _refuse_other_than_probabilities(rows, of_probabilities)
        joined = join_predictions(dataset.judgments, rows)
        if joined.missing.all() and not allow_no_overlap:
            refuse_other_queries(rows.path, rows.query_ids, dataset.query_ids, what="rated")
            refuse_other_pairs(dataset.judgments, rows)
        places = dataset.judgments.find(rows.query_ids)
        others = [name for name, place in zip(rows.query_ids, places, strict=True) if place >= len(joined.query_ids)]
        absent = joined.query_ids[joined.missing].tolist()
        alike = similar_ids(others, absent, "queries", "without output", len(joined.query_ids) - len(absent))
        quality = replace(joined.quality, look_alikes=alike)
        return replace(joined, quality=quality, remarks=rows.remarks, files=rows.files)
    ranges = readers.RankingRanges(output, by=row_order(conventions), n_rows=n_rows)
    depths = (depth if with_catalogue else 0.0), compared
    join = RankingJoin(dataset.judgments, conventions, depths, dataset.excluded)
    join.add_ranges(ranges, folder, at_a_time)
    if not allow_no_overlap and not join.knows_query and conventions.missing_queries == "error":
        _refuse_other_rows(ranges, dataset)  # the join's message would say less
    joined = join.joined(output.path, dataset.n_documents, dataset.catalogue if with_catalogue else None)
    joined = replace(joined, files=tuple(ranges.files))
    if not allow_no_overlap and joined.hits is not None and not joined.hits.ranks.size:
        _refuse_other_rows(ranges, dataset)
        joined = replace(joined, unmatched=find_unmatched(dataset.judgments, dataset.catalogue, ranges))
    return joined


def returns_any(output: Source, documents: pa.StringArray, conventions: Conventions) -> bool:
    """Return whether a ranking has any of these documents."""
    ranges = readers.RankingRanges(output, by=row_order(conventions))
    are_there = [any_in(chunk.doc_ids, documents) for rows in ranges for chunk in rows.chunks]
    return any(are_there)


def row_order(conventions: Conventions) -> Literal["rank", "score"]:
    """Return the column that orders the documents of a ranking under these conventions."""
    return "rank" if conventions.ties == "rank_column" else "score"


def _refuse_other_rows(ranges: readers.RankingRanges, dataset: DatasetInput) -> None:
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
    """Return whether there is any file."""
    try:
        return bool(find_files(source))
    except InputError:
        return False


def is_missing(source: Source) -> bool:
    """Return whether there is nothing, not even an unreadable file."""
    try:
        return not (files_there(source) or Path(source.path).is_dir())
    except InputError:
        return False


def size_of(source: Source) -> int:
    """Return the bytes of all files of an input."""
    return sum(file.size for file in find_files(source))


def describe(source: Source) -> tuple[InputFile, ...]:
    """Return the files of an input with their digests, in order."""
    return tuple(file.describe() for file in each_file(source))


def content_of(source: Source, files: Sequence[InputFile]) -> Key:
    """Return what decides the rows that are read from the files of an input, and the bytes of all files."""
    layouts = (suffixes(file.path) for file in files)
    read = [
        (file.digest, format_key(source.format or format_of(suffix)), compression)
        for file, (suffix, compression) in zip(files, layouts, strict=True)
    ]
    return {"files": read, "size": sum(file.size for file in files), "columns": sorted(source.columns.items())}


def _refuse_other_than_probabilities(predictions: Rows, measure: str) -> None:
    outside = np.flatnonzero((predictions.values < 0) | (predictions.values > 1))
    if outside.size:
        row = int(outside[0])
        problem = f"prediction {predictions.values[row]:g} ({predictions.place(row)}) is not from 0 to 1"
        raise InputError(
            f"{predictions.path}: {problem}, and {measure} takes probabilities; scale it, or remove {measure}"
        )


_LARGEST = 64_000_000  # bytes of an input that is read again: a fifth of a second
_TEXTS = {"query_id": ("text", "query", "title", "question"), "doc_id": ("title", "name", "text")}


def read_titles(
    source: Source, files: Sequence[InputFile], key: Literal["query_id", "doc_id"], ids: Collection[str]
) -> dict[str, str]:
    """Return the texts of some queries or the titles of some documents.

    Empty if the table is large or changed. Uses the first of the columns `text`, `query`, `title`, `question`, or of
    `title`, `name`, `text`.
    """
    with suppress(InputError):
        if ids and _is_small(source, files):
            read_files, texts = readers.read_texts(source, key, ids, _TEXTS[key])
            if _same(read_files, files):
                return texts
    return {}


def top_documents(
    dataset: DatasetInput,
    output: Source,
    files: Sequence[InputFile],
    query_ids: Collection[str],
    conventions: Conventions,
    depth: int,
) -> dict[str, tuple[str, ...]] | None:
    """Return the first documents of each query in a model's rankings, judged or not.

    None if the rankings are gone, have changed, or are large (64 MB).
    """
    with suppress(InputError):
        if _is_small(output, files):
            rows = readers.read_ranking(output, by=row_order(conventions))
            if _same(rows.files, files):
                return dict(_first(dataset, rows, query_ids, conventions, depth))
    return None


def _first(
    dataset: DatasetInput, rows: Rows, query_ids: Collection[str], conventions: Conventions, depth: int
) -> Iterator[tuple[str, tuple[str, ...]]]:
    is_wanted = np.array([query_id in query_ids for query_id in rows.query_ids])
    chosen = np.flatnonzero(is_wanted[rows.query_codes])
    if not chosen.size:
        return
    rows = rows.take(chosen)
    if dataset.excluded is not None:
        hashes = hash_pairs(rows, dataset.judgments.find(rows.query_ids))
        rows = rows.without(match_exclusions(dataset.excluded, rows, hashes)[0])
    if not rows.chunks:
        return
    ordering = order_rows(rows, conventions.ties, conventions.score_precision)
    for code, query_id in enumerate(rows.query_ids):
        places = np.flatnonzero(rows.query_codes == code)
        if places.size:
            first = places[np.argsort(ordering.ranks(places)[0])[:depth]]
            yield query_id, tuple(rows.take_doc_ids(first).to_pylist())


def _is_small(source: Source, files: Sequence[InputFile]) -> bool:
    n_bytes = sum(file.size for file in files)
    return source.held is not None or (n_bytes <= _LARGEST and size_of(source) == n_bytes)


def _same(found: Sequence[InputFile], files: Sequence[InputFile]) -> bool:
    return [file.digest for file in found] == [file.digest for file in files]


@dataclass(frozen=True, eq=False)
class SingleQuery:
    """One query of a dataset and a model's output on it."""

    dataset: DatasetInput
    output: Source
    query_id: str
    keep_first: bool
    _rows: dict[str, Rows] = field(default_factory=dict, init=False)

    def listed(self, conventions: Conventions) -> QueryList:
        if self.dataset.kind == "ratings":
            return self._join_pairs()
        rows, judged = self._read(row_order(conventions)), self._judgments
        excluded = None if self.dataset.excluded is None else index_pairs(judged, [self.dataset.excluded.rows])
        joined = join_ranking(judged, rows, conventions, n_documents=self.dataset.n_documents, excluded=excluded)
        if excluded is not None:
            out, *_ = match_exclusions(excluded, rows, hash_pairs(rows, judged.find(rows.query_ids)))
            rows = rows.without(out)
        n_retrieved = len(_find_rows(rows, self.query_id)) if rows.chunks else 0
        retrieved, ties = self._rank_first(rows, conventions) if n_retrieved else ((), ())
        return QueryList(
            block=joined.blocks[0],
            max_grade=self.dataset.judgments.max_grade,
            n_retrieved=n_retrieved,
            retrieved=retrieved,
            ties=ties,
            judged=tuple(judged.rows.take_doc_ids(np.arange(len(judged.grades))).to_pylist()),
            grades=tuple(judged.grades.tolist()),
            kept=tuple(judged.kept.tolist()),
            n_excluded=joined.quality.n_excluded or 0,
            n_seen=joined.quality.n_seen or 0,
        )

    def _rank_first(self, rows: Rows, conventions: Conventions) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
        n_named = HEAD + 1 + len(self._judgments.grades)
        ordering = order_rows(rows, conventions.ties, conventions.score_precision)
        places = ordering.find_first(n_named)
        ranks, tie_first, tie_last = ordering.ranks(places)
        order = np.argsort(ranks)[:n_named]
        ties = tuple(zip(tie_first[order].tolist(), tie_last[order].tolist(), strict=True))
        return tuple(rows.take_doc_ids(places[order]).to_pylist()), ties

    def files(self, conventions: Conventions) -> tuple[InputFile, ...]:
        return self._read(row_order(conventions)).files

    def _join_pairs(self) -> QueryList:
        rows = self._read("score")
        joined = join_predictions(self._judgments, rows)
        rated = set(self._judgments.rows.take_doc_ids(self._judgments.kept).to_pylist())
        places = _find_rows(rows, self.query_id)
        by_hash = places[
            np.argsort(hash_pairs(rows, np.zeros(len(rows.query_ids), dtype=np.int64))[places])
        ]  # as they join
        names = [doc_id for doc_id in rows.take_doc_ids(by_hash).to_pylist() if doc_id in rated]
        return QueryList(joined.blocks[0], self.dataset.judgments.max_grade, len(names), tuple(names))

    def _read(self, by: Literal["rank", "score"]) -> Rows:
        if by not in self._rows:
            rated = self.dataset.kind == "ratings"
            rows = readers.read_pairs(self.output, "prediction") if rated else readers.read_ranking(self.output, by=by)
            self._rows[by] = _cut_out(rows, self.query_id)
        return self._rows[by]

    @cached_property
    def _judgments(self) -> Judgments:
        judged = self.dataset.judgments
        judgments = index_judgments(_cut_out(judged.rows, self.query_id), keep_first=self.keep_first)
        if judged.weights is None:
            return judgments
        return replace(judgments, weights=judged.weights[_find_rows(judged.rows, self.query_id)])


def _find_rows(rows: Rows, query_id: str) -> npt.NDArray[np.int64]:
    return np.flatnonzero(rows.query_codes == (rows.query_ids.index(query_id) if query_id in rows.query_ids else -1))


def _cut_out(rows: Rows, query_id: str) -> Rows:
    places = _find_rows(rows, query_id)
    return rows.take(places if places.size else np.zeros(1, dtype=np.int64))
