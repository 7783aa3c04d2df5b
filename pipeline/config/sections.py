"""The config: what may be written in it and what it defaults to.

Conventions: every section is frozen and refuses unknown keys; a key that is left empty counts as not written; paths are
relative to the file that names them, tracking stores to the runs folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticKnownError

import metrics.conventions
from pipeline.config import loader
from pipeline.config.comparison import Comparison
from pipeline.config.entries import Dataset, DatasetDefaults, File, Model, OutputFile, Score
from pipeline.config.fields import (
    DatasetName,
    Duration,
    EvaluationName,
    Jobs,
    Least,
    MetricName,
    Name,
    Number,
    ProfileName,
    QueryColumns,
    Suite,
    Whole,
)
from pipeline.config.gates import Gate, Waive
from pipeline.config.mistakes import explain
from pipeline.config.nightly import Nightly
from pipeline.config.secrets import secrets_in
from pipeline.config.section import Section
from pipeline.config.source import KeyPath
from pipeline.config.variables import TrackingVariables

__all__ = [
    "Bootstrap",
    "Config",
    "ConfigFile",
    "Conventions",
    "Defaults",
    "Execution",
    "Loaded",
    "Tracking",
    "load",
]

_MOST_LINES = 1000  # of all suites
_EXPLAINED = 10_000  # errors; a line is shown for few of them


class Conventions(Section):
    """The choices on which evaluation tools disagree: a profile's, but for those written here."""

    shorthand: ClassVar = {"type": "string", "enum": [*metrics.conventions.PROFILES]}

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

    depth: Whole | None = Field(None, ge=1, le=1_000_000_000)
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

    resamples: Whole = Field(10_000, ge=100, le=1_000_000)
    """Times the queries are resampled, with replacement: at most 1,000,000, of which each figure takes 16 MB."""

    confidence: Number = Field(0.95, gt=0, lt=1)
    """The share of intervals that shall cover the true value."""

    method: Literal["percentile", "basic", "bca"] = "bca"
    """How an interval is read off the resamples: their quantiles, those mirrored at the figure, or quantiles that are
    moved to correct bias and skewness."""


class Execution(Section):
    """How the work is spread; it never changes a figure."""

    jobs: Jobs = -1
    """Workers at a time, up to 1,000; -1 is one per CPU, -2 one fewer."""

    backend: Literal["threads", "processes"] = "threads"
    """What a worker is."""

    blocks: bool = True
    """Whether what was read of models' outputs is kept in the runs folder's block store, and taken from there."""


