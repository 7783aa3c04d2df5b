"""Metrics of blended ratios, on lists worked by hand."""

import numpy as np
import pytest

from rankledger.metrics.blended import ncu, o_measure, p_measure, p_plus, q_measure
from rankledger.metrics.ranking import ap, rr
from tests.support.blocks import plain_block, ranked

LIST = ranked(1, 3, 2)
"""Ideal gains add up to 3 5 6: the ratios are (1 + 1) / (1 + 3), (2 + 4) / (2 + 5) and (3 + 6) / (3 + 6)."""


def test_where_the_reader_stops():
    """At the first document, 1/2; at the best, 6/7; at each down to the best, their mean."""
    block = plain_block([LIST])

    assert o_measure(block) == pytest.approx([1 / 2])
    assert p_measure(block) == pytest.approx([6 / 7])
    assert p_plus(block) == pytest.approx([(1 / 2 + 6 / 7) / 2])


def test_how_many_readers_stop():
    """In proportion to gains 1, 3 and 2 of 6; or half as many at the next: 1, 1/2 and 1/4 of 7/4."""
    block = plain_block([LIST])

    assert ncu(block, stop="graded") == pytest.approx([(1 / 2 + 3 * 6 / 7 + 2) / 6])
    assert ncu(block, gamma=0.5) == pytest.approx([(1 / 2 + 6 / 7 / 2 + 1 / 4) / (7 / 4)])


def test_readers_are_satisfied_within_the_cutoff():
    """Within one rank the document of grade 1 is the best: 1/2; of the three that gain readers stop at it alone."""
    block = plain_block([LIST])

    assert p_measure(block, k=1) == pytest.approx([1 / 2])
    assert p_plus(block, k=1) == pytest.approx([1 / 2])
    assert ncu(block, k=1, gamma=1) == pytest.approx([1 / 2 / 3])


@pytest.mark.parametrize("metric", [o_measure, p_measure, p_plus, ncu])
def test_nothing_found_is_0_and_nothing_to_find_is_undefined(metric):
    """The only document that gains was missed, and none gains at all."""
    found = metric(plain_block([ranked(0, None, missed=[2]), ranked(0, -1), ranked()]))

    np.testing.assert_array_equal(found, [0, np.nan, np.nan])


def test_what_they_are_without_gains(graded_block):
    """With beta 0 the O-measure is the reciprocal rank of any gain, and with gamma 1 NCU is the Q-measure of R."""
    np.testing.assert_allclose(o_measure(graded_block, beta=0), rr(graded_block, rel=1e-9), rtol=1e-12)
    np.testing.assert_allclose(ncu(graded_block, gamma=1), q_measure(graded_block, denominator="relevant"), rtol=1e-12)


@pytest.mark.parametrize("gamma", [0, -1, 1.5, float("nan")])
def test_ncu_refuses_a_gamma_that_is_no_share(gamma):
    """Of those who stop at a document, more cannot stop at the next, nor less than none."""
    with pytest.raises(ValueError, match="gamma must be above 0 and at most 1, found"):
        ncu(plain_block([LIST]), gamma=gamma)


def test_q_measure_of_graded_documents():
    """Grades - 2 1 with a 3 missed: ideal gains add up to 3 5 6; (1 + 2) / (2 + 5) + (2 + 3) / (3 + 6), over 3."""
    block = plain_block([ranked(None, 2, 1, missed=[3, 0])])

    assert q_measure(block) == pytest.approx([(3 / 7 + 5 / 9) / 3])
    assert q_measure(block, beta=0) == pytest.approx([(1 / 2 + 2 / 3) / 3])
    assert q_measure(block, beta=10) == pytest.approx([(21 / 52 + 32 / 63) / 3])


def test_q_measure_of_exponential_gains():
    """Gains 3 and 1 of 7 3 1: (1 + 3) / (2 + 10) + (2 + 4) / (3 + 11), over 3."""
    assert q_measure(plain_block([ranked(None, 2, 1, missed=[3])]), gain="exponential") == pytest.approx(
        [(1 / 3 + 3 / 7) / 3]
    )


def test_q_measure_within_a_cutoff():
    """Within two ranks there is 3/7: over the two documents that could stand there, or over all three."""
    block = plain_block([ranked(None, 2, 1, missed=[3])])

    assert q_measure(block, k=2) == pytest.approx([3 / 7 / 2])
    assert q_measure(block, k=2, denominator="relevant") == pytest.approx([3 / 7 / 3])
    assert q_measure(block, k=50) == q_measure(block)


def test_q_measure_below_the_end_of_the_ideal_list():
    """The only document stands at rank 4, where the ideal list has long had its gain of 2: (1 + 2) / (4 + 2)."""
    assert q_measure(plain_block([ranked(None, None, None, 2)])) == pytest.approx([0.5])


def test_q_measure_counts_any_gain():
    """A document of grade 0.5 gains and so is one of R: (1 + 0.5) / (1 + 0.5) = 1; grades 0 and -1 are none."""
    assert q_measure(plain_block([ranked(0.5, 0, -1)])).tolist() == [1]
    np.testing.assert_array_equal(q_measure(plain_block([ranked(0, -1), ranked(missed=[1])])), [np.nan, 0])


def test_q_measure_without_gains_is_average_precision(graded_block):
    """With beta 0 and R as denominator it is AP of every document that gains, for 309 queries."""
    np.testing.assert_allclose(
        q_measure(graded_block, beta=0, denominator="relevant"), ap(graded_block, rel=1e-9), rtol=1e-12
    )


@pytest.mark.parametrize("beta", [-0.5, float("nan"), 1e10])
def test_q_measure_refuses_a_negative_or_huge_beta(beta):
    """A gain cannot weigh less than nothing, nor so much that its product with a grade is infinite."""
    with pytest.raises(ValueError, match=r"beta must be at (least 0|most 1e9), found"):
        q_measure(plain_block([ranked(1)]), beta=beta)
