"""Description of a metric beyond its function: how it is written, read, averaged and bounded."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from rankledger.metrics.aggregation import MEAN, Aggregation
from rankledger.metrics.agreement import RankingsBlock
from rankledger.metrics.block import JudgedBlock, Terms
from rankledger.metrics.catalogue import CatalogueBlock, Lists
from rankledger.metrics.language_models import ConfidenceBlock, OutputsBlock
from rankledger.metrics.logged import LogBlock
from rankledger.metrics.ratings import RatingsBlock

__all__ = ["Metric", "MetricError", "Need", "Parameter"]

Need = Literal["documents", "interactions", "subtopics", "cluster"]
Input = Literal["judged", "catalogue", "rankings", "outputs", "confidence", "ratings", "logs", "scores"]
_INPUTS: Mapping[type, Input] = {
    JudgedBlock: "judged",
    CatalogueBlock: "catalogue",
    Lists: "catalogue",
    RankingsBlock: "rankings",
    OutputsBlock: "outputs",
    ConfidenceBlock: "confidence",
    RatingsBlock: "ratings",
    LogBlock: "logs",
}


class MetricError(ValueError):
    """Error that a custom metric raised, or an impossible score that it returned, in one line."""


@dataclass(frozen=True)
class Parameter:
    """Parameter of a metric.

    Attributes:
        name: Name in a measure.
        type: Annotation: float, a Literal of the allowed words, a sequence of integers.
        default: Default value, `inspect.Parameter.empty` if the parameter is required.
    """

    name: str
    type: Any
    default: Any

    @property
    def required(self) -> bool:
        """True if a measure must name the parameter."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Metric:
    """Function of a block, and what its scores mean.

    Attributes:
        name: Name in a config.
        function: Takes a block and keyword parameters. Returns (Q,), or one value if `per` is `dataset`.
        title: Name in prose.
        range: Minimum and maximum value.
        direction: `higher` or `lower` is better, or `neither`.
        needs: Inputs of the dataset besides judgments of queries. For a metric that needs `cluster` each cluster
            has one score, the score of its worst query, at the cluster's first query.
        columns: Columns that a log needs besides its queries.
        aggregation: Scale on which queries are averaged, for ratings and logs the pooled ones.
        averages: Kinds of averages over queries for ratings and logs. The first is the default.
        moments: Returns the (S, Q) means per query that a pooled estimate is made of, if it is not made of the scores.
            Takes a block, or for ratings all blocks of the dataset, and the parameters.
        sums: Names of these means. They are numbered for a metric with bins.
        of_probabilities: True if predictions must be from 0 to 1. Outputs with others are rejected.
        undefined: Effect of an undefined query on the mean. `convention` follows the conventions. `skip` leaves it out,
            because 0 would read as a perfect or a neutral score.
        additive: True if a document's term depends only on its own rank and grade, and no rank changes the divisor, so
            that the mean over all orders of tied documents is exact.
        monotone: True if no order of tied documents scores beyond the orders with the best grades first and last.
        conditions: Parameters that have an effect only if another has a certain value, `(other, value)` by name.
        version: Number that every change which moves a score raises.
        code: Definition of a custom metric, such as `click_value sha256:…`. Empty for a built-in one.
    """

    name: str
    function: Callable[..., Any]
    title: str
    range: tuple[float, float] = (0, 1)
    direction: Literal["higher", "lower", "neither"] = "higher"
    needs: tuple[Need, ...] = ()
    columns: tuple[str, ...] = ()
    aggregation: Aggregation = MEAN
    averages: tuple[str, ...] = ("pooled", "query")
    moments: Callable[..., Any] | None = None
    sums: tuple[str, ...] = ("numerator",)
    of_probabilities: bool = False
    undefined: Literal["convention", "skip"] = "convention"
    additive: bool = False
    monotone: bool = True
    conditions: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    version: int = 1
    code: str = ""

    @cached_property
    def formula(self) -> str:
        """Formula in one line, with R relevant documents of the query, n retrieved, k the cutoff."""
        return self._read_paragraph("Formula: ").removesuffix(".") or self.code

    @cached_property
    def reference(self) -> str:
        """Author of the definition: the first reference of the docstring, up to its identifier."""
        first, *_ = self._read_paragraph("Reference:\n").removesuffix(".").split(";")
        return re.sub(r"((doi|arXiv):[^\s,]+),.*", r"\1", first) or self.code

    @cached_property
    def input(self) -> Input:
        """Name of the block that the metric takes.

        `rankings` and `outputs` hold those of other models, too; `confidence` holds scores that another metric gives;
        `scores` belong to external metrics.
        """
        return _INPUTS.get(self._types.get("block", object), "scores")

    @cached_property
    def per(self) -> Literal["query", "dataset"]:
        """Unit that has a value: each query, or the dataset, which then has one value and no interval."""
        return "dataset" if self._types.get("return") is float else "query"

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Parameters that a measure may name, in the function's order, without the cutoff `k`."""
        parameters = {name: parameter for name, parameter in self._keywords.items() if name != "k"}
        if self.input not in ("ratings", "logs"):
            return parameters
        return parameters | {"average": Parameter("average", Literal[self.averages], self.averages[0])}

    @property
    def has_terms(self) -> bool:
        """True if the metric is a sum over judged documents, made with `from_terms`."""
        return hasattr(self.function, "terms")

    def terms(self, block: JudgedBlock, **arguments: Any) -> Terms:
        """Return the score of a judged metric before its last sum."""
        if not self.has_terms:
            raise TypeError(f"{self.name} is no sum over judged documents")
        terms: Terms = self.function.terms(block, **arguments)  # type: ignore[attr-defined]
        return terms

    @property
    def cutoff(self) -> Literal["refused", "optional", "required"]:
        """Rule for `@k`: required, optional or not allowed."""
        if "k" not in self._keywords:
            return "refused"
        return "required" if self._keywords["k"].required else "optional"

    @cached_property
    def _keywords(self) -> Mapping[str, Parameter]:
        return {
            name: Parameter(name, self._types.get(name), parameter.default)
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }

    @cached_property
    def _types(self) -> Mapping[str, Any]:
        return typing.get_type_hints(self.function)

    def _read_paragraph(self, heading: str) -> str:
        """Return the paragraph of the docstring that begins with a heading, in one line."""
        _, _, text = (inspect.getdoc(self.function) or "").partition(f"\n\n{heading}")
        return " ".join(text.partition("\n\n")[0].split())
