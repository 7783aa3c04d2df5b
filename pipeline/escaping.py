"""Text from outside, a name, a path or a key, in a line of a terminal or a log, and in a cell of a spreadsheet."""

from __future__ import annotations

import re

__all__ = ["from_cell", "one_line", "to_cell", "visible"]

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\w*\[)")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")  # the last one, so that what is put before can be taken away
_QUOTE = "'"


def visible(text: str) -> str:
    """Text on one line and in its own order: what would steer a terminal or turn the writing round is spelt out."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """The same as a line of its own, which is no command to whoever reads logs.

    GitHub takes a line that begins with `::`, and GitHub, Azure and TeamCity one with `##[` or `##vso[`, for commands.
    """
    return _COMMAND.sub(lambda found: f"{found[1] or ''}\\x{ord(found[0][-1]):02x}", visible(text))


def to_cell(text: str) -> str:
    """Text as a cell that spreadsheets show and do not compute: after an apostrophe where they would."""
    return _QUOTE + text if text.startswith(_FORMULA) else text


def from_cell(cell: str) -> str:
    """The text that `to_cell` gave the cell for."""
    return cell.removeprefix(_QUOTE)
