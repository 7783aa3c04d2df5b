"""Custom metrics, checked before they are used."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np

from rankledger.metrics.aggregation import GEOMETRIC_MEAN, MEAN, ROOT_MEAN_SQUARE
from rankledger.metrics.block import Floats, JudgedBlock, Terms, from_terms
from rankledger.metrics.catalogue import CatalogueBlock
from rankledger.metrics.metric import Metric, MetricError, Need
from rankledger.metrics.ratings import RatingsBlock
from rankledger.metrics.registry import METRICS
from rankledger.pipeline.config.messages import METRICS_GROUP, is_built_in
from rankledger.pipeline.support.own_code import (
    CodePlace,
    OwnCode,
    divert_output,
    find_code,
    find_installed,
    hold_code,
    installed,
    load_code,
    reason_of,
)

AGGREGATIONS = {"mean": MEAN, "geometric_mean": GEOMETRIC_MEAN, "root_mean_square": ROOT_MEAN_SQUARE}
BLOCKS: Mapping[str, type] = {"judged": JudgedBlock, "catalogue": CatalogueBlock, "ratings": RatingsBlock}
_DIRECTIONS = ("higher", "lower", "neither")
RECORDED_FIELDS = ("code", "title", "direction", "undefined", "additive", "monotone", "version")  # in a record and here
_ROUNDING = 1e-9  # by how much sums may pass an end of the range


def own_metric(name: str, code: OwnCode) -> Metric:
    """Return the metric that loaded code is: a `Metric`, or a function with its signature.

    The first line of a function's documentation is its title. Its scores are from 0 to 1, higher is better.

    Raises:
        ValueError: The code cannot be used as a metric.
    """
    loaded = code.value
    if not isinstance(loaded, Metric):
        if not callable(loaded) or isinstance(loaded, type):
            raise ValueError(f"{code.place.name} is a {type(loaded).__name__}; name a function, or a Metric")
        title = (inspect.getdoc(loaded) or name).partition("\n")[0].rstrip(".").partition(": ")[0]
        loaded = Metric(name, loaded, title, monotone=False)
    metric = replace(loaded, name=name, code=f"{code.place.name} {code.version}")
    try:
        _check(metric)
    except (TypeError, NameError, AttributeError) as error:
        raise ValueError(f"{code.place.name} cannot be used as a metric: {reason_of(error)}") from None
    except ValueError as error:
        file = Path(code.place.file or code.place.module).name
        raise ValueError(f"{code.place.name}{f' in {file}' if file else ''}: {error}") from None
    kind = _OwnSum if isinstance(metric.function, from_terms) else _OwnFunction
    return replace(metric, function=kind(code.place, name, metric.function, metric.range))


def load_metric(name: str, reference: str, directory: Path, given: Metric | None = None) -> Metric:
    """Return the metric of a config, or the `given` object. Raise ValueError if it cannot be used."""
    _refuse_known(name)
    return given or own_metric(name, find_code(reference, directory))


def load_installed(name: str) -> dict[str, Metric]:
    """Return the installed metric of a name as a mapping, empty if there is none."""
    code = find_installed(METRICS_GROUP, name)
    return {name: own_metric(name, code)} if code else {}


def installed_metrics() -> Iterator[tuple[str, Metric | str]]:
    """Yield each metric of an installed package by name, or the reason why it cannot be used."""
    for name in installed(METRICS_GROUP):
        try:
            _refuse_known(name)
            yield from load_installed(name).items()
        except ValueError as error:
            yield name, str(error)


def _refuse_known(name: str) -> None:
    if is_built_in(name):
        raise ValueError(f"`rankledger measures` knows a metric {name!r}, ours or another tool's; choose another name")


def hold_metric(value: Metric | Callable[..., Any]) -> Metric:
    """Return the metric that an object in memory is. Raise ValueError if it cannot be used."""
    if metric := next((each for each in METRICS.values() if value in (each, each.function)), None):
        return metric
    if isinstance(value, Metric):
        return value if value.code else own_metric(value.name, hold_code(value, value.function))
    return own_metric(getattr(value, "__name__", type(value).__name__), hold_code(value, value))


def _check(metric: Metric) -> None:
    _check_signature(metric)
    minimum, maximum = metric.range
    unknown = sorted(set(metric.needs) - set(get_args(Need)))
    refused = {
        "its range is empty; write the lowest score first": not minimum < maximum,
        f"direction is one of {', '.join(_DIRECTIONS)}": metric.direction not in _DIRECTIONS,
        "undefined is `convention` or `skip`": metric.undefined not in ("convention", "skip"),
        f"needs names {', '.join(unknown)}; known: {', '.join(get_args(Need))}": bool(unknown),
        "what needs the cluster has no score at its other queries; write undefined='skip'": "cluster" in metric.needs
        and metric.undefined != "skip",
        f"aggregation is one of {', '.join(AGGREGATIONS)}, without moments": bool(metric.moments)
        or metric.aggregation not in AGGREGATIONS.values(),
        "`additive` is for functions made with from_terms; leave it out": metric.additive
        and not isinstance(metric.function, from_terms),
    }
    for message, holds in refused.items():
        if holds:
            raise ValueError(message)


def _check_signature(metric: Metric) -> None:
    parameters = inspect.signature(metric.function).parameters
    if next(iter(parameters), "") != "block" or metric.input not in BLOCKS:
        blocks = "`block: JudgedBlock`, `block: RatingsBlock` or `block: CatalogueBlock`"
        raise ValueError(f"annotate its first parameter as {blocks}")
    if metric.per == "dataset":
        raise ValueError("it returns one number; return an array of a number per query")
    if wrong := [key for key, other in parameters.items() if key != "block" and other.kind is not other.KEYWORD_ONLY]:
        raise ValueError(f"its parameter {wrong[0]!r} is to stand behind a `*`, as in (block, *, k)")
    if untyped := [name for name, parameter in metric.parameters.items() if not parameter_kind(parameter.type)]:
        raise ValueError(f"annotate its parameter {untyped[0]!r} as float, str, a Literal of words or tuple[int, ...]")


def parameter_kind(annotation: Any) -> Literal["", "number", "text", "words", "list"]:
    """Return the kind of values that a parameter takes. Empty if no measure can write it."""
    if get_origin(annotation) is Literal:
        return "words" if all(isinstance(word, str) for word in get_args(annotation)) else ""
    if annotation is str:
        return "text"
    if float in (annotation, *get_args(annotation)):
        return "number"
    return "list" if get_args(annotation) == (int, ...) else ""


class _OwnFunction:
    def __init__(self, place: CodePlace, name: str, function: Any, range: tuple[float, float]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.__signature__ = inspect.signature(function)
        self._function, self._key = function, (place, name, range)

    def __call__(self, block: Any, **parameters: Any) -> Floats:
        return self._check_values(self._call_function(self._function, block, parameters), _n_queries(block))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OwnFunction) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        """Have processes load a file again, because they cannot import it by its private name."""
        if self._key[0].module:
            return _loaded_again, (type(self), *self._key)
        return _rebuild, (type(self), getattr(self._function, "terms", self._function), *self._key)

    def _call_function(self, function: Any, block: Any, parameters: Mapping[str, Any]) -> Any:
        try:
            with divert_output(), np.errstate(all="ignore"):
                return function(_read_only(block), **parameters)
        except (Exception, SystemExit) as error:
            raise MetricError(reason_of(error, self._key[0].file)) from error

    def _check_values(self, found: Any, n_queries: int) -> Floats:
        minimum, maximum = self._key[2]
        if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiub":
            kind = f"an array of {found.dtype}" if isinstance(found, np.ndarray) else f"a {type(found).__name__}"
            raise MetricError(f"returned {kind}; return an array of numbers")
        if found.shape != (n_queries,):
            raise MetricError(f"returned the shape {found.shape} for {n_queries} queries; return ({n_queries},)")
        values = found.astype(np.float64)
        wrong = np.isinf(values) | (values < minimum - _slack(minimum)) | (values > maximum + _slack(maximum))
        if wrong.any():
            ends = f"{minimum:g} to {maximum:g}"
            advice = "return NaN if it is undefined, or give its Metric another range"
            raise MetricError(f"returned {values[wrong][0]:g}, and its range is {ends}; {advice}")
        return np.clip(values, minimum, maximum)


class _OwnSum(_OwnFunction):
    def terms(self, block: JudgedBlock, **parameters: Any) -> Terms:
        result = self._call_function(self._function.terms, block, parameters)
        if not isinstance(result, Terms):
            raise MetricError(f"returned a {type(result).__name__}; return Terms, or remove @from_terms")
        if result.terms.shape != block.ranks.shape:
            shapes = f"terms of shape {result.terms.shape} for ranks of {block.ranks.shape}"
            raise MetricError(f"returned {shapes}; return a term for each rank, 0 if padded")
        return result


def _loaded_again(kind: type[_OwnFunction], place: CodePlace, name: str, range: tuple[float, float]) -> _OwnFunction:
    loaded = load_code(place)
    return kind(place, name, loaded.function if isinstance(loaded, Metric) else loaded, range)


def _rebuild(
    kind: type[_OwnFunction], function: Any, place: CodePlace, name: str, range: tuple[float, float]
) -> _OwnFunction:
    return kind(place, name, from_terms(function) if issubclass(kind, _OwnSum) else function, range)


def _slack(end: float) -> float:
    return _ROUNDING * max(1.0, abs(end)) if math.isfinite(end) else 0.0


def _n_queries(block: Any) -> int:
    return int(block.codes.shape[1]) if isinstance(block, CatalogueBlock) else len(block.query_ids)


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _read_only(getattr(value, field.name)) for field in fields(value)})
    return {key: _read_only(each) for key, each in value.items()} if isinstance(value, Mapping) else value


def try_metric(metric: Metric, arguments: Mapping[str, Any]) -> None:
    """Call a metric on three small queries, together and alone. Raise MetricError if it fails."""
    if metric.input == "judged" and depends_on_neighbours(metric, arguments):
        message = (
            "a query's score changes with the other queries of its block; compute it of its own column, down axis 0"
        )
        raise MetricError(message)


def depends_on_neighbours(metric: Metric, arguments: Mapping[str, Any]) -> bool:
    """Return whether a query's score depends on the other queries, in one small block. False proves nothing."""
    block = _small_block(with_subtopics="subtopics" in metric.needs)
    together = metric.function(block, **arguments)
    alone = [metric.function(block.of(np.array([query])), **arguments)[0] for query in range(len(block.query_ids))]
    return not np.array_equal(together, alone, equal_nan=True)


def _small_block(*, with_subtopics: bool) -> JudgedBlock:
    nan, inf = math.nan, math.inf
    ranks = np.array([[1.0, 2.0, inf], [3.0, 3.0, inf]])
    grades = np.array([[2.0, 0.0, nan], [1.0, 1.0, nan]])
    judged = np.array([[2.0, 1.0, 1.0], [1.0, 0.0, nan], [0.0, nan, nan]])
    subtopics = with_subtopics or None
    return JudgedBlock(
        query_ids=np.array(["a", "b", "c"], dtype=object),
        ranks=ranks,
        grades=grades,
        tie_first=np.array([[1.0, 2.0, inf], [3.0, 2.0, inf]]),
        tie_last=np.array([[1.0, 3.0, inf], [3.0, 3.0, inf]]),
        judgment_row=np.array([[0, 3, -1], [1, 4, -1]], dtype=np.int32),
        judged_grades=judged,
        n_judged=np.array([3.0, 2.0, 1.0]),
        n_retrieved=np.array([4.0, 3.0, 0.0]),
        n_documents=np.full(3, 10.0),
        subtopic_grades=subtopics and np.stack([grades, grades]),
        judged_subtopic_grades=subtopics and np.stack([judged, judged]),
    )
