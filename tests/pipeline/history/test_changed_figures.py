"""Two tables of figures: what counts as the same, and what is reported if it is not."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.history.changes import TOLERANCE, changed_figures
from rankledger.pipeline.record.upkeep import ComparedFigures, MovedFigure

NAN = math.nan


def figures(rows: Sequence[str], words: Mapping[str, Sequence[str]] | None = None, **columns: Sequence[float | None]):
    numbers = {name: np.array([NAN if cell is None else cell for cell in cells]) for name, cells in columns.items()}
    blank = {name: np.array([cell is None for cell in cells], dtype=bool) for name, cells in columns.items()}
    return ComparedFigures("a.csv", [(row,) for row in rows], numbers, blank, words or {})


def moved(before: ComparedFigures, after: ComparedFigures) -> list[MovedFigure]:
    return list(changed_figures(before, after))


@pytest.mark.parametrize("same", [0.0, 1.0, -3.5, NAN, None, math.inf])
def test_a_figure_is_itself(same):
    assert moved(figures("a", x=[same]), figures("a", x=[same])) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [(0.0, NAN), (NAN, 0.0), (0.0, None), (None, 0.0), (NAN, None), (math.inf, -math.inf), (1, math.inf), (1, 2)],
)
def test_undefined_blank_and_zero_are_three_things(before, after):
    (found,) = moved(figures("a", x=[before]), figures("a", x=[after]))

    assert (found.file, found.row, found.column) == ("a.csv", ("a",), "x")
    assert repr((found.before, found.after)) == repr(
        tuple(cell if cell is None else float(cell) for cell in (before, after))
    )


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e200, max_value=1e200), st.sampled_from([-1, 1]))
def test_the_tolerance_is_absolute_up_to_one_and_relative_beyond(figure, sign):
    scale = max(1.0, abs(figure))

    assert moved(figures("a", x=[figure]), figures("a", x=[figure + sign * TOLERANCE * scale / 2])) == []
    assert len(moved(figures("a", x=[figure]), figures("a", x=[figure + sign * TOLERANCE * scale * 2]))) == 1


def test_rows_are_found_by_their_names():
    """In whatever order they stand; what is gone or new is reported as a row."""
    before, after = figures("abc", x=[1, 2, 3]), figures("cdb", x=[3, 4, 2.5])

    assert moved(before, after) == [
        MovedFigure("a.csv", ("a",), "", "a row", None),
        MovedFigure("a.csv", ("d",), "", None, "a row"),
        MovedFigure("a.csv", ("b",), "x", 2.0, 2.5),
    ]


def test_columns_may_be_added_and_not_taken_away():
    """A later version knows more; what was recorded must still be there."""
    assert moved(figures("a", x=[1]), figures("a", x=[1], y=[2])) == []
    assert moved(figures("a", x=[1], y=[2]), figures("a", x=[1])) == [MovedFigure("a.csv", (), "y", "a column", None)]


def test_words_are_compared_letter_by_letter():
    before, after = figures("ab", {"mark": ["", "sparse"]}), figures("ab", {"mark": ["", "degenerate"]})

    assert moved(before, after) == [MovedFigure("a.csv", ("b",), "mark", "sparse", "degenerate")]


def test_figures_are_counted_without_blanks():
    assert figures("abc", x=[1, None, NAN]).n_figures == 2
