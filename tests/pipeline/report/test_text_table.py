"""Tables and lines as text, within a width or a number of bytes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from rankledger.pipeline.report.text_table import ByteBudget, TerminalText, n_bytes, short_sentence
from rankledger.pipeline.report.text_table import Table as OurTable


def of_columns(*headers: str) -> Table:
    table = Table(title="a title")
    for header in headers:
        table.add_column(header, no_wrap=True, min_width=len(header))
    return table


def test_lines_are_left_for_the_terminal_to_wrap():
    text = TerminalText(width=10)
    text.add("a line of more than ten columns", "", "another")

    assert str(text) == "a line of more than ten columns\n\nanother\n"


def test_what_would_steer_the_terminal_is_spelt_out():
    text = TerminalText(width=80, colour=True)
    text.add("\x07\x1b[2J[bold]bm25[/bold]\n")

    assert str(text) == "\\x07\\x1b[2J[bold]bm25[/bold]\\n\n"


def test_a_table_that_needs_more_columns_gets_them():
    text = TerminalText(width=12)
    text.add_table(of_columns("estimates", "intervals"))

    lines = str(text).splitlines()
    assert "estimates" in str(text)
    assert "intervals" in str(text)
    assert lines == [line.rstrip() for line in lines]


@pytest.mark.parametrize("colour", [True, False])
def test_colours_are_written_where_they_are_wanted(monkeypatch, colour):
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = TerminalText(width=80, colour=colour)
    text.add("passed", style="bold green")

    assert ("\x1b[" in str(text)) is colour


@pytest.mark.parametrize("width", [40, 100])
def test_a_long_table_looks_as_a_short_one_does(monkeypatch, width):
    rows = [(f"évaluation {number}", str(number), "日本" * (number % 3), "pass") for number in range(300)]
    table = OurTable.of_texts("all", ("evaluation", "size", "owner", "gates"), rows, words=("owner",), unbroken="gates")
    long, short = (TerminalText(width=width) for _ in range(2))

    long.add_table(table)
    monkeypatch.setattr(OurTable, "draw_long", lambda *_: [])
    short.add_table(table)

    assert str(long) == str(short)


def test_columns_are_those_that_a_table_takes_where_there_is_room():
    text = TerminalText(width=200)
    table = of_columns("estimates", "intervals")
    text.add_table(table)

    assert text.columns(table) == max(map(len, str(text).splitlines()))


def test_a_sentence_is_cut_behind_a_word():
    assert short_sentence("rr of bm25 dropped, by far", 22) == "rr of bm25 dropped…"
    assert short_sentence("rr of bm25", 10) == "rr of bm25"
    assert short_sentence("x" * 30, 10) == f"{'x' * 9}…"


LINES = st.lists(st.text(alphabet="aé文 |", max_size=200), max_size=60)


@given(st.integers(0, 3_000), LINES, LINES, st.integers(0, 60))
def test_no_text_outgrows_its_room(most, head, rows, n_rows):
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
    budget = ByteBudget(10)

    assert not budget.add("abcd", "abcde", reserve=0)
    assert budget.add("abcd", "abcd", reserve=0)
    assert (budget.lines, budget.left) == (["abcd", "abcd"], 0)
    assert n_bytes(["文"]) == 4
