"""The config: every section, its keys and defaults, and the JSON Schema of all.

A gate is of one kind, which its keys tell: `margin` a difference, `max_query_drop` the queries that lost much,
`max_missing` the queries without output, `extra` a number from outside, and limits without `extra` a figure.

Conventions: every section is frozen and refuses unknown keys; a key that is left empty counts as not written; paths are
relative to the file that names them, tracking stores to the runs folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from string import Formatter
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticKnownError

import rankledger.metrics.conventions
from rankledger.pipeline.config import loader
from rankledger.pipeline.config.inputs import Dataset, DatasetDefaults, File, Model, OutputFile, Score
from rankledger.pipeline.config.loader import Document, TrackingVariables
from rankledger.pipeline.config.paths import paths_of
from rankledger.pipeline.config.values import (
    Amount,
    DatasetName,
    Date,
    Duration,
    EvaluationName,
    Finite,
    Interval,
    Jobs,
    Least,
    MetricName,
    Name,
    Number,
    OneOrMore,
    ProfileName,
    QueryColumns,
    Section,
    Suite,
    Whole,
    explain_errors,
    is_share,
    number_of,
)
from rankledger.pipeline.config.yaml import KeyPath
from rankledger.pipeline.support.credentials import has_credentials
from rankledger.pipeline.types.results import GateKind

__all__ = [
    "EXISTS",
    "STABLE",
    "Bootstrap",
    "Comparison",
    "Config",
    "ConfigFile",
    "Conventions",
    "Correction",
    "Defaults",
    "Execution",
    "Gate",
    "Loaded",
    "Nightly",
    "Test",
    "Tracking",
    "Waive",
    "json_schema",
    "load",
    "secrets_in",
]

Test: TypeAlias = Literal["randomization", "t", "bootstrap"]
Correction: TypeAlias = Literal["maxt", "holm", "bh", "none"]


class Comparison(Section):
    """Which models are compared query by query, and how the differences are tested."""

    baseline: Name
    """The model that all others are compared with; `all_pairs` compares each with each, of which the first by
    name is the baseline."""

    measures: OneOrMore | None = None
    """What they are compared by; every measure of queries that the dataset has unless given."""

    test: Test = "randomization"
    """What the p-value is of: signs of the differences flipped at random, Student's t, or the bootstrap."""

    permutations: Whole = Field(10_000, ge=100, le=1_000_000)
    """Times the signs are flipped, at most 1,000,000."""

    correction: Correction | None = None
    """How p-values are corrected for the number of tests on a dataset: `maxt` (Westfall and Young) unless given, or
    `holm` where the test is `t`, which `maxt` cannot correct; `bh` controls the false discovery rate instead."""

    @property
    def chosen_correction(self) -> Correction:
        """The correction that is written, or the test's own."""
        return self.correction or ("holm" if self.test == "t" else "maxt")

    @model_validator(mode="after")
    def _holds_together(self) -> Comparison:
        if self.test == "t" and self.correction == "maxt":
            raise ValueError("maxt needs resamples, which the test t does not make; choose holm, bh or none")
        return self


@dataclass(frozen=True)
class _Kind:
    """One kind of gate: the keys of which one makes it so, those it needs beside them, and those it may have."""

    kind: GateKind
    made_by: tuple[str, ...]
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


_KINDS = (
    _Kind("difference", ("margin",), ("measure", "against"), ("datasets", "slices")),
    _Kind("query_drop", ("max_query_drop",), ("measure", "against"), ("datasets", "slices", "allow")),
    _Kind("complete", ("max_missing",), may=("datasets",)),
    _Kind("extra", ("extra",), may=("at_least", "at_most")),
    _Kind("limit", ("at_least", "at_most"), ("measure",), ("datasets", "slices")),
)
_JUDGED = (
    *("datasets", "measure", "against", "margin", "at_least", "at_most", "max_query_drop", "allow", "max_missing"),
    *("extra", "slices"),
)


class Waive(Section):
    """A gate that may fail for a while."""

    until: Date
    """The last day on which it may, as 2026-12-31."""

    owner: str = Field(min_length=1)
    """Who answers for it."""

    reason: str = Field(min_length=1)
    """Why it may."""


