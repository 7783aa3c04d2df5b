"""Typed parts of a manifest, checked once when they are read, and custom metrics in a record, which run no code.

Unknown keys are ignored.
"""

from __future__ import annotations

import inspect
import keyword
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, validate_call

from rankledger.metrics.block import Floats
from rankledger.metrics.metric import Metric, MetricError, Need
from rankledger.pipeline.config.own_metrics import AGGREGATIONS, BLOCKS, RECORDED_FIELDS, parameter_kind
from rankledger.pipeline.config.sources import OutputKey, Replicate
from rankledger.pipeline.data.joined import JoinStats
from rankledger.pipeline.data.rows import InputFile


def _counts(quality: JoinStats) -> JoinStats:
    for name, count in vars(quality).items():
        least = -1 if name == "rank_order" else 0
        if isinstance(count, int) and not least <= count < 2**63:
            raise ValueError(f"{name}: expected a count, found {count}")
    return quality


def _path(text: str) -> str:
    if "\0" in text:
        raise ValueError("expected a path, found a NUL character")
    return text


def _check_file(file: InputFile) -> InputFile:
    digests = [digest for digest in (file.sha256, file.ranges_sha256) if digest is not None]
    if len(digests) != 1 or not re.fullmatch("[0-9a-f]{64}", digests[0]):
        raise ValueError("expected sha256, or else ranges_sha256")
    if not 0 <= file.size < 2**63:
        raise ValueError(f"size: expected a count, found {file.size}")
    _path(file.path)
    return file


def _write_file(file: InputFile) -> dict[str, Any]:
    return file.recorded


Count = Annotated[int, Field(ge=0, lt=2**63)]
Number = int | float
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RecordedStats = Annotated[JoinStats, AfterValidator(_counts)]
PathText = Annotated[str, AfterValidator(_path)]
Files = tuple[Annotated[InputFile, AfterValidator(_check_file), PlainSerializer(_write_file)], ...]


class Part(BaseModel):
    """Part of a manifest."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="ignore", allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )


class File(Part):
    """File of the record."""

    size: Count
    sha256: Sha256


OPTIONAL = ("documents", "interactions", "clusters")
"""Inputs of a dataset that only some measures need."""


@dataclass(frozen=True)
class InputChange:
    """Difference between the inputs of two results.

    Attributes:
        kind: `judgments` and how they are read, `excluded documents`, `documents`, `interactions`, `clusters` or
            `queries` if the measure needs them, the `definition` of the measure with the code of a custom metric, or
            the version of `rankledger`.
        before: Digest, fingerprint or version of the earlier result. None if there was none.
        after: Digest, fingerprint or version of the later result. None if there is none.
    """

    kind: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Comparability:
    """Everything besides model outputs that the scores of a measure on a dataset depend on."""

    parts: Mapping[str, str]  # digest or fingerprint by kind, as in `InputChange`, of those that the measure needs

    @classmethod
    def select(cls, digests: Mapping[str, str], needs: Collection[str], fingerprint: str) -> Comparability:
        """Return the parts that a measure depends on."""
        parts = {kind: digest for kind, digest in digests.items() if kind not in OPTIONAL or kind in needs}
        return cls({**parts, "definition": fingerprint})

    @classmethod
    def combine(cls, by_dataset: Mapping[str, Comparability]) -> Comparability:
        kinds = dict.fromkeys(kind for one in by_dataset.values() for kind in one.parts)
        return cls(
            {
                kind: ", ".join(
                    f"{name} {one.parts[kind]}" for name, one in sorted(by_dataset.items()) if kind in one.parts
                )
                for kind in kinds
            }
        )

    def differences(self, later: Comparability) -> tuple[InputChange, ...]:
        kinds = dict.fromkeys((*self.parts, *later.parts))
        changes = (InputChange(kind, self.parts.get(kind), later.parts.get(kind)) for kind in kinds)
        return tuple(change for change in changes if change.before != change.after)


class Definition(Part):
    """Definition of a measure."""

    title: str
    formula: str
    direction: Literal["higher", "lower", "neither"]
    range: Annotated[list[Number | None], Field(min_length=2, max_length=2)]
    reference: str
    version: int
    parameters: dict[str, Any]
    k: int | None
    mlflow_key: str
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    drawn_bounds: list[str]
    needs: list[str] = Field(default_factory=list)
    """Keys of `Dataset.digests` that only some measures need: `documents`, `interactions`, `clusters`."""


class Dataset(Part):
    """Dataset that was evaluated."""

    kind: Literal["rankings", "ratings", "scores"]
    digests: dict[str, str]
    """Digests by kind of what scores rest on besides outputs: `judgments` and how they are read, `excluded documents`,
    `queries`, and what `Definition.needs` names."""

    relevant: Number | None
    definitions: dict[str, Definition]
    n_queries: Count
    n_without_relevant: Count | None
    suites: dict[str, Annotated[list[str], Field(min_length=1)]]
    inputs: dict[str, Files]
    """Files by role, such as `judgments`."""

    exclude_self: bool = False
    """Whether the document whose id is the query's was left out of rankings."""

    seen: Literal["refuse", "remove", "count"] | None = None
    """What became of recommendations that stand in the interactions; None without these."""

    was: str | None = None
    """Old name, for older records that have no dataset of its new name."""

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(measure for suite in self.suites.values() for measure in suite))

    def files(self, *roles: str) -> tuple[InputFile, ...]:
        return tuple(file for role, files in self.inputs.items() if role in roles for file in files)


