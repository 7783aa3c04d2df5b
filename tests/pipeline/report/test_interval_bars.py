"""Intervals drawn in a line of text."""

from __future__ import annotations

import pytest

from rankledger.pipeline.report.tables import Interval, Scale, interval_bar, scale_header


@pytest.mark.parametrize(
    ("line", "drawn"),
    [
        (Interval(5, 2, 9), "  ├──●───┤ "),
        (Interval(0, 0, 10), "●─────────┤"),
        (Interval(5, 5, 5), "     ●     "),
        (Interval(7), "       ●   "),
        (Interval(None), "           "),
    ],
)
def test_an_interval_stands_where_its_ends_are(line, drawn):
    """On 11 cells from 0 to 10 each is 1; the figure covers an end that it shares, and what is undefined is blank."""
    assert interval_bar(line, Scale(0, 10), 11) == drawn


def test_a_scale_holds_all_ends():
    """From the least end to the greatest, figures without an interval among them, and written over the cells."""
    scale = Scale.of([Interval(0.5, 0.4, 0.6), Interval(0.9), Interval(None)])

    assert (scale.low, scale.high) == (0.4, 0.9)
    assert scale_header(scale, 20) == "0.4000        0.9000"


def test_what_is_all_alike_stands_in_the_middle():
    """A scale without length divides by nothing; one without figures is of 0."""
    assert interval_bar(Interval(3, 3, 3), Scale.of([Interval(3, 3, 3)]), 13) == "      ●      "
    assert Scale.of([]) == Scale.of([Interval(None)]) == Scale(0.0, 0.0)
