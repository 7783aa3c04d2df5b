"""Judged documents of queries as arrays, one column per query, and the terms that metrics make from them."""

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
    """Judged documents of Q queries, each with at most J of which it retrieved at most H.

    Attributes:
        query_ids: (Q,) query ids, str.
        ranks: (H, Q) ranks of the retrieved judged documents, from 1 on, ascending down a column, inf where padded.
        grades: (H, Q) grades of these documents as judged, negative ones included, NaN if padded.
        tie_first: (H, Q) first rank of the document's group of equal scores, inf where padded.
        tie_last: (H, Q) last rank of the group, inf where padded.
        judgment_row: (H, Q) int32, row of the judgments table that names the document, -1 where padded.
        judged_grades: (J, Q) grades of all judgments of the query, descending, NaN if padded.
        n_judged: (Q,) documents judged with a grade of at least 0.
        n_retrieved: (Q,) retrieved documents, judged or not.
        n_documents: (Q,) documents in the catalogue, NaN if unknown.
        subtopic_grades: (S, H, Q) grades of the retrieved documents for each of at most S subtopics, NaN if a document
            was not judged for the subtopic, and where padded. None if judgments are of queries as a whole.
        judged_subtopic_grades: (S, J, Q) grades of all judged documents of the query, the last document id first.
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
        """Return (H, Q) True for retrieved documents with a grade of at least `rel`, False where padded.

        Raises:
            ValueError: If `rel` is not above 0. Documents graded 0 are judged not relevant.
        """
        return self.grades >= _check_positive(rel)

    def n_relevant(self, rel: float) -> Floats:
        """Return (Q,) numbers of documents judged with a grade of at least `rel`, retrieved or not."""
        return sum_down(self.judged_grades >= _check_positive(rel))

    def ideal(self) -> JudgedBlock:
        """Return the block of the perfect ranking: all judged documents, the best grade first."""
        return self._ideal

    def of(self, queries: npt.NDArray[np.intp]) -> JudgedBlock:
        """Return the block of some queries, by their columns."""
        return self._each(lambda array: np.ascontiguousarray(array[..., queries]), *_PER_QUERY, *_PER_ROW)

    def reordered(self, order: npt.NDArray[np.intp]) -> JudgedBlock:
        """Return the block with the rows of each column in this (H, Q) order. The caller sets the ranks."""
        return self._each(
            lambda array: np.take_along_axis(array, np.broadcast_to(order, array.shape), axis=-2), *_PER_ROW
        )

    def cut_at(self, depth: int | None) -> JudgedBlock:
        """Return the block of the first `depth` documents of each ranking. None keeps all."""
        if depth is None:
            return self
        return replace(self._keep_rows(self.ranks <= depth), n_retrieved=np.minimum(self.n_retrieved, depth))

    def condensed(self) -> JudgedBlock:
        """Return the block of the rankings without documents that are unjudged or have a negative grade.

        Reference:
            Sakai 2007, doi:10.1145/1277741.1277756; trec_eval -J.
        """
        judged = self.grades >= 0
        kept = self._keep_rows(judged).reordered(np.argsort(~judged, axis=0, kind="stable"))
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

    def _keep_rows(self, rows: Bools) -> JudgedBlock:
        """Return the block with the other rows as padding."""
        return replace(
            self,
            ranks=np.where(rows, self.ranks, np.inf),
            grades=np.where(rows, self.grades, np.nan),
            tie_first=np.where(rows, self.tie_first, np.inf),
            tie_last=np.where(rows, self.tie_last, np.inf),
            judgment_row=np.where(rows, self.judgment_row, -1).astype(np.int32),
        )

    def _each(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], *names: str) -> JudgedBlock:
        arrays = {name: getattr(self, name) for name in names}
        return replace(self, **{name: change(array) for name, array in arrays.items() if array is not None})

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


def _check_positive(rel: float) -> float:
    if not rel > 0:
        raise ValueError(f"rel must be above 0, found {rel:g}")
    return rel


def cut(k: int | None) -> float:
    """Return the last rank that counts: `k`, or inf for None.

    Raises:
        ValueError: If `k` is below 1.
    """
    if k is None:
        return np.inf
    if k < 1:
        raise ValueError(f"a cutoff counts ranks from 1, found {k}")
    return float(k)


def sum_down(terms: npt.NDArray[Any]) -> Floats:
    """Return the (Q,) sum of each column, added from the top down.

    NumPy adds a row-major matrix row by row, but a column-major one or a single column pairwise, which rounds
    differently. A query must get the same bits alone and among others.
    """
    if terms.shape[1] == 1 and terms.shape[0]:
        return np.asarray(terms.cumsum(axis=0)[-1], dtype=np.float64)
    return np.asarray(np.ascontiguousarray(terms).sum(axis=0), dtype=np.float64)


def gains(block: JudgedBlock, gain: Gain, rel: float = 1) -> Floats:
    """Return the (H, Q) gain of each retrieved document. Raises the errors of `cg`."""
    if gain == "binary":
        return block.relevant(rel).astype(np.float64)
    grades: Floats = np.fmax(block.grades, 0.0)  # fmax turns the padding's NaN into 0 as well
    maximum = float(np.fmax.reduce(block.judged_grades[0], initial=0.0))
    if gain == "linear":
        check_summable(maximum)
        return grades
    check_exponent(maximum)
    return np.exp2(grades) - 1.0


def check_grades(block: JudgedBlock, max_grade: float | None) -> float:
    """Return `max_grade`. Raise ValueError if it is not above 0, or if a judgment is above it."""
    if max_grade is None:
        raise ValueError("max_grade is needed: the grade of a perfect document")
    if not max_grade > 0:
        raise ValueError(f"max_grade must be above 0, found {max_grade:g}")
    maximum = greatest_grade(block)
    if maximum > max_grade:
        raise ValueError(f"a judgment has grade {maximum:g}, above max_grade {max_grade:g}; raise max_grade")
    return float(max_grade)


def greatest_grade(block: JudgedBlock) -> float:
    """Return the maximum grade of all judgments of the block, 0 if all are below."""
    return float(np.fmax.reduce(block.judged_grades, axis=None, initial=0.0))


def check_exponent(grade: float) -> None:
    """Reject a grade for which sums of 2**grade over any number of documents may be infinite in doubles.

    Raises:
        ValueError: If they may be. The message names the grade.
    """
    if grade > _GREATEST_EXPONENT:
        raise ValueError(f"grade {grade:g} is too large for 2**grade; rescale the grades or use linear gain")


def check_summable(grade: float) -> None:
    """Reject a grade for which sums over any number of documents may be infinite in doubles.

    Raises:
        ValueError: If they may be. The message names the grade.
    """
    if grade > 2.0**_GREATEST_EXPONENT:
        raise ValueError(f"grade {grade:g} is too large to add up; rescale the grades")


def divide(numerator: Floats, denominator: Floats | float) -> Floats:
    """Return `numerator / denominator`, NaN if the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, zero = np.divide(numerator, denominator), np.equal(denominator, 0)
    return np.where(zero, np.nan, ratio) if zero.any() else np.asarray(ratio)


