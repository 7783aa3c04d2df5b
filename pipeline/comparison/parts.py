"""A change split into parts: one thing after the other is changed, and each step is a part.

What is not known stays open: the steps before and after a figure that nobody can tell are one part with several causes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.movement import Cause, Part

__all__ = ["Step", "split"]


@dataclass(frozen=True)
class Step:
    """One thing changed.

    Attributes:
        cause: what.
        figure: what the figure then is; None where nobody can tell.
        reason: why not.
    """

    cause: Cause
    figure: float | None
    reason: str = ""


def split(before: float, steps: Sequence[Step], *, sign: float = 1.0) -> tuple[Part, ...]:
    """The parts of a change; they add up to the last figure less the first.

    Args:
        before: the figure before the first step.
        steps: what is changed, in order; the last one's figure is known.
        sign: -1 where lower is better.

    Reference:
        Das Gupta 1993, Standardization and Decomposition of Rates, chapter 1: in a sequential decomposition what two
        changes do together goes to the later one.
    """
    parts: list[Part] = []
    causes: list[Cause] = []
    reasons: list[str] = []
    for step in steps:
        causes.append(step.cause)
        if step.figure is None:
            reasons.append(step.reason)
            continue
        parts.append(Part(tuple(causes), sign * (step.figure - before), "; ".join(dict.fromkeys(reasons))))
        before, causes, reasons = step.figure, [], []
    return tuple(parts)
