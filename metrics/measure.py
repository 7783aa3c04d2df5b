"""Measures: a metric with its parameters and cutoff, written `ndcg(gain=exponential)@10`, or an external one.

`Measure.parse` is the only parser, and `str` undoes it: this string is the config entry and the report's column.

Scores of an external measure come from another tool: an LLM judge, a click rate, anything that scores queries. It has
no function and no parameters. Its fingerprint hashes its name, its direction and that it is external.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Literal, NoReturn

import numpy as np

from rankledger.metrics.aggregation import LINEARISED, MEAN, Aggregation
from rankledger.metrics.agreement import Ranked, RankingsBlock
from rankledger.metrics.aliases import read_aliases, translate
from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.catalogue import CatalogueBlock, Sparse
from rankledger.metrics.conventions import Profile
from rankledger.metrics.language_models import FORMATS, OutputsBlock
from rankledger.metrics.logged import LogBlock
from rankledger.metrics.metric import Metric, MetricError, Parameter
from rankledger.metrics.ratings import RatingsBlock
from rankledger.metrics.registry import METRICS
from rankledger.metrics.ties import has_expectation

__all__ = ["Measure", "Value", "external_measure"]

Value = float | int | str | tuple[int, ...]

_EXACT = 2.0**53  # beyond it a whole number stays a double: NumPy takes no greater integers than 64 bits hold
_LONGEST = 1_000  # characters: patterns take time by the square of them
_ALIKE = 0.8  # letters of two names, beyond which one is likely the other misspelled
_MEANT = {"aucpr": "pr_auc", "auprc": "pr_auc", "auroc": "auc", "roc_auc": "auc"}
_NOT_HERE = {*("context_precision", "infndcg", "msle", "ordered_pair_accuracy", "pfound", "rmsle", "smape", "statap")}

_SHAPE = re.compile(r"\s*(?P<name>[^\s(@]+)\s*(?:\((?P<parameters>.*)\))?\s*(?:@(?P<cutoffs>[^()@]*))?\s*")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CUTOFFS = re.compile(r"\[(\s*[1-9]\d{0,17}\s*(,\s*[1-9]\d{0,17}\s*)*)\]|([1-9]\d{0,17})", re.ASCII)
_NAME = re.compile(r"[^,()\[\]@]+")
_SPLIT = re.compile(r",(?![^\[]*\])")  # commas outside square brackets


@dataclass(frozen=True)
class Measure:
    """Metric with its parameters and cutoff.

    Attributes:
        metric: The metric.
        given: Parameters that were written, in the metric's order.
        k: Cutoff. None counts the whole ranking.
        defaults: Defaults that a profile sets instead of the function's own.
    """

    metric: Metric
    given: tuple[tuple[str, Value], ...] = ()
    k: int | None = None
    defaults: tuple[tuple[str, Value], ...] = ()

    def __hash__(self) -> int:
        """Hash the metric's name alone, because measures are looked up often and the rest takes long to hash."""
        return hash((self.metric.name, self.given, self.k, self.defaults))

    @classmethod
    def parse(
        cls, text: str, profile: Profile | None = None, own: Mapping[str, Metric] = MappingProxyType({})
    ) -> Measure:
        """Return the measure that a text writes.

        Args:
            text: Measure such as `ndcg@10`.
            profile: Profile with the defaults of parameters that are not written. The functions' own by default.
            own: Custom metrics by name.

        Raises:
            ValueError: If `text` is not one measure. The message suggests what was meant, if possible.
        """
        measures = cls.expand(text, profile, own)
        if len(measures) > 1:
            listed = ", ".join([*map(str, measures[:3]), *(["…"] if len(measures) > 3 else [])])
            raise ValueError(f"'{text}' is {len(measures)} measures, {listed}; write one")
        return measures[0]

    @classmethod
    def expand(
        cls, text: str, profile: Profile | None = None, own: Mapping[str, Metric] = MappingProxyType({})
    ) -> tuple[Measure, ...]:
        """Return the measures that a text writes, in our notation or another tool's: one per cutoff of `ndcg@5,10`.

        Arguments and errors are those of `parse`.
        """
        if len(text) > _LONGEST:
            problem = f"'{text[:40]}…' has {len(text):,} characters"
            raise ValueError(f"{problem}; write a measure of at most {_LONGEST:,}, and several lines for many cutoffs")
        shape = _SHAPE.fullmatch(text)
        metric = own.get(shape["name"]) if shape else None
        translated = (text,) if metric else translate(text)
        if translated != (text,):
            return tuple(dict.fromkeys(measure for meaning in translated for measure in cls.expand(meaning, profile)))
        if shape is None:
            raise ValueError(f"'{text}' is not a measure; write metric(parameter=value,…)@cutoff, such as ndcg@10")
        metric = metric or METRICS.get(shape["name"])
        if metric is None:
            close = difflib.get_close_matches(shape["name"], own, n=1)
            hint = f"; did you mean '{close[0]}'?" if close else _suggestion(shape)
            raise ValueError(f"unknown metric '{text.strip()}'{hint}")
        defaults = {} if profile is None else dict(profile.defaults.get(metric.name, {}))
        written = _parameters(metric, shape["parameters"], defaults)
        cutoffs = _cutoffs(metric, shape["cutoffs"])
        measures = tuple(cls(metric, written, k, tuple(defaults.items())) for k in cutoffs)
        expected = profile is not None and profile.conventions_of(metric.name).ties == "expected"
        if expected and metric.input == "judged" and not has_expectation(metric, measures[0].parameters):
            raise ValueError(f"{metric.name} has no exact mean over the orders of ties; choose another `ties`")
        if metric.input == "confidence" and profile is not None and profile.conventions.ties == "rank_column":
            raise ValueError(f"{metric.name} needs scores, and `ties: rank_column` reads ranks; choose another `ties`")
        if metric.code:
            _refuse_own(measures[0])
        else:
            _refuse_parameters(measures[0].scored(profile) if metric.input == "confidence" else measures[0])
        return measures

    def with_default(self, name: str, value: Value | None) -> Measure:
        """Return the measure with another default of a parameter that it has. None sets the metric's own default."""
        parameter = self.metric.parameters.get(name)
        others = tuple((key, default) for key, default in self.defaults if key != name)
        if value is None or parameter is None or value == parameter.default:
            return replace(self, defaults=others)
        return replace(self, defaults=(*others, (name, value)))

    def scored(self, profile: Profile | None) -> Measure:
        """Return the measure of the scores that this measure of confidence compares. Errors are those of `parse`."""
        measure = Measure.parse(str(self.parameters["of"]), profile).with_default("rel", self.parameters["rel"])
        return replace(measure, k=self.k)

    def __str__(self) -> str:
        """Return the measure as written in a config."""
        written = ",".join(f"{name}={_write_value(value)}" for name, value in self.given)
        return f"{self.metric.name}{f'({written})' if written else ''}{'' if self.k is None else f'@{self.k}'}"

    @property
    def key(self) -> str:
        """Measure as a metric name that MLflow allows: `ndcg_at_10`, `ndcg.gain_exponential_at_10`."""
        written = "".join(
            f".{name}_{re.sub(r'[^A-Za-z0-9.]+', '_', _write_value(value).strip('[]'))}" for name, value in self.given
        )
        name = self.metric.name.replace("@", "_at_")  # an external score may be called as a measure is written
        return f"{name}{written}{'' if self.k is None else f'_at_{self.k}'}"

    @property
    def average(self) -> str:
        """Kind of average over queries for ratings and logs. Empty if there is only one."""
        return str(self.parameters["average"]) if self.metric.input in ("ratings", "logs") else ""

    @property
    def weighted(self) -> bool:
        """True if queries weigh as much as their pairs or rows: the estimate is made of sums."""
        return self.average not in ("", "query")

    @property
    def moments(self) -> Callable[..., Any] | None:
        """Function that returns what each query adds to a pooled estimate. None if queries are averaged."""
        return self.metric.moments if self.average == "pooled" else None

    @property
    def aggregation(self) -> Aggregation:
        """Scale on which queries are averaged: the metric's, but plain for a mean of the queries' scores."""
        return self.metric.aggregation if self.average in ("", "pooled") else MEAN

    @property
    def has_slices(self) -> bool:
        """True if slices of the queries have an estimate. False if its sums need all queries."""
        return self.aggregation is not LINEARISED

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Values of all parameters that have an effect: written ones and defaults."""
        defaults = {name: parameter.default for name, parameter in self.metric.parameters.items()}
        values = defaults | dict(self.defaults) | dict(self.given)
        conditions = self.metric.conditions.items()
        idle = {name for name, (other, value) in conditions if values[other] != value}
        return {name: value for name, value in values.items() if name not in idle}

    def arguments(self, max_grade: float) -> dict[str, Any]:
        """Return the keyword arguments of the metric's function.

        Args:
            max_grade: Maximum grade of the dataset's judgments, for measures that need one and name none.
        """
        arguments = {name: value for name, value in self.parameters.items() if name != "average"}
        if "max_grade" in arguments and arguments["max_grade"] is None:
            arguments["max_grade"] = max_grade
        return arguments if self.metric.cutoff == "refused" else arguments | {"k": self.k}

    def fingerprint(self, profile: Profile) -> str:
        """Return 16 hex digits that identify the definition: metric, version, parameters, conventions.

        For an external measure: its name, its direction, and that it is external.
        """
        plain = self.metric.input in ("ratings", "logs", "scores")  # no convention touches them
        values = {
            name: float(value) if isinstance(value, int | float) else value for name, value in self.parameters.items()
        }
        definition = {
            "metric": self.metric.name,
            "version": self.metric.version,
            "parameters": values,  # numbers as floats, so that 5 and 5.0 are one definition
            "k": self.k,
            "conventions": {} if plain else asdict(profile.conventions_of(self.metric.name)),
        }
        if self.metric.code:
            definition |= {"code": self.metric.code}
        if self.metric.input == "confidence":
            definition |= {"of": self.scored(profile).fingerprint(profile)}
        if self.metric.input == "scores":
            definition |= {"made": "elsewhere", "direction": self.metric.direction}
        return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:16]


def _parameters(metric: Metric, text: str | None, defaults: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    written: dict[str, Value] = {}
    for item in _SPLIT.split(text) if text and text.strip() else ():
        name, equals, value = (part.strip() for part in item.partition("="))
        parameter = metric.parameters.get(name)
        if parameter is None:
            names = ", ".join(metric.parameters) or "none"
            raise ValueError(f"{metric.name} has no parameter '{name}'; it has {names}")
        if not equals or not value:
            raise ValueError(f"{metric.name}: parameter '{name}' needs a value: {name}=…")
        if name in written:
            raise ValueError(f"{metric.name}: parameter '{name}' is given twice")
        written[name] = _value(metric, parameter, value)
    values = {name: parameter.default for name, parameter in metric.parameters.items()} | dict(defaults) | written
    for parameter in metric.parameters.values():
        if parameter.required and parameter.name not in written and parameter.name not in defaults:
            raise ValueError(f"{metric.name} needs the parameter '{parameter.name}': {metric.name}({parameter.name}=…)")
        other, value = metric.conditions.get(parameter.name, ("", ""))
        if parameter.name in written and other and values[other] != value:
            raise ValueError(f"{metric.name}: {parameter.name} has an effect only with {other}={value}; remove it")
    return tuple((name, written[name]) for name in metric.parameters if name in written)


def _value(metric: Metric, parameter: Parameter, text: str) -> Value:
    words = typing.get_args(parameter.type) if typing.get_origin(parameter.type) is typing.Literal else ()
    if words and text not in words:
        raise ValueError(f"{metric.name}: {parameter.name} is one of {', '.join(words)}, found '{text}'")
    if parameter.type is str and not _NAME.fullmatch(text):
        raise ValueError(f"{metric.name}: {parameter.name} is a name without commas and brackets, found '{text}'")
    if words or parameter.type is str:
        return text
    if float in (parameter.type, *typing.get_args(parameter.type)):
        number = float(text) if _NUMBER.fullmatch(text) else math.inf
        if math.isinf(number):
            raise ValueError(f"{metric.name}: {parameter.name} is a number, found '{text}'")
        return int(number) if number.is_integer() and abs(number) < _EXACT else number
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
    if not _CUTOFFS.fullmatch(f"[{text}]"):
        raise ValueError(f"{metric.name}: cutoffs are whole numbers from 1, found '@{text}'")
    cutoffs = dict.fromkeys(int(part) for part in text.split(","))
    if len(cutoffs) <= text.count(","):
        raise ValueError(f"{metric.name}: a cutoff is given twice in '@{text}'")
    return list(cutoffs)


def _refuse_own(measure: Measure) -> None:
    """Raise ValueError if a custom metric rejects the parameters, both with a document and without one.

    An error without a document alone concerns the block, not the parameters. If it occurs on the data, too, it fails
    the measure, as other errors do, and not the config.
    """
    for n_documents in (0, 1):
        try:
            _call(measure, n_documents)
            return
        except MetricError as error:
            if not isinstance(error.__cause__, ValueError):
                return
            refusal = f"{measure.metric.name}: {error}"
    raise ValueError(refusal)


@lru_cache(maxsize=1_000)
def _refuse_parameters(measure: Measure) -> None:
    """Raise the metric's ValueError for a parameter before data is read. Cached because measures are parsed often."""
    _call(measure, n_documents=0)


