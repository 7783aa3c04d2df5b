"""A measure: a metric with its parameters and cutoff, written `ndcg(gain=exponential)@10`.

`Measure.parse` is the only parser and `str` undoes it; that string is the config entry and the report's column.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from metrics.aliases import ALIASES
from metrics.block import JudgedBlock
from metrics.conventions import Conventions
from metrics.registry import METRICS, Metric, Parameter

__all__ = ["Measure", "Value"]

Value = float | int | str | tuple[int, ...]

_SHAPE = re.compile(r"\s*(?P<name>[^\s(@]+)\s*(?:\((?P<parameters>.*)\))?\s*(?:@(?P<cutoffs>[^()@]*))?\s*")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CUTOFFS = re.compile(r"\[(\s*[1-9]\d{0,17}\s*(,\s*[1-9]\d{0,17}\s*)*)\]|([1-9]\d{0,17})", re.ASCII)
_SPLIT = re.compile(r",(?![^\[]*\])")  # commas outside square brackets


@dataclass(frozen=True)
class Measure:
    """A metric with its parameters and cutoff.

    Attributes:
        metric: what is measured.
        given: the parameters that were written, in the metric's order.
        k: the cutoff; None counts the whole ranking.
    """

    metric: Metric
    given: tuple[tuple[str, Value], ...] = ()
    k: int | None = None

    @classmethod
    def parse(cls, text: str) -> Measure:
        """The measure that `text` writes.

        Raises:
            ValueError: `text` is not one measure: the message says what was found and, where it can, what was meant.
        """
        measures = cls.expand(text)
        if len(measures) > 1:
            raise ValueError(f"'{text}' is {len(measures)} measures; write one cutoff")
        return measures[0]

    @classmethod
    def expand(cls, text: str) -> tuple[Measure, ...]:
        """The measures that `text` writes: one for each cutoff of `ndcg@5,10`.

        Raises:
            ValueError: as `parse`.
        """
        shape = _SHAPE.fullmatch(text)
        if shape is None:
            raise ValueError(f"'{text}' is not a measure; write metric(parameter=value,…)@cutoff, such as ndcg@10")
        metric = METRICS.get(shape["name"])
        if metric is None:
            raise ValueError(f"unknown metric '{text.strip()}'{_suggestion(shape)}")
        given = _parameters(metric, shape["parameters"])
        measures = tuple(cls(metric, given, k) for k in _cutoffs(metric, shape["cutoffs"]))
        _try(measures[0])
        return measures

    def __str__(self) -> str:
        """The measure as it is written in a config."""
        given = ",".join(f"{name}={_written(value)}" for name, value in self.given)
        return f"{self.metric.name}{f'({given})' if given else ''}{'' if self.k is None else f'@{self.k}'}"

    @property
    def key(self) -> str:
        """The measure as a metric name that MLflow allows: `ndcg_at_10`, `ndcg.gain_exponential_at_10`."""
        given = "".join(
            f".{name}_{re.sub(r'[^A-Za-z0-9.]+', '_', _written(value).strip('[]'))}" for name, value in self.given
        )
        return f"{self.metric.name}{given}{'' if self.k is None else f'_at_{self.k}'}"

    @property
    def pooled(self) -> bool:
        """Whether a query weighs as much as it has pairs: its figure is a ratio of sums."""
        return self.parameters.get("average") == "pooled"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The value of every parameter that has an effect: the given ones and the others' defaults."""
        values = {name: parameter.default for name, parameter in self.metric.parameters.items()} | dict(self.given)
        conditions = self.metric.conditions.items()
        idle = {name for name, (other, value) in conditions if values[other] != value}
        return {name: value for name, value in values.items() if name not in idle}

    def arguments(self, max_grade: float) -> dict[str, Any]:
        """The keyword arguments of the metric's function.

        Args:
            max_grade: the greatest grade of the dataset's judgments, for the measures that need one and name none.
        """
        found = {name: value for name, value in self.parameters.items() if name != "average"}
        if "max_grade" in found and found["max_grade"] is None:
            found["max_grade"] = max_grade
        return found if self.metric.cutoff == "refused" else found | {"k": self.k}

    def fingerprint(self, conventions: Conventions) -> str:
        """16 hex digits that name the definition: metric, version, every parameter, and the conventions it uses."""
        definition = {
            "metric": self.metric.name,
            "version": self.metric.version,
            "parameters": {name: _plain(value) for name, value in self.parameters.items()},
            "k": self.k,
            "conventions": {} if self.metric.input == "ratings" else asdict(conventions),
        }
        return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:16]


