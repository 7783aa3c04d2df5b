"""The config: every section, its keys and defaults, and the JSON Schema of all.

Paths are relative to the file that names them, tracking stores to the runs folder. An empty key counts as absent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import starmap
from pathlib import Path
from string import Formatter
from typing import Annotated, ClassVar, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticKnownError

import rankledger.metrics.conventions
from rankledger.pipeline.config import loader
from rankledger.pipeline.config.gates import Gate
from rankledger.pipeline.config.loader import Document
from rankledger.pipeline.config.messages import MOST_LINES, explain_errors
from rankledger.pipeline.config.paths import paths_of
from rankledger.pipeline.config.sources import Dataset, DatasetDefaults, Model
from rankledger.pipeline.config.values import (
    Bytes,
    CachePlace,
    DatasetName,
    Duration,
    EvaluationName,
    Interval,
    Jobs,
    Least,
    Name,
    Number,
    OneOrMore,
    OwnMetricName,
    ProfileName,
    QueryColumns,
    Section,
    Suite,
    Whole,
    is_printable,
)
from rankledger.pipeline.config.yaml import KeyPath, Value
from rankledger.pipeline.support.text import has_credentials

Test: TypeAlias = Literal["randomization", "t", "bootstrap"]
Correction: TypeAlias = Literal["maxt", "holm", "bh", "none"]
Family: TypeAlias = Literal["dataset", "measure"]


class Comparison(Section):
    """Settings for the comparison of models query by query, and for its tests."""

    baseline: Name | Annotated[tuple[Name, ...], Field(min_length=1)]
    """The model that all others are compared with, or several models: each dataset uses the first that has an output
    there. `all_pairs` compares every pair, with the first by name as the baseline."""

    measures: OneOrMore | None = None
    """Measures to compare by; by default every measure of the dataset that has a score per query."""

    test: Test = "randomization"
    """Test of all differences: signs flipped at random, Student's t, or the bootstrap. If `test` or `correction` is
    set, both apply to every measure, and there is no primary family."""

    permutations: Whole = Field(10_000, ge=100, le=1_000_000)
    """Number of random sign flips, at most 1,000,000."""

    correction: Correction | None = None
    """How p-values are corrected for the number of tests of a family: by default `maxt` (Westfall and Young), or `holm`
    if the test is `t`, which `maxt` cannot correct; `bh` controls the false discovery rate instead."""

    family: Family = "dataset"
    """Tests that are corrected together: all tests of a dataset, or for each `measure` its pairs of models on all
    queries. Then its pairs on all slices are another family."""

    primary: bool | None = None
    """Compare by the lead measure on all queries in a family of its own, by the bootstrap-t, so that the intervals hold
    together. All else is then exploratory. By default true, unless `test` or `correction` is set."""

    search_slices: bool = False
    """Whether to search all columns of the queries tables for slices in which the difference by the lead measure
    differs from the rest."""

    @property
    def baselines(self) -> tuple[str, ...]:
        return (self.baseline,) if isinstance(self.baseline, str) else self.baseline

    @property
    def chosen_correction(self) -> Correction:
        """Correction that is written, or the default of the test."""
        return self.correction or ("holm" if self.test == "t" else "maxt")

    @property
    def has_primary(self) -> bool:
        return self.model_fields_set.isdisjoint({"test", "correction"}) if self.primary is None else self.primary

    @model_validator(mode="after")
    def _holds_together(self) -> Comparison:
        if self.test == "t" and self.correction == "maxt":
            raise ValueError("maxt needs resamples, which the test t does not draw; choose holm, bh or none")
        if self.primary and (self.test, self.chosen_correction) != ("randomization", "maxt"):
            raise ValueError("the primary family has its own test and correction. Remove `primary: true`.")
        return self


_OF_TRACKING = "contains credentials; take them from the environment, as in https://${NAME}:${PASSWORD}@host"
_OF_AN_INPUT = "contains credentials; set those of the filesystem in the environment, as AWS_ACCESS_KEY_ID"
_OF_A_MODEL = "contains credentials, which would be recorded; remove them"


def _find_secrets(document: Document, models: Mapping[KeyPath, Model]) -> Iterator[tuple[KeyPath, str]]:
    section = document.raw.get("tracking")
    uri = section.get("uri") if isinstance(section, dict) else None
    written = re.sub(r"\$\{\w+(:-)?\}?", "", uri) if isinstance(uri, str) else ""  # a default is written in the config
    if has_credentials(written):
        yield ("tracking", "uri"), _OF_TRACKING
    yield from recorded_secrets(document.raw.get("notify"))
    for path, value in paths_of(document.data):
        if has_credentials(value):
            yield path, _OF_AN_INPUT
    for entry, model in models.items():
        for key, param in model.params.items():
            if has_credentials(str(param)):
                yield (*entry, "params", key), _OF_A_MODEL


_EXPLAINED = 10_000  # errors; a line is shown for few of them


class Conventions(Section):
    """The choices on which evaluation tools disagree: a profile's, with your own on top."""

    shorthand: ClassVar = {"type": "string", "enum": [*rankledger.metrics.conventions.PROFILES]}
    short_for: ClassVar = "profile"

    profile: ProfileName = "trec_eval"
    """The tool whose choices and default parameters to use."""

    ties: rankledger.metrics.conventions.Ties | None = None
    """The order of documents with equal scores; `rank_column` orders by the file's rank and reads no scores."""

    score_precision: Literal["float32", "float64"] | None = None
    """Precision to which scores are rounded before they are compared."""

    missing_queries: Literal["empty", "skip", "error"] | None = None
    """A judged query without output: an empty ranking, left out of every mean, or a reason to refuse the output."""

    undefined_queries: Literal["zero", "skip"] | None = None
    """A query without relevant documents: counts as 0, or is left out."""

    negative_grades: Literal["unjudged", "non_relevant", "error"] | None = None
    """A negative grade: not judged, a grade of 0, or a reason to refuse the judgments."""

    unjudged_documents: Literal["non_relevant", "condensed"] | None = None
    """A document without a judgment: not relevant, or removed from the ranking."""

    depth: Whole | None = Field(None, ge=1, le=1_000_000_000)
    """Documents of each ranking to use; all unless the profile says otherwise."""

    @property
    def resolved(self) -> rankledger.metrics.conventions.Profile:
        chosen = self.model_dump(exclude={"profile"}, exclude_none=True)
        return rankledger.metrics.conventions.PROFILES[self.profile].with_conventions(**chosen)

    @model_validator(mode="after")
    def _holds_together(self) -> Conventions:
        _ = self.resolved
        return self