class Output(Part):
    """Model output that was evaluated."""

    dataset: str
    model: str
    path: PathText
    files: Files
    parsed: bool
    quality: RecordedStats
    depth: Annotated[list[Number], Field(min_length=3, max_length=3)] | None
    replicate: str = ""
    """The replicate of the model; none for a model of one output."""

    @property
    def task(self) -> tuple[str, str]:
        return self.dataset, self.model

    @property
    def key(self) -> OutputKey:
        return self.dataset, Replicate(self.model, self.replicate) if self.replicate else self.model


class Git(Part):
    """Repository of the config."""

    commit: str
    branch: str | None = None
    url: str | None = None
    dirty: bool | None
    """True if tracked files differ from the commit. None if git did not answer."""


class Environment(Part):
    """Machine and packages of the evaluation."""

    python: str
    platform: str
    cpu: str
    blas: list[str]
    packages: dict[str, str]
    git: Git | None


_CHECKED = ConfigDict(strict=True, allow_inf_nan=False)
_TYPES: dict[str, Any] = {"number": float | None, "text": str, "list": tuple[int, ...]}


def describe_metric(metric: Metric) -> dict[str, Any]:
    """Return a custom metric as a manifest has it: the arguments of `restore_metric` besides the name."""
    least, greatest = (None if math.isinf(end) else float(end) for end in metric.range)
    parameters = {}
    for name, parameter in metric.parameters.items():
        default = None if parameter.required else parameter.default
        parameters[name] = {
            "kind": parameter_kind(parameter.type) or "text",
            "words": list(get_args(parameter.type)) if get_origin(parameter.type) is Literal else [],
            "required": parameter.required,
            "default": list(default) if isinstance(default, tuple) else default,
        }
    parameters.pop("average", None)
    return {name: getattr(metric, name) for name in RECORDED_FIELDS} | {
        "range": [least, greatest],
        "needs": list(metric.needs),
        "aggregation": next(name for name, known in AGGREGATIONS.items() if known == metric.aggregation),
        "conditions": {name: list(condition) for name, condition in metric.conditions.items()},
        "function": {
            "documentation": inspect.getdoc(metric.function) or "",
            "input": metric.input,
            "cutoff": metric.cutoff,
            "parameters": parameters,
        },
    }


@validate_call(config=_CHECKED)
def restore_metric(
    name: str,
    *,
    code: Annotated[str, Field(min_length=1)],
    title: str,
    range: Annotated[list[Number | None], Field(min_length=2, max_length=2)],
    direction: Literal["higher", "lower", "neither"],
    needs: list[Need],
    aggregation: Literal["mean", "geometric_mean", "root_mean_square"],
    undefined: Literal["convention", "skip"],
    additive: bool,
    monotone: bool,
    conditions: dict[str, Annotated[list[str], Field(min_length=2, max_length=2)]],
    version: int,
    function: dict[str, Any],
) -> Metric:
    """Return the metric of a manifest, which computes nothing. Raise ValueError if its description is wrong."""
    least, greatest = range
    recorded = _RecordedFunction(name, **function)
    if lacking := {*conditions, *(other for other, _ in conditions.values())} - recorded.names:
        raise ValueError(f"a condition names {lacking.pop()!r}, which is no parameter")
    return Metric(
        name,
        recorded,
        title=title,
        range=(-math.inf if least is None else least, math.inf if greatest is None else greatest),
        direction=direction,
        needs=tuple(needs),
        aggregation=AGGREGATIONS[aggregation],
        undefined=undefined,
        additive=additive,
        monotone=monotone,
        conditions={key: (other, value) for key, (other, value) in conditions.items()},
        version=version,
        code=code,
    )


def _check_name(text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text) or text in ("block", "k"):
        raise ValueError("expected the name of a parameter")
    return text


class _RecordedFunction:
    """Placeholder for the function of a recorded metric, with its signature and documentation."""

    @validate_call(config=_CHECKED)
    def __init__(
        self,
        name: str,
        *,
        documentation: str,
        input: Literal["judged", "catalogue", "ratings"],
        cutoff: Literal["refused", "optional", "required"],
        parameters: dict[Annotated[str, AfterValidator(_check_name)], dict[str, Any]],
    ) -> None:
        self._key = {"documentation": documentation, "input": input, "cutoff": cutoff, "parameters": parameters}
        self._name = name
        self.names = parameters.keys()
        self.__doc__ = documentation
        own = [_make_parameter(key, **each) for key, each in parameters.items()]
        if cutoff != "refused":
            default = inspect.Parameter.empty if cutoff == "required" else None
            own.append(inspect.Parameter("k", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=int | None))
        block = inspect.Parameter("block", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=BLOCKS[input])
        self.__signature__ = inspect.Signature([block, *own], return_annotation=Floats)
        self.__annotations__ = {each.name: each.annotation for each in (block, *own)} | {"return": Floats}

    def __call__(self, block: object, **parameters: object) -> NoReturn:
        raise MetricError(
            "its code is not run, for it is named by a record that you did not make here; evaluate its config.yaml"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RecordedFunction) and (self._name, self._key) == (other._name, other._key)

    def __hash__(self) -> int:
        return hash(self._name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_function, (self._name, self._key)


def _restore_function(name: str, described: dict[str, Any]) -> _RecordedFunction:
    return _RecordedFunction(name, **described)


@validate_call(config=_CHECKED)
def _make_parameter(
    name: str,
    *,
    kind: Literal["number", "text", "words", "list"],
    words: list[str],
    required: bool,
    default: Number | str | list[int] | None,
) -> inspect.Parameter:
    if (kind == "words") != bool(words):
        raise ValueError("expected words for a choice of words, and for no other")
    annotation = Literal[tuple(words)] if kind == "words" else _TYPES[kind]
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else tuple(default) if isinstance(default, list) else default,
        annotation=annotation,
    )