P = ParamSpec("P")


@dataclass(frozen=True, eq=False)
class Terms:
    """Score of Q queries before its last sum: the score is `scale (rest + Σ terms) / divisor`.

    A metric is written as the function that gives these terms, so that what `explain` prints adds up by construction.

    Attributes:
        terms: (H, Q) what each retrieved judged document adds, 0 if padded.
        factors: (H, Q) arrays by name: the factors of a term, which `explain` shows.
        rest: (Q,) what is added to the terms, such as a count of the unjudged documents.
        scale: Factor of the sum.
        divisor: (Q,) what the sum is divided by. The score is undefined if it is 0.
        defined: (Q,) True if the score is defined. True for all queries by default.
        ideal: Terms of the perfect ranking if their sum is the divisor.
    """

    terms: Floats
    factors: Mapping[str, Floats | Bools] = field(default_factory=dict)
    rest: Floats | None = None
    scale: float = 1.0
    divisor: Floats | float = 1.0
    defined: Bools | None = None
    ideal: Terms | None = None

    def total(self) -> Floats:
        """Return (Q,) sums before the division."""
        total = sum_down(self.terms)
        return self.scale * (total if self.rest is None else self.rest + total)

    def score(self) -> Floats:
        """Return (Q,) scores, NaN if undefined."""
        score = divide(self.total(), self.divisor)
        return score if self.defined is None else np.where(self.defined, score, np.nan)


class from_terms(Generic[P]):  # noqa: N801
    """Decorator of a function that returns a metric's terms. A call returns the (Q,) scores, `terms` the terms."""

    __qualname__: str

    def __init__(self, terms: Callable[Concatenate[JudgedBlock, P], Terms]) -> None:
        self.terms = terms
        functools.update_wrapper(self, terms)
        self.__annotations__ = terms.__annotations__ | {"return": Floats}
        self.__signature__ = inspect.signature(terms).replace(return_annotation=Floats)

    def __call__(self, block: JudgedBlock, *args: P.args, **parameters: P.kwargs) -> Floats:
        """Return the (Q,) scores."""
        return self.terms(block, *args, **parameters).score()

    def __reduce__(self) -> str:
        """Pickle by name, as functions are."""
        return self.__qualname__
