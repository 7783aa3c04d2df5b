"""Metrics of a reader whose chance to read on is a model, on lists worked by hand."""

import math

import numpy as np
import pytest

from rankledger.metrics.reading import bpm, insq, inst, nearly_err, sdcg
from tests.support.blocks import plain_block, ranked

LIST = ranked(2, None, 1)
"""Gains of 1, 0 and 1/2, as the greatest grade is 2."""


def test_sdcg_is_over_perfect_documents():
    """(1 + 1/2 / 2) / (1 + 1 / log2 3 + 1/2) within three ranks, though two documents are judged."""
    assert sdcg(plain_block([LIST]), k=3, max_grade=2) == pytest.approx([1.25 / (1.5 + 1 / math.log2(3))])


def test_insq_weighs_ranks_by_squares():
    """Ranks weigh 1/4, 1/9, 1/16 … where one is wanted: π²/6 - 1 without end, and 1/4 + 1/9 within two."""
    block = plain_block([LIST])

    assert insq(block, max_grade=2) == pytest.approx([(1 / 4 + 1 / 32) / (math.pi**2 / 6 - 1)], rel=1e-14)
    assert insq(block, k=2, max_grade=2) == pytest.approx([1 / 4 / (1 / 4 + 1 / 9)])


def test_inst_goes_on_the_less_the_more_was_gained():
    """With the 1 that is wanted at rank 1 the chances to read on are 1/4 and 4/9: weights 1, 1/4 and 1/9."""
    assert inst(plain_block([LIST]), k=3, max_grade=2) == pytest.approx([(1 + 1 / 18) / (1 + 1 / 4 + 1 / 9)])


def test_inst_without_gains_is_a_walk_like_insq():
    """Where nothing is gained before the last document, the reader of both reads the same: rank 40 of 1,000."""
    block = plain_block([ranked(*[None] * 39, 1)])

    assert inst(block, k=40, max_grade=1) == pytest.approx(insq(block, k=40, max_grade=1), rel=1e-12)


def test_ranks_far_down_are_added_up_in_closed_form():
    """A sum over 20,000 ranks that is added up and integrated is that of all of them."""
    weights = (np.arange(1.0, 20_001) + 1) ** -2

    assert insq(plain_block([ranked(1)]), k=20_000, max_grade=1) == pytest.approx([0.25 / weights.sum()], rel=1e-14)


def test_bpm_stops_when_enough_is_gained_or_all_is_read():
    """1 is gained at rank 1; 1.5 at rank 3; 2 never, so that ten documents are read."""
    block = plain_block([LIST])

    assert bpm(block, k=10, max_grade=2) == pytest.approx([1])
    assert bpm(block, k=10, t=1.5, max_grade=2) == pytest.approx([1.5 / 3])
    assert bpm(block, k=10, t=2, max_grade=2) == pytest.approx([1.5 / 10])
    assert bpm(block, k=2, t=1.5, max_grade=2) == pytest.approx([1 / 2])


@pytest.mark.parametrize(("metric", "t"), [(insq, 0.5), (inst, 0.0), (inst, float("nan"))])
def test_a_reader_wants_something(metric, t):
    """At 0.5 the weight of rank 0 would be infinite."""
    with pytest.raises(ValueError, match=r"t must be above 0\.5, found"):
        metric(plain_block([LIST]), t=t, max_grade=2)


def test_bpm_refuses_a_goal_of_nothing():
    """Whoever wants nothing reads nothing."""
    with pytest.raises(ValueError, match="t must be above 0, found 0"):
        bpm(plain_block([LIST]), k=1, t=0, max_grade=2)


def test_nearly_err_stops_where_a_document_satisfies():
    """Gains of 1/2, 0 and 1/2: half of the readers go on. They read ranks 1 to 4 with chances 1, 1/2, 1/2 and 1/4; with
    the discounts 1/i, 1, 1/4, 1/6 and 1/16; with 1/2^(i - 1), 1, 1/4, 1/8 and 1/32.
    """
    block = plain_block([ranked(1, None, 1)])

    assert nearly_err(block, k=4, max_grade=2) == pytest.approx([(1 / 2 + 1 / 4) / (1 + 1 / 2 + 1 / 2 + 1 / 4)])
    assert nearly_err(block, k=4, discount="reciprocal", max_grade=2) == pytest.approx(
        [(1 / 2 + 1 / 12) / (1 + 1 / 4 + 1 / 6 + 1 / 16)]
    )
    assert nearly_err(block, k=4, discount="geometric", p=0.5, max_grade=2) == pytest.approx(
        [(1 / 2 + 1 / 16) / (1 + 1 / 4 + 1 / 8 + 1 / 32)]
    )


def test_nearly_err_of_one_who_wants_t():
    """Ranks weigh 1, 4/9 and 4/16 as for insq; nobody goes on after a perfect document at rank 2."""
    block = plain_block([ranked(0, 2, 2)])

    assert nearly_err(block, k=1000, discount="inverse_square", max_grade=2) == pytest.approx([(4 / 9) / (1 + 4 / 9)])


def test_harmonic_weights_far_down():
    """A gain of 1/2 at rank 1 halves all ranks below it: 1/2 over 1 and half of what 20,000 ranks weigh more."""
    weights = float((1 / np.arange(2.0, 20_001)).sum())
    found = nearly_err(plain_block([ranked(1)]), k=20_000, discount="reciprocal", max_grade=2)

    assert found == pytest.approx([0.5 / (1 + weights / 2)], rel=1e-14)


@pytest.mark.parametrize("p", [0, 1, float("nan")])
def test_nearly_err_refuses_a_persistence_that_is_no_chance(p):
    """Nobody reads on, or everybody does."""
    with pytest.raises(ValueError, match="p must be between 0 and 1, found"):
        nearly_err(plain_block([LIST]), k=3, discount="geometric", p=p, max_grade=2)
