"""One dataset's own files and a model's output on it: read, checked and joined; whole, or one query of it.

A query's block has the same bits cut out and joined alone as among all others; only what is of the whole dataset, its
greatest grade and its number of documents, is taken along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankledger.metrics.block import Bools
from rankledger.metrics.conventions import Conventions
from rankledger.pipeline.data import readers
from rankledger.pipeline.data.catalogue import Catalogue, known_documents
from rankledger.pipeline.data.files import PLAIN, Access, each_file, find_files, suffixes
from rankledger.pipeline.data.join import join_predictions, join_ranking
from rankledger.pipeline.data.judgments import Judgments, hash_pairs, index_judgments
from rankledger.pipeline.data.overlap import find_unmatched, refuse_other_pairs, refuse_other_queries, shares_document
from rankledger.pipeline.data.ranking import order_rows
from rankledger.pipeline.data.readers import format_of, read_judgments, read_trec_ranking
from rankledger.pipeline.errors import InputError, shorten
from rankledger.pipeline.support.arrow import integers, strings
from rankledger.pipeline.types.explanation import QueryList
from rankledger.pipeline.types.inputs import Chunk, Content, Ids, InputFile, Rows
from rankledger.pipeline.types.joined import Groups, Joined

__all__ = [
    "DatasetInput",
    "SingleQuery",
    "Source",
    "TrecFiles",
    "content_of",
    "describe",
    "exists",
    "group_queries",
    "read_dataset",
    "read_output",
    "read_trec_files",
    "returns_any",
    "size_of",
]

_MOST_VALUES = 50  # of a slice column: a column of more is hardly one of categories, and nobody reads as many lines


def group_queries(
    query_ids: Sequence[str] | npt.NDArray[np.object_], queries: Ids, cluster: str | None, slices: Sequence[str]
) -> Groups:
    """The clusters and slices of these queries.

    Args:
        query_ids: (Q,) ids, all of them in the table.
        queries: the queries table, with the texts of the columns.
        cluster: the column whose queries of equal text are one cluster; None where each query stands for itself.
        slices: the columns each text of which makes a slice; a query without text is in none of the column's.

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
            message = (
                f"'{column}' has a slice '{shorten(both[0])}', and so has another column; rename one of the columns"
            )
            raise InputError(f"{queries.path}: {message}")
        members |= found
    return Groups(clusters=None if cluster is None else _clusters(queries, cluster, rows), slices=members)


def _clusters(queries: Ids, column: str, rows: Sequence[int]) -> npt.NDArray[np.int64]:
    names = [queries.texts[column][row] for row in rows]
    if None in names:
        row = rows[names.index(None)]
        found = f"query '{shorten(queries.ids[row].as_py())}' has no {column} ({queries.place(row)})"
        raise InputError(f"{queries.path}: {found}, which is what queries are clustered by; fill it")
    codes = {name: code for code, name in enumerate(sorted({name for name in names if name is not None}))}
    return np.array([codes[name] for name in names if name is not None], dtype=np.int64)


def _slices(queries: Ids, column: str, rows: Sequence[int]) -> dict[str, Bools]:
    names = np.array([queries.texts[column][row] for row in rows], dtype=object)
    distinct = sorted({name for name in names if name is not None})
    if len(distinct) > _MOST_VALUES:
        found = f"'{column}' has {len(distinct):,} values, and at most {_MOST_VALUES} make slices"
        raise InputError(f"{queries.path}: {found}; bin them into a column of their own")
    return {f"{column}={name}": names == name for name in distinct}


@dataclass(frozen=True)
class Source:
    """An input as the config names it.

    Attributes:
        path: a file, a glob, a folder of parts or a URL.
        format: its format; told by its name where None.
        columns: our column names to the file's, where they differ.
        access: what it may be beside files of the usual size.
    """

    path: str
    format: str | None = None
    columns: Mapping[str, str] | None = None
    access: Access = PLAIN

    @property
    def layout(self) -> tuple[str, str | None, Mapping[str, str] | None, Access]:
        """What every reader asks first."""
        return self.path, self.format, self.columns, self.access


