"""Changes split into parts: they add up, and what nobody can tell apart stays together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.history.changes import ChangeStep, split_change
from rankledger.pipeline.history.comparison import ChangePart

FIGURES = st.floats(-1e3, 1e3)


def test_each_step_is_a_part():
    assert split_change(5.0, [ChangeStep("judgments", 4.0), ChangeStep("output", 7.0)]) == (
        ChangePart(("judgments",), -1.0),
        ChangePart(("output",), 3.0),
    )


def test_where_lower_is_better_a_fall_is_a_gain():
    assert split_change(5.0, [ChangeStep("output", 3.0)], sign=-1.0) == (ChangePart(("output",), 2.0),)


def test_an_unknown_figure_joins_the_steps_around_it():
    steps = [
        ChangeStep("queries removed", 6.0),
        ChangeStep("judgments", None, "a rank is not known"),
        ChangeStep("output", 8.0),
    ]

    assert split_change(5.0, steps) == (
        ChangePart(("queries removed",), 1.0),
        ChangePart(("judgments", "output"), 2.0, "a rank is not known"),
    )


def test_a_reason_that_two_steps_share_is_given_once():
    steps = [
        ChangeStep("judgments", None, "gone"),
        ChangeStep("queries added", None, "gone"),
        ChangeStep("output", 1.0),
    ]

    assert split_change(0.0, steps) == (ChangePart(("judgments", "queries added", "output"), 1.0, "gone"),)


@given(FIGURES, st.lists(st.none() | FIGURES, max_size=4), FIGURES, st.sampled_from([1.0, -1.0]))
def test_parts_add_up_and_name_each_cause_once(before, middle, after, sign):
    causes = ("queries removed", "definition", "judgments", "queries added")[: len(middle)]
    steps = [ChangeStep(cause, figure) for cause, figure in zip(causes, middle, strict=True)]

    parts = split_change(before, [*steps, ChangeStep("output", after)], sign=sign)

    assert sum(part.amount for part in parts) == pytest.approx(sign * (after - before), abs=1e-9)
    assert [cause for part in parts for cause in part.causes] == [*causes, "output"]
