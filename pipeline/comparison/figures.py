"""Two tables of figures held against each other: which figures are the same, and which moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from metrics.block import Bools, Floats
from pipeline.reproduction import Figures, MovedFigure

__all__ = ["TOLERANCE", "moved_figures"]

TOLERANCE = 1e-12
"""Figures a and b are equal where |a - b| <= TOLERANCE · max(1, |a|, |b|): absolute up to 1, relative beyond."""


def moved_figures(before: Figures, after: Figures) -> Iterator[MovedFigure]:
    """What is not the same, row by row of each column.

    Args:
        before: as it was recorded.
        after: as it is now, perhaps by a version that knows more columns, which are passed over.
    """
    places = {row: place for place, row in enumerate(after.rows)}
    shared = [row for row in before.rows if row in places]
    for row in [row for row in before.rows if row not in places]:
        yield MovedFigure(before.file, row, "", "a row", None)
    recorded = set(before.rows)
    for row in [row for row in after.rows if row not in recorded]:
        yield MovedFigure(before.file, row, "", None, "a row")
    ours = _places(before.rows, shared)
    theirs = np.array([places[row] for row in shared], dtype=np.int64)
    for column in before.numbers:
        if column not in after.numbers:
            yield MovedFigure(before.file, (), column, "a column", None)
            continue
        one, other = _cells(before, column, ours), _cells(after, column, theirs)
        for place in np.flatnonzero(~_equal(*one, *other)).tolist():
            yield MovedFigure(before.file, shared[place], column, _number(*one, place), _number(*other, place))
    for column in before.words.keys() & after.words.keys():
        for place, row in enumerate(shared):
            texts = before.words[column][ours[place]], after.words[column][theirs[place]]
            if texts[0] != texts[1]:
                yield MovedFigure(before.file, row, column, *texts)


def _places(rows: Sequence[tuple[str, ...]], wanted: Sequence[tuple[str, ...]]) -> npt.NDArray[np.int64]:
    places = {row: place for place, row in enumerate(rows)}
    return np.array([places[row] for row in wanted], dtype=np.int64)


def _cells(figures: Figures, column: str, places: npt.NDArray[np.int64]) -> tuple[Floats, Bools]:
    return figures.numbers[column][places], figures.blank[column][places]


def _equal(one: Floats, blank: Bools, other: Floats, other_blank: Bools) -> Bools:
    """(N,): whether both are blank, both undefined, or within the tolerance."""
    scale = np.maximum(1.0, np.maximum(np.abs(one), np.abs(other)))
    with np.errstate(invalid="ignore", over="ignore"):  # infinities, which are close to themselves alone
        near = np.isfinite(scale) & (np.abs(one - other) <= TOLERANCE * scale)
    close = (one == other) | near
    undefined = np.isnan(one) & np.isnan(other)
    equal: Bools = (blank & other_blank) | (~blank & ~other_blank & (close | undefined))
    return equal


def _number(numbers: Floats, blank: Bools, place: int) -> float | None:
    return None if blank[place] else float(numbers[place])
