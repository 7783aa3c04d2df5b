"""The manifest of a record, `manifest.json`, as a typed model that is checked once when it is read.

Readers can rely on types, names and connections, even if somebody else wrote the record: an output's model is a model
of the record, a file name is not a path, an id is an id. Unknown keys are ignored.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from datetime import date as calendar_date
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Literal, Self, TypeAlias, TypeVar, cast

from pydantic import AfterValidator, ConfigDict, Field, RootModel, ValidationError, field_serializer, model_validator

from rankledger.pipeline.config.gates import night_of
from rankledger.pipeline.config.schema import Bootstrap, Comparison, Conventions
from rankledger.pipeline.config.sources import Model, model_of
from rankledger.pipeline.data.joined import DataWarning, Failure
from rankledger.pipeline.data.rows import ExternalMetrics
from rankledger.pipeline.record.manifest_parts import (
    Comparability,
    Count,
    Dataset,
    Definition,
    Environment,
    File,
    Number,
    Output,
    Part,
    PathText,
    Sha256,
)
from rankledger.pipeline.support.errors import InputError, shorten

MANIFEST = "manifest.json"

RECEIPTS = ("receipt.json", "promotion.json")
"""Receipts of the delivery to MLflow and of promotions, which are written after a record's manifest."""


def is_receipt(file: str) -> bool:
    """Return whether a file of a record is a receipt. Those of installed targets are `receipt-NAME.json`."""
    return file in RECEIPTS or (file.startswith("receipt-") and file.endswith(".json"))


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""As messages write them, in any locale."""

SCHEMA_VERSION: Final = 4
"""Of a record's layout; a record of any other is refused."""

_ID = re.compile(r"\d{8}T\d{6}Z-(?P<name>[A-Za-z0-9._-]+)-[0-9a-f]{8}", re.ASCII)

_FILES = ("config.yaml", "scores.parquet", "summary.csv")  # of every record

_ALL_DATASETS = "*"

T = TypeVar("T")


TrackingState: TypeAlias = Literal["off", "on", "environment"]
"""Whether an evaluation was to be logged to MLflow; `environment` if to the store of MLFLOW_TRACKING_URI."""


class OtherSchemaError(InputError):
    """Record of another version of rankledger."""


def is_evaluation_id(text: str) -> bool:
    """Return whether a text has the form `<UTC>-<name>-<8 hex>`, which is never empty, `..`, or a path."""
    return evaluation_name(text) is not None


def evaluation_name(text: str) -> str | None:
    """Return the name in the id of an evaluation. None if the text is no id."""
    match = _ID.fullmatch(text)
    if match is None:
        return None
    try:
        datetime.fromisoformat(text[:16])
    except ValueError:  # the 40th of a month
        return None
    return match["name"]


def begun(evaluation_id: str) -> datetime:
    """Return the start of an evaluation by its id, in whole seconds."""
    return datetime.fromisoformat(evaluation_id.partition("-")[0])


def short_day(text: str) -> str:
    """Return a day such as `8 Nov`, and any other label unchanged."""
    try:
        day = calendar_date.fromisoformat(text)
    except ValueError:
        return text
    return f"{day.day} {MONTHS[day.month - 1]}"


NightOrder: TypeAlias = tuple[calendar_date, datetime, str]


def order_night(date: str | None, began: datetime, evaluation_id: str) -> NightOrder:
    """Return the sort key of a record: its night or first day, then the time, then the id.

    The time alone does not order nights: earlier nights may be recorded later, and clocks are set back.
    """
    return night_of(date, began), began, evaluation_id


def rank_night(order: NightOrder, now: datetime) -> tuple[bool, calendar_date, bool, datetime, str]:
    """Return a sort key by night, then by time. The future comes first in both, because a clock was wrong.

    A night is of the future from the day after tomorrow, because tomorrow is today in some places. A second does not
    count, because the start of a record without a manifest is only known to the second.
    """
    night, began, evaluation_id = order
    is_past = began <= now + timedelta(seconds=1)
    return night <= (now + timedelta(days=1)).date(), night, is_past, began, evaluation_id


def _evaluation_id(text: str) -> str:
    if not is_evaluation_id(text):
        raise ValueError("expected an evaluation id, <UTC>-<name>-<8 hex>")
    return text


def _moment(text: str) -> str:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("expected a time with its offset from UTC")
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("expected a time in the years 1 to 9999 of UTC") from None
    return text


def _file_name(text: str) -> str:
    if text in ("", ".", "..", MANIFEST) or re.search(r"[/\\\0]", text):
        raise ValueError("expected the name of a file of the record, not a path")
    return text


def _command(text: str) -> str:
    if re.search(r"[\"'\\]", text):  # without them all texts are words
        shlex.split(text)
    return text


