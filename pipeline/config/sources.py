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
"""Each format's name, and the module of `pipeline/data/formats` with its `Format`."""


FORMATS_GROUP = "rankledger.formats"
"""The group of entry points by which installed packages name further formats."""


BEIR_TABLES: Mapping[str, str] = MappingProxyType({"queries": "queries.jsonl", "documents": "corpus.jsonl"})
"""The files beside `qrels` in a folder of BEIR, by what they are of the dataset."""


class ArrowStream(Protocol):
    """Table that Arrow takes as it is: of pandas, Polars, DuckDB and others."""

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
"""An input as a function takes it: a path, a table, `{query: {document: value}}`, or tuples of these three."""

GivenPairs: TypeAlias = (
    str | Path | ArrowStream | Mapping[str, Collection[str]] | Mapping[int, Collection[int]] | Iterable[tuple[Id, Id]]
)
"""Pairs as a function takes them: a path, a table, `{query: [document, …]}`, or tuples of these two."""


IN_MEMORY = "memory://"
"""How the path begins that a config has in the place of an input in memory."""


Kind: TypeAlias = Literal["rankings", "ratings", "scores"]
Seen: TypeAlias = Literal["refuse", "remove", "count"]


@dataclass(frozen=True, eq=False)
class InMemory:
    """An input that was passed as an object.

    Attributes:
        name: Argument, as messages name it, such as `outputs['bm25']`.
        data: Data frame of pandas, Arrow table, mapping of mappings, or list of tuples.
        recorded: True if a record will need the digest of its rows.
    """

    name: str
    data: Any
    recorded: bool = False


@dataclass(frozen=True)
class Source:
    """An input with everything that its reader needs.

    Attributes:
        path: File, glob, folder of parts or URL. The name of an object in memory.
        format: None if the path's ending tells.
        columns: Column names in the file by ours.
        large: Bytes that a file of any size may expand to. A larger one may expand to 200 times its size.
        streams: True if the path may be `-` or a pipe, as on a command line.
        held: Object in memory. None for files.
        select: Of another tool's results, the text that rows must have by label.
    """

    path: str
    format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    large: float = 10**9
    streams: bool = False
    held: InMemory | None = None
    select: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> Source:
        """The same input as errors and manifests name it: from the working directory if it is below."""
        is_inside = self.held is None and Path(self.path).is_relative_to(Path.cwd())
        return replace(self, path=os.path.relpath(self.path)) if is_inside else self


@dataclass(frozen=True)
class DatasetSource:
    """The files of a dataset, and how they are read.

    Attributes:
        judgments: Judgments or ratings. None for external scores.
        features: Columns of the documents that measures ask for.
        judged_documents: True if measures of recommended documents ask which others are relevant.
        keep_first: True if a pair that is judged twice keeps its first judgment.
        cluster: Column of the queries table. Queries of equal text are drawn as one. None if each is by itself.
        slices: Columns of the queries table whose texts make a slice each.
        search_slices: True if all columns of the queries table are read, so that slices can be searched by them.
    """

    judgments: Source | None
    kind: Kind = "rankings"
    queries: Source | None = None
    documents: Source | None = None
    interactions: Source | None = None
    exclude: Source | None = None
    exclude_self: bool = False
    seen: Seen = "count"
    features: tuple[str, ...] = ()
    judged_documents: bool = False
    keep_first: bool = False
    subtopics: bool = False
    cluster: str | None = None
    slices: tuple[str, ...] = ()
    search_slices: bool = False

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Distinct columns of the queries table that make clusters and slices."""
        return tuple(dict.fromkeys(column for column in (self.cluster, *self.slices) if column is not None))

    @property
    def shown(self) -> Self:
        """The same dataset with its files as errors and manifests name them."""
        files: dict[str, Any] = {name: file.shown for name, file in vars(self).items() if isinstance(file, Source)}
        return replace(self, **files)

    @property
    def judged(self) -> Source:
        """Judgments or ratings of a dataset that has them."""
        assert self.judgments is not None, "external scores are read otherwise"
        return self.judgments

    @property
    def files(self) -> tuple[Source, ...]:
        """Files of the dataset."""
        files = (self.judgments, self.queries, self.documents, self.interactions, self.exclude)
        return tuple(file for file in files if file is not None)


@dataclass(frozen=True)
class Replicate:
    """One of several times that a model was trained, indexed or decoded, named by its seed or the like."""

    model: str
    name: str

    def __str__(self) -> str:
        """Return a text such as `dense (replicate 3)`."""
        return f"{self.model} (replicate {self.name})"


OutputKey: TypeAlias = tuple[str, str | Replicate]
"""An output: its dataset, and the model or one of the model's replicates."""


def model_of(key: OutputKey) -> tuple[str, str]:
    """Return the dataset and the model of an output."""
    dataset, model = key
    return dataset, model if isinstance(model, str) else model.model
