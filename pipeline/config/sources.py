"""Inputs as a plan names them: files, objects in memory, and how both are read."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, Self, TypeAlias

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "trec": "trec:TREC",
        "tsv": "delimited:TSV",
        "csv": "delimited:CSV",
        "jsonl": "json:JSONL",
        "json": "json:JSON",
        "parquet": "parquet:PARQUET",
        "inspect": "tools:INSPECT",
        "lm_eval": "tools:LM_EVAL",
        "mlflow": "tools:MLFLOW",
        "promptfoo": "tools:PROMPTFOO",
        "every_eval_ever": "tools:EVERY_EVAL_EVER",
        "nuggets": "tools:NUGGETS",
        "citations": "tools:CITATIONS",
    }
)
"""Module of `pipeline/data/formats` by format name."""


FORMATS_GROUP = "rankledger.formats"
"""Group of entry points of further formats."""


BEIR_TABLES: Mapping[str, str] = MappingProxyType({"queries": "queries.jsonl", "documents": "corpus.jsonl"})
"""Files beside `qrels` in a folder of BEIR, by role."""


class ArrowStream(Protocol):
    """Table with Arrow's stream interface, such as of pandas, Polars or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow."""


class PairDict(Protocol):
    """Object that gives `{query: {document: value}}`, such as `Qrels` and `Run` of ranx."""

    def to_dict(self) -> Mapping[str, Mapping[str, float]]:
        """Return the mapping."""


Id: TypeAlias = str | int
Given: TypeAlias = (
    str
    | Path
    | ArrowStream
    | PairDict
    | Mapping[str, Mapping[str, float]]
    | Mapping[int, Mapping[int, float]]
    | Iterable[tuple[Id, Id, float]]
)
"""An input as an argument: a path, a table, `{query: {document: value}}`, or tuples of these three."""

GivenPairs: TypeAlias = (
    str | Path | ArrowStream | Mapping[str, Collection[str]] | Mapping[int, Collection[int]] | Iterable[tuple[Id, Id]]
)
"""Pairs as an argument: a path, a table, `{query: [document, …]}`, or tuples of these two."""


IN_MEMORY = "memory://"
"""Prefix of the path of an input in memory."""


Kind: TypeAlias = Literal["rankings", "ratings", "scores"]
Seen: TypeAlias = Literal["refuse", "remove", "count"]


@dataclass(frozen=True, eq=False)
class InMemory:
    """An input that was passed as an object."""

    name: str  # argument, such as `outputs['bm25']`
    data: Any
    recorded: bool = False  # True if a record needs the digest of its rows


@dataclass(frozen=True)
class Source:
    """An input with everything that its reader needs."""

    path: str  # file, glob, folder of parts or URL. The name of an object in memory
    format: str | None = None  # None if the path's ending tells
    columns: Mapping[str, str] = field(default_factory=dict)  # column names in the file by ours
    large: float = 10**9  # bytes that any file may expand to. Larger ones may expand to 200 times their size
    streams: bool = False  # True if the path may be `-` or a pipe
    held: InMemory | None = None  # object in memory
    select: Mapping[str, str] = field(default_factory=dict)  # required text by label

    @property
    def shown(self) -> Source:
        """Source with its path from the working directory."""
        is_inside = self.held is None and Path(self.path).is_relative_to(Path.cwd())
        return replace(self, path=os.path.relpath(self.path)) if is_inside else self


@dataclass(frozen=True)
class DatasetSource:
    """The files of a dataset, and how they are read."""

    judgments: Source | None  # or ratings. None for external scores
    kind: Kind = "rankings"
    queries: Source | None = None
    documents: Source | None = None
    interactions: Source | None = None
    exclude: Source | None = None
    exclude_self: bool = False
    seen: Seen = "count"
    features: tuple[str, ...] = ()  # columns of the documents that measures need
    judged_documents: bool = False  # True if measures need other relevant documents
    keep_first: bool = False  # True keeps the first of two judgments of a pair
    subtopics: bool = False
    cluster: str | None = None  # None if each query is its own cluster
    slices: tuple[str, ...] = ()
    search_slices: bool = False  # True reads all columns of the queries table

    @property
    def group_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for column in (self.cluster, *self.slices) if column is not None))

    @property
    def shown(self) -> Self:
        """Source with paths from the working directory."""
        files: dict[str, Any] = {name: file.shown for name, file in vars(self).items() if isinstance(file, Source)}
        return replace(self, **files)

    @property
    def judged(self) -> Source:
        assert self.judgments is not None, "external scores are read otherwise"
        return self.judgments

    @property
    def files(self) -> tuple[Source, ...]:
        files = (self.judgments, self.queries, self.documents, self.interactions, self.exclude)
        return tuple(file for file in files if file is not None)


@dataclass(frozen=True)
class Replicate:
    """One training of a model, named by its seed for example."""

    model: str
    name: str

    def __str__(self) -> str:
        return f"{self.model} (replicate {self.name})"


OutputKey: TypeAlias = tuple[str, str | Replicate]
"""Dataset, and model or replicate."""


def model_of(key: OutputKey) -> tuple[str, str]:
    """Return the dataset and the model of an output."""
    dataset, model = key
    return dataset, model if isinstance(model, str) else model.model
