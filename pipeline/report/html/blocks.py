"""What a page is made of: sections of blocks, and cells with interval bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias
from unicodedata import bidirectional

from rankledger.pipeline.report.effects import EffectLabel
from rankledger.pipeline.report.tables import Interval, Scale, display_name, models, signed
from rankledger.pipeline.report.text_table import short_text

if TYPE_CHECKING:
    from rankledger.pipeline.report.html.charts import Chart

__all__ = [
    "TONES",
    "Block",
    "Cell",
    "Chips",
    "Column",
    "Command",
    "DifferenceBars",
    "Drawing",
    "Drawings",
    "Facts",
    "Folded",
    "Group",
    "Kind",
    "PagePart",
    "Row",
    "Section",
    "Table",
    "Tone",
    "Words",
    "against",
    "bar_cell",
    "dataset_title",
    "estimate_scale",
    "isolated",
]

Kind: TypeAlias = Literal["name", "reason", "text", "number", "bar", "difference"]
Tone: TypeAlias = Literal["", "good", "bad", "warn", "quiet"]

_SHORT = 8  # rows that need no search


@dataclass(frozen=True)
class Cell:
    """A cell that is more than its text.

    Attributes:
        text: the text.
        tone: its colour.
        bar: custom properties that place an interval in the cell, `--l:.25;--w:.5;--m:.5`; empty if none is drawn.
        strong: whether it is bold, such as the best figure.
        drawing: an element of SVG that stands after the text, as a page takes it; empty if there is none.
    """

    text: str
    tone: Tone = ""
    bar: str = ""
    strong: bool = False
    drawing: str = ""


Row: TypeAlias = tuple[str | Cell, ...]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: its header.
        kind: `name` is text of users, which may run from right to left, and `reason` a sentence of theirs; `text` is
            ours; `bar` is an interval with its bar, `difference` one with the line of zero behind it.
    """

    title: str
    kind: Kind = "number"


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
    """A table whose rows can be sorted, and filtered by measure, slice or name.

    Attributes:
        name: of the file it is saved to, such as `leaderboard-web`.
        caption: what it shows.
        columns: of its rows.
        groups: its rows.
        chosen: whether measure and slice are chosen from lists.
        searched: the header of the first column if it can be searched, such as `model`; empty otherwise.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    chosen: bool = False
    searched: str = ""

    @property
    def is_long(self) -> bool:
        """Whether the table is long enough to search, or may be once another measure or slice is chosen."""
        return self.chosen or sum(len(group.rows) for group in self.groups) > _SHORT

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures to choose from."""
        return tuple(dict.fromkeys(group.measure for group in self.groups))

    @property
    def slices(self) -> tuple[str, ...]:
        """The slices to choose from."""
        return tuple(dict.fromkeys(group.slice for group in self.groups))


@dataclass(frozen=True)
class Words:
    """A paragraph; one that `leads` stands out."""

    text: str
    tone: Tone = ""
    leads: bool = False


@dataclass(frozen=True)
class Chips:
    """A few short statements in a line, each with its colour, after their title."""

    title: str
    items: tuple[Cell, ...]


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
    """Charts beside each other, as many as there is room for, and other blocks after them."""

    items: tuple[Drawing, ...]
    beside: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown once they are opened, and in print: below `name`, which users gave, and a title."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class PagePart:
    """A part of a section, with its own heading."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Table | Words | Chips | Facts | Command | Drawings | Folded | PagePart


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        key: the end of a link to it.
        title: its heading.
        blocks: its content.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]


TONES: Mapping[EffectLabel, Tone] = {"better": "good", "worse": "bad", "no practical difference": "", "unclear": ""}
"""The colours of effect labels."""


def estimate_scale(intervals: Iterable[Interval]) -> Scale:
    """The scale of figures with a twentieth more at either end, but not below 0 if no end of an interval is."""
    scale = Scale.of(intervals)
    padded = _padded(scale)
    return Scale(max(padded.low, 0.0), padded.high) if scale.low >= 0 else padded


def _padded(scale: Scale) -> Scale:
    """The scale with a twentieth more at either end, or with a half if it has no length."""
    margin = (scale.high - scale.low) / 20 or 0.5
    return Scale(scale.low - margin, scale.high + margin)


def bar_cell(interval: Interval, scale: Scale, text: str, tone: Tone = "") -> Cell:
    """A cell with an interval bar; without an interval the text alone."""
    if interval.low is None or interval.high is None or interval.value is None:
        return Cell(text, tone)
    left, middle, right = map(scale.share, (interval.low, interval.value, interval.high))
    return Cell(text, tone, f"--l:{_css(left)};--w:{_css(right - left)};--m:{_css(middle)}")


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
    """A share of the cell's width, to a thousandth of it."""
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
