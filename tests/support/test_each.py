"""Tests over many cases run them all, and say which one failed."""

import pytest

from tests.support.each import each


@pytest.fixture
def seen() -> list[int]:
    return []


@pytest.mark.parametrize("twice", [False, True])
@each("case", [3, 1, 2])
def test_every_case_is_run_with_fixtures_and_other_parameters(case, seen, twice):
    seen.append(case)
    assert seen == [3, 1, 2][: len(seen)]
    assert twice in (False, True)


def test_a_failure_names_its_case():
    @each("case", {"the first": 0, "the second": 1})
    def fails(case: int) -> None:
        assert case == 0

    with pytest.raises(AssertionError) as error:
        fails()
    assert error.value.__notes__ == ["case: the second"]
    with pytest.raises(AssertionError):
        each("case", [])