@dataclass(frozen=True, eq=False)
class DatasetInput:
    """A dataset's own files as they were read.

    Attributes:
        kind: `rankings` or `ratings`.
        judgments: its judgments or ratings.
        catalogue: what is known of its documents.
        files: what was read, by role: `judgments`, `ratings`, `queries`, `documents`, `interactions`.
        groups: the clusters and slices of its queries.
    """

    kind: str
    judgments: Judgments
    catalogue: Catalogue
    files: Mapping[str, tuple[InputFile, ...]]
    groups: Groups = field(default_factory=Groups)

    @property
    def query_ids(self) -> npt.NDArray[np.object_]:
        """(Q,) the judged queries, in the order of their ids as UTF-8 bytes."""
        return self.judgments.query_ids

    @property
    def n_documents(self) -> float:
        """Documents in the catalogue, NaN if unknown."""
        return float(self.catalogue.n_documents) or np.nan


def read_dataset(
    judgments: Source,
    *,
    kind: str,
    queries: Source | None,
    documents: Source | None,
    interactions: Source | None = None,
    features: Sequence[str] = (),
    keep_first: bool,
    conventions: Conventions,
    subtopics: bool = False,
    cluster: str | None = None,
    slices: Sequence[str] = (),
) -> DatasetInput:
    """A dataset's own files.

    Args:
        judgments: its judgments, or its ratings.
        kind: `rankings` or `ratings`, what the judgments are of.
        queries: its queries table, in which every judged query must stand.
        documents: its catalogue.
        interactions: what its queries, and others, consumed before.
        features: columns of the documents that measures ask for.
        keep_first: whether a pair that is judged twice keeps its first judgment.
        conventions: say whether a relevance may be negative.
        subtopics: whether the judgments are of subtopics.
        cluster: the column of the queries table whose queries of equal text are drawn as one.
        slices: the columns of it each text of which makes a slice.

    Raises:
        InputError: a file is missing or malformed, a judged query is not in the queries table or has no cluster there,
            or a relevance is negative where that is an error.
    """
    role = "ratings" if kind == "ratings" else "judgments"
    where = judgments.layout
    rows = readers.read_ratings(*where) if kind == "ratings" else readers.read_judgments(*where, subtopics=subtopics)
    if role == "judgments" and conventions.negative_grades == "error" and rows.values.min() < 0:
        row = int(np.flatnonzero(rows.values < 0)[0])
        raise InputError(f"{rows.path}: relevance {rows.values[row]:g} ({rows.place(row)}) is negative; fix it")
    files = {role: rows.files}
    indexed = index_judgments(rows, keep_first=keep_first)
    groups = Groups()
    if queries is not None:
        further = [*dict.fromkeys(column for column in (cluster, *slices) if column is not None)]
        table = readers.read_queries(*queries.layout, further=further)
        _refuse_unknown_queries(rows, table)
        files["queries"] = table.files
        if further:
            groups = group_queries(indexed.query_ids, table, cluster, slices)
    listed = consumed = None
    if documents is not None:
        listed = readers.read_documents(*documents.layout, features=features)
        files["documents"] = listed.files
    if interactions is not None:
        consumed = readers.read_interactions(*interactions.layout)
        files["interactions"] = consumed.files
    return DatasetInput(kind, indexed, known_documents(listed, consumed, indexed.query_ids), files, groups)


