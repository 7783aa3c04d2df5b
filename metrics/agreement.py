"""Agreement of a ranking with the grades, with another ranking, or with preferences of judges.

Compared are the pairs of judged documents that were retrieved (grade of at least 0); unjudged documents have no grade
to disagree with. Ranks have no ties: the tie convention has broken them. A query with fewer than two such documents has
no pair to compare and is undefined, never 0: an empty list is not a perfect one.

Down to depth d two rankings agree in X of d documents. Each depth weighs p times as much as the one before it, p being
the chance that a reader looks one document further. So a document that both have adds p**(d - 1) / d at every depth d
from the deeper one of its two ranks on.

The N documents of a query that anyone judged are numbered: those retrieved by their ranks, then the others. A judge
ranks some of them, once or several times; of two documents of one ranking the one at the higher level is preferred, and
what follows from several rankings of one judge is a preference, too. A preference is fulfilled if the document stands
above the other one, which may be missing.

Reference:
    Carterette & Bennett 2008, doi:10.1145/1390334.1390451; trec_eval 10.0, `form_prefs_counts.c` and `m_prefs_*.c`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rankledger.metrics.block import MANY_ROWS, Bools, Floats, JudgedBlock, Terms, cut, from_terms, sum_down

__all__ = ["Ranked", "RankingsBlock", "ap_corr", "compat", "kendall_distance", "kendall_tau", "rbo"]


@from_terms
def kendall_distance(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """Count the pairs of documents with the more relevant one below the other: the Kendall tau distance.

    Formula: pairs whose more relevant document is lower.

    Args:
        k: Number of ranks to count. None counts all.

    Returns:
        (Q,), a count of inversions, lower is better. NaN if fewer than two judged documents were retrieved within k.

    Reference:
        Kendall 1938, doi:10.1093/biomet/30.1-2.81.
    """
    _, discordant, n_compared = _pairs(block, k)
    return Terms(discordant, defined=n_compared > 1)


@from_terms
def kendall_tau(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """Compute Kendall's tau-b: concordant minus discordant pairs, corrected for equal grades.

    Formula: (concordant - discordant) / √(pairs · pairs of unequal grade).

    Args:
        k: Number of ranks to count. None counts all.

    Returns:
        (Q,) scores in [-1, 1]. NaN if the judged documents retrieved within k are fewer than two or all of one grade.

    Reference:
        Kendall 1945, doi:10.1093/biomet/33.3.239; scipy.stats.kendalltau.
    """
    concordant, discordant, n_compared = _pairs(block, k)
    n_pairs = n_compared * (n_compared - 1) / 2
    untied = sum_down(concordant + discordant)
    factors = {"concordant": concordant, "discordant": discordant}
    return Terms(concordant - discordant, factors, divisor=np.sqrt(n_pairs * untied))


@from_terms
def ap_corr(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """Compute the AP correlation: Kendall's tau with more weight on the top of the ranking.

    Formula: Σ_{i>1} (concordant - discordant above) / (i - 1) / (compared - 1).

    Of n documents compared, the one at place i > 1 adds (concordant - discordant) / (i - 1), counted over the pairs
    that it makes with those above; the sum is divided by n - 1. A pair of equal grades is neither, so the value is the
    mean over all orders that documents of equal grade could truly have, and a perfect ranking scores 1 only where
    all grades differ.

    Args:
        k: Number of ranks to count. None counts all.

    Returns:
        (Q,) scores in [-1, 1]. NaN if the judged documents retrieved within k are fewer than two or all of one grade.

    Reference:
        Yilmaz, Aslam & Robertson 2008, doi:10.1145/1390334.1390435; equal grades as in the accuracy of Urbano & Marrero
        2017, doi:10.1145/3121050.3121106, where it is the estimated ranking that has ties.
    """
    concordant, discordant, n_compared = _pairs(block, k)
    compared = _find_compared(block, k)
    above = compared.cumsum(axis=0) - compared
    share = (concordant - discordant) / np.maximum(above, 1)
    return Terms(
        share,
        {"concordant": concordant, "discordant": discordant, "above": above},
        divisor=n_compared - 1,
        defined=sum_down(concordant + discordant) > 0,
    )


def _find_compared(block: JudgedBlock, k: int | None) -> Bools:
    """Return (H, Q) True for judged documents within k."""
    return (block.grades >= 0) & (block.ranks <= cut(k))


def _pairs(block: JudgedBlock, k: int | None) -> tuple[Floats, Floats, Floats]:
    """Return each document's (H, Q) concordant and discordant pairs with documents above it."""
    compared = _find_compared(block, k)
    grades = np.where(compared, block.grades, np.nan)  # a comparison with NaN is false both ways
    concordant = np.zeros(grades.shape)
    discordant = np.zeros(grades.shape)
    distinct = np.unique(grades[compared])
    if MANY_ROWS * len(distinct) < len(grades):
        for grade in distinct:
            at_grade = grades == grade
            concordant[at_grade] = (grades > grade).cumsum(axis=0)[at_grade]
            discordant[at_grade] = (grades < grade).cumsum(axis=0)[at_grade]
        return concordant, discordant, sum_down(compared)
    for row in range(1, len(grades)):
        concordant[row] = (grades[:row] > grades[row]).sum(axis=0)
        discordant[row] = (grades[:row] < grades[row]).sum(axis=0)
    return concordant, discordant, sum_down(compared)


