"""A score before its last sum: what each retrieved document adds to it, and what the sum is divided by.

A metric is written as the function that gives these terms. Called, it gives the scores; its `terms` are what `explain`
prints, so that they add up by construction.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Concatenate, Generic, ParamSpec

import numpy as np

from rankledger.metrics.block import Bools, Floats, JudgedBlock, divide, sum_down

__all__ = ["Terms", "from_terms"]

P = ParamSpec("P")


@dataclass(frozen=True, eq=False)
class Terms:
    """A score of Q queries as `scale (rest + Σ terms) / divisor`.

    Attributes:
        terms: (H, Q) what each judged document retrieved adds; 0 where padded.
        factors: (H, Q) each, by name: what a term is made of, for a reader of the arithmetic.
        rest: (Q,) what is added beside the terms, such as a count of the unjudged documents or what was missed.
        scale: what the sum is multiplied by.
        divisor: (Q,) what it is divided by; the score is undefined where that is 0.
        defined: (Q,) where the score is defined, beside that; everywhere by default.
        ideal: the terms of the perfect ranking, where their sum is the divisor.
    """

    terms: Floats
    factors: Mapping[str, Floats | Bools] = field(default_factory=dict)
    rest: Floats | None = None
    scale: float = 1.0
    divisor: Floats | float = 1.0
    defined: Bools | None = None
    ideal: Terms | None = None

    def total(self) -> Floats:
        """(Q,): the sum that is divided."""
        found = sum_down(self.terms)
        return self.scale * (found if self.rest is None else self.rest + found)

    def score(self) -> Floats:
        """(Q,): the score, NaN where it is undefined."""
        found = divide(self.total(), self.divisor)
        return found if self.defined is None else np.where(self.defined, found, np.nan)


class from_terms(Generic[P]):  # noqa: N801
    """Decorate the function that gives a metric's terms: a call gives the (Q,) scores, `terms` gives the terms."""

    __qualname__: str

    def __init__(self, terms: Callable[Concatenate[JudgedBlock, P], Terms]) -> None:
        self.terms = terms
        functools.update_wrapper(self, terms)
        self.__annotations__ = terms.__annotations__ | {"return": Floats}
        self.__signature__ = inspect.signature(terms).replace(return_annotation=Floats)

    def __call__(self, block: JudgedBlock, *args: P.args, **parameters: P.kwargs) -> Floats:
        """(Q,): the score of each query."""
        return self.terms(block, *args, **parameters).score()

    def __reduce__(self) -> str:
        """Pickle by name, as functions are."""
        return self.__qualname__
