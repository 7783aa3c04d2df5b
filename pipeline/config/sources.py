"""Datasets, models and their inputs: the sections of the config, and what a plan makes of them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias, cast

from pydantic import Discriminator, Field, GetJsonSchemaHandler, Tag, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from rankledger.metrics.measure import Measure, external_measure
from rankledger.pipeline.config.loader import IDLE, KINDS
from rankledger.pipeline.config.values import (
    Columns,
    DatasetName,
    Ends,
    Keys,
    Labels,
    Name,
    Plain,
    QueryColumns,
    ReplicateNames,
    ScoreName,
    Section,
    Suite,
)

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "trec": "delimited:TREC",
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
class PlannedDataset:
    """A dataset with its files, how they are read, and its measures resolved."""

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
    name: str = ""
    # measures by suite; external scores are one suite, `scores`, and measures of logs one, `logs`
    suites: Mapping[str, tuple[Measure, ...]] = field(default_factory=dict)
    relevant: float | None = None  # `rel` of measures that do not set it. None if the dataset does not set it
    was: str | None = None  # old name. None if the dataset was not renamed

    @property
    def group_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for column in (self.cluster, *self.slices) if column is not None))

    @property
    def shown(self) -> PlannedDataset:
        """Dataset with paths from the working directory."""
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

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(dict.fromkeys(measure for suite in self.suites.values() for measure in suite))

    def with_suites(self, suites: Mapping[str, tuple[Measure, ...]]) -> PlannedDataset:
        """Return the dataset with other measures, and read for these."""
        measures = [measure for suite in suites.values() for measure in suite]
        features = (str(measure.parameters["feature"]) for measure in measures if "feature" in measure.parameters)
        return replace(
            self,
            suites=suites,
            features=tuple(dict.fromkeys(features)),
            judged_documents=any(m.metric.input == "catalogue" and "rel" in m.parameters for m in measures),
        )

    def defined(self, measure: Measure) -> Measure:
        """Return a measure with `rel` from the dataset's `relevant`, unless the measure sets it."""
        if self.relevant is None or "rel" not in measure.parameters or "rel" in dict(measure.given):
            return measure
        return measure.with_default("rel", int(self.relevant) if self.relevant.is_integer() else self.relevant)


@dataclass(frozen=True)
class Replicate:
    """Training of a model, named by its seed for example."""

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


