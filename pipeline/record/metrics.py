"""Custom metrics in a record, which run no code."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, Literal, NoReturn, cast, get_args, get_origin

from rankledger.metrics.block import Floats
from rankledger.metrics.metric import Metric, MetricError, Parameter
from rankledger.pipeline.config.own_metrics import AGGREGATIONS, BLOCKS, RECORDED_FIELDS, parameter_kind
from rankledger.pipeline.record.manifest_parts import RecordedMetric, RecordedParameter


def record_metric(metric: Metric) -> RecordedMetric:
    """Return the record of a custom metric."""
    least, greatest = (None if math.isinf(end) else float(end) for end in metric.range)
    return RecordedMetric(
        **{name: getattr(metric, name) for name in RECORDED_FIELDS},
        documentation=inspect.getdoc(metric.function) or "",
        input=cast("Any", metric.input),
        range=[least, greatest],
        needs=list(metric.needs),
        aggregation=next(cast("Any", name) for name, known in AGGREGATIONS.items() if known == metric.aggregation),
        conditions={name: list(condition) for name, condition in metric.conditions.items()},
        cutoff=metric.cutoff,
        parameters={name: _record_parameter(own) for name, own in metric.parameters.items() if name != "average"},
    )


def _record_parameter(own: Parameter) -> RecordedParameter:
    default = None if own.required else own.default
    return RecordedParameter(
        kind=parameter_kind(own.type) or "text",
        words=list(get_args(own.type)) if get_origin(own.type) is Literal else [],
        required=own.required,
        default=list(default) if isinstance(default, tuple) else default,
    )


def recorded_metric(name: str, recorded: RecordedMetric) -> Metric:
    """Return the metric of that name in a record. It computes nothing."""
    least, greatest = recorded.range
    return Metric(
        name,
        _RecordedFunction(name, recorded),
        range=(-math.inf if least is None else least, math.inf if greatest is None else greatest),
        needs=tuple(recorded.needs),
        aggregation=AGGREGATIONS[recorded.aggregation],
        conditions={key: (other, value) for key, (other, value) in recorded.conditions.items()},
        **{name: getattr(recorded, name) for name in RECORDED_FIELDS},
    )


class _RecordedFunction:
    """Placeholder for the function of a recorded metric, with its signature and documentation."""

    def __init__(self, name: str, recorded: RecordedMetric) -> None:
        self._key = (name, recorded)
        self.__doc__ = recorded.documentation
        own = [_make_parameter(key, each) for key, each in recorded.parameters.items()]
        if recorded.cutoff != "refused":
            default = inspect.Parameter.empty if recorded.cutoff == "required" else None
            own.append(inspect.Parameter("k", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=int | None))
        block = inspect.Parameter("block", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=BLOCKS[recorded.input])
        self.__signature__ = inspect.Signature([block, *own], return_annotation=Floats)
        self.__annotations__ = {each.name: each.annotation for each in (block, *own)} | {"return": Floats}

    def __call__(self, block: object, **parameters: object) -> NoReturn:
        raise MetricError(
            "its code is not run, for it is named by a record that you did not make here; evaluate its config.yaml"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RecordedFunction) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._key


def _make_parameter(name: str, recorded: RecordedParameter) -> inspect.Parameter:
    types: Mapping[str, Any] = {"number": float | None, "text": str, "list": tuple[int, ...]}
    annotation = types[recorded.kind] if recorded.kind != "words" else Literal[tuple(recorded.words)]
    default = tuple(recorded.default) if isinstance(recorded.default, list) else recorded.default
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if recorded.required else default,
        annotation=annotation,
    )