EvaluationId = Annotated[str, AfterValidator(_evaluation_id)]
Moment = Annotated[str, AfterValidator(_moment)]


class _Typed(RootModel[T], Generic[T]):
    """Dataclass as a file has it."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, defer_build=True)


class RecordedBaseline(Part):
    """Reference of a gate, or the reason why there is none."""

    reference: str
    record: EvaluationId | None
    reason: str = ""
    first: bool = False
    model: str = ""
    manifest_sha256: Sha256 | None = None
    new_datasets: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _has_its_hash(self) -> RecordedBaseline:
        if self.record is not None and self.manifest_sha256 is None:
            raise ValueError("expected the manifest_sha256 of the record")
        return self


class Manifest(Part):
    """Contents of `manifest.json`. The last three fields are known once the record is written."""

    schema_version: Literal[4]
    evaluation_id: EvaluationId
    name: str
    date: str | None
    seed: int
    conventions: Conventions
    """Conventions with every choice."""

    bootstrap: Bootstrap
    comparison: Comparison | None
    lead: dict[str, str]
    practical_difference: dict[str, Number]
    sensitivity: list[str]
    expansions: dict[str, str]
    definitions: dict[str, Definition]
    own_metrics: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Descriptions of the user's own metrics that suites name, see `record.metrics`."""

    n_queries: Count
    """Number of different queries, or users, of all datasets together."""

    datasets: dict[str, Dataset]
    models: dict[str, Model]
    outputs: list[Output]
    failures: list[Failure]
    warnings: list[DataWarning]
    baselines: dict[str, dict[str, RecordedBaseline]]
    external_metrics: dict[str, ExternalMetrics]
    records: str | None
    tracking: TrackingState

    alerts: bool = False
    """Whether a change of state was to be sent to the targets of `notify`."""

    error: str = ""
    """Why nothing could be evaluated, such as judgments that cannot be read. Empty if the models were looked at."""

    config: PathText
    command: Annotated[str, AfterValidator(_command)]
    repeats: EvaluationId | None
    user: str | None
    host: str | None
    environment: Environment
    created: Moment
    finished: Moment = ""
    timings: dict[str, Number] = Field(default_factory=dict)
    """Seconds by stage."""

    files: dict[Annotated[str, AfterValidator(_file_name)], File] = Field(default_factory=dict)

    @property
    def night(self) -> str:
        return self.date or str(datetime.fromisoformat(self.created).astimezone(UTC).date())

    @property
    def order(self) -> NightOrder:
        return order_night(self.date, datetime.fromisoformat(self.created), self.evaluation_id)

    @property
    def label(self) -> str:
        """Name in messages: `the night 2026-11-23`, or `the record of 23 Nov 14:09` (UTC) without a date."""
        if self.date:
            return f"the night {self.date}"
        began = datetime.fromisoformat(self.created).astimezone(UTC)
        return f"the record of {began.day} {MONTHS[began.month - 1]} {began:%H:%M}"

    @property
    def where(self) -> str:
        return f"{'on' if self.date else 'in'} {self.label}"

    @property
    def is_tracked(self) -> bool:
        return self.tracking != "off"

    @property
    def owners(self) -> dict[str, str]:
        return {name: model.owner for name, model in self.models.items() if model.owner}

    @property
    def tasks(self) -> dict[tuple[str, str], tuple[Output, ...]]:
        found: dict[tuple[str, str], tuple[Output, ...]] = {}
        for output in self.outputs:
            found[output.task] = (*found.get(output.task, ()), output)
        return found

    @property
    def not_evaluated(self) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for failure in self.failures:
            found.setdefault((failure.dataset, failure.model), failure.reason)
        evaluated = self.tasks
        return {task: reason for task, reason in found.items() if task not in evaluated}

    @field_serializer("failures")
    def _without_empty_replicates(self, failures: list[Failure]) -> list[dict[str, str]]:
        return [{key: text for key, text in vars(each).items() if text or key != "replicate"} for each in failures]

    @field_serializer("warnings")
    def _without_empty_fields(self, warnings: list[DataWarning]) -> list[dict[str, str]]:
        return [
            {key: text for key, text in vars(each).items() if text or key not in ("measure", "last")}
            for each in warnings
        ]

    @property
    def overrides(self) -> tuple[str, ...]:
        """Values of `--set` in the command. Empty for a Python call."""
        words = shlex.split(self.command) if self.command.startswith("rankledger ") else []
        return tuple(
            after if word == "--set" else word.removeprefix("--set=")
            for word, after in pairwise([*words, ""])
            if word == "--set" or word.startswith("--set=")
        )

    def name_then(self, dataset: str, was: str | None) -> str:
        """Return the name that a later dataset has in this record, `was` being its old name."""
        return was if was in self.datasets and dataset not in self.datasets else dataset

    def definitions_for(self, dataset: str) -> dict[str, Definition]:
        own = self.datasets[dataset].definitions if dataset in self.datasets else {}
        return self.definitions | own

    def comparability(self, dataset: str, measure: str) -> Comparability:
        """Return everything besides outputs that the scores of a measure depend on. `*` for all datasets."""
        if dataset == _ALL_DATASETS:
            return Comparability.combine({name: self.comparability(name, measure) for name in self.datasets})
        definition = self.definitions_for(dataset).get(measure)
        if definition is None or dataset not in self.datasets:
            return Comparability({})
        return Comparability.select(self.datasets[dataset].digests, definition.needs, definition.fingerprint)

    def fingerprint(self, dataset: str, measure: str) -> str | None:
        definition = self.definitions_for(dataset).get(measure)
        return definition.fingerprint if definition else None

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if problem := next(self._problems(), None):
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        if evaluation_name(self.evaluation_id) != self.name:
            yield f"the evaluation id has another name than {self.name!r}"
        yield from self._unknown_tasks()
        yield from self._wrong_metrics()
        for name, dataset in self.datasets.items():
            yield from (
                f"{measure!r} on {name!r} has no definition"
                for measure in dataset.measures
                if measure not in self.definitions
            )
            if dataset.measures and self.lead.get(name) not in dataset.measures:
                yield f"lead: {name!r} has no such measure as {self.lead.get(name)!r}"
        yield from (
            f"external_metrics: {model!r} is no model of the record"
            for model in self.external_metrics.keys() - self.models.keys()
        )

    def _wrong_metrics(self) -> Iterator[str]:
        if self.own_metrics:
            from rankledger.pipeline.record.manifest_parts import restore_metric  # here, because most records have none

            for name, described in self.own_metrics.items():
                try:
                    restore_metric(name, **described)
                except ValidationError as error:
                    yield f"own_metrics.{name}: {finding(error)}"
                except (TypeError, ValueError) as error:
                    yield f"own_metrics.{name}: {error}"

    def _unknown_tasks(self) -> Iterator[str]:
        outputs = [*(output.key for output in self.outputs), *(failure.output for failure in self.failures)]
        for dataset, model in map(model_of, outputs):
            if dataset not in self.datasets or model not in self.models:
                yield f"{model!r} on {dataset!r} is an output of no model or dataset of the record"
        if len(set(outputs)) < len(outputs):
            yield "an output is named twice"

    def to_json(self) -> str:
        return json.dumps(self.model_dump(exclude_unset=True), indent=2, ensure_ascii=False) + "\n"


