"""Rank correlation with the grades: inversions by hand."""

import itertools
import math

import numpy as np
import pytest

from rankledger.metrics.agreement import ap_corr, kendall_distance, kendall_tau
from rankledger.metrics.block import MANY_ROWS
from tests.support.blocks import deeper_block, plain_block, ranked


@pytest.mark.parametrize(
    ("ranking", "distance", "tau"),
    [
        ((3, 2, 1), 0, 1),
        ((1, 2, 3), 3, -1),
        ((2, 3, 1), 1, 1 / 3),
        ((1, None, 2, None), 1, -1),
        ((0, -1, 1), 1, -1),
        ((2, 1, 1), 0, 2 / math.sqrt(3 * 2)),
        ((1, 2, 1), 1, 0),
        ((0.5, 1.5), 1, -1),
    ],
)
def test_inversions_and_tau(ranking, distance, tau):
    """Of grades 2 3 1 one pair of three is out of order: tau (2 - 1) / 3.

    Grades 2 1 1 have two pairs in order and one equal: tau-b 2 / √(3 · 2). Unjudged and negative ones are not compared.
    """
    block = plain_block([ranked(*ranking)])

    assert kendall_distance(block).tolist() == [distance]
    assert kendall_tau(block) == pytest.approx([tau], abs=1e-15)


def test_the_cutoff_leaves_pairs_out():
    """Grades 3 1 2 0: one inversion in all; among the first two ranks none of one pair."""
    block = plain_block([ranked(3, 1, 2, 0)])

    assert (kendall_distance(block).item(), kendall_distance(block, k=2).item()) == (1, 0)
    assert kendall_tau(block) == pytest.approx([(5 - 1) / 6])
    assert kendall_tau(block, k=2) == pytest.approx([1])
    assert kendall_tau(block, k=1000) == pytest.approx([(5 - 1) / 6])


@pytest.mark.parametrize("query", [ranked(), ranked(1), ranked(None, 2, -1), ranked(missed=[1, 2])])
def test_fewer_than_two_judged_documents_are_undefined(query):
    """There is no pair to be in order: neither figure is 0."""
    np.testing.assert_array_equal(kendall_distance(plain_block([query])), [np.nan])
    np.testing.assert_array_equal(kendall_tau(plain_block([query])), [np.nan])


def test_equal_grades_have_no_inversion_and_no_tau():
    """Three documents of grade 1: distance 0, tau-b undefined."""
    block = plain_block([ranked(1, 1, 1)])

    np.testing.assert_array_equal(kendall_distance(block), [0])
    np.testing.assert_array_equal(kendall_tau(block), [np.nan])


def test_missed_documents_are_not_compared():
    """Only what was retrieved has a rank: a missed document of grade 5 changes nothing."""
    with_missed, without = kendall_tau(plain_block([ranked(2, 3, 1, missed=[5]), ranked(2, 3, 1)]))

    assert with_missed == without


def test_a_perfect_and_a_reversed_order_have_tau_1():
    """All grades different, in order and in reverse: tau is 1 and -1 to the last bit, for lists of 2 to 40."""
    sizes = range(2, 41)
    perfect = plain_block([ranked(*range(size, 0, -1)) for size in sizes])
    reverse = plain_block([ranked(*range(1, size + 1)) for size in sizes])

    assert kendall_distance(perfect).tolist() == [0] * len(sizes)
    assert kendall_distance(reverse).tolist() == [size * (size - 1) / 2 for size in sizes]
    assert kendall_tau(perfect).tolist() == [1] * len(sizes)
    assert kendall_tau(reverse).tolist() == [-1] * len(sizes)


