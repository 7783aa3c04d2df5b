"""The SVG of a page out of matplotlib's: paths and words alone, in the page's colours and letters.

No part keeps an id, so that any number of drawings fit on one page, and nothing is left that a drawing made later would
have otherwise. The words are ours: matplotlib would look up every letter in fonts of its own, warn where they lack a
script, and take `$` for mathematics, while it is the browser that sets them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from pipeline.report.page.charts.paint import painted

__all__ = ["Words", "cleaned"]

_SPACE = "{http://www.w3.org/2000/svg}"
_DECIMALS = re.compile(r"-?\d+\.\d+")
_NO_MARKUP = re.compile("[\ud800-\udfff\ufffe\uffff]")  # what neither HTML nor XML may hold


@dataclass(frozen=True)
class Words:
    """Words of a drawing.

    Attributes:
        said: what they say.
        x: pixels from its left.
        y: pixels from its top to their base line.
        anchor: which end of them is there, as SVG calls it.
        colour: of `paint`.
    """

    said: str
    x: float
    y: float
    anchor: str
    colour: str


def cleaned(drawn: str, words: Sequence[Words], title: str, size: str) -> str:
    """An SVG element.

    Args:
        drawn: what matplotlib wrote.
        words: what stands above it.
        title: what the drawing is called where it is not seen.
        size: the attributes of its size.
    """
    paths = (_path(found.attrib) for found in ET.fromstring(drawn).iter(f"{_SPACE}path") if "d" in found.attrib)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{_escaped(title)}">'
    return f"{head}{''.join([*paths, *map(_text, words)])}</svg>"


def _path(attributes: Mapping[str, str]) -> str:
    style = painted(attributes["style"]).replace("; ", ";").replace(": ", ":")
    return f'<path d="{_compact(attributes["d"])}" style="{style}"/>'


def _text(words: Words) -> str:
    place = f'x="{_rounded(words.x)}" y="{_rounded(words.y)}"'
    anchor = "" if words.anchor == "start" else f";text-anchor:{words.anchor}"
    return f'<text {place} style="fill:{painted(words.colour)}{anchor}">{_escaped(words.said)}</text>'


def _compact(path: str) -> str:
    """A path to a tenth of a pixel, without the spaces that it can do without."""
    return re.sub(r"\s*([MLz])\s*", r"\1", _DECIMALS.sub(lambda found: _rounded(found[0]), path)).rstrip()


def _rounded(number: str | float) -> str:
    return f"{round(float(number), 1) + 0.0:g}"  # no -0


def _escaped(text: str) -> str:
    return html.escape(_NO_MARKUP.sub("\ufffd", text))
