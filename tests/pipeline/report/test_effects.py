"""Labels of differences, and letters of models."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.inference.tables import decide
from rankledger.pipeline.report.tables import effect_label, effect_rule, letter_display
from tests.support.sample_page import compared

MATTERS = {"ndcg@10": 0.01}
ALPHA = 1 - 0.95  # 0.050000000000000044


@pytest.mark.parametrize(
    ("difference", "p_corrected", "expected"),
    [
        (0.1, 0.049, "better"),
        (-0.1, 0.049, "worse"),
        (0.1, 0.05, ""),
        (-0.1, 0.3, ""),
        (0.0, 0.001, ""),
        (None, 0.001, ""),
        (0.1, None, ""),
    ],
)
def test_the_side_and_the_corrected_p_value_decide(difference, p_corrected, expected):
    """By definition: a p-value at the level is not below it, although 1 - 0.95 is above 0.05 in doubles."""
    assert decide(difference, p_corrected, ALPHA) == expected


@pytest.mark.parametrize(
    ("p_value", "p_corrected", "expected"),
    [(0.01, 0.06, ""), (0.01, 0.049, "better"), (0.01, None, "better"), (0.05, None, ""), (None, None, "")],
)
def test_the_p_value_counts_if_there_is_no_correction(p_value, p_corrected, expected):
    assert compared("dense", 0.1, p_value=p_value, p_corrected=p_corrected).decide(ALPHA) == expected


@pytest.mark.parametrize("practical_difference", [{}, MATTERS])
@pytest.mark.parametrize(
    "change", [{"mark": "sparse"}, {"n_clusters": 29}, {"ci_low": -0.01}, {"ci_low": 0.0}, {"ci_low": None}]
)
@pytest.mark.parametrize(("p_corrected", "expected"), [(0.049, "better"), (0.0141, "better"), (0.06, "unclear")])
def test_neither_marks_nor_intervals_change_the_word(change, practical_difference, p_corrected, expected):
    line = compared("dense", 0.1, p_value=0.001, p_corrected=p_corrected, **change)

    assert effect_label(line, practical_difference, ALPHA) == expected


@pytest.mark.parametrize(
    ("low", "high", "p_corrected", "expected"),
    [
        (0.001, 0.05, 0.01, "better"),
        (-0.01, 0.01, 0.9, "no practical difference"),
        (0.001, 0.01, 0.01, "no practical difference"),
        (-0.011, 0.01, 0.9, "unclear"),
        (0.0, 0.0, 1.0, "no practical difference"),
        (None, None, 0.9, "unclear"),
    ],
)
def test_a_whole_interval_within_what_matters_is_no_practical_difference(low, high, p_corrected, expected):
    line = compared("dense", 0.02, ci_low=low, ci_high=high, p_corrected=p_corrected)

    assert effect_label(line, MATTERS, ALPHA) == expected


@pytest.mark.parametrize("change", [{"mark": "sparse"}, {"n_clusters": 29}])
def test_an_approximate_interval_shows_no_practical_difference(change):
    line = compared("dense", 0.0, ci_low=-0.001, ci_high=0.001, p_corrected=0.9, **change)

    assert effect_label(line, MATTERS, ALPHA) == "unclear"


def test_a_measure_without_such_a_difference_is_held_against_0():
    same, near = (compared("dense", 0.0, ci_low=0.0, ci_high=high, p_corrected=1.0) for high in (0.0, 0.001))

    assert effect_label(same, {"ap": 0.01}, ALPHA) == "no practical difference"
    assert effect_label(near, {"ap": 0.01}, ALPHA) == "unclear"


@pytest.mark.parametrize(
    ("difference", "low", "high", "expected"),
    [
        (1.2e-15, -1.2e-15, 1.2e-15, "no practical difference"),
        (1.2e-15, -0.05, 0.05, "unclear"),
        (1e-12, 0, 1, "better"),
    ],
)
def test_what_is_but_rounding_is_0(difference, low, high, expected):
    line = compared("dense", difference, ci_low=low, ci_high=high, estimate=0.5, baseline_estimate=0.4)

    assert effect_label(line, {}, ALPHA) == expected


def test_the_rule_names_the_measure_the_level_and_what_matters():
    assert effect_rule("ndcg@10", MATTERS, ALPHA) == (
        "ndcg@10: no practical difference if the whole interval lies between −0.01 and +0.01, better or worse if the "
        "corrected p is below 0.05, unclear otherwise"
    )
    assert "if the two score the same on every query" in effect_rule("ap", {}, 0.1)
    assert "below 0.1" in effect_rule("ap", {}, 0.1)


ORDER = ("a1", "b2", "c3", "d4", "e5")


def pairs(*found: str) -> set[frozenset[str]]:
    return {frozenset(ORDER["abcde".index(sign)] for sign in pair) for pair in found}


@pytest.mark.parametrize(
    ("alike", "expected"),
    [
        ((), ["a", "b", "c", "d", "e"]),
        (("ab", "bc"), ["a", "ab", "b", "c", "d"]),
        (("ab", "ac", "bc", "cd"), ["a", "a", "ab", "b", "c"]),
        (("ac",), ["a", "b", "a", "c", "d"]),
        (("ad", "bc"), ["a", "b", "b", "a", "c"]),
    ],
)
def test_letters_worked_by_hand(alike, expected):
    assert list(letter_display(ORDER, pairs(*alike)).values()) == expected


def test_models_that_are_all_alike_share_one_letter():
    assert set(letter_display(ORDER, {frozenset(pair) for pair in combinations(ORDER, 2)}).values()) == {"a"}


def test_beyond_26_letters_come_pairs_of_them():
    found = letter_display([f"m{number:02d}" for number in range(28)], set())

    assert [*found.values()][24:] == ["y", "z", "aa", "ab"]


@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.sampled_from([*combinations(range(7), 2)]))))
)
def test_two_models_share_a_letter_just_where_they_are_alike(drawn):
    n_models, drawn_pairs = drawn
    order = [f"m{number}" for number in range(n_models)]
    alike = {frozenset((f"m{a}", f"m{b}")) for a, b in drawn_pairs if a < n_models and b < n_models}

    found = letter_display(order, alike)

    for one, other in combinations(order, 2):
        assert bool(set(found[one]) & set(found[other])) == (frozenset((one, other)) in alike)
    sharing = [{model for model in order if letter in found[model]} for letter in set("".join(found.values()))]
    assert not any(one < other for one in sharing for other in sharing)
    assert all(found.values())
