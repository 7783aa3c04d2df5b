"""What a page is made of: sections of blocks, and cells with interval bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias
from unicodedata import bidirectional

from rankledger.pipeline.report.effects import EffectLabel
from rankledger.pipeline.report.tables import Interval, Scale, display_name, figure, models, signed
from rankledger.pipeline.report.text_table import TextTable, short_text

if TYPE_CHECKING:
    from rankledger.pipeline.report.html.charts import Chart

Kind: TypeAlias = Literal["name", "reason", "text", "number", "mark", "bar", "difference"]
Tone: TypeAlias = Literal["", "good", "bad", "warn", "quiet"]


@dataclass(frozen=True)
class Cell:
    """A cell that is more than its text.

    Attributes:
        text: the text.
        tone: its colour.
        bar: custom properties that place an interval in the cell, `--l:.25;--w:.5;--m:.5`; empty if none is drawn.
        strong: whether it is bold, such as the best figure.
        link: the address that the text leads to; empty if it is no link.
        drawing: an element of SVG that stands after the text, as a page takes it; empty if there is none.
        small: what is shown below a figure once it is asked for, such as the interval, and always below a name.
        tint: how close the figure is to the best, from 0 (no tint) to 5.
        more: what a click on the text opens below it; empty if it has all.
    """

    text: str
    tone: Tone = ""
    bar: str = ""
    strong: bool = False
    link: str = ""
    drawing: str = ""
    small: str = ""
    tint: int = 0
    more: str = ""


Row: TypeAlias = tuple[str | Cell, ...]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: its header.
        kind: `name` is text of users, which may run from right to left, and `reason` a sentence of theirs; `text` is
            ours; `mark` a sign; `bar` is an interval with its bar, `difference` one with the line of zero behind it.
        lower: whether lower figures are better, and so sort first.
        by: the measure that ranks or differences are by. The page shows the column if that measure is chosen. Empty if
            the column is always shown.
        hidden: whether the column is shown only then, and not at first.
    """

    title: str
    kind: Kind = "number"
    lower: bool = False
    by: str = ""
    hidden: bool = False


@dataclass(frozen=True)
class Group:
    """Rows of a table that are shown together.

    Attributes:
        rows: their cells.
        title: what they have in common; empty if the table has one group only.
        measure: the measure to choose them by; empty if there is nothing to choose.
        slice: the slice to choose them by.
        note: stands after the title, such as the ends of the bars' scale.
        ground: custom properties of what is drawn behind the bars: a line at zero and the band of no difference.
        open: whether they are shown until another measure or slice is chosen.
    """

    rows: tuple[Row, ...]
    title: str = ""
    measure: str = ""
    slice: str = ""
    note: str = ""
    ground: str = ""
    open: bool = True


@dataclass(frozen=True)
class Table:
    """A table whose rows can be sorted, and chosen by measure, slice and text with the page's filters.

    Attributes:
        name: of the file it is saved to, such as `leaderboard-web`.
        caption: what it shows.
        columns: of its rows.
        groups: its rows.
        chosen: whether its groups are chosen by the measure and the slice of the page.
        measures: its columns by which the page can order its rows.
        searched: what the page's filter calls its rows, such as `model`; empty if it cannot be filtered.
        most: rows of a group that are shown until all are asked for; 0 shows all.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    chosen: bool = False
    measures: tuple[str, ...] = ()
    searched: str = ""
    most: int = 0


def text_table(name: str, table: TextTable, searched: str = "") -> Table:
    """A table of text on a page, with the names that users gave cut to what can be read.

    Args:
        name: of the file it is saved to.
        table: the table.
        searched: what the page's filter calls its rows; empty if it cannot be filtered.
    """
    columns = tuple(
        Column(header, "number" if numeric else "name")
        for header, numeric in zip(table.headers, table.numeric, strict=True)
    )
    rows = tuple(tuple(map(short_text, row)) for row in table.rows)
    return Table(name, short_text(table.title, 200), columns, (Group(rows),), searched=searched)


@dataclass(frozen=True)
class Words:
    """A paragraph; one that `leads` stands out, and one with a `link` leads to that address."""

    text: str
    tone: Tone = ""
    leads: bool = False
    link: str = ""


@dataclass(frozen=True)
class Facts:
    """Names and their values."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Command:
    """A command to type."""

    text: str


@dataclass(frozen=True)
class Drawing:
    """A chart, and the name of the file its data are saved to."""

    name: str
    chart: Chart


@dataclass(frozen=True)
class Drawings:
    """Charts beside each other, as many as there is room for."""

    items: tuple[Drawing, ...]


@dataclass(frozen=True)
class Plot:
    """A plot of models by two axes, and the name of the file its data are saved to.

    Attributes:
        name: of the file.
        across: the axis across.
        up: the other one.
        models: by name, its values on both.
    """

    name: str
    across: Axis
    up: Axis
    models: Mapping[str, tuple[Interval, Interval]]

    @property
    def title(self) -> str:
        """What it shows."""
        return f"Trade-off: {self.up.title} up, {self.across.title} across"


@dataclass(frozen=True)
class Axis:
    """An axis of a plot: a measure, or an external metric.

    Attributes:
        title: its name.
        better: which end is better.
    """

    title: str
    better: Literal["higher", "lower"]