class Bootstrap(Section):
    """Settings for confidence intervals."""

    resamples: Whole = Field(10_000, ge=100, le=1_000_000)
    """Number of resamples of the queries, with replacement; at most 1,000,000, which take 16 MB per figure."""

    confidence: Number = Field(0.95, gt=0, lt=1)
    """Share of intervals that should cover the true value."""

    method: Literal["bca+t", "bca", "percentile", "basic"] = "bca+t"
    """How the resamples give an interval: `percentile`, by their quantiles; `basic`, by these mirrored at the figure;
    `bca`, by quantiles corrected for bias and skewness; `bca+t`, by the outer ends of these and of Student's t. The
    primary family's intervals are always made by the bootstrap-t."""


class Execution(Section):
    """Settings for workers and memory. They never change a value."""

    jobs: Jobs = -1
    """Number of workers, up to 1,000; -1 is one per CPU, -2 one fewer."""

    backend: Literal["threads", "processes", "dask"] = "threads"
    """Run workers as threads or processes; `dask` has the workers of a Dask cluster read the outputs."""

    scheduler: str | None = Field(None, min_length=1)
    """Address of the scheduler of the Dask cluster, such as `tcp://10.0.0.5:8786`."""

    worker_timeout: Interval = Field(timedelta(seconds=60), json_schema_extra={"default": "1m"})
    """Time limit for the Dask cluster to have a worker, and for its scheduler to answer."""

    memory: Bytes | None = None
    """Memory for reading inputs, such as `2GiB`, by default half of what the machine or the container has. A smaller
    value reads fewer outputs at a time. At least `128MiB`, and a large output of text needs about `340MiB`. An output
    that does not fit and is not in the output cache is rejected with the memory that it needs. It is no limit on the
    process, because resamples, scores of many queries and pages come on top, so give a container more."""

    cache: CachePlace = True
    """Folder or URL of the output cache, such as `s3://eval/cache`; `true` is `cache` in the runs folder, `false` uses
    none."""

    @property
    def local_backend(self) -> Literal["threads", "processes"]:
        return "threads" if self.backend == "dask" else self.backend


class Tracking(Section):
    """Settings for logging to MLflow."""

    uri: str | None = Field(None, min_length=1)
    """The tracking store; by default that of `MLFLOW_TRACKING_URI`, or else `mlflow.db` in the runs folder. A relative
    path starts at the runs folder."""

    max_metrics: Whole = Field(40, ge=1, le=1000)
    """Metrics of a run, at most; the rest is in the record, which the evaluation's run has as its files."""

    timeout: Duration = Field(timedelta(seconds=60), json_schema_extra={"default": "1m"})
    """Time limit for logging an evaluation; after that, `rankledger sync` delivers it."""

    enabled: bool = True
    """Whether to log evaluations to MLflow."""


