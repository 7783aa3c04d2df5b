"""Names and texts as MLflow and its database take them, and what is said where they do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from pipeline.mlflow_names import allowed, clashes

__all__ = ["EVALUATION", "MANIFEST", "TrackingError", "by_name", "storable"]

EVALUATION = "rankledger.evaluation"
"""The tag by which every run of an evaluation is found again."""

MANIFEST = "rankledger.manifest_sha256"
"""The tag that the evaluation's own run alone has: the hash of its record's manifest."""

Value = TypeVar("Value")


class TrackingError(Exception):
    """MLflow cannot be told or asked something: one line that says why. Records are whole all the same.

    Attributes:
        unreachable: whether nothing else can be asked of it, either.
    """

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        """Say why."""
        super().__init__(message)
        self.unreachable = unreachable


def by_name(kind: str, items: Iterable[tuple[str, str, Value]]) -> dict[str, Value]:
    """The values by the names that MLflow allows.

    Args:
        kind: what they are, for the message.
        items: (name, what has it, value).

    Raises:
        TrackingError: names coincide or are too long; of a record whose config was not checked for it.
    """
    listed = list(items)
    for problem in clashes((name, owner) for name, owner, _ in listed):
        raise TrackingError(f"{kind}: {problem}")
    return {allowed(name): value for name, _, value in listed}


def storable(text: str) -> str:
    """The text with `?` or `�` for what databases refuse: halves of surrogate pairs, of no UTF-8 file name, and NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")