_NEGLIGIBLE = 2.0**-70


@dataclass(frozen=True, eq=False)
class Ranked:
    """The documents that a model retrieved for Q queries, judged or not, N in all.

    Attributes:
        documents: (N,) uint64, ascending: a number for each query and document, which is the same for all models.
        queries: (N,) the query's column.
        ranks: (N,) the document's rank.
        scores: (N,) what the model gave it.
        n_retrieved: (Q,) documents of each query.
    """

    documents: npt.NDArray[np.uint64]
    queries: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int64]
    scores: Floats
    n_retrieved: Floats


@dataclass(frozen=True, eq=False)
class RankingsBlock:
    """Rankings of a model, and of other models to compare them with.

    Attributes:
        ranked: the model's.
        others: other models', by name; those of a model whose output is missing are not there.
    """

    ranked: Ranked
    others: Mapping[str, Ranked]


@from_terms
def compat(block: JudgedBlock, *, k: int | None = None, p: float = 0.95) -> Terms:
    """Compute the compatibility: the rank-biased overlap with the most similar ideal ranking, over its maximum.

    Formula: Σ p^(d - 1) |first d ∩ first d of the most similar ideal| / d / its maximum.

    The ideal ranking holds the documents graded above 0, the best grade first; documents of equal grade keep the
    order of the ranking, with those that were not retrieved after them. The maximum is its overlap with itself.

    Args:
        k: The depth down to which is compared, however short the rankings; None is the length of the longer one.
        p: Persistence, the probability of looking one document further, in (0, 1).

    Returns:
        (Q,) scores in [0, 1]. NaN if no document is judged with a grade above 0.

    Reference:
        Clarke, Vtyurina & Smucker 2021, doi:10.1145/3451161; ir_measures `Compat`. The authors' program compares down
        to depth 1000, as compat@1000 does.
    """
    ideal = block.ideal()
    places = np.where(block.grades > 0, _ideal_places(block), np.inf)
    from_depth = np.maximum(places, block.ranks)
    best = np.where(ideal.grades > 0, ideal.ranks, np.inf)
    depth = np.maximum(block.n_retrieved, np.isfinite(best).sum(axis=0)) if k is None else np.float64(cut(k))
    weights = _weights(p, float(np.max(depth)))
    best_weights = np.where(best <= depth, _sum_weights(weights, best, depth), 0.0)
    return Terms(
        np.where(from_depth <= depth, _sum_weights(weights, from_depth, depth), 0.0),
        {"rank in the ideal list": places, "in both from depth": from_depth},
        divisor=sum_down(best_weights),
        ideal=Terms(best_weights, {"in both from depth": best}),
    )