EXISTS = "exists"
STABLE = "stable"


def _ready(ready: str) -> str:
    try:
        fields = [(spec, conversion) for _, name, spec, conversion in Formatter().parse(ready) if name is not None]
    except ValueError:
        raise ValueError(f"{ready!r} has a single brace; write {{{{ or }}}} to mean it literally") from None
    if any(spec or conversion for spec, conversion in fields):
        raise ValueError(f"{ready!r} has a placeholder with a format; write it as {{model}}")
    if ready.endswith("/"):
        raise ValueError(f"{ready!r} is a folder; name the file in it that is written last, such as _SUCCESS")
    return ready


Ready: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_ready)]


class Nightly(Section):
    """Settings for what `rankledger nightly` waits for, and how long."""

    wait: Duration = Field(timedelta(0), json_schema_extra={"default": "0"})
    """How long to wait for what is not ready, such as `90s`, `30m` or `2h`; `0` is not at all. An output that is still
    late has failed, and the others are evaluated."""

    ready: Ready = EXISTS
    """When an output is ready: `exists`, as soon as it exists; `stable`, when its size has not changed for one `every`;
    or the name of a marker file that is written beside it last, such as `_SUCCESS` or `{model}.done`."""

    every: Interval = Field(timedelta(seconds=30), json_schema_extra={"default": "30s"})
    """How often to check."""

    @model_validator(mode="after")
    def _holds_together(self) -> Nightly:
        if self.ready == STABLE and self.wait < self.every:
            raise ValueError("`ready: stable` checks twice, `every` apart; set `wait` to at least as long")
        return self


KINDS = ("webhook", "command", "metrics")
_SECRET_HOSTS = ("slack.com", "office.com", "azure.com", "powerplatform.com", "discord.com")  # with keys in paths
_TOKEN = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}")  # of any server
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-)?\}")  # whose default is empty
_IN_THE_URL = "contains credentials, which would be recorded; write the address as ${NAME}"
_IS_SECRET = "is a secret, which would be recorded; write it as ${NAME}"


def _address(url: str) -> str:
    url = url.strip()  # a variable from a file often ends in a line break
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and parts.port != 0 and is_printable(url)
    except ValueError:  # of a bracket, or of a slash in a password
        is_address = False
    if not is_address or not re.fullmatch(r"https?://\S+", url):
        raise ValueError("found no address of a server. Set one that begins with https:// or http://.")
    return url


def _page(template: str) -> str:
    _address(template)
    try:
        words = {name for _, name, spec, conversion in Formatter().parse(template) if name is not None}
    except ValueError:
        words = {""}
    if not words <= {"evaluation_id"}:
        raise ValueError("has another placeholder than {evaluation_id}; write a literal brace as {{ or }}")
    return template


Address: TypeAlias = Annotated[str, AfterValidator(lambda url: url.strip() and _address(url))]  # empty: no target
Word: TypeAlias = Annotated[str, Field(min_length=1)]


class Notify(Section):
    """A target of `rankledger nightly` for changes of what fails: one of `webhook`, `command` and `metrics`."""

    webhook: Address | None = None
    """Address that the alert is posted to as JSON. If it is a secret, as those of Slack and Teams are, write `${NAME}`;
    `${NAME:-}` is no target where the variable is not set."""

    command: Annotated[tuple[Word, ...], Field(min_length=1)] | None = None
    """Program and its arguments, as a list; it gets the alert as JSON on stdin. No shell reads it."""

    metrics: Word | None = None
    """Text file for Prometheus that each night replaces: estimates, intervals, states and times. A relative path
    starts at the runs folder."""

    remind_after: int = Field(7, ge=0)
    """Nights after which an alert is repeated if the same gates still fail, counted by their dates; 0 is never."""

    page: Annotated[str, AfterValidator(_page)] | None = None
    """Address of the page of a record for the link in alerts, with `{evaluation_id}`."""

    timeout: Interval = Field(timedelta(seconds=15), json_schema_extra={"default": "15s"})
    """Time limit for a webhook's answer, and for a command."""

    @model_validator(mode="after")
    def _is_one_target(self) -> Notify:
        named = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(named) != 1:
            problem = f"has {' and '.join(named)}" if named else "has no target"
            raise ValueError(f"{problem}; write one of {', '.join(KINDS)} for each target")
        return self


