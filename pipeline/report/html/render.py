"""Pages as one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from markupsafe import Markup, escape

from rankledger.pipeline.report.html import about, differences, summary
from rankledger.pipeline.report.html.blocks import Block, Folded, Section, SideBySide, Words, write_each
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.text_table import Cell, Column, Group, Table, short_text

GENERATOR = '<meta name="generator" content="rankledger site">'
"""Head element of every page of a site."""

_CLASSES = {"name": "t", "reason": "t r", "text": "l", "number": "", "mark": "k", "bar": "b", "difference": "b d"}
"""Short CSS classes of cells by column kind."""

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
{head}<style>
{style}</style>
<script>{script}</script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<div class="line"><h1><bdi>{title}</bdi></h1>{facts}</div>
<nav aria-label="Contents">
<ul>
{contents}
</ul>
</nav>
{tools}
</header>
<main id="main">
{content}
</main>
</body>
</html>
""")
_FEED = Markup('<link rel="alternate" type="application/atom+xml" title="Changes of verdicts" href="{}">\n')
_SEARCH = Markup("""\
<div class="search" role="search">
<label for="search">Search evaluations, nights, datasets, models and owners</label>
<input id="search" type="search" autocomplete="off" spellcheck="false">
<output for="search"></output>
<ul></ul>
<script type="application/json">{}</script>
</div>
""")
_TABLE = Markup("""\
<div class="table" data-name="{name}"{attributes}>
<div class="scroll" role="group" tabindex="0" aria-labelledby="{id}c">
<table>
<caption id="{id}c"><bdi>{caption}</bdi></caption>
<thead><tr>{heads}</tr></thead>
{groups}
</table>
</div>
</div>""")


def html(page: Page) -> str:
    """Write the page of an evaluation. The same figures give the same bytes."""
    sections = [section for build in _SECTIONS if (section := build(page)) is not None]
    return document(short_text(page.title), sections, about.facts(page.manifest))


def document(
    title: str,
    sections: Sequence[Section],
    facts: Sequence[tuple[str, str]] = (),
    *,
    links: Sequence[tuple[str, str]] = (),
    feed: str = "",
    search: Sequence[tuple[str, str, str]] = (),
) -> str:
    """Write one page.

    Args:
        title: Title.
        sections: Contents.
        facts: Names with values beside the title.
        links: Titles and addresses of other pages of a site.
        feed: Address of the site's feed. Empty for a page that is of no site.
        search: Texts, addresses and notes that a reader can search.
    """
    writer = _Writer()
    content = _join(map(writer.write_section, sections))
    script = _resource("page.js") + _resource("queries.js") + (_resource("search.js") if search else "")
    fact = Markup("<div><dt>{}</dt><dd><bdi>{}</bdi></dd></div>")
    targets = [*links, *((section.title, f"#{section.key}") for section in sections)]
    index = json.dumps(search, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page = _PAGE.format(
        title=title,
        style=Markup(_resource("page.css")),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        head=Markup(f"{GENERATOR}\n") + _FEED.format(feed) if feed else "",
        facts=Markup('<dl class="facts">{}</dl>').format(write_each(fact, facts)) if facts else "",
        contents=write_each(Markup('<li><a href="{1}">{0}</a></li>'), targets, "\n"),
        tools=writer.write_tools(),
        content=(_SEARCH.format(Markup(index)) if search else Markup()) + content,
    )
    return str(page)


class _Writer:
    """Writer of blocks. It escapes every text that is not `Markup`, and collects what the filters of a page offer."""

    def __init__(self) -> None:
        self._n_tables = 0
        self._choices: dict[str, dict[str, None]] = {"measure": {}, "slice": {}}
        self._searched = ""
        self._has_details = False

    def write_section(self, section: Section) -> Markup:
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
            id=section.key, content=_fold(title, self._write(blocks, 3), section.folded)
        )

    def _write(self, blocks: Iterable[Block], level: int) -> Markup:
        return _join(self._write_block(block, level) for block in blocks)

    def _write_block(self, block: Block, level: int) -> Markup:
        match block:
            case Table():
                return self._write_table(block)
            case Words(text, tone, leads, link):
                linked = Markup('<a href="{}">{}</a>').format(link, text) if link else text
                return Markup('<p class="{}"><bdi>{}</bdi></p>').format(tone + (" leads" if leads else ""), linked)
            case SideBySide(first, second):
                return Markup('<div class="beside">\n<div>\n{}\n</div>\n<div>\n{}\n</div>\n</div>').format(
                    self._write(first, level), self._write(second, level)
                )
            case Folded(name, title, inner, query, slices):
                attributes = _attributes(data_query=query, data_slices="\n".join(slices))
                return Markup("<details{}><summary><bdi>{}</bdi>: {}</summary>\n{}\n</details>").format(
                    attributes, name, title, self._write(inner, level)
                )
            case Section(key, title, inner, folded):
                head = Markup("<h{0}{1}><bdi>{2}</bdi></h{0}>").format(level, _attributes(id=key), title)
                return _fold(head, self._write(inner, level + 1), folded)
            case Markup():
                return block

    def _write_table(self, table: Table) -> Markup:
        self._n_tables += 1
        self._add_filters(table)
        return _TABLE.format(
            name=table.name,
            attributes=_attributes(data_searched=table.searched, data_most=table.most),
            id=f"t{self._n_tables}",
            caption=table.caption,
            heads=Markup().join(map(_write_head, table.columns)),
            groups=_join(_write_group(group, table.columns) for group in table.groups),
        )

    def _add_filters(self, table: Table) -> None:
        self._searched = self._searched or table.searched
        self._choices["measure"] |= dict.fromkeys(table.measures)
        for group in table.groups:
            if table.chosen:
                self._choices["measure"] |= dict.fromkeys(filter(None, [group.measure]))
                self._choices["slice"] |= dict.fromkeys(filter(None, [group.slice]))
            self._has_details = self._has_details or any(
                isinstance(cell, Cell) and bool(cell.small) and column.kind != "name"
                for row in group.rows
                for column, cell in zip(table.columns, row, strict=False)
            )

    def write_tools(self) -> Markup:
        chosen = Markup(
            '<span><label for="by-{0}">{0}</label> '
            '<select id="by-{0}" data-by="{0}" autocomplete="off">{1}</select></span>'
        )
        tools = []
        for name, values in self._choices.items():
            if len(values) > 1:
                options = ["lead measure", *values] if name == "measure" else [*values]
                tools.append(
                    chosen.format(name, write_each(Markup("<option>{}</option>"), ([option] for option in options)))
                )
        if self._searched:
            search = Markup(
                '<span><label for="by-filter">{}</label> '
                '<input id="by-filter" type="search" autocomplete="off" spellcheck="false"></span>'
            )
            tools.append(search.format(self._searched))
        if self._has_details:
            intervals = Markup('<label><input id="by-intervals" type="checkbox" autocomplete="off"> intervals</label>')
            tools.append(intervals)
        group = Markup('<div class="tools" role="search" aria-label="Filters">{}</div>')
        return group.format(Markup().join(tools)) if tools else Markup()


