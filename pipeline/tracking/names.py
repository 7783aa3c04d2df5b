"""What MLflow allows names to be, and what is said where it does not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

__all__ = ["NAME_LIMIT", "TrackingError", "allowed", "by_name", "cut"]

NAME_LIMIT = 250
"""Letters in a run's name and in the key of a metric, param or tag."""

Value = TypeVar("Value")


class TrackingError(Exception):
    """An evaluation could not be logged to MLflow: one line that says why. Its record is whole all the same."""

    exit_code = 5


def by_name(kind: str, items: Iterable[tuple[str, str, Value]]) -> dict[str, Value]:
    """The values by the names that MLflow allows.

    Args:
        kind: what they are, for the message.
        items: (name, what has it, value).
    """
    found: dict[str, tuple[str, Value]] = {}
    for name, owner, value in items:
        key = allowed(name)
        if len(key) > NAME_LIMIT:
            raise TrackingError(f"{kind}: the name '{key[:60]}…' has {len(key)} letters; MLflow takes 250")
        first = found.setdefault(key, (owner, value))[0]
        if first != owner:
            raise TrackingError(f"{kind}: '{first}' and '{owner}' would both be '{key}' in MLflow; rename one")
    return {name: value for name, (_, value) in found.items()}


def allowed(name: str) -> str:
    """The name with `_` for every letter that MLflow refuses; it also refuses what is no plain path, such as `a//b`."""
    parts = re.sub(r"[^\w.\- :/]", "_", name).split("/")
    path = "/".join("_" * max(1, len(part)) if part in ("", ".", "..") else part for part in parts)
    return path.replace("..", "__", 1) if path.startswith("..") else path


def cut(text: str, limit: int) -> str:
    """The text, ending in `…` where it had more letters than that."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
