"""Exit codes, and the one that an evaluation asks for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.tables import Evaluation

__all__ = [
    "BUG",
    "DIFFERENT",
    "DISK",
    "DONE",
    "INCOMPLETE",
    "INTERRUPTED",
    "NOT_RECORDED",
    "exit_code_of",
    "leave",
    "notes_of",
]

DONE = 0
FAILED_GATE = 1
DIFFERENT = 1
INCONCLUSIVE = 3
INCOMPLETE = 4
NOT_RECORDED = 5
BUG = 70
DISK = 74
INTERRUPTED = 130


def exit_code_of(evaluation: Evaluation, *, require_tracking: bool) -> int:
    """What an evaluation came to: a gate that failed weighs more than a place that has no copy, that more than an
    output, and that more than doubt.

    Args:
        evaluation: what was evaluated.
        require_tracking: whether MLflow must have it.
    """
    from pipeline.verdicts import failed  # imports NumPy, which `rankledger --help` must not wait for

    verdict = failed(evaluation.verdicts)
    if verdict == "fail":
        return FAILED_GATE
    if evaluation.unsaved or (require_tracking and evaluation.record and evaluation.store is None):
        return NOT_RECORDED
    if evaluation.failures:
        return INCOMPLETE
    return INCONCLUSIVE if verdict == "inconclusive" else DONE


def notes_of(error: BaseException) -> list[str]:
    """What was put on an error, or on the one that it stands for, to say what remains: the record, or nothing."""
    return [note for found in (error, error.__cause__) for note in getattr(found, "__notes__", ())]


def leave(code: int) -> None:
    """Exit, unless all is well."""
    if code != DONE:
        sys.exit(code)
