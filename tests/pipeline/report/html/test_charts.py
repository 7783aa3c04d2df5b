"""Charts of bars, curves, differences and history."""

import csv
import io
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rankledger.pipeline.history.history import Night, Series
from rankledger.pipeline.inference.changepoints import LevelChange
from rankledger.pipeline.inference.tables import CurvePoint, Estimate, PairedScores, QueryChange
from rankledger.pipeline.record.manifest_parts import InputChange
from rankledger.pipeline.report.html.blocks import Bars, bar_cell
from rankledger.pipeline.report.html.charts import (
    Chart,
    by_cutoff,
    cut,
    data,
    draw_plot,
    judged_by_rank,
    nights,
    precision_recall,
    short,
    sparkline,
    trade_off,
)
from rankledger.pipeline.report.html.differences import query_chart
from rankledger.pipeline.report.tables import Interval, Scale
from tests.pipeline.report.html.chart_contents import Drawn, paths, rows, words
from tests.support.sample_page import compared, estimate, page


def test_an_interval_worked_by_hand():
    cell = bar_cell(Interval(1.0, 0.5, 1.5), Scale(0.0, 2.0), "text", "good")

    assert (cell.text, cell.tone, cell.bar) == ("text", "good", "--l:.25;--w:.5;--m:.5")
    assert bar_cell(Interval(0.5), Scale(0.0, 1.0), "").bar == ""
    assert Bars(Scale(-1.0, 3.0), 0.4).ground == "--z:.25;--a:.15;--b:.2"


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


def plot(better: tuple[str, str], **models: tuple[float | None, float]) -> str:
    values = {model: (Interval(across), Interval(up)) for model, (across, up) in models.items()}
    return draw_plot("trade-off-web", ("cost", better[0]), ("ndcg@10", better[1]), values)


def marks(drawn: str) -> dict[str, tuple[str, str]]:
    found = re.findall('<div class="mark(.*?)" style="(.*?)"><bdi>(.*?)</bdi></div>', drawn)
    return {model: (classes, place) for classes, place, model in found}


def front(drawn: str) -> list[str]:
    return [model for model, (classes, _) in marks(drawn).items() if "front" in classes]


def test_a_cost_stands_across_if_there_is_one():
    with_costs = trade_off(page(), "web")
    without = trade_off(page({"external_metrics": {}}), "web")

    assert "Trade-off: ndcg@10 up, latency_ms across" in str(with_costs)
    assert "Trade-off: ndcg@10 up, ap across" in str(without)


@pytest.mark.parametrize("lines", [(estimate("bm25", 0.5),), (estimate("bm25", 0.5), estimate("dense", 0.4))])
def test_a_plot_needs_two_models_and_two_axes(lines):
    assert trade_off(page({"external_metrics": {}}, estimates=lines, comparison_lines=()), "web") is None


def test_a_model_is_beaten_by_one_that_is_no_worse_on_either_axis():
    found = plot(("lower", "higher"), cheap=(1, 0.5), good=(2, 0.6), dear=(3, 0.6), twin=(2, 0.6))

    assert front(found) == ["cheap", "good", "twin"]
    assert "Not beaten on both: cheap, good, twin." in found
    assert front(plot(("higher", "higher"), cheap=(1, 0.5), good=(2, 0.6), dear=(3, 0.6))) == ["dear"]


def test_marks_stand_on_scales_with_a_margin():
    drawn = plot(("lower", "higher"), a=(1, 0.0), b=(2, 0.5), c=(3, 1.0), d=(None, 0.7))
    found = marks(drawn)

    assert re.findall('<span class="[xy][01]">(.*?)</span>', drawn) == ["0.8400", "3.1600", "-0.0800", "1.0800"]
    assert [*found] == ["a", "b", "c"]
    assert found["b"][1].startswith("--x:0.500;--xl:0.500;--xw:0.000;--y:0.500")
    assert {model: classes for model, (classes, _) in found.items()} == {
        "a": " front",
        "b": " front",
        "c": " front right",
    }


def test_a_name_that_would_lie_on_another_is_covered():
    found = marks(plot(("lower", "higher"), beaten=(2.0, 0.5), best=(1.99, 0.501), far=(1.0, 0.0)))

    assert [model for model, (classes, _) in found.items() if "covered" in classes] == ["beaten"]


DOTS = {"stroke": "var(--c1)", "fill": "none"}


def pair(before: Any, after: Any, *, n_changes: int = 0, lower: bool = False) -> PairedScores:
    before, after = np.array(before, dtype=np.float64), np.array(after, dtype=np.float64)
    ids = np.array([f"q{number}" for number in range(len(before))], dtype=object)
    change = before - after if lower else after - before
    first = np.argsort(-np.abs(np.nan_to_num(change)), kind="stable")[:n_changes]
    largest_changes = tuple(
        QueryChange("web", "new", "old", "ap", ids[q], float(before[q]), float(after[q]), float(change[q]), None)
        for q in first
    )
    return PairedScores("web", "new", "old", "ap", ids, before, after, change, largest_changes)