class Tracking(Section):
    """How evaluations are logged to MLflow."""

    uri: str | None = Field(None, min_length=1)
    """The tracking store; unless given, that of `MLFLOW_TRACKING_URI`, else `mlflow.db` in the runs folder. A relative
    path starts at the runs folder."""

    metric_name: MetricName = "{suite}/{measure}"
    """What a figure is called in MLflow; with `{measure}`, and `{suite}` if wanted."""

    timeout: Duration = timedelta(seconds=60)
    """How long all of an evaluation's tracking may take; then it is left to `rankledger sync`."""

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

    suites: dict[Name, Suite]
    """Named lists of measures, such as `ndcg@5,10`; those of one suite are all of rankings or all of ratings. May be
    left out where every dataset has `scores`."""

    cluster: Name | None = None
    """The column of the queries tables whose queries of equal text are resampled as one, such as `user_id`."""

    slices: QueryColumns = ()
    """Columns of the queries tables: the queries of each text of each column are a slice, with figures of its own."""

    pooled: bool = False
    """Whether the mean of all datasets is a figure too, under the dataset `*`."""

    comparison: Comparison | None = None
    """Which models are compared query by query; none unless given."""

    lead: Name | None = None
    """The measure that comes first in every table, report and run, such as `ndcg@10`; datasets without it lead with the
    first measure of their own first suite, as all do unless it is given."""

    matters: dict[str, Least] = Field(default_factory=dict)
    """By measure, the least difference that matters, such as `ndcg@10: 0.005`: reports hold intervals against it."""

    gates: tuple[Gate, ...] = Field((), max_length=1000)
    """What the models must hold to be released."""

    conventions: Conventions = Field(default_factory=Conventions)
    """The choices on which evaluation tools disagree."""

    sensitivity: tuple[Literal["ties"], ...] = ()
    """What the figures are tried against: `ties` adds the least, mean and greatest figure over all orders of documents
    with equal scores."""

    bootstrap: Bootstrap = Field(default_factory=Bootstrap)
    """How confidence intervals are drawn."""

    seed: Whole = Field(20261120, ge=0)
    """The root of all randomness; the same seed gives the same figures."""

    nightly: Nightly = Field(default_factory=Nightly)
    """When a night's evaluation begins."""

    execution: Execution = Field(default_factory=Execution)
    """How the work is spread; it never changes a figure."""

    tracking: Tracking = Field(default_factory=Tracking)
    """How evaluations are logged to MLflow."""

    report: bool = True
    """Whether the record has a page, `report.html`; `rankledger report` makes one at any time."""

    records: str | None = Field(None, min_length=1)
    """Where records are kept: a folder, or the URL of one such as `s3://eval/records`; the runs folder unless given."""

    @model_validator(mode="before")
    @classmethod
    def _may_leave_suites_out(cls, data: object) -> object:
        """Where every dataset is of scores, these are the measures, and there is nothing for a suite to name."""
        datasets = data.get("datasets") if isinstance(data, dict) else None
        if isinstance(data, dict) and isinstance(datasets, dict) and all(map(_is_of_scores, datasets.values())):
            return {"suites": {}} | {key: value for key, value in data.items() if value is not None}
        return data

    @field_validator("suites", mode="before")
    @classmethod
    def _has_few_lines(cls, suites: object) -> object:
        """Before any line is read: of each that is wrong, what was meant is searched for."""
        lines = [suite for suite in suites.values() if isinstance(suite, list)] if isinstance(suites, dict) else []
        if sum(map(len, lines)) > _MOST_LINES:
            n_lines = f"{sum(map(len, lines)):,} lines in all suites"
            raise ValueError(f"found {n_lines}, more than {_MOST_LINES:,}; leave some out, or write ndcg@5,10 as one")
        return suites

    @field_validator("suites")
    @classmethod
    def _has_suites(cls, suites: dict[str, Suite], info: ValidationInfo) -> dict[str, Suite]:
        datasets: Mapping[str, Dataset] = info.data.get("datasets", {})
        if not suites and any(dataset.kind != "scores" for dataset in datasets.values()):
            raise PydanticKnownError("too_short", {"field_type": "Dictionary", "min_length": 1, "actual_length": 0})
        return suites


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


def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    tracking: TrackingVariables | None = None,
) -> Loaded:
    """Read a config file with what it extends, `--set` overrides, environment variables and defaults.

    Arguments are those of `loader.load`.

    Raises:
        InputError: all findings at once, one line each.
    """
    document = loader.load(path, overrides, environ, tracking)
    try:
        written = ConfigFile.model_validate(document.data)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        explained = explain(errors[:_EXPLAINED], document.data, _section_at)
        document.refuse(explained, n_further=max(0, len(errors) - _EXPLAINED))
        raise
    models: dict[KeyPath, Model] = {("models", name): model for name, model in written.models.items()}
    document.refuse([*secrets_in(document, models | {("defaults", "model"): written.defaults.model})])
    return Loaded(Config.model_validate({name: getattr(written, name) for name in Config.model_fields}), document)


def _is_of_scores(dataset: object) -> bool:
    """Whether what was written of a dataset, or was read of it, makes it one of scores."""
    return bool(dataset.get("scores") if isinstance(dataset, dict) else getattr(dataset, "scores", None))


def _section_at(path: KeyPath) -> type[Section]:
    """The section whose keys stand under a key path."""
    sections: dict[KeyPath, type[Section]] = {
        (): ConfigFile,
        ("conventions",): Conventions,
        ("bootstrap",): Bootstrap,
        ("comparison",): Comparison,
        ("nightly",): Nightly,
        ("execution",): Execution,
        ("tracking",): Tracking,
        ("defaults",): Defaults,
        ("defaults", "dataset"): DatasetDefaults,
        ("defaults", "model"): Model,
    }
    if path[:1] == ("gates",):
        return Gate if len(path) == 2 else Waive
    if len(path) == 2 and path[0] in ("datasets", "models"):
        return Dataset if path[0] == "datasets" else Model
    if path[-2:-1] == ("scores",):
        return Score
    return sections.get(path, OutputFile if "outputs" in path else File)
