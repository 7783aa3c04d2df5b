"""Intervals drawn in a line of text."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rankledger.pipeline.report.tables import TextScale, text_scale


@dataclass(frozen=True)
class Line:
    estimate: float | None
    ci_low: float | None = None
    ci_high: float | None = None


@pytest.mark.parametrize(
    ("line", "drawn"),
    [
        (Line(5, 2, 9), "  ├──●───┤ "),
        (Line(0, 0, 10), "●─────────┤"),
        (Line(5, 5, 5), "     ●     "),
        (Line(7), "       ●   "),
        (Line(None), "           "),
    ],
)
def test_an_interval_stands_where_its_ends_are(line, drawn):
    """On 11 cells from 0 to 10 each is 1; the figure covers an end that it shares, and what is undefined is blank."""
    assert TextScale(0, 10, 11).draw(line) == drawn


def test_a_scale_holds_all_ends():
    """From the least end to the greatest, figures without an interval among them, and written over the cells."""
    scale = text_scale([Line(0.5, 0.4, 0.6), Line(0.9), Line(None)], 20)

    assert (scale.low, scale.high) == (0.4, 0.9)
    assert scale.header == "0.4000        0.9000"


def test_what_is_all_alike_stands_in_the_middle():
    """A scale without length divides by nothing; one without figures is of 0."""
    assert text_scale([Line(3, 3, 3)], 13).draw(Line(3, 3, 3)) == "      ●      "
    assert (text_scale([], 13).low, text_scale([Line(None)], 13).high) == (0.0, 0.0)
