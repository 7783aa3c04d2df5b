"""From values per query to one figure: what each query adds, and what an undefined one counts as."""

import numpy as np
import pytest

from rankledger.metrics.aggregation import GEOMETRIC_MEAN, MEAN, ROOT_MEAN_SQUARE, Aggregation, contributions

VALUES = np.array([1.0, np.nan, 0.5, 0.0])
WEIGHTS = np.array([1.0, 1.0, 2.0, 1.0])
VALUES.setflags(write=False)
WEIGHTS.setflags(write=False)


def figure(aggregation: Aggregation, *, undefined_is_zero: bool) -> float:
    numerators, denominators = contributions(aggregation, VALUES, WEIGHTS, undefined_is_zero=undefined_is_zero)
    return float(aggregation.backward(numerators.sum() / denominators.sum()))


@pytest.mark.parametrize(("undefined_is_zero", "expected"), [(True, 2 / 5), (False, 2 / 4)])
def test_mean(undefined_is_zero, expected):
    """1 · 1 + 0.5 · 2 + 0 · 1 = 2 over weights 5 with the undefined query, 4 without it."""
    assert figure(MEAN, undefined_is_zero=undefined_is_zero) == pytest.approx(expected)


@pytest.mark.parametrize(("undefined_is_zero", "expected"), [(True, 1.5 / 5), (False, 1.5 / 4)])
def test_root_mean_square(undefined_is_zero, expected):
    """1² · 1 + 0.5² · 2 + 0 = 1.5 over the same weights, under the root."""
    assert figure(ROOT_MEAN_SQUARE, undefined_is_zero=undefined_is_zero) == pytest.approx(np.sqrt(expected))


@pytest.mark.parametrize(
    ("undefined_is_zero", "expected"), [(True, (0.25 * 1e-10) ** (1 / 5)), (False, (0.25 * 1e-5) ** (1 / 4))]
)
def test_geometric_mean(undefined_is_zero, expected):
    """0 and undefined count as 0.00001: the fifth root of 1 · 0.5² · 0.00001², the fourth of 1 · 0.5² · 0.00001."""
    assert figure(GEOMETRIC_MEAN, undefined_is_zero=undefined_is_zero) == pytest.approx(expected)


def test_contributions_hold_no_nan():
    for undefined_is_zero, weight in ((True, 1.0), (False, 0.0)):
        numerators, denominators = contributions(MEAN, VALUES, WEIGHTS, undefined_is_zero=undefined_is_zero)
        assert numerators.tolist() == [1.0, 0.0, 1.0, 0.0]
        assert denominators.tolist() == [1.0, weight, 2.0, 1.0]


@pytest.mark.parametrize("undefined_is_zero", [True, False])
def test_contributions_are_new_arrays(undefined_is_zero):
    for array in contributions(MEAN, VALUES, WEIGHTS, undefined_is_zero=undefined_is_zero):
        assert not np.shares_memory(array, VALUES)
        assert not np.shares_memory(array, WEIGHTS)


def test_backward_undoes_forward():
    values = np.array([0.0, 0.3, 2.0])

    for aggregation in (MEAN, ROOT_MEAN_SQUARE):
        np.testing.assert_allclose(aggregation.backward(aggregation.forward(values)), values, rtol=1e-15)


def test_a_geometric_mean_has_a_floor():
    """One query's figure is its value, but never less than trec_eval's 0.00001."""
    values = np.array([0.0, 1e-6, 1e-5, 0.3, 1.0])
    figures = GEOMETRIC_MEAN.backward(GEOMETRIC_MEAN.forward(values))

    np.testing.assert_allclose(figures, [1e-5, 1e-5, 1e-5, 0.3, 1.0], rtol=1e-14)


def test_pooled_figures_do_not_depend_on_how_pairs_are_split():
    """Errors 3 and 4 in one query or in two: root mean square √12.5 both times."""
    together = contributions(ROOT_MEAN_SQUARE, np.array([np.sqrt(12.5)]), np.array([2.0]), undefined_is_zero=False)
    apart = contributions(ROOT_MEAN_SQUARE, np.array([3.0, 4.0]), np.array([1.0, 1.0]), undefined_is_zero=False)

    for numerators, denominators in (together, apart):
        assert np.sqrt(numerators.sum() / denominators.sum()) == pytest.approx(np.sqrt(12.5))
