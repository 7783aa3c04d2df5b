"""The words of a chart and its data."""

from __future__ import annotations

import csv
import io

import pytest
from rich.cells import cell_len

from rankledger.pipeline.report.html.charts import cut, data, short


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "+1", "-x", "@SUM(A1)"])
def test_no_name_is_a_formula(name):
    """A text that begins with one of four signs is a formula to a spreadsheet, unless an apostrophe stands before."""
    assert data(["model"], [[name]]) == f"model\n'{name}\n"


def test_numbers_are_whole():
    """A negative number is no formula; each is read back as the very same double, and nothing stands for no figure."""
    values = [-0.1, 1 / 3, 5e-324, 12, None]

    (row,) = list(csv.reader(io.StringIO(data(["a", "b", "c", "d", "e"], [values]))))[1:]

    assert [float(cell) if cell else None for cell in row] == values


def test_data_are_lines_of_what_can_be_seen():
    """A name cannot begin a row of its own, turn the writing round, or fill a page: 200 letters are kept."""
    text = data(["model", "figure"], [["a\nb\u202e,c", 1], ["x" * 10_000, 2]])

    assert list(csv.reader(io.StringIO(text))) == [["model", "figure"], ["a\\nb\\u202e,c", "1"], ["x" * 199 + "…", "2"]]


@pytest.mark.parametrize("text", ["bm25", "x" * 10_000, "日本語" * 20, "e\u0301" * 40, "é" + "\u0301" * 10_000])
def test_short_text_fits(text):
    """Letters that take two places, or none, are counted as such; what fits is left as it is, and a cut is shown."""
    found = short(text, 12)

    assert cell_len(found) <= 12
    assert len(found) <= 24
    assert found == text if text == "bm25" else found.endswith("…")


def test_a_cut_is_said():
    """Only where not all is shown."""
    assert cut(8, 1_200, "models") == ["8 of 1,200 models are drawn."]
    assert cut(8, 8, "models") == []
