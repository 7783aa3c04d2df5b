"""The SVG of charts: harmless and in the page's colours, whatever names, letters and settings there are."""

import json
import math
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.history.history import Night, Series
from rankledger.pipeline.inference.changepoints import LevelChange
from rankledger.pipeline.inference.tables import CurvePoint, Estimate, PairedScores, QueryChange
from rankledger.pipeline.record.manifest_parts import InputChange
from rankledger.pipeline.report.html import charts, differences
from rankledger.pipeline.report.html.charts import Chart
from rankledger.pipeline.report.html.svg import Drawing, Panel, limits_around, ticks
from tests.pipeline.report.html.chart_contents import words

HOSTILE = [
    "<script>alert(1)</script>",
    "]]><img src=x onerror=alert(1)>",
    "$x^2$ & $\\frac{1}{0}$",
    "\"quoted' --> <!--",
    "نموذج \u202eعربي",
    "日本語モデル",
    "x" * 10_000,
    "\x00\x1b[2J\ud800\ufffe\n",
]
ROOT = Path(__file__).parents[4]
INEXACT: set[tuple[float, float, int]] = {(0.01, 0.3, 4), (0.01, 0.3, 5)}


def _pair(name: str) -> PairedScores:
    ids = np.array([name, "q1", "q2"], dtype=object)
    before, after = np.array([0.1, 0.2, 0.3]), np.array([0.9, 0.2, 0.2])
    moved = QueryChange(name, name, f"{name} in id", "ap", name, 0.1, 0.9, 0.8, None)
    return PairedScores(name, name, f"{name} in id", "ap", ids, before, after, after - before, (moved,))


def scatter(name: str) -> Chart | None:
    return differences.query_chart(_pair(name))


def precision_recall(name: str) -> Chart | None:
    points = [CurvePoint(name, name, "precision", at, 0.5, 0.4, 0.6, 9) for at in (0.0, 1.0)]
    return charts.precision_recall(name, points, [name])


def judged_by_rank(name: str) -> Chart | None:
    points = [CurvePoint(name, name, "judged", at, 0.5, None, None, 9) for at in (1.0, 10.0)]
    return charts.judged_by_rank(name, points, [name])


def by_cutoff(name: str) -> Chart | None:
    lines = [Estimate(name, name, "all", f"p@{k}", 0.5, 0.4, 0.6, 0.05, 9, 0, 0) for k in (5, 10)]
    (chart,) = charts.by_cutoff(name, lines, [name])
    return chart


def nights(name: str) -> Chart | None:
    first = Night(name, "id", 0.4, 0.3, 0.5, 0.05, 9, "", None, "", None)
    second = Night(
        "2026-11-20", "id", 0.6, 0.5, 0.7, 0.05, 9, "", None, "", None, (InputChange("judgments", "a", "b"),)
    )
    last = Night("2026-11-21", "id", None, None, None, None, 9, "", None, "", None, (), name)
    step = LevelChange("2026-11-20", name, "2026-11-21", 1, 0.4, 0.6, 0.01)
    return charts.nights(Series((step,), 1.0, None, dataset=name, model=name, nights=(first, second, last)), "ap")


EVERY = [scatter, precision_recall, judged_by_rank, by_cutoff, nights]


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


@pytest.mark.parametrize("chart", EVERY)
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_is_markup(chart: Callable[[str], Chart | None], name: str):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = chart(name)

    assert found is not None
    (root, attributes), *parts = Elements(found.svg).found
    assert root == "svg"
    assert attributes["aria-label"]
    assert {(tag, *kinds) for tag, kinds in parts} == {("path", "d", "style"), ("text", "x", "y", "style")}
    found.svg.encode()


@pytest.mark.parametrize("chart", EVERY)
def test_names_are_cut_and_legible(chart: Callable[[str], Chart | None]):
    found = chart("x" * 10_000)

    assert found is not None
    assert max(len(text.said) for text in words(found)) <= 44
    assert len(found.title) < 200
    assert len(found.text) < 400
    assert len(found.svg) < 9_000


@pytest.mark.parametrize("name", HOSTILE[:3])
def test_words_are_what_was_said(name: str):
    found = precision_recall(name)

    assert found is not None
    (said,) = (text.said for text in words(found) if text.said.startswith(name[:5]))
    assert said.rstrip("…") == name[: len(said.rstrip("…"))]
    assert len(said) >= min(len(name), 22)


def test_what_no_page_can_hold_is_spelt_out():
    found = precision_recall("a\ud800b")

    assert found is not None
    assert "a\\ud800b" in {text.said for text in words(found)}


