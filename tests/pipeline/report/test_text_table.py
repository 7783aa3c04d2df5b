"""What is gathered for a terminal: lines that it wraps itself, tables that are never cut, colours only where wanted."""

from __future__ import annotations

import pytest
from rich.table import Table

from rankledger.pipeline.report.text_table import TerminalText, short_sentence


def of_columns(*headers: str) -> Table:
    table = Table(title="a title")
    for header in headers:
        table.add_column(header, no_wrap=True, min_width=len(header))
    return table


def test_lines_are_left_for_the_terminal_to_wrap():
    """A line that is longer than the terminal is wide stays one, so that it can be copied."""
    text = TerminalText(width=10)
    text.add("a line of more than ten columns", "", "another")

    assert str(text) == "a line of more than ten columns\n\nanother\n"


def test_what_would_steer_the_terminal_is_spelt_out():
    """A name that rings, clears the text or has rich's markup does none of it."""
    text = TerminalText(width=80, colour=True)
    text.add("\x07\x1b[2J[bold]bm25[/bold]\n")

    assert str(text) == "\\x07\\x1b[2J[bold]bm25[/bold]\\n\n"


def test_a_table_that_needs_more_columns_gets_them():
    """It is wider than the terminal rather than without its last column; titles leave no spaces at the ends."""
    text = TerminalText(width=12)
    text.add_table(of_columns("estimates", "intervals"))

    lines = str(text).splitlines()
    assert "estimates" in str(text)
    assert "intervals" in str(text)
    assert lines == [line.rstrip() for line in lines]


@pytest.mark.parametrize("colour", [True, False])
def test_colours_are_written_where_they_are_wanted(monkeypatch, colour):
    """Whoever asks decides, not the variables of the terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = TerminalText(width=80, colour=colour)
    text.add("passed", style="bold green")

    assert ("\x1b[" in str(text)) is colour


def test_columns_are_those_that_a_table_takes_where_there_is_room():
    """Its widest line, by its own drawing on a wide terminal."""
    text = TerminalText(width=200)
    table = of_columns("estimates", "intervals")
    text.add_table(table)

    assert text.columns(table) == max(map(len, str(text).splitlines()))


def test_a_sentence_is_cut_behind_a_word():
    """Within as many characters as a name is; one without a blank is cut in it."""
    assert short_sentence("rr of bm25 dropped, by far", 22) == "rr of bm25 dropped…"
    assert short_sentence("rr of bm25", 10) == "rr of bm25"
    assert short_sentence("x" * 30, 10) == f"{'x' * 9}…"
