"""The judged block: what it answers about its queries, and the sums that every metric is made of."""

import numpy as np
import pytest

from rankledger.metrics.block import cut, divide, sum_down
from tests.support.blocks import ARRAYS, judged_block, plain_block, ranked


def test_relevant_compares_raw_grades():
    block = judged_block(ranks=[[1, 2, 5, 9]], grades=[[2, 0, -1, 0.5]])

    assert block.relevant(1)[:, 0].tolist() == [True, False, False, False]
    assert block.relevant(0.5)[:, 0].tolist() == [True, False, False, True]


def test_padding_is_never_relevant():
    block = judged_block(ranks=[[1, 2], [4]], grades=[[1, 1], [1]], padding=1)

    assert block.relevant(1e-9).tolist() == [[True, True], [True, False], [False, False]]


def test_n_relevant_counts_what_was_missed():
    block = judged_block(ranks=[[4]], grades=[[1]], missed=[[2, 3, 0, -1]])

    assert [block.n_relevant(rel).tolist() for rel in (1, 2, 3, 4)] == [[3], [2], [1], [0]]


@pytest.mark.parametrize("rel", [0, -1, float("nan")])
def test_a_threshold_that_makes_nothing_of_grade_0_relevant_is_refused(rel):
    with pytest.raises(ValueError, match="rel must be above 0, found"):
        judged_block(ranks=[[1]], grades=[[1]]).relevant(rel)


def test_ideal_ranks_all_judgments_by_grade():
    ideal = judged_block(ranks=[[2, 7]], grades=[[0, 3]], missed=[[1, -1]], n_documents=[50]).ideal()

    assert ideal.ranks[:, 0].tolist() == [1, 2, 3, 4]
    assert ideal.grades[:, 0].tolist() == [3, 1, 0, -1]
    assert ideal.n_retrieved.tolist() == [4]
    assert ideal.n_judged.tolist() == [3]
    assert ideal.n_documents.tolist() == [50]


def test_ideal_pads_shorter_columns():
    ideal = plain_block([ranked(1, 2), ranked(None)]).ideal()

    assert np.isinf(ideal.ranks[:, 1]).all()
    assert np.isnan(ideal.grades[:, 1]).all()
    assert ideal.n_retrieved.tolist() == [2, 0]


def test_ideal_is_its_own_ideal(graded_block):
    once, twice = graded_block.ideal(), graded_block.ideal().ideal()

    for name in ("ranks", "grades", "judged_grades", "n_judged", "n_retrieved"):
        np.testing.assert_array_equal(getattr(twice, name), getattr(once, name))


def test_blocks_are_compared_by_identity():
    """Two equal blocks are two objects: comparing arrays with == would give an array and no answer."""
    block = judged_block(ranks=[[1]], grades=[[1]])
    same = block

    assert block == same
    assert block != judged_block(ranks=[[1]], grades=[[1]])


@pytest.mark.parametrize(("k", "deepest"), [(None, np.inf), (1, 1.0), (10, 10.0)])
def test_cut_is_the_deepest_rank(k, deepest):
    assert cut(k) == deepest


@pytest.mark.parametrize("k", [0, -3])
def test_cut_below_1_is_refused(k):
    with pytest.raises(ValueError, match=f"a cutoff counts ranks from 1, found {k}"):
        cut(k)


def test_divide_by_0_is_undefined():
    """6 / 3 is 2, and neither 0 / 0 nor 1 / 0 is a number."""
    np.testing.assert_array_equal(divide(np.array([6.0, 0.0, 1.0]), np.array([3.0, 0.0, 0.0])), [2.0, np.nan, np.nan])


def test_divide_by_one_denominator():
    np.testing.assert_array_equal(divide(np.array([1.0, 3.0]), 4.0), [0.25, 0.75])


@pytest.mark.parametrize("n_queries", [1, 2, 3, 64])
@pytest.mark.parametrize("n_rows", [1, 2, 7, 8, 9, 127, 128, 129, 1000])
def test_sum_down_adds_one_row_after_another(n_rows, n_queries):
    terms = np.random.default_rng(n_rows).standard_normal((n_rows, n_queries))
    expected = [0.0] * n_queries
    for row in terms.tolist():
        expected = [total + term for total, term in zip(expected, row, strict=True)]

    assert sum_down(terms).tolist() == expected


@pytest.mark.parametrize("order", ["F", "sliced", "reversed"])
def test_sum_down_whatever_the_layout(order):
    terms = np.random.default_rng(0).standard_normal((300, 8))
    wide = np.random.default_rng(1).standard_normal((600, 16))
    wide[::2, ::2] = terms
    laid_out = {"F": np.asfortranarray(terms), "sliced": wide[::2, ::2], "reversed": terms[:, ::-1].copy()[:, ::-1]}

    assert sum_down(laid_out[order]).tolist() == sum_down(terms).tolist()


def test_sum_down_of_booleans_counts():
    for width in (1, 3):
        counts = sum_down(np.array([[True], [False], [True]]).repeat(width, axis=1))
        assert counts.dtype == np.float64
        assert counts.tolist() == [2.0] * width


def test_sum_down_of_nothing_is_0():
    assert sum_down(np.zeros((0, 1))).tolist() == [0.0]
    assert sum_down(np.zeros((0, 2))).tolist() == [0.0, 0.0]


def test_the_block_builder_hands_out_read_only_arrays():
    block = plain_block([ranked(1, None, missed=[1]), ranked()])

    assert not any(getattr(block, name).flags.writeable for name in ARRAYS)