def random_pair(n_queries: int, n_changes: int = 0) -> PairedScores:
    rng = np.random.default_rng(n_queries)
    before = rng.random(n_queries)
    after = np.where(rng.random(n_queries) < 0.5, before, rng.random(n_queries))
    after[rng.random(n_queries) < 0.1] = np.nan
    return pair(before, after, n_changes=n_changes)


def dots(drawn: list[Drawn]) -> list[tuple[float, float]]:
    return [line[0] for path in drawn for line in path.lines if line[0] == line[1]]


def test_a_dot_stands_at_its_scores():
    left, between, right = sorted(dots(paths(query_chart(pair([0, 1, 0.25], [0, 1, 0.75])), **DOTS)))

    side = right[0] - left[0]
    assert left[1] - right[1] == pytest.approx(side, abs=0.1)
    assert ((between[0] - left[0]) / side, (left[1] - between[1]) / side) == pytest.approx((0.25, 0.75), abs=0.001)


def test_no_dot_is_lost():
    scores = np.linspace(0, 1, 400)

    assert len(dots(paths(query_chart(pair(scores, scores)), **DOTS))) == 400


def test_queries_with_the_same_scores_are_one_larger_dot():
    chart = query_chart(pair([0, 0, 0, 0, 0, 1], [0.5] * 5 + [1]))

    large, small = sorted(paths(chart, **DOTS), key=lambda path: -float(path.style["stroke-width"]))
    assert [len(path.lines) for path in (large, small)] == [1, 1]
    assert float(large.style["stroke-width"]) > float(small.style["stroke-width"])
    assert len(rows(chart)) == 6


def test_data_are_the_scores():
    scores = random_pair(200)

    found = {row["query_id"]: (float(row["before"]), float(row["after"])) for row in rows(query_chart(scores))}

    zipped = zip(scores.query_ids, scores.before, scores.after, strict=True)
    assert found == {query: (before, after) for query, before, after in zipped if not np.isnan(after)}


def test_five_hundred_of_many_queries_are_drawn():
    scores = random_pair(10_000, n_changes=20)

    chart = query_chart(scores)

    drawn = [row["query_id"] for row in rows(chart)]
    n_defined = int((~np.isnan(scores.change)).sum())
    assert len(drawn) == len(set(drawn)) == 500
    assert {query.query_id for query in scores.largest_changes} <= set(drawn)
    assert f"500 of {n_defined:,} queries are drawn." in chart.text
    equal = np.isin(scores.query_ids, drawn) & (scores.change == 0)
    assert equal.sum() / 500 == pytest.approx((scores.change == 0).sum() / n_defined, abs=0.05)


def test_the_five_largest_changes_are_named():
    chart = query_chart(pair(np.zeros(9), np.arange(9) / 10, n_changes=9))

    assert [found.said for found in words(chart)][-5:] == ["1", "2", "3", "4", "5"]
    assert "Largest changes: (1) q8 0.0000 to 0.8000, +0.8000; (2) q7 " in chart.text
    assert "(5) q4 " in chart.text
    assert "q3" not in chart.text


def test_queries_that_moved_alike_have_their_numbers_side_by_side():
    chart = query_chart(pair([1, 1, 1, 0, 0.5], [0, 0, 0, 1, 0.5], n_changes=4))

    assert [found.said for found in words(chart)][-2:] == ["1, 2, 3", "4"]


@pytest.mark.parametrize(("lower", "above"), [(False, "better"), (True, "worse")])
def test_the_side_on_which_a_model_is_better_is_named(lower, above):
    heights = {found.said: found.at[1] for found in words(query_chart(pair([0, 0.5], [0.4, 0.8], lower=lower)))}

    assert min(("better", "worse"), key=lambda side: heights[side]) == above


def test_queries_are_counted_as_comparisons_count_them():
    scores = pair([0.5, 0.5, 0.5, 0.1 + 0.2, 0, np.nan], [0.6, 0.4, 0.5, 0.3, 0, 1])

    assert query_chart(scores).text.startswith("5 queries: 1 better, 3 equal, 1 worse.")


@pytest.mark.parametrize("scores", [pair([], []), pair([np.nan, 1], [1, np.nan])])
def test_there_is_no_chart_without_a_query(scores):
    assert query_chart(scores) is None


