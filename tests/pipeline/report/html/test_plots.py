"""The trade-off plot: what its axes are, where its marks stand, and which models no other beats."""

from __future__ import annotations

import re

import pytest

from rankledger.pipeline.report.html.blocks import Axis, Plot
from rankledger.pipeline.report.html.plots import marks_of, plot_text, trade_off
from rankledger.pipeline.report.html.render import html
from rankledger.pipeline.report.tables import Interval, page_figures
from tests.support.sample_page import estimate, page


def plot(better: tuple[str, str], **models: tuple[float | None, float]) -> Plot:
    """Models by two axes, the first of which stands across."""
    axes = (Axis("cost", better[0]), Axis("ndcg@10", better[1]))
    values = {model: tuple(Interval(value) for value in own) for model, own in models.items()}
    return Plot("trade-off-web", "Trade-off", axes, 0, 1, values)


def test_a_cost_stands_across_if_there_is_one():
    """Latency and cost of one model are known; without them the second measure takes their place."""
    with_costs = trade_off(page_figures(page()), "web")
    without = trade_off(page_figures(page({"external_metrics": {}})), "web")

    assert with_costs is not None
    assert without is not None
    assert [axis.title for axis in with_costs.axes] == ["ndcg@10", "ap", "latency_ms", "cost"]
    assert [with_costs.axes[place].title for place in (with_costs.across, with_costs.up)] == ["latency_ms", "ndcg@10"]
    assert [without.axes[place].title for place in (without.across, without.up)] == ["ap", "ndcg@10"]
    assert with_costs.axes[2].better == "lower"


def test_the_lists_name_the_axes_that_are_drawn():
    """The first external metric across and the lead measure up."""
    text = html(page())

    assert re.findall(r'data-axis="(.)">.*?<option value="\d" data-better="\w+" selected>(.*?)</option>', text) == [
        ("y", "ndcg@10"),
        ("x", "latency_ms"),
    ]


@pytest.mark.parametrize("lines", [(estimate("bm25", 0.5),), (estimate("bm25", 0.5), estimate("dense", 0.4))])
def test_a_plot_needs_two_models_and_two_axes(lines):
    """One model, or one measure and no external metric, is no trade-off."""
    found = page({"external_metrics": {}}, estimates=lines, comparison_lines=())

    assert trade_off(page_figures(found), "web") is None


def test_a_model_is_beaten_by_one_that_is_no_worse_on_either_axis():
    """Of costs 1, 2, 3 and figures 0.5, 0.6, 0.6 the third is beaten by the second; equals do not beat each other."""
    found = plot(("lower", "higher"), cheap=(1, 0.5), good=(2, 0.6), dear=(3, 0.6), twin=(2, 0.6))
    marks = {mark.model: mark.unbeaten for mark in marks_of(found).marks}

    assert marks == {"cheap": True, "good": True, "dear": False, "twin": True}
    assert plot_text(found) == "Not beaten on both: cheap, good, twin."
    flipped = marks_of(plot(("higher", "higher"), cheap=(1, 0.5), good=(2, 0.6), dear=(3, 0.6))).marks
    assert [mark.model for mark in flipped if mark.unbeaten] == ["dear"]


def test_marks_stand_on_scales_with_a_margin():
    """Of 1 to 3 the scale reaches from 0.84 to 3.16; 2 is its middle, and a model without a value has no mark."""
    found = marks_of(plot(("lower", "higher"), a=(1, 0.0), b=(2, 0.5), c=(3, 1.0), d=(None, 0.7)))

    assert found.ends == ("0.8400", "3.1600", "-0.0800", "1.0800")
    assert [mark.model for mark in found.marks] == ["a", "b", "c"]
    assert found.marks[1].place.startswith("--x:0.500;--xl:0.500;--xw:0.000;--y:0.500")
    assert [mark.at_right for mark in found.marks] == [False, False, True]