def rbo(
    block: RankingsBlock,
    *,
    model: str,
    k: int | None = None,
    p: float = 0.9,
    form: Literal["extrapolated", "minimum", "residual"] = "extrapolated",
) -> Floats:
    """Compute the rank-biased overlap with another model's ranking, extrapolated beyond the end of both.

    Formula: (1 - p) Σ p^(d - 1) |first d ∩ first d of the other model| / d, extrapolated.

    s and l are the lengths of the shorter and the longer list. Extrapolated, the agreement continues below the end
    of each list: a document in both lists adds (1 - p) p**(d - 1) / d at every depth d from the deeper one
    of its two ranks down to e, and p**e / e for all that is deeper; e is s where both lists have it within the first s
    documents, and l otherwise.

    Args:
        block: The model's rankings and the others'; all documents count, judged or not.
        model: The name of the other model.
        k: Number of ranks of both lists. None counts all.
        p: Persistence, the probability of looking one document further, in (0, 1).
        form: `extrapolated`; `minimum`, as if nothing below the ends were in both lists; `residual`, how much more it
            could be at most, if all that could be in both lists were.

    Returns:
        (Q,) scores in [0, 1], 1 for equal lists. 0 if one of the two retrieved nothing (residual at most 1).
        NaN if both retrieved nothing, or if the other model's output is missing.

    Reference:
        Webber, Moffat & Zobel 2010, doi:10.1145/1852102.1852106, equation 32; `minimum` is equation 11 and `residual`
        equation 30, for lists of any two lengths.
    """
    other = block.others.get(model)
    lengths = np.minimum(block.ranked.n_retrieved, cut(k))
    others = np.zeros_like(lengths) if other is None else np.minimum(other.n_retrieved, cut(k))
    shorter, longer = np.minimum(lengths, others), np.maximum(lengths, others)
    weights = _weights(p, math.inf if form == "minimum" else float((shorter + longer).max(initial=0)))
    queries, deeper = _find_shared(block.ranked, other, cut(k))
    if form == "residual":
        overlap = _residual(shorter, longer, np.bincount(queries, minlength=len(lengths)), p, weights)
    else:
        end = np.where(deeper <= shorter[queries], shorter[queries], longer[queries])
        end = end if form == "extrapolated" else np.full_like(end, np.inf)
        adds = (1 - p) * _sum_weights(weights, deeper, end) + p**end / end
        overlap = np.bincount(queries, weights=adds, minlength=len(lengths)).astype(np.float64)
    overlap = np.clip(overlap, 0.0, 1.0)  # rounded, it may be beyond
    return np.where((longer > 0) & (other is not None), overlap, np.nan)


def _residual(shorter: Floats, longer: Floats, n_shared: npt.NDArray[np.int64], p: float, weights: Floats) -> Floats:
    """Return (Q,) weights of depths at which two lists could still agree, times the possible gain in agreement.

    Below its end each list may hold what the other one has; from depth f = s + l - X on, X documents being in both,
    they may agree wholly.
    """
    union = shorter + longer - n_shared
    of_shorter, both = (_sum_weights(weights, end + 1, union) for end in (shorter, longer))
    endless = -math.log1p(-p) / p - _sum_weights(weights, np.ones_like(union), union)
    return p**shorter + p**longer - p**union - (1 - p) * (shorter * of_shorter + longer * both + n_shared * endless)


