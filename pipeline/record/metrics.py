"""Custom metrics in a record, which run no code."""

from __future__ import annotations

import inspect
import keyword
import math
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin

from pydantic import AfterValidator, ConfigDict, Field, validate_call

from rankledger.metrics.block import Floats
from rankledger.metrics.metric import Metric, MetricError, Need
from rankledger.pipeline.config.own_metrics import AGGREGATIONS, BLOCKS, RECORDED_FIELDS, parameter_kind
from rankledger.pipeline.record.manifest_parts import Number

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