@pytest.mark.parametrize("chart", EVERY)
def test_colours_are_the_page_s(chart: Callable[[str], Chart | None]):
    found = chart("bm25")

    assert found is not None
    inks = {
        ink
        for style in re.findall(r'style="([^"]*)"', found.svg)
        for ink in re.findall(r"(?:fill|stroke): ?([^;]+)", style)
    }
    assert inks <= {"none", "currentColor", *(f"var(--{name})" for name in ("muted", "rule", "band", "c1", "c2"))}


@pytest.mark.parametrize("chart", EVERY)
def test_drawings_stay_within_their_frame(chart: Callable[[str], Chart | None]):
    found = chart("bm25")

    assert found is not None
    (height,) = re.findall(r'viewBox="0 0 360 ([\d.]+)"', found.svg)
    places = [
        place for path in re.findall(r' d="([^"]*)"', found.svg) for place in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)
    ]
    places += re.findall(r'x="(-?[\d.]+)" y="(-?[\d.]+)"', found.svg)
    assert all(0 <= float(x) <= 360 and 0 <= float(y) <= float(height) for x, y in places)


def test_bytes_do_not_depend_on_the_process():
    code = (
        "from tests.pipeline.report.html.test_svg import EVERY\n"
        "import hashlib\n"
        "print(hashlib.sha256(''.join(chart('bm25').svg for chart in EVERY).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(digests) == 1


def panel(height: float = 100, *, logarithmic: bool = False) -> Panel:
    return Panel(Drawing(height), (0, 0, 360, height), (1, 4), (0, 1), logarithmic)


def test_a_line_in_full():
    drawn = panel()
    drawn.lines([[(1, 0), (4, 1)]], "var(--c1)", width=1.5, dashes="6,2")
    drawn.text((2.5, 0.5), "a < b", anchor="middle")

    assert drawn.drawing.svg("a & b") == (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 100" width="100%" font-size="11" fill="none" '
        'stroke-linecap="round" role="img" aria-label="a &amp; b">'
        '<path d="M0 100L360 0" style="stroke:var(--c1);stroke-width:1.5;stroke-dasharray:6,2;stroke-linecap:butt"/>'
        '<text x="180" y="54" style="fill:currentColor;text-anchor:middle">a &lt; b</text></svg>'
    )


def test_logarithmic_steps_multiply():
    assert panel(logarithmic=True).pixels([(1, 0), (2, 0), (4, 0)]) == [(0, 100), (180, 100), (360, 100)]


@pytest.mark.parametrize("unknown", [None, np.nan, np.inf])
def test_a_line_is_broken_where_there_is_no_value(unknown: float | None):
    drawn = panel()
    drawn.lines([[(1, 0), (2, 0), (2.5, unknown), (3, 0), (4, 0)]], "var(--c1)")
    drawn.lines([[(1, unknown), (1, 1)]], "var(--c1)")

    assert re.findall(' d="([^"]*)"', drawn.drawing.svg("")) == ["M0 100L120 100M240 100L360 100"]


@pytest.mark.parametrize("shape", range(8))
def test_a_mark_stands_around_its_point(shape: int):
    drawn = panel()
    drawn.marks([(2.5, 0.5), (3, None)], "var(--c1)", shape)

    (path,) = re.findall(' d="([^"]*)"', drawn.drawing.svg(""))
    points = np.array([point.split() for point in re.split("[ML]", path) if point], dtype=np.float64)
    assert (points.min(axis=0) + points.max(axis=0)) / 2 == pytest.approx([180, 50], abs=0.7)
    assert np.abs(points - [180, 50]).max() <= 5


def test_ticks_are_those_of_matplotlib():
    rows = [json.loads(row) for row in (ROOT / "tests" / "golden" / "ticks.jsonl").read_text().splitlines()]

    assert len(rows) > 1_000
    differing = {
        (low, high, at_most) for low, high, at_most, expected in rows if ticks((low, high), at_most) != expected
    }
    assert differing == INEXACT


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.integers(1, 8))
def test_ticks_of_any_scale(one: float, other: float, at_most: int):
    low, high = sorted([one, other])

    found = ticks((low, high), at_most)

    assert found == sorted(set(found))
    assert all(low <= value <= high for value in found)
    assert len(found) <= 12


@pytest.mark.parametrize("same", [0.3, 1e17, -1e17])
def test_a_scale_is_never_without_length(same: float):
    low, high = limits_around([same, same])

    assert low < same < high
    assert same - low == pytest.approx(high - same)
    assert same != 0.3 or (low, high) == pytest.approx((-0.2, 0.8))


def test_a_scale_reaches_a_little_beyond_its_values():
    assert limits_around([0.0, 1.0, 0.5, None, math.nan, math.inf]) == pytest.approx((-0.04, 1.04))
