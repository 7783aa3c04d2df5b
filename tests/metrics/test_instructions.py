"""Metrics of instructions: by hand, and p-MRR against the loops. Clusters are tested with the scoring."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.gain import ndcg
from rankledger.metrics.language_models import OutputsBlock, p_mrr, paired_accuracy, robustness
from tests import oracle
from tests.support.blocks import judged_block

Judged = Sequence[Sequence[str]]
"""By query, the documents whose judgment changed."""


def block_of(rankings: Sequence[str], documents: Judged) -> JudgedBlock:
    found = [
        [(rank, document) for rank, document in enumerate(ranking, 1) if document in own]
        for ranking, own in zip(rankings, documents, strict=True)
    ]
    block = judged_block(
        ranks=[[rank for rank, _ in pairs] for pairs in found],
        grades=[[1.0] * len(pairs) for pairs in found],
        missed=[[1.0] * (len(own) - len(pairs)) for own, pairs in zip(documents, found, strict=True)],
        n_retrieved=[len(ranking) for ranking in rankings],
    )
    rows = np.full(block.ranks.shape, -1, dtype=np.int32)
    for query, pairs in enumerate(found):
        for place, (_, document) in enumerate(pairs):
            rows[place, query] = 100 * query + documents[query].index(document)
    return replace(block, judgment_row=rows)


def scores(changed: Sequence[str], original: Sequence[str], documents: Judged) -> list[float]:
    blocks = OutputsBlock(block_of(changed, documents), {"og": block_of(original, documents)})
    return p_mrr(blocks, model="og").tolist()


def test_p_mrr_of_hand_worked_queries():
    """a falls from 1 to 2: 1 - 1/2. b rises from 4 to 1: 1/4 - 1. Together (1/2 - 3/4) / 2. c stays: 0. d is lost from
    rank 1 of 3, and stands below the last of 3: 1 - 1/4.
    """
    changed, original = ["xa", "bx", "bayz", "xc", "xyz"], ["ax", "xyzb", "axyb", "xc", "dxy"]

    assert scores(changed, original, ["a", "b", "ab", "c", "d"]) == [0.5, -0.75, -0.125, 0, 0.75]


def test_p_mrr_of_documents_that_neither_output_has():
    """a stands below the last one of both, at 2 and at 4: from 4 to 2 it rises, 2/4 - 1."""
    assert scores(["x"], ["xyz"], ["a"]) == [-0.5]


def test_p_mrr_is_undefined_without_changed_documents_or_an_output():
    documents = ["", "a", "a"]

    np.testing.assert_array_equal(scores(["a", "", "a"], ["a", "a", ""], documents), [np.nan] * 3)
    alone = OutputsBlock(block_of(["a", "", "a"], documents), {})
    np.testing.assert_array_equal(p_mrr(alone, model="og"), [np.nan] * 3)


@pytest.mark.parametrize("seed", [1, 2])
def test_p_mrr_is_what_the_loops_give(seed):
    rng = np.random.default_rng(seed)
    letters = [*"abcdefghijklmnop"]
    draw = [["".join(rng.permutation(letters)[: rng.integers(0, 14)]) for _ in range(300)] for _ in range(3)]
    documents, changed, original = draw[0], draw[1], draw[2]
    found = scores(changed, original, documents)
    expected = [oracle.p_mrr(*queries) for queries in zip(documents, changed, original, strict=True)]

    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert 0 < np.isnan(expected).sum() < 100
    alone = [scores([new], [old], [own])[0] for own, new, old in zip(documents, changed, original, strict=True)]
    np.testing.assert_array_equal(alone, found)


def test_robustness_of_a_query_is_its_ndcg(graded_block):
    np.testing.assert_array_equal(robustness(graded_block, k=10), ndcg(graded_block, k=10))


def test_paired_accuracy_of_a_query():
    block = judged_block(ranks=[[1], [2], [1], [1]], grades=[[1], [1], [2], [0]], missed=[[0], [], [1], []])

    np.testing.assert_array_equal(paired_accuracy(block), [1, 0, 0, np.nan])
    np.testing.assert_array_equal(paired_accuracy(block, rel=2), [np.nan, np.nan, 1, np.nan])
