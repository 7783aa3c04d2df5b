"""How well a model knows which queries it answers badly, by the scores that it gives to documents.

A model that may abstain leaves out the queries that it is least confident of. Its curve is the mean score of those that
are left, at each share left out. Two curves bound it: that of leaving out the worst answers, and the flat one of
leaving out queries at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rankledger.metrics.agreement import Ranked
from rankledger.metrics.block import Floats

__all__ = ["ConfidenceBlock", "nauc"]

Confidence = Literal["max", "std", "diff1"]

_SHARES = np.linspace(0, 1, 11)[:-1]  # of the queries left out; 0.7 is a bit more, as in mteb, and 10.5 of 15 are 11


@dataclass(frozen=True, eq=False)
class ConfidenceBlock:
    """What each of Q queries scores, and how confident the model is of it.

    Attributes:
        scores: (Q,) by metric, cutoff and the least grade that is relevant; NaN for a query that does not count.
        confidences: (Q,) by name: the greatest score of a query's documents, their standard deviation, and the gap
            between the first two.
    """

    scores: Mapping[tuple[Any, ...], Floats]
    confidences: Mapping[Confidence, Floats]

    @classmethod
    def of_rankings(cls, ranked: Ranked, values: Mapping[tuple[Any, ...], Floats]) -> ConfidenceBlock:
        """The block of rankings; a query that retrieved nothing has confidences of 0, as in mteb."""
        n_queries = len(ranked.n_retrieved)
        sizes = np.bincount(ranked.queries, minlength=n_queries)
        answered, starts = sizes > 0, np.cumsum(sizes) - sizes
        first, queries = starts[answered], np.repeat(np.arange(n_queries), sizes)
        scores = np.empty(len(queries))
        scores[starts[ranked.queries] + ranked.ranks - 1] = ranked.scores  # sums do not depend on the file's order
        mean = np.bincount(queries, scores, n_queries) / np.maximum(sizes, 1)
        variance = np.bincount(queries, (scores - mean[queries]) ** 2, n_queries) / np.maximum(sizes, 1)
        greatest, gap = np.zeros((2, n_queries))
        greatest[answered] = np.maximum.reduceat(scores, first)  # ranks may be by rounded scores
        places = np.flatnonzero(scores == greatest[queries])
        scores[places[np.searchsorted(places, first)]] = -np.inf
        gap[answered] = greatest[answered] - np.maximum.reduceat(scores, first)
        gap[sizes == 1] = 0.0
        return cls(values, {"max": greatest, "std": np.sqrt(variance), "diff1": gap})

    @property
    def n_queries(self) -> int:
        """Q."""
        return len(self.confidences["max"])

    def of(self, queries: npt.NDArray[np.int64]) -> ConfidenceBlock:
        """The block of these queries alone."""
        scores = {name: values[queries] for name, values in self.scores.items()}
        return ConfidenceBlock(scores, {name: values[queries] for name, values in self.confidences.items()})


def nauc(
    block: ConfidenceBlock,
    *,
    of: Literal["ndcg", "ap", "rr", "r", "p"] = "ndcg",
    confidence: Confidence = "max",
    k: int | None = None,
    rel: float = 1,
) -> float:
    """Normalised area under the abstention curve: how much of what a model can gain by abstaining it does gain.

    Formula: (A - flat) / (greatest - flat), areas under the curves at 0, 10 … 90% of the queries left out.

    The least confident queries are left out first; of equally confident ones each counts as their mean score. The
    greatest area is that of leaving out the queries of the least score first.

    Args:
        of: the metric whose scores of queries are averaged, with its cutoff.
        confidence: `max`, the greatest score of a query's documents; `std`, the standard deviation of all; `diff1`, how
            far the second document is below the first. A query without documents has 0.
        k: ranks to count in the metric; None counts all. The confidence is of all documents retrieved.
        rel: the least grade that is relevant.

    Returns:
        at most 1; 0 is no better than chance, below 0 the better answers are left out; NaN where all scores are equal.

    Reference:
        Gisserot-Boukhlef et al. 2024, arXiv:2402.12997; `nauc` of mteb 2.26.24.
    """
    scores = block.scores[of, k, rel]
    counted = ~np.isnan(scores)
    scores, confident = scores[counted], block.confidences[confidence][counted]
    if not len(scores) or scores.min() == scores.max():
        return np.nan
    _, groups, sizes = np.unique(confident, return_inverse=True, return_counts=True)
    means = np.repeat(np.bincount(groups, scores) / sizes, sizes)
    return _gain(means) / _gain(np.sort(scores))


def _gain(scores: Floats) -> float:
    """The area between the curve of these scores, the first left out first, and the flat one."""
    n = len(scores)
    left = n - np.minimum(np.rint(_SHARES * n), n - 1).astype(np.int64)
    curve = (np.cumsum(scores[::-1]) / np.arange(1, n + 1))[left - 1]
    return float(np.trapezoid(curve - curve[0], _SHARES))