def read_output(
    dataset: DatasetInput,
    output: Source,
    conventions: Conventions,
    *,
    with_catalogue: bool,
    depth: float = float("inf"),
    compared: float = 0.0,
    allow_no_overlap: bool = False,
) -> tuple[tuple[InputFile, ...], Joined]:
    """One model's output on a dataset: the files it consists of, and what the join gives.

    Args:
        dataset: the dataset.
        output: the model's rankings or predictions.
        conventions: say what orders a ranking, and whether it may be incomplete.
        with_catalogue: whether a measure asks which documents were recommended.
        depth: the ranks down to which it asks.
        compared: the ranks down to which a measure compares rankings with another model's; 0 where none does.
        allow_no_overlap: whether it may have no query, document or pair of the dataset.

    Raises:
        InputError: the output is missing or malformed, or has no query or no rated pair of the dataset.
    """
    if dataset.kind == "ratings":
        rows = readers.read_predictions(*output.layout)
        joined = join_predictions(dataset.judgments, rows)
        if joined.missing.all() and not allow_no_overlap:
            refuse_other_queries(rows.path, rows.query_ids, dataset.query_ids, what="rated")
            refuse_other_pairs(dataset.judgments, rows)
        return rows.files, joined
    rows = _read_ranking(output, conventions)
    if conventions.missing_queries == "error" and not allow_no_overlap:  # the join would refuse it, and tell less
        refuse_other_queries(rows.path, rows.query_ids, dataset.query_ids)
    joined = join_ranking(
        dataset.judgments,
        rows,
        conventions,
        n_documents=dataset.n_documents,
        catalogue=dataset.catalogue if with_catalogue else None,
        depth=depth,
        compared=compared,
    )
    if not allow_no_overlap and joined.hits is not None and not joined.hits.queries.size:
        refuse_other_queries(rows.path, rows.query_ids, dataset.query_ids)
        joined = replace(joined, unmatched=find_unmatched(dataset.judgments, dataset.catalogue, rows))
    return rows.files, joined


def returns_any(output: Source, documents: pa.StringArray, conventions: Conventions) -> bool:
    """Whether a ranking has any of these documents.

    Raises:
        InputError: it is missing or malformed.
    """
    return shares_document(_read_ranking(output, conventions), documents)


def _read_ranking(output: Source, conventions: Conventions) -> Rows:
    by: Literal["rank", "score"] = "rank" if conventions.ties == "rank_column" else "score"
    return readers.read_ranking(*output.layout, by=by)


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
    suffix, compression = suffixes(name)
    return format or format_of(suffix), compression


Ints = npt.NDArray[np.int64]


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
        _, rows = self._read("rank" if conventions.ties == "rank_column" else "score")
        n_documents = float(self.dataset.catalogue.n_documents) or float("nan")
        joined = join_ranking(self._judgments, rows, conventions, n_documents=n_documents)
        own = np.flatnonzero(_is_of(rows, self.query_id))
        ranks, tie_first, tie_last = order_rows(rows, conventions.ties, conventions.score_precision).ranks(own)
        order = np.argsort(ranks)
        judged = self._judgments
        return QueryList(
            block=joined.blocks[0],
            max_grade=self.dataset.judgments.max_grade,
            retrieved=tuple(rows.take_doc_ids(own[order]).to_pylist()),
            ties=tuple(zip(tie_first[order].tolist(), tie_last[order].tolist(), strict=True)),
            judged=tuple(judged.rows.take_doc_ids(np.arange(len(judged.queries))).to_pylist()),
            grades=tuple(judged.rows.values.tolist()),
            kept=tuple(judged.kept.tolist()),
        )

    def files(self, conventions: Conventions) -> tuple[InputFile, ...]:
        """The files of the output that are read under these conventions."""
        return self._read("rank" if conventions.ties == "rank_column" else "score")[0]

    def _paired(self) -> QueryList:
        _, rows = self._read("score")
        joined = join_predictions(self._judgments, rows)
        rated = set(self._judgments.rows.take_doc_ids(self._judgments.kept).to_pylist())
        own = np.flatnonzero(_is_of(rows, self.query_id))
        by_hash = own[np.argsort(hash_pairs(rows, np.zeros(len(rows.query_ids), dtype=np.int64))[own])]  # as they join
        found = [doc_id for doc_id in rows.take_doc_ids(by_hash).to_pylist() if doc_id in rated]
        return QueryList(joined.blocks[0], self.dataset.judgments.max_grade, tuple(found))

    def _read(self, by: Literal["rank", "score"]) -> tuple[tuple[InputFile, ...], Rows]:
        """The files of the output, and the query's rows of it."""
        return self._by_rank if by == "rank" else self._by_score

    @cached_property
    def _by_rank(self) -> tuple[tuple[InputFile, ...], Rows]:
        rows = readers.read_ranking(*self.output.layout, by="rank")
        return rows.files, _cut_out(rows, self.query_id)

    @cached_property
    def _by_score(self) -> tuple[tuple[InputFile, ...], Rows]:
        read = readers.read_predictions if self.dataset.kind == "ratings" else readers.read_ranking
        rows = read(*self.output.layout)
        return rows.files, _cut_out(rows, self.query_id)

    @cached_property
    def _judgments(self) -> Judgments:
        return index_judgments(_cut_out(self.dataset.judgments.rows, self.query_id), keep_first=self.keep_first)


