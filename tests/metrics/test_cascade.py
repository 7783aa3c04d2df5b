"""Metrics of a reader who stops: rank-biased precision, expected reciprocal rank, half-life utility."""

import math

import numpy as np
import pytest

from rankledger.metrics.cascade import err, nerr, rankscore, rbp, rbp_resid
from tests.support.blocks import plain_block, ranked


def test_rbp_of_two_hits():
    """p = 0.5, hits at 1 and 3: 0.5 (1 + 0.25) = 0.625."""
    assert rbp(plain_block([ranked(1, 0, 2)]), p=0.5) == pytest.approx([0.625])


def test_rbp_persists_with_0_8_by_default():
    """A hit at rank 2: 0.2 · 0.8 = 0.16."""
    assert rbp(plain_block([ranked(None, 1)])) == pytest.approx([0.16])


def test_rbp_of_graded_gains():
    """Grades 2 - 1 over 4, p = 0.5: 0.5 (2/4 + 1/4 · 0.25) = 0.28125; grade -1 gains nothing."""
    block = plain_block([ranked(2, None, 1, -1)])

    assert rbp(block, p=0.5, gain="graded", max_grade=4) == pytest.approx([0.28125])


def test_rbp_is_cut_and_thresholded():
    """p = 0.5 and hits at 1 and 3: 0.5 within the first two; at rel = 2 rank 3 alone: 0.125."""
    block = plain_block([ranked(1, 0, 2)])

    assert rbp(block, p=0.5, k=2) == pytest.approx([0.5])
    assert rbp(block, p=0.5, k=100) == pytest.approx([0.625])
    assert rbp(block, p=0.5, rel=2) == pytest.approx([0.125])


def test_rbp_of_relevant_documents_only_tends_to_1():
    """n relevant documents in a row give 1 - p**n: 1 - 0.5**10."""
    assert rbp(plain_block([ranked(*[1] * 10)]), p=0.5) == pytest.approx([1 - 0.5**10])


@pytest.mark.parametrize("p", [0, 1, -0.5, 2, float("nan")])
def test_rbp_refuses_a_persistence_that_is_no_chance(p):
    """A reader who never goes on, or never stops, has no expected figure."""
    with pytest.raises(ValueError, match="p must be between 0 and 1, found"):
        rbp(plain_block([ranked(1)]), p=p)


def test_err_of_graded_documents():
    """Grades 2 and 1 of 2: R = 3/4 and 1/4: 3/4 + 1/2 · 1/4 · 1/4 = 0.78125."""
    assert err(plain_block([ranked(2, 1)]), max_grade=2) == pytest.approx([0.78125])


def test_err_of_probabilities():
    """Grades 0.5 - 1: 0.5 + 1/3 · 0.5 · 1 = 2/3; the unjudged document satisfies nobody and keeps its rank."""
    assert err(plain_block([ranked(0.5, None, 1)]), grades="probability") == pytest.approx([2 / 3])


def test_err_with_a_chance_to_go_on():
    """The same list with continuation 0.9: 0.5 + 1/3 · 0.9² · 0.5 = 0.635."""
    block = plain_block([ranked(0.5, None, 1)])

    assert err(block, grades="probability", continuation=0.9) == pytest.approx([0.635])


def test_err_is_cut():
    """Grades 0.5 - 1 cut at 2: 0.5."""
    block = plain_block([ranked(0.5, None, 1)])

    assert err(block, k=2, grades="probability") == pytest.approx([0.5])
    assert err(block, k=50, grades="probability") == pytest.approx([2 / 3])


def test_err_with_a_given_greatest_grade():
    """Grade 2 on a scale to 4: (2² - 1) / 2⁴ = 3/16, as gdeval has it."""
    assert err(plain_block([ranked(2)]), max_grade=4) == pytest.approx([3 / 16])


def test_nobody_reads_past_certain_satisfaction():
    """A document of probability 1 ends all reading: what follows adds exactly nothing."""
    first, second = err(plain_block([ranked(None, 1), ranked(None, 1, 1, 0.5)]), grades="probability")

    assert first == second == 0.5


