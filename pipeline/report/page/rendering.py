"""From pages to one file of HTML that asks for nothing else: neither styles, scripts, fonts nor pictures."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count
from typing import TYPE_CHECKING

from pipeline.pages import Page
from pipeline.report.page.blocks import Section, shown
from pipeline.report.page.curves import curves
from pipeline.report.page.definitions import definitions
from pipeline.report.page.differences import differences, slices
from pipeline.report.page.figures import Figures, figures_of
from pipeline.report.page.history import history
from pipeline.report.page.leaderboard import leaderboard
from pipeline.report.page.overview import overview
from pipeline.report.page.provenance import provenance
from pipeline.report.page.quality import quality
from pipeline.report.page.queries import queries
from pipeline.report.page.rows import CLASSES, rows
from pipeline.report.page.verdict import verdict

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["html"]

_SECTIONS = (
    verdict,
    leaderboard,
    differences,
    slices,
    queries,
    curves,
    quality,
    definitions,
    history,
    provenance,
)


@dataclass(frozen=True)
class _Article:
    """The sections of one evaluation; `prefix` begins their ids where a page has several."""

    title: str
    prefix: str
    sections: tuple[Section, ...]


def html(pages: Sequence[Page]) -> str:
    """One page over one or several evaluations; of several an overview comes first.

    It is the same, byte for byte, for the same pages: nothing in it is of the moment, the machine or the place.

    Args:
        pages: at least one.
    """
    found = [figures_of(page) for page in pages]
    several = len(found) > 1
    articles = [_article(figures, f"e{place}-" if several else "") for place, figures in enumerate(found, start=1)]
    script = _resource("page.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=" and ".join(article.title for article in articles[:3]) + (" and more" if len(articles) > 3 else ""),
            overview=overview(found) if several else None,
            articles=articles,
            style=_resource("page.css"),
            script=script,
            script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            number=count(1).__next__,
        )
    )


def _article(figures: Figures, prefix: str) -> _Article:
    sections = (section for build in _SECTIONS if (section := build(figures)) is not None)
    return _Article(shown(figures.page.title), prefix, tuple(sections))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # which takes as long as reading a small config

    made = Environment(
        loader=PackageLoader("pipeline.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(rows=rows, classes=CLASSES)
    return made


@cache
def _resource(name: str) -> str:
    return (files("pipeline.report.page") / name).read_text(encoding="utf-8")
