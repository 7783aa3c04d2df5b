"""Metrics of the retrieved set, on lists small enough to count by hand."""

import numpy as np
import pytest

from rankledger.metrics.counts import fp, judged, unjudged
from rankledger.metrics.sets import f, f1, mar, p, r, relative_p, set_map, success
from tests.support.blocks import judged_block, plain_block, ranked

# Ranks 1 to 6: relevant, unjudged, grade 0, grade 2, grade -1, relevant; missed: grades 1 and 0; 20 documents in all.
LIST = ranked(1, None, 0, 2, -1, 1, missed=[1, 0], n_documents=20)
BLOCK = plain_block([LIST])


@pytest.mark.parametrize(
    ("k", "denominator", "expected"),
    [
        (None, "cutoff", 3 / 6),
        (None, "retrieved", 3 / 6),
        (4, "cutoff", 2 / 4),
        (10, "cutoff", 3 / 10),
        (10, "retrieved", 3 / 6),
        (4, "retrieved", 2 / 4),
    ],
)
def test_precision(k, denominator, expected):
    """Six retrieved, three relevant: over k even where the list is shorter, or over what was retrieved."""
    assert p(BLOCK, k=k, denominator=denominator) == pytest.approx([expected], abs=0)


@pytest.mark.parametrize("denominator", ["cutoff", "retrieved"])
@pytest.mark.parametrize("k", [None, 5])
def test_precision_of_an_empty_list_is_0(k, denominator):
    """Nothing retrieved holds nothing relevant, as in trec_eval, whether or not there was anything to find."""
    block = plain_block([ranked(missed=[1]), ranked()])

    assert p(block, k=k, denominator=denominator).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("k", "denominator", "expected"),
    [
        (None, "relevant", 3 / 4),
        (2, "relevant", 1 / 4),
        (2, "cutoff", 1 / 2),
        (5, "cutoff", 2 / 4),
        (None, "cutoff", 3 / 4),
        (99, "relevant", 3 / 4),
    ],
)
def test_recall(k, denominator, expected):
    """R = 4: over all of them, or over the two that fit into the first two."""
    assert r(BLOCK, k=k, denominator=denominator) == pytest.approx([expected], abs=0)


def test_recall_of_fractional_grades():
    """Grades 0.5 and 1.5 at threshold 1: R = 2 with the missed 1.0, one found; at 0.5: two of three found."""
    block = plain_block([ranked(0.5, 1.5, missed=[1.0, 0.25])])

    assert r(block, rel=1) == pytest.approx([1 / 2], abs=0)
    assert r(block, rel=0.5) == pytest.approx([2 / 3], abs=0)


@pytest.mark.parametrize(("k", "expected"), [(None, 2 * 3 / (4 + 6)), (4, 2 * 2 / (4 + 4)), (10, 2 * 3 / (4 + 10))])
def test_f1(k, expected):
    """P = 3/6 and R = 3/4 make 2 P R / (P + R) = 0.75 / 1.25 = 0.6 = 2 · 3 / (4 + 6)."""
    assert f1(BLOCK, k=k) == pytest.approx([expected])


@pytest.mark.parametrize(("beta", "expected"), [(1, 0.6), (2, 1.875 / 2.75), (0.5, 0.46875 / 0.875)])
def test_f_weighs_recall_by_beta(beta, expected):
    """P = 0.5, R = 0.75: beta 2 gives 5 · 0.375 / (4 · 0.5 + 0.75), beta 1/2 gives 1.25 · 0.375 / (0.125 + 0.75)."""
    assert f(BLOCK, beta=beta) == pytest.approx([expected])


def test_f_leans_to_recall_as_beta_grows():
    """With P = 0.5 and R = 0.75 a tiny beta gives nearly P, a huge one nearly R."""
    assert f(BLOCK, beta=1e-6) == pytest.approx([0.5])
    assert f(BLOCK, beta=1e6) == pytest.approx([0.75])


@pytest.mark.parametrize("beta", [0, -1, float("nan")])
def test_f_refuses_beta_of_0(beta):
    """Beta is a ratio of two importances and must be above 0."""
    with pytest.raises(ValueError, match="beta must be above 0, found"):
        f(BLOCK, beta=beta)


