"""Requests that MLflow's server does not expect at the same time.

Of two that are the first to name a dataset, or to set a tag, its database takes one and refuses the other, which would
find the row if it came a moment later. Of two deliveries of an evaluation each may take the runs of the other for
ghosts; whose run was deleted finds, looking again, the one that stayed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["DELETED", "SAME_ROW", "OvertakenError", "settled"]

Result = TypeVar("Result")

SAME_ROW = "unique"  # "UNIQUE constraint failed", "violates unique constraint": SQLite and PostgreSQL
DELETED = "must be in the 'active' state"  # a run
_ATTEMPTS = 8
_PAUSE = 0.2  # seconds, by which those that met once are kept from meeting again


class OvertakenError(Exception):
    """Another delivery of the same evaluation has chosen another run."""


def settled(step: Callable[[], Result], *conflicts: str) -> Result:
    """What a step gives, which may be done again: it is where the server said that another came between.

    Args:
        step: requests of MLflow's client.
        conflicts: what the server then says: `SAME_ROW`, `DELETED`.

    Raises:
        Exception: whatever else it raises, or that there is no end of others.
    """
    from mlflow.exceptions import MlflowException

    for attempt in range(1, _ATTEMPTS):
        try:
            return step()
        except OvertakenError:
            pass
        except MlflowException as error:
            if not any(conflict in str(error).lower() for conflict in conflicts):
                raise
        time.sleep(random.uniform(0, attempt * _PAUSE))
    return step()