def _attributes(**values: object) -> Markup:
    """Write the attributes that have a value, such as ` data-most="10"`."""
    named = ((name.strip("_").replace("_", "-"), value) for name, value in values.items() if value)
    return write_each(Markup(' {}="{}"'), named)


def _fold(title: Markup, content: Markup, folded: bool | None) -> Markup:
    if folded is None:
        return Markup("{}\n{}").format(title, content)
    fold = Markup('<details class="fold"{}><summary>{}</summary>\n{}\n</details>')
    return fold.format("" if folded else Markup(" open"), title, content)


def _write_head(column: Column) -> Markup:
    attributes = _attributes(data_lower="first" if column.lower else "", data_by=column.by)
    return Markup('<th scope="col" class="{}"{}{}><bdi>{}</bdi></th>').format(
        _CLASSES[column.kind], attributes, " hidden" if column.hidden else "", column.title
    )


def _write_group(group: Group, columns: Sequence[Column]) -> Markup:
    attributes = _attributes(
        data_measure=group.measure, data_slice=group.slice, class_="" if group.open else "off", style=group.ground
    )
    head = Markup()
    if group.title or group.note:
        head = Markup(
            '<tr class="head"><th scope="rowgroup" colspan="{}"><bdi>{}</bdi> <small>{}</small></th></tr>\n'
        ).format(len(columns), group.title, group.note)
    lines = []  # without `format`, as a page can have thousands
    for row in group.rows:
        first, *cells = (_write_cell(*pair) for pair in zip(columns, row, strict=False))  # the last ones may be missing
        lines.append(f"<tr><th scope=row{first}</th>{''.join(f'<td{cell}</td>' for cell in cells)}</tr>")
    return Markup("<tbody{}>\n{}{}\n</tbody>").format(attributes, head, Markup("\n".join(lines)))


def _write_cell(column: Column, cell: str | Cell) -> str:
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


def _join(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)


@cache
def _resource(name: str) -> str:
    return (files("rankledger.pipeline.report.html") / name).read_text(encoding="utf-8")
