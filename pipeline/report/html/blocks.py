"""What a page is made of: sections of blocks, the figures they show, and the words they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias
from unicodedata import bidirectional

from rankledger.pipeline.report.tables import (
    ALL,
    UNSURE,
    Leaderboard,
    effect_label,
    figure,
    letters_of,
    models,
    ranked,
    signed,
)
from rankledger.pipeline.report.text_table import counted, printable
from rankledger.pipeline.types.results import Comparison, Estimate, Verdict
from rankledger.pipeline.types.views import Page

if TYPE_CHECKING:
    from rankledger.pipeline.report.html.charts import Chart

__all__ = [
    "Block",
    "Cell",
    "CellScale",
    "Chips",
    "Column",
    "Command",
    "Drawing",
    "Drawings",
    "Facts",
    "Folded",
    "Group",
    "Key",
    "Kind",
    "PageFigures",
    "PagePart",
    "Row",
    "Section",
    "Table",
    "Tone",
    "Words",
    "against",
    "difference_scale",
    "estimate_scale",
    "interval",
    "isolated",
    "page_figures",
    "queries",
    "short_text",
    "tone_of",
]

Kind: TypeAlias = Literal["name", "reason", "text", "number", "bar", "difference"]
Tone: TypeAlias = Literal["", "good", "bad", "warn", "quiet"]

_LETTERS = 80  # of a name; the files of the record have it whole
_SHORT = 8  # rows that one sees at a glance


def short_text(text: object, letters: int = _LETTERS) -> str:
    """Text on one line, without what steers; cut where it is longer than so many letters."""
    line = printable(str(text))
    return line if len(line) <= letters else f"{line[: letters - 1]}…"


@dataclass(frozen=True)
class Cell:
    """A cell that is more than its text.

    Attributes:
        text: what it says.
        tone: how it is taken.
        bar: custom properties that place an interval in the cell, `--l:.25;--w:.5;--m:.5`; empty where none is drawn.
        strong: whether it stands out, being the best.
    """

    text: str
    tone: Tone = ""
    bar: str = ""
    strong: bool = False


Row: TypeAlias = tuple[str | Cell, ...]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: its head.
        kind: `name` is text of users, which may run from right to left, and `reason` a sentence of it; `text` is ours;
            `bar` is an interval and its picture, `difference` one with what lies behind it.
    """

    title: str
    kind: Kind = "number"