class Gate(Section):
    """What models must hold, tonight and every night: one of `margin`, `max_query_drop`, `at_least` and `at_most`,
    `max_missing`, or `extra` with its limits.
    """

    name: Name
    """What the gate is called; each has a name of its own."""

    models: OneOrMore = ("*",)
    """The models that must hold it, by name; `*` for all, but the one that they are held against."""

    datasets: OneOrMore = ("*",)
    """The datasets it is judged on; `*` for all that have the models and a measure of the gate."""

    measure: OneOrMore | None = None
    """The measure, or several, each of a suite of the dataset."""

    against: str | None = Field(None, min_length=1)
    """What to compare the models with: a model of this config; or a record: `accepted`, `last_passed`, an evaluation's
    id, a path or `mlflow:RUN_ID`, and in it the same model, or another as in `accepted#bm25`."""

    margin: Amount | None = None
    """The drop from `against` that is accepted: on the measure's scale, or as a share of the figure there, as `2%`.
    Below 0 the models must be better by that much."""

    at_least: Finite | None = None
    """The least figure that is accepted."""

    at_most: Finite | None = None
    """The greatest figure that is accepted."""

    max_query_drop: Finite | None = Field(None, gt=0)
    """The drop of one query from `against` beyond which the query counts as lost."""

    allow: Whole = Field(0, ge=0)
    """How many queries may be lost."""

    max_missing: Amount | None = None
    """The share of queries that may be without output, as 0.01 or `1%`."""

    extra: str | None = Field(None, min_length=1)
    """The name of a number in the models' `extra`."""

    slices: QueryColumns = ()
    """Columns among the dataset's `slices`: every slice of them is judged, too."""

    on_inconclusive: Literal["fail", "warn", "pass"] = "fail"
    """What it comes to where the data do not decide."""

    fail_after: Whole = Field(1, ge=1)
    """How many evaluations in a row must fail before the gate does."""

    waive: Waive | None = None
    """Until when it may fail, and why."""

    @property
    def kind(self) -> GateKind:
        """What it judges."""
        return self._kinds()[0].kind

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Gate:
        kinds = self._kinds()
        if not kinds:
            advice = "`margin` or `max_query_drop` beside `against`, `at_least` or `at_most`, `max_missing` or `extra`"
            raise ValueError(f"it does not say what to judge; add one of {advice}")
        made_by = [next(key for key in kind.made_by if key in self._written()) for kind in kinds]
        if len(kinds) > 1:
            raise ValueError(f"`{made_by[0]}` and `{made_by[1]}` exclude each other; make two gates of it")
        lacking = [key for key in kinds[0].needs if key not in self._written()]
        if lacking:
            raise ValueError(f"`{made_by[0]}` needs `{lacking[0]}`; add it")
        idle = [key for key in self._written() if key not in (*kinds[0].made_by, *kinds[0].needs, *kinds[0].may)]
        if idle:
            raise ValueError(f"`{idle[0]}` has no effect beside `{made_by[0]}`; take it out")
        return self

    @model_validator(mode="after")
    def _has_limits_that_can_be_held(self) -> Gate:
        if self.extra is not None and self.at_least is None and self.at_most is None:
            raise ValueError("`extra` needs a limit; add `at_least` or `at_most`")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least:g} is above at_most {self.at_most:g}; no figure is both")
        if self.margin is not None and is_share(self.margin) and abs(number_of(self.margin)) >= 1:
            raise ValueError(f"a margin of {self.margin} is as much as there is; write a smaller share")
        if self.max_missing is not None and not 0 <= number_of(self.max_missing) <= 1:
            raise ValueError(f"max_missing is a share from 0 to 1, found {self.max_missing}; write it as 0.01 or 1%")
        return self

    def _kinds(self) -> list[_Kind]:
        """The kinds that its keys make it; limits are those of `extra` where that is written."""
        made = [kind for kind in _KINDS if set(kind.made_by) & set(self._written())]
        return [kind for kind in made if kind.kind != "limit" or self.extra is None]

    def _written(self) -> list[str]:
        """The keys of what is judged that are away from their defaults."""
        return [key for key in _JUDGED if getattr(self, key) != type(self).model_fields[key].default]


EXISTS = "exists"
STABLE = "stable"


