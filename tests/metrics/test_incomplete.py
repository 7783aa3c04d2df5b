"""Metrics for incomplete judgments, on lists worked by hand."""

import numpy as np
import pytest

from rankledger.metrics.ranking import bpref, infap
from tests.support.blocks import plain_block, ranked


def test_bpref():
    """R = 2, N = 2: rank 1 has none above (1), rank 4 has one of two above (1 - 1/2): 1.5 / 2; unjudged are skipped."""
    assert bpref(plain_block([ranked(1, None, 0, 1, 0)])) == pytest.approx([0.75])


def test_bpref_counts_at_most_r_above():
    """R = 1, N = 3: three above count as min(3, 1) of min(3, 1): 0."""
    assert bpref(plain_block([ranked(0, 0, 0, 1)])).tolist() == [0]


def test_bpref_divides_by_all_judged_non_relevant():
    """R = 3, N = 2 with one missed: rank 2 has one of min(2, 3) above: (1/2 + 1/2) / 3, the third not retrieved."""
    assert bpref(plain_block([ranked(0, 1, 1, missed=[1, 0])])) == pytest.approx([1 / 3])


def test_bpref_passes_over_negative_grades():
    """Grade -1 above a relevant document is pooled but unjudged: the preference stays 1."""
    assert bpref(plain_block([ranked(-1, 1, missed=[-1, 0])])).tolist() == [1]


def test_bpref_without_non_relevant_judgments():
    """Nothing can stand above: each of the two found of three relevant adds 1: 2/3."""
    assert bpref(plain_block([ranked(None, 1, 1, missed=[1])])) == pytest.approx([2 / 3])


def test_bpref_at_a_higher_threshold():
    """At rel = 2 the grade 1 at rank 1 is judged non-relevant: R = 1, N = 1, one above: 0."""
    assert bpref(plain_block([ranked(1, 2)]), rel=2).tolist() == [0]
    assert bpref(plain_block([ranked(1, 2)]), rel=1).tolist() == [1]


def test_inferred_average_precision():
    """Grades 1 - 0 -1 1, one missed: rank 1 gives 1; above rank 5 three of four are pooled, one of two judged relevant:
    1/5 + 4/5 · 3/4 · 1/2 = 0.5; (1 + 0.5) / 3, but for the smoothing by 0.00001.
    """
    smoothed = 1 / 5 + 4 / 5 * 3 / 4 * (1 + 1e-5) / (2 + 2e-5)
    block = plain_block([ranked(1, None, 0, -1, 1, missed=[1])])

    assert infap(block) == pytest.approx([0.5], abs=1e-4)
    assert infap(block) == pytest.approx([(1 + smoothed) / 3], abs=1e-15)


def test_inferred_average_precision_where_none_above_is_judged():
    """Two pooled documents of unknown grade above are relevant with chance 1/2: 1/3 + 2/3 · 1 · 1/2."""
    assert infap(plain_block([ranked(-1, -2, 1)])) == pytest.approx([2 / 3])


def test_inferred_average_precision_takes_documents_outside_the_pool_for_non_relevant():
    """Two documents outside the pool above: 1/3 + 2/3 · 0 · 1/2, which is the average precision."""
    assert infap(plain_block([ranked(None, None, 1)])) == pytest.approx([1 / 3])


def test_inferred_average_precision_at_a_higher_threshold():
    """At rel = 2 the grade 1 above is judged non-relevant: 1/2 + 1/2 · 1 · 0.00001 / 1.00002."""
    assert infap(plain_block([ranked(1, 2)]), rel=2) == pytest.approx([0.5 + 0.5 * 1e-5 / 1.00002], abs=1e-15)


@pytest.mark.parametrize("metric", [bpref, infap])
def test_queries_without_relevant_documents_are_undefined_beside_others(metric):
    """NaN for the query without relevant documents, 1 for its perfect neighbour."""
    np.testing.assert_allclose(metric(plain_block([ranked(0, None), ranked(1, 0)])), [np.nan, 1.0])
