"""Cumulative gains, discounted and normalised, on lists worked by hand."""

import math

import numpy as np
import pytest

from rankledger.metrics.blended import q_measure
from rankledger.metrics.gain import cg, dcg, g, ndcg, ndcg_rel, rndcg
from tests.support.blocks import judged_block, plain_block, ranked


def test_ndcg_of_a_hand_worked_query():
    """The only relevant document is at rank 3: (1 / log2 4) / (1 / log2 2) = 0.5."""
    assert ndcg(judged_block(ranks=[[3]], grades=[[1]])) == pytest.approx([0.5])


@pytest.mark.parametrize(("k", "gain", "expected"), [(None, "linear", 6), (2, "linear", 3), (None, "exponential", 11)])
def test_cumulative_gain(k, gain, expected):
    """Grades 3 - 2 1: 3 + 2 + 1, the first two 3, and 7 + 3 + 1 with 2**grade - 1."""
    assert cg(plain_block([ranked(3, None, 2, 1)]), k=k, gain=gain).tolist() == [expected]


@pytest.mark.parametrize(
    ("gain", "discount", "base", "expected"),
    [
        ("linear", "log2", None, 3 / 1 + 2 / 2 + 1 / 3),
        ("exponential", "log2", None, 7 / 1 + 3 / 2 + 1 / 3),
        ("linear", "jarvelin", 2, 3 + 2 / math.log2(3) + 1 / math.log2(7)),
        ("linear", "jarvelin", 7, 3 + 2 + 1 / 1),
        ("linear", "jarvelin", 10, 3 + 2 + 1),
        ("exponential", "jarvelin", math.sqrt(7), 7 + 3 / (2 * math.log(3, 7)) + 1 / 2),
    ],
)
def test_dcg_by_gain_and_discount(gain, discount, base, expected):
    """Grades 3, 2 and 1 at ranks 1, 3 and 7: log2(rank + 1) is 1, 2 and 3; max(1, log_b rank) starts at rank b."""
    block = judged_block(ranks=[[1, 3, 7]], grades=[[3, 2, 1]])

    assert dcg(block, gain=gain, discount=discount, base=base) == pytest.approx([expected])


def test_jarvelin_discounts_nothing_before_its_base():
    """With base 4 ranks 1 to 4 gain in full, rank 16 half: 1 + 1 + 1 / log_4 16 = 2.5."""
    block = judged_block(ranks=[[1, 4, 16]], grades=[[1, 1, 1]])

    assert dcg(block, discount="jarvelin", base=4) == pytest.approx([2.5])


def test_ideal_list_holds_what_was_missed():
    """Grade 1 at rank 1, grade 3 missed: 1 / (3 + 1 / log2 3)."""
    assert ndcg(plain_block([ranked(1, missed=[3])])) == pytest.approx([1 / (3 + 1 / math.log2(3))])


def test_ideal_list_is_cut_at_k():
    """Grades 1 2 3 cut at 1: 1 / 3; the ideal list's second place does not count."""
    assert ndcg(plain_block([ranked(1, 2, 3)]), k=1) == pytest.approx([1 / 3])


def test_a_cutoff_beyond_the_list_counts_all():
    """Grades 1 - 2 at 3 and at 1000 are the same: (1 + 2/2) / (2 + 1 / log2 3)."""
    block = plain_block([ranked(1, None, 2)])
    expected = 2 / (2 + 1 / math.log2(3))

    assert ndcg(block, k=3) == pytest.approx([expected])
    assert ndcg(block, k=1000) == pytest.approx([expected])


def test_negative_grades_gain_nothing():
    """Grades -2 1: the first gains 0 in every form, here and in the ideal list."""
    block = plain_block([ranked(-2, 1, missed=[-5])])

    for gain in ("linear", "exponential"):
        assert cg(block, gain=gain).tolist() == [1]
        assert ndcg(block, gain=gain) == pytest.approx([1 / math.log2(3)])


def test_fractional_grades_gain_their_fraction():
    """Grades 0.5 1.5: linear 0.5 + 1.5, exponential (√2 - 1) + (2√2 - 1)."""
    block = plain_block([ranked(0.5, 1.5)])

    assert cg(block) == pytest.approx([2.0])
    assert cg(block, gain="exponential") == pytest.approx([3 * math.sqrt(2) - 2])


def test_ndcg_without_gain_is_undefined_beside_a_defined_neighbour():
    """Only grades 0 and -1, and no judgment at all: NaN twice; the third query is perfect."""
    np.testing.assert_array_equal(ndcg(plain_block([ranked(0, -1), ranked(None), ranked(2, 1)])), [np.nan, np.nan, 1])


def test_grades_below_any_threshold_still_gain():
    """A query judged 0.5 alone has no relevant document at 1 but an nDCG: `rel` never touches gains."""
    assert ndcg(plain_block([ranked(None, 0.5)])) == pytest.approx([1 / math.log2(3)])


@pytest.mark.parametrize("base", [1, 0.5, 0, -2, float("nan")])
@pytest.mark.parametrize("metric", [dcg, ndcg])
def test_a_base_of_1_or_less_is_refused(metric, base):
    """No logarithm to such a base grows with the rank."""
    with pytest.raises(ValueError, match="base must be above 1, found"):
        metric(plain_block([ranked(1)]), discount="jarvelin", base=base)


