"""Pages as one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import count

from markupsafe import Markup, escape

from rankledger.pipeline.report.html import about, differences, summary
from rankledger.pipeline.report.html.blocks import (
    Block,
    Cell,
    Chart,
    Column,
    Command,
    Drawings,
    Facts,
    Folded,
    Group,
    Plot,
    Row,
    Section,
    SideBySide,
    Table,
    Words,
)
from rankledger.pipeline.report.html.charts import marks_of, plot_csv, plot_text
from rankledger.pipeline.report.html.standing import standing
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.tables import page_figures
from rankledger.pipeline.report.text_table import short_text

GENERATOR = '<meta name="generator" content="rankledger site">'
"""Head element of every page of a site."""

_CLASSES = {"name": "t", "reason": "t r", "text": "l", "number": "", "mark": "k", "bar": "b", "difference": "b d"}
"""Short CSS classes of cells by column kind."""

_SECTIONS = (*summary.SECTIONS, standing, *differences.SECTIONS, *about.SECTIONS)

_FOLDED = ("queries", "curves", "quality", "definitions", "history", "provenance")
"""Sections that are closed at first."""

_PAGE = Markup("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'sha256-{script_digest}'; base-uri 'none'; form-action 'none'">
<title>{title}</title>
{head}<style>
{style}</style>
<script>{script}</script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<div class="line"><h1><bdi>{title}</bdi></h1>{facts}</div>
<nav aria-label="Contents">
{contents}
</nav>
{tools}
</header>
<main id="main">
{content}
</main>
</body>
</html>
""")


@dataclass(frozen=True)
class SiteFrame:
    """Parts of a site's page besides its sections."""

    links: tuple[tuple[str, str], ...]  # titles and addresses
    feed: str
    search: tuple[tuple[str, str, str], ...] = ()  # texts, addresses and notes


def html(page: Page) -> str:
    """Write the page of an evaluation. The same figures give the same bytes."""
    figures = page_figures(page)
    sections = [
        replace(section, folded=None if section.key == "verdict" else section.key in _FOLDED)
        for build in _SECTIONS
        if (section := build(figures)) is not None
    ]
    return document(short_text(page.title), sections, about.facts(page.manifest))


def document(
    title: str, sections: Sequence[Section], facts: Sequence[tuple[str, str]] = (), frame: SiteFrame | None = None
) -> str:
    """Write one page. `facts` are shown beside the heading, and `frame` is the site's."""
    writer = _Writer()
    content = _lines(map(writer.section, sections))
    searched = frame is not None and bool(frame.search)
    script = _resource("page.js") + _resource("queries.js") + (_resource("search.js") if searched else "")
    fact = Markup("<div><dt>{}</dt><dd><bdi>{}</bdi></dd></div>")
    page = _PAGE.format(
        title=title,
        style=Markup(_resource("page.css")),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        head=_site_head(frame),
        facts=Markup('<dl class="facts">{}</dl>').format(Markup().join(fact.format(*pair) for pair in facts))
        if facts
        else "",
        contents=_contents(sections, frame.links if frame else ()),
        tools=_tools(writer.filters),
        content=_lines([*_search(frame), content]),
    )
    return str(page)


def _site_head(frame: SiteFrame | None) -> Markup:
    feed = Markup('<link rel="alternate" type="application/atom+xml" title="Changes of verdicts" href="{}">\n')
    return Markup(f"{GENERATOR}\n") + feed.format(frame.feed) if frame else Markup()


