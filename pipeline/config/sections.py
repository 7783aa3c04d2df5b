"""The config: what may be written in it and what it defaults to.

Conventions: every section is frozen and refuses unknown keys; a key that is left empty counts as not written; paths are
relative to the file that names them, tracking stores to the runs folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

import metrics.conventions
from pipeline.config import loader
from pipeline.config.fields import (
    Columns,
    DatasetName,
    EvaluationName,
    Jobs,
    Keys,
    MetricName,
    Name,
    Number,
    Plain,
    ProfileName,
    Suite,
    Whole,
)
from pipeline.config.mistakes import explain
from pipeline.config.source import KeyPath
from pipeline.credentials import has_credentials

__all__ = [
    "Bootstrap",
    "Config",
    "ConfigFile",
    "Conventions",
    "Dataset",
    "Defaults",
    "Execution",
    "File",
    "Loaded",
    "Model",
    "Section",
    "Tracking",
    "json_schema",
    "load",
]


class Section(BaseModel):
    """A part of the config."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    shorthand: ClassVar[JsonSchemaValue | None] = None  # the JSON Schema of what may stand for the whole section

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty_keys(cls, data: object) -> object:
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}
        return {} if data is None else data

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The section's JSON Schema, its shorthand included."""
        mapping = handler(schema)
        return {"anyOf": [cls.shorthand, mapping]} if cls.shorthand else mapping


class File(Section):
    """A file: its path, or a mapping where the path alone does not say enough."""

    shorthand = {"type": "string"}

    path: str = Field(min_length=1)
    """A file, a glob, a folder of Parquet parts or a URL (`s3://…`). A relative path starts at the file that names it.
    `{dataset}`, `{model}`, `{date}` and own `keys` are filled in."""

    format: Literal["trec", "tsv", "csv", "jsonl", "json", "parquet"] | None = None
    """How the rows are written; by the path's ending unless given."""

    columns: Columns = Field(default_factory=dict)
    """The file's own column names, by ours: `{query_id: user_id}`."""

    @model_validator(mode="before")
    @classmethod
    def _read_shorthand(cls, data: object) -> object:
        return {"path": data} if isinstance(data, str) else data


class DatasetDefaults(Section):
    """What a dataset may hold."""

    judgments: File | None = None
    """What is known to be relevant: (query, document, relevance). A dataset has judgments or ratings."""

    subtopics: bool = False
    """Whether its judgments are of subtopics: (query, subtopic, document, relevance), as `alpha_ndcg` needs them."""

    ratings: File | None = None
    """What users gave: (query, document, rating), to be predicted."""

    queries: File | None = None
    """The table of queries; every judged query must stand in it."""

    documents: File | None = None
    """The catalogue: every document there is, retrieved or not; and, in further columns, features of documents."""

    interactions: File | None = None
    """What queries (users) consumed before, in training: (query, document). Queries without judgments count, too."""

    suites: tuple[str, ...] | None = Field(None, min_length=1)
    """The suites to compute; all of the dataset's kind unless given."""

    columns: Columns = Field(default_factory=dict)
    """Column names in all files of the dataset and in models' outputs on it, where a file does not say otherwise."""

    duplicates: Literal["refuse", "keep_first"] = "refuse"
    """What to do with a pair of query and document that is judged or rated twice."""

    keys: Keys = Field(default_factory=dict)
    """Own words that fill templates: `{lang}` with `keys: {lang: de}`."""


class Dataset(DatasetDefaults):
    """Queries and what is known of them: judgments of documents, or ratings."""

    shorthand = {"type": "null"}

    @property
    def kind(self) -> Literal["rankings", "ratings"]:
        """What is evaluated on it."""
        return "rankings" if self.ratings is None else "ratings"

    @model_validator(mode="after")
    def _has_one_kind(self) -> Dataset:
        if self.judgments is None and self.ratings is None:
            raise ValueError("it has neither judgments nor ratings; name a file of one")
        if self.judgments is not None and self.ratings is not None:
            raise ValueError("it has both judgments and ratings; make two datasets of it")
        if self.subtopics and self.judgments is None:
            raise ValueError("it has ratings, which have no subtopics; take `subtopics` out")
        return self


