"""Differences with their intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rankledger.pipeline.report.effects import effect_label
from rankledger.pipeline.report.html.differences import forest_chart, slice_chart
from rankledger.pipeline.types.results import Comparison
from tests.pipeline.report.html.chart_contents import paths, rows, words

BETTER, WORSE, OPEN = "var(--c1)", "var(--c2)", "var(--muted)"


def line(model: str, difference: float | None, half: float = 0.01, **changes: Any) -> Comparison:
    low, high = (None, None) if difference is None else (difference - half, difference + half)
    figures = (0.5, 0.4, difference, low, high, 0.01, 0.01, 0.02)
    plain = Comparison("web", "all", "ndcg@10", model, "bm25", *figures, "", 0.1, 9, 1, 2, 0.1, 100, 100)
    return replace(plain, **changes)


def test_intervals_lie_on_one_scale():
    """0.1 ± 0.05 and -0.1 ± 0.05: from the line at 0 the ends are at 0.05, 0.15, -0.15 and -0.05 of the same unit."""
    chart = forest_chart([line("a", 0.1, 0.05), line("b", -0.1, 0.05)])

    (zero,) = paths(chart, stroke="currentColor")
    ((origin, _), _) = zero.lines[0]
    ends = [
        end[0] - origin
        for colour in (BETTER, WORSE)
        for end in paths(chart, stroke=colour, stroke_width="2")[0].lines[0]
    ]
    assert np.array(ends) / ends[1] * 0.15 == pytest.approx(
        [0.05, 0.15, -0.15, -0.05], abs=0.0003
    )  # a tenth of a pixel


def test_the_greatest_difference_stands_first():
    """Whatever the order of the lines, and in the data too; the figures of both ends are in the text."""
    chart = forest_chart([line("b", -0.02), line("c", 0.005), line("a", 0.03)])

    assert [row["model"] for row in rows(chart)] == ["a", "c", "b"]
    named = {found.said: found.at[1] for found in words(chart)}
    assert named["a"] < named["c"] < named["b"]
    assert chart.title == "Difference from bm25 by ndcg@10 on web"
    assert chart.text == (
        "3 differences: 1 better, 1 worse, 1 unclear. "
        "From a +0.0300 [+0.0200, +0.0400] to b -0.0200 [-0.0300, -0.0100]."
    )


@pytest.mark.parametrize(
    ("difference", "half", "colour", "word"),
    [
        (0.03, 0.01, BETTER, "better"),
        (-0.03, 0.01, WORSE, "worse"),
        (0.03, 0.026, OPEN, "unclear"),
        (0.001, 0.003, OPEN, "no practical difference"),
    ],
)
def test_a_row_has_the_colour_of_its_word(difference, half, colour, word):
    """What the page calls better or worse is drawn so, against the least difference that matters, 0.005."""
    found = line("a", difference, half)

    (drawn,) = paths(forest_chart([found], 0.005), stroke_width="2")

    assert drawn.style["stroke"] == colour
    assert effect_label(found, {"ndcg@10": 0.005}) == word


@pytest.mark.parametrize("changes", [{"mark": "sparse"}, {"n_clusters": 29}])
def test_what_is_not_judged_is_dashed(changes):
    """An interval of too few queries is neither better nor worse, wherever it lies."""
    chart = forest_chart([line("a", 0.1, **changes)])

    (drawn,) = paths(chart, stroke_width="2")
    assert drawn.style["stroke"] == OPEN
    assert "stroke-dasharray" in drawn.style
    assert chart.text == "a +0.1000 [+0.0900, +0.1100], unclear. Dotted: too few queries to judge by."


def test_what_does_not_matter_is_a_band():
    """It reaches as far to the left of 0 as to the right; the text says how far; without the number there is none."""
    lines = [line("a", 0.03)]
    chart = forest_chart(lines, 0.005)

    (band,) = paths(chart, fill="var(--band)")
    left, right = (pick(x for x, _ in band.lines[0]) for pick in (min, max))
    (zero,) = paths(chart, stroke="currentColor")
    assert (left + right) / 2 == pytest.approx(zero.lines[0][0][0], abs=0.1)
    assert "less than 0.005" in chart.text
    assert not paths(forest_chart(lines), fill="var(--band)")


def test_a_difference_without_interval_is_a_mark():
    """There is nothing to draw a line from, and nothing of it in the text."""
    chart = forest_chart([line("a", 0.1, ci_low=None, ci_high=None)])

    assert not paths(chart, stroke_width="2")
    assert paths(chart, stroke=OPEN)
    assert chart.text == "a +0.1000, unclear."


def test_rows_are_pairs_where_baselines_differ():
    """All pairs were compared: a row has both names, with a minus between them."""
    chart = forest_chart([line("c", 0.1), line("c", 0.05, baseline="a")])

    assert {"c − bm25", "c − a"} <= {found.said for found in words(chart)}
    assert chart.title == "Difference by ndcg@10 on web"


def test_the_greatest_forty_are_drawn():
    """Of 45 the five that differ least are left out, and that is said."""
    chart = forest_chart([line(f"m{number}", number / 100 * (-1) ** number) for number in range(45)])

    assert {row["model"] for row in rows(chart)} == {f"m{number}" for number in range(5, 45)}
    assert "40 of 45 differences are drawn." in chart.text


def test_unknown_differences_are_left_out():
    """A line without a difference has no row; if there is none at all there is no chart."""
    assert [row["model"] for row in rows(forest_chart([line("a", None), line("b", 0.1)]))] == ["b"]
    assert forest_chart([line("a", None)]) is None
    assert forest_chart([]) is None


def test_data_are_those_of_the_record():
    """Every number is the very double of the comparison."""
    found = line("a", 1 / 3, 1 / 7)

    (row,) = rows(forest_chart([found]))

    assert [float(row[name]) for name in ("difference", "ci_low", "ci_high")] == [
        found.difference,
        found.ci_low,
        found.ci_high,
    ]


def of_slices(*models: str) -> list[Comparison]:
    return [
        line(model, (number + 1) / 100, 0.02, slice=name)
        for number, model in enumerate(models)
        for name in ("all", "language=de", "language=en")
    ]


def test_slices_stand_in_a_panel_of_each_model():
    """Three models make three panels, two in a row, with their names above; slices are named beside the left ones."""
    chart = slice_chart(of_slices("a", "b", "c"))

    at = {said: [found.at for found in words(chart) if found.said == said] for said in ("a", "b", "c", "language=de")}
    ((a, b, c),) = ([at[name][0] for name in "abc"],)
    assert a[1] == b[1] < c[1]
    assert a[0] == c[0] < b[0]
    assert len(at["language=de"]) == 2
    assert len(rows(chart)) == 9


def test_panels_have_one_scale():
    """The same difference is as far from 0 in every panel, though one of the models has much greater ones."""
    chart = slice_chart([*of_slices("a", "b"), line("b", 0.5, 0.02, slice="language=fr")])

    zeros = [path.lines[0][0][0] for path in paths(chart, stroke="currentColor")]
    drawn = [path.lines for path in paths(chart, stroke_width="2", stroke=OPEN)]
    lengths = {round(high[0] - low[0], 1) for lines in drawn for low, high in lines}
    assert len(zeros) == 2
    assert max(lengths) - min(lengths) <= 0.2  # all intervals are 0.04 long


def test_slices_alone_are_counted():
    """What holds of all queries is drawn beside, and not one of the slices."""
    chart = slice_chart(of_slices("a"))

    assert chart.text.startswith("2 differences: 2 unclear.")
    assert chart.title == "Difference from bm25 by ndcg@10 on web, by slice"


def test_eight_panels_and_twenty_four_slices_are_drawn():
    """More would not be read; how many there are is said."""
    lines = [line(f"m{number}", 0.1, slice=f"user={user}") for number in range(10) for user in range(30)]

    chart = slice_chart(lines)

    assert len(paths(chart, stroke="currentColor")) == 8
    assert len(rows(chart)) == 8 * 24
    assert chart.text.endswith("24 of 30 slices are drawn. 8 of 10 pairs of models are drawn.")


def test_there_is_no_chart_without_slices():
    """Neither where only all queries were compared, nor where no slice has a difference."""
    assert slice_chart([line("a", 0.1)]) is None
    assert slice_chart([line("a", 0.1), line("a", None, slice="language=de")]) is None
