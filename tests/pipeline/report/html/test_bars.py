"""Interval bars, and what charts share."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rankledger.pipeline.report.html.blocks import Bars, bar_cell
from rankledger.pipeline.report.html.charts import cut, data, short
from rankledger.pipeline.report.tables import Interval, Scale
from tests.support.sample_page import compared, estimate


def test_an_interval_worked_by_hand():
    cell = bar_cell(Interval(1.0, 0.5, 1.5), Scale(0.0, 2.0), "text", "good")

    assert (cell.text, cell.tone, cell.bar) == ("text", "good", "--l:.25;--w:.5;--m:.5")


def test_what_lies_behind_differences():
    assert Bars(Scale(-1.0, 3.0), 0.4).ground == "--z:.25;--a:.15;--b:.2"


def test_without_an_interval_there_is_no_bar():
    assert bar_cell(Interval(0.5), Scale(0.0, 1.0), "").bar == ""


def test_the_scale_of_figures_ends_at_0_where_none_is_below():
    """Intervals of 0.5 ± 0.02 and 0.01 ± 0.01 span 0.52, a twentieth of which would reach below 0."""
    lines = [estimate("bm25", 0.5), estimate("dense", 0.01, ci_low=0.0, ci_high=0.02)]
    scale = Bars.of_estimates(map(Interval.of, lines)).scale

    assert (scale.low, scale.high, scale.text()) == (0.0, 0.546, "0.0000 to 0.5460")


def test_0_and_what_matters_are_on_the_scale_of_differences():
    scale = Bars.of_differences([Interval.of(compared("dense", 0.2))], 0.1).scale

    assert (round(scale.low, 6), round(scale.high, 6)) == (-0.116, 0.236)


@given(st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3).map(sorted), st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_a_bar_stays_in_its_cell(ends, low, length):
    lower, middle, upper = ends
    bar = bar_cell(Interval(middle, lower, upper), Scale(low, low + length), "").bar

    shares = re.fullmatch(r"--l:([\d.]+);--w:([\d.]+);--m:([\d.]+)", bar)
    assert shares is not None
    assert all(0 <= float(share) <= 1 for share in shares.groups())


def test_where_all_is_the_same_the_scale_reaches_a_half_to_either_side():
    same = Bars.of_differences([Interval.of(compared("dense", 0.0, ci_low=0.0, ci_high=0.0))], 0.0)

    assert (same.ends, same.ground) == ("-0.5000 to +0.5000", "--z:.5;--a:.5;--b:0")
    assert Bars.of_differences([], 0.0) == same
    assert Bars.of_estimates([]).scale.text() == "0.0000 to 0.5000"


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "+1", "-x", "@SUM(A1)"])
def test_no_name_is_a_formula(name):
    assert data(["model"], [[name]]) == f"model\n'{name}\n"


def test_numbers_are_whole():
    values = [-0.1, 1 / 3, 5e-324, 12, None]

    (row,) = list(csv.reader(io.StringIO(data(["a", "b", "c", "d", "e"], [values]))))[1:]

    assert [float(cell) if cell else None for cell in row] == values


def test_data_are_lines_of_what_can_be_seen():
    text = data(["model", "figure"], [["a\nb\u202e,c", 1], ["x" * 10_000, 2]])

    assert list(csv.reader(io.StringIO(text))) == [["model", "figure"], ["a\\nb\\u202e,c", "1"], ["x" * 199 + "…", "2"]]


@pytest.mark.parametrize("text", ["bm25", "x" * 10_000, "日本語" * 20, "e\u0301" * 40, "é" + "\u0301" * 10_000])
def test_short_text_fits(text):
    found = short(text, 12)

    assert cell_len(found) <= 12
    assert len(found) <= 24
    assert found == text if text == "bm25" else found.endswith("…")


def test_a_cut_is_said():
    assert cut(8, 1_200, "models") == ["8 of 1,200 models are drawn."]
    assert cut(8, 8, "models") == []
