"""Compact letter display: worked by hand, and what holds of it whatever pairs are alike."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.report.effects import letter_display

ORDER = ("a1", "b2", "c3", "d4", "e5")


def pairs(*found: str) -> set[frozenset[str]]:
    """`ab bc` means that the first is like the second, and the second like the third."""
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
    """A letter stands for models each of which is like each, and letters begin with the first model."""
    assert list(letter_display(ORDER, pairs(*alike)).values()) == expected


def test_models_that_are_all_alike_share_one_letter():
    """Nothing is split where no two models differ."""
    assert set(letter_display(ORDER, {frozenset(pair) for pair in combinations(ORDER, 2)}).values()) == {"a"}


def test_beyond_26_letters_come_pairs_of_them():
    """Of 28 models that all differ the last two are aa and ab."""
    found = letter_display([f"m{number:02d}" for number in range(28)], set())

    assert [*found.values()][24:] == ["y", "z", "aa", "ab"]


@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.sampled_from([*combinations(range(7), 2)]))))
)
def test_two_models_share_a_letter_just_where_they_are_alike(drawn):
    """And no letter could be left out: the models of none are all among those of another."""
    n_models, drawn_pairs = drawn
    order = [f"m{number}" for number in range(n_models)]
    alike = {frozenset((f"m{a}", f"m{b}")) for a, b in drawn_pairs if a < n_models and b < n_models}

    found = letter_display(order, alike)

    for one, other in combinations(order, 2):
        assert bool(set(found[one]) & set(found[other])) == (frozenset((one, other)) in alike)
    sharing = [{model for model in order if letter in found[model]} for letter in set("".join(found.values()))]
    assert not any(one < other for one in sharing for other in sharing)
    assert all(found.values())