@dataclass(frozen=True)
class Group:
    """Rows of a table that are shown together.

    Attributes:
        rows: their cells.
        title: what they have in common, above them; empty where the table has one group alone.
        measure: the measure that they are by, to choose them by; empty where there is nothing to choose.
        slice: the slice that they are of.
        note: what is to be known of them, behind the title, such as the ends of the bars' scale.
        ground: custom properties of what is drawn behind the bars: the line of zero, and the band of what matters.
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
    """A table whose rows can be sorted, and filtered by their measure, slice and name where it says so.

    Attributes:
        name: what it is called where it is saved, such as `leaderboard-web`.
        caption: what it shows.
        columns: of its rows.
        groups: its rows.
        chosen: whether measure and slice are chosen from lists.
        searched: what is looked for in its first column, such as `model`; empty where nothing is.
    """

    kind: ClassVar[str] = "table"
    name: str
    caption: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    chosen: bool = False
    searched: str = ""

    @property
    def is_long(self) -> bool:
        """Whether there is so much that one searches it, or may be once something else is chosen."""
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

    kind: ClassVar[str] = "words"
    text: str
    tone: Tone = ""
    leads: bool = False


@dataclass(frozen=True)
class Chips:
    """A few short statements in a line, each with how it is taken, behind what they are."""

    kind: ClassVar[str] = "chips"
    title: str
    items: tuple[Cell, ...]


@dataclass(frozen=True)
class Facts:
    """Names and what they are."""

    kind: ClassVar[str] = "facts"
    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Command:
    """A line to be typed."""

    kind: ClassVar[str] = "command"
    text: str


@dataclass(frozen=True)
class Drawing:
    """A chart, and what it is called where its data are saved."""

    name: str
    chart: Chart


@dataclass(frozen=True)
class Drawings:
    """Charts beside each other, as many as there is room for, and other blocks after them."""

    kind: ClassVar[str] = "drawings"
    items: tuple[Drawing, ...]
    beside: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Folded:
    """What is seen once it is opened, and in print: of which `name`, which users gave, and what is said of it."""

    kind: ClassVar[str] = "folded"
    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class PagePart:
    """A part of a section, with its own heading."""

    kind: ClassVar[str] = "part"
    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Table | Words | Chips | Facts | Command | Drawings | Folded | PagePart


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        key: what a link to it ends with.
        title: its heading.
        blocks: what it holds.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]


_LEAST = 1e-9  # of a scale's length


@dataclass(frozen=True)
class CellScale:
    """The values at the left and the right end of the picture; `written` says what they are."""

    low: float
    high: float
    written: str

    def cell(self, low: float | None, middle: float | None, high: float | None, text: str, tone: Tone = "") -> Cell:
        """A cell with an interval, and what is in its middle; without its ends the text alone."""
        if low is None or high is None or middle is None:
            return Cell(text, tone)
        left, right = self._place(low), self._place(high)
        return Cell(text, tone, f"--l:{_share(left)};--w:{_share(right - left)};--m:{_share(self._place(middle))}")

    def ground(self, margin: float) -> str:
        """What lies behind differences: the line of zero, and as far as `margin` on both sides what does not matter."""
        left, right = self._place(-margin), self._place(margin)
        return f"--z:{_share(self._place(0))};--a:{_share(left)};--b:{_share(right - left)}"

    def _place(self, value: float) -> float:
        return min(1.0, max(0.0, (value - self.low) / max(self.high - self.low, _LEAST)))


def estimate_scale(lines: Iterable[Estimate]) -> CellScale:
    """From the least to the greatest end of intervals and a twentieth more, but not below 0 where none is."""
    ends = [end for line in lines for end in (line.ci_low, line.estimate, line.ci_high) if end is not None]
    low, high = _padded(ends)
    low = max(low, 0.0) if min(ends, default=0.0) >= 0 else low
    return CellScale(low, high, f"{figure(low)} to {figure(high)}")


def difference_scale(lines: Iterable[Comparison | Verdict], margin: float) -> CellScale:
    """The same of differences; 0 and what does not matter are on it."""
    ends = [
        end
        for line in lines
        for end in (line.ci_low, line.difference if isinstance(line, Comparison) else line.estimate, line.ci_high)
        if end is not None
    ]
    low, high = _padded([*ends, -margin, 0.0, margin])
    return CellScale(low, high, f"{signed(low)} to {signed(high)}")


def _padded(ends: list[float]) -> tuple[float, float]:
    """With a twentieth more at either end; a half where all are the same, which is in the middle then."""
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    margin = (high - low) / 20 or 0.5
    return low - margin, high + margin


def _share(value: float) -> str:
    """A share of the picture, to a thousandth of it."""
    return f"{value:.3f}".rstrip("0").rstrip(".").removeprefix("0") or "0"


Key: TypeAlias = tuple[str, str, str]
"""Dataset, slice and measure."""


@dataclass(frozen=True)
class PageFigures:
    """What is shown of a page again and again.

    Attributes:
        page: whose figures they are.
        estimates: the lines of the summary, by model.
        comparisons: the paired differences.
        leading: by dataset, the measure that leads.
        leading_difference: by dataset, the measure whose differences lead.
        matters: by measure, the least difference that matters.
        all_pairs: whether each model was compared with each, and not all with one.
        alpha: the level of the tests.
    """

    page: Page
    estimates: Mapping[Key, Mapping[str, Estimate]]
    comparisons: Mapping[Key, Sequence[Comparison]]
    leading: Mapping[str, str]
    leading_difference: Mapping[str, str]
    practical_difference: Mapping[str, float]
    all_pairs: bool
    alpha: float

    def keys(self, dataset: str) -> list[Key]:
        """The keys of a dataset's estimates: all queries, then slice by slice; the leading measure first."""
        found = [key for key in self.estimates if key[0] == dataset]
        slices = list(dict.fromkeys(part for _, part, _ in found))
        lead = self.leading[dataset]
        return sorted(found, key=lambda key: (key[1] != ALL, slices.index(key[1]), key[2] != lead))

    def ranked(self, key: Key) -> list[str]:
        """The models, the best first; those without a figure last."""
        return ranked(self.page.evaluation, self.board(key), key[2])

    def best_first(self, dataset: str) -> list[str]:
        """The models by the leading measure of a dataset: their order, and so their colours, in all of its charts."""
        return self.ranked((dataset, ALL, self.leading[dataset]))

    def board(self, key: Key) -> Leaderboard:
        """The lines of a key as a board of one measure."""
        return {model: {key[2]: line} for model, line in self.estimates[key].items()}

    def on_all(self, dataset: str) -> Sequence[Comparison]:
        """A dataset's leading comparisons on all queries."""
        return self.comparisons.get((dataset, ALL, self.leading_difference[dataset]), ())

    def sliced(self, dataset: str) -> list[Comparison]:
        """Its comparisons by the same measure on all queries and in every slice."""
        measure = self.leading_difference[dataset]
        own = (lines for key, lines in self.comparisons.items() if (key[0], key[2]) == (dataset, measure))
        return [line for lines in own for line in lines]

    def by_model(self, key: Key) -> Mapping[str, Comparison]:
        """The comparisons with the one baseline; none where each was compared with each."""
        return {} if self.all_pairs else {line.model: line for line in self.comparisons.get(key, ())}

    def letters(self, key: Key) -> Mapping[str, str]:
        """The letters of the models, where all pairs of them were compared; they begin with the best."""
        return letters_of(self.ranked(key), self.comparisons.get(key, ()), self.alpha)

    def baseline(self, dataset: str) -> str | None:
        """The one model that all others of a dataset were compared with, where there is one."""
        if self.all_pairs:
            return None
        of_dataset = (lines for key, lines in self.comparisons.items() if key[0] == dataset)
        return next((line.baseline for lines in of_dataset for line in lines), None)


