"""Blocks of a page, and cells with interval bars. A block of fixed text is `Markup`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias
from unicodedata import bidirectional

from markupsafe import Markup

from rankledger.pipeline.report.tables import Interval, Scale, display_name, figure, models, signed
from rankledger.pipeline.report.text_table import Cell, Group, Row, Table, Tone, short_text


@dataclass(frozen=True)
class Words:
    """Paragraph."""

    text: str
    tone: Tone = ""
    leads: bool = False  # True makes it stand out
    link: str = ""


@dataclass(frozen=True)
class Chart:
    """Chart for a page."""

    title: str
    svg: str  # element of a page
    text: str  # main figures for a reader who does not see it
    csv: str  # every number in full
    points: tuple[float, ...] = ()  # place of points for queries: box of the panel in pixels, ends of both scales


@dataclass(frozen=True)
class SideBySide:
    """Blocks in two columns, the first one narrow."""

    first: tuple[Block, ...]
    second: tuple[Block, ...]


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown once they are opened."""

    name: str  # given by users
    title: str  # shown behind the name
    blocks: tuple[Block, ...]
    query: str = ""  # opened by the link `#query=ID`
    slices: tuple[str, ...] = ()  # of the query


@dataclass(frozen=True)
class Section:
    """Section of the page, or part of a section."""

    key: str  # end of a link
    title: str
    blocks: tuple[Block, ...]
    folded: bool | None = None  # None for a section that cannot be folded. Of parts, all but the first are


Block: TypeAlias = Table | Words | SideBySide | Folded | Section | Markup


def write_each(pattern: Markup, items: Iterable[Iterable[object]], between: str = "") -> Markup:
    """Write a pattern for each item."""
    return Markup(between).join(pattern.format(*item) for item in items)


def write_facts(items: Iterable[tuple[str, str]]) -> Markup:
    """Write names with values."""
    fact = Markup("<div><dt><bdi>{}</bdi></dt><dd><bdi>{}</bdi></dd></div>")
    return Markup("<dl>\n{}\n</dl>").format(write_each(fact, items, "\n"))


def write_command(text: str) -> Markup:
    """Write a command to type."""
    return Markup('<pre class="command" tabindex="0"><code>{}</code></pre>').format(text)


_FIGURE = Markup("""\
<figure{}>
<p class="title"><bdi>{}</bdi></p>
{}
<figcaption>{}</figcaption>
<details class="data"><summary>Data (CSV)</summary><pre data-name="{}" tabindex="0">{}</pre></details>
</figure>""")


def write_figure(attributes: Markup, title: str, drawing: Markup, text: str, name: str, csv: str) -> Markup:
    """Write a drawing with its title, its main figures, and its data as the file `name`."""
    return _FIGURE.format(attributes, title, drawing, text, name, csv)


def write_charts(charts: Iterable[tuple[str, Chart]]) -> Markup:
    """Write charts side by side, each with the name of the file its data are saved to."""
    figures = []
    for name, chart in charts:
        points = " ".join(f"{value:.6g}" for value in chart.points)
        attributes = Markup(' data-points="{}"').format(points) if points else Markup()
        figures.append(write_figure(attributes, chart.title, Markup(chart.svg), chart.text, name, chart.csv))
    return Markup('<div class="drawings">\n{}\n</div>').format(Markup("\n").join(figures))


def bar_cell(interval: Interval, scale: Scale, text: str, tone: Tone = "") -> Cell:
    """Return a cell with an interval bar, or with the text alone if there is no interval."""
    if interval.low is None or interval.high is None or interval.value is None:
        return Cell(text, tone)
    start, middle, end = map(scale.share, (interval.low, interval.value, interval.high))
    return Cell(text, tone, f"--l:{_css(start)};--w:{_css(end - start)};--m:{_css(middle)}")


@dataclass(frozen=True)
class Bars:
    """Interval bars on one scale. Differences have a line at zero and the band of irrelevant differences."""

    scale: Scale
    margin: float | None = None  # half of the band; None for estimates

    @classmethod
    def of_estimates(cls, intervals: Iterable[Interval]) -> Bars:
        """Return bars on a scale that starts at 0 if no interval ends below."""
        scale = Scale.of(intervals)
        padded = _pad(scale)
        return cls(Scale(max(padded.low, 0.0), padded.high) if scale.low >= 0 else padded)

    @classmethod
    def of_differences(cls, intervals: Iterable[Interval], margin: float = 0.0) -> Bars:
        return cls(_pad(Scale.of(intervals, -margin, 0.0, margin)), margin)

    def cells(self, interval: Interval, tone: Tone = "") -> tuple[Cell, Cell]:
        write = figure if self.margin is None else signed
        return Cell(write(interval.value), tone), bar_cell(interval, self.scale, interval.ends(write), tone)

    @property
    def ends(self) -> str:
        return self.scale.text(figure if self.margin is None else signed)

    @property
    def ground(self) -> str:
        if self.margin is None:
            return ""
        start, end = self.scale.share(-self.margin), self.scale.share(self.margin)
        return f"--z:{_css(self.scale.share(0))};--a:{_css(start)};--b:{_css(end - start)}"

    def group(self, rows: Iterable[Row], title: str, measure: str = "", slice: str = "", *, open: bool = True) -> Group:
        return Group(tuple(rows), title, measure, slice, f"scale of the bars: {self.ends}", self.ground, open)


def _pad(scale: Scale) -> Scale:
    margin = (scale.high - scale.low) / 20 or 0.5
    return Scale(scale.low - margin, scale.high + margin)


def _css(share: float) -> str:
    return f"{share:.3f}".rstrip("0").rstrip(".").removeprefix("0") or "0"


def dataset_title(dataset: str) -> str:
    """Return the name of a dataset, cut to what can be read."""
    return short_text(display_name(dataset))


def isolated(name: str) -> str:
    """Isolate a name with characters from right to left, so that it cannot reverse a sentence."""
    reverses = any(bidirectional(character) in ("R", "AL", "AN") for character in name)
    return f"\u2068{name}\u2069" if reverses else name


def against(model: str, baseline: str) -> str:
    """Name a pair of models, each in its own direction."""
    return models(isolated(short_text(model)), isolated(short_text(baseline)))
