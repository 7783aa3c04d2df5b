"""Requests that MLflow's server does not expect at the same time.

Of two that are the first to name a dataset, or to set a tag, its database takes one and refuses the other, which would
find the row if it came a moment later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["settled"]

Result = TypeVar("Result")

_REFUSED = "unique"  # "UNIQUE constraint failed", "violates unique constraint": SQLite and PostgreSQL


def settled(step: Callable[[], Result]) -> Result:
    """What a step gives, which may be done twice: it is where another request added the same row first.

    Args:
        step: one or more requests of MLflow's client.

    Raises:
        Exception: whatever else it raises.
    """
    from mlflow.exceptions import MlflowException

    try:
        return step()
    except MlflowException as error:
        if _REFUSED not in str(error).lower():
            raise
    return step()