def _parameters(metric: Metric, text: str | None) -> tuple[tuple[str, Value], ...]:
    given: dict[str, Value] = {}
    for item in _SPLIT.split(text) if text and text.strip() else ():
        name, equals, value = (part.strip() for part in item.partition("="))
        parameter = metric.parameters.get(name)
        if parameter is None:
            raise ValueError(f"{metric.name} has no parameter '{name}'; it has {_listed(metric.parameters)}")
        if not equals or not value:
            raise ValueError(f"{metric.name}: parameter '{name}' needs a value: {name}=…")
        if name in given:
            raise ValueError(f"{metric.name}: parameter '{name}' is given twice")
        given[name] = _value(metric, parameter, value)
    for parameter in metric.parameters.values():
        if parameter.required and parameter.name not in given:
            raise ValueError(f"{metric.name} needs the parameter '{parameter.name}': {metric.name}({parameter.name}=…)")
        other, value = metric.conditions.get(parameter.name, ("", ""))
        if parameter.name in given and other and given.get(other, metric.parameters[other].default) != value:
            raise ValueError(f"{metric.name}: {parameter.name} has an effect only with {other}={value}; leave it out")
    return tuple((name, given[name]) for name in metric.parameters if name in given)


def _value(metric: Metric, parameter: Parameter, text: str) -> Value:
    words = typing.get_args(parameter.type) if typing.get_origin(parameter.type) is typing.Literal else ()
    if words:
        if text not in words:
            raise ValueError(f"{metric.name}: {parameter.name} is one of {_listed(words)}, found '{text}'")
        return text
    if float in (parameter.type, *typing.get_args(parameter.type)):
        number = float(text) if _NUMBER.fullmatch(text) else math.inf
        if math.isinf(number):
            raise ValueError(f"{metric.name}: {parameter.name} is a number, found '{text}'")
        return int(number) if number.is_integer() else number
    cutoffs = _CUTOFFS.fullmatch(text)
    if cutoffs is None:
        raise ValueError(f"{metric.name}: {parameter.name} is a list such as [5,10], found '{text}'")
    return tuple(int(part) for part in (cutoffs[1] or text).split(","))


def _cutoffs(metric: Metric, text: str | None) -> list[int | None]:
    if text is None:
        if metric.cutoff == "required":
            raise ValueError(f"{metric.name} needs a cutoff: {metric.name}@10")
        return [None]
    if metric.cutoff == "refused":
        raise ValueError(f"{metric.name} takes no cutoff, found '@{text}'; write {metric.name}")
    try:
        cutoffs = [_cutoff(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{metric.name}: cutoffs are whole numbers from 1, found '@{text}'") from None
    if len(set(cutoffs)) < len(cutoffs):
        raise ValueError(f"{metric.name}: a cutoff is given twice in '@{text}'")
    return list(cutoffs)


def _cutoff(text: str) -> int:
    if not re.fullmatch(r"\s*[1-9][0-9]{0,17}\s*", text, flags=re.ASCII):
        raise ValueError(text)
    return int(text)


def _try(measure: Measure) -> None:
    """Raise the ValueError of a parameter outside its range now, and not after the data has been read."""
    if measure.metric.input == "judged":
        nothing = np.full((1, 1), np.nan)
        zero = np.zeros(1)
        rows = np.full((1, 1), -1, dtype=np.int32)
        ids = np.array([""], dtype=object)
        block = JudgedBlock(ids, np.full((1, 1), np.inf), nothing, nothing, nothing, rows, nothing, zero, zero, zero)
        measure.metric.function(block, **measure.arguments(max_grade=1))


def _suggestion(shape: re.Match[str]) -> str:
    """What may have been meant, with the parameters and cutoffs that were written."""
    name = shape["name"].lower().replace("-", "_")
    close = difflib.get_close_matches(name, [*METRICS, *ALIASES], n=1)
    meant = name if name in METRICS else ALIASES.get(name) or (ALIASES.get(close[0], close[0]) if close else None)
    if meant is None:
        return "; `rankledger measures` lists them"
    cutoffs = shape["cutoffs"].strip() if shape["cutoffs"] and METRICS[meant].cutoff != "refused" else None
    parameters = f"({shape['parameters']})" if shape["parameters"] else ""
    return f"; did you mean '{meant}{parameters}{'' if cutoffs is None else f'@{cutoffs}'}'?"


def _written(value: Value) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def _plain(value: Value | None) -> Value | float | None:
    """Numbers as floats, so that 5 and 5.0 are one definition."""
    return float(value) if isinstance(value, int | float) else value


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"
