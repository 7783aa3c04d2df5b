"""Measures of logs, worked by hand."""

import numpy as np
import pytest

from rankledger.metrics.aggregation import EFFECTIVE_SHARE, RATIO
from rankledger.metrics.logged import ctr, dr, dwell, ess, interleaving, ips, satisfied, snips, snips_dcg, snips_rbp
from rankledger.metrics.registry import METRICS
from tests.metrics.variants import VARIANTS, parsed
from tests.oracle import LOGS_ORACLE
from tests.support.blocks import log_block, plain_block, random_log, ranked

NAN = np.nan
CLICKS = [{"clicked": 1, "dwell": 40}, {"clicked": 0, "dwell": 0}, {"clicked": 1, "dwell": 10}, {"clicked": 0}]
CLICKS[3]["dwell"] = 0
WEIGHTED = log_block(
    [
        [
            {"clicked": 1, "weight": 2, "expected": 0.5, "predicted": 0.4},
            {"clicked": 0, "weight": 0.5, "expected": 0.2, "predicted": 0.2},
            {"clicked": 1, "weight": 0, "expected": 0.3, "predicted": 0.9},
            {"clicked": 0, "weight": 1.5, "expected": 0.6, "predicted": 0.4},
        ],
        [{"clicked": 1, "weight": 0, "expected": 0.25, "predicted": 0.5}],
        [],
    ]
)


def shown(lists: list[list[tuple[float, float]]]) -> list[dict[str, float]]:
    return [
        {"list": number, "clicked": clicked, "team": team} for number, own in enumerate(lists) for clicked, team in own
    ]


CLICKED = log_block([CLICKS, [{"clicked": 0, "dwell": 0}], []])
# Clicks of (ranker, other) 2:1 a win, 0:1 a loss, 1:1 and 0:0 ties, 1:0 a win.
DRAFTED = log_block(
    [
        shown([[(1, 1), (1, 0), (1, 1)], [(0, 1), (1, 0)], [(1, 1), (1, 0)], [(0, 1), (0, 0)], [(1, 1)]]),
        shown([[(0, 1)]]),
        [],
    ]
)
CREDITED = log_block([shown([[(1, 0.8), (0, 0.1), (1, 0.5)]])])  # both 0.4, none 0.1, else a tie
WORTH = plain_block([ranked(2, 0, 4, missed=[2]), ranked(0, None)])
HAND = [  # metric, block, options, expected
    # Two of four rows are clicked, for 40 and 10 seconds.
    (ctr, CLICKED, {}, [0.5, 0, NAN]),
    (dwell, CLICKED, {}, [25, NAN, NAN]),
    (satisfied, CLICKED, {}, [0.5, NAN, NAN]),
    (satisfied, CLICKED, {"seconds": 10}, [1, NAN, NAN]),
    # Weights 2 0.5 0 1.5 of clicks 1 0 1 0; without any weight a query says 0 by its row, and nothing by its weights.
    (ips, WEIGHTED, {}, [2 / 4, 0, NAN]),
    (snips, WEIGHTED, {}, [2 / 4, NAN, NAN]),
    (ips, WEIGHTED, {"clip": 1}, [1 / 4, 0, NAN]),
    (snips, WEIGHTED, {"clip": 1}, [1 / 2.5, NAN, NAN]),
    # Expected are 1.6; errors 0.6 -0.2 0.1 -0.4 by weights add 1.2 - 0.1 - 0.6.
    (dr, WEIGHTED, {}, [(1.6 + 1.2 - 0.1 - 0.6) / 4, 0.25, NAN]),
    (dr, WEIGHTED, {"clip": 1}, [(1.6 + 0.6 - 0.1 - 0.4) / 4, 0.25, NAN]),
    (ess, WEIGHTED, {}, [4**2 / (4 + 0.25 + 2.25) / 4, NAN, NAN]),
    (ess, log_block([[{"weight": 3}] * 7]), {}, [1]),
    (interleaving, DRAFTED, {}, [(2 - 1) / (2 * 5), 0, NAN]),
    (interleaving, DRAFTED, {"ties": "skip"}, [(2 - 1) / (2 * 3), NAN, NAN]),
    (interleaving, CREDITED, {}, [0.3 / 2]),
    (interleaving, CREDITED, {"ties": "skip"}, [0.3 / (2 * 0.5)]),
    # Clicks worth 2 at rank 1 and 4 at rank 3, and 2 not retrieved.
    (snips_dcg, WORTH, {}, [(2 + 4 / 2) / 8, NAN]),
    (snips_rbp, WORTH, {}, [0.2 * (2 + 4 * 0.64) / 8, NAN]),
    (snips_dcg, WORTH, {"k": 1}, [2 / 8, NAN]),
]