def _call(measure: Measure, n_documents: int) -> None:
    """Compute the measure for one query, with no document or with a relevant one at the first rank."""
    grades = np.full((1, 1), 1.0 if n_documents else np.nan)
    ranks = np.full((1, 1), 1.0 if n_documents else np.inf)
    rows = np.full((1, 1), n_documents - 1, dtype=np.int32)
    arguments = measure.arguments(max_grade=1)
    if measure.metric.input in ("judged", "outputs"):
        counts, ids = np.full(1, float(n_documents)), np.array([""], dtype=object)
        block = JudgedBlock(ids, ranks, grades, ranks, ranks, rows, grades, counts, counts, counts)
        measure.metric.function(block if measure.metric.input == "judged" else OutputsBlock(block, {}), **arguments)
    elif measure.metric.input == "catalogue":
        none = Sparse(np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0))
        features = {arguments["feature"]: none} if "feature" in arguments else {}
        measure.metric.function(CatalogueBlock(rows, 1, grades, np.ones(1), 1, none, features, none), **arguments)
    elif measure.metric.input == "rankings":
        nothing = np.zeros(0, dtype=np.int64)
        ranked = Ranked(nothing.astype(np.uint64), nothing, nothing, np.zeros(0), np.zeros(1))
        measure.metric.function(RankingsBlock(ranked, {}), **arguments)
    elif measure.metric.input == "logs":
        columns = dict.fromkeys(measure.metric.columns, np.zeros(0))
        measure.metric.function(LogBlock(0, np.zeros(0, np.int64), columns, np.zeros(0, np.int64)), **arguments)
    elif measure.metric.input == "ratings":
        measure.metric.function(RatingsBlock(np.array([""], dtype=object), grades, grades, grades[0]), **arguments)


