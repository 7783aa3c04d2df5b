"""Scores of generated answers, of following instructions, and of abstaining.

A support is 1 for full, 0.5 for partial and 0 for no support, as judged by people or a model.

The queries of a cluster are one question under several instructions. A measure that needs clusters has one score per
cluster: the score of the query on which it is worst. The functions here return the scores of the queries.

A model that may abstain leaves out the queries that it is least confident of. Its curve is the mean score of the other
queries, at each share left out. Two curves bound it: leaving out the worst answers, and leaving out queries at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rankledger.metrics.agreement import Ranked
from rankledger.metrics.block import Bools, Floats, JudgedBlock, Terms, divide, from_terms
from rankledger.metrics.gain import ndcg

__all__ = ["FORMATS", "ConfidenceBlock", "OutputsBlock", "nauc", "p_mrr", "paired_accuracy", "robustness"]

_OKAY = 0.5  # what a nugget that is not vital weighs in the weighted scores


def nugget_scores(vital: Bools, support: Floats) -> dict[str, float]:
    """Compute the nugget scores of one answer, by name. `strict` ones count full support alone.

    Formula: Σ weight · support / Σ weight, the weights of vital and okay nuggets being 1 and 0 (`vital_score`), 1 and 1
    (`all_score`), 1 and 0.5 (`weighted_score`).

    Args:
        vital: (N,) whether each nugget of the question is vital; the others are okay.
        support: (N,) how far the answer supports it.

    Returns:
        `vital_score`, `all_score`, `weighted_score`, and each with `strict_` before it; in [0, 1]. NaN if nothing
        weighs, as where no nugget is vital; AutoNuggetizer has 0 there.

    Reference:
        Pradeep et al. 2024, arXiv:2411.09607; castorini/nuggetizer `calculate_nugget_scores`, without weighted ones.
    """
    weights = {"vital_score": vital.astype(np.float64), "all_score": np.ones(len(vital))}
    weights["weighted_score"] = np.where(vital, 1.0, _OKAY)
    credited = {"": support, "strict_": (support == 1).astype(np.float64)}
    return {
        prefix + name: _share(float((credit * weight).sum()), float(weight.sum()))
        for prefix, credit in credited.items()
        for name, weight in weights.items()
    }


def citation_scores(sentences: npt.NDArray[np.int64], support: Floats) -> dict[str, float]:
    """Compute the citation scores of one answer, by name. `strict` ones count full support alone.

    Formula: Σ support of citations / citations (`citation_precision`); Σ best support of each sentence / sentences
    (`citation_recall`).

    Args:
        sentences: (N,) the sentence of each citation, or of a sentence without one; a number for each sentence.
        support: (N,) how far the document cited supports the sentence; NaN for a sentence without a citation.

    Returns:
        `citation_precision`, `citation_recall`, and each with `strict_` before it; in [0, 1]. A precision is NaN if
        nothing is cited.

    Reference:
        Thakur et al. 2025, arXiv:2504.15205, whose weighted precision and recall have one judged citation a sentence;
        of several citations the best one counts here.
    """
    cited = ~np.isnan(support)
    scores = {}
    for prefix, credit in {"": np.where(cited, support, 0.0), "strict_": (support == 1).astype(np.float64)}.items():
        _, numbers = np.unique(sentences, return_inverse=True)
        best = np.zeros(int(numbers.max(initial=-1)) + 1)
        np.maximum.at(best, numbers, credit)
        scores[f"{prefix}citation_precision"] = _share(float(credit.sum()), float(cited.sum()))
        scores[f"{prefix}citation_recall"] = _share(float(best.sum()), float(len(best)))
    return scores


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


FORMATS = {
    **dict.fromkeys(nugget_scores(np.zeros(0, bool), np.zeros(0)), "nuggets"),
    **dict.fromkeys(citation_scores(np.zeros(0, np.int64), np.zeros(0)), "citations"),
}
"""The format of the outputs from which each score is computed."""


@dataclass(frozen=True, eq=False)
class OutputsBlock:
    """Judged documents that a model retrieved, and documents that other models retrieved.

    Attributes:
        block: the model's.
        others: other models', by name, for the same queries; those of a model whose output is missing are not there.
    """

    block: JudgedBlock
    others: Mapping[str, JudgedBlock]


@from_terms
def robustness(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """Compute the robustness: the minimum nDCG over the instructions of a question.

    Formula: min over the queries of a cluster of ndcg.

    Args:
        k: Number of ranks to count. None counts all.

    Returns:
        (Q,) scores in [0, 1], each at the first query of its cluster. NaN for all other queries, and if a query of the
        cluster has no judged document with positive gain.

    Reference:
        Oh et al. 2024, arXiv:2402.14334; mteb `robustness_at_10`.
    """
    return ndcg.terms(block, k=k)


@from_terms
def paired_accuracy(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Compute the paired accuracy: 1 if the relevant document is first under each instruction of a question.

    Formula: 1 if R = 1 and the relevant document is first for each query of a cluster, else 0.

    Args:
        rel: Minimum grade of a relevant document.

    Returns:
        (Q,), 0 or 1. NaN if a query of the cluster has no relevant document, and for all queries of a cluster but
        the first, which has the score of all.

    Reference:
        Weller et al. 2024, arXiv:2305.07614; mteb `paired_accuracy`, which asks for a recall at 1 of 1.
    """
    n_relevant = block.n_relevant(rel)
    first = block.relevant(rel) & (block.ranks == 1) & (n_relevant == 1)
    return Terms(first.astype(np.float64), defined=n_relevant > 0)