class _Formats:
    @staticmethod
    def __get_pydantic_json_schema__(_schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        from rankledger.pipeline.support.own_code import installed  # here, because only `schema` asks

        return {"enum": list(dict.fromkeys([*FORMATS, *installed(FORMATS_GROUP)]))}


FormatName: TypeAlias = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$"), _Formats]
"""A format, built in or of an installed package; whether there is such a one is asked when a config is planned."""

MODEL_ID = re.compile(r"m-[A-Za-z0-9]+")
MODEL_URI = re.compile(r"models:/(m-[A-Za-z0-9]+|[^/:@\x00-\x1f]+(/[0-9]{1,9}|@[\w-]+))")

_OTHERS = {"ratings": "ratings", "scores": "external scores", "logs": "logs"}  # on which some keys have no effect


class File(Section):
    """A file: its path, or a mapping with more keys."""

    shorthand: ClassVar = {"type": "string"}
    short_for: ClassVar = "path"

    path: str = Field(min_length=1)
    """A file, a glob, a folder of Parquet parts or a URL (`s3://…`). A relative path starts at the file that names it.
    `{dataset}`, `{model}`, `{date}` and own `keys` are filled in."""

    format: FormatName | None = None
    """How the rows are written; by default as the path's ending says. Installed packages add formats."""

    columns: Columns = Field(default_factory=dict)
    """Column names in the file, by ours: `{query_id: user_id}`; in TREC text the numbers of fields, from 1."""

    allow_large: bool = False
    """Whether to accept a file that expands to more than 1 GB and more than 200 times its size."""


class OutputFile(File):
    """A model's output."""

    allow_no_overlap: bool = False
    """Whether to accept an output that shares no query, document or rated pair with the dataset, usually because ids
    are spelled differently."""

    select: Labels = Field(default_factory=dict)
    """Of another tool's results, which to take: `{task: arc_easy, epoch: "{replicate}"}`. Placeholders are filled in as
    in the path."""


class Score(Section):
    """An external score of queries."""

    shorthand: ClassVar = {"enum": ["higher", "lower", "neither", None]}
    short_for: ClassVar = "direction"

    direction: Literal["higher", "lower", "neither"] = "higher"
    """Whether a higher or a lower score is better, or neither."""

    column: str | None = Field(None, min_length=1)
    """Its name in the file, if that is another: `{geval: {column: "Correctness (GEval)"}}`. A dot leads into an object,
    as in `data.correct`."""

    range: Ends = (None, None)
    """The lowest and the highest possible score; null for no limit. Other scores are refused."""

    def measure(self, name: str) -> Measure:
        """Return the score of a name as a measure. Raise ValueError if the range is empty."""
        minimum, maximum = self.range
        ends = (-math.inf if minimum is None else minimum, math.inf if maximum is None else maximum)
        return external_measure(name, self.direction, ends)

    @model_validator(mode="after")
    def _holds_together(self) -> Score:
        self.measure("it")
        return self


class DatasetDefaults(Section):
    """The keys of a dataset."""

    judgments: File | None = None
    """Relevance judgments: (query, document, relevance). A dataset has judgments, ratings, scores or logs."""

    subtopics: bool = False
    """Whether judgments are by subtopic, as `alpha_ndcg` needs them: (query, subtopic, document, relevance)."""

    relevant: float | None = Field(None, gt=0, allow_inf_nan=False)
    """The lowest grade that makes a document relevant, or rating that makes a label positive: `rel` of measures that do
    not set it; by default 1."""

    ratings: File | None = None
    """Ratings to predict, or labels such as clicks: (query, document, rating). If `columns` names a `weight`, too, it
    is what each pair weighs, 0 or more."""

    scores: dict[ScoreName, Score] | None = Field(None, min_length=1)
    """External scores of queries in the models' outputs: `{faithfulness: higher, latency: lower}`. They are the
    dataset's measures, in the suite `scores`."""

    logs: Suite | None = None
    """Measures of the logs in the models' outputs, a row for each document shown: `[ctr, snips, ess]`. They are the
    dataset's measures, in the suite `logs`."""

    queries: File | None = None
    """The queries table, which must have every judged query. Further columns make clusters and slices."""

    cluster: Name | None = None
    """A column of the queries table instead of the whole config's `cluster`; `query_id` for none."""

    slices: QueryColumns | None = None
    """Columns of the queries table instead of the whole config's `slices`; `[]` for none."""

    documents: File | None = None
    """The catalogue: every document, retrieved or not; further columns are features of documents."""

    interactions: File | None = None
    """What users consumed in training: (query, document). Queries without judgments count, too."""

    exclude: File | None = None
    """Documents to leave out of the rankings of queries, before ranks and cutoffs: (query, document). Judgments stay as
    they are."""

    exclude_self: bool = False
    """Whether to leave out the document whose id is the query's, too."""

    seen: Literal["refuse", "remove", "count"] = "count"
    """What to do with recommendations that stand in the user's `interactions`: refuse the output, remove them before
    ranks and cutoffs, or count them."""

    suites: tuple[str, ...] | None = Field(None, min_length=1)
    """Suites to compute; by default all of the dataset's kind."""

    columns: Columns = Field(default_factory=dict)
    """Column names in all files of the dataset and in models' outputs on it; a file's own `columns` win."""

    duplicates: Literal["refuse", "keep_first"] = "refuse"
    """What to do if a pair of query and document is judged or rated twice."""

    keys: Keys = Field(default_factory=dict)
    """Your own placeholders in templates: `{lang}` with `keys: {lang: de}`."""


class Dataset(DatasetDefaults):
    """Queries with judgments of documents, ratings, external scores or logs."""

    shorthand: ClassVar = {"type": "null"}

    was: Name | None = None
    """Its old name, for older records that have no dataset of its new name."""

    @property
    def kind(self) -> Literal["rankings", "ratings", "scores"]:
        """Kind of what is evaluated. Logs are scores that are computed."""
        if self.scores is not None or self.logs is not None:
            return "scores"
        return "rankings" if self.ratings is None else "ratings"

    @property
    def output_columns(self) -> Columns:
        scores = {name: score.column for name, score in (self.scores or {}).items() if score.column}
        return {**self.columns, **cast(Columns, scores)}

    @model_validator(mode="after")
    def _has_one_kind(self) -> Dataset:
        kinds = [key for key in KINDS if getattr(self, key) is not None]
        if not kinds:
            raise ValueError("no judgments, ratings, scores or logs; add one of them")
        if len(kinds) > 1:
            raise ValueError(f"it has both {kinds[0]} and {kinds[1]}; write two datasets")
        fields = type(self).model_fields
        idle = [key for key in IDLE.get(kinds[0], ()) if getattr(self, key) != fields[key].default]
        if idle:
            raise ValueError(f"`{idle[0]}` has no effect on {_OTHERS[kinds[0]]}; remove it")
        if self.judgments is not None and "weight" in {**self.columns, **self.judgments.columns}:
            raise ValueError("the column `weight` has no effect on judgments; remove it")
        if self.seen != "count" and self.interactions is None:
            raise ValueError("`seen` is about `interactions`, and there are none; add them")
        return self


Outputs: TypeAlias = Annotated[
    Annotated[OutputFile, Tag("\0file")] | Annotated[dict[DatasetName, OutputFile], Tag("\0datasets")],
    Discriminator(lambda value: "\0datasets" if isinstance(value, dict) and "path" not in value else "\0file"),
]


class Promote(Section):
    """Alias of MLflow's model registry that moves to the version which made the model's outputs."""

    model: str = Field(pattern=r"^models:/[^/:@\x00-\x1f]+$")
    """The registered model, such as `models:/ranker`. The model's `model_uri` names its version by number, such as
    `models:/ranker/3`."""

    alias: str = Field(pattern=r"^[\w-]+$", max_length=200)
    """The alias to move, such as `champion`."""

    when: Literal["gates_pass"] = "gates_pass"
    """`gates_pass`: if everything was evaluated, no gate stops the release, and every gate passes this model."""

    @property
    def registered(self) -> str:
        return self.model.removeprefix("models:/")

    @model_validator(mode="after")
    def _has_free_alias(self) -> Promote:
        if self.alias.lower() == "latest" or re.fullmatch("[vV][0-9]+", self.alias):
            raise ValueError(f"MLflow reserves the alias {self.alias!r}; choose another")
        return self


class Model(Section):
    """A model to evaluate."""

    shorthand: ClassVar = {"type": "null"}

    outputs: Outputs | None = None
    """Its rankings, rating predictions or scores: one path for all datasets, usually a template, or a path for each
    dataset to evaluate it on. `{replicate}` in the path makes the model a family of replicates, whose figures are
    means."""

    replicates: ReplicateNames | None = Field(None, min_length=1)
    """What `{replicate}` stands for: `[1, 2, 3]`. One without a file is reported as missing. By default the files that
    there are."""

    shared_seeds: bool = False
    """Whether its replicates have the same seeds as those of the same names of other models that say so. Differences
    of such models are taken replicate by replicate, and so are those from an earlier record that a gate is against."""

    params: dict[str, Plain] = Field(default_factory=dict)
    """Parameters of the model, for MLflow."""

    tags: dict[str, str] = Field(default_factory=dict)
    """Tags of the model, for MLflow."""

    owner: str | None = None
    """Who is responsible for the model, for MLflow."""

    keys: Keys = Field(default_factory=dict)
    """Your own placeholders in the template of its outputs; they win over the dataset's."""

    was: Name | None = None
    """Its old name, for older records that have no model of its new name."""

    model_id: str | None = None
    """Id of the logged model in MLflow 3 that made the outputs: `m-…`. The figures are logged to that model, too."""

    model_uri: str | None = None
    """The same by URI, also of a registered model: `models:/ranker/3`, `models:/ranker@champion` or `models:/m-…`."""

    promote: Promote | None = None
    """Which alias in MLflow moves to the version named by `model_uri` if the gates pass; by default none."""

    extra: File | None = None
    """External metrics for gates, such as cost: a JSON file with an object of numbers by name."""

    @property
    def version(self) -> int | None:
        """Version of a registered model that `model_uri` names by number. None if it names none."""
        number = (self.model_uri or "").rpartition("/")[2]
        return int(number) if re.fullmatch("[0-9]{1,9}", number) else None

    @model_validator(mode="after")
    def _holds_together(self) -> Model:
        if self.extra and (self.extra.columns or self.extra.allow_large or self.extra.format not in (None, "json")):
            raise ValueError("`extra` is one JSON object of numbers; write only its path")
        if self.model_id is not None and self.model_uri is not None:
            raise ValueError("it has both model_id and model_uri; keep one")
        if self.model_id is not None and not MODEL_ID.fullmatch(self.model_id):
            raise ValueError(f"found the model_id {self.model_id!r}; write the id of a logged model, as in m-1f0c9a2b…")
        if self.model_uri is not None and not MODEL_URI.fullmatch(self.model_uri):
            forms = "models:/NAME/VERSION, models:/NAME@ALIAS or models:/m-…"
            raise ValueError(f"found the model_uri {self.model_uri!r}; write {forms}")
        for tag in self.tags:
            if tag.startswith(("mlflow.", "rankledger.")):
                raise ValueError(f"the tag {tag!r} is set by MLflow or rankledger. Use another name.")
        return self