@pytest.mark.parametrize("metric", [cg, dcg, ndcg])
def test_a_grade_too_great_for_2_to_its_power_is_refused(metric):
    """2**2000 is beyond doubles: an infinite gain, or an nDCG of NaN that counts as 0, would pass in silence."""
    with pytest.raises(ValueError, match="2000"):
        metric(plain_block([ranked(2000, 1)]), gain="exponential")


AT_2 = (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))  # nDCG of grades 1 2 at rank 2


def test_ndcg_at_r_levels():
    """Grades 1 2 -: the ideal gain falls after ranks 1 and 2, where nDCG is 1/2 and `AT_2`.

    Three ranks have these two points; with a fourth the whole list counts as a third.
    """
    block = plain_block([ranked(1, 2, None), ranked(1, 2, None, None)])

    assert rndcg(block) == pytest.approx([(1 / 2 + AT_2) / 2, (1 / 2 + 2 * AT_2) / 3])


def test_ndcg_at_r_levels_beyond_a_short_list():
    """Grade 2 retrieved, 3 and 1 missed: at 1, 2/3; at 2, 2 / (3 + 2 / log2 3); at 3, 2 / (3 + 2 / log2 3 + 1/2)."""
    best = 3 + 2 / math.log2(3)

    assert rndcg(plain_block([ranked(2, missed=[3, 1])])) == pytest.approx([(2 / 3 + 2 / best + 2 / (best + 0.5)) / 3])


def test_ndcg_at_r_levels_is_undefined_below_the_threshold():
    """`rel` decides whether there is anything relevant, and nothing else."""
    block = plain_block([ranked(1, 2), ranked(1)])

    np.testing.assert_array_equal(rndcg(block, rel=2), [rndcg(block)[0], np.nan])


def test_ndcg_at_documents_with_gain():
    """Grades 1 2, grade 1 missed: nDCG 1/2 at rank 1, `AT_2` at rank 2, and for the third that of the whole list."""
    whole = (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3) + 1 / 2)

    assert ndcg_rel(plain_block([ranked(1, 2, missed=[1])])) == pytest.approx([(1 / 2 + AT_2 + whole) / 3])


def test_ndcg_at_documents_with_gain_of_none_found():
    """Nothing found of something to find is 0; nothing to find is undefined."""
    np.testing.assert_array_equal(ndcg_rel(plain_block([ranked(0, missed=[2]), ranked(0, -1)])), [0, np.nan])


def test_g():
    """Grades 1 2, ideal 2 1: short by 2 - 1 at rank 1 and 3 - 3 at rank 2: (1 / log2 3 + 2 / log2 2) / 3."""
    assert g(plain_block([ranked(1, 2)])) == pytest.approx([(1 / math.log2(3) + 2) / 3])


def test_g_costs_at_least_1_a_rank():
    """Grades 0 - 1, ideal 1 and nothing else: ranks cost 1 each, short by 3 - 1: (1 / log2 4) / 1."""
    assert g(plain_block([ranked(0, None, 1)])) == pytest.approx([1 / 2])


@pytest.mark.parametrize("metric", [rndcg, ndcg_rel, g])
def test_forms_without_gain_are_undefined_beside_a_defined_neighbour(metric):
    """Only grades 0 and -1, and no judgment at all: NaN twice; the third query is perfect."""
    block = plain_block([ranked(0, -1), ranked(None), ranked(2, 1)])

    np.testing.assert_allclose(metric(block), [np.nan, np.nan, 1])
    np.testing.assert_allclose(metric(block, gain="exponential"), [np.nan, np.nan, 1])


@pytest.mark.parametrize("metric", [cg, dcg, ndcg, q_measure, rndcg, ndcg_rel, g])
@pytest.mark.parametrize(("gain", "grade"), [("linear", 1e308), ("exponential", 1023.0)])
def test_grades_whose_sum_is_infinite_are_refused(metric, gain, grade):
    """Two grades of 1e308, or of 2**1023, add up to infinity, and infinity over infinity would count as undefined."""
    with pytest.raises(ValueError, match=rf"grade {grade:g} is too large".replace("+", r"\+")):
        metric(plain_block([ranked(grade, 0, grade)]), gain=gain)


@pytest.mark.parametrize(("gain", "grade"), [("linear", 2.0**960), ("exponential", 960.0)])
def test_great_grades_have_finite_scores(gain, grade):
    """The greatest grade allowed, at ranks 1 and 3 of three: (1 + 1/2) / (1 + 1 / log2 3), whatever the beta."""
    block = plain_block([ranked(grade, 0, grade)])

    assert ndcg(block, gain=gain) == pytest.approx([1.5 / (1 + 1 / math.log2(3))])
    assert np.isfinite([metric(block, gain=gain) for metric in (cg, dcg, q_measure, rndcg, ndcg_rel, g)]).all()
    assert np.isfinite(q_measure(block, gain=gain, beta=1e9)).all()
