"""What a ranking metric needs of each query: the ranks and grades of the judged documents, one column per query."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Concatenate, Generic, Literal, ParamSpec

import numpy as np
import numpy.typing as npt

__all__ = [
    "MANY_ROWS",
    "Bools",
    "Floats",
    "Gain",
    "GradedGain",
    "JudgedBlock",
    "Terms",
    "check_exponent",
    "check_grades",
    "check_summable",
    "cut",
    "divide",
    "from_terms",
    "gains",
    "greatest_grade",
    "sum_down",
]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
GradedGain = Literal["linear", "exponential"]
Gain = Literal["linear", "exponential", "binary"]

_GREATEST_EXPONENT = 960  # leaves room for the sum of 2**32 of them, and for that times 2**30

MANY_ROWS = 24
"""Rows for each distinct grade from which counting grade by grade is quicker than row by row."""

_PER_ROW = ("ranks", "grades", "tie_first", "tie_last", "judgment_row", "subtopic_grades")
_PER_QUERY = ("query_ids", "judged_grades", "n_judged", "n_retrieved", "n_documents", "judged_subtopic_grades")


@dataclass(frozen=True, eq=False)
class JudgedBlock:
    """The judged documents of Q queries: at most H of a query's were retrieved, at most J judged; H, J ≥ 1.

    Attributes:
        query_ids: (Q,) the queries' ids, str.
        ranks: (H, Q) 1-based ranks of the judged documents retrieved, ascending down a column, inf where padded.
        grades: (H, Q) their grades as judged (negative kept), NaN where padded.
        tie_first: (H, Q) the first rank of the document's group of equal scores, inf where padded.
        tie_last: (H, Q) the last rank of that group, inf where padded.
        judgment_row: (H, Q) int32, the row of the judgments table that names the document, -1 where padded.
        judged_grades: (J, Q) the grades of all the query's judgments, descending, NaN where padded.
        n_judged: (Q,) documents judged with a grade of at least 0.
        n_retrieved: (Q,) documents retrieved, judged or not.
        n_documents: (Q,) documents in the catalogue, NaN if unknown.
        subtopic_grades: (S, H, Q) the grades of the documents retrieved for each of at most S subtopics, NaN where one
            was not judged for it or where padded; None where judgments are of queries as a whole.
        judged_subtopic_grades: (S, J, Q) those of all the query's judged documents, the greatest document id first.
    """

    query_ids: npt.NDArray[np.object_]
    ranks: Floats
    grades: Floats
    tie_first: Floats
    tie_last: Floats
    judgment_row: npt.NDArray[np.int32]
    judged_grades: Floats
    n_judged: Floats
    n_retrieved: Floats
    n_documents: Floats
    subtopic_grades: Floats | None = None
    judged_subtopic_grades: Floats | None = None

    def relevant(self, rel: float) -> Bools:
        """(H, Q): whether each retrieved document's grade is at least `rel`; False where padded.

        Raises:
            ValueError: `rel` is not above 0; documents graded 0 are judged not relevant.
        """
        return self.grades >= _above_0(rel)

    def n_relevant(self, rel: float) -> Floats:
        """(Q,): how many documents are judged with a grade of at least `rel`, retrieved or not; as `relevant`."""
        return sum_down(self.judged_grades >= _above_0(rel))

    def ideal(self) -> JudgedBlock:
        """The block of the perfect ranking: all judged documents, the best grade first."""
        return self._ideal

    def of(self, queries: npt.NDArray[np.intp]) -> JudgedBlock:
        """The block of these queries alone, by their columns."""
        return self._each(lambda array: np.ascontiguousarray(array[..., queries]), *_PER_QUERY, *_PER_ROW)

    def reordered(self, order: npt.NDArray[np.intp]) -> JudgedBlock:
        """The block with the rows of each column in this order, (H, Q); the caller fixes the ranks."""
        return self._each(
            lambda array: np.take_along_axis(array, np.broadcast_to(order, array.shape), axis=-2), *_PER_ROW
        )

    def cut_at(self, depth: int | None) -> JudgedBlock:
        """The block of the first `depth` documents of each ranking; all of them for None."""
        if depth is None:
            return self
        return replace(self._kept(self.ranks <= depth), n_retrieved=np.minimum(self.n_retrieved, depth))

    def condensed(self) -> JudgedBlock:
        """The block of the rankings without their unjudged documents, those with a negative grade included.

        Reference:
            Sakai 2007, doi:10.1145/1277741.1277756; trec_eval -J.
        """
        judged = self.grades >= 0
        kept = self._kept(judged).reordered(np.argsort(~judged, axis=0, kind="stable"))
        padded = np.isinf(kept.ranks)
        ranks = np.where(padded, np.inf, np.arange(1.0, len(padded) + 1)[:, np.newaxis])
        outer, inner = np.ones_like(padded[:1]), kept.tie_first[1:] != kept.tie_first[:-1]
        begins, ends = np.vstack([outer, inner]), np.vstack([inner, outer])
        first = np.maximum.accumulate(np.where(begins, ranks, 0.0), axis=0)
        last = np.minimum.accumulate(np.where(ends, ranks, np.inf)[::-1], axis=0)[::-1]
        return replace(
            kept,
            ranks=ranks,
            tie_first=np.where(padded, np.inf, first),
            tie_last=np.where(padded, np.inf, last),
            n_retrieved=judged.sum(axis=0).astype(np.float64),
        )

    def _kept(self, rows: Bools) -> JudgedBlock:
        """The block with the other rows as padding, where they stand."""
        return replace(
            self,
            ranks=np.where(rows, self.ranks, np.inf),
            grades=np.where(rows, self.grades, np.nan),
            tie_first=np.where(rows, self.tie_first, np.inf),
            tie_last=np.where(rows, self.tie_last, np.inf),
            judgment_row=np.where(rows, self.judgment_row, -1).astype(np.int32),
        )

    def _each(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], *names: str) -> JudgedBlock:
        found = {name: getattr(self, name) for name in names}
        return replace(self, **{name: change(array) for name, array in found.items() if array is not None})

    @cached_property
    def _ideal(self) -> JudgedBlock:
        n_rows, n_queries = self.judged_grades.shape
        positions = np.broadcast_to(np.arange(1.0, n_rows + 1)[:, np.newaxis], (n_rows, n_queries))
        ranks = np.where(np.isnan(self.judged_grades), np.inf, positions)
        return replace(
            self,
            ranks=ranks,
            grades=self.judged_grades,
            tie_first=ranks,
            tie_last=ranks,
            judgment_row=np.full((n_rows, n_queries), -1, dtype=np.int32),
            n_retrieved=np.isfinite(ranks).sum(axis=0).astype(np.float64),
            subtopic_grades=None,
            judged_subtopic_grades=None,
        )


def _above_0(rel: float) -> float:
    if not rel > 0:
        raise ValueError(f"rel must be above 0, found {rel:g}")
    return rel


def cut(k: int | None) -> float:
    """The deepest rank that counts: `k`, or inf for None.

    Raises:
        ValueError: `k` is below 1.
    """
    if k is None:
        return np.inf
    if k < 1:
        raise ValueError(f"a cutoff counts ranks from 1, found {k}")
    return float(k)


def sum_down(terms: npt.NDArray[Any]) -> Floats:
    """(Q,): each column's sum, added from the top down.

    NumPy adds a row-major matrix row by row, but a column-major one or a single column pairwise, which rounds
    differently: alone or among others, a query must get the same bits.
    """
    if terms.shape[1] == 1 and terms.shape[0]:
        return np.asarray(terms.cumsum(axis=0)[-1], dtype=np.float64)
    return np.asarray(np.ascontiguousarray(terms).sum(axis=0), dtype=np.float64)


def gains(block: JudgedBlock, gain: Gain, rel: float = 1) -> Floats:
    """(H, Q): what each retrieved document is worth; errors are those of `cg`."""
    if gain == "binary":
        return block.relevant(rel).astype(np.float64)
    grades: Floats = np.fmax(block.grades, 0.0)  # fmax turns the padding's NaN into 0 as well
    greatest = float(np.fmax.reduce(block.judged_grades[0], initial=0.0))
    if gain == "linear":
        check_summable(greatest)
        return grades
    check_exponent(greatest)
    return np.exp2(grades) - 1.0


def check_grades(block: JudgedBlock, max_grade: float | None) -> float:
    """`max_grade`, once it is known to be above 0 and no judgment of the block above it."""
    if max_grade is None:
        raise ValueError("max_grade is needed: the grade of a perfect document")
    if not max_grade > 0:
        raise ValueError(f"max_grade must be above 0, found {max_grade:g}")
    found = greatest_grade(block)
    if found > max_grade:
        raise ValueError(f"a judgment has grade {found:g}, above max_grade {max_grade:g}; raise max_grade")
    return float(max_grade)


def greatest_grade(block: JudgedBlock) -> float:
    """The greatest grade of any judgment of the block; 0 if all are below."""
    return float(np.fmax.reduce(block.judged_grades, axis=None, initial=0.0))


def check_exponent(grade: float) -> None:
    """Refuse a grade of which 2**grade, added up over any number of documents, may be infinite in doubles.

    Raises:
        ValueError: it is; the message names it.
    """
    if grade > _GREATEST_EXPONENT:
        raise ValueError(f"grade {grade:g} is too large for 2**grade; rescale the grades or use linear gain")


def check_summable(grade: float) -> None:
    """Refuse a grade that, added up over any number of documents, may be infinite in doubles.

    Raises:
        ValueError: it is; the message names it.
    """
    if grade > 2.0**_GREATEST_EXPONENT:
        raise ValueError(f"grade {grade:g} is too large to add up; rescale the grades")


def divide(numerator: Floats, denominator: Floats | float) -> Floats:
    """`numerator / denominator`, NaN where the denominator is 0: nothing to divide by means undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, zero = np.divide(numerator, denominator), np.equal(denominator, 0)
    return np.where(zero, np.nan, ratio) if zero.any() else np.asarray(ratio)


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