def test_negative_grades_satisfy_nobody():
    """Grade -1 above a sure one: 1/2, in both forms of the grade."""
    block = plain_block([ranked(-1, 1)])

    assert err(block, grades="probability") == pytest.approx([0.5])
    assert err(block, max_grade=1) == pytest.approx([0.25])


@pytest.mark.parametrize("metric", [rbp, err])
def test_a_greatest_grade_is_needed(metric):
    """Without it the figure would depend on which queries share the block."""
    graded = {"gain": "graded"} if metric is rbp else {}

    with pytest.raises(ValueError, match="max_grade is needed: the grade of a perfect document"):
        metric(plain_block([ranked(1)]), **graded)


@pytest.mark.parametrize("query", [ranked(3), ranked(1, missed=[3])])
@pytest.mark.parametrize("metric", [rbp, err])
def test_a_grade_above_the_greatest_is_refused(metric, query):
    """A judgment of 3 on a scale to 2 is refused, retrieved or not."""
    graded = {"gain": "graded"} if metric is rbp else {}

    with pytest.raises(ValueError, match="a judgment has grade 3, above max_grade 2; raise max_grade"):
        metric(plain_block([query]), max_grade=2, **graded)


def test_a_probability_above_1_is_refused():
    """Grades that are not probabilities cannot be taken as they are."""
    with pytest.raises(ValueError, match="a judgment has grade 2"):
        err(plain_block([ranked(2)]), grades="probability")


@pytest.mark.parametrize("continuation", [0, -0.1, 1.1, float("nan")])
def test_err_refuses_a_continuation_that_is_no_chance(continuation):
    """The chance to go on is above 0 and at most 1."""
    with pytest.raises(ValueError, match="continuation must be above 0 and at most 1, found"):
        err(plain_block([ranked(1)]), grades="probability", continuation=continuation)


@pytest.mark.parametrize("greatest", [0, -1])
@pytest.mark.parametrize("metric", [rbp, err])
def test_judgments_without_a_positive_grade_score_0(metric, greatest):
    """Where the greatest grade of all judgments is 0 or below, nothing gains, whatever a perfect grade would be."""
    graded = {"gain": "graded"} if metric is rbp else {}

    assert metric(plain_block([ranked(greatest, None, missed=[-1])]), max_grade=1, **graded).tolist() == [0]


@pytest.mark.parametrize("max_grade", [0, -1])
@pytest.mark.parametrize("metric", [rbp, err])
def test_a_max_grade_of_0_or_less_is_refused(metric, max_grade):
    """Grades are divided by it or raised to it: 0 and below make no sense of either."""
    graded = {"gain": "graded"} if metric is rbp else {}

    with pytest.raises(ValueError, match=f"max_grade must be above 0, found {max_grade}"):
        metric(plain_block([ranked(-1)]), max_grade=max_grade, **graded)


def test_rankscore_of_two_hits():
    """Half-life 1, hits at 1 and 3 of R = 2: (1 + 1/4) / (1 + 1/2) = 5/6."""
    assert rankscore(plain_block([ranked(1, 0, 1)]), half_life=1) == pytest.approx([5 / 6])


def test_rankscore_halves_every_five_ranks_by_default():
    """One relevant document at rank 6: 2**(-5/5) over 1 = 0.5."""
    assert rankscore(plain_block([ranked(*[None] * 5, 1)])) == pytest.approx([0.5])


def test_rankscore_cuts_the_best_list_too():
    """R = 3, half-life 1, the first two with one hit at rank 2: (1/2) / (1 + 1/2) = 1/3."""
    block = plain_block([ranked(0, 1, 1, missed=[1])])

    assert rankscore(block, half_life=1, k=2) == pytest.approx([1 / 3])


def test_rankscore_at_a_higher_threshold():
    """Only grade 2 at rank 2 is of interest: 2**-1 over 1; without any of grade 3 the score is undefined."""
    block = plain_block([ranked(1, 2)])

    assert rankscore(block, half_life=1, rel=2) == pytest.approx([0.5])
    np.testing.assert_array_equal(rankscore(block, rel=3), [np.nan])


@pytest.mark.parametrize("half_life", [0, -5, float("nan")])
def test_rankscore_refuses_a_half_life_of_0(half_life):
    """A weight that never halves is no half-life."""
    with pytest.raises(ValueError, match="half_life must be above 0, found"):
        rankscore(plain_block([ranked(1)]), half_life=half_life)


