"""What a page of HTML says, as a person reads it: its tables, its charts' data and captions, and its other words."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

_EMPTY = frozenset(("meta", "input", "br", "img", "link", "hr"))


@dataclass
class Group:
    """The rows of one body of a table."""

    measure: str  # by which the rows are; empty where they cannot be chosen
    slice: str  # of which they are
    title: str = ""  # what stands above them
    rows: list[list[str]] = field(default_factory=list)  # the texts of their cells


@dataclass
class Table:
    """A table: what it is called where it is saved, its caption, the heads of its columns, and its groups of rows."""

    name: str
    caption: str = ""
    heads: list[str] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)

    def cells(self, group: Group) -> list[Mapping[str, str]]:
        return [dict(zip(self.heads, row, strict=True)) for row in group.rows]


@dataclass
class Chart:
    """A chart: what its data are called where they are saved, its title and its caption, and its data."""

    name: str = ""
    title: str = ""
    caption: str = ""
    data: str = ""

    @property
    def rows(self) -> Sequence[Mapping[str, str]]:
        return list(csv.DictReader(io.StringIO(self.data)))


@dataclass
class Said:
    """All that a page says."""

    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    text: dict[str, str] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)  # the names of all elements


def read_page(html: str) -> Said:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [], reader.open
    return reader.said


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.said = Said()
        self.open: list[str] = []
        self._section = ""
        self._name = ""
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.said.tags.add(tag)
        if tag not in _EMPTY:
            self.open.append(tag)
        self._name = found.get("data-name", self._name)
        self._in_title = found.get("class") == "title" or (self._in_title and tag == "bdi")
        if tag == "section":
            self._section = found["id"]
        if tag == "table":
            self.said.tables.append(Table(self._name))
        if tag == "figure":
            self.said.charts.append(Chart())
        if tag == "pre" and "figure" in self.open:
            self.said.charts[-1].name = found["data-name"]
        if "table" in self.open:
            self._in_table(tag, found)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.said.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, tag
        self._in_title = self._in_title and tag != "p"

    def handle_data(self, data: str) -> None:
        if {"style", "script", "svg"} & {*self.open}:
            return
        if "table" in self.open:
            self._text_in_table(data)
        elif "figure" in self.open:
            chart = self.said.charts[-1]
            chart.data += data if "pre" in self.open else ""
            chart.title += data if self._in_title else ""
            chart.caption += data if "figcaption" in self.open else ""
        else:
            self.said.text[self._section] = self.said.text.get(self._section, "") + data

    def _in_table(self, tag: str, found: Mapping[str, str]) -> None:
        table = self.said.tables[-1]
        if tag == "tbody":
            table.groups.append(Group(found.get("data-measure", ""), found.get("data-slice", "")))
        elif tag == "th" and found.get("scope") == "col":
            table.heads.append("")
        elif tag == "tr" and table.groups and "head" not in found.get("class", "").split():
            table.groups[-1].rows.append([])
        elif tag in ("td", "th") and found.get("scope") != "rowgroup":
            table.groups[-1].rows[-1].append("")

    def _text_in_table(self, data: str) -> None:
        table = self.said.tables[-1]
        if "caption" in self.open:
            table.caption += data
        elif "thead" in self.open:
            if "th" in self.open:
                table.heads[-1] += data
        elif "td" in self.open or "th" in self.open:
            group = table.groups[-1]
            if group.rows:
                group.rows[-1][-1] += data
            elif "small" not in self.open:
                group.title = (group.title + data).strip()
