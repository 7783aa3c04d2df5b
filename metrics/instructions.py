"""How well a model follows instructions: over the instructions of one question, and from one instruction to another.

The queries of a cluster are one question under several instructions. A measure that needs clusters has one score for
each: that of the query it is worst for. The functions here give the scores of the queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rankledger.metrics.block import Floats, JudgedBlock, divide
from rankledger.metrics.gain import ndcg
from rankledger.metrics.terms import Terms, from_terms

__all__ = ["OutputsBlock", "p_mrr", "paired_accuracy", "robustness"]


@dataclass(frozen=True, eq=False)
class OutputsBlock:
    """The judged documents that a model retrieved, and those that others retrieved.

    Attributes:
        block: the model's.
        others: other models', by name, for the same queries; those of a model whose output is missing are not there.
    """

    block: JudgedBlock
    others: Mapping[str, JudgedBlock]


@from_terms
def robustness(block: JudgedBlock, *, k: int | None = None) -> Terms:
    """Robustness: the nDCG of the instruction that a question is answered worst under.

    Formula: min over the queries of a cluster of ndcg.

    Args:
        k: ranks to count; None counts all.

    Returns:
        (Q,), in [0, 1]; NaN where a query of the cluster has no judged document with positive gain, and for all queries
        of a cluster but the first, which has the score of all.

    Reference:
        Oh et al. 2024, arXiv:2402.14334; mteb `robustness_at_10`.
    """
    return ndcg.terms(block, k=k)


@from_terms
def paired_accuracy(block: JudgedBlock, *, rel: float = 1) -> Terms:
    """Paired accuracy: whether under each instruction of a question the one relevant document is first.

    Formula: 1 if R = 1 and the relevant document is first for each query of a cluster, else 0.

    Args:
        rel: the least grade that is relevant.

    Returns:
        (Q,), 0 or 1; NaN where a query of the cluster has no relevant document, and for all queries of a cluster but
        the first, which has the score of all.

    Reference:
        Weller et al. 2024, arXiv:2305.07614; mteb `paired_accuracy`, which asks for a recall at 1 of 1.
    """
    n_relevant = block.n_relevant(rel)
    first = block.relevant(rel) & (block.ranks == 1) & (n_relevant == 1)
    return Terms(first.astype(np.float64), defined=n_relevant > 0)


def p_mrr(block: OutputsBlock, *, model: str, rel: float = 1) -> Floats:
    """p-MRR: how far the documents that a changed instruction makes irrelevant fall.

    Formula: mean over the relevant documents of 1 - original rank / changed rank if they fall, else changed rank /
    original rank - 1.

    The judgments name these documents: what is relevant in them is what no longer is under the changed instruction. A
    document that was not retrieved has the rank below the last one.

    Args:
        block: the judged documents under the changed instruction, and under the original one.
        model: the name of the model whose output is that under the original instruction; in it `{model}` is the model.
        rel: the least grade that is relevant.

    Returns:
        (Q,), in [-1, 1], above 0 where they fall; NaN where the query has no relevant document, or no output under one
        of the instructions.

    Reference:
        Weller et al. 2024, arXiv:2403.15246; mteb `p-MRR`.
    """
    changed, original = block.block, block.others.get(model)
    n_relevant = changed.n_relevant(rel)
    if original is None:
        return np.full(len(n_relevant), np.nan)
    hits = [one.relevant(rel) for one in (changed, original)]
    rows, first = np.unique(
        np.concatenate([changed.judgment_row[hits[0]], original.judgment_row[hits[1]]]), return_index=True
    )
    queries = np.concatenate([np.nonzero(hit)[1] for hit in hits])[first]
    below = [one.n_retrieved + 1 for one in (changed, original)]
    ranks = [missed[queries] for missed in below]
    for found, hit, one in zip(ranks, hits, (changed, original), strict=True):
        found[np.searchsorted(rows, one.judgment_row[hit])] = one.ranks[hit]
    order = np.lexsort((*ranks, queries))  # so that the order of the judgments changes no bit
    falls = np.bincount(queries[order], weights=_fall(*ranks)[order], minlength=len(n_relevant))
    n_found = np.bincount(queries, minlength=len(n_relevant))
    answered = (changed.n_retrieved > 0) & (original.n_retrieved > 0)
    return np.where(answered, divide(falls + (n_relevant - n_found) * _fall(*below), n_relevant), np.nan)


def _fall(changed: Floats, original: Floats) -> Floats:
    """How far documents fall from the original rank to the changed one, in (-1, 1)."""
    return np.where(changed <= original, changed / original - 1, 1 - original / changed)
