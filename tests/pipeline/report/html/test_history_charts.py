"""The history of a figure, drawn."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rankledger.pipeline.history.history import Night, Series
from rankledger.pipeline.inference.changepoints import LevelChange
from rankledger.pipeline.record.manifest_parts import InputChange
from rankledger.pipeline.report.html.charts import Chart, nights, sparkline
from tests.pipeline.report.html.chart_contents import paths, rows, words


def night(number: int, estimate: float | None = 0.4, **changes: Any) -> Night:
    low, high = (None, None) if estimate is None else (estimate - 0.1, estimate + 0.1)
    plain = Night(
        f"2026-{number // 28 + 1:02}-{number % 28 + 1:02}", "id", estimate, low, high, 0.05, 9, "", None, "", None
    )
    return replace(plain, **changes)


def series(*shown: Night, steps: tuple[LevelChange, ...] = ()) -> Series:
    return Series("web", "bm25", shown, steps, 1.0, None)


def test_a_night_has_its_figure_and_interval():
    chart = nights(series(night(1)), "ap")

    interval, mark = paths(chart, stroke="var(--c1)")
    ((low, high),) = interval.lines
    ((at, _),) = mark.lines
    assert low[0] == high[0] == at[0]
    assert at[1] == pytest.approx((low[1] + high[1]) / 2, abs=0.1)
    assert chart.title == "ap of bm25 on web, 1 night"
    assert chart.text == "0.4000 [0.3000, 0.5000] on 2026-01-02. No step."


def test_levels_are_drawn_on_both_sides_of_a_step():
    step = LevelChange("2026-01-04", "2026-01-04", "2026-01-04", 2, 0.4, 0.6, 0.01)
    chart = nights(series(*(night(number) for number in range(3)), night(3, 0.6), night(4, 0.6), steps=(step,)), "ap")

    (levels,) = paths(chart, stroke="currentColor")
    before, after = levels.lines
    figures = [line[0] for line in paths(chart, stroke="var(--c1)")[1].lines]
    assert [sum(line[0][0] < x < line[1][0] for x, _ in figures) for line in (before, after)] == [3, 2]
    assert before[0][1] == figures[0][1]
    assert after[0][1] == figures[4][1]
    assert "Steps: +0.2000 on 2026-01-04." in chart.text


def test_a_step_that_may_be_drift_is_named_so_below_the_chart():
    step = LevelChange("2026-01-04", "2026-01-04", "2026-01-04", 1, 0.4, 0.6, 0.01, "step or drift")
    chart = nights(series(*(night(number) for number in range(4)), steps=(step,)), "ap")

    assert "Steps: +0.2000 on 2026-01-04 (step or drift)." in chart.text


def test_a_break_is_a_dashed_line_with_its_initials():
    changed = (InputChange("judgments", "a", "b"), InputChange("definition", "a", "b"))
    step = LevelChange("2026-01-04", "2026-01-04", "2026-01-04", 1, 0.4, 0.6, 0.01)
    chart = nights(
        series(
            night(0), night(1), night(2, breaks=changed), night(3, 0.6), night(4, breaks=changed[:1]), steps=(step,)
        ),
        "ap",
    )

    (broken,) = paths(chart, stroke="var(--muted)")
    figures = [line[0] for line in paths(chart, stroke="var(--c1)")[1].lines]
    place = broken.lines[0][0][0]
    assert "stroke-dasharray" in broken.style
    assert place == pytest.approx((figures[1][0] + figures[2][0]) / 2, abs=0.1)
    (levels,) = paths(chart, stroke="currentColor")
    assert levels.lines[0][0][0] > place
    assert levels.lines[1][1][0] < broken.lines[1][0][0]
    assert [found.at[0] for found in words(chart) if found.said == "JD"] == [place]
    assert "judgments on 2026-01-03, definition on 2026-01-03" in chart.text


def test_a_night_without_output_is_a_cross():
    chart = nights(series(night(0), night(1, None, failure="web.run is missing"), night(2)), "ap")

    (cross,) = paths(chart, stroke="var(--c2)")
    assert len(cross.lines) == 2
    assert len(paths(chart, stroke="var(--c1)")[1].lines) == 2
    assert chart.text.endswith("1 night without an evaluated output (crosses).")


def test_the_last_nights_are_drawn():
    step = LevelChange("2026-01-11", "2026-01-11", "2026-01-11", 9, 0.4, 0.6, 0.01)
    chart = nights(series(*(night(number) for number in range(150)), steps=(step,)), "ap")

    assert [row["night"] for row in rows(chart)] == [night(number).date for number in range(30, 150)]
    assert chart.text.endswith("No step. 120 of 150 nights are drawn.")
    assert not paths(chart, stroke="currentColor")


def test_dates_do_not_touch():
    chart = nights(series(*(night(number) for number in range(100))), "ap")

    across = sorted(found.at[0] for found in words(chart) if found.said.startswith("2026"))
    assert np.diff(across).min() >= 70
    assert night(99).date in {found.said for found in words(chart)}


def test_data_are_those_of_the_nights():
    chart = nights(series(night(0, 1 / 3), night(1, None)), "ap")

    first, second = rows(chart)
    assert (float(first["estimate"]), second["estimate"]) == (1 / 3, "")


def test_there_is_no_chart_without_a_figure():
    assert nights(series(*(night(number, None) for number in range(3))), "ap") is None


def spark(*shown: Night) -> Chart:
    return Chart("", sparkline(series(*shown)), "", "")


def test_a_sparkline_ends_with_a_mark_on_its_interval():
    chart = spark(night(0), night(1, 0.5), night(2, 0.45))

    line, mark = paths(chart, stroke="var(--c1)")
    ((first, second, last),) = line.lines
    assert second[1] < last[1] < first[1]
    assert mark.lines == ((last, last),)
    ((ends,),) = [path.lines for path in paths(chart, stroke="var(--muted)")]
    (low, high), at = [y for _, y in ends], {x for x, _ in ends}
    assert at == {last[0]}
    assert (low + high) / 2 == pytest.approx(last[1], abs=0.1)
    assert (low - high) / (first[1] - second[1]) == pytest.approx(2, abs=0.05)
    assert 'aria-label="3 nights: 0.4000 to 0.5000, last 0.4500"' in chart.svg


def test_a_sparkline_is_broken_where_figures_cannot_be_compared():
    change = (InputChange("judgments", "a", "b"),)
    shown = (night(0), night(1), night(2, breaks=change), night(3), night(4, None), night(5), night(6, None))

    lines = paths(spark(*shown), stroke="var(--c1)")[0].lines
    assert [len(line) for line in lines] == [2, 2, 2]
    assert lines[2][0] == lines[2][1]


def test_a_sparkline_has_the_last_thirty_nights():
    (long,), (short,) = (
        paths(spark(*(night(n) for n in range(n_nights))), stroke="var(--c1)")[0].lines for n_nights in (40, 2)
    )

    assert len(long) == 30
    assert long[-1] == short[-1]
    assert long[-2][0] == short[-2][0]
    assert sparkline(series(night(0, None))) == ""
