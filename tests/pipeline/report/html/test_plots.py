"""The trade-off plot: what its axes are, where its marks stand, and which models no other beats."""

import re

import pytest

from rankledger.pipeline.report.html.charts import draw_plot, trade_off
from rankledger.pipeline.report.tables import Interval
from tests.support.sample_page import estimate, page


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
    found = page({"external_metrics": {}}, estimates=lines, comparison_lines=())

    assert trade_off(found, "web") is None


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
