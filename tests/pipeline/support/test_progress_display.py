"""What a line of progress says, with times that are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rankledger.pipeline.support.progress import Stage
from rankledger.pipeline.support.progress_display import told


def stage(done: int, total: int | None, *, moved: float = 0.0, began: float = 100.0, until: str = "") -> Stage:
    """Outputs of which the last was done so many seconds after the first began."""
    return Stage("Reading", total, "outputs", until, False, done, began, began + moved)


@pytest.mark.parametrize(
    ("found", "seconds", "said"),
    [
        (stage(10, 40, moved=5), 5, "10 of 40 outputs, 2.0 a second, 15 s left"),
        (stage(10, 40, moved=5), 8, "10 of 40 outputs, 2.0 a second, 12 s left"),
        (stage(10, 40, moved=5), 99, "10 of 40 outputs, 2.0 a second, 0 s left"),
        (stage(3, 10, moved=42), 42, "3 of 10 outputs, 14 s each, 1 min 38 s left"),
        (stage(1, 401, moved=18), 18, "1 of 401 outputs, 18 s each, 2 h 00 min left"),
        (stage(5_000, 7_000_000, moved=2), 2, "5,000 of 7,000,000 outputs, 2,500 a second, 46 min 38 s left"),
        (stage(0, 40), 5, "0 of 40 outputs, 5 s so far"),
        (stage(0, None), 65, "1 min 05 s so far"),
    ],
)
def test_a_line_tells_the_count_the_pace_and_what_is_left(found, seconds, said):
    """30 outputs at 2 a second take 15 s, of which 3 pass before the next is done; unknown is what has not begun."""
    assert told(found, None, found.began + seconds) == said


def drawing(done: int, moved: float) -> Stage:
    """The stage within, which has 8 parts."""
    return Stage("Drawing", 8, "parts", done=done, began=100.0, moved=moved)


def test_what_is_done_within_a_thing_is_a_part_of_it():
    """One dataset of 2 took 6 s, and half of the other is done after 10: 10 s / 1.5 x 0.5 = 3.3 s are left."""
    outer = replace(stage(1, 2, moved=6), nested=True)

    assert told(outer, drawing(4, 110.0), 110.0) == "1 of 2 outputs, 6 s each, 3 s left"


def test_a_first_thing_half_done_tells_what_is_left():
    """Before anything is done there is no pace, but half of the first of 2 in 3 s leaves 9 s."""
    outer = replace(stage(0, 2), nested=True)

    assert told(outer, drawing(4, 103.0), 103.0) == "0 of 2 outputs, 9 s left"


def test_a_single_thing_is_told_by_its_share():
    """`0 of 1` for minutes says nothing: 2 of its 8 parts after 3 s are 25%, and leave 9 s."""
    assert told(replace(stage(0, 1), nested=True), drawing(2, 103.0), 103.0) == "25%, 9 s left"


def test_one_of_several_stages_within_is_no_part():
    """Where the next stage begins at 0 again, what it has done is not counted."""
    assert told(stage(1, 2, moved=6), drawing(4, 110.0), 110.0) == "1 of 2 outputs, 6 s each, 2 s left"


@pytest.mark.parametrize(("total", "said"), [(12, "7 of 12 outputs, until 06:00 UTC"), (None, "until 06:00 UTC")])
def test_what_is_waited_for_has_an_end_and_no_pace(total, said):
    """How fast inputs came says nothing of the others."""
    assert told(stage(7, total, moved=3, until="06:00 UTC"), None, 200.0) == said