def p_mrr(block: OutputsBlock, *, model: str, rel: float = 1) -> Floats:
    """Compute p-MRR: the fall of documents that a changed instruction makes irrelevant.

    Formula: mean over the relevant documents of 1 - original rank / changed rank if they fall, else changed rank /
    original rank - 1.

    The judgments name these documents: what is relevant in them is what no longer is under the changed instruction. A
    document that was not retrieved has the rank below the last one.

    Args:
        block: the judged documents under the changed instruction, and under the original one.
        model: the name of the model whose output is that under the original instruction; in it `{model}` is the model.
        rel: the minimum grade that is relevant.

    Returns:
        (Q,), in [-1, 1], above 0 where they fall; NaN if the query has no relevant document, or no output under one
        of the instructions.

    Reference:
        Weller et al. 2024, arXiv:2403.15246; mteb `p-MRR`.
    """
    changed, original = block.block, block.others.get(model)
    n_relevant = changed.n_relevant(rel)
    if original is None:
        return np.full(len(n_relevant), np.nan)
    hits = [ranking.relevant(rel) for ranking in (changed, original)]
    rows, first = np.unique(
        np.concatenate([changed.judgment_row[hits[0]], original.judgment_row[hits[1]]]), return_index=True
    )
    queries = np.concatenate([np.nonzero(hit)[1] for hit in hits])[first]
    below = [ranking.n_retrieved + 1 for ranking in (changed, original)]
    ranks = [missed[queries] for missed in below]
    for ranks_of_one, hit, ranking in zip(ranks, hits, (changed, original), strict=True):
        ranks_of_one[np.searchsorted(rows, ranking.judgment_row[hit])] = ranking.ranks[hit]
    order = np.lexsort((*ranks, queries))  # so that the order of the judgments changes no bit
    falls = np.bincount(queries[order], weights=_fall(*ranks)[order], minlength=len(n_relevant))
    n_found = np.bincount(queries, minlength=len(n_relevant))
    answered = (changed.n_retrieved > 0) & (original.n_retrieved > 0)
    return np.where(answered, divide(falls + (n_relevant - n_found) * _fall(*below), n_relevant), np.nan)


def _fall(changed: Floats, original: Floats) -> Floats:
    """Return the fall of documents from the original rank to the changed one, in (-1, 1)."""
    return np.where(changed <= original, changed / original - 1, 1 - original / changed)


Confidence = Literal["max", "std", "diff1"]

_SHARES = np.linspace(0, 1, 11)[:-1]  # of the queries left out; 0.7 is a bit more, as in mteb, and 10.5 of 15 are 11


@dataclass(frozen=True, eq=False)
class ConfidenceBlock:
    """Scores of Q queries and the model's confidences in them.

    Attributes:
        scores: (Q,) by metric, cutoff and the minimum grade that is relevant; NaN for a query that does not count.
        confidences: (Q,) by name: the maximum score of a query's documents, their standard deviation, and the gap
            between the first two.
    """

    scores: Mapping[tuple[Any, ...], Floats]
    confidences: Mapping[Confidence, Floats]

    @classmethod
    def of_rankings(cls, ranked: Ranked, values: Mapping[tuple[Any, ...], Floats]) -> ConfidenceBlock:
        """Return the block of rankings. A query that retrieved nothing has confidences of 0, as in mteb."""
        n_queries = len(ranked.n_retrieved)
        sizes = np.bincount(ranked.queries, minlength=n_queries)
        answered, starts = sizes > 0, np.cumsum(sizes) - sizes
        first, queries = starts[answered], np.repeat(np.arange(n_queries), sizes)
        scores = np.empty(len(queries))
        scores[starts[ranked.queries] + ranked.ranks - 1] = ranked.scores  # sums do not depend on the file's order
        mean = np.bincount(queries, scores, n_queries) / np.maximum(sizes, 1)
        variance = np.bincount(queries, (scores - mean[queries]) ** 2, n_queries) / np.maximum(sizes, 1)
        maxima, gap = np.zeros((2, n_queries))
        maxima[answered] = np.maximum.reduceat(scores, first)  # ranks may be by rounded scores
        places = np.flatnonzero(scores == maxima[queries])
        scores[places[np.searchsorted(places, first)]] = -np.inf
        gap[answered] = maxima[answered] - np.maximum.reduceat(scores, first)
        gap[sizes == 1] = 0.0
        return cls(values, {"max": maxima, "std": np.sqrt(variance), "diff1": gap})

    @property
    def n_queries(self) -> int:
        """Q."""
        return len(self.confidences["max"])

    def of(self, queries: npt.NDArray[np.int64]) -> ConfidenceBlock:
        """Return the block of some queries."""
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
    """Compute the normalized area under the abstention curve: the share of the possible gain from abstaining.

    Formula: (A - flat) / (greatest - flat), areas under the curves at 0, 10 … 90% of the queries left out.

    The least confident queries are left out first; of equally confident ones each counts as their mean score. The
    maximum area leaves out the queries with the lowest score first.

    Args:
        of: The metric whose scores of queries are averaged, with its cutoff.
        confidence: `max`, the maximum score of a query's documents; `std`, the standard deviation of all; `diff1`, how
            far the second document is below the first. A query without documents has 0.
        k: Ranks to count in the metric; None counts all. The confidence is of all documents retrieved.
        rel: Minimum grade of a relevant document.

    Returns:
        at most 1; 0 is no better than chance, below 0 the better answers are left out. NaN if all scores are equal.

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
    """Return the area between the curve of these scores, the first left out first, and the flat curve."""
    n = len(scores)
    n_kept = n - np.minimum(np.rint(_SHARES * n), n - 1).astype(np.int64)
    curve = (np.cumsum(scores[::-1]) / np.arange(1, n + 1))[n_kept - 1]
    return float(np.trapezoid(curve - curve[0], _SHARES))