def parse_manifest(data: bytes, path: Path) -> Manifest:
    """Parse and check a manifest."""
    try:
        manifest = Manifest.model_validate_json(data)
    except ValidationError as error:
        if any(found["loc"] == ("schema_version",) and found["type"] == "literal_error" for found in error.errors()):
            schema = _join_lines(str(json.loads(data)["schema_version"]))
            found = f"the record has schema {schema}, and this rankledger reads {SCHEMA_VERSION}"
            raise OtherSchemaError(f"{path}: {found}; install the version that wrote it") from None
        raise InputError(f"{path / MANIFEST}: {finding(error)}; restore the record") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise InputError(f"{path / MANIFEST}: {error}; restore the record") from None
    missing = [f"{key}: is missing" for key in ("finished", "timings", "files") if key not in manifest.model_fields_set]
    missing += [f"files: {name} is missing" for name in _FILES if name not in manifest.files]
    if missing:
        raise InputError(f"{path / MANIFEST}: {missing[0]}; restore the record")
    if is_evaluation_id(path.name) and path.name != manifest.evaluation_id:
        found = f"is of {manifest.evaluation_id}, not of this record"
        raise InputError(f"{path / MANIFEST}: {found}; restore the record")
    return manifest


def read_typed(kind: type[T], data: bytes) -> T:
    """Return a dataclass from JSON, whose values have the types of its fields."""
    root: T = _build_model(cast(Any, kind)).model_validate_json(data).root
    return root


@cache  # because pydantic keeps no model that nothing refers to
def _build_model(kind: Any) -> Any:
    return _Typed[kind]


def finding(error: ValidationError) -> str:
    """Return the first error of a validation in one line: place, expected and actual value."""
    first = error.errors(include_url=False)[0]
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"]).lstrip(".")
    reason = first["msg"].removeprefix("Value error, ")
    more = f" (and {error.error_count() - 1:,} more)" if error.error_count() > 1 else ""
    return _join_lines(f"{place}: {reason}{more}" if place else f"{reason}{more}")


def _join_lines(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else "�" for letter in text)
    return shorten(plain, 300)
