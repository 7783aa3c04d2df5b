"""Differences between two models: figures, effects, words."""

import re
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.inference.tables import Comparison, decide
from rankledger.pipeline.report.tables import (
    Interval,
    Scale,
    count_decimals,
    difference_rows,
    difference_table,
    effect_label,
    effect_rule,
    interval_bar,
    letter_display,
    p_value,
    p_value_notes,
    scale_header,
    signed,
)
from rankledger.pipeline.report.text_table import TerminalText
from tests.support.sample_page import compared
from tests.support.terminal import table_rows

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
        (tuple(map("".join, combinations("abcde", 2))), ["a"] * 5),
    ],
)
def test_letters_worked_by_hand(alike, expected):
    assert list(letter_display(ORDER, pairs(*alike)).values()) == expected


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


LINE = compared(
    "dense",
    0.1,
    estimate=0.5,
    baseline_estimate=0.4,
    ci_low=0.05,
    ci_high=0.15,
    std_error=0.025,
    p_value=0.0012,
    p_corrected=0.0034,
    family="2 pairs x 2 measures x 1 slice on web (4 tests)",
    effect_size=0.4,
    wins=30,
    ties=5,
    losses=15,
    minimum_detectable_difference=0.07,
    n_queries=50,
    n_clusters=50,
)
RRF = replace(LINE, model="rrf", difference=-0.02, ci_low=-0.05, ci_high=0.01, p_value=0.2, p_corrected=0.3)


def shown(*lines: Comparison, width: int = 140) -> str:
    text = TerminalText(width=width)
    text.add_table(difference_table("web", difference_rows(lines)))
    text.add(*p_value_notes(lines))
    return str(text)


def test_a_row_has_both_values_and_the_difference_with_its_interval():
    assert table_rows(shown(LINE, RRF)) == [
        ["dense against bm25", "0.400", "0.500", "+0.100 [+0.050, +0.150]", "0.0034", "30 / 5 / 15"],
        ["rrf against bm25", "0.400", "0.500", "-0.020 [-0.050, +0.010]", "0.3000", "30 / 5 / 15"],
    ]
    assert "corrected among 2 pairs x 2 measures x 1 slice on web (4 tests)" in shown(LINE, RRF)


@pytest.mark.parametrize(
    ("n_queries", "decimals"), [(1, 2), (25, 2), (26, 3), (300, 3), (2_500, 3), (2_501, 4), (1_000_000, 4)]
)
def test_decimals_follow_the_number_of_queries(n_queries, decimals):
    """Two digits of the largest standard error of a mean in [0, 1], 0.5 / sqrt(n), but no more than four decimals."""
    assert count_decimals(n_queries) == decimals
    row = table_rows(shown(replace(LINE, n_queries=n_queries)))[0]
    assert row[3] == f"{0.1:+.{decimals}f} [{0.05:+.{decimals}f}, {0.15:+.{decimals}f}]"


def test_a_difference_that_rounds_to_nothing_keeps_a_digit():
    assert [signed(value, 3) for value in (0.0004, -0.0004, 0.0, 0.00002)] == [
        "+0.0004",
        "-0.0004",
        "0.000",
        "+2.0e-05",
    ]


@pytest.mark.parametrize(("test", "said"), [("randomization", 1), ("bootstrap-t", 0), ("t", 0), ("bootstrap", 0)])
def test_sign_flips_name_what_they_assume(test, said):
    text = shown(replace(LINE, test=test), replace(RRF, test=test))

    assert text.count("p by sign flips assumes that differences are symmetric about 0") == said


@pytest.mark.parametrize(
    ("test", "correction", "said"),
    [
        ("t", "holm", "p: t test, corrected among {} by Holm"),
        ("bootstrap", "bh", "p: bootstrap, corrected among {} by Benjamini-Hochberg"),
        ("randomization", "maxt", "p: sign flips, corrected among {} by max-T"),
        ("t", "none", "p: t test, not corrected"),
    ],
)
def test_the_test_the_correction_and_the_family_are_named(test, correction, said):
    family = "" if correction == "none" else "2 pairs x 2 measures x 1 slice on web (4 tests)"

    assert said.format(family) in shown(replace(LINE, test=test, correction=correction, family=family), width=300)


def test_families_of_one_measure_are_named_once():
    family = "2 pairs x 1 measure x 1 slice on web (2 tests)"
    line = replace(LINE, test="t", correction="holm", family=family)
    text = shown(line, replace(line, measure="ap"), width=300)

    assert text.count(f"p: t test, corrected among {family} by Holm, for each measure") == 1


def test_each_family_says_how_its_tests_are_made():
    primary, rest = "2 pairs on web (2 primary tests)", "2 pairs x 2 measures on web (6 exploratory tests)"
    lines = [replace(line, family=primary, test="bootstrap-t", role="primary") for line in (LINE, RRF)]
    others = [
        replace(line, measure="ap", family=rest, test="randomization", role="exploratory") for line in (LINE, RRF)
    ]
    sliced = [replace(line, measure="ndcg@10", slice="market=de") for line in others]
    text = " ".join(shown(*lines, *others).split())

    assert f"p and intervals: bootstrap-t, simultaneous over {primary}" in text
    assert f"exploratory p: sign flips, corrected among {rest}" in text  # the lines are a whole product
    assert "(6 exploratory tests, without the 2 primary)" not in text
    sliced += [replace(line, slice="market=de") for line in others]
    text = " ".join(shown(*lines, *others, *sliced).split())
    assert "(6 exploratory tests, without the 2 primary)" in text


