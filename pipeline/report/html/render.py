"""Pages to one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from rankledger.pipeline.report.html import about, differences, summary
from rankledger.pipeline.report.html.blocks import Cell, Column, Row, Section
from rankledger.pipeline.report.tables import page_figures
from rankledger.pipeline.report.text_table import short_text
from rankledger.pipeline.types.views import Page

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["CLASSES", "html", "rows"]

CLASSES = {"name": "t", "reason": "t r", "text": "l", "number": "", "bar": "b", "difference": "b d"}
"""The style sheet's classes of cells, by the kind of their column; short because there are many."""


def rows(columns: Sequence[Column], cells: Sequence[Row]) -> Markup:
    """A line per row, headed by its first cell; the text of cells is escaped."""
    lines = []
    for row in cells:
        head, *parts = (_cell(*pair) for pair in zip(columns, row, strict=True))
        lines.append(f"<tr><th scope=row{head}</th>{''.join(f'<td{part}</td>' for part in parts)}</tr>")
    return Markup("\n".join(lines))


def _cell(column: Column, cell: str | Cell) -> str:
    """The attributes and the content; text of users stands in a `bdi` because it may run from right to left."""
    if isinstance(cell, str):
        cell = Cell(cell)
    names = "" if column.kind in ("bar", "difference") and not cell.bar else CLASSES[column.kind]
    classes = " ".join(filter(None, (names, cell.tone)))
    attributes = (f' class="{classes}"' if classes else "") + (f' style="{escape(cell.bar)}"' if cell.bar else "")
    text = escape(cell.text)
    if column.kind in ("name", "reason"):
        return f"{attributes}><bdi>{text}</bdi>"
    return f"{attributes}><b>{text}</b>" if cell.strong else f"{attributes}>{text}"


_SECTIONS = (*summary.SECTIONS, *differences.SECTIONS, *about.SECTIONS)


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
    script = _resource("page.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=" and ".join(article.title for article in articles[:3]) + (" and more" if len(articles) > 3 else ""),
            overview=summary.overview(figures) if several else None,
            articles=articles,
            style=_resource("page.css"),
            script=script,
            script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            number=count(1).__next__,
        )
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow to import

    environment = Environment(
        loader=PackageLoader("rankledger.pipeline.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(rows=rows, classes=CLASSES)
    return environment


@cache
def _resource(name: str) -> str:
    return (files("rankledger.pipeline.report.html") / name).read_text(encoding="utf-8")