def night(number: int, estimate: float | None = 0.4, **changes: Any) -> Night:
    low, high = (None, None) if estimate is None else (estimate - 0.1, estimate + 0.1)
    plain = Night(
        f"2026-{number // 28 + 1:02}-{number % 28 + 1:02}", "id", estimate, low, high, 0.05, 9, "", None, "", None
    )
    return replace(plain, **changes)


def series(*shown: Night, steps: tuple[LevelChange, ...] = ()) -> Series:
    return Series(steps, 1.0, None, dataset="web", model="bm25", nights=shown)


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


EIGHT = [f"var(--c{number})" for number in range(1, 9)]


def precision(model: str, *figures: float | None, dataset: str = "web") -> list[CurvePoint]:
    return [
        CurvePoint(
            dataset,
            model,
            "precision",
            tenths / 10,
            figure,
            *((None, None) if figure is None else (figure - 0.05, figure + 0.05)),
            50,
        )
        for tenths, figure in enumerate(figures)
    ]


def at_cutoff(measure: str, estimate: float | None, model: str = "bm25", slice: str = "all") -> Estimate:
    low, high = (None, None) if estimate is None else (estimate - 0.05, estimate + 0.05)
    return Estimate("web", model, slice, measure, estimate, low, high, 0.02, 50, 0, 0)


def test_a_line_goes_through_its_figures():
    """From 0.8 to 0.4 to 0.4 at even steps: it falls on the first half alone, by half of its height above 0."""
    chart = precision_recall("web", precision("bm25", 0.8, 0.4, 0.4), ["bm25"])

    (sample, drawn) = paths(chart, stroke="var(--c1)", stroke_width="1.5", fill="none")[::-1]
    (first, second, third) = drawn.lines[0]
    bottom = max(y for path in paths(chart, stroke="var(--rule)") for line in path.lines for _, y in line)
    assert len(sample.lines[0]) == 3
    assert second[0] - first[0] == pytest.approx(third[0] - second[0], abs=0.1)
    assert second[1] == third[1]
    assert bottom - second[1] == pytest.approx((bottom - first[1]) / 2, abs=0.1)


def test_a_band_reaches_to_both_ends():
    chart = precision_recall("web", precision("bm25", 0.8, 0.4), ["bm25"])

    (band,) = paths(chart, fill="var(--c1)", opacity="0.14")
    (low, low_next, high_next, high) = band.lines[0][:4]
    assert low[0] == high[0] < low_next[0] == high_next[0]
    assert low[1] - high[1] == pytest.approx(low_next[1] - high_next[1], abs=0.1)
    assert low[1] > high[1]


def test_a_missing_figure_breaks_the_line():
    chart = precision_recall("web", precision("bm25", 0.8, 0.6, None, 0.4, 0.2), ["bm25"])

    drawn = [path for path in paths(chart, stroke="var(--c1)", stroke_width="1.5") if len(path.lines) == 2]
    assert [len(line) for line in drawn[0].lines] == [2, 2]
    (marks, _) = paths(chart, stroke="var(--c1)", stroke_width="6")
    assert len(marks.lines) == 4


def test_models_keep_their_looks():
    chart = precision_recall("web", precision("splade", 0.8, 0.4), ["bm25", "splade"])

    assert not paths(chart, stroke="var(--c1)")
    assert paths(chart, stroke="var(--c2)")
    assert {"splade"} == {found.said for found in words(chart)} & {"splade", "bm25"}


def test_a_line_ends_where_few_queries_are_left():
    def points(model: str, *counts: int) -> list[CurvePoint]:
        return [CurvePoint("web", model, "judged", 2.0**k, 0.5, None, None, n) for k, n in enumerate(counts)]

    chart = judged_by_rank("web", [*points("bm25", 50, 30, 29), *points("dense", 50, 50, 40)], ["bm25", "dense"])
    alone = judged_by_rank("web", points("small", 20, 10, 5), ["small"])

    for found, colour, n_drawn in ((chart, 1, 2), (chart, 2, 3), (alone, 1, 3)):
        (_, drawn) = paths(found, stroke=f"var(--c{colour})", stroke_width="1.5", fill="none")[::-1][:2]
        assert len(drawn.lines[0]) == n_drawn
    assert "Beyond these ranks fewer than 30 queries are left: bm25 at 2 (n = 30)." in chart.text
    assert len(rows(chart)) == 6
    assert "Beyond" not in alone.text


def test_no_two_models_look_alike():
    models = [f"m{number}" for number in range(8)]
    chart = precision_recall("web", [p for model in models for p in precision(model, 0.8, 0.4)], models)

    shapes, dashes = [], []
    for colour in EIGHT:
        drawn = paths(chart, stroke=colour)
        lines = [path for path in drawn if len(path.lines) == 1 and path.style["stroke-width"] == "1.5"]
        lines = [path for path in lines if path.style["fill"] == "none"]
        curve, sample = (path.style.get("stroke-dasharray") for path in lines)
        of_curve, of_sample = ({_shape(line) for line in path.lines} for path in drawn if path not in lines)
        assert (curve, of_curve) == (sample, of_sample)
        shapes.append(frozenset(of_curve))
        dashes.append(curve)
    assert len(set(shapes)) == 8
    assert len(set(dashes[:4])) == len(set(dashes[4:])) == 4


