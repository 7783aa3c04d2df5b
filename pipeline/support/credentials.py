"""Removal of credentials from texts."""

from __future__ import annotations

import re
from urllib.parse import unquote

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
