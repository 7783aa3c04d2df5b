"""Keeping credentials out of whatever is recorded, logged or shown."""

from __future__ import annotations

import re

__all__ = ["has_credentials", "public_uri", "without_credentials"]

_CREDENTIALS = re.compile(r"://(?:[^/\s:@]*:(?!\d+/)\S*|[^/\s]*)@")  # even of a password with a slash or a quote


def without_credentials(text: str, uri: str = "") -> str:
    """The text without `user:password@` in any URI.

    Args:
        text: what is to be recorded or shown.
        uri: the tracking store, of which only the public part may stay: a token may stand in its query, too.
    """
    for secret in (uri, uri.rstrip("/")):
        text = text.replace(secret, public_uri(secret))
    return _CREDENTIALS.sub("://", text)


def has_credentials(text: str) -> bool:
    """Whether a URI in the text holds a password, or a lone word before the `@`, which may be a token."""
    for found in _CREDENTIALS.finditer(text):
        user, colon, password = found.group()[len("://") : -1].partition(":")
        if password if colon else user:
            return True
    return False


def public_uri(uri: str) -> str:
    """A URI that may be shown: without user and password, which may also stand in its query."""
    if uri.startswith(("sqlite:", "file:")) or "://" not in uri:
        return uri
    scheme, _, rest = uri.partition("://")
    authority, slash, path = rest.partition("/")
    shown = f"{authority.rpartition('@')[2]}{slash}{path}".partition("?")[0]
    return f"{scheme}://{shown.rpartition('@')[2]}"  # a password may hold a slash
