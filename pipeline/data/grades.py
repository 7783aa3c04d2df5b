"""Whether the grades of judgments look like ratings, of which a low one would count as relevant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metrics.measure import Measure
from pipeline.data.judgments import Judgments

__all__ = ["rated_relevance"]

_MANY = 4  # distinct grades, none of them at 0 or below
_HIGH = 0.75  # of the way from the least to the greatest: 4 of 1 to 5, 8 of 1 to 10
_NAMED = 3  # measures


def rated_relevance(judgments: Judgments, measures: Sequence[Measure], relevant: float | None) -> str | None:
    """What to know of judgments whose grades look like ratings, if nothing says which of them are relevant.

    Args:
        judgments: the judgments.
        measures: those of the dataset.
        relevant: the dataset's own choice.

    Returns:
        None if the dataset or every measure chooses, or the grades are whole numbers that are few or reach 0. A choice
        of the dataset that no grade reaches is named, too.
    """
    unsaid = [measure for measure in measures if "rel" in measure.parameters and "rel" not in dict(measure.given)]
    grades = judgments.rows.values[judgments.kept]
    fractional = bool((grades != np.rint(grades)).any())
    if relevant is not None:
        return (
            None
            if grades.max() >= relevant
            else f"no relevance reaches `relevant: {relevant:g}`; the greatest is {grades.max():g}"
        )
    if not unsaid or not (fractional or grades.min() > 0):
        return None
    values = np.unique(grades)
    if not fractional and len(values) < _MANY:
        return None
    rel = unsaid[0].parameters["rel"]
    share = float((grades >= rel).mean())
    counted = "every judged document" if share == 1 else f"{share:.1%} of the judged documents"
    verb = "counts" if share == 1 else "count"
    high = values[values >= values[0] + _HIGH * (values[-1] - values[0])][0]
    named = ", ".join(map(str, unsaid[:_NAMED])) + (f" and {len(unsaid) - _NAMED} more" if len(unsaid) > _NAMED else "")
    return (
        f"relevance has {len(values):,} values from {values[0]:g} to {values[-1]:g}: with rel={rel:g} {counted} {verb} "
        f"as relevant in {named}; set `relevant: {high:g}` on the dataset, or rel=… in the measures"
    )