def _shape(line: tuple[tuple[float, float], ...]) -> tuple[float, ...]:
    return tuple(np.diff(np.array(line), axis=0).round(0).ravel() + 0.0)


def test_the_first_eight_models_are_drawn():
    models = [f"m{number}" for number in range(11)]

    chart = precision_recall("web", [p for model in models for p in precision(model, 0.8, 0.4)], models)

    assert {row["model"] for row in rows(chart)} == set(models[:8])
    assert chart.text.endswith("8 of 11 models are drawn.")


def test_data_are_the_points():
    own = [*precision("splade", 1 / 3, 1 / 7), *precision("bm25", 0.5, None)]
    judged = [CurvePoint("web", "bm25", "judged", 1.0, 0.9, None, None, 50)]
    chart = precision_recall("web", [*own, *precision("bm25", 0.1, dataset="news"), *judged], ["bm25", "splade"])

    found = [
        (row["model"], *(float(row[name]) if row[name] else None for name in list(row)[1:])) for row in rows(chart)
    ]
    assert found == [(p.model, p.at, p.estimate, p.ci_low, p.ci_high, p.n_queries) for p in [*own[2:], *own[:2]]]


def test_the_text_has_the_figures_of_three_places():
    chart = precision_recall("web", precision("bm25", 0.9, 0.8, 0.7, 0.2, 1 / 3), ["bm25"])

    assert chart.text == "At recall 0, 0.2 and 0.4: bm25 0.9000, 0.7000, 0.3333."


def test_ranks_multiply():
    points = [CurvePoint("web", "bm25", "judged", at, 1 / at, None, None, 50) for at in (1.0, 10.0, 100.0)]
    chart = judged_by_rank("web", points, ["bm25"])

    drawn, _ = paths(chart, stroke="var(--c1)", stroke_width="1.5")
    (first, second, third) = (x for x, _ in drawn.lines[0])
    assert second - first == pytest.approx(third - second, abs=0.1)
    assert not paths(chart, opacity="0.14")
    assert chart.text == "At rank 1, 10 and 100: bm25 1.0000, 0.1000, 0.0100."


def test_there_is_no_curve_without_figures():
    assert precision_recall("web", precision("bm25", 0.5, dataset="news"), ["bm25"]) is None
    assert precision_recall("web", precision("other", 0.5), ["bm25"]) is None
    assert precision_recall("web", precision("bm25", None, None), ["bm25"]) is None
    assert judged_by_rank("web", [], []) is None


def test_zero_everywhere_is_drawn():
    flat = [CurvePoint("web", "bm25", "precision", at, 0.0, 0.0, 0.0, 50) for at in (0.0, 1.0)]

    (drawn, _) = paths(precision_recall("web", flat, ["bm25"]), stroke="var(--c1)", stroke_width="1.5")

    assert len({y for _, y in drawn.lines[0]}) == 1


def test_measures_that_differ_in_their_cutoff_make_a_chart():
    lines = [
        at_cutoff("ndcg@10", 0.4),
        at_cutoff("ndcg@5", 0.3),
        at_cutoff("ndcg(gain=exponential)@10", 0.4),
        at_cutoff("ndcg(gain=exponential)@20", 0.5),
        at_cutoff("ndcg@100", 0.9, slice="language=de"),
        at_cutoff("ap", 0.4),
        at_cutoff("p@10", 0.4),
        at_cutoff("p@20", None),
        at_cutoff("clicks@5", 0.4),
        at_cutoff("clicks@10", 0.4),
    ]

    plain, exponential = by_cutoff("web", lines, ["bm25"])

    assert plain.title == "ndcg by cutoff on web"
    assert plain.text == "At cutoff 5 and 10: bm25 0.3000, 0.4000."
    assert [(row["cutoff"], float(row["ndcg"])) for row in rows(plain)] == [("5", 0.3), ("10", 0.4)]
    assert exponential.title == "ndcg(gain=exponential) by cutoff on web"


def test_numbers_of_a_scale_do_not_touch():
    (chart,) = by_cutoff("web", [at_cutoff(f"p@{k}", 0.5) for k in range(1, 101)], ["bm25"])

    bottom = max(found.at[1] for found in words(chart) if found.said == "100")
    across = [found.at[0] for found in words(chart) if found.at[1] == bottom]
    assert len(across) > 3
    assert np.diff(across).min() >= 26
