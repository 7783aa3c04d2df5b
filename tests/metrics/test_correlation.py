"""Rank correlation with the grades: inversions by hand, tau-b against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from metrics.correlation import kendall_distance, kendall_tau
from tests.blocks import plain_block, ranked


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


def test_tau_agrees_with_scipy(graded_queries, graded_block):
    """scipy's tau-b of minus the rank and the grade, for 309 queries, undefined where ours is."""
    expected = []
    for query in graded_queries:
        grades = [grade for grade in query.ranking if grade is not None and grade >= 0]
        no_pair = len(grades) < 2 or len(set(grades)) == 1
        expected.append(np.nan if no_pair else stats.kendalltau(-np.arange(len(grades)), grades).statistic)

    np.testing.assert_allclose(kendall_tau(graded_block), expected, rtol=1e-12, atol=1e-12)


def test_distance_is_half_the_pairs_tau_leaves():
    """Where no grades tie, tau = 1 - 2 · distance / pairs."""
    rng = np.random.default_rng(8)
    sizes = range(2, 30)
    block = plain_block([ranked(*rng.permutation(size).astype(float)) for size in sizes])
    n_pairs = np.array([size * (size - 1) / 2 for size in sizes])

    np.testing.assert_allclose(kendall_tau(block), 1 - 2 * kendall_distance(block) / n_pairs, rtol=1e-12, atol=1e-12)