def _suggestion(shape: re.Match[str]) -> str:
    """Return a suggestion with the parameters and cutoffs that were written, in our notation."""
    name, rest = shape["name"], shape.string.strip().removeprefix(shape["name"])
    if form := FORMATS.get(name):
        return f"; it is computed of outputs with `format: {form}`, on a dataset with `scores: {{{name}: higher}}`"
    if name.lower() in _NOT_HERE:
        return "; it is not computed here, so add its values as an external score"
    numbered = re.fullmatch(r"(.+?)([._])(\d[\d.,]*)", name, re.ASCII)
    stem, mark, number = numbered.groups() if numbered else (name, "", "")
    close, closest = _close(stem), _close(name)
    tries = (f"{close}{mark}{number}{rest}", f"{close}{rest}@{number}", closest + rest, closest + rest.split("@")[0])
    suggested = next(filter(_is_measure, tries), closest if closest in METRICS else None)
    if suggested is None:
        return "; `rankledger measures` lists them"
    measures = translate(suggested)
    return f"; did you mean '{measures[0] if len(measures) == 1 else suggested}'?"


def _close(name: str) -> str:
    """Return the name that `name` means or misspells, ours or another tool's. Empty if there is none."""
    names = {name.lower().replace("-", "_"): name for name in reversed([*read_aliases()])}
    metrics = names | {metric: metric for metric in METRICS}
    word = name.lower().replace("-", "_")
    titles = {re.sub(r"\W+", "_", metric.title).lower(): title for title, metric in METRICS.items()} | _MEANT
    if word in titles:
        return titles[word]
    matches = difflib.get_close_matches(word, metrics, n=1, cutoff=_ALIKE)
    matches = matches or [candidate for candidate in metrics if sorted(candidate) == sorted(word)]
    return metrics[matches[0]] if matches else ""