def _outputs_tag(value: object) -> str:
    return "\0datasets" if isinstance(value, dict) and "path" not in value else "\0file"


Outputs: TypeAlias = Annotated[
    Annotated[File, Tag("\0file")] | Annotated[dict[DatasetName, File], Tag("\0datasets")], Discriminator(_outputs_tag)
]


class Model(Section):
    """A model that is evaluated, by what it returned."""

    shorthand = {"type": "null"}

    outputs: Outputs | None = None
    """Its rankings or rating predictions: one path for all datasets, usually a template, or a path by dataset; then it
    is evaluated on those datasets only."""

    params: dict[str, Plain] = Field(default_factory=dict)
    """What it was made with; logged."""

    tags: dict[str, str] = Field(default_factory=dict)
    """What it is to be found by; logged."""

    owner: str | None = None
    """Who answers for it; logged."""

    keys: Keys = Field(default_factory=dict)
    """Own words that fill the template of its outputs; they win over the dataset's."""


class Conventions(Section):
    """The choices on which evaluation tools disagree: a profile's, but for those written here."""

    shorthand = {"type": "string", "enum": [*metrics.conventions.PROFILES]}

    profile: ProfileName = "trec_eval"
    """The tool whose choices and defaults of measures' parameters hold."""

    ties: metrics.conventions.Ties | None = None
    """The order of documents with equal scores; `rank_column` orders by the file's rank and reads no scores."""

    score_precision: Literal["float32", "float64"] | None = None
    """What scores are rounded to before they are compared."""

    missing_queries: Literal["empty", "skip", "error"] | None = None
    """What a judged query without output is: an empty ranking, left out of every mean, or the output refused."""

    undefined_queries: Literal["zero", "skip"] | None = None
    """What a query counts as whose score is undefined for want of relevant documents."""

    negative_grades: Literal["unjudged", "non_relevant", "error"] | None = None
    """What a negative grade means: not judged, a grade of 0, or the judgments refused."""

    unjudged_documents: Literal["non_relevant", "condensed"] | None = None
    """What a document without judgment is: not relevant, or taken out of the ranking."""

    depth: Whole | None = Field(None, ge=1)
    """How many documents of each ranking are looked at; all unless the profile says otherwise."""

    @property
    def resolved(self) -> metrics.conventions.Profile:
        """The profile with what is written here in its place."""
        chosen = self.model_dump(exclude={"profile"}, exclude_none=True)
        return metrics.conventions.PROFILES[self.profile].with_conventions(**chosen)

    @model_validator(mode="before")
    @classmethod
    def _read_shorthand(cls, data: object) -> object:
        return {"profile": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _holds_together(self) -> Conventions:
        _ = self.resolved
        return self


class Bootstrap(Section):
    """How confidence intervals are drawn."""

    resamples: Whole = Field(10_000, ge=100)
    """Times the queries are resampled, with replacement."""

    confidence: Number = Field(0.95, gt=0, lt=1)
    """The share of intervals that shall cover the true value."""

    method: Literal["percentile"] = "percentile"
    """How an interval is read off the resamples."""


class Execution(Section):
    """How the work is spread; it never changes a figure."""

    jobs: Jobs = -1
    """Workers at a time; -1 is one per CPU, -2 one fewer."""

    backend: Literal["threads", "processes"] = "threads"
    """What a worker is."""


class Tracking(Section):
    """How evaluations are logged to MLflow."""

    uri: str | None = None
    """The tracking store; `mlflow.db` in the runs folder unless given. A relative path starts at the runs folder."""

    metric_name: MetricName = "{suite}/{measure}"
    """What a figure is called in MLflow; with `{measure}`, and `{suite}` if wanted."""

    enabled: bool = True
    """Whether evaluations are logged at all."""


class Config(Section):
    """An evaluation: which models, on which datasets, by which measures."""

    name: EvaluationName
    """What the evaluation is called: the MLflow experiment and a part of each record's name."""

    datasets: dict[DatasetName, Dataset] = Field(min_length=1)
    """The datasets by name."""

    models: dict[Name, Model] = Field(min_length=1)
    """The models by name; `*` stands for every model whose output is found by the template of its outputs."""

    suites: dict[Name, Suite] = Field(min_length=1)
    """Named lists of measures, such as `ndcg@5,10`; those of one suite are all of rankings or all of ratings."""

    conventions: Conventions = Field(default_factory=Conventions)
    """The choices on which evaluation tools disagree."""

    sensitivity: tuple[Literal["ties"], ...] = ()
    """What the figures are tried against: `ties` adds the least, mean and greatest figure over all orders of documents
    with equal scores."""

    bootstrap: Bootstrap = Field(default_factory=Bootstrap)
    """How confidence intervals are drawn."""

    seed: Whole = Field(20261120, ge=0)
    """The root of all randomness; the same seed gives the same figures."""

    execution: Execution = Field(default_factory=Execution)
    """How the work is spread; it never changes a figure."""

    tracking: Tracking = Field(default_factory=Tracking)
    """How evaluations are logged to MLflow."""


class Defaults(Section):
    """What stands under every dataset and every model."""

    dataset: DatasetDefaults = Field(default_factory=DatasetDefaults)
    """What a dataset is where it does not say otherwise; paths are templates: `judgments: "{dataset}/qrels.tsv"`."""

    model: Model = Field(default_factory=Model)
    """What a model is where it does not say otherwise; paths are templates: `outputs: "{dataset}/{model}.tsv"`."""


class ConfigFile(Config):
    """A config as it is written: with what is resolved when it is read."""

    extends: str | tuple[str, ...] | None = None
    """A file, or several, that this one stands on: mappings merge key by key, null takes a key away."""

    defaults: Defaults = Field(default_factory=Defaults)
    """What stands under every dataset and every model."""


@dataclass(frozen=True)
class Loaded:
    """A config that was read."""

    config: Config
    """What it says."""

    document: loader.Document
    """What was written, and where."""


def load(path: str | Path, overrides: Sequence[str] = (), environ: Mapping[str, str] = os.environ) -> Loaded:
    """Read a config file with what it extends, `--set` overrides, environment variables and defaults.

    Raises:
        InputError: all findings at once, one line each.
    """
    document = loader.load(path, overrides, environ)
    try:
        written = ConfigFile.model_validate(document.data)
    except ValidationError as error:
        document.refuse(explain(error.errors(include_url=False), document.data, _section_at))
        raise
    _refuse_secret(document)
    return Loaded(Config.model_validate({name: getattr(written, name) for name in Config.model_fields}), document)


def _refuse_secret(document: loader.Document) -> None:
    """A password in a config would stay in every record of it."""
    section = document.raw.get("tracking")
    uri = section.get("uri") if isinstance(section, dict) else None
    written = re.sub(r"\$\{[^}]*\}", "", uri) if isinstance(uri, str) else ""
    if has_credentials(written):
        message = "it holds credentials; take them from the environment, as in https://${NAME}:${PASSWORD}@host"
        document.refuse([(("tracking", "uri"), message)])


def json_schema() -> dict[str, object]:
    """The JSON Schema of a config file, from which editors complete it."""
    schema = ConfigFile.model_json_schema()
    required = schema.pop("required")  # what one file leaves out, another that it extends may hold
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "rankledger config",
        "anyOf": [{"required": ["extends"]}, {"required": required}],
    }


def _section_at(path: KeyPath) -> type[Section]:
    """The section whose keys stand under a key path."""
    sections: dict[KeyPath, type[Section]] = {
        (): ConfigFile,
        ("conventions",): Conventions,
        ("bootstrap",): Bootstrap,
        ("execution",): Execution,
        ("tracking",): Tracking,
        ("defaults",): Defaults,
        ("defaults", "dataset"): DatasetDefaults,
        ("defaults", "model"): Model,
    }
    if len(path) == 2 and path[0] in ("datasets", "models"):
        return Dataset if path[0] == "datasets" else Model
    return sections.get(path, File)
