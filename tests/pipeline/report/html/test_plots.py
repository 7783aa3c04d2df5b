"""The trade-off plot: what its axes are, where its marks stand, and which models no other beats."""

from __future__ import annotations

import pytest

from rankledger.pipeline.report.html.blocks import Axis, Plot
from rankledger.pipeline.report.html.charts import marks_of, plot_text, trade_off
from rankledger.pipeline.report.tables import Interval, page_figures
from tests.support.sample_page import estimate, page


def plot(better: tuple[str, str], **models: tuple[float | None, float]) -> Plot:
    axes = (Axis("cost", better[0]), Axis("ndcg@10", better[1]))
    values = {model: (Interval(across), Interval(up)) for model, (across, up) in models.items()}
    return Plot("trade-off-web", *axes, values)


def test_a_cost_stands_across_if_there_is_one():
    with_costs = trade_off(page_figures(page()), "web")
    without = trade_off(page_figures(page({"external_metrics": {}})), "web")

    assert with_costs is not None
    assert without is not None
    assert with_costs.title == "Trade-off: ndcg@10 up, latency_ms across"
    assert without.title == "Trade-off: ndcg@10 up, ap across"
    assert (with_costs.across.better, without.across.better) == ("lower", "higher")


@pytest.mark.parametrize("lines", [(estimate("bm25", 0.5),), (estimate("bm25", 0.5), estimate("dense", 0.4))])
def test_a_plot_needs_two_models_and_two_axes(lines):
    found = page({"external_metrics": {}}, estimates=lines, comparison_lines=())

    assert trade_off(page_figures(found), "web") is None


def test_a_model_is_beaten_by_one_that_is_no_worse_on_either_axis():
    """Of costs 1, 2, 3 and figures 0.5, 0.6, 0.6 the third is beaten by the second; equals do not beat each other."""
    found = plot(("lower", "higher"), cheap=(1, 0.5), good=(2, 0.6), dear=(3, 0.6), twin=(2, 0.6))
    marks = {mark.model: mark.unbeaten for mark in marks_of(found)[0]}

    assert marks == {"cheap": True, "good": True, "dear": False, "twin": True}
    assert plot_text(found) == "Not beaten on both: cheap, good, twin."
    flipped, _ = marks_of(plot(("higher", "higher"), cheap=(1, 0.5), good=(2, 0.6), dear=(3, 0.6)))
    assert [mark.model for mark in flipped if mark.unbeaten] == ["dear"]


def test_marks_stand_on_scales_with_a_margin():
    """Of 1 to 3 the scale reaches from 0.84 to 3.16; 2 is its middle, and a model without a value has no mark."""
    found, ends = marks_of(plot(("lower", "higher"), a=(1, 0.0), b=(2, 0.5), c=(3, 1.0), d=(None, 0.7)))

    assert ends == ["0.8400", "3.1600", "-0.0800", "1.0800"]
    assert [mark.model for mark in found] == ["a", "b", "c"]
    assert not any(mark.covered for mark in found)
    assert found[1].place.startswith("--x:0.500;--xl:0.500;--xw:0.000;--y:0.500")
    assert [mark.at_right for mark in found] == [False, False, True]


def test_a_name_that_would_lie_on_another_is_covered():
    found, _ = marks_of(plot(("lower", "higher"), beaten=(2.0, 0.5), best=(1.99, 0.501), far=(1.0, 0.0)))

    assert {mark.model: mark.covered for mark in found} == {"best": False, "far": False, "beaten": True}