def _is_measure(text: str) -> bool:
    try:
        shapes = [_SHAPE.fullmatch(measure) for measure in translate(text)]
        return all(shape and shape["name"] in METRICS and Measure.expand(shape[0]) for shape in shapes)
    except ValueError:
        return False


def _write_value(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    return str(value).replace("e+", "e") if isinstance(value, float) else str(value)  # a key has no plus sign


def external_measure(
    name: str,
    direction: Literal["higher", "lower", "neither"] = "higher",
    range: tuple[float, float] = (-math.inf, math.inf),
) -> Measure:
    """Return a measure whose scores another tool computes. Its estimate is their mean over the queries that have one.

    Args:
        name: Name such as `faithfulness`, or `ndcg@10` of another tool, and the result of `str`.
        direction: `higher` or `lower` is better, or `neither`.
        range: Minimum and maximum possible score.

    Raises:
        ValueError: If the name is empty, or the range holds nothing.
    """
    minimum, maximum = range
    if not name.strip():
        raise ValueError("a score has an empty name; write one")
    if not minimum < maximum:
        raise ValueError(f"{name}: the range {minimum:g} to {maximum:g} is empty; write the lowest score first")
    return Measure(Metric(name, _external, title=name, range=range, direction=direction, undefined="skip"))


def _external(block: object) -> NoReturn:
    """Raise, because another tool computes the scores of this metric.

    Formula: external.

    Reference:
        external
    """
    raise TypeError("an external score cannot be computed")