def _ready(ready: str) -> str:
    """A marker's name must be one that `fill` can fill; its words are known when it is planned."""
    try:
        fields = [(spec, conversion) for _, name, spec, conversion in Formatter().parse(ready) if name is not None]
    except ValueError:
        raise ValueError(f"{ready!r} has a single brace; write {{{{ or }}}} to mean it literally") from None
    if any(spec or conversion for spec, conversion in fields):
        raise ValueError(f"{ready!r} has a placeholder that is more than a word; write it as {{model}}")
    if ready.endswith("/"):
        raise ValueError(f"{ready!r} is a folder; name the file in it that is written last, such as _SUCCESS")
    return ready


Ready: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_ready)]


class Nightly(Section):
    """When `rankledger nightly` begins: how long it waits for outputs that are late, and what makes one ready."""

    wait: Duration = Field(timedelta(0), json_schema_extra={"default": "0"})
    """How long it waits for what is not ready, such as `90s`, `30m` or `2h`; `0` is not at all. What is late then is a
    failed output, and the others are evaluated."""

    ready: Ready = EXISTS
    """What makes an output ready: `exists`, that it is there; `stable`, that its size has not changed for as long as
    `every` says; or the name of a file that is written beside it last, such as `_SUCCESS` or `{model}.done`."""

    every: Interval = Field(timedelta(seconds=30), json_schema_extra={"default": "30s"})
    """How often it looks."""

    @model_validator(mode="after")
    def _holds_together(self) -> Nightly:
        if self.ready == STABLE and self.wait < self.every:
            raise ValueError("`ready: stable` looks twice, `every` apart; let `wait` be at least as long")
        return self


_OF_TRACKING = "it holds credentials; take them from the environment, as in https://${NAME}:${PASSWORD}@host"
_OF_AN_INPUT = "it holds credentials; set those of the filesystem in the environment, as AWS_ACCESS_KEY_ID"
_OF_A_MODEL = "it holds credentials, and would be recorded; leave them out"


def secrets_in(document: Document, models: Mapping[KeyPath, Model]) -> Iterator[tuple[KeyPath, str]]:
    """Where credentials are, and what to do instead; those that the environment gives are none in `tracking` alone.

    Args:
        document: what was written.
        models: the models, by where they are written.
    """
    section = document.raw.get("tracking")
    uri = section.get("uri") if isinstance(section, dict) else None
    written = re.sub(r"\$\{\w+(:-)?\}?", "", uri) if isinstance(uri, str) else ""  # a default is written in the config
    if has_credentials(written):
        yield ("tracking", "uri"), _OF_TRACKING
    for path, value in paths_of(document.data):
        if has_credentials(value):
            yield path, _OF_AN_INPUT
    for entry, model in models.items():
        for key, param in model.params.items():
            if has_credentials(str(param)):
                yield (*entry, "params", key), _OF_A_MODEL


_MOST_LINES = 1000  # of all suites
_EXPLAINED = 10_000  # errors; a line is shown for few of them


class Conventions(Section):
    """The choices on which evaluation tools disagree: a profile's, but for those written here."""

    shorthand: ClassVar = {"type": "string", "enum": [*rankledger.metrics.conventions.PROFILES]}

    profile: ProfileName = "trec_eval"
    """The tool whose choices and defaults of measures' parameters hold."""

    ties: rankledger.metrics.conventions.Ties | None = None
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
    def resolved(self) -> rankledger.metrics.conventions.Profile:
        """The profile with what is written here in its place."""
        chosen = self.model_dump(exclude={"profile"}, exclude_none=True)
        return rankledger.metrics.conventions.PROFILES[self.profile].with_conventions(**chosen)

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

    cache: bool = True
    """Whether what was read of models' outputs is kept in the runs folder's output cache, and taken from there."""


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

    practical_difference: dict[str, Least] = Field(default_factory=dict)
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
        explained = explain_errors(errors[:_EXPLAINED], document.data, _section_at)
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


def json_schema() -> dict[str, object]:
    """The JSON Schema of a config file, from which editors complete it."""
    schema = ConfigFile.model_json_schema()
    schema.pop("required")  # what one file leaves out, another that it extends may hold
    required = ["name", "datasets", "models"]
    of_scores = {"type": "object", "required": ["scores"]}
    every = {"datasets": {"type": "object", "additionalProperties": of_scores}}
    by_default = {"defaults": {"type": "object", "required": ["dataset"], "properties": {"dataset": of_scores}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "rankledger config",
        "anyOf": [
            {"required": ["extends"]},
            {"required": [*required, "suites"]},
            {"required": required, "properties": every},
            {"required": [*required, "defaults"], "properties": by_default},
        ],
    }