def page_figures(page: Page) -> PageFigures:
    """The figures of a page, in the order of its record."""
    estimates: dict[Key, dict[str, Estimate]] = {}
    for line in page.evaluation.estimates:
        estimates.setdefault((line.dataset, line.slice, line.measure), {})[line.model] = line
    comparisons: dict[Key, list[Comparison]] = {}
    for compared in page.evaluation.comparison_lines:
        comparisons.setdefault((compared.dataset, compared.slice, compared.measure), []).append(compared)
    return PageFigures(
        page=page,
        estimates=estimates,
        comparisons=comparisons,
        leading=page.evaluation.leading,
        leading_difference=page.evaluation.leading_difference,
        practical_difference=page.practical_difference,
        all_pairs=page.manifest.comparison is not None and page.manifest.comparison.baseline == "all_pairs",
        alpha=1 - page.manifest.bootstrap.confidence,
    )


def interval(line: Estimate | Comparison | Verdict, written: Callable[[float | None], str]) -> str:
    """An interval's ends in brackets, marked where it is not to be trusted; empty where it has none."""
    line = line.without_rounding() if isinstance(line, Comparison) else line
    if line.ci_low is None or line.ci_high is None:
        return ""
    return f"[{written(line.ci_low)}, {written(line.ci_high)}]{UNSURE if line.mark else ''}"


def queries(amount: int) -> str:
    """How many queries there are."""
    return counted(amount, "query", "queries")


def isolated(name: str) -> str:
    """A name within a sentence, which it cannot turn round: one with letters from right to left is set apart."""
    turns = any(bidirectional(letter) in ("R", "AL", "AN") for letter in name)
    return f"\u2068{name}\u2069" if turns else name


def against(model: str, baseline: str) -> str:
    """A pair of models, each cut to what can be read and in its own direction."""
    return models(isolated(short_text(model)), isolated(short_text(baseline)))


def tone_of(line: Comparison, matters: Mapping[str, float]) -> Tone:
    """How a difference is taken."""
    tones: Mapping[str, Tone] = {"better": "good", "worse": "bad"}
    return tones.get(effect_label(line, matters), "")
