"""Preferences between documents, and the shares of them that a ranking fulfills.

The N documents of a query that anyone judged are numbered: those retrieved by their ranks, then the others. A judge
ranks some of them, once or several times; of two documents of one ranking the one at the higher level is preferred, and
what follows from several rankings of one judge is a preference, too. A preference is fulfilled if the document stands
above the other one, which may be missing.

Reference:
    Carterette & Bennett 2008, doi:10.1145/1390334.1390451; trec_eval 10.0, `form_prefs_counts.c` and `m_prefs_*.c`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankledger.metrics.block import Bools, Floats

__all__ = ["PREFERENCE_NAMES", "preference_scores"]

Pairs = Literal["all", "imp", "ret"]  # all; at least one retrieved; both retrieved


@dataclass(frozen=True, eq=False)
class _Judge:
    """Preferences of one judge.

    Attributes:
        prefers: (N, N) whether the judge prefers the one document to the other.
        levels: (N,) NaN where the judge did not judge; above 0 is relevant.
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


def _of_all(pairs: Pairs) -> _Score:
    """Return the share of all preferences."""

    def score(judges: Sequence[_Judge]) -> float:
        found = _share(sum(judge.fulfilled(pairs) for judge in judges), sum(judge.possible(pairs) for judge in judges))
        return float(np.nan_to_num(found))

    return score


def _of_judges(pairs: Pairs) -> _Score:
    """Return the mean share over the judges. A judge without preferences adds 0."""
    return lambda judges: _mean(
        np.nan_to_num(_share(judge.fulfilled(pairs), judge.possible(pairs))) for judge in judges
    )


def _balanced(pairs: Pairs) -> _Score:
    return lambda judges: _mean(judge.balanced(pairs) for judge in judges)


def _of_pairs(pairs: Pairs) -> _Score:
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
    "prefs_simp": _of_all("all"),
    "prefs_pair": _of_pairs("all"),
    "prefs_avgjg": _of_judges("all"),
    "prefs_avgjg_Rnonrel": _balanced("all"),
    "prefs_simp_ret": _of_all("ret"),
    "prefs_pair_ret": _of_pairs("ret"),
    "prefs_avgjg_ret": _of_judges("ret"),
    "prefs_avgjg_Rnonrel_ret": _balanced("ret"),
    "prefs_simp_imp": _of_all("imp"),
    "prefs_pair_imp": _of_pairs("imp"),
    "prefs_avgjg_imp": _of_judges("imp"),
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
    found = [_Judge.of(rankings, n_retrieved) for rankings in judges]
    return {name: score(found) for name, score in _SCORES.items()}


def _share(fulfilled: int, possible: int) -> float:
    return fulfilled / possible if possible else float("nan")


def _mean(values: Iterable[float]) -> float:
    """Return the mean, 0 if a value is undefined."""
    found = list(values)
    total = float(np.cumsum(found)[-1])
    return total / len(found) if total > 0 else 0.0
