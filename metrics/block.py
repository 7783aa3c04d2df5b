"""What a ranking metric needs of each query: the ranks and grades of the judged documents, one column per query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Floats", "JudgedBlock", "check_exponent", "cut", "divide", "sum_down"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


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
        n_documents: (Q,) documents in the catalogue, NaN where it is not known.
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

    def relevant(self, rel: float) -> Bools:
        """(H, Q): whether each retrieved document's grade is at least `rel`; False where padded.

        Raises:
            ValueError: `rel` is not above 0; documents graded 0 are judged not relevant.
        """
        if not rel > 0:
            raise ValueError(f"rel must be above 0, found {rel:g}")
        reached: Bools = self.grades >= rel
        return reached

    def n_relevant(self, rel: float) -> Floats:
        """(Q,): how many documents are judged with a grade of at least `rel`, retrieved or not."""
        return sum_down(self.judged_grades >= rel)

    def ideal(self) -> JudgedBlock:
        """The block of the perfect ranking: all judged documents, the best grade first."""
        return self._ideal

    @cached_property
    def _ideal(self) -> JudgedBlock:
        n_rows, n_queries = self.judged_grades.shape
        positions = np.broadcast_to(np.arange(1.0, n_rows + 1)[:, np.newaxis], (n_rows, n_queries))
        ranks = np.where(np.isnan(self.judged_grades), np.inf, positions)
        return JudgedBlock(
            query_ids=self.query_ids,
            ranks=ranks,
            grades=self.judged_grades,
            tie_first=ranks,
            tie_last=ranks,
            judgment_row=np.full((n_rows, n_queries), -1, dtype=np.int32),
            judged_grades=self.judged_grades,
            n_judged=self.n_judged,
            n_retrieved=np.isfinite(ranks).sum(axis=0).astype(np.float64),
            n_documents=self.n_documents,
        )


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


def check_exponent(grade: float) -> None:
    """Refuse a grade of which 2**grade is infinite in doubles.

    Raises:
        ValueError: it is; the message names it.
    """
    if grade >= 1024:
        raise ValueError(f"grade {grade:g} is too great for 2**grade; rescale the grades or take them as they are")


def divide(numerator: Floats, denominator: Floats | float) -> Floats:
    """`numerator / denominator`, NaN where the denominator is 0: nothing to divide by means undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(denominator, 0), np.nan, np.divide(numerator, denominator))