def recorded_secrets(raw: Value) -> Iterator[tuple[KeyPath, str]]:
    """Yield key path and message for each secret that `notify` as written would put into the record."""
    for position, target in enumerate(raw if isinstance(raw, list) else ()):
        url = target.get("webhook") if isinstance(target, dict) else None
        if isinstance(url, str) and not _VARIABLE.fullmatch(url):
            host = re.sub(r"^\w+://([^/:]*).*", r"\1", url)
            written = _VARIABLE.sub("", url)
            if has_credentials(written):
                yield ("notify", position, "webhook"), _IN_THE_URL
            elif host.endswith(_SECRET_HOSTS) or _TOKEN.search(written.partition(host)[2]):
                yield ("notify", position, "webhook"), _IS_SECRET


class Config(Section):
    """An evaluation: which models, on which datasets, by which measures."""

    name: EvaluationName
    """The name of the evaluation, used for the MLflow experiment and in each record's id."""

    datasets: dict[DatasetName, Dataset] = Field(min_length=1)
    """The datasets by name."""

    models: dict[Name, Model] = Field(min_length=1)
    """The models by name; `*` stands for every model whose output is found by the template of its outputs."""

    suites: dict[Name, Suite]
    """Named lists of measures, such as `ndcg@5,10`; a suite has measures of rankings or of ratings, not both. Optional
    if every dataset has `scores`."""

    metrics: dict[OwnMetricName, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict, max_length=100)
    """Metrics of your own, by name: `{click_value: "clicks:click_value"}` is the function or `Metric` of that name in
    `clicks.py` beside this file, or else in the module `clicks` that Python finds; `../lib/clicks.py:click_value` is in
    a file elsewhere. Evaluating a config runs this code."""

    cluster: Name | None = None
    """Column of the queries tables, such as `user_id`; queries with equal text in it are resampled together."""

    slices: QueryColumns = ()
    """Columns of the queries tables; each text in a column makes a slice with its own figures."""

    pooled: bool = False
    """Whether to report the mean over all datasets, too, as the dataset `*`."""

    comparison: Comparison | None = None
    """Which models are compared query by query; by default none."""

    lead: Name | None = None
    """The measure that comes first in every table, report and run, such as `ndcg@10`; by default, and for datasets
    without it, the first measure of the dataset's first suite."""

    practical_difference: dict[str, Least] = Field(default_factory=dict)
    """By measure, the smallest difference that matters in practice, such as `ndcg@10: 0.005`; reports compare intervals
    with it."""

    gates: tuple[Gate, ...] = Field((), max_length=1000)
    """Conditions that models must meet to be released."""

    gates_error_rate: Literal["per_gate", "per_night"] = "per_gate"
    """Whether each gate raises false alarms at its own rate, or all gates share the rate of one, which divides the
    error of each by their number."""

    conventions: Conventions = Field(default_factory=Conventions)
    """The choices on which evaluation tools disagree."""

    sensitivity: tuple[Literal["ties"], ...] = ()
    """What to vary: `ties` adds the lowest, mean and highest figure over all orders of documents with equal scores."""

    bootstrap: Bootstrap = Field(default_factory=Bootstrap)
    """How confidence intervals are drawn."""

    seed: Whole = Field(20261120, ge=0)
    """The root of all randomness; the same seed gives the same figures."""

    nightly: Nightly = Field(default_factory=Nightly)
    """What `rankledger nightly` waits for."""

    execution: Execution = Field(default_factory=Execution)
    """How the work is distributed; it never changes a figure."""

    tracking: Tracking = Field(default_factory=Tracking)
    """How evaluations are logged to MLflow."""

    notify: tuple[Notify, ...] = Field((), max_length=20)
    """Where `rankledger nightly` sends changes of state: webhooks, commands and files."""

    report: bool = True
    """Whether to write the page `report.html`; `rankledger report` makes one at any time."""

    records: str | None = Field(None, min_length=1)
    """Folder or URL of the records, such as `s3://eval/records`; by default in the runs folder."""

    @model_validator(mode="before")
    @classmethod
    def _may_leave_suites_out(cls, data: object) -> object:
        datasets = data.get("datasets") if isinstance(data, dict) else None
        if isinstance(data, dict) and isinstance(datasets, dict) and all(map(_is_of_scores, datasets.values())):
            return {"suites": {}} | {key: value for key, value in data.items() if value is not None}
        return data

    @field_validator("metrics", mode="before")
    @classmethod
    def _names_code(cls, metrics: object) -> object:
        if isinstance(metrics, list):
            raise ValueError("found a list; `metrics` names code of your own; list measures under `suites`")
        return metrics

    @field_validator("suites", mode="before")
    @classmethod
    def _has_few_lines(cls, suites: object) -> object:
        """Count lines first, because suggestions are searched for each wrong one."""
        lines = [suite for suite in suites.values() if isinstance(suite, list)] if isinstance(suites, dict) else []
        if sum(map(len, lines)) > MOST_LINES:
            n_lines = f"{sum(map(len, lines)):,} lines in all suites"
            raise ValueError(f"found {n_lines}, more than {MOST_LINES:,}; remove some, or write ndcg@5,10 as one")
        return suites

    @field_validator("suites")
    @classmethod
    def _has_suites(cls, suites: dict[str, Suite], info: ValidationInfo) -> dict[str, Suite]:
        datasets: Mapping[str, Dataset] = info.data.get("datasets", {})
        if not suites and any(dataset.kind != "scores" for dataset in datasets.values()):
            raise PydanticKnownError("too_short", {"field_type": "Dictionary", "min_length": 1, "actual_length": 0})
        return suites