def test_distance_is_half_the_pairs_tau_leaves():
    """Where no grades tie, tau = 1 - 2 · distance / pairs."""
    rng = np.random.default_rng(8)
    sizes = range(2, 30)
    block = plain_block([ranked(*rng.permutation(size).astype(float)) for size in sizes])
    n_pairs = np.array([size * (size - 1) / 2 for size in sizes])

    np.testing.assert_allclose(kendall_tau(block), 1 - 2 * kendall_distance(block) / n_pairs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("ranking", "value"),
    [
        ((3, 2, 1), 1),
        ((1, 2, 3), -1),
        ((2, 3, 1), (-1 + 1) / 2),
        ((3, 1, 2), (1 + 0) / 2),
        ((2, 1, 1), (1 + 1 / 2) / 2),
        ((1, None, 2, -1, 0), (-1 + 1) / 2),
        ((0.5, 1.5), -1),
    ],
)
def test_ap_correlation(ranking, value):
    """Grades 2 3 1: the second document is out of order with the first, the third in order with both: (-1 + 1) / 2.

    Grades 3 1 2 have one pair out of order too, but below: (1 + 0) / 2. Of 2 1 1 the third is in order with one of two.
    """
    assert ap_corr(plain_block([ranked(*ranking)])) == pytest.approx([value], abs=1e-15)


@pytest.mark.parametrize(
    ("truth", "estimate", "published"),
    [
        (
            (0.67, 0.45, 0.29, 0.12, 0.57, 0.24, 0.94, 0.75, 0.08, 0.54),
            (0.48, 0.68, 0.32, 0.09, 0.06, 0.61, 0.87, 0.22, 0.44, 0.84),
            0.3928571,
        ),
        (
            (0.06, 0.2, 0.27, 0.37, 0.57, 0.63, 0.66, 0.9, 0.91, 0.94),
            (0.37, 0.06, 0.2, 0.27, 0.57, 0.66, 0.63, 0.91, 0.9, 0.94),
            0.7491182,
        ),
    ],
)
def test_ap_correlation_as_published(truth, estimate, published):
    """The examples of the R package ircor, by an author of the treatment of ties: `tauAP` of its manual and README."""
    ranking = [grade for _, grade in sorted(zip(estimate, truth, strict=True), reverse=True)]

    assert ap_corr(plain_block([ranked(*ranking)])) == pytest.approx([published], abs=5e-8)


def test_equal_grades_are_the_mean_over_their_orders():
    """The mean over all true orders of documents of equal grade, which have no ties, for 60 lists of up to 6."""
    rng = np.random.default_rng(12)
    for _ in range(60):
        grades = [int(grade) for grade in rng.integers(0, 3, size=rng.integers(2, 7))]
        orders = {
            order
            for order in itertools.permutations(range(len(grades)))
            if [*map(grades.__getitem__, order)] == sorted(grades)
        }
        values = ap_corr(plain_block([ranked(*np.argsort(order).astype(float)) for order in orders]))
        expected = values.mean() if len(set(grades)) > 1 else np.nan

        np.testing.assert_allclose(ap_corr(plain_block([ranked(*grades)])), [expected], atol=1e-12)


@pytest.mark.parametrize("query", [ranked(), ranked(1), ranked(None, 2, -1), ranked(missed=[1, 2]), ranked(1, 1, 1)])
def test_ap_correlation_of_nothing_to_compare_is_undefined(query):
    """Fewer than two documents, or grades that are all equal, say nothing of the order."""
    np.testing.assert_array_equal(ap_corr(plain_block([query])), [np.nan])


def test_ap_correlation_is_cut():
    """Grades 3 1 2 0: among the first two ranks one pair, in order; 100 ranks are all."""
    block = plain_block([ranked(3, 1, 2, 0)])

    assert ap_corr(block, k=2).tolist() == [1]
    assert ap_corr(block) == pytest.approx([(1 + 0 + 1) / 3])
    assert ap_corr(block, k=100) == ap_corr(block)


@pytest.mark.parametrize("metric", [kendall_distance, kendall_tau, ap_corr])
@pytest.mark.parametrize("k", [None, 5])
def test_counting_by_grade_and_by_row_agree(metric, k, graded_block):
    """Long lists are counted grade by grade, others row by row: the same bits for 309 queries."""
    long = deeper_block(graded_block, 500)

    assert len(graded_block.ranks) <= MANY_ROWS * len(np.unique(graded_block.judged_grades)) < len(long.ranks)
    np.testing.assert_array_equal(metric(long, k=k), metric(graded_block, k=k))
