"""One dataset's own files, and one model's output on it: read, checked and joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from metrics.conventions import Conventions
from pipeline.arrow import strings
from pipeline.data import readers
from pipeline.data.catalogue import Catalogue, known_documents
from pipeline.data.files import PLAIN, Access
from pipeline.data.groups import group_queries
from pipeline.data.join import join_predictions, join_ranking
from pipeline.data.judgments import Judgments, index_judgments
from pipeline.data.overlap import find_unmatched, refuse_other_pairs, refuse_other_queries, shares_document
from pipeline.errors import InputError, shorten
from pipeline.tables import Groups, Ids, InputFile, Joined, Rows

__all__ = ["DatasetInput", "Source", "read_dataset", "read_output", "returns_any"]


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
        """Documents in the catalogue, NaN where it is not known."""
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
        raise InputError(f"{rows.path}: relevance {rows.values[row]:g} ({rows.place(row)}) is negative; mend it")
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
