"""What the metrics mean: the list of all, and the explanation of one."""

from __future__ import annotations

import inspect
import io
import typing

from rich.console import Console
from rich.table import Table
from rich.text import Text

from metrics.measure import Measure
from metrics.registry import METRICS, Metric, Parameter
from pipeline.errors import InputError

__all__ = ["catalogue", "explanation"]


def catalogue(*, width: int) -> str:
    """A table of every metric: formula, range, direction, parameters, reference.

    Args:
        width: columns of the terminal.
    """
    table = Table("metric", "formula", "range", "better", "parameters", "reference")
    for metric in METRICS.values():
        name = {"refused": metric.name, "optional": f"{metric.name}[@k]", "required": f"{metric.name}@k"}[metric.cutoff]
        cells = (name, metric.formula, _range(metric), metric.direction, _parameters(metric), metric.reference)
        table.add_row(*map(Text, cells))
    text = io.StringIO()
    console = Console(file=text, width=width, highlight=False)
    console.print(table)
    console.print(
        "`rankledger measures NAME` explains one. R: relevant documents of the query; n: retrieved; k: cutoff."
    )
    return text.getvalue()


def explanation(name: str) -> str:
    """One metric at length: what the list says, and its function's documentation.

    Args:
        name: a metric, or a measure of it, such as `ndcg@10`.

    Raises:
        InputError: there is no such metric.
    """
    metric = METRICS.get(name)
    if metric is None:
        try:
            metric = Measure.parse(name).metric
        except ValueError as error:
            raise InputError(str(error)) from None
    return "\n".join(
        [
            f"{metric.name}: {metric.title}",
            "",
            f"formula    {metric.formula}",
            f"range      {_range(metric)}",
            f"better     {metric.direction}",
            f"cutoff     @k is {metric.cutoff}",
            f"parameters {_parameters(metric) or 'none'}",
            f"reference  {metric.reference}",
            "",
            inspect.getdoc(metric.function) or "",
            "",
        ]
    )


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