def _search(frame: SiteFrame | None) -> Iterator[Markup]:
    if frame and frame.search:
        index = json.dumps(frame.search, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        yield Markup("""\
<div class="search" role="search">
<label for="search">Search evaluations, nights, datasets, models and owners</label>
<input id="search" type="search" autocomplete="off" spellcheck="false">
<output for="search"></output>
<ul></ul>
<script type="application/json">{}</script>
</div>""").format(Markup(index))


def _contents(sections: Sequence[Section], links: Sequence[tuple[str, str]]) -> Markup:
    item = Markup('<li><a href="{1}">{0}</a></li>')
    targets = [*links, *((own.title, f"#{own.key}") for own in sections)]
    return Markup("<ul>\n{}\n</ul>").format(_lines(item.format(*target) for target in targets))


@dataclass
class _Filters:
    measure: dict[str, None] = field(default_factory=dict)
    slice: dict[str, None] = field(default_factory=dict)
    searched: str = ""
    detailed: bool = False

    def add(self, table: Table) -> None:
        self.searched = self.searched or table.searched
        self.measure |= dict.fromkeys(table.measures)
        for group in table.groups if table.chosen else ():
            self.measure |= dict.fromkeys(filter(None, [group.measure]))
            self.slice |= dict.fromkeys(filter(None, [group.slice]))
        self.detailed = self.detailed or any(
            isinstance(cell, Cell) and bool(cell.small) and column.kind != "name"
            for group in table.groups
            for row in group.rows
            for column, cell in zip(table.columns, row, strict=False)
        )


@dataclass(frozen=True)
class _Writer:
    """Writer of blocks. It escapes every text that is not `Markup`."""

    table_ids: Iterator[str] = field(default_factory=lambda: (f"t{number}" for number in count(1)))
    filters: _Filters = field(default_factory=_Filters)

    def section(self, section: Section) -> Markup:
        parts = [block for block in section.blocks if isinstance(block, Section) and block.folded is None]
        first = parts[0] if len(parts) > 1 else None
        blocks = [
            replace(block, folded=block is not first)
            if first and isinstance(block, Section) and block.folded is None
            else block
            for block in section.blocks
        ]
        title = Markup('<h2 id="{}-title">{}</h2>').format(section.key, section.title)
        return Markup('<section id="{id}" aria-labelledby="{id}-title">\n{content}\n</section>').format(
            id=section.key, content=_foldable(title, self.blocks(blocks, 3), section.folded)
        )

    def blocks(self, blocks: Iterable[Block], level: int) -> Markup:
        return _lines(self.block(block, level) for block in blocks)

    def block(self, block: Block, level: int) -> Markup:
        match block:
            case Table():
                return self.table(block)
            case Words():
                return _words(block)
            case Facts(facts):
                fact = Markup("<div><dt><bdi>{}</bdi></dt><dd><bdi>{}</bdi></dd></div>")
                return Markup("<dl>\n{}\n</dl>").format(_lines(fact.format(name, value) for name, value in facts))
            case Command(text):
                return Markup('<pre class="command" tabindex="0"><code>{}</code></pre>').format(text)
            case Drawings(drawings):
                return Markup('<div class="drawings">\n{}\n</div>').format(_lines(map(_figure, drawings)))
            case Plot():
                return _plot(block)
            case SideBySide(first, second):
                return Markup('<div class="beside">\n<div>\n{}\n</div>\n<div>\n{}\n</div>\n</div>').format(
                    self.blocks(first, level), self.blocks(second, level)
                )
            case Folded(name, title, inner, query, slices):
                about = Markup(' data-query="{}"').format(query) if query else ""
                about += Markup(' data-slices="{}"').format("\n".join(slices)) if slices else ""
                return Markup("<details{}><summary><bdi>{}</bdi>: {}</summary>\n{}\n</details>").format(
                    about, name, title, self.blocks(inner, level)
                )
            case Section(key, title, inner, folded):
                named = Markup(' id="{}"').format(key) if key else ""
                head = Markup("<h{level}{named}><bdi>{title}</bdi></h{level}>").format(
                    level=level, named=named, title=title
                )
                return _foldable(head, self.blocks(inner, level + 1), folded)

    def table(self, table: Table) -> Markup:
        self.filters.add(table)
        return Markup("""\
<div class="table" data-name="{name}"{searched}{most}>
<div class="scroll" role="group" tabindex="0" aria-labelledby="{id}c">
<table>
<caption id="{id}c"><bdi>{caption}</bdi></caption>
<thead><tr>{heads}</tr></thead>
{groups}
</table>
</div>
</div>""").format(
            name=table.name,
            searched=Markup(' data-searched="{}"').format(table.searched) if table.searched else "",
            most=Markup(' data-most="{}"').format(table.most) if table.most else "",
            id=next(self.table_ids),
            caption=table.caption,
            heads=Markup().join(map(_head, table.columns)),
            groups=_lines(_group(group, table) for group in table.groups),
        )


def _words(words: Words) -> Markup:
    classes = words.tone + (" leads" if words.leads else "")
    text = Markup('<a href="{}">{}</a>').format(words.link, words.text) if words.link else words.text
    return Markup('<p class="{}"><bdi>{}</bdi></p>').format(classes, text)


def _foldable(title: Markup, content: Markup, folded: bool | None) -> Markup:
    if folded is None:
        return Markup("{}\n{}").format(title, content)
    opened = "" if folded else Markup(" open")
    fold = Markup('<details class="fold"{}><summary>{}</summary>\n{}\n</details>')
    return fold.format(opened, title, content)


def _head(column: Column) -> Markup:
    lower = Markup(' data-lower=""') if column.lower else ""
    by = Markup(' data-by="{}"').format(column.by) if column.by else ""
    return Markup('<th scope="col" class="{}"{}{}{}><bdi>{}</bdi></th>').format(
        _CLASSES[column.kind], lower, by, " hidden" if column.hidden else "", column.title
    )


def _tools(filters: _Filters) -> Markup:
    chosen = Markup(
        '<span><label for="by-{0}">{0}</label> <select id="by-{0}" data-by="{0}" autocomplete="off">{1}</select></span>'
    )
    option = Markup("<option>{}</option>")
    tools = [
        chosen.format(name, Markup().join(map(option.format, (*first, *values))))
        for name, first, values in (("measure", ["lead measure"], filters.measure), ("slice", [], filters.slice))
        if len(values) > 1
    ]
    if filters.searched:
        search = Markup(
            '<span><label for="by-filter">{}</label> '
            '<input id="by-filter" type="search" autocomplete="off" spellcheck="false"></span>'
        )
        tools.append(search.format(filters.searched))
    if filters.detailed:
        tools.append(Markup('<label><input id="by-intervals" type="checkbox" autocomplete="off"> intervals</label>'))
    group = Markup('<div class="tools" role="search" aria-label="Filters">{}</div>')
    return group.format(Markup().join(tools)) if tools else Markup()


def _group(group: Group, table: Table) -> Markup:
    attributes = Markup()
    for name, value in (("measure", group.measure), ("slice", group.slice)):
        if value:
            attributes += Markup(' data-{}="{}"').format(name, value)
    if not group.open:
        attributes += Markup(' class="off"')
    if group.ground:
        attributes += Markup(' style="{}"').format(group.ground)
    head = Markup()
    if group.title or group.note:
        head = Markup(
            '<tr class="head"><th scope="rowgroup" colspan="{}"><bdi>{}</bdi> <small>{}</small></th></tr>\n'
        ).format(len(table.columns), group.title, group.note)
    return Markup("<tbody{}>\n{}{}\n</tbody>").format(attributes, head, _rows(table, group.rows))


def _rows(table: Table, cells: Sequence[Row]) -> Markup:
    """Write a line per row without `format`, as a page can have thousands."""
    lines = []
    for row in cells:
        head, *parts = (_cell(*pair) for pair in zip(table.columns, row, strict=False))  # the last ones may be missing
        lines.append(f"<tr><th scope=row{head}</th>{''.join(f'<td{part}</td>' for part in parts)}</tr>")
    return Markup("\n".join(lines))


def _cell(column: Column, cell: str | Cell) -> str:
    """Return attributes and content. Text of users is in a `bdi` because it may run from right to left."""
    if isinstance(cell, str):
        cell = Cell(cell)
    names = "" if column.kind in ("bar", "difference") and not cell.bar else _CLASSES[column.kind]
    classes = " ".join(filter(None, (names, cell.tone, f"h{cell.tint}" if cell.tint else "")))
    attributes = (f' class="{classes}"' if classes else "") + (f' style="{escape(cell.bar)}"' if cell.bar else "")
    attributes += " hidden" if column.hidden else ""
    written = escape(cell.text)
    if cell.link:
        written = Markup('<a href="{}">{}</a>').format(cell.link, written)
    if cell.more:
        written = Markup("<details><summary>{}</summary> {}</details>").format(written, cell.more)
    text = str(written + Markup(cell.drawing))
    if column.kind in ("name", "reason"):
        text = f"<bdi>{text}</bdi>"
    text = f"<b>{text}</b>" if cell.strong else text
    return f"{attributes}>{text} <small>{escape(cell.small)}</small>" if cell.small else f"{attributes}>{text}"


def _plot(plot: Plot) -> Markup:
    marks, limits = marks_of(plot)
    mark = Markup('<div class="mark{}" style="{}"><bdi>{}</bdi></div>')
    ends = zip(("x0", "x1", "y0", "y1"), limits, strict=True)
    return Markup("""\
<figure class="plot">
<p class="title"><bdi>{title}</bdi></p>
<div class="field" role="img" aria-label="{title}">{ends}{marks}</div>
<figcaption>{text}</figcaption>
<details class="data"><summary>Data (CSV)</summary><pre data-name="{name}" tabindex="0">{csv}</pre></details>
</figure>""").format(
        title=plot.title,
        ends=Markup().join(Markup('<span class="{}">{}</span>').format(*end) for end in ends),
        marks=Markup().join(
            mark.format(
                " front" * own.unbeaten + " right" * own.at_right + " covered" * own.covered, own.place, own.model
            )
            for own in marks
        ),
        text=plot_text(plot),
        name=plot.name,
        csv=plot_csv(plot),
    )


def _figure(drawing: tuple[str, Chart]) -> Markup:
    name, chart = drawing
    points = Markup(' data-points="{}"').format(" ".join(f"{value:.6g}" for value in chart.points))
    return Markup("""\
<figure{points}>
<p class="title"><bdi>{title}</bdi></p>
{svg}
<figcaption>{text}</figcaption>
<details class="data"><summary>Data (CSV)</summary><pre data-name="{name}" tabindex="0">{csv}</pre></details>
</figure>""").format(
        points=points if chart.points else "",
        title=chart.title,
        svg=Markup(chart.svg),
        text=chart.text,
        name=name,
        csv=chart.csv,
    )


def _lines(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)


@cache
def _resource(name: str) -> str:
    return (files("rankledger.pipeline.report.html") / name).read_text(encoding="utf-8")
