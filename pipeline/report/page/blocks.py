"""What a page is made of: sections of blocks, which hold text as it is to be read and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from pipeline.report.sheets import printable

if TYPE_CHECKING:
    from pipeline.report.page.charts import Chart

__all__ = [
    "Block",
    "Cell",
    "Chips",
    "Column",
    "Command",
    "Drawing",
    "Drawings",
    "Facts",
    "Folded",
    "Group",
    "Kind",
    "Part",
    "Row",
    "Section",
    "Table",
    "Tone",
    "Words",
    "shown",
]

Kind: TypeAlias = Literal["name", "reason", "text", "number", "bar", "difference"]
Tone: TypeAlias = Literal["", "good", "bad", "warn", "quiet"]

_LETTERS = 80  # of a name; the files of the record have it whole
_SHORT = 8  # rows that one sees at a glance


def shown(text: object, letters: int = _LETTERS) -> str:
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
class Part:
    """A part of a section, with its own heading."""

    kind: ClassVar[str] = "part"
    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Table | Words | Chips | Facts | Command | Drawings | Folded | Part


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
