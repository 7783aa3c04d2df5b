"""What the metrics mean: the list of all, and the explanation of one."""

from __future__ import annotations

import inspect
import typing

from metrics.measure import Measure
from metrics.metric import Metric, Parameter
from metrics.registry import METRICS
from pipeline.errors import InputError

__all__ = ["catalogue", "explanation"]


def catalogue() -> str:
    """Every metric in three lines: how it is written, title and formula; range, direction and parameters; reference."""
    entries = []
    for metric in METRICS.values():
        written = {"refused": metric.name, "optional": f"{metric.name}[@k]", "required": f"{metric.name}@k"}[
            metric.cutoff
        ]
        facts = [_range(metric), _direction(metric), _parameters(metric)]
        entries.append(f"{written}  {metric.title}: {metric.formula}")
        entries.append(f"    {'; '.join(filter(None, facts))}")
        entries.append(f"    {metric.reference}")
    legend = "k: cutoff; n: documents retrieved; R: relevant documents of the query; tp: relevant documents retrieved"
    return "\n".join([*entries, "", legend, "`rankledger measures NAME` explains one.", ""])


def explanation(name: str) -> str:
    """One metric at length: what the list says, and its function's documentation.

    Args:
        name: a metric, or a measure of it, such as `ndcg@10`, in our way or another tool's.

    Raises:
        InputError: there is no such metric.
    """
    metric = METRICS.get(name)
    if metric is None:
        try:
            metrics = {measure.metric.name: measure.metric for measure in Measure.expand(name)}
        except ValueError as error:
            raise InputError(str(error)) from None
        if len(metrics) > 1:
            raise InputError(f"'{name}' is {len(metrics)} metrics: {', '.join(metrics)}; name one")
        (metric,) = metrics.values()
    return "\n".join(
        [
            f"{metric.name}: {metric.title}",
            "",
            f"formula    {metric.formula}",
            f"range      {_range(metric)}",
            f"direction  {_direction(metric)}",
            f"cutoff     @k is {metric.cutoff}",
            f"parameters {_parameters(metric) or 'none'}",
            f"reference  {metric.reference}",
            "",
            inspect.getdoc(metric.function) or "",
            "",
        ]
    )


def _direction(metric: Metric) -> str:
    return f"{metric.direction} is better" if metric.direction != "neither" else "neither end is better"


def _range(metric: Metric) -> str:
    low, high = (f"{end:g}".replace("inf", "∞") for end in metric.range)
    return f"{low} to {high}"


def _parameters(metric: Metric) -> str:
    return ", ".join(f"{parameter.name}={_default(parameter)}" for parameter in metric.parameters.values())


def _default(parameter: Parameter) -> str:
    """The words that a parameter may be, its default first, or its default."""
    if parameter.required:
        return "…"
    words = typing.get_args(parameter.type) if typing.get_origin(parameter.type) is typing.Literal else ()
    if words:
        return "|".join([parameter.default, *(word for word in words if word != parameter.default)])
    if isinstance(parameter.default, tuple):
        return f"[{','.join(map(str, parameter.default))}]"
    return "…" if parameter.default is None else f"{parameter.default:g}"