@dataclass(frozen=True)
class SideBySide:
    """Blocks in two columns if the page is wide enough, the first one narrow."""

    first: tuple[Block, ...]
    second: tuple[Block, ...]


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown once they are opened: below `name`, which users gave, and a title.

    Attributes:
        name: what users called it.
        title: stands after the name.
        blocks: what is shown.
        query: the query that they are about, whose link `#query=ID` opens them; empty if they are about none.
        slices: those that the query is in, by which the page chooses.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]
    query: str = ""
    slices: tuple[str, ...] = ()


@dataclass(frozen=True)
class PagePart:
    """A part of a section, with its own heading.

    Attributes:
        title: its heading.
        blocks: its content.
        folded: whether it is shown once it is opened; None folds all parts of a section but the first.
        key: the end of a link to it; empty if there is none.
    """

    title: str
    blocks: tuple[Block, ...]
    folded: bool | None = None
    key: str = ""


Block: TypeAlias = Table | Words | Facts | Command | Drawings | Plot | SideBySide | Folded | PagePart


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        key: the end of a link to it.
        title: its heading.
        blocks: its content.
        folded: whether it is shown once it is opened; None if it cannot be folded.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]
    folded: bool | None = None


TONES: Mapping[EffectLabel, Tone] = {"better": "good", "worse": "bad", "no practical difference": "", "unclear": ""}
"""The colours of effect labels."""


def _padded(scale: Scale) -> Scale:
    margin = (scale.high - scale.low) / 20 or 0.5
    return Scale(scale.low - margin, scale.high + margin)


def bar_cell(interval: Interval, scale: Scale, text: str, tone: Tone = "") -> Cell:
    """A cell with an interval bar; without an interval the text alone."""
    if interval.low is None or interval.high is None or interval.value is None:
        return Cell(text, tone)
    left, middle, right = map(scale.share, (interval.low, interval.value, interval.high))
    return Cell(text, tone, f"--l:{_css(left)};--w:{_css(right - left)};--m:{_css(middle)}")


@dataclass(frozen=True)
class EstimateBars:
    """Bars of figures on one scale.

    Attributes:
        scale: of the bars, with a twentieth more at either end, but not below 0 if no end of an interval is.
    """

    scale: Scale

    @classmethod
    def of(cls, intervals: Iterable[Interval]) -> EstimateBars:
        """The bars of these figures."""
        scale = Scale.of(intervals)
        padded = _padded(scale)
        return cls(Scale(max(padded.low, 0.0), padded.high) if scale.low >= 0 else padded)

    def cells(self, interval: Interval) -> tuple[str, Cell]:
        """A figure, and its interval with the bar."""
        return figure(interval.value), bar_cell(interval, self.scale, interval.ends())

    def group(self, rows: Iterable[Row], title: str) -> Group:
        """A group of rows with these bars."""
        return Group(tuple(rows), title, note=f"scale of the bars: {self.scale.text()}")


@dataclass(frozen=True)
class DifferenceBars:
    """Bars of differences on one scale, before a line at zero and the band of no practical difference.

    Attributes:
        scale: of the bars, with a twentieth more at either end; 0 and the band are on it.
        margin: the practical difference; 0 if there is none.
    """

    scale: Scale
    margin: float

    @classmethod
    def of(cls, intervals: Iterable[Interval], margin: float) -> DifferenceBars:
        """The bars of these differences."""
        return cls(_padded(Scale.of(intervals, -margin, 0.0, margin)), margin)

    def cells(self, interval: Interval, tone: Tone = "") -> tuple[Cell, Cell]:
        """A difference, and its interval with the bar."""
        return Cell(signed(interval.value), tone), bar_cell(interval, self.scale, interval.ends(signed), tone)

    @property
    def ends(self) -> str:
        """Both ends of the scale."""
        return self.scale.text(signed)

    @property
    def ground(self) -> str:
        """What is drawn behind the bars: the line and the band."""
        left, right = self.scale.share(-self.margin), self.scale.share(self.margin)
        return f"--z:{_css(self.scale.share(0))};--a:{_css(left)};--b:{_css(right - left)}"

    def group(self, rows: Iterable[Row], title: str, measure: str = "", slice: str = "", *, open: bool = True) -> Group:
        """A group of rows with these bars."""
        return Group(tuple(rows), title, measure, slice, f"scale of the bars: {self.ends}", self.ground, open)


def _css(share: float) -> str:
    return f"{share:.3f}".rstrip("0").rstrip(".").removeprefix("0") or "0"


def dataset_title(dataset: str) -> str:
    """The name of a dataset, or of all together, cut to what can be read."""
    return short_text(display_name(dataset))


def isolated(name: str) -> str:
    """A name in a sentence, which it cannot reverse: a name with characters from right to left is isolated."""
    reverses = any(bidirectional(character) in ("R", "AL", "AN") for character in name)
    return f"\u2068{name}\u2069" if reverses else name


def against(model: str, baseline: str) -> str:
    """A pair of models, each cut to what can be read and in its own direction."""
    return models(isolated(short_text(model)), isolated(short_text(baseline)))
