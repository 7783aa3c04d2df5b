"""One dataset's own files, and one model's output on it: read, checked and joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from pipeline.arrow import strings
from pipeline.data import readers
from pipeline.data.join import Judgments, index_judgments, join_predictions, join_ranking
from pipeline.errors import InputError
from pipeline.tables import Ids, InputFile, Joined, Rows

__all__ = ["DatasetInput", "Source", "read_dataset", "read_output"]


@dataclass(frozen=True)
class Source:
    """An input as the config names it.

    Attributes:
        path: a file, a glob, a folder of parts or a URL.
        format: its format; told by its name where None.
        columns: our column names to the file's, where they differ.
    """

    path: str
    format: str | None = None
    columns: Mapping[str, str] | None = None


@dataclass(frozen=True, eq=False)
class DatasetInput:
    """A dataset's own files as they were read.

    Attributes:
        kind: `rankings` or `ratings`.
        judgments: its judgments or ratings.
        documents: its catalogue, if it has one.
        files: what was read, by role: `judgments`, `ratings`, `queries`, `documents`.
    """

    kind: str
    judgments: Judgments
    documents: Ids | None
    files: Mapping[str, tuple[InputFile, ...]]


def read_dataset(
    judgments: Source, *, kind: str, queries: Source | None, documents: Source | None, keep_first: bool
) -> DatasetInput:
    """A dataset's own files.

    Args:
        judgments: its judgments, or its ratings.
        kind: `rankings` or `ratings`, what the judgments are of.
        queries: its queries table, in which every judged query must stand.
        documents: its catalogue.
        keep_first: whether a pair that is judged twice keeps its first judgment.

    Raises:
        InputError: a file is missing or malformed, or a judged query is not in the queries table.
    """
    reader, role = (readers.read_ratings, "ratings") if kind == "ratings" else (readers.read_judgments, "judgments")
    rows = reader(judgments.path, judgments.format, judgments.columns)
    files = {role: rows.files}
    if queries is not None:
        table = readers.read_queries(queries.path, queries.format, queries.columns)
        _refuse_unknown_queries(rows, table)
        files["queries"] = table.files
    catalogue = None
    if documents is not None:
        catalogue = readers.read_documents(documents.path, documents.format, documents.columns)
        files["documents"] = catalogue.files
    return DatasetInput(kind, index_judgments(rows, keep_first=keep_first), catalogue, files)


def read_output(dataset: DatasetInput, output: Source, *, with_catalogue: bool) -> tuple[tuple[InputFile, ...], Joined]:
    """One model's output on a dataset: the files it consists of, and what the join gives.

    Args:
        dataset: the dataset.
        output: the model's rankings or predictions.
        with_catalogue: whether a measure asks which documents of the catalogue were recommended.

    Raises:
        InputError: the output is missing or malformed.
    """
    if dataset.kind == "ratings":
        rows = readers.read_predictions(output.path, output.format, output.columns)
        return rows.files, join_predictions(dataset.judgments, rows)
    rows = readers.read_ranking(output.path, output.format, output.columns)
    n_documents = float("nan") if dataset.documents is None else float(len(dataset.documents.ids))
    catalogue = dataset.documents if with_catalogue else None
    return rows.files, join_ranking(dataset.judgments, rows, n_documents=n_documents, catalogue=catalogue)


def _refuse_unknown_queries(judgments: Rows, queries: Ids) -> None:
    judged = strings(judgments.query_ids)
    missing = judged.filter(pc.invert(pc.is_in(judged, queries.ids)))
    if len(missing):
        raise InputError(
            f"{queries.path}: of the queries judged in {judgments.path} it lacks {len(missing):,}, such as "
            f"'{missing[0].as_py()}'; complete it or leave it out"
        )
