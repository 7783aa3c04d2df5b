"""Pages to one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count

from markupsafe import Markup, escape

from rankledger.pipeline.report.html import about, differences, summary
from rankledger.pipeline.report.html.blocks import (
    Block,
    Cell,
    Chips,
    Column,
    Command,
    Drawing,
    Drawings,
    Facts,
    Folded,
    Group,
    PagePart,
    Row,
    Section,
    Table,
    Words,
)
from rankledger.pipeline.report.tables import page_figures
from rankledger.pipeline.report.text_table import short_text
from rankledger.pipeline.types.views import Page

__all__ = ["document", "html"]

_CLASSES = {"name": "t", "reason": "t r", "text": "l", "number": "", "bar": "b", "difference": "b d"}
"""The style sheet's classes of cells, by the kind of their column; short because there are many."""

_SECTIONS = (*summary.SECTIONS, *differences.SECTIONS, *about.SECTIONS)

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
<style>
{style}</style>
<script>{script}</script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<h1><bdi>{title}</bdi></h1>
<nav aria-label="Contents"{one}>
{contents}
</nav>
</header>
<main id="main">
{content}
</main>
</body>
</html>
""")


@dataclass(frozen=True)
class _Article:
    """The sections of one evaluation; `prefix` begins their ids if a page has several evaluations."""

    title: str
    prefix: str
    sections: tuple[Section, ...]


def html(pages: Sequence[Page]) -> str:
    """One page of one or several evaluations, several with an overview first.

    The same pages give the same bytes: nothing depends on the time, the machine or the folder.

    Args:
        pages: at least one.
    """
    figures = [page_figures(page) for page in pages]
    several = len(pages) > 1
    articles = [
        _Article(
            title=short_text(own.page.title),
            prefix=f"e{place}-" if several else "",
            sections=tuple(section for build in _SECTIONS if (section := build(own)) is not None),
        )
        for place, own in enumerate(figures, start=1)
    ]
    if not several:
        return document(articles[0].title, articles[0].sections)
    table_ids = (f"t{number}" for number in count(1))
    overview = _Writer("", table_ids).section(summary.overview(figures), "", 2)
    content = _lines([overview, *(_article(article, table_ids) for article in articles)])
    title = " and ".join(article.title for article in articles[:3]) + (" and more" if len(articles) > 3 else "")
    return _document(title, articles, content)


def document(title: str, sections: Sequence[Section]) -> str:
    """One page of these sections."""
    table_ids = (f"t{number}" for number in count(1))
    content = _lines(_Writer("", table_ids).section(section, "", 2) for section in sections)
    return _document(title, [_Article(title, "", tuple(sections))], content)


def _document(title: str, articles: Sequence[_Article], content: Markup) -> str:
    script = _resource("page.js")
    page = _PAGE.format(
        title=title,
        style=Markup(_resource("page.css")),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        one="" if len(articles) > 1 else Markup(' class="one"'),
        contents=_contents(articles),
        content=content,
    )
    return str(page)


def _contents(articles: Sequence[_Article]) -> Markup:
    """Links to all sections, after the title of their evaluation if there are several."""
    item = Markup('<li><a href="#{}{}">{}</a></li>')
    lists = [
        Markup("<ul>\n{}\n</ul>").format(
            _lines(item.format(article.prefix, section.key, section.title) for section in article.sections)
        )
        for article in articles
    ]
    if len(articles) == 1:
        return lists[0]
    title = Markup('<p><a href="#{}top"><bdi>{}</bdi></a></p>')
    titles = (title.format(article.prefix, article.title) for article in articles)
    return _lines(
        [
            Markup('<ul><li><a href="#overview">Overview</a></li></ul>'),
            *(line for pair in zip(titles, lists, strict=True) for line in pair),
        ]
    )


def _article(article: _Article, table_ids: Iterator[str]) -> Markup:
    """One of several evaluations, below its heading."""
    writer = _Writer(article.title, table_ids)
    return Markup("""\
<article id="{prefix}top" aria-labelledby="{prefix}title">
<h2 id="{prefix}title"><bdi>{title}</bdi></h2>
{sections}
</article>""").format(
        prefix=article.prefix,
        title=article.title,
        sections=_lines(writer.section(section, article.prefix, 3) for section in article.sections),
    )


@dataclass(frozen=True)
class _Writer:
    """Blocks as HTML, in which every text is escaped that is not `Markup` already.

    Attributes:
        of: the evaluation that captions name; empty if the page has only one.
        table_ids: an id for each table of the page.
    """

    of: str
    table_ids: Iterator[str]

    def section(self, section: Section, prefix: str, level: int) -> Markup:
        """A section with its heading."""
        return Markup("""\
