"""Text from outside, made safe for terminals, logs and spreadsheets."""

from __future__ import annotations

import json
import re
from typing import Any

_ABOVE_ASCII = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_COMMAND = r"#(?=#\w*\[)"  # of Azure and TeamCity, wherever it stands: `##vso[`
_STEERING = re.compile(f"[\x00-\x1f{_ABOVE_ASCII}]|{_COMMAND}")
_LEFT_BY_JSON = re.compile(f"[{_ABOVE_ASCII}]|{_COMMAND}")
_BREAK = re.compile(r"[^\S\n]*\n\s*")
_LEADING = re.compile(r"^(\s*):(?=:)")  # one of GitHub
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")  # the last one, so that what is put before can be taken away
_QUOTE = "'"


def visible(text: str) -> str:
    """Return a text with escapes for characters that control a terminal or CI, or reverse text."""
    return _STEERING.sub(lambda found: "\\x23" if found[0] == "#" else ascii(found[0])[1:-1], text)


def unbroken(text: str) -> str:
    """Return a message with line breaks replaced by blanks."""
    return _BREAK.sub(" ", text)


def one_line(text: str) -> str:
    """Return a text as a line, without a leading `::`, which is a command for GitHub."""
    return _LEADING.sub(r"\1\\x3a", visible(text))


def json_text(data: Any, *, indent: int | None = None) -> str:
    """Return data as JSON with escapes for characters that control a terminal."""
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    return _LEFT_BY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def to_cell(text: str) -> str:
    """Return a text as a cell that spreadsheets do not compute."""
    return _QUOTE + text if text.startswith(_FORMULA) else text


def from_cell(cell: str) -> str:
    """Return the text of a cell from `to_cell`."""
    return cell.removeprefix(_QUOTE)


def counted(amount: int, thing: str, things: str = "") -> str:
    """Return a number of things. `things` is the plural if it is irregular."""
    return f"{amount:,} {thing}" if amount == 1 else f"{amount:,} {things or f'{thing}s'}"


def queries(amount: int) -> str:
    """Return a number of queries."""
    return counted(amount, "query", "queries")
