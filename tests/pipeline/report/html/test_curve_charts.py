"""Curves of models."""

import numpy as np
import pytest

from rankledger.pipeline.inference.tables import CurvePoint, Estimate
from rankledger.pipeline.report.html.charts import by_cutoff, judged_by_rank, precision_recall
from tests.pipeline.report.html.chart_contents import paths, rows, words

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