def _find_shared(one: Ranked, other: Ranked | None, deepest: float) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the query and the greater rank of each document in both lists, by query and rank."""
    if other is None or not len(other.documents):
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    near, others = np.flatnonzero(one.ranks <= deepest), np.flatnonzero(other.ranks <= deepest)
    documents, other_documents = one.documents[near], other.documents[others]
    places = np.minimum(np.searchsorted(other_documents, documents), len(other_documents) - 1)
    shared = np.flatnonzero(other_documents[places] == documents)
    rows = near[shared]
    deeper = np.maximum(one.ranks[rows], other.ranks[others[places[shared]]])
    # The two numbers as one, which sorts several times as fast as a pair of them does.
    n_ranks = int(deeper.max(initial=0)) + 1
    queries, deeper = np.divmod(np.sort(one.queries[rows] * n_ranks + deeper), n_ranks)
    return queries, deeper.astype(np.float64)


def _ideal_places(block: JudgedBlock) -> Floats:
    """Return (H, Q) ranks of documents graded above 0 in the ideal ranking most similar to the ranking."""
    places = np.ones(block.ranks.shape)
    distinct = np.unique(block.grades[block.grades > 0])
    if MANY_ROWS * len(distinct) < len(places):
        for grade in distinct:
            equal = block.grades == grade
            places[equal] = ((block.judged_grades > grade).sum(axis=0) + equal.cumsum(axis=0))[equal]
        return places
    for row, grades in enumerate(block.grades):
        places[row] += (block.judged_grades > grades).sum(axis=0) + (block.grades[:row] == grades).sum(axis=0)
    return places


def _weights(p: float, deepest: float) -> Floats:
    """Return (D + 1,) sums Σ p**(i - 1) / i over depths i up to 0, 1 … D, beyond which the rest is negligible."""
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1, found {p:g}")
    n_depths = min(deepest, math.ceil(math.log(_NEGLIGIBLE * (1 - p)) / math.log(p)))
    depths = np.arange(1.0, n_depths + 1)
    return np.concatenate([[0.0], np.cumsum(p ** (depths - 1) / depths)])


def _sum_weights(weights: Floats, first: Floats, last: npt.NDArray[np.float64] | np.float64) -> Floats:
    """Return the weight of the depths from `first` to `last`, both included."""
    end = len(weights) - 1
    return weights[np.minimum(last, end).astype(np.intp)] - weights[np.minimum(first - 1, end).astype(np.intp)]


Pairs = Literal["all", "imp", "ret"]  # all; at least one retrieved; both retrieved


@dataclass(frozen=True, eq=False)
class _Judge:
    """Preferences of one judge.

    Attributes:
        prefers: (N, N) whether the judge prefers the one document to the other.
        levels: (N,) NaN if the judge did not judge; above 0 is relevant.
        n_rankings: how many rankings that comes from.
        n: documents retrieved, the first of the N.
    """

    prefers: Bools
    levels: Floats
    n_rankings: int
    n: int

    @classmethod
    def of(cls, rankings: Sequence[Floats], n: int) -> _Judge:
        """Return the preferences in rankings, (N,) levels each, NaN if a document is missing."""
        stacked = np.array(rankings)
        levels = np.fmax.reduce(stacked, axis=0)
        if (stacked < 0).any():
            raise ValueError("a level is below 0")
        if ((stacked == 0) & (levels > 0)).any():
            raise ValueError("a document has both level 0 and another one")
        prefers: Bools = np.any([ranking[:, np.newaxis] > ranking for ranking in rankings], axis=0)
        while len(rankings) > 1:
            steps = prefers.astype(np.float32)
            further = prefers | (steps @ steps > 0)
            if (further == prefers).all():
                break
            prefers = further
        if (prefers & prefers.T).any():
            raise ValueError("two documents are preferred to each other")
        return cls(prefers, levels, len(rankings), n)

    def fulfilled(self, pairs: Pairs) -> int:
        """Preferences fulfilled."""
        above = np.triu(self.prefers)[: self.n]
        return int((above[:, : self.n] if pairs == "ret" else above).sum())

    def possible(self, pairs: Pairs) -> int:
        """Preferences that count."""
        seen, unseen = self.prefers[: self.n, : self.n], self.prefers[self.n :, self.n :]
        return int({"ret": seen.sum(), "imp": self.prefers.sum() - unseen.sum(), "all": self.prefers.sum()}[pairs])

    def balanced(self, pairs: Pairs) -> float:
        """Return the fulfilled share, as if there were as many non-relevant as relevant documents.

        The form is trec_eval's, which counts pairs of documents that are not relevant where it takes some out.
        """
        within = self.n if pairs == "ret" else len(self.levels)
        relevant, other = self.levels > 0, self.levels == 0
        n_relevant, n_other = int(relevant[:within].sum()), int(other[:within].sum())
        if n_relevant >= n_other:
            more = n_relevant - n_other
            fulfilled = self.fulfilled(pairs) + int(relevant[: self.n].sum()) * more
            return _share(fulfilled, self.possible(pairs) + int(relevant.sum()) * more)
        if self.n_rankings > 1:
            kept = np.ones(len(self.levels), dtype=bool)
            kept[np.flatnonzero(other)[int(relevant.sum()) :]] = False
            counted = (self.prefers & kept & kept[:, np.newaxis])[:within, :within]
        else:
            first = np.zeros(len(self.levels), dtype=bool)
            first[np.flatnonzero(other)[:n_relevant]] = True
            judged = (relevant | other)[:, np.newaxis]
            # Of one document that is not relevant with itself, too.
            counted = ((self.prefers & relevant) | (judged & first))[:within, :within]
        return _share(int(np.triu(counted, 1)[: self.n].sum()), int(counted.sum()))


_Score = Callable[[Sequence[_Judge]], float]


def _sum(count: Callable[[_Judge], int]) -> _Score:
    return lambda judges: float(sum(map(count, judges)))


def _score_all(pairs: Pairs) -> _Score:
    """Return the share of all preferences."""

    def score(judges: Sequence[_Judge]) -> float:
        share = _share(sum(judge.fulfilled(pairs) for judge in judges), sum(judge.possible(pairs) for judge in judges))
        return float(np.nan_to_num(share))

    return score


def _score_judges(pairs: Pairs) -> _Score:
    """Return the mean share over the judges. A judge without preferences adds 0."""
    return lambda judges: _mean(
        np.nan_to_num(_share(judge.fulfilled(pairs), judge.possible(pairs))) for judge in judges
    )


def _balance_judges(pairs: Pairs) -> _Score:
    return lambda judges: _mean(judge.balanced(pairs) for judge in judges)


def _score_pairs(pairs: Pairs) -> _Score:
    """Return the mean, over pairs of documents, of the share of their judges that the ranking agrees with."""

    def score(judges: Sequence[_Judge]) -> float:
        n = judges[0].n
        above = np.sum([judge.prefers for judge in judges], axis=0)
        both = above + above.T
        counted = np.triu(both > 0, 1)
        shares = above / np.maximum(both, 1)
        seen = shares[:n, :n][counted[:n, :n]]
        half = shares[:n, n:][counted[:n, n:]] if pairs != "ret" else seen[:0]
        n_pairs = len(seen) + len(half) + (int(counted[n:, n:].sum()) if pairs == "all" else 0)
        return float(np.cumsum([0.0, *seen, *half])[-1]) / max(n_pairs, 1)  # added one by one

    return score


_SCORES: Mapping[str, _Score] = {
    "prefs_num_prefs_poss": _sum(lambda judge: judge.possible("all")),
    "prefs_num_prefs_ful": _sum(lambda judge: judge.fulfilled("all")),
    "prefs_num_prefs_ful_ret": _sum(lambda judge: judge.fulfilled("ret")),
    "prefs_simp": _score_all("all"),
    "prefs_pair": _score_pairs("all"),
    "prefs_avgjg": _score_judges("all"),
    "prefs_avgjg_Rnonrel": _balance_judges("all"),
    "prefs_simp_ret": _score_all("ret"),
    "prefs_pair_ret": _score_pairs("ret"),
    "prefs_avgjg_ret": _score_judges("ret"),
    "prefs_avgjg_Rnonrel_ret": _balance_judges("ret"),
    "prefs_simp_imp": _score_all("imp"),
    "prefs_pair_imp": _score_pairs("imp"),
    "prefs_avgjg_imp": _score_judges("imp"),
}
PREFERENCE_NAMES = tuple(_SCORES)
"""The scores, in trec_eval's order; the first three are counts."""


def preference_scores(judges: Sequence[Sequence[Floats]], n_retrieved: int) -> Mapping[str, float]:
    """Return the scores of a query by name. 0 if there is nothing to divide by.

    Args:
        judges: The rankings of each judge, at least one; a ranking is (N,) levels, NaN if it lacks a document.
        n_retrieved: How many of the N documents were retrieved; they are the first, by rank.

    Raises:
        ValueError: If a judge contradicts itself.
    """
    judges_of_all = [_Judge.of(rankings, n_retrieved) for rankings in judges]
    return {name: score(judges_of_all) for name, score in _SCORES.items()}


def _share(fulfilled: int, possible: int) -> float:
    return fulfilled / possible if possible else float("nan")


def _mean(values: Iterable[float]) -> float:
    """Return the mean, 0 if a value is undefined."""
    numbers = list(values)
    total = float(np.cumsum(numbers)[-1])
    return total / len(numbers) if total > 0 else 0.0