def test_err_refuses_a_grade_too_great_for_2_to_its_power():
    """2**2000 / 2**2000 is NaN in doubles, and ERR is never NaN."""
    with pytest.raises(ValueError, match="2000"):
        err(plain_block([ranked(2000, 1)]), max_grade=2000)


def test_a_tiny_half_life_leaves_the_first_rank_alone():
    """With half-life 0.01 rank 2 weighs 2**-100: a hit at 1 of two relevant documents scores 1 to 1e-12."""
    assert rankscore(plain_block([ranked(1, missed=[1])]), half_life=0.01) == pytest.approx([1.0], abs=1e-12)
    assert math.isclose(rankscore(plain_block([ranked(0, 1)]), half_life=0.01).item(), 2.0**-100)


@pytest.mark.parametrize(("k", "expected"), [(None, 0.375), (1, 0.5), (3, 0.25 + 0.125), (4, 0.375), (100, 0.375)])
def test_residual_of_rbp(k, expected):
    """Grades 1 - 0 -1, p = 0.5: ranks 2 and 4 weigh 1/4 and 1/16, all below the list 1/16; at 3, 1/4 and 1/8."""
    assert rbp_resid(plain_block([ranked(1, None, 0, -1)]), p=0.5, k=k) == pytest.approx([expected], abs=0)


def test_residual_of_rbp_of_a_list_without_unjudged_documents():
    """Two judged documents leave p² below them by definition, and nothing to trec_eval 10."""
    block = plain_block([ranked(1, 0), ranked(1, None), ranked(missed=[1])])

    assert rbp_resid(block, p=0.5).tolist() == [0.25, 0.5, 1]
    assert rbp_resid(block, p=0.5, below="if_unjudged").tolist() == [0, 0.5, 0]
    assert rbp_resid(block, p=0.5, k=1, below="if_unjudged").tolist() == [0, 0, 0]


@pytest.mark.parametrize("p", [0, 1, -0.5, 2, float("nan")])
def test_residual_of_rbp_refuses_a_persistence_that_is_no_chance(p):
    """A reader who never goes on, or never stops, weighs no rank."""
    with pytest.raises(ValueError, match="p must be between 0 and 1, found"):
        rbp_resid(plain_block([ranked(1)]), p=p)


def test_rbp_and_its_residual_bound_what_full_judgments_would_give(graded_block):
    """Both together are at most 1, the weight of all ranks, and the residual is never negative."""
    upper = rbp(graded_block, p=0.9) + rbp_resid(graded_block, p=0.9)

    assert upper.max() <= 1 + 1e-12
    assert (rbp_resid(graded_block, p=0.9) >= 0).all()


def test_nerr_of_graded_documents():
    """Grades 1 2 of 2: 1/4 + 1/2 · 3/4 · 3/4 = 0.53125, over 0.78125 for 2 1."""
    assert nerr(plain_block([ranked(1, 2)]), max_grade=2) == pytest.approx([0.53125 / 0.78125])


def test_nerr_cuts_both_lists():
    """Grade 1 with a 2 missed, cut at 1: 1/4 over 3/4; as probabilities 0.5 over 1."""
    assert nerr(plain_block([ranked(1, 0, missed=[2])]), max_grade=2, k=1) == pytest.approx([1 / 3])
    assert nerr(plain_block([ranked(0.5, missed=[1])]), grades="probability", k=1) == pytest.approx([0.5])


def test_nerr_with_a_chance_to_go_on():
    """Grades 0.5 1 as probabilities, continuation 0.9: 0.5 + 0.9/2 · 0.5 = 0.725, over 1 for 1 0.5."""
    assert nerr(plain_block([ranked(0.5, 1)]), grades="probability", continuation=0.9) == pytest.approx([0.725])


def test_nerr_without_relevant_documents_is_undefined():
    """There is no ideal to divide by where no grade is above 0, and nothing found is 0."""
    values = nerr(plain_block([ranked(0, -1), ranked(missed=[1])]), max_grade=1)

    np.testing.assert_array_equal(values, [np.nan, 0])
