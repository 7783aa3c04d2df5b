"""What is known of a metric beside its function: how it is written, read, averaged and bounded."""

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
from rankledger.metrics.pairs import RatingsBlock

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
    """A metric of the user's own raised an error, or gave what no score may be: one line that says which and where."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a metric.

    Attributes:
        name: as it is written in a measure.
        type: the annotation: float, a Literal of the words allowed, a sequence of integers.
        default: what holds when it is not given; `inspect.Parameter.empty` where it must be.
    """

    name: str
    type: Any
    default: Any

    @property
    def required(self) -> bool:
        """Whether a measure must name it."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Metric:
    """A metric: a function of a block, and what its figures mean.

    Attributes:
        name: as it is written in a config.
        function: takes a block and keyword parameters; gives (Q,), or one figure where `per` is `dataset`.
        title: what it is called in prose.
        range: the least and the greatest value.
        direction: whether a higher or a lower figure is better, or neither.
        needs: what the dataset must have beside its judgments of queries. Of a metric that needs the `cluster` each
            cluster has one score, that of the query it is worst for, and stands at the cluster's first query.
        columns: what a log must have beside its queries.
        aggregation: the scale on which queries are averaged; for ratings and logs, on which pooled ones are.
        averages: of ratings and logs, which figures over queries there are; the first is the default.
        moments: gives the (S, Q) means of each query that a pooled figure is made of, where it is none of the queries'
            own figures; takes a block, or of ratings all blocks of the dataset, and the parameters.
        sums: names those means; of a metric with bins they are numbered instead.
        of_probabilities: whether it takes predictions from 0 to 1 alone; outputs with others are refused.
        undefined: what an undefined query does to the mean: `convention` leaves it to the conventions, `skip` leaves it
            out, for a 0 would read as a perfect or a neutral score.
        additive: whether each document's term depends on its own rank and grade alone, and nothing that is added or
            divided by on any rank: the mean score over all orders of tied documents then is exact.
        monotone: whether no order of tied documents scores beyond those with the best grades first and last.
        conditions: parameters that have an effect only where another has a certain value: `(other, value)` by name.
        version: raised by every change that moves a score.
        code: what a metric of the user's own is defined by, such as `click_value sha256:…`; empty for a built-in one.
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

    @property
    def formula(self) -> str:
        """In a line, with R relevant documents of the query, n retrieved, k the cutoff."""
        return self._documented("Formula: ").removesuffix(".") or self.code

    @property
    def reference(self) -> str:
        """Who defined it: the first reference of the function's documentation, as far as its identifier."""
        first, *_ = self._documented("Reference:\n").removesuffix(".").split(";")
        return re.sub(r"((doi|arXiv):[^\s,]+),.*", r"\1", first) or self.code

    @cached_property
    def input(self) -> Input:
        """Which block it takes.

        `rankings` and `outputs` hold those of other models, too; `confidence` holds scores that another metric gives;
        `scores` are those of external metrics.
        """
        return _INPUTS.get(self._types.get("block", object), "scores")

    @cached_property
    def per(self) -> Literal["query", "dataset"]:
        """What has a value: each query, or the dataset alone, which then has one figure and no interval."""
        return "dataset" if self._types.get("return") is float else "query"

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters a measure may name, in the function's order; the cutoff `k` is not one of them."""
        own = {name: parameter for name, parameter in self._keywords.items() if name != "k"}
        if self.input not in ("ratings", "logs"):
            return own
        return own | {"average": Parameter("average", Literal[self.averages], self.averages[0])}

    @property
    def has_terms(self) -> bool:
        """Whether it is a sum over judged documents, made with `from_terms`."""
        return hasattr(self.function, "terms")

    def terms(self, block: JudgedBlock, **arguments: Any) -> Terms:
        """The score of a judged metric before its last sum."""
        if not self.has_terms:
            raise TypeError(f"{self.name} is no sum over judged documents")
        found: Terms = self.function.terms(block, **arguments)  # type: ignore[attr-defined]
        return found

    @property
    def cutoff(self) -> Literal["refused", "optional", "required"]:
        """Whether `@k` may or must be written."""
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

    def _documented(self, heading: str) -> str:
        """The paragraph of the function's documentation that begins so, in one line."""
        _, _, text = (inspect.getdoc(self.function) or "").partition(f"\n\n{heading}")
        return " ".join(text.partition("\n\n")[0].split())
