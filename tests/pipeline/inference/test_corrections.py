"""Corrected p-values worked by hand, and properties over random ones; statsmodels is asked in tests/agreement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankledger.pipeline.inference.sign_flips import benjamini_hochberg, exceedances, holm, westfall_young

P_VALUES = arrays(np.float64, st.integers(1, 20), elements=st.floats(0, 1))


def test_holm_by_hand():
    """0.01, 0.04, 0.03 times 3, 1 and 2 are 0.03, 0.04 and 0.06; the last takes the 0.06 of the one before."""
    assert holm(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])


def test_benjamini_hochberg_by_hand():
    """0.01, 0.04, 0.03 times 3/1, 3/3 and 3/2 are 0.03, 0.04 and 0.045; the middle one takes the 0.04 after it."""
    assert benjamini_hochberg(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.04, 0.04])


@given(P_VALUES)
def test_corrections_never_lower_a_p_value(p_values):
    stepped_down, stepped_up = holm(p_values), benjamini_hochberg(p_values)

    assert (stepped_down <= 1).all()
    assert (p_values <= stepped_up * (1 + 1e-12)).all()
    assert (stepped_up <= stepped_down * (1 + 1e-12)).all()


@given(P_VALUES, st.randoms(use_true_random=False))
def test_corrections_do_not_depend_on_the_order(p_values, random):
    order = random.sample(range(len(p_values)), len(p_values))

    np.testing.assert_array_equal(holm(p_values[order]), holm(p_values)[order])
    np.testing.assert_array_equal(benjamini_hochberg(p_values[order]), benjamini_hochberg(p_values)[order])


def test_exceedances_by_hand():
    """Of three patterns the first hypothesis reaches 1 twice and the second 2 once, or twice with the first's 5."""
    statistics = np.array([[0.0, 1.0, 5.0], [2.0, 1.0, 1.0]])

    alone, jointly, greatest = exceedances(statistics, np.array([1.0, 2.0]))

    assert alone.tolist() == [2, 1]
    assert jointly.tolist() == [2, 2]
    assert greatest.tolist() == [2, 1, 5]


def test_an_undefined_statistic_counts_as_reaching():
    alone, jointly, _ = exceedances(np.array([[np.nan, 0.0], [0.0, 0.0]]), np.array([1.0, 1.0]))

    assert alone.tolist() == [1, 0]
    assert jointly.tolist() == [1, 1]


def test_step_down_keeps_the_order_of_the_statistics():
    """In descending order 0.01, 0.05, 0.03 become 0.01, 0.05, 0.05; and none is less than its own p-value, 0.2."""
    found = westfall_young(np.array([0.2, 0.0, 0.0]), np.array([0.03, 0.05, 0.01]), np.array([0, 1, 2]))

    assert found.tolist() == [0.2, 0.05, 0.01]