def _is_of(rows: Rows, query_id: str) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = rows.query_codes == (
        rows.query_ids.index(query_id) if query_id in rows.query_ids else -1
    )
    return found


def _cut_out(rows: Rows, query_id: str) -> Rows:
    """The rows of one query; where it has none, a row of another, which a join passes over, for none is no input."""
    own = np.flatnonzero(_is_of(rows, query_id))
    taken = own if own.size else np.zeros(1, dtype=np.int64)
    name = query_id if own.size else rows.query_ids[rows.query_codes[0]]
    chunk = Chunk(np.zeros(len(taken), dtype=np.int32), rows.take_doc_ids(taken), rows.values[taken])
    subtopics = None if rows.subtopics is None else rows.subtopics.take(integers(taken))
    return replace(
        rows, query_ids=[name], chunks=(chunk,), place=lambda row: rows.place(int(taken[row])), subtopics=subtopics
    )


_TAG = 5  # its place among the fields of a line
_TYPED = Access(streams=True)  # both files are named on a command line


@dataclass(frozen=True, eq=False)
class TrecFiles:
    """What both files hold.

    Attributes:
        joined: the judged documents that each query retrieved.
        tag: the name of the output, from the ranking's last line; bytes that are no UTF-8 are lone surrogates.
    """

    joined: Joined
    tag: str


def read_trec_files(qrels: str, ranking: str, conventions: Conventions, *, n_documents: int) -> TrecFiles:
    """Judgments and a ranking, whatever their files are called.

    Args:
        qrels: the path of the judgments; either may be `-`, standard input, or a pipe.
        ranking: the path of the ranking.
        conventions: say how scores are rounded and ties are broken.
        n_documents: documents in the catalogue.

    Raises:
        InputError: a file is missing or malformed, a relevance is not a whole number, which trec_eval would cut down to
            one, or the ranking's last line names no output.
    """
    judged = read_judgments(qrels, "trec", access=_TYPED)
    _refuse_fractions(judged)
    ranked, last = read_trec_ranking(ranking, _TYPED)
    judgments = index_judgments(judged, remedy="keep one")
    joined = join_ranking(judgments, ranked, conventions, n_documents=float(n_documents))
    return TrecFiles(joined, _tag(ranking, last))


def _refuse_fractions(judged: Rows) -> None:
    fractions = np.flatnonzero(judged.values != np.trunc(judged.values))
    if fractions.size:
        row = int(fractions[0])
        found = f"relevance {judged.values[row]:g} ({judged.place(row)}) is not a whole number"
        raise InputError(f"{judged.path}: {found}, and trec_eval would cut off the fraction; fix it")


def _tag(path: str, fields: Sequence[bytes]) -> str:
    if len(fields) <= _TAG:
        raise InputError(f"{path}: the last line has no sixth field, which names the output; add it")
    return fields[_TAG].decode("utf-8", errors="surrogateescape")