def test_families_of_replicates_say_how_they_are_tested():
    primary, rest = "2 pairs on web (2 primary tests)", "2 pairs on web (2 exploratory tests)"
    own = replace(LINE, family=primary, test="variance components", role="primary")
    beside = replace(RRF, family=primary, test="bootstrap-t", role="primary")
    text = shown(own, replace(own, model="rrf"), width=300)
    assert f"p and intervals: variance components, by Bonferroni over {primary}" in text
    paired = replace(own, test="variance components of paired replicates")
    text = shown(paired, replace(own, model="rrf"), width=300)
    assert "variance components of paired replicates and variance components, by Bonferroni" in text
    text = shown(own, beside, width=300)
    assert f"bootstrap-t, simultaneous over {primary}; of models with replicates variance components, by Bonf" in text
    others = [replace(own, measure="ap"), replace(beside, test="t")]
    text = shown(beside, *(replace(line, family=rest, role="exploratory") for line in others), width=300)

    assert "exploratory p: variance components (of models with replicates) and t test, corrected among" in text


def test_sparse_differences_of_the_primary_family_say_how_they_are_made():
    family = "2 pairs on web (2 primary tests)"
    line = replace(LINE, family=family, test="bootstrap-t", correction="maxt", role="primary")
    said = "; p of 1 that few queries decide: sign flips, corrected likewise"

    assert said not in shown(line, width=300)
    sparse = replace(line, model="rrf", mark="sparse", test="randomization")
    assert f"bootstrap-t, simultaneous over {family} by max-T{said}" in shown(line, sparse, width=300)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.04996, "0.04996"), (0.0499996, "0.0499996"), (0.00999, "0.00999"), (0.0499, "0.0499"), (0.05, "0.0500")),
        *(
            (0.05001, "0.0500"),
            (0.12344, "0.1234"),
            (0.68498, "0.6850"),
            (0.024996, "0.024996"),
            (0.00004, "4e-05"),
            (None, ""),
        ),
    ],
)
def test_a_p_value_is_not_rounded_up_to_a_level(value, text):
    assert p_value(value) == text


def test_a_p_value_that_draws_cannot_go_below_is_an_upper_bound():
    least = 1 / 10_001
    found = [replace(LINE, p_value=p, p_corrected=2 * least, p_least=least) for p in (least, 2 * least)]
    exact = replace(LINE, p_value=least, p_corrected=least)

    assert [row[4] for row in table_rows(shown(*found, exact))] == ["0.0002", "0.0002", "0.0001"]
    found = [replace(line, p_corrected=None) for line in found]
    assert [row[4] for row in table_rows(shown(*found))] == ["≤.0001", "0.0002"]


@pytest.mark.parametrize("width", [40, 80])
def test_no_number_is_broken_on_a_narrow_terminal(width):
    assert "+0.100 [+0.050, +0.150]" in table_rows(shown(LINE, width=width))[0]


def test_a_narrow_terminal_goes_without_some_columns_and_says_so():
    long = replace(LINE, model="a-model-of-20-letters")
    wide, narrow = shown(long, width=140), shown(long, width=65)

    assert "without" not in wide
    (needed,) = re.findall(r"without win / tie / loss \(COLUMNS=(\d+) shows all\)", narrow)
    assert "without" not in shown(long, width=int(needed))
    assert "without" in shown(long, width=int(needed) - 1)
    assert "caution" not in wide
    assert "few decide" in shown(replace(long, mark="sparse"), width=140)


def test_no_name_steers_a_terminal():
    for name in ("\x1b[2Jdense", "\u202edense"):
        steered = shown(replace(LINE, model=name), replace(RRF, dataset=name), replace(LINE, baseline=name))
        assert name[0] not in steered


def test_zero_has_no_sign():
    assert signed(-0.0) == signed(0.0) == "0.0000"


@pytest.mark.parametrize(
    ("line", "drawn"),
    [
        (Interval(5, 2, 9), "  ├──●───┤ "),
        (Interval(0, 0, 10), "●─────────┤"),
        (Interval(5, 5, 5), "     ●     "),
        (Interval(7), "       ●   "),
        (Interval(None), "           "),
    ],
)
def test_an_interval_stands_where_its_ends_are(line, drawn):
    assert interval_bar(line, Scale(0, 10), 11) == drawn


def test_a_scale_holds_all_ends():
    scale = Scale.of([Interval(0.5, 0.4, 0.6), Interval(0.9), Interval(None)])

    assert (scale.low, scale.high) == (0.4, 0.9)
    assert scale_header(scale, 20) == "0.4000        0.9000"


def test_what_is_all_alike_stands_in_the_middle():
    assert interval_bar(Interval(3, 3, 3), Scale.of([Interval(3, 3, 3)]), 13) == "      ●      "
    assert Scale.of([]) == Scale.of([Interval(None)]) == Scale(0.0, 0.0)