@pytest.mark.parametrize(("metric", "block", "options", "expected"), HAND)
def test_hand_worked_logs(metric, block, options, expected):
    np.testing.assert_allclose(metric(block, **options), expected, rtol=1e-12)


@pytest.mark.parametrize("clicked", [0.5, 1e-9, 2, -1, np.nan])
def test_interleaving_counts_whole_clicks(clicked):
    """Chapelle et al. count clicks: a reward of 0.1 and one of 1 must not be credited alike."""
    with pytest.raises(ValueError, match="clicked must be 0 or 1"):
        interleaving(log_block([shown([[(1, 1), (clicked, 0)]])]))


def test_the_other_ranker_has_the_opposite_preference():
    queries = random_log(np.random.default_rng(3), 100)
    others = [[{**row, "team": 1 - row["team"]} for row in rows] for rows in queries]

    np.testing.assert_allclose(interleaving(log_block(others)), -interleaving(log_block(queries)), atol=1e-12)


@pytest.mark.parametrize("factor", [0.5, 8])
def test_what_is_normalised_by_weights_does_not_move_with_them(factor):
    queries = random_log(np.random.default_rng(4), 100)
    block = log_block(queries)
    scaled = log_block([[{**row, "weight": row["weight"] * factor} for row in rows] for rows in queries])

    np.testing.assert_allclose(snips(scaled), snips(block), rtol=1e-12)
    np.testing.assert_allclose(ess(scaled), ess(block), rtol=1e-12)
    np.testing.assert_allclose(ips(scaled), ips(block) * factor, rtol=1e-12)


@pytest.mark.parametrize("text", [text for name in LOGS_ORACLE for text in VARIANTS[name]])
def test_measures_of_logs_agree_with_the_oracle(text):
    measure = parsed(text)
    queries = random_log(np.random.default_rng(5), 300)
    arguments = measure.arguments(max_grade=1)
    expected = [LOGS_ORACLE[measure.metric.name](rows, **arguments) for rows in queries]

    values = measure.metric.function(log_block(queries), **arguments)

    least, greatest = measure.metric.range
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12, equal_nan=True)
    assert np.nanmin(values) >= least - 1e-12
    assert np.nanmax(values) <= greatest + 1e-12


@pytest.mark.parametrize("name", LOGS_ORACLE)
def test_neighbours_do_not_change_a_bit_of_a_query(name):
    queries = [rows for rows in random_log(np.random.default_rng(6), 60) if rows]
    together = METRICS[name].function(log_block(queries))
    block = log_block(queries[::-1])

    alone = np.concatenate([METRICS[name].function(log_block([rows])) for rows in queries])

    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(METRICS[name].function(block)[::-1], together)


@pytest.mark.parametrize("aggregation", [RATIO, EFFECTIVE_SHARE])
def test_slopes_are_derivatives(aggregation):
    means, step = np.array([[0.7], [1.9]]), 1e-6
    for row in range(2):
        moved = [means + sign * step * np.eye(2)[:, [row]] for sign in (1, -1)]
        above, below = (aggregation.backward(each)[0, 0] for each in moved)

        assert aggregation.slope(means)[row, 0] == pytest.approx((above - below) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("clip", [0, -1])
def test_a_clip_that_leaves_no_weight_is_refused(clip):
    """Weights are at least 0, so that they could only be cut to nothing."""
    for name in ("ips", "snips", "dr", "ess"):
        with pytest.raises(ValueError, match=f"clip must be above 0, found {clip}"):
            METRICS[name].function(WEIGHTED, clip=clip)


@pytest.mark.parametrize("p", [0, 1])
def test_persistence_is_between_0_and_1(p):
    with pytest.raises(ValueError, match=f"p must be between 0 and 1, found {p}"):
        snips_rbp(plain_block([ranked(1)]), p=p)
