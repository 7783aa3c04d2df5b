"""Text from outside, made safe for terminals, logs and spreadsheets."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from itertools import groupby
from typing import Any
from urllib.parse import quote, unquote

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


def write_decimals(value: float, decimals: int = 4) -> str:
    """Write a number with decimals, or a smaller one with one digit or an exponent. 0 has no sign."""
    value += 0.0  # turns -0.0 into 0.0
    if value == 0 or abs(value) >= 0.5 * 10**-decimals:
        return f"{value:.{decimals}f}"
    return f"{value:.1g}" if abs(value) >= 0.0001 else f"{value:.1e}"


def counted(amount: int, thing: str, things: str = "") -> str:
    """Return a number of things. `things` is the plural if it is irregular."""
    return f"{amount:,} {thing}" if amount == 1 else f"{amount:,} {things or f'{thing}s'}"


def queries(amount: int) -> str:
    """Return a number of queries."""
    return counted(amount, "query", "queries")


_CREDENTIALS = re.compile(r"://(?:[^/\s:@]*:(?!\d+/)\S*|[^/\s]*)@")  # even of a password with a slash or a quote
_TOKENS = re.compile(
    r"([?&](?:sig|[^=&#\s]*(?:secret|token|passw|pwd|signature|(?:api|access|account)[_-]?key)[^=&#\s]*)=)[^&#\s'\"]+",
    re.IGNORECASE,
)


_NAMED = ("ssh", "hdfs", "abfs", "abfss")  # schemes whose lone word before the @ is a user's or a container's name
_NOBODY = "://anonymous@"  # of Google Storage


def without_credentials(text: str, uri: str = "") -> str:
    """Return a text without credentials in its URIs, and with the public part of `uri` alone."""
    for secret in (uri, uri.rstrip("/")):
        text = text.replace(secret, public_uri(secret))
    return _TOKENS.sub(r"\1", _CREDENTIALS.sub(lambda found: found[0] if _is_name(found) else "://", text))


_PART = 8  # characters of a secret in a row that are hidden even if the rest is cut off
_SHORTEST = 4  # characters of a secret that are hidden: fewer are in many words
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:(.*)@)?[^/?#@\s]*(.*)", re.DOTALL)


def mask_secrets(text: str, *secrets: str) -> str:
    """Return a text with `***` for secrets and parts of them, as messages of libraries and servers repeat them.

    Args:
        text: Text to show.
        secrets: Values of variables, or addresses, whose scheme and host are not hidden.
    """
    hidden: set[int] = set()
    for form in {form for secret in secrets for form in _write_secret(secret)}:
        size = min(len(form), _PART)
        parts = {form[start : start + size] for start in range(len(form) - size + 1)}
        starts = (start for start in range(len(text) - size + 1) if text[start : start + size] in parts)
        hidden.update(index for start in starts for index in range(start, start + size))
        for word in re.findall(rf"\b\w{{{_SHORTEST},{_PART - 1}}}\b", form):
            hidden.update(index for match in re.finditer(rf"\b{word}\b", text) for index in range(*match.span()))
    pieces = groupby(range(len(text)), hidden.__contains__)
    return "".join("***" if is_hidden else "".join(map(text.__getitem__, piece)) for is_hidden, piece in pieces)


def _write_secret(secret: str) -> Iterator[str]:
    """Yield the secret parts of a value in each form that a message may have them in."""
    address = _URL.fullmatch(secret.strip())
    user, rest = address.groups(default="") if address else ("", secret.strip())
    for part in (user, *user.split(":", 1), rest):
        plain = unquote(part)
        in_header = b64encode(plain.encode(errors="replace")).decode()
        yield from (
            form for form in (part, plain, quote(plain, safe=""), repr(plain)[1:-1], in_header) if form[_SHORTEST - 1 :]
        )


def has_credentials(text: str) -> bool:
    """Return whether a URI in a text, also a percent-encoded one, may have credentials."""
    for written in (text, unquote(text)):
        if _TOKENS.search(written):
            return True
        for found in _CREDENTIALS.finditer(written):
            user, colon, password = found[0][len("://") : -1].partition(":")
            if password if colon else user and not _is_name(found):
                return True
    return False


def _is_name(found: re.Match[str]) -> bool:
    return found[0] == _NOBODY or (":" not in found[0][1:] and found.string[: found.start()].endswith(_NAMED))


def public_uri(uri: str) -> str:
    """Return a URI without user, password and query."""
    if uri.startswith(("sqlite:", "file:")) or "://" not in uri:
        return uri
    scheme, _, rest = uri.partition("://")
    authority, slash, path = rest.partition("/")
    shown = f"{authority.rpartition('@')[2]}{slash}{path}".partition("?")[0]
    return f"{scheme}://{shown.rpartition('@')[2]}"  # a password may hold a slash