<section id="{id}" aria-labelledby="{id}-title">
<h{level} id="{id}-title">{title}</h{level}>
{blocks}
</section>""").format(
            id=prefix + section.key, level=level, title=section.title, blocks=self.blocks(section.blocks, level + 1)
        )

    def blocks(self, blocks: Iterable[Block], level: int) -> Markup:
        """Blocks, one after another, with headings of this level."""
        return _lines(self.block(block, level) for block in blocks)

    def block(self, block: Block, level: int) -> Markup:
        """A block, with headings of this level."""
        match block:
            case Table():
                return self.table(block)
            case Words(text, tone, leads):
                classes = tone + (" leads" if leads else "")
                return Markup('<p class="{}"><bdi>{}</bdi></p>').format(classes, text)
            case Chips(title, chips):
                item = Markup('<li class="{}">{}</li>')
                items = Markup().join(item.format(chip.tone, chip.text) for chip in chips)
                return Markup('<ul class="chips"><li class="quiet">{}</li>{}</ul>').format(title, items)
            case Facts(facts):
                fact = Markup("<div><dt><bdi>{}</bdi></dt><dd><bdi>{}</bdi></dd></div>")
                return Markup("<dl>\n{}\n</dl>").format(_lines(fact.format(name, value) for name, value in facts))
            case Command(text):
                return Markup('<pre class="command" tabindex="0"><code>{}</code></pre>').format(text)
            case Drawings():
                return self.drawings(block, level)
            case Folded(name, title, inner):
                return Markup("<details><summary><bdi>{}</bdi>: {}</summary>\n{}\n</details>").format(
                    name, title, self.blocks(inner, level)
                )
            case PagePart(title, inner):
                return Markup("<h{level}><bdi>{title}</bdi></h{level}>\n{blocks}").format(
                    level=level, title=title, blocks=self.blocks(inner, level + 1)
                )

    def drawings(self, drawings: Drawings, level: int) -> Markup:
        """Charts, and what stands beside them."""
        figures = [_figure(drawing) for drawing in drawings.items]
        if drawings.beside:
            figures.append(Markup("<div>\n{}\n</div>").format(self.blocks(drawings.beside, level)))
        return Markup('<div class="drawings">\n{}\n</div>').format(_lines(figures))

    def table(self, table: Table) -> Markup:
        """A table, with what to choose its rows by."""
        table_id = next(self.table_ids)
        head = Markup('<th scope="col" class="{}"><bdi>{}</bdi></th>')
        return Markup("""\
<div class="table" data-name="{name}">
<div class="tools">
{tools}
</div>
<div class="scroll" role="group" tabindex="0" aria-labelledby="{id}c">
<table>
<caption id="{id}c"><bdi>{caption}</bdi>{of}</caption>
<thead><tr>{heads}</tr></thead>
{groups}
</table>
</div>
</div>""").format(
            name=table.name,
            tools=_lines(_tools(table, table_id)),
            id=table_id,
            caption=table.caption,
            of=Markup(", <bdi>{}</bdi>").format(self.of) if self.of else "",
            heads=Markup().join(head.format(_CLASSES[column.kind], column.title) for column in table.columns),
            groups=_lines(_group(group, table.columns) for group in table.groups),
        )


def _tools(table: Table, table_id: str) -> Iterator[Markup]:
    """Lists to choose a measure and a slice from, and the field to search names in, if they are of use."""
    option = Markup("<option>{}</option>")
    for name, values in (("measure", table.measures), ("slice", table.slices)):
        if table.chosen and len(values) > 1:
            yield Markup(
                '<span><label for="{id}">{name}</label> <select id="{id}" data-by="{name}">{options}</select></span>'
            ).format(id=table_id + name[0], name=name, options=Markup().join(map(option.format, values)))
    if table.searched and table.is_long:
        yield Markup(
            '<span><label for="{id}">{name}</label> '
            '<input id="{id}" type="search" data-by="name" autocomplete="off" spellcheck="false"></span>'
        ).format(id=f"{table_id}q", name=table.searched)


def _group(group: Group, columns: Sequence[Column]) -> Markup:
    """A body of a table, below its title if it has one."""
    attributes = Markup()
    if group.measure:
        attributes += Markup(' data-measure="{}" data-slice="{}"').format(group.measure, group.slice)
    if not group.open:
        attributes += Markup(' class="off"')
    if group.ground:
        attributes += Markup(' style="{}"').format(group.ground)
    head = Markup()
    if group.title or group.note:
        head = Markup(
            '<tr class="head"><th scope="rowgroup" colspan="{}"><bdi>{}</bdi> <small>{}</small></th></tr>\n'
        ).format(len(columns), group.title, group.note)
    return Markup("<tbody{}>\n{}{}\n</tbody>").format(attributes, head, _rows(columns, group.rows))


def _rows(columns: Sequence[Column], cells: Sequence[Row]) -> Markup:
    """A line per row, headed by its first cell; written without `format`, as a page can have thousands."""
    lines = []
    for row in cells:
        head, *parts = (_cell(*pair) for pair in zip(columns, row, strict=True))
        lines.append(f"<tr><th scope=row{head}</th>{''.join(f'<td{part}</td>' for part in parts)}</tr>")
    return Markup("\n".join(lines))


def _cell(column: Column, cell: str | Cell) -> str:
    """The attributes and the content; text of users stands in a `bdi` because it may run from right to left."""
    if isinstance(cell, str):
        cell = Cell(cell)
    names = "" if column.kind in ("bar", "difference") and not cell.bar else _CLASSES[column.kind]
    classes = " ".join(filter(None, (names, cell.tone)))
    attributes = (f' class="{classes}"' if classes else "") + (f' style="{escape(cell.bar)}"' if cell.bar else "")
    text = escape(cell.text)
    if cell.drawing:
        text += Markup(cell.drawing)
    if column.kind in ("name", "reason"):
        return f"{attributes}><bdi>{text}</bdi>"
    return f"{attributes}><b>{text}</b>" if cell.strong else f"{attributes}>{text}"


def _figure(drawing: Drawing) -> Markup:
    """A chart with its title, its caption and its data."""
    chart = drawing.chart
    return Markup("""\
<figure>
<p class="title"><bdi>{title}</bdi></p>
{svg}
<figcaption>{text}</figcaption>
<details class="data"><summary>Data (CSV)</summary><pre data-name="{name}" tabindex="0">{csv}</pre></details>
</figure>""").format(title=chart.title, svg=Markup(chart.svg), text=chart.text, name=drawing.name, csv=chart.csv)


def _lines(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)


@cache
def _resource(name: str) -> str:
    return (files("rankledger.pipeline.report.html") / name).read_text(encoding="utf-8")
