"""What a difference comes to, in a word: the edges of the rule."""

from __future__ import annotations

import pytest

from rankledger.pipeline.report.effects import effect_label, effect_rule, is_alike
from tests.support.sample_page import compared

MATTERS = {"ndcg@10": 0.01}


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.011, 0.05, "better"),
        (0.01, 0.05, "unclear"),
        (-0.05, -0.011, "worse"),
        (-0.05, -0.01, "unclear"),
        (-0.01, 0.01, "no practical difference"),
        (-0.011, 0.01, "unclear"),
        (0.0, 0.0, "no practical difference"),
        (None, None, "unclear"),
    ],
)
def test_the_whole_interval_is_held_against_what_matters(low, high, expected):
    """An end on the edge of the band lies within it."""
    assert effect_label(compared("dense", 0.0, ci_low=low, ci_high=high), MATTERS) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.001, 0.05, "better"), (0.0, 0.05, "unclear"), (0.0, 0.0, "no practical difference")],
)
def test_a_measure_without_such_a_difference_is_held_against_0(low, high, expected):
    """Then only a model that is the same on every query has no practical difference."""
    assert effect_label(compared("dense", 0.0, ci_low=low, ci_high=high), {"ap": 0.01}) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.2e-15, 0.05, "unclear"),
        (-0.05, -1.2e-15, "unclear"),
        (-1.2e-15, 1.2e-15, "no practical difference"),
        (1.2e-12, 0.05, "better"),
    ],
)
def test_an_end_that_is_but_rounding_is_0(low, high, expected):
    """Of figures of 0.5 the twelfth digit stands for 5e-13."""
    line = compared("dense", 0.5, ci_low=low, ci_high=high, estimate=0.5, baseline_estimate=0.4)

    assert effect_label(line, {}) == expected


@pytest.mark.parametrize("change", [{"mark": "sparse"}, {"n_clusters": 29}])
def test_too_few_queries_are_unclear(change):
    """An interval that is not to be trusted decides nothing, however far from 0 it lies."""
    assert effect_label(compared("dense", 0.5, **change), MATTERS) == "unclear"


def test_the_rule_names_the_measure_and_what_matters():
    """The sentence has the numbers that the words were found by."""
    assert effect_rule("ndcg@10", MATTERS).startswith("ndcg@10: better if the whole interval lies above +0.01, worse")
    assert "above 0, worse if it lies below 0" in effect_rule("ap", MATTERS)


def test_the_rule_says_when_a_difference_is_unclear():
    """Too few queries make a difference unclear wherever its interval lies, but in the primary family."""
    few = (
        "unclear otherwise; the intervals of the primary family hold together; other differences are not corrected, "
        "and unclear if a few queries or clusters decide them or if there are fewer than 30"
    )

    assert effect_rule("ap", {}).endswith(few)


@pytest.mark.parametrize(
    ("p_value", "p_corrected", "alike"),
    [(0.01, 0.06, True), (0.01, 0.049, False), (0.01, None, False), (0.05, None, True), (None, None, True)],
)
def test_models_are_alike_where_the_corrected_test_does_not_part_them(p_value, p_corrected, alike):
    """The p-value as it is counts where nothing was corrected."""
    assert is_alike(compared("dense", 0.1, p_value=p_value, p_corrected=p_corrected), 0.05) is alike


@pytest.mark.parametrize("practical_difference", [{}, MATTERS])
@pytest.mark.parametrize("p_value", [0.0, 0.0141, 0.049])
@pytest.mark.parametrize(
    "change", [{"mark": "sparse"}, {"n_clusters": 29}, {"ci_low": -0.01}, {"ci_low": 0.0}, {"ci_low": None}]
)
def test_models_whose_difference_is_unclear_are_alike_at_any_p_value(change, p_value, practical_difference):
    """Letters and daggers never part two models that the page calls unclear for want of queries or by the interval."""
    line = compared("dense", 0.1, p_value=p_value, p_corrected=p_value, **change)

    assert effect_label(line, practical_difference) == "unclear"
    assert is_alike(line, 0.05)
