"""The language rules keep their limits, and see a planted violation of each."""

import ast

import pytest

from tests.language import LIMITS, MEANINGS, check_guide, check_nodes, find_violations, main


def test_no_rule_is_broken_more_often_than_its_limit():
    places = find_violations()

    assert places.keys() == LIMITS.keys() == MEANINGS.keys()
    assert {rule: len(broken) for rule, broken in places.items() if len(broken) > LIMITS[rule]} == {}


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("class docstring", 'class TwoWords:\n    """What is read."""'),
        ("summary", 'def read_file():\n    """Read a file; it may be empty."""'),
        ("loose reference", 'def read_file():\n    """Return a size, or that of the folder."""'),
        ("loose word", 'def read_file():\n    """Return the least size."""'),
        ("function name", "def rows_of(): ..."),
        ("function name", "def _asked(): ..."),
        ("class name", "class Found: ..."),
        ("local name", "def read_file():\n    return [own for own in ()]"),
    ],
)
def test_a_planted_violation_is_seen(rule, source):
    assert [found for found, _, _ in check_nodes(ast.walk(ast.parse(source)))] == [rule]


def test_sentences_that_a_semicolon_or_a_colon_cuts():
    page = "One; two. Fine: Three.\n\n```sh\na; b\n```\n\n| a; b |\n\nBad: four.\n"

    assert [*check_guide(page)] == ["One; two.", "Bad: four."]


def test_the_places_of_a_rule_are_printed(monkeypatch, capsys):
    monkeypatch.setattr("tests.language.find_violations", lambda: {"summary": ["a.py:1 One; two."]})

    assert main(["summary"]) == int(LIMITS["summary"] < 1)
    assert capsys.readouterr().out == "a.py:1 One; two.\n"