def test_f1_of_no_hit_is_0():
    """P = R = 0 has no harmonic mean by the formula; nothing found of something is 0."""
    assert f1(plain_block([ranked(0, None, missed=[1])])).tolist() == [0]


def test_success():
    """The first document of grade 1 or more is at rank 1, of grade 2 or more at rank 4, of grade 3 nowhere judged."""
    np.testing.assert_array_equal(success(BLOCK, k=1), [1])
    np.testing.assert_array_equal(success(BLOCK, k=3, rel=2), [0])
    np.testing.assert_array_equal(success(BLOCK, k=4, rel=2), [1])
    np.testing.assert_array_equal(success(BLOCK, rel=3), [np.nan])


@pytest.mark.parametrize(("k", "expected"), [(None, 4 / 6), (1, 1), (2, 1 / 2), (5, 3 / 5), (10, 4 / 6)])
def test_judged_share(k, expected):
    """Ranks 1, 3, 4 and 6 are judged: of ten asked for, six were retrieved; grade -1 at rank 5 counts as unjudged."""
    assert judged(BLOCK, k=k) == pytest.approx([expected], abs=0)


def test_judged_share_of_an_empty_list_is_undefined():
    """There is nothing of which a share could be judged."""
    np.testing.assert_array_equal(judged(plain_block([ranked(missed=[1])]), k=10), [np.nan])


def test_ranks_beyond_the_judged_documents_count_as_retrieved():
    """One relevant document at rank 2 of a list of 8: P 1/8, P@4 1/4, fp 7."""
    block = judged_block(ranks=[[2]], grades=[[1]], n_retrieved=[8])

    assert (p(block).item(), p(block, k=4).item(), fp(block).item()) == (1 / 8, 1 / 4, 7)


@pytest.mark.parametrize(("k", "expected"), [(None, 2 / 6), (1, 0), (2, 1 / 2), (5, 2 / 5), (10, 2 / 10)])
def test_unjudged_share(k, expected):
    """Rank 2 has no judgment and rank 5 a negative grade: over k, however short the list, or over all six."""
    assert unjudged(BLOCK, k=k) == pytest.approx([expected], abs=0)


def test_unjudged_share_of_an_empty_list_is_0():
    """Nothing was retrieved that nobody judged."""
    assert unjudged(plain_block([ranked(missed=[1])])).tolist() == [0]
    assert unjudged(plain_block([ranked(missed=[1])]), k=10).tolist() == [0]


@pytest.mark.parametrize(("k", "expected"), [(None, 3 / 4), (1, 1), (2, 1 / 2), (4, 2 / 4), (5, 2 / 4), (10, 3 / 4)])
def test_relative_precision(k, expected):
    """R = 4: up to rank 4 the precision, below it the recall; six were retrieved, more than R."""
    assert relative_p(BLOCK, k=k) == pytest.approx([expected], abs=0)


def test_relative_precision_of_few_or_no_documents():
    """One relevant document retrieved of three is as good as a list of one can be; of none, 0 are relevant."""
    block = plain_block([ranked(1, missed=[1, 1]), ranked(missed=[1])])

    assert relative_p(block).tolist() == [1, 0]
    assert relative_p(block, k=2).tolist() == [1 / 2, 0]


def test_average_precision_of_a_set():
    """P = 3/6 and R = 3/4: 9/24, whatever the order; nothing retrieved is 0."""
    assert set_map(BLOCK) == pytest.approx([9 / 24], abs=0)
    assert set_map(plain_block([ranked(0, None, 1, -1, 1, 2, missed=[1]), ranked(missed=[1])])).tolist() == [9 / 24, 0]


def test_mean_average_recall():
    """Of two relevant documents one stands at rank 2 of 4: recalls 0, 1/2, 1/2, 1/2; at the hit alone 1/2, over 2."""
    block = plain_block([ranked(0, 1, None, missed=[1])])

    assert mar(block, k=4) == pytest.approx([3 / 8])
    assert mar(block, k=4, at="hits") == pytest.approx([1 / 4])
    assert mar(block, k=1, at="hits") == [0]
