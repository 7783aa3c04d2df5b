"""Metrics of answers, instructions and preferences."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rankledger.metrics.agreement import PREFERENCE_NAMES, preference_scores
from rankledger.metrics.block import JudgedBlock
from rankledger.metrics.gain import ndcg
from rankledger.metrics.language_models import (
    OutputsBlock,
    citation_scores,
    nugget_scores,
    p_mrr,
    paired_accuracy,
    robustness,
)
from tests import oracle
from tests.support.blocks import judged_block


def test_nugget_scores_of_a_hand_worked_answer():
    """Vital: full, partial, none. Okay: full, none. Weighted: (1 + 1/2 + 1/2 · 1) / (3 + 1/2 · 2) = 2/4."""
    found = nugget_scores(np.array([True, True, True, False, False]), np.array([1, 0.5, 0, 1, 0]))

    assert found == {
        "vital_score": 1.5 / 3,
        "all_score": 2.5 / 5,
        "weighted_score": 2 / 4,
        "strict_vital_score": 1 / 3,
        "strict_all_score": 2 / 5,
        "strict_weighted_score": 1.5 / 4,
    }


def test_without_vital_nuggets_their_scores_are_undefined():
    found = nugget_scores(np.array([False]), np.array([0.5]))

    assert {name for name, score in found.items() if math.isnan(score)} == {"vital_score", "strict_vital_score"}
    assert found["all_score"] == found["weighted_score"] == 0.5
    assert all(map(math.isnan, nugget_scores(np.zeros(0, dtype=bool), np.zeros(0)).values()))


def test_citation_scores_of_a_hand_worked_answer():
    """In any order: sentence 0 cites two documents, full and partial; 1 has no citation; 2 cites one, partial. Of three
    citations 2 hold, and of three sentences 1 + 0 + 1/2: the best citation of a sentence counts.
    """
    found = citation_scores(np.array([2, 0, 1, 0]), np.array([0.5, 1, np.nan, 0.5]))

    assert found == {
        "citation_precision": 2 / 3,
        "citation_recall": 1.5 / 3,
        "strict_citation_precision": 1 / 3,
        "strict_citation_recall": 1 / 3,
    }


def test_an_answer_without_citations_has_a_recall_of_0_and_no_precision():
    found = citation_scores(np.array([0, 1]), np.array([np.nan, np.nan]))

    assert found["citation_recall"] == found["strict_citation_recall"] == 0
    assert math.isnan(found["citation_precision"])
    assert all(map(math.isnan, citation_scores(np.zeros(0, dtype=np.int64), np.zeros(0)).values()))


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


NAN = float("nan")


def preferences(*judges: list[list[float]], n: int) -> dict[str, float]:
    found = preference_scores([[np.array(levels) for levels in judge] for judge in judges], n)
    assert [*found] == [*PREFERENCE_NAMES]
    return {name.removeprefix("prefs_"): value for name, value in found.items()}


def test_one_judge():
    """Levels 1 3 0 of what was retrieved, 2 of what was not: six preferences. The first document stands rightly above
    the third, and above nothing else that it is worse than; the second above the third and the one that was missed.
    """
    found = preferences([[1, 3, 0, 2]], n=3)

    assert found["num_prefs_poss"] == 6
    assert (found["num_prefs_ful"], found["num_prefs_ful_ret"]) == (3, 2)
    assert found["simp"] == found["pair"] == found["avgjg"] == pytest.approx(3 / 6)
    assert found["simp_ret"] == found["pair_ret"] == found["avgjg_ret"] == pytest.approx(2 / 3)
    assert found["simp_imp"] == pytest.approx(3 / 6)


def test_two_documents_that_were_missed_are_implied_by_nothing():
    found = preferences([[3, 2, 1]], n=1)

    assert found["simp"] == pytest.approx(2 / 3)
    assert found["simp_imp"] == 1
    assert found["simp_ret"] == 0


def test_judges_who_disagree():
    """Two prefer the first document to the second, one the other way round; one of the two has a third document, which
    is worse: fulfilled are 1, 3 of 3 and 0; of pairs 2/3, 1 and 1.
    """
    found = preferences([[2, 1, NAN]], [[3, 2, 1]], [[1, 2, NAN]], n=3)

    assert found["simp"] == pytest.approx(4 / 5)
    assert found["avgjg"] == pytest.approx((1 + 1 + 0) / 3)
    assert found["pair"] == pytest.approx((2 / 3 + 1 + 1) / 3)


def test_what_follows_from_two_rankings_of_a_judge():
    assert preferences([[2, 1, NAN], [NAN, 2, 1]], n=3)["num_prefs_poss"] == 3
    assert preferences([[2, 1, NAN]], [[NAN, 2, 1]], n=3)["num_prefs_poss"] == 2


def test_as_many_relevant_documents_as_others():
    """Two relevant documents and one that is not: both stand above it and above another that is thought up, 4 of 4.

    The other way round one of two that are not relevant counts: the relevant one stands below it, as the second of two.
    trec_eval counts the pairs of documents that are not relevant, too: of three in all one, that above the other.
    """
    assert preferences([[1, 1, 0]], n=3)["avgjg_Rnonrel"] == 1
    assert preferences([[0, 1, 0]], n=3)["avgjg_Rnonrel"] == pytest.approx(0 / 3)
    assert preferences([[1, 0, 0]], n=3)["avgjg_Rnonrel"] == pytest.approx(1 / 3)


def test_nothing_preferred_is_0():
    assert set(preferences([[0, 0]], n=2).values()) == {0}