class Defaults(Section):
    """Defaults for every dataset and every model."""

    dataset: DatasetDefaults = Field(default_factory=DatasetDefaults)
    """Defaults for datasets; paths are templates: `judgments: "{dataset}/qrels.tsv"`."""

    model: Model = Field(default_factory=Model)
    """Defaults for models; paths are templates: `outputs: "{dataset}/{model}.tsv"`."""


class ConfigFile(Config):
    """Keys of a config file."""

    extends: str | tuple[str, ...] | None = None
    """One or several files to build on: mappings merge key by key, null removes a key."""

    defaults: Defaults = Field(default_factory=Defaults)
    """Defaults for every dataset and every model."""


@dataclass(frozen=True)
class Loaded:
    """A valid config and its document."""

    config: Config
    document: loader.Document


def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    secrets: Mapping[str, str] | None = None,
) -> Loaded:
    """Read a config file with what it extends, `--set` overrides, environment variables and defaults.

    Raises:
        InputError: All findings at once, one line each.
    """
    return validate(loader.load(path, overrides, environ, secrets))


def validate(document: Document) -> Loaded:
    """Return the config of a document. Raise InputError with all findings."""
    try:
        written = ConfigFile.model_validate(document.data)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        findings = [*explain_errors(errors[:_EXPLAINED], document.data, _find_section)]
        wrong_values = (finding for finding in findings if finding[0][2:3] and finding[0][2] in Notify.model_fields)
        if usable := document.without_targets(starmap(document.finding, wrong_values)):
            return validate(usable)
        document.refuse(findings, n_further=max(0, len(errors) - _EXPLAINED))
        raise
    models: dict[KeyPath, Model] = {("models", name): model for name, model in written.models.items()}
    document.refuse(_find_secrets(document, models | {("defaults", "model"): written.defaults.model}))
    config = Config.model_construct(**{name: getattr(written, name) for name in Config.model_fields})  # all are valid
    return Loaded(config, document)


def _is_of_scores(dataset: object) -> bool:
    keys = ("scores", "logs")
    return any(dataset.get(key) if isinstance(dataset, dict) else getattr(dataset, key, None) for key in keys)


def _find_section(path: KeyPath) -> type[Section]:
    section: type[Section] = ConfigFile
    keys = iter(path)
    for key in keys:
        section = next(_find_sections(section.model_fields[str(key)].annotation), section)
        if key in ("datasets", "models", "scores", "outputs", "gates", "notify"):
            next(keys, None)  # a name, or a place in the list
    return section


def _find_sections(annotation: object) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for argument in get_args(annotation):
        yield from _find_sections(argument)


def schema() -> dict[str, object]:
    """Return the JSON Schema of a config file for editors."""
    generated = ConfigFile.model_json_schema()
    generated.pop("required")  # what one file leaves out, another that it extends may hold
    required = ["name", "datasets", "models"]
    of_scores = {"type": "object", "anyOf": [{"required": ["scores"]}, {"required": ["logs"]}]}
    every = {"datasets": {"type": "object", "additionalProperties": of_scores}}
    by_default = {"defaults": {"type": "object", "required": ["dataset"], "properties": {"dataset": of_scores}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **generated,
        "title": "rankledger config",
        "anyOf": [
            {"required": ["extends"]},
            {"required": [*required, "suites"]},
            {"required": required, "properties": every},
            {"required": [*required, "defaults"], "properties": by_default},
        ],
    }
