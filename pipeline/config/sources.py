"""Inputs: the formats that a config may name, where files are, and the rows that were read of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    pass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


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
    """A table that Arrow takes as it is: of pandas, Polars, DuckDB, Arrow itself and others."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream of Arrow."""


class PairDict(Protocol):
    """What can be written as `{query: {document: value}}`: `Qrels` and `Run` of ranx."""

    def to_dict(self) -> Mapping[str, Mapping[str, float]]:
        """It as such a mapping."""


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


@dataclass(frozen=True, eq=False)
class InMemory:
    """An input that was given in memory.

    Attributes:
        name: the argument, as messages name it, such as `outputs['bm25']`.
        data: a data frame of pandas, an Arrow table, a mapping of mappings, or a list of tuples.
        recorded: whether a record will need the digest of its rows.
    """

    name: str
    data: Any
    recorded: bool = False


@dataclass(frozen=True)
class Source:
    """An input as a config or a command line names it.

    Attributes:
        path: a file, a glob, a folder of parts or a URL.
        format: its format; None if its name tells.
        columns: our column names to the file's, where they differ.
        large: bytes that a file of any size may come to; beyond, it may come to 200 times what is stored.
        streams: whether it may be `-`, standard input, or a pipe, such as a shell's `<(zcat ranking.gz)`: only what
            someone types on a command line, never what a config names.
        held: the input itself, if it was given in memory; the path is then its name.
        select: of another tool's results, what rows must be of: a text by label, such as `task`.
    """

    path: str
    format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    large: float = 10**9
    streams: bool = False
    held: InMemory | None = None
    select: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetSource:
    """A dataset's own files, and how they are read.

    Attributes:
        judgments: its judgments, or its ratings; None if it has external scores.
        kind: `rankings`, `ratings` or `scores`.
        queries: its queries table, in which every judged query must stand.
        documents: its catalogue.
        interactions: what its queries, and others, consumed before.
        exclude: documents that are left out of the rankings of queries.
        exclude_self: whether the document whose id is the query's is left out, too.
        seen: what becomes of documents that stand in the interactions: `refuse`, `remove` or `count`.
        features: columns of the documents that measures ask for.
        judged_documents: whether measures of recommended documents ask which others are relevant.
        keep_first: whether a pair that is judged twice keeps its first judgment.
        subtopics: whether the judgments are of subtopics.
        cluster: the column of the queries table whose queries of equal text are drawn as one.
        slices: its columns whose texts make a slice each.
        search_slices: whether to read its other columns, too, so that slices can be searched by them.
    """

    judgments: Source | None
    kind: str = "rankings"
    queries: Source | None = None
    documents: Source | None = None
    interactions: Source | None = None
    exclude: Source | None = None
    exclude_self: bool = False
    seen: str = "count"
    features: tuple[str, ...] = ()
    judged_documents: bool = False
    keep_first: bool = False
    subtopics: bool = False
    cluster: str | None = None
    slices: tuple[str, ...] = ()
    search_slices: bool = False

    @property
    def group_columns(self) -> tuple[str, ...]:
        """The columns of the queries table that make clusters and slices, each once."""
        return tuple(dict.fromkeys(column for column in (self.cluster, *self.slices) if column is not None))


@dataclass(frozen=True)
class Replicate:
    """One of several times that a model was trained, indexed or decoded.

    Attributes:
        model: the model.
        name: which one it is, such as a seed.
    """

    model: str
    name: str

    def __str__(self) -> str:
        """Such as `dense (replicate 3)`."""
        return f"{self.model} (replicate {self.name})"


OutputKey: TypeAlias = tuple[str, str | Replicate]
"""An output: its dataset, and the model or one of the model's replicates."""


def model_of(key: OutputKey) -> tuple[str, str]:
    """The dataset and the model of an output."""
    dataset, model = key
    return dataset, model if isinstance(model, str) else model.model
