"""The SVG of charts: harmless and in the page's colours, whatever names, letters and settings there are."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from rankledger.pipeline.report.html import charts, difference_charts
from rankledger.pipeline.report.html.charts import Chart
from rankledger.pipeline.report.html.svg import cleaned, reaching, ticks
from rankledger.pipeline.types.changes import QueryChange
from rankledger.pipeline.types.results import Comparison, Estimate
from rankledger.pipeline.types.views import CurvePoint, LevelChange, Night, PairedScores, Series, SeriesBreak
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


def forest(name: str) -> Chart | None:
    figures = (0.5, 0.4, 0.1, 0.05, 0.15, 0.01, 0.01, 0.02)
    line = Comparison(name, "all", "ap", name, "bm25", *figures, "", 0.1, 9, 1, 2, 0.1, 99, 99)
    return difference_charts.forest([line], 0.005)


def slices(name: str) -> Chart | None:
    figures = (0.5, 0.4, 0.1, 0.05, 0.15, 0.01, 0.01, 0.02)
    lines = [
        Comparison(name, part, "ap", name, other, *figures, "", 0.1, 9, 1, 2, 0.1, 99, 99)
        for part in ("all", f"language={name}")
        for other in ("bm25", name)
    ]
    return difference_charts.slices(lines, 0.005)


def _pair(name: str) -> PairedScores:
    ids = np.array([name, "q1", "q2"], dtype=object)
    before, after = np.array([0.1, 0.2, 0.3]), np.array([0.9, 0.2, 0.2])
    moved = QueryChange(name, name, f"{name} in id", name, "ap", 0.1, 0.9, 0.8, None)
    return PairedScores(name, name, f"{name} in id", "ap", ids, before, after, after - before, (moved,))


def scatter(name: str) -> Chart | None:
    return difference_charts.scatter(_pair(name))


def distribution(name: str) -> Chart | None:
    return difference_charts.distribution(_pair(name))


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
        "2026-11-20", "id", 0.6, 0.5, 0.7, 0.05, 9, "", None, "", None, (SeriesBreak("judgments", "a", "b"),)
    )
    last = Night("2026-11-21", "id", None, None, None, None, 9, "", None, "", None, (), name)
    step = LevelChange("2026-11-20", name, "2026-11-21", 1, 0.4, 0.6, 0.01)
    return charts.nights(Series(name, name, (first, second, last), (step,), 1.0, None, correlated=False), "ap")


EVERY = [forest, slices, scatter, distribution, precision_recall, judged_by_rank, by_cutoff, nights]


class Elements(HTMLParser):
    """The elements of a page, as an HTML parser sees them, and their attributes."""

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
    """Whatever a name holds, there are paths and texts, without ids, links and handlers; no letter is warned of."""
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
    """Of 10,000 letters at most 44 are drawn in one place, and titles and texts are cut too."""
    found = chart("x" * 10_000)

    assert found is not None
    assert max(len(text.said) for text in words(found)) <= 44
    assert len(found.title) < 200
    assert len(found.text) < 400
    assert len(found.svg) < 9_000


@pytest.mark.parametrize("name", HOSTILE[:3])
def test_words_are_what_was_said(name: str):
    """What is markup or mathematics elsewhere stands as it was written, up to its cut."""
    found = precision_recall(name)

    assert found is not None
    (said,) = (text.said for text in words(found) if text.said.startswith(name[:5]))
    assert said.rstrip("…") == name[: len(said.rstrip("…"))]
    assert len(said) >= min(len(name), 22)


def test_what_no_page_can_hold_is_shown_as_unknown():
    """Half of a pair of surrogates cannot be written as UTF-8; the sign for an unknown letter stands for it."""
    found = precision_recall("a\ud800b")

    assert found is not None
    assert "a\ufffdb" in {text.said for text in words(found)}


@pytest.mark.parametrize("chart", EVERY)
def test_colours_are_the_page_s(chart: Callable[[str], Chart | None]):
    """No path or text has an ink of its own: each is that of the page, in the light and in the dark."""
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
    """No path, and no beginning of a text, lies outside, where it would be cut off."""
    found = chart("bm25")

    assert found is not None
    (height,) = re.findall(r'viewBox="0 0 360 ([\d.]+)"', found.svg)
    places = [
        place for path in re.findall(r' d="([^"]*)"', found.svg) for place in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)
    ]
    places += re.findall(r'x="(-?[\d.]+)" y="(-?[\d.]+)"', found.svg)
    assert all(0 <= float(x) <= 360 and 0 <= float(y) <= float(height) for x, y in places)


def test_bytes_do_not_depend_on_the_settings_of_matplotlib(tmp_path):
    """With a `matplotlibrc` of another font, in sketchy lines and cut tightly, all charts are the same."""
    (tmp_path / "home").mkdir()
    (tmp_path / "matplotlibrc").write_text(
        "font.family: serif\nfont.size: 20\npath.sketch: 1, 100, 2\nsavefig.bbox: tight\nsavefig.dpi: 300\n"
        "svg.fonttype: path\nlines.dash_capstyle: round\nlines.scale_dashes: False\n"
        "axes.autolimit_mode: round_numbers\n"
    )
    code = (
        "from tests.pipeline.report.html.test_svg import EVERY\n"
        "import hashlib, sys\n"
        "print(hashlib.sha256(''.join(chart('bm25').svg for chart in EVERY).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path / "home",  # a `matplotlibrc` beside would be read by both
            env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, "MATPLOTLIBRC": str(settings), "HOME": str(tmp_path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed, settings in (("1", tmp_path), ("2", tmp_path / "home"))
    }

    assert len(digests) == 1


def test_a_machine_without_a_place_for_a_cache_gets_no_remark(tmp_path):
    """matplotlib would say on stderr where it keeps its list of fonts instead; the charts are drawn all the same."""
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    told = subprocess.run(
        [sys.executable, "-c", "from tests.pipeline.report.html.test_svg import *; print(forest('a').svg)"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere / "cache")},
        check=True,
        capture_output=True,
        text=True,
    )

    assert told.stdout.startswith("<svg")
    assert told.stderr == ""


def test_the_settings_of_others_are_left_alone():
    """Who draws charts of their own in the same process finds their settings as they were."""
    import matplotlib

    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "path"}):
        forest("bm25")

        assert (matplotlib.rcParams["font.size"], matplotlib.rcParams["svg.fonttype"]) == (20, "path")


def test_matplotlib_is_not_imported_before_there_is_something_to_draw():
    """Importing it takes longer than drawing: neither the module nor a chart of nothing does."""
    code = (
        "import sys\nfrom rankledger.pipeline.report.html import charts, difference_charts\n"
        "difference_charts.forest([]), difference_charts.slices([])\n"
        "charts.judged_by_rank('web', [], []), charts.by_cutoff('web', [], [])\n"
        "print('matplotlib' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)

    assert found.stdout == "False\n"


def test_a_path_without_points_is_left_out():
    """matplotlib writes one for a curve of which nothing lies within the frame."""
    drawn = (
        '<svg xmlns="http://www.w3.org/2000/svg"><path style="fill: none"/><path d="M 1 2" style="fill: none"/></svg>'
    )

    assert cleaned(drawn, (), "a title", "") == cleaned(
        drawn.replace('<path style="fill: none"/>', ""), (), "a title", ""
    )


def test_ticks_are_round_and_within():
    """Steps of 1, 2, 2.5 or 5 times a power of ten, 0 exactly 0."""
    assert ticks((-0.031, 0.052)) == [-0.02, 0, 0.02, 0.04]
    assert ticks((0, 1)) == [0, 0.2, 0.4, 0.6, 0.8, 1]


def test_a_scale_reaches_a_little_beyond_its_values():
    """By 4% at both ends; where all are the same, by a half."""
    assert reaching([0.0, 1.0, 0.5]) == pytest.approx((-0.04, 1.04))
    assert reaching([0.3]) == pytest.approx((-0.2, 0.8))
