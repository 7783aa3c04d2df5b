"""Text of a limited size: lines are whole, and what is left out is counted."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.report.text_table import ByteBudget, n_bytes

LINES = st.lists(st.text(alphabet="aé文 |", max_size=200), max_size=60)


@given(st.integers(0, 3_000), LINES, LINES, st.integers(0, 60))
def test_no_text_outgrows_its_room(most, head, rows, n_rows):
    """Whatever is put in, the lines fit, stand whole and in order, and shown and counted rows are all there are."""
    budget = ByteBudget(most)
    budget.add(*head)
    before = len(budget.lines)
    budget.add_rows(["head"], rows, file="a.csv", most=n_rows)
    text = "".join(f"{line}\n" for line in budget.lines)

    assert len(text.encode()) == most - budget.left <= most
    assert budget.lines[:before] in ([], head)
    shown = [line for line in budget.lines[before:] if line != "head"]
    left = re.search(r"^([\d,]+) more in a\.csv\.$", text, re.MULTILINE)
    if budget.lines[before : before + 1] == ["head"]:  # there is room to say how many are left out
        n_shown = len(rows) - (int(left[1]) if left else 0)
        assert n_shown <= n_rows
        assert shown[:n_shown] == rows[:n_shown]


def test_lines_are_put_in_together_or_not_at_all():
    """Of 10 bytes two lines of four letters take all, with a byte each for the end; one letter more does not fit."""
    budget = ByteBudget(10)

    assert not budget.add("abcd", "abcde", reserve=0)
    assert budget.add("abcd", "abcd", reserve=0)
    assert (budget.lines, budget.left) == (["abcd", "abcd"], 0)
    assert n_bytes(["文"]) == 4
