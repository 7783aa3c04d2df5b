"""What a line of progress says, at times that are given."""

from __future__ import annotations

import pytest

from rankledger.pipeline.support.progress import Stage


def stage(done: int, total: int | None, *, moved: float = 0.0, began: float = 100.0, until: str = "") -> Stage:
    """Outputs of which the last was done so many seconds after the first began."""
    return Stage("Reading", total, "outputs", until, done, began, began + moved)


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
def test_a_line_has_the_count_the_pace_and_the_time_left(found, seconds, said):
    """30 outputs at 2 a second take 15 s, of which 3 pass before the next is done; unknown is what has not begun."""
    assert found.status(found.began + seconds) == said


@pytest.mark.parametrize(("total", "said"), [(12, "7 of 12 outputs, until 06:00 UTC"), (None, "until 06:00 UTC")])
def test_what_is_waited_for_has_an_end_and_no_pace(total, said):
    """How fast inputs came says nothing of the others."""
    assert stage(7, total, moved=3, until="06:00 UTC").status(200.0) == said
